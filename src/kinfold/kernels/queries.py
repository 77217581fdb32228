"""Queries: the nearest and the farthest records of a place, found in box trees without looking at most points.

A box bounds the distances of its points by the ends of each attribute, added in the same order as a distance. Rounding
is monotone, so the bound holds for the computed distances to the last bit, and a box is left out only if it
holds no better point: also among ties, for a box knows its lowest record.

The farthest has a second bound. With h the hub, |x - q|² = |x - h|² + |q - h|² - 2 (x - h)·(q - h): the largest
|x - h|² in the box is known and the product is largest at a corner. It is another expression, so it gets a margin
above its rounding: with u = 2⁻⁵³, a numbers and A = |x - h|², B = |q - h|², each of the three sums errs by at most
(a + 3) u times the sum of its absolute terms, and those of the product are at most √a (A + B) / 2 (an end of a box
is an attribute of one of its points). So (A + B) · 4 (a + 4) (1 + √a) u covers everything but underflow, for which
1e-300 is added.

nearest    the records nearest to the place in one tree, ascending
farthest   the record farthest from it in all trees
tied       how far the nearest point of a tree is, and how many records are as near

Cost: a few leaves for the nearest in up to 8 attributes; the farthest looks at some 10 % of the leaves.
Ties: the lowest record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kinfold.kernels.box_tree import FAN, NOBODY, Tree, leave, shrink, slot_of
from kinfold.kernels.compiling import Flag, Int, Real, inlined, lean
from kinfold.kernels.scales import Place

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kinfold.kernels.folding import Folded

_DEEP = 128  # room on the stack: seven more nodes for each level, of which 2³¹ records have at most nine
_NARROW = 32  # codes of a box that are looked through for the nearest where gaps have no order; else it counts as 0

ASKED = np.dtype(
    [
        ("wanted", np.int64),  # how many of the nearest
        ("count", np.int64),  # how many are in `found`, before and after
        ("besides", np.int64),  # a record that is not to be found, or -1
        ("looked", np.int64),  # nodes looked at so far
    ],
    align=True,
)
AHEAD = np.dtype([("bound", np.float64), ("node", np.int32), ("lowest", np.int32)], align=True)
NEIGHBOUR = np.dtype(
    [("distance", np.float64), ("record", np.int32), ("leaf", np.int32), ("slot", np.int32)], align=True
)


class Query(NamedTuple):
    """Where a query starts, what is asked, where it works, and what it found."""

    place: Place
    asked: Any  # (1,) of ASKED
    stack: Any  # (_DEEP,) of AHEAD: nodes to look at, with their bounds and lowest records
    bound: NDArray[np.float64]  # (8,) bounds of a block's boxes
    product: NDArray[np.float64]  # (8,) their products with the hub
    distance: NDArray[np.float64]  # (cap,) of a leaf's points
    offset: NDArray[np.float64]  # (a,) place - hub
    found: Any  # (k,) of NEIGHBOUR: the nearest records, ascending, and where they are


def query_from(place: Place, k: int, cap: int) -> Query:
    """Return room to find the k nearest among leaves of at most `cap` points."""
    asked = np.zeros(1, ASKED)
    asked["besides"] = -1
    return Query(
        place, asked.view(np.recarray), np.zeros(_DEEP, AHEAD).view(np.recarray), np.zeros(FAN), np.zeros(FAN),
        np.zeros(cap), np.zeros(place.numbers.size), np.zeros(k, NEIGHBOUR).view(np.recarray),
    )  # fmt: skip


@inlined
def distances(tree: Tree, leaf: Int, place: Place, out: NDArray[np.float64]) -> None:
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
        start = place.start[j]
        for i in range(count):
            out[i] += place.row[start + c[leaf, j, i]]


@inlined
def _least(tree: Tree, block: Int, place: Place, bound: NDArray[np.float64]) -> None:
    """Bound the distances in each of a block's boxes from below."""
    ends, codes = tree.ends, tree.codes
    for t in range(FAN):
        bound[t] = 0.0
    for j in range(place.numbers.size):
        p, high = place.numbers[j], place.numbers.size + j
        for t in range(FAN):
            below, above = ends[block, j, t] - p, p - ends[block, high, t]
            step = below if below > above else above
            step = step if step > 0.0 else 0.0
            bound[t] += step * step
    for j in range(place.codes.size):
        code, start, last = place.codes[j], place.start[j], place.codes.size + j
        if code < 0:
            for t in range(FAN):
                bound[t] += _least_gap(place.row, start, codes[block, j, t], codes[block, last, t])
            continue
        for t in range(FAN):
            v, w = codes[block, j, t], codes[block, last, t]
            near = v if code < v else (w if code > w else code)
            bound[t] += place.row[start + near]


