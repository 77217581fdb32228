"""What every measure takes and raises: the array types, the check that two tables are paired, and `NotApplicable`."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinfold.errors import DataError

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]


class NotApplicable(Exception):  # noqa: N818  not a fault: the question has no answer on this table
    """The measure has no meaning on these arrays; `reason` is a clause that a report can show."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def numbers(values: ArrayLike) -> Floats:
    """Return the values as floats, records by attributes; one column may come as a flat array."""
    array = np.asarray(values, np.float64)
    return array[:, None] if array.ndim == 1 else array


def paired(original: ArrayLike, released: ArrayLike) -> tuple[Floats, Floats]:
    """Return both tables as floats, after a check that record i of one is record i of the other."""
    x, y = numbers(original), numbers(released)
    require_pairs(x, y, "cell", "NaN")
    return x, y


def require_pairs(x: NDArray[Any], y: NDArray[Any], part: str, absent: str) -> None:
    """Raise unless two tables have the same shape and some part; `absent` stands where a record was dropped."""
    if x.shape != y.shape:
        raise DataError(
            f"the original has the shape {x.shape}, the released one {y.shape}",
            fix=f"pair the records one by one; put {absent} where a record was dropped",
        )
    if x.size == 0:
        raise NotApplicable(f"there is no {part} to compare")


def counts(sizes: ArrayLike) -> Ints:
    """Return class sizes as whole numbers from 1 up."""
    array = np.asarray(sizes)
    if array.ndim != 1 or array.dtype.kind not in "iu" or (array.size and array.min() < 1):
        raise DataError("class sizes are not a list of whole numbers from 1 up", fix="count the records of each class")
    if array.size == 0:
        raise NotApplicable("there is no released record")
    return array.astype(np.int64, copy=False)


def labels(classes: ArrayLike) -> Ints:
    """Return one class label per record as whole numbers; -1 is a record that was not released."""
    array = np.asarray(classes)
    if array.ndim != 1 or array.dtype.kind not in "iu" or (array.size and array.min() < -1):
        raise DataError("classes are not one label per record", fix="give whole numbers, -1 for a dropped record")
    return array.astype(np.int64, copy=False)


def codes(values: ArrayLike) -> Ints:
    """Return categories as whole numbers, records by attributes; -1 is a missing value."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu" or array.ndim not in (1, 2) or (array.size and array.min() < -1):
        raise DataError("categories are not codes", fix="give whole numbers from 0 up, -1 for a missing value")
    array = array.astype(np.int64, copy=False)
    return array[:, None] if array.ndim == 1 else array


def class_sizes(classes: Ints, weight: Ints | None = None) -> Ints:
    """Return for each record the number of records in its class; 0 for a record that was not released."""
    if classes.size == 0:
        return classes
    sizes = np.bincount(classes + 1, weight).astype(np.int64)  # labels need not be dense: unused ones count 0
    sizes[0] = 0
    return np.asarray(sizes[classes + 1], np.int64)


def total(values: Floats, weight: ArrayLike | None = None) -> Floats:
    """Add up each column, a missing value as nothing; `weight` is how many records each row stands for.

    >>> total(np.array([[1.0], [np.nan], [2.0]]), weight=[1, 1, 3]).tolist()
    [7.0]
    """
    weighed = values if weight is None else values * np.asarray(weight, np.float64)[:, None]
    found = weighed.sum(axis=0)  # where nothing is missing that is all, and takes no copy
    return np.asarray(found if np.isfinite(found).all() else np.nansum(weighed, axis=0), np.float64)


def filled(known: Flags, weight: ArrayLike | None = None) -> Floats:
    """Count the records that have a value in each column."""
    counted = known.sum(axis=0) if weight is None else np.asarray(weight, np.float64) @ known
    return np.asarray(counted, np.float64)
