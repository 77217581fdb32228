"""Gaps: the squared distances of all pairs of a table of some thousand records, and who is near whom.

Cost: O(n² d) time, O(n²) memory (200 MB for 5,000 records).   Ties: the lowest index is the nearer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kinfold import kernels

if TYPE_CHECKING:
    from kinfold.rows.points import Floats, Labels, Points

NEAR = 60  # how many near records a search looks at
WASTE = 4  # times as many numbers as records are still counted rather than sorted


@dataclass(frozen=True, eq=False)
class Gaps:
    """`pairs` (n, n), the squared distances, and `near` (n, t), the nearest other records of each, nearest first."""

    pairs: Floats
    near: Labels

    def __len__(self) -> int:
        return len(self.pairs)

    @classmethod
    def of(cls, points: Points) -> Gaps:
        """Compute the gaps of these points, numbers and codes.

        >>> from kinfold.rows.points import Points
        >>> gaps = Gaps.of(Points.of([[0.0], [2.0], [3.0]]))
        >>> gaps.pairs.tolist(), gaps.near.tolist()
        ([[0.0, 4.0, 9.0], [4.0, 0.0, 1.0], [9.0, 1.0, 0.0]], [[1, 2], [2, 0], [1, 0]])
        """
        distances = kernels.load("distances")

        n = len(points)
        pairs = np.zeros((n, n))
        distances.add_gaps(points.numbers, pairs)
        for column, scale in zip(points.codes.T, points.scales, strict=True):
            present, place = np.unique(column, return_inverse=True)  # a scale may have many more codes
            steps = scale.apart(present[:, None], present)
            pairs += (scale.weight * steps * steps)[place[:, None], place]
        near = np.zeros((n, min(NEAR, n - 1)), np.int32)
        distances.nearest(pairs, near)
        return cls(pairs, near)

    def cost(self, labels: Labels) -> float:
        """Return the cost of a partition: for each group the sum of its pairs over its size. For numbers, its SSE.

        >>> from kinfold.rows.points import Points
        >>> Gaps.of(Points.of([[0.0], [2.0], [5.0], [9.0]])).cost(np.array([0, 0, 1, 1]))
        10.0
        """
        return float(self.shares(labels).sum())

    def shares(self, labels: Labels) -> Floats:
        """Return the part of each record in the cost: half its mean squared distance to its group, itself included."""
        size = np.bincount(labels)
        place = np.empty(len(labels), np.int64)
        place[np.argsort(labels, kind="stable")] = np.arange(len(labels)) - np.repeat(np.cumsum(size) - size, size)
        members = np.zeros((len(size), int(size.max())), np.int32)
        members[labels, place] = np.arange(len(labels))
        inside = np.arange(members.shape[1]) < size[labels][:, None]
        distances = self.pairs[np.arange(len(labels))[:, None], members[labels]]
        return np.asarray((distances * inside).sum(axis=1) / (2 * size[labels]), np.float64)


def split(labels: Labels) -> list[Labels]:
    """Return the records of each group, groups by label, records in order.

    >>> [group.tolist() for group in split(np.array([1, 0, 1], np.int32))]
    [[1], [0, 2]]
    """
    order = np.argsort(labels, kind="stable").astype(np.int32)
    return np.split(order, np.cumsum(np.bincount(labels))[:-1])


def renumbered(labels: Labels) -> Labels:
    """Return the same groups numbered from 0 without gaps, in the order of their first records.

    >>> renumbered(np.array([7, 2, 7], np.int32)).tolist()
    [0, 1, 0]
    """
    if not len(labels) or labels.min() < 0 or labels.max() > WASTE * len(labels):
        labels = np.unique(labels, return_inverse=True)[1].astype(np.int32)
    places = np.arange(len(labels))
    first = np.full(int(labels.max(initial=0)) + 1, len(labels))
    first[labels[::-1]] = places[::-1]  # of equal labels the last one written stays: the first record
    rank = np.cumsum(first[labels] == places, dtype=np.int32) - 1
    return np.asarray(rank[first[labels]], np.int32)


def numbered(labels: Labels) -> Labels:
    """Return the labels without gaps, in the same order.

    >>> numbered(np.array([7, 2, 7], np.int32)).tolist()
    [1, 0, 1]
    """
    return np.unique(labels, return_inverse=True)[1].astype(np.int32)
