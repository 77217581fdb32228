"""Folding: equal records are one point, which a query looks at once however many records it has.

The records of a point leave in their order, for the lowest wins a tie, so those that are left are always the last ones
of its list. Folding takes O(n d) time, a hash table of 4n to 8n bytes and one look at each record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kinfold.kernels.compiling import Flag, Int, inlined

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kinfold.kernels.mixed import Mixed

_MIX = np.int64(-7046029254386353131)  # 2^64 / golden ratio


class Folded(NamedTuple):
    """The p points of n records."""

    point: NDArray[np.int32]  # (n,) of each record
    member: NDArray[np.int32]  # (n,) records point by point, ascending within each
    start: NDArray[np.int32]  # (p + 1,) where the members of each point start
    head: NDArray[np.int32]  # (p,) its first member that is left


def unfolded(sizes: NDArray[np.integer]) -> Folded:
    """Return points that are records of their own, each of which counts so many times."""
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    rows = np.arange(len(sizes), dtype=np.int32)
    return Folded(rows, rows.copy(), start, start[:-1].copy())


@inlined
def fold(m: Mixed, bits: NDArray[np.int64], folded: Folded, table: NDArray[np.int32]) -> Int:
    """Fill `folded`, points in the order of their first records, and return how many there are.

    `bits` are those of the numbers. `table` has a power of two of places, more than the records, all -1.
    """
    n, point = m.numbers.shape[0], folded.point
    points = 0
    for record in range(n):
        place = _hash(m, bits, record) & (table.size - 1)
        while table[place] >= 0 and not _equal(m, folded.member[table[place]], record):
            place = (place + 1) & (table.size - 1)
        if table[place] < 0:
            table[place] = points
            folded.member[points] = record  # for now: the first record of each point
            points += 1
        point[record] = table[place]
        folded.start[point[record] + 1] += 1
    for i in range(points):
        folded.start[i + 1] += folded.start[i]
        folded.head[i] = folded.start[i]
    for record in range(n):
        folded.member[folded.head[point[record]]] = record
        folded.head[point[record]] += 1
    for i in range(points):
        folded.head[i] = folded.start[i]
    return points


@inlined
def _hash(m: Mixed, bits: NDArray[np.int64], record: Int) -> Int:
    mixed = np.int64(0)
    for j in range(bits.shape[1]):
        value = bits[record, j] if m.numbers[record, j] != 0.0 else np.int64(0)  # -0.0 equals 0.0
        mixed = (mixed ^ value) * _MIX
        mixed ^= (mixed >> 32) & 0xFFFFFFFF
    for j in range(m.codes.shape[1]):
        mixed = (mixed ^ m.codes[record, j]) * _MIX
        mixed ^= (mixed >> 32) & 0xFFFFFFFF
    return mixed


@inlined
def _equal(m: Mixed, one: Int, other: Int) -> Flag:
    for j in range(m.numbers.shape[1]):
        if m.numbers[one, j] != m.numbers[other, j]:
            return False
    same = True
    for j in range(m.codes.shape[1]):
        same &= m.codes[one, j] == m.codes[other, j]
    return same
