from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from everyday import first
from kinfold.kernels.exact_sums import DIGITS, LIMBS, add, rounded
from kinfold.methods.partition.centre import Centre
from kinfold.methods.partition.mdav import mdav_plain
from kinfold.methods.partition.mdav_compiled import mdav_compiled
from kinfold.partition import mdav
from kinfold.progress import silent
from kinfold.rows.points import Nested, Points
from point_tables import any_points, mixed, numbers, scale
from reference.mdav import mdav as twin

KERNELS = ("mdav_tree", "mdav_flat")


@pytest.mark.parametrize("block", range(10))
def test_mdav_gives_the_labels_of_its_twin(block):
    for seed in range(block * 60, block * 60 + 60):
        points, k = any_points(seed)
        np.testing.assert_array_equal(mdav(points, k), twin(points, k), err_msg=f"seed {seed}")


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("block", first(range(5), 2))
def test_the_kernels_give_the_labels_of_the_plain_way(kernel, block):
    for seed in range(block * 200, block * 200 + 200):
        points, k = any_points(seed, 60 if seed % 3 else 400)
        expected = mdav_plain(points, k, silent)
        np.testing.assert_array_equal(mdav_compiled(points, k, silent, kernel), expected, err_msg=f"seed {seed}")


@pytest.mark.parametrize("shape", ["gaussian", "levels", "decimals", "copies", "wide", "line"])
def test_tree_and_plain_way_agree_on_larger_tables(shape):
    random = np.random.default_rng(7)
    for scales in ((), (scale(random), scale(random), scale(random))):
        points = mixed(random, 3500, 3, scales, shape)
        np.testing.assert_array_equal(mdav(points, 5), mdav_plain(points, 5, silent))


def test_a_tree_that_bounds_nothing_gives_way_and_the_labels_stay():
    points = Points.of(np.random.default_rng(3).normal(size=(2500, 24)))
    np.testing.assert_array_equal(mdav_compiled(points, 4, silent), mdav_plain(points, 4, silent))


def test_ten_thousand_codes_in_a_hierarchy_need_no_table_of_codes_by_codes():
    codes = np.arange(10_000)
    paths = np.column_stack([codes, codes // 10, codes // 100, codes // 1000, codes // 5000, codes * 0]).astype(
        np.int32
    )
    random = np.random.default_rng(5)
    points = mixed(random, 3200, 1, (Nested(paths),), "decimals")
    np.testing.assert_array_equal(mdav(points, 20), mdav_plain(points, 20, silent))


def test_a_hundred_thousand_equal_records_are_one_point():
    assert np.bincount(mdav(np.ones((100_000, 3)), 10)).tolist() == [10] * 10_000


def test_read_only_and_strided_arrays_are_fine():
    x = numbers(np.random.default_rng(1), 3300, 4, "gaussian")
    expected = mdav(x, 6)
    frozen = x.copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal(mdav(frozen, 6), expected)
    np.testing.assert_array_equal(mdav(np.asfortranarray(x), 6), expected)
    assert not np.shares_memory(mdav(frozen, 6), frozen)


@given(st.lists(st.floats(-1e150, 1e150), min_size=1, max_size=30), st.data())
@settings(max_examples=200)
def test_the_centre_is_the_exact_mean_whatever_left_before(values, data):
    gone = data.draw(st.sets(st.integers(0, len(values) - 1), max_size=len(values) - 1))
    centre = Centre(Points.of(np.array(values)[:, None]))
    centre.leave(np.array(sorted(gone), np.intp))
    rest = [value for row, value in enumerate(values) if row not in gone]
    assert centre.numbers()[0] == math.fsum(rest) / len(rest)


@pytest.mark.slow
@given(st.lists(st.floats(-1e150, 1e150), min_size=1, max_size=30), st.data())
@settings(max_examples=300, deadline=None)
def test_limbs_hold_the_exact_sum_whatever_left_before(values, data):
    gone = data.draw(st.sets(st.integers(0, len(values) - 1)))
    times = np.ones(len(values), np.int64)
    left = summed(np.array(values), times, np.array(sorted(gone), np.int64))
    assert left == math.fsum(value for row, value in enumerate(values) if row not in gone)


@njit
def summed(values, times, gone):
    sums, digits = np.zeros((1, LIMBS), np.int64), np.zeros(DIGITS, np.int64)
    bits = values.view(np.int64)
    for row in range(bits.size):
        add(sums, 0, bits[row], times[row])
    for row in gone:
        add(sums, 0, bits[row], -times[row])
    return rounded(sums, 0, digits)
