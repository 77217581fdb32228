"""Records as arrays: numbers and codes, scales of codes, squared distances, and equal records folded into points.

The distance is that of `kinfold.tables.points`, summed attribute by attribute, numbers first.

The row of a place holds, column by column, the squared weighted distance of its code to each code. Most of it never
changes: outside the highest ancestor below the top, every code of a nominal scale is equally distant. So a move costs
as much as the codes of that ancestor, and no table of codes by codes is needed.

Equal records are folded into one point, which a query visits once. The records of a point are removed in their order,
because the lowest wins a tie, so the remaining ones are always the last of its list. Folding takes O(n d) time and a
hash table of 4n to 8n bytes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfold.kernels.compiling import Flag, Int, Real, inlined, lean

COLUMN = np.dtype(
    [
        ("start", np.int64),  # where its codes start in a row
        ("height", np.int64),  # of a nominal scale; 0: ordinal, whose last code is null
        ("gaps", np.int64),  # where its distances start in `gap`
        ("spans", np.int64),  # where its spans start in `span`
    ],
    align=True,
)
SPAN = np.dtype([("first", np.int32), ("past", np.int32)], align=True)  # the codes under an ancestor


class Scales(NamedTuple):
    """The scales of the b code columns, one after the other."""

    column: Any  # (b + 1,) of COLUMN; the last one says where all end
    gap: NDArray[np.float64]  # squared weighted distances by steps (ordinal; the last is null's) or levels
    span: Any  # of SPAN, for each ancestor of a code, level by level below the top


class Place(NamedTuple):
    """The point that distances are measured from."""

    numbers: NDArray[np.float64]  # (a,)
    codes: NDArray[np.int32]  # (b,) -1 if the distances have no order
    row: NDArray[np.float64]  # distances to every code, column by column
    start: NDArray[np.int64]  # (b,) where each column starts in the row


def make_no_scales() -> Scales:
    """Return the scales of records without codes."""
    return Scales(np.zeros(1, COLUMN).view(np.recarray), np.zeros(0), np.zeros(0, SPAN).view(np.recarray))


def make_place(scales: Scales, numbers: int) -> Place:
    """Return a place at zero; its row holds the distances from code 0 of each column."""
    start = scales.column.start.copy()
    at = Place(np.zeros(numbers), np.zeros(len(start) - 1, np.int32), np.empty(start[-1]), start[:-1])
    for j in range(len(start) - 1):
        column = scales.column[j]
        if column.height > 0:  # a move only changes codes below the highest ancestor
            at.row[start[j] : start[j + 1]] = scales.gap[column.gaps + column.height]
        move(scales, at, j, 0)
    return at


@lean
def move(scales: Scales, place: Place, j: Int, code: Int) -> None:
    """Set column j of the place to `code`, and its row to the distances from it."""
    column = scales.column[j]
    start, height, gaps = column.start, column.height, column.gaps
    if height == 0:
        null = scales.column[j + 1].start - start - 1
        for i in range(null + 1):
            steps = null if (i == null) != (code == null) else abs(i - code)
            place.row[start + i] = scales.gap[gaps + steps]
    else:
        old = column.spans + np.int64(place.codes[j]) * height + height - 1
        for i in range(scales.span[old].first, scales.span[old].past):
            place.row[start + i] = scales.gap[gaps + height]
        for level in range(height - 1, -1, -1):
            new = column.spans + code * height + level
            for i in range(scales.span[new].first, scales.span[new].past):
                place.row[start + i] = scales.gap[gaps + level]
    place.codes[j] = code


@lean
def gap_between(scales: Scales, j: Int, one: Int, other: Int) -> Real:
    """Return the squared weighted distance of two codes of column j."""
    if one == other:  # most often
        return 0.0
    column = scales.column[j]
    if column.height == 0:
        null = scales.column[j + 1].start - column.start - 1
        steps = null if (one == null) != (other == null) else abs(one - other)
        return scales.gap[column.gaps + steps]
    level, span = 0, column.spans + np.int64(one) * column.height
    while level < column.height and not scales.span[span + level].first <= other < scales.span[span + level].past:
        level += 1
    return scales.gap[column.gaps + level]


class Mixed(NamedTuple):
    """n records with a numbers and b codes."""

    numbers: NDArray[np.float64]  # (n, a)
    codes: NDArray[np.int32]  # (n, b)
    scales: Scales


def example_records() -> Mixed:
    """Return the smallest records, to compile for."""
    return Mixed(np.zeros((1, 1)), np.zeros((1, 0), np.int32), make_no_scales())


@lean
def code_gaps(m: Mixed, i: Int, l: Int) -> Real:
    """Return the squared distance of two records over their codes alone."""
    total = 0.0
    for j in range(m.codes.shape[1]):
        total += gap_between(m.scales, j, m.codes[i, j], m.codes[l, j])
    return total


@lean
def centre_code(m: Mixed, j: Int, sorted_codes: NDArray[np.int32]) -> Int:
    """Return the lower median of ordinal codes, or the mode of nominal ones. Ties: the lowest code."""
    size = sorted_codes.size
    if m.scales.column[j].height == 0:
        return sorted_codes[(size - 1) // 2]
    best, most, i = sorted_codes[0], 0, 0
    while i < size:
        end = i
        while end < size and sorted_codes[end] == sorted_codes[i]:
            end += 1
        if end - i > most:
            best, most = sorted_codes[i], end - i
        i = end
    return best


@inlined
def to_record(m: Mixed, place: Place, record: Int) -> None:
    """Move the place to a record."""
    for j in range(place.numbers.size):
        place.numbers[j] = m.numbers[record, j]
    for j in range(place.codes.size):
        move(m.scales, place, j, np.int64(m.codes[record, j]))


_MIX = np.int64(-7046029254386353131)  # 2^64 / golden ratio


class Folded(NamedTuple):
    """The p points of n records."""

    point: NDArray[np.int32]  # (n,) of each record
    member: NDArray[np.int32]  # (n,) records point by point, ascending
    start: NDArray[np.int32]  # (p + 1,) where the members of each point start
    head: NDArray[np.int32]  # (p,) its first remaining member


def make_unfolded(sizes: NDArray[np.integer]) -> Folded:
    """Return points that are one record each, which counts as many times as `sizes` says."""
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    rows = np.arange(len(sizes), dtype=np.int32)
    return Folded(rows, rows.copy(), start, start[:-1].copy())


@inlined
def fold(m: Mixed, bits: NDArray[np.int64], folded: Folded, table: NDArray[np.int32]) -> Int:
    """Fill `folded`, with points in the order of their first records, and return their number.

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
