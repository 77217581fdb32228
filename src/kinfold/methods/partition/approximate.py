"""Approximate microaggregation: groups are formed on a few key attributes that stand for the others.

    the key attributes are found by `kinfold.methods.partition.dependency`, and the records projected on them
    while at least 2k records are left:
        r = the record left that is farthest from the centre of those left
        make a group of r and its k-1 nearest records left
        s = the record left that is farthest from r; the same for s
    if k to 2k-1 are left: they are the last group
    if fewer than k are left: they join the group whose centre is nearest to their own centre

Paper: Sun, Wang, Li & Zhang, Expert Syst. Appl. 39 (2012), Algorithm 2. This is not MDAV-generic: it forms two groups
down to 2k records, and what remains may join a group that was formed before.
Readings: step 6 is "between k and 2k-1"; s is sought after r's group is taken, for where records tie the farthest
may be in it. All distances and centres of the steps above are those of the projection; the values that are released are
averaged over all attributes, which is the aggregator's affair.
Ties: the lowest row index wins; where centres tie, the group formed first.

Cost: records that are equal on the key attributes are folded into one, and the search is that of MDAV, on a tree of
what is left (`kinfold.kernels.mdav_tree`); up to 3,000 records a plain scan is quicker than loading it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold.methods.partition.dependency import BINS, dependency
from kinfold.methods.partition.geometry import centre, centres, distances
from kinfold.methods.partition.index import folded_run
from kinfold.methods.partition.mdav_compiled import form_pairs
from kinfold.progress import Progress, silent
from kinfold.request.methods import Declaration
from kinfold.rows.points import SMALL, Labels, Points, checked_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kinfold.methods.task import Task

METHOD = Declaration(
    name="approximate",
    family="partition",
    summary="groups on the key attributes of the dependency tree (paper 001)",
    page="approximate",
    kernels=("box_tree", "clustering", "mdav_tree", "mdav_flat", "means"),
    keys=("normalized",),
    cost=(0.15, 1.1),
    order=4,
)


def approximate(
    x: object, k: int, *, bins: int = BINS, normalized: bool = False, progress: Progress = silent
) -> Labels:
    """Return one group label per record, numbered as the groups are formed; every group has at least k records.

    `normalized` chooses the key attributes by our distance, a share of the joint entropy, instead of the paper's.

    >>> table = np.array([[0, 5, 0], [9, 7, 1], [0, 5, 1], [9, 7, 0], [0, 5, 0], [9, 7, 1]])
    >>> approximate(table, 3).tolist()
    [0, 1, 0, 1, 0, 1]
    """
    points = Points.of(x)
    k = checked_size(points, k)
    projected = project(points, dependency(points, bins=bins, normalized=normalized).keys)
    form = plain if len(points) <= SMALL else indexed
    labels = form(projected, k, progress)
    _settle(projected, labels, k)
    return labels


def run(records: Points, task: Task, progress: Progress) -> Labels:
    """Return the classes of a task."""
    return approximate(records, task.k, normalized=bool(task.method.normalized), progress=progress)


def project(points: Points, attributes: Sequence[int]) -> Points:
    """Return the points on these attributes only, in the order of the columns; numbers come first, then codes."""
    width = points.numbers.shape[1]
    numbers = sorted(attribute for attribute in attributes if attribute < width)
    codes = sorted(attribute - width for attribute in attributes if attribute >= width)
    return Points(points.numbers[:, numbers], points.codes[:, codes], tuple(points.scales[code] for code in codes))


def plain(points: Points, k: int, progress: Progress) -> Labels:
    """Form groups in pairs by plain scans; the label of a record that remains is -1."""
    labels = np.full(len(points), -1, np.int32)
    left = np.arange(len(points))
    label = 0
    while len(left) >= 2 * k:
        here = points.take(left)
        one = left[np.argmax(distances(here, centre(here), 0))]
        left = _form(points, labels, left, one, k, label)
        other = left[np.argmax(distances(points.take(left), points, one))]
        left = _form(points, labels, left, other, k, label + 1)
        label += 2
        progress(len(points) - len(left), len(points))
    return labels


def _form(
    points: Points, labels: Labels, left: NDArray[np.intp], seed: np.intp, k: int, label: int
) -> NDArray[np.intp]:
    """Make a group of the seed and its k-1 nearest, and return the rows still left."""
    away = distances(points.take(left), points, seed)
    away[np.searchsorted(left, seed)] = -1.0  # the seed is in its own group whatever ties with it
    labels[left[np.argsort(away, kind="stable")[:k]]] = label
    return left[labels[left] < 0]


def indexed(points: Points, k: int, progress: Progress) -> Labels:
    """Form the same groups as `plain`, by MDAV's searches in a tree of what is left."""
    run = folded_run(points, k)
    run.state[0].own, run.state[0].pairs = 1, k
    form_pairs(run, points, progress)
    return run.labels


def _settle(points: Points, labels: Labels, k: int) -> None:
    """Make the records that remain the last group, or give them to the nearest one."""
    remaining = np.flatnonzero(labels < 0)
    if len(remaining) >= k:
        labels[remaining] = labels.max() + 1
    elif len(remaining):
        grouped = np.flatnonzero(labels >= 0)
        middles = centres(points.take(grouped), labels[grouped])
        labels[remaining] = np.argmin(distances(middles, centre(points.take(remaining)), 0))
