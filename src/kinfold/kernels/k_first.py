"""Completing a cluster: the next records replace members until the cluster keeps its promises.

    while the cluster misses its promises and records are left:
        y = the nearest remaining record;  y' = the member that y replaces best
        exchange them if that brings the cluster closer to the table

With one distance over ordered values an exchange is judged by the distance, as in the paper; else by how much all
promises together are missed.

Paper: Soria-Comas et al. 2015, Algorithm 2 (GenerateCluster).   Cost: O(n + e(km + n)) for e exchanges and m values, or
O(n log n + n k²) for other promises.   Ties: the nearest record of the lowest row; the member of the lowest row.
"""

from __future__ import annotations

import numpy as np

from kinfold.kernels.compiling import Floats, Ints, Rows, entry, inner
from kinfold.kernels.promises import Promises, example_promises, gather_codes, measure_miss, ordered_distance


@inner
def sift(distances: Floats, heap: Ints, at: int, size: int) -> None:
    """Let the element at this place of the heap sink. Ties: the lower position."""
    item = heap[at]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and is_nearer(distances, heap[child + 1], heap[child]):
            child += 1
        if not is_nearer(distances, heap[child], item):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = item


@inner
def is_nearer(distances: Floats, a: int, b: int) -> bool:
    """Whether position a comes before position b."""
    return distances[a] < distances[b] or (distances[a] == distances[b] and a < b)


@inner
def gather_nearest(distances: Floats, heap: Ints, k: int) -> Ints:
    """Take the k nearest positions from a heap; the rest stays a heap."""
    size = heap.size
    for at in range(size // 2 - 1, -1, -1):
        sift(distances, heap, at, size)
    nearest = np.empty(k, np.int64)
    for t in range(k):
        nearest[t] = heap[0]
        size -= 1
        heap[0] = heap[size]
        sift(distances, heap, 0, size)
    return nearest


@inner
def count_table_records(p: Promises) -> float:
    """Return the number of records of the table."""
    return p.below[p.start[1] - 1]


@inner
def evaluate_values(p: Promises, members: Rows, work: Floats, place: Ints) -> None:
    """Compute for each value the least work to the table after a record of that value replaces a member, and which one.

    The class without the member has B(v); the record adds 1 from its own value on. So the work of a value is
    Σ_{v below it} |B(v)·n - k·N(v)| + Σ_{v from it on} |(B(v)+1)·n - k·N(v)|: two running sums.
    """
    k, values, n = members.size, work.size, count_table_records(p)
    work[:] = np.inf
    for t in range(k):
        gather_codes(p, 0, members, members[t], -1)
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


@entry(example_promises(), np.zeros(1, np.int64), np.zeros(1), np.zeros(1, np.int32))
def complete(limits: Promises, rows: Ints, distances: Floats, members: Rows) -> None:
    """Choose the records of a cluster, from `rows` (ascending) and their distances to the seed, for any promises.

    An exchange is judged by how much the promises are missed.
    """
    heap = np.arange(rows.size)
    k = members.size
    members[:] = np.sort(rows[gather_nearest(distances, heap, k)])
    size = rows.size - k
    now = measure_miss(limits, members, -1, -1)
    while size > 0 and now > 0.0:
        candidate = rows[heap[0]]
        size -= 1
        heap[0] = heap[size]
        sift(distances, heap, 0, size)
        best, place = now, -1
        for t in range(k):
            after = measure_miss(limits, members, members[t], candidate)
            if after < best:
                best, place = after, t
        if place >= 0:
            now = best
            members[place] = candidate
            members.sort()


@entry(example_promises(), np.zeros(1, np.int64), np.zeros(1), np.zeros(1, np.int32))
def complete_ordered(limits: Promises, rows: Ints, distances: Floats, members: Rows) -> None:
    """Choose what `complete` chooses, for one distance over ordered values, which is lowered as much as possible.

    The effect of an exchange depends on the value of the record alone. So after each exchange one pass evaluates all
    values, and the next record is the nearest one that lowers the distance: the same as trying one after the other.
    """
    k = members.size
    nearest = gather_nearest(distances, np.arange(rows.size), k)
    members[:] = np.sort(rows[nearest])
    last = nearest[k - 1]
    values = limits.start[1]
    work, place = np.empty(values), np.empty(values, np.int64)
    now = measure_miss(limits, members, -1, -1)
    while now > 0.0:
        total = (
            ordered_distance(limits, 0, gather_codes(limits, 0, members, -1, -1))
            * k
            * count_table_records(limits)
            * (values - 1)
        )
        evaluate_values(limits, members, work, place)
        position = -1
        for at in range(rows.size):
            value = limits.codes[0, rows[at]]
            brings = work[value] < round(total) and is_nearer(distances, last, at)
            if brings and (position < 0 or is_nearer(distances, at, position)):
                position = at
        if position < 0:
            break
        members[place[limits.codes[0, rows[position]]]] = rows[position]
        members.sort()
        last = position
        now = measure_miss(limits, members, -1, -1)
