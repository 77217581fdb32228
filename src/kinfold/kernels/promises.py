"""Promises about a class, given as a list of records: by how much the class misses them.

Each promise limits one statistic of the class (see `models.model.ClassCriterion`). It reads one row of codes, or one
row for each level of a hierarchy. The codes of a class are gathered, sorted, and read once, run by run.

The ordered distance is Σ_v |F_class(v) - F_table(v)| over the steps of the class. Between two of its values the class
is constant, and the table crosses it at most once, at a place that is looked up. With running sums of the table's
counts a step costs O(1).

Sums are whole numbers in doubles, exact below 2^53.   Cost: O(class size), or O(s log s) for unsorted codes.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from kinfold.kernels.compiling import Floats, Ints, Real, Rows, entry, lean

ORDERED, NESTED, SHARE, DISTINCT, EFFECTIVE, RECURSIVE, LIKENESS, ENHANCED, DISCLOSURE = range(9)
MAX_TABLED_SIZE = 64  # up to this class size a table holds the places where the table crosses the class
_RELATIVE_TOLERANCE = 1e-12  # relative, as in the models
_LEAST_MISS = 1e-9  # of a class that misses a limit by rounding only


class Promises(NamedTuple):
    """What every class must keep, packed for the kernels."""

    kind: Ints  # (p,)
    limit: Floats  # (p,)
    c: Floats  # (p,) recursive
    row: Ints  # (p + 1,) first row of codes of each promise
    codes: Rows  # (rows, n)
    start: Ints  # (rows + 1,) where the values of a row start in the tables below
    total: Floats  # records with a value
    below: Floats  # records with a value or a lower one
    area: Floats  # (values + 1 for each row) running sums of `below`
    turn: Rows  # (rows, (MAX_TABLED_SIZE + 1)²) crossings, by size s and j
    codes_held: Rows  # (n,) room
    heaps: Floats  # (n,) room


def example_promises() -> Promises:
    """Return the smallest promise, to compile for."""
    whole, real, rows = np.zeros(1, np.int64), np.zeros(1), np.zeros((1, 1), np.int32)
    return Promises(whole, real, real, whole, rows, whole, real, real, real, rows, rows[0], real)


@lean
def sift(values: Any, at: int, size: int) -> None:
    """Let the value at a place of a heap sink until none below it is larger."""
    value = values[at]
    while 2 * at + 1 < size:
        below = 2 * at + 1
        if below + 1 < size and values[below + 1] > values[below]:
            below += 1
        if values[below] <= value:
            break
        values[at] = values[below]
        at = below
    values[at] = value


@lean
def sort(values: Any, size: int) -> None:
    """Sort the first `size` values by a heap; numpy's sort takes a second longer to compile."""
    for at in range(size // 2 - 1, -1, -1):
        sift(values, at, size)
    for last in range(size - 1, 0, -1):
        largest = values[0]
        values[0] = values[last]
        values[last] = largest
        sift(values, 0, last)


@lean
def gather_codes(p: Promises, row: int, members: Rows, leaving: int, arriving: int) -> int:
    """Put the sorted codes of the class into `codes_held`; return their number. Nearly sorted members cost O(size)."""
    held, codes, size = p.codes_held, p.codes, 0
    long, tidy = members.size > MAX_TABLED_SIZE, True
    for t in range(members.size + 1):
        record = arriving if t == members.size else members[t]
        if record == leaving or record < 0:
            continue
        code = codes[row, record]
        at = size
        if not long or t == members.size:
            while at > 0 and held[at - 1] > code:
                held[at] = held[at - 1]
                at -= 1
        held[at] = code
        tidy = tidy and (at == 0 or held[at - 1] <= code)
        size += 1
        if long and not tidy and t == members.size - 1:
            sort(held, size)
    return size


@lean
def ordered_distance(p: Promises, row: int, size: int) -> float:
    """Return the earth mover's distance of the gathered codes over ordered values."""
    first = p.start[row]
    values = p.start[row + 1] - first
    if values < 2:
        return 0.0
    return ordered_work(p, row, size) / (size * p.below[first + values - 1] * (values - 1))


@lean
def ordered_work(p: Promises, row: int, size: int) -> float:
    """Return the distance times the sizes of the class and the table and the steps of the values: a whole number."""
    first, area = p.start[row], p.start[row] + row
    values = p.start[row + 1] - first
    held = p.codes_held
    records = p.below[first + values - 1]
    work = size * p.area[area + held[0]]
    at = 0
    while at < size:
        here = held[at]
        while at < size and held[at] == here:
            at += 1
        until = held[at] if at < size else values
        turn = min(max(find_crossing(p, row, size, at), here), until)
        level = at * records
        low, middle, high = p.area[area + here], p.area[area + turn], p.area[area + until]
        work += level * (turn - here) - size * (middle - low)
        work += size * (high - middle) - level * (until - turn)
    return work


@lean
def find_crossing(p: Promises, row: int, size: int, j: int) -> int:
    """Return the first value up to which the table has more than j/size of its records."""
    if size <= MAX_TABLED_SIZE:
        return p.turn[row, size * (MAX_TABLED_SIZE + 1) + j]
    first, last = p.start[row], p.start[row + 1]
    limit = j * p.below[last - 1]
    low, high = first, last
    while low < high:
        middle = (low + high) // 2
        if p.below[middle] * size <= limit:
            low = middle + 1
        else:
            high = middle
    return low - first


@lean
def equal_distance(p: Promises, row: int, size: int) -> float:
    """Return the earth mover's distance of the gathered codes if all values are equally distant."""
    first = p.start[row]
    records = p.below[p.start[row + 1] - 1]
    work = size * records
    at = 0
    while at < size:
        here, begin = p.codes_held[at], at
        while at < size and p.codes_held[at] == here:
            at += 1
        share = p.total[first + here] * size
        work += abs((at - begin) * records - share) - share
    return work / (2.0 * size * records)


@lean
def frequency_miss(p: Promises, r: int, size: int) -> float:
    """Return by how much the gathered codes miss a limit on the frequencies of values."""
    heaps, limit, kind, runs = p.heaps, p.limit[r], p.kind[r], 0
    for at in range(size):  # count each of the sorted codes
        if at == 0 or p.codes_held[at] != p.codes_held[at - 1]:
            heaps[runs] = 0.0
            runs += 1
        heaps[runs - 1] += 1.0
    if kind == DISTINCT:
        return max(0.0, (limit - runs) / limit)
    if kind == SHARE:
        largest = 0.0
        for t in range(runs):
            largest = max(largest, heaps[t])
        return max(0.0, largest / size - limit)
    if kind == EFFECTIVE:
        entropy = 0.0
        for t in range(runs):
            entropy -= heaps[t] / size * math.log(heaps[t] / size)
        short = (limit - math.exp(entropy)) / limit
        return short if short > _RELATIVE_TOLERANCE else 0.0
    sort(heaps, runs)
    tail = 0.0
    for t in range(runs - int(limit) + 1):
        tail += heaps[t]
    if heaps[runs - 1] < p.c[r] * tail * (1 - _RELATIVE_TOLERANCE):
        return 0.0
    return max((heaps[runs - 1] - p.c[r] * tail) / size, _LEAST_MISS)


@lean
def likeness_miss(p: Promises, r: int, size: int) -> float:
    """Return by how much the shares of the gathered codes miss a limit on their quotient with those of the table."""
    first, limit, kind = p.start[p.row[r]], p.limit[r], p.kind[r]
    records = p.below[p.start[p.row[r] + 1] - 1]
    factor, missed, covered, at = 2.0**limit, 0.0, 0.0, 0
    while at < size:
        here, begin = p.codes_held[at], at
        while at < size and p.codes_held[at] == here:
            at += 1
        total = p.total[first + here]
        held, due = (at - begin) * records, total * size
        covered += total
        if kind != DISCLOSURE:
            most = min(limit, -math.log(total / records)) if kind == ENHANCED else limit
            if (held - due) / due > most:
                missed += max((held - due * (1.0 + most)) / (size * records), _LEAST_MISS)
        elif held > due * factor * (1 - _RELATIVE_TOLERANCE):
            missed += max((held - due * factor) / (size * records), _LEAST_MISS)
        elif held * factor * (1 - _RELATIVE_TOLERANCE) < due:
            missed += max((due / factor - held) / (size * records), _LEAST_MISS)
    if kind == DISCLOSURE and covered < records:  # values that the class lacks
        missed += max((records - covered) / (factor * records), _LEAST_MISS)
    return missed


@lean
def gathered_miss(p: Promises, r: int, size: int) -> float:
    """Return by how much the gathered codes miss a promise that reads one row of codes: all but the nested distance."""
    if p.kind[r] == ORDERED:
        return max(0.0, ordered_distance(p, p.row[r], size) - p.limit[r])
    return likeness_miss(p, r, size) if p.kind[r] >= LIKENESS else frequency_miss(p, r, size)


@lean
def measure_miss(p: Promises, members: Rows, leaving: int, arriving: int, limit: Real) -> float:
    """Return by how much a class misses its promises, summed; 0 if it keeps them all.

    The class is `members` without `leaving` and with `arriving` (-1: none). A sum above the limit is not completed.
    """
    total = 0.0
    for r in range(p.kind.size):
        if total > limit:
            break
        if p.kind[r] == NESTED:  # the mean over the levels of a hierarchy
            distance = 0.0
            for row in range(p.row[r], p.row[r + 1]):
                distance += equal_distance(p, row, gather_codes(p, row, members, leaving, arriving))
            total += max(0.0, distance / (p.row[r + 1] - p.row[r]) - p.limit[r])
            continue
        total += gathered_miss(p, r, gather_codes(p, p.row[r], members, leaving, arriving))
    return total


@entry(example_promises(), np.zeros(1, np.int32), np.zeros(1, np.int64), np.zeros(1))
def measure_misses(p: Promises, order: Rows, start: Ints, result: Floats) -> None:
    """Measure by how much each class misses its promises; class g is order[start[g]:start[g + 1]]."""
    for g in range(result.size):
        result[g] = measure_miss(p, order[start[g] : start[g + 1]], -1, -1, np.inf)
