"""Statements: the hierarchies of all attributes as one array of nodes, and the classes that cost least to merge.

A node covers the leaves `low` to `high` of its attribute; nodes of one attribute are nested or disjoint, so the lowest
common ancestor of two is found by climbing from one until it covers the other. `lost` is the weighted loss of a cell
that releases the node. A statement is a node for each attribute; the cost of a class is its size times the loss of its
statement. Merging classes of sizes s and m costs (s + m)·joint loss - s·loss - m·loss.

    build   split the classes at the attribute whose statements lose most together, at the middle of their codes, until
            at most LEAF_STATEMENTS are left; each box holds the range of leaves of each attribute, the least and the
            most that a statement loses, and the smallest class
    search  depth first, the cheaper box first; a box is skipped if widening the statement until it touches the box
            costs more than the worst merge so far: for its own records, and for those of a class of the box

Cost: O(g log g) to build; a search visits a small part of the boxes.   Ties: the first candidate.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from kinfold.kernels.compiling import Floats, Ints, Rows, entry, inner, lean

Nodes: TypeAlias = Rows


class Forest(NamedTuple):
    """Nodes of all attributes, one after the other."""

    low: Nodes
    high: Nodes
    parent: Nodes  # the top is its own parent
    lost: Floats


def example_forest() -> Forest:
    """Return the smallest forest, to compile for."""
    nodes = np.zeros(1, np.int32)
    return Forest(nodes, nodes, nodes, np.zeros(1))


@lean
def common_ancestor(f: Forest, a: int, b: int) -> int:
    """Return the lowest node above `a` (or itself) that covers `b`."""
    while f.low[a] > f.low[b] or f.high[a] < f.high[b]:
        a = f.parent[a]
    return a


@lean
def statement_loss(f: Forest, statement: Nodes) -> float:
    """Return the loss of a record that is released with this statement."""
    lost = 0.0
    for a in range(statement.size):
        lost += f.lost[statement[a]]
    return lost


@lean
def joint_loss(f: Forest, one: Nodes, other: Nodes) -> float:
    """Return the loss of a record under the statement that covers both."""
    lost = 0.0
    for a in range(one.size):
        lost += f.lost[common_ancestor(f, one[a], other[a])]
    return lost


@lean
def cover(f: Forest, one: Nodes, other: Nodes) -> None:
    """Make the first statement cover the other as well."""
    for a in range(one.size):
        one[a] = common_ancestor(f, one[a], other[a])


@entry(example_forest(), np.zeros(1, np.int32), np.zeros(1, np.int32))
def widen(f: Forest, one: Nodes, other: Nodes) -> None:
    """Make the first statement cover the other as well; called from Python."""
    cover(f, one, other)


LEAF_STATEMENTS = 8  # in a leaf; not tuned
BOUND_ROUNDING = 1e-12  # a share above that of rounding
STACK_SIZE = 1024  # more than halvings of the codes of 30 attributes


class StatementTree(NamedTuple):
    """A binary tree; box b holds order[start[b]:end[b]], its halves are child[b] and child[b] + 1, or none (-1)."""

    order: Nodes
    start: Nodes
    end: Nodes
    child: Nodes
    low: Nodes  # (boxes, q) first and last leaf of each attribute
    high: Nodes
    least: Floats  # (boxes) what a statement of the box loses at least
    most: Floats  # (boxes) and at most
    smallest: Ints  # (boxes) the smallest class
    statements: Nodes  # (g, q) the statement of each class
    sizes: Ints  # (g)


def example_tree() -> StatementTree:
    """Return the smallest tree, to compile for."""
    rows, ranges, sizes = np.zeros(1, np.int32), np.zeros((1, 1), np.int32), np.zeros(1, np.int64)
    lost = np.zeros(1)
    return StatementTree(rows, rows, rows, rows, ranges, ranges, lost, lost, sizes, ranges, sizes)


@lean
def _fit_box(t: StatementTree, f: Forest, box: int) -> None:
    t.least[box], t.most[box], t.smallest[box] = np.inf, 0.0, 9223372036854775807
    for a in range(t.statements.shape[1]):
        t.low[box, a] = 2147483647
        t.high[box, a] = -1
    for place in range(t.start[box], t.end[box]):
        g = t.order[place]
        lost = statement_loss(f, t.statements[g])
        t.least[box], t.most[box] = min(t.least[box], lost), max(t.most[box], lost)
        t.smallest[box] = min(t.smallest[box], t.sizes[g])
        for a in range(t.statements.shape[1]):
            t.low[box, a] = min(t.low[box, a], f.low[t.statements[g, a]])
            t.high[box, a] = max(t.high[box, a], f.high[t.statements[g, a]])


@lean
def _find_widest(t: StatementTree, f: Forest, box: int) -> int:
    best, most = -1, 0.0
    g = t.order[t.start[box]]
    for a in range(t.statements.shape[1]):
        node = t.statements[g, a]
        while f.low[node] > t.low[box, a] or f.high[node] < t.high[box, a]:
            node = f.parent[node]
        first = f.low[t.statements[g, a]]
        differs = False
        for place in range(t.start[box], t.end[box]):
            if f.low[t.statements[t.order[place], a]] != first:
                differs = True
                break
        if differs and f.lost[node] > most:
            best, most = a, f.lost[node]
    return best


@lean
def _halve(t: StatementTree, f: Forest, box: int, a: int) -> int:
    """Put the classes below the middle of their codes first and return where the others begin."""
    lowest, highest = 2147483647, -1
    for place in range(t.start[box], t.end[box]):
        code = f.low[t.statements[t.order[place], a]]
        lowest, highest = min(lowest, code), max(highest, code)
    middle = (lowest + highest + 1) // 2
    cut = t.start[box]
    for place in range(t.start[box], t.end[box]):
        if f.low[t.statements[t.order[place], a]] < middle:
            t.order[place], t.order[cut] = t.order[cut], t.order[place]
            cut += 1
    return int(cut)


@entry(example_tree(), example_forest(), 1)
def build(t: StatementTree, f: Forest, count: int) -> int:
    """Build the tree over order[:count] and return the number of boxes."""
    t.start[0], t.end[0] = 0, count
    boxes, box = 1, 0
    while box < boxes:
        _fit_box(t, f, box)
        t.child[box] = -1
        if t.end[box] - t.start[box] > LEAF_STATEMENTS:
            a = _find_widest(t, f, box)
            if a >= 0:
                cut = _halve(t, f, box, a)
                t.child[box] = boxes
                t.start[boxes], t.end[boxes] = t.start[box], cut
                t.start[boxes + 1], t.end[boxes + 1] = cut, t.end[box]
                boxes += 2
        box += 1
    return boxes


@lean
def _bound(t: StatementTree, f: Forest, g: int, cost: float, box: int) -> float:
    """Return what merging class g, which loses `cost`, with a class of the box costs at least, but for rounding."""
    lost, statement = 0.0, t.statements[g]
    for a in range(statement.size):
        node = statement[a]
        while f.high[node] < t.low[box, a] or f.low[node] > t.high[box, a]:
            node = f.parent[node]
        lost += f.lost[node]
    lost = max(lost, t.least[box])
    bound = t.sizes[g] * (lost - cost) + t.smallest[box] * max(0.0, lost - t.most[box])
    return float(bound - BOUND_ROUNDING * abs(bound))


@inner
def find_nearest(t: StatementTree, f: Forest, g: int, partners: Nodes, costs: Floats) -> int:
    """Fill `partners` with the classes that cost least to merge with, cheapest first, and return their number.

    Empty classes and g itself are left out.
    """
    statement, size = t.statements[g], t.sizes[g]
    count = 0
    cost = statement_loss(f, statement)
    stack = np.empty(STACK_SIZE, np.int64)
    bounds = np.empty(STACK_SIZE, np.float64)
    stack[0], bounds[0], deep = 0, 0.0, 1
    while deep > 0:
        deep -= 1
        box = stack[deep]
        if count == partners.size and bounds[deep] >= costs[count - 1]:
            continue
        child = t.child[box]
        if child >= 0:
            one, other = _bound(t, f, g, cost, child), _bound(t, f, g, cost, child + 1)
            first = child if one > other else child + 1  # the cheaper box goes on top
            stack[deep], bounds[deep] = first, max(one, other)
            stack[deep + 1], bounds[deep + 1] = child + child + 1 - first, min(one, other)
            deep += 2
            continue
        for place in range(t.start[box], t.end[box]):
            h = t.order[place]
            if h == g or t.sizes[h] == 0:
                continue
            both = joint_loss(f, statement, t.statements[h])
            change = (size + t.sizes[h]) * both - size * cost - t.sizes[h] * statement_loss(f, t.statements[h])
            if count == partners.size and change >= costs[count - 1]:
                continue
            count = min(count + 1, partners.size)
            place_kept = count - 1
            while place_kept > 0 and costs[place_kept - 1] > change:
                costs[place_kept], partners[place_kept] = costs[place_kept - 1], partners[place_kept - 1]
                place_kept -= 1
            costs[place_kept], partners[place_kept] = change, h
    return count


@entry(example_tree(), example_forest(), np.zeros(1, np.int64), np.zeros((1, 1), np.int32), np.zeros((1, 1)))
def find_partners(t: StatementTree, f: Forest, classes: Ints, partners: Nodes, costs: Floats) -> None:
    """Fill a row of `partners` and `costs` for each class of `classes`; -1 if there are no more."""
    for i in range(classes.size):
        count = find_nearest(t, f, classes[i], partners[i], costs[i])
        partners[i, count:] = -1
