"""Optimal microaggregation of one column, as a shortest path.

    sort the values; equal ones keep the order of their rows
    the least cost of the first j values = the least, over the sizes of their last group, of
        the least cost of the values before that group + the cost of the group
    the groups of the n values are read backwards from the end of the path

Costs of a group, and over which partitions the result is optimal:

    sse       squared deviations from the mean       all partitions into groups of at least k
    median    absolute deviations from the median    all partitions into groups of at least k
    absolute  absolute deviations from the mean      those whose groups are consecutive in the sorted order

For `sse` and `median` some optimal partition has consecutive groups of k to 2k-1: a larger one can be cut without loss.
For `absolute`, which is Eq. (2) of Truta et al., neither holds. Its groups are consecutive because the paper requires
it; other partitions can cost less (3, 6, 6, 6, 12 and k = 2: 9 for {3, 12} and {6, 6, 6}, 10 for consecutive groups).
No size bounds an optimal group: for k = 3 and a, 0, 0, ... 0, b with -a = b > 0 one group of all values costs at most
2b, and two or more groups cost at least 8b/3, for any number of zeros.

Papers: Hansen & Mukherjee, IEEE Trans. Knowl. Data Eng. 15 (2003); Truta, Fotouhi & Barth-Jones, Acta Universitatis
Apulensis 11 (2006), Eq. (2).
Cost: O(n log n) to sort, then O(kn) for k up to 50 and O(n log k) above (`kinfold.kernels.univariate`). `absolute`
is O(n^2) at worst; a bound stops the search for the last group early (`kinfold.kernels.univariate`), and on ordinary
columns that makes it O(kn).
Ties: of paths of equal cost the one whose last group is smaller.

Accuracy: values are scaled by a power of two, and the cost of a group is summed without cancellation. For `sse` and
`median` a constant is subtracted from the running costs as the path proceeds, so that a group is compared with its
neighbours to full precision, however large the values are. For `absolute` the running cost is one double: the result is
optimal up to the rounding of the total.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from kinfold import kernels
from kinfold.errors import PolicyError
from kinfold.policy.registry import Declaration
from kinfold.progress import Progress, no_progress
from kinfold.tables.points import Floats, Labels, Points, check_k

if TYPE_CHECKING:
    from kinfold.methods.task import Task

Cost = Literal["sse", "absolute", "median"]

COSTS = get_args(Cost)

METHOD = Declaration(
    name="univariate",
    family="partition",
    summary="the optimum for one quasi-identifier",
    page="univariate",
    needs=("one number",),
    kernels=("univariate",),
    cost=(0.05, 1.0),
)

MAX_K_SCANNED = 50  # for larger k halving is faster than trying every size of the last group (measured at 10⁶ values)
MAX_VALUES_SCANNED = 3_000  # so few are scanned for any k: of paths of equal cost both ways may find different ones
VALUES_PER_CALL = 1 << 18  # between two progress reports


def univariate(x: object, k: int, *, cost: Cost = "sse", progress: Progress = no_progress) -> Labels:
    """Return a group label for each record, numbered by rising values, for the partition of least cost.

    The cost is the sum over all records of squared deviations from the group mean (`sse`), of absolute deviations from
    the group mean (`absolute`) or from the group median (`median`). Groups have k to 2k-1 records; with `absolute` at
    least k, without an upper limit.

    >>> univariate(np.array([[5.0], [1.0], [1.0], [1.1], [5.0], [1.0], [5.1]]), 3).tolist()
    [1, 0, 0, 0, 1, 0, 1]
    """
    points = Points.from_array(x)
    k = check_k(points, k)
    if points.numbers.shape[1] != 1 or points.scales:
        count = points.numbers.shape[1] + len(points.scales)
        what = (
            f"univariate takes one column of numbers, not {count} attributes"
            if count != 1
            else "the column holds codes"
        )
        raise PolicyError(what, fix="name one numeric quasi-identifier, or use mdav")
    if cost not in COSTS:
        raise PolicyError(f"cost is {cost!r}", fix=f"choose one of {', '.join(map(repr, COSTS))}")
    order = np.argsort(points.numbers[:, 0], kind="stable")
    values = points.numbers[order, 0]
    # the largest value is brought near 1 by a power of two, which rounds nothing and prevents overflow of squares
    values = np.ldexp(values, -np.frexp(np.abs(values).max())[1])
    sizes = find_sizes(values, k, cost, progress)
    groups, last = [], len(values)  # the sizes of the groups of the path, last group first
    while last > 0:
        groups.append(int(sizes[last]))
        last -= groups[-1]
    labels = np.empty(len(values), np.int32)
    labels[order] = np.repeat(np.arange(len(groups), dtype=np.int32), groups[::-1])
    progress(len(values), len(values))
    return labels


def run(records: Points, task: Task, progress: Progress) -> Labels:
    """Return the classes of a task."""
    return univariate(records, task.k, progress=progress)


def find_sizes(values: Floats, k: int, cost: Cost, progress: Progress) -> NDArray[np.int32]:
    """Return the size of the last group of the best path to each number of sorted values."""
    kernel = kernels.load("univariate")
    count = len(values)
    path = kernel.Path(values, np.full(count + 1, np.inf), np.zeros(count + 1, np.int32))
    path.best[0] = 0.0
    below = np.full(count + 1, np.inf)
    if cost == "absolute":
        extend = partial(kernel.scan_absolutes, path, below)
    elif k <= MAX_K_SCANNED or count <= MAX_VALUES_SCANNED:
        extend = partial(kernel.scan_squares if cost == "sse" else kernel.scan_medians, path)
    else:
        extend = partial(kernel.halve_squares if cost == "sse" else kernel.halve_medians, path)
    chunk = max(VALUES_PER_CALL // k, 1) * k  # whole blocks of k, so that the chunks do not change the result
    for begin in range(k, count + 1, chunk):
        extend(k, begin, min(begin + chunk, count + 1))
        progress(begin, count)
    return path.size
