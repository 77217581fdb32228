"""Queries: the records nearest to a place or farthest from it, from box trees, without visiting most points.

A box bounds the distances of its points by the ends of each attribute, summed in the order of a distance. Rounding is
monotone, so the bound holds for the computed distances to the last bit. A box is skipped only if it holds no better
point, also among ties, because a box knows its lowest record.

The farthest has a second bound. With h the hub nearest to q, |x - q|² = |x - h|² + |q - h|² - 2 (x - h)·(q - h): the
largest |x - h|² in the box is known and the product is largest at a corner. The nearer the hub, the smaller the product
and what is lost by taking the corner; most outer points of a mixture are near one of some hubs. It is another
expression, so it gets a margin above its rounding: with u = 2⁻⁵³, a numbers and A = |x - h|², B = |q - h|², each of the
three sums errs by at most (a + 3) u times the sum of its absolute terms, and those of the product are at most
√a (A + B) / 2 (an end of a box is an attribute of one of its points). So (A + B) · 4 (a + 4) (1 + √a) u covers
everything but underflow, for which 1e-300 is added.

Cost: a few leaves for the nearest in up to 8 attributes, some 10 % of the leaves for the farthest.
Ties: the lowest record.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kinfold.kernels.box_tree import FAN, NO_RECORD, Tree, find_slot, remove_record, shrink
from kinfold.kernels.compiling import Flag, Floats, Int, Ints, Real, Rows, inlined, lean
from kinfold.kernels.records import Folded, Place

_STACK_SIZE = 128  # room on the stack: seven more nodes for each level, of which 2³¹ records have at most nine
_MAX_CODES_SCANNED = 32  # of a box, for the nearest code if distances have no order; more codes count as 0

REQUEST = np.dtype(
    [
        ("wanted", np.int64),  # number of nearest records
        ("count", np.int64),  # records in `nearest`, before and after
        ("excluded", np.int64),  # a record to leave out, or -1
        ("visited", np.int64),  # nodes visited so far
        ("far", np.int64),  # of these, by queries for the farthest
    ],
    align=True,
)
AHEAD = np.dtype([("bound", np.float64), ("node", np.int32), ("lowest", np.int32)], align=True)
NEIGHBOUR = np.dtype(
    [("distance", np.float64), ("record", np.int32), ("leaf", np.int32), ("slot", np.int32)], align=True
)


class Query(NamedTuple):
    """The start of a query, its limits, its workspace and its result."""

    place: Place
    request: Any  # (1,) of REQUEST
    stack: Any  # (_STACK_SIZE,) of AHEAD: nodes to visit, with bounds and lowest records
    bound: Floats  # (8,) bounds of a block's boxes
    product: Floats  # (8,) their products with the hub
    distance: Floats  # (cap,) of a leaf's points
    offset: Floats  # (a,) place - its hub
    nearest: Any  # (k,) of NEIGHBOUR: the nearest records, ascending


def make_query(place: Place, k: int, cap: int) -> Query:
    """Return room to find the k nearest among leaves of at most `cap` points."""
    request = np.zeros(1, REQUEST)
    request["excluded"] = -1
    return Query(
        place, request.view(np.recarray), np.zeros(_STACK_SIZE, AHEAD).view(np.recarray), np.zeros(FAN), np.zeros(FAN),
        np.zeros(cap), np.zeros(place.numbers.size), np.zeros(k, NEIGHBOUR).view(np.recarray),
    )  # fmt: skip


@inlined
def distances(tree: Tree, leaf: Int, place: Place, out: Floats) -> None:
    """Compute the squared distances of a leaf's points from the place, attribute by attribute.

    Inlined: passing so many arrays takes a quarter of the time of the distances.
    """
    x, c = tree.x, tree.c
    wide = x.shape[1]
    count = (tree.size[leaf] + 7) & ~7
    for i in range(count):
        out[i] = 0.0
    j = 0
    while j + 3 < wide:  # four attributes in one loop, which takes most of the time
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
def _least(tree: Tree, block: Int, place: Place, bound: Floats) -> None:
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
def _least_gap(row: Floats, start: Int, first: Int, last: Int) -> Real:
    """Return a lower bound on the distances of the codes from the first to the last."""
    if last - first > _MAX_CODES_SCANNED:
        return 0.0
    least = row[start + first]
    for code in range(first + 1, last + 1):
        gap = row[start + code]
        least = gap if gap < least else least
    return least


@inlined
def _most(tree: Tree, block: Int, query: Query, h: Int) -> None:
    """Bound the distances in each of a block's boxes from above, by its ends."""
    place, ends, bound, product = query.place, tree.ends, query.bound, query.product
    for t in range(FAN):
        bound[t] = 0.0
        product[t] = 0.0
    for j in range(place.numbers.size):
        p, high, hub, offset = place.numbers[j], place.numbers.size + j, tree.hub[h, j], query.offset[j]
        for t in range(FAN):
            v, w = ends[block, j, t], ends[block, high, t]
            below, above = p - v, w - p
            step = below if below > above else above
            bound[t] += step * step
            below, above = (hub - v) * offset, (hub - w) * offset
            product[t] += below if below > above else above


