"""`refine = "exact"`: the least loss there is on small tables, steps that repeat, and reasons where it cannot be."""

import math
import sys
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import kinfold
from kinfold.errors import PolicyError, Unreachable
from kinfold.kernels import pricing
from kinfold.kernels import univariate as narrow
from kinfold.kernels import univariate as wide
from kinfold.methods import classes
from kinfold.methods.partition.exact import (
    GroupPool,
    bound_by_stars,
    climb_prices,
    exact,
    generate_columns,
    lower_bound,
    nearest_bound,
    price_groups,
)
from kinfold.methods.partition.geometry import PairDistances
from kinfold.methods.partition.univariate import find_sizes, univariate
from kinfold.policy.model import Policy
from kinfold.progress import no_progress
from kinfold.tables.points import NominalScale, OrdinalScale, Points
from ledger import cases, tally_up
from reference.mdav_plain import mdav_plain
from reference.partitions import least_cost, pair_cost, sse_plain
from reference.univariate import compositions, cost_of_labels, cost_of_sizes
from reference.univariate import find_sizes as find_sizes_plain
from reference.univariate import least_cost as least_univariate_cost


def table(seed: int, largest: int = 10) -> tuple[np.ndarray, int]:
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(4, largest + 1)), int(rng.integers(2, 4))
    x = rng.normal(size=(n, int(rng.integers(1, 4))))
    return (np.round(x) if seed % 3 == 0 else x), k


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_the_exact_end_gives_the_optimum_of_small_tables(seed):
    x, k = table(seed)
    optimum = least_cost(PairDistances.from_points(Points.from_array(x)).squared, k)
    found = exact(x, k, mdav_plain(x, k), seconds=20.0)
    assert found.cost == pytest.approx(optimum, abs=1e-9)
    assert found.cost == pytest.approx(sse_plain(x, found.labels), abs=1e-9)
    assert np.bincount(found.labels).min() >= k
    assert found.gap == pytest.approx(0.0, abs=1e-6)


@pytest.mark.slow
def test_the_exact_end_gives_the_optimum_of_hundreds_of_tables_up_to_twelve_records():
    for seed in range(100, 100 + cases(100, 50)):
        x, k = table(seed, 12)
        optimum = least_cost(PairDistances.from_points(Points.from_array(x)).squared, k)
        found = exact(x, k, mdav_plain(x, k), seconds=20.0)
        assert found.cost == pytest.approx(optimum, abs=1e-9)
        assert found.gap == pytest.approx(0.0, abs=1e-6)


@given(seed=st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=40)
def test_no_bound_is_above_the_optimum(seed):
    x, k = table(seed, 9)
    points = Points.from_array(x)
    gaps = PairDistances.from_points(points)
    optimum = least_cost(gaps.squared, k) + 1e-9
    prices = np.random.default_rng(seed).normal(0.2, 0.5, len(points))
    safe, _ = bound_by_stars(gaps, k, prices)
    assert safe.sum() <= optimum
    assert nearest_bound(points, k) <= optimum
    pool = GroupPool.from_partition(gaps, k)
    for looks in (1, 10, 10**6):
        assert price_groups(pool, prices, looks)[0] <= optimum
    assert lower_bound(x, k, seconds=5.0).value <= optimum


@given(seed=st.integers(0, 2**32 - 1), m=st.integers(2, 5), wanted=st.sampled_from([0.0, 0.3]))
@settings(deadline=None, max_examples=60)
def test_pricing_finds_every_group_below_what_is_wanted(seed, m, wanted):
    rng = np.random.default_rng(seed)
    gaps = PairDistances.from_points(Points.from_array(rng.normal(size=(8, 2))))
    prices = rng.uniform(0.0, 1.0, 8)
    priced = pricing.make_pricing(gaps.squared, prices, m, (10_000, 10_000, 10**6), wanted)
    pricing.sum_stars(priced, np.zeros((8, m - 1), np.int32))
    pricing.search_all(priced)
    found = {tuple(sorted(map(int, group))) for group in priced.groups[: priced.counts[0].groups]}
    reduced = {group: pair_cost(gaps.squared, group) - prices[list(group)].sum() for group in combinations(range(8), m)}
    assert found == {group for group, value in reduced.items() if value < wanted - 1e-9}
    lowest = min(reduced.values())
    assert priced.least.min() == pytest.approx(min(lowest, 0.0), abs=1e-8)


