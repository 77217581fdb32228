"""Microaggregation, then merging: clusters go together until each is as close to the table as asked.

    partition the records into clusters of at least k
    while some cluster misses its promises: the one that misses them most goes into the cluster nearest to it

One cluster of everything is the table itself, so t-closeness is always reached.

Paper: Soria-Comas, Domingo-Ferrer, Sánchez & Martínez, TKDE 27 (2015), Algorithm 1.
Cost: that of the partition and O(n² / k).   Ties: the cluster of the lowest label.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from kinfold import kernels
from kinfold.errors import DataError
from kinfold.methods.partition.mdav import mdav
from kinfold.methods.partition.out_of_reach import require_within_reach
from kinfold.methods.partition.requirement import Requirement, closeness, mixed, packed
from kinfold.progress import silent
from kinfold.request.methods import Declaration
from kinfold.rows.points import Points, checked_size

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from kinfold.kernels.promises import Promises
    from kinfold.kernels.t_merge import Merger
    from kinfold.methods.task import Task
    from kinfold.progress import Progress
    from kinfold.rows.points import Labels

METHOD = Declaration(
    name="t-merge",
    family="partition",
    summary="classes of mdav, merged until each is t-close (Algorithm 1 of paper 004)",
    page="t-closeness",
    needs=("t",),
    kernels=("box_tree", "clustering", "mdav_tree", "mdav_flat", "class_misses", "t_merge", "near_kinds", "repair"),
    cost=(100.0, 2.0),
    order=5,
)

CHUNK = 200  # merges between two looks at the listener


def t_merge(
    x: object,
    k: int,
    *,
    confidential: object,
    t: object,
    start: Callable[[Points, int], Labels] | ArrayLike = mdav,
    progress: Progress = silent,
) -> Labels:
    """Return one label per record: clusters of `start` (a partitioner or its labels), merged until each is t-close.

    >>> t_merge(np.array([[0.0], [1.0], [5.0], [6.0]]), 2, confidential=[1, 2, 3, 4], t=0.2).tolist()
    [0, 0, 0, 0]
    """
    points = Points.of(x)
    k = checked_size(points, k)
    labels = np.asarray(start(points, k) if callable(start) else start, np.int32)
    if labels.shape != (len(points),):
        raise DataError(f"the labels to start from have the shape {labels.shape}", fix="give one label a record")
    return merged(points, labels, closeness(confidential, t, len(points)), progress=progress)[0]


def run(records: Points, task: Task, progress: Progress) -> Labels:
    """Return the classes of a task, merged until each keeps every promise about its rows."""
    start = mdav(records, task.k, progress=progress)
    return merged(records, start, task.requirements(), progress=progress)[0]


def merged(
    points: Points,
    labels: Labels,
    requirements: Sequence[Requirement],
    *,
    most: int | None = None,
    progress: Progress = silent,
) -> tuple[Labels, int]:
    """Merge classes until all keep the requirements (or `most` times); return the labels and the merges made."""
    if not requirements:
        return labels, 0
    m, p = mixed(points), packed(requirements, len(points))
    classes = _merger(points, labels, p)
    kernel = kernels.load("t_merge")
    kernel.settle(m, p, classes)
    limit = len(classes.into) if most is None else most
    done = 0
    while done < limit:
        before = int(classes.standing[0])
        kernel.merge(m, p, classes, min(CHUNK, limit - done))
        made = before - int(classes.standing[0])
        done += made
        if made < CHUNK:
            break
        progress(done, len(classes.into))
    if most is None and classes.missed[classes.alive[: classes.standing[0]]].max() > 0:
        require_within_reach(requirements)
    return _followed(classes, labels), done


def _merger(points: Points, labels: Labels, p: Promises) -> Merger:
    Merger = kernels.load("t_merge").Merger

    size = np.bincount(labels)
    classes = len(size)
    rows, records = p.codes.shape
    head = np.full((rows, classes), -1, np.int32)
    following = np.full((rows, records), -1, np.int32)
    for row in range(rows):
        order = np.lexsort((p.codes[row], labels))
        first = np.concatenate([[True], labels[order[1:]] != labels[order[:-1]]])
        head[row, labels[order[first]]] = order[first]
        following[row, order[:-1][~first[1:]]] = order[1:][~first[1:]]
    sums = [np.bincount(labels, column, classes) for column in points.numbers.T]
    return Merger(
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


def _followed(classes: Merger, labels: Labels) -> Labels:
    """Labels after the merges, numbered without gaps in the order of the old ones."""
    root = classes.into.copy()
    while (root != root[root]).any():
        root = root[root]
    return np.unique(root[labels], return_inverse=True)[1].astype(np.int32)
