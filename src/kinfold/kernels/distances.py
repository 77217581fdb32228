"""Squared distances of all pairs of records, and the nearest records of each.

Cost: O(n² a) time, O(n²) memory.   Ties: the lowest index is the nearer.
"""

from __future__ import annotations

import numba
import numpy as np

from kinfold.kernels.options import kernel

_f8_2 = numba.float64[:, ::1]


@kernel(numba.void(_f8_2, _f8_2))
def add_gaps(numbers: np.ndarray, gaps: np.ndarray) -> None:
    """Add to `gaps` the squared distance of each pair of rows."""
    for i in range(numbers.shape[0]):
        for j in range(i):
            total = 0.0
            for t in range(numbers.shape[1]):
                step = numbers[i, t] - numbers[j, t]
                total += step * step
            gaps[i, j] += total
            gaps[j, i] += total


@kernel(numba.void(_f8_2, numba.int32[:, ::1]))
def nearest(gaps: np.ndarray, near: np.ndarray) -> None:
    """Fill each row of `near` with the nearest other records, nearest first."""
    many = near.shape[1]
    least = np.empty(many)
    for i in range(gaps.shape[0]):
        found = 0
        for j in range(gaps.shape[0]):
            there = gaps[i, j]
            if j == i or (found == many and there >= least[many - 1]):
                continue
            at = found if found < many else many - 1
            while at > 0 and least[at - 1] > there:
                least[at] = least[at - 1]
                near[i, at] = near[i, at - 1]
                at -= 1
            least[at] = there
            near[i, at] = j
            if found < many:
                found += 1
