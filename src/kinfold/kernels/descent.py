"""Descent: local search until no single move lowers the cost any more, and shakes to get out of where it ends.

    a queue holds the records that may have a move; while it is not empty:
        take the first, make its best move, and queue every member of the groups that changed

    a step of the search takes a few neighbouring groups apart, builds one group more, fewer or as many from their
    records (a seed, then always the record nearest to the group), lets the descent run from these records, and
    keeps the result if the cost has not grown by more than a random threshold that shrinks from step to step

The threshold is a share of what a record of these groups costs, not of an average record: where a few outliers make
up most of the cost, the many others would otherwise never come to rest. Chains take most of the time of a descent, so
they are followed only from where relocations and swaps have led near the threshold.

Only the number of the step and the random stream decide, never a clock.   Ties: the first found.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from kinfold.kernels.draws import STREAM, below, draw
from kinfold.kernels.groups import (
    CAME_FROM,
    CHANGED,
    CHOSEN,
    DEEP,
    GROUPS,
    HEAD,
    MOST,
    MOVE,
    POOL,
    QUEUE,
    QUEUED,
    SEEN,
    STEP,
    TRAIL,
    WAITS,
    Groups,
    K,
    cost,
    holds,
    join,
    leave,
    recount,
    toward,
)
from kinfold.kernels.moves import best_move, carry_out, grown, nearby, note, take_back
from kinfold.kernels.options import inner, kernel

ROUNDING = 1e-12  # a gain below this share of the cost is not worth a copy of the labels
NEARLY = 0.3  # of what a record costs, for each group: how far above the threshold chains are still worth a try
PATIENCE = 100  # looks for each record queued at first; a descent ends long before

_int = numba.int64
_float = numba.float64


@inner(numba.void(GROUPS, _int))
def enqueue(s: Groups, g: int) -> None:
    """Put the members of group g, but those who wait already, at the end of the queue."""
    n = s.label.size
    for t in range(s.size[g]):
        i = s.members[g, t]
        if s.lists[WAITS, i] == 0:
            s.lists[WAITS, i] = 1
            s.lists[QUEUE, (s.counts[HEAD] + s.counts[QUEUED]) % n] = i
            s.counts[QUEUED] += 1


@inner(_float(GROUPS))
def descend(s: Groups) -> float:
    """Work the queue off and return the change of cost."""
    total = 0.0
    touched = np.empty(4, np.int64)
    looks = PATIENCE * (s.counts[QUEUED] + 10)
    while s.counts[QUEUED] > 0:
        looks -= 1
        i = s.lists[QUEUE, s.counts[HEAD]]
        s.counts[HEAD] = (s.counts[HEAD] + 1) % s.label.size
        s.counts[QUEUED] -= 1
        s.lists[WAITS, i] = 0
        change = best_move(s, i)
        if s.counts[MOVE] == 0 or looks < 0:
            continue
        total += change
        touched[0] = s.label[i]
        for t in range(s.counts[MOVE]):
            touched[t + 1] = s.counts[MOVE + 2 + 2 * t]
        carry_out(s)
        for t in range(s.counts[MOVE] + 1):
            enqueue(s, touched[t])
    return total


@kernel(numba.void(GROUPS))
def descend_from_all(s: Groups) -> None:
    """Descend with every record in the queue, until no record has a move."""
    for g in range(s.size.size):
        enqueue(s, g)
    descend(s)


@inner(_int(GROUPS, STREAM, _int))
def choose(s: Groups, stream: np.ndarray, reach: int) -> int:
    """Choose the group of a random record and up to `reach` groups next to it; return how many."""
    i = below(stream, s.label.size)
    s.lists[CHOSEN, 0] = s.label[i]
    found = nearby(s, i, -1, 1 + below(stream, reach), SEEN)
    for u in range(found):
        s.lists[CHOSEN, u + 1] = s.lists[SEEN, u]
    return found + 1


@inner(_int(GROUPS, _int))
def take_apart(s: Groups, groups: int) -> int:
    """Take the records of the chosen groups into the pool; return how many there are."""
    left = 0
    for u in range(groups):
        g = s.lists[CHOSEN, u]
        for t in range(s.size[g]):
            s.lists[POOL, left] = s.members[g, t]
            left += 1
    for t in range(left):
        note(s, s.lists[POOL, t])
        leave(s, s.lists[POOL, t])
    return left


@inner(_int(GROUPS, STREAM, _int, _int))
def resize(s: Groups, stream: np.ndarray, groups: int, left: int) -> int:
    """Decide how many groups the pool becomes, one more, one less or as many, and choose rows for them."""
    fewest, most = (left + s.counts[MOST] - 1) // s.counts[MOST], left // s.counts[K]
    wanted = int(min(max(groups + below(stream, 3) - 1, fewest), most))
    g = 0
    while groups < wanted:
        taken = s.size[g] > 0
        for u in range(groups):
            taken = taken or s.lists[CHOSEN, u] == g
        if not taken:
            s.lists[CHOSEN, groups] = g
            groups += 1
        g += 1
    return wanted


@inner(_int(GROUPS, _int, _int))
def draw_from_pool(s: Groups, at: int, left: int) -> int:
    """Take the record at this place out of the pool."""
    i = int(s.lists[POOL, at])
    s.lists[POOL, at] = s.lists[POOL, left - 1]
    return i


@inner(_int(GROUPS, _int, _int))
def farthest_in_pool(s: Groups, i: int, left: int) -> int:
    """Return the place in the pool of the record farthest from i."""
    at = 0
    for t in range(1, left):
        if s.gaps[i, s.lists[POOL, t]] > s.gaps[i, s.lists[POOL, at]]:
            at = t
    return at


@inner(_int(GROUPS, _int, _int))
def nearest_in_pool(s: Groups, i: int, left: int) -> int:
    """Return the place in the pool of the record nearest to the group that i has just joined.

    Records in the pool have no group, so `own` is free to hold how far they are from the group in the making.
    """
    at = 0
    for t in range(left):
        other = s.lists[POOL, t]
        s.own[other] += s.gaps[i, other]
        if s.own[other] < s.own[s.lists[POOL, at]]:
            at = t
    return at


@inner(_int(GROUPS, _int, _int, _int))
def grow(s: Groups, g: int, seed: int, left: int) -> int:
    """Make group g of a seed and k - 1 records of the pool, always the nearest; return how many are left there."""
    for t in range(left):
        s.own[s.lists[POOL, t]] = 0.0
    i = seed
    join(s, i, g)
    for _ in range(s.counts[K] - 1):
        i = draw_from_pool(s, nearest_in_pool(s, i, left), left)
        left -= 1
        join(s, i, g)
    return left


@inner(numba.void(GROUPS, STREAM, _int, _int))
def rebuild(s: Groups, stream: np.ndarray, groups: int, left: int) -> None:
    """Make groups of k around random or far seeds, then put each record left where it costs least."""
    spread = below(stream, 2) == 1
    seed = -1
    for u in range(groups):
        at = farthest_in_pool(s, seed, left) if spread and seed >= 0 else below(stream, left)
        seed = draw_from_pool(s, at, left)
        left = grow(s, s.lists[CHOSEN, u], seed, left - 1)
    while left > 0:
        i = draw_from_pool(s, left - 1, left)
        left -= 1
        at, least = -1, math.inf
        for u in range(groups):
            g = s.lists[CHOSEN, u]
            more = grown(s, g, toward(s, i, g), 1)
            if s.size[g] < s.counts[MOST] and more < least:
                at, least = g, more
        join(s, i, at)


@inner(_float(GROUPS, _int))
def cost_of_chosen(s: Groups, groups: int) -> float:
    """Return what the chosen groups cost together."""
    total = 0.0
    for u in range(groups):
        total += s.pairs[s.lists[CHOSEN, u]] / s.size[s.lists[CHOSEN, u]]
    return total


@inner(numba.boolean(GROUPS))
def kept(s: Groups) -> bool:
    """Tell whether every group that this step has changed may stay as it is."""
    for t in range(s.counts[TRAIL]):
        if not (holds(s, s.label[s.lists[CHANGED, t]]) and holds(s, s.lists[CAME_FROM, t])):
            return False
    return True


@inner(_float(GROUPS, _int, _float))
def settle(s: Groups, groups: int, hopeless: float) -> float:
    """Descend from the chosen groups, without chains first, with them unless the change is hopeless; return it."""
    deep = s.counts[DEEP]
    s.counts[DEEP] = 0
    for u in range(groups):
        enqueue(s, s.lists[CHOSEN, u])
    change = descend(s)
    s.counts[DEEP] = deep
    if deep == 0 or change > hopeless:
        return change
    for t in range(s.counts[TRAIL]):
        enqueue(s, s.label[s.lists[CHANGED, t]])
    return change + descend(s)


@kernel(_float(GROUPS, STREAM, _int, _float))
def shake(s: Groups, stream: np.ndarray, reach: int, heat: float) -> float:
    """Take one step; return the change of cost, 0 if it was taken back."""
    s.counts[TRAIL] = 0
    groups = choose(s, stream, reach)
    before = cost_of_chosen(s, groups)
    left = take_apart(s, groups)
    threshold = -heat * before / left * math.log(draw(stream))
    nearly = threshold + NEARLY * before / left * groups
    groups = resize(s, stream, groups, left)
    rebuild(s, stream, groups, left)
    change = cost_of_chosen(s, groups) - before
    change += settle(s, groups, nearly - change)
    if change > threshold or not kept(s):
        take_back(s)
        return 0.0
    return change


@inner(numba.void(GROUPS, numba.int32[::1]))
def copy_labels(s: Groups, best: np.ndarray) -> None:
    """Copy the labels; a loop compiles in a tenth of the time that a slice takes."""
    for i in range(best.size):
        best[i] = s.label[i]


@kernel(_float(GROUPS, STREAM, _int, _float[::1], numba.int32[::1]))
def search(s: Groups, stream: np.ndarray, reach: int, heats: np.ndarray, best: np.ndarray) -> float:
    """Take one step for each heat; leave in `best` the labels of the lowest cost met, and return that cost."""
    recount(s)
    now = cost(s)
    lowest = now
    copy_labels(s, best)
    for t in range(heats.size):
        s.counts[STEP] += 1
        now += shake(s, stream, reach, heats[t])
        if now < lowest * (1.0 - ROUNDING):
            lowest = now
            copy_labels(s, best)
    return lowest
