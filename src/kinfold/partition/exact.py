"""The exact end: set partitioning over the groups worth choosing from, and how far the result is from the optimum.

    1. prices and a lower bound by columns (see `columns` and `bounds`)
    2. a group whose reduced cost is above the gap between bound and best partition is in no better partition: every
       other group is gathered, if they are not too many
    3. choose groups, each record once, at least cost: a mixed-integer program, by HiGHS

Where all groups of step 2 were gathered and the program was solved to its end, the result is the optimum.
For some thousand records; the time it takes depends on the gap.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kinfold.errors import Unreachable
from kinfold.partition.bounds import PRICED_UP_TO, SHARE, SMALL
from kinfold.partition.columns import Generated, Pool, generate, price
from kinfold.partition.gaps import Gaps
from kinfold.partition.points import Points, checked_size
from kinfold.partition.prices import climb
from kinfold.partition.refine import checked_labels
from kinfold.progress import Progress, silent

if TYPE_CHECKING:
    from kinfold.partition.points import Labels

LOOKS = 20_000  # of a root, while the groups within the gap are gathered
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
    prices, value = climb(gaps, size, pool.cost, time.monotonic() + SHARE * seconds, progress)
    best = Generated(value, prices)
    if size <= PRICED_UP_TO or len(points) <= 4 * size:
        halfway = until - 0.4 * seconds
        best = max(best, generate(pool, prices, halfway, progress), key=lambda generated: generated.bound)
    bound = best.bound
    if pool.cost - bound > ROUNDING * pool.cost:
        bound = max(bound, _choose(pool, best, until))
    return Exact(pool.labels, pool.cost, min(bound, pool.cost))


def _choose(pool: Pool, best: Generated, until: float) -> float:
    """Choose groups of the pool; return a bound, the cost of the choice where it is the optimum."""
    before = dict(pool.groups)
    _, _, whole = price(pool, best.prices, LOOKS, pool.cost - best.bound + ROUNDING)
    if not whole:
        pool.groups = before  # too many to choose from; those met are the more likely
    labels, lowest = _solve(pool, best, until)
    if labels is not None:
        pool.keep(labels)
    return min(lowest, pool.cost) if whole else best.bound


def _solve(pool: Pool, best: Generated, until: float) -> tuple[Labels | None, float]:
    """Return the labels of the best choice of groups, if one was found in time, and a bound on all choices."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    gap = pool.cost - best.bound + ROUNDING
    groups = [group for group, cost in pool.groups.items() if cost - best.prices[list(group)].sum() <= gap]
    if not groups:
        return None, np.inf
    solved = milp(
        np.array([pool.groups[group] for group in groups]),
        constraints=LinearConstraint(pool.matrix(groups), 1.0, 1.0),
        integrality=np.ones(len(groups), np.int64),
        bounds=Bounds(0.0, 1.0),
        options={"time_limit": max(0.1, until - time.monotonic()), "mip_rel_gap": 0.0},
    )
    if solved.x is None:
        return None, np.inf if solved.status == 2 else best.bound
    labels = np.empty(len(pool.gaps), np.int32)
    for label, chosen in enumerate(np.flatnonzero(solved.x > 0.5)):
        labels[list(groups[chosen])] = label
    return labels, float(solved.mip_dual_bound)
