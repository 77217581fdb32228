"""Box trees: k-d trees of boxes that shrink as points are removed, one tree for each stratum of the points.

Points are halved by rank along their widest attribute until a leaf holds few of them. Three halvings make one level: a
block holds the boxes of eight children, attribute by attribute, so that one loop computes eight bounds. Leaves hold
their points attribute by attribute as well. All trees have the same shape and share their arrays.

For each child a block keeps the ends of each number and each code, the lowest record, and the largest squared distance
of its numbers from each hub: a point near the centre, and others far out. A leaf replaces a removed point by its last
one. An end that the point held is marked, and so is the lowest record; they are measured again when the boxes shrink,
from the leaf up.

Cost: O(n log n) to grow, O(log n) to remove a point; memory about 1.3 times the points.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from kinfold.kernels import records as mixed
from kinfold.kernels.compiling import Flag, Floats, Int, Ints, Real, Rows, entry, inlined, lean
from kinfold.kernels.records import Folded, Mixed, make_unfolded

FAN = 8  # children of a block: a cache line of doubles, two to four vectors
LEAF = 48  # points in a leaf, for queries of few records (by trial, 8 to 64 in 2 to 10 attributes)
NO_RECORD = np.int32(2**31 - 1)  # the lowest record of an empty box
LEAF_POINT = np.dtype(
    [
        ("point", np.int32),
        ("record", np.int32),  # the lowest remaining record of the point
        ("many", np.int32),  # remaining records
    ],
    align=True,
)
_SAMPLE_POINTS = 64  # by which the widest attribute is chosen


class Tree(NamedTuple):
    """Blocks and leaves of points with a numbers and b codes. Nodes are the blocks of all trees, then the leaves."""

    root: Rows  # (trees,) the topmost block of each
    child: Rows  # (blocks,) the first child of a block
    parent: Rows  # (nodes,) 8 times the block above, plus which child of it; -1 at a root
    home: Rows  # (points,) the leaf of each point
    hub: Floats  # (hubs, a)
    ends: Floats  # (blocks, 2a + hubs, 8) low ends, high ends, reaches: squared distances from the hubs
    codes: Rows  # (blocks, 2b + 1, 8) first codes, last codes, lowest record
    size: Rows  # (leaves,) remaining points
    x: Floats  # (leaves, a, cap) their numbers
    c: Rows  # (leaves, b, cap) their codes
    held: Any  # (leaves, cap) of LEAF_POINT


class Sort(NamedTuple):
    """The points to sort into trees, and room to sort them."""

    order: Rows  # the lowest remaining record of each point, tree by tree
    first: Ints  # (trees + 1,) where those of each tree start
    key: Floats  # as long as the order
    spread: Floats  # (a + b,) weight of each attribute when the widest is chosen


def layout(sizes: Sequence[int], points: int, m: Mixed, leaf: int, hubs: Floats | None = None) -> Tree:
    """Return room for trees of these sizes, of `points` points in all, with at most `leaf` of them in a leaf."""
    numbers, codes, trees = m.numbers.shape[1], m.codes.shape[1], len(sizes)
    hubs = np.zeros((1, numbers)) if hubs is None else hubs
    child, parent = _shape(max(0, int(np.ceil(np.log2(max(sizes) / leaf)))))
    blocks = len(child)
    leaves = len(parent) - blocks
    cap = -(-max(sizes) // leaves)
    cap = -(-cap // 8) * 8  # whole vectors
    tree = np.arange(trees)[:, None]
    child = np.where(child < blocks, child + tree * blocks, child + (trees - 1) * blocks + tree * leaves)
    parent = np.where(parent < 0, -1, parent + FAN * blocks * tree)
    ends = np.full((trees * blocks, 2 * numbers + len(hubs), FAN), -np.inf)  # nothing is measured yet
    ends[:, :numbers] = np.inf
    bounds = np.zeros((trees * blocks, 2 * codes + 1, FAN), np.int32)
    bounds[:, -1] = NO_RECORD
    return Tree(
        np.arange(0, trees * blocks, blocks, dtype=np.int32), child.ravel().astype(np.int32),
        np.concatenate([parent[:, :blocks].ravel(), parent[:, blocks:].ravel()]).astype(np.int32),
        np.empty(points, np.int32), hubs, ends, bounds,
        np.zeros(trees * leaves, np.int32), np.zeros((trees * leaves, numbers, cap)),
        np.zeros((trees * leaves, codes, cap), np.int32), np.zeros((trees * leaves, cap), LEAF_POINT).view(np.recarray),
    )  # fmt: skip


def _shape(halvings: int) -> tuple[Ints, Ints]:
    """Return the first child of each block and the parent of each node of one tree, eight children a level."""
    fans = [FAN] * (halvings // 3)
    if halvings % 3 or not fans:
        fans.insert(0, 2 ** (halvings % 3))
    first, width = 0, 1  # of a level: its first node and its number of nodes
    child, parent = [], [np.full(1, -1)]
    for fan in fans:
        below = np.arange(width * fan)
        child.append(first + width + below[::fan])
        parent.append(FAN * (first + below // fan) + below % fan)
        first, width = first + width, width * fan
    return np.concatenate(child), np.concatenate(parent)


def example_tree() -> Tree:
    """Return the smallest tree, to compile for."""
    return layout([1], 1, mixed.example_records(), 8, np.zeros((1, 1)))


@inlined
def _value(m: Mixed, record: Int, j: Int) -> Real:
    """Return attribute j of a record, numbers first."""
    numbers = m.numbers.shape[1]
    if j < numbers:
        return m.numbers[record, j]
    return float(m.codes[record, j - numbers])


@inlined
def _halve(m: Mixed, sort: Sort, begin: Int, end: Int, middle: Int) -> None:
    """Put the lower half of order[begin:end] before `middle`, along the attribute that is widest in a sample."""
    order, key, spread = sort.order, sort.key, sort.spread
    widest, best = 0, -1.0
    step = (end - begin) // _SAMPLE_POINTS if end - begin > _SAMPLE_POINTS else 1
    for j in range(spread.size):
        low, high = np.inf, -np.inf
        for i in range(begin, end, step):
            v = _value(m, order[i], j)
            low = v if v < low else low
            high = v if v > high else high
        if (high - low) * spread[j] > best:
            widest, best = j, (high - low) * spread[j]
    for i in range(begin, end):
        key[i] = _value(m, order[i], widest)
    _select(key, order, begin, end - 1, middle)


@inlined
def _select(key: Floats, order: Rows, left: Int, right: Int, rank: Int) -> None:
    """Quickselect: put smaller keys before the one of this rank, larger ones after; permute `order` alike."""
    while left < right:
        a, b, c = key[left], key[(left + right) >> 1], key[right]
        a, b = (a, b) if a < b else (b, a)
        pivot = a if c < a else (c if c < b else b)  # the median of the three
        i, j = left, right
        while i <= j:
            while key[i] < pivot:
                i += 1
            while key[j] > pivot:
                j -= 1
            if i <= j:
                key[i], key[j] = key[j], key[i]
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if rank <= j:
            right = j
        elif rank >= i:
            left = i
        else:
            return


@inlined
def _fill_leaf(tree: Tree, m: Mixed, folded: Folded, leaf: Int, order: Rows) -> None:
    """Copy these points into a leaf."""
    tree.size[leaf] = order.size
    for i in range(order.size):
        record = order[i]
        point = folded.point[record]
        tree.home[point] = leaf
        held = tree.held[leaf, i]
        held.point = point
        held.record = record
        held.many = folded.start[point + 1] - folded.head[point]
        for j in range(m.numbers.shape[1]):
            tree.x[leaf, j, i] = m.numbers[record, j]
        for j in range(m.codes.shape[1]):
            tree.c[leaf, j, i] = m.codes[record, j]


@lean
def find_slot(held: Any, leaf: Int, point: Int) -> Int:
    """Return the slot of a point in its leaf; `held` is the tree's."""
    slot = 0
    while held[leaf, slot].point != point:
        slot += 1
    return slot


