"""The exact end: set partitioning over the groups worth choosing from, and how far the result is from the optimum.

    1. prices and a lower bound by columns (see `columns` and `bounds`)
    2. a group whose reduced cost is above the gap between bound and best partition is in no better partition: if the
       others are not too many, choose among all of them
    3. if they are, gather the groups that a search meets while it cools (see `search`): they fit together, if not all
       at once. Choose among those that the linear program over them prices well; then gather again from the result

To choose is a mixed-integer program, each record once, at least cost, by HiGHS. Where step 2 was solved to its end, the
result is the optimum. For some thousand records; the time it takes depends on the gap.

How far it goes is a matter of seconds, or of steps (rounds of pricing, and one for all before them): then everything
else is limited by counts too, no clock is looked at, and the same steps give the same partition.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kinfold.errors import Unreachable
from kinfold.methods.partition.bounds import PRICED_UP_TO, SHARE, SMALL
from kinfold.methods.partition.columns import MOST_LOOKS, ROUNDS, Generated, Pool, generate, price, program
from kinfold.methods.partition.gaps import Gaps, split
from kinfold.methods.partition.prices import climb
from kinfold.methods.partition.refine import checked_labels
from kinfold.methods.partition.search import first_cycle
from kinfold.progress import Progress, silent
from kinfold.rows.points import Points, checked_size

if TYPE_CHECKING:
    from kinfold.rows.points import Floats, Labels

    Group = tuple[int, ...]

LOOKS = 20_000  # of a root, while the groups within the gap are gathered
PRICING = 0.25  # share of the seconds for the bound
TURNS, WALKING = 2, 0.45  # how often groups are gathered and chosen, and how much of a turn is gathering
STEPS = 60  # rounds of pricing where the clock does not count: three times what tables of 500 records took
# Without a clock: looks of all roots together in a round of pricing, and while the groups within the gap are gathered;
# nodes of a choice; steps of a walk for each record. With them 200 records of Census take 17 s, and k = 3 is proved.
BY_COUNT = {"pricing": 20_000_000, "gathering": 50_000_000, "nodes": 500, "walk": 50}
WELL_PRICED = 0.1  # share of the gap that the reduced cost of a group may have, where the choice is not exact
ROUNDING = 1e-9  # a share of the cost that is rounding


@dataclass(frozen=True, eq=False)
class Exact:
    """The best partition found, its cost, a lower bound, and the gap between them as a share of the cost."""

    labels: Labels
    cost: float
    bound: float
    steps: int  # that repeat this result, where no clock was asked

    @property
    def gap(self) -> float:
        """By what share of itself the cost may lie above the optimum: 0 is proved optimal."""
        return max(0.0, 1.0 - self.bound / self.cost) if self.cost > 0.0 else 0.0


def exact(
    x: object, k: int, labels: object, *, seconds: float = 60.0, steps: int | None = None, progress: Progress = silent
) -> Exact:
    """Return a partition that costs no more than the one given, with a lower bound on the cost of all.

    With `steps` the seconds do not count.

    >>> found = exact([[0.0], [1.0], [5.0], [6.0], [9.0]], 2, [0, 1, 0, 1, 0])
    >>> found.labels.tolist(), round(found.cost, 6), round(found.gap, 6)
    ([0, 0, 1, 1, 1], 9.166667, 0.0)
    """
    points = Points.of(x)
    size = checked_size(points, k)
    if len(points) > SMALL:
        raise Unreachable(f"{len(points)} records are too many for the exact end", fix=f"at most {SMALL}, or a bound")
    seconds = seconds if steps is None else math.inf
    until = time.monotonic() + seconds
    pool = Pool.of(Gaps.of(points), size, checked_labels(labels, len(points), size))
    best = _priced(pool, PRICING * seconds, ROUNDS if steps is None else max(0, steps - 1), progress)
    bound = best.bound
    if pool.cost - bound > ROUNDING * pool.cost:
        bound = max(bound, _choose_among_all(pool, best, until))
    met = Pool(pool.gaps, size, pool.labels, pool.cost)
    for turn in range(TURNS):
        share = (until - time.monotonic()) / (TURNS - turn)
        if share <= 0.0 or met.cost - bound <= ROUNDING * met.cost:
            break
        progress(turn, TURNS)
        _choose_among_met(met, turn, share)
    return Exact(met.labels, met.cost, min(bound, met.cost), best.rounds + 1)


def _priced(pool: Pool, seconds: float, rounds: int, progress: Progress) -> Generated:
    """Return the best bound and its prices, by stars, and by columns where the groups are not too many."""
    prices, value = climb(pool.gaps, pool.k, pool.cost, time.monotonic() + SHARE * seconds, progress)
    best = Generated(value, prices)
    if pool.k <= PRICED_UP_TO or len(pool.gaps) <= 4 * pool.k:
        enough = time.monotonic() + (1.0 - SHARE) * seconds
        looks = MOST_LOOKS if math.isfinite(seconds) else BY_COUNT["pricing"] // len(pool.gaps)
        found = generate(pool, prices, enough, progress, rounds, looks)
        best = found if found.bound > best.bound else replace(best, rounds=found.rounds)
    return best


def _choose_among_all(pool: Pool, best: Generated, until: float) -> float:
    """Choose among all groups that a better partition can have, unless they are too many; return a bound."""
    gap = pool.cost - best.bound + ROUNDING
    looks = BY_COUNT["gathering"] // len(pool.gaps) if math.isinf(until) else LOOKS
    if not price(pool, best.prices, looks, gap)[2]:
        return best.bound
    return max(best.bound, _solve(pool, _within(pool, best.prices, gap), until))


def _choose_among_met(pool: Pool, seed: int, seconds: float) -> None:
    """Gather the groups met on a long walk from the best partition, and choose among those that are priced well."""
    until = time.monotonic() + seconds
    pool.walk([pool.labels], _steps_within(pool, WALKING * seconds), seed)
    value, prices = program(pool, until)
    if prices is not None:
        gap = pool.cost - value
        pool.groups = {group: pool.groups[group] for group in _within(pool, prices, gap + ROUNDING)}
        _solve(pool, _within(pool, prices, WELL_PRICED * gap + ROUNDING), until)


def _steps_within(pool: Pool, seconds: float) -> int:
    """How many steps of a walk fit into so many seconds, by trial; a fixed number where seconds do not count."""
    if math.isinf(seconds):
        return BY_COUNT["walk"] * len(pool.gaps)
    trial = first_cycle(len(pool.gaps), pool.k) // 4 + 1
    since = time.monotonic()
    pool.walk([pool.labels], trial)
    spent = time.monotonic() - since
    return max(1, int(trial * (seconds - spent) / spent))


def _within(pool: Pool, prices: Floats, most: float) -> list[Group]:
    """Return the groups whose reduced cost is at most this, and those of the best partition."""
    ours = {tuple(rows.tolist()) for rows in split(pool.labels)}
    return [g for g, cost in pool.groups.items() if g in ours or cost - prices[list(g)].sum() <= most]


def _solve(pool: Pool, groups: list[Group], until: float) -> float:
    """Keep the best choice of these groups, if one was found in time; return a bound on all choices of them."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    solved = milp(
        np.array([pool.groups[group] for group in groups]),
        constraints=LinearConstraint(pool.matrix(groups), 1.0, 1.0),
        integrality=np.ones(len(groups), np.int64),
        bounds=Bounds(0.0, 1.0),
        options=_limits(until),
    )
    if solved.x is None:
        return -np.inf
    labels = np.empty(len(pool.gaps), np.int32)
    for label, chosen in enumerate(np.flatnonzero(solved.x > 0.5)):
        labels[list(groups[chosen])] = label
    pool.keep(labels)
    return min(float(solved.mip_dual_bound), pool.cost)


def _limits(until: float) -> Any:
    limit = (
        {"node_limit": BY_COUNT["nodes"]} if math.isinf(until) else {"time_limit": max(0.1, until - time.monotonic())}
    )
    return {"mip_rel_gap": 0.0, **limit}
