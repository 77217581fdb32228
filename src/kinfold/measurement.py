"""Measurement: what a release costs and what it risks, from the original rows and the released ones side by side.

Every measure of the contract has its key; one that does not apply is null, with the reason under `notes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.binding import BoundPolicy
from kinfold.engines import Engine
from kinfold.measures import NotApplicable
from kinfold.measures.continuous import normalized_sse, sse, sse_ratio, sst, standardized
from kinfold.measures.generalized import average_class_size, discernibility
from kinfold.planning import Plan
from kinfold.release import Verdict
from kinfold.schema import Column, Role

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Measures:
    """Risk and loss as in the JSON contract."""

    values: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nested by `risk` and `loss`."""
        return dict(self.values)

    def __getitem__(self, key: str) -> Any:
        return self.values[key]


@dataclass(frozen=True, eq=False)
class Pair:
    """Original and released rows: numbers of the measured quasi-identifiers, column by column, and class sizes."""

    sizes: NDArray[np.int64]
    records: int  # of the original
    original: Floats | None = None  # records by measured quasi-identifiers; None where rows cannot be paired
    released: Floats | None = None
    reason: str = ""  # why there are no pairs


@dataclass
class _Sheet:
    """Values and notes, filled one measure at a time."""

    values: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def write(self, key: str, formula: Callable[[], Any]) -> None:
        try:
            self.values[key] = formula()
        except NotApplicable as nothing:
            self.values[key] = None
            self.notes.append(f"{key}: {nothing}")


def compare_rows(engine: Engine, pair: tuple[Any, Any], policy: BoundPolicy, verdict: Verdict, plan: Plan) -> Measures:
    """Measure a release before its rows are reordered: released row i is the i-th row that was kept."""
    return _measures(engine, pair, policy, verdict, np.flatnonzero(plan.recoding.kept))


def compare_tables(engine: Engine, pair: tuple[Any, Any], policy: BoundPolicy, verdict: Verdict) -> Measures:
    """Measure two tables whose rows are paired by position; where they cannot be, say so."""
    if verdict.records != policy.rows:
        reason = f"the original has {policy.rows} rows and the release {verdict.records}: they cannot be paired"
        return _measures(engine, pair, policy, verdict, None, reason)
    return _measures(engine, pair, policy, verdict, np.arange(policy.rows))


def _measures(
    engine: Engine,
    pair: tuple[Any, Any],
    policy: BoundPolicy,
    verdict: Verdict,
    rows: NDArray[np.intp] | None,
    reason: str = "",
) -> Measures:
    quasi = [column.name for column in policy.of(Role.QUASI)]
    sizes = engine.tally(pair[1], quasi, {}).sizes
    original, released, reason = _numbers(engine, pair, policy, rows) if rows is not None else (None, None, reason)
    loss, notes = _loss(Pair(sizes, policy.rows, original, released, reason))
    return Measures(
        {
            "records": policy.rows,
            "released": verdict.records,
            "suppressed": policy.rows - verdict.records,
            "classes": verdict.classes,
            "k": verdict.k,
            "l": dict(verdict.l),
            "t": dict(verdict.t),
            "loss": loss,
            "notes": notes,
        }
    )


def _numbers(
    engine: Engine, pair: tuple[Any, Any], policy: BoundPolicy, rows: NDArray[np.intp]
) -> tuple[Floats | None, Floats | None, str]:
    """Return the measured quasi-identifiers of both tables; rows that were left out have lost every value."""
    after = engine.schema(pair[1])
    names = [c.name for c in policy.of(Role.QUASI) if c.kind.measured and _is_number(after[c.name])]
    if not names:
        return None, None, "no continuous or date quasi-identifier is released as numbers"
    original = _matrix(engine.collect(pair[0], {name: policy[name].column for name in names}))
    released = np.full(original.shape, np.nan)
    released[rows] = _matrix(engine.collect(pair[1], {name: after[name] for name in names}))
    return original, released, ""


def _is_number(column: Column) -> bool:
    return column.storage.kind.measured or bool(column.date_format)


def _matrix(table: Any) -> Floats:
    return np.column_stack([column.to_numpy(zero_copy_only=False).astype(np.float64) for column in table.columns])


def _loss(pair: Pair) -> tuple[dict[str, Any], list[str]]:
    sheet = _Sheet()

    def numbers(formula: Callable[[Floats, Floats], float]) -> Callable[[], float]:
        def answer() -> float:
            if pair.original is None or pair.released is None:
                raise NotApplicable(pair.reason)
            return formula(pair.original, pair.released)

        return answer

    sheet.write("sse", numbers(lambda x, y: sse(*standardized(x, y))))
    sheet.write("sst", numbers(lambda x, y: sst(standardized(x, y)[0])))
    sheet.write("sse_ratio", numbers(lambda x, y: sse_ratio(*standardized(x, y))))
    sheet.write("normalized_sse", numbers(normalized_sse))
    sheet.write("average_class_size", lambda: average_class_size(pair.sizes))
    sheet.write("discernibility", lambda: discernibility(pair.sizes))
    return sheet.values, sheet.notes
