"""Patterns: which cells of a record go missing. The cheapest pattern that leaves enough records alike is theirs.

    for each pattern, those that cost least first:
        records that no class has yet and that share everything but the pattern's cells are a class, if it keeps the
        promises

Of patterns that cost the same the one that settles most records goes first. It works on distinct tuples with counts, so
that the number of records does not matter. A pattern with a column that counts for much more than others is not tried,
for it costs less to merge with a class that shares that column. Rows that are left at the end are for others to merge
(see `merging`).

Cost: a look at the rows that are left for each pattern, two for those that cost the same as others.
Ties: the pattern of the first columns.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from kinfold.methods.generalize.domain import MOST_KEYS, Codes, Domain, Floats, Mask, numbered
from kinfold.methods.generalize.outliers import Models, failing
from kinfold.progress import Progress, silent
from kinfold.rows.tally import Ints, Tally

MOST = 4096  # patterns tried: all of those of twelve columns
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
    order = np.argsort(weights, kind="stable")
    heap: list[tuple[float, tuple[int, ...]]] = [(float(weights[order[0]]), (0,))]
    while heap:
        cost, ranks = heapq.heappop(heap)
        yield cost, tuple(sorted(int(order[rank]) for rank in ranks))
        last = ranks[-1]
        if last + 1 < len(order):
            more = float(weights[order[last + 1]])
            heapq.heappush(heap, (cost + more, (*ranks, last + 1)))
            heapq.heappush(heap, (cost + more - float(weights[order[last]]), (*ranks[:-1], last + 1)))


def settle(domain: Domain, models: Models, weights: Floats, progress: Progress = silent) -> Blanks:
    """Give rows, those of equal tuples together, the cheapest pattern by which they are in a class."""
    rows = _Unsettled(domain, models)
    tried, spared = 0, {int(a) for a in np.flatnonzero(weights > SPARED * weights.min())}
    for _, alike in groupby(cheapest(weights), key=lambda pattern: round(pattern[0] / ALIKE)):
        batch = [columns for _, columns in alike if spared.isdisjoint(columns)]
        for columns in sorted(batch, key=rows.would_settle, reverse=True) if len(batch) > 1 else batch:
            rows.settle(columns)
        tried += max(len(batch), 1)
        progress(len(domain) - len(rows.left), len(domain))
        if not len(rows.left) or tried >= MOST:
            break
    return rows.found()


class _Unsettled:
    """The rows that no class has yet, and what became of the others."""

    def __init__(self, domain: Domain, models: Models) -> None:
        self.codes, self.tally, self.models = domain.codes, domain.tally, models
        self.widths = [len(path) for path in domain.paths]
        self.left = np.arange(len(domain))
        self.into, self.classes = np.full(len(domain), -1, np.int64), 0
        self.cells = np.zeros(domain.codes.shape, np.bool_)

    def would_settle(self, columns: Sequence[int]) -> int:
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
        group, groups = alike(
            self.codes, self.left, [a for a in range(len(self.widths)) if a not in columns], self.widths
        )
        if not groups:
            return group, np.zeros(0, np.bool_)
        if all(model.column is None for model in self.models):
            sizes = np.bincount(group, self.tally.sizes[self.left], groups).astype(np.int64)
            return group, ~failing(self.models, Tally({}, sizes))
        # all others are one more class, so that t-closeness compares with the whole table
        into = np.full(len(self.into), groups, np.int64)
        into[self.left] = group
        return group, ~failing(self.models, self.tally.merge(into, {}))[:groups]


def alike(codes: Codes, rows: Ints, columns: Sequence[int], widths: Sequence[int]) -> tuple[Ints, int]:
    """Number some rows by their codes in some columns, and return how many numbers there are."""
    key, space = np.zeros(len(rows), np.int64), 1
    for a in columns:
        if space * widths[a] > MOST_KEYS:
            key, space = numbered(key, space)
        key, space = key * widths[a] + codes[rows, a], space * widths[a]
    return numbered(key, space)
