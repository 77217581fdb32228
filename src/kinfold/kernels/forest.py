"""A forest: one k-d tree for each stratum of the records, with boxes that shrink as records leave.

The records of a stratum are halved by rank along their widest number until a leaf holds at most 16. The nodes of a tree
are numbered as in a heap: 1 is the root, 2i and 2i+1 are the children of i. A node keeps the ends of each number, its
lowest record, and how many records are left. Codes are not bounded: for the nearest they count 0 until a
leaf is read, for the farthest as much as they can.

A bound is added up in the same order as a distance, and rounding is monotone, so it holds to the last bit: a box is
left out only if it holds no better record, ties included. The farthest has a second bound, by the hub h, a point near
the centre: |x - q|² = |x - h|² + |q - h|² + 2 (h - x)·(q - h), where the largest |x - h|² of a box is known and the
product is largest at a corner. It rounds differently, so it gets the margin that `kernels.search` derives.

Cost: O(n log n) to grow, O(log n) to take a record away.   Ties: the lowest record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kinfold.kernels.compiling import Flag, Int, Real, inner
from kinfold.kernels.mixed import Mixed, code_gap

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAF = 16
NOBODY = np.int32(2**31 - 1)
DEEP = 64


class Forest(NamedTuple):
    """The trees, end to end."""

    first: NDArray[np.int64]  # (k + 1,) where the records of each stratum start
    base: NDArray[np.int64]  # (k,) where the nodes of each tree start
    leaves: NDArray[np.int64]  # (k,)
    record: NDArray[np.int32]  # (n,) by stratum and leaf, those that are left first
    x: NDArray[np.float64]  # (n, a) their numbers
    low: NDArray[np.float64]  # (nodes, a)
    high: NDArray[np.float64]
    lowest: NDArray[np.int32]  # (nodes,)
    left: NDArray[np.int32]  # (nodes,) how many records
    reach: NDArray[np.float64]  # (nodes,) largest squared distance from the hub
    away: NDArray[np.float64]  # (n,) squared distance from the hub, in the order of `record`
    hub: NDArray[np.float64]  # (a,)
    offset: NDArray[np.float64]  # (a + 1,) room: the place searched from, less the hub; its squared length
    stack: NDArray[np.int64]  # room
    bound: NDArray[np.float64]
    found: NDArray[np.int64]  # (3,) the record found, its place in `record`, and its leaf's node


def planted(strata: list[NDArray[np.int32]], numbers: int) -> Forest:
    """Return room for the trees of these strata."""
    sizes = np.array([len(stratum) for stratum in strata])
    leaves = np.array([1 << max(0, int(np.ceil(np.log2(max(size, 1) / LEAF)))) for size in sizes], np.int64)
    nodes = int(2 * leaves.sum())
    return Forest(
        first=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        base=np.concatenate([[0], np.cumsum(2 * leaves)])[:-1].astype(np.int64),
        leaves=leaves,
        record=np.concatenate(strata).astype(np.int32),
        x=np.zeros((int(sizes.sum()), numbers)),
        low=np.zeros((nodes, numbers)),
        high=np.zeros((nodes, numbers)),
        lowest=np.zeros(nodes, np.int32),
        left=np.zeros(nodes, np.int32),
        reach=np.zeros(nodes),
        away=np.zeros(int(sizes.sum())),
        hub=np.zeros(numbers),
        offset=np.zeros(numbers + 1),
        stack=np.zeros(DEEP, np.int64),
        bound=np.zeros(DEEP),
        found=np.zeros(3, np.int64),
    )


def example() -> Forest:
    """Return the smallest forest, to compile for."""
    return planted([np.zeros(1, np.int32)], 1)


@inner
def select(key: NDArray[np.float64], order: NDArray[np.int32], begin: Int, end: Int, rank: Int) -> None:
    """Put the keys below that of this rank before it and those above it after; `order` goes along."""
    low, high = begin, end - 1
    while low < high:
        pivot = key[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while key[i] < pivot:
                i += 1
            while pivot < key[j]:
                j -= 1
            if i <= j:
                key[i], key[j] = key[j], key[i]
                order[i], order[j] = order[j], order[i]
                i, j = i + 1, j - 1
        if rank <= j:
            high = j
        elif rank >= i:
            low = i
        else:
            return


@inner
def widest(m: Mixed, record: NDArray[np.int32], begin: Int, end: Int) -> Int:
    """The number that spans most among some records; a sample of them says enough."""
    best, span = 0, -1.0
    step = max(1, (end - begin) // 64)
    for j in range(m.numbers.shape[1]):
        low, high = np.inf, -np.inf
        for i in range(begin, end, step):
            low = min(low, m.numbers[record[i], j])
            high = max(high, m.numbers[record[i], j])
        if high - low > span:
            best, span = j, high - low
    return best


@inner
def grow(f: Forest, m: Mixed, s: Int, key: NDArray[np.float64]) -> None:
    """Sort the records of a stratum into leaves, and measure the boxes."""
    first, size, leaves = f.first[s], f.first[s + 1] - f.first[s], f.leaves[s]
    width = leaves
    while width > 1 and m.numbers.shape[1] > 0:
        for leaf in range(0, leaves, width):
            begin, end = first + size * leaf // leaves, first + size * (leaf + width) // leaves
            j = widest(m, f.record, begin, end)
            for i in range(begin, end):
                key[i] = m.numbers[f.record[i], j]
            select(key, f.record, begin, end, first + size * (leaf + width // 2) // leaves)
        width //= 2
    for i in range(first, first + size):
        f.x[i] = m.numbers[f.record[i]]
        f.away[i] = 0.0
        for j in range(f.hub.size):
            step = f.x[i, j] - f.hub[j]
            f.away[i] += step * step
    for leaf in range(leaves):
        f.left[f.base[s] + leaves + leaf] = size * (leaf + 1) // leaves - size * leaf // leaves
        measure_leaf(f, s, leaves + leaf)
    for node in range(leaves - 1, 0, -1):
        measure(f, f.base[s], node)


@inner
def begin_of(f: Forest, s: Int, node: Int) -> Int:
    """Where the records of a leaf's node start."""
    leaves = f.leaves[s]
    return f.first[s] + (f.first[s + 1] - f.first[s]) * (node - leaves) // leaves


