"""A k-d tree of boxes that shrink as points leave.

Points are halved by rank along their widest attribute until a leaf holds few of them. Three halvings make one level:
a block is the boxes of eight children, attribute by attribute, so that eight bounds are one sweep. Leaves hold
their points attribute by attribute as well.

For each child a block keeps
    the ends of each number and each code, the lowest record, and
    the largest squared distance of its numbers from `hub`, a point near the centre.
A leaf forgets a point by putting its last one in its place. An end that left with it is marked, and measured again
when the boxes shrink: from the leaf up, as far as they change.

Cost: O(n log n) to grow, O(log n) to forget a point; memory about 1.3 times the points.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kinfold.kernels.compiling import Flag, Int, Real, inlined, inner

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kinfold.kernels.crowd import Crowd

FAN = 8
NOBODY = np.int32(2**31 - 1)  # the lowest record of an empty box
_SAMPLE = 64  # enough to find a wide attribute


class Tree(NamedTuple):
    """Blocks and leaves of points with a numbers and b codes. Nodes are blocks first, then leaves."""

    child: NDArray[np.int32]  # (blocks,) the node that is a block's first child
    parent: NDArray[np.int32]  # (nodes,) 8 times the block above, plus which child of it
    hub: NDArray[np.float64]  # (a,)
    ends: NDArray[np.float64]  # (blocks, 2a + 1, 8) low ends, high ends, reach from the hub
    codes: NDArray[np.int32]  # (blocks, 2b + 1, 8) first codes, last codes, lowest record
    size: NDArray[np.int32]  # (leaves,)
    x: NDArray[np.float64]  # (leaves, a, cap)
    c: NDArray[np.int32]  # (leaves, b + 3, cap) codes; then the point, its lowest record that is left, how many are


class Sort(NamedTuple):
    """The points to be sorted into a tree, and room to sort them."""

    order: NDArray[np.int32]  # the lowest record that is left of each point
    key: NDArray[np.float64]  # as long
    spread: NDArray[np.float64]  # (a + b,) how much a step of each attribute counts when the widest is looked for


def soil(points: int, numbers: int, codes: int, leaf: int) -> Tree:
    """Return room for the tree of so many points."""
    halvings = max(0, int(np.ceil(np.log2(points / leaf))))
    fans = [FAN] * (halvings // 3)
    if halvings % 3 or not fans:
        fans.insert(0, 2 ** (halvings % 3))
    first, width = 0, 1  # of a level: its first node, how many it has
    child, parent = [], [np.zeros(1, np.int32)]
    for fan in fans:
        below = np.arange(width * fan, dtype=np.int32)
        child.append(first + width + below[::fan])
        parent.append(FAN * (first + below // fan) + below % fan)
        first, width = first + width, width * fan
    blocks, leaves = first, width
    cap = -(-points // leaves)
    cap = -(-cap // 8) * 8  # whole vectors
    lowest = np.zeros((blocks, 2 * codes + 1, FAN), np.int32)
    lowest[:, -1] = NOBODY
    ends = np.full((blocks, 2 * numbers + 1, FAN), -np.inf)  # nothing is measured yet
    ends[:, :numbers] = np.inf
    return Tree(
        np.concatenate(child).astype(np.int32), np.concatenate(parent).astype(np.int32),
        np.zeros(numbers), ends, lowest,
        np.zeros(leaves, np.int32), np.zeros((leaves, numbers, cap)), np.zeros((leaves, codes + 3, cap), np.int32),
    )  # fmt: skip


@inlined
def plant(tree: Tree, crowd: Crowd, sort: Sort) -> None:
    """Sort the points into the leaves."""
    order = sort.order
    leaves = tree.size.size
    width = leaves
    while width > 1:
        for leaf in range(0, leaves, width):
            begin, end = order.size * leaf // leaves, order.size * (leaf + width) // leaves
            _halve(crowd, sort, begin, end, order.size * (leaf + width // 2) // leaves)
        width //= 2
    for leaf in range(leaves):
        begin = order.size * leaf // leaves
        _settle(tree, crowd, leaf, order, begin, order.size * (leaf + 1) // leaves)


@inlined
def _value(crowd: Crowd, record: Int, j: Int) -> Real:
    """Return attribute j of a record, numbers first."""
    numbers = crowd.numbers.shape[1]
    if j < numbers:
        return crowd.numbers[record, j]
    return float(crowd.codes[record, j - numbers])


@inlined
def _halve(crowd: Crowd, sort: Sort, begin: Int, end: Int, middle: Int) -> None:
    """Put the lower half of order[begin:end] before `middle`, along the attribute that is widest in a sample."""
    order, key, spread = sort
    widest, best = 0, -1.0
    step = max(1, (end - begin) // _SAMPLE)
    for j in range(spread.size):
        low, high = np.inf, -np.inf
        for i in range(begin, end, step):
            v = _value(crowd, order[i], j)
            low = v if v < low else low
            high = v if v > high else high
        if (high - low) * spread[j] > best:
            widest, best = j, (high - low) * spread[j]
    for i in range(begin, end):
        key[i] = _value(crowd, order[i], widest)
    _select(key, order, begin, end - 1, middle)


@inlined
def _select(key: NDArray[np.float64], order: NDArray[np.int32], left: Int, right: Int, rank: Int) -> None:
    """Quickselect: smaller keys than the one of this rank before it, larger ones after; `order` goes along."""
    while left < right:
        a, b, c = key[left], key[(left + right) >> 1], key[right]
        pivot = max(min(a, b), min(max(a, b), c))
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
def _settle(tree: Tree, crowd: Crowd, leaf: Int, order: NDArray[np.int32], begin: Int, end: Int) -> None:
    """Copy the points order[begin:end] into a leaf."""
    wide = crowd.codes.shape[1]
    tree.size[leaf] = end - begin
    for i in range(end - begin):
        record = order[begin + i]
        point = crowd.point[record]
        tree.c[leaf, wide, i] = point
        tree.c[leaf, wide + 1, i] = record
        tree.c[leaf, wide + 2, i] = crowd.start[point + 1] - crowd.head[point]
        for j in range(crowd.numbers.shape[1]):
            tree.x[leaf, j, i] = crowd.numbers[record, j]
        for j in range(wide):
            tree.c[leaf, j, i] = crowd.codes[record, j]


@inlined
def forget(tree: Tree, leaf: Int, slot: Int) -> None:
    """Take the point at this slot of a leaf away and mark the ends that go with it; `shrink` measures them."""
    last, numbers = tree.size[leaf] - 1, tree.x.shape[1]
    above = tree.parent[tree.child.size + leaf]
    block, t = above >> 3, above & 7
    tree.size[leaf] = last
    v = 0.0
    for j in range(numbers):
        x = tree.x[leaf, j, slot]
        step = x - tree.hub[j]
        v += step * step
        if x == tree.ends[block, j, t]:
            tree.ends[block, j, t] = np.inf
        if x == tree.ends[block, numbers + j, t]:
            tree.ends[block, numbers + j, t] = -np.inf
        tree.x[leaf, j, slot] = tree.x[leaf, j, last]
    if v == tree.ends[block, 2 * numbers, t]:
        tree.ends[block, 2 * numbers, t] = -np.inf
    for j in range(tree.c.shape[1]):
        tree.c[leaf, j, slot] = tree.c[leaf, j, last]


@inner
def shrink(tree: Tree, leaf: Int, up: Flag, far: NDArray[np.float64]) -> None:
    """Measure the marked ends of a leaf's box, then (up) the boxes above, as far as they change."""
    changed = _measure_leaf(tree, leaf, far) and up
    block = tree.parent[tree.child.size + leaf] >> 3
    while changed and block > 0:
        changed = _measure_block(tree, block)
        block = tree.parent[block] >> 3


