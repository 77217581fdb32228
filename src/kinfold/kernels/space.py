"""Space: what the squared distance of two mixed records is, and how near and how far a box of records can be.

A record is a row of floats: its numbers, then its codes written as floats. Distances are summed column by column in
that order. Rounding is monotone, and a scale's gaps never shrink while one moves away from a code: the bounds below are
the same sums over the ends of a box, so that they hold to the last bit and no margin is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from numba import float64, int32, int64, njit, types

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Space(NamedTuple):
    """How many columns are numbers, and the scale of each column of codes after them."""

    numbers: int
    sizes: NDArray[np.int64]  # of an ordered scale its number of categories, of a nested one minus its height
    weights: NDArray[np.float64]
    first: NDArray[np.int64]  # row of `paths` that holds code 0; one more than there are scales
    paths: NDArray[np.int32]  # the ancestors of each code


SPACE = types.NamedTuple((int64, int64[::1], float64[::1], int64[::1], int32[:, ::1]), Space)  # type: ignore[no-untyped-call]


@njit(cache=True)
def gap(space: Space, scale: int, one: float, other: float) -> float:
    """Return the squared, weighted distance of two codes of a scale."""
    if one == other:
        return 0.0
    size = space.sizes[scale]
    if size > 0:
        step = 1.0 if max(one, other) == size else abs(one - other) / size
    else:
        here, there = space.first[scale] + int(one), space.first[scale] + int(other)
        level = 0
        for height in range(1 - size):
            level += space.paths[here, height] != space.paths[there, height]
        step = level / -size
    return float(space.weights[scale] * step * step)


@njit(cache=True)
def distance(space: Space, one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Return the squared distance of two records."""
    total = 0.0
    for column in range(space.numbers):
        step = one[column] - other[column]
        total += step * step
    for scale in range(space.sizes.shape[0]):
        column = space.numbers + scale
        total += gap(space, scale, one[column], other[column])
    return total


@njit(cache=True)
def least(space: Space, low: NDArray[np.float64], high: NDArray[np.float64], query: NDArray[np.float64]) -> float:
    """Return a squared distance that no record of the box is nearer than."""
    total = 0.0
    for column in range(space.numbers):
        step = max(low[column] - query[column], query[column] - high[column], 0.0)
        total += step * step
    for scale in range(space.sizes.shape[0]):
        column = space.numbers + scale
        end = min(max(query[column], low[column]), high[column])
        total += gap(space, scale, end, query[column])
    return total


@njit(cache=True)
def most(space: Space, low: NDArray[np.float64], high: NDArray[np.float64], query: NDArray[np.float64]) -> float:
    """Return a squared distance that no record of the box is farther than."""
    total = 0.0
    for column in range(space.numbers):
        step = max(query[column] - low[column], high[column] - query[column])
        total += step * step
    for scale in range(space.sizes.shape[0]):
        column = space.numbers + scale
        total += max(gap(space, scale, low[column], query[column]), gap(space, scale, high[column], query[column]))
    return total
