"""The records that a partitioner has not placed yet, and their exact centre.

`ExactCentre` keeps numbers as integer multiples of their column's smallest unit, so that adding and removing lose
nothing. The sum is rounded once, to nearest even (the result of `math.fsum`), and divided by the count: the kernels,
which hold the same sum in limbs, get the same bits. Codes are counted.

Cost: a few big-integer operations for each number that is removed.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.tables.points import Codes, Floats, OrdinalScale, Points

Place: TypeAlias = tuple[Floats, Codes]  # the numbers and codes to measure distances from

_DOUBLE_BITS = 53  # bits of a double


class ExactCentre:
    """The centre of the points that have not been removed.

    >>> centre = ExactCentre(Points.from_array([[1e16], [1.0], [-1e16]]))
    >>> centre.numbers().tolist()
    [0.3333333333333333]
    >>> centre.remove(np.array([0, 2]))
    >>> centre.numbers().tolist()
    [1.0]
    """

    def __init__(self, points: Points) -> None:
        self._count = len(points)
        # each number as an integer multiple of its column's unit
        fractions, exponents = np.frexp(points.numbers)
        lowest = exponents.min(axis=0, initial=0)
        whole = np.ldexp(fractions, _DOUBLE_BITS).astype(np.int64).astype(object)
        self._units = whole << (exponents - lowest).astype(object)
        self._scale = [Fraction(2) ** int(e - _DOUBLE_BITS) for e in lowest]
        self._sums = self._units.sum(axis=0)
        self._codes = points.codes
        self._scales = points.scales
        self._counts = [np.bincount(points.codes[:, j], minlength=s.codes) for j, s in enumerate(points.scales)]

    def remove(self, rows: NDArray[np.intp]) -> None:
        """Remove these rows."""
        self._count -= len(rows)
        self._sums = self._sums - self._units[rows].sum(axis=0)
        for j, counts in enumerate(self._counts):
            np.subtract.at(counts, self._codes[rows, j], 1)

    def place(self) -> Place:
        """Return the centre as a place: its numbers and its codes."""
        return self.numbers(), self.codes()

    def numbers(self) -> Floats:
        """Return the mean of each column of numbers: the exact sum, rounded once, over the count."""
        sums = [float(total * scale) for total, scale in zip(self._sums, self._scale, strict=True)]
        return np.array(sums, np.float64) / self._count

    def codes(self) -> Codes:
        """Return the lower median of each column of ordinal codes and the mode of each column of nominal ones."""
        middle = (self._count + 1) // 2
        codes = [
            np.searchsorted(counts.cumsum(), middle) if isinstance(scale, OrdinalScale) else counts.argmax()
            for counts, scale in zip(self._counts, self._scales, strict=True)
        ]
        return np.array(codes, np.int32)


def get_place(points: Points, row: int) -> Place:
    """Return the numbers and codes of one record."""
    return points.numbers[row], points.codes[row]


class RemainingRecords:
    """The records that are left, column by column, in the order of their rows. Ties: the lowest row.

    >>> left = RemainingRecords(Points.from_array([[0.0], [1.0], [5.0]]), np.arange(3))
    >>> left.take((np.array([2.0]), np.empty(0, np.int32)), 1).tolist()
    [1]
    >>> left.rows.tolist()
    [0, 2]
    """

    def __init__(self, points: Points, rows: NDArray[np.intp]) -> None:
        self.rows = rows
        self._scales = points.scales
        self._numbers = np.ascontiguousarray(points.numbers[rows].T)
        self._codes = np.ascontiguousarray(points.codes[rows].T)

    def __len__(self) -> int:
        return len(self.rows)

    def find_farthest(self, place: Place) -> tuple[float, int]:
        """Return the squared distance and the row of the record farthest from a place."""
        distances = self.distances(place)
        at = int(distances.argmax())
        return float(distances[at]), int(self.rows[at])

    def take(self, place: Place, k: int) -> NDArray[np.intp]:
        """Remove the k records nearest to a place, and return their rows."""
        distances = self.distances(place)
        edge = np.partition(distances, k - 1)[k - 1]
        near = distances < edge
        near[np.flatnonzero(distances == edge)[: k - np.count_nonzero(near)]] = True
        rows = self.rows[near]
        self._keep(~near)
        return np.asarray(rows, np.intp)

    def remove(self, at: NDArray[np.intp]) -> None:
        """Remove the records at these positions."""
        stay = np.ones(len(self), np.bool_)
        stay[at] = False
        self._keep(stay)

    def _keep(self, stay: NDArray[np.bool_]) -> None:
        self.rows = self.rows[stay]
        self._numbers = self._numbers.compress(stay, axis=1)  # keeps each column contiguous, unlike [:, stay]
        self._codes = self._codes.compress(stay, axis=1)

    def distances(self, place: Place) -> Floats:
        """Return the squared distances to a place, summed attribute by attribute, in the same order as the kernels."""
        steps = self._numbers - place[0][:, None]
        steps *= steps
        total = np.zeros(len(self.rows))
        for square in steps:
            total += square
        for scale, code, column in zip(self._scales, place[1], self._codes, strict=True):
            total += scale.squared_distances(int(code))[column]
        return total
