"""Classes block by block: each block by the method and the promises of the whole table, then the borders.

cut         the records of each stratum of missing values into blocks, each with its share of what is promised about
partition   each block with the method that the policy names, and mend there what misses a promise of the whole table
repair      what no block could mend by itself, over the whole table
borders     classes on either side of a cut, once more together

A table that is small enough has one block for each stratum, and no borders.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import Unreachable
from kinfold.methods.blocks.cutting import cut
from kinfold.methods.blocks.layers import layers
from kinfold.methods.blocks.parallel_blocks import Labelled, Work, labelled
from kinfold.methods.blocks.saved_stages import BARE
from kinfold.methods.blocks.size import BlockSize, block_size
from kinfold.methods.planning.running import partition
from kinfold.methods.task import Task
from kinfold.progress import Progress
from kinfold.request.methods import Declaration
from kinfold.rows.points import Points

if TYPE_CHECKING:
    from kinfold.methods.partition.repair import Repair
    from kinfold.methods.partition.requirement import Requirement

Labels: TypeAlias = NDArray[np.int32]
Rows: TypeAlias = NDArray[np.intp]

BORDERS = "borders"  # on the shelf


@dataclass(frozen=True, eq=False)
class Blocks:
    """The records of each block, how large it may be (0: each is a whole stratum), and the stratum of each record."""

    rows: list[Rows]
    size: BlockSize
    apart: Labels

    @property
    def many(self) -> int:
        """How many blocks there are, 0 where nothing was cut."""
        return len(self.rows) if self.size.records else 0

    def numbered(self) -> Labels:
        """Return the number of each record's block."""
        found = np.empty(sum(map(len, self.rows)), np.int32)
        for number, rows in enumerate(self.rows):
            found[rows] = number
        return found


def blocks_of(task: Task, method: Declaration, every: Points, apart: Labels) -> Blocks:
    """Cut the records of each stratum into blocks, where the table is too large to be partitioned as a whole."""
    size = block_size(method, task)
    strata = [np.flatnonzero(apart == stratum) for stratum in range(int(apart.max()) + 1)]
    if not size.records:
        return Blocks(strata, size, apart)
    shared = layers(task.requirements(), task.k, size.records)
    cuts = [cut(every, rows, size.records, shared, task.stage("cut")) for rows in strata]
    return Blocks([rows for blocks in cuts for rows in blocks], size, apart)


def partitioned(task: Task, method: Declaration, every: Points, blocks: Blocks) -> Labelled:
    """Return the classes of every block, numbered one after the other, and how many were mended there."""
    if blocks.many:
        work: Work = partial(_packed, task, method, every, [each.compared() for each in task.requirements()])
        parts = labelled(blocks.rows, work, task.stage("blocks"), task.shelf, task.split)
    else:
        parts = labelled(blocks.rows, partial(partial, _whole, task, method, every), task.progress, BARE)
    labels, classes, mended = np.empty(task.records, np.int32), 0, 0
    for rows, part in zip(blocks.rows, parts, strict=True):
        labels[rows] = part.labels + classes
        classes, mended = classes + int(part.labels.max()) + 1, mended + part.mended
    return Labelled(labels, mended)


def bordered(task: Task, every: Points, labels: Labels, blocks: Blocks, required: Sequence[Requirement]) -> Labels:
    """Return classes that are better at the borders of blocks, and keep what they kept."""
    if blocks.many < 2:
        return labels
    if (known := task.shelf.get(BORDERS)) is not None:
        return known["labels"].astype(np.int32)
    from kinfold.methods.blocks.borders import across

    labels = across(every, labels, blocks.numbered(), task.k, required, task.stage("borders"))
    task.shelf.put(BORDERS, labels=labels)
    return labels


def mended(task: Task, points: Points, labels: Labels, required: Sequence[Requirement], progress: Progress) -> Repair:
    """Return classes that keep every promise, from those of the method and, where it is asked for, from others."""
    if task.method.starts:
        from kinfold.methods.partition.starts import best_start

        return best_start(points, labels, task.k, required, progress=progress)
    from kinfold.methods.partition.repair import repair

    return repair(points, labels, task.k, required, progress=progress)


def _whole(task: Task, method: Declaration, every: Points, rows: Rows, progress: Progress) -> Labelled:
    here = every if len(rows) == len(every) else every.take(rows)
    return Labelled(partition(method, here, task.take(rows), progress))


def _packed(task: Task, method: Declaration, every: Points, required: Sequence[Requirement], rows: Rows) -> PackedBlock:
    return PackedBlock(method, every.take(rows), task.within(rows, required).alone())


@dataclass(frozen=True, eq=False)
class PackedBlock:
    """The records of a block and all that is asked of them; it may travel."""

    method: Declaration
    here: Points
    task: Task

    def __call__(self, progress: Progress) -> Labelled:
        """Return its classes; where it alone cannot keep what the table must, that is left to the repair."""
        required = self.task.requirements()
        try:
            labels = partition(self.method, self.here, self.task, progress)
            if not required:
                return Labelled(labels)
            found = mended(self.task, self.here, labels, required, progress)
            return Labelled(found.labels, found.repaired)
        except Unreachable:
            pass
        try:
            return Labelled(partition(self.method, self.here, self.task.by_itself(), progress))
        except Unreachable:
            return Labelled(np.zeros(len(self.here), np.int32))