@inlined
def _tighten(tree: Tree, block: Int, query: Query, h: Int, hub_distance: Real) -> None:
    """Take the bound by the hub if it is lower, then add the codes; `hub_distance` is |place - hub h|²."""
    place, codes, bound, product = query.place, tree.codes, query.bound, query.product
    wide = place.numbers.size
    margin = 4.0 * (wide + 4) * (1.0 + np.sqrt(wide)) * 2.0**-53
    for t in range(FAN):
        both = tree.ends[block, 2 * wide + h, t] + hub_distance
        other = both + 2.0 * product[t] + both * margin + 1e-300
        bound[t] = other if other < bound[t] else bound[t]
    for j in range(place.codes.size):
        start, last = place.start[j], place.codes.size + j
        for t in range(FAN):
            v, w = place.row[start + codes[block, j, t]], place.row[start + codes[block, last, t]]
            bound[t] += v if v > w else w


@inlined
def _start_at_root(tree: Tree, query: Query, s: Int, bound: Real) -> Int:
    """Put the root of tree s on the empty stack; return the stack's height."""
    query.stack[0].node = tree.root[s]
    query.stack[0].lowest = 0
    query.stack[0].bound = bound
    return 1


@lean
def _push(stack: Any, base: Int, top: Int, node: Int, lowest: Int, sign: Real) -> Int:
    """Insert a node, whose bound is at `top`, into the stack from `base` on; return the stack's height.

    By rising bound (sign 1) or falling (-1).
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
def find_nearest(tree: Tree, folded: Folded, query: Query, s: Int) -> None:
    """Find the records of tree s that are nearest to the place, as many as are wanted, ascending.

    The `count` records nearest before stay unless nearer ones replace them.
    """
    blocks, stack, bound, nearest = tree.child.size, query.stack, query.bound, query.nearest
    request, at_lowest = query.request[0], 2 * query.place.codes.size
    count, k = request.count, request.wanted
    top = _start_at_root(tree, query, s, 0.0)
    while top > 0:
        top -= 1
        node = stack[top].node
        if count == k and _comes_after(stack[top].bound, stack[top].lowest, nearest, k):
            continue
        request.visited += 1
        if node >= blocks:
            distances(tree, node - blocks, query.place, query.distance)
            if count < k or _count_within(query.distance, tree.size[node - blocks], nearest[k - 1].distance) > 0:
                count = collect_nearest(tree, folded, node - blocks, query, count)
            continue
        _least(tree, node, query.place, bound)
        base = top
        for t in range(FAN):
            record = tree.codes[node, at_lowest, t]
            if record != NO_RECORD and not (count == k and _comes_after(bound[t], record, nearest, k)):
                stack[top].bound = bound[t]
                top = _push(stack, base, top, tree.child[node] + t, record, -1.0)
    request.count = count


@inlined
def _comes_after(distance: Real, record: Int, nearest: Any, k: Int) -> Flag:
    """Whether a record comes after the last of the k nearest."""
    last = nearest[k - 1]
    return distance > last.distance or (distance == last.distance and record > last.record)


@inlined
def _count_within(distance: Floats, size: Int, limit: Real) -> Int:
    """Count the points of a leaf within the limit; most leaves have none."""
    many = 0
    for i in range(size):
        many += distance[i] <= limit
    return many


@inlined
def collect_nearest(tree: Tree, folded: Folded, leaf: Int, query: Query, count: Int) -> Int:
    """Insert a leaf's records, whose distances are known, into the `count` nearest; return how many there are now."""
    nearest, request = query.nearest, query.request[0]
    k, excluded = request.wanted, request.excluded
    for i in range(tree.size[leaf]):
        distance = query.distance[i]
        if count == k and distance > nearest[k - 1].distance:
            continue
        held = tree.held[leaf, i]
        head = folded.head[held.point] if held.many > 1 else 0
        for m in range(held.many):  # the leaf holds the first record; the others are elsewhere in memory
            record = held.record if m == 0 else folded.member[head + m]
            if record == excluded:
                continue
            if count == k:
                if _comes_after(distance, record, nearest, k):
                    break
                count -= 1
            _insert(nearest, count, distance, record, leaf, i)
            count += 1
    return count


