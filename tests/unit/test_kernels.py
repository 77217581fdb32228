"""The kernels of partitioners and of the search: against definitions, compiled and as plain Python."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from kinfold import kernels
from kinfold.kernels import draws, groups, moves, queries, records, search, univariate
from kinfold.kernels import geometry as distances
from kinfold.kernels import geometry as means
from kinfold.kernels import geometry as paths
from kinfold.kernels.queries import find_farthest, find_nearest, locate, remove, shrink_around
from kinfold.kernels.records import gap_between, to_record
from kinfold.methods.partition import geometry
from kinfold.methods.partition.geometry import PairDistances, compute_centres
from kinfold.methods.partition.index import (
    grow_tree,
    grow_trees,
    start_folded_run,
    start_unfolded_run,
    to_kernel_records,
)
from kinfold.methods.partition.search import SearchInput
from kinfold.tables.points import NominalScale, OrdinalScale, Points
from mixed_tables import tables
from reference.mdav_plain import mdav_plain
from reference.plain_space import distance as plain_distance
from uncompiled import PLAIN, uncompiled

FLOATS = st.lists(st.floats(-1e150, 1e150), min_size=1, max_size=30)


def summed(values, gone=()):
    """The exact sum as plain Python; tests/property/test_mdav.py has it compiled."""
    sums, digits = np.zeros((1, records.LIMBS), np.int64), np.zeros(records.DIGITS, np.int64)
    for some, times in ((values, 1), (gone, -1)):
        for value in some:
            uncompiled(records.add_to_sum)(sums, 0, int(np.float64(value).view(np.int64)), times)
    return uncompiled(records.round_sum)(sums, 0, digits)


@settings(max_examples=200, deadline=None)
@given(kept=FLOATS, gone=FLOATS)
def test_an_exact_sum_forgets_what_is_taken_away(kept, gone):
    assert summed([*gone, *kept], gone) == math.fsum(kept)


@pytest.mark.parametrize(
    "values", [[1e16, 1.0, 1e-16], [1e16, 1.0, -1e-16], [-1e16, -1.0, -1e-16], [5e-324, -5e-324], [0.1] * 10]
)
def test_halves_are_rounded_by_what_lies_below_them(values):
    assert summed(values) == math.fsum(values)
    assert summed([]) == 0.0


def test_group_means_are_those_of_fsum():
    values = np.random.default_rng(0).normal(size=(10, 2)) * 10.0 ** np.arange(10)[:, None]
    starts = np.array([0, 3, 10])
    for kernel in (means.group_means, uncompiled(means.group_means)):
        found = np.empty((2, 2))
        kernel(values, starts, found)
        assert found[1].tolist() == [math.fsum(values[3:, column]) / 7 for column in range(2)]


def below(tree, node):
    """The leaves below a node."""
    blocks = len(tree.child)
    if node >= blocks:
        return [node - blocks]
    above = tree.parent >> 3
    return [leaf for child in np.flatnonzero(above == node) for leaf in below(tree, child)]


@settings(max_examples=150, deadline=None)
@given(points=tables(max_records=60), data=st.data())
def test_distances_and_bounds_of_the_kernels_hold_to_the_last_bit(points, data):
    run = start_unfolded_run(points)
    tree = grow_trees(run, points, [np.arange(len(points), dtype=np.int32)], 8, hubs=3)
    at = data.draw(st.integers(0, len(points) - 1))
    query = run.query
    plain = {name: uncompiled(getattr(queries, name)) for name in ("distances", "_least", "_most", "_tighten")}
    uncompiled(to_record)(run.m, query.place, at)
    away = np.empty(len(points))
    for leaf, size in enumerate(tree.size):
        plain["distances"](tree, leaf, query.place, query.distance)
        away[tree.held[leaf, :size].record] = query.distance[:size]
    assert away.tolist() == [plain_distance(points, row, points, at) for row in range(len(points))]
    h, far = uncompiled(queries._find_hub)(tree, query)
    assert (query.offset == query.place.numbers - tree.hub[h]).all()
    for block in range(len(tree.child)):
        held = {}
        for child in np.flatnonzero(tree.parent >> 3 == block):
            leaves = below(tree, child)
            rows = np.concatenate([tree.held[leaf, : tree.size[leaf]].record for leaf in leaves])
            held[tree.parent[child] & 7] = away[rows]
        plain["_least"](tree, block, query.place, query.bound)
        assert all(query.bound[t] <= some.min() for t, some in held.items() if len(some))
        with np.errstate(invalid="ignore"):  # the product of an empty box is no number
            plain["_most"](tree, block, query, h)
            plain["_tighten"](tree, block, query, h, far)
        assert all(query.bound[t] >= some.max() for t, some in held.items() if len(some))


@settings(max_examples=100, deadline=None)
@given(points=tables(max_records=30), data=st.data())
def test_the_gap_of_two_codes_is_that_of_their_scale(points, data):
    m = to_kernel_records(points)
    for j, scale in enumerate(points.scales):
        one = data.draw(st.integers(0, scale.codes - 1))
        assert [gap_between(m.scales, j, one, other) for other in range(scale.codes)] == scale.squared_distances(
            one
        ).tolist()


@njit(cache=True)
def found_after(tree, run, gone, record):
    """Let records leave, lowest of a point first; then ask for the nearest of each tree and the farthest of all."""
    query = run.query
    for i in range(gone.size):
        locate(tree, run.folded, query, 0, gone[i])
        remove(tree, run.folded, query, 1)
        shrink_around(tree, query, 1)
    to_record(run.m, query.place, record)
    near = np.full((tree.root.size, query.nearest.size), -1)
    for s in range(tree.root.size):
        query.request[0].count = 0
        query.request[0].wanted = query.nearest.size
        find_nearest(tree, run.folded, query, s)
        for i in range(query.request[0].count):
            near[s, i] = query.nearest[i].record
    return near, find_farthest(tree, query)


if not PLAIN:  # numba would not see a change in the kernels that it calls
    kernels._remove_stale(Path(found_after.stats.cache_path))


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(points=tables(max_records=120), data=st.data())
def test_the_trees_find_what_a_scan_of_those_left_finds(points, data):
    strata = data.draw(st.integers(1, 3))
    run = start_folded_run(points, data.draw(st.integers(1, 8))) if strata == 1 else start_unfolded_run(points)
    layers = [np.arange(s, len(points), strata, dtype=np.int32) for s in range(strata)]
    layers = [layer for layer in layers if len(layer)]
    tree = grow_tree(run, points, 8, 3) if strata == 1 else grow_trees(run, points, layers, 8, 3)
    left = {p: np.flatnonzero(run.folded.point == p).tolist() for p in range(len(run.folded.head))}
    some = range(data.draw(st.integers(0, len(points) - 1)))
    gone = [left[data.draw(st.sampled_from([p for p in left if left[p]]))].pop(0) for _ in some]
    at = data.draw(st.integers(0, len(points) - 1))
    near, far = found_after(tree, run, np.array(gone, np.int64), at)
    away = {row: plain_distance(points, row, points, at) for rows in left.values() for row in rows}
    assert far == max(away, key=lambda row: (away[row], -row))
    for layer, found in zip(layers, near.tolist(), strict=True):
        expected = sorted((row for row in layer.tolist() if row in away), key=lambda row: (away[row], row))
        assert [row for row in found if row >= 0] == expected[: len(found)]


@settings(max_examples=100, deadline=None)
@given(points=tables(max_records=60), seed=st.integers(0, 2**32 - 1))
def test_centres_are_those_of_each_group_alone(points, seed):
    from reference.plain_space import centre

    labels = np.unique(np.random.default_rng(seed).integers(0, 4, len(points)), return_inverse=True)[1].astype(np.int32)
    middles = compute_centres(points, labels)
    for label in range(labels.max() + 1):
        alone = centre(points, np.flatnonzero(labels == label).tolist())
        assert middles.numbers[label].tolist() == alone.numbers[0].tolist()
        assert middles.codes[label].tolist() == alone.codes[0].tolist()


@pytest.mark.parametrize(
    "kernel",
    [
        univariate.scan_squares,
        univariate.scan_medians,
        univariate.scan_absolutes,
        univariate.halve_squares,
        univariate.halve_medians,
    ],
)
def test_univariate_kernels_do_the_same_compiled_and_not(kernel):
    values = np.sort(np.random.default_rng(4).normal(size=60))
    paths = []
    for run in (kernel, uncompiled(kernel)):
        path = univariate.Path(values, np.full(61, np.inf), np.zeros(61, np.int32))
        path.best[0] = 0.0
        below = [np.full(61, np.inf)] if kernel is univariate.scan_absolutes else []
        run(path, *below, 4, 4, 61)
        paths.append((path.best.tolist(), path.size.tolist()))
    assert paths[0] == paths[1]


# The kernels of the search against the definition of the cost, and uncompiled against compiled.


def state_of(seed: int, k: int, n: int = 60) -> tuple[PairDistances, groups.Groups]:
    x = np.random.default_rng(seed).normal(size=(n, 3))
    gaps = PairDistances.from_points(Points.from_array(x))
    labels = mdav_plain(x, k)
    state = SearchInput.from_distances(gaps).arrange(labels, k, free=n // k)
    state.state[0].wide, state.state[0].deep, state.state[0].reach = 6, 4, 5
    groups.recount(None, None, state)
    return gaps, state


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("seed", range(4))
def test_every_move_changes_the_cost_by_what_it_says(seed, k):
    gaps, state = state_of(seed, k)
    made = set()
    for i in list(range(60)) * 3:
        before = gaps.cost(state.label)
        change = moves.best_move(None, None, state, i)
        length = int(state.state[0].links)
        if length:
            moves.make_move(None, None, state)
            made.add(length)
            assert gaps.cost(state.label) == pytest.approx(before + change, rel=1e-9)
        else:
            assert change == 0.0
    assert made >= {2, 3}


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [200])
def test_a_step_taken_back_leaves_the_partition_as_it_was(rounds):
    gaps, state = state_of(1, 3)
    search.descend(state, 100)
    before, cost = state.label.copy(), gaps.cost(state.label)
    stream = draws.make_stream(0)
    for _ in range(rounds):
        change = search.shake(None, None, state, stream, 0.0)
        assert change <= 1e-12
        now = gaps.cost(state.label)
        assert now == pytest.approx(cost + change, rel=1e-9)
        if change == 0.0:
            same = state.label[:, None] == state.label
            assert (same == (before[:, None] == before)).all()
        before, cost = state.label.copy(), now


def test_what_is_kept_equals_what_is_recounted():
    _, state = state_of(2, 4)
    search.search(state, draws.make_stream(3), np.full(100, 0.01), np.empty(60, np.int32))
    own, pairs = state.own.copy(), state.pairs.copy()
    groups.recount(None, None, state)
    assert own == pytest.approx(state.own, abs=1e-9)
    assert pairs == pytest.approx(state.pairs, abs=1e-9)


def test_a_chain_visits_the_nearest_record_first():
    gaps = PairDistances.from_points(Points.from_array([[0.0], [5.0], [1.0], [4.0], [2.0]]))
    path = np.empty(5, np.int32)
    paths.chain(gaps.squared, path, 0)
    assert path.tolist() == [0, 2, 4, 3, 1]


@pytest.mark.parametrize("seed", range(5))
def test_shortening_never_lengthens_a_path_and_keeps_every_record(seed):
    x = np.random.default_rng(seed).normal(size=(80, 2))
    gaps = PairDistances.from_points(Points.from_array(x))
    path = np.random.default_rng(seed).permutation(80).astype(np.int32)
    length = gaps.squared[path[:-1], path[1:]].sum()
    while paths.shorten(gaps.squared, gaps.nearest, path, 12):
        shorter = gaps.squared[path[:-1], path[1:]].sum()
        assert shorter < length
        length = shorter
    assert sorted(path.tolist()) == list(range(80))


@pytest.mark.parametrize("k", [2, 3, 7])
def test_the_cut_of_a_path_is_the_best_of_all_and_tells_its_cost(k):
    x = np.random.default_rng(k).normal(size=(50, 3))
    gaps = PairDistances.from_points(Points.from_array(x))
    path = np.random.default_rng(k).permutation(50).astype(np.int32)
    one = np.empty(50, np.int32)
    cost = paths.cut_path(gaps.squared, path, k, one)
    assert cost == pytest.approx(least_cut(x[path], k))
    assert gaps.cost(one) == pytest.approx(cost)
    assert k <= np.bincount(one).min() <= np.bincount(one).max() < 2 * k


def least_cut(x: np.ndarray, k: int) -> float:
    """The least SSE of a cut of these rows into stretches of k to 2k-1, straight from the definition."""
    least = [0.0] + [np.inf] * len(x)
    for end in range(k, len(x) + 1):
        for start in range(max(0, end - 2 * k + 1), end - k + 1):
            sse = float(((x[start:end] - x[start:end].mean(axis=0)) ** 2).sum())
            least[end] = min(least[end], least[start] + sse)
    return least[len(x)]


def test_draws_are_the_same_uncompiled():
    one, two = draws.make_stream(5), draws.make_stream(5)
    drawn = [draws.draw(one) for _ in range(100)]
    assert drawn == [uncompiled(draws.draw)(two) for _ in range(100)]
    assert 0.0 < min(drawn) < max(drawn) < 1.0


def test_nearest_records_are_the_same_uncompiled():
    gaps, _ = state_of(0, 3)
    near = np.empty((60, 7), np.int32)
    uncompiled(distances.find_nearest)(gaps.squared, near)
    assert (near == gaps.nearest[:, :7]).all()
    order = np.argsort(gaps.squared + np.diag(np.full(60, np.inf)), axis=1, kind="stable")
    assert (near == order[:, :7]).all()


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 5, 13, 100, 777])
@pytest.mark.parametrize("places", [3, 10**6])
def test_a_curve_is_the_same_with_and_without_a_kernel(n, places):
    draw = np.random.default_rng(n)
    x = draw.integers(0, places, (n, 3)) / 8 * np.array([1.0, 1.0, 0.5])  # many ties: they keep their order
    expected = geometry._make_curve(x)
    for kernel in (distances.sort_along_curve, uncompiled(distances.sort_along_curve)):
        order = np.arange(n)
        kernel(x, geometry.CURVE_LEAF, order)
        assert order.tolist() == expected.tolist()


def test_a_table_of_distances_asks_a_scale_for_the_codes_that_are_there_alone():
    class Long(NominalScale):
        def gaps(self, _):
            raise AssertionError("the distances to every code of a scale take as long as the scale is")

    leaves = np.arange(40)
    paths = np.column_stack([leaves, leaves // 5, leaves // 20, np.zeros(40)]).astype(np.int32)
    scales = (Long(paths, weight=0.5), OrdinalScale(7, weight=2.0))
    codes = np.array([[0, 7], [4, 0], [39, 6], [20, 7], [0, 3]], np.int32)
    points = Points(np.arange(5.0).reshape(-1, 1), codes, scales)
    slow = [NominalScale(paths, weight=0.5), scales[1]]
    expected = (points.numbers - points.numbers.T) ** 2
    for i in range(5):
        expected[i] += sum(
            scale.squared_distances(int(code))[column]
            for scale, code, column in zip(slow, codes[i], codes.T, strict=True)
        )
    assert (PairDistances.from_points(points).squared == expected).all()
