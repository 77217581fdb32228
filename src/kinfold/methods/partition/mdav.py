"""MDAV-generic: fixed-size microaggregation.

    while at least 3k records are left:
        r = the record farthest from the centre of what is left; a cluster of r and its k-1 nearest
        s = the record of the rest farthest from r; a cluster of s and its k-1 nearest
    if at least 2k are left: one more cluster around the record farthest from the centre
    the rest is the last cluster

Paper: Domingo-Ferrer & Torra, Data Min. Knowl. Discov. 11 (2005), Algorithm 5.1, with s taken from the rest.
Cost: O(n² d / k) time here, O(n d) memory.   Ties: the lowest row index wins.

Up to `SMALL` records this file does it, with numpy alone, and nobody waits for a compiler. Larger tables go through
`mdav_compiled`: the same labels, bit for bit, from a tree of boxes in far less than quadratic time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold.methods.partition.centre import Centre
from kinfold.progress import silent
from kinfold.request.methods import Declaration
from kinfold.rows.points import Points, checked_size

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kinfold.methods.task import Task
    from kinfold.progress import Progress
    from kinfold.rows.points import Codes, Floats, Labels

METHOD = Declaration(
    name="mdav",
    family="partition",
    summary="MDAV-generic (paper 000), exact",
    page="mdav",
    kernels=("mdav_task", "mdav_tree", "mdav_flat"),
    auto="the best start for refinement by local search",
    order=1,
)

SMALL = 3000  # a tenth of a second here; a compiler would take some seconds once, numba's import half a second always


def mdav(x: object, k: int, *, progress: Progress = silent) -> Labels:
    """Return one cluster label per record of `x`, in the order of forming; every cluster has k to 2k-1 records.

    >>> mdav(np.array([[0.0], [1.0], [5.0], [6.0], [9.0], [10.0]]), 2).tolist()
    [0, 0, 2, 2, 1, 1]
    """
    points = Points.of(x)
    k = checked_size(points, k)
    if len(points) <= SMALL:
        return mdav_plain(points, k, progress)
    from kinfold.methods.partition.mdav_compiled import mdav_compiled

    return mdav_compiled(points, k, progress)


def run(records: Points, task: Task, progress: Progress) -> Labels:
    """Return the classes of a task."""
    return mdav(records, task.k, progress=progress)


def mdav_plain(points: Points, k: int, progress: Progress) -> Labels:
    """Return the labels by the steps at the top of this file."""
    labels = np.empty(len(points), np.int32)
    left = _Left(points)
    label = 0
    while len(left) >= 2 * k:
        two = len(left) >= 3 * k
        r = left.farthest(*left.centre())
        labels[left.take_nearest(r, k)] = label
        label += 1
        if two:
            s = left.farthest(points.numbers[r], points.codes[r])
            labels[left.take_nearest(s, k)] = label
            label += 1
        progress(len(points) - len(left), len(points))
    labels[left.rows] = label
    progress(len(points), len(points))
    return labels


class _Left:
    """The records that are left, column by column, in the order of their rows."""

    def __init__(self, points: Points) -> None:
        self.rows = np.arange(len(points))
        self._points = points
        self._numbers = np.ascontiguousarray(points.numbers.T)
        self._codes = np.ascontiguousarray(points.codes.T)
        self._centre = Centre(points)

    def __len__(self) -> int:
        return len(self.rows)

    def centre(self) -> tuple[Floats, Codes]:
        """Numbers and codes of the centre of what is left."""
        return self._centre.numbers(), self._centre.codes()

    def farthest(self, numbers: Floats, codes: Codes) -> int:
        """Row of the record farthest from this place."""
        return int(self.rows[self._distances(numbers, codes).argmax()])

    def take_nearest(self, row: int, k: int) -> NDArray[np.intp]:
        """Take away the k records nearest to the record `row`, itself among them, and return their rows."""
        distances = self._distances(self._points.numbers[row], self._points.codes[row])
        edge = np.partition(distances, k - 1)[k - 1]
        near = distances < edge
        near[np.flatnonzero(distances == edge)[: k - np.count_nonzero(near)]] = True
        taken = self.rows[near]
        self._centre.leave(taken)
        stay = ~near
        self.rows = self.rows[stay]
        self._numbers = self._numbers[:, stay]
        self._codes = self._codes[:, stay]
        return np.asarray(taken, np.intp)

    def _distances(self, numbers: Floats, codes: Codes) -> Floats:
        """Squared distances, added attribute after attribute: the order of the kernels and of the twin."""
        steps = self._numbers - numbers[:, None]
        steps *= steps
        total = np.zeros(len(self))
        for square in steps:
            total += square
        for scale, code, column in zip(self._points.scales, codes, self._codes, strict=True):
            total += scale.gaps(int(code))[column]
        return total
