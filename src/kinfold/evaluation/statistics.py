"""Statistics before and after: what an analyst of the release gets to see, beside what the original says.

    numbers        mean, variance and quantiles of each continuous or date column, of either table by itself
    correlations   of the columns that are numbers in both tables; null with a constant column
    frequencies    of each other column: the most frequent values of either table, and the rest

Rows need not be paired. Dates are written as such, their variance is in days².
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.evaluation.pairing import Tables
from kinfold.evaluation.sheet import answered
from kinfold.measures import NotApplicable
from kinfold.measures.utility import SHOWN, ColumnSummary, correlations, summary
from kinfold.request.binding import BoundColumn
from kinfold.request.encoding import as_text
from kinfold.rows.schema import Kind

Floats: TypeAlias = NDArray[np.float64]

MOST_VALUES = 50  # of a column of categories, the most frequent; a column of names would fill the audit


@dataclass(frozen=True)
class Statistics:
    """By column what it says before and after, as plain values; numbers, correlations and frequencies."""

    numbers: dict[str, dict[str, Any]]
    correlations: dict[str, Any]
    frequencies: dict[str, dict[str, Any]]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {"numbers": self.numbers, "correlations": self.correlations, "frequencies": self.frequencies}


def statistics(tables: Tables, columns: Sequence[BoundColumn]) -> Statistics:
    """Describe the columns of both tables."""
    numbers: dict[str, dict[str, Any]] = {}
    frequencies: dict[str, dict[str, Any]] = {}
    matrices: list[tuple[Floats, Floats]] = []
    names: list[str] = []
    for bound in columns:
        before, after = (_values(tables, frame, bound) for frame in (tables.original, tables.released))
        if isinstance(before, np.ndarray):
            numbers[bound.name] = {"before": _told(bound, before), "after": _told(bound, after)}
        if isinstance(before, np.ndarray) and isinstance(after, np.ndarray):
            matrices.append((before, after))
            names.append(bound.name)
        elif isinstance(before, Counter):
            frequencies[bound.name] = _counted(before, after)
    return Statistics(numbers, _correlated(names, matrices), frequencies)


def _values(tables: Tables, frame: Any, bound: BoundColumn) -> Floats | Counter[str | None] | None:
    """Return a column as numbers or as counts of values; None where the release says ranges instead of numbers."""
    column = tables.engine.schema(frame)[bound.name]
    readable = bound.kind.measured and (column.storage.kind.measured or bool(column.date_format))
    if bound.kind.measured and not readable:
        return None
    values = tables.engine.collect(frame, {bound.name: column if readable else None}).column(0)
    if not readable:
        return Counter({pair["values"]: pair["counts"] for pair in values.value_counts().to_pylist()})
    found = values.to_numpy(zero_copy_only=False).astype(np.float64)
    return np.where(np.isfinite(found), found, np.nan)


def _told(bound: BoundColumn, values: Any) -> dict[str, Any] | None:
    if not isinstance(values, np.ndarray):
        return None
    try:
        found: ColumnSummary = answered(lambda: summary(values))
    except NotApplicable:
        return None

    def written(number: float) -> float | str:
        return as_text(bound, number) if bound.kind is Kind.DATE else number

    quantiles = {f"{share:g}": written(value) for share, value in zip(SHOWN, found.quantiles, strict=True)}
    facts = {"count": found.count, "missing": found.missing, "mean": written(found.mean), "variance": found.variance}
    return {**facts, "quantiles": quantiles}


def _correlated(names: list[str], matrices: list[tuple[Floats, Floats]]) -> dict[str, Any]:
    if len(names) < 2:
        return {"columns": [], "before": [], "after": []}
    sides = (np.column_stack([pair[side] for pair in matrices]) for side in (0, 1))
    before, after = (_matrix(side) for side in sides)
    return {"columns": names, "before": before, "after": after}


def _matrix(table: Floats) -> list[list[float | None]]:
    try:
        found = answered(lambda: correlations(table))
    except NotApplicable:
        found = np.full((table.shape[1], table.shape[1]), np.nan)
    return [[None if np.isnan(value) else float(value) for value in row] for row in found]


def _counted(before: Counter[str | None], after: Any) -> dict[str, Any]:
    most = {value: before[value] + after[value] for value in {*before, *after} if value is not None}
    values = sorted(most, key=lambda value: (-most[value], value))[:MOST_VALUES]
    sides = {"before": before, "after": after}
    return {
        "values": values,
        **{when: [side[value] for value in values] for when, side in sides.items()},
        "rest": {when: _rest(side, values) for when, side in sides.items()},
        "missing": {when: side[None] for when, side in sides.items()},
    }


def _rest(side: Counter[str | None], values: list[str]) -> int:
    return side.total() - side[None] - sum(side[value] for value in values)
