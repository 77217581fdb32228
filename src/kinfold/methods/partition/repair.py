"""Repair: change classes that miss a promise until every class keeps every promise, at the least cost.

    until no class misses a promise:
        index the records that their classes can spare, by kind
        exchange records, the worst class first: swaps and moves with the nearest records of each kind that restore the
        promise for the least error
        if that did not help much: list more records; if no list helps: merge the worst classes with their nearest ones,
        or all classes that are left if exchanges hardly help

The requirements say what a class must keep; every class keeps at least k records. One class of all records is the last
resort. `find_best_start` repairs the classes of the method, and classes of MDAV of k or up to eight times k records
unless they turn out to cost more, and settles the cheaper ones. Larger classes miss fewer promises, and cost next to
nothing where records tie. The size is the largest whose classes cost little against those already repaired, else k.

`settle_classes` makes classes cheaper and keeps the promises: every record that costs more than the average looks for a
better class among those of its neighbours (see `kernels/repair`), until a sweep gains little.

Cost: O(n log n) for a pass, and a trial for each member of a failing class and each listed record; O(n · class size)
for a sweep.   Ties: the class of the lowest label, then the nearest record. Deterministic: the seed is fixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kinfold import kernels
from kinfold.errors import Unreachable
from kinfold.methods.partition.geometry import build_curves, compute_cost, number_places, renumber, reorder_curves
from kinfold.methods.partition.index import grow_trees, start_query_run
from kinfold.methods.partition.mdav import mdav
from kinfold.methods.partition.requirement import Requirement, measure_misses, number_kinds, require_reachable
from kinfold.methods.partition.search import SearchInput
from kinfold.methods.partition.t_merge import merge_classes
from kinfold.progress import Progress, no_progress
from kinfold.tables.points import Floats, Labels, Points, check_k

if TYPE_CHECKING:
    from kinfold.kernels.groups import Groups
    from kinfold.kernels.moves import Curves
    from kinfold.kernels.repair import RepairState

TREE_PARTS = 4  # a tree holds at most this part of the points
RECORDS_LISTED = 16  # for a class at first
MIN_PER_KIND, MAX_WIDENING = 2, 16  # records listed of each kind, and by how much the lists grow before classes merge
WIDENING_FACTOR = 4  # by which the lists grow if they did not help
MAX_MISS_LEFT = 0.97  # a pass that leaves a larger share of the misses has not helped
MIN_EXCHANGES_PER_CLASS = 0.1  # for each class that is left: fewer are not worth another try
MAX_PASSES = 200  # before the remaining classes merge
MAX_WORK_PER_RECORD = 5_000  # members tried, before the remaining classes merge: some seconds for 30,000 records
MAX_REPAIRED_CLASS = 400  # records of a class: exchanges in a larger one take too long, so it is merged
CLASSES_PER_CALL = 200  # between two progress reports
SIZE_FACTORS = (2, 4, 8)  # class sizes tried, times k: larger ones are slow to repair, and few tables gain by more
MAX_COST_SHARE = 0.25  # of the cost of repaired classes, for larger classes to be tried
MAX_SWEEPS = 40  # a sweep with little gain ends earlier
MIN_SWEEP_GAIN = 0.004  # of the cost: a sweep that gains less is the last (by trial on Adult, within a second)
SETTLE_SEED = 0  # one seed, so that the same input gives the same classes
NO_CLASSES, NO_RECORDS, NO_LISTS = np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros((0, 0, 0), np.int32)


class KindIndex:
    """An index that finds the nearest records of each kind: a box tree for each kind, several for a frequent kind.

    Several, because all trees have room for the largest.
    """

    def __init__(self, points: Points, place: Labels, kind: Labels, included: NDArray[np.bool_]) -> None:
        """Index the included records, by place (see `geometry.number_places`) and kind."""
        self.points, self.kinds = points, int(kind.max()) + 1
        rows = np.flatnonzero(included)
        key = kind[rows].astype(np.int64) * (int(place.max()) + 1) + place[rows]
        order = np.argsort(key, kind="stable")
        rows = rows[order]
        self.member = rows.astype(np.int32)
        begins = np.flatnonzero(np.diff(key[order], prepend=-1))
        self.start = np.append(begins, len(rows)).astype(np.int64)
        first_rows = rows[begins]  # a record of each place and kind
        self._grow_trees(points.take(first_rows), kind[first_rows])

    def _grow_trees(self, points: Points, kind: Labels) -> None:
        """Grow the trees of points that are sorted by kind."""
        limit = -(-len(points) // TREE_PARTS)
        strata, self.first, self.tree = [], np.zeros(self.kinds + 1, np.int64), None
        if not limit:
            return
        ends = np.searchsorted(kind, np.arange(self.kinds + 1))
        for v in range(self.kinds):
            rows = np.arange(ends[v], ends[v + 1], dtype=np.int32)
            strata += [rows[at : at + limit] for at in range(0, len(rows), limit)]
            self.first[v + 1] = len(strata)
        self.run = start_query_run(points)
        self.tree = grow_trees(self.run, points, strata)

    def find_around(self, records: NDArray[np.int64], count: int) -> NDArray[np.int32]:
        """Return for each of these records the `count` nearest records of each kind, nearest first; -1 for none."""
        rows = np.repeat(records, self.kinds)
        kinds = np.tile(np.arange(self.kinds, dtype=np.int32), len(records))
        nearest = np.full((len(rows), count), -1, np.int32)
        if self.tree is not None:
            kernel, places = kernels.load("repair"), self.points.take(rows)
            query = kernels.load("queries").make_query(self.run.query.place, count, len(self.run.query.distance))
            numbers, codes = np.ascontiguousarray(places.numbers), np.ascontiguousarray(places.codes)
            kind_query = kernel.KindQuery(numbers, codes, kinds, self.first, self.start, self.member)
            kernel.list_nearest(self.run._replace(query=query), self.tree, kind_query, nearest)
        return nearest.reshape(len(records), self.kinds, count)


def settle_classes(
    points: Points,
    labels: Labels,
    k: int,
    requirements: Sequence[Requirement],
    progress: Progress,
    curves: Curves | None = None,
) -> Labels:
    """Return cheaper classes that keep the promises which these keep; `curves` are those of the points, if built."""
    curves = curves or build_curves(points)
    order = np.argsort(curves.turn[0][curves.place], kind="stable")  # near records near in memory: several times faster
    points, curves = points.take(order), reorder_curves(curves, order)
    data = SearchInput.from_points(points, [replace(each, codes=each.codes[order]) for each in requirements])
    groups = data.arrange(renumber(labels[order]), k)
    settle, stream = kernels.load("repair").settle, kernels.load("draws").make_stream(SETTLE_SEED)
    total = settle(data.records, data.promises, groups, curves, stream, NO_RECORDS, 0.0)
    for sweep in range(MAX_SWEEPS):
        costs = record_costs(points, groups, means=data.means)
        movers = np.flatnonzero(costs > costs.mean()).astype(np.int32)
        if not len(movers):
            break
        before = total
        total = settle(data.records, data.promises, groups, curves, stream, movers, total)
        progress(sweep + 1, MAX_SWEEPS)
        if before - total <= MIN_SWEEP_GAIN * total:
            break
    progress(MAX_SWEEPS, MAX_SWEEPS)
    settled = np.empty_like(groups.label)
    settled[order] = groups.label
    return renumber(settled)


def record_costs(points: Points, groups: Groups, *, means: bool) -> Floats:
    """Return the share of each record in the cost of its class."""
    if not means:
        return np.asarray(groups.own / np.maximum(groups.size, 1)[groups.label])
    size = np.maximum(np.bincount(groups.label, minlength=len(groups.size)), 1)
    sums = [np.bincount(groups.label, column, len(size)) for column in points.numbers.T]
    class_means = (np.array(sums).reshape(len(sums), len(size)) / size).T
    return np.asarray(((points.numbers - class_means[groups.label]) ** 2).sum(axis=1))


@dataclass(frozen=True, eq=False)
class Repair:
    """The labels, how many classes missed a promise before, and the exchanges and merges that repaired them."""

    labels: Labels
    repaired: int
    steps: int
    merges: int


class TooExpensive(Exception):  # noqa: N818  no error: a signal to stop
    """The repair will cost more than the bound, or takes too long."""


def repair(
    x: object,
    labels: Labels,
    k: int,
    requirements: Sequence[Requirement],
    *,
    bound: float = np.inf,
    progress: Progress = no_progress,
) -> Repair:
    """Return labels whose classes keep every requirement and have at least k records.

    Raise `TooExpensive` as soon as the result is expected to cost more than the bound, or to take long.

    >>> x = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> wages = Requirement.close([1, 2, 3, 4], 0.2)
    >>> repair(x, np.array([0, 0, 1, 1], np.int32), 2, [wages]).labels.tolist()
    [0, 1, 0, 1]
    """
    points = Points.from_array(x)
    k = check_k(points, k)
    labels = renumber(labels)
    if not requirements:
        return Repair(labels, 0, 0, 0)
    require_reachable(requirements)
    failing = int((measure_misses(requirements, labels) > 0).sum())
    if not failing:
        return Repair(labels, 0, 0, 0)
    return RepairRun(points, k, requirements, failing, progress, bound).run(labels)


class RepairRun:
    """A repair in progress."""

    def __init__(
        self,
        points: Points,
        k: int,
        requirements: Sequence[Requirement],
        failing: int,
        progress: Progress,
        bound: float,
    ) -> None:
        self.points, self.k, self.failing, self.progress = points, k, failing, progress
        self.requirements = requirements
        self.data = SearchInput.from_points(points, requirements)
        self.kind, self.place = number_kinds(requirements), number_places(points)
        self.sample = np.unique(self.kind, return_index=True)[1].astype(np.int32)
        self.kernel = kernels.load("repair")
        self.passes, self.tried, self.bound = 0, 0, bound
        self.history: list[tuple[float, float]] = []  # the misses and the cost of all classes after each call
        self.least = failing  # the fewest classes so far that miss a promise

    def run(self, labels: Labels) -> Repair:
        """Exchange records and merge classes until none misses a promise."""
        steps = merges = 0
        left = self.failing
        while left:
            labels, exchanges, left = self.exchange(labels)
            steps += exchanges
            if left:
                helpful = exchanges > MIN_EXCHANGES_PER_CLASS * left and not self.is_exhausted
                limit = max(1, left // 4) if helpful else None
                labels, merged = merge_classes(self.points, labels, self.requirements, limit=limit)
                merges += merged
                if not merged and not exchanges:  # a promise that merging does not see must not keep the loop alive
                    raise Unreachable("the classes cannot be repaired", fix="relax the promises, or lower k")
                left = int((measure_misses(self.requirements, labels) > 0).sum())
        return Repair(labels, self.failing, steps, merges)

    def exchange(self, labels: Labels) -> tuple[Labels, int, int]:
        """Exchange records, pass after pass, while it helps; return the labels, the steps and the classes left."""
        failing = measure_misses(self.requirements, labels) > 0
        if (np.bincount(labels)[failing] > MAX_REPAIRED_CLASS).all():
            return labels, 0, int(failing.sum())
        groups = self.data.arrange(labels, self.k)
        state = self.kernel.make_state(self.data.records, self.data.promises, groups, self.kind, self.sample)
        cost = self.kernel.repair_all(state, NO_CLASSES, NO_LISTS, NO_RECORDS)
        state.best[0].scale = cost / len(labels) + 1e-300
        listed, left = max(MIN_PER_KIND, RECORDS_LISTED // len(self.sample)), int((groups.missed > 0).sum())
        most_listed = MAX_WIDENING * listed
        self.history = [(float(groups.missed.sum()), cost)]
        while left and listed <= most_listed and not self.is_exhausted:
            before = groups.missed.sum()
            left = self._pass(state, listed)
            if groups.missed.sum() > MAX_MISS_LEFT * before:
                listed *= WIDENING_FACTOR
        return renumber(groups.label), int(state.best[0].steps), left

    @property
    def is_exhausted(self) -> bool:
        """Whether so much was tried that the remaining classes merge."""
        return self.passes >= MAX_PASSES or self.tried > MAX_WORK_PER_RECORD * len(self.points)

    def _pass(self, state: RepairState, listed: int) -> int:
        """Repair classes with `listed` records of each kind; return how many classes are left."""
        self.passes += 1
        groups = state.groups
        order = np.argsort(-groups.missed, kind="stable")
        order = order[(groups.missed[order] > 0) & (groups.size[order] <= MAX_REPAIRED_CLASS)]
        if not len(order):
            return int((groups.missed > 0).sum())
        spare = np.zeros(len(self.points), np.int32)
        self.kernel.repair_all(state, np.arange(len(groups.size)), NO_LISTS, spare)
        index = KindIndex(self.points, self.place, self.kind, spare > 0)
        # the member of each class that costs least; for an empty class, any record
        by_cost = np.lexsort((record_costs(self.points, groups, means=self.data.means), groups.label))
        first = np.searchsorted(groups.label[by_cost], np.arange(len(groups.size)))
        middle = np.asarray(by_cost[np.minimum(first, len(by_cost) - 1)], np.int64)
        for done in range(0, len(order), CLASSES_PER_CALL):
            chunk = order[done : done + CLASSES_PER_CALL]
            before = int(state.best[0].tried)
            self.kernel.repair_all(state, chunk, index.find_around(middle[chunk], listed), NO_RECORDS)
            self.tried += int(state.best[0].tried) - before
            self.least = min(self.least, int((groups.missed > 0).sum()))  # progress never goes back
            self.progress(self.failing - self.least, self.failing)
            self._check_cost(groups)
            if self.is_exhausted:
                break
        return int((groups.missed > 0).sum())

    def _check_cost(self, groups: Groups) -> None:
        """Raise if the remaining misses will cost too much, at the price of the later half of what is repaired.

        The price rises, because near records are taken first.
        """
        missed = float(groups.missed.sum())
        cost = float((groups.pairs / np.maximum(groups.size, 1)).sum())
        half = (self.history[0][0] + missed) / 2
        past = next((mark for mark in reversed(self.history) if mark[0] >= half), self.history[0])
        missed_before, cost_before = past
        self.history.append((missed, cost))
        if self.is_exhausted and np.isfinite(self.bound):
            raise TooExpensive
        repaired = missed_before - missed
        if repaired > 0 and cost + max(cost - cost_before, 0.0) * missed / repaired > self.bound:
            raise TooExpensive


def find_best_start(
    points: Points, labels: Labels, k: int, requirements: Sequence[Requirement], *, progress: Progress = no_progress
) -> Repair:
    """Return the cheapest classes that keep every requirement and have at least k records."""
    best = repair(points, labels, k, requirements, progress=_part_of_progress(progress, 0))
    if len(points) > MAX_REPAIRED_CLASS * (int(best.labels.max()) + 1):  # much smaller classes hardly exist
        return best
    bound = compute_cost(points, best.labels)
    start = _find_larger_classes(points, k, MAX_COST_SHARE * bound)
    if not np.array_equal(start, labels):
        try:
            other = repair(points, start, k, requirements, bound=bound, progress=_part_of_progress(progress, 1))
            if compute_cost(points, other.labels) < bound:
                best = replace(other, repaired=best.repaired)
        except TooExpensive:
            pass
    settled = settle_classes(points, best.labels, k, requirements, _part_of_progress(progress, 2))
    return replace(best, labels=settled)


def _find_larger_classes(points: Points, k: int, max_cost: float) -> Labels:
    """Return the largest classes of MDAV that cost at most this, else those of k records."""
    labels = mdav(points, k)
    for size in (factor * k for factor in SIZE_FACTORS if factor * k <= len(points) // 2):
        if compute_cost(points, labels) > max_cost:  # larger ones cost more
            break
        larger = mdav(points, size)
        if compute_cost(points, larger) > max_cost:
            break
        labels = larger
    return labels


def _part_of_progress(progress: Progress, part: int) -> Progress:
    """Report one of three parts as part of the whole."""
    return lambda done, total: progress(part * total + done, 3 * total)