@lean
def _least_gap(row: NDArray[np.float64], start: Int, first: Int, last: Int) -> Real:
    """Return a gap that is no larger than that of any code from the first to the last."""
    if last - first > _NARROW:
        return 0.0
    least = row[start + first]
    for code in range(first + 1, last + 1):
        gap = row[start + code]
        least = gap if gap < least else least
    return least


@inlined
def _most(tree: Tree, block: Int, query: Query) -> None:
    """Bound the distances in each of a block's boxes from above, by its ends."""
    place, ends, bound, product = query.place, tree.ends, query.bound, query.product
    for t in range(FAN):
        bound[t] = 0.0
        product[t] = 0.0
    for j in range(place.numbers.size):
        p, high, hub, offset = place.numbers[j], place.numbers.size + j, tree.hub[j], query.offset[j]
        for t in range(FAN):
            v, w = ends[block, j, t], ends[block, high, t]
            below, above = p - v, w - p
            step = below if below > above else above
            bound[t] += step * step
            below, above = (hub - v) * offset, (hub - w) * offset
            product[t] += below if below > above else above


@inlined
def _tighten(tree: Tree, block: Int, query: Query, far: Real) -> None:
    """Take the hub's bound where it is lower, then add the codes; `far` is |place - hub|²."""
    place, codes, bound, product = query.place, tree.codes, query.bound, query.product
    wide = place.numbers.size
    margin = 4.0 * (wide + 4) * (1.0 + np.sqrt(wide)) * 2.0**-53
    for t in range(FAN):
        both = tree.ends[block, 2 * wide, t] + far
        other = both + 2.0 * product[t] + both * margin + 1e-300
        bound[t] = other if other < bound[t] else bound[t]
    for j in range(place.codes.size):
        start, last = place.start[j], place.codes.size + j
        for t in range(FAN):
            v, w = place.row[start + codes[block, j, t]], place.row[start + codes[block, last, t]]
            bound[t] += v if v > w else w


@inlined
def _set_out(tree: Tree, query: Query, s: Int, bound: Real) -> Int:
    """Put the root of tree s on the empty stack; return the stack's height."""
    query.stack[0].node = tree.root[s]
    query.stack[0].lowest = 0
    query.stack[0].bound = bound
    return 1


@lean
def _push(stack: Any, base: Int, top: Int, node: Int, lowest: Int, sign: Real) -> Int:
    """Put a node, whose bound is at `top` already, where it belongs from `base` on.

    By rising bound (sign 1) or falling (-1); returns the stack's height.
    """
    bound, p = stack[top].bound, top
    while p > base and sign * stack[p - 1].bound > sign * bound:
        stack[p] = stack[p - 1]
        p -= 1
    stack[p].bound = bound
    stack[p].node = node
    stack[p].lowest = lowest
    return top + 1


