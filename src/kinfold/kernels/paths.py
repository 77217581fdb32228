"""Paths: an order of the records in which neighbours are alike, and the best way to cut it into groups.

    chain       from a record to the nearest one not visited yet, and so on
    shorten     2-opt (turn a stretch of the path round) and Or-opt (put one record elsewhere), towards near records
    cut         the shortest path over the cutting points, groups of k to 2k-1 (Hansen & Mukherjee 2003, here
                with the cost of any number of attributes)

Cost: chain O(n²); shorten O(n t) a round, and the length of each stretch turned; cut O(n k²).
Ties: the lowest index; the shorter group.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from kinfold.kernels.compiling import entry, inner

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Gaps = NDArray[np.float64]
    Rows = NDArray[np.int32]

LEAST = 1e-12  # a gain below this is rounding
_GAPS, _PATH = np.zeros((1, 1)), np.zeros(1, np.int32)  # to compile for


@entry(_GAPS, _PATH, 1)
def chain(gaps: Gaps, path: Rows, first: int) -> None:
    """Fill `path` from the first record on, always to the nearest record not visited yet."""
    n = path.size
    for t in range(n):
        path[t] = t
    path[0], path[first] = first, 0
    for t in range(1, n):
        at = t
        for u in range(t + 1, n):
            there, least = gaps[path[t - 1], path[u]], gaps[path[t - 1], path[at]]
            if there < least or (there == least and path[u] < path[at]):
                at = u
        path[t], path[at] = path[at], path[t]


@inner
def turn(path: Rows, place: Rows, low: int, high: int) -> None:
    """Turn the stretch from `low` to `high` round."""
    while low < high:
        path[low], path[high] = path[high], path[low]
        place[path[low]] = low
        place[path[high]] = high
        low += 1
        high -= 1


@inner
def cross(gaps: Gaps, path: Rows, place: Rows, i: int, j: int, side: int) -> bool:
    """Replace the steps from i and from j to their neighbours on this side by a step from i to j, if shorter."""
    n = path.size
    before = gaps[path[i], path[i + side]]
    after = gaps[path[i], path[j]]
    if 0 <= j + side < n:
        before += gaps[path[j], path[j + side]]
        after += gaps[path[i + side], path[j + side]]
    if after >= before - LEAST:
        return False
    low, high = min(i, j), max(i, j)
    turn(path, place, low + (side > 0), high - (side < 0))
    return True


@inner
def insert(gaps: Gaps, path: Rows, place: Rows, i: int, j: int) -> bool:
    """Put the record at j between those at i and i + 1, if that is shorter."""
    if j in (i, i + 1) or j in (0, path.size - 1):
        return False
    c = path[j]
    gain = gaps[path[j - 1], c] + gaps[c, path[j + 1]] - gaps[path[j - 1], path[j + 1]]
    gain += gaps[path[i], path[i + 1]] - gaps[path[i], c] - gaps[c, path[i + 1]]
    if gain <= LEAST:
        return False
    step = -1 if j > i else 1
    to = i + 1 if j > i else i
    while j != to:
        path[j] = path[j + step]
        place[path[j]] = j
        j += step
    path[to] = c
    place[c] = to
    return True


@entry(_GAPS, np.zeros((1, 1), np.int32), _PATH, 1)
def shorten(gaps: Gaps, near: Rows, path: Rows, many: int) -> int:
    """Go once along the path and take each gain towards the `many` nearest records; return how many were taken."""
    n = path.size
    taken = 0
    place = np.empty(n, np.int32)
    for t in range(n):
        place[path[t]] = t
    for i in range(n - 1):
        for u in range(min(many, near.shape[1])):
            a, c = path[i], near[path[i], u]
            if gaps[a, c] >= gaps[a, path[i + 1]] and (i == 0 or gaps[a, c] >= gaps[a, path[i - 1]]):
                break
            done = place[c] != i + 1 and cross(gaps, path, place, i, place[c], 1)
            done = done or (i > 0 and place[c] != i - 1 and cross(gaps, path, place, i, place[c], -1))
            done = done or insert(gaps, path, place, i, place[c])
            if done:
                taken += 1
                break
    return taken


@inner
def number(start: Rows, path: Rows, labels: Rows) -> None:
    """Label the records of a path whose stretch that ends before t starts at start[t]."""
    end, label = path.size, 0
    while end > 0:
        for t in range(start[end], end):
            labels[path[t]] = label
        label += 1
        end = start[end]


@entry(_GAPS, _PATH, 1, _PATH)
def cut_by_gaps(gaps: Gaps, path: Rows, k: int, labels: Rows) -> float:
    """Label the records by the best cut of the path; return its cost."""
    n = path.size
    least = np.full(n + 1, math.inf)
    least[0] = 0.0
    start = np.zeros(n + 1, np.int32)
    for end in range(k, n + 1):
        pairs = 0.0
        for size in range(1, min(2 * k, end + 1)):
            first = path[end - size]
            for t in range(end - size + 1, end):
                pairs += gaps[first, path[t]]
            if size >= k and least[end - size] + pairs / size < least[end]:
                least[end] = least[end - size] + pairs / size
                start[end] = end - size
    number(start, path, labels)
    return float(least[n])
