"""Groups: a partition that can be changed record by record, with the cost of each group always at hand.

The cost of a group is the sum of the squared distances of its pairs over its size. For numbers this is its SSE
(Huygens); for mixed records it is the same measure of spread. Kept for each group: `pairs`, that sum before the
division; for each record: `own`, its part in it. So the change that a move makes is a few sums:

    i leaves a group of m            pairs/m  ->  (pairs - own(i)) / (m - 1)
    i joins a group of m             pairs/m  ->  (pairs + toward(i)) / (m + 1)
    i takes the place of j           pairs/m  ->  (pairs - own(j) + toward(i) - gap(i, j)) / m

Every function takes what distances are asked of and what is promised, before the groups:

    d   None: a table of all pairs (`gaps`), for some thousand records; a sum over the members
        numbers: the means of the groups; toward(i) = m |x - mean|² + pairs/m, O(d) for a group of any size
        numbers and codes: the records themselves; a sum over the members
    p   what every group must keep, or None. Then members are kept in the order of the first row of codes that the
        promises read, so that a changed group is nearly sorted

The compiler leaves out what None does not need. Every move asks `fits` and `admits` first: a group has at least k
records, no more than it has room for, and misses its promises by no more than before.

Cost: O(group size) for each change, O(d) where only means are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kinfold.kernels.compiling import inlined, lean
from kinfold.kernels.mixed import Mixed, code_gaps
from kinfold.kernels.promises import miss

if TYPE_CHECKING:
    from typing import TypeAlias

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Rows = NDArray[np.int32]
    Ints = NDArray[np.int64]
    Asked: TypeAlias = Any  # Mixed or None: what distances are asked of
    Kept: TypeAlias = Any  # Promises or None: what every group must keep

STATE = np.dtype(
    [
        ("k", np.int64),
        ("wide", np.int64),  # candidate groups of a record
        ("deep", np.int64),  # candidate groups of the second record of a chain; 0 for no chains
        ("reach", np.int64),  # groups taken apart besides the first
        ("head", np.int64),  # of the ring of queued records
        ("queued", np.int64),
        ("step", np.int64),  # of the search
        ("changed", np.int64),  # records on the trail of this step
        ("links", np.int64),  # of the best move
        ("best", np.float64),  # the change of cost of the best move
    ],
    align=True,
)
LINK = np.dtype([("record", np.int64), ("group", np.int64)], align=True)
ROW = np.dtype(
    [
        ("queue", np.int32),  # a ring of records
        ("waits", np.int32),  # 1 if this record is in it
        ("changed", np.int32),  # the records that this step has changed
        ("came_from", np.int32),  # and the group that each had
        ("stamp", np.int32),  # the last step that changed this record
        ("pool", np.int32),  # the records of the groups taken apart
    ],
    align=True,
)
LINKS = 3  # of a chain, at most
RECORD, SECOND, CHOSEN = range(3)  # rows of `lists`: candidate groups of a record, of a chain's second; taken apart


class Groups(NamedTuple):
    """The partition, what is kept about it, and the room in which a search works."""

    gaps: Floats  # (n, n) squared distances, where they are asked
    near: Rows  # (n, t) records near each, nearest first
    label: Rows  # (n) the group of a record, -1 while it is in none
    place: Rows  # (n) where the record stands in its group
    own: Floats  # (n) sum of the distances to the record's own group, where the means are not asked
    members: Rows  # the records of one group after the other
    start: Ints  # (g + 1) where the room of each group starts in `members`
    size: Ints  # (g); 0 marks a group that is free
    pairs: Floats  # (g) sum of the distances of the pairs
    missed: Floats  # (g) how far the promises are missed
    sums: Floats  # (g, d) of the numbers of the members, where the means are asked
    state: Any  # (1) STATE
    move: Any  # (LINKS) LINK: the best move, link after link
    trial: Any  # (LINKS) LINK: the move in hand
    rows: Any  # (n) ROW: what is noted of records
    lists: Rows  # (3, n + 2) groups: candidates of a record, of a chain's second record, and those taken apart


def example() -> Groups:
    """Return the smallest groups, to compile for."""
    rows, reals, whole = np.zeros(1, np.int32), np.zeros(1), np.zeros(1, np.int64)
    table = np.zeros((1, 1))
    return Groups(
        *(table, np.zeros((1, 1), np.int32), rows, rows, reals, rows, whole, whole, reals, reals, table, *room(1))
    )


def room(records: int) -> tuple[Any, ...]:
    """Return the room of a search among so many records: its state, the move, and what is noted."""
    shapes = ((1, STATE), (LINKS, LINK), (LINKS, LINK), (records, ROW))
    named = (np.zeros(size, of).view(np.recarray) for size, of in shapes)
    return (*named, np.zeros((3, records + 2), np.int32))


@lean
def gap(d: Asked, s: Groups, i: int, j: int) -> float:
    """Return the squared distance of two records."""
    if d is None:
        return s.gaps[i, j]
    total = 0.0
    for t in range(d.numbers.shape[1]):
        step = d.numbers[i, t] - d.numbers[j, t]
        total += step * step
    if d.codes.shape[1] > 0:
        total += code_gaps(d, i, j)
    return total


@lean
def from_mean(d: Mixed, s: Groups, i: int, g: int) -> float:
    """Return the squared distance of record i to the mean of group g."""
    total = 0.0
    share = 1.0 / s.size[g]
    for t in range(d.numbers.shape[1]):
        step = d.numbers[i, t] - s.sums[g, t] * share
        total += step * step
    return total


@lean
def toward(d: Asked, s: Groups, i: int, g: int) -> float:
    """Return the sum of the distances from record i to the members of group g."""
    total, first = 0.0, s.start[g]
    if d is None:
        for t in range(first, first + s.size[g]):
            total += s.gaps[i, s.members[t]]
        return total
    if d.codes.shape[1] > 0:
        for t in range(first, first + s.size[g]):
            total += gap(d, s, i, s.members[t])
    elif s.size[g] > 0:
        total = s.size[g] * from_mean(d, s, i, g) + s.pairs[g] / s.size[g]
    return total


@lean
def own(d: Asked, s: Groups, i: int) -> float:
    """Return the sum of the distances from record i to its own group."""
    if d is None:
        return s.own[i]
    return s.own[i] if d.codes.shape[1] > 0 else toward(d, s, i, s.label[i])


@inlined
def members_of(s: Groups, g: int) -> Rows:
    """The records of group g."""
    return s.members[s.start[g] : s.start[g] + s.size[g]]


@lean
def vacate(p: Kept, s: Groups, i: int, g: int) -> None:
    """Give up the place of record i among the members of group g, whose size says already that it is gone."""
    at, last, first = s.place[i], s.size[g], s.start[g]
    if p is None:
        other = s.members[first + last]
        s.members[first + at] = other
        s.place[other] = at
    else:
        while at < last:
            other = s.members[first + at + 1]
            s.members[first + at] = other
            s.place[other] = at
            at += 1


@lean
def occupy(p: Kept, s: Groups, i: int, g: int) -> None:
    """Give record i a place among the members of group g, whose size does not count it yet."""
    at, first = s.size[g], s.start[g]
    if p is not None:
        code = p.codes[0, i]
        while at > 0 and p.codes[0, s.members[first + at - 1]] > code:
            other = s.members[first + at - 1]
            s.members[first + at] = other
            s.place[other] = at
            at -= 1
    s.members[first + at] = i
    s.place[i] = at


@lean
def count_out(d: Asked, s: Groups, i: int, g: int) -> None:
    """Take record i out of what is kept about the members of group g."""
    if d is not None:
        for t in range(s.sums.shape[1]):
            s.sums[g, t] -= d.numbers[i, t]
        if d.codes.shape[1] == 0:
            return
    for t in range(s.start[g], s.start[g] + s.size[g]):
        s.own[s.members[t]] -= gap(d, s, i, s.members[t])


@lean
def count_in(d: Asked, s: Groups, i: int, g: int) -> float:
    """Take record i into what is kept about the members of group g; return the sum of its distances to them."""
    if d is not None:
        total = toward(d, s, i, g)
        for t in range(s.sums.shape[1]):
            s.sums[g, t] = (s.sums[g, t] if s.size[g] > 0 else 0.0) + d.numbers[i, t]
        if d.codes.shape[1] == 0:
            return total
    total = 0.0
    for t in range(s.start[g], s.start[g] + s.size[g]):
        there = gap(d, s, i, s.members[t])
        total += there
        s.own[s.members[t]] += there
    s.own[i] = total
    return total


@lean
def leave(d: Asked, p: Kept, s: Groups, i: int) -> None:
    """Take record i out of its group."""
    g = s.label[i]
    s.pairs[g] -= own(d, s, i)
    s.size[g] -= 1
    vacate(p, s, i, g)
    count_out(d, s, i, g)
    if s.size[g] == 0:
        s.pairs[g] = 0.0
        s.missed[g] = 0.0
    s.label[i] = -1


@lean
def join(d: Asked, p: Kept, s: Groups, i: int, g: int) -> None:
    """Put record i, which is in no group, into group g."""
    s.pairs[g] += count_in(d, s, i, g)
    occupy(p, s, i, g)
    s.size[g] += 1
    s.label[i] = g


@lean
def fits(s: Groups, g: int, change: int) -> bool:
    """Tell whether group g may have so many records more: at least k, and no more than it has room for."""
    size = s.size[g] + change
    return s.state[0].k <= size <= s.start[g + 1] - s.start[g]


@lean
def admits(p: Kept, s: Groups, g: int, leaving: int, arriving: int) -> bool:
    """Tell whether group g, of a size that fits, may change so: `leaving` goes out, `arriving` comes in (-1: nobody).

    It may if it misses its promises by no more than it does now: by nothing, once they are kept.
    """
    if p is None:
        return True
    return miss(p, members_of(s, g), leaving, arriving) <= s.missed[g]


@lean
def judge(p: Kept, s: Groups, g: int) -> None:
    """Note how far group g misses its promises now."""
    if p is not None:
        s.missed[g] = miss(p, members_of(s, g), -1, -1) if s.size[g] > 0 else 0.0


@lean
def holds(s: Groups, g: int) -> bool:
    """Tell whether group g may stay as it is: empty, or of a size that is allowed and with its promises kept."""
    return s.size[g] == 0 or (fits(s, g, 0) and s.missed[g] == 0.0)


@lean
def spread(d: Asked, s: Groups, g: int) -> float:
    """Sum the distances of the pairs of group g afresh."""
    total = 0.0
    if d is not None:
        for t in range(s.sums.shape[1]):
            s.sums[g, t] = 0.0
            for i in members_of(s, g):
                s.sums[g, t] += d.numbers[i, t]
        if d.codes.shape[1] == 0:
            for i in members_of(s, g):
                total += from_mean(d, s, i, g)
            return total * s.size[g]
    for i in members_of(s, g):
        s.own[i] = toward(d, s, i, g)
        total += 0.5 * s.own[i]
    return total


@lean
def recount(d: Asked, p: Kept, s: Groups) -> float:
    """Compute all that is kept afresh, so that rounding does not add up over millions of moves; return the cost."""
    total = 0.0
    for g in range(s.size.size):
        s.pairs[g] = spread(d, s, g)
        judge(p, s, g)
        if s.size[g] > 0:
            total += s.pairs[g] / s.size[g]
    return total
