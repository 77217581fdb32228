"""Geometry: squared distances from one record to many, and the centres of groups, the plain numpy way.

Both are those of `kinfold.rows.points`, to the bit: distances are summed attribute by attribute, means are exact
sums rounded once.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from kinfold import kernels
from kinfold.rows.points import SMALL, Codes, Floats, Labels, Nested, Points

if TYPE_CHECKING:
    from numpy.typing import NDArray


def distances(points: Points, others: Points, row: int | np.integer) -> Floats:
    """Return the squared distance of each point to row `row` of `others`.

    >>> line = Points.of(np.array([[0.0], [1.0], [3.0]]))
    >>> distances(line, line, 1).tolist()
    [1.0, 0.0, 4.0]
    """
    total = np.zeros(len(points))
    for column in range(points.numbers.shape[1]):
        step = points.numbers[:, column] - others.numbers[row, column]
        total += step * step
    for column, scale in enumerate(points.scales):
        total += scale.gaps(int(others.codes[row, column]))[points.codes[:, column]]
    return total


def centre(points: Points) -> Points:
    """Return the one point in the middle of all."""
    return centres(points, np.zeros(len(points), np.int32))


def centres(points: Points, labels: Labels) -> Points:
    """Return the centre of each group, in the order of the labels 0, 1, 2 and so on, none of which is empty.

    >>> line = Points.of(np.array([[0.0], [1.0], [3.0]]))
    >>> centres(line, np.array([1, 1, 0], np.int32)).numbers.tolist()
    [[3.0], [0.5]]
    """
    starts = np.concatenate([[0], np.cumsum(np.bincount(labels))]).astype(np.int64)
    numbers = _means(points.numbers[np.argsort(labels, kind="stable")], starts)
    codes = np.empty((len(starts) - 1, len(points.scales)), np.int32)
    for column, scale in enumerate(points.scales):
        held = points.codes[:, column]
        codes[:, column] = _modes(held, labels) if isinstance(scale, Nested) else _lower_medians(held, labels, starts)
    return Points(numbers, codes, points.scales)


def _means(values: Floats, starts: NDArray[np.int64]) -> Floats:
    means = np.empty((len(starts) - 1, values.shape[1]))
    if len(values) > SMALL:
        group_means = kernels.load("means").group_means

        group_means(values, starts, means)
        return means
    for group, (begin, end) in enumerate(pairwise(starts.tolist())):
        for column in range(values.shape[1]):
            means[group, column] = math.fsum(values[begin:end, column]) / (end - begin)
    return means


def _lower_medians(codes: Codes, labels: Labels, starts: NDArray[np.int64]) -> Codes:
    ordered = codes[np.lexsort((codes, labels))]
    middles: Codes = ordered[starts[:-1] + (np.diff(starts) - 1) // 2]
    return middles


def _modes(codes: Codes, labels: Labels) -> Codes:
    base = int(codes.max()) + 1
    pairs, times = np.unique(labels.astype(np.int64) * base + codes, return_counts=True)
    best = np.lexsort((pairs, -times, pairs // base))  # by group, commonest first, lowest code first
    _, first = np.unique(pairs[best] // base, return_index=True)
    modes: Codes = (pairs[best][first] % base).astype(np.int32)
    return modes
