"""Repair: groups that miss their promises exchange records with others until they keep them.

    for each group A that misses its promises, the worst first:
        foresee, for each kind of record that may leave and each that may come, how far A would miss them then
        look at the swaps, arrivals and departures that help, with the records listed for A: the nearest of each kind
        of those after which A keeps its promises and the other group misses no more than before: make the cheapest
        if there is none: make the one that lowers the miss of A most for what it costs
        until A keeps its promises; if nothing lowers the miss, A stays as it is, for another list or the merge

A kind is what the promises tell apart: a value, or values next to each other where there are many. What is foreseen
steers; what a step does to both groups is asked of the promises themselves before it is made. The cost is the change
of the sum of squared errors. Every step lowers the sum of all misses, so it ends.

Cost: kinds² looks at A and a trial for each helpful pair of a member and a record listed, a step.
Ties: the first found, the nearest records of the lowest kind first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kinfold.kernels import groups, mixed, promises
from kinfold.kernels.compiling import entry, lean
from kinfold.kernels.groups import Groups, admits, fits, join, judge, leave, members_of, own, recount, toward
from kinfold.kernels.moves import grown, moved, swapped
from kinfold.kernels.promises import miss

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kinfold.kernels.groups import Floats, Ints, Rows
    from kinfold.kernels.mixed import Mixed
    from kinfold.kernels.promises import Promises

LEAST = 1e-12  # a miss that shrinks by less has not shrunk
NOBODY = -1
ALL = 12  # a group of up to so many members may send away any of them
FEW = 4  # kinds whose every exchange is asked of the promises
FAR = 2  # of each kind that a larger group may send away: those farthest from the others
MOST = 0.7  # of the best gain: exchanges that gain less are looked at only if none that gains more can be made

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
        ("tried", np.int64),  # steps weighed so far, each times the members of the two groups
        ("leavers", np.int64),  # members that may leave
        ("bar", np.float64),  # exchanges that would leave the group above it are not looked at
        ("more", np.float64),  # what a record adds to the cost of its best home
    ],
    align=True,
)


class RepairState(NamedTuple):
    """The records and their kinds, the promises, the groups, what is foreseen for one, and the best step so far."""

    d: Mixed
    p: Promises
    groups: Groups
    kind: Rows  # (n)
    sample: Rows  # (kinds) a record of each kind
    after: Floats  # (kinds + 1, kinds + 1) the miss when the one kind leaves and the other comes; the last: nobody
    held: Rows  # (kinds + 1) a member of each kind, or nobody
    leavers: Rows  # (room) members that may leave
    best: Any  # (1) STEP


def state_of(d: Mixed, p: Promises, partition: Groups, kind: Rows, sample: Rows) -> RepairState:
    """Return these groups, ready to be repaired."""
    kinds = len(sample)
    room = np.zeros(ALL + FAR * kinds, np.int32)
    after, held = np.full((kinds + 1, kinds + 1), np.inf), np.full(kinds + 1, NOBODY, np.int32)
    return RepairState(d, p, partition, kind, sample, after, held, room, np.zeros(1, STEP).view(np.recarray))


_ROW = np.zeros(1, np.int32)
_EXAMPLE = state_of(mixed.example(), promises.example(), groups.example(), _ROW, _ROW)


@lean
def hold(w: RepairState, a: int) -> None:
    """Note a member of each kind in group a, or nobody."""
    for u in range(w.sample.size + 1):
        w.held[u] = NOBODY
    for i in members_of(w.groups, a):
        w.held[w.kind[i]] = i


@lean
def foresee(w: RepairState, a: int) -> None:
    """Find out how far group a would miss its promises after each exchange of kinds that its size allows.

    In a large group what leaving and coming change adds up, nearly: then each is asked alone.
    """
    s, kinds, missed = w.groups, w.sample.size, w.groups.missed[a]
    hold(w, a)
    alone = s.size[a] > ALL and kinds > FEW
    for u in range(kinds, -1, -1):  # those where nobody leaves, or nobody comes, first
        for v in range(kinds, -1, -1):
            w.after[u, v] = np.inf
            if u == v or (u < kinds and w.held[u] == NOBODY):
                continue
            if alone and u < kinds and v < kinds:
                w.after[u, v] = max(0.0, w.after[u, kinds] + w.after[kinds, v] - missed)
            else:
                w.after[u, v] = miss(w.p, members_of(s, a), w.held[u], NOBODY if v == kinds else w.sample[v])
    for u in range(kinds):
        if not fits(s, a, -1):
            w.after[u, kinds] = np.inf
        if not fits(s, a, 1):
            w.after[kinds, u] = np.inf


@lean
def set_bar(w: RepairState, a: int, share: float) -> None:
    """Ask for exchanges of kinds that gain at least this share of what the best of them gains."""
    least, missed = np.inf, w.groups.missed[a]
    for u in range(w.sample.size + 1):
        for v in range(w.sample.size + 1):
            least = min(least, w.after[u, v])
    w.best[0].bar = missed - max(LEAST, share * (missed - least))


@lean
def helps(w: RepairState, u: int) -> bool:
    """Tell whether some exchange in which a record of kind u leaves helps the group in hand enough."""
    for v in range(w.sample.size + 1):  # noqa: SIM110  kernels have no generators
        if w.after[u, v] <= w.best[0].bar:
            return True
    return False


@lean
def choose_leavers(w: RepairState, a: int) -> None:
    """List the members that may leave: all of a small group, of a larger one the farthest of each kind that helps."""
    s, now = w.groups, w.best[0]
    now.leavers = 0
    if s.size[a] <= ALL:
        for i in members_of(s, a):
            w.leavers[now.leavers] = i
            now.leavers += 1
        return
    for u in range(w.sample.size):
        if w.held[u] == NOBODY or not helps(w, u):
            continue
        least = np.inf
        for _ in range(FAR):
            at, most = NOBODY, -1.0
            for i in members_of(s, a):
                apart = own(w.d, s, i) if w.kind[i] == u else -1.0
                if most < apart < least:
                    at, most = i, apart
            if at != NOBODY:
                w.leavers[now.leavers] = at
                now.leavers += 1
                least = most


@lean
def weigh(w: RepairState, a: int, b: int, leaving: int, arriving: int) -> None:
    """Keep a step if it is better than the best so far: `leaving` goes from a to b, `arriving` from b to a."""
    s, best = w.groups, w.best[0]
    best.tried += s.size[a] + s.size[b]
    if leaving != NOBODY and arriving != NOBODY:
        cost = swapped(w.d, s, leaving, arriving)
    else:
        cost = moved(w.d, s, max(leaving, arriving), a if leaving == NOBODY else b)
    repaired = best.worth == np.inf
    if repaired and cost >= best.cost:
        return
    misses = (0.0, 0.0)
    for t in range(2):  # a loop, so that the compiler meets the promises once
        here = miss(
            w.p, members_of(s, a if t == 0 else b), leaving if t == 0 else arriving, arriving if t == 0 else leaving
        )
        misses = (here, misses[1]) if t == 0 else (misses[0], here)
        if t == 0:
            if here >= s.missed[a] - LEAST or (repaired and here > 0.0):
                return
            worth = np.inf if here == 0.0 else (s.missed[a] - here) / (best.scale + max(cost, 0.0))
            if worth < best.worth or (worth == best.worth and cost >= best.cost):
                return
        elif here > s.missed[b]:
            return
    best.leaving, best.arriving, best.other = leaving, arriving, b
    best.cost, best.worth, best.miss, best.miss_other = cost, worth, misses[0], misses[1]


@lean
def look_at(w: RepairState, a: int, l: int) -> None:
    """Weigh the steps between group a and record l that help: swaps, l coming, and members going to its group."""
    s, kinds, many = w.groups, w.sample.size, w.best[0].leavers
    b = s.label[l]
    comes, goes = fits(s, b, -1), fits(s, b, 1)
    for t in range(2 * many + 1):  # one loop, so that the compiler meets the weighing once
        if (t == many and not comes) or (t > many and not goes):
            continue
        leaving = NOBODY if t == many else w.leavers[t if t < many else t - many - 1]
        u, v = kinds if t == many else w.kind[leaving], w.kind[l] if t <= many else kinds
        if w.after[u, v] <= w.best[0].bar:
            weigh(w, a, b, leaving, l if t <= many else NOBODY)


@lean
def look_around(w: RepairState, a: int, listed: NDArray[np.int32]) -> None:
    """Look at the records listed for group a, as far as their kinds help."""
    choose_leavers(w, a)
    for v in range(listed.shape[0]):
        for t in range(listed.shape[1]):
            if listed[v, t] == NOBODY:
                break
            if w.groups.label[listed[v, t]] != a:
                look_at(w, a, listed[v, t])


@lean
def carry_out(w: RepairState, a: int) -> None:
    """Make the best step."""
    s, best = w.groups, w.best[0]
    for t in range(2):  # both leave before either joins
        i = best.leaving if t == 0 else best.arriving
        if i != NOBODY:
            leave(w.d, w.p, s, i)
    for t in range(2):
        i = best.arriving if t == 0 else best.leaving
        if i != NOBODY:
            join(w.d, w.p, s, i, a if t == 0 else best.other)
    s.missed[a], s.missed[best.other] = best.miss, best.miss_other
    best.made += 1


@lean
def best_home(w: RepairState, i: int, listed: NDArray[np.int32]) -> int:
    """Return the group of a record listed, but its own, that takes record i for the least cost, or nobody."""
    s, best = w.groups, w.best[0]
    home = NOBODY
    best.more = np.inf
    for v in range(listed.shape[0]):
        for t in range(listed.shape[1]):
            if listed[v, t] == NOBODY:
                break
            b = s.label[listed[v, t]]
            if b == s.label[i] or b == home or not fits(s, b, 1):
                continue
            more = grown(s, b, toward(w.d, s, i, b), 1)
            if more < best.more and admits(w.p, s, b, NOBODY, i):
                home, best.more = b, more
    return home


@lean
def price_of_dissolving(w: RepairState, a: int, listed: NDArray[np.int32]) -> float:
    """Return about what it costs to send each member of group a to its best home; infinite if one has none."""
    s = w.groups
    total = -s.pairs[a] / s.size[a]
    for i in members_of(s, a):
        if best_home(w, i, listed) == NOBODY:
            return np.inf
        total += w.best[0].more
    return total


@lean
def resettle(w: RepairState, i: int, g: int) -> None:
    """Send record i to group g."""
    s, before = w.groups, w.groups.label[i]
    leave(w.d, w.p, s, i)
    join(w.d, w.p, s, i, g)
    for t in range(2):
        judge(w.p, s, g if t == 0 else before)


@lean
def dissolve(w: RepairState, a: int, listed: NDArray[np.int32]) -> bool:
    """Send each member of group a to its best home; tell whether that could be done, else all are back."""
    s, many = w.groups, w.groups.size[a]
    for t in range(many):
        i = s.members[s.start[a]]
        w.leavers[t] = i
        home = best_home(w, i, listed)
        if home != NOBODY:
            resettle(w, i, home)
            continue
        for u in range(t):
            resettle(w, w.leavers[u], a)
        return False
    w.best[0].made += 1
    return True


@lean
def expected_price(w: RepairState, a: int) -> float:
    """Return about what it costs to repair group a by steps as good as the best one."""
    best, missed = w.best[0], w.groups.missed[a]
    return np.inf if best.worth == 0.0 else best.cost * missed / (missed - best.miss)


@lean
def repair(w: RepairState, a: int, listed: NDArray[np.int32]) -> None:
    """Repair group a with the records listed for it, those of each kind."""
    s, best = w.groups, w.best[0]
    for _ in range(2 * s.size[a] + 8):
        if s.missed[a] == 0.0:
            return
        best.cost, best.worth = np.inf, 0.0
        foresee(w, a)
        for attempt in range(2):
            set_bar(w, a, MOST if attempt == 0 else 0.0)
            look_around(w, a, listed)
            if best.worth > 0.0:
                break
        if s.size[a] <= ALL and price_of_dissolving(w, a, listed) < expected_price(w, a) and dissolve(w, a, listed):
            return
        if best.worth == 0.0:
            return
        carry_out(w, a)


@lean
def mark_spare(w: RepairState, g: int, spare: Rows) -> None:
    """Mark the members that group g can spare: without them, alone or with the right newcomer, it misses no more."""
    s = w.groups
    foresee(w, g)
    for i in members_of(s, g):
        spare[i] = 0
        for v in range(w.sample.size + 1):
            if w.after[w.kind[i], v] <= s.missed[g]:
                spare[i] = 1


@entry(_EXAMPLE, np.zeros(1, np.int64), np.zeros((1, 1, 1), np.int32), _ROW)
def repair_all(w: RepairState, order: Ints, listed: NDArray[np.int32], spare: Rows) -> float:
    """Repair these groups, with the records listed for each; where none are listed, mark the members they can spare.

    Without groups, find out what each costs and how far it misses its promises, and return the cost of all. One way in
    for all three, so that the compiler meets the promises once.
    """
    if order.size == 0:
        return recount(w.d, w.p, w.groups)
    for t in range(order.size):
        if listed.shape[0] > 0:
            repair(w, order[t], listed[t])
        elif w.groups.size[order[t]] > 0:
            mark_spare(w, order[t], spare)
    return 0.0