@lean
def nearest(tree: Tree, folded: Folded, query: Query, s: Int) -> None:
    """Find the records of tree s that are nearest to the place, as many as are wanted, ascending.

    Those that are in `found` already, `count` of them, only give way to what comes before them.
    """
    blocks, stack, bound, found = tree.child.size, query.stack, query.bound, query.found
    asked, at_lowest = query.asked[0], 2 * query.place.codes.size
    count, k = asked.count, asked.wanted
    top = _set_out(tree, query, s, 0.0)
    while top > 0:
        top -= 1
        node = stack[top].node
        if count == k and _behind(stack[top].bound, stack[top].lowest, found, k):
            continue
        asked.looked += 1
        if node >= blocks:
            distances(tree, node - blocks, query.place, query.distance)
            if count < k or _within(query.distance, tree.size[node - blocks], found[k - 1].distance) > 0:
                count = gather(tree, folded, node - blocks, query, count)
            continue
        _least(tree, node, query.place, bound)
        base = top
        for t in range(FAN):
            record = tree.codes[node, at_lowest, t]
            if record != NOBODY and not (count == k and _behind(bound[t], record, found, k)):
                stack[top].bound = bound[t]
                top = _push(stack, base, top, tree.child[node] + t, record, -1.0)
    asked.count = count


@inlined
def _behind(distance: Real, record: Int, found: Any, k: Int) -> Flag:
    """Whether this would come after the last of the k nearest."""
    last = found[k - 1]
    return distance > last.distance or (distance == last.distance and record > last.record)


@inlined
def _within(distance: NDArray[np.float64], size: Int, limit: Real) -> Int:
    """Count the points of a leaf, whose distances are known, that are not beyond the limit: of most leaves, none."""
    many = 0
    for i in range(size):
        many += distance[i] <= limit
    return many


@inlined
def gather(tree: Tree, folded: Folded, leaf: Int, query: Query, count: Int) -> Int:
    """Take a leaf's records, whose distances are known, among the `count` nearest; return how many there are now."""
    found, asked = query.found, query.asked[0]
    k, besides = asked.wanted, asked.besides
    for i in range(tree.size[leaf]):
        distance = query.distance[i]
        if count == k and distance > found[k - 1].distance:
            continue
        held = tree.held[leaf, i]
        head = folded.head[held.point] if held.many > 1 else 0
        for m in range(held.many):  # the leaf knows the first record: the others are far in memory
            record = held.record if m == 0 else folded.member[head + m]
            if record == besides:
                continue
            if count == k:
                if _behind(distance, record, found, k):
                    break
                count -= 1
            _insert(found, count, distance, record, leaf, i)
            count += 1
    return count


@inlined
def _put(found: Any, p: Int, distance: Real, record: Int, leaf: Int, slot: Int) -> None:
    """Write down what was found at place p."""
    found[p].distance = distance
    found[p].record = record
    found[p].leaf = leaf
    found[p].slot = slot


@inlined
def _insert(found: Any, p: Int, distance: Real, record: Int, leaf: Int, slot: Int) -> None:
    """Put a record among the p that were found, by distance, then by record."""
    while p > 0 and (
        found[p - 1].distance > distance or (found[p - 1].distance == distance and found[p - 1].record > record)
    ):
        found[p] = found[p - 1]
        p -= 1
    _put(found, p, distance, record, leaf, slot)


@inlined
def find(tree: Tree, folded: Folded, query: Query, p: Int, record: Int) -> None:
    """Put a record that is left, the lowest of its point, at place p of those found."""
    point = folded.point[record]
    leaf = tree.home[point]
    query.found[p].record = record
    query.found[p].leaf = leaf
    query.found[p].slot = slot_of(tree.held, leaf, point)


