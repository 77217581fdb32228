import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numba import njit

from everyday import first
from kinfold.kernels.records import DIGITS, LIMBS, add_to_sum, round_sum
from kinfold.methods.partition import index
from kinfold.methods.partition.mdav import ExactCentre, mdav_compiled, mdav_plain
from kinfold.methods.partition.t_first import cut_strata, form_by_strata
from kinfold.methods.partition.vmdav import form_groups, vmdav
from kinfold.partition import mdav
from kinfold.progress import no_progress
from kinfold.tables.points import NominalScale, Points
from mixed_tables import tables
from point_tables import any_points, mixed, numbers, scale
from reference import vmdav as reference
from reference.mdav import mdav as twin
from reference.t_first_plain import t_first_plain


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_mdav_gives_the_labels_of_its_twin(block):
    for seed in range(block * 60, block * 60 + 60):
        points, k = any_points(seed)
        np.testing.assert_array_equal(mdav(points, k), twin(points, k), err_msg=f"seed {seed}")


@pytest.mark.slow
@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("block", first(range(5), 2))
def test_the_kernels_give_the_labels_of_the_plain_way(flat, block):
    for seed in range(block * 200, block * 200 + 200):
        points, k = any_points(seed, 60 if seed % 3 else 400)
        expected = mdav_plain(points, k, no_progress)
        np.testing.assert_array_equal(
            mdav_compiled(points, k, no_progress, flat=flat), expected, err_msg=f"seed {seed}"
        )


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["gaussian", "levels", "decimals", "copies", "wide", "line"])
def test_tree_and_plain_way_agree_on_larger_tables(shape):
    random = np.random.default_rng(7)
    for scales in ((), (scale(random), scale(random), scale(random))):
        points = mixed(random, 3500, 3, scales, shape)
        np.testing.assert_array_equal(mdav_compiled(points, 5, no_progress), mdav_plain(points, 5, no_progress))


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["gaussian", "levels", "huge", "signed zeros"])
def test_where_queries_for_the_farthest_visit_many_nodes_hubs_bound_them_and_the_labels_stay(shape, monkeypatch):
    monkeypatch.setattr(index, "_FAR_VISITS", 0)
    monkeypatch.setattr(index, "MDAV_FAR_VISITS", 0)
    monkeypatch.setattr(index, "_MIN_JUDGED_CLUSTERS", 10)
    counts, choose = [], index.choose_hubs
    monkeypatch.setattr(index, "choose_hubs", lambda *given: (counts.append(given[3]), choose(*given))[1])
    random = np.random.default_rng(8)
    for scales in ((), (scale(random),)):
        points = mixed(random, 1500, 4, scales, shape)
        np.testing.assert_array_equal(mdav_compiled(points, 3, no_progress), mdav_plain(points, 3, no_progress))
        layers = cut_strata(random.integers(0, 90, 1500), 4)
        plain = t_first_plain(points, layers)
        np.testing.assert_array_equal(form_by_strata(points, layers, no_progress), plain)
    assert {*counts} == {0, index.HUBS}


def test_a_tree_that_bounds_nothing_gives_way_and_the_labels_stay():
    points = Points.from_array(np.random.default_rng(3).normal(size=(2500, 24)))
    np.testing.assert_array_equal(mdav_compiled(points, 4, no_progress), mdav_plain(points, 4, no_progress))


def test_ten_thousand_codes_in_a_hierarchy_need_no_table_of_codes_by_codes():
    codes = np.arange(10_000)
    paths = np.column_stack([codes, codes // 10, codes // 100, codes // 1000, codes // 5000, codes * 0]).astype(
        np.int32
    )
    random = np.random.default_rng(5)
    points = mixed(random, 3200, 1, (NominalScale(paths),), "decimals")
    np.testing.assert_array_equal(mdav_compiled(points, 20, no_progress), mdav_plain(points, 20, no_progress))


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
    centre = ExactCentre(Points.from_array(np.array(values)[:, None]))
    centre.remove(np.array(sorted(gone), np.intp))
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
        add_to_sum(sums, 0, bits[row], times[row])
    for row in gone:
        add_to_sum(sums, 0, bits[row], -times[row])
    return round_sum(sums, 0, digits)


GAMMAS = st.sampled_from([0.0, 0.2, 0.6, 1.1, 3.0])


@settings(max_examples=150, deadline=None)
@given(points=tables(), k=st.integers(2, 6), gamma=GAMMAS)
def test_vmdav_gives_the_labels_of_its_twin(points, k, gamma):
    assume(len(points) >= k)
    assert vmdav(points, k, gamma=gamma).tolist() == reference.vmdav(points, k, gamma)


@settings(max_examples=300, deadline=None)
@given(points=tables(max_records=200), k=st.integers(2, 9), gamma=GAMMAS)
def test_the_tree_of_vmdav_gives_the_labels_of_the_plain_scan(points, k, gamma):
    assume(len(points) >= k)
    formed = form_groups(points, k, gamma, no_progress)
    assert formed.tolist() == reference.form_groups(points, k, gamma).tolist()


@settings(max_examples=100, deadline=None)
@given(points=tables(max_records=80), k=st.integers(2, 6), gamma=GAMMAS)
def test_groups_have_k_to_2k_minus_1_records_before_the_last_few_join(points, k, gamma):
    assume(len(points) >= k)
    formed = form_groups(points, k, gamma, no_progress)
    sizes = np.bincount(formed[formed >= 0])
    assert sizes.min() >= k
    assert sizes.max() <= (2 * k - 1 if gamma else k)
    assert np.count_nonzero(formed < 0) < k
    assert np.bincount(vmdav(points, k, gamma=gamma)).min() >= k


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(2, 5), gamma=GAMMAS)
def test_the_order_of_the_columns_does_not_matter_where_sums_are_exact(seed, k, gamma):
    x = np.random.default_rng(seed).integers(0, 6, (32, 4))
    formed, turned = (
        form_groups(Points.from_array(columns), k, gamma, no_progress) for columns in (x, x[:, [2, 0, 3, 1]])
    )
    assert (formed == turned).all()


@pytest.mark.parametrize("gamma", [0.2, 1.1])
def test_a_larger_table_gets_the_groups_of_the_plain_scan(gamma):
    rng = np.random.default_rng(5)
    points = Points.from_array(np.vstack([rng.normal(size=(2_000, 3)), rng.integers(0, 3, (1_300, 3))]))
    formed = reference.form_groups(points, 7, gamma)
    labels = vmdav(points, 7, gamma=gamma)
    assert (labels[formed >= 0] == formed[formed >= 0]).all()
    assert (labels >= 0).all()
