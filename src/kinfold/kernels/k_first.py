"""Refining one cluster: records that come next take the place of members until the cluster keeps its promises.

    while the cluster misses its promises and records are left:
        y = the nearest record left;  y' = the member whose place y takes best
        exchange them if that brings the cluster closer to the table

Where the promise is one distance over values in order, an exchange is judged by the distance, as in the paper; else by
how far all promises together are missed.

Paper: Soria-Comas et al. 2015, Algorithm 2 (GenerateCluster).   Cost: O(n + e(km + n)) for e exchanges and m
values, or O(n log n + n k²) for other promises.   Ties: the nearest record of the lowest row; the member of the
lowest row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold.kernels.compiling import entry, inner
from kinfold.kernels.promises import Promises, example, gather, miss, ordered

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[np.int32]
    Positions = NDArray[np.int64]
    Floats = NDArray[np.float64]


@inner
def sift(distances: Floats, heap: Positions, at: int, size: int) -> None:
    """Let the element at this place of the heap sink; the lower position wins a tie."""
    item = heap[at]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and before(distances, heap[child + 1], heap[child]):
            child += 1
        if not before(distances, heap[child], item):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = item


@inner
def before(distances: Floats, a: int, b: int) -> bool:
    """Tell whether position a comes before position b."""
    return distances[a] < distances[b] or (distances[a] == distances[b] and a < b)


@inner
def gather_nearest(distances: Floats, heap: Positions, k: int) -> Positions:
    """Take the k nearest positions off a heap; the rest of the heap stays in order."""
    size = heap.size
    for at in range(size // 2 - 1, -1, -1):
        sift(distances, heap, at, size)
    taken = np.empty(k, np.int64)
    for t in range(k):
        taken[t] = heap[0]
        size -= 1
        heap[0] = heap[size]
        sift(distances, heap, 0, size)
    return taken


@inner
def rows_of(p: Promises) -> float:
    """How many records the table holds."""
    return p.below[p.start[1] - 1]


@inner
def judge(p: Promises, members: Rows, work: Floats, place: Positions) -> None:
    """For each value: the least work to the table after a record of that value has taken a member's place, and whose.

    The class without the member stands at B(v); the record adds 1 from its own value on. So the work of a value is
    Σ_{v below it} |B(v)·n - k·N(v)| + Σ_{v from it on} |(B(v)+1)·n - k·N(v)|: two running sums.
    """
    k, values, n = members.size, work.size, rows_of(p)
    work[:] = np.inf
    for t in range(k):
        gather(p, 0, members, members[t], -1)
        total = 0.0
        at = 0
        for v in range(values):
            while at < k - 1 and p.codes_held[at] <= v:
                at += 1
            total += abs((at + 1) * n - k * p.below[v])
        at = 0
        for v in range(values):
            if total < work[v]:
                work[v] = total
                place[v] = t
            while at < k - 1 and p.codes_held[at] <= v:
                at += 1
            total += abs(at * n - k * p.below[v]) - abs((at + 1) * n - k * p.below[v])


@entry(example(), np.zeros(1, np.int64), np.zeros(1), np.zeros(1, np.int32))
def complete(limits: Promises, rows: Positions, distances: Floats, members: Rows) -> None:
    """Choose the records of a cluster, from `rows` (ascending) and their distances to the seed, for any promises.

    An exchange is judged by how far the promises are missed.
    """
    heap = np.arange(rows.size)
    k = members.size
    members[:] = np.sort(rows[gather_nearest(distances, heap, k)])
    size = rows.size - k
    now = miss(limits, members, -1, -1)
    while size > 0 and now > 0.0:
        candidate = rows[heap[0]]
        size -= 1
        heap[0] = heap[size]
        sift(distances, heap, 0, size)
        best, place = now, -1
        for t in range(k):
            after = miss(limits, members, members[t], candidate)
            if after < best:
                best, place = after, t
        if place >= 0:
            now = best
            members[place] = candidate
            members.sort()


@entry(example(), np.zeros(1, np.int64), np.zeros(1), np.zeros(1, np.int32))
def complete_ordered(limits: Promises, rows: Positions, distances: Floats, members: Rows) -> None:
    """Choose what `complete` chooses, for one distance over values in order, which is lowered as far as it goes.

    What an exchange brings depends on the value of the record alone. So after each exchange all values are judged in
    one sweep, and the next record is the nearest one left that brings anything: the same as asking one after the other.
    """
    k = members.size
    nearest = gather_nearest(distances, np.arange(rows.size), k)
    members[:] = np.sort(rows[nearest])
    last = nearest[k - 1]
    values = limits.start[1]
    work, place = np.empty(values), np.empty(values, np.int64)
    now = miss(limits, members, -1, -1)
    while now > 0.0:
        total = ordered(limits, 0, gather(limits, 0, members, -1, -1)) * k * rows_of(limits) * (values - 1)
        judge(limits, members, work, place)
        found = -1
        for at in range(rows.size):
            value = limits.codes[0, rows[at]]
            brings = work[value] < round(total) and before(distances, last, at)
            if brings and (found < 0 or before(distances, at, found)):
                found = at
        if found < 0:
            break
        members[place[limits.codes[0, rows[found]]]] = rows[found]
        members.sort()
        last = found
        now = miss(limits, members, -1, -1)
