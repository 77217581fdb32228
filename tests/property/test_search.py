import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfold.kernels import search as sweeps
from kinfold.methods.blocks.pool import limit_threads
from kinfold.methods.partition import refine as large
from kinfold.methods.partition.geometry import PairDistances, compute_cost, split_groups
from kinfold.methods.partition.refine import improve, refine
from kinfold.methods.partition.search import Budget, SearchInput, cross_partitions
from kinfold.tables.points import NominalScale, OrdinalScale, Points
from reference.mdav_plain import mdav_plain
from reference.partitions import least_cost, sse_plain


@st.composite
def tables(draw, largest=30):
    """A small table with ties and a k that fits it."""
    n = draw(st.integers(2, largest))
    d = draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    x = rng.normal(size=(n, d))
    levels = draw(st.sampled_from([0, 1, 3]))
    return np.round(x * levels) if levels else x, draw(st.integers(2, min(6, n)))


def mixed(rng, n):
    paths = np.array([[0, 0, 0], [1, 0, 0], [2, 1, 0], [3, 1, 0]], np.int32)
    codes = np.column_stack([rng.integers(0, 4, n), rng.integers(0, 4, n)]).astype(np.int32)
    return Points(rng.normal(size=(n, 1)), codes, (OrdinalScale(3), NominalScale(paths)))


@given(table=tables(), steps=st.integers(0, 60))
@settings(deadline=None, max_examples=60)
def test_refinement_never_costs_more_and_never_breaks_k(table, steps):
    x, k = table
    start = mdav_plain(x, k)
    labels = refine(x, start, k, steps=steps)
    assert labels.dtype == np.int32
    assert np.bincount(labels).min() >= k
    assert labels.max() + 1 == np.unique(labels).size
    assert sse_plain(x, labels) <= sse_plain(x, start) + 1e-9


@given(table=tables(), steps=st.integers(0, 60))
@settings(deadline=None, max_examples=40)
def test_the_cost_told_is_the_sse_of_the_labels(table, steps):
    x, k = table
    found = improve(x, mdav_plain(x, k), k, steps=steps)
    assert found.cost == pytest.approx(sse_plain(x, found.labels), rel=1e-9, abs=1e-9)
    assert found.cost == pytest.approx(found.history[-1].cost, rel=1e-9, abs=1e-9)


@pytest.mark.compiled
@given(table=tables(60), steps=st.integers(1, 500), seed=st.integers(0, 5))
@settings(deadline=None, max_examples=20)
def test_the_same_seed_and_steps_give_the_same_labels(table, steps, seed):
    x, k = table
    one, two = (refine(x, mdav_plain(x, k), k, steps=steps, seed=seed) for _ in range(2))
    assert (one == two).all()


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(2, 4))
@settings(deadline=None, max_examples=30)
def test_mixed_records_are_refined_by_the_same_search(seed, k):
    rng = np.random.default_rng(seed)
    points = mixed(rng, 20)
    gaps = PairDistances.from_points(points)
    start = (np.arange(20) * (20 // k) // 20).astype(np.int32)
    labels = refine(points, start, k, steps=40)
    assert gaps.cost(labels) <= gaps.cost(start) + 1e-9
    assert np.bincount(labels).min() >= k


@pytest.mark.compiled
def test_refinement_reaches_the_optimum_of_most_small_tables():
    reached = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, k = int(rng.integers(4, 10)), int(rng.integers(2, 4))
        x = rng.normal(size=(n, 2))
        optimum = least_cost(PairDistances.from_points(Points.from_array(x)).squared, k)
        cost = improve(x, mdav_plain(x, k), k, steps=50).cost
        assert cost >= optimum - 1e-9
        reached += cost <= optimum + 1e-9
    assert reached >= 58


@pytest.mark.compiled
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9, 1e60])
@pytest.mark.parametrize("outlier", [1.0, 1e4, 1e9])
@pytest.mark.parametrize("k", [2, 5])
def test_neither_scale_nor_outliers_make_it_worse_or_endless(scale, outlier, k):
    rng = np.random.default_rng(7)
    x = rng.normal(size=(60, 3))
    x[rng.integers(0, 60, 3)] *= outlier
    start = mdav_plain(x, k)
    found = improve(x * scale, start, k, steps=150)
    assert found.cost <= sse_plain(x * scale, start) * (1 + 1e-12)
    assert np.bincount(found.labels).min() >= k


