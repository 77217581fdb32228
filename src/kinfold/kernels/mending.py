"""Mending: classes that miss their promises exchange records with others until they keep them.

    for each class A that misses its promises, the worst first:
        look at every swap of one of its records with one of another class B, and at every move into or out of A
        of those after which A keeps its promises and B misses no more than before: make the cheapest
        if there is none: make the one that lowers the miss of A most for what it costs
        until A keeps its promises; if nothing lowers the miss, A stays as it is, for the merge

The cost is the change of the sum of squared errors. Every step lowers the sum of all misses, so it ends.

Cost: O(look · |A|) trials a step; `look` bounds how many records are tried, spread evenly over the table.
Ties: the first found, the nearest records first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kinfold.kernels import classes, mixed, promises
from kinfold.kernels.classes import (
    Classes,
    from_centre,
    has_room,
    join,
    leave,
    members_of,
    move_cost,
    swap,
    swap_cost,
    toward,
)
from kinfold.kernels.compiling import entry, inner
from kinfold.kernels.mixed import Mixed
from kinfold.kernels.promises import Promises, miss

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAST = 1e-12  # a miss that shrinks by less has not shrunk
NOBODY = -1


class Bench(NamedTuple):
    """Where a class is mended: the records, the promises, the classes, and the best step found so far."""

    m: Mixed
    p: Promises
    s: Classes
    k: int
    scale: float  # cost of an average record: what a step may cost before its cost counts
    who: NDArray[np.int64]  # (4,) who leaves the class, who comes, the other class, and the steps made so far
    what: NDArray[np.float64]  # (4,) cost, worth, and the misses of the class and of the other after the step


def example() -> Bench:
    """Return the smallest bench, to compile for."""
    return Bench(mixed.example(), promises.example(), classes.example(), 2, 1.0, np.zeros(4, np.int64), np.zeros(4))


@inner
def weigh(w: Bench, a: int, b: int, leaving: int, arriving: int) -> None:
    """Keep a step if it is better than the best so far: `leaving` goes from a to b, `arriving` from b to a."""
    s = w.s
    if arriving == NOBODY:
        cost = move_cost(w.m, s, leaving, b)
    elif leaving == NOBODY:
        cost = move_cost(w.m, s, arriving, a)
    else:
        cost = swap_cost(w.m, s, leaving, arriving)
    mended = w.what[1] == np.inf
    if mended and cost >= w.what[0]:
        return
    here = miss(w.p, members_of(s, a), leaving, arriving)
    if here >= s.missed[a] - LEAST or (mended and here > 0.0):
        return
    worth = np.inf if here == 0.0 else (s.missed[a] - here) / (w.scale + max(cost, 0.0))
    if worth < w.what[1] or (worth == w.what[1] and cost >= w.what[0]):
        return
    there = miss(w.p, members_of(s, b), arriving, leaving)
    if there > s.missed[b]:
        return
    w.who[0], w.who[1], w.who[2] = leaving, arriving, b
    w.what[0], w.what[1], w.what[2], w.what[3] = cost, worth, here, there


@inner
def look_at(w: Bench, a: int, l: int) -> None:
    """Weigh every step between class a and record l: swaps, l coming, and (once a class) members going to its class."""
    s = w.s
    b = s.label[l]
    size = s.size[a]
    comes = s.size[b] > w.k and has_room(s, a)
    goes = size > w.k and s.members[s.start[b]] == l and has_room(s, b)
    for t in range(2 * size + 1):  # one loop, so that the compiler meets the weighing once
        if (t == size and not comes) or (t > size and not goes):
            continue
        leaving = NOBODY if t == size else s.members[s.start[a] + (t if t < size else t - size - 1)]
        weigh(w, a, b, leaving, l if t <= size else NOBODY)


@inner
def carry_out(w: Bench, a: int) -> None:
    """Make the best step."""
    leaving, arriving, b = w.who[0], w.who[1], w.who[2]
    if arriving == NOBODY:
        leave(w.m, w.s, leaving)
        join(w.m, w.p, w.s, leaving, b)
    elif leaving == NOBODY:
        leave(w.m, w.s, arriving)
        join(w.m, w.p, w.s, arriving, a)
    else:
        swap(w.m, w.p, w.s, leaving, arriving)
    w.s.missed[a], w.s.missed[b] = w.what[2], w.what[3]
    w.who[3] += 1


@inner
def candidates(w: Bench, a: int, first: int, look: int) -> NDArray[np.int64]:
    """List `look` records, spread over the table from `first` on, those nearest to class a first.

    The first step that mends the class is then seldom far from the cheapest, and its cost rules most others out.
    """
    n = w.s.label.size
    listed = np.empty(look, np.int64)
    gaps = np.empty(look)
    for t in range(look):
        l = (first + t * n // look) % n
        listed[t] = l
        gaps[t] = from_centre(w.m, w.s, l, a)
        if w.m.codes.shape[1] > 0:
            gaps[t] += toward(w.m, w.s, l, a) / w.s.size[a]
    return listed[np.argsort(gaps, kind="mergesort")]


@inner
def mend(w: Bench, a: int, first: int, look: int) -> None:
    """Mend class a with `look` records, spread over the table from `first` on."""
    if w.s.missed[a] == 0.0:
        return
    listed = candidates(w, a, first, look)
    for _ in range(2 * w.s.size[a] + 8):
        w.what[0], w.what[1] = np.inf, 0.0
        for t in range(look):
            if w.s.label[listed[t]] != a:
                look_at(w, a, listed[t])
        if w.what[1] == 0.0:
            return
        carry_out(w, a)
        if w.s.missed[a] == 0.0:
            return


@entry(example(), np.zeros(1, np.int64), 1)
def mend_all(w: Bench, order: NDArray[np.int64], look: int) -> None:
    """Mend these classes one after the other."""
    for t in range(order.size):
        mend(w, order[t], (7919 * order[t]) % w.s.label.size, look)
