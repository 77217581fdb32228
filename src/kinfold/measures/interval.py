"""Interval disclosure: how often an original number lies close to its released one.

    is x inside the span of the released values with ranks within p/2 percent of n of the rank of x'?
    The share of cells, averaged over p = 1 … 10               Domingo-Ferrer & Torra 2001

Tied released values share the outermost ranks of the tie, so that a class is as wide as its ranks.
A value missing from either table discloses nothing: it counts as outside. Cost: O(n log n) for each column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kinfold.measures.arrays import Floats, Ints, paired

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike


def interval_by_rank(
    original: ArrayLike, released: ArrayLike, percents: Sequence[float] = tuple(range(1, 11))
) -> float:
    """Share of values found within a narrow interval of ranks around the released one, 0 to 1: less is better.

    The mean of `found_by_rank` over all records.

    >>> interval_by_rank([1.0, 2.0, 9.0, 10.0], [1.5, 1.5, 9.5, 9.5])
    0.0
    >>> interval_by_rank([1.0, 2.0, 9.0, 10.0], [1.0, 2.0, 9.0, 10.0])
    1.0
    """
    return float(found_by_rank(original, released, percents).mean())


def found_by_rank(
    original: ArrayLike,
    released: ArrayLike,
    percents: Sequence[float] = tuple(range(1, 11)),
    looked_for: Ints | None = None,
    weight: Ints | None = None,
) -> Floats:
    """Return the share of values of each record that are found, 0 to 1, or of those `looked_for` by their places.

    `weight` is how many records each row stands for, where equal rows are given once.

    >>> found_by_rank([1.0, 2.0, 9.0, 10.0], [1.5, 1.5, 9.0, 10.0]).tolist()
    [0.0, 0.0, 1.0, 1.0]
    """
    x, y = paired(original, released)
    rows = np.arange(len(x)) if looked_for is None else looked_for
    found = [_inside_ranks(x[rows, j], y[rows, j], _Ranks.of(y[:, j], weight), percents) for j in range(x.shape[1])]
    return np.asarray(np.mean(found, axis=0), np.float64)


class _Ranks(NamedTuple):
    """The distinct values of a released column in order, and how many records hold one of them or a lower one."""

    values: Floats
    until: Ints

    @classmethod
    def of(cls, column: Floats, weight: Ints | None) -> _Ranks:
        known = ~np.isnan(column)
        if weight is None:
            values, held = np.unique(column[known], return_counts=True)
        else:
            values, place = np.unique(column[known], return_inverse=True)
            held = np.bincount(place, weight[known]).astype(np.int64)
        return cls(values, np.cumsum(held))

    def at(self, rank: Ints) -> Floats:
        """The value of each rank, counted from 0."""
        return np.asarray(self.values[np.searchsorted(self.until, rank, side="right")], np.float64)


def _inside_ranks(x: Floats, y: Floats, ranks: _Ranks, percents: Sequence[float]) -> Floats:
    """Share of the percents at which each value lies within the ranks around its released one."""
    inside, known = np.zeros(len(x)), np.flatnonzero(~np.isnan(y))
    if known.size == 0:
        return inside
    place, n = np.searchsorted(ranks.values, y[known]), int(ranks.until[-1])
    last = ranks.until[place] - 1  # of a tie
    first = np.concatenate([[0], ranks.until[:-1]])[place]
    for percent in percents:
        reach = int(percent * n / 200.0)
        low, high = ranks.at(np.maximum(first - reach, 0)), ranks.at(np.minimum(last + reach, n - 1))
        inside[known] += (low <= x[known]) & (x[known] <= high)
    return inside / len(percents)
