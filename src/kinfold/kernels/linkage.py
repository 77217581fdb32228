"""The linkage attack in a box tree of the released points: the probability to find each record.

The distance tables need not have an order, so a box is bounded by the nearest of its codes (see `queries`). Bounds are
summed in the order of the distances and rounding is monotone: the result is that of comparing with every point, to the
last bit. See `kinfold.measures.linkage`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kinfold.kernels import box_tree
from kinfold.kernels.box_tree import Tree
from kinfold.kernels.compiling import Floats, Int, Ints, Real, Rows, entry, inlined
from kinfold.kernels.queries import Query, count_tied, make_query
from kinfold.kernels.records import Mixed, Place, make_no_scales, make_unfolded


class Target(NamedTuple):
    """The released points and their tree, and where the distance tables are in the row of the query's place."""

    points: Mixed
    tree: Tree
    query: Query
    table: Ints  # (b,) where the table of each code starts
    width: Ints  # (b,) how many released codes it has


def make_target(
    numbers: Floats,
    codes: Rows,
    sizes: Ints,
    tables: Sequence[Floats],
) -> Target:
    """Return distinct released points, each with its number of records, in a tree; one distance table for each code."""
    points = Mixed(numbers, codes, make_no_scales())
    n, wide = numbers.shape
    tree = box_tree.layout([n], n, points, box_tree.LEAF)
    spread = [np.sqrt(table.max(initial=0.0)) / max(1, table.shape[1] - 1) for table in tables]
    sort = box_tree.Sort(np.arange(n, dtype=np.int32), np.array([0, n]), np.empty(n), np.array([1.0] * wide + spread))
    box_tree.grow(tree, points, make_unfolded(sizes), sort)
    table = np.cumsum([0, *(table.size for table in tables)])[:-1].astype(np.int64)
    row = np.concatenate([np.zeros(0), *(table.ravel() for table in tables)])
    place = Place(np.zeros(wide), np.full(len(tables), -1, np.int32), row, table.copy())
    width = np.array([table.shape[1] for table in tables], np.int64)
    return Target(points, tree, make_query(place, 1, tree.held.shape[1]), table, width)


@inlined
def _distance(target: Target, point: Int) -> Real:
    """Return the squared distance of a released point, summed in the order of the query."""
    place, points = target.query.place, target.points
    total = 0.0
    for j in range(place.numbers.size):
        step = points.numbers[point, j] - place.numbers[j]
        total += step * step
    for j in range(place.codes.size):
        total += place.row[place.start[j] + points.codes[point, j]]
    return total


_NUMBERS, _CODES, _ONE = np.zeros((1, 1)), np.zeros((1, 0), np.int32), np.ones(1, np.int64)  # to compile for


@entry(_NUMBERS, _CODES, _ONE, make_target(_NUMBERS, _CODES, _ONE, []))
def credit(numbers: Floats, codes: Rows, own: Ints, target: Target) -> Floats:
    """Return for each record that the attacker knows 1 / the records nearest to it if its own point is, else 0."""
    shares, place = np.zeros(own.size), target.query.place
    for i in range(own.size):
        for j in range(place.numbers.size):
            place.numbers[j] = numbers[i, j]
        for j in range(place.codes.size):  # in each distance table, go to the row of the record's code
            place.start[j] = target.table[j] + codes[i, j] * target.width[j]
        mine = _distance(target, own[i])
        best, many = count_tied(target.tree, target.query, 0, mine)
        if mine == best:
            shares[i] = 1.0 / many
    return shares
