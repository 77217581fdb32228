"""The linkage attack in a box tree of the released points: the chance to find each record.

The tables of gaps need not have an order, so a box is bounded by the nearest of its codes (see `queries`). Bounds are
added in the order of the distances and rounding is monotone: the answer is the one of comparing with every point, to
the last bit. See `kinfold.measures.linkage`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kinfold.kernels import box_tree, mixed
from kinfold.kernels.box_tree import Tree
from kinfold.kernels.compiling import Int, Real, entry, inlined
from kinfold.kernels.folding import unfolded
from kinfold.kernels.mixed import Mixed
from kinfold.kernels.queries import Query, query_from, tied
from kinfold.kernels.scales import Place, no_scales

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


class Target(NamedTuple):
    """The released points and their tree, and where the tables of gaps are in the row of the query's place."""

    points: Mixed
    tree: Tree
    query: Query
    table: NDArray[np.int64]  # (b,) where the table of each code starts
    width: NDArray[np.int64]  # (b,) how many released codes it has


def target_of(
    numbers: NDArray[np.float64],
    codes: NDArray[np.int32],
    sizes: NDArray[np.int64],
    tables: Sequence[NDArray[np.float64]],
) -> Target:
    """Return distinct released points, each with its number of records, in a tree; one table of gaps for each code."""
    points = Mixed(numbers, codes, no_scales())
    n, wide = numbers.shape
    tree = box_tree.layout([n], n, points, box_tree.LEAF)
    spread = [np.sqrt(table.max(initial=0.0)) / max(1, table.shape[1] - 1) for table in tables]
    sort = box_tree.Sort(np.arange(n, dtype=np.int32), np.array([0, n]), np.empty(n), np.array([1.0] * wide + spread))
    box_tree.grow(tree, points, unfolded(sizes), sort)
    table = np.cumsum([0, *(table.size for table in tables)])[:-1].astype(np.int64)
    row = np.concatenate([np.zeros(0), *(table.ravel() for table in tables)])
    place = Place(np.zeros(wide), np.full(len(tables), -1, np.int32), row, table.copy())
    width = np.array([table.shape[1] for table in tables], np.int64)
    return Target(points, tree, query_from(place, 1, tree.held.shape[1]), table, width)


def example() -> Target:
    """Return the smallest release, to compile for."""
    points = mixed.example()
    return target_of(points.numbers, points.codes, np.ones(1, np.int64), [])


@inlined
def _go(place: Place, target: Target, numbers: NDArray[np.float64], codes: NDArray[np.int32]) -> None:
    """Go to what the attacker knows of a record: in each table of gaps, to the row of its code."""
    for j in range(place.numbers.size):
        place.numbers[j] = numbers[j]
    for j in range(place.codes.size):
        place.start[j] = target.table[j] + codes[j] * target.width[j]


@inlined
def _distance(target: Target, point: Int) -> Real:
    """Return the squared distance of a released point, added in the order of the query's."""
    place, points = target.query.place, target.points
    total = 0.0
    for j in range(place.numbers.size):
        step = points.numbers[point, j] - place.numbers[j]
        total += step * step
    for j in range(place.codes.size):
        total += place.row[place.start[j] + points.codes[point, j]]
    return total


@entry(np.zeros((1, 1)), np.zeros((1, 0), np.int32), np.zeros(1, np.int64), example())
def credit(
    numbers: NDArray[np.float64], codes: NDArray[np.int32], own: NDArray[np.int64], target: Target
) -> NDArray[np.float64]:
    """Return for each record that the attacker knows 1 / the records nearest to it if its own point is, else 0."""
    shares = np.zeros(own.size)
    for i in range(own.size):
        _go(target.query.place, target, numbers[i], codes[i])
        mine = _distance(target, own[i])
        best, many = tied(target.tree, target.query, 0, mine)
        if mine == best:
            shares[i] = 1.0 / many
    return shares
