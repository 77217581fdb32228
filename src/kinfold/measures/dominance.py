"""Dominance: classes whose average gives away their largest record, and columns that single records out.

In business data a mean over k companies may be the largest one in all but name. For each class, with the absolute
values in descending order x_1 ≥ x_2 ≥ … and their total T:

    (n,k) rule   unsafe where x_1 + … + x_n > (k / 100) T
    p % rule     unsafe where T - x_1 - x_2 < (p / 100) x_1: the second can tell the first to within p percent

A class whose total is 0 is safe. A missing value is no contribution. Source: Hundepool et al. 2012, chapter 4.
Cost: one sort.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold.errors import DataError
from kinfold.measures.arrays import Flags, Floats, Ints, NotApplicable, codes, labels

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def dominated(classes: ArrayLike, values: ArrayLike, n: int = 1, k: float = 75.0) -> Flags:
    """Return for each class whether its n largest values make more than k percent of its total.

    >>> dominated([0, 0, 0, 1, 1, 1], [80.0, 10.0, 10.0, 40.0, 30.0, 30.0]).tolist()
    [True, False]
    """
    place, value, totals, group = _ranked(classes, values)
    top = np.bincount(group[place < n], value[place < n], minlength=len(totals))
    return np.asarray(top > k / 100.0 * totals, np.bool_)


def within_percent(classes: ArrayLike, values: ArrayLike, p: float = 10.0) -> Flags:
    """Return for each class whether its second largest can tell the largest to within p percent.

    >>> within_percent([0, 0, 0, 1, 1, 1], [80.0, 15.0, 5.0, 40.0, 30.0, 30.0]).tolist()
    [True, False]
    """
    place, value, totals, group = _ranked(classes, values)
    first = np.bincount(group[place == 0], value[place == 0], minlength=len(totals))
    rest = np.bincount(group[place > 1], value[place > 1], minlength=len(totals))
    return np.asarray(rest < p / 100.0 * first, np.bool_)


def singled_out(classes: ArrayLike, column: ArrayLike) -> int:
    """Return how many records are alone in their class with their value of another released column, 0 to n.

    Sampling weights and other columns released untouched can undo a class: who knows the value knows the record.

    >>> singled_out([0, 0, 0, 1, 1], [7, 7, 9, 7, 7])
    1
    """
    kept, value = labels(classes), codes(column)[:, 0]
    if kept.shape != value.shape:
        raise DataError("classes and column do not pair up", fix="give one value per record")
    value, kept = value[kept >= 0] + 1, kept[kept >= 0]
    if kept.size == 0:
        raise NotApplicable("there is no released record")
    _, held = np.unique(kept * (int(value.max()) + 1) + value, return_counts=True)
    return int((held == 1).sum())


def _ranked(classes: ArrayLike, values: ArrayLike) -> tuple[Ints, Floats, Floats, Ints]:
    """Return the absolute values, largest first in each class, with their places, the totals and their classes."""
    kept, value = labels(classes), np.abs(np.asarray(values, np.float64))
    if kept.shape != value.shape:
        raise DataError("classes and values do not pair up", fix="give one value per record")
    value, kept = np.asarray(np.nan_to_num(value[kept >= 0]), np.float64), kept[kept >= 0]
    if kept.size == 0:
        raise NotApplicable("there is no released record")
    order = np.lexsort((-value, kept))
    sizes = np.bincount(kept)
    place = np.arange(len(order), dtype=np.int64) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    totals = np.asarray(np.bincount(kept, value), np.float64)
    return place, value[order], totals, kept[order]
