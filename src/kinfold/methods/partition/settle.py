"""Settling: after a repair, records far from their class change places with records of their kind on the way there.

    until a sweep gains little, at most so many sweeps:
        of the records that cost more than the average, look at those of the same kind nearest to the point halfway
        between the record and its class, and swap where the cost falls most

Halfway, because errors are squared: two short ways cost less than one long way. Promises hold at every step.

Cost: O(n log n) a sweep.   Ties: the lowest record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold import kernels
from kinfold.methods.partition.gaps import numbered
from kinfold.methods.partition.near_kinds import NearKinds
from kinfold.methods.partition.oracle import Oracle
from kinfold.methods.partition.record_kinds import kinds_of
from kinfold.rows.points import Points

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kinfold.kernels.groups import Groups
    from kinfold.methods.partition.requirement import Requirement
    from kinfold.progress import Progress
    from kinfold.rows.points import Floats, Labels

SWEEPS = 12
LITTLE = 0.03  # of the cost: a sweep that gains less is the last
WIDE = 4  # records of its kind that a record may change places with


def settled(points: Points, labels: Labels, k: int, requirements: Sequence[Requirement], progress: Progress) -> Labels:
    """Return classes of lower cost; promises that were kept are kept."""
    kind = kinds_of(requirements)
    near = NearKinds(points, kind, int(kind.max()) + 1, np.ones(len(points), np.bool_))
    oracle = Oracle.of(points, requirements)
    groups = oracle.arranged(numbered(labels), k)
    kernel = kernels.load("settling")
    total = kernels.load("repair").recounted(oracle.records, oracle.promises, groups)
    for sweep in range(SWEEPS):
        apart = costs(points, groups, means=oracle.means)
        movers = np.flatnonzero(apart > total / len(points))
        movers = movers[np.argsort(-apart[movers], kind="stable")]
        places = halfway(points, groups, movers, apart, own=sweep % 2 == 1)
        listed = near.nearest(places, kind[movers], WIDE)
        gain = -kernel.settle(oracle.records, oracle.promises, groups, movers, listed, total / len(points))
        progress(sweep + 1, SWEEPS)
        total -= gain
        if gain <= LITTLE * total and sweep > 0:
            break
    progress(SWEEPS, SWEEPS)
    return numbered(groups.label)


def costs(points: Points, groups: Groups, *, means: bool) -> Floats:
    """Return the share of each record in what its class costs."""
    if not means:
        return np.asarray(groups.own / np.maximum(groups.size, 1)[groups.label])
    return np.asarray(((points.numbers - middle_numbers(points, groups)[groups.label]) ** 2).sum(axis=1))


def middle_numbers(points: Points, groups: Groups) -> Floats:
    """Return the mean of each class."""
    size = np.maximum(np.bincount(groups.label, minlength=len(groups.size)), 1)
    sums = [np.bincount(groups.label, column, len(size)) for column in points.numbers.T]
    return np.asarray((np.array(sums).reshape(len(sums), len(size)) / size).T)


def middles(groups: Groups, apart: Floats) -> NDArray[np.int64]:
    """Return the member of each class that costs least; a class that is gone has any."""
    order = np.lexsort((apart, groups.label))
    first = np.searchsorted(groups.label[order], np.arange(len(groups.size)))
    return np.asarray(order[np.minimum(first, len(order) - 1)], np.int64)


def halfway(points: Points, groups: Groups, movers: NDArray[np.int64], apart: Floats, *, own: bool) -> Points:
    """Return the places halfway between records and their classes, with their own codes or a middle member's."""
    label = groups.label[movers]
    numbers = (points.numbers[movers] + middle_numbers(points, groups)[label]) / 2
    codes = points.codes[movers if own else middles(groups, apart)[label]]
    return Points(numbers, codes, points.scales)
