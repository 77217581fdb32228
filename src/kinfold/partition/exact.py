"""The exact end: set partitioning over the groups worth choosing from, and how far the result is from the optimum.

    1. gather the groups that a search meets while it cools (see `search`): they fit together, if not all at once
    2. prices and a lower bound by columns (see `columns` and `bounds`)
    3. a group whose reduced cost is above the gap between bound and best partition is in no better partition: every
       other group is gathered, if they are not too many
    4. choose groups, each record once, at least cost: a mixed-integer program, by HiGHS

Where all groups of step 3 were gathered and the program was solved to its end, the result is the optimum. Where they
are too many, the choice is among the groups met, those that the linear program over them prices well.
For some thousand records; the time it takes depends on the gap.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kinfold.errors import Unreachable
from kinfold.partition.bounds import PRICED_UP_TO, SHARE, SMALL
from kinfold.partition.columns import Generated, Pool, generate, price, program
from kinfold.partition.gaps import Gaps, split
from kinfold.partition.points import Points, checked_size
from kinfold.partition.prices import climb
from kinfold.partition.refine import checked_labels
from kinfold.partition.search import first_cycle
from kinfold.progress import Progress, silent

if TYPE_CHECKING:
    from kinfold.partition.points import Floats, Labels

    Group = tuple[int, ...]

LOOKS = 20_000  # of a root, while the groups within the gap are gathered
WALKING, PRICING = 0.35, 0.3  # shares of the seconds
WELL_PRICED = 0.1  # share of the gap that the reduced cost of a group may have, where the choice is not exact
FEW = 50  # records for which no search is needed
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Exact:
    """The best partition found, its cost, a lower bound, and the gap between them as a share of the cost."""

    labels: Labels
    cost: float
    bound: float

    @property
    def gap(self) -> float:
        """By what share of itself the cost may lie above the optimum: 0 is proved optimal."""
        return max(0.0, 1.0 - self.bound / self.cost) if self.cost > 0.0 else 0.0


def exact(x: object, k: int, labels: object, *, seconds: float = 60.0, progress: Progress = silent) -> Exact:
    """Return a partition that costs no more than the one given, with a lower bound on the cost of all.

    >>> found = exact([[0.0], [1.0], [5.0], [6.0], [9.0]], 2, [0, 1, 0, 1, 0])
    >>> found.labels.tolist(), round(found.cost, 6), round(found.gap, 6)
    ([0, 0, 1, 1, 1], 9.166667, 0.0)
    """
    points = Points.of(x)
    size = checked_size(points, k)
    if len(points) > SMALL:
        raise Unreachable(f"{len(points)} records are too many for the exact end", fix=f"at most {SMALL}, or a bound")
    until = time.monotonic() + seconds
    gaps = Gaps.of(points)
    pool = Pool.of(gaps, size, checked_labels(labels, len(points), size))
    if len(points) > FEW:
        pool.walk([pool.labels], first_cycle(gaps, size), seconds=WALKING * seconds)
    prices, value = climb(gaps, size, pool.cost, time.monotonic() + SHARE * PRICING * seconds, progress)
    best = Generated(value, prices)
    if size <= PRICED_UP_TO or len(points) <= 4 * size:
        enough = time.monotonic() + (1.0 - SHARE) * PRICING * seconds
        best = max(best, generate(pool, prices, enough, progress), key=lambda generated: generated.bound)
    bound = best.bound
    if pool.cost - bound > ROUNDING * pool.cost:
        bound = max(bound, _choose(pool, best, until))
    return Exact(pool.labels, pool.cost, min(bound, pool.cost))


def _choose(pool: Pool, best: Generated, until: float) -> float:
    """Choose groups of the pool; return a bound, the cost of the choice where it is the optimum."""
    before, gap = dict(pool.groups), pool.cost - best.bound
    whole = price(pool, best.prices, LOOKS, gap + ROUNDING)[2]
    if whole:
        groups = _within(pool, best.prices, gap + ROUNDING)
    else:
        pool.groups = before  # too many to choose from; those met are the more likely
        value, prices = program(pool, until)
        if prices is None:
            return best.bound
        groups = _within(pool, prices, WELL_PRICED * (pool.cost - value) + ROUNDING)
    labels, lowest = _solve(pool, groups, until)
    if labels is not None:
        pool.keep(labels)
    return min(max(lowest, best.bound), pool.cost) if whole else best.bound


def _within(pool: Pool, prices: Floats, most: float) -> list[Group]:
    """Return the groups whose reduced cost is at most this, and those of the best partition."""
    ours = {tuple(rows.tolist()) for rows in split(pool.labels)}
    return [g for g, cost in pool.groups.items() if g in ours or cost - prices[list(g)].sum() <= most]


def _solve(pool: Pool, groups: list[Group], until: float) -> tuple[Labels | None, float]:
    """Return the labels of the best choice of groups, if one was found in time, and a bound on all choices."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    solved = milp(
        np.array([pool.groups[group] for group in groups]),
        constraints=LinearConstraint(pool.matrix(groups), 1.0, 1.0),
        integrality=np.ones(len(groups), np.int64),
        bounds=Bounds(0.0, 1.0),
        options={"time_limit": max(0.1, until - time.monotonic()), "mip_rel_gap": 0.0},
    )
    if solved.x is None:
        return None, -np.inf
    labels = np.empty(len(pool.gaps), np.int32)
    for label, chosen in enumerate(np.flatnonzero(solved.x > 0.5)):
        labels[list(groups[chosen])] = label
    return labels, float(solved.mip_dual_bound)