@inlined
def remove_record(tree: Tree, folded: Folded, leaf: Int, slot: Int, settled: Flag) -> Int:
    """Remove the lowest record of a point; with the last one to remove (settled), update the leaf.

    Returns 1 if the point is removed as well. The boxes keep their size, marked, until they `shrink`.
    """
    held, above = tree.held[leaf, slot], tree.parent[tree.child.size + leaf]
    if held.record == tree.codes[above >> 3, 2 * tree.c.shape[1], above & 7]:
        tree.codes[above >> 3, 2 * tree.c.shape[1], above & 7] = -1
    folded.head[held.point] += 1
    held.many -= 1
    if not settled:
        return 0
    if held.many > 0:
        held.record = folded.member[folded.head[held.point]]
        return 0
    _remove_point(tree, leaf, slot)
    return 1


@inlined
def _remove_point(tree: Tree, leaf: Int, slot: Int) -> None:
    """Remove the point at this slot of a leaf and mark the ends that it held; `shrink` measures them."""
    last, numbers = tree.size[leaf] - 1, tree.x.shape[1]
    above = tree.parent[tree.child.size + leaf]
    block, t = above >> 3, above & 7
    tree.size[leaf] = last
    for h in range(tree.hub.shape[0]):
        v = 0.0
        for j in range(numbers):
            step = tree.x[leaf, j, slot] - tree.hub[h, j]
            v += step * step
        if v == tree.ends[block, 2 * numbers + h, t]:
            tree.ends[block, 2 * numbers + h, t] = -np.inf
    for j in range(numbers):
        x = tree.x[leaf, j, slot]
        if x == tree.ends[block, j, t]:
            tree.ends[block, j, t] = np.inf
        if x == tree.ends[block, numbers + j, t]:
            tree.ends[block, numbers + j, t] = -np.inf
        tree.x[leaf, j, slot] = tree.x[leaf, j, last]
    for j in range(tree.c.shape[1]):
        tree.c[leaf, j, slot] = tree.c[leaf, j, last]
    tree.held[leaf, slot] = tree.held[leaf, last]


