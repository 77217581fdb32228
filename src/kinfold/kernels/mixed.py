"""Mixed records: numbers and codes, and the squared distance between any two places among them.

The same distance as `kinfold.rows.points`, attribute after attribute, numbers first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kinfold.kernels.compiling import inner

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Codes = NDArray[np.int32]


class Mixed(NamedTuple):
    """The records, and the scales of the codes laid end to end."""

    numbers: NDArray[np.float64]  # (n, a)
    codes: NDArray[np.int32]  # (n, b)
    null: NDArray[np.int64]  # (b,) the code of null in an ordered scale, -1 for a nested one
    height: NDArray[np.int64]  # (b,) levels of a nested scale
    weight: NDArray[np.float64]  # (b,)
    start: NDArray[np.int64]  # (b,) where the paths of a nested scale start
    paths: NDArray[np.int32]  # code after code, level after level


def example() -> Mixed:
    """Return the smallest records, to compile for."""
    whole, codes = np.zeros(0, np.int64), np.zeros((1, 0), np.int32)
    return Mixed(np.zeros((1, 1)), codes, whole, whole, np.zeros(0), whole, np.zeros(0, np.int32))


@inner
def code_gap(m: Mixed, j: int, a: int, b: int) -> float:
    """Squared weighted distance of two codes of column j."""
    if a == b:
        return 0.0
    null = m.null[j]
    if null >= 0:
        step = 1.0 if a == null or b == null else abs(a - b) / null
    else:
        height = m.height[j]
        level = 0
        for h in range(height):
            if m.paths[m.start[j] + a * (height + 1) + h] != m.paths[m.start[j] + b * (height + 1) + h]:
                level += 1
        step = level / height
    return m.weight[j] * step * step


@inner
def code_gaps(m: Mixed, i: int, l: int) -> float:
    """Squared distance of two records over their codes alone."""
    total = 0.0
    for j in range(m.codes.shape[1]):
        total += code_gap(m, j, m.codes[i, j], m.codes[l, j])
    return total


@inner
def distance(m: Mixed, i: int, numbers: Floats, codes: Codes) -> float:
    """Squared distance of record i to a place."""
    total = 0.0
    for j in range(numbers.size):
        step = m.numbers[i, j] - numbers[j]
        total += step * step
    for j in range(codes.size):
        total += code_gap(m, j, m.codes[i, j], codes[j])
    return total


@inner
def centre_code(m: Mixed, j: int, sorted_codes: Codes) -> int:
    """Lower median of ordered codes, most frequent of nested ones; the lowest code wins a tie."""
    size = sorted_codes.size
    if m.null[j] >= 0:
        return sorted_codes[(size - 1) // 2]
    best, most, i = sorted_codes[0], 0, 0
    while i < size:
        end = i
        while end < size and sorted_codes[end] == sorted_codes[i]:
            end += 1
        if end - i > most:
            best, most = sorted_codes[i], end - i
        i = end
    return best
