"""Roll-up: which rows say the same once every attribute stands at its level.

    key of a row = Σ factor[a] · label[a], the labels of a row as digits of one number
    classes      = the distinct keys, numbered by the first row that has them

`labels` holds, one after the other, the number of each code's label for every attribute and level; `start[a]` says
where the level asked for begins. Keys below `space` are looked up in a table of that size, or else hashed.

Cost: O(rows · attributes).   Ties: classes are numbered in the order of their first rows.
"""

from __future__ import annotations

import numpy as np

from kinfold.kernels.compiling import entry

_KEYS, _CODES, _LABELS = np.zeros(1, np.int64), np.zeros((1, 1), np.int32), np.zeros(1, np.int32)


@entry(_CODES, _KEYS, _LABELS, _KEYS, _KEYS)
def keys(codes: np.ndarray, rows: np.ndarray, labels: np.ndarray, start: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Return the key of each of these rows."""
    found = np.zeros(rows.size, np.int64)
    for i in range(rows.size):
        row = rows[i]
        key = 0
        for a in range(start.size):
            if factor[a] > 0:
                key += factor[a] * labels[start[a] + codes[row, a]]
        found[i] = key
    return found


@entry(_KEYS, 1, _KEYS)
def number(found: np.ndarray, space: int, into: np.ndarray) -> int:
    """Write the class of each key to `into` and return how many classes there are; keys lie below `space`."""
    size = 1
    direct = space <= max(4 * found.size, 4096)
    if direct:
        size = space
    else:
        while size < 2 * found.size:
            size *= 2
    first = np.full(size, -1, np.int64)  # the class that sits here
    held = np.empty(found.size, np.int64)  # the key of each class
    classes = 0
    for i in range(found.size):
        key = found[i]
        seat = key
        if not direct:
            seat = (key ^ (key >> 31)) * 0x1E3779B97F4A7C15
            seat = (seat ^ (seat >> 29)) & (size - 1)
            while first[seat] >= 0 and held[first[seat]] != key:
                seat = (seat + 1) & (size - 1)
        if first[seat] < 0:
            first[seat] = classes
            held[classes] = key
            classes += 1
        into[i] = first[seat]
    return classes


@entry(_KEYS, _KEYS, _KEYS, _KEYS, _KEYS)
def gather(into: np.ndarray, rows: np.ndarray, sizes: np.ndarray, first: np.ndarray, total: np.ndarray) -> None:
    """Write the first row of each class to `first`, and its records, added up, to `total`."""
    first[:] = -1
    total[:] = 0
    for i in range(into.size):
        if first[into[i]] < 0:
            first[into[i]] = rows[i]
        total[into[i]] += sizes[i]


@entry(_CODES, _KEYS, _KEYS, np.zeros(1), _KEYS)
def weigh(codes: np.ndarray, rows: np.ndarray, sizes: np.ndarray, lost: np.ndarray, start: np.ndarray) -> float:
    """Return Σ size · Σ_a lost[start[a] + code], in the order of the rows."""
    total = 0.0
    for i in range(rows.size):
        row = 0.0
        for a in range(start.size):
            row += lost[start[a] + codes[rows[i], a]]
        total += sizes[i] * row
    return total
