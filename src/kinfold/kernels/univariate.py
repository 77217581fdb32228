"""The shortest path of univariate microaggregation, a bounded number of steps at a time.

See `methods.partition.univariate` for the problem. `best[j]` is the least cost of the first j sorted values, up to a
constant that is taken off as the path goes on (`settle`), and `size[j]` the size of their last group.

For squares and for deviations from the median all k sizes of the last group are tried, and its cost grows value by
value, downwards: no difference of large sums is ever taken. `kinfold.kernels.univariate_wide` does it for large k.

`scan_absolutes` has no largest size of a group (see the method) and stops early by a bound. Write f(G) for the absolute
deviations of a group from its mean, med(G) for those from its median, A for the values from a start s' up to s and B
for those from s to the end, so that no value of A exceeds one of B and A has at least k values. Then

    f(A + B) >= f(A), because f(G) is twice what its values lie below its mean, and the mean of A + B is not below A's
    f(A + B) >= med(A) + med(B), because the median is the best centre of each part

and so the path that takes the group A + B costs at least best[s], and at least below[s] + med(B), where below[s] is a
lower bound of best[s'] + med(A) over all s'. Once one of the two reaches the least cost found, no start at s - k or
before can improve on it.

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
def scan_medians(path: Path, k: int, begin: int, end: int) -> None:
    """Extend the paths to the values begin to end, by absolute deviations from the median of the group."""
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


@entry(example(), np.zeros(1), 1, 1, 1)
def scan_absolutes(path: Path, below: NDArray[np.float64], k: int, begin: int, end: int) -> None:
    """Extend the paths to the values begin to end, by absolute deviations from the mean of the group."""
    for last in range(begin, end):
        top = path.values[last - 1]  # distances from it rise downwards: 0 first
        total, near, inside, median = 0.0, 0.0, 0, 0.0
        least, size, low, floor = np.inf, 0, np.inf, 0
        count = 0
        while last - count > floor:
            count += 1
            start = last - count
            total += top - path.values[start]
            median += path.values[last - 1 - (count - 1) // 2] - path.values[start]
            mean = total / count
            while inside < count and top - path.values[last - 1 - inside] < mean:  # the mean only rises
                near += top - path.values[last - 1 - inside]
                inside += 1
            if count < k or path.best[start] == np.inf:
                continue
            cost = path.best[start] + 2.0 * (inside * mean - near)
            if cost < least:
                least, size = cost, count
            low = min(low, path.best[start] + median)
            if floor == 0 and max(path.best[start], below[start] + median) >= least:
                floor = max(start - k + 1, 0)
                low = min(low, below[start] + median)
        path.best[last], path.size[last], below[last] = least, size, low
