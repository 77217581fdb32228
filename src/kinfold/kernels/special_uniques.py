"""Minimal sample uniques: the smallest sets of columns in which a record has values that no other record has.

The sets of columns are visited in the order of their masks, so every subset before its supersets. A set is its highest
columns, extended by a lower one: the groups of records that are equal in the set are those of the smaller set, split by
the values of the added column. Left out of the next set are

- records that are the only one of a group: they are unique in the set, so in each larger one too;
- groups without a record that is asked for;
- records without a value in the added column: a missing value is no item, so they equal no other record.

A record that is unique in a set is minimally so if no smaller set with that is a part. Each record has one bit for each
set; a minimal set marks all sets that it is a part of. The columns come in ascending order of their number of values:
then the fewest records are left in the sets that are extended most.

Cost: the records that are left in each set. Memory: records times columns, and 2^columns bits for each record that is
asked for.

Source: Manning, Haglin & Keane, Data Mining and Knowledge Discovery 16 (2008), SUDA2, whose pruning of the search by
the values of one record is replaced by groups: these serve all records at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kinfold.kernels.compiling import Flag, Int, Ints, Rows, entry, inner, lean

ALONE, GONE = -2, -1  # places of a value: of one record, of records that need not be looked at
LOW, WORD = 6, 64  # a word of 64 bits holds the sets of the first 6 columns

_ROWS, _INTS, _TABLE = np.zeros((1, 1), np.int32), np.zeros(1, np.int64), np.zeros((1, 1), np.int64)


class Split(NamedTuple):
    """Working memory for splitting groups by the values of a column, by value."""

    stamp: Ints  # (1,) the number of the group
    last: Ints  # the last group that had the value
    records: Ints  # its records with the value
    hopeful: Ints  # those that are asked for
    place: Ints  # where the next record goes; ALONE or GONE
    values: Ints  # of the group, in the order of appearance
    singles: Ints  # records that are unique in the set


class SplitGroups(NamedTuple):
    """Records by group, for each number of columns in the set."""

    rows: Rows  # (sets, records)
    starts: Rows  # (sets, groups): where each group begins, and the end


@lean
def _count_values(work: Split, rows: Rows, codes: Rows, slot: Rows) -> Int:
    """Count the records of a group by value and return the number of values."""
    values = 0
    for i in range(rows.size):
        code = codes[rows[i]]
        if code < 0:
            continue
        if work.last[code] != work.stamp[0]:
            work.last[code] = work.stamp[0]
            work.records[code] = 0
            work.hopeful[code] = 0
            work.values[values] = code
            values += 1
        work.records[code] += 1
        work.hopeful[code] += slot[rows[i]] >= 0
    return values


@lean
def _split(work: Split, groups: SplitGroups, at: Int, size: Int, codes: Rows, slot: Rows) -> tuple[Int, Int]:
    """Split the groups of a set into those of the next; return their number, and the number of single records."""
    rows, starts = groups.rows[at], groups.starts[at]
    into, ends = groups.rows[at + 1], groups.starts[at + 1]
    groups_made = end = singles = 0
    for g in range(size):
        group = rows[starts[g] : starts[g + 1]]
        work.stamp[0] += 1
        values = _count_values(work, group, codes, slot)
        for v in range(values):
            code = work.values[v]
            work.place[code] = GONE
            if work.records[code] == 1:
                work.place[code] = ALONE if work.hopeful[code] == 1 else GONE
            elif work.hopeful[code] > 0:
                work.place[code] = end
                ends[groups_made] = end
                groups_made += 1
                end += work.records[code]
        for i in range(group.size):
            code = codes[group[i]]
            if code < 0:
                continue
            if work.place[code] == ALONE:
                work.singles[singles] = group[i]
                singles += 1
            elif work.place[code] >= 0:
                into[work.place[code]] = group[i]
                work.place[code] += 1
    ends[groups_made] = end
    return groups_made, singles


@lean
def _mark(bits: Ints, mask: Int, low: Ints) -> Flag:
    """Return whether no marked set is part of this one; if so, mark every set that this one is a part of."""
    high = mask >> LOW
    if bits[high] >> (mask & (WORD - 1)) & 1:
        return False
    word = high
    while word < bits.size:
        bits[word] |= low[mask & (WORD - 1)]
        word = (word + 1) | high
    return True


@lean
def _add(part: Ints, mask: Int, weight: Int) -> None:
    """Add a weight to the columns of a set, and to their sum."""
    columns = part.size - 1
    for j in range(columns):
        if mask >> j & 1:
            part[j] += weight
    part[columns] += weight


@inner
def _make_split(values: Int, n: Int) -> Split:
    return Split(
        np.zeros(1, np.int64),
        np.zeros(values, np.int64),
        np.zeros(values, np.int64),
        np.zeros(values, np.int64),
        np.zeros(values, np.int64),
        np.zeros(min(values, n), np.int64),
        np.zeros(n, np.int64),
    )


@inner
def _make_low() -> Ints:
    """Return, for each set of the first columns, a word with a bit for each set of them that it is a part of."""
    low = np.zeros(WORD, np.int64)
    for part in range(WORD):
        for whole in range(WORD):
            if part & ~whole == 0:
                low[part] |= np.int64(1) << whole
    return low


@entry(_ROWS, np.zeros(1, np.int32), 1, _TABLE, _INTS, _INTS, _TABLE)
def score(codes: Rows, slot: Rows, values: int, bits: Ints, weight: Ints, counts: Ints, parts: Ints) -> None:
    """Add the weights of the minimal sample uniques of the records asked for.

    `codes` has a row of codes below `values` for each column, -1 for a missing value; columns with fewer values come
    first. `slot` is the place of a record in `bits`, -1 for one that is not asked for. `weight` is by the number of
    columns of a set; `counts` gets the number of sets by it, `parts` the weights by record and column, and their sum.
    """
    columns, n = codes.shape
    groups = SplitGroups(np.empty((columns + 1, n), np.int32), np.empty((columns + 1, n // 2 + 2), np.int32))
    work = _make_split(values, n)
    low = _make_low()
    mask, size = np.zeros(columns + 1, np.int64), np.zeros(columns + 1, np.int64)
    column, limit = np.zeros(columns + 1, np.int64), np.zeros(columns + 1, np.int64)
    groups.rows[0] = np.arange(n)
    groups.starts[0, 0], groups.starts[0, 1] = 0, n
    size[0], limit[0], at = 1, columns, 0
    while at >= 0:
        if column[at] == limit[at] or size[at] == 0:
            at -= 1
            continue
        j = column[at]
        column[at] += 1
        mask[at + 1] = mask[at] | (1 << j)
        size[at + 1], singles = _split(work, groups, at, size[at], codes[j], slot)
        for i in range(singles):
            row = work.singles[i]
            if _mark(bits[slot[row]], mask[at + 1], low):
                _add(parts[row], mask[at + 1], weight[at + 1])
                counts[at + 1] += 1
        at += 1
        column[at], limit[at] = 0, j
