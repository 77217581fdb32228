"""Search in a large table: block by block of neighbouring groups, other blocks in each round.

    a round cuts the groups into blocks: halves along random directions, so that no two rounds have the same borders
    1. sweeps: blocks of about ten thousand records, relocations and swaps from the sums of the groups, until a round
       gains less than one part in two hundred (numbers only)
    2. the search of small tables in blocks of about a thousand: first descents with chains, then with shakes as well
    under promises: random moves that keep them, in blocks of some thousand, every class compared with the whole table

The blocks of a round share no record, so they run side by side, and what comes out depends neither on the threads nor
on the clock. A step is one block; a run of N steps repeats a run of seconds that took N. After each round the state is
put on a shelf, if there is one: a run that was stopped goes on from there.

Cost: near-linear in n for a round; O(n d) memory.   Ties: the first found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kinfold import kernels
from kinfold.methods.annealing import Budget, Mark, Refinement
from kinfold.methods.blocks.parallel_blocks import cores, threads
from kinfold.methods.blocks.saved_stages import BARE, Shelf
from kinfold.methods.partition.cost import cost
from kinfold.methods.partition.gaps import Gaps, renumbered
from kinfold.methods.partition.oracle import Oracle
from kinfold.methods.partition.search import search, warm
from kinfold.progress import Progress, silent, tell_cost

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from kinfold.methods.partition.requirement import Requirement
    from kinfold.rows.points import Floats, Labels, Points

    Rows = NDArray[np.intp]

SWEPT, SEARCHED, PROMISED = 10_000, 1_000, 5_000  # records of a block
SHAKES = 1.0  # steps for each record in a block, once its descent is done
FEWEST = 20  # groups of a block at least, if their size allows
NEAR = 12  # groups next to a group that are known to its records
TRIED = 3  # of them are tried for a record, the nearest
LOOKS = 12  # times a record is looked at in one sweep, on average, at most
ENOUGH = 0.005  # a round of sweeps that gains less is the last
BATCH = max(4, 2 * cores())  # blocks between two looks at the clock
TRIES = 10  # moves tried for each record of a block under promises
SHELVED = "refinement"


def warm_blocks() -> None:
    """Load what the search needs, compiling it if need be, before any clock runs."""
    kernels.load("sweeps")
    warm()


def search_blocks(
    points: Points, start: Labels, k: int, budget: Budget, seed: int = 0, progress: Progress = silent
) -> Refinement:
    """Return the best partition into groups of at least k that is found from this start within the budget."""
    return search_rounds(Work(points, start, k, seed), budget, progress)


def search_rounds(work: Work, budget: Budget, progress: Progress = silent, shelf: Shelf = BARE) -> Refinement:
    """Work round after round until the budget is spent or nothing is left to gain."""
    lowest, steps = cost(work.points, work.numbered()), 0
    if (kept := shelf.get(SHELVED)) is not None:
        steps, lowest, spent = work.restored(kept)
        budget = replace(budget, since=budget.since - spent)
    history = [Mark(steps, budget.spent(), lowest)]
    while not budget.done(steps) and lowest > 0.0:
        blocks, before = work.next_round(), lowest
        while blocks and not budget.done(steps):
            batch = BATCH if budget.steps is None else min(BATCH, budget.steps - steps)
            for change in work.run(blocks[:batch]):  # one by one: however many at a time, the same sum
                lowest += change
            steps, blocks = steps + len(blocks[:batch]), blocks[batch:]
            history.append(Mark(steps, budget.spent(), lowest))
            tell_cost(lowest)
            progress(*budget.share(steps))
        work.finish_round(before - lowest <= ENOUGH * before)
        if not blocks:
            shelf.put(SHELVED, **work.state(steps, lowest, budget.spent()))
    labels = work.numbered()
    return Refinement(labels, cost(work.points, labels), steps, tuple(history))


class Work:
    """The labels while they change: the first record of a group is its label, so that blocks need not agree on any."""

    def __init__(self, points: Points, labels: Labels, k: int, seed: int, required: Sequence[Requirement] = ()) -> None:
        self.points, self.k, self.seed = points, k, seed
        self.required = [each.compared() for each in required]
        self.labels = np.empty_like(labels)
        self._write(np.arange(len(labels)), labels)
        self.round, self.searched = 0, 0
        self.sweeping = points.codes.shape[1] == 0 and not required
        self.places = places(points)

    def numbered(self) -> Labels:
        """Return the labels as they are now, numbered from 0."""
        return renumbered(self.labels)

    def next_round(self) -> list[Rows]:
        """Return the records of each block of the next round."""
        records = SWEPT if self.sweeping else PROMISED if self.required else SEARCHED
        rng = np.random.default_rng([self.seed, self.round])
        return neighbourhoods(self.places, self.numbered(), max(records, FEWEST * self.k), rng)

    def run(self, blocks: list[Rows]) -> list[float]:
        """Work on these blocks, some at a time; return what each changed of the cost."""
        work = self._sweep if self.sweeping else self._wander if self.required else self._search
        with ThreadPoolExecutor(threads()) as pool:
            return list(pool.map(work, blocks))

    def state(self, steps: int, lowest: float, spent: float) -> dict[str, NDArray[np.generic]]:
        """Return what a later run needs to go on between two rounds."""
        counts = np.array([self.round, self.searched, self.sweeping, steps], np.int64)
        return {"labels": self.labels, "counts": counts, "reals": np.array([lowest, spent])}

    def restored(self, kept: Mapping[str, NDArray[Any]]) -> tuple[int, float, float]:
        """Go on from a state; return the steps taken, the cost and the seconds spent until then."""
        self.labels = kept["labels"].astype(np.int32)
        self.round, self.searched, sweeping, steps = map(int, kept["counts"])
        self.sweeping = bool(sweeping)
        return steps, float(kept["reals"][0]), float(kept["reals"][1])

    def finish_round(self, settled: bool) -> None:
        """Go on to the next round, and from sweeps to searches when sweeps gain little."""
        self.searched += not self.sweeping
        self.sweeping = self.sweeping and not settled
        self.round += 1

    def _sweep(self, rows: Rows) -> float:
        points, start = self.points.take(rows), renumbered(self.labels[rows])
        if start.max() == 0:
            return 0.0
        labels, change = swept(points, start, self.k)
        self._write(rows, labels)
        return change

    def _wander(self, rows: Rows) -> float:
        from kinfold.methods.partition.refine_under import refine_under

        points, start = self.points.take(rows), renumbered(self.labels[rows])
        required = [each.within(rows) for each in self.required]
        seed = self.seed + self.round
        found = refine_under(points, start, self.k, required, steps=TRIES * len(rows), seed=seed)
        before = cost(points, start)
        if found.cost >= before:
            return 0.0
        self._write(rows, found.labels)
        return found.cost - before

    def _search(self, rows: Rows) -> float:
        gaps = Gaps.of(self.points.take(rows))
        start = renumbered(self.labels[rows])
        shakes = 0 if self.searched == 0 else int(SHAKES * len(rows))
        found = search(gaps, [start], self.k, Budget(shakes, None, first=shakes), self.seed + self.round)
        self._write(rows, found.labels)
        return found.cost - gaps.cost(start)

    def _write(self, rows: Rows, labels: Labels) -> None:
        _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
        self.labels[rows] = rows[first][inverse].astype(np.int32)


def swept(points: Points, labels: Labels, k: int) -> tuple[Labels, float]:
    """Move and swap records of some groups, from the sums of the groups; return the labels and the change of cost."""
    oracle = Oracle.of(points, near=near_by_means(points.numbers, labels))
    groups = oracle.arranged(labels, k)
    groups.state[0].wide = TRIED
    change = kernels.load("sweeps").sweep(oracle.records, groups, LOOKS)
    return groups.label, float(change)


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


def neighbourhoods(places: Floats, groups: Labels, records: int, rng: np.random.Generator) -> list[Rows]:
    """Return the records of blocks of neighbouring groups, of about so many records each, by random cuts."""
    size = np.bincount(groups)
    centres = np.column_stack([np.bincount(groups, column) / size for column in places.T])
    order, first = np.argsort(groups, kind="stable"), np.cumsum(size) - size
    return [order[_ranges(first[block], size[block])] for block in halved(centres, size, records, rng)]


def _ranges(first: Rows, size: Rows) -> Rows:
    """Return the numbers from each of these on, so many of each, one range after the other.

    >>> _ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    before = np.cumsum(size) - size
    return np.repeat(first - before, size) + np.arange(int(size.sum()))


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
