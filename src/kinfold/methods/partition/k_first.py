"""k-anonymity-first: clusters of near records, whose members are exchanged until each cluster is close enough.

    while records are left:
        r = the record farthest from the centre of what is left; a cluster around r
        s = the record of the rest farthest from r; a cluster around s
    a cluster: the k records nearest to its seed; while it is not t-close, the next nearest record takes the place of
    the member where that lowers the distance most, if it lowers it
    clusters that still miss their promises are merged (Algorithm 1)

Reading of the paper: when fewer than 2k records are left, they are the last cluster; the merge repairs it.

Paper: Soria-Comas, Domingo-Ferrer, Sánchez & Martínez, TKDE 27 (2015), Algorithm 2.
Cost: far below O(n²) for one column of ordered values, from box trees (see `kernels.k_first`); else, with e exchanges
in a cluster, O(n² (d + e k) / k), at worst O(n² k). The merge is O(n² / k).
Ties: the lowest row index.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from kinfold import kernels
from kinfold.methods.partition.index import advance_in_steps, grow_trees, start_unfolded_run
from kinfold.methods.partition.mdav import ExactCentre, RemainingRecords, get_place
from kinfold.methods.partition.requirement import Requirement, closeness_requirements, pack_promises
from kinfold.methods.partition.t_merge import merge_classes
from kinfold.policy.registry import Declaration
from kinfold.progress import Progress, no_progress
from kinfold.tables.points import Labels, Points, check_k

if TYPE_CHECKING:
    from kinfold.kernels.promises import Promises
    from kinfold.methods.task import Task

METHOD = Declaration(
    name="k-first",
    family="partition",
    summary="near records, exchanged until each class is t-close (Algorithm 2 of paper 004)",
    page="t-closeness",
    needs=("t",),
    kernels=("box_tree", "clustering", "k_first", "promises", "t_merge", "repair"),
    cost=(40.0, 1.7),
)

STRATA_SHARE = 0.5  # strata of the values, times the square root of the records (by trial)


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
    if len(requirements) == 1 and requirements[0].criterion.statistic == "ordered":
        return _form_by_distance(points, k, promises, progress)
    kernel = kernels.load("k_first")
    cluster = np.empty(k, np.int32)
    labels = np.empty(len(points), np.int32)
    left = RemainingRecords(points, np.arange(len(points)))
    centre = ExactCentre(points)
    label, seed = 0, -1
    while len(left) >= 2 * k:
        place = centre.place() if label % 2 == 0 else get_place(points, seed)
        seed = left.find_farthest(place)[1]
        kernel.complete(promises, left.rows, left.distances(get_place(points, seed)), cluster)
        labels[cluster] = label
        label += 1
        centre.remove(cluster.astype(np.intp))
        left.remove(np.searchsorted(left.rows, np.sort(cluster)))
        progress(len(points) - len(left), len(points))
    labels[left.rows] = label
    return labels


def _form_by_distance(points: Points, k: int, promises: Promises, progress: Progress) -> Labels:
    """Form the clusters for one distance over ordered values, from a box tree for each stratum of the values."""
    kernel, codes = kernels.load("k_first"), promises.codes[0]
    run = start_unfolded_run(points, k)
    state = run.state[0]
    while state.records >= 2 * k:
        left = np.flatnonzero(run.labels < 0).astype(np.int32)
        order = left[np.argsort(codes[left], kind="stable")]
        strata = np.array_split(order, max(1, round(STRATA_SHARE * math.sqrt(len(left)))))
        low, high = (codes[[rows[end] for rows in strata]].astype(np.int64) for end in (0, -1))
        tree, exchange = grow_trees(run, points, strata), kernel.make_exchange(k, low, high)
        for _ in advance_in_steps(run, partial(kernel.advance, run, tree, promises, exchange), progress):
            pass
    labels: Labels = run.labels
    labels[labels < 0] = state.label
    return labels
