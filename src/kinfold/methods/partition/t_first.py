"""t-closeness-first: clusters that take one record from each stratum of the confidential column.

    k = max(k, ⌈n / (2(n-1)t + 1)⌉)                                Expression (3)
    k = k + ⌊(n mod k) / ⌊n/k⌋⌋                                    Expression (4)
    sort by the confidential column, cut into k strata of ⌊n/k⌋ records, put the n mod k extra records into the middle
    while records are left:
        r = the record farthest from the centre of what is left
        a cluster of the record nearest to r in each stratum
        s = the record farthest from r of what is left; a cluster around s in the same way

Readings of the paper:
    Expression (4) takes the floor; the algorithm prints a ceiling, which does not give Table 3.
    For even k the middle strata are k/2 and k/2 + 1, and the upper one takes one more if their number is uneven.
    A cluster takes a second record from the first stratum with more records than clusters to come. The paper compares
    with the first stratum, which never finds the extra records of the first stratum itself (k = 2).

Expression (3) is about ranks. If all values are equally distant, or a hierarchy gives the distances, a class is close
if its shares are those of the table. Strata cut by rank would then separate records that are the same to the promise.
Instead clusters take the share of each kind of record. Of n records with n_v of kind v, in C clusters:

    every cluster takes    ⌊n_v / C⌋ of kind v
    the remainder is       n_v mod C of kind v: a cluster takes at most one of them, and every cluster about as many

    while clusters are to come:
        r = the record farthest from the centre of what is left, then the one farthest from r, in turns
        of each kind take the records nearest to r that every cluster takes
        of the kinds with a remainder: take one more of each whose remainder equals the clusters to come, then of those
        whose nearest record is nearest, until the cluster has its part of all remainders, rounded down

So each cluster has the share of every kind rounded down or up, and nearness decides which kinds are rounded up. The
size is the smallest at which random classes with such shares are close enough most of the time. Where ordered values
tie so often that consecutive strata hold one value, these strata are one pool, and clusters take its share in the same
way.

Proposition 2 is exact if k divides n and all values differ. Ties and extra records can break it: a release is checked
class by class and repaired.

Paper: Soria-Comas, Domingo-Ferrer, Sánchez & Martínez, TKDE 27 (2015), Algorithm 3.
Cost: O(n² d / k) time, O(n d) memory.   Ties: the lowest row index, in the order of the column too; the lowest kind.

The kernels find the records, with a tree for each stratum or kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kinfold import kernels
from kinfold.methods.partition.geometry import compute_centre, distances_to
from kinfold.methods.partition.index import form_all, start_unfolded_run
from kinfold.methods.partition.requirement import MAX_KINDS, Requirement, closeness_requirements, coarsen
from kinfold.policy.registry import Declaration
from kinfold.progress import Progress, no_progress
from kinfold.tables.points import Labels, Points, check_k

if TYPE_CHECKING:
    from kinfold.kernels.box_tree import Tree
    from kinfold.methods.task import Task


METHOD = Declaration(
    name="t-first",
    family="partition",
    summary="a record from each stratum of the confidential column (Algorithm 3 of paper 004)",
    page="t-closeness",
    needs=("t",),
    kernels=("box_tree", "clustering", "t_first", "promises", "t_merge", "repair"),
    auto_reason="t-closeness is asked for; its classes are formed across the confidential values",
    sets_aside=True,
    cost=(1.2, 1.6),
)


CLASSES_DRAWN = 200  # for a size; fewer large ones
# Share of the drawn classes that must be close; the others are repaired. 0.3 to 0.9 were tried on Adult (3 requests)
# and on generated tables of 4 to 25 values. With less, repair costs more than larger classes do, and takes up to 30
# times longer
MIN_CLOSE_SHARE = 0.8
SIZE_GROWTH = 1.1  # between two large sizes


def t_first(x: object, k: int, *, confidential: object, t: object, progress: Progress = no_progress) -> Labels:
    """Return a cluster label for each record, in the order of forming. Every cluster spans the confidential column.

    `confidential` is a column of ordered values (numbers, dates, ranks); null sorts first. Of several columns the one
    with the smallest t is cut into strata (the first of equals). `repair` takes care of the others.

    >>> x = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> t_first(x, 2, confidential=[1, 2, 3, 4], t=0.4).tolist()
    [0, 1, 0, 1]
    """
    points = Points.from_array(x)
    k = check_k(points, k)
    column = min(closeness_requirements(confidential, t, len(points)), key=lambda each: each.criterion.limit)
    size = cluster_size(len(points), k, column.criterion.limit)
    return form_by_strata(points, cut_strata(column.codes, size), progress)


def run(records: Points, task: Task, progress: Progress) -> Labels:
    """Return the classes of a task, by the column with the smallest t. Repair takes care of the others."""
    required = _find_strictest(task)
    size = choose_size(required, task.k)
    check_k(records, task.k)
    if required.criterion.statistic != "ordered":
        return form_by_shares(records, number_share_kinds(required), size, progress)
    layers = cut_strata(required.codes, size)
    pools = number_pools(layers, required.codes)
    if pools.max() + 1 < size:
        return form_by_shares(records, pools, size, progress)
    return form_by_strata(records, layers, progress)


def _find_strictest(task: Task) -> Requirement:
    model = min(task.closeness_models, key=lambda each: each.t)
    return Requirement.of(model, task.confidential[model.column])


def choose_size(required: Requirement, k: int) -> int:
    """Return the cluster size: by the paper, or by the shares of values without an order."""
    n = len(required.codes)
    size = cluster_size(n, k, required.criterion.limit)
    if required.criterion.statistic == "ordered":
        return size
    size = find_size_for_shares(required, size)
    return size + (n % size) // (n // size)


def set_aside(task: Task) -> NDArray[np.bool_]:
    """Mark the records to suppress first so that the cluster size divides the rest (paper 004, section 7).

    Only if `method.suppression` allows as many: those farthest from the centre, which cost most to keep.
    """
    records = task.records
    allowed = task.may_suppress(records) or 0
    marked = np.zeros(records, np.bool_)
    extra = records % choose_size(_find_strictest(task), task.k)
    if 0 < extra <= allowed:
        points = task.points()
        distances = distances_to(points, compute_centre(points), 0)
        marked[np.argsort(-distances, kind="stable")[:extra]] = True
    return marked


def cluster_size(n: int, k: int, t: float) -> int:
    """Return the cluster size by Expressions (3) and (4).

    >>> cluster_size(1080, 2, 0.05), cluster_size(1080, 2, 0.01), cluster_size(1080, 30, 0.25)
    (10, 49, 30)
    """
    # the rounding of t must not push a whole quotient up
    k = max(k, int(np.ceil(n / (2 * (n - 1) * t + 1) - 1e-9)))
    return k + (n % k) // (n // k)


def cut_strata(rank: NDArray[np.int64], k: int) -> list[NDArray[np.intp]]:
    """Cut the records into k strata of the column, with the extra records in the middle.

    >>> [stratum.tolist() for stratum in cut_strata(np.array([3, 0, 2, 1, 4]), 2)]
    [[1, 3], [2, 0, 4]]
    """
    n = len(rank)
    sizes = np.full(k, n // k)
    extra = n % k
    if k % 2:
        sizes[k // 2] += extra
    else:
        sizes[k // 2 - 1] += extra // 2
        sizes[k // 2] += extra - extra // 2
    order = np.argsort(rank, kind="stable")
    return np.split(order, np.cumsum(sizes)[:-1])


def number_pools(layers: list[NDArray[np.intp]], codes: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the pool of each record: its stratum, or all consecutive strata that hold one and the same value.

    Instead of one record from each of these strata, a cluster takes as many from the pool, the nearest ones.

    >>> number_pools([np.array([0, 1]), np.array([2, 3]), np.array([4, 5])], np.array([0, 0, 0, 0, 0, 1])).tolist()
    [0, 0, 0, 0, 1, 1]
    """
    only = [int(codes[rows[0]]) if (codes[rows] == codes[rows[0]]).all() else None for rows in layers]
    fresh = [i == 0 or only[i] is None or only[i] != only[i - 1] for i in range(len(layers))]
    pool = np.empty(len(codes), np.int32)
    for rows, number in zip(layers, np.cumsum(fresh) - 1, strict=True):
        pool[rows] = number
    return pool


