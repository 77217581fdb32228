"""Merging: the class that misses its promises most joins the class nearest to it, until none misses any.

    while some class misses its promises:
        C = the class that misses them most;  C' = the class whose centre is nearest to that of C
        merge C and C'

Each class keeps its records as a list sorted by code, one list for each row of codes; two lists are merged in one pass.

Paper: Soria-Comas et al. 2015, Algorithm 1.   Cost: O(g d + size) for a merge with g classes left: n²/k in all.
Ties: the class of the lowest number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kinfold.kernels import promises
from kinfold.kernels import records as mixed
from kinfold.kernels.compiling import Floats, Ints, Rows, entry, lean
from kinfold.kernels.promises import NESTED, Promises, equal_distance, gathered_miss, sort
from kinfold.kernels.records import Mixed, centre_code, gap_between


class Merger(NamedTuple):
    """Classes that can be merged."""

    into: Ints  # (g,) the class that this one joined, or itself
    alive: Ints  # (g,) the remaining classes, in no order: the first `standing[0]`
    standing: Ints  # (1,)
    size: Ints  # (g,)
    sums: Floats  # (g, a) of the numbers
    codes: Rows  # (g, b) of the centre
    head: Rows  # (rows, g) first record of each list
    following: Rows  # (rows, n) next record of the list, -1 at its end
    missed: Floats  # (g,)


def example_merger() -> Merger:
    """Return the smallest partition, to compile for."""
    whole, rows = np.zeros(1, np.int64), np.zeros((1, 1), np.int32)
    return Merger(whole, whole, whole, whole, np.zeros((1, 1)), rows, rows, rows, np.zeros(1))


@lean
def load_codes(p: Promises, c: Merger, row: int, g: int) -> int:
    """Put the sorted codes of a class into the room of the promises; return their number."""
    size = 0
    record = c.head[row, g]
    while record >= 0:
        p.codes_held[size] = p.codes[row, record]
        size += 1
        record = c.following[row, record]
    return size


@lean
def measure_class(p: Promises, c: Merger, g: int) -> float:
    """Return by how much a class misses its promises."""
    total = 0.0
    for r in range(p.kind.size):
        if p.kind[r] == NESTED:
            mean = 0.0
            for row in range(p.row[r], p.row[r + 1]):
                mean += equal_distance(p, row, load_codes(p, c, row, g))
            total += max(0.0, mean / (p.row[r + 1] - p.row[r]) - p.limit[r])
        else:
            total += gathered_miss(p, r, load_codes(p, c, p.row[r], g))
    return total


@lean
def update_centre(m: Mixed, c: Merger, g: int, room: Rows) -> None:
    """Compute the codes of the centre of a class."""
    for j in range(c.codes.shape[1]):
        size = 0
        record = c.head[0, g]
        while record >= 0:
            room[size] = m.codes[record, j]
            size += 1
            record = c.following[0, record]
        sort(room, size)
        c.codes[g, j] = centre_code(m, j, room[:size])


@lean
def centre_distance(m: Mixed, c: Merger, g: int, h: int) -> float:
    """Return the squared distance of the centres of two classes."""
    total = 0.0
    for j in range(c.sums.shape[1]):
        step = c.sums[g, j] / c.size[g] - c.sums[h, j] / c.size[h]
        total += step * step
    for j in range(c.codes.shape[1]):
        total += gap_between(m.scales, j, c.codes[g, j], c.codes[h, j])
    return total


@lean
def find_worst(c: Merger) -> int:
    """Return the class that misses its promises most, -1 if none does."""
    worst = -1
    for t in range(c.standing[0]):
        g = c.alive[t]
        if c.missed[g] > 0 and (
            worst < 0 or c.missed[g] > c.missed[worst] or (c.missed[g] == c.missed[worst] and g < worst)
        ):
            worst = g
    return worst


@lean
def find_nearest_class(m: Mixed, c: Merger, g: int) -> int:
    """Return the class whose centre is nearest to that of g."""
    nearest, least = -1, np.inf
    for t in range(c.standing[0]):
        h = c.alive[t]
        if h != g:
            gap = centre_distance(m, c, g, h)
            if gap < least or (gap == least and h < nearest):
                nearest, least = h, gap
    return nearest


@lean
def join_lists(p: Promises, c: Merger, row: int, g: int, h: int) -> None:
    """Merge the sorted list of class h into that of class g."""
    one, two = c.head[row, g], c.head[row, h]
    last = -1
    while one >= 0 or two >= 0:
        first = two < 0 or (one >= 0 and p.codes[row, one] <= p.codes[row, two])
        record = one if first else two
        if first:
            one = c.following[row, one]
        else:
            two = c.following[row, two]
        if last < 0:
            c.head[row, g] = record
        else:
            c.following[row, last] = record
        last = record


@lean
def unite(m: Mixed, p: Promises, c: Merger, g: int, h: int) -> None:
    """Make class h part of class g."""
    for row in range(p.codes.shape[0]):
        join_lists(p, c, row, g, h)
    c.size[g] += c.size[h]
    for j in range(c.sums.shape[1]):
        c.sums[g, j] += c.sums[h, j]
    c.into[h] = g
    for t in range(c.standing[0]):
        if c.alive[t] == h:
            c.alive[t] = c.alive[c.standing[0] - 1]
            c.standing[0] -= 1
            break
    update_centre(m, c, g, p.codes_held)
    c.missed[g] = measure_class(p, c, g)


@entry(mixed.example_records(), promises.example_promises(), example_merger())
def measure_classes(m: Mixed, p: Promises, c: Merger) -> None:
    """Measure every class, and compute the codes of its centre."""
    for g in range(c.into.size):
        c.missed[g] = measure_class(p, c, g)
        update_centre(m, c, g, p.codes_held)


@entry(mixed.example_records(), promises.example_promises(), example_merger(), 1)
def merge(m: Mixed, p: Promises, c: Merger, many: int) -> None:
    """Merge until no class misses its promises, or `many` times."""
    for _ in range(many):
        g = find_worst(c)
        if g < 0 or c.standing[0] < 2:
            return
        h = find_nearest_class(m, c, g)
        unite(m, p, c, min(g, h), max(g, h))
