"""The centre of the records that are left: exact, whatever was taken away before.

Numbers are kept as whole multiples of their column's smallest unit, so that adding and taking away lose nothing.
The sum is rounded once, to nearest even (what `math.fsum` gives), and divided by the count; whoever computes the
centre in another way gets the same bits. Codes are counted.

Cost: a few big-integer operations for each number that leaves. The kernels hold the same sum in limbs.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from kinfold.rows.points import Ordered

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kinfold.rows.points import Codes, Floats, Points

_DIGITS = 53  # bits of a double


class Centre:
    """The centre of the points that have not left.

    >>> from kinfold.rows.points import Points
    >>> centre = Centre(Points.of([[1e16], [1.0], [-1e16]]))
    >>> centre.numbers().tolist()
    [0.3333333333333333]
    >>> centre.leave(np.array([0, 2]))
    >>> centre.numbers().tolist()
    [1.0]
    """

    def __init__(self, points: Points) -> None:
        self._left = len(points)
        self._units, self._scale = _units(points.numbers)
        self._sums = self._units.sum(axis=0)
        self._codes = points.codes
        self._scales = points.scales
        self._counts = [np.bincount(points.codes[:, j], minlength=s.codes) for j, s in enumerate(points.scales)]

    def leave(self, rows: NDArray[np.intp]) -> None:
        """Take these rows away."""
        self._left -= len(rows)
        self._sums = self._sums - self._units[rows].sum(axis=0)
        for j, counts in enumerate(self._counts):
            np.subtract.at(counts, self._codes[rows, j], 1)

    def numbers(self) -> Floats:
        """Return the mean of each number: the exact sum, rounded once, over the count."""
        sums = [float(total * scale) for total, scale in zip(self._sums, self._scale, strict=True)]
        return np.array(sums, np.float64) / self._left

    def codes(self) -> Codes:
        """Return the lower median of each ordered code and the most frequent of each nested one."""
        return np.array([self._middle(j) for j in range(len(self._scales))], np.int32)

    def _middle(self, j: int) -> int:
        counts = self._counts[j]
        if isinstance(self._scales[j], Ordered):
            return int(np.searchsorted(counts.cumsum(), (self._left + 1) // 2))
        return int(counts.argmax())


def _units(numbers: Floats) -> tuple[NDArray[np.object_], list[Fraction]]:
    """Each number as a whole multiple of its column's unit, and the units."""
    fractions, exponents = np.frexp(numbers)
    whole = np.ldexp(fractions, _DIGITS).astype(np.int64).astype(object)
    lowest = exponents.min(axis=0, initial=0)
    return whole << (exponents - lowest).astype(object), [Fraction(2) ** int(e - _DIGITS) for e in lowest]
