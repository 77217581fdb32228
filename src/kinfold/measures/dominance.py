"""Dominance: classes whose average gives away their largest record, and columns that single records out.

In business data a mean over k companies may be the largest one in all but name. For each class, with the absolute
values in descending order x_1 ≥ x_2 ≥ … and their total T:

    (n,k) rule   unsafe where x_1 + … + x_n > (k / 100) T
    p % rule     unsafe where T - x_1 - x_2 < (p / 100) x_1: the second can tell the first to within p percent

Both rules are about amounts, which add up: turnover, income, employees. They say nothing of an age or a year, and
`amounts` tells by the values whether a column may be one.

A class whose total is 0 is safe. A missing value is no contribution. Source: Hundepool et al. 2012, chapter 4.
Cost: one sort for all columns, then a pass for each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kinfold.errors import DataError
from kinfold.measures.arrays import Flags, Floats, Ints, NotApplicable, codes, labels

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False)
class Sorted:
    """Records in the order of their classes: sorted once, however many columns are looked at."""

    rows: Ints  # released records, class by class
    starts: Ints  # of the classes that occur
    found: Ints  # their labels
    records: int  # those that were not released included

    @classmethod
    def of(cls, classes: ArrayLike | Sorted) -> Sorted:
        """Sort the released records; one labelled -1 is not released."""
        if isinstance(classes, Sorted):
            return classes
        kept = labels(classes)
        rows = np.flatnonzero(kept >= 0)
        if rows.size == 0:
            raise NotApplicable("there is no released record")
        rows = rows[np.argsort(kept[rows], kind="stable")]
        starts = np.flatnonzero(np.diff(kept[rows], prepend=-1))
        return cls(rows, starts, kept[rows][starts], len(kept))

    def absolute(self, values: ArrayLike) -> Floats:
        """Return the absolute values of the released records, class by class; a missing one is no contribution."""
        value = np.asarray(values, np.float64)
        if value.shape != (self.records,):
            raise DataError("classes and values do not pair up", fix="give one value per record")
        return np.asarray(np.nan_to_num(np.abs(value[self.rows])), np.float64)

    def sums(self, value: Floats) -> Floats:
        """Add up the values of each class."""
        return np.asarray(np.add.reduceat(value, self.starts), np.float64)

    def take_largest(self, value: Floats) -> Floats:
        """Return the largest value of each class, and leave 0 in its place."""
        largest = np.maximum.reduceat(value, self.starts)
        sizes = np.diff(self.starts, append=len(value))
        places = np.flatnonzero(value == np.repeat(largest, sizes))
        first = places[np.searchsorted(places, self.starts)]  # of equal ones
        value[first] = 0.0
        return np.asarray(largest, np.float64)

    def by_label(self, marked: Flags) -> Flags:
        """Return what was found of each class by its label; there is nothing to find in one that does not occur."""
        every = np.zeros(int(self.found[-1]) + 1, np.bool_)
        every[self.found] = marked
        return every


LARGEST_AGE = 130  # whole numbers up to this are taken for ages, scores, counts of children, hours or percents
YEARS = (1800, 2200)  # whole numbers between these are taken for years


def amounts(values: ArrayLike) -> bool:
    """Return whether numbers may be amounts: none is negative, and they are no whole numbers like ages or years.

    >>> [amounts(x) for x in ([1200.0, 0.0, 88000.0], [0.4, 12.5], [34, 81, 7], [1984, 2019], [-3.5])]
    [True, True, False, False, False]
    """
    value = np.asarray(values, np.float64)
    known = value[np.isfinite(value)]
    if not known.size or known.min() < 0:
        return False
    whole = bool((known == np.floor(known)).all())
    low, high = float(known.min()), float(known.max())
    return not whole or not (high <= LARGEST_AGE or YEARS[0] <= low <= high <= YEARS[1])


def dominated(classes: ArrayLike | Sorted, values: ArrayLike, n: int = 1, k: float = 75.0) -> Flags:
    """Return for each class whether its n largest values make more than k percent of its total.

    >>> dominated([0, 0, 0, 1, 1, 1], [80.0, 10.0, 10.0, 40.0, 30.0, 30.0]).tolist()
    [True, False]
    """
    here = Sorted.of(classes)
    value = here.absolute(values)
    totals = here.sums(value)
    top = sum((here.take_largest(value) for _ in range(n)), np.zeros(len(totals)))
    return here.by_label(top > k / 100.0 * totals)


def within_percent(classes: ArrayLike | Sorted, values: ArrayLike, p: float = 10.0) -> Flags:
    """Return for each class whether its second largest can tell the largest to within p percent.

    >>> within_percent([0, 0, 0, 1, 1, 1], [80.0, 15.0, 5.0, 40.0, 30.0, 30.0]).tolist()
    [True, False]
    """
    here = Sorted.of(classes)
    value = here.absolute(values)
    first = here.take_largest(value)
    here.take_largest(value)
    return here.by_label(here.sums(value) < p / 100.0 * first)


def given_away(classes: ArrayLike | Sorted, values: ArrayLike, k: float = 75.0, p: float = 10.0) -> tuple[Flags, Flags]:
    """Return `dominated` by one value and `within_percent`, both from one look at the values.

    >>> [each.tolist() for each in given_away([0, 0, 0, 1, 1, 1], [80.0, 15.0, 5.0, 40.0, 30.0, 30.0])]
    [[True, False], [True, False]]
    """
    here = Sorted.of(classes)
    value = here.absolute(values)
    totals = here.sums(value)
    first = here.take_largest(value)
    here.take_largest(value)
    return here.by_label(first > k / 100.0 * totals), here.by_label(here.sums(value) < p / 100.0 * first)


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
