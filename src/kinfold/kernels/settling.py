"""Settling: records that are far from their groups go where they cost least, or change places, with every promise kept.

    for each record i that is to settle:
        of the groups of a few neighbours, drawn at random, B is the one that would take it for the least cost
        if its own group saves more than that: i goes to B, or changes places with one of some members of B, whichever
        lowers the cost most and keeps the promises of both groups; if none does, i stays

To find B costs a few sums, to try its members some more: most records that gain nothing are known after the first.
Only the random stream decides, never a clock. Every step lowers the cost, so it ends.

Cost: O(LOOKS · group size + MEMBERS · group size) a record; O(d) for each look where only means are kept.
Ties: the first drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold.kernels import exchanges, groups, mixed, promises
from kinfold.kernels.compiling import Int, Real, entry, lean
from kinfold.kernels.draws import stream_of
from kinfold.kernels.exchanges import Curves, allowed, any_member, make, neighbour
from kinfold.kernels.groups import fits, gap, own, recount, toward
from kinfold.kernels.moves import grown

if TYPE_CHECKING:
    from kinfold.kernels.draws import Stream
    from kinfold.kernels.groups import Groups, Rows
    from kinfold.kernels.mixed import Mixed
    from kinfold.kernels.promises import Promises

# By what sweeps reach in a second on Adult with 2, 4 and 8 attributes: 4, 6, 12 looks, 4, 8 members, reaches of 2, 3, 6
LOOKS = 4  # neighbours whose groups are looked at
MEMBERS = 8  # of a group that a record may change places with
WIDEST = 3  # the farthest neighbour is 2^3 places away along a curve
ANYWHERE = 16  # once in so many times it is any record
LEAST = 1e-9  # a gain below this share of what a record costs on average is rounding


@lean
def best_home(d: Mixed, s: Groups, around: Curves, stream: Stream, i: Int) -> Int:
    """Return the group of some neighbour that takes record i for the least cost, or -1."""
    home, least = np.int64(-1), np.inf
    for _ in range(LOOKS):
        b = np.int64(s.label[neighbour(around, stream, i, WIDEST, ANYWHERE)])
        if b == s.label[i] or b == home:
            continue
        more = grown(s, b, toward(d, s, i, b), 1)
        if more < least:
            home, least = b, more
    return home


@lean
def settle_one(d: Mixed, p: Promises, s: Groups, stream: Stream, i: Int, b: Int, least: Real) -> Real:
    """Let record i go to group b, alone or for one of its members, where that gains; return the change of cost."""
    a, mine, to_b = s.label[i], own(d, s, i), toward(d, s, i, b)
    saved = grown(s, a, -mine, -1)
    alone = saved + grown(s, b, to_b, 1)
    if alone >= 0.0:
        return 0.0
    best, other = -least, np.int64(-2)
    many = min(int(s.size[b]), MEMBERS)
    for x in range(-1, many):  # one loop, so that the compiler meets the promises once
        if x < 0:
            l, change = np.int64(-1), alone if fits(s, a, -1) and fits(s, b, 1) else 0.0
        else:
            l = np.int64(s.members[s.start[b] + x] if many == s.size[b] else any_member(s, stream, b))
            apart = gap(d, s, i, l)
            there = (to_b - own(d, s, l) - apart) / s.size[b]
            if there + saved >= best:
                continue
            change = there + (toward(d, s, l, a) - mine - apart) / s.size[a]
        if change < best and allowed(p, s, i, l, b):
            best, other = change, l
    if other < -1:
        return 0.0
    make(d, p, s, i, other, b)
    return best


_MOVERS = np.zeros(1, np.int32)


@entry(mixed.example(), promises.example(), groups.example(), exchanges.example(), stream_of(0), _MOVERS, 1.0)
def settle(d: Mixed, p: Promises, s: Groups, around: Curves, stream: Stream, movers: Rows, cost: float) -> float:
    """Let each of these records settle once in groups that cost so much; return what they cost then.

    Without movers, find out what the groups cost and keep, afresh.
    """
    if movers.size == 0:
        return recount(d, p, s)
    for t in range(movers.size):
        i = np.int64(movers[t])
        home = best_home(d, s, around, stream, i)
        if home >= 0:
            cost += settle_one(d, p, s, stream, i, home, LEAST * cost / s.label.size)
    return cost
