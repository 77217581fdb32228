"""Array types and checks that all formulas share; grouping of equal rows; weighted quantiles."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinfold.errors import DataError

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]


class NotApplicable(Exception):  # noqa: N818  not an error of the user
    """The measure is not defined on these arrays; `reason` is a clause for the report."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class NamedResult(Mapping[str, Any]):
    """A frozen dataclass that also reads as a mapping of its fields; arrays are left out of its `repr`."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __getitem__(self, key: str) -> Any:
        if key not in self.__dataclass_fields__:
            raise KeyError(key)
        return getattr(self, key)

    def __iter__(self) -> Iterator[str]:
        return (field.name for field in fields(self))

    def __len__(self) -> int:
        return len(fields(self))

    def __repr__(self) -> str:
        parts = (f"{name}={value!r}" for name, value in self.items() if not isinstance(value, np.ndarray))
        return f"{type(self).__name__}({', '.join(parts)})"


def to_numbers(values: ArrayLike) -> Floats:
    """Return values as floats, records by attributes; a flat array is one column."""
    try:
        array = np.asarray(values, np.float64)
    except (TypeError, ValueError):  # its message may quote a value
        raise DataError("the values are not numbers", fix="give numbers, NaN for a missing one") from None
    return array[:, None] if array.ndim == 1 else array


def pair_arrays(original: ArrayLike, released: ArrayLike) -> tuple[Floats, Floats]:
    """Return both tables as floats; raise unless they have the same shape."""
    x, y = to_numbers(original), to_numbers(released)
    require_pairs(x, y, "cell", "NaN")
    return x, y


def require_pairs(x: NDArray[Any], y: NDArray[Any], part: str, absent: str) -> None:
    """Raise unless two tables have the same shape and at least one `part`."""
    if x.shape != y.shape:
        fix = f"pair the records one by one; put {absent} where a record was dropped"
        raise DataError(f"the original has the shape {x.shape}, the release {y.shape}", fix=fix)
    if x.size == 0:
        raise NotApplicable(f"there is no {part} to compare")


def select_complete(table: ArrayLike, weight: ArrayLike | None = None) -> tuple[Floats, Floats | None]:
    """Return the records without missing values, with their weights; not applicable with fewer than two."""
    x, records = to_numbers(table), None if weight is None else np.asarray(weight, np.float64)
    missing = np.isnan(x).any(axis=1)
    if missing.any():
        x, records = x[~missing], None if records is None else records[~missing]
    if (len(x) if records is None else records.sum()) < 2:
        raise NotApplicable("there are fewer than two complete records")
    return x, records


def check_sizes(sizes: ArrayLike) -> Ints:
    """Return class sizes as integers; raise unless all are at least 1."""
    array = np.asarray(sizes)
    if array.ndim != 1 or array.dtype.kind not in "iu" or (array.size and array.min() < 1):
        raise DataError("class sizes are not a list of whole numbers from 1 up", fix="count the records of each class")
    if array.size == 0:
        raise NotApplicable("there is no released record")
    return array.astype(np.int64, copy=False)


def check_labels(classes: ArrayLike) -> Ints:
    """Return one class label per record as integers; -1 is a dropped record."""
    array = np.asarray(classes)
    if array.ndim != 1 or array.dtype.kind not in "iu" or (array.size and array.min() < -1):
        raise DataError("classes are not one label per record", fix="give whole numbers, -1 for a dropped record")
    return array.astype(np.int64, copy=False)


def check_codes(values: ArrayLike) -> Ints:
    """Return codes of categories as integers, records by attributes; -1 is a missing value."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu" or array.ndim not in (1, 2) or (array.size and array.min() < -1):
        raise DataError("categories are not codes", fix="give whole numbers from 0 up, -1 for a missing value")
    array = array.astype(np.int64, copy=False)
    return array[:, None] if array.ndim == 1 else array


def count_class_sizes(classes: Ints, weight: Ints | None = None) -> Ints:
    """Return the size of the class of each record; 0 for a dropped record."""
    if classes.size == 0:
        return classes
    sizes = np.bincount(classes + 1, weight).astype(np.int64)
    sizes[0] = 0
    return np.asarray(sizes[classes + 1], np.int64)


def sum_columns(values: Floats, weight: ArrayLike | None = None) -> Floats:
    """Return the sum of each column without missing values; `weight` is the number of records of each row.

    >>> sum_columns(np.array([[1.0], [np.nan], [2.0]]), weight=[1, 1, 3]).tolist()
    [7.0]
    """
    weighted = values if weight is None else values * np.asarray(weight, np.float64)[:, None]
    sums = weighted.sum(axis=0)  # without missing values this suffices, and needs no copy
    return np.asarray(sums if np.isfinite(sums).all() else np.nansum(weighted, axis=0), np.float64)


