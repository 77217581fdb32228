"""Promises about a class, asked of a list of records: how far the class misses them.

Each promise limits one statistic of the class (see `models.criterion`). It reads one row of codes, or one row for each
level of a hierarchy. A class is a list of records; its codes are gathered, sorted, and read once, run after run.

    ordered distance    Σ_v |F_class(v) - F_table(v)| over the steps of the class: between two of its values the
                        class stands still, and the table crosses it at most once, at a place that is looked up. With
                        running sums of the table's counts a step costs O(1).

Sums are whole numbers in doubles, exact below 2^53.   Cost: O(class size), or O(s log s) where codes come unsorted.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kinfold.kernels.compiling import lean

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[np.int32]
    Floats = NDArray[np.float64]

ORDERED, NESTED, SHARE, DISTINCT, EFFECTIVE, RECURSIVE = range(6)
KNOWN = 64  # up to this size the places where the table crosses a class are in a table
_LEAST = 1e-12  # relative, as in the models


class Promises(NamedTuple):
    """What every class must keep, packed for the kernels."""

    kind: NDArray[np.int64]  # (p,)
    limit: NDArray[np.float64]  # (p,)
    c: NDArray[np.float64]  # (p,) recursive
    row: NDArray[np.int64]  # (p + 1,) first row of codes of each promise
    codes: NDArray[np.int32]  # (rows, n)
    start: NDArray[np.int64]  # (rows + 1,) where the values of a row start in the tables below
    total: NDArray[np.float64]  # records with a value
    below: NDArray[np.float64]  # records with a value or a lower one
    area: NDArray[np.float64]  # (values + 1 for each row) running sums of `below`
    turn: NDArray[np.int32]  # (rows, (KNOWN + 1)²) first value with more than j/s of the table below, by size s and j
    codes_held: NDArray[np.int32]  # (n,) room
    heaps: NDArray[np.float64]  # (n,) room


def example() -> Promises:
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
    """Sort the first so many values by a heap: numpy's sort takes a second longer to compile."""
    for at in range(size // 2 - 1, -1, -1):
        sift(values, at, size)
    for last in range(size - 1, 0, -1):
        largest = values[0]
        values[0] = values[last]
        values[last] = largest
        sift(values, 0, last)


@lean
def gather(p: Promises, row: int, members: Rows, leaving: int, arriving: int) -> int:
    """Put the sorted codes of the class into `codes_held`; return how many. Nearly sorted members cost O(size)."""
    held, codes, size = p.codes_held, p.codes, 0
    long, tidy = members.size > KNOWN, True
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
def ordered(p: Promises, row: int, size: int) -> float:
    """Earth mover's distance of the gathered codes over values in order."""
    first, area = p.start[row], p.start[row] + row
    values = p.start[row + 1] - first
    if values < 2:
        return 0.0
    held = p.codes_held
    records = p.below[first + values - 1]
    work = size * p.area[area + held[0]]
    at = 0
    while at < size:
        here = held[at]
        while at < size and held[at] == here:
            at += 1
        until = held[at] if at < size else values
        turn = min(max(crossing(p, row, size, at), here), until)
        level = at * records
        low, middle, high = p.area[area + here], p.area[area + turn], p.area[area + until]
        work += level * (turn - here) - size * (middle - low)
        work += size * (high - middle) - level * (until - turn)
    return work / (size * records * (values - 1))


@lean
def crossing(p: Promises, row: int, size: int, j: int) -> int:
    """First value of the row below which, itself included, stand more than j/size of the table's records."""
    if size <= KNOWN:
        return p.turn[row, size * (KNOWN + 1) + j]
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
def nested_miss(p: Promises, r: int, members: Rows, leaving: int, arriving: int) -> float:
    """Miss of a limit on the earth mover's distance over a hierarchy: the mean over its levels."""
    total = 0.0
    for row in range(p.row[r], p.row[r + 1]):
        total += equal(p, row, gather(p, row, members, leaving, arriving))
    return max(0.0, total / (p.row[r + 1] - p.row[r]) - p.limit[r])


@lean
def equal(p: Promises, row: int, size: int) -> float:
    """Earth mover's distance of the gathered codes where any two values are equally far."""
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
    """Miss of a limit on how often values occur in the gathered codes."""
    runs = count_runs(p.codes_held, size, p.heaps)
    heaps, limit, kind = p.heaps, p.limit[r], p.kind[r]
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
        return short if short > _LEAST else 0.0
    sort(heaps, runs)
    tail = 0.0
    for t in range(runs - int(limit) + 1):
        tail += heaps[t]
    if heaps[runs - 1] < p.c[r] * tail * (1 - _LEAST):
        return 0.0
    return max((heaps[runs - 1] - p.c[r] * tail) / size, 1e-9)


@lean
def count_runs(held: Rows, size: int, heaps: Floats) -> int:
    """Write how often each of the sorted codes occurs; return how many there are."""
    runs = 0
    for at in range(size):
        if at == 0 or held[at] != held[at - 1]:
            heaps[runs] = 0.0
            runs += 1
        heaps[runs - 1] += 1.0
    return runs


@lean
def miss(p: Promises, members: Rows, leaving: int, arriving: int) -> float:
    """How far a class misses its promises, all together; 0 if it keeps them.

    The class is `members` without `leaving` and with `arriving` (-1: nobody).
    """
    total = 0.0
    for r in range(p.kind.size):
        kind = p.kind[r]
        if kind == NESTED:
            total += nested_miss(p, r, members, leaving, arriving)
            continue
        size = gather(p, p.row[r], members, leaving, arriving)
        if kind == ORDERED:
            total += max(0.0, ordered(p, p.row[r], size) - p.limit[r])
        else:
            total += frequency_miss(p, r, size)
    return total
