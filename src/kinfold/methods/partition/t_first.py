"""t-closeness-first: clusters that take one record from each stratum of the confidential column.

    k = max(k, ⌈n / (2(n-1)t + 1)⌉)                                Expression (3)
    k = k + ⌊(n mod k) / ⌊n/k⌋⌋                                    Expression (4)
    sort by the confidential column and cut into k strata of ⌊n/k⌋ records; the n mod k records over go into the middle
    while records are left:
        r = the record farthest from the centre of what is left
        a cluster of the record nearest to r in each stratum
        s = the record farthest from r of what is left; a cluster around s in the same way

Readings of the paper (as in Soria-Comas et al. printed, but):
    Expression (4) takes the floor; the algorithm prints a ceiling, with which Table 3 does not come out.
    For even k the middle strata are k/2 and k/2 + 1, and an odd record over goes into the upper one.
    A cluster takes a second record from the first stratum that still has more records than clusters are to come.
    The paper compares with the first stratum, which never finds what is over in it (k = 2).

The bound of Expression (3) is about ranks. Where any two values are equally far, or as far as a hierarchy says, a class
is close if its shares are those of the table: then clusters take so many records of each value as its share asks for
(see `by_shares`), and their size is the smallest at which that is close enough most of the time (see `shares`).
Where values in order tie so often that strata in a row hold one value, they are one pool: as many are taken from it.

The bound of Proposition 2 is exact where k divides n and all values differ. Ties and records over can break it: a
release is checked class by class and repaired.

Paper: Soria-Comas, Domingo-Ferrer, Sánchez & Martínez, TKDE 27 (2015), Algorithm 3.
Cost: O(n² d / k) time, O(n d) memory.   Ties: the lowest row index, in the order of the column too.

Up to `SMALL` records this file does it, with numpy alone. Larger tables go through `t_first_compiled`: the same labels
from one tree for each stratum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold.methods.partition import geometry
from kinfold.methods.partition.by_shares import by_shares
from kinfold.methods.partition.centre import Centre
from kinfold.methods.partition.remaining import RemainingRecords, farthest_of, points_at
from kinfold.methods.partition.requirement import Requirement, closeness
from kinfold.methods.partition.shares import fitting_size, share_kinds
from kinfold.progress import silent
from kinfold.request.methods import Declaration
from kinfold.rows.points import SMALL, Points, checked_size

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kinfold.methods.partition.remaining import Place
    from kinfold.methods.task import Task
    from kinfold.progress import Progress
    from kinfold.rows.points import Labels

METHOD = Declaration(
    name="t-first",
    family="partition",
    summary="a record from each stratum of the confidential column (Algorithm 3 of paper 004)",
    page="t-closeness",
    needs=("t",),
    kernels=(
        "box_tree",
        "clustering",
        "t_first",
        "by_shares",
        "class_misses",
        "t_merge",
        "near_kinds",
        "repair",
        "settling",
    ),
    auto="t-closeness is asked for; its classes are formed across the confidential values",
    sets_aside=True,
    cost=(1.2, 1.6),
    order=7,
)


def t_first(x: object, k: int, *, confidential: object, t: object, progress: Progress = silent) -> Labels:
    """Return one cluster label per record, in the order of forming; every cluster spans the confidential column.

    `confidential` is a column of values in order (numbers, dates, ranks); null sorts first. Of several columns the
    one with the smallest t is cut into strata (the first of equals); the others are for `repair`.

    >>> x = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> t_first(x, 2, confidential=[1, 2, 3, 4], t=0.4).tolist()
    [0, 1, 0, 1]
    """
    points = Points.of(x)
    k = checked_size(points, k)
    column = min(closeness(confidential, t, len(points)), key=lambda each: each.criterion.limit)
    return _over(points, strata(column.codes, cluster_size(len(points), k, column.criterion.limit)), progress)


def _over(points: Points, layers: list[NDArray[np.intp]], progress: Progress) -> Labels:
    """Return the clusters that take one record from each of these strata."""
    if len(points) <= SMALL:
        return t_first_plain(points, layers, progress)
    from kinfold.methods.partition.t_first_compiled import t_first_compiled

    return t_first_compiled(points, layers, progress)


def run(records: Points, task: Task, progress: Progress) -> Labels:
    """Take the strata from the column with the smallest t; what the others ask is met by repair."""
    required = _strictest(task)
    size = size_for(required, task.k)
    checked_size(records, task.k)
    if required.criterion.statistic != "ordered":
        return by_shares(records, share_kinds(required), size, progress)
    layers = strata(required.codes, size)
    pools = pooled(layers, required.codes)
    if pools.max() + 1 < size:
        return by_shares(records, pools, size, progress)
    return _over(records, layers, progress)


def _strictest(task: Task) -> Requirement:
    model = min(task.close, key=lambda each: each.t)
    return Requirement.of(model, task.confidential[model.column])


def size_for(required: Requirement, k: int) -> int:
    """Return how many records a cluster holds: by the paper, or, where values have no order, by their shares."""
    n = len(required.codes)
    size = cluster_size(n, k, required.criterion.limit)
    if required.criterion.statistic == "ordered":
        return size
    size = fitting_size(required, size)
    return size + (n % size) // (n // size)


def set_aside(task: Task) -> NDArray[np.bool_]:
    """Mark the records to discard before so that the cluster size divides the rest (paper 004, section 7).

    Only where `method.suppression` allows so many: those farthest from the centre of all, which cost most to keep.
    """
    records = task.records
    allowed = task.may_suppress(records) or 0
    spare = np.zeros(records, np.bool_)
    extra = records % size_for(_strictest(task), task.k)
    if 0 < extra <= allowed:
        every = task.points()
        away = geometry.distances(every, geometry.centre(every), 0)
        spare[np.argsort(-away, kind="stable")[:extra]] = True
    return spare


def cluster_size(n: int, k: int, t: float) -> int:
    """Return how many records a cluster holds: Expressions (3) and (4).

    >>> cluster_size(1080, 2, 0.05), cluster_size(1080, 2, 0.01), cluster_size(1080, 30, 0.25)
    (10, 49, 30)
    """
    # a quotient that is whole must not be pushed over it by the rounding of t
    k = max(k, int(np.ceil(n / (2 * (n - 1) * t + 1) - 1e-9)))
    return k + (n % k) // (n // k)


def strata(rank: NDArray[np.int64], k: int) -> list[NDArray[np.intp]]:
    """Cut the records into k strata of the column, the records over in the middle.

    >>> [stratum.tolist() for stratum in strata(np.array([3, 0, 2, 1, 4]), 2)]
    [[1, 3], [2, 0, 4]]
    """
    n = len(rank)
    sizes = np.full(k, n // k)
    over = n % k
    if k % 2:
        sizes[k // 2] += over
    else:
        sizes[k // 2 - 1] += over // 2
        sizes[k // 2] += over - over // 2
    order = np.argsort(rank, kind="stable")
    return np.split(order, np.cumsum(sizes)[:-1])


def pooled(layers: list[NDArray[np.intp]], codes: NDArray[np.int64]) -> NDArray[np.int32]:
    """Number the pool of each record: its stratum, or all strata of the one value that they hold.

    A cluster that takes one record from each of them takes as many from the pool, the nearest ones.

    >>> pooled([np.array([0, 1]), np.array([2, 3]), np.array([4, 5])], np.array([0, 0, 0, 0, 0, 1])).tolist()
    [0, 0, 0, 0, 1, 1]
    """
    only = [int(codes[rows[0]]) if (codes[rows] == codes[rows[0]]).all() else None for rows in layers]
    fresh = [i == 0 or only[i] is None or only[i] != only[i - 1] for i in range(len(layers))]
    pool = np.empty(len(codes), np.int32)
    for rows, number in zip(layers, np.cumsum(fresh) - 1, strict=True):
        pool[rows] = number
    return pool


def t_first_plain(points: Points, layers: list[NDArray[np.intp]], progress: Progress) -> Labels:
    """Return the labels by the steps at the top of this file, with numpy alone."""
    labels = np.full(len(points), -1, np.int32)
    centre = Centre(points)
    left = [RemainingRecords(points, np.sort(rows)) for rows in layers]
    clusters = min(map(len, left))
    seed = -1
    for label in range(clusters):
        place = (centre.numbers(), centre.codes()) if label % 2 == 0 else points_at(points, seed)
        seed = farthest_of(left, place)
        taken = _cluster(left, points_at(points, seed), clusters - label - 1)
        labels[taken] = label
        centre.leave(np.array(taken))
        progress((label + 1) * len(left), len(points))
    progress(len(points), len(points))
    return labels


def _cluster(left: list[RemainingRecords], place: Place, to_come: int) -> list[int]:
    """Take the nearest record of each stratum, and one more of the first that has more than it will need."""
    taken = []
    for i, stratum in enumerate(left):
        taken.append(stratum.take_nearest(place))
        if len(stratum) > to_come and len(taken) == i + 1:
            taken.append(stratum.take_nearest(place))
    return taken
