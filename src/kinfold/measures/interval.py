"""Interval disclosure: how often an original number lies close to its released one.

    is x inside the span of the released values with ranks within p/2 percent of n of the rank of x'?
    The share of cells, averaged over p = 1 … 10               Domingo-Ferrer & Torra 2001

Tied released values share the outermost ranks of the tie, so that a class is as wide as its ranks.
A value missing from either table discloses nothing: it counts as outside. Cost: O(n log n) for each column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold.measures.arrays import Floats, Ints, paired

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
