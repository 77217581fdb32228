"""Refinement: a cheaper partition with the same k, and the same promises.

`refine` searches by relocations, swaps and chains and perturbs each local optimum, until the steps or the seconds are
spent (see `search`; tables of more than MAX_TABLED_RECORDS in blocks, see below). It also tries starts from paths. The
cost is the sum over groups of the squared distances of their pairs over their size: the SSE for numbers.

`refine_under` keeps every promise at every step. The partition to start from must keep them (see `repair`).

    quench     steps at temperature 0 from the given partition
    race       the same partition, and coarser ones whose neighbouring classes are merged, each annealed for a while;
               the best continues. A union keeps the promises of its parts, and larger classes leave more freedom: the
               search often ends much lower
    rounds     annealing from the best partition so far, each round twice as long as the one before

    a step     a random move or swap (see `kernels/promised_search`)
    shakes     after a chunk of steps, if all distances fit into memory: a few neighbouring classes are taken apart,
               rebuilt and improved (see `kernels/search`). The larger the classes, the fewer shakes: one takes as long
               as many steps, growing with about the third power of the class size
    crossing   sometimes, of the current partition with the best (see `search.cross_partitions`)

The temperature falls from the cost of half an average record to 0.

A large table is searched round after round, block by block of neighbouring groups. Each round cuts the groups into
other blocks, by halving along random directions:

    sweeps     relocations and swaps from the sums of the groups, in blocks of about ten thousand records, until a round
               gains less than one part in two hundred (numbers only)
    searches   as in small tables, in blocks of about a thousand: first descents with chains, then also perturbations
    promises   random moves that keep them, in blocks of some thousand; every class is compared with the whole table

The blocks of a round share no record, so they run in parallel, and the result depends neither on the threads nor on the
clock. A step is one block: a run of N steps repeats a run of seconds that took N. After each round the state is stored
as a checkpoint, from which a stopped run continues.

Cost: O(d + class size) for a step under promises; near-linear in n for a round, O(n d) memory.
Ties: the earlier partition, the first candidate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold import kernels
from kinfold.errors import PolicyError
from kinfold.methods.annealing import Annealer, Budget, CostMark, Cycle, Refinement
from kinfold.methods.blocks.pool import NO_CHECKPOINTS, count_cores, count_threads
from kinfold.methods.partition.geometry import (
    PairDistances,
    build_curves,
    compute_cost,
    make_curves,
    renumber,
    renumber_by_first_record,
)
from kinfold.methods.partition.requirement import Requirement, measure_misses
from kinfold.methods.partition.search import (
    CANDIDATE_GROUPS,
    CHAIN_GROUPS,
    GROUPS_TAKEN_APART,
    SearchInput,
    cross_partitions,
    cut_paths,
    first_cycle_steps,
    load_search_kernels,
    search,
)
from kinfold.progress import Progress, no_progress, report_cost
from kinfold.tables.points import Floats, Labels, Points, check_k
from kinfold.tables.regions import CheckpointStore

if TYPE_CHECKING:
    from kinfold.kernels.moves import Curves

Rows: TypeAlias = NDArray[np.intp]

MAX_TABLED_RECORDS = 5_000  # records whose distances all fit into memory
# Default steps of a large table, in blocks: some rounds over the whole table, fewer for each record above MANY_RECORDS
RECORDS_PER_BLOCK, MANY_RECORDS, RECORDS_PER_BLOCK_BEYOND = 500, 100_000, 1_500

# The constants of shakes are a rough choice from Census, Tarragona and EIA, some seconds each on a busy machine
STEPS_PER_CHUNK = 20_000  # between two looks at the clock and two progress reports
CLASSES_MERGED = (1, 2, 3, 5)  # into one class, for each partition of the race
QUENCH_STEPS, RACE_STEPS, ROUND_STEPS, STEPS_PER_RECORD = 10, 100, 400, 1000  # for each record
PROMISED_TEMPERATURE = 0.5  # of the cost of an average record
MAX_SHAKEN_RECORDS = 3_000  # in larger tables descents under promises take too long (EIA loses less by single moves)
SHAKE_COST_FACTOR = 1.5  # times the mean third power of class sizes: steps that take about as long as a shake
MAX_STEPS_PER_SHAKE = 2_000  # if a shake takes longer than this, single moves alone reach more
EXTRA_CLASSES = 8  # that shakes may form in addition to twice as many as there are
CHUNKS_PER_CROSSING = 8  # a crossing takes as long as some thousand steps
MIN_GAIN_SHARE = 1e-9  # a smaller gain is rounding

RECORDS_SWEPT, RECORDS_SEARCHED, RECORDS_UNDER_PROMISES = 10_000, 1_000, 5_000  # in a block
SHAKES_PER_RECORD = 1.0  # steps for each record of a block after its descent
MIN_GROUPS_PER_BLOCK = 20  # if their size allows
NEAR_GROUPS = 12  # neighbouring groups that a group knows
GROUPS_TRIED = 3  # nearest of them, for a record
SWEEP_LOOKS = 12  # mean limit for each record in one sweep
MIN_ROUND_GAIN = 0.005  # a round of sweeps that gains less is the last
BLOCKS_PER_BATCH = max(4, 2 * count_cores())  # between two looks at the clock
MOVES_PER_RECORD = 10  # tried in a block under promises
CHECKPOINT_NAME = "refinement"


def refine(
    x: object, labels: object, k: int, *, seconds: float | None = None, steps: int | None = None, seed: int = 0
) -> Labels:
    """Return labels of a partition into groups of at least k that costs no more than the given one.

    The result depends on the table, the labels, k, the seed and the number of steps. With `seconds` the steps are as
    many as fit (`improve` returns how many). With neither, there is one cycle of sixty steps for each group, or some
    rounds over the whole table if it has more than 5,000 records, where a step is a block.

    >>> x = [[0.0], [1.0], [2.0], [7.0], [8.0], [9.0]]
    >>> refine(x, [0, 1, 0, 1, 0, 1], 3).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    return improve(x, labels, k, seconds=seconds, steps=steps, seed=seed).labels


