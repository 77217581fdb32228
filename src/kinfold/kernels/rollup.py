"""Roll-up: which rows are equal at given levels of their attributes; and the cheapest division of a few records.

    key of a row = Σ factor[a] · label[a], the labels of a row as digits of one number
    classes      = the distinct keys, numbered by the first row that has them

`labels` holds, one after the other, the number of each code's label for every attribute and level; `start[a]` is where
the wanted level begins. Keys below `space` index a table of that size, or else are hashed. Cost: O(rows · attributes).

`mark_distant` and `find_losses` compare classes with the table (`methods.generalize.closeness`).

`divide` finds the cheapest classes by dynamic programming over all subsets, in O(3^n) time and O(2^n) memory:

    best[S] = min over classes G in S that hold the first record of S:  cost[G] + best[S without G]

Ties: the subset with the smallest number.
"""

from __future__ import annotations

import math

import numpy as np

from kinfold.kernels.compiling import entry, lean

LOSS_ROUNDING = 1e-6  # of a record: far above rounding, which may not raise a bound
_KEYS, _CODES, _LABELS = np.zeros(1, np.int64), np.zeros((1, 1), np.int32), np.zeros(1, np.int32)
_TABLE, _MARKS = np.zeros((1, 1), np.int64), np.zeros(1, np.uint8)


