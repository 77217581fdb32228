"""Optimal microaggregation of one column, as a shortest path.

    sort the values; equal ones keep the order of their rows
    the least cost of the first j values = the least, over the sizes k to 2k-1 of their last group, of
        the least cost of the values before that group + the cost of the group
    the groups of the n values are read off backwards

An optimal partition has groups of neighbours only, none of 2k or more, for those can be cut without loss. The cost of a
group is the sum of squared deviations from its mean (SSE) or of absolute deviations from its median.

Paper: Hansen & Mukherjee, IEEE Trans. Knowl. Data Eng. 15 (2003); absolute deviations: Eq. (2) of Truta et al. 2003.
Cost: O(n log n) to sort, then O(kn) for k up to 50 and O(n log k) above (`kinfold.kernels.univariate_wide`).
Ties: of paths that cost the same the one whose last group is smaller.

Accuracy: values are scaled by a power of two; a group's cost is summed up without cancellation; a constant is taken off
the running costs as the path goes on. A group is thus weighed against its neighbours to full precision however large
the values are, and whatever came before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from kinfold import kernels
from kinfold.errors import PolicyError
from kinfold.progress import Progress, silent
from kinfold.request.methods import Declaration
from kinfold.rows.points import SMALL, Floats, Labels, Points, checked_size

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kinfold.methods.task import Task

Cost = Literal["sse", "absolute"]

METHOD = Declaration(
    name="univariate",
    family="partition",
    summary="the optimum for one quasi-identifier",
    page="univariate",
    needs=("one number",),
    kernels=("univariate", "univariate_wide"),
    cost=(0.05, 1.0),
    order=3,
)

WIDE = 50  # above this k trying every size of the last group takes longer than halving (measured at 10⁶ values)
CHUNK = 1 << 18  # values between two looks at the listener


def univariate(x: object, k: int, *, cost: Cost = "sse", progress: Progress = silent) -> Labels:
    """Return one group label per record, numbered by rising values; every group has k to 2k-1 records.

    >>> univariate(np.array([[5.0], [1.0], [1.0], [1.1], [5.0], [1.0], [5.1]]), 3).tolist()
    [1, 0, 0, 0, 1, 0, 1]
    """
    points = Points.of(x)
    k = checked_size(points, k)
    if points.numbers.shape[1] != 1 or points.scales:
        count = points.numbers.shape[1] + len(points.scales)
        raise PolicyError(
            f"univariate takes one column of numbers, not {count} attributes"
            if count != 1
            else "the column holds codes",
            fix="name one numeric quasi-identifier, or use mdav",
        )
    if cost not in ("sse", "absolute"):
        raise PolicyError(f"cost is {cost!r}", fix="cost is 'sse' or 'absolute'")
    order = np.argsort(points.numbers[:, 0], kind="stable")
    values = _scaled(points.numbers[order, 0])
    sizes = plain(values, k, cost) if len(values) <= SMALL else compiled(values, k, cost, progress)
    groups = _groups(sizes)
    labels = np.empty(len(values), np.int32)
    labels[order] = np.repeat(np.arange(len(groups), dtype=np.int32), groups)
    progress(len(values), len(values))
    return labels


def run(records: Points, task: Task, progress: Progress) -> Labels:
    """Return the classes of a task."""
    return univariate(records, task.k, progress=progress)


def plain(values: Floats, k: int, cost: Cost) -> NDArray[np.int32]:
    """Return, for each number of sorted values, the size of the last group of their best path."""
    table = _squares(values, k) if cost == "sse" else _absolutes(values, k)
    best = np.full(len(values) + 1, np.inf)
    best[0] = 0.0
    sizes = np.zeros(len(values) + 1, np.int32)
    for last in range(k, len(values) + 1):
        if last % (2 * k) == 0:  # keeps sums from outgrowing the last few groups, and the best of them at zero
            best[last - 2 * k + 1 : last] -= best[last - 2 * k + 1 : last].min()
        longest = min(2 * k - 1, last)
        totals = best[last - longest : last - k + 1][::-1] + table[: longest - k + 1, last]
        at = int(np.argmin(totals))
        best[last], sizes[last] = totals[at], k + at
    return sizes


def compiled(values: Floats, k: int, cost: Cost, progress: Progress) -> NDArray[np.int32]:
    """Return the same as `plain`, from kernels; for k above 50 paths of one cost may differ."""
    if k <= WIDE:
        narrow = kernels.load("univariate")

        extend = narrow.scan_squares if cost == "sse" else narrow.scan_absolutes
    else:
        wide = kernels.load("univariate_wide")

        extend = wide.halve_squares if cost == "sse" else wide.halve_absolutes
    Path = kernels.load("univariate").Path

    count = len(values)
    path = Path(values, np.full(count + 1, np.inf), np.zeros(count + 1, np.int32))
    path.best[0] = 0.0
    chunk = max(CHUNK // k, 1) * k  # whole blocks of k: where the work is cut has no say in the result
    for begin in range(k, count + 1, chunk):
        extend(path, k, begin, min(begin + chunk, count + 1))
        progress(begin, count)
    return path.size


def _scaled(values: Floats) -> Floats:
    """Bring the largest value near 1 by a power of two, which rounds nothing and keeps squares from overflowing."""
    exponent = np.frexp(np.abs(values).max())[1]
    scaled: Floats = np.ldexp(values, -exponent)
    return scaled


def _squares(values: Floats, k: int) -> Floats:
    """Return the SSE of the group of k + s values that ends before value j, at [s, j]."""
    table = np.full((k, len(values) + 1), np.inf)
    mean = np.zeros(len(values) + 1)
    total = np.zeros(len(values) + 1)
    for count in range(1, min(2 * k, len(values) + 1)):
        added = values[: len(values) - count + 1]  # the value that a group of `count` before j begins with
        step = added - mean[count:]
        mean[count:] += step * (1.0 / count)
        total[count:] += step * (added - mean[count:])
        if count >= k:
            table[count - k, count:] = total[count:]
    return table


def _absolutes(values: Floats, k: int) -> Floats:
    """Return the absolute deviations of the group of k + s values that ends before value j, at [s, j]."""
    table = np.full((k, len(values) + 1), np.inf)
    total = np.zeros(len(values) + 1)
    for count in range(1, min(2 * k, len(values) + 1)):
        ends = np.arange(count, len(values) + 1)
        total[count:] += values[ends - 1 - (count - 1) // 2] - values[ends - count]
        if count >= k:
            table[count - k, count:] = total[count:]
    return table


def _groups(sizes: NDArray[np.int32]) -> list[int]:
    """Read the sizes of the groups off the path, first group first."""
    groups: list[int] = []
    last = len(sizes) - 1
    while last > 0:
        groups.append(int(sizes[last]))
        last -= groups[-1]
    return groups[::-1]
