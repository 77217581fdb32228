"""V-MDAV: microaggregation with groups of k to 2k-1 records.

    c = the centre of all records
    while at least k records are left:
        r = the remaining record that is farthest from c
        form a group of r and its k-1 nearest remaining records
        while the group has fewer than 2k-1 records:
            e = the remaining record that is nearest to any member of the group, at distance d_in
            d_out = the distance of e to its nearest other remaining record
            e joins if d_in < gamma · d_out, else the group is finished
    each of the fewer than k remaining records joins the group with the nearest centre

Paper: Solanas & Martínez-Ballesté, COMPSTAT 2006; named in Sun et al. 2012 and Soria-Comas et al. 2015.
Choices: with no other record left d_out is infinite and e joins. Centres are those of the groups before any remaining
record joins; only these records can make a group of 2k or more. gamma = 0 never extends a group.
Ties: the lowest row index; of centres, the group formed first.
Cost: about n log n with few attributes, by searches in a tree of the remaining records (`kinfold.kernels.box_tree`).
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from kinfold import kernels
from kinfold.errors import PolicyError
from kinfold.methods.partition.geometry import compute_centre, compute_centres, distances_to
from kinfold.methods.partition.index import advance_in_steps, grow_tree, start_folded_run
from kinfold.policy.registry import Declaration
from kinfold.progress import Progress, no_progress
from kinfold.tables.points import Labels, Points, check_k

if TYPE_CHECKING:
    from kinfold.methods.task import Task

METHOD = Declaration(
    name="v-mdav",
    family="partition",
    summary="MDAV with classes of variable size",
    page="vmdav",
    keys=("gamma",),
    kernels=("box_tree", "clustering", "vmdav", "geometry"),
    cost=(1.0, 1.6),
)

GAMMA = 0.2  # the authors' value for scattered data; docs/methods/vmdav.md compares others


def vmdav(x: object, k: int, *, gamma: float = GAMMA, progress: Progress = no_progress) -> Labels:
    """Return a group label for each record, in the order of forming. Every group has at least k records.

    >>> line = np.array([[0.0], [1.0], [2.0], [2.1], [9.0], [10.0], [11.0]])
    >>> vmdav(line, 3).tolist()
    [1, 1, 1, 1, 0, 0, 0]
    """
    points = Points.from_array(x)
    k = check_k(points, k)
    if not (isinstance(gamma, int | float) and math.isfinite(gamma) and gamma >= 0):
        raise PolicyError(f"gamma is {gamma!r}", fix="choose a number from 0 (groups of k) up; 0.2 is usual")
    labels = form_groups(points, k, float(gamma), progress)
    _place_remaining(points, labels)
    return labels


def run(records: Points, task: Task, progress: Progress) -> Labels:
    """Return the classes of a task."""
    gamma = task.method.gamma
    return vmdav(records, task.k, gamma=GAMMA if gamma is None else gamma, progress=progress)


def form_groups(points: Points, k: int, gamma: float, progress: Progress) -> Labels:
    """Form the groups by searches in a tree of the remaining records; the label of a record that is left is -1."""
    kernel = kernels.load("vmdav")
    run = start_folded_run(points, k)
    run.state[0].own = 1
    seeds = np.argsort(-distances_to(points, compute_centre(points), 0), kind="stable").astype(np.int32)
    group = kernel.make_group(seeds, k)
    while run.state[0].records >= k:
        tree = grow_tree(run, points)
        for _ in advance_in_steps(run, partial(kernel.advance, run, tree, group, gamma), progress):
            pass
    return run.labels


def _place_remaining(points: Points, labels: Labels) -> None:
    """Add each remaining record to the group with the nearest centre."""
    remaining = np.flatnonzero(labels < 0)
    if not len(remaining):
        return
    grouped = np.flatnonzero(labels >= 0)
    centres = compute_centres(points.take(grouped), labels[grouped])
    for row in remaining:
        labels[row] = np.argmin(distances_to(centres, points, row))
