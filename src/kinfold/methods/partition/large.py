"""Search in a large table: block by block of neighbouring groups, other blocks in each round.

    a round cuts the groups into blocks: halves along random directions, so that no two rounds have the same borders
    1. sweeps: blocks of about ten thousand records, relocations and swaps from the sums of the groups, until a round
       gains less than one part in two hundred (numbers only)
    2. the search of small tables in blocks of about a thousand: first descents with chains, then with shakes as well

The blocks of a round share no record, so they run in two threads at a time, and what comes out depends neither on
the threads nor on the clock. A step is one block; a run of N steps repeats a run of seconds that took N.

Cost: near-linear in n for a round; O(n d) memory.   Ties: the first found.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from kinfold import kernels
from kinfold.methods.annealing import Budget, Mark, Refinement
from kinfold.methods.partition.cost import cost
from kinfold.methods.partition.gaps import Gaps, renumbered
from kinfold.methods.partition.oracle import Oracle
from kinfold.methods.partition.search import search, warm
from kinfold.progress import Progress, silent, tell_cost

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from kinfold.rows.points import Floats, Labels, Points

    Rows = NDArray[np.intp]

SWEPT, SEARCHED = 10_000, 1_000  # records of a block
SHAKES = 1.0  # steps for each record in a block, once its descent is done
FEWEST = 20  # groups of a block at least, if their size allows
NEAR = 12  # groups next to a group that are known to its records
TRIED = 3  # of them are tried for a record, the nearest
LOOKS = 12  # times a record is looked at in one sweep, on average, at most
ENOUGH = 0.005  # a round of sweeps that gains less is the last
THREADS = 2
BATCH = 4  # blocks between two looks at the clock


def warm_blocks() -> None:
    """Load what the search needs, compiling it if need be, before any clock runs."""
    kernels.load("sweeps")
    warm()


def search_blocks(
    points: Points, start: Labels, k: int, budget: Budget, seed: int = 0, progress: Progress = silent
) -> Refinement:
    """Return the best partition into groups of at least k that is found from this start within the budget."""
    work = Work(points, start, k, seed)
    first = lowest = cost(points, start)
    history = [Mark(0, budget.spent(), first)]
    steps = 0
    while not budget.done(steps) and lowest > 0.0:
        blocks, before = work.next_round(), lowest
        while blocks and not budget.done(steps):
            batch = BATCH if budget.steps is None else min(BATCH, budget.steps - steps)
            lowest += work.run(blocks[:batch])
            steps, blocks = steps + len(blocks[:batch]), blocks[batch:]
            history.append(Mark(steps, budget.spent(), lowest))
            tell_cost(lowest)
            progress(*budget.way(steps))
        work.finish_round(before - lowest <= ENOUGH * before)
    labels = renumbered(work.labels)
    return Refinement(labels, cost(points, labels), steps, tuple(history))


class Work:
    """The labels while they change: the first record of a group is its label, so that blocks need not agree on any."""

    def __init__(self, points: Points, labels: Labels, k: int, seed: int) -> None:
        self.points, self.k, self.seed = points, k, seed
        self.labels = np.empty_like(labels)
        self._write(np.arange(len(labels)), labels)
        self.round, self.searched = 0, 0
        self.sweeping = points.codes.shape[1] == 0
        self.places = places(points)

    def next_round(self) -> list[Rows]:
        """Return the records of each block of the next round."""
        groups = renumbered(self.labels)
        size = np.bincount(groups)
        centres = np.column_stack([np.bincount(groups, column) / size for column in self.places.T])
        records = max(SWEPT if self.sweeping else SEARCHED, FEWEST * self.k)
        rng = np.random.default_rng([self.seed, self.round])
        order = np.argsort(groups, kind="stable")
        members = np.split(order, np.cumsum(size)[:-1])
        return [np.concatenate([members[g] for g in block]) for block in halved(centres, size, records, rng)]

    def run(self, blocks: list[Rows]) -> float:
        """Work on these blocks, two at a time; return the change of cost."""
        with ThreadPoolExecutor(THREADS) as pool:
            return sum(pool.map(self._sweep if self.sweeping else self._search, blocks))

    def finish_round(self, settled: bool) -> None:
        """Go on to the next round, and from sweeps to searches when sweeps gain little."""
        self.searched += not self.sweeping
        self.sweeping = self.sweeping and not settled
        self.round += 1

    def _sweep(self, rows: Rows) -> float:
        points, start = self.points.take(rows), renumbered(self.labels[rows])
        if start.max() == 0:
            return 0.0
        oracle = Oracle.of(points, near=near_by_means(points.numbers, start))
        groups = oracle.arranged(start, self.k)
        groups.state[0].wide = TRIED
        change = kernels.load("sweeps").sweep(oracle.records, groups, LOOKS)
        self._write(rows, groups.label)
        return float(change)

    def _search(self, rows: Rows) -> float:
        gaps = Gaps.of(self.points.take(rows))
        start = renumbered(self.labels[rows])
        shakes = 0 if self.searched == 0 else int(SHAKES * len(rows))
        found = search(gaps, [start], self.k, Budget(shakes, None), self.seed + self.round, first=shakes)
        self._write(rows, found.labels)
        return found.cost - gaps.cost(start)

    def _write(self, rows: Rows, labels: Labels) -> None:
        _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
        self.labels[rows] = rows[first][inverse].astype(np.int32)


def near_by_means(numbers: Floats, labels: Labels) -> Labels:
    """Return for each record the first records of the groups with the nearest means to its own, nearest to it first.

    >>> near_by_means(np.array([[0.0], [1.0], [4.0], [5.0], [8.0], [9.0]]), np.array([0, 0, 1, 1, 2, 2])).tolist()
    [[2, 4], [2, 4], [0, 4], [4, 0], [2, 0], [2, 0]]
    """
    _, first, size = np.unique(labels, return_index=True, return_counts=True)
    means = np.column_stack([np.bincount(labels, column) / size for column in numbers.T])
    groups = np.zeros((len(size), min(NEAR, len(size) - 1)), np.int32)
    kernels.load("distances").nearest_rows(means, groups)
    groups = groups[labels]
    away = np.zeros(groups.shape)
    for column, mean in zip(numbers.T, means.T, strict=True):
        away += (column[:, None] - mean[groups]) ** 2
    return np.take_along_axis(first[groups], np.argsort(away, axis=1, kind="stable"), axis=1).astype(np.int32)


def places(points: Points) -> Floats:
    """Return coordinates for every attribute, good enough to tell who is near: numbers, and codes over their count."""
    scales = [np.sqrt(scale.weight) / scale.codes for scale in points.scales]
    return np.column_stack([points.numbers, points.codes * np.array(scales)]) if scales else points.numbers


def halved(centres: Floats, size: Rows, records: int, rng: np.random.Generator) -> Iterator[Rows]:
    """Cut the groups into halves along random directions until no part has more records than that.

    >>> centres = np.array([[0.0], [3.0], [1.0], [2.0]])
    >>> [sorted(part.tolist()) for part in halved(centres, np.full(4, 5), 10, np.random.default_rng(0))]
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
