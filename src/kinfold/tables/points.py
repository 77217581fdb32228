"""Points: the records as a partitioner sees them, numbers and codes with one distance over both.

The squared distance of two records is the sum over their attributes, in this order:

    numbers   (a - b)²                         continuous and date attributes, standardized and weighted by the caller
    codes     scale.squared_distances(a)[b]    ordinal and nominal attributes, squared and weighted by their scale

The codes of a scale are ordered so that distances never decrease while moving away from a code in either direction.
An index over numbers and codes can therefore bound a whole box of records by the two ends of each attribute.

The centre of a set of points is the mean of each number (the exact sum, rounded once, over the count), the lower
median of an `OrdinalScale` code and the most frequent `NominalScale` code (the lowest code wins a tie).
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

MAX_MAGNITUDE = 1e150  # of a number: the square of a larger one could overflow
# Up to this number of records numpy needs a tenth of a second. The compiler needs some seconds once, and the import of
# numba half a second always.
MAX_UNCOMPILED_RECORDS = 3_000


@dataclass(frozen=True, eq=False)
class OrdinalScale:
    """An ordinal attribute: Eq. (1) of Domingo-Ferrer & Torra 2005, steps over the number of categories.

    Codes are ranks, 0 to size - 1. The code `size` is null, at distance 1 from every category.

    >>> OrdinalScale(4).squared_distances(0).tolist()
    [0.0, 0.0625, 0.25, 0.5625, 1.0]
    """

    size: int
    weight: float = 1.0

    @property
    def codes(self) -> int:
        """The number of codes, null included."""
        return self.size + 1

    def squared_distances(self, code: int) -> Floats:
        """Return the squared, weighted distance of `code` to every code."""
        codes = np.arange(self.codes)
        steps = self.distances(np.full_like(codes, code), codes)
        return self.weight * steps * steps

    def distances(self, one: NDArray[np.integer], other: NDArray[np.integer]) -> Floats:
        """Return the distance of each code of `one` to that of `other`, neither squared nor weighted.

        >>> OrdinalScale(4).distances(np.array([0, 1, 4]), np.array([3, 4, 4])).tolist()
        [0.75, 1.0, 0.0]
        """
        null = (one == self.size) | (other == self.size)
        return np.where(null, np.not_equal(one, other), np.abs(one - other) / max(self.size, 1)).astype(np.float64)


@dataclass(frozen=True, eq=False)
class NominalScale:
    """A nominal attribute: the level of the lowest common ancestor over the height.

    `paths[code, level]` numbers the ancestor of a code at each level, from the code itself up to the top, which all
    share. Without a hierarchy the height is 1 and the distance 0 or 1. Codes under one ancestor are adjacent.

    >>> NominalScale.flat(3).squared_distances(1).tolist()
    [1.0, 0.0, 1.0]
    >>> NominalScale(np.array([[0, 0, 0], [1, 0, 0], [2, 1, 0]], np.int32)).squared_distances(0).tolist()
    [0.0, 0.25, 1.0]
    """

    paths: Codes
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not _is_contiguous_tree(self.paths):
            what = "the paths of a hierarchy do not make a tree, or codes under one ancestor are not adjacent"
            raise DataError(what, fix="number the codes in the order of their ancestors, from the top down")

    @classmethod
    def flat(cls, codes: int, weight: float = 1.0) -> NominalScale:
        """Return a scale without a hierarchy: the distance is 0 or 1."""
        leaves = np.arange(codes, dtype=np.int32)
        return cls(np.column_stack([leaves, np.zeros(codes, np.int32)]), weight)

    @property
    def codes(self) -> int:
        """The number of codes."""
        return len(self.paths)

    @property
    def height(self) -> int:
        """The number of steps from a value to the top."""
        return int(self.paths.shape[1]) - 1

    def squared_distances(self, code: int) -> Floats:
        """Return the squared, weighted distance of `code` to every code."""
        level = (self.paths != self.paths[code]).sum(axis=1)
        step = level / self.height
        return np.asarray(self.weight * step * step, np.float64)

    def distances(self, one: NDArray[np.integer], other: NDArray[np.integer]) -> Floats:
        """Return the distance of each code of `one` to that of `other`, neither squared nor weighted.

        >>> paths = np.array([[0, 0, 0], [1, 0, 0], [2, 1, 0]], np.int32)
        >>> NominalScale(paths).distances(np.array([0, 0]), np.array([1, 2]))
        array([0.5, 1. ])
        """
        level = np.zeros(np.broadcast_shapes(one.shape, other.shape))
        for ancestor in self.paths.T:
            level += ancestor[one] != ancestor[other]
        return np.asarray(level / max(self.height, 1), np.float64)


Scale: TypeAlias = OrdinalScale | NominalScale


@dataclass(frozen=True, eq=False)
class Points:
    """n records: `numbers` (n, a) and `codes` (n, b), with a scale for each column of codes."""

    numbers: Floats
    codes: Codes
    scales: tuple[Scale, ...] = ()

    def __post_init__(self) -> None:
        if len(self.numbers) != len(self.codes) or self.codes.shape[1] != len(self.scales):
            what = f"points have numbers {self.numbers.shape}, codes {self.codes.shape} and {len(self.scales)} scales"
            fix = "give one row of numbers and one of codes for each record, and one scale for each column of codes"
            raise DataError(what, fix=fix)
        if self.numbers.shape[1] + self.codes.shape[1] == 0:
            raise DataError("points have no attribute", fix="give at least one column of numbers or codes")
        for column, scale in zip(self.codes.T, self.scales, strict=True):
            if len(column) and not 0 <= column.min() <= column.max() < scale.codes:
                raise DataError("a code is not in its scale", fix="number the codes of a column from 0")
        _check_values(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    @classmethod
    def from_array(cls, x: object) -> Points:
        """Return points unchanged, or make them from an array of numbers (records by attributes) after a check."""
        if isinstance(x, Points):
            return x
        numbers = _convert_to_floats(x)
        return cls(numbers, np.empty((len(numbers), 0), np.int32))

    def take(self, rows: NDArray[np.intp]) -> Points:
        """Return the points of these rows."""
        return Points(self.numbers[rows], self.codes[rows], self.scales)


def check_k(points: Points, k: int) -> int:
    """Return k if it is a whole number from 2 to the number of records; otherwise raise."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 2:
        raise PolicyError(f"k is {k!r}", fix="set k to a whole number from 2 up")
    if k > len(points):
        what = f"k is {k}, but there are only {plural(len(points), 'record')}"
        raise Unreachable(what, fix="lower k, or add records")
    return int(k)


