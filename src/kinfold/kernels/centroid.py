"""The centre of the records that are left: means by exact sums, so that what was counted can be taken away again.

The mean of each number is its exact sum (`exact`), rounded once, over the count; then the lower median of an ordered
code and the most frequent nested code, the lowest of equals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kinfold.kernels.compiling import Int, inlined
from kinfold.kernels.exact_sums import DIGITS, LIMBS, add, rounded
from kinfold.kernels.scales import Place, Scales, move

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kinfold.kernels.mixed import Mixed


class Centroid(NamedTuple):
    """What the centre is computed from, and where it was last."""

    bits: NDArray[np.int64]  # (n, a) of the records' numbers
    sums: NDArray[np.int64]  # (a, LIMBS)
    digits: NDArray[np.int64]  # (DIGITS,) room to round a sum
    counts: NDArray[np.int64]  # records of each code, column after column
    numbers: NDArray[np.float64]  # (a,) the means when they were last asked for (at first: rounded as they may be)


def centroid_of(m: Mixed) -> Centroid:
    """Return the centre of none of these records yet."""
    wide = m.numbers.shape[1]
    return Centroid(
        m.numbers.view(np.int64), np.zeros((wide, LIMBS), np.int64), np.zeros(DIGITS, np.int64),
        np.zeros(m.scales.column[-1].start, np.int64), m.numbers.mean(axis=0),
    )  # fmt: skip


@inlined
def count(m: Mixed, centroid: Centroid, record: Int, times: Int) -> None:
    """Add a record to the centre (times = 1) or take it away (-1)."""
    for j in range(centroid.bits.shape[1]):
        add(centroid.sums, j, centroid.bits[record, j], times)
    for j in range(m.codes.shape[1]):
        centroid.counts[m.scales.column[j].start + m.codes[record, j]] += times


@inlined
def to_centre(left: Int, scales: Scales, centroid: Centroid, place: Place) -> None:
    """Move the place to the centre of the `left` records that were counted."""
    for j in range(place.numbers.size):
        centroid.numbers[j] = rounded(centroid.sums, j, centroid.digits) / left
        place.numbers[j] = centroid.numbers[j]
    for j in range(place.codes.size):
        start, end = scales.column[j].start, scales.column[j + 1].start
        code = start
        if scales.column[j].height == 0:
            seen = centroid.counts[start]
            while 2 * seen < left:
                code += 1
                seen += centroid.counts[code]
        else:
            for other in range(start + 1, end):
                if centroid.counts[other] > centroid.counts[code]:
                    code = other
        move(scales, place, j, code - start)