def improve(
    x: object,
    labels: object,
    k: int,
    *,
    seconds: float | None = None,
    steps: int | None = None,
    seed: int = 0,
    progress: Progress = no_progress,
) -> Refinement:
    """Refine a partition; return the labels with their cost, the steps taken and how the cost fell."""
    points = Points.from_array(x)
    size = check_k(points, k)
    start = check_labels(labels, len(points), size)
    large = len(points) > MAX_TABLED_RECORDS
    if steps is None and seconds is None:
        steps = default_blocks(len(points)) if large else first_cycle_steps(len(points), size)
    load_search_kernels()
    if large:
        result = search_rounds(BlockSearch(points, start, size, seed), Budget(steps, seconds), progress)
    else:
        result = _search_small(points, start, size, Budget(steps, seconds), seed, progress)
    before = compute_cost(points, start)
    # Sums over values of very different magnitude can mislead a search; they must not make its start worse
    return result if result.cost <= before else replace(result, labels=start, cost=before)


def default_blocks(records: int) -> int:
    """Return the default number of blocks of a large table.

    >>> default_blocks(100_000), default_blocks(1_000_000)
    (200, 800)
    """
    return min(records, MANY_RECORDS) // RECORDS_PER_BLOCK + max(0, records - MANY_RECORDS) // RECORDS_PER_BLOCK_BEYOND


def _search_small(points: Points, start: Labels, k: int, budget: Budget, seed: int, progress: Progress) -> Refinement:
    """Search a table of some thousand records, sorted so that near records are near in memory: a quarter faster."""
    order = make_curves(points, 1, 0)[0]
    pairs = PairDistances.from_points(points.take(order))
    result = search(pairs, [start[order], *cut_paths(pairs, k)], k, budget, seed, progress)
    labels = np.empty_like(result.labels)
    labels[order] = result.labels
    return replace(result, labels=renumber_by_first_record(labels))