@lean
def farthest(tree: Tree, query: Query) -> Int:
    """Return the record of any tree that is farthest from the place."""
    blocks, stack, place, asked = tree.child.size, query.stack, query.place, query.asked[0]
    far, at_lowest = 0.0, 2 * place.codes.size
    for j in range(place.numbers.size):
        query.offset[j] = place.numbers[j] - tree.hub[j]
        far += query.offset[j] * query.offset[j]
    best, found = -1.0, NOBODY
    for s in range(tree.root.size):
        top = _set_out(tree, query, s, np.inf)
        while top > 0:
            top -= 1
            node = stack[top].node
            if stack[top].bound < best or (stack[top].bound == best and stack[top].lowest > found):
                continue
            asked.looked += 1
            if node >= blocks:
                distances(tree, node - blocks, place, query.distance)
                best, found = look(tree, node - blocks, query, best, found)
                continue
            _most(tree, node, query)
            _tighten(tree, node, query, far)
            base = top
            for t in range(FAN):
                bound, record = query.bound[t], tree.codes[node, at_lowest, t]
                if record != NOBODY and (bound > best or (bound == best and record < found)):
                    stack[top].bound = bound
                    top = _push(stack, base, top, tree.child[node] + t, record, 1.0)
    return np.int64(found)


@inlined
def look(tree: Tree, leaf: Int, query: Query, best: Real, found: Int) -> tuple[Real, Int]:
    """Compare the farthest so far with a leaf's points, whose distances are known."""
    for i in range(tree.size[leaf]):
        distance = query.distance[i]
        if distance > best or (distance == best and tree.held[leaf, i].record < found):
            best, found = distance, tree.held[leaf, i].record
    return best, found


@lean
def tied(tree: Tree, query: Query, s: Int, best: Real) -> tuple[Real, Int]:
    """Return how far the nearest point of tree s is, at most `best`, and how many records are as near."""
    blocks, stack, bound = tree.child.size, query.stack, query.bound
    many, at_lowest = 0, 2 * query.place.codes.size
    top = _set_out(tree, query, s, 0.0)
    while top > 0:
        top -= 1
        node = stack[top].node
        if stack[top].bound > best:
            continue
        if node >= blocks:
            leaf = node - blocks
            distances(tree, leaf, query.place, query.distance)
            if _within(query.distance, tree.size[leaf], best) > 0:
                best, many = _tie(tree, leaf, query, best, many)
            continue
        _least(tree, node, query.place, bound)
        base = top
        for t in range(FAN):
            if tree.codes[node, at_lowest, t] != NOBODY and bound[t] <= best:
                stack[top].bound = bound[t]
                top = _push(stack, base, top, tree.child[node] + t, 0, -1.0)
    return best, many


@inlined
def _tie(tree: Tree, leaf: Int, query: Query, best: Real, many: Int) -> tuple[Real, Int]:
    """Compare the nearest so far, and how many records are as near, with a leaf's points."""
    for i in range(tree.size[leaf]):
        if query.distance[i] < best:
            best, many = query.distance[i], 0
        if query.distance[i] == best:
            many += tree.held[leaf, i].many
    return best, many


@lean
def _sort_slots(found: Any, many: Int) -> None:
    """Sort by leaf and slot, falling: forgetting a slot then moves none that is still to come."""
    for i in range(1, many):
        distance, record, leaf, slot = found[i].distance, found[i].record, found[i].leaf, found[i].slot
        p = i
        while p > 0 and (found[p - 1].leaf < leaf or (found[p - 1].leaf == leaf and found[p - 1].slot < slot)):
            found[p] = found[p - 1]
            p -= 1
        _put(found, p, distance, record, leaf, slot)


@lean
def remove(tree: Tree, folded: Folded, query: Query, many: Int) -> Int:
    """Let the first `many` records that were found leave their tree; return how many points left with them."""
    found, gone = query.found, 0
    _sort_slots(found, many)
    for i in range(many):
        settled = i + 1 == many or found[i + 1].slot != found[i].slot or found[i + 1].leaf != found[i].leaf
        gone += leave(tree, folded, found[i].leaf, found[i].slot, settled)
    return gone


@inlined
def shrink_around(tree: Tree, query: Query, many: Int) -> None:
    """Shrink the boxes that the first `many` records found were in; they are in the order in which they left."""
    for i in range(many):
        up = i == 0 or query.found[i].leaf != query.found[i - 1].leaf
        if up:
            shrink(tree, np.int64(query.found[i].leaf), up, query.distance)
