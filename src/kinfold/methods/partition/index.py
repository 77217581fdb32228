"""The index of a partitioner: points folded into distinct records and planted as the tree of `kinfold.kernels.tree`.

Records that are equal in every attribute become one place of the tree. They are found by a hash of their bits; records
whose hashes collide only make a place more, never a wrong one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold import kernels
from kinfold.rows.points import Floats, Nested, Points

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kinfold.kernels.space import Space
    from kinfold.kernels.tree import Found, Tree


def space_of(points: Points) -> Space:
    """Return the distance of these points in the form of the kernels."""
    Space = kernels.load("space").Space

    first = np.cumsum([0, *(scale.codes for scale in points.scales)]).astype(np.int64)
    nested = [(at, scale) for at, scale in enumerate(points.scales) if isinstance(scale, Nested)]
    paths = np.zeros((first[-1], max((scale.height + 1 for _, scale in nested), default=1)), np.int32)
    for at, scale in nested:
        paths[first[at] : first[at + 1], : scale.height + 1] = scale.paths
    sizes = [-scale.height if isinstance(scale, Nested) else scale.size for scale in points.scales]
    weights = np.array([scale.weight for scale in points.scales], np.float64)
    return Space(points.numbers.shape[1], np.array(sizes, np.int64), weights, first, paths)


def plant(points: Points, space: Space) -> Tree:
    """Return the tree of all points."""
    values: Floats = np.hstack([points.numbers, points.codes], dtype=np.float64)
    values += 0.0  # no negative zeros: their bits differ
    rows = np.argsort(_hashes(values), kind="stable").astype(np.int32)
    values = values[rows]
    fresh = np.ones(len(rows), np.bool_)
    fresh[1:] = (values[1:] != values[:-1]).any(axis=1)
    begins = np.flatnonzero(fresh)
    values = values[begins]
    return _grown(values, rows, begins, np.append(begins[1:], len(rows)), space)


def replant(tree: Tree, space: Space) -> Tree:
    """Return the tree of what is left, or the same one while at least half of it is."""
    left = tree.next < tree.stop
    if 2 * np.count_nonzero(left) > len(left):
        return tree
    return _grown(tree.values[left], tree.rows, tree.next[left], tree.stop[left], space)


def places_of(tree: Tree, count: int) -> NDArray[np.int32]:
    """Return the place of each of `count` rows, for rows that are left."""
    times = tree.stop - tree.next
    skipped = tree.next - (np.cumsum(times) - times)
    places = np.full(count, -1, np.int32)
    places[tree.rows[np.arange(times.sum()) + np.repeat(skipped, times)]] = np.repeat(np.arange(len(times)), times)
    return places


def room(size: int) -> Found:
    """Return room for so many nearest records."""
    Found = kernels.load("tree").Found

    return Found(np.empty(size), np.empty(size, np.int64), np.empty(size, np.int64))


def _grown(
    values: Floats, rows: NDArray[np.int32], begins: NDArray[np.int64], ends: NDArray[np.int64], space: Space
) -> Tree:
    tree = kernels.load("tree")
    LEAF, Tree, build = tree.LEAF, tree.Tree, tree.build

    count, width = values.shape
    nodes = 1
    while count > LEAF * ((nodes + 1) // 2):
        nodes = 2 * nodes + 1
    tree = Tree(
        values,
        rows,
        begins.astype(np.int64),
        ends.astype(np.int64),
        np.empty(count, np.int32),
        np.empty((nodes, 2), np.int64),
        np.empty((nodes, width)),
        np.empty((nodes, width)),
        np.empty(nodes, np.int64),
    )
    build(tree, space)
    return tree


def _hashes(values: Floats) -> NDArray[np.uint64]:
    """Return a hash of the bits of each row; equal rows have equal hashes."""
    total = np.zeros(len(values), np.uint64)
    for column in range(values.shape[1]):
        total ^= np.ascontiguousarray(values[:, column]).view(np.uint64)
        total *= np.uint64(0x9E3779B97F4A7C15)
        total ^= total >> np.uint64(29)
    return total
