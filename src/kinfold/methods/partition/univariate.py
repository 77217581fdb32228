"""Optimal microaggregation of one column, as a shortest path.

    sort the values; equal ones keep the order of their rows
    the least cost of the first j values = the least, over the sizes of their last group, of
        the least cost of the values before that group + the cost of the group
    the groups of the n values are read off backwards

Costs of a group, and over which partitions the result is optimal:

    sse       squared deviations from the mean       all partitions into groups of at least k
    median    absolute deviations from the median    all partitions into groups of at least k
    absolute  absolute deviations from the mean      those whose groups are consecutive in the sorted order

For `sse` and `median` some optimal partition has consecutive groups of k to 2k-1: a larger one can be cut without loss.
For `absolute`, which is Eq. (2) of Truta et al., neither holds. Groups must be consecutive there because the paper asks
for it; other partitions can cost less (3, 6, 6, 6, 12 and k = 2: 9 for {3, 12} and {6, 6, 6}, 10 for consecutive
groups). No size bounds an optimal group: for k = 3 and a, 0, 0, ... 0, b with -a = b > 0 one group of everything costs
2b at most, and two groups or more cost 8b/3 at least, however many zeros there are.

Papers: Hansen & Mukherjee, IEEE Trans. Knowl. Data Eng. 15 (2003); Truta, Fotouhi & Barth-Jones, Acta Universitatis
Apulensis 11 (2006), Eq. (2).
Cost: O(n log n) to sort, then O(kn) for k up to 50 and O(n log k) above (`kinfold.kernels.univariate_wide`). `absolute`
is O(n^2) at worst; a bound stops the search for the last group early (`kinfold.kernels.univariate`), and on ordinary
columns that makes it O(kn).
Ties: of paths that cost the same the one whose last group is smaller.

Accuracy: values are scaled by a power of two; a group's cost is summed up without cancellation. For `sse` and `median`
a constant is taken off the running costs as the path goes on, so that a group is weighed against its neighbours to full
precision however large the values are, and whatever came before. For `absolute` the running cost is one double: the
result is optimal to the rounding of the total.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from kinfold import kernels
from kinfold.errors import PolicyError
from kinfold.progress import Progress, silent
from kinfold.request.methods import Declaration
from kinfold.rows.points import SMALL, Floats, Labels, Points, checked_size

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from kinfold.methods.task import Task

Cost = Literal["sse", "absolute", "median"]

COSTS = get_args(Cost)

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
    """Return one group label per record, numbered by rising values, for the partition of least cost.

    The cost is the sum, over all records, of squared deviations from the group mean (`sse`), of absolute deviations
    from the group mean (`absolute`) or of absolute deviations from the group median (`median`). Groups have k to 2k-1
    records; with `absolute` at least k, and without an upper limit.

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
    if cost not in COSTS:
        raise PolicyError(f"cost is {cost!r}", fix=f"cost is one of {', '.join(map(repr, COSTS))}")
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
    if cost == "absolute":
        return _around_means(values, k)
    table = _squares(values, k) if cost == "sse" else _around_medians(values, k)
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
    narrow = kernels.load("univariate")
    count = len(values)
    path = narrow.Path(values, np.full(count + 1, np.inf), np.zeros(count + 1, np.int32))
    path.best[0] = 0.0
    extend = _extension(k, cost, count)
    chunk = max(CHUNK // k, 1) * k  # whole blocks of k: where the work is cut has no say in the result
    for begin in range(k, count + 1, chunk):
        extend(path, k, begin, min(begin + chunk, count + 1))
        progress(begin, count)
    return path.size


def _extension(k: int, cost: Cost, count: int) -> Callable[..., None]:
    """Return the kernel that extends paths by a cost."""
    narrow = kernels.load("univariate")
    if cost == "absolute":
        below = np.full(count + 1, np.inf)
        return lambda path, *rest: narrow.scan_absolutes(path, below, *rest)
    if k <= WIDE:
        return narrow.scan_squares if cost == "sse" else narrow.scan_medians
    wide = kernels.load("univariate_wide")
    return wide.halve_squares if cost == "sse" else wide.halve_medians


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


def _around_medians(values: Floats, k: int) -> Floats:
    """Return the deviations from the median of the group of k + s values that ends before value j, at [s, j]."""
    table = np.full((k, len(values) + 1), np.inf)
    total = np.zeros(len(values) + 1)
    for count in range(1, min(2 * k, len(values) + 1)):
        ends = np.arange(count, len(values) + 1)
        total[count:] += values[ends - 1 - (count - 1) // 2] - values[ends - count]
        if count >= k:
            table[count - k, count:] = total[count:]
    return table


def _around_means(values: Floats, k: int) -> NDArray[np.int32]:
    """Return what `plain` does for absolute deviations from the mean: every start of the last group is tried."""
    best = np.full(len(values) + 1, np.inf)
    best[0] = 0.0
    sizes = np.zeros(len(values) + 1, np.int32)
    counts = np.arange(1, len(values) + 1)
    for last in range(k, len(values) + 1):
        below = values[last - 1] - values[:last][::-1]  # distances from the largest value, 0 first
        totals = np.concatenate([[0.0], np.cumsum(below)])
        means = totals[1:] / counts[:last]
        inside = np.searchsorted(below, means)  # how many of a group lie above its mean
        costs = best[:last][::-1] + 2.0 * (inside * means - totals[inside])
        at = int(np.argmin(costs[k - 1 :])) + k - 1
        best[last], sizes[last] = costs[at], at + 1
    return sizes


def _groups(sizes: NDArray[np.int32]) -> list[int]:
    """Read the sizes of the groups off the path, first group first."""
    groups: list[int] = []
    last = len(sizes) - 1
    while last > 0:
        groups.append(int(sizes[last]))
        last -= groups[-1]
    return groups[::-1]
