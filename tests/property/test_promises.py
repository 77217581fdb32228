"""What the kernels ask of a class against what the models say, for every kind of promise."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numba import njit

from kinfold.hierarchy import Hierarchy
from kinfold.methods.partition.requirement import Requirement, missed
from kinfold.models import AlphaK, LDiversity, PSensitive, TCloseness
from kinfold.rows.tally import of_labels

TREE = Hierarchy.of([(str(leaf), f"b{leaf // 2}", f"c{leaf // 4}") for leaf in range(9)])
MODELS = [
    TCloseness(0.2, "x"),
    TCloseness(0.3, "x", "equal"),
    TCloseness(0.3, "x", "hierarchical", TREE),
    LDiversity(3, "x"),
    LDiversity(2.5, "x", "entropy"),
    LDiversity(3, "x", "recursive", 1.0),
    LDiversity(2, "x", "recursive", 0.5),
    PSensitive(2, "x"),
    AlphaK(0.5, "x"),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_class_misses_a_promise_in_the_kernels_where_it_fails_the_model(model):
    for seed in range(40):
        chance = np.random.default_rng(seed)
        n = int(chance.integers(1, 400))
        labels = np.unique(chance.integers(0, max(1, n // int(chance.integers(1, 200))), n), return_inverse=True)[1]
        column = chance.integers(0, int(chance.integers(1, 10)), n)
        found = missed([Requirement.of(model, column)], labels.astype(np.int32))
        tally = of_labels(labels, {"x": column})
        assert (found > 0).tolist() == model.failing(tally).tolist()
        if isinstance(model, TCloseness):
            assert found == pytest.approx(np.maximum(model.distances(tally) - model.t, 0), abs=1e-12)


def test_misses_of_several_promises_add_up():
    chance = np.random.default_rng(1)
    labels = np.arange(60, dtype=np.int32) % 20
    columns = chance.integers(0, 9, (len(MODELS), 60))
    each = [Requirement.of(model, column) for model, column in zip(MODELS, columns, strict=True)]
    assert missed(each, labels) == pytest.approx(sum(missed([one], labels) for one in each))


@cache
def callable_from_here():
    """The kernel has no way in from Python; this is one."""
    from kinfold.kernels.promises import miss

    return njit(lambda promises, members, leaves, comes: miss(promises, members, leaves, comes))


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_class_with_one_record_changed_is_read_like_the_changed_class(model):
    from kinfold.methods.partition.requirement import packed

    miss = callable_from_here()
    chance = np.random.default_rng(2)
    column = chance.integers(0, 9, 300)
    promises = packed([Requirement.of(model, column)], 300)
    for size in (2, 5, 63, 64, 65, 120):
        members = chance.permutation(300)[: size + 1].astype(np.int32)
        stay, other = members[:size], members[size]
        swapped, joined, left = np.append(stay[1:], other), members, stay[1:]
        assert miss(promises, stay, stay[0], other) == miss(promises, swapped, -1, -1)
        assert miss(promises, stay, -1, other) == miss(promises, joined, -1, -1)
        assert miss(promises, stay, stay[0], -1) == miss(promises, left, -1, -1)
