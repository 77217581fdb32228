"""A partition laid out for the kernels that change it record by record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold import kernels

if TYPE_CHECKING:
    from kinfold.kernels.classes import Classes
    from kinfold.kernels.promises import Promises
    from kinfold.rows.points import Labels, Points

SLACK = 6  # a class may grow to twice its size and this many records


def laid_out(points: Points, labels: Labels, p: Promises) -> Classes:
    """Return the classes with room to grow; sums and misses are for `recount` to fill."""
    Classes = kernels.load("classes").Classes

    size = np.bincount(labels)
    start = np.concatenate([[0], np.cumsum(np.minimum(2 * size + SLACK, len(labels)))]).astype(np.int64)
    order = np.lexsort((p.codes[0], labels))
    first = np.concatenate([[0], np.cumsum(size)[:-1]])
    members = np.full(start[-1], -1, np.int32)
    members[start[labels[order]] + np.arange(len(labels)) - first[labels[order]]] = order
    return Classes(
        label=labels.astype(np.int32),
        start=start,
        size=size.astype(np.int64),
        members=members,
        sums=np.zeros((len(size), points.numbers.shape[1])),
        pairs=np.zeros(len(size)),
        missed=np.zeros(len(size)),
        cost=np.zeros(1),
    )


def numbered(labels: Labels) -> Labels:
    """Return the labels without gaps, in the same order."""
    return np.unique(labels, return_inverse=True)[1].astype(np.int32)
