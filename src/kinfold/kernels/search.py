"""Nearest and farthest points of a place, found in a tree of boxes without looking at most points.

A box bounds the distances of its points by the ends of each attribute, added in the same order as a distance. Rounding
is monotone, so the bound holds for the computed distances to the last bit, and a box is left out only if it
holds no better point: also among ties, for a box knows its lowest record.

The farthest has a second bound. With h the hub, |x - q|² = |x - h|² + |q - h|² - 2 (x - h)·(q - h): the largest
|x - h|² in the box is known and the product is largest at a corner. It is another expression, so it gets a margin
above its rounding: with u = 2⁻⁵³, a numbers and A = |x - h|², B = |q - h|², each of the three sums errs by at most
(a + 3) u times the sum of its absolute terms, and those of the product are at most √a (A + B) / 2 (an end of a box
is an attribute of one of its points). So (A + B) · 4 (a + 4) (1 + √a) u covers everything but underflow, for which
1e-300 is added.

Cost: a few leaves for the nearest in up to 8 attributes; the farthest looks at some 10 % of the leaves.
Ties: the lowest record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from kinfold.kernels.boxes import FAN, LEAF, NOBODY

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TINY = 1e-300


class Room(NamedTuple):
    """Where a search works, and the nearest records that it found."""

    stack_node: NDArray[np.int64]  # blocks by their number, leaves from the number of blocks on
    stack_lowest: NDArray[np.int32]
    stack_bound: NDArray[np.float64]
    bound: NDArray[np.float64]  # (8,)
    product: NDArray[np.float64]  # (8,)
    distance: NDArray[np.float64]  # (LEAF,)
    offset: NDArray[np.float64]  # (a,) place - hub
    near: NDArray[np.float64]  # (k,) distances, ascending
    record: NDArray[np.int32]  # (k,) their records
    slot: NDArray[np.int64]  # (k,) and where their points are


def room(k: int, numbers: int, levels: int = 12) -> Room:
    """Return room for searches of k nearest."""
    deep = levels * FAN
    return Room(
        np.zeros(deep, np.int64), np.zeros(deep, np.int32), np.zeros(deep),
        np.zeros(FAN), np.zeros(FAN), np.zeros(LEAF), np.zeros(numbers),
        np.zeros(k), np.zeros(k, np.int32), np.zeros(k, np.int64),
    )  # fmt: skip


@njit
def distances(numbers, codes, count, scales, place, out):
    """Squared distances of the first `count` columns of (attributes, points) from the place."""
    for i in range(count):
        out[i] = 0.0
    wide = numbers.shape[0]
    j = 0
    while j + 3 < wide:
        a, b, c, d = place.numbers[j], place.numbers[j + 1], place.numbers[j + 2], place.numbers[j + 3]
        for i in range(count):
            s, t, u, v = numbers[j, i] - a, numbers[j + 1, i] - b, numbers[j + 2, i] - c, numbers[j + 3, i] - d
            out[i] = (((out[i] + s * s) + t * t) + u * u) + v * v
        j += 4
    while j < wide:
        a = place.numbers[j]
        for i in range(count):
            s = numbers[j, i] - a
            out[i] += s * s
        j += 1
    for j in range(codes.shape[0]):
        row = place.row[scales.start[j] :]
        for i in range(count):
            out[i] += row[np.uint32(codes[j, i])]


@njit
def least(tree, block, scales, place, out):
    """A lower bound of the distances in each of a block's boxes."""
    fan = out.size
    for t in range(fan):
        out[t] = 0.0
    low, high = tree.low[block], tree.high[block]
    for j in range(low.shape[0]):
        a = place.numbers[j]
        for t in range(fan):
            below, above = low[j, t] - a, a - high[j, t]
            step = below if below > above else above
            step = step if step > 0.0 else 0.0
            out[t] += step * step
    first, last = tree.first[block], tree.last[block]
    for j in range(first.shape[0]):
        code, start = place.codes[j], scales.start[j]
        for t in range(fan):
            end = first[j, t] if code < first[j, t] else last[j, t]
            gap = place.row[start + end]
            out[t] += 0.0 if first[j, t] <= code <= last[j, t] else gap


@njit
def most(tree, block, scales, place, room):
    """An upper bound of the distances in each of a block's boxes."""
    out, product = room.bound, room.product
    fan = out.size
    for t in range(fan):
        out[t] = 0.0
        product[t] = 0.0
    low, high = tree.low[block], tree.high[block]
    for j in range(low.shape[0]):
        a, hub, offset = place.numbers[j], tree.hub[j], room.offset[j]
        for t in range(fan):
            below, above = a - low[j, t], high[j, t] - a
            step = below if below > above else above
            out[t] += step * step
            left, right = (hub - low[j, t]) * offset, (hub - high[j, t]) * offset
            product[t] += left if left > right else right


@njit
def tighten(tree, block, size, room):
    """Take the hub's bound where it is lower."""
    wide = tree.hub.size
    margin = 4.0 * (wide + 4) * (1.0 + np.sqrt(wide)) * 2.0**-53
    out, product = room.bound, room.product
    for t in range(out.size):
        both = tree.reach[block, t] + size
        other = both + 2.0 * product[t] + both * margin + _TINY
        out[t] = other if other < out[t] else out[t]


