"""Suppression patterns: sets of columns whose cells a record leaves empty.

Assigning patterns to tuples:

    for each pattern, cheapest first:
        tuples without a class that agree in all other columns form a class, if it keeps the promises

Of patterns with equal cost, the one that assigns most records goes first. Tuples have counts, so the number of records
does not matter. A pattern with a column that weighs much more than the others is not tried: merging with a class that
shares that column costs less. The remaining rows are merged (see `cell_classes`).

Opening classes: records are laid out by every pattern that at least k records share, cheapest patterns first, as many
as fit into memory. Classes are opened, joined and closed (`kernels/opening`) until no step saves cells. Of a tuple with
many records only some take part; the others form a class of their own. So the time depends on the distinct tuples, not
on the records. Opening considers k only.

Each cell has a hash of 64 bits; the hash of the visible cells is their exclusive or. If two hashes collide, the class
is still released with only those values that its records share.

Cost: one pass over the remaining rows per pattern; about 0.1 s per sweep of opening for 30,162 records of 18,109 tuples
and 256 patterns, two or three sweeps.
Ties: the pattern of the first columns.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain, groupby, islice
from typing import Any, TypeAlias

import numpy as np

from kinfold import kernels
from kinfold.measures.formulas.arrays import group_rows
from kinfold.methods.generalize.domain import MAX_KEY_SPACE, Codes, Domain, Floats, Mask, number_keys
from kinfold.methods.generalize.levels import Models, mark_failing, required_k
from kinfold.progress import Progress, no_progress
from kinfold.tables.tally import Ints, Tally

MAX_PATTERNS = 4096  # all patterns of twelve columns; patterns that cost the same as the last one are tried too
MAX_PATTERNS_PER_COST = 60_000  # all patterns of three columns out of 70
MAX_ROW_PATTERN_PAIRS = 2_000_000_000  # per cost; bounds the time on many rows
MAX_WEIGHT_RATIO = 100.0  # to the least weight; heavier columns are never suppressed by a pattern
COST_TOLERANCE = 1e-9  # costs that differ by less are equal


@dataclass(frozen=True, eq=False)
class PatternClasses:
    """The class of each row and its empty cells; a row without a pattern has a class of its own."""

    labels: Ints
    cells: Mask


def iterate_patterns(weights: Floats) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Yield the cost and the columns of all patterns, cheapest first.

    >>> [columns for _, columns in iterate_patterns(np.array([1.0, 3.0, 1.5]))]
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


def assign_patterns(
    domain: Domain, models: Models, weights: Floats, progress: Progress = no_progress
) -> PatternClasses:
    """Assign the cheapest possible pattern to each distinct tuple."""
    rows = _PatternAssignment(domain, models)
    tried, protected = 0, {int(a) for a in np.flatnonzero(weights > MAX_WEIGHT_RATIO * weights.min())}
    for _, level in groupby(iterate_patterns(weights), key=lambda pattern: round(pattern[0] / COST_TOLERANCE)):
        limit = min(MAX_PATTERNS_PER_COST, max(MAX_PATTERNS, MAX_ROW_PATTERN_PAIRS // max(len(rows.waiting), 1)))
        batch = [columns for _, columns in islice(level, limit) if protected.isdisjoint(columns)]
        for columns in rows.rank_patterns(batch):
            rows.assign(columns)
        tried += max(len(batch), 1)
        progress(len(domain) - len(rows.waiting), len(domain))
        if not len(rows.waiting) or tried >= MAX_PATTERNS:
            break
    return rows.result()


class _PatternAssignment:
    """The rows that wait for a class, and the classes of the others."""

    def __init__(self, domain: Domain, models: Models) -> None:
        self.tally, self.models = domain.tally, models
        self.by_size = all(model.column is None for model in models)
        self.keys = hash_cells(domain.codes)
        self.whole = np.bitwise_xor.reduce(self.keys, axis=1)
        self.waiting = np.arange(len(domain))
        self.labels, self.classes = np.full(len(domain), -1, np.int64), 0
        self.cells = np.zeros(domain.codes.shape, np.bool_)

    def rank_patterns(self, batch: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Return the patterns that form classes, those with most records first."""
        keys, sizes = np.ascontiguousarray(self.keys[self.waiting]), self.tally.sizes[self.waiting]
        counts = count_alike(keys, sizes, required_k(self.models), batch)
        if not self.by_size:
            for columns in counts:
                group, holds = self._groups(columns)
                counts[columns] = int(sizes[holds[group]].sum())
        return sorted(counts, key=counts.__getitem__, reverse=True)

    def assign(self, columns: Sequence[int]) -> None:
        """Form the classes of a pattern."""
        group, holds = self._groups(columns)
        number = np.cumsum(holds) - 1 + self.classes
        done = holds[group]
        rows = self.waiting[done]
        self.labels[rows] = number[group[done]]
        self.cells[rows[:, None], np.array(columns, np.intp)] = True
        self.waiting, self.classes = self.waiting[~done], self.classes + int(holds.sum())

    def result(self) -> PatternClasses:
        self.labels[self.waiting] = self.classes + np.arange(len(self.waiting))
        return PatternClasses(self.labels, self.cells)

    def _groups(self, columns: Sequence[int]) -> tuple[Ints, Mask]:
        """Group the waiting rows by the visible cells of a pattern; return the groups and which of them hold."""
        key = self.whole[self.waiting]
        for a in columns:
            key ^= self.keys[self.waiting, a]
        group, groups = number_keys(key, MAX_KEY_SPACE)
        if not groups:
            return group, np.zeros(0, np.bool_)
        if self.by_size:
            sizes = np.bincount(group, self.tally.sizes[self.waiting], groups).astype(np.int64)
            return group, ~mark_failing(self.models, Tally({}, sizes))
        # all other rows form one more class, so that t-closeness compares with the whole table
        labels = np.full(len(self.labels), groups, np.int64)
        labels[self.waiting] = group
        return group, ~mark_failing(self.models, self.tally.merge(labels, {}))[:groups]


