"""Curves: orders of the records in which neighbours in the table stand near each other.

Records are halved again and again by rank along the widest direction of each part; reading the parts from left to right
is a curve through the table. Turned a little differently, another curve joins what the first one parts. For a search
that wants some record near another one, a few places to the left or right along a random curve is as good as a
list of nearest records, and costs no n² to make.

Codes become numbers for this: a rank, or the place among codes that keeps every subtree together.

Cost: O(n log² n) for each curve.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold import kernels
from kinfold.rows.points import Ordered

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kinfold.kernels.exchanges import Curves
    from kinfold.rows.points import Floats, Points

LEAF = 4  # records whose order within a curve does not matter


def curves(points: Points, many: int, seed: int) -> NDArray[np.int32]:
    """Return so many orders of the records.

    >>> from kinfold.rows.points import Points
    >>> curves(Points.of([[0.0], [9.0], [1.0], [8.0], [2.0], [7.0], [3.0], [6.0]]), 1, 0)[0, :4].tolist()
    [0, 2, 4, 6]
    """
    x = _numbers(points)
    chance = np.random.default_rng(seed)
    orders = [_curve(x)]
    for _ in range(many - 1):
        turn = np.linalg.qr(chance.normal(size=(x.shape[1], x.shape[1])))[0]
        orders.append(_curve(x @ turn))
    return np.array(orders, np.int32)


def _numbers(points: Points) -> Floats:
    columns = [points.numbers]
    for scale, codes in zip(points.scales, points.codes.T, strict=True):
        span = scale.size if isinstance(scale, Ordered) else scale.codes
        columns.append((np.sqrt(scale.weight) * codes / span)[:, None])
    return np.column_stack(columns)


def _curve(x: Floats) -> NDArray[np.intp]:
    n = len(x)
    order = np.arange(n)
    parts = 1
    while n // parts > LEAF:
        part = np.arange(n) * parts // n
        first = np.searchsorted(part, np.arange(parts))
        sorted_x = x[order]
        spread = np.maximum.reduceat(sorted_x, first) - np.minimum.reduceat(sorted_x, first)
        key = sorted_x[np.arange(n), spread.argmax(axis=1)[part]]
        order = order[np.lexsort((key, part))]
        parts *= 2
    return order


def places(points: Points) -> NDArray[np.int32]:
    """Number the distinct records: the place of each.

    >>> from kinfold.rows.points import Points
    >>> places(Points.of([[1.0, 5.0], [0.0, 5.0], [1.0, 5.0]])).tolist()
    [1, 0, 1]
    """
    place = np.zeros(len(points), np.int64)
    for column in (*points.numbers.T, *points.codes.T):
        value = np.unique(column, return_inverse=True)[1]
        place = np.unique(place * (int(value.max()) + 1) + value, return_inverse=True)[1]
    return place.astype(np.int32)


def around(points: Points, many: int) -> Curves:
    """Return so many curves through the places of the records, for a search."""
    place = places(points)
    there = np.argsort(place, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(place))]).astype(np.int32)
    order = curves(points.take(there[start[:-1]]), many, 0)
    found: Curves = kernels.load("exchanges").Curves(
        order, np.argsort(order, axis=1).astype(np.int32), place, start, there.astype(np.int32)
    )
    return found


def taken(near: Curves, order: NDArray[np.intp]) -> Curves:
    """Return these curves for the records in another order."""
    now = np.empty(len(order), np.int32)
    now[order] = np.arange(len(order))
    return near._replace(place=near.place[order], there=now[near.there])
