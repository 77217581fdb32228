"""Drawing records by a hash of their places: the same ones on any engine, whoever holds which rows."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]

AT_ONCE = 10_000_000
SALT = 1 << 40  # another hash than those by which records are parted


def drawn(records: int, many: int) -> Ints:
    """Return the places of about so many of all records, in order; all of them where there are no more.

    >>> len(drawn(10, 20)), 80 < len(drawn(1000, 100)) < 120
    (10, True)
    """
    if records <= many:
        return np.arange(records, dtype=np.int64)
    limit, found = np.uint64(2**64 * (many / records)), []
    for start in range(0, records, AT_ONCE):
        places = np.arange(start, min(start + AT_ONCE, records), dtype=np.int64)
        found.append(places[hashed(places, SALT) < limit])
    return np.concatenate(found)


def shares(records: int, many: int) -> Ints:
    """Return how many of all records each of so many stands for.

    >>> shares(10, 4).tolist()
    [2, 3, 3, 2]
    """
    upto = np.round(np.linspace(0, records, many + 1)).astype(np.int64)
    return np.asarray(upto[1:] - upto[:-1])


def hashed(numbers: NDArray[np.integer[Any]], salt: int) -> NDArray[np.uint64]:
    """Return a hash of each number (splitmix64): the same everywhere, and as good as drawn."""
    with np.errstate(over="ignore"):
        x = numbers.astype(np.uint64) + np.uint64((salt + 1) * 0x9E3779B97F4A7C15 % 2**64)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))
