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

from kinfold.kernels.boxes import FAN, NOBODY, Tree
from kinfold.kernels.compiling import Flag, Int, Real, inlined, inner
from kinfold.kernels.gaps import START, Place, Scales

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kinfold.kernels.crowd import Crowd

NODE, LOWEST = 0, 1  # columns of Room.stack
RECORD, LEAF, SLOT = 0, 1, 2  # columns of Room.found
_DEEP = 128  # room on the stack: seven more nodes for each level, of which 2³¹ records have at most nine


class Room(NamedTuple):
    """Where a search works, and the nearest records that it found."""

    stack: NDArray[np.int64]  # (.., 2) nodes to look at and their lowest records
    height: NDArray[np.float64]  # (..,) their bounds
    bound: NDArray[np.float64]  # (8,) bounds of a block's boxes
    product: NDArray[np.float64]  # (8,) their products with the hub
    distance: NDArray[np.float64]  # (cap,) of a leaf's points
    offset: NDArray[np.float64]  # (a,) place - hub
    looked: NDArray[np.int64]  # (1,) nodes looked at so far
    near: NDArray[np.float64]  # (k,) distances of the nearest, ascending
    found: NDArray[np.int64]  # (k, 3) their records, leaves and slots


def room(k: int, numbers: int, cap: int) -> Room:
    """Return room to search the k nearest among leaves of at most `cap` points."""
    return Room(
        np.zeros((_DEEP, 2), np.int64), np.zeros(_DEEP), np.zeros(FAN), np.zeros(FAN), np.zeros(cap),
        np.zeros(numbers), np.zeros(1, np.int64), np.zeros(k), np.zeros((k, 3), np.int64),
    )  # fmt: skip


@inlined
def distances(tree: Tree, leaf: Int, scales: Scales, place: Place, out: NDArray[np.float64]) -> None:
    """Squared distances of a leaf's points from the place, attribute after attribute.

    A part, not a call: to hand so many arrays over takes a quarter as long as the distances themselves.
    """
    x, c = tree.x, tree.c
    wide = x.shape[1]
    count = (tree.size[leaf] + 7) & ~7
    for i in range(count):
        out[i] = 0.0
    j = 0
    while j + 3 < wide:  # four attributes in one sweep: most of the time goes here
        p, q, r, s = place.numbers[j], place.numbers[j + 1], place.numbers[j + 2], place.numbers[j + 3]
        for i in range(count):
            e, f = x[leaf, j, i] - p, x[leaf, j + 1, i] - q
            g, h = x[leaf, j + 2, i] - r, x[leaf, j + 3, i] - s
            out[i] = (((out[i] + e * e) + f * f) + g * g) + h * h
        j += 4
    while j < wide:
        p = place.numbers[j]
        for i in range(count):
            e = x[leaf, j, i] - p
            out[i] += e * e
        j += 1
    for j in range(place.codes.size):
        start = scales.where[j, START]
        for i in range(count):
            out[i] += place.row[start + c[leaf, j, i]]


@inlined
def _least(tree: Tree, block: Int, scales: Scales, place: Place, bound: NDArray[np.float64]) -> None:
    """Bound the distances in each of a block's boxes from below."""
    ends, codes = tree.ends, tree.codes
    for t in range(bound.size):
        bound[t] = 0.0
    for j in range(place.numbers.size):
        p, high = place.numbers[j], place.numbers.size + j
        for t in range(bound.size):
            below, above = ends[block, j, t] - p, p - ends[block, high, t]
            step = below if below > above else above
            step = step if step > 0.0 else 0.0
            bound[t] += step * step
    for j in range(place.codes.size):
        code, start, last = place.codes[j], scales.where[j, START], place.codes.size + j
        for t in range(bound.size):
            near = codes[block, j, t] if code < codes[block, j, t] else min(code, codes[block, last, t])
            bound[t] += place.row[start + near]


@inlined
def _most(tree: Tree, block: Int, place: Place, room: Room) -> None:
    """Bound the distances in each of a block's boxes from above, by its ends."""
    ends, bound, product = tree.ends, room.bound, room.product
    for t in range(bound.size):
        bound[t] = 0.0
        product[t] = 0.0
    for j in range(place.numbers.size):
        p, high, hub, offset = place.numbers[j], place.numbers.size + j, tree.hub[j], room.offset[j]
        for t in range(bound.size):
            v, w = ends[block, j, t], ends[block, high, t]
            below, above = p - v, w - p
            step = below if below > above else above
            bound[t] += step * step
            below, above = (hub - v) * offset, (hub - w) * offset
            product[t] += below if below > above else above


@inlined
def _tighten(tree: Tree, block: Int, scales: Scales, place: Place, room: Room, far: Real) -> None:
    """Take the hub's bound where it is lower, then add the codes; `far` is |place - hub|²."""
    ends, codes, bound = tree.ends, tree.codes, room.bound
    product = room.product
    wide = place.numbers.size
    margin = 4.0 * (wide + 4) * (1.0 + np.sqrt(wide)) * 2.0**-53
    for t in range(bound.size):
        both = ends[block, 2 * wide, t] + far
        other = both + 2.0 * product[t] + both * margin + 1e-300
        bound[t] = other if other < bound[t] else bound[t]
    for j in range(place.codes.size):
        start, last = scales.where[j, START], place.codes.size + j
        for t in range(bound.size):
            v, w = place.row[start + codes[block, j, t]], place.row[start + codes[block, last, t]]
            bound[t] += v if v > w else w


