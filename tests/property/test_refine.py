from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfold.methods.partition.gaps import Gaps
from kinfold.methods.partition.refine import improve, refine
from kinfold.rows.points import Nested, Ordered, Points
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
    return Points(rng.normal(size=(n, 1)), codes, (Ordered(3), Nested(paths)))


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
    gaps = Gaps.of(points)
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
        optimum = least_cost(Gaps.of(Points.of(x)).pairs, k)
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
