"""Exact microaggregation: choose the best partition from the groups worth choosing from, with a bound on its gap.

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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kinfold.errors import Unreachable
from kinfold.methods.partition.column_generation import (
    CLIMB_SHARE,
    MAX_K_PRICED,
    MAX_LOOKS,
    MAX_PRICING_ROUNDS,
    MAX_TABLED_RECORDS,
    GroupPool,
    PricingResult,
    climb_prices,
    generate_columns,
    price_groups,
    solve_linear_program,
)
from kinfold.methods.partition.geometry import PairDistances, split_groups
from kinfold.methods.partition.refine import check_labels
from kinfold.methods.partition.search import first_cycle_steps
from kinfold.progress import Progress, no_progress
from kinfold.tables.points import Floats, Labels, Points, check_k

Group = tuple[int, ...]

GATHER_LOOKS = 20_000  # looks of a root while the groups within the gap are collected
PRICING_SHARE = 0.25  # of the seconds, for the bound
SEARCH_ROUNDS, SEARCH_SHARE = 2, 0.45  # rounds of collecting and choosing, and the share of a round for collecting
DEFAULT_ROUNDS = 60  # of pricing without a clock: three times what tables of 500 records needed
# Limits without a clock: looks of all roots in a round of pricing, and while the groups within the gap are collected;
# nodes of the solver; search steps for each record. With them 200 records of Census take 17 s, and k = 3 is proved.
COUNT_LIMITS = {"pricing": 20_000_000, "gathering": 50_000_000, "nodes": 500, "search": 50}
MAX_REDUCED_COST_SHARE = 0.1  # of the gap, for a group of an inexact choice
ROUNDING_SHARE = 1e-9  # a share of the cost that is rounding


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
    searched = GroupPool(pool.distances, size, pool.labels, pool.cost)
    for turn in range(SEARCH_ROUNDS):
        share = (until - time.monotonic()) / (SEARCH_ROUNDS - turn)
        if share <= 0.0 or searched.cost - bound <= ROUNDING_SHARE * searched.cost:
            break
        progress(turn, SEARCH_ROUNDS)
        _choose_among_searched(searched, turn, share)
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