def form_by_strata(points: Points, layers: list[NDArray[np.intp]], progress: Progress) -> Labels:
    """Return clusters that take one record from each of these strata, by a box tree for each."""
    kernel = kernels.load("t_first")
    run = start_unfolded_run(points)
    left = np.array(list(map(len, layers)), np.int64)

    def advance(trees: Tree, count: int) -> None:
        kernel.advance(run, trees, left, count)

    return form_all(run, points, layers, advance, lambda: bool(left.min() > 0), progress)


def form_by_shares(points: Points, kind: NDArray[np.int32], size: int, progress: Progress) -> Labels:
    """Return clusters of about `size` records, each with the share of every kind rounded down or up."""
    quotas = Quotas.from_kinds(kind, size)
    rows = [np.flatnonzero(kind == v) for v in range(len(quotas.always))]
    kernel = kernels.load("t_first")
    run = start_unfolded_run(points, int(quotas.always.max()) + 1)
    shares = kernel.Portions(quotas.always, quotas.remainder.copy(), np.array([quotas.classes]), np.zeros(len(rows)))

    def advance(trees: Tree, count: int) -> None:
        kernel.advance_by_shares(run, trees, shares, count)

    return form_all(run, points, rows, advance, lambda: bool(shares.to_come[0] > 0), progress)


