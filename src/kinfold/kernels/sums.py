"""Exact sums: a sum of floats kept without rounding error, to which values are added and from which they are taken.

A sum is held as `used` partials of increasing size whose bits do not overlap (Shewchuk 1997, the way of
`math.fsum`). Doubles span 2,100 bits and a partial holds 53, so that 64 places are always enough. `rounded` gives the
double nearest to the exact sum: the mean of a set of records is then the same in whatever order they come and go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import float64, int64, njit, void

if TYPE_CHECKING:
    from numpy.typing import NDArray

PLACES = 64


@njit(cache=True)
def add(partials: NDArray[np.float64], used: int, value: float) -> int:
    """Add `value` to the sum in place and return how many partials it now has."""
    kept = 0
    for place in range(used):
        large, small = value, partials[place]
        if abs(large) < abs(small):
            large, small = small, large
        value = large + small
        rest = small - (value - large)
        if rest != 0.0:
            partials[kept] = rest
            kept += 1
    partials[kept] = value
    return kept + 1


@njit(cache=True)
def rounded(partials: NDArray[np.float64], used: int) -> float:
    """Return the double nearest to the sum; halves go to the even one."""
    if used == 0:
        return 0.0
    place = used - 1
    total = partials[place]
    rest = 0.0
    while place > 0 and rest == 0.0:
        place -= 1
        before = total
        total = before + partials[place]
        rest = partials[place] - (total - before)
    # a rest of exactly half a unit was rounded to even without a look at the partials below it
    if place > 0 and rest != 0.0 and (rest < 0.0) == (partials[place - 1] < 0.0) and partials[place - 1] != 0.0:
        twice = rest * 2.0
        beyond = total + twice
        if beyond - total == twice:
            total = beyond
    return float(total)


@njit(void(float64[:, ::1], int64[::1], float64[:, ::1]), cache=True)
def group_means(values: NDArray[np.float64], starts: NDArray[np.int64], means: NDArray[np.float64]) -> None:
    """Write the mean of rows starts[g] to starts[g + 1] of `values` into row g of `means`."""
    partials = np.empty(PLACES)
    for group in range(means.shape[0]):
        size = starts[group + 1] - starts[group]
        for column in range(values.shape[1]):
            used = 0
            for row in range(starts[group], starts[group + 1]):
                used = add(partials, used, values[row, column])
            means[group, column] = rounded(partials, used) / size
