"""Squared error: how far the released numbers are from the original ones.

    sse              Σ (x - x')² over all cells                           Sun et al. 2012, Eq. (1)
    sst              the same with every value at its column's mean       Sun et al. 2012, section 5
    sse_ratio        sse / sst, on standardized columns
    normalized_sse   mean over the cells of ((x - x') / range)²           Soria-Comas et al. 2015, Eq. (5)

Eq. (5) does not define its normalized distance: here it is the gap over the range of the original column. On a
constant column it is 0 for an unchanged value and 1 for any other.

A value missing from the original has nothing to lose and is left out. A value missing from the release (a dropped or
starred record) loses everything: in `sse` it counts as the column's mean, in `normalized_sse` as a whole range.
Cost: one pass over the cells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold.measures.arrays import Floats, NotApplicable, numbers, paired

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def sse(original: ArrayLike, released: ArrayLike) -> float:
    """Sum of squared errors, from 0 (nothing changed) up, in squared units of the columns: less is better.

    >>> sse([1.0, 3.0, 11.0, 13.0], [2.0, 2.0, 12.0, 12.0])
    4.0
    """
    x, y = paired(original, released)
    y = np.where(np.isnan(y), column_means(x), y)
    return float(np.nansum((x - y) ** 2))


def sst(original: ArrayLike) -> float:
    """Total sum of squares, from 0 (constant columns) up: the SSE of releasing nothing but the means.

    >>> sst([1.0, 3.0, 11.0, 13.0])
    104.0
    """
    x = numbers(original)
    if x.size == 0:
        raise NotApplicable("there is no cell to compare")
    return float(np.nansum((x - column_means(x)) ** 2))


def sse_ratio(original: ArrayLike, released: ArrayLike) -> float:
    """Share of the variation that is lost, 0 (nothing) to 1 (all), where released values are class means: SSE / SST.

    Columns count by their variance: standardize them first, see `standardized`.

    >>> sse_ratio([1.0, 3.0, 11.0, 13.0], [2.0, 2.0, 12.0, 12.0])
    0.038461538461538464
    """
    total = sst(original)
    if not total:
        raise NotApplicable("the original columns are constant: there is no variation to lose")
    return sse(original, released) / total


def normalized_sse(original: ArrayLike, released: ArrayLike) -> float:
    """Mean squared error per cell in units of the column's range, 0 (nothing changed) to 1 inside the range.

    >>> normalized_sse([1.0, 3.0, 11.0, 13.0], [2.0, 2.0, 12.0, 12.0])  # 1/12 squared
    0.006944444444444444
    """
    x, y = paired(original, released)
    known = ~np.isnan(x)
    if not known.any():
        raise NotApplicable("every original value is missing")
    low = np.min(x, axis=0, where=known, initial=np.inf)
    spread = np.max(x, axis=0, where=known, initial=-np.inf) - low
    varied = spread > 0
    gap = np.where(varied, (x - y) / np.where(varied, spread, 1.0), x != y)
    gap[np.isnan(y)] = 1.0
    return float(np.mean(gap**2, where=known))


def standardized(original: ArrayLike, released: ArrayLike) -> tuple[Floats, Floats]:
    """Return both tables in units of the original's deviations from its means; constant columns keep their unit.

    >>> standardized([1.0, 3.0], [2.0, 2.0])[0].ravel().tolist()
    [-1.0, 1.0]
    """
    x, y = paired(original, released)
    means = column_means(x)
    known = np.maximum((~np.isnan(x)).sum(axis=0), 1)
    deviations = np.sqrt(np.nansum((x - means) ** 2, axis=0) / known)
    unit = np.where(deviations > 0, deviations, 1.0)
    return (x - means) / unit, (y - means) / unit


def column_means(x: Floats) -> Floats:
    """Mean of the known values of each column, exact for a constant column; 0 for a column without any."""
    known = ~np.isnan(x)
    means = np.nansum(x, axis=0) / np.maximum(known.sum(axis=0), 1)
    low = np.min(x, axis=0, where=known, initial=np.inf)
    high = np.max(x, axis=0, where=known, initial=-np.inf)
    return np.asarray(np.where(low == high, low, means), np.float64)
