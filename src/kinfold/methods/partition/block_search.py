"""Search in a large table: round after round, block by block of neighbouring groups.

    each round cuts the groups into other blocks, by halving along random directions
    1. sweeps: relocations and swaps from the sums of the groups, in blocks of about ten thousand records, until a round
       gains less than one part in two hundred (numbers only)
    2. the search of small tables in blocks of about a thousand: first descents with chains, then also perturbations
    under promises: random moves that keep them, in blocks of some thousand; every class is compared with the whole
    table

The blocks of a round share no record, so they run in parallel, and the result depends neither on the threads nor on the
clock. A step is one block: a run of N steps repeats a run of seconds that took N. After each round the state is stored
as a checkpoint, from which a stopped run continues.

Cost: near-linear in n for a round; O(n d) memory.   Ties: the first candidate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kinfold import kernels
from kinfold.methods.annealing import Budget, CostMark, Refinement
from kinfold.methods.blocks.pool import NO_CHECKPOINTS, CheckpointStore, count_cores, count_threads
from kinfold.methods.partition.geometry import PairDistances, compute_cost, renumber_by_first_record
from kinfold.methods.partition.search import SearchInput, search
from kinfold.progress import Progress, no_progress, report_cost

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from kinfold.methods.partition.requirement import Requirement
    from kinfold.tables.points import Floats, Labels, Points

    Rows = NDArray[np.intp]

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
        return cut_into_blocks(self.places, self.current_labels(), max(records, MIN_GROUPS_PER_BLOCK * self.k), rng)

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
        from kinfold.methods.partition.refine import refine_under

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
    change = kernels.load("plain_search").sweep(search_input.records, groups, SWEEP_LOOKS)
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


def cut_into_blocks(places: Floats, groups: Labels, records: int, rng: np.random.Generator) -> list[Rows]:
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
