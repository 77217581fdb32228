"""Gaps from one place to every code: a row to look them up in.

The row of a place holds, column after column, the squared weighted distance of its code to each code. Most of it
never changes: outside the highest ancestor below the top, every code of a nested scale is equally far. So a new
place costs what its ancestor's codes cost, and no table of codes by codes is needed however many codes there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kinfold.kernels.compiling import Int, inner

if TYPE_CHECKING:
    from numpy.typing import NDArray

START, HEIGHT, GAP, SPAN = range(4)  # columns of Scales.where


class Scales(NamedTuple):
    """The scales of the b code columns, laid end to end."""

    where: NDArray[
        np.int64
    ]  # (b + 1, 4) where a column's codes start in a row; its height (0: ordered); its gaps; its spans
    gap: NDArray[np.float64]  # gap by steps (ordered; the last one is null's) or by levels (nested)
    span: NDArray[
        np.int32
    ]  # (.., 2) the codes under each ancestor of a code, level by level below the top: first, one past last


class Place(NamedTuple):
    """Where a search starts from."""

    numbers: NDArray[np.float64]  # (a,)
    codes: NDArray[np.int32]  # (b,)
    row: NDArray[np.float64]  # gaps to every code, column after column


def no_scales() -> Scales:
    """Return the scales of points without codes."""
    return Scales(np.zeros((1, 4), np.int64), np.zeros(0), np.zeros((0, 2), np.int32))


def place(numbers: int, codes: int, row: NDArray[np.float64]) -> Place:
    """Return a place at zero, with the row of gaps from every column's code 0."""
    return Place(np.zeros(numbers), np.zeros(codes, np.int32), row)


@inner
def move(scales: Scales, place: Place, j: Int, code: Int) -> None:
    """Turn column j of the place's row into the gaps from `code`."""
    start, height, gap = scales.where[j, START], scales.where[j, HEIGHT], scales.where[j, GAP]
    if height == 0:
        null = scales.where[j + 1, START] - start - 1
        for i in range(null + 1):
            steps = null if (i == null) != (code == null) else abs(i - code)
            place.row[start + i] = scales.gap[gap + steps]
    else:
        old = scales.where[j, SPAN] + np.int64(place.codes[j]) * height + height - 1
        for i in range(scales.span[old, 0], scales.span[old, 1]):
            place.row[start + i] = scales.gap[gap + height]
        for level in range(height - 1, -1, -1):
            new = scales.where[j, SPAN] + code * height + level
            for i in range(scales.span[new, 0], scales.span[new, 1]):
                place.row[start + i] = scales.gap[gap + level]
    place.codes[j] = code