def _convert_to_floats(x: object) -> Floats:
    array = np.asarray(x)
    if array.ndim != 2 or array.shape[1] == 0:
        fix = "give records by attributes: x.reshape(-1, 1) for one attribute"
        raise DataError(f"x has the shape {array.shape}", fix=fix)
    if array.dtype.kind not in "iuf" or array.dtype.itemsize > 8:
        raise DataError(f"x holds {array.dtype}, not numbers", fix="give an array of floats")
    return np.ascontiguousarray(array, np.float64)


def _check_values(numbers: Floats) -> None:
    if not np.isfinite(numbers).all():
        raise DataError("x holds missing or infinite values", fix="impute or drop those records first")
    if numbers.size and max(numbers.max(), -numbers.min()) > MAX_MAGNITUDE:
        raise DataError(f"x holds values beyond {MAX_MAGNITUDE:.0e}", fix="standardize the columns first")


def _is_contiguous_tree(paths: Codes) -> bool:
    """Whether codes differ and share the top, and the codes of each ancestor are adjacent and share the next one."""
    if paths.ndim != 2 or paths.shape[1] < 2 or (paths[:, -1] != paths[0, -1]).any():
        return False
    if len(np.unique(paths[:, 0])) < len(paths):
        return False
    changes = paths[1:] != paths[:-1]
    groups = [len(np.unique(level)) for level in paths.T]
    return bool((changes[:, :-1] >= changes[:, 1:]).all() and (changes.sum(axis=0) + 1 == groups).all())