@dataclass(frozen=True, eq=False)
class Quotas:
    """How many records of each kind every class takes, and how many remain."""

    classes: int
    always: NDArray[np.int64]
    remainder: NDArray[np.int64]

    @classmethod
    def from_kinds(cls, kind: NDArray[np.int32], size: int) -> Quotas:
        """Return the quotas of classes of about `size` records.

        >>> quotas = Quotas.from_kinds(np.array([0] * 7 + [1] * 3, np.int32), 3)
        >>> quotas.classes, quotas.always.tolist(), quotas.remainder.tolist()
        (3, [2, 1], [1, 0])
        """
        classes = len(kind) // size
        return cls(classes, *np.divmod(np.bincount(kind), classes))


def number_share_kinds(required: Requirement) -> NDArray[np.int32]:
    """Return the kind of each record: its value, or one kind for all rare values if there are many."""
    return coarsen(required.codes, MAX_KINDS, ordered=False).astype(np.int32)


def find_size_for_shares(required: Requirement, k: int) -> int:
    """Return the smallest size from k up (in steps) at which random classes with the quotas are often close.

    >>> from kinfold.models import TCloseness
    >>> ill = Requirement.of(TCloseness(0.1, "ill", "equal"), ["flu", "cold", "cold", "cold"] * 50)
    >>> find_size_for_shares(ill, 2), find_size_for_shares(ill, 7)
    (4, 7)
    """
    kind = number_share_kinds(required)
    by_kind = np.argsort(kind, kind="stable")
    n, size = len(kind), k
    while 2 * size <= n:
        drawn = _draw_classes(by_kind, Quotas.from_kinds(kind, size), max(20, min(CLASSES_DRAWN, 50_000 // size)))
        if (class_distances(required, *drawn) <= required.criterion.limit).mean() >= MIN_CLOSE_SHARE:
            return size
        size = max(size + 1, int(size * SIZE_GROWTH))
    return max(k, n // 2)


def _draw_classes(by_kind: NDArray[np.intp], quotas: Quotas, count: int) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Draw `count` classes with these quotas; return the class of each drawn record, and the record."""
    random = np.random.default_rng(0)
    sizes = np.repeat(quotas.always[None, :], count, axis=0)
    shuffled = random.permuted(np.repeat(np.arange(len(quotas.remainder))[None, :], count, axis=0), axis=1)
    chances = np.cumsum(quotas.remainder[shuffled] / quotas.classes, axis=1) + random.random((count, 1))
    rounded_up = np.diff(np.floor(chances), axis=1, prepend=0.0).astype(np.int64)
    np.put_along_axis(sizes, shuffled, np.take_along_axis(sizes, shuffled, axis=1) + rounded_up, axis=1)
    owner, kind = (np.repeat(index.ravel(), sizes.ravel()) for index in np.indices(sizes.shape))
    total = quotas.always * quotas.classes + quotas.remainder
    start = np.cumsum(total) - total
    return owner, by_kind[start[kind] + (random.random(len(kind)) * total[kind]).astype(np.int64)]


def class_distances(required: Requirement, owner: NDArray[np.int64], record: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the earth mover's distance of each class to the table, the mean over levels; `owner` is the class."""
    size = np.bincount(owner)
    distances = []
    for codes in required.rows():
        values = int(codes.max()) + 1
        share = np.bincount(codes, minlength=values) / len(codes)
        count = np.bincount(owner * values + codes[record], minlength=len(size) * values).reshape(-1, values)
        distances.append(0.5 * np.abs(count / size[:, None] - share).sum(axis=1))
    return np.asarray(np.mean(distances, axis=0))
