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
    """The values of a released column in order, and how many records hold each or one before it: None for one each."""

    values: Floats
    until: Ints | None

    @classmethod
    def of(cls, column: Floats, weight: Ints | None) -> _Ranks:
        known = ~np.isnan(column)
        column = column if known.all() else column[known]
        if weight is None:
            return cls(np.sort(column), None)
        values, place = np.unique(column, return_inverse=True)
        return cls(values, np.cumsum(np.bincount(place, weight[known]).astype(np.int64)))

    @property
    def records(self) -> int:
        """How many records there are."""
        return len(self.values) if self.until is None else int(self.until[-1])

    def ties(self, values: Floats) -> tuple[Ints, Ints]:
        """The first and the last rank of each of these values, counted from 0."""
        first, past = (np.searchsorted(self.values, values, side=side) for side in ("left", "right"))
        if self.until is None:
            return first, past - 1
        return np.concatenate([[0], self.until[:-1]])[first], self.until[first] - 1

    def at(self, rank: Ints) -> Floats:
        """The value of each rank, counted from 0."""
        place = rank if self.until is None else np.searchsorted(self.until, rank, side="right")
        return np.asarray(self.values[place], np.float64)


def _inside_ranks(x: Floats, y: Floats, ranks: _Ranks, percents: Sequence[float]) -> Floats:
    """Share of the percents at which each value lies within the ranks around its released one."""
    inside, known = np.zeros(len(x)), np.flatnonzero(~np.isnan(y))
    if known.size == 0:
        return inside
    n, (first, last) = ranks.records, ranks.ties(y[known])
    for percent in percents:
        reach = int(percent * n / 200.0)
        low, high = ranks.at(np.maximum(first - reach, 0)), ranks.at(np.minimum(last + reach, n - 1))
        inside[known] += (low <= x[known]) & (x[known] <= high)
    return inside / len(percents)
