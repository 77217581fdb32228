"""Points: the records as a partitioner sees them, numbers and codes with one distance over both.

The squared distance of two records is the sum over their attributes, in this order:

    numbers   (a - b)²                       continuous and date attributes, standardized and weighted by the caller
    codes     scale.gaps(a, b)               ordinal and nominal attributes, squared and weighted by their scale

A scale's codes are ordered so that its gaps never shrink while one moves away from a code, to either side. An
index over numbers and codes can then bound a whole box of records by the two ends of each attribute.

The centre of a set of points is the mean of each number (its exact sum, rounded once, over the count), the lower
median of an `Ordered` code and the most frequent `Nested` code (the lowest code wins a tie).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import DataError, PolicyError, Unreachable, plural

Floats: TypeAlias = NDArray[np.float64]
Labels: TypeAlias = NDArray[np.int32]
Codes: TypeAlias = NDArray[np.int32]

LARGEST = 1e150  # beyond it a square could overflow
# Up to so many records numpy alone takes a tenth of a second; a compiler takes some seconds once, numba's import half a
# second always.
SMALL = 3_000


@dataclass(frozen=True, eq=False)
class Ordered:
    """An ordinal attribute: Eq. (1) of Domingo-Ferrer & Torra 2005, steps over the number of categories.

    Codes are ranks, 0 to size - 1; the code `size` is null: at distance 1 from every category.

    >>> Ordered(4).gaps(0).tolist()
    [0.0, 0.0625, 0.25, 0.5625, 1.0]
    """

    size: int
    weight: float = 1.0

    @property
    def codes(self) -> int:
        """How many codes there are, null included."""
        return self.size + 1

    def gaps(self, code: int) -> Floats:
        """Squared, weighted distance of `code` to every code."""
        if code == self.size:
            steps = np.ones(self.codes)
            steps[code] = 0.0
        else:
            steps = np.abs(np.arange(self.codes, dtype=np.float64) - code) / self.size
            steps[self.size] = 1.0
        return self.weight * steps * steps

    def apart(self, one: NDArray[np.integer], other: NDArray[np.integer]) -> Floats:
        """Distance of each code to the one beside it, neither squared nor weighted.

        >>> Ordered(4).apart(np.array([0, 1, 4]), np.array([3, 4, 4])).tolist()
        [0.75, 1.0, 0.0]
        """
        null = (one == self.size) | (other == self.size)
        return np.where(null, np.not_equal(one, other), np.abs(one - other) / max(self.size, 1)).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Nested:
    """A nominal attribute: the level of the lowest common ancestor over the height.

    `paths[code, level]` numbers the ancestor of a code at each level, from the code itself up to the top, which all
    share. Without a hierarchy the height is 1 and the distance 0 or 1. Codes under one ancestor stand side by side.

    >>> Nested.flat(3).gaps(1).tolist()
    [1.0, 0.0, 1.0]
    >>> Nested(np.array([[0, 0, 0], [1, 0, 0], [2, 1, 0]], np.int32)).gaps(0).tolist()
    [0.0, 0.25, 1.0]
    """

    paths: Codes
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not _side_by_side(self.paths):
            raise DataError(
                "the paths of a hierarchy do not make a tree, or codes under one ancestor do not stand side by side",
                fix="number the codes in the order of their ancestors, from the top down",
            )

    @classmethod
    def flat(cls, codes: int, weight: float = 1.0) -> Nested:
        """Return a scale without a hierarchy: equal or not."""
        leaves = np.arange(codes, dtype=np.int32)
        return cls(np.column_stack([leaves, np.zeros(codes, np.int32)]), weight)

    @property
    def codes(self) -> int:
        """How many codes there are."""
        return len(self.paths)

    @property
    def height(self) -> int:
        """How many steps lead from a value to the top."""
        return int(self.paths.shape[1]) - 1

    def gaps(self, code: int) -> Floats:
        """Squared, weighted distance of `code` to every code."""
        level = (self.paths != self.paths[code]).sum(axis=1)
        step = level / self.height
        return np.asarray(self.weight * step * step, np.float64)

    def apart(self, one: NDArray[np.integer], other: NDArray[np.integer]) -> Floats:
        """Distance of each code to the one beside it, neither squared nor weighted.

        >>> Nested(np.array([[0, 0, 0], [1, 0, 0], [2, 1, 0]], np.int32)).apart(np.array([0, 0]), np.array([1, 2]))
        array([0.5, 1. ])
        """
        level = np.zeros(np.broadcast_shapes(one.shape, other.shape))
        for ancestor in self.paths.T:
            level += ancestor[one] != ancestor[other]
        return np.asarray(level / max(self.height, 1), np.float64)


Scale: TypeAlias = Ordered | Nested


@dataclass(frozen=True, eq=False)
class Points:
    """n records: `numbers` (n, a) and `codes` (n, b), with a scale for each column of codes."""

    numbers: Floats
    codes: Codes
    scales: tuple[Scale, ...] = ()

    def __post_init__(self) -> None:
        if len(self.numbers) != len(self.codes) or self.codes.shape[1] != len(self.scales):
            raise DataError(
                f"points with numbers {self.numbers.shape}, codes {self.codes.shape} and {len(self.scales)} scales",
                fix="give one row of numbers and one of codes for each record, and one scale for each column of codes",
            )
        if self.numbers.shape[1] + self.codes.shape[1] == 0:
            raise DataError("points without any attribute", fix="give at least one column of numbers or codes")
        for column, scale in zip(self.codes.T, self.scales, strict=True):
            if len(column) and not 0 <= column.min() <= column.max() < scale.codes:
                raise DataError("codes beyond their scale", fix="number the codes of a column from 0")
        _check_values(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    @classmethod
    def of(cls, x: object) -> Points:
        """Take points as they are, and an array of numbers (records by attributes) after a check."""
        if isinstance(x, Points):
            return x
        numbers = _checked(x)
        return cls(numbers, np.empty((len(numbers), 0), np.int32))

    def take(self, rows: NDArray[np.intp]) -> Points:
        """Return the points of these rows."""
        return Points(self.numbers[rows], self.codes[rows], self.scales)


def checked_size(points: Points, k: int) -> int:
    """Return k if it is a whole number from 2 to the number of records, or say why not."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 2:
        raise PolicyError(f"k is {k!r}", fix="k is a whole number from 2 up")
    if k > len(points):
        raise Unreachable(
            f"k is {k}, but there are only {plural(len(points), 'record')}", fix="lower k, or bring more records"
        )
    return int(k)


