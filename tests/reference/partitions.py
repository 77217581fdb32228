"""Partitions the plain way: their cost from the definition, and the best one by trying all."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np


def sse_plain(x: np.ndarray, labels: np.ndarray) -> float:
    """Sum of squares about the group means."""
    return sum(float(((x[labels == g] - x[labels == g].mean(axis=0)) ** 2).sum()) for g in np.unique(labels))


def pair_cost(gaps: np.ndarray, group: tuple[int, ...]) -> float:
    """Squared distances of the pairs over the size."""
    return sum(float(gaps[i, j]) for i, j in combinations(group, 2)) / len(group)


def least_cost(gaps: np.ndarray, k: int) -> float:
    """The cost of the best partition into groups of k to 2k-1, found by trying all."""

    @cache
    def least(left: tuple[int, ...]) -> float:
        if not left:
            return 0.0
        first, rest = left[0], left[1:]
        best = np.inf
        for others in range(k - 1, min(2 * k - 1, len(left))):
            if 0 < len(rest) - others < k:
                continue
            for chosen in combinations(rest, others):
                there = pair_cost(gaps, (first, *chosen))
                if there < best:
                    best = min(best, there + least(tuple(i for i in rest if i not in chosen)))
        return best

    return least(tuple(range(len(gaps))))
