"""The records of a kind nearest to another, the slow way: sort all, then take two of those that tie, in turns."""

from __future__ import annotations

from itertools import groupby

import numpy as np

DEEP = 2


def nearest_of_kind(
    x: np.ndarray, kind: np.ndarray, among: np.ndarray, place: int, wanted: int, wide: int, query: int
) -> list[int]:
    rows = [i for i in range(len(x)) if among[i] and kind[i] == wanted]
    rows.sort(key=lambda i: (float(((x[i] - x[place]) ** 2).sum()), *x[i], i))
    found: list[int] = []
    for _, tied in groupby(rows, key=lambda i: tuple(x[i])):
        there = list(tied)
        found += [there[(DEEP * query + m) % len(there)] for m in range(min(DEEP, len(there)))]
    return (found + [-1] * wide)[:wide]
