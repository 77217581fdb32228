"""Sweeps: relocations and swaps between neighbouring groups, from the sums of the groups instead of all distances.

The sum of the squared distances from a record to a group of m with mean c is m |x - c|² + SSE (Huygens), so with
the sum of each group at hand it costs O(d) and no table of distances is needed:

    list for each group the groups whose means are nearest
    a queue holds every record; while it is not empty, take the first record:
        of the groups listed for its own, those nearest to the record are tried: move there, or swap with a member
        make the best move that lowers the SSE and queue the members of both groups

For numbers only. Cost: O(g² d) for the lists of g groups, O(t d + m d) for a record; O(n d) memory.
Ties: the first found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numba
import numpy as np

from kinfold.kernels.options import inner, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

LEAST = 1e-11  # an improvement below this share of what the two groups cost is rounding
TRIED = 3  # groups tried for a record


class Sweep(NamedTuple):
    """Some groups of a table and what is kept about them."""

    numbers: np.ndarray  # (n, d)
    label: np.ndarray  # (n)
    place: np.ndarray  # (n) where the record stands in its group
    own: np.ndarray  # (n) sum of the squared distances to the record's own group
    members: np.ndarray  # (g, largest size)
    size: np.ndarray  # (g)
    sums: np.ndarray  # (g, d) sum of the members
    pairs: np.ndarray  # (g) sum of the squared distances of the pairs: size times SSE
    near: np.ndarray  # (g, t) groups with the nearest means
    tried: np.ndarray  # (2, TRIED) distances to groups, and the groups
    queue: np.ndarray  # (2, n) ring of records, and who is in it


_f8, _f8_2, _i4, _i4_2 = numba.float64[::1], numba.float64[:, ::1], numba.int32[::1], numba.int32[:, ::1]
_int, _float = numba.int64, numba.float64
_move = numba.types.UniTuple(_float, 3)  # type: ignore[no-untyped-call]
SWEEP = numba.types.NamedTuple(  # type: ignore[no-untyped-call]
    [_f8_2, _i4, _i4, _f8, _i4_2, _i4, _f8_2, _f8, _i4_2, _f8_2, _i4_2], Sweep
)


@inner(_float(SWEEP, _int, _int))
def gap(w: Sweep, i: int, j: int) -> float:
    """Return the squared distance of two records."""
    total = 0.0
    for t in range(w.numbers.shape[1]):
        step = w.numbers[i, t] - w.numbers[j, t]
        total += step * step
    return total


@inner(_float(SWEEP, _int, _int))
def toward(w: Sweep, i: int, g: int) -> float:
    """Return the sum of the squared distances from record i to the members of group g."""
    total = 0.0
    share = 1.0 / w.size[g]
    for t in range(w.numbers.shape[1]):
        step = w.numbers[i, t] - w.sums[g, t] * share
        total += step * step
    return float(w.size[g] * total + w.pairs[g] * share)


@inner(numba.void(SWEEP, _int))
def leave(w: Sweep, i: int) -> None:
    """Take record i out of its group."""
    g = w.label[i]
    w.pairs[g] -= w.own[i]
    w.size[g] -= 1
    last = w.members[g, w.size[g]]
    w.members[g, w.place[i]] = last
    w.place[last] = w.place[i]
    for t in range(w.numbers.shape[1]):
        w.sums[g, t] -= w.numbers[i, t]
    for t in range(w.size[g]):
        w.own[w.members[g, t]] -= gap(w, i, w.members[g, t])


@inner(numba.void(SWEEP, _int, _int))
def join(w: Sweep, i: int, g: int) -> None:
    """Put record i into group g."""
    w.own[i] = 0.0
    for t in range(w.size[g]):
        there = gap(w, i, w.members[g, t])
        w.own[w.members[g, t]] += there
        w.own[i] += there
    w.pairs[g] += w.own[i]
    for t in range(w.numbers.shape[1]):
        w.sums[g, t] += w.numbers[i, t]
    w.members[g, w.size[g]] = i
    w.place[i] = w.size[g]
    w.size[g] += 1
    w.label[i] = g


@inner(_int(SWEEP, _int))
def list_nearest(w: Sweep, i: int) -> int:
    """Put into `tried` the groups nearest to record i of those near its own group; return how many."""
    found = 0
    for u in range(w.near.shape[1]):
        g = w.near[w.label[i], u]
        there = toward(w, i, g) / w.size[g]
        if found == TRIED and there >= w.tried[0, TRIED - 1]:
            continue
        at = min(found, TRIED - 1)
        while at > 0 and w.tried[0, at - 1] > there:
            w.tried[0, at] = w.tried[0, at - 1]
            w.tried[1, at] = w.tried[1, at - 1]
            at -= 1
        w.tried[0, at] = there
        w.tried[1, at] = g
        found = min(found + 1, TRIED)
    return found


@inner(_move(SWEEP, _int, _int))
def best_move(w: Sweep, i: int, k: int) -> tuple[float, float, float]:
    """Return the change of SSE of the best move of record i, the group it goes to, and whom it swaps with or -1."""
    a, most = w.label[i], w.members.shape[1]
    best, to, other = 0.0, -1.0, -1.0
    saved = (w.pairs[a] - w.own[i]) / (w.size[a] - 1) - w.pairs[a] / w.size[a]
    for u in range(list_nearest(w, i)):
        b = int(w.tried[1, u])
        to_b = w.tried[0, u] * w.size[b]
        if w.size[a] > k and w.size[b] < most:
            change = saved + (w.pairs[b] + to_b) / (w.size[b] + 1) - w.pairs[b] / w.size[b]
            if change < best:
                best, to, other = change, float(b), -1.0
        for t in range(w.size[b]):
            l = w.members[b, t]
            between = gap(w, i, l)
            there = (to_b - w.own[l] - between) / w.size[b]
            if there + saved >= best:
                continue
            change = there + (toward(w, l, a) - w.own[i] - between) / w.size[a]
            if change < best:
                best, to, other = change, float(b), float(l)
    if to >= 0 and -best <= LEAST * (w.pairs[a] / w.size[a] + w.pairs[int(to)] / w.size[int(to)]):
        return 0.0, -1.0, -1.0
    return best, to, other


@inner(_int(SWEEP, _int, _int, _int))
def enqueue(w: Sweep, g: int, head: int, length: int) -> int:
    """Put the members of group g at the end of the queue; return its new length."""
    for t in range(w.size[g]):
        i = w.members[g, t]
        if w.queue[1, i] == 0:
            w.queue[1, i] = 1
            w.queue[0, (head + length) % w.label.size] = i
            length += 1
    return length


@kernel(_float(SWEEP, _int, _int))
def settle(w: Sweep, k: int, looks: int) -> float:
    """Work off a queue of all records, at most so many looks at a record; return the change of SSE."""
    head, length, total = 0, 0, 0.0
    for g in range(w.size.size):
        length = enqueue(w, g, head, length)
    while length > 0 and looks > 0:
        looks -= 1
        i = w.queue[0, head]
        head = (head + 1) % w.label.size
        length -= 1
        w.queue[1, i] = 0
        change, to, other = best_move(w, i, k)
        if to < 0:
            continue
        total += change
        a = w.label[i]
        leave(w, i)
        if other >= 0:
            leave(w, int(other))
            join(w, int(other), a)
        join(w, i, int(to))
        length = enqueue(w, a, head, length)
        length = enqueue(w, int(to), head, length)
    return total


@inner(numba.void(SWEEP, _f8_2, _int, _f8))
def list_groups(w: Sweep, means: np.ndarray, g: int, least: np.ndarray) -> None:
    """List the groups whose means are nearest to that of group g."""
    found, many = 0, least.size
    for h in range(w.size.size):
        there = 0.0
        for t in range(means.shape[1]):
            step = means[g, t] - means[h, t]
            there += step * step
        if h == g or (found == many and there >= least[many - 1]):
            continue
        at = min(found, many - 1)
        while at > 0 and least[at - 1] > there:
            least[at] = least[at - 1]
            w.near[g, at] = w.near[g, at - 1]
            at -= 1
        least[at] = there
        w.near[g, at] = h
        found = min(found + 1, many)


@kernel(numba.void(SWEEP))
def prepare(w: Sweep) -> None:
    """Compute what is kept about the groups, and list for each the groups whose means are nearest."""
    for i in range(w.label.size):
        for t in range(w.numbers.shape[1]):
            w.sums[w.label[i], t] += w.numbers[i, t]
        for t in range(w.size[w.label[i]]):
            w.own[i] += gap(w, i, w.members[w.label[i], t])
        w.pairs[w.label[i]] += 0.5 * w.own[i]
    means = np.empty_like(w.sums)
    for g in range(w.size.size):
        for t in range(w.sums.shape[1]):
            means[g, t] = w.sums[g, t] / w.size[g]
    least = np.empty(w.near.shape[1])
    for g in range(w.size.size):
        list_groups(w, means, g, least)


def of(numbers: np.ndarray, layout: Sequence[np.ndarray], near: int) -> Sweep:
    """Return a sweep with room for everything, from the labels, places, members and sizes of a layout."""
    label, place, members, size = layout
    n, g = len(label), len(size)
    lists = np.empty((g, min(near, g - 1)), np.int32)
    sums, queue = np.zeros((g, numbers.shape[1])), np.zeros((2, n), np.int32)
    return Sweep(
        numbers, label, place, np.zeros(n), members, size, sums, np.zeros(g), lists, np.zeros((2, TRIED)), queue
    )
