"""Distances between records, centres and costs of groups, and curves through a table.

Squared distances are summed attribute by attribute, and means are exact sums rounded once: the kernels and
`kinfold.tables.points` compute the same bits.

The cost of a group is the sum of the squared distances of its pairs over its size. For numbers it is the SSE.

A curve is an order of the records that keeps near records together. The records are halved again and again by rank
along the widest attribute of each part; the parts from left to right are the curve. A curve through the rotated table
joins what another one separates. A search that needs a record near another takes one a few places away on a random
curve: that is as good as a list of nearest records, and needs no table of n² distances.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kinfold import kernels
from kinfold.tables.points import (
    MAX_UNCOMPILED_RECORDS,
    Codes,
    Floats,
    Labels,
    NominalScale,
    OrdinalScale,
    Points,
    Scale,
)

if TYPE_CHECKING:
    from kinfold.kernels.moves import Curves

NEAREST_KEPT = 60  # nearest records of each that a search knows
MAX_LABEL_FACTOR = 4  # labels up to this many times the records are counted, larger ones sorted
NEIGHBOUR_CURVES = 4  # along which neighbours are drawn; with one, pairs that lie across it never meet
CURVE_LEAF = 4  # records whose order within a curve does not matter


def distances_to(points: Points, others: Points, row: int | np.integer) -> Floats:
    """Return the squared distance of each point to row `row` of `others`.

    >>> line = Points.from_array(np.array([[0.0], [1.0], [3.0]]))
    >>> distances_to(line, line, 1).tolist()
    [1.0, 0.0, 4.0]
    """
    total = np.zeros(len(points))
    for column in range(points.numbers.shape[1]):
        step = points.numbers[:, column] - others.numbers[row, column]
        total += step * step
    for column, scale in enumerate(points.scales):
        total += scale.squared_distances(int(others.codes[row, column]))[points.codes[:, column]]
    return total


def compute_centre(points: Points) -> Points:
    """Return the centre of all points, as one point."""
    return compute_centres(points, np.zeros(len(points), np.int32))


def compute_centres(points: Points, labels: Labels) -> Points:
    """Return the centre of each group, in the order of the labels: means, medians of ranks, modes of categories.

    >>> line = Points.from_array(np.array([[0.0], [1.0], [3.0]]))
    >>> compute_centres(line, np.array([1, 1, 0], np.int32)).numbers.tolist()
    [[3.0], [0.5]]
    """
    starts = np.concatenate([[0], np.cumsum(np.bincount(labels))]).astype(np.int64)
    numbers = _means(points.numbers[np.argsort(labels, kind="stable")], starts)
    centres = np.empty((len(starts) - 1, len(points.scales)), np.int32)
    for column, scale in enumerate(points.scales):
        codes = points.codes[:, column]
        if isinstance(scale, NominalScale):
            base = int(codes.max()) + 1
            pairs, times = np.unique(labels.astype(np.int64) * base + codes, return_counts=True)
            best = np.lexsort((pairs, -times, pairs // base))  # by group, most frequent first, lowest code first
            _, first = np.unique(pairs[best] // base, return_index=True)
            centres[:, column] = pairs[best][first] % base
        else:  # the lower median
            ordered = codes[np.lexsort((codes, labels))]
            centres[:, column] = ordered[starts[:-1] + (np.diff(starts) - 1) // 2]
    return Points(numbers, centres, points.scales)


def _means(values: Floats, starts: NDArray[np.int64]) -> Floats:
    means = np.empty((len(starts) - 1, values.shape[1]))
    if len(values) > MAX_UNCOMPILED_RECORDS:
        kernels.load("geometry").group_means(values, starts, means)
        return means
    for group, (begin, end) in enumerate(pairwise(starts.tolist())):
        for column in range(values.shape[1]):
            means[group, column] = math.fsum(values[begin:end, column]) / (end - begin)
    return means


@dataclass(frozen=True, eq=False)
class PairDistances:
    """The squared distances of all pairs of up to some thousand records, and the nearest records of each.

    Cost: O(n² d) time, O(n²) memory (200 MB for 5,000 records).   Ties: the lowest index is the nearer.
    """

    squared: Floats  # (n, n)
    nearest: Labels  # (n, t) other records, nearest first

    def __len__(self) -> int:
        return len(self.squared)

    @classmethod
    def from_points(cls, points: Points) -> PairDistances:
        """Compute the distances of these points.

        >>> distances = PairDistances.from_points(Points.from_array([[0.0], [2.0], [3.0]]))
        >>> distances.squared.tolist(), distances.nearest.tolist()
        ([[0.0, 4.0, 9.0], [4.0, 0.0, 1.0], [9.0, 1.0, 0.0]], [[1, 2], [2, 0], [1, 0]])
        """
        kernel, n = kernels.load("geometry"), len(points)
        squared = np.zeros((n, n))
        kernel.add_distances(points.numbers, squared)
        for column, scale in zip(points.codes.T, points.scales, strict=True):
            present, place = np.unique(column, return_inverse=True)  # a scale may have many more codes
            table = np.ascontiguousarray(_squared_code_distances(scale, present[:, None], present))
            kernel.add_code_distances(table, place.astype(np.int64, copy=False), squared)
        nearest = np.zeros((n, min(NEAREST_KEPT, n - 1)), np.int32)
        kernel.find_nearest(squared, nearest)
        return cls(squared, nearest)

    def cost(self, labels: Labels) -> float:
        """Return the cost of a partition.

        >>> PairDistances.from_points(Points.from_array([[0.0], [2.0], [5.0], [9.0]])).cost(np.array([0, 0, 1, 1]))
        10.0
        """
        return float(self.cost_shares(labels).sum())

    def cost_shares(self, labels: Labels) -> Floats:
        """Return the share of each record in the cost: half its mean squared distance to its group and itself."""
        size = np.bincount(labels)
        place = np.empty(len(labels), np.int64)
        place[np.argsort(labels, kind="stable")] = np.arange(len(labels)) - np.repeat(np.cumsum(size) - size, size)
        members = np.zeros((len(size), int(size.max())), np.int32)
        members[labels, place] = np.arange(len(labels))
        inside = np.arange(members.shape[1]) < size[labels][:, None]
        distances = self.squared[np.arange(len(labels))[:, None], members[labels]]
        return np.asarray((distances * inside).sum(axis=1) / (2 * size[labels]), np.float64)


def split_groups(labels: Labels) -> list[Labels]:
    """Return the records of each group, groups by label, records in order.

    >>> [group.tolist() for group in split_groups(np.array([1, 0, 1], np.int32))]
    [[1], [0, 2]]
    """
    order = np.argsort(labels, kind="stable").astype(np.int32)
    return np.split(order, np.cumsum(np.bincount(labels))[:-1])


def renumber_by_first_record(labels: Labels) -> Labels:
    """Return the same groups numbered from 0 without gaps, in the order of their first records.

    >>> renumber_by_first_record(np.array([7, 2, 7], np.int32)).tolist()
    [0, 1, 0]
    """
    if not len(labels) or labels.min() < 0 or labels.max() > MAX_LABEL_FACTOR * len(labels):
        labels = renumber(labels)
    places = np.arange(len(labels))
    first = np.full(int(labels.max(initial=0)) + 1, len(labels))
    first[labels[::-1]] = places[::-1]  # of equal labels the last one written stays: the first record
    rank = np.cumsum(first[labels] == places, dtype=np.int32) - 1
    return np.asarray(rank[first[labels]], np.int32)


def renumber(labels: Labels) -> Labels:
    """Return the labels numbered from 0 without gaps, in the same order.

    >>> renumber(np.array([7, 2, 7], np.int32)).tolist()
    [1, 0, 1]
    """
    return np.unique(labels, return_inverse=True)[1].astype(np.int32)


def compute_cost(points: Points, labels: Labels) -> float:
    """Return the cost of a partition of any size, in O(n d) for numbers and O(n v) for codes with v values in a group.

    >>> compute_cost(Points.from_array([[0.0], [2.0], [5.0], [9.0]]), np.array([0, 0, 1, 1], np.int32))
    10.0
    """
    size = np.bincount(labels)
    total = 0.0
    for column in points.numbers.T:
        mean = np.bincount(labels, column) / size
        total += float(((column - mean[labels]) ** 2).sum())
    for codes, scale in zip(points.codes.T, points.scales, strict=True):
        total += float((_sum_code_pairs(codes, scale, labels) / size).sum())
    return total


def _sum_code_pairs(codes: Codes, scale: Scale, labels: Labels) -> Floats:
    """Sum the squared distances of the pairs of each group: values of a and b members make a·b pairs."""
    values, count = np.unique(labels.astype(np.int64) * scale.codes + codes, return_counts=True)
    group, code = values // scale.codes, values % scale.codes
    total = np.zeros(int(labels.max()) + 1)
    for shift in range(1, len(values)):
        same = np.flatnonzero(group[shift:] == group[:-shift])
        if same.size == 0:
            break
        pairs = count[same] * count[same + shift]
        squared = _squared_code_distances(scale, code[same], code[same + shift])
        total += np.bincount(group[same], pairs * squared, len(total))
    return total


def _squared_code_distances(scale: Scale, one: Codes, other: Codes) -> Floats:
    steps = scale.distances(one, other)
    return scale.weight * steps * steps


def make_curves(points: Points, count: int, seed: int) -> NDArray[np.int32]:
    """Return `count` curves through the records, each in O(n log² n).

    >>> points = Points.from_array([[0.0], [9.0], [1.0], [8.0], [2.0], [7.0], [3.0], [6.0]])
    >>> make_curves(points, 1, 0)[0, :4].tolist()
    [0, 2, 4, 6]
    """
    columns = [points.numbers]
    for scale, codes in zip(
        points.scales, points.codes.T, strict=True
    ):  # a rank, or a place that keeps subtrees together
        span = scale.size if isinstance(scale, OrdinalScale) else scale.codes
        columns.append((np.sqrt(scale.weight) * codes / span)[:, None])
    x = np.column_stack(columns)
    random = np.random.default_rng(seed)
    orders = [_make_curve(x)]
    for _ in range(count - 1):
        rotation = np.linalg.qr(random.normal(size=(x.shape[1], x.shape[1])))[0]
        orders.append(_make_curve(x @ rotation))
    return np.array(orders, np.int32)


def _make_curve(x: Floats) -> NDArray[np.intp]:
    n = len(x)
    order = np.arange(n)
    if n > MAX_UNCOMPILED_RECORDS:
        kernels.load("geometry").sort_along_curve(np.ascontiguousarray(x), CURVE_LEAF, order)
        return order
    parts = 1
    while n // parts > CURVE_LEAF:
        part = np.arange(n) * parts // n
        first = np.searchsorted(part, np.arange(parts))
        sorted_x = x[order]
        spread = np.maximum.reduceat(sorted_x, first) - np.minimum.reduceat(sorted_x, first)
        key = sorted_x[np.arange(n), spread.argmax(axis=1)[part]]
        order = order[np.lexsort((key, part))]
        parts *= 2
    return order


def number_places(points: Points) -> NDArray[np.int32]:
    """Return the place of each record: equal records have one number.

    >>> number_places(Points.from_array([[1.0, 5.0], [0.0, 5.0], [1.0, 5.0]])).tolist()
    [1, 0, 1]
    """
    place = np.zeros(len(points), np.int64)
    for column in (*points.numbers.T, *points.codes.T):
        value = np.unique(column, return_inverse=True)[1]
        place = np.unique(place * (int(value.max()) + 1) + value, return_inverse=True)[1]
    return place.astype(np.int32)


def build_curves(points: Points) -> Curves:
    """Return the curves along which neighbours are drawn, through the places of the records, for the kernels."""
    place = number_places(points)
    there = np.argsort(place, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(place))]).astype(np.int32)
    order = make_curves(points.take(there[start[:-1]]), NEIGHBOUR_CURVES, 0)
    turn = np.argsort(order, axis=1).astype(np.int32)
    curves: Curves = kernels.load("moves").Curves(order, turn, place, start, there.astype(np.int32))
    return curves


def reorder_curves(curves: Curves, order: NDArray[np.intp]) -> Curves:
    """Return these curves for the records in another order."""
    new_row = np.empty(len(order), np.int32)
    new_row[order] = np.arange(len(order))
    return curves._replace(place=curves.place[order], there=new_row[curves.there])
