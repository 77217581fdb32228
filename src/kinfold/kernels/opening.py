"""Opening and closing classes of records that share all but a pattern of empty cells, so that fewer cells are empty.

    open    a group of records that are alike under a pattern becomes a class: those that would lose less come, from
            classes that keep k without them or that come as a whole; where they are fewer than k, others that lose
            nothing or little by it are asked, one by one or whole classes; it is done if less is lost in all
    close   the records of a class go to the open classes that cost each of them least, if less is lost in all
    join    a record goes to an open class in which it loses less, if its own keeps k without it

A sweep does all three for every group, the cheapest patterns first. Only k is asked of a class here. A record here may
stand for many that are equal and stay together: `stands` says for how many, and sizes count them all.

Cost: O(patterns · records) a sweep.   Ties: the first pattern, the first record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kinfold.kernels.compiling import entry, inner

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[np.int32]
    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

ROUNDING = 1e-9
_KEYS, _INTS = np.zeros((1, 1), np.int64), np.zeros(1, np.int64)


class PatternGroups(NamedTuple):
    """Records by pattern: the groups that are alike under each, what a cell pattern costs, and who is where."""

    group: Rows  # (patterns, n) the group of each record; groups of all patterns are numbered together
    start: Ints  # (groups + 1) where the members of each group start
    member: Rows  # (patterns · n)
    pattern: Rows  # (groups)
    price: Floats  # (patterns, kinds) what a record of each kind loses; kinds differ in what is missing already
    kind: Rows  # (n)
    stands: Rows  # (n) for how many each record stands
    at: Rows  # (n) the group that is the class of each record
    size: Rows  # (groups) of the class, 0 where the group is none
    seen: Rows  # (groups) room: members of a group by the class that they are in
    taken: Rows  # (groups) room
    come: Rows  # (n) room: those who come, as many as are counted
    comes: Rows  # (n) room: 1 for those who come


def example() -> PatternGroups:
    """Return the smallest value, to compile for."""
    rows, ints = np.zeros(1, np.int32), np.zeros(1, np.int64)
    return PatternGroups(np.zeros((1, 1), np.int32), ints, rows, rows, np.zeros((1, 1)), *(rows,) * 8)


@inner
def _number(keys: NDArray[np.int64], whole: Ints, hidden: Ints, groups: int, room: tuple[Ints, Ints, Ints]) -> int:
    """Number the rows that are alike but for the hidden columns, from `groups` on, and return the next number.

    The number of each row is written to the first array of the room. The two others are a table of seats: the number
    that sits on each, and its key. Numbers only grow, so seats need not be cleared before the next pattern.
    """
    into, seated, held = room
    begun, mask = groups, seated.size - 1
    for row in range(whole.size):
        key = whole[row]
        for place in range(hidden.size):
            key ^= keys[row, hidden[place]]
        seat = (key ^ (key >> 32)) & mask
        while seated[seat] >= begun and held[seat] != key:
            seat = (seat + 1) & mask
        if seated[seat] < begun:
            seated[seat], held[seat] = groups, key
            groups += 1
        into[row] = seated[seat]
    return groups


@inner
def _room(rows: int) -> tuple[Ints, Ints, Ints]:
    """Return room for the numbers of so many rows."""
    size = 2
    while size < 2 * rows:
        size *= 2
    return np.zeros(rows, np.int64), np.full(size, -1, np.int64), np.zeros(size, np.int64)


@inner
def _whole(keys: NDArray[np.int64]) -> Ints:
    """Return the key of each row with nothing hidden."""
    whole = np.zeros(keys.shape[0], np.int64)
    for row in range(keys.shape[0]):
        for a in range(keys.shape[1]):
            whole[row] ^= keys[row, a]
    return whole


@entry(_KEYS, _INTS, _INTS, np.zeros((1, 1), np.int32), _INTS)
def group_alike(keys: NDArray[np.int64], hidden: Ints, first: Ints, group: Rows, counts: Ints) -> int:
    """Number the rows that are alike under each pattern, all patterns together, and return how many groups there are.

    Pattern p hides the columns `hidden[first[p] : first[p + 1]]`; `counts` receives the number of its groups.
    """
    whole, room, groups = _whole(keys), _room(keys.shape[0]), 0
    for p in range(first.size - 1):
        after = _number(keys, whole, hidden[first[p] : first[p + 1]], groups, room)
        counts[p] = after - groups
        groups = after
        for row in range(whole.size):
            group[p, row] = room[0][row]
    return groups


@entry(_KEYS, _INTS, 1, _INTS, _INTS, _INTS)
def count_alike(keys: NDArray[np.int64], stands: Ints, k: int, hidden: Ints, first: Ints, counts: Ints) -> None:
    """Count the records that are, under each pattern, alike with at least k in all."""
    whole, room, size = _whole(keys), _room(keys.shape[0]), np.zeros(keys.shape[0], np.int64)
    begun = 0
    for p in range(first.size - 1):
        after = _number(keys, whole, hidden[first[p] : first[p + 1]], begun, room)
        size[: after - begun] = 0
        for row in range(whole.size):
            size[room[0][row] - begun] += stands[row]
        total = 0
        for g in range(after - begun):
            if size[g] >= k:
                total += size[g]
        counts[p] = total
        begun = after


@entry(np.zeros((1, 1), np.int32), np.zeros(1, np.int64), np.zeros(1, np.int32))
def list_members(group: Rows, start: Ints, member: Rows) -> None:
    """List the records of each group, in their order; groups of all patterns are numbered together."""
    for p in range(group.shape[0]):
        for record in range(group.shape[1]):
            start[group[p, record] + 1] += 1
    for h in range(start.size - 1):
        start[h + 1] += start[h]
    place = start.copy()
    for p in range(group.shape[0]):
        for record in range(group.shape[1]):
            h = group[p, record]
            member[place[h]] = record
            place[h] += 1


@inner
def _lost(g: PatternGroups, record: int) -> float:
    """Return what a record loses in its class."""
    return float(g.price[g.pattern[g.at[record]], g.kind[record]])


@inner
def _move(g: PatternGroups, record: int, into: int) -> None:
    g.size[g.at[record]] -= g.stands[record]
    g.at[record] = into
    g.size[into] += g.stands[record]


@inner
def _count(g: PatternGroups, h: int) -> None:
    """Count how many members of a group each class has."""
    for place in range(g.start[h], g.start[h + 1]):
        own = g.at[g.member[place]]
        g.seen[own], g.taken[own] = 0, 0
    for place in range(g.start[h], g.start[h + 1]):
        g.seen[g.at[g.member[place]]] += g.stands[g.member[place]]


@inner
def _gainers(g: PatternGroups, h: int, k: int) -> tuple[int, float]:
    """Note who loses less in a group, as far as their classes can spare them; return how many, and how much less."""
    many, gained, p = 0, 0.0, g.pattern[h]
    for place in range(g.start[h], g.start[h + 1]):
        record = g.member[place]
        own = g.at[record]
        gain = _lost(g, record) - g.price[p, g.kind[record]]
        spare = g.seen[own] if g.seen[own] == g.size[own] else g.size[own] - k
        if gain > ROUNDING and g.taken[own] + g.stands[record] <= spare:
            g.taken[own] += g.stands[record]
            g.come[many] = record
            many += 1
            gained += g.stands[record] * gain
    return many, gained


@inner
def _cheapest_other(g: PatternGroups, h: int, k: int) -> tuple[int, float]:
    """Return the member that loses least by coming, of those that do not come by themselves; -1 if none can."""
    best, least, p = -1, np.inf, g.pattern[h]
    for place in range(g.start[h], g.start[h + 1]):
        record = g.member[place]
        own = g.at[record]
        more = g.stands[record] * (g.price[p, g.kind[record]] - _lost(g, record))
        spared = g.taken[own] + g.stands[record] <= g.size[own] - k
        if not g.comes[record] and -ROUNDING <= more < least and spared:
            best, least = record, more
    return best, least


@inner
def _smallest_loss(g: PatternGroups, h: int) -> tuple[int, float]:
    """Return the class of which all are members that loses least by coming as a whole; -1 if there is none."""
    best, least, p = -1, np.inf, g.pattern[h]
    for place in range(g.start[h], g.start[h + 1]):
        record = g.member[place]
        own = g.at[record]
        more = g.size[own] * (g.price[p, g.kind[record]] - _lost(g, record))
        if g.taken[own] == 0 and g.seen[own] == g.size[own] and -ROUNDING <= more < least:
            best, least = own, more
    return best, least


@inner
def _called(g: PatternGroups, record: int, many: int) -> int:
    """Let one more record come."""
    g.taken[g.at[record]] += g.stands[record]
    g.comes[record] = 1
    g.come[many] = record
    return many + 1


@inner
def _all(g: PatternGroups, many: int) -> int:
    """Return for how many records those stand who come."""
    records = 0
    for i in range(many):
        records += g.stands[g.come[i]]
    return records


@inner
def _asked(g: PatternGroups, h: int, k: int, many: int, gained: float) -> tuple[int, float]:
    """Ask others to come until there are k, while it is worth it; return how many come and what is gained in all."""
    records = _all(g, many)
    for i in range(many):
        g.comes[g.come[i]] = 1
    while records < k and gained > ROUNDING:
        record, more = _cheapest_other(g, h, k)
        if record >= 0:
            many = _called(g, record, many)
            records += g.stands[record]
            gained -= more
            continue
        own, more = _smallest_loss(g, h)
        if own < 0:
            break
        gained -= more
        for place in range(g.start[h], g.start[h + 1]):
            if g.at[g.member[place]] == own:
                many = _called(g, g.member[place], many)
                records += g.stands[g.member[place]]
    for i in range(many):
        g.comes[g.come[i]] = 0
    return many, gained


@inner
def _opened(g: PatternGroups, h: int, k: int) -> float:
    """Open a group as a class if less is lost in all, and return how much less."""
    _count(g, h)
    many, gained = _gainers(g, h, k)
    if many > 0 and _all(g, many) < k:
        many, gained = _asked(g, h, k, many, gained)
    if _all(g, many) < k or gained <= ROUNDING:
        return 0.0
    for i in range(many):
        _move(g, g.come[i], h)
    return gained


@inner
def _joined(g: PatternGroups, h: int, k: int) -> float:
    """Let members of a group that is a class join it where they lose less and their own class can spare them."""
    gained, p = 0.0, g.pattern[h]
    for place in range(g.start[h], g.start[h + 1]):
        record = g.member[place]
        gain = _lost(g, record) - g.price[p, g.kind[record]]
        if gain > ROUNDING and g.size[g.at[record]] - g.stands[record] >= k:
            _move(g, record, h)
            gained += g.stands[record] * gain
    return gained


@inner
def _refuge(g: PatternGroups, record: int) -> int:
    """Return the open class, other than its own, that costs a record least; -1 if there is none."""
    best, least = -1, np.inf
    for p in range(g.price.shape[0]):
        h = g.group[p, record]
        if g.size[h] > 0 and h != g.at[record] and g.price[p, g.kind[record]] < least - ROUNDING:
            best, least = h, g.price[p, g.kind[record]]
    return best


@inner
def _closed(g: PatternGroups, own: int) -> float:
    """Close a class if its records lose less in all elsewhere, and return how much less."""
    many, gained = 0, 0.0
    for place in range(g.start[own], g.start[own + 1]):
        record = g.member[place]
        if g.at[record] == own:
            h = _refuge(g, record)
            if h < 0:
                return 0.0
            gained += g.stands[record] * (_lost(g, record) - g.price[g.pattern[h], g.kind[record]])
            g.come[many] = record
            many += 1
    if gained <= ROUNDING:
        return 0.0
    for i in range(many):
        _move(g, g.come[i], _refuge(g, g.come[i]))
    return gained


@inner
def _members(g: PatternGroups, h: int) -> int:
    """Return how many records a group has."""
    records = 0
    for place in range(g.start[h], g.start[h + 1]):
        records += g.stands[g.member[place]]
    return records


@entry(example(), 1)
def sweep(g: PatternGroups, k: int) -> float:
    """Open, join and close once for every group, and return how much less is lost."""
    gained = 0.0
    for h in range(g.size.size):
        if _members(g, h) < k:
            continue
        gained += _joined(g, h, k) if g.size[h] > 0 else _opened(g, h, k)
    for h in range(g.size.size):
        if g.size[h] > 0:
            gained += _closed(g, h)
    return gained
