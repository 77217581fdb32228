"""The shortest path of univariate microaggregation, a bounded number of steps at a time.

See `methods.partition.univariate` for the problem. `best[j]` is the least cost of the first j sorted values, up to a
constant that is taken off as the path goes on (`settle`), and `size[j]` the size of their last group.

All k sizes of the last group are tried, and its cost grows value by value, downwards: no difference of large sums is
ever taken. `kinfold.kernels.univariate_wide` does the same for large k.

Ties: the smaller last group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kinfold.kernels.compiling import entry, inner

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Path(NamedTuple):
    """Sorted values and the paths to each of them."""

    values: NDArray[np.float64]
    best: NDArray[np.float64]
    size: NDArray[np.int32]


def example() -> Path:
    """Return the smallest path, to compile for."""
    return Path(np.zeros(1), np.zeros(1), np.zeros(1, np.int32))


@inner
def settle(path: Path, k: int, end: int) -> None:
    """Take the least of the costs that are still needed off them, so that sums never outgrow the last few groups."""
    if end >= 2 * k:
        base = path.best[end - k]
        for at in range(end - 2 * k + 1, end):
            base = min(base, path.best[at])
        for at in range(end - 2 * k + 1, end):
            path.best[at] -= base


@entry(example(), 1, 1, 1)
def scan_squares(path: Path, k: int, begin: int, end: int) -> None:
    """Extend the paths to the values begin to end, by squared deviations from the mean."""
    share = 1.0 / np.arange(1, 2 * k)
    for last in range(begin, end):
        if last % (2 * k) == 0:
            settle(path, k, last)
        mean, cost, least, size = 0.0, 0.0, np.inf, 0
        for count in range(1, min(2 * k, last + 1)):
            step = path.values[last - count] - mean
            mean += step * share[count - 1]
            cost += step * (path.values[last - count] - mean)
            if count >= k and path.best[last - count] + cost < least:
                least, size = path.best[last - count] + cost, count
        path.best[last], path.size[last] = least, size


@entry(example(), 1, 1, 1)
def scan_absolutes(path: Path, k: int, begin: int, end: int) -> None:
    """Extend the paths to the values begin to end, by absolute deviations from the median."""
    for last in range(begin, end):
        if last % (2 * k) == 0:
            settle(path, k, last)
        cost, least, size = 0.0, np.inf, 0
        for count in range(1, min(2 * k, last + 1)):
            # a value below all others adds its distance to their lower median
            cost += path.values[last - 1 - (count - 1) // 2] - path.values[last - count]
            if count >= k and path.best[last - count] + cost < least:
                least, size = path.best[last - count] + cost, count
        path.best[last], path.size[last] = least, size
