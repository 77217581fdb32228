"""t-closeness: the distribution of a confidential column in every class is close to its distribution in the table.

The distance is the earth mover's distance to all records of the same tally, that is, the released table, so a recipient
can check it. It is computed exactly, for all classes at once:

    ordered     m distinct values in order, a step to the next value costs 1/(m-1):
                (1/(m-1)) * sum_v |F_class(v) - F_table(v)|
    equal       any two values are at distance 1:
                1/2 sum_v |p_class(v) - p_table(v)|
    nested      a hierarchy of height H; the distance of two values is the level of their lowest common ancestor over H.
                The result is the mean, over the levels below the top, of the equal distance between the labels of that
                level. It equals the sum over nodes in Li et al. 2007.

Only values that occur in the table count. Null is one more value: it sorts first in an order, and is only under the top
of a hierarchy. Reading of paper 004: section 2.2 counts distinct values, section 7 record ranks; here, as in Li et al.
2007, distinct values count.

This is not scipy's `wasserstein_distance`, which takes one class at a time, in floats, and no hierarchy.

Sums are integers, divided and rounded once, so the comparison with the limit is exact. Where m * n * (largest class)
exceeds 2^62 (for example two million distinct values in one class) sums are floats, compared with `FLOAT_TOLERANCE`.

Papers: Li, Li & Venkatasubramanian, t-closeness, ICDE 2007; Soria-Comas et al., TKDE 27 (2015), section 2.2.
Cost: O(c log c + m) for c cells of the spread, times the height for nested. Classes are processed in chunks, so memory
stays small for a large spread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import DataError, PolicyError
from kinfold.hierarchies import Hierarchy
from kinfold.models.model import EXACT_CHECK_MARGIN, ClassCriterion, Finding, Mask, Promise
from kinfold.tables.schema import normalize_category
from kinfold.tables.tally import Ints, Spread, Tally, is_null

Floats: TypeAlias = NDArray[np.float64]
Numbers: TypeAlias = NDArray[Any]

MAX_EXACT_SUM = 2**62  # below 2^63, with room for one more addition
FLOAT_TOLERANCE = 1e-12  # where sums are floats
CLASSES_PER_CHUNK = 250_000  # limits the memory of intermediate arrays


@dataclass(frozen=True, eq=False)
class ClassDistances:
    """The earth mover's work of each class, as integers: the distance is `work[i] / (sizes[i] * unit)`."""

    work: Numbers
    sizes: Ints
    unit: int

    def distances(self) -> Floats:
        """Return the distance of each class, from 0 to 1."""
        scale = self.sizes.astype(np.float64) * float(self.unit)
        return np.divide(self.work.astype(np.float64), scale, out=np.zeros(len(self.sizes)), where=scale > 0)

    def exceeds(self, limit: float) -> NDArray[np.bool_]:
        """Mark the classes whose distance, rounded once, is above a limit: a tenth is not above 0.1."""
        distances = self.distances()
        if self.work.dtype.kind == "f":
            return np.asarray(distances > limit + FLOAT_TOLERANCE)
        above = distances > limit
        for i in np.flatnonzero((abs(distances - limit) <= EXACT_CHECK_MARGIN) & (self.sizes > 0)):
            above[i] = float(Fraction(int(self.work[i]), int(self.sizes[i]) * self.unit)) > limit
        return np.asarray(above)