@inner
def measure_leaf(f: Forest, s: Int, node: Int) -> None:
    """Measure the box of a leaf again."""
    begin, at = begin_of(f, s, node), f.base[s] + node
    f.lowest[at] = NOBODY
    f.reach[at] = 0.0
    for j in range(f.x.shape[1]):
        f.low[at, j], f.high[at, j] = np.inf, -np.inf
    for i in range(begin, begin + f.left[at]):
        f.lowest[at] = min(f.lowest[at], f.record[i])
        f.reach[at] = max(f.reach[at], f.away[i])
        for j in range(f.x.shape[1]):
            f.low[at, j] = min(f.low[at, j], f.x[i, j])
            f.high[at, j] = max(f.high[at, j], f.x[i, j])


@inner
def measure(f: Forest, base: Int, node: Int) -> None:
    """Measure the box of a node again from its children."""
    at, left, right = base + node, base + 2 * node, base + 2 * node + 1
    f.left[at] = f.left[left] + f.left[right]
    f.lowest[at] = min(f.lowest[left], f.lowest[right])
    f.reach[at] = max(f.reach[left], f.reach[right])
    for j in range(f.x.shape[1]):
        f.low[at, j] = min(f.low[left, j], f.low[right, j])
        f.high[at, j] = max(f.high[left, j], f.high[right, j])


@inner
def take(f: Forest, s: Int) -> None:
    """Take the record that was found last, in stratum s, away."""
    at, node = f.found[1], f.found[2]
    last = begin_of(f, s, node) + f.left[f.base[s] + node] - 1
    f.record[at] = f.record[last]
    f.x[at] = f.x[last]
    f.away[at] = f.away[last]
    f.left[f.base[s] + node] -= 1
    measure_leaf(f, s, node)
    node //= 2
    while node > 0:
        measure(f, f.base[s], node)
        node //= 2


@inner
def gap(f: Forest, m: Mixed, i: Int, numbers: NDArray[np.float64], codes: NDArray[np.int32]) -> Real:
    """Squared distance of the record at place i."""
    total = 0.0
    for j in range(numbers.size):
        step = f.x[i, j] - numbers[j]
        total += step * step
    for j in range(codes.size):
        total += code_gap(m, j, m.codes[f.record[i], j], codes[j])
    return total


