"""MDAV as it is printed, in a few lines of numpy: a start for tests of the search."""

from __future__ import annotations

import numpy as np


def mdav_plain(x: np.ndarray, k: int) -> np.ndarray:
    labels = np.full(len(x), -1, np.int32)
    label = 0
    while (left := np.flatnonzero(labels < 0)).size >= 2 * k:
        seed = left[_gaps(x, left, x[left].mean(axis=0)).argmax()]
        for _ in range(2 if left.size >= 3 * k else 1):
            labels[left[np.argsort(_gaps(x, left, x[seed]), kind="stable")[:k]]] = label
            label += 1
            left = np.flatnonzero(labels < 0)
            seed = left[_gaps(x, left, x[seed]).argmax()]
    labels[labels < 0] = label
    return labels


def _gaps(x: np.ndarray, rows: np.ndarray, point: np.ndarray) -> np.ndarray:
    return ((x[rows] - point) ** 2).sum(axis=1)
