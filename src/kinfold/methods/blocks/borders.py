"""Borders: classes on either side of a cut are looked at once more, together.

    a round takes neighbouring classes together, by cuts in random directions that are not those of the blocks
    of these, classes at a border: one of the classes nearest to it, or of its own records, is of another block
    their records, and no others, move and change places as long as that costs less:
        numbers           by the sums of the classes (sweeps)
        numbers, codes    by a descent over all distances of some hundred records
        under promises    by swaps among records that promises cannot tell apart (settling), then by random moves and
                          swaps that keep them all, some for each record

What a method makes inside a block stays as it is. Neighbourhoods of a round share no record: they are worked on side by
side, and the threads have no say in the result.

Cost: O(n log n) a round.   Ties: as in the searches.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from kinfold import kernels
from kinfold.methods.annealing import Budget
from kinfold.methods.blocks.parallel_blocks import Hall
from kinfold.methods.partition.gaps import Gaps, renumbered
from kinfold.methods.partition.large import FEWEST, SEARCHED, SWEPT, neighbourhoods, places, swept, warm_blocks
from kinfold.methods.partition.search import search
from kinfold.progress import silent

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kinfold.methods.partition.requirement import Requirement
    from kinfold.progress import Progress
    from kinfold.rows.points import Labels, Points

    Rows = NDArray[np.intp]

ROUNDS = 2  # the second takes what lay at the edges of the first
TRIES = 10  # moves for each record under promises: three quarters of what blocks lose, and twice as many gain little
NEXT = 6  # classes nearest to a class that are asked for their block


def across(
    points: Points, labels: Labels, block: Labels, k: int, required: Sequence[Requirement], progress: Progress
) -> Labels:
    """Return better classes at the borders of blocks; `block` numbers the block of each record."""
    warm_blocks()
    pass_ = BorderPass(points, renumbered(labels), block, k, required)
    for number in range(ROUNDS):
        pass_.run(number, partial(_told, progress, number))
    return pass_.labels


def _told(progress: Progress, number: int, done: int, total: int) -> None:
    """Report a round as part of all of them."""
    progress(number * total + done, ROUNDS * total)


class BorderPass:
    """The labels while they change, and what is known of the records."""

    def __init__(self, points: Points, labels: Labels, block: Labels, k: int, required: Sequence[Requirement]) -> None:
        self.points, self.labels, self.block, self.k = points, labels, block, k
        self.required = [each.compared() for each in required]
        self.places = places(points)
        self.records = SEARCHED if points.codes.shape[1] and not required else SWEPT

    def run(self, number: int, progress: Progress) -> None:
        """Go over all borders once."""
        rng = np.random.default_rng([ROUNDS, number])
        parts = neighbourhoods(self.places, self.labels, max(self.records, FEWEST * self.k), rng)
        hall = Hall([len(part) for part in parts], progress)
        fresh = hall.run(lambda at: self._treated(parts[at]))
        labels, past = self.labels.copy(), int(self.labels.max()) + 1  # classes that moved come after all of them
        for rows, found in fresh:
            if len(rows):
                labels[rows] = found + past
                past += int(found.max()) + 1
        self.labels = renumbered(labels)

    def _treated(self, rows: Rows) -> tuple[Rows, Labels]:
        rows = rows[self._at_border(rows)]
        start = renumbered(self.labels[rows])
        if not len(rows) or start.max() == 0:
            return rows[:0], start[:0]
        points = self.points.take(rows)
        if self.required:
            return rows, self._kept(points, start, [each.within(rows) for each in self.required])
        if points.codes.shape[1]:
            return rows, search(Gaps.of(points), [start], self.k, Budget(0, None), 0).labels
        return rows, swept(points, start, self.k)[0]

    def _kept(self, points: Points, start: Labels, required: Sequence[Requirement]) -> Labels:
        from kinfold.methods.partition.refine_under import refine_under
        from kinfold.methods.partition.settle import settled

        near = settled(points, start, self.k, required, silent)
        return refine_under(points, near, self.k, required, steps=TRIES * len(start)).labels

    def _at_border(self, rows: Rows) -> NDArray[np.bool_]:
        """Mark the records of classes that have another block in them or next to them."""
        groups = renumbered(self.labels[rows])
        size, block = np.bincount(groups), self.block[rows]
        centres = np.column_stack([np.bincount(groups, column) / size for column in self.places[rows].T])
        near = np.zeros((len(size), min(NEXT, len(size) - 1)), np.int32)
        if near.shape[1]:
            kernels.load("distances").nearest_rows(centres, near)
        order = np.argsort(groups, kind="stable")
        first = np.cumsum(size) - size
        low, high = np.minimum.reduceat(block[order], first), np.maximum.reduceat(block[order], first)
        lowest = np.minimum(low, low[near].min(axis=1, initial=np.iinfo(np.int32).max))
        highest = np.maximum(high, high[near].max(axis=1, initial=-1))
        return np.asarray((lowest != highest)[groups])
