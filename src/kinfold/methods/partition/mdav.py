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
from kinfold.methods.partition.remaining import RemainingRecords, points_at
from kinfold.progress import silent
from kinfold.request.methods import Declaration
from kinfold.rows.points import SMALL, Points, checked_size

if TYPE_CHECKING:
    from kinfold.methods.task import Task
    from kinfold.progress import Progress
    from kinfold.rows.points import Labels

METHOD = Declaration(
    name="mdav",
    family="partition",
    summary="MDAV-generic (paper 000), exact",
    page="mdav",
    kernels=("box_tree", "clustering", "mdav_tree", "mdav_flat"),
    auto="the best start for refinement by local search",
    cost=(0.4, 1.6),
    order=1,
)


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
    labels = np.full(len(points), -1, np.int32)
    left, centre = RemainingRecords(points, np.arange(len(points))), Centre(points)
    label = 0
    while len(left) >= 2 * k:
        place = (centre.numbers(), centre.codes())
        for _ in range(2 if len(left) >= 3 * k else 1):
            _, seed = left.farthest(place)
            place = points_at(points, seed)
            taken = left.take(place, k)
            centre.leave(taken)
            labels[taken] = label
            label += 1
        progress(len(points) - len(left), len(points))
    labels[left.rows] = label
    progress(len(points), len(points))
    return labels
