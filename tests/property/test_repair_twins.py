"""Repair, settling, starts and clusters by shares beside their slow plain twins, on small tables of every kind."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from kinfold.methods.partition.by_shares import _compiled, by_shares_plain
from kinfold.methods.partition.cost import cost
from kinfold.methods.partition.gaps import Gaps
from kinfold.methods.partition.mdav import mdav
from kinfold.methods.partition.repair import repair
from kinfold.methods.partition.requirement import Requirement, missed
from kinfold.methods.partition.settle import settled
from kinfold.methods.partition.shares import Quotas
from kinfold.methods.partition.starts import best_start
from kinfold.methods.partition.t_first import pooled, strata
from kinfold.models import LDiversity, TCloseness
from kinfold.progress import silent
from kinfold.rows.points import Points
from reference import by_shares as shares_twin
from reference import settle_plain as twin

MODELS = [TCloseness(0.3, "x", "equal"), TCloseness(0.2, "x"), LDiversity(2, "x")]


def table(seed: int) -> tuple[Points, list[Requirement]]:
    chance = np.random.default_rng(seed)
    points = Points.of(chance.integers(0, 6, (18, 2)).astype(float))
    column = (points.numbers[:, 0] + chance.normal(size=18) > 3).astype(int) + (np.arange(18) % 9 == 0)
    return points, [Requirement.of(MODELS[seed % 3], column)]


def misses(required: list[Requirement]) -> Callable[[list[int]], float]:
    """How far a class of the whole table misses its promises."""
    n = len(required[0].codes)

    @cache
    def known(members: tuple[int, ...]) -> float:
        labels = np.zeros(n, np.int32)
        labels[list(members)] = 1
        return float(missed(required, labels)[1]) if 0 < len(members) < n else 0.0

    return lambda members: known(tuple(sorted(members)))


def classes_of(labels: np.ndarray) -> list[list[int]]:
    return [np.flatnonzero(labels == g).tolist() for g in range(labels.max() + 1)]


def test_repair_and_settling_come_near_to_what_trying_every_exchange_finds() -> None:
    near = [compared(seed) for seed in range(9)]
    assert np.exp(np.mean(np.log(near))) < 1.25


def compared(seed: int) -> float:
    """Check the classes of one table against the promises; return what they cost, as a share of what the twin's do."""
    points, required = table(seed)
    gaps, miss = Gaps.of(points).pairs, misses(required)
    start = mdav(points, 3)
    fast = settled(points, repair(points, start, 3, required).labels, 3, required, silent)
    plain = twin.settle(gaps, twin.repair(gaps, classes_of(start), 3, miss), 3, miss)
    assert missed(required, fast).max() == 0
    assert not any(map(miss, plain))
    assert cost(points, fast) == pytest.approx(twin.cost(gaps, classes_of(fast)))
    best = best_start(points, start, 3, required)
    assert missed(required, best.labels).max() == 0
    assert cost(points, best.labels) <= cost(points, fast) + 1e-9
    return cost(points, fast) / max(twin.cost(gaps, plain), 1e-9)


@pytest.mark.parametrize("seed", range(30))
def test_clusters_by_shares_are_those_of_the_twin_and_keep_every_quota(seed: int) -> None:
    chance = np.random.default_rng(seed)
    n, size = int(chance.integers(12, 90)), int(chance.integers(2, 7))
    points = Points.of(chance.integers(0, 7, (n, 2)).astype(float))
    kind = np.unique(chance.integers(0, 5, n) ** 2 // 3, return_inverse=True)[1].astype(np.int32)
    quotas = Quotas.of(kind, size)
    rows = [np.flatnonzero(kind == v) for v in range(int(kind.max()) + 1)]
    labels = by_shares_plain(points, rows, quotas, silent)
    with np.errstate(invalid="ignore"):  # boxes that are empty, where nothing is compiled
        assert labels.tolist() == _compiled(points, rows, quotas, silent).tolist()
    assert labels.tolist() == shares_twin.by_shares(points.numbers, kind.tolist(), size)
    held = np.zeros((quotas.classes, len(rows)), int)
    np.add.at(held, (labels, kind), 1)
    assert (held >= quotas.always).all()
    assert (held <= quotas.always + 1).all()
    assert np.ptp(held.sum(axis=1)) <= 1


def test_strata_in_a_row_that_hold_one_value_are_one_pool() -> None:
    codes = np.array([0, 0, 0, 0, 0, 0, 0, 1, 2, 3])
    pool = pooled(strata(codes, 5), codes)
    assert pool.tolist() == [0, 0, 0, 0, 0, 0, 1, 1, 2, 2]
