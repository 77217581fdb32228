"""t-closeness in the lattice: classes marked by counts as the models mark them, and bounds that hold in every node."""

from itertools import product
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfold.errors import Unreachable
from kinfold.hierarchies import build_from_rows
from kinfold.methods.generalize import closeness, domain, lattice_search
from kinfold.methods.generalize.closeness import Closeness
from kinfold.methods.generalize.lattice import Lattice
from kinfold.methods.generalize.levels import mark_outliers
from kinfold.models import KAnonymity, TCloseness
from kinfold.tables.tally import Tally, tally_labels
from reference import full_domain

TREE = build_from_rows([["0", "low", "*"], ["1", "low", "*"], ["2", "high", "*"], ["3", "high", "*"]])
seeds = st.integers(0, 10**6)
levels_of_t = st.sampled_from([0.1, 0.2, 0.25, 0.5])


@pytest.fixture(autouse=True, scope="module")
def compiled():
    """Small tables are counted by the kernels as well."""
    with (
        mock.patch.object(closeness, "MAX_ROWS_WITHOUT_KERNEL", 0),
        mock.patch.object(domain, "MAX_ROWS_WITHOUT_KERNEL", 0),
    ):
        yield


def make_models(t: float, distance: str) -> list[TCloseness]:
    return [TCloseness(t, "disease", distance, TREE if distance == "hierarchical" else None)]


def make_tally(seed: int, classes: int, records: int) -> Tally:
    random = np.random.default_rng(seed)
    labels = np.unique(random.integers(0, classes, records), return_inverse=True)[1]
    return tally_labels(labels, {"disease": random.integers(0, random.integers(1, 5), records).astype(str)})


@pytest.mark.parametrize("distances", [("equal",), ("hierarchical",), ("ordered",), ("equal", "ordered")])
@given(seed=seeds, t=levels_of_t, classes=st.integers(1, 12), records=st.integers(1, 60), k=st.integers(1, 3))
@settings(max_examples=60)
def test_the_classes_marked_are_those_that_the_models_mark(distances, seed, t, classes, records, k):
    tally = make_tally(seed, classes, records)
    models = [KAnonymity(k), *(model for distance in distances for model in make_models(t, distance))]
    fast = Closeness.from_models(models[1:], tally)
    assert fast is not None
    plain = mark_outliers(models, tally)
    assert mark_outliers(models, tally, closeness=fast).tolist() == plain.tolist()


@pytest.mark.parametrize(("distance", "values"), [("equal", 2), ("equal", 3), ("hierarchical", 3)])
def test_no_choice_of_suppressed_records_loses_less_of_a_class_than_the_bound(distance, values):
    """Every way to keep a part of two classes, against the bound for every number of suppressed records."""
    random, bounded = np.random.default_rng(values), 0
    for t in (0.1, 0.2, 0.3) * 2:
        whole = random.integers(0, 9 - 2 * values, (2, values))
        whole[0, 0], whole[1, -1] = whole[0, 0] + 3, whole[1, -1] + 3
        paths = np.array([[0, 0], [1, 0], [2, 1]]) if distance == "hierarchical" else np.arange(values)[:, None]
        kept = np.array(list(product(*(range(count + 1) for count in whole.ravel())))).reshape(-1, 2, values)
        kept = kept[kept.sum(axis=2).all(axis=1)]  # a class that loses all is above every bound
        shares = kept / kept.sum(axis=2, keepdims=True)
        table = kept.sum(axis=1, keepdims=True) / kept.sum(axis=(1, 2))[:, None, None]
        apart = sum(abs((shares - table) @ np.eye(values)[level]).sum(axis=2) / 2 for level in paths.T) / paths.shape[1]
        lost = (whole - kept).sum(axis=2)[(apart <= t + 1e-12).all(axis=1)]
        tally = tally_labels(
            np.repeat([0, 1], whole.sum(axis=1)),
            {"disease": np.repeat(np.tile(np.arange(values), 2), whole.ravel()).astype(str)},
        )
        fast = Closeness.from_models(make_models(t, distance), tally)
        for most in range(int(whole.sum())):
            bound = fast.find_losses(tally, most)
            bounded += int(bound.sum())
            for chosen in lost[lost.sum(axis=1) <= most]:
                assert (bound <= chosen).all()
    assert bounded > 0


@given(seed=seeds, t=levels_of_t, suppression=st.sampled_from([0, 1, 3, 0.3, 0.5, 1.0]), starred=st.booleans())
@settings(max_examples=40)
def test_the_search_finds_the_same_node_with_the_bounds_as_without(seed, t, suppression, starred):
    table = full_domain.random_domain(seed, rows=30, diseases=2)
    models = [KAnonymity(2), TCloseness(t, "disease", "equal")]
    found = []
    for bounded in (True, False):
        make = Closeness.from_models if bounded else lambda *_: None
        with mock.patch.object(lattice_search.Closeness, "from_models", make):
            search = Lattice(table, models, suppression, starred=starred)
        try:
            found.append(
                (
                    search.search().levels,
                    search.best.outliers,
                    search.bound,
                    search.generalization().suppressed.tolist(),
                )
            )
        except Unreachable:
            found.append(None)
    assert found[0] == found[1]


def test_the_bound_excludes_most_nodes_of_a_table_with_a_rare_value():
    table = full_domain.random_domain(1, rows=400, columns=4, diseases=2)
    models, evaluated = [KAnonymity(5), TCloseness(0.1, "disease", "equal")], []
    for bounded in (True, False):
        make = Closeness.from_models if bounded else lambda *_: None
        with mock.patch.object(lattice_search.Closeness, "from_models", make):
            search = Lattice(table, models, 0.05)
        search.search()
        evaluated.append(len(search.nodes.evaluated))
    assert evaluated[0] < evaluated[1]


def test_views_are_forgotten_before_they_take_more_rows_than_allowed(monkeypatch):
    table = full_domain.random_domain(3, rows=200, columns=4)
    monkeypatch.setattr(lattice_search, "MAX_KEPT_ROWS", 300)
    monkeypatch.setattr(lattice_search, "MAX_KEPT_VIEWS", 4)
    search = Lattice(table, [KAnonymity(3)], 0.1)
    best = search.search()
    kept = search.nodes._views
    assert kept._rows == sum(len(view) for view in kept._kept[1:] if view is not kept._kept[0]) <= 300
    monkeypatch.undo()
    assert Lattice(table, [KAnonymity(3)], 0.1).search().levels == best.levels
