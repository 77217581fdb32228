"""Improve classes on either side of a cut, between blocks and between regions.

    round          takes neighbouring classes together, by cuts in random directions, unlike those of the blocks
    border         a class is at a border if one of its nearest classes, or one of its own records, is of another block
    improvement    only its records move and swap, as long as the cost falls:
        numbers           by the sums of the classes (sweeps)
        numbers, codes    by a descent over all distances of some hundred records
        under promises    by swaps among records with equal confidential values (settling), then by random moves
                          and swaps that keep every promise, some for each record

    seam           a class is at a seam if its box, widened by a fifth on either side, reaches a cut between regions.
                   Such classes of all regions are grouped by other cuts, and improved as at borders

Other classes stay as they are. The neighbourhoods of a round share no record: they run in parallel, and the result
does not depend on the threads.

Cost: O(n log n) a round.   Ties: as in the searches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold import kernels
from kinfold.methods.annealing import Budget
from kinfold.methods.blocks.pool import BlockPool
from kinfold.methods.partition.geometry import PairDistances, renumber_by_first_record
from kinfold.methods.partition.refine import (
    MIN_GROUPS_PER_BLOCK,
    RECORDS_SEARCHED,
    RECORDS_SWEPT,
    cut_into_blocks,
    sweep_groups,
    to_coordinates,
)
from kinfold.methods.partition.search import load_search_kernels, search
from kinfold.progress import no_progress
from kinfold.tables.points import Points

if TYPE_CHECKING:
    from kinfold.methods.blocks.routing import CutTree
    from kinfold.methods.partition.requirement import Requirement
    from kinfold.progress import Progress
    from kinfold.tables.points import Floats, Labels

    Rows = NDArray[np.intp]

Ints: TypeAlias = NDArray[np.int64]

BORDER_ROUNDS = 2  # the second covers the edges of the neighbourhoods of the first
MOVES_PER_RECORD = 10  # under promises: regains three quarters of what blocks lose; twice as many gain little
NEIGHBOUR_CLASSES = 6  # a class is at a border if one of so many nearest classes is of another block
CLASS_MARGIN = 0.2  # of the width of a class, on either side of it: more takes longer and gains little
NO_SEAM = -1


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
        parts = cut_into_blocks(self.coordinates, self.labels, max(self.records, MIN_GROUPS_PER_BLOCK * self.k), rng)
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
            from kinfold.methods.partition.refine import refine_under
            from kinfold.methods.partition.repair import settle_classes

            required = [each.within(rows) for each in self.required]
            settled = settle_classes(points, start, self.k, required, no_progress)
            return rows, refine_under(points, settled, self.k, required, steps=MOVES_PER_RECORD * len(start)).labels
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


def assign_seams(cuts: CutTree, seam_cuts: CutTree, points: Points, labels: Labels, places: Ints) -> Ints:
    """Return the group of each class at a seam of regions, by other cuts; `NO_SEAM` if it is at no seam."""
    order = np.argsort(labels, kind="stable")
    first = np.flatnonzero(np.diff(labels[order], prepend=-1))
    values, width = np.column_stack([points.numbers, points.codes])[order], points.numbers.shape[1]
    low, high = (extreme.reduceat(values, first, axis=0) for extreme in (np.minimum, np.maximum))
    groups = np.full(len(first), NO_SEAM, np.int64)
    at = np.flatnonzero(_mark_at_cuts(cuts, low, high, width))
    if len(at):  # a class has the mean of each number and the lowest of each code
        size = np.diff(first, append=len(order))
        means = (np.add.reduceat(values, first, axis=0) / size[:, None])[at, :width]
        centres = Points(np.ascontiguousarray(means), low[at, width:].astype(np.int32), points.scales)
        groups[at] = seam_cuts.assign_blocks(centres, places[order][first][at])
    return groups


def _mark_at_cuts(cuts: CutTree, low: Floats, high: Floats, numbers: int) -> NDArray[np.bool_]:
    """Mark the boxes that reach a cut; only the sides of numbers are widened."""
    marked = np.zeros(len(low), np.bool_)
    margin = np.where(np.arange(low.shape[1]) < numbers, CLASS_MARGIN, 0.0) * (high - low)
    stack = [(0, np.arange(len(low)))] if cuts.nodes else []
    while stack:
        at, rows = stack.pop()
        node = cuts.nodes[at]
        lower = low[rows, node.attribute] - margin[rows, node.attribute]
        upper = high[rows, node.attribute] + margin[rows, node.attribute]
        below, above = upper < node.edge.min(), lower > node.edge.max()
        marked[rows[~below & ~above]] = True
        for child, boxes in ((node.low, rows[below]), (node.high, rows[above])):
            if child >= 0 and len(boxes):
                stack.append((child, boxes))
    return marked


def read_seam_labels(rows: Any) -> tuple[Labels, Labels]:
    """Return the region of each record of a seam group, and its class, numbered through all regions."""
    region, label = (rows.column(name).to_numpy().astype(np.int64) for name in ("number", "label"))
    both = region * (int(label.max()) + 1) + label
    return region.astype(np.int32), np.unique(both, return_inverse=True)[1].astype(np.int32)