@lean
def shrink(tree: Tree, leaf: Int, up: Flag, room: Floats) -> None:
    """Measure the marked ends of a leaf's box, then (up) the boxes above, as room as they change."""
    changed = _measure_leaf(tree, leaf, room) and up
    block = tree.parent[tree.child.size + leaf] >> 3
    while changed and tree.parent[block] >= 0:
        changed = _measure_block(tree, block)
        block = tree.parent[block] >> 3


@inlined
def _measure_leaf(tree: Tree, leaf: Int, room: Floats) -> Flag:
    """Measure the marked ends of a leaf's box; return whether it changed."""
    above = tree.parent[tree.child.size + leaf]
    block, t = above >> 3, above & 7
    size, numbers, codes = tree.size[leaf], tree.x.shape[1], tree.c.shape[1]
    at_reach, at_lowest = 2 * numbers, 2 * codes
    changed = False
    for j in range(numbers):
        if tree.ends[block, j, t] < np.inf and tree.ends[block, numbers + j, t] > -np.inf:
            continue
        changed = True
        low, high = np.inf, -np.inf
        for i in range(size):
            v = tree.x[leaf, j, i]
            low = v if v < low else low
            high = v if v > high else high
        tree.ends[block, j, t] = low
        tree.ends[block, numbers + j, t] = high
    if tree.codes[block, at_lowest, t] < 0:
        changed = True
        lowest = NO_RECORD
        for i in range(size):
            record = tree.held[leaf, i].record
            lowest = record if record < lowest else lowest
        tree.codes[block, at_lowest, t] = lowest
    for h in range(tree.hub.shape[0]):
        if tree.ends[block, at_reach + h, t] < 0.0:
            changed = True
            tree.ends[block, at_reach + h, t] = _reach(tree, leaf, h, room)
    for j in range(codes if size > 0 else 0):  # an empty box keeps its codes, which can be looked up
        first = last = tree.c[leaf, j, 0]
        for i in range(1, size):
            code = tree.c[leaf, j, i]
            first = code if code < first else first
            last = code if code > last else last
        changed |= first != tree.codes[block, j, t] or last != tree.codes[block, codes + j, t]
        tree.codes[block, j, t] = first
        tree.codes[block, codes + j, t] = last
    return changed


