from __future__ import annotations

import numpy as np
import pytest

from kinfold.kernels import sweeps
from kinfold.methods.blocks.parallel_blocks import at_most
from kinfold.methods.partition import large
from kinfold.methods.partition.cost import cost
from kinfold.methods.partition.gaps import Gaps, split
from kinfold.methods.partition.oracle import Oracle
from kinfold.methods.partition.refine import improve
from kinfold.methods.partition.search import Budget
from kinfold.rows.points import Nested, Ordered, Points
from reference.partitions import sse_plain


def sorted_start(x: np.ndarray, k: int) -> np.ndarray:
    rank = np.argsort(np.argsort(x[:, 0], kind="stable"))
    return np.minimum(rank // k, len(x) // k - 1).astype(np.int32)


def mixed(n: int) -> Points:
    rng = np.random.default_rng(n)
    paths = np.array([[0, 0, 0], [1, 0, 0], [2, 1, 0], [3, 1, 0]], np.int32)
    codes = np.column_stack([rng.integers(0, 6, n), rng.integers(0, 4, n)]).astype(np.int32)
    return Points(rng.normal(size=(n, 2)), codes, (Ordered(5, 0.5), Nested(paths, 2.0)))


X = np.random.default_rng(0).normal(size=(6000, 3))


@pytest.mark.compiled
def test_a_large_table_costs_less_after_each_round_and_keeps_k():
    start = sorted_start(X, 5)
    found = improve(X, start, 5, steps=6)
    costs = [mark.cost for mark in found.history]
    assert costs[0] == pytest.approx(sse_plain(X, start))
    assert found.cost == pytest.approx(sse_plain(X, found.labels))
    assert costs == sorted(costs, reverse=True)
    assert found.cost < 0.2 * costs[0]
    assert np.bincount(found.labels).min() >= 5
    assert found.steps == 6


@pytest.mark.compiled
def test_the_number_of_threads_changes_nothing():
    start = sorted_start(X, 4)
    labels = []
    for threads in (1, 2):
        with at_most(threads):
            labels.append(improve(X, start, 4, steps=9, seed=3).labels)
    assert (labels[0] == labels[1]).all()


def test_a_large_run_of_seconds_is_repeated_by_its_steps():
    start = sorted_start(X, 4)
    timed = improve(X, start, 4, seconds=0.3)
    again = improve(X, start, 4, steps=timed.steps)
    assert (timed.labels == again.labels).all()


def test_a_large_mixed_table_is_refined():
    points = mixed(5200)
    start = sorted_start(points.numbers, 4)
    found = large.search_blocks(points, start, 4, Budget(2, None))
    assert found.cost < cost(points, start)
    assert found.cost == pytest.approx(found.history[-1].cost)
    assert np.bincount(found.labels).min() >= 4


def test_the_cost_of_a_mixed_partition_is_that_of_its_pairs():
    points = mixed(300)
    labels = sorted_start(points.numbers, 7)
    assert cost(points, labels) == pytest.approx(Gaps.of(points).cost(labels))


@pytest.mark.parametrize("k", [2, 5])
def test_a_sweep_tells_what_it_gains(k):
    x = X[:400]
    start = sorted_start(x, k)
    before = sse_plain(x, start)
    oracle = Oracle.of(Points.of(x), near=large.near_by_means(x, start))
    state = oracle.arranged(start, k)
    state.state[0].wide = 3
    change = sweeps.sweep(oracle.records, state, 1000)
    assert sse_plain(x, state.label) == pytest.approx(before + change)
    assert change < 0.0
    assert state.pairs / state.size == pytest.approx([((x[g] - x[g].mean(0)) ** 2).sum() for g in split(state.label)])


def test_blocks_share_no_record_and_leave_none_out():
    work = large.Work(Points.of(X), sorted_start(X, 3), 3, 0)
    blocks = work.next_round()
    assert sorted(np.concatenate(blocks).tolist()) == list(range(len(X)))
