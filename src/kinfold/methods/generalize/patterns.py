"""Patterns: which cells of a record go missing. The cheapest pattern that leaves enough records alike is theirs.

    for each pattern, those that cost least first:
        records that no class has yet and that share everything but the pattern's cells are a class, if it keeps the
        promises

Of patterns that cost the same the one that settles most records goes first. It works on distinct tuples with counts, so
that the number of records does not matter. A pattern with a column that counts for much more than others is not tried,
for it costs less to merge with a class that shares that column. Rows that are left at the end are for others to merge
(see `merging`).

Rows are told apart by a key of 64 bits for each cell: the key of what a pattern shows is the exclusive or of its cells.
Should two keys ever be equal by chance, a class is stated by what its records share, as always.

Cost: a look at the rows that are left for each pattern.
Ties: the pattern of the first columns.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, groupby, islice

import numpy as np

from kinfold import kernels
from kinfold.methods.generalize.domain import MOST_KEYS, Codes, Domain, Floats, Mask, numbered
from kinfold.methods.generalize.outliers import Models, asked_k, failing
from kinfold.progress import Progress, silent
from kinfold.rows.tally import Ints, Tally

MOST = 4096  # patterns tried: all of those of twelve columns, and all others that cost the same as the last
MOST_ALIKE = 60_000  # patterns of one cost: all of three columns out of 70
LOOKS = 2_000_000_000  # rows times patterns of one cost; fewer patterns are tried on more rows
SPARED = 100.0  # times the least weight: what counts for more is not given up before all else was tried
ALIKE = 1e-9  # costs that differ by less are one


@dataclass(frozen=True, eq=False)
class Blanks:
    """The class of each row, a class of its own for a row that is left, and the cells that go missing in each row."""

    into: Ints
    cells: Mask
    left: int


def cheapest(weights: Floats) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Yield sets of columns by the sum of their weights, the empty one first.

    >>> [columns for _, columns in cheapest(np.array([1.0, 3.0, 1.5]))]
    [(), (0,), (2,), (0, 2), (1,), (0, 1), (1, 2), (0, 1, 2)]
    """
    yield 0.0, ()
    order: list[int] = np.argsort(weights, kind="stable").tolist()
    costs: list[float] = weights[order].tolist()
    heap: list[tuple[float, tuple[int, ...]]] = [(costs[0], (0,))]
    while heap:
        cost, ranks = heapq.heappop(heap)
        yield cost, tuple(sorted([order[rank] for rank in ranks]))
        last = ranks[-1]
        if last + 1 < len(order):
            more = costs[last + 1]
            heapq.heappush(heap, (cost + more, (*ranks, last + 1)))
            heapq.heappush(heap, (cost + more - costs[last], (*ranks[:-1], last + 1)))


def settle(domain: Domain, models: Models, weights: Floats, progress: Progress = silent) -> Blanks:
    """Give rows, those of equal tuples together, the cheapest pattern by which they are in a class."""
    rows = _Unsettled(domain, models)
    tried, spared = 0, {int(a) for a in np.flatnonzero(weights > SPARED * weights.min())}
    for _, level in groupby(cheapest(weights), key=lambda pattern: round(pattern[0] / ALIKE)):
        most = min(MOST_ALIKE, max(MOST, LOOKS // max(len(rows.left), 1)))
        batch = [columns for _, columns in islice(level, most) if spared.isdisjoint(columns)]
        for columns in rows.ranked(batch):
            rows.settle(columns)
        tried += max(len(batch), 1)
        progress(len(domain) - len(rows.left), len(domain))
        if not len(rows.left) or tried >= MOST:
            break
    return rows.found()


class _Unsettled:
    """The rows that no class has yet, and what became of the others."""

    def __init__(self, domain: Domain, models: Models) -> None:
        self.tally, self.models = domain.tally, models
        self.by_size = all(model.column is None for model in models)
        self.keys = keys_of(domain.codes)
        self.whole = np.bitwise_xor.reduce(self.keys, axis=1)
        self.left = np.arange(len(domain))
        self.into, self.classes = np.full(len(domain), -1, np.int64), 0
        self.cells = np.zeros(domain.codes.shape, np.bool_)

    def ranked(self, batch: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Return the patterns that settle records, those that settle most first: groups below k can settle none."""
        keys, sizes = np.ascontiguousarray(self.keys[self.left]), self.tally.sizes[self.left]
        many = alike(keys, sizes, asked_k(self.models), batch)
        return sorted(many, key=many.__getitem__ if self.by_size else self._would_settle, reverse=True)

    def _would_settle(self, columns: Sequence[int]) -> int:
        """How many records a pattern puts into classes."""
        group, holds = self._groups(columns)
        return int(self.tally.sizes[self.left][holds[group]].sum())

    def settle(self, columns: Sequence[int]) -> None:
        """Make the classes of a pattern."""
        group, holds = self._groups(columns)
        number = np.cumsum(holds) - 1 + self.classes
        done = holds[group]
        rows = self.left[done]
        self.into[rows] = number[group[done]]
        self.cells[rows[:, None], np.array(columns, np.intp)] = True
        self.left, self.classes = self.left[~done], self.classes + int(holds.sum())

    def found(self) -> Blanks:
        self.into[self.left] = self.classes + np.arange(len(self.left))
        return Blanks(self.into, self.cells, len(self.left))

    def _groups(self, columns: Sequence[int]) -> tuple[Ints, Mask]:
        """Number the rows that are left by what a pattern shows of them, and say which groups keep the promises."""
        key = self.whole[self.left]
        for a in columns:
            key ^= self.keys[self.left, a]
        group, groups = numbered(key, MOST_KEYS)
        if not groups:
            return group, np.zeros(0, np.bool_)
        if self.by_size:
            sizes = np.bincount(group, self.tally.sizes[self.left], groups).astype(np.int64)
            return group, ~failing(self.models, Tally({}, sizes))
        # all others are one more class, so that t-closeness compares with the whole table
        into = np.full(len(self.into), groups, np.int64)
        into[self.left] = group
        return group, ~failing(self.models, self.tally.merge(into, {}))[:groups]


def keys_of(codes: Codes) -> Ints:
    """Return a number of 64 bits for each cell, the same for the same code of a column (the mixer of SplitMix64)."""
    z = (codes.astype(np.uint64) + (np.arange(1, codes.shape[1] + 1, dtype=np.uint64) << np.uint64(32))) * np.uint64(
        0x9E3779B97F4A7C15
    )
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.ascontiguousarray((z ^ (z >> np.uint64(31))).view(np.int64))


def alike(keys: Ints, sizes: Ints, k: int, patterns: Sequence[tuple[int, ...]]) -> dict[tuple[int, ...], int]:
    """Return the patterns by which at least k records are alike, with how many records are alike with so many."""
    counts = np.zeros(len(patterns), np.int64)
    kernels.load("opening").count_alike(keys, sizes, k, *end_to_end(patterns), counts)
    return {patterns[p]: int(counts[p]) for p in np.flatnonzero(counts).tolist()}


def end_to_end(patterns: Collection[tuple[int, ...]]) -> tuple[Ints, Ints]:
    """Return the columns of all patterns, one after the other, and where those of each begin.

    >>> [part.tolist() for part in end_to_end([(), (0, 2), (1,)])]
    [[0, 2, 1], [0, 0, 2, 3]]
    """
    first = np.fromiter(accumulate(map(len, patterns), initial=0), np.int64, len(patterns) + 1)
    return np.fromiter(chain.from_iterable(patterns), np.int64, int(first[-1])), first
