"""Random moves: single relocations and swaps, drawn at random, that may cost a little and keep every promise.

    a step: a record i, a record j near it (or anywhere, now and then), their groups a and b
        i goes to b, or changes places with j or with another member of b
        if the cost grows by more than the heat of the step times a random exponential: nothing
        if a or b would miss a promise or fall below k: nothing

Where promises forbid most moves, many cheap looks lead further than a few thorough ones (see `descent`); a search takes
both kinds of steps. The cost is tried first, since it is cheap; the promises after it. Only the number of the step
and the random stream decide, never a clock.

Cost: O(d + group size) a step.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from kinfold.kernels import exchanges, groups, mixed, promises
from kinfold.kernels.compiling import entry, inlined
from kinfold.kernels.draws import below, draw, stream_of
from kinfold.kernels.exchanges import Curves, allowed, any_member, make, neighbour
from kinfold.kernels.groups import Groups, fits, recount
from kinfold.kernels.moves import moved, swapped

if TYPE_CHECKING:
    from kinfold.kernels.draws import Stream
    from kinfold.kernels.groups import Floats
    from kinfold.kernels.mixed import Mixed
    from kinfold.kernels.promises import Promises

WIDEST = 6  # the farthest neighbour tried is 2^6 places away along a curve
ANYWHERE = 8  # once in so many times a partner is any record


@inlined
def partner(s: Groups, stream: Stream, i: int, j: int) -> int:
    """Draw who changes places with i: nobody (-1), j, or any member of its group; nobody only where sizes allow it."""
    b, kind = s.label[j], below(stream, 3)
    if kind == 0 and fits(s, s.label[i], -1) and fits(s, b, 1):
        return -1
    return j if kind == 1 else any_member(s, stream, b)


@entry(mixed.example(), promises.example(), groups.example(), exchanges.example(), stream_of(0), np.zeros(1))
def wander(d: Mixed, p: Promises, s: Groups, around: Curves, stream: Stream, heats: Floats) -> float:
    """Take one step for each heat, from groups that keep their promises; return the cost after them."""
    total = recount(d, None, s)
    for t in range(heats.size):
        i = below(stream, s.label.size)
        j = neighbour(around, stream, i, WIDEST, ANYWHERE)
        b = s.label[j]
        limit = -heats[t] * math.log(draw(stream))
        if s.label[i] == b:
            continue
        l = partner(s, stream, i, j)
        change = moved(d, s, i, b) if l < 0 else swapped(d, s, i, l)
        if change <= limit and allowed(p, s, i, l, b):
            total += change
            make(d, p, s, i, l, b)
    return total
