"""Distances from one place to every code: a row of gaps, so that a search only has to look up.

The row of a place holds, column after column, the squared weighted distance of its code to each code. Most of it
never changes: outside the highest ancestor below the top, every code of a nested scale is equally far. So a new
place costs what its ancestor's codes cost, and no table of codes by codes is needed however many codes there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Scales(NamedTuple):
    """The scales of the code columns, laid end to end."""

    start: NDArray[np.int64]  # (b + 1,) where the codes of each column start in a row
    height: NDArray[np.int64]  # (b,) steps to the top of a nested scale; 0 for an ordered one
    step: NDArray[np.int64]  # (b,) where the gaps of each column start in `gap`
    gap: NDArray[np.float64]  # gap by steps (ordered: the last one is null's) or by levels (nested)
    reach: NDArray[np.int64]  # (b,) where the reaches of each column start in `first` and `last`
    first: NDArray[np.int32]  # first code under the ancestor of a code, level by level below the top
    last: NDArray[np.int32]  # one past the last


class Place(NamedTuple):
    """Where a search starts from."""

    numbers: NDArray[np.float64]  # (a,)
    codes: NDArray[np.int32]  # (b,)
    row: NDArray[np.float64]  # gaps to every code


@njit
def move(scales, place, j, code):
    """Turn column j of the place's row into the gaps from `code`."""
    start = scales.start[j]
    height = scales.height[j]
    if height == 0:
        _move_ordered(scales, place, j, code)
    else:
        before = scales.reach[j] + place.codes[j] * height
        for i in range(scales.first[before + height - 1], scales.last[before + height - 1]):
            place.row[start + i] = scales.gap[scales.step[j] + height]
        after = scales.reach[j] + code * height
        for level in range(height - 1, -1, -1):
            for i in range(scales.first[after + level], scales.last[after + level]):
                place.row[start + i] = scales.gap[scales.step[j] + level]
    place.codes[j] = code


@njit
def _move_ordered(scales, place, j, code):
    start = scales.start[j]
    null = scales.start[j + 1] - start - 1
    gaps = scales.step[j]
    for i in range(null):
        place.row[start + i] = scales.gap[gaps + null] if code == null else scales.gap[gaps + abs(i - code)]
    place.row[start + null] = 0.0 if code == null else scales.gap[gaps + null]
