"""The records that are left to a partitioner that takes them away one cluster after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from kinfold.rows.points import Codes, Floats, Points

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Place: TypeAlias = tuple[Floats, Codes]


def points_at(points: Points, row: int) -> Place:
    """Numbers and codes of one record."""
    return points.numbers[row], points.codes[row]


class RemainingRecords:
    """Records that are left, column by column, in the order of their rows.   Ties: the lowest row.

    >>> left = RemainingRecords(Points.of([[0.0], [1.0], [5.0]]), np.arange(3))
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

    def take(self, place: Place, k: int) -> NDArray[np.intp]:
        """Take the k records nearest to a place away, and return their rows."""
        distances = self.distances(place)
        edge = np.partition(distances, k - 1)[k - 1]
        near = distances < edge
        near[np.flatnonzero(distances == edge)[: k - np.count_nonzero(near)]] = True
        taken = self.rows[near]
        self._keep(~near)
        return np.asarray(taken, np.intp)

    def leave(self, at: NDArray[np.intp]) -> None:
        """Take away the records at these positions."""
        stay = np.ones(len(self), np.bool_)
        stay[at] = False
        self._keep(stay)

    def _keep(self, stay: NDArray[np.bool_]) -> None:
        self.rows = self.rows[stay]
        self._numbers = self._numbers.compress(stay, axis=1)  # each column in one piece: [:, stay] would not keep it
        self._codes = self._codes.compress(stay, axis=1)

    def distances(self, place: Place) -> Floats:
        """Squared distances to a place, added attribute after attribute, as everywhere."""
        steps = self._numbers - place[0][:, None]
        steps *= steps
        total = np.zeros(len(self.rows))
        for square in steps:
            total += square
        for scale, code, column in zip(self._scales, place[1], self._codes, strict=True):
            total += scale.gaps(int(code))[column]
        return total


def farthest_of(layers: Sequence[RemainingRecords], place: Place) -> int:
    """Row of the record of any layer that is farthest from a place; the lowest row wins a tie between layers too."""
    found = [layer.farthest(place) for layer in layers if len(layer)]
    best = max(distance for distance, _ in found)
    return min(row for distance, row in found if distance == best)
