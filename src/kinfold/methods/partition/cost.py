"""The cost of a partition of any size: for each group the squared distances of its pairs over its size.

For numbers this is the SSE, taken from the means. For codes the pairs are counted by value: two values held by
a and b members of a group make a·b pairs.

Cost: O(n d) for numbers; O(n v) for codes, v the most values in one group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold.rows.points import Ordered

if TYPE_CHECKING:
    from kinfold.rows.points import Codes, Floats, Labels, Points, Scale


def cost(points: Points, labels: Labels) -> float:
    """Return the cost of the whole partition.

    >>> from kinfold.rows.points import Points
    >>> cost(Points.of([[0.0], [2.0], [5.0], [9.0]]), np.array([0, 0, 1, 1], np.int32))
    10.0
    """
    size = np.bincount(labels)
    total = 0.0
    for column in points.numbers.T:
        mean = np.bincount(labels, column) / size
        total += float(((column - mean[labels]) ** 2).sum())
    for codes, scale in zip(points.codes.T, points.scales, strict=True):
        total += float((_pairs(codes, scale, labels) / size).sum())
    return total


def between(scale: Scale, one: Codes, other: Codes) -> Floats:
    """Return the squared distances of codes, one by one.

    >>> between(Ordered(4), np.array([0, 1, 4]), np.array([2, 1, 0])).tolist()
    [0.25, 0.0, 1.0]
    """
    if isinstance(scale, Ordered):
        step = np.abs(one - other) / scale.size
        step[(one == scale.size) != (other == scale.size)] = 1.0
    else:
        step = (scale.paths[one] != scale.paths[other]).sum(axis=1) / scale.height
    return np.asarray(scale.weight * step * step, np.float64)


def _pairs(codes: Codes, scale: Scale, labels: Labels) -> Floats:
    """Sum the squared distances of the pairs of each group in one column of codes."""
    held, count = np.unique(labels.astype(np.int64) * scale.codes + codes, return_counts=True)
    group, code = held // scale.codes, held % scale.codes
    total = np.zeros(int(labels.max()) + 1)
    for shift in range(1, len(held)):
        same = np.flatnonzero(group[shift:] == group[:-shift])
        if same.size == 0:
            break
        many = count[same] * count[same + shift]
        total += np.bincount(group[same], many * between(scale, code[same], code[same + shift]), len(total))
    return total
