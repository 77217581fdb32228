"""The least t of several classes, against every class that there is."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

import kinfold
from kinfold.methods.partition.least_closeness import least_closeness
from kinfold.methods.partition.requirement import Requirement
from kinfold.models import TCloseness


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("ground", ["ordered", "equal"])
def test_no_class_of_several_is_nearer_and_one_is_as_near(seed: int, ground: str) -> None:
    chance = np.random.default_rng(seed)
    n, k = int(chance.integers(4, 10)), int(chance.integers(1, 3))
    column = chance.integers(0, chance.integers(2, 6), n)
    column = np.unique(column, return_inverse=True)[1]
    every = [
        max(apart(column[list(rows)], column, ground), apart(np.delete(column, rows), column, ground))
        for size in range(k, n // 2 + 1)
        for rows in combinations(range(n), size)
    ]
    found = least_closeness(Requirement.of(TCloseness(0.01, "x", ground), column), k)
    assert found == pytest.approx(min(every), abs=1e-12)


def apart(part: np.ndarray, whole: np.ndarray, ground: str) -> float:
    values = int(whole.max()) + 1
    gaps = [np.mean(part == v) - np.mean(whole == v) for v in range(values)]
    if ground == "equal":
        return sum(map(abs, gaps)) / 2
    return sum(abs(sum(gaps[: v + 1])) for v in range(values)) / max(1, values - 1)


@pytest.mark.parametrize("t", [0.0001, 0.3])
def test_a_t_that_one_class_alone_keeps_is_answered_with_it_and_with_the_least_that_more_can_keep(t: float) -> None:
    table = {"age": [20 + i % 40 for i in range(101)], "ill": ["flu" if i % 10 == 3 else "cold" for i in range(101)]}
    asked = {"quasi": ["age"], "confidential": ["ill"], "k": 5, "t": t}
    made = kinfold.anonymize(pa.table(table), **asked)
    only = [note for note in made.plan.notes if "one class of all records" in note]
    assert bool(only) == (t < 0.01)
    assert (made.verdict.classes == 1) == (t < 0.01)
