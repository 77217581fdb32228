"""Groups: a partition that changes record by record, and the current cost of each group.

The cost of a group is the sum of the squared distances of its pairs over its size. For numbers this is its SSE
(Huygens). Each group keeps `pairs`, that sum before the division, and each record `own`, its share in it. So the change
of a move is a few sums:

    i leaves a group of m            pairs/m  ->  (pairs - own(i)) / (m - 1)
    i joins a group of m             pairs/m  ->  (pairs + distance(i)) / (m + 1)
    i replaces j                     pairs/m  ->  (pairs - own(j) + distance(i) - distance(i, j)) / m

Every function takes the source of distances and the promises, before the groups:

    d   None: a table of all pairs (`gaps`), for some thousand records; a sum over the members
        numbers: the means of the groups; distance(i) = m |x - mean|² + pairs/m, O(d) for a group of any size
        numbers and codes: the records themselves; a sum over the members
    p   what every group must keep, or None. With promises, members are sorted by the first row of codes that the
        promises read, so that a changed group is nearly sorted

The compiler removes what None does not need. Every move asks `fits` and `admits` first: a group has at least k records,
no more than it has room for, and misses its promises by no more than before.

Cost: O(group size) for each change, O(d) with means alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from kinfold.kernels.compiling import Floats, Ints, Rows, inlined, lean
from kinfold.kernels.promises import measure_miss
from kinfold.kernels.records import Mixed, code_gaps

Asked: TypeAlias = Any  # Mixed or None: the source of distances
Kept: TypeAlias = Any  # Promises or None: what every group must keep

STATE = np.dtype(
    [
        ("k", np.int64),
        ("wide", np.int64),  # candidate groups of a record
        ("deep", np.int64),  # candidate groups of the second record of a chain; 0 for no chains
        ("reach", np.int64),  # groups taken apart, in addition to the first
        ("head", np.int64),  # of the ring of queued records
        ("queued", np.int64),
        ("step", np.int64),  # of the search
        ("changed", np.int64),  # records that this step has changed
        ("links", np.int64),  # of the best move
        ("best", np.float64),  # the change of cost of the best move
    ],
    align=True,
)
LINK = np.dtype([("record", np.int64), ("group", np.int64)], align=True)
ROW = np.dtype(
    [
        ("queue", np.int32),  # a ring of records
        ("waits", np.int32),  # 1 if this record is queued
        ("changed", np.int32),  # the records that this step has changed
        ("came_from", np.int32),  # and their groups before
        ("stamp", np.int32),  # the last step that changed this record
        ("pool", np.int32),  # the records of the groups taken apart
    ],
    align=True,
)
LINKS = 3  # of a chain, at most
RECORD, SECOND, CHOSEN = range(3)  # rows of `lists`: candidate groups of a record, of a chain's second; taken apart


class Groups(NamedTuple):
    """The partition, what is kept about it, and the workspace of a search."""

    gaps: Floats  # (n, n) squared distances, or empty
    near: Rows  # (n, t) records near each, nearest first
    label: Rows  # (n) the group of a record, or -1
    place: Rows  # (n) the place of a record in its group
    own: Floats  # (n) sum of the distances to its own group, without means
    members: Rows  # the records, group by group
    start: Ints  # (g + 1) where the room of each group starts in `members`
    size: Ints  # (g); 0 for an empty group
    pairs: Floats  # (g) sum of the distances of the pairs
    missed: Floats  # (g) by how much the promises are missed
    sums: Floats  # (g, d) of the numbers of the members, with means
    state: Any  # (1) STATE
    move: Any  # (LINKS) LINK: the best move, link after link
    trial: Any  # (LINKS) LINK: the move that is tried
    rows: Any  # (n) ROW: notes on records
    lists: Rows  # (3, n + 2) groups: candidates of a record, of a chain's second record, and those taken apart


def example_groups() -> Groups:
    """Return the smallest groups, to compile for."""
    rows, reals, whole = np.zeros(1, np.int32), np.zeros(1), np.zeros(1, np.int64)
    table = np.zeros((1, 1))
    near = np.zeros((1, 1), np.int32)
    return Groups(*(table, near, rows, rows, reals, rows, whole, whole, reals, reals, table, *make_workspace(1)))


def make_workspace(records: int) -> tuple[Any, ...]:
    """Return the workspace of a search: its state, the best move, the trial, notes on records and lists of groups."""
    shapes = ((1, STATE), (LINKS, LINK), (LINKS, LINK), (records, ROW))
    named = (np.zeros(size, of).view(np.recarray) for size, of in shapes)
    return (*named, np.zeros((3, records + 2), np.int32))


@lean
def pair_distance(d: Asked, s: Groups, i: int, j: int) -> float:
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
def distance_to_mean(d: Mixed, s: Groups, i: int, g: int) -> float:
    """Return the squared distance of record i to the mean of group g."""
    total = 0.0
    share = 1.0 / s.size[g]
    for t in range(d.numbers.shape[1]):
        step = d.numbers[i, t] - s.sums[g, t] * share
        total += step * step
    return total


@lean
def distance_to_group(d: Asked, s: Groups, i: int, g: int) -> float:
    """Return the sum of the distances from record i to the members of group g."""
    total, first = 0.0, s.start[g]
    if d is None:
        for t in range(first, first + s.size[g]):
            total += s.gaps[i, s.members[t]]
        return total
    if d.codes.shape[1] > 0:
        for t in range(first, first + s.size[g]):
            total += pair_distance(d, s, i, s.members[t])
    elif s.size[g] > 0:
        total = s.size[g] * distance_to_mean(d, s, i, g) + s.pairs[g] / s.size[g]
    return total


@lean
def distance_to_own_group(d: Asked, s: Groups, i: int) -> float:
    """Return the sum of the distances from record i to its own group."""
    if d is None:
        return s.own[i]
    return s.own[i] if d.codes.shape[1] > 0 else distance_to_group(d, s, i, s.label[i])


@inlined
def get_members(s: Groups, g: int) -> Rows:
    """Return the records of group g."""
    return s.members[s.start[g] : s.start[g] + s.size[g]]


@lean
def vacate(p: Kept, s: Groups, i: int, g: int) -> None:
    """Free the place of record i among the members of group g, whose size no longer counts it."""
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
    """Remove record i from what is kept about the members of group g."""
    if d is not None:
        for t in range(s.sums.shape[1]):
            s.sums[g, t] -= d.numbers[i, t]
        if d.codes.shape[1] == 0:
            return
    for t in range(s.start[g], s.start[g] + s.size[g]):
        s.own[s.members[t]] -= pair_distance(d, s, i, s.members[t])


@lean
def count_in(d: Asked, s: Groups, i: int, g: int) -> float:
    """Add record i to what is kept about the members of group g; return the sum of its distances to them."""
    if d is not None:
        total = distance_to_group(d, s, i, g)
        for t in range(s.sums.shape[1]):
            s.sums[g, t] = (s.sums[g, t] if s.size[g] > 0 else 0.0) + d.numbers[i, t]
        if d.codes.shape[1] == 0:
            return total
    total = 0.0
    for t in range(s.start[g], s.start[g] + s.size[g]):
        there = pair_distance(d, s, i, s.members[t])
        total += there
        s.own[s.members[t]] += there
    s.own[i] = total
    return total


@lean
def leave(d: Asked, p: Kept, s: Groups, i: int) -> None:
    """Remove record i from its group."""
    g = s.label[i]
    s.pairs[g] -= distance_to_own_group(d, s, i)
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
    """Whether group g may grow by `change` records: at least k, and no more than it has room for."""
    size = s.size[g] + change
    return s.state[0].k <= size <= s.start[g + 1] - s.start[g]


@lean
def admits(p: Kept, s: Groups, g: int, leaving: int, arriving: int) -> bool:
    """Whether group g may change so: `leaving` goes out, `arriving` comes in (-1: none).

    It may if it misses its promises by no more than now: by nothing, once they are kept.
    """
    if p is None:
        return True
    return measure_miss(p, get_members(s, g), leaving, arriving, s.missed[g]) <= s.missed[g]


@lean
def update_miss(p: Kept, s: Groups, g: int) -> None:
    """Measure by how much group g misses its promises now."""
    if p is not None:
        s.missed[g] = measure_miss(p, get_members(s, g), -1, -1, np.inf) if s.size[g] > 0 else 0.0


@lean
def holds(s: Groups, g: int) -> bool:
    """Whether group g may stay as it is: empty, or of an allowed size and with its promises kept."""
    return s.size[g] == 0 or (fits(s, g, 0) and s.missed[g] == 0.0)


@lean
def sum_pairs(d: Asked, s: Groups, g: int) -> float:
    """Sum the distances of the pairs of group g again."""
    total = 0.0
    if d is not None:
        for t in range(s.sums.shape[1]):
            s.sums[g, t] = 0.0
            for i in get_members(s, g):
                s.sums[g, t] += d.numbers[i, t]
        if d.codes.shape[1] == 0:
            for i in get_members(s, g):
                total += distance_to_mean(d, s, i, g)
            return total * s.size[g]
    for i in get_members(s, g):
        s.own[i] = distance_to_group(d, s, i, g)
        total += 0.5 * s.own[i]
    return total


@lean
def recount(d: Asked, p: Kept, s: Groups) -> float:
    """Compute everything that is kept again, so that rounding does not add up; return the cost."""
    total = 0.0
    for g in range(s.size.size):
        s.pairs[g] = sum_pairs(d, s, g)
        update_miss(p, s, g)
        if s.size[g] > 0:
            total += s.pairs[g] / s.size[g]
    return total
