"""Squared distances of all pairs of records, and the nearest records of each.

Cost: O(n² a) time; O(n²) memory for a table, O(n) without.   Ties: the lowest index is the nearer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold.kernels.compiling import entry, inner

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Rows = NDArray[np.int32]


@inner
def apart(numbers: Floats, i: int, j: int) -> float:
    """Return the squared distance of two rows."""
    total = 0.0
    for t in range(numbers.shape[1]):
        step = numbers[i, t] - numbers[j, t]
        total += step * step
    return total


@inner
def keep_nearest(least: Floats, near: Rows, found: int, there: float, j: int) -> int:
    """Put row j, so far away, among the nearest found; return how many there are now."""
    many = least.size
    if found == many and there >= least[many - 1]:
        return found
    at = min(found, many - 1)
    while at > 0 and least[at - 1] > there:
        least[at] = least[at - 1]
        near[at] = near[at - 1]
        at -= 1
    least[at] = there
    near[at] = j
    return min(found + 1, many)


@entry(np.zeros((1, 1)), np.zeros((1, 1)))
def add_gaps(numbers: Floats, gaps: Floats) -> None:
    """Add to `gaps` the squared distance of each pair of rows."""
    for i in range(numbers.shape[0]):
        for j in range(i):
            total = apart(numbers, i, j)
            gaps[i, j] += total
            gaps[j, i] += total


@entry(np.zeros((1, 1)), np.zeros((1, 1), np.int32))
def nearest(gaps: Floats, near: Rows) -> None:
    """Fill each row of `near` with the nearest other records, nearest first, from a table of all distances."""
    least = np.empty(near.shape[1])
    for i in range(gaps.shape[0]):
        found = 0
        for j in range(gaps.shape[0]):
            if j != i:
                found = keep_nearest(least, near[i], found, gaps[i, j], j)


@entry(np.zeros((1, 1)), np.zeros((1, 1), np.int32))
def nearest_rows(numbers: Floats, near: Rows) -> None:
    """Fill each row of `near` with the nearest other rows, nearest first, from their numbers."""
    least = np.empty(near.shape[1])
    for i in range(numbers.shape[0]):
        found = 0
        for j in range(numbers.shape[0]):
            if j != i:
                found = keep_nearest(least, near[i], found, apart(numbers, i, j), j)
