"""Moves: the best way to lower the cost by moving one record, and perhaps one or two more in a chain.

    relocate    i goes to group b
    swap        i goes to b, and l of b takes its place
    path        i goes to b, l of b goes on to c
    cycle       i goes to b, l of b goes on to c, p of c takes the place of i

b runs over the groups of the records nearest to i, c over those nearest to l. A chain is followed only while what
is saved so far beats the best move: putting somebody in the place of i can only add to that (for numbers; for
mixed distances it is a rule of thumb).

Cost: O(w m (m + w' m)) for w candidate groups of m members, w' of a chain.   Ties: the first found stays.
"""

from __future__ import annotations

import numba

from kinfold.kernels.groups import (
    CAME_FROM,
    CHANGED,
    DEEP,
    GROUPS,
    MOVE,
    SEEN,
    SEEN_NEXT,
    STAMP,
    STEP,
    TRAIL,
    WIDE,
    Groups,
    admits,
    join,
    leave,
    toward,
)
from kinfold.kernels.options import inner, kernel

LEAST = 1e-11  # an improvement below this share of what the groups cost is rounding

_int = numba.int64
_float = numba.float64


@inner(_int(GROUPS, _int, _int, _int, _int))
def nearby(s: Groups, i: int, other: int, many: int, row: int) -> int:
    """List in this row of `lists` the groups of the records nearest to i, but its own and `other`; return how many."""
    found = 0
    for t in range(s.near.shape[1]):
        g = s.label[s.near[i, t]]
        if g == s.label[i] or g == other or g < 0:
            continue
        known = False
        for u in range(found):
            if s.lists[row, u] == g:
                known = True
                break
        if not known:
            s.lists[row, found] = g
            found += 1
            if found == many:
                break
    return found


@inner(numba.void(GROUPS, _int, _int, _int))
def link(s: Groups, at: int, i: int, g: int) -> None:
    """Write into the move, as its link number `at` (the last one so far), that record i goes to group g."""
    s.counts[MOVE] = at + 1
    s.counts[MOVE + 1 + 2 * at] = i
    s.counts[MOVE + 2 + 2 * at] = g


@inner(_float(GROUPS, _int, _float, _int))
def grown(s: Groups, g: int, extra: float, by: int) -> float:
    """Return what group g costs more when its pairs grow by `extra` and its size by `by`."""
    return float((s.pairs[g] + extra) / (s.size[g] + by) - s.pairs[g] / s.size[g])


@inner(numba.void(GROUPS, _int, _int, _int, _float))
def follow(s: Groups, i: int, l: int, b: int, so_far: float) -> None:
    """Try to send l, displaced from b by i, on to a third group: paths and cycles."""
    a = s.label[i]
    ends = admits(s, a, i, -1)
    for u in range(nearby(s, l, a, s.counts[DEEP], SEEN_NEXT)):
        c = s.lists[SEEN_NEXT, u]
        to_c = toward(s, l, c)
        if ends and admits(s, c, -1, l):
            change = so_far + grown(s, c, to_c, 1)
            if change < s.best[0]:
                s.best[0] = change
                link(s, 0, i, b)
                link(s, 1, l, c)
        for y in range(s.size[c]):
            p = s.members[c, y]
            there = so_far + (to_c - s.own[p] - s.gaps[l, p]) / s.size[c]
            if there >= s.best[0] or not (admits(s, a, i, p) and admits(s, c, p, l)):
                continue
            saved = grown(s, a, -s.own[i], -1)
            change = there - saved + (toward(s, p, a) - s.own[i] - s.gaps[i, p]) / s.size[a]
            if change < s.best[0]:
                s.best[0] = change
                link(s, 0, i, b)
                link(s, 1, l, c)
                link(s, 2, p, a)


@inner(numba.void(GROUPS, _int, _int, _float, _float))
def exchange(s: Groups, i: int, b: int, to_b: float, saved: float) -> None:
    """Try to put i in the place of each member of b."""
    a = s.label[i]
    for x in range(s.size[b]):
        l = s.members[b, x]
        there = (to_b - s.own[l] - s.gaps[i, l]) / s.size[b]
        if there + saved >= s.best[0] or not admits(s, b, l, i):
            continue
        if admits(s, a, i, l):
            change = there + (toward(s, l, a) - s.own[i] - s.gaps[i, l]) / s.size[a]
            if change < s.best[0]:
                s.best[0] = change
                link(s, 0, i, b)
                link(s, 1, l, a)
        if s.counts[DEEP] > 0:
            follow(s, i, l, b, there + saved)


@inner(_float(GROUPS, _int))
def at_stake(s: Groups, a: int) -> float:
    """Return what the groups of the best move, which starts in a, cost now."""
    total = s.pairs[a] / s.size[a]
    for t in range(s.counts[MOVE]):
        g = s.counts[MOVE + 2 + 2 * t]
        total += s.pairs[g] / s.size[g]
    return float(total)


@kernel(_float(GROUPS, _int))
def best_move(s: Groups, i: int) -> float:
    """Write the best move that starts with record i; return its change of cost, 0 if there is none."""
    s.best[0] = 0.0
    s.counts[MOVE] = 0
    saved = grown(s, s.label[i], -s.own[i], -1)
    for u in range(nearby(s, i, -1, s.counts[WIDE], SEEN)):
        b = s.lists[SEEN, u]
        to_b = toward(s, i, b)
        if admits(s, s.label[i], i, -1) and admits(s, b, -1, i):
            change = saved + grown(s, b, to_b, 1)
            if change < s.best[0]:
                s.best[0] = change
                link(s, 0, i, b)
        exchange(s, i, b, to_b, saved)
    if s.counts[MOVE] > 0 and -s.best[0] <= LEAST * at_stake(s, s.label[i]):
        s.counts[MOVE] = 0
        s.best[0] = 0.0
    return float(s.best[0])


@inner(numba.void(GROUPS, _int))
def note(s: Groups, i: int) -> None:
    """Write down the group that record i had before this step, once."""
    if s.lists[STAMP, i] != s.counts[STEP]:
        s.lists[STAMP, i] = s.counts[STEP]
        s.lists[CHANGED, s.counts[TRAIL]] = i
        s.lists[CAME_FROM, s.counts[TRAIL]] = s.label[i]
        s.counts[TRAIL] += 1


@kernel(numba.void(GROUPS))
def carry_out(s: Groups) -> None:
    """Make the best move."""
    for t in range(s.counts[MOVE]):
        note(s, s.counts[MOVE + 1 + 2 * t])
        leave(s, s.counts[MOVE + 1 + 2 * t])
    for t in range(s.counts[MOVE]):
        join(s, s.counts[MOVE + 1 + 2 * t], s.counts[MOVE + 2 + 2 * t])


@inner(numba.void(GROUPS))
def take_back(s: Groups) -> None:
    """Undo every change of this step."""
    for t in range(s.counts[TRAIL]):
        leave(s, s.lists[CHANGED, t])
    for t in range(s.counts[TRAIL]):
        join(s, s.lists[CHANGED, t], s.lists[CAME_FROM, t])
    s.counts[TRAIL] = 0
