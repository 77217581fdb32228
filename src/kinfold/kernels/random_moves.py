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
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kinfold.kernels import groups, mixed, promises
from kinfold.kernels.compiling import entry, inlined
from kinfold.kernels.draws import below, draw, stream_of
from kinfold.kernels.groups import Groups, admits, fits, join, leave, recount
from kinfold.kernels.moves import moved, swapped

if TYPE_CHECKING:
    from kinfold.kernels.draws import Stream
    from kinfold.kernels.groups import Floats, Rows
    from kinfold.kernels.mixed import Mixed
    from kinfold.kernels.promises import Promises

WIDEST = 6  # the farthest neighbour tried is 2^6 places away along a curve
ANYWHERE = 8  # once in so many times a partner is any record


class Curves(NamedTuple):
    """Orders of the records that keep neighbours together, and where each record stands in them: (curves, n)."""

    order: Rows
    place: Rows


def example() -> Curves:
    """Return the smallest curve, to compile for."""
    return Curves(np.zeros((1, 1), np.int32), np.zeros((1, 1), np.int32))


@inlined
def neighbour(around: Curves, stream: Stream, i: int) -> int:
    """Draw a record near i, or, now and then, any record."""
    n = around.order.shape[1]
    if below(stream, ANYWHERE) == 0:
        return below(stream, n)
    c = below(stream, around.order.shape[0])
    reach = 1 << (1 + below(stream, WIDEST))
    at = around.place[c, i] + below(stream, 2 * reach + 1) - reach
    return around.order[c, min(max(at, 0), n - 1)]


@inlined
def partner(s: Groups, stream: Stream, i: int, j: int) -> int:
    """Draw who changes places with i: nobody (-1), j, or any member of its group; nobody only where sizes allow it."""
    b, kind = s.label[j], below(stream, 3)
    if kind == 0 and fits(s, s.label[i], -1) and fits(s, b, 1):
        return -1
    return j if kind == 1 else s.members[s.start[b] + below(stream, s.size[b])]


@inlined
def allowed(p: Promises, s: Groups, i: int, l: int, b: int) -> bool:
    """Tell whether both groups keep their promises when i goes to b, and l (-1: nobody) takes its place."""
    a = s.label[i]
    for t in range(2):  # noqa: SIM110  a loop, so that the compiler meets the promises once
        if not admits(p, s, a if t == 0 else b, i if t == 0 else l, l if t == 0 else i):
            return False
    return True


@inlined
def make(d: Mixed, p: Promises, s: Groups, i: int, l: int, b: int) -> None:
    """Send i to b, and l (-1: nobody) to where i was."""
    a = s.label[i]
    leave(d, p, s, i)
    if l >= 0:
        leave(d, p, s, l)
    for t in range(2):
        record = i if t == 0 else l
        if record >= 0:
            join(d, p, s, record, b if t == 0 else a)


@entry(mixed.example(), promises.example(), groups.example(), example(), stream_of(0), np.zeros(1))
def wander(d: Mixed, p: Promises, s: Groups, around: Curves, stream: Stream, heats: Floats) -> float:
    """Take one step for each heat, from groups that keep their promises; return the cost after them."""
    total = recount(d, None, s)
    for t in range(heats.size):
        i = below(stream, s.label.size)
        j = neighbour(around, stream, i)
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
