"""Refining one cluster: records that come next take the place of members until the cluster keeps its promises.

    while the cluster misses its promises and records are left:
        y = the nearest record left;  y' = the member whose place y takes best
        exchange them if that brings the cluster closer to the table

The records come off a heap, so that only those that are looked at are put in order.

Paper: Soria-Comas et al. 2015, Algorithm 2 (GenerateCluster).   Ties: the nearest record of the lowest row; the member
of the lowest row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from kinfold.kernels.promises import Promises, miss

if TYPE_CHECKING:
    from numpy.typing import NDArray


@njit(cache=True)
def sift(distances: NDArray[np.float64], heap: NDArray[np.int64], at: int, size: int) -> None:
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


@njit(cache=True)
def before(distances: NDArray[np.float64], a: int, b: int) -> bool:
    """Tell whether position a comes before position b."""
    return distances[a] < distances[b] or (distances[a] == distances[b] and a < b)


@njit(cache=True)
def complete(
    limits: Promises, order: Promises, rows: NDArray[np.int64], distances: NDArray[np.float64], k: int
) -> NDArray[np.int32]:
    """Return the k records of a cluster, from `rows` (ascending) and their distances to the seed.

    `limits` says when the cluster is done; `order` by what an exchange is judged.
    """
    heap = np.arange(rows.size)
    size = rows.size
    for at in range(size // 2 - 1, -1, -1):
        sift(distances, heap, at, size)
    members = np.empty(k, np.int32)
    held = 0
    now = np.inf
    while size > 0:
        candidate = rows[heap[0]]
        size -= 1
        heap[0] = heap[size]
        sift(distances, heap, 0, size)
        if held < k:
            members[held] = candidate
            held += 1
            if held == k:
                members.sort()
        else:
            now = exchange(order, members, candidate, now)
        if held == k:
            if miss(limits, members, -1, -1) == 0.0:
                break
            now = miss(order, members, -1, -1)
    return members


@njit(cache=True)
def exchange(order: Promises, members: NDArray[np.int32], candidate: int, now: float) -> float:
    """Give the candidate the place of the member where that lowers the miss most, if it does; return the miss."""
    best, place = now, -1
    for t in range(members.size):
        after = miss(order, members, members[t], candidate)
        if after < best:
            best, place = after, t
    if place >= 0:
        members[place] = candidate
        members.sort()
    return best
