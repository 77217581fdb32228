"""Grouping rows by their values: one label per row."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kinfold.measures.arrays import Ints

MIXER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio, made odd: neighbours land far apart
SHIFT = np.uint64(29)


def group_rows(table: NDArray[np.generic]) -> tuple[Ints, Ints]:
    """Return the class of each row (rows with the same values share one) and the first row of each class.

    Classes are in the order of the values. Whole numbers of which all columns fit into one are sorted once; else one
    column goes after the other: the classes so far are split by the column's values and numbered densely again.

    >>> group_rows(np.array([[1, 5], [0, 5], [1, 5]]))[0].tolist()
    [1, 0, 1]
    """
    if (keys := _in_one(table)) is not None:
        _, first, group = np.unique(keys, return_index=True, return_inverse=True)
        return group.astype(np.int64, copy=False), first.astype(np.int64, copy=False)
    group = np.zeros(len(table), np.int64)
    for j in range(table.shape[1]):
        values, code = np.unique(table[:, j], return_inverse=True)
        _, group = np.unique(group * len(values) + code, return_inverse=True)
    first = np.full(int(group.max(initial=-1)) + 1, len(group), np.int64)
    np.minimum.at(first, group, np.arange(len(group)))
    return group.astype(np.int64, copy=False), first


def _in_one(table: NDArray[np.generic]) -> Ints | None:
    """Return the rows of a table of whole numbers as single ones in the same order, where 62 bits hold them."""
    if table.dtype.kind not in "iu" or not table.size:
        return None
    low, high = table.min(axis=0), table.max(axis=0)
    widths = [int(b) - int(a) + 1 for a, b in zip(low.tolist(), high.tolist(), strict=True)]
    if math.prod(widths) >= 2**62:
        return None
    keys = np.zeros(len(table), np.int64)
    for j, width in enumerate(widths):
        keys = keys * width + (table[:, j].astype(np.int64) - int(low[j]))
    return keys


def alike(columns: Sequence[NDArray[Any]], rows: NDArray[np.bool_] | None = None) -> tuple[Ints, Ints]:
    """Return the same in no order that means anything, by one sort of the rows' hashes instead of one a column.

    Missing numbers are alike. Rows are compared with the first of their class: where two that differ share a hash,
    `group_rows` does it. `rows` marks those that are looked at: all without it.

    >>> group, first = alike([np.array([1.0, np.nan, 1.0, np.nan]), np.array([5, 5, 5, 5])])
    >>> len(first), bool(group[0] == group[2]), bool(group[1] == group[3])
    (2, True, True)
    """
    if rows is not None and rows.all():
        rows = None
    _, first, group = np.unique(_hashed(columns, rows), return_index=True, return_inverse=True)
    if all(np.array_equal(each[first][group], each) for each in _bits(columns, rows)):
        return group.astype(np.int64, copy=False), first.astype(np.int64, copy=False)
    return group_rows(np.column_stack([*_bits(columns, rows)]))


def _bits(columns: Sequence[NDArray[Any]], rows: NDArray[np.bool_] | None) -> Iterator[NDArray[np.uint64]]:
    """Yield the numbers of each column as bits that are the same if and only if the numbers are."""
    for column in columns:
        here = column if rows is None else column[rows]
        if here.dtype.kind != "f":
            yield here.astype(np.int64).view(np.uint64)
            continue
        values = here.astype(np.float64) + 0.0  # there is one zero
        values[np.isnan(values)] = np.nan
        yield values.view(np.uint64)


def _hashed(columns: Sequence[NDArray[Any]], rows: NDArray[np.bool_] | None) -> NDArray[np.uint64]:
    found = np.zeros(len(columns[0]) if rows is None else int(rows.sum()), np.uint64)
    for bits in _bits(columns, rows):
        found ^= bits
        found *= MIXER
        found ^= found >> SHIFT
    return found
