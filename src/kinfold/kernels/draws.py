"""The random stream of every search. Its whole state is two integers, so that a search can stop and continue.

Two multiplicative congruential generators combined (L'Ecuyer, Commun. ACM 31 (1988), 742-774): their period is 2.3e18,
and nothing overflows a signed 64-bit integer, compiled or not.
"""

from __future__ import annotations

import numpy as np

from kinfold.kernels.compiling import Ints, entry, inner

Stream = Ints  # (2,) the two generators


def make_stream(seed: int) -> Stream:
    """Return the stream of a seed, at its start."""
    drawn = np.random.SeedSequence(seed).generate_state(2, np.uint32)
    return np.asarray(1 + drawn % 2_000_000_000, np.int64)


@entry(make_stream(0))
def draw(stream: Stream) -> float:
    """Return the next number of the stream, above 0 and below 1."""
    stream[0] = (40014 * stream[0]) % 2147483563
    stream[1] = (40692 * stream[1]) % 2147483399
    mixed = stream[0] - stream[1]
    if mixed < 1:
        mixed += 2147483562
    return float(mixed * (1.0 / 2147483563.0))


@inner
def below(stream: Stream, limit: int) -> int:
    """Return the next whole number from 0 to limit - 1."""
    return int(draw(stream) * limit)
