"""Mixed records: numbers and codes with their scales, and the squared distance between any two.

The same distance as `kinfold.rows.points`, attribute after attribute, numbers first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kinfold.kernels.compiling import Int, Real, inlined, lean
from kinfold.kernels.scales import Place, Scales, gap_between, move, no_scales

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Codes = NDArray[np.int32]


class Mixed(NamedTuple):
    """n records with a numbers and b codes."""

    numbers: NDArray[np.float64]  # (n, a)
    codes: NDArray[np.int32]  # (n, b)
    scales: Scales


def example() -> Mixed:
    """Return the smallest records, to compile for."""
    return Mixed(np.zeros((1, 1)), np.zeros((1, 0), np.int32), no_scales())


@lean
def code_gap(m: Mixed, j: Int, a: Int, b: Int) -> Real:
    """Squared weighted distance of two codes of column j."""
    return gap_between(m.scales, j, a, b)


@lean
def code_gaps(m: Mixed, i: Int, l: Int) -> Real:
    """Squared distance of two records over their codes alone."""
    total = 0.0
    for j in range(m.codes.shape[1]):
        total += gap_between(m.scales, j, m.codes[i, j], m.codes[l, j])
    return total


@lean
def centre_code(m: Mixed, j: Int, sorted_codes: Codes) -> Int:
    """Lower median of ordered codes, most frequent of nested ones; the lowest code wins a tie."""
    size = sorted_codes.size
    if m.scales.column[j].height == 0:
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


@inlined
def to_record(m: Mixed, place: Place, record: Int) -> None:
    """Move the place to a record."""
    for j in range(place.numbers.size):
        place.numbers[j] = m.numbers[record, j]
    for j in range(place.codes.size):
        move(m.scales, place, j, np.int64(m.codes[record, j]))