@inlined
def _reach(tree: Tree, leaf: Int, h: Int, room: Floats) -> Real:
    """Return the largest squared distance of a leaf's numbers from a hub; `room` is room for a leaf."""
    size = tree.size[leaf]
    for i in range(size):
        room[i] = 0.0
    for j in range(tree.x.shape[1]):
        hub = tree.hub[h, j]
        for i in range(size):
            step = tree.x[leaf, j, i] - hub
            room[i] += step * step
    reach = 0.0
    for i in range(size):
        reach = room[i] if room[i] > reach else reach
    return reach


@inlined
def _measure_block(tree: Tree, block: Int) -> Flag:
    """Measure the box around a block's boxes; return whether it changed."""
    parent, t = tree.parent[block] >> 3, tree.parent[block] & 7
    numbers, codes = tree.x.shape[1], tree.c.shape[1]
    at_lowest = 2 * codes
    changed = False
    for j in range(tree.ends.shape[1]):
        sign = 1.0 if j < numbers else -1.0
        end = np.inf
        for i in range(FAN):
            v = sign * tree.ends[block, j, i]
            end = v if v < end else end
        changed |= sign * end != tree.ends[parent, j, t]
        tree.ends[parent, j, t] = sign * end
    lowest = NO_RECORD
    for i in range(FAN):
        record = tree.codes[block, at_lowest, i]
        lowest = record if record < lowest else lowest
    changed |= lowest != tree.codes[parent, at_lowest, t]
    tree.codes[parent, at_lowest, t] = lowest
    for j in range(codes if lowest != NO_RECORD else 0):
        first, last = NO_RECORD, np.int32(-1)
        for i in range(FAN):
            if tree.codes[block, at_lowest, i] != NO_RECORD:
                v, w = tree.codes[block, j, i], tree.codes[block, codes + j, i]
                first = v if v < first else first
                last = w if w > last else last
        changed |= first != tree.codes[parent, j, t] or last != tree.codes[parent, codes + j, t]
        tree.codes[parent, j, t] = first
        tree.codes[parent, codes + j, t] = last
    return changed


@inlined
def measure_all(tree: Tree, room: Floats) -> None:
    """Measure every box, and its largest distance from the first hub; `room` is room for a leaf."""
    for leaf in range(tree.size.size):
        above = tree.parent[tree.child.size + leaf]
        tree.ends[above >> 3, 2 * tree.hub.shape[1], above & 7] = -1.0
        tree.codes[above >> 3, 2 * tree.c.shape[1], above & 7] = -1
        shrink(tree, leaf, leaf & 7 == 7, room)  # the boxes above, once all leaves of a block are measured


@entry(
    example_tree(),
    mixed.example_records(),
    make_unfolded(np.ones(1, np.int64)),
    Sort(np.zeros(1, np.int32), np.zeros(2, np.int64), np.zeros(1), np.zeros(1)),
)
def grow(tree: Tree, m: Mixed, folded: Folded, sort: Sort) -> None:
    """Sort points into the leaves of their trees, and measure the boxes."""
    leaves = tree.size.size // tree.root.size
    for s in range(tree.root.size):
        first, many = sort.first[s], sort.first[s + 1] - sort.first[s]
        width = leaves
        while width > 1:
            for leaf in range(0, leaves, width):
                begin, end = first + many * leaf // leaves, first + many * (leaf + width) // leaves
                _halve(m, sort, begin, end, first + many * (leaf + width // 2) // leaves)
            width //= 2
        for leaf in range(leaves):
            begin, end = first + many * leaf // leaves, first + many * (leaf + 1) // leaves
            _fill_leaf(tree, m, folded, s * leaves + leaf, sort.order[begin:end])
    measure_all(tree, sort.key)  # nothing is left to sort