def test_safe_prices_are_below_the_cost_of_every_group():
    gaps = PairDistances.from_points(Points.from_array(np.random.default_rng(1).normal(size=(9, 2))))
    safe, _ = climb_prices(gaps, 3, 20.0, np.inf)
    for m in (3, 4, 5):
        for group in combinations(range(9), m):
            assert safe[list(group)].sum() <= pair_cost(gaps.squared, group) + 1e-9


@pytest.mark.compiled
def test_stars_are_better_than_nearest_records_and_columns_better_than_stars():
    x = np.random.default_rng(2).standard_t(3, size=(60, 3))
    gaps = PairDistances.from_points(Points.from_array(x))
    pool = GroupPool.from_partition(gaps, 3)
    prices, stars = climb_prices(gaps, 3, pool.cost, np.inf)
    columns = generate_columns(pool, prices, np.inf).bound
    assert nearest_bound(Points.from_array(x), 3) < stars < columns <= pool.cost + 1e-9


def test_mixed_records_have_an_exact_end_too():
    rng = np.random.default_rng(4)
    codes = np.column_stack([rng.integers(0, 4, 9), rng.integers(0, 3, 9)]).astype(np.int32)
    points = Points(rng.normal(size=(9, 1)), codes, (OrdinalScale(3), NominalScale.flat(3)))
    found = exact(points, 3, np.repeat([0, 1, 2], 3), seconds=20.0)
    assert found.cost == pytest.approx(least_cost(PairDistances.from_points(points).squared, 3), abs=1e-9)


def test_too_many_records_for_the_exact_end_are_refused():
    with pytest.raises(Unreachable, match="at most 5,000 records"):
        exact(np.zeros((5001, 1)), 2, np.zeros(5001, int))


