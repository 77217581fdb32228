"""Opening and closing classes of records that are equal except for a pattern of empty cells, to empty fewer cells.

    open    a group of records that are equal under a pattern becomes a class: records that lose less come, from classes
            that keep k without them or that come as a whole; if they are fewer than k, others that lose little by it
            are added, one by one or as whole classes; it is done if the loss falls in all
    close   the records of a class go to the open classes that cost each of them least, if the loss falls in all
    join    a record goes to an open class in which it loses less, if its own keeps k without it

A sweep does all three for every group, the cheapest patterns first. Only k is required of a class here. A record here
may stand for many equal ones that stay together: `stands` says for how many, and sizes count them all.

Cost: O(patterns · records) for a sweep.   Ties: the first pattern, the first record.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kinfold.kernels.compiling import Floats, Ints, Rows, entry, inner

GAIN_ROUNDING = 1e-9  # a smaller gain is rounding
_KEYS, _INTS = np.zeros((1, 1), np.int64), np.zeros(1, np.int64)


class PatternGroups(NamedTuple):
    """Records by pattern: the groups of equal records under each pattern, the loss of a pattern, and the classes."""

    group: Rows  # (patterns, n) the group of each record, numbered over all patterns
    start: Ints  # (groups + 1) where the members of each group start
    member: Rows  # (patterns · n)
    pattern: Rows  # (groups)
    price: Floats  # (patterns, kinds) loss of a record of each kind; kinds differ in their missing values
    kind: Rows  # (n)
    stands: Rows  # (n) the number of equal records that each stands for
    at: Rows  # (n) the group that is the class of each record
    size: Rows  # (groups) of the class, 0 if the group is none
    inside: Rows  # (groups) room: members of a group, by class
    removed: Rows  # (groups) room
    come: Rows  # (n) room: the records that come
    comes: Rows  # (n) room: 1 for records that come


def example_groups() -> PatternGroups:
    """Return the smallest value, to compile for."""
    rows, ints = np.zeros(1, np.int32), np.zeros(1, np.int64)
    return PatternGroups(np.zeros((1, 1), np.int32), ints, rows, rows, np.zeros((1, 1)), *(rows,) * 8)


@inner
def _number_rows(keys: Ints, whole: Ints, hidden: Ints, groups: int, room: tuple[Ints, Ints, Ints]) -> int:
    """Number the rows that are equal except in the hidden columns, from `groups` on, and return the next number.

    The number of each row is written to the first array of the room. The other two are a hash table: a number and its
    key. Numbers only grow, so the table need not be cleared before the next pattern.
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
def _make_room(rows: int) -> tuple[Ints, Ints, Ints]:
    """Return room to number this many rows."""
    size = 2
    while size < 2 * rows:
        size *= 2
    return np.zeros(rows, np.int64), np.full(size, -1, np.int64), np.zeros(size, np.int64)


@inner
def _make_keys(keys: Ints) -> Ints:
    """Return the key of each row with nothing hidden."""
    whole = np.zeros(keys.shape[0], np.int64)
    for row in range(keys.shape[0]):
        for a in range(keys.shape[1]):
            whole[row] ^= keys[row, a]
    return whole


@entry(_KEYS, _INTS, _INTS, np.zeros((1, 1), np.int32), _INTS)
def group_alike(keys: Ints, hidden: Ints, first: Ints, group: Rows, counts: Ints) -> int:
    """Number the rows that are equal under each pattern, all patterns together, and return the number of groups.

    Pattern p hides the columns `hidden[first[p] : first[p + 1]]`; `counts` receives the number of its groups.
    """
    whole, room, groups = _make_keys(keys), _make_room(keys.shape[0]), 0
    for p in range(first.size - 1):
        after = _number_rows(keys, whole, hidden[first[p] : first[p + 1]], groups, room)
        counts[p] = after - groups
        groups = after
        for row in range(whole.size):
            group[p, row] = room[0][row]
    return groups


@entry(_KEYS, _INTS, 1, _INTS, _INTS, _INTS)
def count_alike(keys: Ints, stands: Ints, k: int, hidden: Ints, first: Ints, counts: Ints) -> None:
    """Count the records that are, under each pattern, equal to at least k in all."""
    whole, room, size = _make_keys(keys), _make_room(keys.shape[0]), np.zeros(keys.shape[0], np.int64)
    begun = 0
    for p in range(first.size - 1):
        after = _number_rows(keys, whole, hidden[first[p] : first[p + 1]], begun, room)
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
def _get_loss(g: PatternGroups, record: int) -> float:
    """Return the loss of a record in its class."""
    return float(g.price[g.pattern[g.at[record]], g.kind[record]])


@inner
def _move_record(g: PatternGroups, record: int, into: int) -> None:
    g.size[g.at[record]] -= g.stands[record]
    g.at[record] = into
    g.size[into] += g.stands[record]


@inner
def _list_gainers(g: PatternGroups, h: int, k: int) -> tuple[int, float]:
    """List the records that lose less in a group, if their classes can spare them; return their number and gain."""
    many, gained, p = 0, 0.0, g.pattern[h]
    for place in range(g.start[h], g.start[h + 1]):
        record = g.member[place]
        own = g.at[record]
        gain = _get_loss(g, record) - g.price[p, g.kind[record]]
        spare = g.inside[own] if g.inside[own] == g.size[own] else g.size[own] - k
        if gain > GAIN_ROUNDING and g.removed[own] + g.stands[record] <= spare:
            g.removed[own] += g.stands[record]
            g.come[many] = record
            many += 1
            gained += g.stands[record] * gain
    return many, gained


