"""Refinement: a cheaper partition with the same k, and the same promises.

`refine` searches by relocations, swaps and chains and perturbs each local optimum, until the steps or the seconds are
spent (see `search`, and `block_search` for large tables). It also tries starts from paths. The cost is the sum over
groups of the squared distances of their pairs over their size: the SSE for numbers.

`refine_under` keeps every promise at every step. The partition to start from must keep them (see `repair`).

    quench     steps at temperature 0 from the given partition
    race       the same partition, and coarser ones whose neighbouring classes are merged, each annealed for a while;
               the best continues. A union keeps the promises of its parts, and larger classes leave more freedom: the
               search often ends much lower
    rounds     annealing from the best partition so far, each round twice as long as the one before

    a step     a random move or swap (see `kernels/promised_search`)
    shakes     after a chunk of steps, if all distances fit into memory: a few neighbouring classes are taken apart,
               rebuilt and improved (see `kernels/descent`). The larger the classes, the fewer shakes: one takes as long
               as many steps, growing with about the third power of the class size
    crossing   sometimes, of the current partition with the best (see `search.cross_partitions`)

The temperature falls from the cost of half an average record to 0.
Cost: O(d + class size) for a step under promises.   Ties: the earlier partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from kinfold import kernels
from kinfold.errors import PolicyError
from kinfold.methods.annealing import Annealer, Budget, Cycle, Refinement
from kinfold.methods.partition.block_search import BlockSearch, search_rounds
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
from kinfold.progress import Progress, no_progress
from kinfold.tables.points import Floats, Labels, Points, check_k

MAX_TABLED_RECORDS = 5_000  # records whose distances all fit into memory
# Default steps of a large table, in blocks: some rounds over the whole table, fewer for each record above MANY_RECORDS
RECORDS_PER_BLOCK, MANY_RECORDS, RECORDS_PER_BLOCK_BEYOND = 500, 100_000, 1_500

# The constants of shakes are a rough choice from Census, Tarragona and EIA, some seconds each on a busy machine
STEPS_PER_CHUNK = 20_000  # between two looks at the clock and two progress reports
NEIGHBOUR_CURVES = 4  # along which neighbours are drawn; with one, pairs that lie across it never meet
CLASSES_MERGED = (1, 2, 3, 5)  # into one class, for each partition of the race
QUENCH_STEPS, RACE_STEPS, ROUND_STEPS, STEPS_PER_RECORD = 10, 100, 400, 1000  # for each record
PROMISED_TEMPERATURE = 0.5  # of the cost of an average record
MAX_SHAKEN_RECORDS = 3_000  # in larger tables descents under promises take too long (EIA loses less by single moves)
SHAKE_COST_FACTOR = 1.5  # times the mean third power of class sizes: steps that take about as long as a shake
MAX_STEPS_PER_SHAKE = 2_000  # if a shake takes longer than this, single moves alone reach more
EXTRA_CLASSES = 8  # that shakes may form in addition to twice as many as there are
CHUNKS_PER_CROSSING = 8  # a crossing takes as long as some thousand steps
MIN_GAIN_SHARE = 1e-9  # a smaller gain is rounding


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
    labels = renumber(labels)
    if np.bincount(labels).min() < k or measure_misses(requirements, labels).max() > 0:
        raise PolicyError("the partition to refine misses a promise already", fix="repair it first")
    if steps is None and seconds is None:
        steps = STEPS_PER_RECORD * len(points)
    for name in ("draws", "promised_search", "geometry"):
        kernels.load(name)  # compiling does not count as time
    budget = Budget(steps, seconds)
    space = PromisedSearch(points, k, requirements, seed)
    space.lowest = compute_cost(points, labels)
    annealer = Annealer(space, labels, space.lowest)
    result = annealer.run(_plan_cycles(annealer, space), budget, progress)
    labels = renumber(result.labels)
    return replace(result, labels=labels, cost=compute_cost(points, labels))


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

    def __init__(self, points: Points, k: int, requirements: Sequence[Requirement], seed: int) -> None:
        self.points, self.k = points, k
        self.pairs: PairDistances | None = None
        self.input = SearchInput.from_points(points, requirements)
        self.curves = build_curves(points, NEIGHBOUR_CURVES)
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
