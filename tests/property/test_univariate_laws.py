import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from kinfold.kernels import univariate as narrow
from kinfold.kernels import univariate_wide as wide
from kinfold.methods.partition.univariate import compiled, plain, univariate
from kinfold.progress import silent
from reference.univariate import compositions, cost_of_labels, cost_of_sizes, least_cost

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
    assert cost_of_labels(values, labels, cost) == least_cost(values, k, cost)


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
    assert least_cost(values, 2, "absolute") == 10
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
    found, least = cost_of_labels(values, labels, cost), least_cost(values, k, cost)
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
    assert (compiled(values, k, cost, silent) == plain(values, k, cost)).all()


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
    assert cost_of_sizes(whole, sizes, cost) == cost_of_sizes(whole, walk(plain(values, k, cost)), cost)


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
