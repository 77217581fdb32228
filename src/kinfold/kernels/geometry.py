"""Squared distances of all pairs of records, the nearest records of each, and the means of groups.

Cost: O(n² a) time; O(n²) memory for a table, O(n) without.   Ties: the lowest index is the nearer.
"""

from __future__ import annotations

import numpy as np

from kinfold.kernels.compiling import Floats, Ints, Rows, entry, inner
from kinfold.kernels.records import DIGITS, LIMBS, add_to_sum, round_sum


@inner
def row_distance(numbers: Floats, i: int, j: int) -> float:
    """Return the squared distance of two rows."""
    total = 0.0
    for t in range(numbers.shape[1]):
        step = numbers[i, t] - numbers[j, t]
        total += step * step
    return total


@inner
def keep_nearest(least: Floats, near: Rows, count: int, distance: float, j: int) -> int:
    """Insert row j, at this distance, into the nearest rows so far; return how many there are now."""
    limit = least.size
    if count == limit and distance >= least[limit - 1]:
        return count
    at = min(count, limit - 1)
    while at > 0 and least[at - 1] > distance:
        least[at] = least[at - 1]
        near[at] = near[at - 1]
        at -= 1
    least[at] = distance
    near[at] = j
    return min(count + 1, limit)


@entry(np.zeros((1, 1)), np.zeros((1, 1)))
def add_distances(numbers: Floats, squared: Floats) -> None:
    """Add to `squared` the squared distance of each pair of rows."""
    for i in range(numbers.shape[0]):
        for j in range(i):
            total = row_distance(numbers, i, j)
            squared[i, j] += total
            squared[j, i] += total


@entry(np.zeros((1, 1)), np.zeros((1, 1), np.int32))
def find_nearest(squared: Floats, near: Rows) -> None:
    """Fill each row of `near` with the nearest other records, nearest first, from a table of all distances."""
    least = np.empty(near.shape[1])
    for i in range(squared.shape[0]):
        count = 0
        for j in range(squared.shape[0]):
            if j != i:
                count = keep_nearest(least, near[i], count, squared[i, j], j)


@entry(np.zeros((1, 1)), np.zeros((1, 1), np.int32))
def find_nearest_rows(numbers: Floats, near: Rows) -> None:
    """Fill each row of `near` with the nearest other rows, nearest first, from their numbers."""
    least = np.empty(near.shape[1])
    for i in range(numbers.shape[0]):
        count = 0
        for j in range(numbers.shape[0]):
            if j != i:
                count = keep_nearest(least, near[i], count, row_distance(numbers, i, j), j)


@entry(np.zeros((1, 1)), np.zeros(2, np.int64), np.zeros((1, 1)))
def group_means(values: Floats, starts: Ints, means: Floats) -> None:
    """Write the mean of rows starts[g] to starts[g + 1] into row g of `means`: an exact sum, rounded once."""
    bits = values.view(np.int64)
    sums, digits = np.zeros((1, LIMBS), np.int64), np.zeros(DIGITS, np.int64)
    for group in range(means.shape[0]):
        begin, end = starts[group], starts[group + 1]
        for column in range(values.shape[1]):
            for row in range(begin, end):
                add_to_sum(sums, 0, bits[row, column], 1)
            means[group, column] = round_sum(sums, 0, digits) / (end - begin)
            sums[:] = 0
