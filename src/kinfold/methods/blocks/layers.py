"""Layers: strata of what promises speak of, of which each block gets its share.

The distribution that classes are compared with is that of the whole table. A block whose own is far from it cannot be
cut into classes that are close; one that has its share of each layer can, as well as the table itself.

    the first column, the one with the strictest promise, is sorted and cut into layers of equal size, as many as a
    close class has records by expression (3) of paper 004, or some times as many
    within each layer the next column is, and so on, as long as layers are not too thin

Cost: O(n log n) a column.   Ties: the lowest row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold.methods.blocks.marginality import ranked
from kinfold.methods.partition.t_first import cluster_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kinfold.methods.partition.requirement import Requirement
    from kinfold.rows.points import Labels

    Numbers = NDArray[np.int64]

MOST = 64  # layers, unless a class has more records
FEWEST = 8  # records of a layer in a block


def layers(required: Sequence[Requirement], k: int, size: int) -> Labels | None:
    """Number the layers of the records, for blocks of this size; None where nothing is promised.

    >>> from kinfold.methods.partition.requirement import Requirement
    >>> layers([Requirement.close([5, 1, 4, 2, 3, 0], 0.25)], 2, 32).tolist()
    [3, 0, 2, 1, 2, 0]
    """
    if not required:
        return None
    n = len(required[0].codes)
    many = max(1, min(MOST, size // FEWEST, n))
    found: Numbers = np.zeros(n, np.int64)
    for each in sorted(required, key=_strictness):
        have = int(found.max()) + 1
        if have * 2 > many:
            break
        found = _cut_within(found, ranked(each), _parts(each, k, many // have, n))
    return found.astype(np.int32)


def _strictness(required: Requirement) -> float:
    """Promises of closeness first, the strictest first of all."""
    close = required.criterion.statistic in ("ordered", "nested")
    return required.criterion.limit if close else 2.0


def _parts(required: Requirement, k: int, most: int, n: int) -> int:
    """Return into how many layers a column is cut: as many as a close class has records, or times as many."""
    if required.criterion.statistic != "ordered":
        return most
    size = cluster_size(n, min(k, n), required.criterion.limit)
    return size * (most // size) if size <= most else min(size, n)


def _cut_within(found: Numbers, rank: Numbers, parts: int) -> Numbers:
    """Cut each layer into so many of about the same size by the rank of its records."""
    order = np.lexsort((rank, found))
    size = np.bincount(found)
    place = np.arange(len(found)) - np.repeat(np.cumsum(size) - size, size)
    finer = np.empty(len(found), np.int64)
    finer[order] = found[order] * parts + place * parts // size[found[order]]
    return np.unique(finer, return_inverse=True)[1].astype(np.int64)