@inner
def least(f: Forest, at: Int, numbers: NDArray[np.float64]) -> Real:
    """No record of the node is nearer than this."""
    total = 0.0
    for j in range(numbers.size):
        step = max(f.low[at, j] - numbers[j], numbers[j] - f.high[at, j], 0.0)
        total += step * step
    return total


@inner
def most(f: Forest, m: Mixed, at: Int, numbers: NDArray[np.float64]) -> Real:
    """No record of the node is farther than this."""
    total, product = 0.0, 0.0
    wide = numbers.size
    for j in range(wide):
        step = max(numbers[j] - f.low[at, j], f.high[at, j] - numbers[j])
        total += step * step
        product += max((f.hub[j] - f.low[at, j]) * f.offset[j], (f.hub[j] - f.high[at, j]) * f.offset[j])
    both = f.reach[at] + f.offset[wide]
    margin = both * (4.0 * (wide + 4) * (1.0 + np.sqrt(wide)) * 2.0**-53) + 1e-300
    total = min(total, both + 2.0 * product + margin)
    for j in range(m.weight.size):
        total += m.weight[j]
    return total


@inner
def push(f: Forest, top: Int, node: Int, bound: Real) -> Int:
    """Put a node on the stack; return the new height."""
    f.stack[top] = node
    f.bound[top] = bound
    return top + 1


@inner
def better(distance: Real, record: Int, best: Real, found: Int, sign: Real) -> Flag:
    """Whether this may come before the best so far: nearer (sign 1) or farther (-1), or as far and lower."""
    return sign * distance < sign * best or (distance == best and record < found)


@inner
def nearest(f: Forest, m: Mixed, s: Int, numbers: NDArray[np.float64], codes: NDArray[np.int32]) -> None:
    """Find the record of stratum s that is nearest to a place."""
    base, leaves = f.base[s], f.leaves[s]
    best, found = np.inf, np.int64(NOBODY)
    top = push(f, 0, 1, 0.0)
    while top > 0:
        top -= 1
        node = f.stack[top]
        if not better(f.bound[top], f.lowest[base + node], best, found, 1.0):
            continue
        if node >= leaves:
            begin = begin_of(f, s, node)
            for i in range(begin, begin + f.left[base + node]):
                distance = gap(f, m, i, numbers, codes)
                if better(distance, f.record[i], best, found, 1.0):
                    best, found = distance, np.int64(f.record[i])
                    f.found[0], f.found[1], f.found[2] = found, i, node
            continue
        one, two = least(f, base + 2 * node, numbers), least(f, base + 2 * node + 1, numbers)
        near = 2 * node if one <= two else 2 * node + 1
        if f.left[base + (near ^ 1)] > 0:
            top = push(f, top, near ^ 1, max(one, two))
        if f.left[base + near] > 0:
            top = push(f, top, near, min(one, two))


@inner
def farthest(f: Forest, m: Mixed, numbers: NDArray[np.float64], codes: NDArray[np.int32]) -> Int:
    """Return the record of any stratum that is farthest from a place."""
    best, found = -1.0, np.int64(NOBODY)
    f.offset[numbers.size] = 0.0
    for j in range(numbers.size):
        f.offset[j] = numbers[j] - f.hub[j]
        f.offset[numbers.size] += f.offset[j] * f.offset[j]
    for s in range(f.base.size):
        base, leaves = f.base[s], f.leaves[s]
        top = push(f, 0, 1, most(f, m, base + 1, numbers)) if f.left[base + 1] > 0 else 0
        while top > 0:
            top -= 1
            node = f.stack[top]
            if not better(f.bound[top], f.lowest[base + node], best, found, -1.0):
                continue
            if node >= leaves:
                begin = begin_of(f, s, node)
                for i in range(begin, begin + f.left[base + node]):
                    distance = gap(f, m, i, numbers, codes)
                    if better(distance, f.record[i], best, found, -1.0):
                        best, found = distance, np.int64(f.record[i])
                continue
            left, right = base + 2 * node, base + 2 * node + 1
            one = most(f, m, left, numbers) if f.left[left] > 0 else -1.0
            two = most(f, m, right, numbers) if f.left[right] > 0 else -1.0
            far = 2 * node if one >= two else 2 * node + 1
            if min(one, two) >= 0.0:
                top = push(f, top, far ^ 1, min(one, two))
            top = push(f, top, far, max(one, two))
    return found
