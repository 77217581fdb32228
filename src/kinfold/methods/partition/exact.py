"""Exact microaggregation: lower bounds by column generation, and the best partition from the groups worth choosing.

Bounds
------

Some optimal partition has groups of k to 2k-1 only (a larger group can be split at no cost, for numbers). A group of m
costs half the sum over its members i of (the squared distances from i to the others) / m. So, for any prices:

    cost of a partition = sum of all prices + sum over groups of their reduced cost
                        = sum over records i of   price(i) + half the star of i     (see `kernels.pricing`)

1. nearest: all prices 0. A star is at least the distances to the m-1 nearest over m; this never falls as m grows
   (the m-th nearest is at least the mean of the nearer ones), so m = k. O(n k) with a tree, for tables of any size.
2. stars: for any prices the sum over i of price(i) + half the least star over all m is a bound. It is a concave
   function of the prices, climbed by subgradients. O(n² k) a step. It is twice as good on outliers, whose price may be
   their whole distance.
       slope at j = 1/2 - sum over the records i whose least star leads to j of   1 / (2 (m - 1))
       step       = (cost of a good partition - bound) / |slope|², times a share that is halved after steps without a
                    gain (Polyak)
   A price plus half its least star is safe: no group costs less than the safe prices of its members. The climb starts
   from prices made safe again and again from 0 on. Every bound on the way is valid.
3. columns: a linear program over the groups known so far takes a share of each group so that each record is taken once,
   at the least cost. Its dual values are prices. Price all groups at a point between the best prices and these (Wentges
   smoothing), add those of negative reduced cost, and repeat until none is found or the time is up. Every group of
   negative reduced cost has a root, roots are distinct, and there are at most n/k groups: the bound is the sum of the
   prices and of the n/k most negative reduced costs over roots.

For records with codes 1 to 3 hold among partitions into groups of k to 2k-1.

Paper: Aloise, Hansen, Rocha & Santi, J. Global Optim. 60 (2014), 165-182; here stars bound the pricing.

Choice
------

    1. compute prices and a lower bound by column generation
    2. a group whose reduced cost exceeds the gap between the bound and the best partition is in no better partition: if
       the others are not too many, choose among all of them
    3. else collect the groups that a search passes while it cools: they fit together, if not all at once. Choose among
       those that the linear program prices well, then collect again from the result

A choice is a mixed-integer program, solved by HiGHS: each record once, at the least cost. If step 2 is solved to its
end, the result is optimal. This is for some thousand records; the time depends on the gap.

The effort is limited by seconds, or by steps (one for the start and one for each round of pricing). With steps all
other limits are counts, no clock is read, and the same steps give the same partition.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from kinfold import kernels
from kinfold.errors import Unreachable
from kinfold.methods.annealing import Annealer, Budget
from kinfold.methods.partition.geometry import PairDistances, renumber_by_first_record, split_groups
from kinfold.methods.partition.refine import MAX_TABLED_RECORDS, check_labels
from kinfold.methods.partition.search import PerturbedSearch, cut_paths, first_cycle_steps, start_temperature
from kinfold.progress import Progress, no_progress, report_bound, report_cost
from kinfold.tables.points import Floats, Labels, Points, check_k

if TYPE_CHECKING:
    from scipy.sparse import csc_array

Group: TypeAlias = tuple[int, ...]

MAX_K_PRICED = 6  # for larger k there are too many groups to price exactly
CLIMB_SHARE = 0.25  # of the seconds
CLIMB_STEPS = 400  # at most
CLIMB_PATIENCE = 10  # steps without a gain before the steps are made smaller
MIN_STEP_SHARE = 1e-3  # a step below this share of the first is the last
SAFE_ROUNDS, MIN_GROWTH = 20, 1e-4  # rounds that make the first prices safe, and the growth that another one needs
MAX_PRICING_ROUNDS = 200  # most bounds are reached after 20
MAX_GROUPS_FOUND, MAX_GROUPS_PER_ROOT = 60_000, 20  # from one pricing of one size
FIRST_LOOKS, LOOKS_FACTOR, MAX_LOOKS = 2_000, 8, 50_000_000  # groups that the search of a root looks at
SMOOTHING = 0.5  # weight of the best prices against those of the linear program
FEW_NEW_GROUPS = 100  # with fewer new groups the roots that were cut short get more looks
GAP_TOLERANCE = 1e-6  # a smaller share of the cost counts as no gap
SEARCH_STEPS_PER_RECORD = 3  # to collect good groups
SEARCHES = 3  # with different seeds: one alone misses groups of the best partition
GATHER_LOOKS = 20_000  # looks of a root while the groups within the gap are collected
PRICING_SHARE = 0.25  # of the seconds, for the bound
SEARCH_ROUNDS, SEARCH_SHARE = 2, 0.45  # rounds of collecting and choosing, and the share of a round for collecting
DEFAULT_ROUNDS = 60  # of pricing without a clock: three times what tables of 500 records needed
# Limits without a clock: looks of all roots in a round of pricing, and while the groups within the gap are collected;
# nodes of the solver; search steps for each record. With them 200 records of Census take 17 s, and k = 3 is proved.
COUNT_LIMITS = {"pricing": 20_000_000, "gathering": 50_000_000, "nodes": 500, "search": 50}
MAX_REDUCED_COST_SHARE = 0.1  # of the gap, for a group of an inexact choice
ROUNDING_SHARE = 1e-9  # a share of the cost that is rounding


def climb_prices(
    pairs: PairDistances, k: int, cost: float, until: float, progress: Progress = no_progress
) -> tuple[Floats, float]:
    """Return safe prices with a high sum, and that sum, which is a bound; `cost` is that of any partition."""
    prices = np.zeros(len(pairs))
    for _ in range(SAFE_ROUNDS):  # made safe again and again, while their sum grows
        safe, _slope = bound_by_stars(pairs, k, prices)
        if safe.sum() <= prices.sum() * (1.0 + MIN_GROWTH):
            break
        prices = safe
    top = best = prices
    highest, share, idle = -np.inf, 1.0, 0
    for step in range(CLIMB_STEPS):
        safe, slope = bound_by_stars(pairs, k, prices)
        value = float(safe.sum())
        idle += 1
        if value > highest:
            idle, top, best, highest = 0, prices, safe, value
            report_bound(highest)
        if idle >= CLIMB_PATIENCE:
            share, idle, prices = share / 2, 0, top
            safe, slope = bound_by_stars(pairs, k, prices)
            value = float(safe.sum())
        steepness = float((slope**2).sum())
        if steepness == 0.0 or share < MIN_STEP_SHARE or cost - highest <= 1e-9 * cost or time.monotonic() > until:
            break
        prices = prices + share * (cost - value) / steepness * slope
        progress(step, CLIMB_STEPS)
    return best, highest


def bound_by_stars(pairs: PairDistances, k: int, prices: Floats) -> tuple[Floats, Floats]:
    """Return safe prices, with half the least star added, and the slope of their sum."""
    kernel, n = kernels.load("pricing"), len(pairs)
    least, slope = np.full(n, np.inf), np.full(n, 0.5)
    leads = np.zeros((n, 0), np.int32)
    sizes = np.zeros(n, np.int64)
    for m in range(k, min(2 * k - 1, n) + 1):
        pricing = kernel.make_pricing(pairs.squared, prices, m, (0, 0, 0))
        picks = np.zeros((n, m - 1), np.int32)
        kernel.sum_stars(pricing, picks)
        lower = pricing.sums[:, m - 1] < least
        picks[~lower, : leads.shape[1]] = leads[~lower]
        leads, least = picks, np.where(lower, pricing.sums[:, m - 1], least)
        sizes[lower] = m
    for m in range(k, 2 * k):
        slope -= np.bincount(leads[sizes == m, : m - 1].ravel(), minlength=n) / (2 * (m - 1))
    return prices + 0.5 * least, slope


@dataclass
class GroupPool:
    """The groups known so far with their costs, and the best partition."""

    distances: PairDistances
    k: int
    labels: Labels
    cost: float
    groups: dict[tuple[int, ...], float] = field(default_factory=dict)

    @classmethod
    def from_partition(cls, pairs: PairDistances, k: int, labels: Labels | None = None) -> GroupPool:
        """Collect the groups of some searches from this partition (else from paths), and those of near records."""
        starts = [*cut_paths(pairs, k)] if labels is None else [labels]
        pool = cls(pairs, k, starts[0], np.inf)
        for seed in range(SEARCHES):
            pool.search(starts, SEARCH_STEPS_PER_RECORD * len(pairs), seed)
        for i, near in enumerate(pairs.nearest):
            pool.add((i, *near[: m - 1]) for m in pool.sizes)
            pool.add((i, *others) for others in combinations(near[: k + 1 + (k < 5)].tolist(), k - 1))
        return pool

    def search(self, starts: Sequence[Labels], steps: int, seed: int = 0) -> None:
        """Add the groups that one cycle of a search passes, from the best of these starts."""
        space = PerturbedSearch(self.distances, self.k, seed)
        annealer = Annealer(space, *space.descend(starts))
        plan = annealer.plan_doubling_cycles(steps, start_temperature(self.k))
        for _ in annealer.run_chunks(plan, Budget(steps, None)):
            self.add(split_groups(renumber_by_first_record(space.groups.label)))
        self.add(split_groups(annealer.best))
        self.keep_if_best(annealer.best)

    @property
    def sizes(self) -> range:
        """The group sizes of some optimal partition."""
        return range(self.k, min(2 * self.k, len(self.distances) + 1))

    def add(self, groups: Iterable[Iterable[int]]) -> int:
        """Add groups of k to 2k-1 records, and return how many are new."""
        before = len(self.groups)
        for group in groups:
            rows = tuple(sorted(int(i) for i in group))
            if rows not in self.groups and self.k <= len(rows) < 2 * self.k:
                self.groups[rows] = float(self.distances.squared[np.ix_(rows, rows)].sum()) / (2 * len(rows))
        return len(self.groups) - before

    def membership_matrix(self, groups: Iterable[tuple[int, ...]]) -> csc_array:
        """Return which record (row) is in which group (column)."""
        from scipy.sparse import csc_array

        groups = list(groups)
        start = np.cumsum([0, *map(len, groups)])
        rows = np.concatenate([np.array(group) for group in groups])
        return csc_array((np.ones(len(rows)), rows, start), shape=(len(self.distances), len(groups)))

    def keep_if_best(self, labels: Labels) -> None:
        """Keep this partition if it is cheaper than the best one."""
        labels = renumber_by_first_record(labels)
        cost = self.distances.cost(labels)
        if cost < self.cost:
            self.labels, self.cost = labels, cost


@dataclass(frozen=True)
class PricingResult:
    """The best bound, its prices, and the rounds of pricing."""

    bound: float
    prices: Floats
    rounds: int = 0


def generate_columns(
    pool: GroupPool,
    prices: Floats,
    until: float,
    progress: Progress = no_progress,
    max_rounds: int = MAX_PRICING_ROUNDS,
    max_looks: int = MAX_LOOKS,
) -> PricingResult:
    """Add groups to the pool until none is missing, and return the best bound."""
    bound, _, _ = price_groups(pool, prices, FIRST_LOOKS)
    best, looks, rounds = PricingResult(bound, prices), FIRST_LOOKS, 0
    for step in range(max_rounds):
        if time.monotonic() > until or pool.cost - best.bound <= GAP_TOLERANCE * pool.cost:
            break
        rounds = step + 1
        value, dual_prices = solve_linear_program(pool, until)
        if dual_prices is None:
            break
        new, complete = 0, True
        for weight in (SMOOTHING, 0.0):
            smoothed = weight * best.prices + (1.0 - weight) * dual_prices
            bound, new, complete = price_groups(pool, smoothed, looks)
            if bound > best.bound:
                best = PricingResult(bound, smoothed)
                report_bound(bound)
            if new:
                break
        if new < FEW_NEW_GROUPS:
            if value - best.bound <= GAP_TOLERANCE * value or (complete and new == 0) or looks >= max_looks:
                break
            looks *= 1 if complete else LOOKS_FACTOR
        progress(step, max_rounds)
    return replace(best, rounds=rounds)


def price_groups(pool: GroupPool, prices: Floats, looks: int, wanted: float = 0.0) -> tuple[float, int, bool]:
    """Add the groups with a reduced cost below `wanted`; return a bound, the new groups, and whether all are known."""
    kernel = kernels.load("pricing")
    least, new, complete = np.zeros(len(prices)), 0, True
    stars = np.full(len(prices), np.inf)
    per_root = MAX_GROUPS_PER_ROOT if wanted == 0.0 else MAX_GROUPS_FOUND
    for m in pool.sizes:
        limits = (MAX_GROUPS_FOUND, per_root, looks)
        pricing = kernel.make_pricing(pool.distances.squared, prices, m, limits, wanted)
        kernel.sum_stars(pricing, np.zeros((len(prices), m - 1), np.int32))
        kernel.search_all(pricing)
        count = int(pricing.counts[0].groups)
        new += pool.add(pricing.groups[:count])
        complete = complete and count < MAX_GROUPS_FOUND and not pricing.counts[0].cut_short
        if wanted > 0.0 and not complete:
            break
        least = np.minimum(least, pricing.least)
        stars = np.minimum(stars, pricing.sums[:, m - 1])
    groups = len(prices) // pool.k
    by_roots = float(prices.sum() + np.sort(least)[:groups].sum())
    return max(by_roots, float(prices.sum() + 0.5 * stars.sum())), new, complete


def solve_linear_program(pool: GroupPool, until: float) -> tuple[float, Floats | None]:
    """Return the value and the prices of the linear program over the pool; no prices if the time is up."""
    from scipy.optimize import linprog

    result = linprog(  # type: ignore[call-overload]  # its types know no sparse matrix
        np.fromiter(pool.groups.values(), np.float64),
        A_eq=pool.membership_matrix(pool.groups),
        b_eq=np.ones(len(pool.distances)),
        method="highs",
        options={"time_limit": max(0.1, until - time.monotonic())},
    )
    if result.status != 0:
        return np.inf, None
    return float(result.fun), np.asarray(result.eqlin.marginals, np.float64)


@dataclass(frozen=True)
class Bound:
    """A lower bound on the cost of every partition, and its kind: nearest, stars or columns."""

    value: float
    method: str

    def gap(self, cost: float) -> float:
        """Return the largest share of this cost by which it can exceed the optimum, 0 to 1.

        >>> Bound(9.0, "stars").gap(12.0)
        0.25
        """
        return max(0.0, 1.0 - self.value / cost) if cost > 0.0 else 0.0


def lower_bound(
    x: object, k: int, *, labels: Labels | None = None, seconds: float = 30.0, progress: Progress = no_progress
) -> Bound:
    """Return the best lower bound on the cost that these seconds allow. A good partition speeds it up.

    >>> lower_bound([[0.0], [1.0], [5.0], [6.0]], 2).value
    1.0
    """
    points = Points.from_array(x)
    size = check_k(points, k)
    if len(points) > MAX_TABLED_RECORDS:
        report_bound(value := nearest_bound(points, size))
        return Bound(value, "nearest")
    until = time.monotonic() + seconds
    pairs = PairDistances.from_points(points)
    pool = GroupPool.from_partition(pairs, size, labels)
    prices, value = climb_prices(pairs, size, pool.cost, time.monotonic() + CLIMB_SHARE * seconds, progress)
    best = Bound(value, "stars")
    if size <= MAX_K_PRICED:
        value = generate_columns(pool, prices, until, progress).bound
        best = max(best, Bound(value, "columns"), key=lambda bound: bound.value)
    return best


def nearest_bound(points: Points, k: int) -> float:
    """Return the bound from the k-1 nearest records of each record, by numbers alone.

    >>> nearest_bound(Points.from_array([[0.0], [1.0], [5.0], [6.0]]), 2)
    1.0
    """
    from scipy.spatial import cKDTree

    if points.numbers.shape[1] == 0:
        return 0.0
    distances = np.asarray(cKDTree(points.numbers).query(points.numbers, k)[0])
    return float((distances[:, 1:] ** 2).sum() / (2 * k))


@dataclass(frozen=True, eq=False)
class Exact:
    """The best partition, its cost, a lower bound, and the gap between them as a share of the cost."""

    labels: Labels
    cost: float
    bound: float
    steps: int  # that repeat this result, if no clock was read

    @property
    def gap(self) -> float:
        """The largest share of the cost by which it can exceed the optimum; 0 is proved optimal."""
        return max(0.0, 1.0 - self.bound / self.cost) if self.cost > 0.0 else 0.0


def exact(
    x: object,
    k: int,
    labels: object,
    *,
    seconds: float = 60.0,
    steps: int | None = None,
    progress: Progress = no_progress,
) -> Exact:
    """Return a partition that costs no more than the given one, and a lower bound on the cost of every partition.

    With `steps` the seconds do not count.

    >>> result = exact([[0.0], [1.0], [5.0], [6.0], [9.0]], 2, [0, 1, 0, 1, 0])
    >>> result.labels.tolist(), round(result.cost, 6), round(result.gap, 6)
    ([0, 0, 1, 1, 1], 9.166667, 0.0)
    """
    points = Points.from_array(x)
    size = check_k(points, k)
    if len(points) > MAX_TABLED_RECORDS:
        what = f"exact refinement takes at most {MAX_TABLED_RECORDS:,} records, and there are {len(points):,}"
        raise Unreachable(what, fix="use fewer records, or ask for a lower bound instead")
    seconds = seconds if steps is None else math.inf
    until = time.monotonic() + seconds
    pool = GroupPool.from_partition(PairDistances.from_points(points), size, check_labels(labels, len(points), size))
    rounds = MAX_PRICING_ROUNDS if steps is None else max(0, steps - 1)
    best = _price_bound(pool, PRICING_SHARE * seconds, rounds, progress)
    bound = best.bound
    if pool.cost - bound > ROUNDING_SHARE * pool.cost:
        bound = max(bound, _choose_among_all(pool, best, until))
    report_cost(pool.cost)
    report_bound(bound)
    searched = GroupPool(pool.distances, size, pool.labels, pool.cost)
    for turn in range(SEARCH_ROUNDS):
        share = (until - time.monotonic()) / (SEARCH_ROUNDS - turn)
        if share <= 0.0 or searched.cost - bound <= ROUNDING_SHARE * searched.cost:
            break
        progress(turn, SEARCH_ROUNDS)
        _choose_among_searched(searched, turn, share)
        report_cost(searched.cost)
    return Exact(searched.labels, searched.cost, min(bound, searched.cost), best.rounds + 1)


def _price_bound(pool: GroupPool, seconds: float, rounds: int, progress: Progress) -> PricingResult:
    """Return the best bound and its prices: by stars, and by columns if the groups are not too many."""
    prices, value = climb_prices(pool.distances, pool.k, pool.cost, time.monotonic() + CLIMB_SHARE * seconds, progress)
    best = PricingResult(value, prices)
    if pool.k <= MAX_K_PRICED or len(pool.distances) <= 4 * pool.k:
        enough = time.monotonic() + (1.0 - CLIMB_SHARE) * seconds
        looks = MAX_LOOKS if math.isfinite(seconds) else COUNT_LIMITS["pricing"] // len(pool.distances)
        columns = generate_columns(pool, prices, enough, progress, rounds, looks)
        best = columns if columns.bound > best.bound else replace(best, rounds=columns.rounds)
    return best


def _choose_among_all(pool: GroupPool, best: PricingResult, until: float) -> float:
    """Choose among all groups that a better partition can have, unless they are too many; return a bound."""
    gap = pool.cost - best.bound + ROUNDING_SHARE
    looks = COUNT_LIMITS["gathering"] // len(pool.distances) if math.isinf(until) else GATHER_LOOKS
    if not price_groups(pool, best.prices, looks, gap)[2]:
        return best.bound
    return max(best.bound, _solve(pool, _select_groups(pool, best.prices, gap), until))


def _choose_among_searched(pool: GroupPool, seed: int, seconds: float) -> None:
    """Collect the groups of a long search from the best partition, and choose among those with good prices."""
    until = time.monotonic() + seconds
    pool.search([pool.labels], _count_steps(pool, SEARCH_SHARE * seconds), seed)
    value, prices = solve_linear_program(pool, until)
    if prices is not None:
        gap = pool.cost - value
        pool.groups = {group: pool.groups[group] for group in _select_groups(pool, prices, gap + ROUNDING_SHARE)}
        _solve(pool, _select_groups(pool, prices, MAX_REDUCED_COST_SHARE * gap + ROUNDING_SHARE), until)


def _count_steps(pool: GroupPool, seconds: float) -> int:
    """Return how many steps of a search fit into the seconds, by trial; a fixed number if seconds do not count."""
    if math.isinf(seconds):
        return COUNT_LIMITS["search"] * len(pool.distances)
    trial = first_cycle_steps(len(pool.distances), pool.k) // 4 + 1
    started = time.monotonic()
    pool.search([pool.labels], trial)
    elapsed = time.monotonic() - started
    return max(1, int(trial * (seconds - elapsed) / elapsed))


def _select_groups(pool: GroupPool, prices: Floats, limit: float) -> list[Group]:
    """Return the groups whose reduced cost is at most `limit`, and those of the best partition."""
    best = {tuple(rows.tolist()) for rows in split_groups(pool.labels)}
    return [g for g, cost in pool.groups.items() if g in best or cost - prices[list(g)].sum() <= limit]


def _solve(pool: GroupPool, groups: list[Group], until: float) -> float:
    """Keep the best choice of these groups, if there is one in time; return a bound on all choices."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    options: Any = {"mip_rel_gap": 0.0, "node_limit": COUNT_LIMITS["nodes"]}
    if math.isfinite(until):
        options = {"mip_rel_gap": 0.0, "time_limit": max(0.1, until - time.monotonic())}
    result = milp(
        np.array([pool.groups[group] for group in groups]),
        constraints=LinearConstraint(pool.membership_matrix(groups), 1.0, 1.0),
        integrality=np.ones(len(groups), np.int64),
        bounds=Bounds(0.0, 1.0),
        options=options,
    )
    if result.x is None:
        return -np.inf
    labels = np.empty(len(pool.distances), np.int32)
    for label, chosen in enumerate(np.flatnonzero(result.x > 0.5)):
        labels[list(groups[chosen])] = label
    pool.keep_if_best(labels)
    return min(float(result.mip_dual_bound), pool.cost)
