"""Nearness: which classes cost least to merge with, by a tree over their statements.

    build   split the classes at the attribute whose statements lose most together, at the middle of their codes,
            until at most LEAF are left; each box holds the range of leaves of each attribute and the least cost
    search  depth first, the cheaper box first; a box is left out if widening the statement until it touches the box
            costs more than the worst merge kept

Merging classes of sizes s and m under what both say costs (s + m)·joined - s·said - m·said. The tree may be older than
the statements: then it still finds near classes, and costs are taken from the statements as they are.

Cost: O(g log g) to build; a search looks at a small part of the boxes.   Ties: the first found.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from kinfold.kernels.statements import FOREST, STATEMENT, STATEMENTS, Forest, joined, said

LEAF = 8
DEEP = 1024  # more than halvings of the codes of 30 attributes


class Boxes(NamedTuple):
    """A binary tree; box b holds order[start[b]:end[b]], its halves are child[b] and child[b] + 1, or none (-1)."""

    order: np.ndarray
    start: np.ndarray
    end: np.ndarray
    child: np.ndarray
    low: np.ndarray
    high: np.ndarray
    least: np.ndarray
    said: np.ndarray  # (g, q) the statement of each class
    sizes: np.ndarray  # (g)


BOXES = numba.types.NamedTuple(  # type: ignore[no-untyped-call]
    [
        numba.int32[::1],
        numba.int32[::1],
        numba.int32[::1],
        numba.int32[::1],
        numba.int32[:, ::1],
        numba.int32[:, ::1],
        numba.float64[::1],
        numba.int32[:, ::1],
        numba.int64[::1],
    ],
    Boxes,
)
_int = numba.int64
_float = numba.float64
_sizes = numba.int64[::1]


@numba.njit(numba.void(BOXES, FOREST, _int), cache=True)
def _fit(t: Boxes, f: Forest, box: int) -> None:
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


@numba.njit(_int(BOXES, FOREST, _int), cache=True)
def _widest(t: Boxes, f: Forest, box: int) -> int:
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


@numba.njit(_int(BOXES, FOREST, _int, _int), cache=True)
def _halved(t: Boxes, f: Forest, box: int, a: int) -> int:
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


@numba.njit(_int(BOXES, FOREST, _int), cache=True)
def build(t: Boxes, f: Forest, count: int) -> int:
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


@numba.njit(_float(BOXES, FOREST, STATEMENT, _int), cache=True)
def _touching(t: Boxes, f: Forest, statement: np.ndarray, box: int) -> float:
    lost = 0.0
    for a in range(statement.size):
        node = statement[a]
        while f.high[node] < t.low[box, a] or f.low[node] > t.high[box, a]:
            node = f.parent[node]
        lost += f.lost[node]
    return float(max(lost, t.least[box]))


@numba.njit(_int(BOXES, FOREST, STATEMENT, _sizes, STATEMENT, numba.float64[::1]), cache=True)
def nearest(
    t: Boxes,
    f: Forest,
    statement: np.ndarray,
    own: np.ndarray,
    found: np.ndarray,
    costs: np.ndarray,
) -> int:
    """Fill `found` with the classes that cost least to merge with, cheapest first, and return how many there are.

    `own` holds the size of what is to be merged and its class (left out; -1 for none). Empty classes are left out.
    """
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
            one = own[0] * (_touching(t, f, statement, child) - cost)
            other = own[0] * (_touching(t, f, statement, child + 1) - cost)
            first = child if one > other else child + 1  # the cheaper box goes on top
            stack[deep], bounds[deep] = first, max(one, other)
            stack[deep + 1], bounds[deep + 1] = child + child + 1 - first, min(one, other)
            deep += 2
            continue
        for place in range(t.start[box], t.end[box]):
            g = t.order[place]
            if g == own[1] or t.sizes[g] == 0:
                continue
            both = joined(f, statement, t.said[g])
            change = (own[0] + t.sizes[g]) * both - own[0] * cost - t.sizes[g] * said(f, t.said[g])
            if count == found.size and change >= costs[count - 1]:
                continue
            count = min(count + 1, found.size)
            seat = count - 1
            while seat > 0 and costs[seat - 1] > change:
                costs[seat], found[seat] = costs[seat - 1], found[seat - 1]
                seat -= 1
            costs[seat], found[seat] = change, g
    return count


@numba.njit(
    numba.void(BOXES, FOREST, _sizes, STATEMENTS, numba.float64[:, ::1]),
    cache=True,
)
def partners(
    t: Boxes,
    f: Forest,
    asked: np.ndarray,
    found: np.ndarray,
    costs: np.ndarray,
) -> None:
    """Fill a row of `found` and `costs` for each class asked for; -1 where there are no more."""
    own = np.empty(2, np.int64)
    for i in range(asked.size):
        g = asked[i]
        own[0], own[1] = t.sizes[g], g
        count = nearest(t, f, t.said[g], own, found[i], costs[i])
        found[i, count:] = -1
