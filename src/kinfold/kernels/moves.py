"""Moves: the best change that moves one record, perhaps with one or two more in a chain, and random exchanges.

    relocate    i goes to group b
    swap        i goes to b, and l of b takes its place
    path        i goes to b, l of b goes on to c
    cycle       i goes to b, l of b goes on to c, q of c takes the place of i

b runs over the groups of the records nearest to i, c over those nearest to l. A chain is followed only while its saving
so far beats the best move: filling the place of i can only add to the cost (for numbers; for codes it is a heuristic).
The cost of a move is computed first, because it is cheap; the promises of the groups after it.

Random exchanges draw a neighbour along curves through the table (see `partition.geometry`). Records that tie are at one
place of a curve, so a step leads to other values, however many records have the same.

Cost: O(w m (m + w' m)) for w candidate groups of m members, w' of a chain; from means O(w m d), without chains.
Ties: the first candidate.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kinfold.kernels.compiling import Real, Rows, inlined, lean
from kinfold.kernels.draws import Stream, below, make_stream
from kinfold.kernels.groups import (
    RECORD,
    SECOND,
    Asked,
    Groups,
    Kept,
    admits,
    distance_to_group,
    distance_to_mean,
    distance_to_own_group,
    example_groups,
    fits,
    join,
    leave,
    pair_distance,
)
from kinfold.kernels.promises import Promises, example_promises
from kinfold.kernels.records import Mixed, example_records

MIN_IMPROVEMENT = 1e-11  # an improvement below this share of what the groups cost is rounding


@lean
def list_nearby_groups(s: Groups, i: int, other: int, many: int, row: int) -> int:
    """List in a row of `lists` the groups of the records nearest to i, except its own and `other`; return how many."""
    count = 0
    for t in range(s.near.shape[1]):
        g = s.label[s.near[i, t]]
        if g == s.label[i] or g == other or g < 0:
            continue
        known = False
        for u in range(count):
            if s.lists[row, u] == g:
                known = True
                break
        if not known:
            s.lists[row, count] = g
            count += 1
            if count == many:
                break
    return count


@lean
def keeps_promises(p: Kept, s: Groups, links: int) -> bool:
    """Whether every group keeps its promises after the first links of the trial.

    One loop, so that the promises, which are most of the code, are compiled once.
    """
    if p is None:
        return True
    first = s.label[s.trial[0].record]
    groups = links if s.trial[links - 1].group == first else links + 1  # a cycle ends where it began
    for t in range(groups):
        g = first if t == links else s.trial[t].group
        leaving, arriving = -1, -1
        for u in range(links):
            if s.label[s.trial[u].record] == g:
                leaving = s.trial[u].record
            if s.trial[u].group == g:
                arriving = s.trial[u].record
        if not admits(p, s, g, leaving, arriving):
            return False
    return True


@lean
def propose(p: Kept, s: Groups, links: int, change: float) -> None:
    """Make the first links of the trial the best move, if the promises allow it."""
    now = s.state[0]
    if not keeps_promises(p, s, links):
        return
    now.best, now.links = change, links
    for t in range(links):
        s.move[t].record = s.trial[t].record
        s.move[t].group = s.trial[t].group


@lean
def set_link(s: Groups, at: int, i: int, g: int) -> None:
    """Set link number `at` of the trial: record i goes to group g."""
    s.trial[at].record = i
    s.trial[at].group = g


@lean
def cost_increase(s: Groups, g: int, extra: float, by: int) -> float:
    """Return how much more group g costs when its pairs grow by `extra` and its size by `by`."""
    return (s.pairs[g] + extra) / (s.size[g] + by) - s.pairs[g] / s.size[g]


@lean
def swap_change_by_means(d: Mixed, s: Groups, i: int, l: int) -> float:
    """Return the change of cost when records i and l of two groups swap, from the means.

    |y-a|² - |x-a|² + |x-b|² - |y-b|² - |x-y|² (1/m + 1/m'), and the first four are 2 (y-x)(b-a).
    """
    a, b = s.label[i], s.label[l]
    here, there = 1.0 / s.size[a], 1.0 / s.size[b]
    change, apart = 0.0, 0.0
    for t in range(s.sums.shape[1]):
        step = d.numbers[l, t] - d.numbers[i, t]
        change += step * (s.sums[b, t] * there - s.sums[a, t] * here)
        apart += step * step
    return 2.0 * change - apart * (here + there)


@lean
def move_change(d: Mixed, s: Groups, i: int, b: int) -> float:
    """Return the change of cost when record i goes to group b."""
    a = s.label[i]
    if d.codes.shape[1] == 0:
        mine, other = s.size[a], s.size[b]
        return distance_to_mean(d, s, i, b) * other / (other + 1) - distance_to_mean(d, s, i, a) * mine / (mine - 1)
    return cost_increase(s, a, -distance_to_own_group(d, s, i), -1) + cost_increase(
        s, b, distance_to_group(d, s, i, b), 1
    )


@lean
def swap_change(d: Mixed, s: Groups, i: int, l: int, limit: Real) -> float:
    """Return the change of cost when records i and l of two groups swap; if it is above the limit, perhaps less of it.

    From l to the group of i is at least as far as from l to i: with that alone, most swaps are above the limit already.
    Rounding keeps the order, so the bound is never above the change.
    """
    if d.codes.shape[1] == 0:
        return swap_change_by_means(d, s, i, l)
    a, b, apart = s.label[i], s.label[l], pair_distance(d, s, i, l)
    own = distance_to_own_group(d, s, i)
    there = (distance_to_group(d, s, i, b) - distance_to_own_group(d, s, l) - apart) / s.size[b]
    least = (apart - own - apart) / s.size[a] + there
    if least > limit:
        return least
    return (distance_to_group(d, s, l, a) - own - apart) / s.size[a] + there


@inlined
def try_chains(d: Asked, p: Kept, s: Groups, i: int, l: int, so_far: float) -> None:
    """Try to send l, displaced by i, to a third group: paths and cycles."""
    a, now = s.label[i], s.state[0]
    ends = fits(s, a, -1)
    for u in range(list_nearby_groups(s, l, a, now.deep, SECOND)):
        c = s.lists[SECOND, u]
        to_c = distance_to_group(d, s, l, c)
        set_link(s, 1, l, c)
        if ends and fits(s, c, 1):
            change = so_far + cost_increase(s, c, to_c, 1)
            if change < now.best:
                propose(p, s, 2, change)
        for y in range(s.start[c], s.start[c] + s.size[c]):
            q = s.members[y]
            there = so_far + (to_c - s.own[q] - pair_distance(d, s, l, q)) / s.size[c]
            if there >= now.best:
                continue
            saved = cost_increase(s, a, -s.own[i], -1)
            change = there - saved + (distance_to_group(d, s, q, a) - s.own[i] - pair_distance(d, s, i, q)) / s.size[a]
            if change < now.best:
                set_link(s, 2, q, a)
                propose(p, s, 3, change)


@inlined
def try_exchanges(d: Asked, p: Kept, s: Groups, i: int, b: int, to_b: float, saved: float) -> None:
    """Try to send i to b, alone or in place of each member, which takes its place or goes to a third group."""
    a, now = s.label[i], s.state[0]
    first = s.start[b]
    can_move = fits(s, a, -1) and fits(s, b, 1)
    for x in range(0 if can_move else 1, s.size[b] + 1):  # one loop, so that the promises are compiled once
        if x == 0:
            l, there, change = -1, 0.0, saved + cost_increase(s, b, to_b, 1)
        else:
            l = s.members[first + x - 1]
            apart = pair_distance(d, s, i, l)
            there = (to_b - s.own[l] - apart) / s.size[b]
            if there + saved >= now.best:
                continue
            change = there + (distance_to_group(d, s, l, a) - s.own[i] - apart) / s.size[a]
            set_link(s, 1, l, a)
        if change < now.best:
            propose(p, s, 1 if x == 0 else 2, change)
        if x == 0:
            continue
        if p is None:  # noqa: SIM102  left out by the compiler: chains are for groups without promises
            if now.deep > 0:
                try_chains(d, p, s, i, l, there + saved)


@inlined
def try_exchanges_by_means(d: Asked, p: Kept, s: Groups, i: int, b: int, relocation: float) -> None:
    """Try to send i to b, which changes the cost by `relocation`, or to swap it with each member of b."""
    a, now = s.label[i], s.state[0]
    if relocation < now.best and fits(s, a, -1) and fits(s, b, 1):
        propose(p, s, 1, relocation)
    for x in range(s.start[b], s.start[b] + s.size[b]):
        l = s.members[x]
        change = swap_change_by_means(d, s, i, l)
        if change < now.best:
            set_link(s, 1, l, a)
            propose(p, s, 2, change)


@lean
def best_move(d: Asked, p: Kept, s: Groups, i: int) -> float:
    """Write the best move that starts with record i; return its change of cost, 0 if there is none."""
    now, a = s.state[0], s.label[i]
    now.best = 0.0
    now.links = 0
    saved = cost_increase(s, a, -distance_to_own_group(d, s, i), -1)
    for u in range(list_nearby_groups(s, i, -1, now.wide, RECORD)):
        b = s.lists[RECORD, u]
        set_link(s, 0, i, b)
        to_b = distance_to_group(d, s, i, b)
        if d is None:
            try_exchanges(d, p, s, i, b, to_b, saved)
        else:
            try_exchanges_by_means(d, p, s, i, b, saved + cost_increase(s, b, to_b, 1))
    cost = s.pairs[a] / s.size[a]  # of the groups of the best move
    for t in range(now.links):
        cost += s.pairs[s.move[t].group] / s.size[s.move[t].group]
    if now.links > 0 and -now.best <= MIN_IMPROVEMENT * cost:
        now.links = 0
        now.best = 0.0
    return now.best


@lean
def record_change(s: Groups, i: int) -> None:
    """Record the group that record i had before this step, once."""
    now = s.state[0]
    if s.rows[i].stamp != now.step:
        s.rows[i].stamp = now.step
        s.rows[now.changed].changed = i
        s.rows[now.changed].came_from = s.label[i]
        now.changed += 1


@lean
def make_move(d: Asked, p: Kept, s: Groups) -> None:
    """Make the best move."""
    links = s.state[0].links
    for t in range(links):
        record_change(s, s.move[t].record)
        leave(d, p, s, s.move[t].record)
    for t in range(links):
        join(d, p, s, s.move[t].record, s.move[t].group)


@lean
def undo_step(d: Asked, p: Kept, s: Groups) -> None:
    """Undo every change of this step; before it, every group kept its promises."""
    changed = s.state[0].changed
    for t in range(changed):
        s.missed[s.label[s.rows[t].changed]] = 0.0
        leave(d, p, s, s.rows[t].changed)
    for t in range(changed):
        join(d, p, s, s.rows[t].changed, s.rows[t].came_from)
        s.missed[s.rows[t].came_from] = 0.0
    s.state[0].changed = 0


class Curves(NamedTuple):
    """Orders of the places of records that keep neighbours together, and the records at each place."""

    order: Rows  # (curves, places)
    turn: Rows  # (curves, places) where each place stands in the order
    place: Rows  # (n) of each record
    start: Rows  # (places + 1) where the records of a place start in `there`
    there: Rows  # (n) the records of one place after the other


_ROW, _TABLE = np.zeros(1, np.int32), np.zeros((1, 1), np.int32)
# To compile for: records, promises, groups, curves and a stream
EXAMPLE_SEARCH = (
    *(example_records(), example_promises(), example_groups()),
    *(Curves(_TABLE, _TABLE, _ROW, _ROW, _ROW), make_stream(0)),
)


@inlined
def draw_neighbour(around: Curves, stream: Stream, i: int, widest: int, anywhere: int) -> int:
    """Draw a record at most 2^widest places from i along some curve, or, once in `anywhere` times, any record."""
    if below(stream, anywhere) == 0:
        return below(stream, around.place.size)
    c = below(stream, around.order.shape[0])
    reach = 1 << (1 + below(stream, widest))
    at = around.turn[c, around.place[i]] + below(stream, 2 * reach + 1) - reach
    there = around.order[c, min(max(at, 0), around.order.shape[1] - 1)]
    first, many = around.start[there], around.start[there + 1] - around.start[there]
    return around.there[first + below(stream, many) if many > 1 else first]


@inlined
def draw_member(s: Groups, stream: Stream, g: int) -> int:
    """Draw a member of group g."""
    return s.members[s.start[g] + below(stream, s.size[g])]


@inlined
def are_alike(p: Promises, i: int, l: int) -> bool:
    """Whether no promise distinguishes these records."""
    for row in range(p.codes.shape[0]):  # noqa: SIM110  kernels have no generators
        if p.codes[row, i] != p.codes[row, l]:
            return False
    return True


@inlined
def is_allowed(p: Promises, s: Groups, i: int, l: int, b: int) -> bool:
    """Whether both groups keep their promises when i goes to b and l (-1: none) takes its place."""
    a = s.label[i]
    if l >= 0 and are_alike(p, i, l):
        return True
    for t in range(2):  # noqa: SIM110  a loop, so that the promises are compiled once
        if not admits(p, s, a if t == 0 else b, i if t == 0 else l, l if t == 0 else i):
            return False
    return True


@inlined
def swap_records(d: Mixed, p: Promises, s: Groups, i: int, l: int, b: int) -> None:
    """Send i to b, and l (-1: none) to the group of i."""
    a = s.label[i]
    for t in range(2):
        record = i if t == 0 else l
        if record >= 0:
            leave(d, p, s, record)
    for t in range(2):
        record = i if t == 0 else l
        if record >= 0:
            join(d, p, s, record, b if t == 0 else a)
