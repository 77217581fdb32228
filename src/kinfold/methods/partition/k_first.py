"""k-anonymity-first: clusters of near records, whose members are exchanged until each cluster is close enough.

    while records are left:
        r = the record farthest from the centre of what is left; a cluster around r
        s = the record of the rest farthest from r; a cluster around s
    a cluster: the k records nearest to its seed; while it is not t-close, the next nearest record takes the place of
    the member where that lowers the distance most, if it lowers it
    clusters that still miss their promises are merged (Algorithm 1)

Reading of the paper: when fewer than 2k records are left, they are the last cluster; the merge repairs it.

Paper: Soria-Comas, Domingo-Ferrer, Sánchez & Martínez, TKDE 27 (2015), Algorithm 2.
Cost: O(n² (d + e k) / k) with e exchanges in a cluster; at worst O(n² k) with several columns.
Ties: the lowest row index.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kinfold import kernels
from kinfold.methods.partition.mdav import ExactCentre, RemainingRecords, get_place
from kinfold.methods.partition.requirement import Requirement, closeness_requirements, pack_promises
from kinfold.methods.partition.t_merge import merge_classes
from kinfold.policy.registry import Declaration
from kinfold.progress import Progress, no_progress
from kinfold.tables.points import Labels, Points, check_k

if TYPE_CHECKING:
    from kinfold.methods.task import Task

METHOD = Declaration(
    name="k-first",
    family="partition",
    summary="near records, exchanged until each class is t-close (Algorithm 2 of paper 004)",
    page="t-closeness",
    needs=("t",),
    kernels=("k_first", "promises", "t_merge", "repair"),
    cost=(700.0, 2.0),
)


def k_first(x: object, k: int, *, confidential: object, t: object, progress: Progress = no_progress) -> Labels:
    """Return one label per record; every cluster has at least k records and is within t of every column.

    >>> x = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> k_first(x, 2, confidential=[1, 4, 2, 3], t=0.2).tolist()
    [0, 0, 1, 1]
    """
    points = Points.from_array(x)
    k = check_k(points, k)
    requirements = closeness_requirements(confidential, t, len(points))
    labels = form_clusters(points, k, requirements, progress=progress)
    return merge_classes(points, labels, requirements)[0]


def run(records: Points, task: Task, progress: Progress) -> Labels:
    """Return the classes of a task. Classes that still miss a promise are repaired, as with any method."""
    return form_clusters(records, task.k, task.requirements(), progress=progress)


def form_clusters(
    points: Points, k: int, requirements: Sequence[Requirement], *, progress: Progress = no_progress
) -> Labels:
    """Return the clusters of Algorithm 2 before the merge. The last ones may miss their promises."""
    promises = pack_promises(requirements, len(points))
    one_ordered = len(requirements) == 1 and requirements[0].criterion.statistic == "ordered"
    kernel = kernels.load("k_first")
    complete = kernel.complete_ordered if one_ordered else kernel.complete
    cluster = np.empty(k, np.int32)
    labels = np.empty(len(points), np.int32)
    left = RemainingRecords(points, np.arange(len(points)))
    centre = ExactCentre(points)
    label, seed = 0, -1
    while len(left) >= 2 * k:
        place = centre.place() if label % 2 == 0 else get_place(points, seed)
        seed = left.find_farthest(place)[1]
        complete(promises, left.rows, left.distances(get_place(points, seed)), cluster)
        labels[cluster] = label
        label += 1
        centre.remove(cluster.astype(np.intp))
        left.remove(np.searchsorted(left.rows, np.sort(cluster)))
        progress(len(points) - len(left), len(points))
    labels[left.rows] = label
    return labels