@inner
def nearest(tree: Tree, crowd: Crowd, scales: Scales, place: Place, room: Room) -> None:
    """Fill `room` with the records nearest to the place, as many as it has room for, ascending."""
    blocks, k = tree.child.size, room.near.size
    lowest = tree.codes.shape[1] - 1
    count = np.int64(0)
    top = 1
    room.stack[0, NODE] = room.stack[0, LOWEST] = 0
    room.height[0] = 0.0
    while top > 0:
        top -= 1
        node = room.stack[top, NODE]
        if count == k and _behind(room.height[top], room.stack[top, LOWEST], room):
            continue
        room.looked[0] += 1
        if node >= blocks:
            distances(tree, node - blocks, scales, place, room.distance)
            if count < k or _within(room, tree.size[node - blocks]) > 0:
                count = gather(tree, crowd, node - blocks, room, count)
            continue
        _least(tree, node, scales, place, room.bound)
        base = top
        for t in range(FAN):
            record = np.int64(tree.codes[node, lowest, t])
            if record != NOBODY and not (count == k and _behind(room.bound[t], record, room)):
                room.height[top] = room.bound[t]
                room.stack[top, NODE], room.stack[top, LOWEST] = tree.child[node] + t, record
                _sift(room, base, top, -1.0)
                top += 1


@inlined
def _behind(distance: Real, record: Int, room: Room) -> Flag:
    """Whether this would come after the last of the nearest."""
    last = room.near.size - 1
    return distance > room.near[last] or (distance == room.near[last] and record > room.found[last, RECORD])


@inlined
def _within(room: Room, size: Int) -> Int:
    """Count the points of a leaf, whose distances are known, that may be among the nearest: of most leaves, none."""
    limit, many = room.near[room.near.size - 1], 0
    for i in range(size):
        many += room.distance[i] <= limit
    return many


@inner
def _sift(room: Room, base: Int, top: Int, sign: Real) -> None:
    """Let the entry at `top` sink to its place from `base` on, by rising bound (sign 1) or falling (-1)."""
    bound, node, lowest = room.height[top], room.stack[top, NODE], room.stack[top, LOWEST]
    while top > base and sign * room.height[top - 1] > sign * bound:
        room.height[top] = room.height[top - 1]
        room.stack[top, NODE] = room.stack[top - 1, NODE]
        room.stack[top, LOWEST] = room.stack[top - 1, LOWEST]
        top -= 1
    room.height[top] = bound
    room.stack[top, NODE] = node
    room.stack[top, LOWEST] = lowest


@inlined
def gather(tree: Tree, crowd: Crowd, leaf: Int, room: Room, count: Int) -> Int:
    """Take a leaf's records, whose distances are known, among the `count` nearest; return how many there are now."""
    k, codes = room.near.size, tree.c.shape[1] - 3
    for i in range(tree.size[leaf]):
        distance = room.distance[i]
        if count == k and distance > room.near[k - 1]:
            continue
        head = crowd.head[tree.c[leaf, codes, i]] if tree.c[leaf, codes + 2, i] > 1 else 0
        for m in range(tree.c[leaf, codes + 2, i]):  # the leaf knows the first record: the others are far in memory
            record = np.int64(tree.c[leaf, codes + 1, i] if m == 0 else crowd.member[head + m])
            if count == k:
                if _behind(distance, record, room):
                    break
                count -= 1
            _insert(room, count, distance, record, leaf, i)
            count += 1
    return count


@inlined
def _insert(room: Room, p: Int, distance: Real, record: Int, leaf: Int, slot: Int) -> None:
    near, found = room.near, room.found
    while p > 0 and (near[p - 1] > distance or (near[p - 1] == distance and found[p - 1, RECORD] > record)):
        near[p] = near[p - 1]
        for f in range(3):
            found[p, f] = found[p - 1, f]
        p -= 1
    near[p] = distance
    found[p, RECORD] = record
    found[p, LEAF] = leaf
    found[p, SLOT] = slot


@inner
def farthest(tree: Tree, scales: Scales, place: Place, room: Room) -> Int:
    """Return the record farthest from the place."""
    blocks, lowest = tree.child.size, tree.codes.shape[1] - 1
    far = 0.0
    for j in range(place.numbers.size):
        room.offset[j] = place.numbers[j] - tree.hub[j]
        far += room.offset[j] * room.offset[j]
    best, found = -1.0, np.int64(NOBODY)
    top = 1
    room.stack[0, NODE] = room.stack[0, LOWEST] = 0
    room.height[0] = np.inf
    while top > 0:
        top -= 1
        node = room.stack[top, NODE]
        if room.height[top] < best or (room.height[top] == best and room.stack[top, LOWEST] > found):
            continue
        room.looked[0] += 1
        if node >= blocks:
            distances(tree, node - blocks, scales, place, room.distance)
            best, found = look(tree, node - blocks, room, best, found)
            continue
        _most(tree, node, place, room)
        _tighten(tree, node, scales, place, room, far)
        base = top
        for t in range(FAN):
            bound, record = room.bound[t], np.int64(tree.codes[node, lowest, t])
            if record != NOBODY and (bound > best or (bound == best and record < found)):
                room.height[top] = room.bound[t]
                room.stack[top, NODE], room.stack[top, LOWEST] = tree.child[node] + t, record
                _sift(room, base, top, 1.0)
                top += 1
    return found


@inlined
def look(tree: Tree, leaf: Int, room: Room, best: Real, found: Int) -> tuple[Real, Int]:
    """Compare the farthest so far with a leaf's points, whose distances are known."""
    lowest = tree.c.shape[1] - 2
    for i in range(tree.size[leaf]):
        distance = room.distance[i]
        if distance > best or (distance == best and tree.c[leaf, lowest, i] < found):
            best, found = distance, np.int64(tree.c[leaf, lowest, i])
    return best, found
