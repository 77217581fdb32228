import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kinfold.methods.partition.vmdav import indexed, plain, vmdav
from kinfold.progress import silent
from kinfold.rows.points import Points
from mixed_tables import tables
from reference import vmdav as reference

GAMMAS = st.sampled_from([0.0, 0.2, 0.6, 1.1, 3.0])


@settings(max_examples=150, deadline=None)
@given(points=tables(), k=st.integers(2, 6), gamma=GAMMAS)
def test_vmdav_gives_the_labels_of_its_twin(points, k, gamma):
    assume(len(points) >= k)
    assert vmdav(points, k, gamma=gamma).tolist() == reference.vmdav(points, k, gamma)


@settings(max_examples=300, deadline=None)
@given(points=tables(max_records=200), k=st.integers(2, 9), gamma=GAMMAS)
def test_the_tree_gives_the_labels_of_the_plain_scan(points, k, gamma):
    assume(len(points) >= k)
    assert indexed(points, k, gamma, silent).tolist() == plain(points, k, gamma, silent).tolist()


@settings(max_examples=100, deadline=None)
@given(points=tables(max_records=80), k=st.integers(2, 6), gamma=GAMMAS)
def test_groups_have_k_to_2k_minus_1_records_before_the_last_few_join(points, k, gamma):
    assume(len(points) >= k)
    formed = plain(points, k, gamma, silent)
    sizes = np.bincount(formed[formed >= 0])
    assert sizes.min() >= k
    assert sizes.max() <= (2 * k - 1 if gamma else k)
    assert np.count_nonzero(formed < 0) < k
    assert np.bincount(vmdav(points, k, gamma=gamma)).min() >= k


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(2, 5), gamma=GAMMAS)
def test_the_order_of_the_columns_does_not_matter_where_sums_are_exact(seed, k, gamma):
    x = np.random.default_rng(seed).integers(0, 6, (32, 4))
    formed, turned = (plain(Points.of(columns), k, gamma, silent) for columns in (x, x[:, [2, 0, 3, 1]]))
    assert (formed == turned).all()


@pytest.mark.parametrize("gamma", [0.2, 1.1])
def test_a_table_too_large_for_the_plain_scan_gets_the_same_groups(gamma):
    rng = np.random.default_rng(5)
    points = Points.of(np.vstack([rng.normal(size=(2_000, 3)), rng.integers(0, 3, (1_300, 3))]))
    formed = plain(points, 7, gamma, silent)
    labels = vmdav(points, 7, gamma=gamma)
    assert (labels[formed >= 0] == formed[formed >= 0]).all()
    assert (labels >= 0).all()
