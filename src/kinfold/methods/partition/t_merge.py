"""Microaggregation, then merging: clusters are merged until each is close enough to the table.

    partition the records into clusters of at least k
    while some cluster misses its promises: merge the one that misses them most with the cluster nearest to it

One cluster of all records is the table itself, so t-closeness is always reached.

Paper: Soria-Comas, Domingo-Ferrer, Sánchez & Martínez, TKDE 27 (2015), Algorithm 1.
Cost: that of the partition and O(n² / k).   Ties: the cluster of the lowest label.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from kinfold import kernels
from kinfold.errors import DataError
from kinfold.methods.partition.geometry import renumber
from kinfold.methods.partition.index import to_kernel_records
from kinfold.methods.partition.mdav import mdav
from kinfold.methods.partition.requirement import Requirement, closeness_requirements, pack_promises, require_reachable
from kinfold.policy.registry import Declaration
from kinfold.progress import Progress, no_progress
from kinfold.tables.points import Labels, Points, check_k

if TYPE_CHECKING:
    from kinfold.kernels.promises import Promises
    from kinfold.kernels.t_merge import Merger
    from kinfold.methods.task import Task

METHOD = Declaration(
    name="t-merge",
    family="partition",
    summary="classes of mdav, merged until each is t-close (Algorithm 1 of paper 004)",
    page="t-closeness",
    needs=("t",),
    kernels=("box_tree", "clustering", "mdav", "promises", "t_merge", "repair"),
    cost=(100.0, 2.0),
)

MERGES_PER_CALL = 200  # between two progress reports


def t_merge(
    x: object,
    k: int,
    *,
    confidential: object,
    t: object,
    start: Callable[[Points, int], Labels] | ArrayLike = mdav,
    progress: Progress = no_progress,
) -> Labels:
    """Return one label per record: the clusters of `start` (a partitioner or labels), merged until each is t-close.

    >>> t_merge(np.array([[0.0], [1.0], [5.0], [6.0]]), 2, confidential=[1, 2, 3, 4], t=0.2).tolist()
    [0, 0, 0, 0]
    """
    points = Points.from_array(x)
    k = check_k(points, k)
    labels = np.asarray(start(points, k) if callable(start) else start, np.int32)
    if labels.shape != (len(points),):
        raise DataError(f"the labels to start from have the shape {labels.shape}", fix="give one label for each record")
    return merge_classes(points, labels, closeness_requirements(confidential, t, len(points)), progress=progress)[0]


def run(records: Points, task: Task, progress: Progress) -> Labels:
    """Return the classes of a task, merged until each keeps every promise about its rows."""
    start = mdav(records, task.k, progress=progress)
    return merge_classes(records, start, task.requirements(), progress=progress)[0]


def merge_classes(
    points: Points,
    labels: Labels,
    requirements: Sequence[Requirement],
    *,
    limit: int | None = None,
    progress: Progress = no_progress,
) -> tuple[Labels, int]:
    """Merge classes until all keep the requirements, or `limit` times; return the labels and the number of merges."""
    if not requirements:
        return labels, 0
    records, promises = to_kernel_records(points), pack_promises(requirements, len(points))
    classes = _make_merger(points, labels, promises)
    kernel = kernels.load("t_merge")
    kernel.measure_classes(records, promises, classes)
    max_merges = len(classes.into) if limit is None else limit
    merges = 0
    while merges < max_merges:
        before = int(classes.standing[0])
        kernel.merge(records, promises, classes, min(MERGES_PER_CALL, max_merges - merges))
        merged = before - int(classes.standing[0])
        merges += merged
        if merged < MERGES_PER_CALL:
            break
        progress(merges, len(classes.into))
    if limit is None and classes.missed[classes.alive[: classes.standing[0]]].max() > 0:
        require_reachable(requirements)
    root = classes.into.copy()
    while (root != root[root]).any():
        root = root[root]
    return renumber(root[labels].astype(np.int32)), merges


def _make_merger(points: Points, labels: Labels, promises: Promises) -> Merger:
    size = np.bincount(labels)
    classes = len(size)
    rows, records = promises.codes.shape
    head = np.full((rows, classes), -1, np.int32)
    following = np.full((rows, records), -1, np.int32)
    for row in range(rows):
        order = np.lexsort((promises.codes[row], labels))
        first = np.concatenate([[True], labels[order[1:]] != labels[order[:-1]]])
        head[row, labels[order[first]]] = order[first]
        following[row, order[:-1][~first[1:]]] = order[1:][~first[1:]]
    sums = [np.bincount(labels, column, classes) for column in points.numbers.T]
    merger: Merger = kernels.load("t_merge").Merger(
        into=np.arange(classes),
        alive=np.arange(classes),
        standing=np.array([classes]),
        size=size,
        sums=np.array(sums, np.float64).reshape(len(sums), classes).T.copy(),
        codes=np.zeros((classes, points.codes.shape[1]), np.int32),
        head=head,
        following=following,
        missed=np.zeros(classes),
    )
    return merger
