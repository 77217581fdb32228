"""Crossing two partitions: the better of the two, region by region.

Two groups of different partitions that share a record belong to one region. Regions share no record, so in each the
cheaper half can be taken whatever is taken elsewhere: the result costs no more than either parent. Partitions
met on one walk differ in many small regions, and their best parts add up.

Cost: O(n m) for groups of m.   Ties: the first partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold.methods.partition.gaps import renumbered

if TYPE_CHECKING:
    from kinfold.methods.partition.gaps import Gaps
    from kinfold.rows.points import Labels

CLEAR = 1e-12  # a region must be cheaper by this share: less is rounding


def cross(gaps: Gaps, one: Labels, other: Labels) -> Labels:
    """Return the partition that takes each region from whichever of the two is cheaper there.

    >>> from kinfold.methods.partition.gaps import Gaps
    >>> from kinfold.rows.points import Points
    >>> gaps = Gaps.of(Points.of([[0.0], [1.0], [2.0], [3.0], [20.0], [21.0], [22.0], [23.0]]))
    >>> cross(gaps, np.array([0, 0, 1, 1, 2, 3, 2, 3]), np.array([0, 1, 0, 1, 2, 2, 3, 3])).tolist()
    [0, 0, 1, 1, 2, 2, 3, 3]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    many = int(one.max()) + 1
    nodes = many + int(other.max()) + 1
    edges = coo_array((np.ones(len(one), np.int8), (one, many + other)), shape=(nodes, nodes))
    region = connected_components(edges, directed=False)[1][one]
    costs = [np.bincount(region, gaps.shares(labels)) for labels in (one, other)]
    better = costs[1] < costs[0] * (1.0 - CLEAR)
    return renumbered(np.where(better[region], many + other, one))
