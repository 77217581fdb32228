"""The earth mover's distance of every class to the whole table, exactly, for all classes at once.

    ordered     m distinct values in order, a step to the next costs 1/(m-1):
                (1/(m-1)) · Σ_v |F_class(v) - F_table(v)|
    equal       any two values are at distance 1:
                ½ Σ_v |p_class(v) - p_table(v)|
    nested      a hierarchy of height H, the distance is the level of the lowest common ancestor over H.
                That is a walk on the tree with edges of length 1/(2H), and the work on an edge is the mass that has to
                cross it, so the distance is the mean over the levels below the top of the equal distance between the
                labels of that level. It is the same number as the sum over nodes in Li et al. 2007.

Reading of paper 004: section 2.2 counts over distinct values, section 7 over record ranks. Here it is over distinct
values, as in Li et al. 2007. Only values that the table holds count; null is one more value, which sorts first.

By hand, for scipy's wasserstein_distance takes one class at a time, in floats, and no hierarchy.

Sums are whole numbers, divided and rounded once: a class at the limit is at the limit, and one beyond it by a hair is
beyond. Where m·n·(largest class) passes 2^62 (a column of two million
distinct values in one class) sums are floats, and a hair is `ROUNDING`.

Papers: Li, Li & Venkatasubramanian, t-closeness, ICDE 2007; Soria-Comas et al., TKDE 27 (2015), section 2.2.
Cost: O(c log c + m) for c cells of the spread; nested times the height. Classes are taken some at a time, so that what
is held beside a large spread is small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.rows.tally import Ints, Spread

Floats: TypeAlias = NDArray[np.float64]
Numbers: TypeAlias = NDArray[Any]

SAFE = 2**62  # whole numbers below it leave room for one more addition
NEAR = 1e-9  # a quotient farther than this from a limit is on its side, however it was rounded
ROUNDING = 1e-12  # forgiven where sums had to be floats
PIECE = 250_000  # classes that are worked on at a time


@dataclass(frozen=True, eq=False)
class ClassDistances:
    """What it takes to turn each class into the table: `moved[i]` of at most `sizes[i] * unit`."""

    moved: Numbers
    sizes: Ints
    unit: int

    def shares(self) -> Floats:
        """Distance of each class, from 0 to 1."""
        whole = self.sizes.astype(np.float64) * float(self.unit)
        return np.divide(self.moved.astype(np.float64), whole, out=np.zeros(len(self.sizes)), where=whole > 0)

    def above(self, limit: float) -> NDArray[np.bool_]:
        """Mark the classes whose distance, rounded once, is above a limit: a tenth is not above 0.1."""
        shares = self.shares()
        if self.moved.dtype.kind == "f":
            return np.asarray(shares > limit + ROUNDING)
        above = shares > limit
        for i in np.flatnonzero((abs(shares - limit) <= NEAR) & (self.sizes > 0)):
            above[i] = float(Fraction(int(self.moved[i]), int(self.sizes[i]) * self.unit)) > limit
        return np.asarray(above)


def ordered(spread: Spread, sizes: Ints) -> Floats:
    """Distance of each class where the values have an order; see `ordered_work`.

    The salaries 3, 4 and 5 of Li et al.'s first class among nine salaries are 3/8 away from the table:

    >>> from kinfold.rows.tally import of_labels
    >>> tally = of_labels(np.array([0, 0, 0, 1, 1, 1, 2, 2, 2]), {"salary": [3, 4, 5, 6, 11, 8, 7, 9, 10]})
    >>> ordered(tally.spreads["salary"], tally.sizes).round(3).tolist()
    [0.375, 0.167, 0.236]
    """
    return ordered_work(spread, sizes).shares()


def ordered_work(spread: Spread, sizes: Ints) -> ClassDistances:
    """Work of each class where the values have an order: a walk over the cells of the spread, not over all values."""
    spread, totals = present(spread)
    values, records = len(totals), int(totals.sum())
    if values < 2:
        return ClassDistances(np.zeros(len(sizes), np.int64), sizes, 1)
    number = np.int64 if values * records * int(sizes.max()) < SAFE else np.float64
    below = np.cumsum(totals)  # records with this value or a lower one
    area = np.concatenate([np.zeros(1, number), np.cumsum(below, dtype=number)])

    def cells(piece: Spread) -> tuple[Ints, Numbers]:
        size = sizes[piece.group].astype(number)
        held, until = _steps(piece, values)
        start = piece.code
        turn = np.clip(np.searchsorted(below, held * records // sizes[piece.group], side="right"), start, until)
        level = held.astype(number) * records
        short = level * (turn - start) - size * (area[turn] - area[start])  # the class is ahead of the table
        beyond = size * (area[until] - area[turn]) - level * (until - turn)  # the table is ahead of the class
        first = np.concatenate([[True], piece.group[1:] != piece.group[:-1]])
        return piece.group, short + beyond + np.where(first, size * area[start], 0)

    return ClassDistances(_summed(spread, cells, np.zeros(len(sizes), number)), sizes, records * (values - 1))


def equal(spread: Spread, sizes: Ints) -> Floats:
    """Distance of each class where any two values are equally far.

    >>> from kinfold.rows.tally import of_labels
    >>> tally = of_labels(np.array([0, 0, 1, 1]), {"disease": ["flu", "flu", "flu", "cold"]})
    >>> equal(tally.spreads["disease"], tally.sizes).tolist()
    [0.25, 0.25]
    """
    return equal_work(spread, sizes).shares()


def equal_work(spread: Spread, sizes: Ints) -> ClassDistances:
    """Work of each class where any two values are equally far: a hierarchy of one level."""
    return nested_work(spread, sizes, np.arange(len(spread.values))[:, None])


def nested(spread: Spread, sizes: Ints, paths: NDArray[np.integer[Any]]) -> Floats:
    """Distance of each class where `paths[code, level]` numbers the labels of each code, the top left out.

    >>> from kinfold.rows.tally import of_labels
    >>> tally = of_labels(np.array([0, 0, 1, 1]), {"disease": ["cold", "flu", "gastritis", "ulcer"]})
    >>> nested(tally.spreads["disease"], tally.sizes, np.array([[0, 0], [1, 0], [2, 1], [3, 1]])).tolist()
    [0.5, 0.5]
    """
    return nested_work(spread, sizes, paths).shares()


def nested_work(spread: Spread, sizes: Ints, paths: NDArray[np.integer[Any]]) -> ClassDistances:
    """Work of each class over a hierarchy, level by level."""
    totals = spread.totals()
    records, height = int(totals.sum()), paths.shape[1]
    if records == 0:
        return ClassDistances(np.zeros(len(sizes), np.int64), sizes, 1)
    cells = _in_order(spread)
    work: Numbers = np.zeros(len(sizes), np.int64 if 2 * height * records * int(sizes.max()) < SAFE else np.float64)
    for level in range(height):
        label = paths[:, level]
        held = np.bincount(label, totals).astype(work.dtype)
        # a label that the class lacks leaves its whole share of the table to be moved in
        start = work + sizes.astype(work.dtype) * records
        work = _summed(cells, partial(_at_level, label, held, sizes, records), start)
    return ClassDistances(work, sizes, 2 * height * records)


def _at_level(
    label: NDArray[np.integer[Any]], held: Numbers, sizes: Ints, records: int, piece: Spread
) -> tuple[Ints, Numbers]:
    """Class and work of each cell, where values of one label are one; `held` are the records of each in the table."""
    group, node, count = _gathered(piece, label)
    due = held[node] * sizes[group].astype(held.dtype)
    return group, abs(count * records - due) - due


def present(spread: Spread) -> tuple[Spread, Ints]:
    """Return the spread in order over the values that occur, and how many records hold each of these."""
    totals = spread.totals()
    held = totals > 0
    number = np.cumsum(held) - 1
    spread = _in_order(spread)
    return Spread(spread.group, number[spread.code], spread.count, spread.values[held]), totals[held]


def _in_order(spread: Spread) -> Spread:
    """Return the cells sorted by class and value, as an engine counts them."""
    cell = spread.group * len(spread.values) + spread.code
    if (cell[1:] >= cell[:-1]).all():
        return spread
    order = np.argsort(cell, kind="stable")
    return Spread(spread.group[order], spread.code[order], spread.count[order], spread.values)


def _steps(spread: Spread, values: int) -> tuple[Ints, Ints]:
    """For each cell: the records of its class up to and with its value, and the next value that the class holds."""
    running = np.cumsum(spread.count)
    last = np.concatenate([spread.group[1:] != spread.group[:-1], [True]])
    before = np.concatenate([[0], running[last][:-1]])
    number = np.concatenate([[0], np.cumsum(last)[:-1]])
    following = np.concatenate([spread.code[1:], [values]])
    return running - before[number], np.where(last, values, following)


def _gathered(spread: Spread, label: NDArray[np.integer[Any]]) -> tuple[Ints, Ints, Ints]:
    """Group, label and count of each cell after the values of one label have become one."""
    width = int(label.max()) + 1
    cell, inverse = np.unique(spread.group * width + label[spread.code], return_inverse=True)
    return cell // width, cell % width, np.bincount(inverse, spread.count, len(cell)).astype(np.int64)


def _summed(spread: Spread, cells: Callable[[Spread], tuple[Ints, Numbers]], total: Numbers) -> Numbers:
    """Add the work of the cells of a spread, some classes at a time, to what their classes have so far."""
    for piece in _pieces(spread, len(total)):
        np.add.at(total, *cells(piece))  # bincount would add in floats; the whole numbers here can pass 2^53
    return total


def _pieces(spread: Spread, classes: int) -> Iterator[Spread]:
    """Cut a spread that is in order between classes."""
    for start, stop in pairwise(np.searchsorted(spread.group, np.arange(0, classes + PIECE, PIECE))):
        here = slice(start, stop)
        if start < stop:  # classes may hold nothing
            yield Spread(spread.group[here], spread.code[here], spread.count[here], spread.values)
