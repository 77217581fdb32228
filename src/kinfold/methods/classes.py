"""Classes: partition the records in blocks, repair missed promises, repair the borders of blocks, refine.

cut         the records of each stratum of missing values into blocks, each with its share of the confidential values
partition   each block with the method of the policy, and repair classes that miss a promise of the whole table
repair      over the whole table what no block could repair by itself
borders     improve classes on either side of a cut
refine      by local search under every promise, or exactly

A small table has one block per stratum and no borders.

Borders. Classes on either side of a cut are improved in rounds; other classes stay as they are:

    round          takes neighbouring classes together, by cuts in random directions, unlike those of the blocks
    border         a class is at a border if one of its nearest classes, or one of its own records, is of another block
    improvement    only its records move and swap, as long as the cost falls:
        numbers           by the sums of the classes (sweeps)
        numbers, codes    by a descent over all distances of some hundred records
        under promises    by swaps among records with equal confidential values (settling), then by random moves
                          and swaps that keep every promise, some for each record

The neighbourhoods of a round share no record: they run in parallel, and the result does not depend on the threads.

`method.refine` is a number of seconds; "auto" is a number of steps by the size of the table, so that the result does
not depend on the clock; `method.refine_steps` sets the steps. The method "auto" refines by "auto" unless the policy
says otherwise or promises beyond k exist: then it uses several starts instead. The steps are recorded: with them a
run is repeated to the byte.

"exact" is for some hundred records and no promise but k: local search as in "auto", then `partition.exact` chooses
among all classes that can be optimal and bounds the gap to the optimum. Its steps are rounds of pricing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold import kernels
from kinfold.errors import PolicyError, Problem, Unreachable
from kinfold.methods.annealing import Budget
from kinfold.methods.blocks.cutting import BlockSize, choose_block_size, cut, number_layers
from kinfold.methods.blocks.pool import NO_CHECKPOINTS, BlockJob, BlockLabels, BlockPool, run_blocks
from kinfold.methods.edit_rules import AdjustedAverages
from kinfold.methods.missing_values import make_promise_check, number_strata, refuse_mixed_classes
from kinfold.methods.partition.geometry import (
    PairDistances,
    build_curves,
    compute_cost,
    renumber_by_first_record,
)
from kinfold.methods.partition.refine import (
    MAX_TABLED_RECORDS,
    MIN_GROUPS_PER_BLOCK,
    RECORDS_SEARCHED,
    RECORDS_SWEPT,
    BlockSearch,
    PromisedSearch,
    cut_groups,
    default_blocks,
    improve,
    refine_under,
    refine_within,
    search_rounds,
    sweep_groups,
    to_coordinates,
)
from kinfold.methods.partition.requirement import Requirement, require_reachable
from kinfold.methods.partition.search import load_search_kernels, search
from kinfold.methods.plan import load_method
from kinfold.methods.promises import STRATUM_DISTANCE, explain_single_class, make_scope_check, merge_failing
from kinfold.methods.task import Task
from kinfold.policy.registry import Declaration
from kinfold.progress import Progress, SearchMarks, no_progress, report_cost, watch_search
from kinfold.tables.points import Labels, Points

if TYPE_CHECKING:
    from kinfold.methods.partition.repair import Repair


Rows: TypeAlias = NDArray[np.intp]

BORDER_ROUNDS = 2  # the second covers the edges of the neighbourhoods of the first
BORDER_MOVES_PER_RECORD = 10  # under promises: regains three quarters of what blocks lose; twice as many gain little
NEIGHBOUR_CLASSES = 6  # a class is at a border if one of so many nearest classes is of another block
MAX_EXACT_RECORDS = 500  # half a minute of processor time at k = 3 to 5; a thousand records take many minutes
BORDERS_CHECKPOINT = "borders"


@dataclass(frozen=True, eq=False)
class Blocks:
    """The records of each block, the block size (0: each block is a whole stratum), and the stratum of each record."""

    rows: list[Rows]
    size: BlockSize
    strata: Labels

    @property
    def count(self) -> int:
        """How many blocks there are, 0 if nothing is cut."""
        return len(self.rows) if self.size.records else 0

    def number_records(self) -> Labels:
        """Return the block of each record."""
        numbers = np.empty(sum(map(len, self.rows)), np.int32)
        for number, rows in enumerate(self.rows):
            numbers[rows] = number
        return numbers


@dataclass(frozen=True, eq=False)
class Classes:
    """The class of each record, and how the classes were made."""

    labels: Labels
    repaired: int = 0
    steps: int = 0  # of refinement
    gap: float | None = None
    refine_seconds: float = 0.0
    curve: SearchMarks = ()
    adjusted: AdjustedAverages | None = None  # for edit rules
    blocks: Blocks | None = None


def make_classes(task: Task, method: Declaration, strata: Labels | None = None, *, refine: bool = True) -> Classes:
    """Return the classes of some records; no class crosses a stratum.

    By default the strata are the patterns of missing values, and there is a single class if nothing else keeps t.
    """
    if strata is None:
        strata = number_strata(task.attributes)
        if problems := [*_find_exact_problems(task, strata)]:
            raise PolicyError(problems)
        if not strata.any() and explain_single_class(task):
            require_reachable(task.requirements())
            labels = np.zeros(len(strata), np.int32)
            if scope_check := make_scope_check(task):
                merge_failing(task.points(), labels, scope_check)  # or raise
            return Classes(labels)
    points = task.points()
    blocks = cut_into_blocks(task, method, points, strata)
    if blocks.count or len(blocks.rows) > 1:
        part = partition_blocks(task, method, points, blocks)
    else:
        part = BlockLabels(load_method(method).run(points, task, task.progress))
    points, required = separate_strata(points, strata), task.requirements()
    if required:
        part = _repair(task, points, part, blocks, required)
    labels = repair_borders(task, points, part.labels, blocks, required)
    return _refine(task, points, replace(part, labels=labels), blocks, refine=refine)


def cut_into_blocks(task: Task, method: Declaration, points: Points, strata: Labels) -> Blocks:
    """Cut the records of each stratum into blocks, if the table is too large to be partitioned as a whole."""
    size = choose_block_size(method, task)
    rows = [np.flatnonzero(strata == stratum) for stratum in range(int(strata.max()) + 1)]
    if size.records:
        layers = number_layers(task.requirements(), task.k, size.records)
        rows = [block for each in rows for block in cut(points, each, size.records, layers, task.stage("cut"))]
    return Blocks(rows, size, strata)


def partition_blocks(task: Task, method: Declaration, points: Points, blocks: Blocks) -> BlockLabels:
    """Return the classes of every block, numbered through all blocks, and how many were repaired."""
    if blocks.count:
        required = [each.with_reference() for each in task.requirements()]

        def make_job(rows: Rows) -> BlockJob:
            return PackedBlock(method, points.take(rows), task.take_block(rows, required))

        parts = run_blocks(blocks.rows, make_job, task.stage("blocks"), task.checkpoints, task.run_jobs)
    else:

        def make_stratum_job(rows: Rows) -> BlockJob:
            part, part_task = points.take(rows), task.take(rows)
            return lambda progress: BlockLabels(load_method(method).run(part, part_task, progress))

        parts = run_blocks(blocks.rows, make_stratum_job, task.progress, NO_CHECKPOINTS)
    labels, classes = np.empty(task.records, np.int32), 0
    for rows, part in zip(blocks.rows, parts, strict=True):
        labels[rows] = part.labels + classes
        classes += int(part.labels.max()) + 1
    return BlockLabels(labels, sum(part.repaired for part in parts))


@dataclass(frozen=True, eq=False)
class PackedBlock:
    """The job of one block; it can be pickled."""

    method: Declaration
    points: Points
    task: Task

    def __call__(self, progress: Progress) -> BlockLabels:
        """Return the classes of the block; promises that it cannot keep alone are left to the repair of the table."""
        required = self.task.requirements()
        try:
            labels = load_method(self.method).run(self.points, self.task, progress)
            if not required:
                return BlockLabels(labels)
            result = repair_classes(self.task, self.points, labels, required, progress)
            return BlockLabels(result.labels, result.repaired)
        except Unreachable:
            pass
        try:
            task = self.task.without_table_requirements()
            return BlockLabels(load_method(self.method).run(self.points, task, progress))
        except Unreachable:
            return BlockLabels(np.zeros(len(self.points), np.int32))


def repair_classes(
    task: Task, points: Points, labels: Labels, required: Sequence[Requirement], progress: Progress
) -> Repair:
    """Return classes that keep every promise, from those of the method and, if the policy says so, from others."""
    from kinfold.methods.partition.repair import find_best_start, repair

    search = find_best_start if task.method.uses_several_starts else repair
    return search(points, labels, task.k, required, progress=progress)


def _repair(
    task: Task, points: Points, part: BlockLabels, blocks: Blocks, required: Sequence[Requirement]
) -> BlockLabels:
    """Repair classes that miss a promise, in blocks those that a block could not repair alone; keep strata apart."""
    if blocks.count:
        from kinfold.methods.partition.repair import repair

        result = repair(points, part.labels, task.k, required, progress=task.stage("repair"))
    else:
        result = repair_classes(task, points, part.labels, required, task.progress)
    labels, strata = result.labels, blocks.strata
    pieces = np.unique(labels * (int(strata.max()) + 1) + strata, return_inverse=True)[1].astype(np.int32)
    if pieces.max() != labels.max():
        labels = merge_failing(points, pieces, make_promise_check(task))[0]
    return BlockLabels(labels, part.repaired + result.repaired)


def repair_borders(
    task: Task, points: Points, labels: Labels, blocks: Blocks, required: Sequence[Requirement]
) -> Labels:
    """Return classes that are better at the borders of blocks and keep the same promises."""
    if blocks.count < 2:
        return labels
    if (saved := task.checkpoints.get(BORDERS_CHECKPOINT)) is not None:
        return saved["labels"].astype(np.int32)
    labels = improve_borders(points, labels, blocks.number_records(), task.k, required, task.stage("borders"))
    task.checkpoints.put(BORDERS_CHECKPOINT, labels=labels)
    return labels


def improve_borders(
    points: Points, labels: Labels, block: Labels, k: int, required: Sequence[Requirement], progress: Progress
) -> Labels:
    """Return better classes at the borders of blocks; `block` is the block of each record."""
    load_search_kernels()
    border_pass = BorderPass(points, renumber_by_first_record(labels), block, k, required)
    for number in range(BORDER_ROUNDS):
        border_pass.run(number, progress)
    return border_pass.labels


class BorderPass:
    """The labels as they change, and the records."""

    def __init__(self, points: Points, labels: Labels, block: Labels, k: int, required: Sequence[Requirement]) -> None:
        self.points, self.labels, self.block, self.k = points, labels, block, k
        self.required = [each.with_reference() for each in required]
        self.coordinates = to_coordinates(points)
        self.records = RECORDS_SEARCHED if points.codes.shape[1] and not required else RECORDS_SWEPT

    def run(self, number: int, progress: Progress) -> None:
        """Improve all borders once."""
        rng = np.random.default_rng([BORDER_ROUNDS, number])
        parts = cut_groups(self.coordinates, self.labels, max(self.records, MIN_GROUPS_PER_BLOCK * self.k), rng)
        pool = BlockPool(
            [len(part) for part in parts], lambda done, total: progress(number * total + done, BORDER_ROUNDS * total)
        )
        labels, first = self.labels.copy(), int(self.labels.max()) + 1  # improved classes come after all others
        for rows, improved in pool.run(lambda at: self._improve(parts[at])):
            if len(rows):
                labels[rows] = improved + first
                first += int(improved.max()) + 1
        self.labels = renumber_by_first_record(labels)

    def _improve(self, rows: Rows) -> tuple[Rows, Labels]:
        rows = rows[self._mark_at_border(rows)]
        start = renumber_by_first_record(self.labels[rows])
        if not len(rows) or start.max() == 0:
            return rows[:0], start[:0]
        points = self.points.take(rows)
        if self.required:
            from kinfold.methods.partition.repair import settle_classes

            required, curves = [each.within(rows) for each in self.required], build_curves(points)
            settled = settle_classes(points, start, self.k, required, no_progress, curves)
            space = PromisedSearch(points, self.k, required, 0, curves)
            return rows, refine_within(space, settled, Budget(BORDER_MOVES_PER_RECORD * len(start), None)).labels
        if points.codes.shape[1]:
            return rows, search(PairDistances.from_points(points), [start], self.k, Budget(0, None), 0).labels
        return rows, sweep_groups(points, start, self.k)[0]

    def _mark_at_border(self, rows: Rows) -> NDArray[np.bool_]:
        """Mark the records of classes that contain, or are near, another block."""
        groups = renumber_by_first_record(self.labels[rows])
        size, block = np.bincount(groups), self.block[rows]
        centres = np.column_stack([np.bincount(groups, column) / size for column in self.coordinates[rows].T])
        near = np.zeros((len(size), min(NEIGHBOUR_CLASSES, len(size) - 1)), np.int32)
        if near.shape[1]:
            kernels.load("geometry").find_nearest_rows(centres, near)
        order = np.argsort(groups, kind="stable")
        first = np.cumsum(size) - size
        low, high = np.minimum.reduceat(block[order], first), np.maximum.reduceat(block[order], first)
        lowest = np.minimum(low, low[near].min(axis=1, initial=np.iinfo(np.int32).max))
        highest = np.maximum(high, high[near].max(axis=1, initial=-1))
        return np.asarray((lowest != highest)[groups])


def _refine(task: Task, points: Points, part: BlockLabels, blocks: Blocks, *, refine: bool) -> Classes:
    """Refine, then merge classes that still miss a promise about people or a joint one."""
    required, repaired = task.requirements(), part.repaired
    started = time.perf_counter()
    result, scope_check = Classes(part.labels), make_scope_check(task)
    provable = refine and not required and not blocks.strata.any() and scope_check is None and task.method.prove > 0
    with watch_search() as curve:
        if refine:
            result = improve_classes(task, points, part.labels, required, in_blocks=blocks.count > 0)
        seconds = time.perf_counter() - started if result.steps else 0.0
        labels, gap = result.labels, result.gap
        if gap is None and provable:
            from kinfold.methods.partition.exact import lower_bound

            report_cost(cost := compute_cost(points, labels))
            gap = lower_bound(points, task.k, labels=labels, seconds=task.method.prove, progress=task.progress).gap(
                cost
            )
    if scope_check:
        labels, merged = merge_failing(points, labels, scope_check)
        repaired += merged
    refuse_mixed_classes(task.attributes, labels)
    return Classes(labels, repaired, result.steps, gap, seconds, tuple(curve.marks), blocks=blocks)


def improve_classes(
    task: Task, points: Points, labels: Labels, required: Sequence[Requirement], *, in_blocks: bool
) -> Classes:
    """Return better classes, as far as the policy allows refinement."""
    method = task.method
    settled = required and method.auto_refines  # by several starts; refining these as well takes minutes
    if method.refinement_limits is None or settled or len(np.unique(labels)) < 2:
        return Classes(labels)
    steps, seconds = method.refinement_limits
    report_cost(compute_cost(points, labels))
    if method.refine == "exact":
        from kinfold.methods.partition.exact import DEFAULT_ROUNDS, exact

        start = improve(points, labels, task.k, seed=method.seed, progress=task.progress)
        rounds = DEFAULT_ROUNDS if steps is None else steps
        proved = exact(points, task.k, start.labels, steps=rounds, progress=task.progress)
        return Classes(proved.labels, steps=proved.steps, gap=proved.gap)
    if in_blocks and len(labels) > MAX_TABLED_RECORDS:
        return _improve_in_blocks(task, points, labels, required)
    limits = {"seconds": seconds, "steps": steps, "seed": method.seed, "progress": task.progress}
    if required:
        result = refine_under(points, labels, task.k, required, **limits)  # type: ignore[arg-type]
    else:
        result = improve(points, labels, task.k, **limits)  # type: ignore[arg-type]
    return Classes(result.labels, steps=result.steps)


def _improve_in_blocks(task: Task, points: Points, labels: Labels, required: Sequence[Requirement]) -> Classes:
    """Return better classes of a large table: a step is one block of a round, and every round has a checkpoint."""
    load_search_kernels()
    steps, seconds = task.method.refinement_limits or (None, None)
    if steps is None and seconds is None:
        steps = default_blocks(len(labels))
    search = BlockSearch(points, labels, task.k, task.method.seed, required)
    result = search_rounds(search, Budget(steps, seconds), task.stage("refine"), task.checkpoints)
    better = result.cost <= compute_cost(points, labels)
    return Classes(result.labels if better else labels, steps=result.steps)


def _find_exact_problems(task: Task, strata: Labels) -> Iterator[Problem]:
    """Yield what keeps exact refinement from a task."""
    if task.method.refine != "exact":
        return
    if task.requirements() or task.scopes is not None:
        what = 'method.refine: "exact" keeps no promise but k, and the policy has others'
        yield Problem(what, 'use refine = "auto", which keeps every promise')
    if strata.any():
        what = 'method.refine: "exact" needs one group of records, and records with missing values are kept apart'
        yield Problem(what, 'use refine = "auto", or missing = "mean" or missing = "drop"')
    if len(strata) > MAX_EXACT_RECORDS:
        what = f'method.refine: "exact" is for up to {MAX_EXACT_RECORDS:,} records, there are {len(strata):,}'
        yield Problem(what, 'use refine = "auto"; method.prove says how far the result is from the optimum')


def separate_strata(points: Points, strata: Labels) -> Points:
    """Return the points with strata so distant that no search crosses them."""
    if not strata.any():
        return points
    return Points(np.column_stack([points.numbers, strata * STRATUM_DISTANCE]), points.codes, points.scales)