def check_labels(labels: object, n: int, k: int) -> Labels:
    """Return the labels numbered from 0 without gaps; raise if they are no partition of n records into groups of k."""
    array = np.asarray(labels)
    if array.shape != (n,) or array.dtype.kind not in "iu":
        what = f"labels have the shape {array.shape} and the type {array.dtype}"
        raise PolicyError(what, fix=f"give {n} whole numbers, one for each record")
    array = renumber_by_first_record(array)
    smallest = int(np.bincount(array).min())
    if smallest < k:
        what = f"k is {k}, but a group of the partition to refine has {smallest} records"
        raise PolicyError(what, fix=f"start from a partition into groups of at least {k} records")
    return array


def refine_under(
    x: object,
    labels: Labels,
    k: int,
    requirements: Sequence[Requirement],
    *,
    seconds: float | None = None,
    steps: int | None = None,
    seed: int = 0,
    progress: Progress = no_progress,
) -> Refinement:
    """Return a cheaper partition whose classes keep every requirement and have at least k records.

    With neither steps nor seconds there are a thousand steps for each record.

    >>> x = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> wages = Requirement.close([1, 4, 2, 3], 0.4)
    >>> refine_under(x, np.array([0, 1, 0, 1], np.int32), 2, [wages], steps=2000).labels.tolist()
    [0, 0, 1, 1]
    """
    points = Points.from_array(x)
    k = check_k(points, k)
    if steps is None and seconds is None:
        steps = STEPS_PER_RECORD * len(points)
    for name in ("draws", "promised_search", "geometry"):
        kernels.prepare(name)  # compiling does not count as time
    budget = Budget(steps, seconds)
    return refine_within(PromisedSearch(points, k, requirements, seed, build_curves(points)), labels, budget, progress)


def refine_within(
    space: PromisedSearch, labels: Labels, budget: Budget, progress: Progress = no_progress
) -> Refinement:
    """Return a cheaper partition of the records of a search space, which keeps its requirements."""
    labels = renumber(labels)
    if np.bincount(labels).min() < space.k or measure_misses(space.requirements, labels).max() > 0:
        raise PolicyError("the partition to refine misses a promise already", fix="repair it first")
    space.lowest = compute_cost(space.points, labels)
    annealer = Annealer(space, labels, space.lowest)
    result = annealer.run(_plan_cycles(annealer, space), budget, progress)
    labels = renumber(result.labels)
    return replace(result, labels=labels, cost=compute_cost(space.points, labels))


def _plan_cycles(annealer: Annealer, space: PromisedSearch) -> Iterator[Cycle]:
    """Plan the quench, the race, and the rounds."""
    n = len(annealer.best)
    yield Cycle(annealer.best, QUENCH_STEPS * n, 0.0)
    quenched = annealer.best
    for count in CLASSES_MERGED:
        yield Cycle(space.coarsen(quenched, count), RACE_STEPS * n, PROMISED_TEMPERATURE)
    yield from annealer.plan_doubling_cycles(ROUND_STEPS * n, PROMISED_TEMPERATURE)


