"""Repair: groups that miss their promises exchange records with others until they keep them; then records settle.

    for each group A that misses its promises, the worst first:
        predict the miss of A for each kind of record that may leave and each that may come
        evaluate the swaps, arrivals and departures that help, with the records listed for A: the nearest of each kind
        of those after which A keeps its promises and the other group misses no more than before: make the cheapest
        if there is none: make the one that lowers the miss of A most for its cost
        until A keeps its promises; if nothing lowers the miss, A stays as it is, for a longer list or the merge

A kind is what the promises distinguish: a value, or neighbouring values if there are many. Predictions only guide the
search; the promises of both groups are measured before a step is made. The cost is the change of the sum of squared
errors. Every step lowers the sum of all misses, so it ends.

`list_nearest` lists the nearest records of each kind from one box tree or a few for each kind. Records of one kind that
tie are one point of a tree: some of them are listed, different ones from place to place, and then the next points. So a
list leads to other values, however many records have the same.

`settle` makes groups cheaper and keeps their promises. For each record i that is to settle:

        of the groups of a few neighbours, drawn at random, B is the one that takes it for the least cost
        if its own group saves more than that: i goes to B, or swaps with one of some members of B, whichever lowers the
        cost most and keeps the promises of both groups; if none does, i stays

To find B costs a few sums, to try its members some more: most records that gain nothing are done after the first. Only
the random stream matters, never a clock. Every step lowers the cost, so it ends.

Cost: kinds² measurements of A and a trial for each helpful pair of a member and a listed record, for each step; to
settle, O((NEIGHBOURS_TRIED + MEMBERS_TRIED) · group size) for a record, O(d) for each trial with means alone.
Ties: the first candidate, the nearest records of the lowest kind first, the first drawn.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kinfold.kernels import box_tree, clustering, groups, promises
from kinfold.kernels import records as mixed
from kinfold.kernels.box_tree import Tree
from kinfold.kernels.clustering import Run
from kinfold.kernels.compiling import Floats, Int, Ints, Real, Rows, entry, lean
from kinfold.kernels.draws import Stream
from kinfold.kernels.groups import (
    Groups,
    admits,
    distance_to_group,
    distance_to_own_group,
    fits,
    get_members,
    join,
    leave,
    pair_distance,
    recount,
    update_miss,
)
from kinfold.kernels.moves import (
    EXAMPLE_SEARCH,
    Curves,
    cost_increase,
    draw_member,
    draw_neighbour,
    is_allowed,
    move_change,
    swap_change,
    swap_records,
)
from kinfold.kernels.promises import Promises, measure_miss
from kinfold.kernels.queries import find_nearest
from kinfold.kernels.records import Mixed, move

MAX_TIED_LISTED = 2  # records listed of those that tie: another group may take one


class KindQuery(NamedTuple):
    """Places, the kind wanted at each, and the indexed records."""

    numbers: Floats  # (places, a)
    codes: Rows  # (places, b)
    kind: Rows  # (places)
    first: Ints  # (kinds + 1) the first tree of each kind
    start: Ints  # (points + 1) where the records of a point start in `member`
    member: Rows


_ROW, _ROWS, _INTS = np.zeros(1, np.int32), np.zeros((1, 1), np.int32), np.zeros(1, np.int64)  # to compile for
_QUERY = KindQuery(np.zeros((1, 1)), np.zeros((1, 0), np.int32), _ROW, _INTS, _INTS, _ROW)


@entry(clustering.example_run(), box_tree.example_tree(), _QUERY, _ROWS)
def list_nearest(run: Run, tree: Tree, sought: KindQuery, listed: Rows) -> None:
    """List for each place the nearest records of its kind, nearest first; -1 if there are no more."""
    query, request = run.query, run.query.request[0]
    request.wanted = listed.shape[1]
    for t in range(sought.kind.size):
        for j in range(sought.numbers.shape[1]):
            query.place.numbers[j] = sought.numbers[t, j]
        for j in range(sought.codes.shape[1]):
            move(run.m.scales, query.place, j, np.int64(sought.codes[t, j]))
        request.count = 0
        for s in range(sought.first[sought.kind[t]], sought.first[sought.kind[t] + 1]):
            find_nearest(tree, run.folded, query, s)
        at = 0
        for u in range(request.count):
            point = query.nearest[u].record
            begin = sought.start[point]
            many = sought.start[point + 1] - begin
            for m in range(min(many, MAX_TIED_LISTED, listed.shape[1] - at)):
                listed[t, at] = sought.member[begin + (MAX_TIED_LISTED * t + m) % many]
                at += 1
        for u in range(at, listed.shape[1]):
            listed[t, u] = -1


MIN_MISS_DECREASE = 1e-12  # a smaller decrease is rounding
NO_RECORD = -1  # in the place of a record: none leaves, or none comes
MAX_SMALL_GROUP = 12  # members of a group of which each may leave
MAX_KINDS_IN_PAIRS = 4  # with more kinds, exchanges in large groups are predicted
LEAVERS_PER_KIND = 2  # of a larger group: those most distant from the others
MIN_GAIN_SHARE = 0.7  # of the best gain: smaller gains are tried only if no larger one is possible

STEP = np.dtype(
    [
        ("leaving", np.int64),  # the record that leaves the group, or NO_RECORD
        ("arriving", np.int64),  # the record that comes, or NO_RECORD
        ("other", np.int64),  # the other group
        ("cost", np.float64),
        ("worth", np.float64),  # decrease of the miss over its cost; infinite if nothing is missed after it
        ("miss", np.float64),  # of the group after the step
        ("miss_other", np.float64),  # of the other group after it
        ("scale", np.float64),  # cost of an average record, below which the cost of a step hardly counts
        ("steps", np.int64),  # steps so far
        ("tried", np.int64),  # steps evaluated so far, times the members of the two groups
        ("leavers", np.int64),  # members that may leave
        ("bar", np.float64),  # exchanges that leave a larger miss are skipped
        ("more", np.float64),  # cost that a record adds to its best home
    ],
    align=True,
)


class RepairState(NamedTuple):
    """The records and their kinds, the promises, the groups, the predicted misses of one group, and the best step."""

    d: Mixed
    p: Promises
    groups: Groups
    kind: Rows  # (n)
    sample: Rows  # (kinds) a record of each kind
    after: Floats  # (kinds + 1, kinds + 1) the miss after one kind leaves and another comes; last: none
    held: Rows  # (kinds + 1) a member of each kind, or NO_RECORD
    leavers: Rows  # (room) members that may leave
    best: Any  # (1) STEP


def make_state(d: Mixed, p: Promises, partition: Groups, kind: Rows, sample: Rows) -> RepairState:
    """Return these groups, ready to be repaired."""
    kinds = len(sample)
    room = np.zeros(MAX_SMALL_GROUP + LEAVERS_PER_KIND * kinds, np.int32)
    after, held = np.full((kinds + 1, kinds + 1), np.inf), np.full(kinds + 1, NO_RECORD, np.int32)
    return RepairState(d, p, partition, kind, sample, after, held, room, np.zeros(1, STEP).view(np.recarray))


_EXAMPLE = make_state(mixed.example_records(), promises.example_promises(), groups.example_groups(), _ROW, _ROW)


@lean
def predict_misses(w: RepairState, a: int, enough: Real) -> None:
    """Predict the miss of group a after each exchange of kinds that its size allows; infinite for those left out.

    In a large group the effects of leaving and coming nearly add up: then each is measured alone. In a small one a miss
    above the present one is not completed, and once a kind that leaves has a miss of at most `enough`, no other kind
    is tried for it.
    """
    s, kinds, missed = w.groups, w.sample.size, w.groups.missed[a]
    for u in range(kinds + 1):
        w.held[u] = NO_RECORD
    for i in get_members(s, a):
        w.held[w.kind[i]] = i
    additive = s.size[a] > MAX_SMALL_GROUP and kinds > MAX_KINDS_IN_PAIRS
    shrinks, grows, limit = fits(s, a, -1), fits(s, a, 1), np.inf if additive else missed
    for u in range(kinds, -1, -1):  # first those where no record leaves, or none comes
        done = False
        for v in range(kinds, -1, -1):
            w.after[u, v] = np.inf
            if u == v or (u < kinds and w.held[u] == NO_RECORD) or done:
                continue
            if not additive and ((v == kinds and not shrinks) or (u == kinds and not grows)):
                continue
            if additive and u < kinds and v < kinds:
                w.after[u, v] = max(0.0, w.after[u, kinds] + w.after[kinds, v] - missed)
            else:
                w.after[u, v] = measure_miss(
                    w.p, get_members(s, a), w.held[u], NO_RECORD if v == kinds else w.sample[v], limit
                )
                done = not additive and w.after[u, v] <= enough
    for u in range(kinds):
        if not shrinks:
            w.after[u, kinds] = np.inf
        if not grows:
            w.after[kinds, u] = np.inf


@lean
def helps(w: RepairState, u: int) -> bool:
    """Whether some exchange in which a record of kind u leaves helps enough."""
    for v in range(w.sample.size + 1):  # noqa: SIM110  kernels have no generators
        if w.after[u, v] <= w.best[0].bar:
            return True
    return False


@lean
def choose_leavers(w: RepairState, a: int) -> None:
    """List the members that may leave: all of a small group, else the most distant of each kind that helps."""
    s, now = w.groups, w.best[0]
    now.leavers = 0
    if s.size[a] <= MAX_SMALL_GROUP:
        for i in get_members(s, a):
            w.leavers[now.leavers] = i
            now.leavers += 1
        return
    for u in range(w.sample.size):
        if w.held[u] == NO_RECORD or not helps(w, u):
            continue
        least = np.inf
        for _ in range(LEAVERS_PER_KIND):
            at, most = NO_RECORD, -1.0
            for i in get_members(s, a):
                apart = distance_to_own_group(w.d, s, i) if w.kind[i] == u else -1.0
                if most < apart < least:
                    at, most = i, apart
            if at != NO_RECORD:
                w.leavers[now.leavers] = at
                now.leavers += 1
                least = most


@lean
def evaluate_step(w: RepairState, a: int, b: int, leaving: int, arriving: int) -> None:
    """Keep a step if it is the best so far: `leaving` goes from a to b, `arriving` from b to a."""
    s, best = w.groups, w.best[0]
    best.tried += s.size[a] + s.size[b]
    repaired = best.worth == np.inf
    if leaving != NO_RECORD and arriving != NO_RECORD:
        cost = swap_change(w.d, s, leaving, arriving, best.cost if repaired else np.inf)
    else:
        cost = move_change(w.d, s, max(leaving, arriving), a if leaving == NO_RECORD else b)
    if repaired and cost >= best.cost:
        return
    misses = (0.0, 0.0)
    for t in range(2):  # a loop, so that the promises are compiled once
        goes, comes = (leaving, arriving) if t == 0 else (arriving, leaving)
        limit = s.missed[b] if t == 1 else 0.0 if repaired else s.missed[a]
        here = measure_miss(w.p, get_members(s, a if t == 0 else b), goes, comes, limit)
        misses = (here, misses[1]) if t == 0 else (misses[0], here)
        if t == 0:
            if here >= s.missed[a] - MIN_MISS_DECREASE or (repaired and here > 0.0):
                return
            worth = np.inf if here == 0.0 else (s.missed[a] - here) / (best.scale + max(cost, 0.0))
            if worth < best.worth or (worth == best.worth and cost >= best.cost):
                return
        elif here > s.missed[b]:
            return
    best.leaving, best.arriving, best.other = leaving, arriving, b
    best.cost, best.worth, best.miss, best.miss_other = cost, worth, misses[0], misses[1]


@lean
def evaluate_record(w: RepairState, a: int, l: int) -> None:
    """Evaluate the helpful steps between group a and record l: swaps, l coming, and members going to its group."""
    s, kinds, many = w.groups, w.sample.size, w.best[0].leavers
    b = s.label[l]
    comes, goes = fits(s, b, -1), fits(s, b, 1)
    for t in range(2 * many + 1):  # one loop, so that the evaluation is compiled once
        if (t == many and not comes) or (t > many and not goes):
            continue
        leaving = NO_RECORD if t == many else w.leavers[t if t < many else t - many - 1]
        u, v = kinds if t == many else w.kind[leaving], w.kind[l] if t <= many else kinds
        if w.after[u, v] <= w.best[0].bar:
            evaluate_step(w, a, b, leaving, l if t <= many else NO_RECORD)


@lean
def evaluate_listed(w: RepairState, a: int, listed: Rows) -> None:
    """Evaluate the records listed for group a whose kinds help."""
    choose_leavers(w, a)
    for v in range(listed.shape[0]):
        for t in range(listed.shape[1]):
            if listed[v, t] == NO_RECORD:
                break
            if w.groups.label[listed[v, t]] != a:
                evaluate_record(w, a, listed[v, t])


@lean
def make_step(w: RepairState, a: int) -> None:
    """Make the best step."""
    s, best = w.groups, w.best[0]
    for t in range(2):  # both leave before either joins
        i = best.leaving if t == 0 else best.arriving
        if i != NO_RECORD:
            leave(w.d, w.p, s, i)
    for t in range(2):
        i = best.arriving if t == 0 else best.leaving
        if i != NO_RECORD:
            join(w.d, w.p, s, i, a if t == 0 else best.other)
    s.missed[a], s.missed[best.other] = best.miss, best.miss_other
    best.steps += 1


@lean
def find_home(w: RepairState, i: int, listed: Rows) -> int:
    """Return the other group of a listed record that takes record i for the least cost, or NO_RECORD."""
    s, best = w.groups, w.best[0]
    home = NO_RECORD
    best.more = np.inf
    for v in range(listed.shape[0]):
        for t in range(listed.shape[1]):
            if listed[v, t] == NO_RECORD:
                break
            b = s.label[listed[v, t]]
            if b == s.label[i] or b == home or not fits(s, b, 1):
                continue
            more = cost_increase(s, b, distance_to_group(w.d, s, i, b), 1)
            if more < best.more and admits(w.p, s, b, NO_RECORD, i):
                home, best.more = b, more
    return home


@lean
def cost_of_dissolving(w: RepairState, a: int, listed: Rows) -> float:
    """Return about what it costs to send each member of group a to its best home; infinite if one has none."""
    s = w.groups
    total = -s.pairs[a] / s.size[a]
    for i in get_members(s, a):
        if find_home(w, i, listed) == NO_RECORD:
            return np.inf
        total += w.best[0].more
    return total


@lean
def move_record(w: RepairState, i: int, g: int) -> None:
    """Send record i to group g."""
    s, before = w.groups, w.groups.label[i]
    leave(w.d, w.p, s, i)
    join(w.d, w.p, s, i, g)
    for t in range(2):
        update_miss(w.p, s, g if t == 0 else before)


@lean
def dissolve(w: RepairState, a: int, listed: Rows) -> bool:
    """Send each member of group a to its best home; return whether that was possible, else undo it."""
    s, many = w.groups, w.groups.size[a]
    for t in range(many):
        i = s.members[s.start[a]]
        w.leavers[t] = i
        home = find_home(w, i, listed)
        if home != NO_RECORD:
            move_record(w, i, home)
            continue
        for u in range(t):
            move_record(w, w.leavers[u], a)
        return False
    w.best[0].steps += 1
    return True


@lean
def repair(w: RepairState, a: int, listed: Rows) -> None:
    """Repair group a with the records listed for it, by kind."""
    s, best = w.groups, w.best[0]
    for _ in range(2 * s.size[a] + 8):
        if s.missed[a] == 0.0:
            return
        best.cost, best.worth = np.inf, 0.0
        predict_misses(w, a, -np.inf)
        for attempt in range(2):
            least = np.inf
            for u in range(w.sample.size + 1):
                for v in range(w.sample.size + 1):
                    least = min(least, w.after[u, v])
            share = MIN_GAIN_SHARE if attempt == 0 else 0.0
            best.bar = s.missed[a] - max(MIN_MISS_DECREASE, share * (s.missed[a] - least))
            evaluate_listed(w, a, listed)
            if best.worth > 0.0:
                break
        # about what it costs to repair the group by steps like the best one
        expected = np.inf if best.worth == 0.0 else best.cost * s.missed[a] / (s.missed[a] - best.miss)
        if s.size[a] <= MAX_SMALL_GROUP and cost_of_dissolving(w, a, listed) < expected and dissolve(w, a, listed):
            return
        if best.worth == 0.0:
            return
        make_step(w, a)


@lean
def mark_spare(w: RepairState, g: int, spare: Rows) -> None:
    """Mark the members that group g can spare: without them, or with a suitable newcomer, it misses no more."""
    s = w.groups
    predict_misses(w, g, s.missed[g])
    for i in get_members(s, g):
        spare[i] = 0
        for v in range(w.sample.size + 1):
            if w.after[w.kind[i], v] <= s.missed[g]:
                spare[i] = 1


@entry(_EXAMPLE, np.zeros(1, np.int64), np.zeros((1, 1, 1), np.int32), _ROW)
def repair_all(w: RepairState, order: Ints, listed: Rows, spare: Rows) -> float:
    """Repair these groups with the records listed for each; without lists, mark the members they can spare.

    Without groups, compute the costs and misses of all, and return the cost. One entry for all three, so that the
    promises are compiled once.
    """
    if order.size == 0:
        return recount(w.d, w.p, w.groups)
    for t in range(order.size):
        if listed.shape[0] > 0:
            repair(w, order[t], listed[t])
        elif w.groups.size[order[t]] > 0:
            mark_spare(w, order[t], spare)
    return 0.0


# By what sweeps reach in a second on Adult with 2, 4 and 8 attributes: 4, 6, 12 looks, 4, 8 members, reaches of 2, 3, 6
NEIGHBOURS_TRIED = 4  # neighbours whose groups are looked at
MEMBERS_TRIED = 8  # of a group that a record may change places with
SETTLING_REACH = 3  # the farthest neighbour is 2^3 places away along a curve
SETTLING_ODDS = 16  # once in so many times it is any record
MIN_SETTLING_GAIN = 1e-9  # a gain below this share of what a record costs on average is rounding


@lean
def find_nearby_home(d: Mixed, s: Groups, around: Curves, stream: Stream, i: Int) -> Int:
    """Return the group of some neighbour that takes record i for the least cost, or -1."""
    home, least = np.int64(-1), np.inf
    for _ in range(NEIGHBOURS_TRIED):
        b = np.int64(s.label[draw_neighbour(around, stream, i, SETTLING_REACH, SETTLING_ODDS)])
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
        home = find_nearby_home(d, s, around, stream, i)
        if home >= 0:
            cost += settle_one(d, p, s, stream, i, home, MIN_SETTLING_GAIN * cost / s.label.size)
    return cost
