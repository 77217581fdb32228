"""Moves: the best way to lower the cost by moving one record, and perhaps one or two more in a chain.

    relocate    i goes to group b
    swap        i goes to b, and l of b takes its place
    path        i goes to b, l of b goes on to c
    cycle       i goes to b, l of b goes on to c, q of c takes the place of i

b runs over the groups of the records nearest to i, c over those nearest to l. A chain is followed only while what
is saved so far beats the best move: putting somebody in the place of i can only add to that (for numbers; for
mixed distances it is a rule of thumb). What a move costs is looked at first, since it is cheap; the promises of the
groups after it.

Cost: O(w m (m + w' m)) for w candidate groups of m members, w' of a chain; from means O(w m d), without chains.
Ties: the first found stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kinfold.kernels.compiling import inlined, lean
from kinfold.kernels.groups import (
    RECORD,
    SECOND,
    Groups,
    admits,
    fits,
    from_mean,
    gap,
    join,
    leave,
    own,
    toward,
)

if TYPE_CHECKING:
    from kinfold.kernels.groups import Asked, Kept
    from kinfold.kernels.mixed import Mixed

LEAST = 1e-11  # an improvement below this share of what the groups cost is rounding


@lean
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


@lean
def keeps(p: Kept, s: Groups, links: int) -> bool:
    """Tell whether every group keeps its promises after the first so many links of the trial, in one loop.

    One loop, so that the compiler meets the promises once: they are most of the code.
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
    """Take the first so many links of the trial as the best move, if the promises allow it."""
    now = s.state[0]
    if not keeps(p, s, links):
        return
    now.best, now.links = change, links
    for t in range(links):
        s.move[t].record = s.trial[t].record
        s.move[t].group = s.trial[t].group


@lean
def link(s: Groups, at: int, i: int, g: int) -> None:
    """Write into the trial, as its link number `at`, that record i goes to group g."""
    s.trial[at].record = i
    s.trial[at].group = g


@lean
def grown(s: Groups, g: int, extra: float, by: int) -> float:
    """Return how much more group g costs when its pairs grow by `extra` and its size by `by`."""
    return (s.pairs[g] + extra) / (s.size[g] + by) - s.pairs[g] / s.size[g]