def hash_cells(codes: Codes) -> Ints:
    """Return a 64-bit hash of column and code for each cell (the mixer of SplitMix64)."""
    columns = np.arange(1, codes.shape[1] + 1, dtype=np.uint64) << np.uint64(32)
    z = (codes.astype(np.uint64) + columns) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.ascontiguousarray((z ^ (z >> np.uint64(31))).view(np.int64))


def count_alike(keys: Ints, sizes: Ints, k: int, patterns: Sequence[tuple[int, ...]]) -> dict[tuple[int, ...], int]:
    """Return, for each pattern that groups at least k records, the number of records in such groups."""
    counts = np.zeros(len(patterns), np.int64)
    kernels.load("opening").count_alike(keys, sizes, k, *concatenate_patterns(patterns), counts)
    return {patterns[p]: int(counts[p]) for p in np.flatnonzero(counts).tolist()}


def concatenate_patterns(patterns: Collection[tuple[int, ...]]) -> tuple[Ints, Ints]:
    """Return the columns of all patterns in one array, and the start of each pattern.

    >>> [part.tolist() for part in concatenate_patterns([(), (0, 2), (1,)])]
    [[0, 2, 1], [0, 0, 2, 3]]
    """
    first = np.fromiter(accumulate(map(len, patterns), initial=0), np.int64, len(patterns) + 1)
    return np.fromiter(chain.from_iterable(patterns), np.int64, int(first[-1])), first


PatternNumbers: TypeAlias = dict[tuple[int, ...], int]

MAX_LAYOUT_CELLS = 8_000_000  # records times patterns
MAX_SWEEPS = 20  # a sweep without gain ends earlier; not tuned


