"""Column hierarchies: what a policy asks for over the values of a column, and where each value stands in it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import DataError, Problem, plural
from kinfold.hierarchy import TOP, Hierarchy, by_dates, by_intervals, by_mask, by_rows, by_tree, read_arx
from kinfold.request.binding import BoundColumn
from kinfold.rows.categories import category
from kinfold.rows.schema import Role

Codes: TypeAlias = NDArray[np.int32]
Texts: TypeAlias = NDArray[Any]

WEEK = re.compile(r"[0-9]{4}-?W[0-9]{2}(?!-?[0-9]).*", re.DOTALL)  # without a day


def hierarchy_of(bound: BoundColumn, values: Sequence[str] | Texts) -> Hierarchy:
    """Build the hierarchy that the policy asks for over the values of a column."""
    spec, where = bound.request.hierarchy, f"the hierarchy of '{bound.name}'"
    assert spec is not None  # noqa: S101  callers ask only where there is one
    if not len(values) and (spec.levels, spec.tree, spec.file) == (None, None, None):
        return Hierarchy.of([("", TOP)])  # of nothing but nulls: there is nothing to generalize
    if spec.mask is not None:
        return by_mask(values, spec.mask, where, spec.sparse)
    if spec.intervals is not None:
        return by_intervals(_numeric(values, where), spec.intervals, spec.origin, where, (spec.bottom, spec.top))
    if spec.dates is not None:
        return by_dates(_iso(values, where), spec.dates, where)
    if spec.levels is not None:
        return by_rows(spec.levels, where)
    return by_tree(spec.tree, where) if spec.tree is not None else read_arx(Path(str(spec.file)))


def rows_of(bound: BoundColumn, hierarchy: Hierarchy, values: Texts) -> Codes:
    """Return the row of each value in the hierarchy; values that are not there are an error."""
    rows = hierarchy.index(values)
    missing = tuple(sorted(values[rows < 0]))
    if missing:
        every = plural(len(values), "category", "categories")
        what = f"the hierarchy of '{bound.name}' misses {len(missing)} of its {every}"
        raise DataError(Problem(what, "add them to the hierarchy", missing))
    return rows


def in_order(bound: BoundColumn, values: Texts) -> None:
    """Refuse categories that the declared order of a column does not have; texts, where it is a quasi-identifier."""
    same = str if bound.role is Role.QUASI else category
    known = {same(text) for text in bound.request.order or values}
    unknown = tuple(sorted({text for text in values if same(text) not in known}))
    if unknown:
        what = f"column '{bound.name}': {plural(len(unknown), 'category is', 'categories are')} not in its order"
        raise DataError(Problem(what, f"add them to columns.{bound.name}.order", unknown))


def _numeric(values: Sequence[str] | Texts, where: str) -> Sequence[str]:
    text = tuple(value for value in values if not _is_number(value))
    if text:
        what = f"{where}: {plural(len(text), 'category is no number', 'categories are not numbers')}"
        raise DataError(Problem(what, "intervals are for numbers", text))
    return list(values)


def _is_number(value: str) -> bool:
    try:
        return bool(np.isfinite(float(value)))
    except ValueError:
        return False


def _iso(values: Sequence[str] | Texts, where: str) -> Sequence[str]:
    other = tuple(value for value in values if not _is_date(value))
    if other:
        what = f"{where}: {plural(len(other), 'category is no date', 'categories are not dates')}"
        raise DataError(
            Problem(
                what,
                'say how they are written, source.dates = "%d.%m.%Y" (--dates), or write them as 2024-12-31',
                other,
            )
        )
    return list(values)


def _is_date(value: str) -> bool:
    """Whether a text names a day: a week of ISO 8601 has days of two months, or of two years."""
    try:
        return bool(datetime.fromisoformat(value)) and not WEEK.fullmatch(value)
    except ValueError:
        return False