@pytest.mark.parametrize(("n", "k"), [(2, 2), (3, 2), (5, 5), (7, 4), (4, 2)])
def test_the_smallest_tables_are_refined(n, k):
    x = np.random.default_rng(n).normal(size=(n, 2))
    labels = refine(x, np.zeros(n, int), k, steps=30)
    assert np.bincount(labels).min() >= k


def sorted_start(x: np.ndarray, k: int) -> np.ndarray:
    rank = np.argsort(np.argsort(x[:, 0], kind="stable"))
    return np.minimum(rank // k, len(x) // k - 1).astype(np.int32)


def mixed_points(n: int) -> Points:
    rng = np.random.default_rng(n)
    paths = np.array([[0, 0, 0], [1, 0, 0], [2, 1, 0], [3, 1, 0]], np.int32)
    codes = np.column_stack([rng.integers(0, 6, n), rng.integers(0, 4, n)]).astype(np.int32)
    return Points(rng.normal(size=(n, 2)), codes, (OrdinalScale(5, 0.5), NominalScale(paths, 2.0)))


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
        with limit_threads(threads):
            labels.append(improve(X, start, 4, steps=9, seed=3).labels)
    assert (labels[0] == labels[1]).all()


def test_a_large_run_of_seconds_is_repeated_by_its_steps():
    start = sorted_start(X, 4)
    timed = improve(X, start, 4, seconds=0.3)
    again = improve(X, start, 4, steps=timed.steps)
    assert (timed.labels == again.labels).all()


def test_a_large_mixed_table_is_refined():
    points = mixed_points(5200)
    start = sorted_start(points.numbers, 4)
    found = large.search_rounds(large.BlockSearch(points, start, 4, 0), Budget(2, None))
    assert found.cost < compute_cost(points, start)
    assert found.cost == pytest.approx(found.history[-1].cost)
    assert np.bincount(found.labels).min() >= 4


def test_the_cost_of_a_mixed_partition_is_that_of_its_pairs():
    points = mixed_points(300)
    labels = sorted_start(points.numbers, 7)
    assert compute_cost(points, labels) == pytest.approx(PairDistances.from_points(points).cost(labels))


@pytest.mark.parametrize("k", [2, 5])
def test_a_sweep_tells_what_it_gains(k):
    x = X[:400]
    start = sorted_start(x, k)
    before = sse_plain(x, start)
    oracle = SearchInput.from_points(Points.from_array(x), near=large.find_near_groups(x, start))
    state = oracle.arrange(start, k)
    state.state[0].wide = 3
    change = sweeps.sweep(oracle.records, state, 1000)
    assert sse_plain(x, state.label) == pytest.approx(before + change)
    assert change < 0.0
    assert state.pairs / state.size == pytest.approx(
        [((x[g] - x[g].mean(0)) ** 2).sum() for g in split_groups(state.label)]
    )


def test_blocks_share_no_record_and_leave_none_out():
    work = large.BlockSearch(Points.from_array(X), sorted_start(X, 3), 3, 0)
    blocks = work.cut_next_round()
    assert sorted(np.concatenate(blocks).tolist()) == list(range(len(X)))


def random_partition(rng: np.random.Generator, n: int, k: int) -> np.ndarray:
    labels = np.empty(n, np.int32)
    labels[rng.permutation(n)] = np.minimum(np.arange(n) // k, n // k - 1)
    return labels


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(2, 5))
@settings(deadline=None, max_examples=60)
def test_a_child_costs_no_more_than_either_parent_and_keeps_k(seed, k):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2 * k, 40))
    gaps = PairDistances.from_points(Points.from_array(rng.normal(size=(n, 2))))
    one = random_partition(rng, n, k)
    other = one.copy()
    part = np.flatnonzero(one < rng.integers(1, one.max() + 2))
    other[part] = other[rng.permutation(part)]  # groups of the same sizes, some of them mixed
    child = cross_partitions(gaps, one, other)
    assert gaps.cost(child) <= min(gaps.cost(one), gaps.cost(other)) + 1e-9
    assert np.bincount(child).min() >= k


def test_regions_are_taken_from_different_parents():
    gaps = PairDistances.from_points(Points.from_array([[0.0], [1.0], [9.0], [10.0], [50.0], [51.0], [59.0], [60.0]]))
    one, other = np.array([0, 0, 1, 1, 2, 3, 2, 3]), np.array([0, 1, 0, 1, 2, 2, 3, 3])
    assert gaps.cost(cross_partitions(gaps, one, other)) == pytest.approx(2.0)
