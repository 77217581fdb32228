"""Aggregate functions: from the values of a class to the one value that its records share in the release.

    mean            continuous and date; it preserves the means of the table
    median          the value in the middle of the class; the lower of two
    convex median   Definition 5.3 of Domingo-Ferrer & Torra 2005: the median after raising the frequency of each
                    category to the lower of the highest frequencies on its two sides, over the full scale
    mode            the most frequent value; ties go to the first in the order
    suppress        the value that all records of the class share, else null
    generalize      the lowest common ancestor in the hierarchy; without one, the range of the class

Each function takes values and labels (0 to m - 1, all used) and returns one value for each class. Null is a value: it
can be the mode. A median is null if more than half of the class is null, else the median of the others.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.tables.points import Floats, Labels

Codes: TypeAlias = NDArray[np.int32]

NO_VALUE = -1
CELLS_AT_A_TIME = 1 << 22  # of frequencies


def mean(numbers: Floats, labels: Labels) -> Floats:
    """Return the mean of each class.

    >>> mean(np.array([1.0, 3.0, 7.0]), np.array([0, 0, 1])).tolist()
    [2.0, 7.0]
    """
    middle = numbers.mean()  # differences from it lose fewer digits
    return np.asarray(middle + np.bincount(labels, numbers - middle) / np.bincount(labels), np.float64)


def median(numbers: Floats, labels: Labels) -> Floats:
    """Return the lower median of each class.

    >>> median(np.array([1.0, 9.0, 3.0, 4.0]), np.array([0, 0, 0, 1])).tolist()
    [3.0, 4.0]
    """
    order = np.lexsort((numbers, labels))
    sizes = np.bincount(labels)
    return np.asarray(numbers[order][np.cumsum(sizes) - sizes + (sizes - 1) // 2])


def exact_mean(numbers: NDArray[np.object_], labels: Labels) -> NDArray[np.object_]:
    """Return the mean of whole numbers of any size, rounded to the nearest whole number, halves to even.

    >>> exact_mean(np.array([2**62 + 1, 2**62 + 3, 5], object), np.array([0, 0, 1])).tolist()
    [4611686018427387906, 5]
    """
    order, sizes = np.argsort(labels, kind="stable"), np.bincount(labels)
    sums = np.add.reduceat(numbers[order], np.cumsum(sizes) - sizes)
    return np.array([round(Fraction(total, size)) for total, size in zip(sums, sizes.tolist(), strict=True)], object)


def exact_median(numbers: NDArray[np.object_], labels: Labels) -> NDArray[np.object_]:
    """Return the lower median of whole numbers of any size.

    >>> exact_median(np.array([2**62 + 3, 2**62 + 1, 5], object), np.array([0, 0, 1])).tolist()
    [4611686018427387905, 5]
    """
    values, places = np.unique(numbers, return_inverse=True)
    return np.asarray(values[median(places.astype(np.float64), labels).astype(np.intp)])


def ordinal_median(codes: Codes, labels: Labels, null: int) -> Codes:
    """Return the lower median of the codes of each class; null if more than half are.

    The median of {1, 2, 2, 5, 6} on the scale 0..7 (Domingo-Ferrer & Torra 2005, after Definition 5.2):

    >>> ordinal_median(np.array([1, 2, 2, 5, 6]), np.zeros(5, int), null=8).tolist()
    [2]
    """
    sizes, missing = np.bincount(labels), np.bincount(labels, codes == null).astype(np.int64)
    order = np.lexsort((codes, labels))  # null is the last code
    place = np.cumsum(sizes) - sizes + np.maximum(sizes - missing - 1, 0) // 2
    return np.where(2 * missing > sizes, null, codes[order][place]).astype(np.int32)


def convex_median(codes: Codes, labels: Labels, null: int) -> Codes:
    """Return the convex median of the codes of each class on the scale 0 to null - 1; null if more than half are.

    Examples after Definition 5.3 of Domingo-Ferrer & Torra 2005, on the scale 0..7:

    >>> convex_median(np.array([1, 2, 7]), np.zeros(3, int), null=8).tolist()
    [4]
    >>> convex_median(np.array([1, 2, 2, 5, 6]), np.zeros(5, int), null=8).tolist()
    [3]
    """
    classes, step = int(labels.max()) + 1, max(CELLS_AT_A_TIME // (null + 1), 1)
    parts = [_convex_medians(codes, labels, null, low, min(low + step, classes)) for low in range(0, classes, step)]
    return np.concatenate(parts)


def _convex_medians(codes: Codes, labels: Labels, null: int, low: int, high: int) -> Codes:
    chosen = (labels >= low) & (labels < high)
    cell = (labels[chosen] - low).astype(np.int64) * (null + 1) + codes[chosen]
    frequency = np.bincount(cell, minlength=(high - low) * (null + 1)).reshape(high - low, null + 1)
    present, missing = frequency[:, :null], frequency[:, null]
    left = np.maximum.accumulate(present, axis=1)
    right = np.maximum.accumulate(present[:, ::-1], axis=1)[:, ::-1]
    below = np.cumsum(np.minimum(left, right), axis=1)
    middle = (below >= (below[:, -1:] + 1) // 2).argmax(axis=1)
    return np.where(2 * missing > frequency.sum(axis=1), null, middle).astype(np.int32)


def mode(codes: Codes, labels: Labels, rank: NDArray[np.intp] | None = None) -> Codes:
    """Return the most frequent code of each class. Ties go to the lowest rank, by default the code itself.

    >>> mode(np.array([2, 1, 2, 1, 0]), np.array([0, 0, 0, 0, 0])).tolist()
    [1]
    """
    width = int(codes.max()) + 1
    cell, count = np.unique(labels.astype(np.int64) * width + codes, return_counts=True)
    group, code = cell // width, cell % width
    order = np.lexsort((code if rank is None else rank[code], -count, group))
    first = np.unique(group[order], return_index=True)[1]
    return np.asarray(code[order][first], np.int32)


def common_ancestors(leaves: Codes, labels: Labels, paths: Codes) -> tuple[Codes, Codes]:
    """Return the lowest common ancestor of each class: a row of the hierarchy below it and its level; -1 for nulls.

    The ancestor of a class with nulls (-1) and values is the top.

    >>> paths = np.array([[0, 0, 0], [1, 0, 0], [2, 1, 0]])
    >>> [a.tolist() for a in common_ancestors(np.array([0, 1, 2, 2, -1]), np.array([0, 0, 1, 1, 2]), paths)]
    [[1, 2, -1], [1, 0, -1]]
    """
    order = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels)
    starts = np.cumsum(sizes) - sizes
    level = np.zeros(len(sizes), np.int32)
    for path in paths.T[:-1]:
        number = np.where(leaves[order] < 0, NO_VALUE, path[leaves[order]])
        level += np.minimum.reduceat(number, starts) != np.maximum.reduceat(number, starts)
    row = np.maximum.reduceat(leaves[order], starts)
    return row.astype(np.int32), np.where(row < 0, NO_VALUE, level).astype(np.int32)


def shared_value(codes: Codes, labels: Labels, null: int) -> Codes:
    """Return the code that all records of a class share; null if they differ.

    >>> shared_value(np.array([1, 1, 0, 2]), np.array([0, 0, 1, 1]), null=3).tolist()
    [1, 3]
    """
    low, high = np.full((2, int(labels.max()) + 1), null)
    np.minimum.at(low, labels, codes)
    high[:] = 0
    np.maximum.at(high, labels, codes)
    return np.where(low == high, low, null).astype(np.int32)


def value_ranges(numbers: Floats, labels: Labels) -> tuple[Floats, Floats]:
    """Return the smallest and the largest value of each class; NaN if a value is missing.

    >>> [part.tolist() for part in value_ranges(np.array([1.0, 3.0, 7.0]), np.array([0, 0, 1]))]
    [[1.0, 7.0], [3.0, 7.0]]
    """
    order = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels)
    starts = np.cumsum(sizes) - sizes
    return np.minimum.reduceat(numbers[order], starts), np.maximum.reduceat(numbers[order], starts)
