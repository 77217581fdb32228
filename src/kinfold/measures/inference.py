"""Attribute inference: how much better an attacker guesses a confidential value with the release than without it.

Without the release the best guess is the same for everybody; with it, one guess for each class:

    categories   the most frequent value. Gain = (hits with - hits without) / (n - hits without), the lambda of
                 Goodman & Kruskal 1954
    numbers      the mean. Gain = 1 - squared error with / without, the squared correlation ratio (eta²)

Null is one more category. A missing number is nobody's secret, and left out. Cost: O(n log n).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold.measures.arrays import Ints, NotApplicable, codes, labels

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def inference_gain(classes: ArrayLike, values: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Share of wrong guesses of a category that the release sets right, 0 (tells nothing) to 1 (tells all).

    `weight` is how many records hold a value in a class, where each such pair is given once.

    >>> inference_gain([0, 0, 1, 1], [0, 0, 1, 1])
    1.0
    >>> inference_gain([0, 0, 1, 1], [0, 1, 0, 1])
    0.0
    """
    kept = labels(classes)
    records = np.ones(len(kept), np.int64) if weight is None else np.asarray(weight, np.int64)
    value = codes(values)[:, 0]
    if kept.size and kept.min() < 0:
        kept, value, records = kept[kept >= 0], value[kept >= 0], records[kept >= 0]
    if kept.size == 0:
        raise NotApplicable("there is no released record")
    width = int(value.max()) + 2  # null is a category: code -1
    blind, every = int(np.bincount(value + 1, records).max()), int(records.sum())
    if blind == every:
        raise NotApplicable("the confidential column is constant: there is nothing to guess")
    best = np.zeros(int(kept.max()) + 1, np.int64)
    np.maximum.at(best, *_held(kept * width + value + 1, records, width))
    return float((best.sum() - blind) / (every - blind))


def _held(cells: Ints, records: Ints, width: int) -> tuple[Ints, Ints]:
    """Return the class of each pair of class and value that occurs, and how many records have it."""
    if (np.diff(cells) > 0).all():  # counted and in order already
        return cells // width, records
    found, place = np.unique(cells, return_inverse=True)
    return found // width, np.bincount(place, records, len(found)).astype(np.int64)


def inference_gain_numbers(classes: ArrayLike, values: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Share of the squared error of guessing a number that the release takes away, 0 (tells nothing) to 1 (tells all).

    `weight` as in `inference_gain`.

    >>> inference_gain_numbers([0, 0, 1, 1], [1.0, 3.0, 11.0, 13.0])
    0.9615384615384616
    """
    kept, value = labels(classes), np.asarray(values, np.float64)
    known = (kept >= 0) & ~np.isnan(value)
    records = np.ones(len(kept)) if weight is None else np.asarray(weight, np.float64)
    kept, value, records = kept[known], value[known], records[known]
    if value.size == 0 or value.min() == value.max():
        raise NotApplicable("the confidential column is constant or missing: there is nothing to guess")
    value = value - np.average(value, weights=records)
    sizes = np.maximum(np.bincount(kept, records), 1)
    means = np.bincount(kept, value * records) / sizes
    return float(1.0 - (records @ (value - means[kept]) ** 2) / (records @ value**2))
