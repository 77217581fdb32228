"""Starts: classes that keep every promise, from the classes of a method and from others that may cost less.

    repair the classes of the method
    classes of mdav, of k records or of up to eight times as many, repaired, unless they turn out to cost more: the
    larger the classes, the fewer promises they miss, and where records tie they cost next to nothing
    settle the better ones

The size: the largest whose classes cost little beside those that are known to keep every promise; k if none do.
Cost: that of two repairs and of settling.   Ties: the classes of the method.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kinfold.methods.partition.cost import cost
from kinfold.methods.partition.mdav import mdav
from kinfold.methods.partition.repair import LARGE, Repair, TooDear, repair
from kinfold.methods.partition.settle import settled
from kinfold.progress import silent

if TYPE_CHECKING:
    from kinfold.methods.partition.requirement import Requirement
    from kinfold.progress import Progress
    from kinfold.rows.points import Labels, Points

TIMES = (2, 4, 8)  # k: sizes tried; the larger the slower to repair, and few tables gain by more
LITTLE = 0.25  # of what is known to be enough


def best_start(
    points: Points, labels: Labels, k: int, requirements: Sequence[Requirement], *, progress: Progress = silent
) -> Repair:
    """Return the cheapest classes found that keep every requirement and have at least k records."""
    found = repair(points, labels, k, requirements, progress=_part(progress, 0))
    if len(points) > LARGE * (int(found.labels.max()) + 1):  # classes much smaller than these hardly exist
        return found
    bound = cost(points, found.labels)
    start = _larger(points, k, LITTLE * bound)
    if not np.array_equal(start, labels):
        found = _cheaper(points, start, k, requirements, found, _part(progress, 1))
    return replace(found, labels=settled(points, found.labels, k, requirements, _part(progress, 2)))


def _cheaper(
    points: Points, start: Labels, k: int, requirements: Sequence[Requirement], found: Repair, progress: Progress
) -> Repair:
    """Return what was found, or these classes repaired if they cost less."""
    bound = cost(points, found.labels)
    try:
        other = repair(points, start, k, requirements, bound=bound, progress=progress)
    except TooDear:
        return found
    return replace(other, repaired=found.repaired) if cost(points, other.labels) < bound else found


def _larger(points: Points, k: int, most: float) -> Labels:
    """Return classes of mdav, the largest that cost at most so much, else those of k."""
    found = mdav(points, k)
    for size in (times * k for times in TIMES if times * k <= len(points) // 2):
        if cost(points, found) > most:  # larger ones cost more
            break
        larger = mdav(points, size)
        if cost(points, larger) > most:
            break
        found = larger
    return found


def _part(progress: Progress, part: int) -> Progress:
    """Report one of three parts as part of the whole."""
    return lambda done, total: progress(part * total + done, 3 * total)
