"""Sampling by a hash of the record's position, and rounding: both give the same result on any engine."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]

POSITIONS_PER_CHUNK = 10_000_000  # some 100 MB at a time
SAMPLE_SALT = 1 << 40  # differs from the salts of hashes that split records


def sample_positions(records: int, size: int) -> Ints:
    """Return the positions of a sample of about `size` records, in order; all positions if there are no more records.

    >>> len(sample_positions(10, 20)), 80 < len(sample_positions(1000, 100)) < 120
    (10, True)
    """
    if records <= size:
        return np.arange(records, dtype=np.int64)
    limit, chunks = np.uint64(2**64 * (size / records)), []
    for start in range(0, records, POSITIONS_PER_CHUNK):
        positions = np.arange(start, min(start + POSITIONS_PER_CHUNK, records), dtype=np.int64)
        chunks.append(positions[hash_numbers(positions, SAMPLE_SALT) < limit])
    return np.concatenate(chunks)


def compute_sample_weights(records: int, size: int) -> Ints:
    """Return how many of all records each record of a sample stands for.

    >>> compute_sample_weights(10, 4).tolist()
    [2, 3, 3, 2]
    """
    ends = np.round(np.linspace(0, records, size + 1)).astype(np.int64)
    return np.asarray(ends[1:] - ends[:-1])


def hash_numbers(numbers: NDArray[np.integer[Any]], salt: int) -> NDArray[np.uint64]:
    """Return a hash of each number (splitmix64): the same on any machine, and distributed like random numbers."""
    with np.errstate(over="ignore"):
        x = numbers.astype(np.uint64) + np.uint64((salt + 1) * 0x9E3779B97F4A7C15 % 2**64)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


STABLE_DIGITS = 10  # of a sum of doubles: these do not depend on the order of its terms


def round_stable(value: float) -> float:
    """Round a sum to the digits that do not depend on the order of its terms.

    >>> round_stable(0.1 + 0.2) == round_stable(0.3)
    True
    """
    return float(f"{value:.{STABLE_DIGITS}g}")