def test_a_large_table_gets_the_bound_of_nearest_records():
    x = np.random.default_rng(0).normal(size=(6000, 2))
    bound = lower_bound(x, 3)
    assert bound.method == "nearest"
    assert 0.0 < bound.value < sse_plain(x, (np.argsort(np.argsort(x[:, 0])) // 3).astype(np.int32))


@pytest.mark.slow
@pytest.mark.parametrize("k", [3, 6])
def test_where_all_groups_are_too_many_the_choice_is_among_those_met(monkeypatch, k):
    monkeypatch.setattr(sys.modules[exact.__module__], "GATHER_LOOKS", 0)  # finds out at once that there are too many
    x = np.random.default_rng(k).normal(size=(150, 3))
    start = mdav_plain(x, k)
    found = exact(x, k, start, seconds=4.0)
    assert found.cost < sse_plain(x, start)
    assert found.cost == pytest.approx(sse_plain(x, found.labels))
    assert np.bincount(found.labels).min() >= k
    assert 0.0 < found.bound <= found.cost


# `refine = "exact"`: the least loss there is on small tables, steps that repeat, and reasons where it cannot be


def numbers(seed: int, n: int, columns: int = 2) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    return {f"q{i}": random.normal(size=n).round(2) for i in range(columns)}


def released(table: dict[str, Any], k: int, **method: Any) -> kinfold.Release:
    """A release whose averages are not rounded, so that its loss is that of its classes."""
    columns = {name: {"role": "quasi-identifier", "type": "continuous"} for name in table}
    policy = {"privacy": {"k": k}, "method": method, "columns": columns, "output": {"round": False}}
    return kinfold.anonymize(pa.table(table), policy)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("method", ["auto", "v-mdav"])
def test_no_division_into_classes_loses_less(seed: int, method: str) -> None:
    k, table = 2 + seed % 2, numbers(seed, 6 + seed % 5)
    release = released(table, k, name=method, refine="exact")
    x = np.column_stack([(column - column.mean()) / column.std() for column in table.values()])
    optimum = (
        least_cost(PairDistances.from_points(Points.from_array(x)).squared, k) / x.size
    )  # every column has the sum of squares n
    assert release.measures.to_dict()["loss"]["sse_ratio"] == pytest.approx(optimum, rel=1e-9)
    assert release.plan.gap == pytest.approx(0.0, abs=1e-6)
    assert f"proved: no classes of at least {k} records lose less" in release.plan.notes
    tally_up("optima compared with brute force")


@pytest.mark.compiled
def test_the_steps_that_are_recorded_repeat_it() -> None:
    table = numbers(5, 80, columns=3)
    release = released(table, 3, name="mdav", refine="exact", seed=4)
    applied = release.policy.record_choices(release.plan.method, release.plan.steps)
    assert applied.method.refine == "exact"
    assert applied.method.refine_steps == release.plan.steps
    again = kinfold.anonymize(pa.table(table), Policy.parse(applied.model_dump(mode="json", exclude_none=True)))
    assert again.plan.steps == release.plan.steps
    assert (again.labels == release.labels).all()


@pytest.mark.slow
@pytest.mark.compiled
def test_it_never_loses_more_than_refinement_by_size() -> None:
    table = numbers(6, 90)
    losses = [
        released(table, 4, name="mdav", refine=refine).measures.to_dict()["loss"]["sse_ratio"]
        for refine in (0, "auto", "exact")
    ]
    assert losses == sorted(losses, reverse=True)
    assert losses[2] < losses[0]


@pytest.mark.slow
@pytest.mark.compiled
def test_the_same_steps_give_the_same_classes_whatever_the_clock_says() -> None:
    x = np.random.default_rng(7).normal(size=(60, 2))
    start = mdav_plain(x, 3)
    first = exact(x, 3, start, steps=40)
    again = exact(x, 3, start, steps=first.steps, seconds=0.0)
    assert (first.labels == again.labels).all()
    assert (first.cost, first.bound, first.steps) == (again.cost, again.bound, again.steps)
    few = exact(x, 3, start, steps=1)
    assert few.steps == 1
    assert few.bound <= first.bound <= first.cost <= few.cost + 1e-12


# Where it cannot be


def refused(table: dict[str, Any], policy: dict[str, Any]) -> str:
    with pytest.raises(PolicyError) as caught:
        kinfold.anonymize(pa.table(table), policy)
    assert all(problem.fix for problem in caught.value.problems)
    return str(caught.value)


def asked(**sections: dict[str, Any]) -> dict[str, Any]:
    columns = {"age": {"role": "quasi", "type": "continuous"}, "wage": {"role": "confidential", "type": "continuous"}}
    sections["columns"] = columns | sections.get("columns", {})
    return {"privacy": {"k": 2}, "method": {"name": "mdav", "refine": "exact"}} | sections


TABLE = {"age": list(range(20, 40)), "wage": [1, 2] * 10}


def test_it_knows_no_promise_but_k() -> None:
    assert '"exact" keeps no promise but k' in refused(TABLE, asked(privacy={"k": 2, "l": 2}))
    people = {**TABLE, "who": [str(i % 15) for i in range(20)]}
    unit = asked(privacy={"k": 2, "unit": "who"}, columns={"who": {"role": "identifier"}})
    assert '"exact" keeps no promise but k' in refused(people, unit)


def test_it_keeps_no_strata_apart() -> None:
    missing = {"age": [None, None, None, *range(20, 37)], "wage": TABLE["wage"]}
    column = {"age": {"role": "quasi", "type": "continuous", "missing": "separate"}}
    assert "records with missing values are kept apart" in refused(missing, asked(columns=column))


def test_it_is_for_small_tables() -> None:
    many = classes.MAX_EXACT_RECORDS + 1
    table = {"age": list(range(many)), "wage": [1] * many}
    assert f"is for up to {classes.MAX_EXACT_RECORDS:,} records, there are {many:,}" in refused(table, asked())


def test_it_is_for_methods_that_partition() -> None:
    column = {"age": {"role": "quasi", "type": "continuous", "hierarchy": {"intervals": [5, 10]}}}
    told = refused(TABLE, asked(method={"name": "lattice", "refine": "exact"}, columns=column))
    assert '"exact" is for methods that partition, and the method is lattice' in told


def test_what_is_none_of_it_is_told() -> None:
    with pytest.raises(PolicyError, match=r"method.refine"):
        Policy.parse({"privacy": {"k": 2}, "method": {"refine": "best"}})


COSTS = st.sampled_from(["sse", "absolute", "median"])
CAPPED = st.sampled_from(["sse", "median"])  # costs for which no group of 2k or more is needed
WHOLE = st.lists(st.integers(-20, 20), min_size=2, max_size=14)
ANY = st.lists(
    st.floats(-1e150, 1e150, allow_subnormal=True) | st.sampled_from([1e9, 1e9 + 1e-6, 0.0]), min_size=2, max_size=14
)


def column(values):
    return np.array(values, float).reshape(-1, 1)


def walk(sizes):
    groups, last = [], len(sizes) - 1
    while last > 0:
        groups.insert(0, int(sizes[last]))
        last -= groups[0]
    return groups


@settings(max_examples=200, deadline=None)
@given(values=WHOLE, k=st.integers(2, 5), cost=COSTS)
@example(values=[0, 1, 1, 1, 2, 10, 20], k=2, cost="absolute")
def test_univariate_costs_no_more_than_the_best_of_all_partitions_into_neighbours(values, k, cost):
    assume(len(values) >= k)
    labels = univariate(column(values), k, cost=cost)
    assert cost_of_labels(values, labels, cost) == least_univariate_cost(values, k, cost)


def test_absolute_deviations_are_from_the_mean_and_a_group_may_have_2k_records_or_more():
    """Eq. (2) of Truta et al.: 12 with a group of five; 37/3 where groups have at most 2k-1 records."""
    values = [0, 1, 1, 1, 2, 10, 20]
    labels = univariate(column(values), 2, cost="absolute")
    assert np.bincount(labels).tolist() == [5, 2]
    assert cost_of_labels(values, labels, "absolute") == 12
    capped = min(
        cost_of_sizes([Fraction(v) for v in values], sizes, "absolute")
        for sizes in compositions(len(values), 2)
        if max(sizes) <= 3
    )
    assert capped == Fraction(37, 3)


def test_partitions_that_are_not_of_neighbours_can_have_less_absolute_deviation():
    """So the optimum of `absolute` is one over consecutive groups, which is what the paper forms."""
    values = [3, 6, 6, 6, 12]
    assert least_univariate_cost(values, 2, "absolute") == 10
    assert cost_of_labels(values, [0, 1, 1, 1, 0], "absolute") == 9


def test_one_group_of_everything_can_be_the_optimum_whatever_the_number_of_records():
    values = [-100.0, *[0.0] * 5_000, 100.0]  # so many that the kernel is used
    assert univariate(column(values), 3, cost="absolute").max() == 0
    assert univariate(column(values), 3, cost="median").max() > 1


@settings(max_examples=200, deadline=None)
@given(values=ANY, k=st.integers(2, 5), cost=COSTS)
@example(values=[0.0] * 5 + [129.0] * 2 + [1e9] * 2 + [1000000000.000001] * 3, k=2, cost="sse")
def test_univariate_is_optimal_to_rounding_on_floats_of_any_size(values, k, cost):
    assume(len(values) >= k)
    labels = univariate(column(values), k, cost=cost)
    found, least = cost_of_labels(values, labels, cost), least_univariate_cost(values, k, cost)
    # differences that vanish when the largest value is scaled to 1 cannot be told apart in doubles
    vanishing = max(abs(Fraction(value)) for value in values) / 10**160
    assert found <= least * (1 + Fraction(1, 10**13)) + vanishing ** (2 if cost == "sse" else 1)


@settings(max_examples=100, deadline=None)
@given(values=st.lists(st.integers(0, 30), min_size=2, max_size=80), k=st.integers(2, 6), cost=COSTS)
def test_groups_have_k_to_2k_minus_1_records_in_rising_order_and_equal_values_keep_row_order(values, k, cost):
    assume(len(values) >= k)
    labels = univariate(column(values), k, cost=cost)
    sizes = np.bincount(labels)
    assert k <= sizes.min()
    assert cost == "absolute" or sizes.max() <= 2 * k - 1
    assert (np.diff(labels[np.lexsort((np.arange(len(values)), values))]) >= 0).all()


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), records=st.integers(2, 120), k=st.integers(2, 12), cost=COSTS)
def test_the_kernel_gives_the_path_of_the_plain_way(seed, records, k, cost):
    assume(records >= k)
    rng = np.random.default_rng(seed)
    kinds = [rng.normal(size=records), rng.integers(0, 6, records) / 3, np.exp(8 * rng.normal(size=records))]
    values = np.sort(kinds[seed % 3])
    assert (find_sizes(values, k, cost, no_progress) == find_sizes_plain(values, k, cost)).all()


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), records=st.integers(2, 120), k=st.integers(2, 30), cost=CAPPED)
def test_halving_finds_paths_of_the_same_exact_cost_as_the_scan(seed, records, k, cost):
    assume(records >= k)
    values = np.sort(np.random.default_rng(seed).integers(0, 1000, records)).astype(float)
    path = narrow.Path(values, np.full(records + 1, np.inf), np.zeros(records + 1, np.int32))
    path.best[0] = 0.0
    (wide.halve_squares if cost == "sse" else wide.halve_medians)(path, k, k, records + 1)
    sizes = walk(path.size)
    assert k <= min(sizes)
    assert max(sizes) <= 2 * k - 1
    whole = [int(value) for value in values]
    assert cost_of_sizes(whole, sizes, cost) == cost_of_sizes(whole, walk(find_sizes_plain(values, k, cost)), cost)