@inlined
def _write_neighbour(nearest: Any, p: Int, distance: Real, record: Int, leaf: Int, slot: Int) -> None:
    """Write a record to place p of the nearest."""
    nearest[p].distance = distance
    nearest[p].record = record
    nearest[p].leaf = leaf
    nearest[p].slot = slot


@inlined
def _insert(nearest: Any, p: Int, distance: Real, record: Int, leaf: Int, slot: Int) -> None:
    """Insert a record into the p nearest, by distance, then by record."""
    while p > 0 and (
        nearest[p - 1].distance > distance or (nearest[p - 1].distance == distance and nearest[p - 1].record > record)
    ):
        nearest[p] = nearest[p - 1]
        p -= 1
    _write_neighbour(nearest, p, distance, record, leaf, slot)


@inlined
def locate(tree: Tree, folded: Folded, query: Query, p: Int, record: Int) -> None:
    """Put a remaining record, the lowest of its point, at place p of the nearest."""
    point = folded.point[record]
    leaf = tree.home[point]
    query.nearest[p].record = record
    query.nearest[p].leaf = leaf
    query.nearest[p].slot = find_slot(tree.held, leaf, point)


@inlined
def _find_hub(tree: Tree, query: Query) -> tuple[Int, Real]:
    """Return the hub nearest to the place and its squared distance, and keep the offset from it."""
    nearest, least = 0, np.inf
    for h in range(tree.hub.shape[0]):
        distance = 0.0
        for j in range(tree.hub.shape[1]):
            step = query.place.numbers[j] - tree.hub[h, j]
            distance += step * step
        if distance < least:
            nearest, least = h, distance
    for j in range(tree.hub.shape[1]):
        query.offset[j] = query.place.numbers[j] - tree.hub[nearest, j]
    return nearest, least


@lean
def find_farthest(tree: Tree, query: Query) -> Int:
    """Return the record of any tree that is farthest from the place."""
    blocks, stack, place, request = tree.child.size, query.stack, query.place, query.request[0]
    at_lowest, before = 2 * place.codes.size, request.visited
    h, hub_distance = _find_hub(tree, query)
    best, farthest = -1.0, NO_RECORD
    for s in range(tree.root.size):
        top = _start_at_root(tree, query, s, np.inf)
        while top > 0:
            top -= 1
            node = stack[top].node
            if stack[top].bound < best or (stack[top].bound == best and stack[top].lowest > farthest):
                continue
            request.visited += 1
            if node >= blocks:
                distances(tree, node - blocks, place, query.distance)
                best, farthest = update_farthest(tree, node - blocks, query, best, farthest)
                continue
            _most(tree, node, query, h)
            _tighten(tree, node, query, h, hub_distance)
            base = top
            for t in range(FAN):
                bound, record = query.bound[t], tree.codes[node, at_lowest, t]
                if record != NO_RECORD and (bound > best or (bound == best and record < farthest)):
                    stack[top].bound = bound
                    top = _push(stack, base, top, tree.child[node] + t, record, 1.0)
    request.far += request.visited - before
    return np.int64(farthest)


@inlined
def update_farthest(tree: Tree, leaf: Int, query: Query, best: Real, farthest: Int) -> tuple[Real, Int]:
    """Compare the farthest record so far with a leaf's points, whose distances are known."""
    for i in range(tree.size[leaf]):
        distance = query.distance[i]
        if distance > best or (distance == best and tree.held[leaf, i].record < farthest):
            best, farthest = distance, tree.held[leaf, i].record
    return best, farthest


