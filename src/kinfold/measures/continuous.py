"""Squared error: how far the released numbers are from the original ones.

    sse              Σ (x - x')² over all cells                           Sun et al. 2012, Eq. (1)
    sst              the same with every value at its column's mean       Sun et al. 2012, section 5
    sse_ratio        sse / sst, on standardized columns
    normalized_sse   mean over the cells of ((x - x') / range)²           Soria-Comas et al. 2015, Eq. (5)

Eq. (5) does not define its normalized distance: here it is the gap over the range of the original column. On a
constant column it is 0 for an unchanged value and 1 for any other.

A value missing from the original has nothing to lose and is left out. A value missing from the release (a dropped or
starred record) loses everything: in `sse` it counts as the column's mean, in `normalized_sse` as a whole range.
`weight` is how many records each row stands for, where equal rows are given once: one each without it.
Cost: one pass over the cells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kinfold.measures.arrays import Flags, Floats, NotApplicable, filled, numbers, paired, total

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def sse(original: ArrayLike, released: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Sum of squared errors, from 0 (nothing changed) up, in squared units of the columns: less is better.

    >>> sse([1.0, 3.0, 11.0, 13.0], [2.0, 2.0, 12.0, 12.0])
    4.0
    """
    x, y = paired(original, released)
    return float(total((x - at_means(x, y, weight)) ** 2, weight).sum())


def sst(original: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Total sum of squares, from 0 (constant columns) up: the SSE of releasing nothing but the means.

    >>> sst([1.0, 3.0, 11.0, 13.0])
    104.0
    """
    x = numbers(original)
    if x.size == 0:
        raise NotApplicable("there is no cell to compare")
    return float(total((x - column_means(x, weight)) ** 2, weight).sum())


def sse_ratio(original: ArrayLike, released: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Share of the variation that is lost, 0 (nothing) to 1 (all), where released values are class means: SSE / SST.

    Columns count by their variance: standardize them first, see `standardized`.

    >>> sse_ratio([1.0, 3.0, 11.0, 13.0], [2.0, 2.0, 12.0, 12.0])
    0.038461538461538464
    """
    return ratio(sse(original, released, weight), sst(original, weight))


def ratio(lost: float, varied: float) -> float:
    """Return SSE / SST where there is anything to lose."""
    if not varied:
        raise NotApplicable("the original columns are constant: there is no variation to lose")
    return lost / varied


def normalized_sse(original: ArrayLike, released: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Mean squared error per cell in units of the column's range, 0 (nothing changed) to 1 inside the range.

    >>> normalized_sse([1.0, 3.0, 11.0, 13.0], [2.0, 2.0, 12.0, 12.0])  # 1/12 squared
    0.006944444444444444
    """
    x, y = paired(original, released)
    known = ~np.isnan(x)
    if not known.any():
        raise NotApplicable("every original value is missing")
    low, high = _limits(x, known)
    spread = high - low
    varied = spread > 0
    gap = (x - y) / np.where(varied, spread, 1.0)
    if not varied.all():
        gap = np.where(varied, gap, x != y)
    gap[np.isnan(y)] = 1.0
    gap[~known] = np.nan
    return float(total(gap**2, weight).sum() / filled(known, weight).sum())


def standardized(original: ArrayLike, released: ArrayLike, weight: ArrayLike | None = None) -> tuple[Floats, Floats]:
    """Return both tables in units of the original's deviations from its means; constant columns keep their unit.

    >>> standardized([1.0, 3.0], [2.0, 2.0])[0].ravel().tolist()
    [-1.0, 1.0]
    """
    x, y = paired(original, released)
    means = column_means(x, weight)
    deviations = column_deviations(x, means, weight)
    unit = np.where(deviations > 0, deviations, 1.0)
    return (x - means) / unit, (y - means) / unit


def column_means(x: Floats, weight: ArrayLike | None = None) -> Floats:
    """Mean of the known values of each column, exact for a constant column; 0 for a column without any."""
    known = ~np.isnan(x)
    means = total(x, weight) / np.maximum(filled(known, weight), 1.0)
    low, high = _limits(x, known)
    return np.asarray(np.where(low == high, low, means), np.float64)


def _limits(x: Floats, known: Flags) -> tuple[Floats, Floats]:
    """Return the least and the largest of the known values of each column."""
    where: Any = True if known.all() else known  # a mask takes ten times as long
    return np.min(x, axis=0, where=where, initial=np.inf), np.max(x, axis=0, where=where, initial=-np.inf)


def column_deviations(x: Floats, means: Floats, weight: ArrayLike | None = None) -> Floats:
    """Standard deviation of the known values of each column, of the population; 0 for a column without any."""
    known = np.maximum(filled(~np.isnan(x), weight), 1.0)
    return np.asarray(np.sqrt(total((x - means) ** 2, weight) / known), np.float64)


def at_means(x: Floats, y: Floats, weight: ArrayLike | None = None) -> Floats:
    """Return a release in which a missing value is the original's mean: what is lost is as good as that."""
    missing = np.isnan(y)
    return np.where(missing, column_means(x, weight), y) if missing.any() else y
