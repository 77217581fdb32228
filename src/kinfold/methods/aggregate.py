"""Averages: from the records of each class to the one value that they share in the release.

    mean            continuous and date; of a whole table the means stay what they were
    median          the value in the middle of the class; of an even number, the lower of the two
    convex median   Definition 5.3 of Domingo-Ferrer & Torra 2005: the median after each category between two others
                    has been lifted to the lower of the highest frequencies on its two sides, over the full scale
    mode            the most frequent value; ties go to the first in the order
    suppress        the value that the whole class shares; null where its records differ
    generalize      the lowest common ancestor in the hierarchy; without one, the range of the class

Each takes values and labels (0 to m - 1, every one used) and returns one value a class. Null is a value: it can be the
mode; a median is null where more than half of the class is, and otherwise that of the rest.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.int32]
Labels: TypeAlias = NDArray[np.int32]

NO_VALUE = -1
CELLS = 1 << 22  # frequencies held at a time


def mean(numbers: Floats, labels: Labels) -> Floats:
    """Mean of each class.

    >>> mean(np.array([1.0, 3.0, 7.0]), np.array([0, 0, 1])).tolist()
    [2.0, 7.0]
    """
    middle = numbers.mean()  # sums of differences lose fewer digits
    return np.asarray(middle + np.bincount(labels, numbers - middle) / np.bincount(labels), np.float64)


def median(numbers: Floats, labels: Labels) -> Floats:
    """Lower median of each class.

    >>> median(np.array([1.0, 9.0, 3.0, 4.0]), np.array([0, 0, 0, 1])).tolist()
    [3.0, 4.0]
    """
    order = np.lexsort((numbers, labels))
    sizes = np.bincount(labels)
    return np.asarray(numbers[order][np.cumsum(sizes) - sizes + (sizes - 1) // 2])


def exact_mean(numbers: NDArray[np.object_], labels: Labels) -> NDArray[np.object_]:
    """Mean of whole numbers of any size, to the nearest whole number; halves go to the even one.

    >>> exact_mean(np.array([2**62 + 1, 2**62 + 3, 5], object), np.array([0, 0, 1])).tolist()
    [4611686018427387906, 5]
    """
    order, sizes = np.argsort(labels, kind="stable"), np.bincount(labels)
    sums = np.add.reduceat(numbers[order], np.cumsum(sizes) - sizes)
    return np.array([round(Fraction(total, size)) for total, size in zip(sums, sizes.tolist(), strict=True)], object)


def exact_median(numbers: NDArray[np.object_], labels: Labels) -> NDArray[np.object_]:
    """Lower median of whole numbers of any size.

    >>> exact_median(np.array([2**62 + 3, 2**62 + 1, 5], object), np.array([0, 0, 1])).tolist()
    [4611686018427387905, 5]
    """
    held, places = np.unique(numbers, return_inverse=True)
    return np.asarray(held[median(places.astype(np.float64), labels).astype(np.intp)])


def ordinal_median(codes: Codes, labels: Labels, null: int) -> Codes:
    """Lower median of the codes of each class; null where more than half are.

    The median of {1, 2, 2, 5, 6} on the scale 0..7 (Domingo-Ferrer & Torra 2005, after Definition 5.2):

    >>> ordinal_median(np.array([1, 2, 2, 5, 6]), np.zeros(5, int), null=8).tolist()
    [2]
    """
    sizes, missing = np.bincount(labels), np.bincount(labels, codes == null).astype(np.int64)
    order = np.lexsort((codes, labels))  # null is the last code
    place = np.cumsum(sizes) - sizes + np.maximum(sizes - missing - 1, 0) // 2
    return np.where(2 * missing > sizes, null, codes[order][place]).astype(np.int32)


def convex_median(codes: Codes, labels: Labels, null: int) -> Codes:
    """Convex median of the codes of each class on the scale 0 to null - 1; null where more than half are.

    Examples after Definition 5.3 of Domingo-Ferrer & Torra 2005, on the scale 0..7:

    >>> convex_median(np.array([1, 2, 7]), np.zeros(3, int), null=8).tolist()
    [4]
    >>> convex_median(np.array([1, 2, 2, 5, 6]), np.zeros(5, int), null=8).tolist()
    [3]
    """
    classes, step = int(labels.max()) + 1, max(CELLS // (null + 1), 1)
    found = [_convex_medians(codes, labels, null, low, min(low + step, classes)) for low in range(0, classes, step)]
    return np.concatenate(found)


def _convex_medians(codes: Codes, labels: Labels, null: int, low: int, high: int) -> Codes:
    mine = (labels >= low) & (labels < high)
    cell = (labels[mine] - low).astype(np.int64) * (null + 1) + codes[mine]
    frequency = np.bincount(cell, minlength=(high - low) * (null + 1)).reshape(high - low, null + 1)
    shown, missing = frequency[:, :null], frequency[:, null]
    left = np.maximum.accumulate(shown, axis=1)
    right = np.maximum.accumulate(shown[:, ::-1], axis=1)[:, ::-1]
    below = np.cumsum(np.minimum(left, right), axis=1)
    middle = (below >= (below[:, -1:] + 1) // 2).argmax(axis=1)
    return np.where(2 * missing > frequency.sum(axis=1), null, middle).astype(np.int32)


def mode(codes: Codes, labels: Labels, rank: NDArray[np.intp] | None = None) -> Codes:
    """Most frequent code of each class; ties go to the lowest rank, which is the code itself unless given.

    >>> mode(np.array([2, 1, 2, 1, 0]), np.array([0, 0, 0, 0, 0])).tolist()
    [1]
    """
    width = int(codes.max()) + 1
    cell, count = np.unique(labels.astype(np.int64) * width + codes, return_counts=True)
    group, code = cell // width, cell % width
    order = np.lexsort((code if rank is None else rank[code], -count, group))
    first = np.unique(group[order], return_index=True)[1]
    return np.asarray(code[order][first], np.int32)


def ancestors(leaves: Codes, labels: Labels, paths: Codes) -> tuple[Codes, Codes]:
    """Lowest common ancestor of each class: a row of the hierarchy under it, and its level; -1 for a class of nulls.

    A class that holds both null (-1) and values meets at the top.

    >>> paths = np.array([[0, 0, 0], [1, 0, 0], [2, 1, 0]])
    >>> [found.tolist() for found in ancestors(np.array([0, 1, 2, 2, -1]), np.array([0, 0, 1, 1, 2]), paths)]
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


def shared(codes: Codes, labels: Labels, null: int) -> Codes:
    """The code that all records of a class share; null where they differ.

    >>> shared(np.array([1, 1, 0, 2]), np.array([0, 0, 1, 1]), null=3).tolist()
    [1, 3]
    """
    low, high = np.full((2, int(labels.max()) + 1), null)
    np.minimum.at(low, labels, codes)
    high[:] = 0
    np.maximum.at(high, labels, codes)
    return np.where(low == high, low, null).astype(np.int32)


def extremes(numbers: Floats, labels: Labels) -> tuple[Floats, Floats]:
    """Smallest and largest value of each class; NaN in a class that lacks a value.

    >>> [found.tolist() for found in extremes(np.array([1.0, 3.0, 7.0]), np.array([0, 0, 1]))]
    [[1.0, 7.0], [3.0, 7.0]]
    """
    order = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels)
    starts = np.cumsum(sizes) - sizes
    return np.minimum.reduceat(numbers[order], starts), np.maximum.reduceat(numbers[order], starts)