@inlined
def _measure_leaf(tree: Tree, leaf: Int, far: NDArray[np.float64]) -> Flag:
    """Measure what is marked of a leaf's box; tell whether it changed."""
    above = tree.parent[tree.child.size + leaf]
    block, t = above >> 3, above & 7
    size, numbers, codes = tree.size[leaf], tree.x.shape[1], tree.c.shape[1] - 3
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
    lowest = NOBODY
    for i in range(size):
        lowest = min(lowest, tree.c[leaf, codes + 1, i])
    changed |= lowest != tree.codes[block, 2 * codes, t]
    tree.codes[block, 2 * codes, t] = lowest
    if tree.ends[block, 2 * numbers, t] < 0.0:
        changed = True
        tree.ends[block, 2 * numbers, t] = _reach(tree, leaf, far)
    for j in range(codes if size > 0 else 0):  # an empty box keeps its codes: they can be looked up
        first = last = tree.c[leaf, j, 0]
        for i in range(1, size):
            first = min(first, tree.c[leaf, j, i])
            last = max(last, tree.c[leaf, j, i])
        changed |= first != tree.codes[block, j, t] or last != tree.codes[block, codes + j, t]
        tree.codes[block, j, t] = first
        tree.codes[block, codes + j, t] = last
    return changed


@inlined
def _reach(tree: Tree, leaf: Int, far: NDArray[np.float64]) -> Real:
    """Return the largest squared distance of a leaf's numbers from the hub; `far` is room for a leaf."""
    size = tree.size[leaf]
    for i in range(size):
        far[i] = 0.0
    for j in range(tree.x.shape[1]):
        hub = tree.hub[j]
        for i in range(size):
            step = tree.x[leaf, j, i] - hub
            far[i] += step * step
    reach = 0.0
    for i in range(size):
        reach = far[i] if far[i] > reach else reach
    return reach


@inlined
def _measure_block(tree: Tree, block: Int) -> Flag:
    """Measure the box around a block's boxes; tell whether it changed."""
    parent, t = tree.parent[block] >> 3, tree.parent[block] & 7
    numbers, codes = tree.x.shape[1], tree.c.shape[1] - 3
    changed = False
    for j in range(2 * numbers + 1):
        sign = 1.0 if j < numbers else -1.0
        end = np.inf
        for i in range(FAN):
            v = sign * tree.ends[block, j, i]
            end = v if v < end else end
        changed |= sign * end != tree.ends[parent, j, t]
        tree.ends[parent, j, t] = sign * end
    lowest = NOBODY
    for i in range(FAN):
        lowest = min(lowest, tree.codes[block, 2 * codes, i])
    changed |= lowest != tree.codes[parent, 2 * codes, t]
    tree.codes[parent, 2 * codes, t] = lowest
    for j in range(codes if lowest != NOBODY else 0):
        first, last = NOBODY, np.int32(-1)
        for i in range(FAN):
            if tree.codes[block, 2 * codes, i] != NOBODY:
                first = min(first, tree.codes[block, j, i])
                last = max(last, tree.codes[block, codes + j, i])
        changed |= first != tree.codes[parent, j, t] or last != tree.codes[parent, codes + j, t]
        tree.codes[parent, j, t] = first
        tree.codes[parent, codes + j, t] = last
    return changed
