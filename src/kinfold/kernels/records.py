"""Records as arrays: numbers and codes, squared distances, equal records folded into points, and their exact centre.

The distance is that of `kinfold.tables.points`, summed attribute by attribute, numbers first.

The row of a place holds, column by column, the squared weighted distance of its code to each code. Most of it never
changes: outside the highest ancestor below the top, every code of a nominal scale is equally distant. So a move costs
as much as the codes of that ancestor, and no table of codes by codes is needed.

Equal records are folded into one point, which a query visits once. The records of a point are removed in their order,
because the lowest wins a tie, so the remaining ones are always the last of its list. Folding takes O(n d) time and a
hash table of 4n to 8n bytes.

Exact sums of doubles, from which summands can be removed again: a sum is a row of limbs, one for each 32 bits from the
smallest denormal (2⁻¹⁰⁷⁴) up to 2⁵⁹⁰, a fixed-point number wide enough for every double up to 1e150. A double changes
three limbs. No limb overflows before 2³⁰ summands, so the sum is exact; `round_sum` rounds it once, to nearest even:
the result of `math.fsum`.

The centre of the remaining records holds the mean of each number (its exact sum, rounded once, over the count), the
lower median of each ordinal code and the mode of each nominal code, the lowest of equals.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfold.kernels.compiling import Flag, Floats, Int, Ints, Real, Rows, inlined, lean

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
    gap: Floats  # squared weighted distances by steps (ordinal; the last is null's) or levels
    span: Any  # of SPAN, for each ancestor of a code, level by level below the top


class Place(NamedTuple):
    """The point that distances are measured from."""

    numbers: Floats  # (a,)
    codes: Rows  # (b,) -1 if the distances have no order
    row: Floats  # distances to every code, column by column
    start: Ints  # (b,) where each column starts in the row


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

    numbers: Floats  # (n, a)
    codes: Rows  # (n, b)
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
def centre_code(m: Mixed, j: Int, sorted_codes: Rows) -> Int:
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

    point: Rows  # (n,) of each record
    member: Rows  # (n,) records point by point, ascending
    start: Rows  # (p + 1,) where the members of each point start
    head: Rows  # (p,) its first remaining member


def make_unfolded(sizes: NDArray[np.integer]) -> Folded:
    """Return points that are one record each, which counts as many times as `sizes` says."""
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    rows = np.arange(len(sizes), dtype=np.int32)
    return Folded(rows, rows.copy(), start, start[:-1].copy())


@inlined
def fold(m: Mixed, bits: Ints, folded: Folded, table: Rows) -> Int:
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
def _hash(m: Mixed, bits: Ints, record: Int) -> Int:
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


LIMBS = 52  # of 32 bits: exact sums of doubles from 2^-1074 to `MAX_MAGNITUDE`
DIGITS = LIMBS + 2  # two zeros below the lowest limb
_LOW = 0xFFFFFFFF  # the lowest 32 bits
_HIDDEN = 1 << 52  # the leading bit of a double, which is not stored
_UNIT = -1074  # the exponent of the smallest denormal


@lean
def add_to_sum(sums: Ints, row: Int, bits: Int, times: Int) -> None:
    """Add the double with these bits to a row of limbs, `times` times; a negative count removes it."""
    place = (bits >> 52) & 0x7FF
    digits = bits & (_HIDDEN - 1)
    if place > 0:
        digits |= _HIDDEN
        place -= 1
    if bits < 0:
        times = -times
    limb = place >> 5
    shift = place & 31
    low = (digits & _LOW) << shift
    high = (digits >> 32) << shift
    sums[row, limb] += times * (low & _LOW)
    sums[row, limb + 1] += times * ((low >> 32) + (high & _LOW))
    sums[row, limb + 2] += times * (high >> 32)


@lean
def round_sum(sums: Ints, row: Int, digits: Ints) -> Real:
    """Return the double nearest to the sum, ties to even; `digits` is room for DIGITS integers."""
    digits[0] = digits[1] = 0
    sign, carry = 1, np.int64(0)
    for i in range(LIMBS):  # the sum as digits of 32 bits, lowest first after two zeros
        carry += sums[row, i]
        digits[i + 2] = carry & _LOW
        carry >>= 32
    if carry < 0:  # two's complement: negate the digits
        sign, carry = -1, np.int64(1)
        for i in range(2, DIGITS):
            carry += _LOW - digits[i]
            digits[i] = carry & _LOW
            carry >>= 32
    top = DIGITS - 1
    while top > 1 and digits[top] == 0:
        top -= 1
    if top == 1:
        return 0.0
    shift = 0
    while digits[top] << shift <= _LOW >> 1:
        shift += 1
    first = (digits[top] << shift) | (digits[top - 1] >> (32 - shift))
    second = ((digits[top - 1] << shift) & _LOW) | (digits[top - 2] >> (32 - shift))
    rest = (second & 3) | ((digits[top - 2] << shift) & _LOW)
    for i in range(top - 2):
        rest |= digits[i]
    # 62 leading bits, the last of which is also set if any bit follows: enough to round to 53 bits once
    word = (first << 30) | (second >> 2) | (rest != 0)
    return math.ldexp(float(sign * word), 32 * (top - 3) - shift + 2 + _UNIT)


class Centroid(NamedTuple):
    """What the centre is computed from, and its last numbers."""

    bits: Ints  # (n, a) of the records' numbers
    sums: Ints  # (a, LIMBS)
    digits: Ints  # (DIGITS,) room to round a sum
    counts: Ints  # records of each code, column by column
    numbers: Floats  # (a,) the last means; at first those of numpy


def make_centroid(m: Mixed) -> Centroid:
    """Return the centre of these records before any is counted."""
    wide = m.numbers.shape[1]
    return Centroid(
        m.numbers.view(np.int64), np.zeros((wide, LIMBS), np.int64), np.zeros(DIGITS, np.int64),
        np.zeros(m.scales.column[-1].start, np.int64), m.numbers.mean(axis=0),
    )  # fmt: skip


@inlined
def count_record(m: Mixed, centroid: Centroid, record: Int, times: Int) -> None:
    """Add a record to the centre (times = 1) or remove it (-1)."""
    for j in range(centroid.bits.shape[1]):
        add_to_sum(centroid.sums, j, centroid.bits[record, j], times)
    for j in range(m.codes.shape[1]):
        centroid.counts[m.scales.column[j].start + m.codes[record, j]] += times


@inlined
def to_centre(left: Int, scales: Scales, centroid: Centroid, place: Place) -> None:
    """Move the place to the centre of the `left` records that are counted."""
    for j in range(place.numbers.size):
        centroid.numbers[j] = round_sum(centroid.sums, j, centroid.digits) / left
        place.numbers[j] = centroid.numbers[j]
    for j in range(place.codes.size):
        start, end = scales.column[j].start, scales.column[j + 1].start
        code = start
        if scales.column[j].height == 0:
            counted = centroid.counts[start]
            while 2 * counted < left:
                code += 1
                counted += centroid.counts[code]
        else:
            for other in range(start + 1, end):
                if centroid.counts[other] > centroid.counts[code]:
                    code = other
        move(scales, place, j, code - start)
