"""Repair: groups that miss their promises exchange records with others until they keep them.

    for each group A that misses its promises, the worst first:
        look at every swap of one of its records with one of another group B, and at every move into or out of A
        of those after which A keeps its promises and B misses no more than before: make the cheapest
        if there is none: make the one that lowers the miss of A most for what it costs
        until A keeps its promises; if nothing lowers the miss, A stays as it is, for the merge

The cost is the change of the sum of squared errors. Every step lowers the sum of all misses, so it ends.

Cost: O(look · |A|) trials a step; `look` bounds how many records are tried, spread evenly over the table.
Ties: the first found, the nearest records first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kinfold.kernels import groups, mixed, promises
from kinfold.kernels.compiling import entry, inner, lean
from kinfold.kernels.groups import Groups, fits, join, leave, members_of, recount, toward
from kinfold.kernels.moves import moved, swapped
from kinfold.kernels.promises import miss

if TYPE_CHECKING:
    from kinfold.kernels.groups import Ints
    from kinfold.kernels.mixed import Mixed
    from kinfold.kernels.promises import Promises

LEAST = 1e-12  # a miss that shrinks by less has not shrunk
NOBODY = -1

STEP = np.dtype(
    [
        ("leaving", np.int64),  # who leaves the group, or nobody
        ("arriving", np.int64),  # who comes, or nobody
        ("other", np.int64),  # the other group
        ("cost", np.float64),
        ("worth", np.float64),  # how much of the miss it takes away for its cost; infinite if all of it
        ("miss", np.float64),  # of the group after the step
        ("miss_other", np.float64),  # of the other group after it
        ("scale", np.float64),  # cost of an average record: what a step may cost before its cost counts
        ("made", np.int64),  # steps made so far
    ],
    align=True,
)


class RepairState(NamedTuple):
    """The records, the promises, the groups, and the best step found so far."""

    d: Mixed
    p: Promises
    groups: Groups
    best: Any  # (1) STEP


def state_of(d: Mixed, p: Promises, partition: Groups) -> RepairState:
    """Return these groups, ready to be repaired."""
    return RepairState(d, p, partition, np.zeros(1, STEP).view(np.recarray))


_EXAMPLE = state_of(mixed.example(), promises.example(), groups.example())


@lean
def weigh(w: RepairState, a: int, b: int, leaving: int, arriving: int) -> None:
    """Keep a step if it is better than the best so far: `leaving` goes from a to b, `arriving` from b to a."""
    s, best = w.groups, w.best[0]
    if arriving == NOBODY:
        cost = moved(w.d, s, leaving, b)
    elif leaving == NOBODY:
        cost = moved(w.d, s, arriving, a)
    else:
        cost = swapped(w.d, s, leaving, arriving)
    repaired = best.worth == np.inf
    if repaired and cost >= best.cost:
        return
    here = miss(w.p, members_of(s, a), leaving, arriving)
    if here >= s.missed[a] - LEAST or (repaired and here > 0.0):
        return
    worth = np.inf if here == 0.0 else (s.missed[a] - here) / (best.scale + max(cost, 0.0))
    if worth < best.worth or (worth == best.worth and cost >= best.cost):
        return
    there = miss(w.p, members_of(s, b), arriving, leaving)
    if there > s.missed[b]:
        return
    best.leaving, best.arriving, best.other = leaving, arriving, b
    best.cost, best.worth, best.miss, best.miss_other = cost, worth, here, there


@lean
def look_at(w: RepairState, a: int, l: int) -> None:
    """Weigh every step between group a and record l: swaps, l coming, and (once a group) members going to its group."""
    s = w.groups
    b = s.label[l]
    size = s.size[a]
    comes = fits(s, b, -1) and fits(s, a, 1)
    goes = fits(s, a, -1) and s.members[s.start[b]] == l and fits(s, b, 1)
    for t in range(2 * size + 1):  # one loop, so that the compiler meets the weighing once
        if (t == size and not comes) or (t > size and not goes):
            continue
        leaving = NOBODY if t == size else s.members[s.start[a] + (t if t < size else t - size - 1)]
        weigh(w, a, b, leaving, l if t <= size else NOBODY)


@lean
def carry_out(w: RepairState, a: int) -> None:
    """Make the best step."""
    s, best = w.groups, w.best[0]
    if best.leaving != NOBODY:
        leave(w.d, w.p, s, best.leaving)
    if best.arriving != NOBODY:
        leave(w.d, w.p, s, best.arriving)
        join(w.d, w.p, s, best.arriving, a)
    if best.leaving != NOBODY:
        join(w.d, w.p, s, best.leaving, best.other)
    s.missed[a], s.missed[best.other] = best.miss, best.miss_other
    best.made += 1


@inner
def candidates(d: Mixed, s: Groups, a: int, first: int, look: int) -> Ints:
    """List `look` records, spread over the table from `first` on, those nearest to group a first.

    The first step that repairs the group is then seldom far from the cheapest, and its cost rules most others out.
    """
    n = s.label.size
    listed = np.empty(look, np.int64)
    gaps = np.empty(look)
    for t in range(look):
        l = (first + t * n // look) % n
        listed[t] = l
        gaps[t] = toward(d, s, l, a)
    return listed[np.argsort(gaps, kind="mergesort")]


@inner
def repair(w: RepairState, a: int, first: int, look: int) -> None:
    """Repair group a with `look` records, spread over the table from `first` on."""
    s, best = w.groups, w.best[0]
    if s.missed[a] == 0.0:
        return
    listed = candidates(w.d, s, a, first, look)
    for _ in range(2 * s.size[a] + 8):
        best.cost, best.worth = np.inf, 0.0
        for t in range(look):
            if s.label[listed[t]] != a:
                look_at(w, a, listed[t])
        if best.worth == 0.0:
            return
        carry_out(w, a)
        if s.missed[a] == 0.0:
            return


@entry(_EXAMPLE)
def judge_all(w: RepairState) -> None:
    """Find out how far each group misses its promises, and what an average record costs."""
    w.best[0].scale = recount(w.d, w.p, w.groups) / w.groups.label.size + 1e-300


@entry(_EXAMPLE, np.zeros(1, np.int64), 1)
def repair_all(w: RepairState, order: Ints, look: int) -> None:
    """Repair these groups one after the other."""
    for t in range(order.size):
        repair(w, order[t], (7919 * order[t]) % w.groups.label.size, look)
