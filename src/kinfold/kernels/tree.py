"""A k-d tree over distinct records that are taken away one by one: the nearest and the farthest that are left.

Equal records are one place of the tree, with the list of their row numbers; they leave lowest row first. Every node
keeps the box of what is left below it and the lowest row number there, so that a search prunes by distance and, where
distances tie, by row number: what it finds is exactly what a scan of all records finds, ties included.

The tree is implicit and full: node i has the children 2i + 1 and 2i + 2, all leaves are on one level. Places keep their
position for life; whoever uses the tree builds it anew from what is left when half is gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import float64, int32, int64, njit, types, void

from kinfold.kernels.compiling import inner
from kinfold.kernels.space import SPACE, Space, distance, gap, least, most

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAF = 12  # at most so many places in a leaf
NOBODY = np.int64(2**62)  # the lowest row of a node with nothing left


class Tree(NamedTuple):
    """Places in the order of the leaves, and the nodes above them."""

    values: NDArray[np.float64]  # a record for each place
    rows: NDArray[np.int32]  # row numbers, ascending within a place
    next: NDArray[np.int64]  # where in `rows` the first row left of a place is
    stop: NDArray[np.int64]  # and where they end
    leaf: NDArray[np.int32]  # the node a place is in
    spans: NDArray[np.int64]  # first place and end of each node
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    lowest: NDArray[np.int64]  # lowest row left below a node, or NOBODY


class Found(NamedTuple):
    """The nearest records found so far: a heap with the worst on top, by distance and then row."""

    distances: NDArray[np.float64]
    rows: NDArray[np.int64]
    places: NDArray[np.int64]


TREE = types.NamedTuple(  # type: ignore[no-untyped-call]
    (
        float64[:, ::1],
        int32[::1],
        int64[::1],
        int64[::1],
        int32[::1],
        int64[:, ::1],
        float64[:, ::1],
        float64[:, ::1],
        int64[::1],
    ),
    Tree,
)
FOUND = types.NamedTuple((float64[::1], int64[::1], int64[::1]), Found)  # type: ignore[no-untyped-call]


@inner
def _swap(tree: Tree, one: int, other: int) -> None:
    for column in range(tree.values.shape[1]):
        tree.values[one, column], tree.values[other, column] = tree.values[other, column], tree.values[one, column]
    tree.next[one], tree.next[other] = tree.next[other], tree.next[one]
    tree.stop[one], tree.stop[other] = tree.stop[other], tree.stop[one]


@inner
def _halve(tree: Tree, begin: int, end: int, column: int) -> None:
    """Order the places so that none before the middle is larger in `column` than any after it."""
    middle = begin + (end - begin) // 2
    end -= 1
    while begin < end:
        pivot = tree.values[(begin + end) // 2, column]
        left, right = begin, end
        while left <= right:
            while tree.values[left, column] < pivot:
                left += 1
            while tree.values[right, column] > pivot:
                right -= 1
            if left <= right:
                _swap(tree, left, right)
                left += 1
                right -= 1
        if middle <= right:
            end = right
        elif middle >= left:
            begin = left
        else:
            return


@inner
def _widest(tree: Tree, space: Space, node: int) -> int:
    """Return the column in which the node's box is longest."""
    best, best_length = 0, -1.0
    for column in range(tree.values.shape[1]):
        low, high = tree.low[node, column], tree.high[node, column]
        if column < space.numbers:
            length = (high - low) * (high - low)
        else:
            length = gap(space, column - space.numbers, low, high)
        if length > best_length:
            best, best_length = column, length
    return best


@inner
def _measure(tree: Tree, node: int) -> None:
    """Take the box and the lowest row of a node from the places below it that have rows left."""
    tree.low[node] = np.inf
    tree.high[node] = -np.inf
    tree.lowest[node] = NOBODY
    for place in range(tree.spans[node, 0], tree.spans[node, 1]):
        if tree.next[place] == tree.stop[place]:
            continue
        tree.lowest[node] = min(tree.lowest[node], tree.rows[tree.next[place]])
        for column in range(tree.values.shape[1]):
            value = tree.values[place, column]
            tree.low[node, column] = min(tree.low[node, column], value)
            tree.high[node, column] = max(tree.high[node, column], value)


@njit(void(TREE, SPACE), cache=True)
def build(tree: Tree, space: Space) -> None:
    """Order the places in the tree's leaves and measure every node, in place."""
    nodes = tree.lowest.shape[0]
    tree.spans[0, 0], tree.spans[0, 1] = 0, tree.values.shape[0]
    for node in range(nodes):
        _measure(tree, node)
        begin, end = tree.spans[node, 0], tree.spans[node, 1]
        if 2 * node + 1 >= nodes:
            tree.leaf[begin:end] = node
            continue
        _halve(tree, begin, end, _widest(tree, space, node))
        middle = begin + (end - begin) // 2
        tree.spans[2 * node + 1, 0], tree.spans[2 * node + 1, 1] = begin, middle
        tree.spans[2 * node + 2, 0], tree.spans[2 * node + 2, 1] = middle, end


@inner
def _gather(tree: Tree, node: int) -> bool:
    """Measure a node again from its two children; return whether anything changed."""
    one, other = 2 * node + 1, 2 * node + 2
    lowest = min(tree.lowest[one], tree.lowest[other])
    changed = lowest != tree.lowest[node]
    tree.lowest[node] = lowest
    for column in range(tree.values.shape[1]):
        low = min(tree.low[one, column], tree.low[other, column])
        high = max(tree.high[one, column], tree.high[other, column])
        changed |= low != tree.low[node, column] or high != tree.high[node, column]
        tree.low[node, column], tree.high[node, column] = low, high
    return bool(changed)


