"""Distribution shift of one column: the categories and quantiles that moved by more than a fifth.

    category   its share p of the original records, p' of the released ones: |p' - p| > p / 5
    quantile   its value q in the original, q' in the release: |q' - q| > s / 5, with the standard deviation s of the
               original column

A category with p' = 0 vanished. The largest move comes first: of categories |p' - p|, then |p' - p| / p; of quantiles
|q' - q| / s. Ties go to the first in the order given. Cost: O(m log m) for m categories.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kinfold.measures.formulas.arrays import Floats, Ints, NotApplicable

LEAST_MOVE = 0.2  # a fifth
SLACK = 1 + 1e-9  # moves that differ from a fifth only by rounding do not count


def compute_shares(counts: ArrayLike) -> Floats:
    """Return the share of each category.

    >>> compute_shares([3, 1]).tolist()
    [0.75, 0.25]
    """
    records = np.asarray(counts, np.float64)
    if not records.sum():
        raise NotApplicable("one of the tables has no records")
    return np.asarray(records / records.sum(), np.float64)


def find_moved_shares(before: ArrayLike, after: ArrayLike) -> Ints:
    """Return the places of the categories whose share moved by more than a fifth, the largest move first.

    >>> find_moved_shares([72, 5, 23], [96, 0, 4]).tolist()
    [0, 2, 1]
    """
    p, q = compute_shares(before), compute_shares(after)
    moved = np.abs(q - p)
    relative = np.divide(moved, p, out=np.full(len(p), np.inf), where=p > 0)
    order = np.lexsort((-np.round(relative, 12), -np.round(moved, 12)))  # stable; rounded, so that ties are ties
    return np.asarray(order[(moved > LEAST_MOVE * SLACK * p)[order]], np.int64)


def find_moved_quantiles(before: ArrayLike, after: ArrayLike, deviation: float) -> Ints:
    """Return the places of the quantiles that moved by more than a fifth of the standard deviation, largest first.

    >>> find_moved_quantiles([1.0, 5.0, 9.0], [4.0, 5.5, 7.0], deviation=4.0).tolist()
    [0, 2]
    """
    moved = np.abs(np.asarray(after, np.float64) - np.asarray(before, np.float64))
    order = np.argsort(-moved, kind="stable")
    return np.asarray(order[(moved > LEAST_MOVE * SLACK * deviation)[order]], np.int64)
