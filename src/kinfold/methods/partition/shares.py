"""Shares: how large a class has to be so that one record of each stratum often has nearly the shares of the table.

A column without an order is sorted by marginality and cut into as many strata as a class has records. Most strata hold
one value, so a class has about as many records of a value as its share asks for, rounded up or down. How often that
is close enough is tried out on some classes drawn at random, for growing sizes.

Cost: O(TRIED · size) a size, at most as many sizes as it takes.   Ties: the smallest size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold.methods.partition.marginality import ranked

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kinfold.methods.partition.requirement import Requirement

TRIED = 200  # classes drawn for a size; fewer large ones
OFTEN = 0.45  # of them must be close: the others are repaired, which costs less than classes that are larger
STEP = 1.1  # between two sizes that are tried, where they are large


def fitting_size(required: Requirement, k: int) -> int:
    """Return the smallest size from k up (in steps) at which classes of one record a stratum are often close.

    >>> from kinfold.methods.partition.requirement import Requirement
    >>> from kinfold.models import TCloseness
    >>> ill = Requirement.of(TCloseness(0.1, "ill", "equal"), ["flu", "cold", "cold", "cold"] * 50)
    >>> fitting_size(ill, 2), fitting_size(ill, 7)
    (3, 7)
    """
    n = len(required.codes)
    order = np.argsort(ranked(required), kind="stable")
    size = k
    while 2 * size <= n:
        if (distances(required, _drawn(order, size)) <= required.criterion.limit).mean() >= OFTEN:
            return size
        size = max(size + 1, int(size * STEP))
    return max(k, n // 2)


def _drawn(order: NDArray[np.intp], size: int) -> NDArray[np.intp]:
    """Draw some classes: one record of each stratum."""
    chance = np.random.default_rng(0)
    start = np.arange(size) * len(order) // size
    past = np.arange(1, size + 1) * len(order) // size
    return np.asarray(order[chance.integers(start, past, (max(20, min(TRIED, 50_000 // size)), size))])


def distances(required: Requirement, classes: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the earth mover's distance of each class, a row of records, to the table: the mean over the levels."""
    many, size = classes.shape
    found = []
    for codes in required.rows():
        values = int(codes.max()) + 1
        share = np.bincount(codes, minlength=values) / len(codes)
        cell = np.arange(many)[:, None] * values + codes[classes]
        count = np.bincount(cell.ravel(), minlength=many * values).reshape(many, values)
        found.append(0.5 * np.abs(count / size - share).sum(axis=1))
    return np.asarray(np.mean(found, axis=0))
