"""Settling: classes that keep their promises, made cheaper record by record, the promises kept at every step.

    until a sweep gains little, at most so many sweeps:
        every record that costs more than the average looks for a better class among those of its neighbours
        (see `kernels/settling`)

Random draws from a fixed seed: the same classes and promises always settle in the same way.

Cost: O(n · class size) a sweep.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kinfold import kernels
from kinfold.methods.partition.curves import around, taken
from kinfold.methods.partition.gaps import numbered
from kinfold.methods.partition.oracle import Oracle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kinfold.kernels.groups import Groups
    from kinfold.methods.partition.requirement import Requirement
    from kinfold.progress import Progress
    from kinfold.rows.points import Floats, Labels, Points

SWEEPS = 40
LITTLE = 0.004  # of the cost: a sweep that gains less is the last (by trial on Adult: what costs a second at most)
CURVES = 4  # through the table, along which neighbours are drawn
SEED = 0
NOBODY = np.zeros(0, np.int32)


def settled(points: Points, labels: Labels, k: int, requirements: Sequence[Requirement], progress: Progress) -> Labels:
    """Return classes of lower cost; promises that were kept are kept."""
    near = around(points, CURVES)
    order = np.argsort(near.turn[0][near.place], kind="stable")  # what is near is near in memory: several times as fast
    points, near = points.take(order), taken(near, order)
    oracle = Oracle.of(points, [replace(each, codes=each.codes[order]) for each in requirements])
    groups = oracle.arranged(numbered(labels[order]), k)
    settle, stream = kernels.load("settling").settle, kernels.load("draws").stream_of(SEED)
    total = settle(oracle.records, oracle.promises, groups, near, stream, NOBODY, 0.0)
    for sweep in range(SWEEPS):
        apart = costs(points, groups, means=oracle.means)
        movers = np.flatnonzero(apart > apart.mean()).astype(np.int32)
        if not len(movers):
            break
        before = total
        total = settle(oracle.records, oracle.promises, groups, near, stream, movers, total)
        progress(sweep + 1, SWEEPS)
        if before - total <= LITTLE * total:
            break
    progress(SWEEPS, SWEEPS)
    settled = np.empty_like(groups.label)
    settled[order] = groups.label
    return numbered(settled)


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
    """Return the member of each class that costs least; for an empty class, any record."""
    order = np.lexsort((apart, groups.label))
    first = np.searchsorted(groups.label[order], np.arange(len(groups.size)))
    return np.asarray(order[np.minimum(first, len(order) - 1)], np.int64)
