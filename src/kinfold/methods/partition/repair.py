"""Repair: classes that miss a promise are repaired at the least cost, and merged only where nothing else helps.

    until no class misses a promise:
        exchange, the worst class first: swaps and moves that restore the promise for the least error
        of the classes that could not be repaired, merge the worst with their nearest ones

What is asked of a class is in the requirements (any model that hands out a criterion); at least k records stay in each.
One class of everything is the last resort; where even that misses a promise, nothing can be done.

Cost: look·|A| trials a step, `look` being all records while that is affordable, else a part of them, spread evenly.
Ties: the class of the lowest label, then the first record found. Deterministic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kinfold import kernels
from kinfold.errors import Unreachable
from kinfold.methods.partition.gaps import numbered
from kinfold.methods.partition.oracle import Oracle
from kinfold.methods.partition.requirement import Requirement, missed
from kinfold.methods.partition.t_merge import merged
from kinfold.progress import silent
from kinfold.rows.points import Points, checked_size

if TYPE_CHECKING:
    from kinfold.progress import Progress
    from kinfold.rows.points import Labels

TRIALS = 1e7  # records looked at in all, times the sizes of the classes they are looked at for
FEW = 300  # records looked at for a class at least
CHUNK = 50  # classes between two looks at the listener


@dataclass(frozen=True, eq=False)
class Repair:
    """The labels, how many classes missed a promise before, and what repaired them."""

    labels: Labels
    repaired: int
    steps: int
    merges: int


def repair(
    x: object, labels: Labels, k: int, requirements: Sequence[Requirement], *, progress: Progress = silent
) -> Repair:
    """Return labels whose classes keep every requirement and have at least k records.

    >>> x = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> wages = Requirement.close([1, 2, 3, 4], 0.2)
    >>> repair(x, np.array([0, 0, 1, 1], np.int32), 2, [wages]).labels.tolist()
    [0, 1, 0, 1]
    """
    points = Points.of(x)
    k = checked_size(points, k)
    labels = numbered(labels)
    if not requirements:
        return Repair(labels, 0, 0, 0)
    if missed(requirements, np.zeros(len(points), np.int32))[0] > 0:
        raise Unreachable(
            "a promise fails even with all records in one class",
            fix="lower l or p, or raise t, alpha or c: the table itself does not keep it",
        )
    failing = int((missed(requirements, labels) > 0).sum())
    steps = merges = 0
    left = failing
    while left:
        labels, made = _exchanged(points, labels, k, requirements, progress)
        steps += made
        left = int((missed(requirements, labels) > 0).sum())
        if left:
            labels, made = merged(points, labels, requirements, most=max(1, left // 4))
            merges += made
            left = int((missed(requirements, labels) > 0).sum())
    return Repair(labels, failing, steps, merges)


def _exchanged(
    points: Points, labels: Labels, k: int, requirements: Sequence[Requirement], progress: Progress
) -> tuple[Labels, int]:
    kernel = kernels.load("repair")
    oracle = Oracle.of(points, requirements)
    groups = oracle.arranged(labels, k)
    state = kernel.state_of(oracle.records, oracle.promises, groups)
    kernel.judge_all(state)
    order = np.argsort(-groups.missed, kind="stable")
    order = order[groups.missed[order] > 0]
    look = int(min(len(points), max(FEW, TRIALS / max(1, groups.size[order].sum()))))
    for done in range(0, len(order), CHUNK):
        kernel.repair_all(state, order[done : done + CHUNK], look)
        progress(done, len(order))
    return groups.label, int(state.best[0].made)