@lean
def search_after(
    tree: Tree, query: Query, s: Int, code: Rows, span: Ints, last: tuple[Real, Int], best: tuple[Real, Int]
) -> tuple[Real, Int]:
    """Return the first record of tree s after `last` whose code is in a span, or `best` if that comes before it.

    Both are a distance and a record.
    """
    blocks, stack, bound, at_lowest = tree.child.size, query.stack, query.bound, 2 * query.place.codes.size
    least, first = best
    top = _start_at_root(tree, query, s, 0.0)
    while top > 0:
        top -= 1
        node = stack[top].node
        if stack[top].bound > least or (stack[top].bound == least and stack[top].lowest > first):
            continue
        if node >= blocks:
            leaf = node - blocks
            distances(tree, leaf, query.place, query.distance)
            for i in range(tree.size[leaf]):
                distance, record = query.distance[i], np.int64(tree.held[leaf, i].record)
                if distance > least or (distance == least and record > first):
                    continue
                after = distance > last[0] or (distance == last[0] and record > last[1])
                if after and _is_within(span, code[record]):
                    least, first = distance, record
            continue
        _least(tree, node, query.place, bound)
        base = top
        for t in range(FAN):
            record = np.int64(tree.codes[node, at_lowest, t])
            if record != NO_RECORD and (bound[t] < least or (bound[t] == least and record < first)):
                stack[top].bound = bound[t]
                top = _push(stack, base, top, tree.child[node] + t, record, -1.0)
    return least, first


@inlined
def _is_within(span: Ints, code: Int) -> Flag:
    """Whether a code is in one of the spans."""
    within = False
    for i in range(span.shape[0]):
        within |= span[i, 0] <= code <= span[i, 1]
    return within


@lean
def count_tied(tree: Tree, query: Query, s: Int, best: Real) -> tuple[Real, Int]:
    """Return the distance of the nearest point of tree s, at most `best`, and how many records are as near."""
    blocks, stack, bound = tree.child.size, query.stack, query.bound
    many, at_lowest = 0, 2 * query.place.codes.size
    top = _start_at_root(tree, query, s, 0.0)
    while top > 0:
        top -= 1
        node = stack[top].node
        if stack[top].bound > best:
            continue
        if node >= blocks:
            leaf = node - blocks
            distances(tree, leaf, query.place, query.distance)
            if _count_within(query.distance, tree.size[leaf], best) > 0:
                best, many = _update_tied(tree, leaf, query, best, many)
            continue
        _least(tree, node, query.place, bound)
        base = top
        for t in range(FAN):
            if tree.codes[node, at_lowest, t] != NO_RECORD and bound[t] <= best:
                stack[top].bound = bound[t]
                top = _push(stack, base, top, tree.child[node] + t, 0, -1.0)
    return best, many


@inlined
def _update_tied(tree: Tree, leaf: Int, query: Query, best: Real, many: Int) -> tuple[Real, Int]:
    """Compare the nearest point so far, and the number of its ties, with a leaf's points."""
    for i in range(tree.size[leaf]):
        if query.distance[i] < best:
            best, many = query.distance[i], 0
        if query.distance[i] == best:
            many += tree.held[leaf, i].many
    return best, many


@lean
def _sort_slots(nearest: Any, many: Int) -> None:
    """Sort by leaf and slot, falling, so that removing a slot moves none that is still to be removed."""
    for i in range(1, many):
        distance, record, leaf, slot = nearest[i].distance, nearest[i].record, nearest[i].leaf, nearest[i].slot
        p = i
        while p > 0 and (nearest[p - 1].leaf < leaf or (nearest[p - 1].leaf == leaf and nearest[p - 1].slot < slot)):
            nearest[p] = nearest[p - 1]
            p -= 1
        _write_neighbour(nearest, p, distance, record, leaf, slot)


@lean
def remove(tree: Tree, folded: Folded, query: Query, many: Int) -> Int:
    """Remove the first `many` nearest records from their tree; return how many points are removed with them."""
    nearest, gone = query.nearest, 0
    _sort_slots(nearest, many)
    for i in range(many):
        settled = i + 1 == many or nearest[i + 1].slot != nearest[i].slot or nearest[i + 1].leaf != nearest[i].leaf
        gone += remove_record(tree, folded, nearest[i].leaf, nearest[i].slot, settled)
    return gone


@inlined
def shrink_around(tree: Tree, query: Query, many: Int) -> None:
    """Shrink the boxes of the first `many` nearest records, in the order of their removal."""
    for i in range(many):
        up = i == 0 or query.nearest[i].leaf != query.nearest[i - 1].leaf
        if up:
            shrink(tree, np.int64(query.nearest[i].leaf), up, query.distance)