@inner
def _find_cheapest_other(g: PatternGroups, h: int, k: int) -> tuple[int, float]:
    """Return the member that loses least by coming, of those that do not gain; -1 if there is none."""
    best, least, p = -1, np.inf, g.pattern[h]
    for place in range(g.start[h], g.start[h + 1]):
        record = g.member[place]
        own = g.at[record]
        more = g.stands[record] * (g.price[p, g.kind[record]] - _get_loss(g, record))
        spared = g.removed[own] + g.stands[record] <= g.size[own] - k
        if not g.comes[record] and -GAIN_ROUNDING <= more < least and spared:
            best, least = record, more
    return best, least


@inner
def _find_cheapest_class(g: PatternGroups, h: int) -> tuple[int, float]:
    """Return the class of members that loses least by coming as a whole; -1 if there is none."""
    best, least, p = -1, np.inf, g.pattern[h]
    for place in range(g.start[h], g.start[h + 1]):
        record = g.member[place]
        own = g.at[record]
        more = g.size[own] * (g.price[p, g.kind[record]] - _get_loss(g, record))
        if g.removed[own] == 0 and g.inside[own] == g.size[own] and -GAIN_ROUNDING <= more < least:
            best, least = own, more
    return best, least


@inner
def _add_comer(g: PatternGroups, record: int, many: int) -> int:
    """Add one more record that comes."""
    g.removed[g.at[record]] += g.stands[record]
    g.comes[record] = 1
    g.come[many] = record
    return many + 1


@inner
def _count_comers(g: PatternGroups, many: int) -> int:
    """Return the number of records that those who come stand for."""
    records = 0
    for i in range(many):
        records += g.stands[g.come[i]]
    return records


@inner
def _ask_others(g: PatternGroups, h: int, k: int, many: int, gained: float) -> tuple[int, float]:
    """Add other records until there are k, while it is worth it; return their number and the gain in all."""
    records = _count_comers(g, many)
    for i in range(many):
        g.comes[g.come[i]] = 1
    while records < k and gained > GAIN_ROUNDING:
        record, more = _find_cheapest_other(g, h, k)
        if record >= 0:
            many = _add_comer(g, record, many)
            records += g.stands[record]
            gained -= more
            continue
        own, more = _find_cheapest_class(g, h)
        if own < 0:
            break
        gained -= more
        for place in range(g.start[h], g.start[h + 1]):
            if g.at[g.member[place]] == own:
                many = _add_comer(g, g.member[place], many)
                records += g.stands[g.member[place]]
    for i in range(many):
        g.comes[g.come[i]] = 0
    return many, gained


@inner
def _open_group(g: PatternGroups, h: int, k: int) -> float:
    """Open a group as a class if the loss falls in all, and return the gain."""
    for place in range(g.start[h], g.start[h + 1]):
        own = g.at[g.member[place]]
        g.inside[own], g.removed[own] = 0, 0
    for place in range(g.start[h], g.start[h + 1]):
        g.inside[g.at[g.member[place]]] += g.stands[g.member[place]]
    many, gained = _list_gainers(g, h, k)
    if many > 0 and _count_comers(g, many) < k:
        many, gained = _ask_others(g, h, k, many, gained)
    if _count_comers(g, many) < k or gained <= GAIN_ROUNDING:
        return 0.0
    for i in range(many):
        _move_record(g, g.come[i], h)
    return gained


@inner
def _join_group(g: PatternGroups, h: int, k: int) -> float:
    """Move members of a group that is a class to it if they lose less and their own class can spare them."""
    gained, p = 0.0, g.pattern[h]
    for place in range(g.start[h], g.start[h + 1]):
        record = g.member[place]
        gain = _get_loss(g, record) - g.price[p, g.kind[record]]
        if gain > GAIN_ROUNDING and g.size[g.at[record]] - g.stands[record] >= k:
            _move_record(g, record, h)
            gained += g.stands[record] * gain
    return gained


@inner
def _find_refuge(g: PatternGroups, record: int) -> int:
    """Return the other open class that costs a record least; -1 if there is none."""
    best, least = -1, np.inf
    for p in range(g.price.shape[0]):
        h = g.group[p, record]
        if g.size[h] > 0 and h != g.at[record] and g.price[p, g.kind[record]] < least - GAIN_ROUNDING:
            best, least = h, g.price[p, g.kind[record]]
    return best


@inner
def _close_group(g: PatternGroups, own: int) -> float:
    """Close a class if its records lose less elsewhere in all, and return the gain."""
    many, gained = 0, 0.0
    for place in range(g.start[own], g.start[own + 1]):
        record = g.member[place]
        if g.at[record] == own:
            h = _find_refuge(g, record)
            if h < 0:
                return 0.0
            gained += g.stands[record] * (_get_loss(g, record) - g.price[g.pattern[h], g.kind[record]])
            g.come[many] = record
            many += 1
    if gained <= GAIN_ROUNDING:
        return 0.0
    for i in range(many):
        _move_record(g, g.come[i], _find_refuge(g, g.come[i]))
    return gained


@entry(example_groups(), 1)
def sweep(g: PatternGroups, k: int) -> float:
    """Open, join and close once for every group, and return the gain."""
    gained = 0.0
    for h in range(g.size.size):
        records = 0
        for place in range(g.start[h], g.start[h + 1]):
            records += g.stands[g.member[place]]
        if records < k:
            continue
        gained += _join_group(g, h, k) if g.size[h] > 0 else _open_group(g, h, k)
    for h in range(g.size.size):
        if g.size[h] > 0:
            gained += _close_group(g, h)
    return gained