@entry(_CODES, _KEYS, _LABELS, _KEYS, _KEYS)
def keys(codes: np.ndarray, rows: np.ndarray, labels: np.ndarray, start: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Return the key of each of these rows."""
    result = np.zeros(rows.size, np.int64)
    for i in range(rows.size):
        row = rows[i]
        key = 0
        for a in range(start.size):
            if factor[a] > 0:
                key += factor[a] * labels[start[a] + codes[row, a]]
        result[i] = key
    return result


@entry(_KEYS, 1, _KEYS)
def number(keys: np.ndarray, space: int, into: np.ndarray) -> int:
    """Write the class of each key to `into` and return the number of classes; keys are below `space`."""
    size = 1
    direct = space <= max(4 * keys.size, 4096)
    if direct:
        size = space
    else:
        while size < 2 * keys.size:
            size *= 2
    first = np.full(size, -1, np.int64)  # the class in this place
    class_keys = np.empty(keys.size, np.int64)  # the key of each class
    classes = 0
    for i in range(keys.size):
        key = keys[i]
        place = key
        if not direct:
            place = (key ^ (key >> 31)) * 0x1E3779B97F4A7C15
            place = (place ^ (place >> 29)) & (size - 1)
            while first[place] >= 0 and class_keys[first[place]] != key:
                place = (place + 1) & (size - 1)
        if first[place] < 0:
            first[place] = classes
            class_keys[classes] = key
            classes += 1
        into[i] = first[place]
    return classes


@entry(_KEYS, _KEYS, _KEYS, _KEYS, _KEYS)
def gather(into: np.ndarray, rows: np.ndarray, sizes: np.ndarray, first: np.ndarray, total: np.ndarray) -> None:
    """Write the first row of each class to `first`, and the sum of its records to `total`."""
    first[:] = -1
    total[:] = 0
    for i in range(into.size):
        if first[into[i]] < 0:
            first[into[i]] = rows[i]
        total[into[i]] += sizes[i]


@entry(_KEYS, _KEYS, _KEYS, _KEYS, _TABLE, _KEYS, _KEYS, _KEYS)
def merge_cells(
    group: np.ndarray,
    code: np.ndarray,
    count: np.ndarray,
    into: np.ndarray,
    held: np.ndarray,
    groups: np.ndarray,
    codes: np.ndarray,
    counts: np.ndarray,
) -> int:
    """Add the counts of equal cells after merging classes, sorted by class and code; return the number of cells."""
    for i in range(group.size):
        held[into[group[i]], code[i]] += count[i]
    cells = 0
    for g in range(held.shape[0]):
        for v in range(held.shape[1]):
            if held[g, v] != 0:
                groups[cells], codes[cells], counts[cells] = g, v, held[g, v]
                cells += 1
    return cells


@entry(_CODES, _KEYS, _KEYS, np.zeros(1), _KEYS)
def weigh(codes: np.ndarray, rows: np.ndarray, sizes: np.ndarray, lost: np.ndarray, start: np.ndarray) -> float:
    """Return Σ size · Σ_a lost[start[a] + code], in the order of the rows."""
    total = 0.0
    for i in range(rows.size):
        row = 0.0
        for a in range(start.size):
            row += lost[start[a] + codes[rows[i], a]]
        total += sizes[i] * row
    return total


@lean
def _measure_work(counts: np.ndarray, size: int, totals: np.ndarray, records: int, first: int, end: int) -> int:
    """Return Σ |count · records - size · total| over nested columns."""
    work = 0
    for j in range(first, end):
        work += abs(counts[j] * records - size * totals[j])
    return work


@lean
def _measure_ordered_work(counts: np.ndarray, size: int, totals: np.ndarray, records: int, first: int, end: int) -> int:
    """Return Σ |count · records - size · total| over running counts, of the values that occur."""
    work, before = 0, 0
    for j in range(first, end):
        if totals[j] > before:
            work += abs(counts[j] * records - size * totals[j])
        before = totals[j]
    return work


@lean
def _count_steps(totals: np.ndarray, first: int, end: int) -> int:
    """Return the steps between the values that occur, at least one."""
    present, before = 0, 0
    for j in range(first, end):
        present += 1 if totals[j] > before else 0
        before = totals[j]
    return max(present - 1, 1)


@entry(_TABLE, _KEYS, _KEYS, _KEYS, np.zeros(1), _MARKS)
def mark_distant(
    counts: np.ndarray,
    sizes: np.ndarray,
    first: np.ndarray,
    heights: np.ndarray,
    limits: np.ndarray,
    marked: np.ndarray,
) -> None:
    """Mark, in rounds, the classes farther than a limit from all unmarked ones; see `methods.generalize.closeness`."""
    totals, distant, units = np.zeros(counts.shape[1], np.int64), np.zeros(sizes.size, np.int64), np.zeros(limits.size)
    records = 0
    for i in range(sizes.size):
        if marked[i] == 0:
            records += sizes[i]
            for j in range(totals.size):
                totals[j] += counts[i, j]
    while records > 0:
        count = 0
        for p in range(limits.size):
            units[p] = 2 * heights[p] if heights[p] > 0 else _count_steps(totals, first[p], first[p + 1])
            units[p] *= records
        for i in range(sizes.size):
            if marked[i] == 0 and sizes[i] > 0:
                for p in range(limits.size):
                    if heights[p] > 0:
                        work = _measure_work(counts[i], sizes[i], totals, records, first[p], first[p + 1])
                    else:
                        work = _measure_ordered_work(counts[i], sizes[i], totals, records, first[p], first[p + 1])
                    if work / (sizes[i] * units[p]) > limits[p]:
                        distant[count] = i
                        count += 1
                        break
        if count == 0:
            break
        for place in range(count):
            i = distant[place]
            marked[i] = 1
            records -= sizes[i]
            for j in range(totals.size):
                totals[j] -= counts[i, j]


@entry(_TABLE, _KEYS, _KEYS, _KEYS, np.zeros(1), 1, _KEYS)
def find_losses(
    counts: np.ndarray,
    sizes: np.ndarray,
    first: np.ndarray,
    heights: np.ndarray,
    limits: np.ndarray,
    most: int,
    lost: np.ndarray,
) -> None:
    """Raise `lost` to the records that each class must lose; see `methods.generalize.closeness`."""
    totals = np.zeros(counts.shape[1], np.int64)
    for i in range(sizes.size):
        for j in range(totals.size):
            totals[j] += counts[i, j]
    records = sizes.sum()
    if most >= records:
        return
    for p in range(limits.size):
        if heights[p] == 0:
            continue
        for i in range(sizes.size):
            inside, outside = 0, 0  # of the labels that are more frequent in the class
            for j in range(first[p], first[p + 1]):
                if counts[i, j] * records > totals[j] * sizes[i]:
                    inside += counts[i, j]
                    outside += totals[j]
            highest = limits[p] + outside / (heights[p] * (records - most))
            if highest < 1.0:
                least = (inside / heights[p] - highest * sizes[i]) / (1.0 - highest)
                lost[i] = max(lost[i], min(math.ceil(least - LOSS_ROUNDING), sizes[i]))


@entry(np.zeros(1), np.zeros(1), np.zeros(1, np.int64))
def divide(cost: np.ndarray, best: np.ndarray, choice: np.ndarray) -> None:
    """Fill `best`, and the class chosen for the first record of each subset; infinite costs are not allowed."""
    best[0] = 0.0
    for whole in range(1, cost.size):
        first = whole & -whole
        rest = whole ^ first
        best[whole] = np.inf
        choice[whole] = 0
        part = rest
        while True:
            total = cost[part | first] + best[rest ^ part]
            if total < best[whole] or (total == best[whole] and total < np.inf and (part | first) < choice[whole]):
                best[whole] = total
                choice[whole] = part | first
            if part == 0:
                break
            part = (part - 1) & rest
