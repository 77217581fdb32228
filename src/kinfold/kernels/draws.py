"""Draws: a random stream whose whole state is two integers, so that a search can stop and go on.

Two multiplicative congruential generators combined (L'Ecuyer, Commun. ACM 31 (1988), 742-774): period 2.3e18, and
nothing overflows a signed 64-bit integer, compiled or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numba

from kinfold.kernels.options import inner, kernel

if TYPE_CHECKING:
    import numpy as np

STREAM = numba.int64[::1]  # the two generators


@kernel(numba.float64(STREAM))
def draw(stream: np.ndarray) -> float:
    """Return the next number of the stream, above 0 and below 1."""
    stream[0] = (40014 * stream[0]) % 2147483563
    stream[1] = (40692 * stream[1]) % 2147483399
    mixed = stream[0] - stream[1]
    if mixed < 1:
        mixed += 2147483562
    return float(mixed * (1.0 / 2147483563.0))


@inner(numba.int64(STREAM, numba.int64))
def below(stream: np.ndarray, limit: int) -> int:
    """Return the next whole number from 0 to limit - 1."""
    return int(draw(stream) * limit)
