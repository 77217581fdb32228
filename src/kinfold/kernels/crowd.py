"""The records, the points they share, and the centre of those that are left.

Equal records are one point: a search looks at a point once, however many records it has. Its records leave in
their order, for the lowest wins a tie, so those that are left are always the last ones of its list.

The centre is exact: sums in limbs (`exact`), counts of codes. Folding takes O(n d) time, a hash table of 4n to 8n
bytes and one look at each record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kinfold.kernels.compiling import Flag, Int, inlined
from kinfold.kernels.exact import DIGITS, LIMBS, add, rounded
from kinfold.kernels.gaps import HEIGHT, START, Place, Scales, move

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MIX = np.int64(-7046029254386353131)  # 2^64 / golden ratio


class Crowd(NamedTuple):
    """n records and their p points."""

    numbers: NDArray[np.float64]  # (n, a)
    codes: NDArray[np.int32]  # (n, b)
    bits: NDArray[np.int64]  # (n, a) the numbers' bits
    point: NDArray[np.int32]  # (n,) of each record
    member: NDArray[np.int32]  # (n,) records point by point, ascending within each
    start: NDArray[np.int32]  # (p + 1,) where the members of each point start
    head: NDArray[np.int32]  # (p,) its first member that is left


class Middle(NamedTuple):
    """What the centre of the records that are left is computed from."""

    sums: NDArray[np.int64]  # (a, LIMBS)
    digits: NDArray[np.int64]  # (DIGITS,) room to round a sum
    counts: NDArray[np.int64]  # records of each code, column after column


def middle(numbers: int, codes: int) -> Middle:
    """Return the centre of nothing: so many numbers, so many codes in all columns together."""
    return Middle(np.zeros((numbers, LIMBS), np.int64), np.zeros(DIGITS, np.int64), np.zeros(codes, np.int64))


@inlined
def fold(crowd: Crowd, table: NDArray[np.int32]) -> Int:
    """Fill `point`, `member`, `start` and `head`, points in the order of their first records; return how many.

    `table` has a power of two of places, more than the records, all -1.
    """
    n, point = crowd.numbers.shape[0], crowd.point
    points = 0
    for record in range(n):
        place = _hash(crowd, record) & (table.size - 1)
        while table[place] >= 0 and not _equal(crowd, crowd.member[table[place]], record):
            place = (place + 1) & (table.size - 1)
        if table[place] < 0:
            table[place] = points
            crowd.member[points] = record  # for now: the first record of each point
            points += 1
        point[record] = table[place]
        crowd.start[point[record] + 1] += 1
    for i in range(points):
        crowd.start[i + 1] += crowd.start[i]
        crowd.head[i] = crowd.start[i]
    for record in range(n):
        crowd.member[crowd.head[point[record]]] = record
        crowd.head[point[record]] += 1
    for i in range(points):
        crowd.head[i] = crowd.start[i]
    return points


@inlined
def _hash(crowd: Crowd, record: Int) -> Int:
    mixed = np.int64(0)
    for j in range(crowd.bits.shape[1]):
        value = crowd.bits[record, j] if crowd.numbers[record, j] != 0.0 else np.int64(0)  # -0.0 equals 0.0
        mixed = (mixed ^ value) * _MIX
        mixed ^= (mixed >> 32) & 0xFFFFFFFF
    for j in range(crowd.codes.shape[1]):
        mixed = (mixed ^ crowd.codes[record, j]) * _MIX
        mixed ^= (mixed >> 32) & 0xFFFFFFFF
    return mixed


@inlined
def _equal(crowd: Crowd, one: Int, other: Int) -> Flag:
    for j in range(crowd.numbers.shape[1]):
        if crowd.numbers[one, j] != crowd.numbers[other, j]:
            return False
    same = True
    for j in range(crowd.codes.shape[1]):
        same &= crowd.codes[one, j] == crowd.codes[other, j]
    return same


@inlined
def count(crowd: Crowd, scales: Scales, middle: Middle, record: Int, times: Int) -> None:
    """Add a record to the centre (times = 1) or take it away (-1)."""
    for j in range(crowd.bits.shape[1]):
        add(middle.sums, j, crowd.bits[record, j], times)
    for j in range(crowd.codes.shape[1]):
        middle.counts[scales.where[j, START] + crowd.codes[record, j]] += times


@inlined
def to_centre(left: Int, scales: Scales, middle: Middle, place: Place) -> None:
    """Move the place to the centre of the `left` records that were counted."""
    for j in range(place.numbers.size):
        place.numbers[j] = rounded(middle.sums, j, middle.digits) / left
    for j in range(place.codes.size):
        start, end = scales.where[j, START], scales.where[j + 1, START]
        code = start
        if scales.where[j, HEIGHT] == 0:
            seen = middle.counts[start]
            while 2 * seen < left:
                code += 1
                seen += middle.counts[code]
        else:
            for other in range(start + 1, end):
                if middle.counts[other] > middle.counts[code]:
                    code = other
        move(scales, place, j, code - start)


@inlined
def to_record(crowd: Crowd, scales: Scales, place: Place, record: Int) -> None:
    """Move the place to a record."""
    for j in range(place.numbers.size):
        place.numbers[j] = crowd.numbers[record, j]
    for j in range(place.codes.size):
        move(scales, place, j, np.int64(crowd.codes[record, j]))
