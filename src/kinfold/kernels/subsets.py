"""Subsets: the cheapest way to divide a few records into classes, by dynamic programming over all subsets.

    best[S] = min over classes G in S that hold the first record of S:  cost[G] + best[S without G]

Cost: O(3^n) time, O(2^n) memory.   Ties: the subset with the smallest number.
"""

from __future__ import annotations

import numpy as np

from kinfold.kernels.compiling import entry


@entry(np.zeros(1), np.zeros(1), np.zeros(1, np.int64))
def divide(cost: np.ndarray, best: np.ndarray, choice: np.ndarray) -> None:
    """Fill `best` and the class chosen for the first record of each subset; a class of infinite cost is not allowed."""
    best[0] = 0.0
    for whole in range(1, cost.size):
        first = whole & -whole
        rest = whole ^ first
        best[whole] = np.inf
        choice[whole] = 0
        part = rest
        while True:
            found = cost[part | first] + best[rest ^ part]
            if found < best[whole] or (found == best[whole] and found < np.inf and (part | first) < choice[whole]):
                best[whole] = found
                choice[whole] = part | first
            if part == 0:
                break
            part = (part - 1) & rest
