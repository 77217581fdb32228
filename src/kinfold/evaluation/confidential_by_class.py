"""Confidential columns in their classes: by record, or, where tuples stand for records, as they were counted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.evaluation.pairing import Tables
from kinfold.evaluation.risk import InClasses
from kinfold.request.binding import BoundColumn, BoundPolicy
from kinfold.request.terms import reading_of
from kinfold.rows.schema import Column, Role

Ints: TypeAlias = NDArray[np.int64]
DAY = np.timedelta64(1, "D")


def held_in(
    tables: Tables, frame: Any, policy: BoundPolicy, classes: Callable[[], Ints]
) -> dict[str, Callable[[], InClasses]]:
    """Return how to find each confidential column: numbers where they are measured, else codes, -1 for null."""
    quasi = [column.name for column in policy.of(Role.QUASI)]
    confidential = policy.of(Role.CONFIDENTIAL)
    if tables.counted:
        return {column.name: partial(_counted, tables, frame, quasi, column) for column in confidential}
    return {column.name: partial(_by_record, tables, frame, column, classes) for column in confidential}


def _counted(tables: Tables, frame: Any, quasi: list[str], column: BoundColumn) -> InClasses:
    """Return a column as it was counted for the promises: nothing is counted again."""
    spread = tables.engine.tally(frame, quasi, {column.name: reading_of(column)}).spreads[column.name]
    if not _is_measured(column, tables.engine.schema(frame)[column.name]):
        return InClasses(spread.group, spread.code, spread.count)
    return InClasses(spread.group, _as_numbers(spread.values)[spread.code], spread.count)


def _as_numbers(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return exact values as doubles; moments as days."""
    if values.dtype.kind == "M":
        return np.asarray((values - np.datetime64(0, "D")) / DAY, np.float64)
    return np.array([np.nan if value is None else float(value) for value in values.tolist()], np.float64)


def _by_record(tables: Tables, frame: Any, column: BoundColumn, classes: Callable[[], Ints]) -> InClasses:
    found = tables.engine.schema(frame)[column.name]
    numeric = _is_measured(column, found)
    held = tables.engine.collect(frame, {column.name: found if numeric else None}).column(0)
    if numeric:
        return InClasses(classes(), held.to_numpy(zero_copy_only=False).astype(np.float64))
    encoded = held.combine_chunks().dictionary_encode()
    return InClasses(classes(), encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64))


def _is_measured(column: BoundColumn, found: Column) -> bool:
    return column.kind.measured and (found.storage.kind.measured or bool(found.date_format))
