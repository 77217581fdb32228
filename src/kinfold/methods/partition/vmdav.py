"""V-MDAV: microaggregation with groups of k to 2k-1 records.

    c = the centre of all records
    while at least k records are left:
        r = the record left that is farthest from c
        make a group of r and its k-1 nearest records left
        while the group has fewer than 2k-1 records:
            e = the record left that is nearest to any member of the group, at distance d_in
            d_out = the distance of e to its nearest other record left
            e joins if d_in < gamma · d_out, else the group is finished
    each of the fewer than k records that remain joins the group with the nearest centre

Paper: Solanas & Martínez-Ballesté, COMPSTAT 2006; named in Sun et al. 2012 and Soria-Comas et al. 2015.
Ties: the lowest row index wins; where centres tie, the group formed first.

Choices. With no other record left d_out is infinite and e joins. Centres are those of the groups as formed, before any
remaining record joins; only these late ones can make a group of 2k or more. gamma = 0 never extends a group.

Cost: the search runs on a tree of what is left (`kinfold.kernels.box_tree`), about n log n while there are few
attributes; up to 3,000 records a plain scan is quicker than loading it.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from kinfold import kernels
from kinfold.errors import PolicyError
from kinfold.methods.partition.geometry import centre, centres, distances
from kinfold.methods.partition.index import folded_run, grown, moments
from kinfold.progress import Progress, silent
from kinfold.request.methods import Declaration
from kinfold.rows.points import SMALL, Floats, Labels, Points, checked_size

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kinfold.methods.task import Task

METHOD = Declaration(
    name="v-mdav",
    family="partition",
    summary="MDAV with classes of variable size",
    page="vmdav",
    keys=("gamma",),
    kernels=("box_tree", "clustering", "vmdav", "means"),
    cost=(1.0, 1.6),
    order=2,
)

GAMMA = 0.2  # the authors' value for scattered data; see docs/methods/vmdav.md for what others give


def vmdav(x: object, k: int, *, gamma: float = GAMMA, progress: Progress = silent) -> Labels:
    """Return one group label per record, numbered as the groups are formed; every group has at least k records.

    >>> line = np.array([[0.0], [1.0], [2.0], [2.1], [9.0], [10.0], [11.0]])
    >>> vmdav(line, 3).tolist()
    [1, 1, 1, 1, 0, 0, 0]
    """
    points = Points.of(x)
    k = checked_size(points, k)
    if not (isinstance(gamma, int | float) and math.isfinite(gamma) and gamma >= 0):
        raise PolicyError(f"gamma is {gamma!r}", fix="gamma is a number from 0 (groups of k) up; 0.2 is usual")
    form = plain if len(points) <= SMALL else indexed
    labels = form(points, k, float(gamma), progress)
    _settle(points, labels)
    return labels


def run(records: Points, task: Task, progress: Progress) -> Labels:
    """Return the classes of a task."""
    gamma = task.method.gamma
    return vmdav(records, task.k, gamma=GAMMA if gamma is None else gamma, progress=progress)


def plain(points: Points, k: int, gamma: float, progress: Progress) -> Labels:
    """Form the groups by plain scans; the label of a record that remains is -1."""
    labels = np.full(len(points), -1, np.int32)
    left = np.arange(len(points))
    label = 0
    for seed in np.argsort(-distances(points, centre(points), 0), kind="stable"):
        if labels[seed] >= 0:
            continue
        if len(left) < k:
            break
        away = distances(points.take(left), points, seed)
        away[np.searchsorted(left, seed)] = -1.0  # the seed is in its own group whatever ties with it
        labels[left[np.argsort(away, kind="stable")[:k]]] = label
        left = left[labels[left] < 0]
        if gamma > 0.0:
            left = _extend(points, labels, left, label, gamma)
        label += 1
        progress(len(points) - len(left), len(points))
    return labels


def _extend(points: Points, labels: Labels, left: NDArray[np.intp], label: int, gamma: float) -> NDArray[np.intp]:
    """Let records join the group as long as they are near enough, and return the rows still left."""
    members = np.flatnonzero(labels == label)
    near = np.full(len(left), np.inf)
    for member in members:
        np.minimum(near, distances(points.take(left), points, member), out=near)
    for _ in range(len(members) - 1):
        if not len(left):
            break
        at = int(np.argmin(near))
        away = distances(points.take(left), points, left[at])
        outside: Floats = np.delete(away, at)
        d_out = math.sqrt(outside.min()) if len(outside) else math.inf
        if not math.sqrt(near[at]) < gamma * d_out:
            break
        labels[left[at]] = label
        near = np.delete(np.minimum(near, away), at)
        left = np.delete(left, at)
    return left


def indexed(points: Points, k: int, gamma: float, progress: Progress) -> Labels:
    """Form the same groups as `plain`, by searches in a tree of what is left."""
    kernel = kernels.load("vmdav")
    run = folded_run(points, k)
    run.state[0].own = 1
    seeds = np.argsort(-distances(points, centre(points), 0), kind="stable").astype(np.int32)
    group = kernel.group_of(seeds, k)
    while run.state[0].records >= k:
        tree = grown(run, points)
        for _ in moments(run, partial(kernel.advance, run, tree, group, gamma), progress):
            pass
    return run.labels


def _settle(points: Points, labels: Labels) -> None:
    """Give each record that remains to the group with the nearest centre."""
    remaining = np.flatnonzero(labels < 0)
    if not len(remaining):
        return
    grouped = np.flatnonzero(labels >= 0)
    middles = centres(points.take(grouped), labels[grouped])
    for row in remaining:
        labels[row] = np.argmin(distances(middles, points, row))
