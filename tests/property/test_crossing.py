from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfold.methods.partition.crossing import cross
from kinfold.methods.partition.gaps import Gaps
from kinfold.rows.points import Points


def random_partition(rng: np.random.Generator, n: int, k: int) -> np.ndarray:
    labels = np.empty(n, np.int32)
    labels[rng.permutation(n)] = np.minimum(np.arange(n) // k, n // k - 1)
    return labels


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(2, 5))
@settings(deadline=None, max_examples=60)
def test_a_child_costs_no_more_than_either_parent_and_keeps_k(seed, k):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2 * k, 40))
    gaps = Gaps.of(Points.of(rng.normal(size=(n, 2))))
    one = random_partition(rng, n, k)
    other = one.copy()
    part = np.flatnonzero(one < rng.integers(1, one.max() + 2))
    other[part] = other[rng.permutation(part)]  # groups of the same sizes, some of them mixed
    child = cross(gaps, one, other)
    assert gaps.cost(child) <= min(gaps.cost(one), gaps.cost(other)) + 1e-9
    assert np.bincount(child).min() >= k


def test_regions_are_taken_from_different_parents():
    gaps = Gaps.of(Points.of([[0.0], [1.0], [9.0], [10.0], [50.0], [51.0], [59.0], [60.0]]))
    one, other = np.array([0, 0, 1, 1, 2, 3, 2, 3]), np.array([0, 1, 0, 1, 2, 2, 3, 3])
    assert gaps.cost(cross(gaps, one, other)) == pytest.approx(2.0)