def count_filled(known: Flags, weight: ArrayLike | None = None) -> Floats:
    """Return the number of records with a value in each column."""
    counted = known.sum(axis=0) if weight is None else np.asarray(weight, np.float64) @ known
    return np.asarray(counted, np.float64)


HASH_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio, not even: spreads neighbours
HASH_SHIFT = np.uint64(29)


def group_rows(table: NDArray[np.generic]) -> tuple[Ints, Ints]:
    """Return the class of each row (rows with the same values share one) and the first row of each class.

    Classes are in the order of the values. Integers that fit into one 62-bit key are sorted once. Otherwise the columns
    are added one by one: each splits the classes so far.

    >>> group_rows(np.array([[1, 5], [0, 5], [1, 5]]))[0].tolist()
    [1, 0, 1]
    """
    if (keys := _pack_rows(table)) is not None:
        _, first, group = np.unique(keys, return_index=True, return_inverse=True)
        return group.astype(np.int64, copy=False), first.astype(np.int64, copy=False)
    group = np.zeros(len(table), np.int64)
    for j in range(table.shape[1]):
        values, code = np.unique(table[:, j], return_inverse=True)
        _, group = np.unique(group * len(values) + code, return_inverse=True)
    first = np.full(int(group.max(initial=-1)) + 1, len(group), np.int64)
    np.minimum.at(first, group, np.arange(len(group)))
    return group.astype(np.int64, copy=False), first


def _pack_rows(table: NDArray[np.generic]) -> Ints | None:
    """Return each row of integers as one integer, in the same order; None if 62 bits do not suffice."""
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


def group_equal_rows(columns: Sequence[NDArray[Any]], rows: NDArray[np.bool_] | None = None) -> tuple[Ints, Ints]:
    """Return the same as `group_rows`, with classes in any order, by one sort of hashes.

    Missing numbers are equal. `rows` marks the rows to group, all by default. If two different rows share a hash,
    `group_rows` is used instead.

    >>> group, first = group_equal_rows([np.array([1.0, np.nan, 1.0, np.nan]), np.array([5, 5, 5, 5])])
    >>> len(first), bool(group[0] == group[2]), bool(group[1] == group[3])
    (2, True, True)
    """
    if rows is not None and rows.all():
        rows = None
    _, first, group = np.unique(_hash_rows(columns, rows), return_index=True, return_inverse=True)
    if all(np.array_equal(each[first][group], each) for each in _to_bits(columns, rows)):
        return group.astype(np.int64, copy=False), first.astype(np.int64, copy=False)
    return group_rows(np.column_stack([*_to_bits(columns, rows)]))


def _to_bits(columns: Sequence[NDArray[Any]], rows: NDArray[np.bool_] | None) -> Iterator[NDArray[np.uint64]]:
    """Yield each column as bits that are equal if and only if the numbers are."""
    for column in columns:
        values = column if rows is None else column[rows]
        if values.dtype.kind != "f":
            yield values.astype(np.int64).view(np.uint64)
            continue
        values = values.astype(np.float64) + 0.0  # makes -0.0 equal to 0.0
        values[np.isnan(values)] = np.nan
        yield values.view(np.uint64)


def _hash_rows(columns: Sequence[NDArray[Any]], rows: NDArray[np.bool_] | None) -> NDArray[np.uint64]:
    hashes = np.zeros(len(columns[0]) if rows is None else int(rows.sum()), np.uint64)
    for bits in _to_bits(columns, rows):
        hashes ^= bits
        hashes *= HASH_MULTIPLIER
        hashes ^= hashes >> HASH_SHIFT
    return hashes


def compute_quantiles(ranked: Floats, shares: Sequence[float] | Floats, records: NDArray[Any] | None = None) -> Floats:
    """Return the weighted quantiles of sorted values, interpolated as `numpy.quantile` does.

    `ranked` are the values in ascending order, `records` the number of records of each, 1 by default.

    >>> compute_quantiles(np.array([1.0, 3.0]), [0.5, 0.75], records=np.array([3, 1])).tolist()
    [1.0, 1.5]
    """
    cumulative = None if records is None else np.cumsum(records)
    last = (len(ranked) if cumulative is None else cumulative[-1]) - 1
    rank = np.asarray(shares, np.float64) * float(last)
    below = np.floor(rank)

    def value_at(ranks: Floats) -> Floats:
        ranks = np.minimum(ranks, last)
        return ranked[ranks.astype(np.intp) if cumulative is None else np.searchsorted(cumulative, ranks, side="right")]

    low, high = value_at(below), value_at(below + 1)
    return np.asarray(low + (high - low) * (rank - below), np.float64)
