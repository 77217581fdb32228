"""Annealing under promises: random moves and swaps that keep every class at k records and every promise kept.

    a step: a record i, a record j near it (or anywhere, now and then), their classes a and b
        i goes to b, or changes places with j or with another member of b
        if the cost grows by more than the heat of the step times a random exponential: nothing
        if a or b would miss a promise or fall below k: nothing

The cost is tried first, since it is cheap; the promises after it. Only the number of the step and the random stream
decide, never a clock.

Cost: O(d + class size) a step.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kinfold.kernels import classes, mixed, promises
from kinfold.kernels.classes import Classes, has_room, join, leave, members_of, move_cost, swap, swap_cost
from kinfold.kernels.compiling import entry, inner
from kinfold.kernels.draws import below, draw
from kinfold.kernels.mixed import Mixed
from kinfold.kernels.promises import Promises, miss

if TYPE_CHECKING:
    from numpy.typing import NDArray

WIDEST = 6  # the farthest neighbour tried is 2^6 places away along a curve


class Search(NamedTuple):
    """What a search works on."""

    m: Mixed
    p: Promises
    s: Classes
    k: int
    curve: NDArray[np.int32]  # (curves, n) records in orders that keep neighbours together
    place: NDArray[np.int32]  # (curves, n) where each record stands in them
    stream: NDArray[np.int64]


def example() -> Search:
    """Return the smallest search, to compile for."""
    curve = np.zeros((1, 1), np.int32)
    return Search(mixed.example(), promises.example(), classes.example(), 2, curve, curve, np.ones(2, np.int64))


@inner
def neighbour(w: Search, i: int) -> int:
    """Draw a record near i, or, once in eight times, any record."""
    n = w.s.label.size
    if below(w.stream, 8) == 0:
        return below(w.stream, n)
    c = below(w.stream, w.curve.shape[0])
    reach = 1 << (1 + below(w.stream, WIDEST))
    at = w.place[c, i] + below(w.stream, 2 * reach + 1) - reach
    return w.curve[c, min(max(at, 0), n - 1)]


@inner
def keeps(w: Search, i: int, l: int, a: int, b: int) -> bool:
    """Tell whether both classes keep their promises when i goes from a to b, and l (-1: nobody) from b to a."""
    for t in range(2):
        mine = t == 0
        members = members_of(w.s, a if mine else b)
        if miss(w.p, members, i if mine else l, l if mine else i) > 0.0:
            return False
    return True


@entry(example(), np.zeros(1))
def anneal(w: Search, heats: NDArray[np.float64]) -> None:
    """Take one step for each heat."""
    s = w.s
    n = s.label.size
    for step in range(heats.size):
        i = below(w.stream, n)
        j = neighbour(w, i)
        a, b = s.label[i], s.label[j]
        limit = -heats[step] * math.log(draw(w.stream))
        kind = below(w.stream, 3)
        if a == b:
            continue
        l = -1
        if kind > 0 or s.size[a] <= w.k or not has_room(s, b):
            l = j if kind == 1 else s.members[s.start[b] + below(w.stream, s.size[b])]
        cost = move_cost(w.m, s, i, b) if l < 0 else swap_cost(w.m, s, i, l)
        if cost > limit or not keeps(w, i, l, a, b):
            continue
        s.cost[0] += cost
        if l < 0:
            leave(w.m, s, i)
            join(w.m, w.p, s, i, b)
        else:
            swap(w.m, w.p, s, i, l)