def ordered_work(spread: Spread, sizes: Ints) -> ClassDistances:
    """Return the work of each class for ordered values. Loops over the cells of the spread, not over all values."""
    totals = spread.totals()
    present = totals > 0
    cells = _sort_cells(spread)
    spread = Spread(cells.group, (np.cumsum(present) - 1)[cells.code], cells.count, cells.values[present])
    totals = totals[present]
    values, records = len(totals), int(totals.sum())
    if values < 2:
        return ClassDistances(np.zeros(len(sizes), np.int64), sizes, 1)
    number = np.int64 if values * records * int(sizes.max()) < MAX_EXACT_SUM else np.float64
    below = np.cumsum(totals)  # records with this value or a lower one
    area = np.concatenate([np.zeros(1, number), np.cumsum(below, dtype=number)])

    def compute_cells(piece: Spread) -> tuple[Ints, Numbers]:
        size = sizes[piece.group].astype(number)
        held, end = _accumulate_cells(piece, values)
        start = piece.code
        turn = np.clip(np.searchsorted(below, held * records // sizes[piece.group], side="right"), start, end)
        level = held.astype(number) * records
        ahead = level * (turn - start) - size * (area[turn] - area[start])  # the class is ahead of the table
        behind = size * (area[end] - area[turn]) - level * (end - turn)  # the table is ahead of the class
        first = np.concatenate([[True], piece.group[1:] != piece.group[:-1]])
        return piece.group, ahead + behind + np.where(first, size * area[start], 0)

    return ClassDistances(
        _sum_cells(spread, compute_cells, np.zeros(len(sizes), number)), sizes, records * (values - 1)
    )


def equal_work(spread: Spread, sizes: Ints) -> ClassDistances:
    """Return the work of each class if any two values have distance 1: a hierarchy of one level.

    >>> from kinfold.tables.tally import tally_labels
    >>> tally = tally_labels(np.array([0, 0, 1, 1]), {"disease": ["flu", "flu", "flu", "cold"]})
    >>> equal_work(tally.spreads["disease"], tally.sizes).distances().tolist()
    [0.25, 0.25]
    """
    return nested_work(spread, sizes, np.arange(len(spread.values))[:, None])


def nested_work(spread: Spread, sizes: Ints, paths: NDArray[np.integer[Any]]) -> ClassDistances:
    """Return the work of each class over a hierarchy; `paths[code, level]` numbers the labels below the top.

    >>> from kinfold.tables.tally import tally_labels
    >>> tally = tally_labels(np.array([0, 0, 1, 1]), {"disease": ["cold", "flu", "gastritis", "ulcer"]})
    >>> paths = np.array([[0, 0], [1, 0], [2, 1], [3, 1]])
    >>> nested_work(tally.spreads["disease"], tally.sizes, paths).distances().tolist()
    [0.5, 0.5]
    """
    totals = spread.totals()
    records, height = int(totals.sum()), paths.shape[1]
    if records == 0:
        return ClassDistances(np.zeros(len(sizes), np.int64), sizes, 1)
    cells = _sort_cells(spread)
    exact = 2 * height * records * int(sizes.max()) < MAX_EXACT_SUM
    work: Numbers = np.zeros(len(sizes), np.int64 if exact else np.float64)
    for level in range(height):
        label = paths[:, level]
        held = np.bincount(label, totals).astype(work.dtype)
        # a label that the class lacks costs its whole share of the table
        start = work + sizes.astype(work.dtype) * records
        work = _sum_cells(cells, partial(_level_work, label, held, sizes, records), start)
    return ClassDistances(work, sizes, 2 * height * records)


def _level_work(
    label: NDArray[np.integer[Any]], held: Numbers, sizes: Ints, records: int, piece: Spread
) -> tuple[Ints, Numbers]:
    """Return class and work of each cell after merging values of one label; `held` counts the table by label."""
    width = int(label.max()) + 1
    cell, inverse = np.unique(piece.group * width + label[piece.code], return_inverse=True)
    group, count = cell // width, np.bincount(inverse, piece.count, len(cell)).astype(np.int64)
    due = held[cell % width] * sizes[group].astype(held.dtype)
    return group, abs(count * records - due) - due


def _sort_cells(spread: Spread) -> Spread:
    """Return the cells sorted by class and value."""
    cell = spread.group * len(spread.values) + spread.code
    if (cell[1:] >= cell[:-1]).all():
        return spread
    order = np.argsort(cell, kind="stable")
    return Spread(spread.group[order], spread.code[order], spread.count[order], spread.values)


def _accumulate_cells(spread: Spread, values: int) -> tuple[Ints, Ints]:
    """Return for each cell the records of its class up to its value, and the next value of the class."""
    running = np.cumsum(spread.count)
    last = np.concatenate([spread.group[1:] != spread.group[:-1], [True]])
    before = np.concatenate([[0], running[last][:-1]])
    number = np.concatenate([[0], np.cumsum(last)[:-1]])
    following = np.concatenate([spread.code[1:], [values]])
    return running - before[number], np.where(last, values, following)


def _sum_cells(spread: Spread, compute: Callable[[Spread], tuple[Ints, Numbers]], total: Numbers) -> Numbers:
    """Add the work of the cells to the totals of their classes, in chunks of classes."""
    limits = np.arange(0, len(total) + CLASSES_PER_CHUNK, CLASSES_PER_CHUNK)
    for start, stop in pairwise(np.searchsorted(spread.group, limits)):
        chunk = slice(start, stop)
        if start < stop:  # classes can be empty
            piece = Spread(spread.group[chunk], spread.code[chunk], spread.count[chunk], spread.values)
            np.add.at(total, *compute(piece))  # not bincount: it adds floats, and sums can exceed 2^53
    return total


GroundDistance = Literal["ordered", "equal", "hierarchical"]


@dataclass(frozen=True)
class TCloseness:
    """The distribution of the column in each class has at most the distance t to its distribution in the table.

    >>> from kinfold.tables.tally import tally_labels
    >>> tally = tally_labels(np.array([0, 0, 1, 1]), {"wage": [1, 2, 3, 4]})
    >>> TCloseness(0.3, "wage").check(tally).found
    0.3333333333333333
    """

    t: float
    column: str
    distance: GroundDistance = "ordered"
    hierarchy: Hierarchy | None = None
    monotone: ClassVar[bool] = True  # the distance is convex, and the union of two classes is a mixture of them
    absorbing: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 < self.t <= 1:
            raise PolicyError(f"t of {self.column!r} is {self.t}", fix="t is above 0 and at most 1")
        if self.distance not in ("ordered", "equal", "hierarchical"):
            raise PolicyError(
                f"distance of {self.column!r} is {self.distance!r}", fix="one of ordered, equal, hierarchical"
            )
        if (self.hierarchy is None) == (self.distance == "hierarchical"):
            what = f"{self.column!r} has {'no' if self.hierarchy is None else 'a'} hierarchy"
            raise PolicyError(
                f"{what}, and the distance is {self.distance}",
                fix="the distance 'hierarchical' and a hierarchy go together",
            )

    def work(self, tally: Tally) -> ClassDistances:
        """Return the earth mover's work of each class."""
        spread = tally.spreads[self.column]
        sizes = spread.class_totals(len(tally))
        if self.distance == "ordered":
            return ordered_work(spread, sizes)
        if self.hierarchy is None:
            return equal_work(spread, sizes)
        return nested_work(spread, sizes, number_labels(self.hierarchy, spread.values, self.column))

    def distances(self, tally: Tally) -> NDArray[np.float64]:
        """Return the distance of each class to the table, from 0 to 1."""
        return self.work(tally).distances()

    def criterion(self, values: NDArray[Any]) -> ClassCriterion:
        """Return the criterion that a search uses; `values` are the sorted distinct values."""
        if self.distance == "ordered":
            return ClassCriterion("ordered", self.t)
        return ClassCriterion("nested", self.t, paths=self.list_labels(values))

    def list_labels(self, values: NDArray[Any]) -> NDArray[np.int32]:
        """Return the labels of the sorted distinct values at each level; one level if there is no hierarchy."""
        if self.hierarchy is None:
            return np.arange(len(values), dtype=np.int32)[:, None]
        return number_labels(self.hierarchy, values, self.column)

    def failing(self, tally: Tally) -> Mask:
        """Mark the classes with a distance above t."""
        return self.work(tally).exceeds(self.t)

    def check(self, tally: Tally) -> Finding:
        """Compare the largest distance with t."""
        work = self.work(tally)
        largest = float(work.distances().max()) if len(tally) else 0.0
        promise = Promise(f"{self.t}-closeness of {self.column}", "t", self.column, self.t)
        return promise.compare(largest, work.exceeds(self.t), tally)


def number_labels(hierarchy: Hierarchy, values: NDArray[Any], column: str) -> NDArray[np.int32]:
    """Number the labels of each value at each level below the top; null has a label of its own.

    >>> tree = Hierarchy.from_rows([("flu", "lungs"), ("cold", "lungs"), ("ulcer", "stomach")])
    >>> number_labels(tree, np.array([None, "cold", "ulcer"], object), "disease").tolist()
    [[3, 2], [1, 0], [2, 1]]
    """
    null = is_null(values)
    known = {normalize_category(leaf): row for row, leaf in enumerate(hierarchy.values)}
    rows = np.array([known.get(normalize_category(str(value)), -1) for value in values[~null]], np.int64)
    if missing := int((rows < 0).sum()):
        what = f"the hierarchy of {column!r} lacks {missing} of its {len(values)} values"
        raise DataError(what, fix="add them to the hierarchy")
    labels = hierarchy.paths[:, : hierarchy.height]
    numbered = np.empty((len(values), hierarchy.height), np.int32)
    numbered[null] = labels.max(axis=0) + 1
    numbered[~null] = labels[rows]
    return numbered
