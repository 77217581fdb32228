"""Lower bounds: what no partition into groups of at least k can fall below.

Some optimal partition has groups of k to 2k-1 only (a larger one can be split at no cost, for numbers). A group of m
costs half the sum over its members i of (the squared distances from i to the others) / m. So, for any prices:

    cost of a partition = sum of all prices + sum over groups of their reduced cost
                        = sum over records i of   price(i) + half the star of i     (see `kernels.pricing`)

1. nearest: all prices 0. A star is at least the distances to the m-1 nearest over m; this never falls as m grows
   (the m-th nearest is at least the mean of the nearer), so m = k. O(n k) from a tree of any size.
2. stars: for any prices the sum over i of price(i) + half the least star over all m is a bound; a concave function of
   the prices, climbed by subgradients. O(n² k) a step; twice as good on outliers, for their price may be their
   whole distance.
3. columns: prices from the linear program over the groups met so far, groups priced exactly. Every group of negative
   reduced cost has a root, roots are distinct, and there are at most n/k groups: the bound is the sum of the prices
   and of the n/k most negative reduced costs over roots.

For mixed records 1 to 3 hold among partitions into groups of k to 2k-1.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kinfold.methods.partition.columns import Pool, generate
from kinfold.methods.partition.gaps import Gaps
from kinfold.methods.partition.prices import climb
from kinfold.progress import Progress, silent
from kinfold.rows.points import Points, checked_size

if TYPE_CHECKING:
    from kinfold.rows.points import Labels

SMALL = 5_000  # records whose distances all fit into memory
PRICED_UP_TO = 6  # beyond this k the groups are too many to be priced exactly
SHARE = 0.25  # of the seconds go into the climb


@dataclass(frozen=True)
class Bound:
    """A value that the cost of no partition falls below, and how it was found: nearest, stars or columns."""

    value: float
    method: str

    def gap(self, cost: float) -> float:
        """Return by what share of itself this cost may lie above the optimum, 0 to 1.

        >>> Bound(9.0, "stars").gap(12.0)
        0.25
        """
        return max(0.0, 1.0 - self.value / cost) if cost > 0.0 else 0.0


def lower_bound(
    x: object, k: int, *, labels: Labels | None = None, seconds: float = 30.0, progress: Progress = silent
) -> Bound:
    """Return the best lower bound on the cost that is found within so many seconds. A good partition speeds it up.

    >>> lower_bound([[0.0], [1.0], [5.0], [6.0]], 2).value
    1.0
    """
    points = Points.of(x)
    size = checked_size(points, k)
    if len(points) > SMALL:
        return Bound(nearest_bound(points, size), "nearest")
    until = time.monotonic() + seconds
    gaps = Gaps.of(points)
    pool = Pool.of(gaps, size, labels)
    prices, value = climb(gaps, size, pool.cost, time.monotonic() + SHARE * seconds, progress)
    best = Bound(value, "stars")
    if size <= PRICED_UP_TO:
        value = generate(pool, prices, until, progress).bound
        best = max(best, Bound(value, "columns"), key=lambda bound: bound.value)
    return best


def nearest_bound(points: Points, k: int) -> float:
    """Return the bound from the k-1 nearest records of each; codes count as if they were equal.

    >>> nearest_bound(Points.of([[0.0], [1.0], [5.0], [6.0]]), 2)
    1.0
    """
    from scipy.spatial import cKDTree

    if points.numbers.shape[1] == 0:
        return 0.0
    distances = np.asarray(cKDTree(points.numbers).query(points.numbers, k)[0])
    return float((distances[:, 1:] ** 2).sum() / (2 * k))
