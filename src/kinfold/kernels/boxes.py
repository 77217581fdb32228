"""A k-d tree of boxes that shrink as points leave.

Points are halved by rank along their widest attribute until a leaf holds at most 32. Three halvings make one level:
a block is the boxes of eight children, attribute by attribute, so that eight bounds are one sweep. Leaves hold
their points attribute by attribute as well. Everything is in arrays numbered level by level; nothing points anywhere.

For each child a block keeps
    the ends of each number and each code, the lowest record, and
    the largest squared distance of its numbers from `hub`, a point near the centre.
A leaf forgets a point by putting its last one in its place; then the boxes above shrink as far as they change.

Cost: O(n log n) to grow, O(log n) to forget a point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAF = 32  # the most points in a leaf
FAN = 8
NOBODY = np.int32(2**31 - 1)  # the lowest record of an empty box
_SAMPLE = 64


class Crowd(NamedTuple):
    """The records, and the points they share: equal records are one point."""

    numbers: NDArray[np.float64]  # (n, a)
    codes: NDArray[np.int32]  # (n, b)
    member: NDArray[np.int32]  # (n,) records point by point, ascending within each
    start: NDArray[np.int32]  # (p + 1,) where the members of each point start
    head: NDArray[np.int32]  # (p,) its first member that is left: members leave in their order


class Tree(NamedTuple):
    """Boxes and leaves; see the top of the file."""

    level: NDArray[np.int64]  # number of the first block of each level, and one past the last
    fan: NDArray[np.int64]  # children of a block, level by level
    hub: NDArray[np.float64]  # (a,)
    low: NDArray[np.float64]  # (blocks, a, 8)
    high: NDArray[np.float64]
    first: NDArray[np.int32]  # (blocks, b, 8)
    last: NDArray[np.int32]
    lowest: NDArray[np.int32]  # (blocks, 8)
    reach: NDArray[np.float64]  # (blocks, 8)
    size: NDArray[np.int32]  # (leaves,)
    point: NDArray[np.int32]  # (leaves, cap)
    record: NDArray[np.int32]  # (leaves, cap) lowest record left of each point
    numbers: NDArray[np.float64]  # (leaves, a, cap)
    codes: NDArray[np.int32]  # (leaves, b, cap)


def soil(points: int, numbers: int, codes: int) -> Tree:
    """Return room for the tree of so many points."""
    halvings = max(0, int(np.ceil(np.log2(points / LEAF))))
    levels = max(1, -(-halvings // 3))
    fan = np.full(levels, FAN, np.int64)
    fan[0] = 2 ** (halvings - 3 * (levels - 1))
    blocks = np.concatenate([[1], np.cumprod(fan)[:-1]])
    level = np.concatenate([[0], np.cumsum(blocks)]).astype(np.int64)
    leaves = 2**halvings
    cap = -(-(-(-points // leaves)) // 8) * 8
    shape = (int(level[-1]), numbers, FAN), (int(level[-1]), codes, FAN)
    return Tree(
        level, fan, np.zeros(numbers),
        np.full(shape[0], np.inf), np.full(shape[0], -np.inf),
        np.zeros(shape[1], np.int32), np.zeros(shape[1], np.int32),
        np.full((shape[0][0], FAN), NOBODY), np.zeros((shape[0][0], FAN)),
        np.zeros(leaves, np.int32), np.zeros((leaves, cap), np.int32), np.full((leaves, cap), NOBODY),
        np.zeros((leaves, numbers, cap)), np.zeros((leaves, codes, cap), np.int32),
    )  # fmt: skip


@njit
def value(crowd, point, j):
    """Attribute j of a point, numbers first."""
    record = crowd.member[crowd.start[point]]
    numbers = crowd.numbers.shape[1]
    if j < numbers:
        return crowd.numbers[record, j]
    return float(crowd.codes[record, j - numbers])


@njit
def plant(tree, crowd, order, key, spread):
    """Sort `order` (the points that are left) into leaves and fill the tree; `spread` scales each attribute."""
    leaves = tree.size.size
    width = leaves
    while width > 1:
        for node in range(leaves // width):
            begin = bound(order.size, leaves, node * width)
            end = bound(order.size, leaves, (node + 1) * width)
            middle = bound(order.size, leaves, node * width + width // 2)
            halve(crowd, order, key, spread, begin, middle, end)
        width //= 2
    for leaf in range(leaves):
        begin = bound(order.size, leaves, leaf)
        settle(tree, crowd, leaf, order[begin : bound(order.size, leaves, leaf + 1)])
    for leaf in range(leaves):
        leaf_box(tree, leaf)
    for level in range(tree.fan.size - 1, 0, -1):
        for block in range(tree.level[level], tree.level[level + 1]):
            block_box(tree, level, block)


@njit
def bound(points, leaves, leaf):
    """Where a leaf's points start."""
    return points * leaf // leaves