@njit(cache=True)
def remove(tree: Tree, place: int) -> int:
    """Take the lowest row of a place away and return it."""
    row = tree.rows[tree.next[place]]
    tree.next[place] += 1
    node = tree.leaf[place]
    _measure(tree, node)
    while node > 0:
        node = (node - 1) // 2
        if not _gather(tree, node):
            break
    return int(row)


@njit(cache=True)
def farthest(tree: Tree, space: Space, query: NDArray[np.float64]) -> int:
    """Return the place farthest from `query`; of those that tie the one with the lowest row."""
    best, best_distance, best_row = -1, -1.0, NOBODY
    nodes = np.empty(64, np.int64)
    bounds = np.empty(64)
    nodes[0], bounds[0], depth = 0, np.inf, 1
    while depth > 0:
        depth -= 1
        node = nodes[depth]
        if bounds[depth] < best_distance or (bounds[depth] == best_distance and tree.lowest[node] > best_row):
            continue
        if 2 * node + 1 >= tree.lowest.shape[0]:
            for place in range(tree.spans[node, 0], tree.spans[node, 1]):
                if tree.next[place] == tree.stop[place]:
                    continue
                gone = distance(space, tree.values[place], query)
                row = tree.rows[tree.next[place]]
                if gone > best_distance or (gone == best_distance and row < best_row):
                    best, best_distance, best_row = place, gone, np.int64(row)
            continue
        one, other = 2 * node + 1, 2 * node + 2
        one_bound = most(space, tree.low[one], tree.high[one], query) if tree.lowest[one] != NOBODY else -1.0
        other_bound = most(space, tree.low[other], tree.high[other], query) if tree.lowest[other] != NOBODY else -1.0
        if one_bound > other_bound:  # the more promising one goes on top
            one, other, one_bound, other_bound = other, one, other_bound, one_bound
        if one_bound >= best_distance and one_bound >= 0.0:
            nodes[depth], bounds[depth] = one, one_bound
            depth += 1
        if other_bound >= best_distance and other_bound >= 0.0:
            nodes[depth], bounds[depth] = other, other_bound
            depth += 1
    return best


@inner
def _worse(found: Found, one: int, other: int) -> bool:
    if found.distances[one] != found.distances[other]:
        return bool(found.distances[one] > found.distances[other])
    return bool(found.rows[one] > found.rows[other])


@inner
def _exchange(found: Found, one: int, other: int) -> None:
    found.distances[one], found.distances[other] = found.distances[other], found.distances[one]
    found.rows[one], found.rows[other] = found.rows[other], found.rows[one]
    found.places[one], found.places[other] = found.places[other], found.places[one]


@inner
def _sink(found: Found, size: int) -> None:
    """Let the top of the heap sink to where it belongs."""
    place = 0
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and _worse(found, child + 1, child):
            child += 1
        if not _worse(found, child, place):
            return
        _exchange(found, place, child)
        place = child


@inner
def _rise(found: Found, place: int) -> None:
    while place > 0 and _worse(found, place, (place - 1) // 2):
        _exchange(found, place, (place - 1) // 2)
        place = (place - 1) // 2


@inner
def _offer(tree: Tree, found: Found, size: int, place: int, gone: float) -> int:
    """Offer every row left of a place to the heap and return the heap's size."""
    wanted = found.rows.shape[0]
    for at in range(tree.next[place], tree.stop[place]):
        row = tree.rows[at]
        if size == wanted:
            if gone > found.distances[0] or (gone == found.distances[0] and row > found.rows[0]):
                break
            found.distances[0], found.rows[0], found.places[0] = gone, row, place
            _sink(found, size)
        else:
            found.distances[size], found.rows[size], found.places[size] = gone, row, place
            _rise(found, size)
            size += 1
    return size


@njit(cache=True)
def nearest(tree: Tree, space: Space, query: NDArray[np.float64], found: Found, size: int) -> int:
    """Fill `found`, `size` of it in use, with the records nearest to `query`, lowest rows where they tie.

    Returns how many there are. What is in `found` already only gives way to what comes before it.
    """
    wanted, depth = found.rows.shape[0], 1
    nodes = np.empty(64, np.int64)
    bounds = np.empty(64)
    nodes[0], bounds[0] = 0, 0.0
    while depth > 0 and wanted > 0:
        depth -= 1
        node = nodes[depth]
        if tree.lowest[node] == NOBODY or (
            size == wanted
            and (
                bounds[depth] > found.distances[0]
                or (bounds[depth] == found.distances[0] and tree.lowest[node] > found.rows[0])
            )
        ):
            continue
        if 2 * node + 1 >= tree.lowest.shape[0]:
            for place in range(tree.spans[node, 0], tree.spans[node, 1]):
                if tree.next[place] < tree.stop[place]:
                    size = _offer(tree, found, size, place, distance(space, tree.values[place], query))
            continue
        one, other = 2 * node + 1, 2 * node + 2
        # an emptied box has no ends: asked for their codes, a scale would be read outside its tables
        one_bound = least(space, tree.low[one], tree.high[one], query) if tree.lowest[one] != NOBODY else np.inf
        other_bound = least(space, tree.low[other], tree.high[other], query) if tree.lowest[other] != NOBODY else np.inf
        if one_bound < other_bound:  # the more promising one goes on top
            one, other, one_bound, other_bound = other, one, other_bound, one_bound
        nodes[depth], bounds[depth] = one, one_bound
        nodes[depth + 1], bounds[depth + 1] = other, other_bound
        depth += 2
    return size
