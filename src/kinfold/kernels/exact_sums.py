"""Sums of doubles without any rounding, so that what was added can be taken away again.

A sum is a row of limbs, one for each 32 bits from the smallest denormal (2⁻¹⁰⁷⁴) up to 2⁵⁹⁰: a fixed-point number
wide enough for every double up to 1e150. A double touches three limbs. No limb overflows before 2³⁰ summands, so
the sum is exact; `rounded` rounds it once, to nearest even: the result of `math.fsum`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from kinfold.kernels.compiling import Int, Real, inlined, lean

if TYPE_CHECKING:
    from numpy.typing import NDArray

LIMBS = 52
DIGITS = LIMBS + 2  # two zeros below the lowest limb
_LOW = 0xFFFFFFFF
_HIDDEN = 1 << 52
_UNIT = -1074


@lean
def add(sums: NDArray[np.int64], row: Int, bits: Int, times: Int) -> None:
    """Add the double with these bits to a row of limbs, so many times (a negative count takes it away)."""
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
    sign = 1
    if _carry(sums, row, digits) < 0:  # two's complement: turn the digits round
        sign = -1
        carry = np.int64(1)
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
    # 62 leading bits, the last of which also says whether anything follows: enough to round to 53 only once
    word = (first << 30) | (second >> 2) | (rest != 0)
    return math.ldexp(float(sign * word), 32 * (top - 3) - shift + 2 + _UNIT)


@inlined
def _carry(sums: NDArray[np.int64], row: Int, digits: NDArray[np.int64]) -> Int:
    """Write the sum as digits of 32 bits, lowest first after two zeros; return what is beyond the last."""
    digits[0] = 0
    digits[1] = 0
    carry = np.int64(0)
    for i in range(LIMBS):
        carry += sums[row, i]
        digits[i + 2] = carry & _LOW
        carry >>= 32
    return carry
