"""Local search: descent until no move lowers the cost, and perturbations to leave the local optimum.

    a queue holds the records that may have a move; while it is not empty:
        take the first, make its best move, and queue every member of the groups that changed

    a step of the search takes a few neighbouring groups apart, builds one group more, one fewer or as many from their
    records, descends from these records, and keeps the result if every promise is kept and the cost has not grown by
    more than a random threshold that shrinks from step to step

    built by nearness   a seed, then always the record nearest to the group
    built by strata     with promises, every other time: the records in the order of the first column that the promises
                        read; of every few consecutive ones each group gets one, nearest to its seed first (the idea of
                        t-closeness-first: each group is spread like all of them together)

The threshold is a share of the cost of a record of these groups, not of an average record: otherwise, if a few outliers
make most of the cost, the many others would never settle. Chains take most of the time of a descent, so they are tried
only after relocations and swaps have come near the threshold.

`sweep` is for blocks with too many records for a table of all distances. `promised_search` searches under promises.

Only the number of the step and the random stream matter, never a clock.   Ties: the first candidate.
"""

from __future__ import annotations

import math

import numpy as np

from kinfold.kernels.compiling import Floats, Rows, entry, lean
from kinfold.kernels.draws import Stream, below, draw, make_stream
from kinfold.kernels.groups import (
    CHOSEN,
    RECORD,
    SECOND,
    Asked,
    Groups,
    Kept,
    distance_to_group,
    example_groups,
    holds,
    join,
    leave,
    pair_distance,
    recount,
    update_miss,
)
from kinfold.kernels.moves import best_move, cost_increase, list_nearby_groups, make_move, record_change, undo_step
from kinfold.kernels.records import Mixed, example_records

MIN_COPY_GAIN = 1e-12  # share of the cost: a smaller gain is not worth a copy of the labels
CHAIN_MARGIN = 0.3  # of a record's cost, for each group: chains are tried up to this much above the threshold
LOOKS_PER_RECORD = 100  # for each record queued at first; a descent ends long before


@lean
def enqueue(s: Groups, g: int) -> None:
    """Put the members of group g that are not queued at the end of the queue."""
    n, now = s.label.size, s.state[0]
    for t in range(s.start[g], s.start[g] + s.size[g]):
        i = s.members[t]
        if s.rows[i].waits == 0:
            s.rows[i].waits = 1
            s.rows[(now.head + now.queued) % n].queue = i
            now.queued += 1


@lean
def process_queue(d: Asked, p: Kept, s: Groups, looks: int) -> float:
    """Process the queue, with at most `looks` searches for a move, and return the change of cost."""
    total, now = 0.0, s.state[0]
    while now.queued > 0:
        i = s.rows[now.head].queue
        now.head = (now.head + 1) % s.label.size
        now.queued -= 1
        s.rows[i].waits = 0
        looks -= 1
        if looks < 0:
            continue
        change = best_move(d, p, s, i)
        if now.links == 0:
            continue
        total += change
        before = s.label[i]
        make_move(d, p, s)
        enqueue(s, before)
        for t in range(now.links):
            enqueue(s, s.move[t].group)
    return total


@lean
def choose(s: Groups, stream: Stream, reach: int) -> int:
    """Choose the group of a random record and up to `reach` groups next to it; return how many."""
    i = below(stream, s.label.size)
    s.lists[CHOSEN, 0] = s.label[i]
    count = list_nearby_groups(s, i, -1, 1 + below(stream, reach), RECORD)
    for u in range(count):
        s.lists[CHOSEN, u + 1] = s.lists[RECORD, u]
    return count + 1


@lean
def take_apart(d: Asked, p: Kept, s: Groups, groups: int) -> int:
    """Move the records of the chosen groups into the pool; return their number."""
    left = 0
    for u in range(groups):
        g = s.lists[CHOSEN, u]
        for t in range(s.start[g], s.start[g] + s.size[g]):
            s.rows[left].pool = s.members[t]
            left += 1
    for t in range(left):
        record_change(s, s.rows[t].pool)
        leave(d, p, s, s.rows[t].pool)
    return left


