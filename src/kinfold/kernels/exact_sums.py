"""Exact sums of doubles, from which summands can be removed again, and the centre of the remaining records.

A sum is a row of limbs, one for each 32 bits from the smallest denormal (2⁻¹⁰⁷⁴) up to 2⁵⁹⁰: a fixed-point number wide
enough for every double up to 1e150. A double changes three limbs. No limb overflows before 2³⁰ summands, so the sum is
exact; `rounded` rounds it once, to nearest even: the result of `math.fsum`.

The centre holds the mean of each number (its exact sum, rounded once, over the count), the lower median of each ordinal
code and the mode of each nominal code, the lowest of equals.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfold.kernels.compiling import Int, Real, inlined, lean
from kinfold.kernels.records import Mixed, Place, Scales, move

LIMBS = 52
DIGITS = LIMBS + 2  # two zeros below the lowest limb
_LOW = 0xFFFFFFFF
_HIDDEN = 1 << 52
_UNIT = -1074


@lean
def add(sums: NDArray[np.int64], row: Int, bits: Int, times: Int) -> None:
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
def rounded(sums: NDArray[np.int64], row: Int, digits: NDArray[np.int64]) -> Real:
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

    bits: NDArray[np.int64]  # (n, a) of the records' numbers
    sums: NDArray[np.int64]  # (a, LIMBS)
    digits: NDArray[np.int64]  # (DIGITS,) room to round a sum
    counts: NDArray[np.int64]  # records of each code, column by column
    numbers: NDArray[np.float64]  # (a,) the last means; at first those of numpy


def make_centroid(m: Mixed) -> Centroid:
    """Return the centre of these records before any is counted."""
    wide = m.numbers.shape[1]
    return Centroid(
        m.numbers.view(np.int64), np.zeros((wide, LIMBS), np.int64), np.zeros(DIGITS, np.int64),
        np.zeros(m.scales.column[-1].start, np.int64), m.numbers.mean(axis=0),
    )  # fmt: skip


@inlined
def count(m: Mixed, centroid: Centroid, record: Int, times: Int) -> None:
    """Add a record to the centre (times = 1) or remove it (-1)."""
    for j in range(centroid.bits.shape[1]):
        add(centroid.sums, j, centroid.bits[record, j], times)
    for j in range(m.codes.shape[1]):
        centroid.counts[m.scales.column[j].start + m.codes[record, j]] += times


@inlined
def to_centre(left: Int, scales: Scales, centroid: Centroid, place: Place) -> None:
    """Move the place to the centre of the `left` records that are counted."""
    for j in range(place.numbers.size):
        centroid.numbers[j] = rounded(centroid.sums, j, centroid.digits) / left
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
