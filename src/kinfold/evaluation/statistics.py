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
from kinfold.evaluation.value_counts import Numbers, value_counts
from kinfold.measures import NotApplicable
from kinfold.measures.utility import SHOWN, ColumnSummary, correlated, summary
from kinfold.request.binding import BoundColumn
from kinfold.request.encoding import as_text
from kinfold.rows.engines import Engine
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
    for bound in columns:
        before, after = (_counts(tables, bound, original=original) for original in (True, False))
        if bound.kind.measured and isinstance(before, Numbers):
            numbers[bound.name] = {"before": _told(bound, before), "after": _told(bound, after)}
        elif isinstance(before, Counter) and not bound.kind.measured:
            frequencies[bound.name] = _counted(before, after)
    both = [name for name in numbers if _in_both(tables, name)]
    return Statistics(numbers, _correlated(tables, both), frequencies)


def _counts(tables: Tables, bound: BoundColumn, *, original: bool) -> Numbers | Counter[str | None]:
    frame = tables.original if original else tables.released
    some = tables.drawn.standing(tables.engine, frame, original=original) if tables.drawn else None
    return value_counts(tables.engine, frame, bound, some)


def _in_both(tables: Tables, name: str) -> bool:
    columns = (tables.engine.schema(frame)[name] for frame in (tables.original, tables.released))
    return all(column.storage.kind.measured or column.date_format for column in columns)


def _told(bound: BoundColumn, values: Numbers | Counter[str | None]) -> dict[str, Any] | None:
    if not isinstance(values, Numbers):
        return None  # the release says ranges instead
    try:
        found: ColumnSummary = answered(lambda: summary(values.finite, weight=values.records))
    except NotApplicable:
        return None

    def written(number: float) -> float | str:
        return as_text(bound, number) if bound.kind is Kind.DATE else number

    quantiles = {f"{share:g}": written(value) for share, value in zip(SHOWN, found.quantiles, strict=True)}
    facts = {"count": found.count, "missing": found.missing, "mean": written(found.mean), "variance": found.variance}
    return {**facts, "quantiles": quantiles}


def _correlated(tables: Tables, names: list[str]) -> dict[str, Any]:
    if len(names) < 2:
        return {"columns": [], "before": [], "after": []}
    before, after = (_matrix(tables.engine, frame, names) for frame in (tables.original, tables.released))
    return {"columns": names, "before": before, "after": after}


def _matrix(engine: Engine, frame: Any, names: list[str]) -> list[list[float | None]]:
    """Return the correlations of the complete records; null with a column that is constant there."""
    count, _, covariances = engine.moments(frame, {name: engine.schema(frame)[name] for name in names})
    try:
        found = answered(lambda: correlated(count, covariances))
    except NotApplicable:
        found = np.full((len(names), len(names)), np.nan)
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
