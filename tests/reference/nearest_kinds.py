"""The records of a kind nearest to another, the slow way: sort all of them."""

from __future__ import annotations

import numpy as np


def nearest_of_kind(
    x: np.ndarray, kind: np.ndarray, among: np.ndarray, place: int, wanted: int, wide: int
) -> list[int]:
    rows = [i for i in range(len(x)) if among[i] and kind[i] == wanted]
    rows.sort(key=lambda i: (float(((x[i] - x[place]) ** 2).sum()), i))
    return (rows + [-1] * wide)[:wide]
