"""Description: the facts of a release, gathered from its rows for the two report pages.

The public page is gathered from the released rows alone, down to the edges of its charts.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from kinfold import __version__
from kinfold.binding import BoundColumn
from kinfold.recoding import Drop, Keep, Replace
from kinfold.report.facts import Bins, ColumnFacts, Facts, Shares
from kinfold.report.gather import bins, edges_of, labels_of, shares
from kinfold.schema import Column, Kind, Role, Storage

if TYPE_CHECKING:
    from kinfold.flow import Release


def describe(release: Release, *, internal: bool) -> Facts:
    """Gather what a page shows; a public one holds nothing about the original."""
    verdict, plan = release.verdict, release.plan
    columns = tuple(_column(release, column, internal) for column in release.policy.columns)
    shown = columns if internal else tuple(c for c in columns if c.released is not None)
    sizes = release.engine.tally(release.released, release.terms.quasi, {}).sizes
    return Facts(
        title=release.source.name if internal and hasattr(release.source, "name") else "Release",
        findings=verdict.findings,
        records=release.policy.rows if internal else None,
        released=verdict.records,
        suppressed=release.policy.rows - verdict.records if internal else None,
        classes=verdict.classes,
        class_sizes=tuple(sorted(Counter(sizes.tolist()).items())),
        method=plan.method,
        method_reason=plan.reason if internal else "",
        columns=shown,
        version=__version__,
        measures=release.measures.to_dict() if internal else {},
        notes=_notes(release) if internal else (),
        internal=internal,
    )


def _notes(release: Release) -> tuple[str, ...]:
    inferred = [
        f"'{c.name}' was taken as {c.kind}" for c in release.policy.columns if c.inferred and c.role is Role.QUASI
    ]
    return (*release.plan.notes, *inferred)


def _column(release: Release, bound: BoundColumn, internal: bool) -> ColumnFacts:
    treatment = release.plan.recoding.columns[bound.name]
    facts = {"name": bound.name, "role": str(bound.role), "kind": str(bound.kind), "inferred": bound.inferred}
    if isinstance(treatment, Drop):
        return ColumnFacts(**facts, treatment="removed")  # type: ignore[arg-type]
    before = (
        _values(release, release.original, bound.column, bound) if internal and isinstance(treatment, Replace) else None
    )
    after = _values(release, release.released, release.engine.schema(release.released)[bound.name], bound)
    released, original = _distributions(bound, after, before)
    return ColumnFacts(
        **facts,  # type: ignore[arg-type]
        treatment=treatment_of(bound, treatment),
        released=released,
        original=original,
        singles_out=_singling(after) if isinstance(treatment, Keep) else 0.0,
    )


def treatment_of(bound: BoundColumn, treatment: Keep | Replace) -> str:
    """Say in a few words what was done to a column."""
    if isinstance(treatment, Keep):
        return "released as it is"
    if bound.average == "generalize":
        how = "its hierarchy" if bound.asked.hierarchy else "ranges"
        return f"replaced by the narrowest statement that is true of its whole class, by {how}"
    return f"replaced by the {bound.average.replace('-', ' ')} of its class"


def _values(release: Release, frame: Any, column: Column, bound: BoundColumn) -> Any:
    """Return a column as numbers where it can be read as such, else as text."""
    readable = bound.kind.measured and (column.storage.kind.measured or bool(column.date_format))
    table = release.engine.collect(frame, {bound.name: column if readable else None})
    if readable:
        return table.column(0).to_numpy(zero_copy_only=False).astype(np.float64)
    return table.column(0).to_pylist()


def _distributions(bound: BoundColumn, after: Any, before: Any) -> tuple[Bins | Shares, Bins | Shares | None]:
    if isinstance(after, np.ndarray):
        known = [column for column in (after, before) if isinstance(column, np.ndarray)]
        edges, text = edges_of(*known), _day(bound) if bound.kind is Kind.DATE else None
        return bins(after, edges, text), bins(before, edges, text) if isinstance(before, np.ndarray) else None
    columns = [after] if before is None or isinstance(before, np.ndarray) else [after, before]
    labels = labels_of(columns, bound.asked.order)
    original = (
        None
        if before is None
        else bins(before, edges_of(before))
        if isinstance(before, np.ndarray)
        else shares(before, labels)
    )
    return shares(after, labels), original


def _day(bound: BoundColumn) -> Any:
    unit = 1 if bound.column.storage is Storage.TIMESTAMP else 86400
    return lambda number: datetime.fromtimestamp(number * unit, UTC).strftime("%Y-%m-%d")


def _singling(values: Any) -> float:
    counts = Counter(values.tolist() if isinstance(values, np.ndarray) else values)
    return sum(1 for count in counts.values() if count == 1) / max(len(values), 1)
