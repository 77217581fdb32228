"""Scales: how far the codes of an ordinal or nominal attribute are from each other, and a place to measure from.

The row of a place holds, column after column, the squared weighted distance of its code to each code. Most of it
never changes: outside the highest ancestor below the top, every code of a nested scale is equally far. So a new
place costs what its ancestor's codes cost, and no table of codes by codes is needed however many codes there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kinfold.kernels.compiling import Int, Real, inner

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Scales(NamedTuple):
    """The scales of the b code columns, laid end to end."""

    start: NDArray[np.int64]  # (b + 1,) where the codes of each column start in a row
    height: NDArray[np.int64]  # (b,) of a nested scale; 0: ordered, its last code is null
    gaps: NDArray[np.int64]  # (b,) where its gaps start in `gap`
    spans: NDArray[np.int64]  # (b,) where its spans start in `first` and `past`
    gap: NDArray[np.float64]  # squared weighted distance by steps (ordered; the last one is null's) or levels (nested)
    first: NDArray[np.int32]  # the first code under each ancestor of a code, level by level below the top
    past: NDArray[np.int32]  # one past the last code under it


class Place(NamedTuple):
    """Where a query starts from."""

    numbers: NDArray[np.float64]  # (a,)
    codes: NDArray[np.int32]  # (b,) -1 where gaps do not grow with the distance of the codes
    row: NDArray[np.float64]  # gaps to every code, column after column
    start: NDArray[np.int64]  # (b,) where the gaps of each column start in the row


def no_scales() -> Scales:
    """Return the scales of records without codes."""
    whole, codes = np.zeros(0, np.int64), np.zeros(0, np.int32)
    return Scales(np.zeros(1, np.int64), whole, whole, whole, np.zeros(0), codes, codes)


def place_in(scales: Scales, numbers: int) -> Place:
    """Return a place at zero among records with so many numbers; its row knows the gaps from each column's code 0."""
    at = Place(
        np.zeros(numbers), np.zeros(len(scales.height), np.int32), np.empty(scales.start[-1]), scales.start[:-1].copy()
    )
    for j, height in enumerate(scales.height):
        if height > 0:  # a move changes what is under the highest ancestor: all else has to be right before
            at.row[scales.start[j] : scales.start[j + 1]] = scales.gap[scales.gaps[j] + height]
        move(scales, at, j, 0)
    return at


@inner
def move(scales: Scales, place: Place, j: Int, code: Int) -> None:
    """Turn column j of the place's row into the gaps from `code`."""
    start, height, gaps = scales.start[j], scales.height[j], scales.gaps[j]
    if height == 0:
        null = scales.start[j + 1] - start - 1
        for i in range(null + 1):
            steps = null if (i == null) != (code == null) else abs(i - code)
            place.row[start + i] = scales.gap[gaps + steps]
    else:
        old = scales.spans[j] + np.int64(place.codes[j]) * height + height - 1
        for i in range(scales.first[old], scales.past[old]):
            place.row[start + i] = scales.gap[gaps + height]
        for level in range(height - 1, -1, -1):
            new = scales.spans[j] + code * height + level
            for i in range(scales.first[new], scales.past[new]):
                place.row[start + i] = scales.gap[gaps + level]
    place.codes[j] = code


@inner
def gap_between(scales: Scales, j: Int, one: Int, other: Int) -> Real:
    """Return the squared weighted distance of two codes of column j."""
    height, gaps = scales.height[j], scales.gaps[j]
    if height == 0:
        null = scales.start[j + 1] - scales.start[j] - 1
        steps = null if (one == null) != (other == null) else abs(one - other)
        return scales.gap[gaps + steps]
    level, span = 0, scales.spans[j] + np.int64(one) * height
    while level < height and not scales.first[span + level] <= other < scales.past[span + level]:
        level += 1
    return scales.gap[gaps + level]