class PromisedSearch:
    """The search space of records in classes that keep promises."""

    chunk = STEPS_PER_CHUNK

    def __init__(self, points: Points, k: int, requirements: Sequence[Requirement], seed: int, curves: Curves) -> None:
        self.points, self.k, self.requirements, self.curves = points, k, requirements, curves
        self.pairs: PairDistances | None = None
        self.input = SearchInput.from_points(points, requirements)
        self.stream = kernels.load("draws").make_stream(seed)
        self.lowest, self.chunks = np.inf, 0

    def begin(self, labels: Labels) -> None:
        """Start from this partition."""
        size, n = np.bincount(labels), len(labels)
        mean_third_power = (size.astype(np.float64) ** 4).sum() / n  # of the size of a record's class
        self.steps_per_shake = int(SHAKE_COST_FACTOR * mean_third_power)
        self.shaken = n <= MAX_SHAKEN_RECORDS and self.steps_per_shake <= MAX_STEPS_PER_SHAKE
        if self.shaken and self.pairs is None:
            self.pairs = PairDistances.from_points(self.points)
            self.input = replace(self.input, distances=self.pairs.squared, near=self.pairs.nearest)
        free = max(0, min(n // self.k + 1 - len(size), len(size) + EXTRA_CLASSES)) if self.shaken else 0
        self.groups = self.input.arrange(labels, self.k, free)
        state = self.groups.state[0]
        state.wide, state.deep, state.reach = CANDIDATE_GROUPS, CHAIN_GROUPS, GROUPS_TAKEN_APART
        self.record_cost = self.lowest / n

    def take_steps(self, temperatures: Floats) -> None:
        """Take a step at each temperature, a share of the average cost of a record; then shake."""
        kernel, groups, promises = kernels.load("promised_search"), self.groups, self.input.promises
        cost = kernel.make_random_moves(
            self.input.records, promises, groups, self.curves, self.stream, self.record_cost * temperatures
        )
        self.candidates = [(groups.label, cost)]
        if self.shaken and len(temperatures) >= self.steps_per_shake:
            lowest = np.empty_like(groups.label)
            sampled = np.ascontiguousarray(temperatures[self.steps_per_shake - 1 :: self.steps_per_shake])
            self.candidates[0] = (groups.label.copy(), cost)
            cost = kernel.search(promises, groups, self.stream, sampled, lowest)
            self.candidates.append((lowest, cost))

    def improve(self, labels: Labels, cost: float) -> tuple[Labels, float]:
        """Return the best of this partition and those of the last steps; after some chunks, cross them."""
        for candidate, candidate_cost in self.candidates:
            if candidate_cost < cost * (1 - MIN_GAIN_SHARE):
                labels, cost = renumber_by_first_record(candidate), candidate_cost
        self.chunks += 1
        if self.pairs is not None and self.shaken and self.chunks % CHUNKS_PER_CROSSING == 0:
            for candidate, _ in self.candidates:
                labels = cross_partitions(self.pairs, labels, renumber_by_first_record(candidate))
            cost = min(cost, self.pairs.cost(labels))
        self.lowest = cost
        return labels, cost

    def coarsen(self, labels: Labels, count: int) -> Labels:
        """Merge `count` neighbouring classes at a time, unless there are few classes."""
        size = np.bincount(labels)
        if count == 1 or len(size) < 2 * count:
            return labels
        means = np.empty((len(size), self.points.numbers.shape[1]))  # which may have no column
        for column, values in enumerate(self.points.numbers.T):
            means[:, column] = np.bincount(labels, values) / size
        codes = np.zeros((len(size), self.points.codes.shape[1]), np.int32)
        codes[labels] = self.points.codes
        order = make_curves(Points(means, codes, self.points.scales), 1, 0)[0]
        union = np.empty(len(size), np.int64)
        union[order] = np.minimum(np.arange(len(size)) // count, len(size) // count - 1)
        return renumber(union[labels].astype(np.int32))


def search_rounds(
    work: BlockSearch, budget: Budget, progress: Progress = no_progress, checkpoints: CheckpointStore = NO_CHECKPOINTS
) -> Refinement:
    """Search round after round until the budget is spent or the cost is 0; return the best partition."""
    lowest, steps = compute_cost(work.points, work.current_labels()), 0
    if (state := checkpoints.get(CHECKPOINT_NAME)) is not None:
        steps, lowest, elapsed = work.restore(state)
        budget = replace(budget, started=budget.started - elapsed)
    history = [CostMark(steps, budget.elapsed(), lowest)]
    while not budget.is_spent(steps) and lowest > 0.0:
        blocks, before = work.cut_next_round(), lowest
        while blocks and not budget.is_spent(steps):
            batch = BLOCKS_PER_BATCH if budget.steps is None else min(BLOCKS_PER_BATCH, budget.steps - steps)
            for change in work.run(blocks[:batch]):  # one by one, so that the batch size does not change the sum
                lowest += change
            steps, blocks = steps + len(blocks[:batch]), blocks[batch:]
            history.append(CostMark(steps, budget.elapsed(), lowest))
            report_cost(lowest)
            progress(*budget.measure_progress(steps))
        # the next round searches instead of sweeping once sweeps gain little
        work.round, work.searched = work.round + 1, work.searched + (not work.sweeping)
        work.sweeping = work.sweeping and before - lowest > MIN_ROUND_GAIN * before
        if not blocks:
            checkpoints.put(CHECKPOINT_NAME, **work.state(steps, lowest, budget.elapsed()))
    labels = work.current_labels()
    return Refinement(labels, compute_cost(work.points, labels), steps, tuple(history))


class BlockSearch:
    """A search by blocks. The label of a group is its first record, so that blocks need not agree on labels."""

    def __init__(
        self, points: Points, labels: Labels, k: int, seed: int, requirements: Sequence[Requirement] = ()
    ) -> None:
        self.points, self.k, self.seed = points, k, seed
        self.requirements = [each.with_reference() for each in requirements]
        self.labels = np.empty_like(labels)
        self._write(np.arange(len(labels)), labels)
        self.round, self.searched = 0, 0
        self.sweeping = points.codes.shape[1] == 0 and not requirements
        self.places = to_coordinates(points)

    def current_labels(self) -> Labels:
        """Return the current labels, numbered from 0."""
        return renumber_by_first_record(self.labels)

    def cut_next_round(self) -> list[Rows]:
        """Return the records of each block of the next round."""
        records = RECORDS_SWEPT if self.sweeping else RECORDS_UNDER_PROMISES if self.requirements else RECORDS_SEARCHED
        rng = np.random.default_rng([self.seed, self.round])
        return cut_groups(self.places, self.current_labels(), max(records, MIN_GROUPS_PER_BLOCK * self.k), rng)

    def run(self, blocks: list[Rows]) -> list[float]:
        """Search these blocks in parallel; return the change of cost of each."""
        work = self._sweep if self.sweeping else self._refine_under if self.requirements else self._search
        with ThreadPoolExecutor(count_threads()) as pool:
            return list(pool.map(work, blocks))

    def state(self, steps: int, lowest: float, elapsed: float) -> dict[str, NDArray[np.generic]]:
        """Return what a later run needs to continue after this round."""
        counts = np.array([self.round, self.searched, self.sweeping, steps], np.int64)
        return {"labels": self.labels, "counts": counts, "reals": np.array([lowest, elapsed])}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> tuple[int, float, float]:
        """Continue from a state; return the steps taken, the cost and the elapsed seconds."""
        self.labels = state["labels"].astype(np.int32)
        self.round, self.searched, sweeping, steps = map(int, state["counts"])
        self.sweeping = bool(sweeping)
        return steps, float(state["reals"][0]), float(state["reals"][1])

    def _sweep(self, rows: Rows) -> float:
        points, start = self.points.take(rows), renumber_by_first_record(self.labels[rows])
        if start.max() == 0:
            return 0.0
        labels, change = sweep_groups(points, start, self.k)
        self._write(rows, labels)
        return change

    def _refine_under(self, rows: Rows) -> float:
        points, start = self.points.take(rows), renumber_by_first_record(self.labels[rows])
        requirements = [each.within(rows) for each in self.requirements]
        steps, seed = MOVES_PER_RECORD * len(rows), self.seed + self.round
        result = refine_under(points, start, self.k, requirements, steps=steps, seed=seed)
        before = compute_cost(points, start)
        if result.cost >= before:
            return 0.0
        self._write(rows, result.labels)
        return result.cost - before

    def _search(self, rows: Rows) -> float:
        pairs = PairDistances.from_points(self.points.take(rows))
        start = renumber_by_first_record(self.labels[rows])
        shakes = 0 if self.searched == 0 else int(SHAKES_PER_RECORD * len(rows))
        result = search(pairs, [start], self.k, Budget(shakes, None, first_cycle=shakes), self.seed + self.round)
        self._write(rows, result.labels)
        return result.cost - pairs.cost(start)

    def _write(self, rows: Rows, labels: Labels) -> None:
        _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
        self.labels[rows] = rows[first][inverse].astype(np.int32)


def sweep_groups(points: Points, labels: Labels, k: int) -> tuple[Labels, float]:
    """Move and swap records by the means of the groups; return the labels and the change of cost."""
    search_input = SearchInput.from_points(points, near=find_near_groups(points.numbers, labels))
    groups = search_input.arrange(labels, k)
    groups.state[0].wide = GROUPS_TRIED
    change = kernels.load("search").sweep(search_input.records, groups, SWEEP_LOOKS)
    return groups.label, float(change)


def find_near_groups(numbers: Floats, labels: Labels) -> Labels:
    """Return for each record the first records of the groups whose means are nearest to its own, nearest first.

    >>> find_near_groups(np.array([[0.0], [1.0], [4.0], [5.0], [8.0], [9.0]]), np.array([0, 0, 1, 1, 2, 2])).tolist()
    [[2, 4], [2, 4], [0, 4], [4, 0], [2, 0], [2, 0]]
    """
    _, first, size = np.unique(labels, return_index=True, return_counts=True)
    means = np.column_stack([np.bincount(labels, column) / size for column in numbers.T])
    groups = np.zeros((len(size), min(NEAR_GROUPS, len(size) - 1)), np.int32)
    kernels.load("geometry").find_nearest_rows(means, groups)
    groups = groups[labels]
    squared = np.zeros(groups.shape)
    for column, mean in zip(numbers.T, means.T, strict=True):
        squared += (column[:, None] - mean[groups]) ** 2
    return np.take_along_axis(first[groups], np.argsort(squared, axis=1, kind="stable"), axis=1).astype(np.int32)


def to_coordinates(points: Points) -> Floats:
    """Return coordinates that keep neighbours near: numbers, and codes over their count."""
    scales = [np.sqrt(scale.weight) / scale.codes for scale in points.scales]
    return np.column_stack([points.numbers, points.codes * np.array(scales)]) if scales else points.numbers


def cut_groups(places: Floats, groups: Labels, records: int, rng: np.random.Generator) -> list[Rows]:
    """Return the rows of blocks of neighbouring groups, of about `records` rows each, by random cuts."""
    size = np.bincount(groups)
    centres = np.column_stack([np.bincount(groups, column) / size for column in places.T])
    order, first = np.argsort(groups, kind="stable"), np.cumsum(size) - size
    return [
        np.concatenate([order[first[group] : first[group] + size[group]] for group in block])
        for block in halve_groups(centres, size, records, rng)
    ]


def halve_groups(centres: Floats, size: Rows, records: int, rng: np.random.Generator) -> Iterator[Rows]:
    """Halve the groups along random directions until no part has more than `records` records.

    >>> centres = np.array([[0.0], [3.0], [1.0], [2.0]])
    >>> [sorted(part.tolist()) for part in halve_groups(centres, np.full(4, 5), 10, np.random.default_rng(0))]
    [[1, 3], [0, 2]]
    """
    parts = [np.arange(len(size))]
    while parts:
        part = parts.pop()
        if len(part) == 1 or size[part].sum() <= records:
            yield part
            continue
        direction = rng.normal(size=centres.shape[1]) * centres[part].std(axis=0)
        part = part[np.argsort((centres[part] * direction).sum(axis=1), kind="stable")]
        upto = np.cumsum(size[part])
        middle = 1 + int(np.searchsorted(upto[:-2], upto[-1] * rng.uniform(0.4, 0.6)))
        parts += [part[:middle], part[middle:]]