@njit
def halve(crowd, order, key, spread, begin, middle, end):
    """Put the lower half of order[begin:end] first, along the attribute that is widest in a sample."""
    widest, best = 0, -1.0
    step = max(1, (end - begin) // _SAMPLE)
    for j in range(spread.size):
        low, high = np.inf, -np.inf
        for i in range(begin, end, step):
            v = value(crowd, order[i], j)
            low = min(low, v)
            high = max(high, v)
        if (high - low) * spread[j] > best:
            widest, best = j, (high - low) * spread[j]
    for i in range(begin, end):
        key[i] = value(crowd, order[i], widest)
    select(key, order, begin, end - 1, middle)


@njit
def select(key, order, left, right, rank):
    """Quickselect: key[rank] is in its sorted place, smaller ones before, larger ones after; `order` goes along."""
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


@njit
def settle(tree, crowd, leaf, points):
    """Copy points into a leaf."""
    tree.size[leaf] = points.size
    for i in range(points.size):
        record = crowd.member[crowd.head[points[i]]]
        tree.point[leaf, i] = points[i]
        tree.record[leaf, i] = record
        for j in range(tree.numbers.shape[1]):
            tree.numbers[leaf, j, i] = crowd.numbers[record, j]
        for j in range(tree.codes.shape[1]):
            tree.codes[leaf, j, i] = crowd.codes[record, j]


@njit
def leaf_box(tree, leaf):
    """Measure the box of a leaf again; tell whether it changed."""
    level = tree.fan.size - 1
    fan = tree.fan[level]
    block, child = tree.level[level] + leaf // fan, leaf % fan
    size = tree.size[leaf]
    changed = False
    for j in range(tree.numbers.shape[1]):
        low, high = np.inf, -np.inf
        for i in range(size):
            v = tree.numbers[leaf, j, i]
            low = v if v < low else low
            high = v if v > high else high
        changed |= low != tree.low[block, j, child] or high != tree.high[block, j, child]
        tree.low[block, j, child] = low
        tree.high[block, j, child] = high
    for j in range(tree.codes.shape[1]):
        first, last = tree.first[block, j, child], tree.last[block, j, child]
        if size > 0:
            first = last = tree.codes[leaf, j, 0]
        for i in range(size):
            c = tree.codes[leaf, j, i]
            first = c if c < first else first
            last = c if c > last else last
        changed |= first != tree.first[block, j, child] or last != tree.last[block, j, child]
        tree.first[block, j, child] = first
        tree.last[block, j, child] = last
    lowest, reach = NOBODY, 0.0
    for i in range(size):
        lowest = min(lowest, tree.record[leaf, i])
        v = 0.0
        for j in range(tree.numbers.shape[1]):
            step = tree.numbers[leaf, j, i] - tree.hub[j]
            v += step * step
        reach = v if v > reach else reach
    changed |= lowest != tree.lowest[block, child] or reach != tree.reach[block, child]
    tree.lowest[block, child] = lowest
    tree.reach[block, child] = reach
    return changed


@njit
def block_box(tree, level, block):
    """Measure the box around a block of this level again, in its parent; tell whether it changed."""
    fan = tree.fan[level - 1]
    number = block - tree.level[level]
    parent, child = tree.level[level - 1] + number // fan, number % fan
    changed = False
    for j in range(tree.numbers.shape[1]):
        low, high = np.inf, -np.inf
        for t in range(FAN):
            v, w = tree.low[block, j, t], tree.high[block, j, t]
            low = v if v < low else low
            high = w if w > high else high
        changed |= low != tree.low[parent, j, child] or high != tree.high[parent, j, child]
        tree.low[parent, j, child] = low
        tree.high[parent, j, child] = high
    for j in range(tree.codes.shape[1]):
        first, last = NOBODY, np.int32(-1)
        for t in range(FAN):
            if tree.lowest[block, t] != NOBODY:
                first = min(first, tree.first[block, j, t])
                last = max(last, tree.last[block, j, t])
        if last >= 0:  # the ends of an empty box stay what they were: codes that can be looked up
            changed |= first != tree.first[parent, j, child] or last != tree.last[parent, j, child]
            tree.first[parent, j, child] = first
            tree.last[parent, j, child] = last
    lowest, reach = NOBODY, 0.0
    for t in range(FAN):
        lowest = min(lowest, tree.lowest[block, t])
        reach = max(reach, tree.reach[block, t])
    changed |= lowest != tree.lowest[parent, child] or reach != tree.reach[parent, child]
    tree.lowest[parent, child] = lowest
    tree.reach[parent, child] = reach
    return changed


@njit
def forget(tree, leaf, slot):
    """Take the point at this slot of a leaf away; its boxes are measured by `shrink`."""
    size = tree.size[leaf] - 1
    tree.size[leaf] = size
    tree.point[leaf, slot] = tree.point[leaf, size]
    tree.record[leaf, slot] = tree.record[leaf, size]
    for j in range(tree.numbers.shape[1]):
        tree.numbers[leaf, j, slot] = tree.numbers[leaf, j, size]
    for j in range(tree.codes.shape[1]):
        tree.codes[leaf, j, slot] = tree.codes[leaf, j, size]


@njit
def shrink(tree, leaf):
    """Measure the boxes above a leaf again, as far up as they change."""
    changed = leaf_box(tree, leaf)
    level = tree.fan.size - 1
    number = leaf // tree.fan[level]
    while changed and level > 0:
        changed = block_box(tree, level, tree.level[level] + number)
        level -= 1
        number //= tree.fan[level]
