"""The least t: how near to the table the confidential values of one class of several can be at all.

Where there are several classes, one has at most half of the records, and at least k. A class of m records holds whole
numbers of each value, and the table would have it hold m times their shares:

    values in order     m·F(v) records up to each value, rounded to the nearest: Σ |m·F(v) - round| / (m (values - 1))
    equally far         the shares rounded down, and up for the largest remainders: Σ |m·share - count| / (2 m)
    a hierarchy         the mean over its levels of the latter: a bound from below

The other records together are nearer to the table than these m, so for values in order or equally far, two classes can
be that near, and no more can be nearer. A smaller t is kept by one class of everything, and by nothing else.

Cost: O(values) for each size; sizes are looked at from half of the records down, until one is near enough. What would
take more than `WORK` is not said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kinfold.methods.partition.requirement import Requirement
    from kinfold.rows.points import Floats

FIRST = 64  # sizes looked at first: nearly always one of them is near enough
CELLS = 1_000_000  # at a time after those
WORK = 50_000_000  # values times sizes: about a second
ROUNDING = 1e-9


def least_closeness(required: Requirement, k: int, enough: float = 0.0) -> float | None:
    """Return the least t that several classes of k can keep, or any that is at most `enough`; None if it is not known.

    >>> from kinfold.methods.partition.requirement import Requirement
    >>> from kinfold.models import TCloseness
    >>> wages = Requirement.close([1, 2, 3, 4, 5, 6], 0.1)
    >>> round(least_closeness(wages, 2), 3), round(least_closeness(wages, 3), 3)
    (0.1, 0.1)
    >>> ill = Requirement.of(TCloseness(0.01, "ill", "equal"), ["flu", "cold", "cold", "cold", "cold"])
    >>> least_closeness(ill, 2)
    0.2
    """
    totals = [np.bincount(row) for row in required.rows()]
    ordered = required.criterion.statistic == "ordered"
    values, n = sum(map(len, totals)), len(required.codes)
    top, many, least = n // 2, FIRST, np.inf
    while top >= k:
        sizes = np.arange(max(k, top - many + 1), top + 1)
        found = [(_ordered if ordered else _equal)(total, sizes) for total in totals]
        least = min(least, float(np.mean(found, axis=0).min()))
        if least <= enough + ROUNDING:
            break
        if (n // 2 - int(sizes[0])) * values > WORK:
            return None
        top, many = int(sizes[0]) - 1, max(1, CELLS // values)
    return least


def _ordered(total: NDArray[np.int64], sizes: NDArray[np.int64]) -> Floats:
    """Return the least distance of a class of each size over values in order."""
    n = int(total.sum())
    if len(total) < 2:
        return np.zeros(len(sizes))
    over = sizes[:, None] * np.cumsum(total)[:-1] % n
    return np.asarray(np.minimum(over, n - over).sum(axis=1) / (n * sizes * (len(total) - 1)))


def _equal(total: NDArray[np.int64], sizes: NDArray[np.int64]) -> Floats:
    """Return the least distance of a class of each size where any two values are equally far: by largest remainders."""
    n = int(total.sum())
    over = -np.sort(-(sizes[:, None] * total % n), axis=1)  # remainders, the largest first
    rounded_up = np.arange(len(total)) < over.sum(axis=1)[:, None] // n
    return np.asarray(np.where(rounded_up, n - over, over).sum(axis=1) / (2 * n * sizes))