@lean
def resize(s: Groups, stream: Stream, groups: int, left: int) -> int:
    """Decide how many groups the pool becomes, one more, one fewer or as many, and choose empty ones for them."""
    most = s.start[1] - s.start[0]  # every group has the same room
    wanted = min(max(groups + below(stream, 3) - 1, (left + most - 1) // most), left // s.state[0].k)
    for g in range(s.size.size):
        if groups >= wanted:
            break
        used = s.size[g] > 0
        for u in range(groups):
            used = used or s.lists[CHOSEN, u] == g
        if not used:
            s.lists[CHOSEN, groups] = g
            groups += 1
    return min(groups, wanted)


@lean
def draw_from_pool(s: Groups, at: int, left: int) -> int:
    """Take the record at this place from the pool."""
    i = s.rows[at].pool
    s.rows[at].pool = s.rows[left - 1].pool
    return i


@lean
def farthest_in_pool(d: Asked, s: Groups, i: int, left: int) -> int:
    """Return the place in the pool of the record farthest from i."""
    at = 0
    for t in range(1, left):
        if pair_distance(d, s, i, s.rows[t].pool) > pair_distance(d, s, i, s.rows[at].pool):
            at = t
    return at


@lean
def nearest_in_pool(d: Asked, s: Groups, i: int, left: int) -> int:
    """Return the place in the pool of the record nearest to the group that i has just joined.

    Records in the pool have no group, so `own` holds their distance from the group that is being built.
    """
    at = 0
    for t in range(left):
        other = s.rows[t].pool
        s.own[other] += pair_distance(d, s, i, other)
        if s.own[other] < s.own[s.rows[at].pool]:
            at = t
    return at


@lean
def grow(d: Asked, p: Kept, s: Groups, g: int, seed: int, left: int) -> int:
    """Make group g of a seed and k - 1 records of the pool, always the nearest; return how many are left there."""
    for t in range(left):
        s.own[s.rows[t].pool] = 0.0
    i = seed
    join(d, p, s, i, g)
    for _ in range(s.state[0].k - 1):
        i = draw_from_pool(s, nearest_in_pool(d, s, i, left), left)
        left -= 1
        join(d, p, s, i, g)
    return left


@lean
def rebuild(d: Asked, p: Kept, s: Groups, stream: Stream, groups: int, left: int) -> None:
    """Make groups of k around random or distant seeds, then put each remaining record where it costs least."""
    spread = below(stream, 2) == 1
    seed = -1
    for u in range(groups):
        at = farthest_in_pool(d, s, seed, left) if spread and seed >= 0 else below(stream, left)
        seed = draw_from_pool(s, at, left)
        left = grow(d, p, s, s.lists[CHOSEN, u], seed, left - 1)
    while left > 0:
        i = draw_from_pool(s, left - 1, left)
        left -= 1
        at, least = -1, math.inf
        for u in range(groups):
            g = s.lists[CHOSEN, u]
            more = cost_increase(s, g, distance_to_group(d, s, i, g), 1)
            if s.size[g] < s.start[g + 1] - s.start[g] and more < least:
                at, least = g, more
        join(d, p, s, i, at)


@lean
def sort_pool(p: Kept, s: Groups, left: int) -> None:
    """Sort the pool, a few dozen records in sorted runs, by the first column that the promises read."""
    for t in range(1, left):
        i, at = s.rows[t].pool, t
        while at > 0 and p.codes[0, s.rows[at - 1].pool] > p.codes[0, i]:
            s.rows[at].pool = s.rows[at - 1].pool
            at -= 1
        s.rows[at].pool = i


@lean
def deal(d: Asked, p: Kept, s: Groups, first: int, many: int, groups: int) -> None:
    """Give the records of one stratum to different groups, the nearest pair of a record and a seed first."""
    for u in range(groups):
        s.lists[RECORD, u] = 1  # this group has not got one yet
    for _ in range(many):
        at, to, least = -1, -1, math.inf
        for t in range(first, first + many):
            if s.label[s.rows[t].pool] >= 0:
                continue
            for u in range(groups):
                there = pair_distance(d, s, s.rows[t].pool, s.lists[SECOND, u])
                if s.lists[RECORD, u] == 1 and there < least:
                    at, to, least = t, u, there
        s.lists[RECORD, to] = 0
        join(d, p, s, s.rows[at].pool, s.lists[CHOSEN, to])


@lean
def rebuild_by_strata(d: Asked, p: Kept, s: Groups, stream: Stream, groups: int, left: int) -> None:
    """Make groups around random or distant seeds, each with one record of every stratum of the promises."""
    spread = below(stream, 2) == 1
    for u in range(groups):
        distant = spread and u > 0
        s.lists[SECOND, u] = s.rows[
            farthest_in_pool(d, s, s.lists[SECOND, u - 1], left) if distant else below(stream, left)
        ].pool
    sort_pool(p, s, left)
    for first in range(0, left, groups):
        deal(d, p, s, first, min(groups, left - first), groups)


@lean
def remake(d: Asked, p: Kept, s: Groups, stream: Stream, groups: int, left: int) -> bool:
    """Rebuild the chosen groups from the pool; return whether they keep their promises."""
    if p is None:
        rebuild(d, p, s, stream, groups, left)
        return True
    if below(stream, 2) == 0:
        rebuild(d, p, s, stream, groups, left)
    else:
        rebuild_by_strata(d, p, s, stream, groups, left)
    kept = True
    for u in range(groups):
        update_miss(p, s, s.lists[CHOSEN, u])
        kept = kept and s.missed[s.lists[CHOSEN, u]] == 0.0
    return kept


@lean
def cost_of_chosen(s: Groups, groups: int) -> float:
    """Return the cost of the chosen groups."""
    total = 0.0
    for u in range(groups):
        total += s.pairs[s.lists[CHOSEN, u]] / s.size[s.lists[CHOSEN, u]]
    return total


@lean
def hold_after(s: Groups) -> bool:
    """Whether every group that this step has changed may stay as it is."""
    for t in range(s.state[0].changed):
        if not (holds(s, s.label[s.rows[t].changed]) and holds(s, s.rows[t].came_from)):
            return False
    return True


@lean
def settle(d: Asked, p: Kept, s: Groups, groups: int, hopeless: float) -> float:
    """Descend from the chosen groups, first without chains, then with them unless the change is hopeless; return it."""
    now, change = s.state[0], 0.0
    deep = now.deep
    for chained in range(2):  # a loop, so that the descent is compiled once
        now.deep = deep if chained else 0
        for u in range(0 if chained else groups):
            enqueue(s, s.lists[CHOSEN, u])
        for t in range(now.changed if chained else 0):
            enqueue(s, s.label[s.rows[t].changed])
        change += process_queue(d, p, s, LOOKS_PER_RECORD * (now.queued + 10))
        if deep == 0 or change > hopeless:
            break
    now.deep = deep
    return change


@lean
def shake(d: Asked, p: Kept, s: Groups, stream: Stream, temperature: float) -> float:
    """Take one step; return the change of cost, 0 if it was undone."""
    s.state[0].step += 1
    s.state[0].changed = 0
    groups = choose(s, stream, s.state[0].reach)
    before = cost_of_chosen(s, groups)
    left = take_apart(d, p, s, groups)
    threshold = -temperature * before / left * math.log(draw(stream))
    nearly = threshold + CHAIN_MARGIN * before / left * groups
    groups = resize(s, stream, groups, left)
    if not remake(d, p, s, stream, groups, left):
        undo_step(d, p, s)
        return 0.0
    change = cost_of_chosen(s, groups) - before
    change += settle(d, p, s, groups, nearly - change)
    if change > threshold or not hold_after(s):
        undo_step(d, p, s)
        return 0.0
    return change


@lean
def copy_labels(s: Groups, best: Rows) -> None:
    """Copy the labels; a loop compiles in a tenth of the time of a slice."""
    for i in range(best.size):
        best[i] = s.label[i]


@lean
def descend_from_all(d: Asked, p: Kept, s: Groups, looks: int) -> float:
    """Descend with every record queued, at most `looks` searches for each; return the change of cost."""
    recount(d, None, s)
    for g in range(s.size.size):
        enqueue(s, g)
    return process_queue(d, p, s, looks * s.label.size)


@lean
def take_steps(d: Asked, p: Kept, s: Groups, stream: Stream, temperatures: Floats, best: Rows) -> float:
    """Take a step at each temperature; write the labels of the lowest cost to `best`, and return that cost.

    Every group keeps its promises at first, and so after every step: they are not measured again.
    """
    now = recount(d, None, s)
    lowest = now
    copy_labels(s, best)
    for t in range(temperatures.size):
        now += shake(d, p, s, stream, temperatures[t])
        if now < lowest * (1.0 - MIN_COPY_GAIN):
            lowest = now
            copy_labels(s, best)
    return lowest


@entry(example_groups(), 1)
def descend(s: Groups, looks: int) -> float:
    """Descend from every record, at most `looks` searches for each; return the change of cost."""
    return descend_from_all(None, None, s, looks)


@entry(example_groups(), make_stream(0), np.zeros(1), np.zeros(1, np.int32))
def search(s: Groups, stream: Stream, temperatures: Floats, best: Rows) -> float:
    """Take a step at each temperature; write the labels of the lowest cost to `best`, and return that cost."""
    return take_steps(None, None, s, stream, temperatures, best)


@entry(example_records(), example_groups(), 1)
def sweep(d: Mixed, s: Groups, looks: int) -> float:
    """Descend from every record by the means of the groups, without a table of distances; return the change of cost."""
    return descend_from_all(d, None, s, looks)