@lean
def swapped_by_means(d: Mixed, s: Groups, i: int, l: int) -> float:
    """Return the change of cost when records i and l of two groups change places, from the means.

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
def moved(d: Mixed, s: Groups, i: int, b: int) -> float:
    """Return the change of cost when record i goes to group b."""
    a = s.label[i]
    if d.codes.shape[1] == 0:
        mine, other = s.size[a], s.size[b]
        return from_mean(d, s, i, b) * other / (other + 1) - from_mean(d, s, i, a) * mine / (mine - 1)
    return grown(s, a, -own(d, s, i), -1) + grown(s, b, toward(d, s, i, b), 1)


@lean
def swapped(d: Mixed, s: Groups, i: int, l: int) -> float:
    """Return the change of cost when records i and l of two groups change places."""
    if d.codes.shape[1] == 0:
        return swapped_by_means(d, s, i, l)
    a, b, apart = s.label[i], s.label[l], gap(d, s, i, l)
    mine = (toward(d, s, l, a) - own(d, s, i) - apart) / s.size[a]
    return mine + (toward(d, s, i, b) - own(d, s, l) - apart) / s.size[b]


@inlined
def follow(d: Asked, p: Kept, s: Groups, i: int, l: int, so_far: float) -> None:
    """Try to send l, displaced by i, on to a third group: paths and cycles."""
    a, now = s.label[i], s.state[0]
    ends = fits(s, a, -1)
    for u in range(nearby(s, l, a, now.deep, SECOND)):
        c = s.lists[SECOND, u]
        to_c = toward(d, s, l, c)
        link(s, 1, l, c)
        if ends and fits(s, c, 1):
            change = so_far + grown(s, c, to_c, 1)
            if change < now.best:
                propose(p, s, 2, change)
        for y in range(s.start[c], s.start[c] + s.size[c]):
            q = s.members[y]
            there = so_far + (to_c - s.own[q] - gap(d, s, l, q)) / s.size[c]
            if there >= now.best:
                continue
            saved = grown(s, a, -s.own[i], -1)
            change = there - saved + (toward(d, s, q, a) - s.own[i] - gap(d, s, i, q)) / s.size[a]
            if change < now.best:
                link(s, 2, q, a)
                propose(p, s, 3, change)


@inlined
def exchange(d: Asked, p: Kept, s: Groups, i: int, b: int, to_b: float, saved: float) -> None:
    """Try to send i to b; then to put it in the place of each member, who takes its place or goes to a third group."""
    a, now = s.label[i], s.state[0]
    first = s.start[b]
    alone = fits(s, a, -1) and fits(s, b, 1)
    for x in range(0 if alone else 1, s.size[b] + 1):  # one loop, so that the compiler meets the promises once
        if x == 0:
            l, there, change = -1, 0.0, saved + grown(s, b, to_b, 1)
        else:
            l = s.members[first + x - 1]
            apart = gap(d, s, i, l)
            there = (to_b - s.own[l] - apart) / s.size[b]
            if there + saved >= now.best:
                continue
            change = there + (toward(d, s, l, a) - s.own[i] - apart) / s.size[a]
            link(s, 1, l, a)
        if change < now.best:
            propose(p, s, 1 if x == 0 else 2, change)
        if x == 0:
            continue
        if p is None:  # noqa: SIM102  the compiler leaves it out as a whole: chains are for groups without promises
            if now.deep > 0:
                follow(d, p, s, i, l, there + saved)


@inlined
def exchange_by_means(d: Asked, p: Kept, s: Groups, i: int, b: int, alone: float) -> None:
    """Try to send i to b, which changes the cost by `alone`; then to let it and each member of b change places."""
    a, now = s.label[i], s.state[0]
    if alone < now.best and fits(s, a, -1) and fits(s, b, 1):
        propose(p, s, 1, alone)
    for x in range(s.start[b], s.start[b] + s.size[b]):
        l = s.members[x]
        change = swapped_by_means(d, s, i, l)
        if change < now.best:
            link(s, 1, l, a)
            propose(p, s, 2, change)


@inlined
def at_stake(s: Groups, a: int) -> float:
    """Return what the groups of the best move, which starts in a, cost now."""
    total = s.pairs[a] / s.size[a]
    for t in range(s.state[0].links):
        g = s.move[t].group
        total += s.pairs[g] / s.size[g]
    return total


@lean
def best_move(d: Asked, p: Kept, s: Groups, i: int) -> float:
    """Write the best move that starts with record i; return its change of cost, 0 if there is none."""
    now, a = s.state[0], s.label[i]
    now.best = 0.0
    now.links = 0
    saved = grown(s, a, -own(d, s, i), -1)
    for u in range(nearby(s, i, -1, now.wide, RECORD)):
        b = s.lists[RECORD, u]
        link(s, 0, i, b)
        to_b = toward(d, s, i, b)
        if d is None:
            exchange(d, p, s, i, b, to_b, saved)
        else:
            exchange_by_means(d, p, s, i, b, saved + grown(s, b, to_b, 1))
    if now.links > 0 and -now.best <= LEAST * at_stake(s, a):
        now.links = 0
        now.best = 0.0
    return now.best


@lean
def note(s: Groups, i: int) -> None:
    """Write down the group that record i had before this step, once."""
    now = s.state[0]
    if s.rows[i].stamp != now.step:
        s.rows[i].stamp = now.step
        s.rows[now.changed].changed = i
        s.rows[now.changed].came_from = s.label[i]
        now.changed += 1


@lean
def carry_out(d: Asked, p: Kept, s: Groups) -> None:
    """Make the best move."""
    links = s.state[0].links
    for t in range(links):
        note(s, s.move[t].record)
        leave(d, p, s, s.move[t].record)
    for t in range(links):
        join(d, p, s, s.move[t].record, s.move[t].group)


@lean
def take_back(d: Asked, p: Kept, s: Groups) -> None:
    """Undo every change of this step; before it, every group kept its promises."""
    changed = s.state[0].changed
    for t in range(changed):
        s.missed[s.label[s.rows[t].changed]] = 0.0
        leave(d, p, s, s.rows[t].changed)
    for t in range(changed):
        join(d, p, s, s.rows[t].changed, s.rows[t].came_from)
        s.missed[s.rows[t].came_from] = 0.0
    s.state[0].changed = 0
