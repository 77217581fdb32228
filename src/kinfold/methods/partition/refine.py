"""Refinement: the same k, less information lost.

Takes a partition into groups of at least k records and gives back one that costs less, or the same: local search
over relocations, swaps and chains, shaken until the steps or the seconds are spent (see `search`). Besides the
partition given, starts of other kinds are tried (see `path`).

Cost: the sum over groups of the squared distances of their pairs over their size: SSE for numbers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kinfold.errors import PolicyError
from kinfold.methods.annealing import Budget, Refinement
from kinfold.methods.partition.cost import cost
from kinfold.methods.partition.curves import curves
from kinfold.methods.partition.gaps import Gaps, renumbered
from kinfold.methods.partition.large import search_blocks, warm_blocks
from kinfold.methods.partition.path import path_starts
from kinfold.methods.partition.search import first_cycle, search, warm
from kinfold.progress import Progress, silent
from kinfold.rows.points import Points, checked_size

if TYPE_CHECKING:
    from kinfold.rows.points import Labels

SMALL = 5_000  # records whose distances all fit into memory
# in a large table the steps are so many blocks, by its records, where neither steps nor seconds are given: some rounds
# over the whole table, fewer for each record beyond the first hundred thousand
RECORDS_PER_BLOCK, MANY, RECORDS_BEYOND = 500, 100_000, 1_500


def refine(
    x: object, labels: object, k: int, *, seconds: float | None = None, steps: int | None = None, seed: int = 0
) -> Labels:
    """Return labels of a partition into groups of at least k that costs no more than the one given.

    The result depends on the table, the labels, k, the seed and the number of steps. With `seconds` the steps are as
    many as fit (`improve` tells how many); with neither, one cycle of sixty for each group, or in a table of more than
    5,000 records, where a step is a block, some rounds over the whole table.

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
    progress: Progress = silent,
) -> Refinement:
    """Refine; return the labels with their cost, the steps taken and how the cost fell."""
    points = Points.of(x)
    size = checked_size(points, k)
    start = checked_labels(labels, len(points), size)
    if steps is None and seconds is None:
        steps = first_cycle(len(points), size) if len(points) <= SMALL else blocks_by_size(len(points))
    if len(points) > SMALL:
        warm_blocks()
        found = search_blocks(points, start, size, Budget(steps, seconds), seed, progress)
    else:
        warm()
        found = _search(points, start, size, Budget(steps, seconds), seed, progress)
    before = cost(points, start)
    # Sums over values that differ by many orders of magnitude may deceive a search; they must not worsen its start
    return found if found.cost <= before else replace(found, labels=start, cost=before)


def blocks_by_size(records: int) -> int:
    """Return the default number of blocks of a large table.

    >>> blocks_by_size(100_000), blocks_by_size(1_000_000)
    (200, 800)
    """
    return min(records, MANY) // RECORDS_PER_BLOCK + max(0, records - MANY) // RECORDS_BEYOND


def _search(points: Points, start: Labels, k: int, budget: Budget, seed: int, progress: Progress) -> Refinement:
    """Search a table of some thousand records, sorted so that near records are near in memory: a quarter faster."""
    order = curves(points, 1, 0)[0]
    gaps = Gaps.of(points.take(order))
    found = search(gaps, [start[order], *path_starts(gaps, k)], k, budget, seed, progress)
    labels = np.empty_like(found.labels)
    labels[order] = found.labels
    return replace(found, labels=renumbered(labels))


def checked_labels(labels: object, n: int, k: int) -> Labels:
    """Return the labels numbered from 0 without gaps, or say what is wrong with them."""
    array = np.asarray(labels)
    if array.shape != (n,) or array.dtype.kind not in "iu":
        raise PolicyError(
            f"labels have the shape {array.shape} and hold {array.dtype}",
            fix=f"give {n} whole numbers, one for a record",
        )
    numbered = renumbered(array)
    smallest = int(np.bincount(numbered).min())
    if smallest < k:
        raise PolicyError(f"k is {k}, but a group of the start has {smallest} records", fix="start from a k-partition")
    return numbered
