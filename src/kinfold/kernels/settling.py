"""Settling: records that are distant from their groups go where they cost least, or swap, with every promise kept.

    for each record i that is to settle:
        of the groups of a few neighbours, drawn at random, B is the one that takes it for the least cost
        if its own group saves more than that: i goes to B, or swaps with one of some members of B, whichever lowers the
        cost most and keeps the promises of both groups; if none does, i stays

To find B costs a few sums, to try its members some more: most records that gain nothing are done after the first. Only
the random stream matters, never a clock. Every step lowers the cost, so it ends.

Cost: O((NEIGHBOURS_TRIED + MEMBERS_TRIED) · group size) for a record; O(d) for each trial with means alone.
Ties: the first drawn.
"""

from __future__ import annotations

import numpy as np

from kinfold.kernels.compiling import Int, Real, entry, lean
from kinfold.kernels.draws import Stream
from kinfold.kernels.groups import Groups, Rows, distance_to_group, distance_to_own_group, fits, pair_distance, recount
from kinfold.kernels.moves import (
    EXAMPLE_SEARCH,
    Curves,
    cost_increase,
    draw_member,
    draw_neighbour,
    is_allowed,
    swap_records,
)
from kinfold.kernels.promises import Promises
from kinfold.kernels.records import Mixed

# By what sweeps reach in a second on Adult with 2, 4 and 8 attributes: 4, 6, 12 looks, 4, 8 members, reaches of 2, 3, 6
NEIGHBOURS_TRIED = 4  # neighbours whose groups are looked at
MEMBERS_TRIED = 8  # of a group that a record may change places with
MAX_REACH = 3  # the farthest neighbour is 2^3 places away along a curve
ANYWHERE_ODDS = 16  # once in so many times it is any record
MIN_GAIN_SHARE = 1e-9  # a gain below this share of what a record costs on average is rounding


@lean
def find_home(d: Mixed, s: Groups, around: Curves, stream: Stream, i: Int) -> Int:
    """Return the group of some neighbour that takes record i for the least cost, or -1."""
    home, least = np.int64(-1), np.inf
    for _ in range(NEIGHBOURS_TRIED):
        b = np.int64(s.label[draw_neighbour(around, stream, i, MAX_REACH, ANYWHERE_ODDS)])
        if b == s.label[i] or b == home:
            continue
        more = cost_increase(s, b, distance_to_group(d, s, i, b), 1)
        if more < least:
            home, least = b, more
    return home


@lean
def settle_one(d: Mixed, p: Promises, s: Groups, stream: Stream, i: Int, b: Int, least: Real) -> Real:
    """Move record i to group b, alone or for one of its members, if that gains; return the change of cost."""
    a, mine, to_b = s.label[i], distance_to_own_group(d, s, i), distance_to_group(d, s, i, b)
    saved = cost_increase(s, a, -mine, -1)
    relocation = saved + cost_increase(s, b, to_b, 1)
    if relocation >= 0.0:
        return 0.0
    best, other = -least, np.int64(-2)
    many = min(int(s.size[b]), MEMBERS_TRIED)
    for x in range(-1, many):  # one loop, so that the promises are compiled once
        if x < 0:
            l, change = np.int64(-1), relocation if fits(s, a, -1) and fits(s, b, 1) else 0.0
        else:
            l = np.int64(s.members[s.start[b] + x] if many == s.size[b] else draw_member(s, stream, b))
            apart = pair_distance(d, s, i, l)
            there = (to_b - distance_to_own_group(d, s, l) - apart) / s.size[b]
            if there + saved >= best:
                continue
            change = there + (distance_to_group(d, s, l, a) - mine - apart) / s.size[a]
        if change < best and is_allowed(p, s, i, l, b):
            best, other = change, l
    if other < -1:
        return 0.0
    swap_records(d, p, s, i, other, b)
    return best


@entry(*EXAMPLE_SEARCH, np.zeros(1, np.int32), 1.0)
def settle(d: Mixed, p: Promises, s: Groups, around: Curves, stream: Stream, movers: Rows, cost: float) -> float:
    """Let each of these records settle once in groups of this cost; return the cost after it.

    Without movers, compute the costs and misses of the groups, and return the cost.
    """
    if movers.size == 0:
        return recount(d, p, s)
    for t in range(movers.size):
        i = np.int64(movers[t])
        home = find_home(d, s, around, stream, i)
        if home >= 0:
            cost += settle_one(d, p, s, stream, i, home, MIN_GAIN_SHARE * cost / s.label.size)
    return cost
