"""Starts from a path: an order of the records in which neighbours are alike, cut in the best way.

    1. the path: from the record farthest from the rest always to the nearest record not visited yet
    2. shorten it by 2-opt and Or-opt, first by distance, then by squared distance
    3. cut it after each of the two by the shortest path over the cutting points, groups of k to 2k-1

MDAV starts outside and works inwards; a path goes through the dense parts. Which is the better start depends on
the table (on EIA at k = 5 a search ends at half the loss from a path), so a search takes the best of all.

Paper: Domingo-Ferrer, Martinez-Balleste, Mateo-Sanz & Sebe, VLDB J. 15 (2006), 355-369 (orders cut in the best way).
Cost: O(n²) and O(n k²) for a cut.   Ties: the lowest index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold import kernels
from kinfold.methods.partition.gaps import Gaps, renumbered
from kinfold.rows.points import Points, checked_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kinfold.rows.points import Floats, Labels

ROUNDS = 60  # times along the path at most; it is mostly over after ten
TOWARDS = 12  # near records that a shorter way may lead to


def path_starts(gaps: Gaps, k: int) -> Iterator[Labels]:
    """Yield the partitions of the two shortened paths."""
    paths = kernels.load("paths")

    path = np.empty(len(gaps), np.int32)
    paths.chain(gaps.pairs, path, int(gaps.pairs.sum(axis=1).argmax()))
    for lengths in (np.sqrt(gaps.pairs), gaps.pairs):
        _shorten(lengths, gaps.near, path)
        labels = np.empty(len(gaps), np.int32)
        paths.cut_by_gaps(gaps.pairs, path, k, labels)
        yield renumbered(labels)


def starts(x: object, k: int) -> Iterator[Labels]:
    """Yield partitions to start a search from, made by cutting paths.

    >>> [labels.tolist() for labels in starts([[0.0], [9.0], [1.0], [10.0], [11.0]], 2)]
    [[0, 1, 0, 1, 1], [0, 1, 0, 1, 1]]
    """
    points = Points.of(x)
    return path_starts(Gaps.of(points), checked_size(points, k))


def _shorten(lengths: Floats, near: Labels, path: Labels) -> None:
    paths = kernels.load("paths")

    for _ in range(ROUNDS):
        if paths.shorten(lengths, near, path, TOWARDS) == 0:
            break