def _checked(x: object) -> Floats:
    array = np.asarray(x)
    if array.ndim != 2 or array.shape[1] == 0:
        raise DataError(
            f"x has the shape {array.shape}", fix="give records by attributes: x.reshape(-1, 1) for one attribute"
        )
    if array.dtype.kind not in "iuf" or array.dtype.itemsize > 8:
        raise DataError(f"x holds {array.dtype}, not numbers", fix="give an array of floats")
    return np.ascontiguousarray(array, np.float64)


def _check_values(numbers: Floats) -> None:
    if not np.isfinite(numbers).all():
        raise DataError("x holds values that are missing or infinite", fix="impute or drop those records first")
    if numbers.size and max(numbers.max(), -numbers.min()) > LARGEST:
        raise DataError(f"x holds values beyond {LARGEST:.0e}", fix="standardize the columns first")


def _side_by_side(paths: Codes) -> bool:
    """Whether all codes differ and share the top, and each ancestor's codes are neighbours with one ancestor above."""
    if paths.ndim != 2 or paths.shape[1] < 2 or (paths[:, -1] != paths[0, -1]).any():
        return False
    if len(np.unique(paths[:, 0])) < len(paths):
        return False
    turns = paths[1:] != paths[:-1]
    groups = [len(np.unique(level)) for level in paths.T]
    return bool((turns[:, :-1] >= turns[:, 1:]).all() and (turns.sum(axis=0) + 1 == groups).all())