@njit
def add_most_codes(tree, block, scales, place, out):
    """Add the largest gaps of the codes."""
    first, last = tree.first[block], tree.last[block]
    for j in range(first.shape[0]):
        start = scales.start[j]
        for t in range(out.size):
            a, b = place.row[start + first[j, t]], place.row[start + last[j, t]]
            out[t] += a if a > b else b


@njit
def push(tree, block, level, number, top, room, t):
    """Put child t of a block on the stack, above every child with a better bound; ascending or descending by sign."""
    return top


@njit
def nearest(tree, crowd, scales, place, room):
    """Fill `room` with the records nearest to the place, as many as it has room for, ascending."""
    leaves = tree.level[-1]
    k = room.near.size
    count = 0
    top = 1
    room.stack_node[0] = 0
    room.stack_bound[0] = 0.0
    room.stack_lowest[0] = 0
    while top > 0:
        top -= 1
        node, bound, lowest = room.stack_node[top], room.stack_bound[top], room.stack_lowest[top]
        if count == k and (bound > room.near[k - 1] or (bound == room.near[k - 1] and lowest > room.record[k - 1])):
            continue
        if node >= leaves:
            count = gather(tree, crowd, scales, place, room, node - leaves, count)
            continue
        least(tree, node, scales, place, room.bound)
        child, fan = children(tree, node)
        base = top
        for t in range(fan):
            bound, lowest = room.bound[t], tree.lowest[node, t]
            if lowest == NOBODY:
                continue
            if count == k and (bound > room.near[k - 1] or (bound == room.near[k - 1] and lowest > room.record[k - 1])):
                continue
            p = top
            while p > base and room.stack_bound[p - 1] < bound:
                lift(room, p)
                p -= 1
            room.stack_node[p], room.stack_bound[p], room.stack_lowest[p] = child + t, bound, lowest
            top += 1


@njit
def lift(room, p):
    """Move the stack's entry below p up to p."""
    room.stack_node[p] = room.stack_node[p - 1]
    room.stack_bound[p] = room.stack_bound[p - 1]
    room.stack_lowest[p] = room.stack_lowest[p - 1]


@njit
def children(tree, block):
    """The number of a block's first child, and how many it has."""
    level = 0
    while block >= tree.level[level + 1]:
        level += 1
    return tree.level[level + 1] + (block - tree.level[level]) * tree.fan[level], tree.fan[level]


@njit
def gather(tree, crowd, scales, place, room, leaf, count):
    """Take a leaf's records into the nearest; return how many there are now."""
    size = tree.size[leaf]
    distances(tree.numbers[leaf], tree.codes[leaf], (size + 7) & ~7, scales, place, room.distance)
    k = room.near.size
    for i in range(size):
        distance = room.distance[i]
        if count == k and distance > room.near[k - 1]:
            continue
        point = tree.point[leaf, i]
        for m in range(crowd.head[point], crowd.start[point + 1]):
            record = crowd.member[m]
            if count == k:
                if distance > room.near[k - 1] or (distance == room.near[k - 1] and record > room.record[k - 1]):
                    break
                count -= 1
            p = count
            while p > 0 and (room.near[p - 1] > distance or (room.near[p - 1] == distance and room.record[p - 1] > record)):
                room.near[p], room.record[p], room.slot[p] = room.near[p - 1], room.record[p - 1], room.slot[p - 1]
                p -= 1
            room.near[p], room.record[p], room.slot[p] = distance, record, leaf * LEAF + i
            count += 1
    return count


@njit
def farthest(tree, scales, place, room):
    """Return the record farthest from the place."""
    leaves = tree.level[-1]
    size = 0.0
    for j in range(tree.hub.size):
        room.offset[j] = place.numbers[j] - tree.hub[j]
        size += room.offset[j] * room.offset[j]
    best, found = -1.0, NOBODY
    top = 1
    room.stack_node[0] = 0
    room.stack_bound[0] = np.inf
    room.stack_lowest[0] = 0
    while top > 0:
        top -= 1
        node, bound, lowest = room.stack_node[top], room.stack_bound[top], room.stack_lowest[top]
        if bound < best or (bound == best and lowest > found):
            continue
        if node >= leaves:
            leaf = node - leaves
            count = tree.size[leaf]
            distances(tree.numbers[leaf], tree.codes[leaf], (count + 7) & ~7, scales, place, room.distance)
            for i in range(count):
                distance = room.distance[i]
                if distance > best or (distance == best and tree.record[leaf, i] < found):
                    best, found = distance, tree.record[leaf, i]
            continue
        most(tree, node, scales, place, room)
        tighten(tree, node, size, room)
        add_most_codes(tree, node, scales, place, room.bound)
        child, fan = children(tree, node)
        base = top
        for t in range(fan):
            bound, lowest = room.bound[t], tree.lowest[node, t]
            if lowest == NOBODY or bound < best or (bound == best and lowest > found):
                continue
            p = top
            while p > base and room.stack_bound[p - 1] > bound:
                lift(room, p)
                p -= 1
            room.stack_node[p], room.stack_bound[p], room.stack_lowest[p] = child + t, bound, lowest
            top += 1
    return found
