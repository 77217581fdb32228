"""Which classes cost least to merge with, by a tree over their statements.

    build   split the classes at the attribute whose statements lose most together, at the middle of their codes,
            until at most LEAF are left; each box holds the range of leaves of each attribute and the least cost
    search  depth first, the cheaper box first; a box is left out if widening the statement until it touches the box
            costs more than the worst merge kept

Merging classes of sizes s and m under what both say costs (s + m)·joined - s·said - m·said. The tree may be older than
the statements: then it still finds near classes, and costs are taken from the statements as they are.

Cost: O(g log g) to build; a search looks at a small part of the boxes.   Ties: the first found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kinfold.kernels import statements
from kinfold.kernels.compiling import entry, inner
from kinfold.kernels.statements import Forest, joined, said

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Nodes = NDArray[np.int32]
    Ints = NDArray[np.int64]

LEAF = 8  # statements looked through one by one; not tuned
DEEP = 1024  # more than halvings of the codes of 30 attributes


class StatementTree(NamedTuple):
    """A binary tree; box b holds order[start[b]:end[b]], its halves are child[b] and child[b] + 1, or none (-1)."""

    order: Nodes
    start: Nodes
    end: Nodes
    child: Nodes
    low: Nodes  # (boxes, q) first and last leaf of each attribute
    high: Nodes
    least: Floats  # (boxes) what a statement of the box loses at least
    said: Nodes  # (g, q) the statement of each class
    sizes: Ints  # (g)


def example() -> StatementTree:
    """Return the smallest tree, to compile for."""
    rows, ranges = np.zeros(1, np.int32), np.zeros((1, 1), np.int32)
    return StatementTree(rows, rows, rows, rows, ranges, ranges, np.zeros(1), ranges, np.zeros(1, np.int64))


@inner
def _fit(t: StatementTree, f: Forest, box: int) -> None:
    t.least[box] = np.inf
    for a in range(t.said.shape[1]):
        t.low[box, a] = 2147483647
        t.high[box, a] = -1
    for place in range(t.start[box], t.end[box]):
        g = t.order[place]
        t.least[box] = min(t.least[box], said(f, t.said[g]))
        for a in range(t.said.shape[1]):
            t.low[box, a] = min(t.low[box, a], f.low[t.said[g, a]])
            t.high[box, a] = max(t.high[box, a], f.high[t.said[g, a]])


@inner
def _widest(t: StatementTree, f: Forest, box: int) -> int:
    best, most = -1, 0.0
    g = t.order[t.start[box]]
    for a in range(t.said.shape[1]):
        node = t.said[g, a]
        while f.low[node] > t.low[box, a] or f.high[node] < t.high[box, a]:
            node = f.parent[node]
        first = f.low[t.said[g, a]]
        differs = False
        for place in range(t.start[box], t.end[box]):
            if f.low[t.said[t.order[place], a]] != first:
                differs = True
                break
        if differs and f.lost[node] > most:
            best, most = a, f.lost[node]
    return best


@inner
def _halved(t: StatementTree, f: Forest, box: int, a: int) -> int:
    """Put the classes below the middle of their codes first and return where the others begin."""
    lowest, highest = 2147483647, -1
    for place in range(t.start[box], t.end[box]):
        code = f.low[t.said[t.order[place], a]]
        lowest, highest = min(lowest, code), max(highest, code)
    middle = (lowest + highest + 1) // 2
    cut = t.start[box]
    for place in range(t.start[box], t.end[box]):
        if f.low[t.said[t.order[place], a]] < middle:
            t.order[place], t.order[cut] = t.order[cut], t.order[place]
            cut += 1
    return int(cut)


@entry(example(), statements.example(), 1)
def build(t: StatementTree, f: Forest, count: int) -> int:
    """Build the tree over order[:count] and return how many boxes it has."""
    t.start[0], t.end[0] = 0, count
    boxes, box = 1, 0
    while box < boxes:
        _fit(t, f, box)
        t.child[box] = -1
        if t.end[box] - t.start[box] > LEAF:
            a = _widest(t, f, box)
            if a >= 0:
                cut = _halved(t, f, box, a)
                t.child[box] = boxes
                t.start[boxes], t.end[boxes] = t.start[box], cut
                t.start[boxes + 1], t.end[boxes + 1] = cut, t.end[box]
                boxes += 2
        box += 1
    return boxes


@inner
def _touching(t: StatementTree, f: Forest, statement: Nodes, box: int) -> float:
    lost = 0.0
    for a in range(statement.size):
        node = statement[a]
        while f.high[node] < t.low[box, a] or f.low[node] > t.high[box, a]:
            node = f.parent[node]
        lost += f.lost[node]
    return float(max(lost, t.least[box]))


@inner
def nearest(t: StatementTree, f: Forest, g: int, found: Nodes, costs: Floats) -> int:
    """Fill `found` with the classes that cost least to merge with, cheapest first, and return how many there are.

    Empty classes and g itself are left out.
    """
    statement, size = t.said[g], t.sizes[g]
    count = 0
    cost = said(f, statement)
    stack = np.empty(DEEP, np.int64)
    bounds = np.empty(DEEP, np.float64)
    stack[0], bounds[0], deep = 0, 0.0, 1
    while deep > 0:
        deep -= 1
        box = stack[deep]
        if count == found.size and bounds[deep] >= costs[count - 1]:
            continue
        child = t.child[box]
        if child >= 0:
            one = size * (_touching(t, f, statement, child) - cost)
            other = size * (_touching(t, f, statement, child + 1) - cost)
            first = child if one > other else child + 1  # the cheaper box goes on top
            stack[deep], bounds[deep] = first, max(one, other)
            stack[deep + 1], bounds[deep + 1] = child + child + 1 - first, min(one, other)
            deep += 2
            continue
        for place in range(t.start[box], t.end[box]):
            h = t.order[place]
            if h == g or t.sizes[h] == 0:
                continue
            both = joined(f, statement, t.said[h])
            change = (size + t.sizes[h]) * both - size * cost - t.sizes[h] * said(f, t.said[h])
            if count == found.size and change >= costs[count - 1]:
                continue
            count = min(count + 1, found.size)
            seat = count - 1
            while seat > 0 and costs[seat - 1] > change:
                costs[seat], found[seat] = costs[seat - 1], found[seat - 1]
                seat -= 1
            costs[seat], found[seat] = change, h
    return count


@entry(example(), statements.example(), np.zeros(1, np.int64), np.zeros((1, 1), np.int32), np.zeros((1, 1)))
def partners(t: StatementTree, f: Forest, asked: Ints, found: Nodes, costs: Floats) -> None:
    """Fill a row of `found` and `costs` for each class asked for; -1 where there are no more."""
    for i in range(asked.size):
        count = nearest(t, f, asked[i], found[i], costs[i])
        found[i, count:] = -1