@pytest.mark.parametrize("k", [5, 60])
def test_a_large_offset_does_not_blur_the_choice(k):
    """Groups of values near 10⁹ are told apart as well as the same groups near 0."""
    steps = np.random.default_rng(1).integers(0, 2**20, 4_000).astype(float)
    assert (univariate(column(steps), k) == univariate(column(steps + 2**50), k)).all()


@pytest.mark.parametrize("k", [5, 60])
def test_outliers_before_and_after_do_not_blur_the_choice(k):
    middle = np.sort(np.random.default_rng(2).normal(size=4_000))
    low, high = np.full(2 * k, -1e12), np.full(2 * k, 1e12)
    alone = univariate(column(middle), k)
    among = univariate(column(np.concatenate([low, middle, high])), k)[2 * k : -2 * k]
    assert (among - among[0] == alone).all()


@pytest.mark.slow
def test_microagg1d_finds_nothing_better_on_a_hundred_thousand_values():
    """An outside opinion (BSD-2-Clause, for tests only). Its prefix sums round more: ours may be a little better."""
    other = pytest.importorskip("microagg1d", reason="microagg1d is not installed")
    values = np.random.default_rng(3).lognormal(size=100_000)
    for k in (3, 10, 200):
        for cost, name in (("sse", "sse"), ("median", "sae")):
            own = total(values, univariate(column(values), k, cost=cost), cost)
            theirs = total(values, other.univariate_microaggregation(values.copy(), k, cost=name), cost)
            assert own <= theirs * (1 + 1e-12)
            assert own == pytest.approx(theirs, rel=1e-3)


def total(values, labels, cost):
    order = np.argsort(labels, kind="stable")
    groups = np.split(values[order], np.cumsum(np.bincount(labels))[:-1])
    if cost == "sse":
        return math.fsum(((group - group.mean()) ** 2).sum() for group in groups)
    return math.fsum(np.abs(group - np.median(group)).sum() for group in groups)
