"""Interval disclosure: how often an original number lies close to its released one.

    by rank        is x inside the span of the released values with ranks within p/2 percent of n of the rank of x'?
                   The share of cells, averaged over p = 1 … 10               Domingo-Ferrer & Torra 2001
    by deviation   is every |x - x'| of the record at most `width` standard deviations of the column?
                   The share of records                                       Mateo-Sanz, Sebé & Domingo-Ferrer 2004

Tied released values share the outermost ranks of the tie, so that a class is as wide as its ranks.
A value missing from either table discloses nothing: it counts as outside. Cost: O(n log n) for each column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold.measures.arrays import Floats, Ints, paired
from kinfold.measures.continuous import column_means

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike


def interval_by_rank(
    original: ArrayLike, released: ArrayLike, percents: Sequence[float] = tuple(range(1, 11))
) -> float:
    """Share of values found within a narrow interval of ranks around the released one, 0 to 1: less is better.

    >>> interval_by_rank([1.0, 2.0, 9.0, 10.0], [1.5, 1.5, 9.5, 9.5])
    0.0
    >>> interval_by_rank([1.0, 2.0, 9.0, 10.0], [1.0, 2.0, 9.0, 10.0])
    1.0
    """
    x, y = paired(original, released)
    return float(np.mean([_inside_ranks(x[:, j], y[:, j], percents) for j in range(x.shape[1])]))


def interval_by_deviation(original: ArrayLike, released: ArrayLike, width: float = 0.05) -> float:
    """Share of records whose every value is within `width` standard deviations of the released one, 0 to 1.

    >>> interval_by_deviation([1.0, 2.0, 9.0, 10.0], [1.1, 1.5, 9.1, 9.5])
    0.5
    """
    x, y = paired(original, released)
    gap = x - column_means(x)
    deviation = np.sqrt(np.nansum(gap**2, axis=0) / np.maximum((~np.isnan(x)).sum(axis=0), 1))
    return float((np.abs(x - y) <= width * deviation).all(axis=1).mean())


def _inside_ranks(x: Floats, y: Floats, percents: Sequence[float]) -> float:
    known = np.flatnonzero(~np.isnan(y))
    if known.size == 0:
        return 0.0
    order = known[np.argsort(y[known], kind="stable")]  # by rank: what is looked up lies side by side
    ranked, value = y[order], x[order]
    first, last = _ends_of_ties(ranked)
    inside = 0
    for percent in percents:
        reach = int(percent * len(ranked) / 200.0)
        low = ranked[np.maximum(first - reach, 0)]
        high = ranked[np.minimum(last + reach, len(ranked) - 1)]
        inside += int(((low <= value) & (value <= high)).sum())
    return inside / (len(x) * len(percents))


def _ends_of_ties(ranked: Floats) -> tuple[Ints, Ints]:
    """Return for each of the sorted values the first and the last place of its tie."""
    starts = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))
    lengths = np.diff(np.append(starts, len(ranked)))
    first = np.repeat(starts, lengths)
    return first, first + np.repeat(lengths, lengths) - 1
