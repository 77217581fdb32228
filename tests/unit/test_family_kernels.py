"""The kernels of V-MDAV, univariate and approximate, compiled and as plain Python."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfold.kernels import space, sums, tree, univariate, univariate_wide
from kinfold.methods.partition.index import plant, room, space_of
from kinfold.methods.partition.nearness import centres
from mixed_tables import tables
from reference.plain_space import distance as plain_distance
from uncompiled import uncompiled

FLOATS = st.lists(st.floats(-1e150, 1e150), min_size=1, max_size=30)


@settings(max_examples=200, deadline=None)
@given(kept=FLOATS, gone=FLOATS)
def test_an_exact_sum_forgets_what_is_taken_away(kept, gone):
    partials, used = np.zeros(sums.PLACES), 0
    for value in [*gone, *kept, *(-value for value in gone)]:
        used = sums.add(partials, used, value)
    assert sums.rounded(partials, used) == math.fsum(kept)
    assert uncompiled(sums.rounded)(partials, used) == math.fsum(kept)


@pytest.mark.parametrize(
    "values", [[1e16, 1.0, 1e-16], [1e16, 1.0, -1e-16], [-1e16, -1.0, -1e-16], [5e-324, -5e-324], [0.1] * 10]
)
def test_halves_are_rounded_by_what_lies_below_them(values):
    partials, used = np.zeros(sums.PLACES), 0
    for value in values:
        used = uncompiled(sums.add)(partials, used, value)
    assert sums.rounded(partials, used) == math.fsum(values)
    assert sums.rounded(partials, 0) == 0.0


def test_group_means_are_those_of_fsum():
    values = np.random.default_rng(0).normal(size=(10, 2)) * 10.0 ** np.arange(10)[:, None]
    starts = np.array([0, 3, 10])
    for kernel in (sums.group_means, uncompiled(sums.group_means)):
        means = np.empty((2, 2))
        kernel(values, starts, means)
        assert means[1].tolist() == [math.fsum(values[3:, column]) / 7 for column in range(2)]


@settings(max_examples=150, deadline=None)
@given(points=tables(max_records=60), data=st.data())
def test_distances_and_bounds_of_the_kernels_hold_to_the_last_bit(points, data):
    place = space_of(points)
    values = np.hstack([points.numbers, points.codes])
    query = values[data.draw(st.integers(0, len(points) - 1))]
    some = values[: data.draw(st.integers(1, len(points)))]
    low, high = some.min(axis=0), some.max(axis=0)
    at = int(np.flatnonzero((values == query).all(axis=1))[0])
    away = [space.distance(place, row, query) for row in some]
    assert away == [plain_distance(points, row, points, at) for row in range(len(some))]
    assert space.least(place, low, high, query) <= min(away)
    assert space.most(place, low, high, query) >= max(away)


@settings(max_examples=100, deadline=None)
@given(points=tables(max_records=120), data=st.data())
def test_the_tree_finds_what_a_scan_of_those_left_finds(points, data):
    place = space_of(points)
    held = plant(points, place)
    values = np.hstack([points.numbers, points.codes]) + 0.0
    left = set(range(len(points)))
    for _ in range(data.draw(st.integers(0, len(points) - 1))):
        some = [at for at in range(len(held.values)) if held.next[at] < held.stop[at]]
        left.remove(tree.remove(held, data.draw(st.sampled_from(some))))
    query = values[data.draw(st.integers(0, len(points) - 1))]
    away = {row: space.distance(place, values[row], query) for row in left}
    far = tree.farthest(held, place, query)
    assert held.rows[held.next[far]] == max(away, key=lambda row: (away[row], -row))
    found = room(data.draw(st.integers(1, 8)))
    count = tree.nearest(held, place, query, found, 0)
    expected = sorted(away, key=lambda row: (away[row], row))[: len(found.rows)]
    assert sorted(found.rows[:count].tolist()) == sorted(expected)


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
        univariate.scan_absolutes,
        univariate_wide.halve_squares,
        univariate_wide.halve_absolutes,
    ],
)
def test_univariate_kernels_do_the_same_compiled_and_not(kernel):
    values = np.sort(np.random.default_rng(4).normal(size=60))
    paths = []
    for run in (kernel, uncompiled(kernel)):
        path = univariate.Path(values, np.full(61, np.inf), np.zeros(61, np.int32))
        path.best[0] = 0.0
        run(path, 4, 4, 61)
        paths.append((path.best.tolist(), path.size.tolist()))
    assert paths[0] == paths[1]
