"""Scales: how far the codes of an ordinal or nominal attribute are from each other, and a place to measure from.

The row of a place holds, column after column, the squared weighted distance of its code to each code. Most of it
never changes: outside the highest ancestor below the top, every code of a nested scale is equally far. So a new
place costs what its ancestor's codes cost, and no table of codes by codes is needed however many codes there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kinfold.kernels.compiling import Int, Real, lean

if TYPE_CHECKING:
    from numpy.typing import NDArray


COLUMN = np.dtype(
    [
        ("start", np.int64),  # where its codes start in a row
        ("height", np.int64),  # of a nested scale; 0: ordered, its last code is null
        ("gaps", np.int64),  # where its gaps start in `gap`
        ("spans", np.int64),  # where its spans start in `span`
    ],
    align=True,
)
SPAN = np.dtype([("first", np.int32), ("past", np.int32)], align=True)  # the codes under an ancestor


class Scales(NamedTuple):
    """The scales of the b code columns, laid end to end."""

    column: Any  # (b + 1,) of COLUMN; the last one says where all end
    gap: NDArray[np.float64]  # squared weighted distance by steps (ordered; the last one is null's) or levels (nested)
    span: Any  # of SPAN, for each ancestor of a code, level by level below the top


class Place(NamedTuple):
    """Where a query starts from."""

    numbers: NDArray[np.float64]  # (a,)
    codes: NDArray[np.int32]  # (b,) -1 where gaps do not grow with the distance of the codes
    row: NDArray[np.float64]  # gaps to every code, column after column
    start: NDArray[np.int64]  # (b,) where the gaps of each column start in the row


def no_scales() -> Scales:
    """Return the scales of records without codes."""
    return Scales(np.zeros(1, COLUMN).view(np.recarray), np.zeros(0), np.zeros(0, SPAN).view(np.recarray))


def place_in(scales: Scales, numbers: int) -> Place:
    """Return a place at zero among records with so many numbers; its row knows the gaps from each column's code 0."""
    start = scales.column.start.copy()
    at = Place(np.zeros(numbers), np.zeros(len(start) - 1, np.int32), np.empty(start[-1]), start[:-1])
    for j in range(len(start) - 1):
        column = scales.column[j]
        if column.height > 0:  # a move changes what is under the highest ancestor: all else has to be right before
            at.row[start[j] : start[j + 1]] = scales.gap[column.gaps + column.height]
        move(scales, at, j, 0)
    return at


@lean
def move(scales: Scales, place: Place, j: Int, code: Int) -> None:
    """Turn column j of the place's row into the gaps from `code`."""
    column = scales.column[j]
    start, height, gaps = column.start, column.height, column.gaps
    if height == 0:
        null = scales.column[j + 1].start - start - 1
        for i in range(null + 1):
            steps = null if (i == null) != (code == null) else abs(i - code)
            place.row[start + i] = scales.gap[gaps + steps]
    else:
        old = column.spans + np.int64(place.codes[j]) * height + height - 1
        for i in range(scales.span[old].first, scales.span[old].past):
            place.row[start + i] = scales.gap[gaps + height]
        for level in range(height - 1, -1, -1):
            new = column.spans + code * height + level
            for i in range(scales.span[new].first, scales.span[new].past):
                place.row[start + i] = scales.gap[gaps + level]
    place.codes[j] = code


@lean
def gap_between(scales: Scales, j: Int, one: Int, other: Int) -> Real:
    """Return the squared weighted distance of two codes of column j."""
    if one == other:  # most often
        return 0.0
    column = scales.column[j]
    if column.height == 0:
        null = scales.column[j + 1].start - column.start - 1
        steps = null if (one == null) != (other == null) else abs(one - other)
        return scales.gap[column.gaps + steps]
    level, span = 0, column.spans + np.int64(one) * column.height
    while level < column.height and not scales.span[span + level].first <= other < scales.span[span + level].past:
        level += 1
    return scales.gap[column.gaps + level]