def open_classes(domain: Domain, empty: Mask, k: int, weights: Floats, progress: Progress = no_progress) -> Ints:
    """Return better classes of at least k records, given the empty cells of each record."""
    tuples, _ = group_rows(domain.codes)
    moving, resting = split_movable(tuples, k)  # all rows, if rows are tuples
    groups = _lay_out(domain, empty, moving, weights, k)
    own = np.full(int(tuples.max()) + 1, -1, np.int64)
    own[tuples[moving]] = groups.group[0]  # the empty pattern is the first
    np.add.at(groups.size, own[tuples[resting]], 1)
    sweep = kernels.load("opening").sweep
    for done in range(MAX_SWEEPS):
        progress(done, MAX_SWEEPS)
        if sweep(groups, k) <= 0.0:
            break
    labels = own[tuples]
    labels[moving] = groups.at
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def split_movable(tuples: Ints, k: int) -> tuple[Ints, Ints]:
    """Return the records that take part, and those that rest: at least k of a tuple, or none.

    >>> [rows.tolist() for rows in split_movable(np.array([0, 1] + [1] * 8), 2)]
    [[0, 1, 2, 3, 4, 5, 6], [7, 8, 9]]
    """
    order = np.argsort(tuples, kind="stable")
    sizes = np.bincount(tuples)
    rank = np.empty(len(tuples), np.int64)
    rank[order] = np.arange(len(tuples)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    rests = (rank >= 3 * k) & (sizes[tuples] >= 4 * k)
    return np.flatnonzero(~rests), np.flatnonzero(rests)


def _lay_out(domain: Domain, empty: Mask, rows: Ints, weights: Floats, k: int) -> Any:
    """Return the groups of records by pattern, with each record in the group of its empty cells."""
    used = np.unique(empty[rows], axis=0)
    keys = hash_cells(domain.codes[rows])
    cheapest = _list_cheapest(tuple(weights.tolist()), max(1, MAX_LAYOUT_CELLS // len(rows)))
    cheap = count_alike(keys, domain.tally.sizes[rows], k, cheapest)
    every = dict.fromkeys([(), *cheap, *map(_to_pattern, used)])  # patterns in use can have groups of any size
    patterns: PatternNumbers = {columns: p for p, columns in enumerate(every)}
    hidden, first = concatenate_patterns(patterns)
    counts, group = np.zeros(len(patterns), np.int64), np.empty((len(patterns), len(rows)), np.int32)
    groups = int(kernels.load("opening").group_alike(keys, hidden, first, group, counts))
    start, member = np.zeros(groups + 1, np.int64), np.empty(group.size, np.int32)
    kernels.load("opening").list_members(group, start, member)
    used_index = np.unique(empty[rows], axis=0, return_inverse=True)[1].ravel()
    current = np.array([patterns[_to_pattern(cells)] for cells in used])[used_index]
    at = group[current, np.arange(len(rows))]
    price, kind = _price_patterns(domain.codes[rows] == [len(path) - 1 for path in domain.paths], weights, patterns)
    count = domain.tally.sizes[rows].astype(np.int32)
    size = np.bincount(at, count, groups).astype(np.int32)
    inside, selected = (np.zeros(groups, np.int32) for _ in range(2))
    arriving, arrivals = (np.zeros(len(rows), np.int32) for _ in range(2))
    of_pattern = np.repeat(np.arange(len(patterns), dtype=np.int32), counts)
    return kernels.load("opening").PatternGroups(
        *(group, start, member, of_pattern, price, kind, count, at.copy(), size, inside, selected, arriving, arrivals)
    )


@lru_cache(maxsize=1)  # classes are opened before and after rebuilding
def _list_cheapest(weights: tuple[float, ...], count: int) -> list[tuple[int, ...]]:
    return [columns for _, columns in islice(iterate_patterns(np.array(weights)), count)]


def _to_pattern(cells: Mask) -> tuple[int, ...]:
    return tuple(int(a) for a in np.flatnonzero(cells))


def _price_patterns(missing: Mask, weights: Floats, patterns: PatternNumbers) -> tuple[Floats, Codes]:
    """Return the price of each pattern by kind of record, and the kinds: records that lack the same values."""
    kinds, kind = np.unique(missing, axis=0, return_inverse=True)
    hidden = np.zeros((len(patterns), missing.shape[1]), np.bool_)
    for columns, p in patterns.items():
        hidden[p, list(columns)] = True
    price = (hidden[:, None, :] & ~kinds[None]) @ weights
    return np.ascontiguousarray(price, np.float64), kind.ravel().astype(np.int32)
