"""Groups: a partition that can be changed record by record, with the cost of each group always at hand.

The cost of a group is the sum of the squared distances of its pairs over its size. For numbers this is its SSE
(Huygens); for mixed records it is the same measure of spread. Kept for each group: `pairs`, that sum before the
division; for each record: `own`, its part in it. So the change that a move makes is a few sums over group members:

    i leaves a group of m            pairs/m  ->  (pairs - own[i]) / (m - 1)
    i joins a group of m             pairs/m  ->  (pairs + toward(i)) / (m + 1)
    i takes the place of j           pairs/m  ->  (pairs - own[j] + toward(i) - gap(i, j)) / m

Cost: O(group size) for each change, O(n²) memory for the distances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numba

from kinfold.kernels.options import inner, kernel

if TYPE_CHECKING:
    import numpy as np


class Groups(NamedTuple):
    """The partition, what is kept about it, and the room in which a search works."""

    gaps: np.ndarray  # (n, n) squared distances
    near: np.ndarray  # (n, t) the nearest records of each, nearest first
    label: np.ndarray  # (n) the group of a record, -1 while it is in none
    place: np.ndarray  # (n) where the record stands in its group
    own: np.ndarray  # (n) sum of the distances to the record's own group
    members: np.ndarray  # (g, largest size) the records of a group, in no order
    size: np.ndarray  # (g); 0 marks a free row
    pairs: np.ndarray  # (g) sum of the distances of the pairs
    best: np.ndarray  # (1) the change of cost of the best move
    counts: np.ndarray  # counters, by the names below
    lists: np.ndarray  # (9, n or more) lists, by the names below


GROUPS = numba.types.NamedTuple(  # type: ignore[no-untyped-call]
    [
        numba.float64[:, ::1],
        numba.int32[:, ::1],
        numba.int32[::1],
        numba.int32[::1],
        numba.float64[::1],
        numba.int32[:, ::1],
        numba.int32[::1],
        numba.float64[::1],
        numba.float64[::1],
        numba.int64[::1],
        numba.int32[:, ::1],
    ],
    Groups,
)
# Places in `counts`: the sizes allowed, how many candidate groups a record and a link of a chain have, the ring of
# queued records, the step, the length of its trail, and the best move: its length, then record and group of each link
K, MOST, WIDE, DEEP, HEAD, QUEUED, STEP, TRAIL, MOVE = range(9)
COUNTERS = MOVE + 7
# Rows of `lists`: the ring of queued records and who is in it, the records changed in this step, the group each had
# and the last step that changed a record, two lists of candidate groups, the groups taken apart and their records
QUEUE, WAITS, CHANGED, CAME_FROM, STAMP, SEEN, SEEN_NEXT, CHOSEN, POOL = range(9)
LISTS = 9


@inner(numba.float64(GROUPS, numba.int64, numba.int64))
def toward(s: Groups, i: int, g: int) -> float:
    """Return the sum of the distances from record i to the members of group g."""
    total = 0.0
    for t in range(s.size[g]):
        total += s.gaps[i, s.members[g, t]]
    return total


@inner(numba.void(GROUPS, numba.int64))
def leave(s: Groups, i: int) -> None:
    """Take record i out of its group."""
    g = s.label[i]
    s.pairs[g] -= s.own[i]
    s.size[g] -= 1
    last = s.members[g, s.size[g]]
    s.members[g, s.place[i]] = last
    s.place[last] = s.place[i]
    for t in range(s.size[g]):
        s.own[s.members[g, t]] -= s.gaps[i, s.members[g, t]]
    if s.size[g] == 0:
        s.pairs[g] = 0.0
    s.label[i] = -1


@inner(numba.void(GROUPS, numba.int64, numba.int64))
def join(s: Groups, i: int, g: int) -> None:
    """Put record i, which is in no group, into group g."""
    total = 0.0
    for t in range(s.size[g]):
        other = s.members[g, t]
        total += s.gaps[i, other]
        s.own[other] += s.gaps[i, other]
    s.own[i] = total
    s.pairs[g] += total
    s.place[i] = s.size[g]
    s.members[g, s.size[g]] = i
    s.size[g] += 1
    s.label[i] = g


@kernel(numba.void(GROUPS))
def recount(s: Groups) -> None:
    """Compute `own` and `pairs` afresh, so that rounding does not add up over millions of moves."""
    for g in range(s.size.size):
        total = 0.0
        for t in range(s.size[g]):
            i = s.members[g, t]
            s.own[i] = toward(s, i, g)
            total += s.own[i]
        s.pairs[g] = 0.5 * total


@kernel(numba.float64(GROUPS))
def cost(s: Groups) -> float:
    """Return the cost of the whole partition."""
    total = 0.0
    for g in range(s.size.size):
        if s.size[g] > 0:
            total += s.pairs[g] / s.size[g]
    return total


@inner(numba.boolean(GROUPS, numba.int64, numba.int64, numba.int64))
def admits(s: Groups, g: int, leaving: int, arriving: int) -> bool:
    """Tell whether group g may change so: `leaving` goes out, `arriving` comes in (-1: nobody).

    Every move of the search changes a group by at most one record out and one in, and asks here first. A privacy
    model that must hold in every group is one more condition here and in `holds`; the size is the first.
    """
    size = s.size[g] - (leaving >= 0) + (arriving >= 0)
    return bool(s.counts[K] <= size <= s.counts[MOST])


@inner(numba.boolean(GROUPS, numba.int64))
def holds(s: Groups, g: int) -> bool:
    """Tell whether group g may stay as it is: empty, or of a size that is allowed."""
    return bool(s.size[g] == 0 or s.counts[K] <= s.size[g] <= s.counts[MOST])
