"""Squared distances of all pairs of records, the nearest records of each, curves, the means of groups, and paths.

    chain       go from a record to the nearest one not visited yet, and so on
    shorten     2-opt (reverse a stretch of the path) and Or-opt (move one record), towards near records
    cut_path    the shortest path over the cutting points, groups of k to 2k-1 (Hansen & Mukherjee 2003, here with the
                cost of any number of attributes)

Cost: O(n² a) time; O(n²) memory for a table, O(n) without. chain O(n²); shorten O(n t) a round, and the length of each
reversed stretch; cut_path O(n k²).   Ties: the lowest index is the nearer; the shorter group.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from kinfold.kernels.compiling import Floats, Int, Ints, Rows, entry, inlined, inner, lean
from kinfold.kernels.records import DIGITS, LIMBS, add_to_sum, round_sum

MIN_PATH_GAIN = 1e-12  # a gain below this is rounding
_GAPS, _PATH = np.zeros((1, 1)), np.zeros(1, np.int32)  # to compile for
RUN = 12  # records that are sorted by insertion before runs are merged


@inner
def row_distance(numbers: Floats, i: int, j: int) -> float:
    """Return the squared distance of two rows."""
    total = 0.0
    for t in range(numbers.shape[1]):
        step = numbers[i, t] - numbers[j, t]
        total += step * step
    return total


@inner
def keep_nearest(least: Floats, near: Rows, count: int, distance: float, j: int) -> int:
    """Insert row j, at this distance, into the nearest rows so far; return how many there are now."""
    limit = least.size
    if count == limit and distance >= least[limit - 1]:
        return count
    at = min(count, limit - 1)
    while at > 0 and least[at - 1] > distance:
        least[at] = least[at - 1]
        near[at] = near[at - 1]
        at -= 1
    least[at] = distance
    near[at] = j
    return min(count + 1, limit)


@entry(np.zeros((1, 1)), np.zeros((1, 1)))
def add_distances(numbers: Floats, squared: Floats) -> None:
    """Add to `squared` the squared distance of each pair of rows."""
    for i in range(numbers.shape[0]):
        for j in range(i):
            total = row_distance(numbers, i, j)
            squared[i, j] += total
            squared[j, i] += total


@entry(np.zeros((1, 1)), np.zeros(1, np.int64), np.zeros((1, 1)))
def add_code_distances(table: Floats, place: Ints, squared: Floats) -> None:
    """Add to `squared` the distance of each pair of rows in one attribute: `table` has it for each pair of values."""
    for i in range(place.size):
        for j in range(place.size):
            squared[i, j] += table[place[i], place[j]]


@entry(np.zeros((1, 1)), np.zeros((1, 1), np.int32))
def find_nearest(squared: Floats, near: Rows) -> None:
    """Fill each row of `near` with the nearest other records, nearest first, from a table of all distances."""
    least = np.empty(near.shape[1])
    for i in range(squared.shape[0]):
        count = 0
        for j in range(squared.shape[0]):
            if j != i:
                count = keep_nearest(least, near[i], count, squared[i, j], j)


@entry(np.zeros((1, 1)), np.zeros((1, 1), np.int32))
def find_nearest_rows(numbers: Floats, near: Rows) -> None:
    """Fill each row of `near` with the nearest other rows, nearest first, from their numbers."""
    least = np.empty(near.shape[1])
    for i in range(numbers.shape[0]):
        count = 0
        for j in range(numbers.shape[0]):
            if j != i:
                count = keep_nearest(least, near[i], count, row_distance(numbers, i, j), j)


@entry(np.zeros((1, 1)), np.zeros(2, np.int64), np.zeros((1, 1)))
def group_means(values: Floats, starts: Ints, means: Floats) -> None:
    """Write the mean of rows starts[g] to starts[g + 1] into row g of `means`: an exact sum, rounded once."""
    bits = values.view(np.int64)
    sums, digits = np.zeros((1, LIMBS), np.int64), np.zeros(DIGITS, np.int64)
    for group in range(means.shape[0]):
        begin, end = starts[group], starts[group + 1]
        for column in range(values.shape[1]):
            for row in range(begin, end):
                add_to_sum(sums, 0, bits[row, column], 1)
            means[group, column] = round_sum(sums, 0, digits) / (end - begin)
            sums[:] = 0


@entry(_GAPS, _PATH, 1)
def chain(gaps: Floats, path: Rows, first: int) -> None:
    """Fill `path` from the first record on, always with the nearest record not visited yet."""
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
def cross_steps(gaps: Floats, path: Rows, place: Rows, i: int, j: int, side: int) -> bool:
    """Replace the steps from i and j to their neighbours on this side by a step from i to j, if that is shorter."""
    n = path.size
    before = gaps[path[i], path[i + side]]
    after = gaps[path[i], path[j]]
    if 0 <= j + side < n:
        before += gaps[path[j], path[j + side]]
        after += gaps[path[i + side], path[j + side]]
    if after >= before - MIN_PATH_GAIN:
        return False
    low, high = min(i, j) + (side > 0), max(i, j) - (side < 0)
    while low < high:  # reverse the stretch between them
        path[low], path[high] = path[high], path[low]
        place[path[low]] = low
        place[path[high]] = high
        low += 1
        high -= 1
    return True


@inner
def insert_record(gaps: Floats, path: Rows, place: Rows, i: int, j: int) -> bool:
    """Put the record at j between those at i and i + 1, if that is shorter."""
    if j in (i, i + 1) or j in (0, path.size - 1):
        return False
    c = path[j]
    gain = gaps[path[j - 1], c] + gaps[c, path[j + 1]] - gaps[path[j - 1], path[j + 1]]
    gain += gaps[path[i], path[i + 1]] - gaps[path[i], c] - gaps[c, path[i + 1]]
    if gain <= MIN_PATH_GAIN:
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
def shorten(gaps: Floats, near: Rows, path: Rows, many: int) -> int:
    """Go along the path once and take each gain towards the `many` nearest records; return the number of gains."""
    n = path.size
    gains = 0
    place = np.empty(n, np.int32)
    for t in range(n):
        place[path[t]] = t
    for i in range(n - 1):
        for u in range(min(many, near.shape[1])):
            a, c = path[i], near[path[i], u]
            if gaps[a, c] >= gaps[a, path[i + 1]] and (i == 0 or gaps[a, c] >= gaps[a, path[i - 1]]):
                break
            done = place[c] != i + 1 and cross_steps(gaps, path, place, i, place[c], 1)
            done = done or (i > 0 and place[c] != i - 1 and cross_steps(gaps, path, place, i, place[c], -1))
            done = done or insert_record(gaps, path, place, i, place[c])
            if done:
                gains += 1
                break
    return gains


@entry(_GAPS, _PATH, 1, _PATH)
def cut_path(gaps: Floats, path: Rows, k: int, labels: Rows) -> float:
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
    end, label = n, 0
    while end > 0:
        for t in range(start[end], end):
            labels[path[t]] = label
        label += 1
        end = start[end]
    return float(least[n])


class Sorting(NamedTuple):
    """Rows to sort by their keys, and room for both."""

    key: Floats
    order: Ints
    other_key: Floats
    other: Ints


@inlined
def _widest_column(x: Floats, rows: Ints, ends: Floats) -> Int:
    """Return the column with the widest range in these rows, the first of a tie; `ends` is room for two rows."""
    ends[:] = x[rows[0]]
    for row in rows:
        for j in range(x.shape[1]):
            v = x[row, j]
            ends[0, j] = v if v < ends[0, j] else ends[0, j]
            ends[1, j] = v if v > ends[1, j] else ends[1, j]
    widest = 0
    for j in range(1, x.shape[1]):
        if ends[1, j] - ends[0, j] > ends[1, widest] - ends[0, widest]:
            widest = j
    return widest


@lean
def _sort_part(s: Sorting, begin: Int, end: Int) -> None:
    """Sort order[begin:end] by key; rows of equal keys keep their order."""
    key, order = s.key, s.order
    for low in range(begin, end, RUN):
        for i in range(low + 1, min(low + RUN, end)):
            v, row, at = key[i], order[i], i
            while at > low and key[at - 1] > v:
                key[at], order[at] = key[at - 1], order[at - 1]
                at -= 1
            key[at], order[at] = v, row
    width = RUN
    while width < end - begin:
        for low in range(begin, end, 2 * width):
            middle, high = min(low + width, end), min(low + 2 * width, end)
            if middle < high and key[middle - 1] > key[middle]:
                _merge_runs(s, low, middle, high)
        width *= 2


@lean
def _merge_runs(s: Sorting, low: Int, middle: Int, high: Int) -> None:
    """Merge two runs, low to middle and middle to high; of equal keys the left one comes first."""
    key, order, other_key, other = s.key, s.order, s.other_key, s.other
    for i in range(low, middle):
        other_key[i], other[i] = key[i], order[i]
    left, right, at = low, middle, low
    while left < middle:
        if right < high and key[right] < other_key[left]:
            key[at], order[at] = key[right], order[right]
            right += 1
        else:
            key[at], order[at] = other_key[left], other[left]
            left += 1
        at += 1


@entry(np.zeros((1, 1)), 1, np.zeros(1, np.int64))
def sort_along_curve(x: Floats, leaf: int, order: Ints) -> None:
    """Halve the rows by rank along the widest column of each part, until parts have at most `leaf` rows."""
    n = order.size
    s = Sorting(np.empty(n), order, np.empty(n), np.empty(n, np.int64))
    ends, parts = np.empty((2, x.shape[1])), 1
    while n // parts > leaf:
        for part in range(parts):
            begin, end = -(-part * n // parts), -(-(part + 1) * n // parts)
            widest = _widest_column(x, order[begin:end], ends)
            for i in range(begin, end):
                s.key[i] = x[order[i], widest]
            _sort_part(s, begin, end)
        parts *= 2
