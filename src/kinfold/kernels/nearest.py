"""Nearest points by a tree of boxes: how far the nearest is, and how many records share that distance.

The squared distance of a query to a point is the sum over the attributes, numbers first, then codes by their table of
squared gaps. A box is bounded by the same sum with each attribute at its nearest end (a code: at its nearest code).
Rounding is monotone and the order of the sum the same, so a bound never exceeds a distance inside its box and pruning
needs no tolerance: the answer is the one of comparing with every point, to the last bit.
"""

from __future__ import annotations

from typing import TypeAlias

import numba
import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Cloud: TypeAlias = tuple[Floats, Ints, Ints, Floats]
Gaps: TypeAlias = tuple[int, Floats, Ints, Ints]

SIGNATURE = (
    "float64[::1](float64[:,::1], int64[::1],"
    " Tuple((float64[:,::1], int64[::1], int64[:,::1], float64[:,:,::1])),"
    " Tuple((int64, float64[::1], int64[::1], int64[::1])))"
)

NARROW = 32  # a code range wider than this is not searched for its nearest code: its bound is 0
DEPTH = 128  # of the stack: a tree of halves is far shallower


@numba.njit(cache=True)
def gap_to(query: Floats, point: Floats, limit: float, gaps: Gaps) -> float:
    """Squared distance of two records; once it is beyond the limit, any number beyond it."""
    plain, tables, offsets, widths = gaps
    total: float = 0.0
    for j in range(plain):
        step = query[j] - point[j]
        total += step * step
        if total > limit:
            return total
    for c in range(query.shape[0] - plain):
        total += tables[offsets[c] + int(query[plain + c]) * widths[c] + int(point[plain + c])]
    return total


@numba.njit(cache=True)
def gap_to_box(query: Floats, box: Floats, limit: float, gaps: Gaps) -> float:
    """Lower bound of the squared distance of a record to every point of a box; beyond the limit, any beyond it."""
    plain, tables, offsets, widths = gaps
    low, high = box[0], box[1]
    total = 0.0
    for j in range(plain):
        step = 0.0
        if query[j] < low[j]:
            step = query[j] - low[j]
        elif query[j] > high[j]:
            step = query[j] - high[j]
        total += step * step
        if total > limit:
            return total
    for c in range(query.shape[0] - plain):
        first, last = int(low[plain + c]), int(high[plain + c])
        if last - first > NARROW:
            continue
        row = offsets[c] + int(query[plain + c]) * widths[c]
        closest = tables[row + first]
        for code in range(first + 1, last + 1):
            closest = min(closest, tables[row + code])
        total += closest
    return total


@numba.njit(cache=True)
def credit_of(query: Floats, own: int, cloud: Cloud, gaps: Gaps, waiting: Ints, bounds: Floats) -> float:
    """Return 1 / the records at the nearest distance if the query's own point is at it, else 0."""
    points, sizes, nodes, boxes = cloud
    mine = gap_to(query, points[own], np.inf, gaps)
    best = mine
    tied = 0
    waiting[0], bounds[0] = 0, 0.0
    top = 1
    while top > 0:
        top -= 1
        node = waiting[top]
        if bounds[top] > best:
            continue
        if nodes[node, 2] < 0:
            for p in range(nodes[node, 0], nodes[node, 1]):
                gap = gap_to(query, points[p], best, gaps)
                if gap < best:
                    best = gap
                    tied = sizes[p]
                elif gap == best:
                    tied += sizes[p]
            continue
        left, right = nodes[node, 2], nodes[node, 3]
        to_left = gap_to_box(query, boxes[left], best, gaps)
        to_right = gap_to_box(query, boxes[right], best, gaps)
        if to_left > to_right:  # the nearer one goes on top
            left, right, to_left, to_right = right, left, to_right, to_left
        waiting[top], bounds[top] = right, to_right
        waiting[top + 1], bounds[top + 1] = left, to_left
        top += 2
    return 1.0 / tied if mine == best else 0.0


@numba.njit(SIGNATURE, cache=True)
def share_credit(queries: Floats, own: Ints, cloud: Cloud, gaps: Gaps) -> Floats:
    """Return for each query 1 / the records at its nearest distance if its own point is at it, else 0.

    The cloud is the points, how many records each stands for, the nodes of their tree (the first and past-the-last
    point and the two children, -1 at a leaf) and its boxes (the low and high end of each attribute). The gaps are the
    number of plain numbers and the tables of the codes, with where each starts and how wide its rows are.
    """
    waiting = np.empty(DEPTH, np.int64)
    bounds = np.empty(DEPTH)
    credit = np.empty(queries.shape[0])
    for i in range(queries.shape[0]):
        credit[i] = credit_of(queries[i], own[i], cloud, gaps, waiting, bounds)
    return credit
