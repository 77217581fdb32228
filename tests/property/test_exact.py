from __future__ import annotations

import sys
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfold.errors import Unreachable
from kinfold.kernels import pricing
from kinfold.methods.partition.bounds import lower_bound, nearest_bound
from kinfold.methods.partition.columns import Pool, generate, price
from kinfold.methods.partition.exact import exact
from kinfold.methods.partition.gaps import Gaps
from kinfold.methods.partition.prices import climb, star_bound
from kinfold.rows.points import Nested, Ordered, Points
from ledger import cases
from reference.mdav_plain import mdav_plain
from reference.partitions import least_cost, pair_cost, sse_plain


def table(seed: int, largest: int = 10) -> tuple[np.ndarray, int]:
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(4, largest + 1)), int(rng.integers(2, 4))
    x = rng.normal(size=(n, int(rng.integers(1, 4))))
    return (np.round(x) if seed % 3 == 0 else x), k


@pytest.mark.parametrize("seed", range(40))
def test_the_exact_end_gives_the_optimum_of_small_tables(seed):
    x, k = table(seed)
    optimum = least_cost(Gaps.of(Points.of(x)).pairs, k)
    found = exact(x, k, mdav_plain(x, k), seconds=20.0)
    assert found.cost == pytest.approx(optimum, abs=1e-9)
    assert found.cost == pytest.approx(sse_plain(x, found.labels), abs=1e-9)
    assert np.bincount(found.labels).min() >= k
    assert found.gap == pytest.approx(0.0, abs=1e-6)


@pytest.mark.slow
def test_the_exact_end_gives_the_optimum_of_hundreds_of_tables_up_to_twelve_records():
    for seed in range(100, 100 + cases(100, 50)):
        x, k = table(seed, 12)
        optimum = least_cost(Gaps.of(Points.of(x)).pairs, k)
        found = exact(x, k, mdav_plain(x, k), seconds=20.0)
        assert found.cost == pytest.approx(optimum, abs=1e-9)
        assert found.gap == pytest.approx(0.0, abs=1e-6)


@given(seed=st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=40)
def test_no_bound_is_above_the_optimum(seed):
    x, k = table(seed, 9)
    points = Points.of(x)
    gaps = Gaps.of(points)
    optimum = least_cost(gaps.pairs, k) + 1e-9
    prices = np.random.default_rng(seed).normal(0.2, 0.5, len(points))
    safe, _ = star_bound(gaps, k, prices)
    assert safe.sum() <= optimum
    assert nearest_bound(points, k) <= optimum
    pool = Pool.of(gaps, k)
    for looks in (1, 10, 10**6):
        assert price(pool, prices, looks)[0] <= optimum
    assert lower_bound(x, k, seconds=5.0).value <= optimum


@given(seed=st.integers(0, 2**32 - 1), m=st.integers(2, 5), wanted=st.sampled_from([0.0, 0.3]))
@settings(deadline=None, max_examples=60)
def test_pricing_finds_every_group_below_what_is_wanted(seed, m, wanted):
    rng = np.random.default_rng(seed)
    gaps = Gaps.of(Points.of(rng.normal(size=(8, 2))))
    prices = rng.uniform(0.0, 1.0, 8)
    priced = pricing.of(gaps.pairs, prices, m, (10_000, 10_000, 10**6), wanted)
    pricing.sum_stars(priced, np.zeros((8, m - 1), np.int32))
    pricing.search_all(priced)
    found = {tuple(sorted(map(int, group))) for group in priced.found[: priced.counts[0].found]}
    reduced = {group: pair_cost(gaps.pairs, group) - prices[list(group)].sum() for group in combinations(range(8), m)}
    assert found == {group for group, value in reduced.items() if value < wanted - 1e-9}
    lowest = min(reduced.values())
    assert priced.least.min() == pytest.approx(min(lowest, 0.0), abs=1e-8)


def test_safe_prices_are_below_the_cost_of_every_group():
    gaps = Gaps.of(Points.of(np.random.default_rng(1).normal(size=(9, 2))))
    safe, _ = climb(gaps, 3, 20.0, np.inf)
    for m in (3, 4, 5):
        for group in combinations(range(9), m):
            assert safe[list(group)].sum() <= pair_cost(gaps.pairs, group) + 1e-9


@pytest.mark.compiled
def test_stars_are_better_than_nearest_records_and_columns_better_than_stars():
    x = np.random.default_rng(2).standard_t(3, size=(60, 3))
    gaps = Gaps.of(Points.of(x))
    pool = Pool.of(gaps, 3)
    prices, stars = climb(gaps, 3, pool.cost, np.inf)
    columns = generate(pool, prices, np.inf).bound
    assert nearest_bound(Points.of(x), 3) < stars < columns <= pool.cost + 1e-9


def test_mixed_records_have_an_exact_end_too():
    rng = np.random.default_rng(4)
    codes = np.column_stack([rng.integers(0, 4, 9), rng.integers(0, 3, 9)]).astype(np.int32)
    points = Points(rng.normal(size=(9, 1)), codes, (Ordered(3), Nested.flat(3)))
    found = exact(points, 3, np.repeat([0, 1, 2], 3), seconds=20.0)
    assert found.cost == pytest.approx(least_cost(Gaps.of(points).pairs, 3), abs=1e-9)


def test_too_many_records_for_the_exact_end_are_refused():
    with pytest.raises(Unreachable, match="too many"):
        exact(np.zeros((5001, 1)), 2, np.zeros(5001, int))


def test_a_large_table_gets_the_bound_of_nearest_records():
    x = np.random.default_rng(0).normal(size=(6000, 2))
    bound = lower_bound(x, 3)
    assert bound.method == "nearest"
    assert 0.0 < bound.value < sse_plain(x, (np.argsort(np.argsort(x[:, 0])) // 3).astype(np.int32))


@pytest.mark.slow
@pytest.mark.parametrize("k", [3, 6])
def test_where_all_groups_are_too_many_the_choice_is_among_those_met(monkeypatch, k):
    monkeypatch.setattr(sys.modules[exact.__module__], "LOOKS", 0)  # finds out at once that there are too many
    x = np.random.default_rng(k).normal(size=(150, 3))
    start = mdav_plain(x, k)
    found = exact(x, k, start, seconds=4.0)
    assert found.cost < sse_plain(x, start)
    assert found.cost == pytest.approx(sse_plain(x, found.labels))
    assert np.bincount(found.labels).min() >= k
    assert 0.0 < found.bound <= found.cost
