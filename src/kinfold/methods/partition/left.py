"""The records that are left to a partitioner that takes them away one cluster after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from kinfold.rows.points import Codes, Floats, Points

if TYPE_CHECKING:
    from numpy.typing import NDArray

Place: TypeAlias = tuple[Floats, Codes]


def points_at(points: Points, row: int) -> Place:
    """Numbers and codes of one record."""
    return points.numbers[row], points.codes[row]


class Left:
    """Records that are left, column by column, in the order of their rows.   Ties: the lowest row.

    >>> left = Left(Points.of([[0.0], [1.0], [5.0]]), np.arange(3))
    >>> left.take_nearest((np.array([2.0]), np.empty(0, np.int32)))
    1
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

    def farthest(self, place: Place) -> tuple[float, int]:
        """Squared distance and row of the record farthest from a place."""
        distances = self.distances(place)
        at = int(distances.argmax())
        return float(distances[at]), int(self.rows[at])

    def take_nearest(self, place: Place) -> int:
        """Take the record nearest to a place away, and return its row."""
        at = self.distances(place).argmin()
        row = int(self.rows[at])
        self.leave(np.array([at]))
        return row

    def leave(self, at: NDArray[np.intp]) -> None:
        """Take away the records at these positions."""
        self.rows = np.delete(self.rows, at)
        self._numbers = np.delete(self._numbers, at, axis=1)
        self._codes = np.delete(self._codes, at, axis=1)

    def distances(self, place: Place) -> Floats:
        """Squared distances to a place, added attribute after attribute, as everywhere."""
        total = np.zeros(len(self.rows))
        for column, number in zip(self._numbers, place[0], strict=True):
            step = column - number
            total += step * step
        for scale, code, column in zip(self._scales, place[1], self._codes, strict=True):
            total += scale.gaps(int(code))[column]
        return total
