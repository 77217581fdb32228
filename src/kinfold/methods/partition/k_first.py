"""k-anonymity-first: clusters of near records, whose members are exchanged until each is as close as asked.

    while records are left:
        r = the record farthest from the centre of what is left; a cluster around r
        s = the record of the rest farthest from r; a cluster around s
    a cluster: the k records nearest to its seed; while it is not t-close, the next nearest record takes the place of
    the member where that lowers the distance most, if it lowers it
    clusters that still miss their promises are merged (Algorithm 1)

Reading of the paper: fewer than 2k records left are the last cluster, as they are; the merge finishes.

Paper: Soria-Comas, Domingo-Ferrer, Sánchez & Martínez, TKDE 27 (2015), Algorithm 2.
Cost: O(n² (d + e k) / k) for e exchanges a cluster; several columns at once O(n² k) at worst.
Ties: the lowest row index.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kinfold import kernels
from kinfold.methods.partition.centre import Centre
from kinfold.methods.partition.remaining import RemainingRecords, points_at
from kinfold.methods.partition.requirement import Requirement, closeness, packed
from kinfold.methods.partition.t_merge import merged
from kinfold.progress import silent
from kinfold.request.methods import Declaration
from kinfold.rows.points import Points, checked_size

if TYPE_CHECKING:
    from kinfold.methods.task import Task
    from kinfold.progress import Progress
    from kinfold.rows.points import Labels

METHOD = Declaration(
    name="k-first",
    family="partition",
    summary="near records, exchanged until each class is t-close (Algorithm 2 of paper 004)",
    page="t-closeness",
    needs=("t",),
    kernels=("k_first", "class_misses", "t_merge", "near_kinds", "repair"),
    cost=(700.0, 2.0),
    order=6,
)


def k_first(x: object, k: int, *, confidential: object, t: object, progress: Progress = silent) -> Labels:
    """Return one label per record; every cluster has at least k records and is within t of every column.

    >>> x = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> k_first(x, 2, confidential=[1, 4, 2, 3], t=0.2).tolist()
    [0, 0, 1, 1]
    """
    points = Points.of(x)
    k = checked_size(points, k)
    requirements = closeness(confidential, t, len(points))
    labels = clustered(points, k, requirements, progress=progress)
    return merged(points, labels, requirements)[0]


def run(records: Points, task: Task, progress: Progress) -> Labels:
    """Return the classes of a task; those that still miss a promise are left to repair, as with any method."""
    return clustered(records, task.k, task.requirements(), progress=progress)


def clustered(points: Points, k: int, requirements: Sequence[Requirement], *, progress: Progress = silent) -> Labels:
    """Return the clusters of Algorithm 2 before the merge; the last ones may miss their promises."""
    limits = packed(requirements, len(points))
    alone = len(requirements) == 1 and requirements[0].criterion.statistic == "ordered"
    kernel = kernels.load("k_first")
    finish = kernel.complete_ordered if alone else kernel.complete
    taken = np.empty(k, np.int32)
    labels = np.empty(len(points), np.int32)
    left = RemainingRecords(points, np.arange(len(points)))
    centre = Centre(points)
    label, seed = 0, -1
    while len(left) >= 2 * k:
        place = (centre.numbers(), centre.codes()) if label % 2 == 0 else points_at(points, seed)
        seed = left.farthest(place)[1]
        finish(limits, left.rows, left.distances(points_at(points, seed)), taken)
        labels[taken] = label
        label += 1
        centre.leave(taken.astype(np.intp))
        left.leave(np.searchsorted(left.rows, np.sort(taken)))
        progress(len(points) - len(left), len(points))
    labels[left.rows] = label
    return labels
