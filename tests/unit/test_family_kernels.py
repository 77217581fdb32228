"""The index that the partitioners share, exact sums and the kernels of univariate, compiled and as plain Python."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from kinfold.kernels import exact_sums, means, queries, univariate, univariate_wide
from kinfold.kernels.mixed import code_gap, to_record
from kinfold.kernels.queries import farthest, find, nearest, remove, shrink_around
from kinfold.methods.partition.geometry import centres
from kinfold.methods.partition.index import folded_run, grown, grown_apart, laid_out, unfolded_run
from mixed_tables import tables
from reference.plain_space import distance as plain_distance
from uncompiled import uncompiled

FLOATS = st.lists(st.floats(-1e150, 1e150), min_size=1, max_size=30)


def summed(values, gone=()):
    """The exact sum as plain Python; tests/property/test_mdav_twin.py has it compiled."""
    sums, digits = np.zeros((1, exact_sums.LIMBS), np.int64), np.zeros(exact_sums.DIGITS, np.int64)
    for some, times in ((values, 1), (gone, -1)):
        for value in some:
            uncompiled(exact_sums.add)(sums, 0, int(np.float64(value).view(np.int64)), times)
    return uncompiled(exact_sums.rounded)(sums, 0, digits)


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
    run = unfolded_run(points)
    tree = grown_apart(run, points, [np.arange(len(points), dtype=np.int32)], 8)
    at = data.draw(st.integers(0, len(points) - 1))
    query = run.query
    plain = {name: uncompiled(getattr(queries, name)) for name in ("distances", "_least", "_most", "_tighten")}
    uncompiled(to_record)(run.m, query.place, at)
    away = np.empty(len(points))
    for leaf, size in enumerate(tree.size):
        plain["distances"](tree, leaf, query.place, query.distance)
        away[tree.held[leaf, :size].record] = query.distance[:size]
    assert away.tolist() == [plain_distance(points, row, points, at) for row in range(len(points))]
    query.offset[:] = query.place.numbers - tree.hub
    far = 0.0
    for step in query.offset:
        far += step * step
    for block in range(len(tree.child)):
        held = {}
        for child in np.flatnonzero(tree.parent >> 3 == block):
            leaves = below(tree, child)
            rows = np.concatenate([tree.held[leaf, : tree.size[leaf]].record for leaf in leaves])
            held[tree.parent[child] & 7] = away[rows]
        plain["_least"](tree, block, query.place, query.bound)
        assert all(query.bound[t] <= some.min() for t, some in held.items() if len(some))
        with np.errstate(invalid="ignore"):  # the product of an empty box is no number
            plain["_most"](tree, block, query)
            plain["_tighten"](tree, block, query, far)
        assert all(query.bound[t] >= some.max() for t, some in held.items() if len(some))


@settings(max_examples=100, deadline=None)
@given(points=tables(max_records=30), data=st.data())
def test_the_gap_of_two_codes_is_that_of_their_scale(points, data):
    m = laid_out(points)
    for j, scale in enumerate(points.scales):
        one = data.draw(st.integers(0, scale.codes - 1))
        assert [code_gap(m, j, one, other) for other in range(scale.codes)] == scale.gaps(one).tolist()


@njit
def found_after(tree, run, gone, record):
    """Let records leave, lowest of a point first; then ask for the nearest of each tree and the farthest of all."""
    query = run.query
    for i in range(gone.size):
        find(tree, run.folded, query, 0, gone[i])
        remove(tree, run.folded, query, 1)
        shrink_around(tree, query, 1)
    to_record(run.m, query.place, record)
    near = np.full((tree.root.size, query.found.size), -1)
    for s in range(tree.root.size):
        query.asked[0].count = 0
        query.asked[0].wanted = query.found.size
        nearest(tree, run.folded, query, s)
        for i in range(query.asked[0].count):
            near[s, i] = query.found[i].record
    return near, farthest(tree, query)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(points=tables(max_records=120), data=st.data())
def test_the_trees_find_what_a_scan_of_those_left_finds(points, data):
    strata = data.draw(st.integers(1, 3))
    run = folded_run(points, data.draw(st.integers(1, 8))) if strata == 1 else unfolded_run(points)
    layers = [np.arange(s, len(points), strata, dtype=np.int32) for s in range(strata)]
    layers = [layer for layer in layers if len(layer)]
    tree = grown(run, points, lambda _: 8) if strata == 1 else grown_apart(run, points, layers, 8)
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
    middles = centres(points, labels)
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
        univariate_wide.halve_squares,
        univariate_wide.halve_medians,
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
