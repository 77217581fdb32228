"""MDAV's loop over a tree of boxes, a number of steps at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from kinfold.kernels.boxes import LEAF, forget, shrink
from kinfold.kernels.exact import DIGITS, LIMBS, add, rounded
from kinfold.kernels.gaps import move
from kinfold.kernels.search import farthest, nearest

if TYPE_CHECKING:
    from numpy.typing import NDArray

class Middle(NamedTuple):
    """What the centre of the records that are left is computed from."""

    sums: NDArray[np.int64]  # (a, LIMBS)
    digits: NDArray[np.int64]  # (DIGITS,)
    counts: NDArray[np.int64]  # records of each code, column after column
    middle: NDArray[np.int64]  # (b,) median or mode
    around: NDArray[np.int64]  # (b,) how many are below the median; or the second largest count


@njit
def centre(left, middle, scales, place):
    for j in range(middle.sums.shape[0]):
        place.numbers[j] = rounded(middle.sums[j], middle.digits) / left
    for j in range(scales.height.size):
        counts = middle.counts[scales.start[j]:scales.start[j+1]]
        if scales.height[j] == 0:
            seen = 0
            code = 0
            while seen + counts[code] < (left + 1) // 2:
                seen += counts[code]
                code += 1
        else:
            code = 0
            for c in range(counts.size):
                if counts[c] > counts[code]:
                    code = c
        move(scales, place, j, code)

@njit
def count(crowd, middle, scales, record, times):
    for j in range(middle.sums.shape[0]):
        add(middle.sums[j], crowd.numbers.view(np.int64)[record, j], times)
    for j in range(scales.height.size):
        middle.counts[scales.start[j] + crowd.codes[record, j]] += times

@njit
def stand(crowd, scales, place, record):
    for j in range(place.numbers.size):
        place.numbers[j] = crowd.numbers[record, j]
    for j in range(scales.height.size):
        move(scales, place, j, crowd.codes[record, j])

@njit
def take(tree, crowd, scales, middle, room, labels, label):
    """Label nearest and forget; return the points that are gone."""
    k = room.near.size
    for i in range(1, k):
        slot, record = room.slot[i], room.record[i]
        p = i
        while p > 0 and room.slot[p-1] < slot:
            room.slot[p] = room.slot[p-1]
            room.record[p] = room.record[p-1]
            p -= 1
        room.slot[p] = slot
        room.record[p] = record
    gone = 0
    for i in range(k):
        record = room.record[i]
        labels[record] = label
        count(crowd, middle, scales, record, -1)
        leaf, slot = room.slot[i] // LEAF, room.slot[i] % LEAF
        point = tree.point[leaf, slot]
        crowd.head[point] += 1
        if i + 1 == k or room.slot[i+1] != room.slot[i]:
            if crowd.head[point] == crowd.start[point + 1]:
                forget(tree, leaf, slot)
                gone += 1
            else:
                tree.record[leaf, slot] = crowd.member[crowd.head[point]]
        if i + 1 == k or room.slot[i + 1] // LEAF != leaf:
            shrink(tree, leaf)
    return gone

@njit
def advance(tree, crowd, scales, middle, place, room, labels, state, steps):
    k = room.near.size
    for _ in range(steps):
        left = state[0]
        if left < 2 * k or state[2] < state[3]:
            return
        centre(left, middle, scales, place)
        r = farthest(tree, scales, place, room)
        stand(crowd, scales, place, r)
        nearest(tree, crowd, scales, place, room)
        state[2] -= take(tree, crowd, scales, middle, room, labels, state[1])
        state[1] += 1
        state[0] -= k
        if left >= 3 * k:
            s = farthest(tree, scales, place, room)
            stand(crowd, scales, place, s)
            nearest(tree, crowd, scales, place, room)
            state[2] -= take(tree, crowd, scales, middle, room, labels, state[1])
            state[1] += 1
            state[0] -= k

@njit
def collect(crowd, scales, middle):
    for i in range(crowd.numbers.shape[0]):
        count(crowd, middle, scales, i, 1)
