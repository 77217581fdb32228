"""Description: the facts of a release, gathered from its rows for the two report pages.

The public page is gathered from the released rows alone, down to the edges of its charts, but for two numbers: how many
records were left out, and the share of the information that was lost in all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kinfold import __version__
from kinfold.evaluation import Measures
from kinfold.evaluation.cautions import protected_by_k_alone
from kinfold.evaluation.value_counts import MOST, Numbers, value_counts
from kinfold.hierarchy import TOP
from kinfold.release.release import Release
from kinfold.release.report.changes import moved, related
from kinfold.release.report.distributions import bins, edges_of, labels_of, shares
from kinfold.release.report.facts import Bins, ColumnFacts, Facts, Shares
from kinfold.release.report.label_order import order_of
from kinfold.request.binding import BoundColumn
from kinfold.request.encoding import as_text
from kinfold.request.preparation import in_words as recoded_in_words
from kinfold.request.rules.counting import in_words
from kinfold.rows.databases.address import DatabaseAddress
from kinfold.rows.formulas import quoted
from kinfold.rows.recoding import Drop, Keep, Replace
from kinfold.rows.schema import AS_TEXT, Column, Kind, Reading, Role
from kinfold.rows.tally import Tally
from kinfold.rows.text_warnings import formulas, look_alikes


class Contents:
    """The columns of a release, each read once for both pages."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self.schema = release.engine.schema(release.released)
        self.before = release.engine.schema(release.original)
        self._values: dict[tuple[str, bool], Numbers | Counter[str | None]] = {}
        self._singling: dict[str, float] = {}

    def values(self, bound: BoundColumn, *, original: bool = False) -> Numbers | Counter[str | None]:
        """Return the values of a column and how many records hold each."""
        asked = bound.name, original
        if asked not in self._values:
            engine, drawn = self.release.engine, self.release.drawn
            frame = self.release.original if original else self.release.released
            some = drawn.standing(engine, frame, original=original) if drawn else None
            self._values[asked] = value_counts(engine, frame, bound, some)
        return self._values[asked]

    def singling(self, bound: BoundColumn, column: Column) -> float:
        """Return the share of records that a column singles out."""
        if bound.name not in self._singling:
            self._singling[bound.name] = _singling(self.release, bound, column)
        return self._singling[bound.name]


def describe(contents: Contents, *, internal: bool) -> Facts:
    """Gather what a page shows; a public one holds nothing about the original but two numbers."""
    release = contents.release
    verdict, plan = release.verdict, release.plan
    columns = tuple(_column(contents, column, internal) for column in release.policy.columns)
    shown = columns if internal else tuple(c for c in columns if c.released is not None)
    tally = release.engine.tally(release.released, release.terms.quasi, {})
    return Facts(
        title=release.source.name if internal and isinstance(release.source, Path | DatabaseAddress) else "Release",
        findings=(*verdict.findings, *verdict.people),
        records=release.policy.rows if internal else None,
        released=verdict.records,
        suppressed=release.policy.rows - verdict.records,
        classes=verdict.classes,
        class_sizes=tuple(sorted(Counter(tally.sizes.tolist()).items())),
        method=plan.method,
        method_reason=plan.reason if internal else _within(plan.gap),
        columns=shown,
        version=__version__,
        measures=release.measures.to_dict() if internal else {},
        notes=_notes(release) if internal else (),
        warnings=() if internal else (*plan.told, *_oddities(release)),
        internal=internal,
        lost=release.measures["loss"]["overall"],
        starred=_starred(release, tally),
        **(_compared(release.measures, in_words([r for r in release.rules if r.worse])[0]) if internal else {}),
    )


def _starred(release: Release, tally: Tally) -> int:
    """Count the released records that were suppressed: nothing but stars."""
    if release.policy.request.output.suppressed != "star":
        return 0
    stars = np.logical_and.reduce([np.asarray(values) == TOP for values in tally.keys.values()])
    return int(tally.sizes[stars].sum())


def _oddities(release: Release) -> tuple[str, ...]:
    """Say what a recipient should mind of the rows as released; the internal page says it of the original as well."""
    engine, frame = release.engine, release.released
    odd = (*look_alikes(engine, frame, release.policy.compared), *formulas(engine, frame, safe=False))
    return (*protected_by_k_alone(engine, frame, release.policy), *odd)


def _within(gap: float | None) -> str:
    return "" if gap is None else f"within {gap:.2%} of the least information loss possible at this k"


def _compared(measures: Measures, worse: Sequence[str]) -> dict[str, Any]:
    """Return what is known by looking at the original."""
    found = measures.statistics
    return {
        "cautions": (*worse, *measures.warnings),
        "moved": moved(found.numbers),
        "related": related(found.correlations),
    }


def _notes(release: Release) -> tuple[str, ...]:
    inferred = [
        f"'{c.name}' was taken as {c.kind}" for c in release.policy.columns if c.inferred and c.role is Role.QUASI
    ]
    return (*release.plan.notes, *inferred)


def _column(contents: Contents, bound: BoundColumn, internal: bool) -> ColumnFacts:
    treatment = contents.release.plan.recoding.columns[bound.name]
    column = contents.schema.get(bound.name)
    inferred = internal and bound.inferred  # a recipient need not know how the policy was written
    facts = {"name": bound.name, "role": str(bound.role), "kind": str(bound.kind), "inferred": inferred}
    if isinstance(treatment, Drop) or column is None:
        return ColumnFacts(**facts, treatment="removed")  # type: ignore[arg-type]
    recoded = bound.name in contents.release.prepared.changed
    compared = internal and (isinstance(treatment, Replace) or recoded)
    before = contents.values(bound, original=True) if compared else None
    after = contents.values(bound)
    order = order_of(bound, {value for side in (before, after) if isinstance(side, Counter) for value in side if value})
    if treatment.quotes:  # shown as they are written, on both sides
        order = order and tuple(map(quoted, order))
        before = _quoted(before) if isinstance(before, Counter) else before
    released, original = _distributions(bound, after, before, order)
    return ColumnFacts(
        **facts,  # type: ignore[arg-type]
        treatment=", then ".join(
            part for part in (recoded_in_words(bound.request), treatment_of(bound, treatment)) if part
        ),
        released=released,
        original=original,
        singles_out=contents.singling(bound, column) if isinstance(treatment, Keep) else 0.0,
        **(_lost(contents.release.measures, bound.name) if internal else {}),  # type: ignore[arg-type]
    )


def _lost(measures: Measures, name: str) -> dict[str, float | None]:
    """Return what a column has lost, and how many of its cells changed; nothing where it was not measured."""
    lost, changed = (measures["loss"][part] or {} for part in ("by_column", "changed"))
    return {"lost": lost.get(name), "changed": changed.get(name)}


def treatment_of(bound: BoundColumn, treatment: Keep | Replace) -> str:
    """Say in a few words what was done to a column."""
    if isinstance(treatment, Keep):
        return "released as it is"
    if bound.suppressed:
        return "left empty where its class differs, or released as it is"
    if bound.average == "generalize":
        how = "its hierarchy" if bound.request.hierarchy else "ranges"
        return f"replaced by the narrowest statement that is true of its whole class, by {how}"
    return f"replaced by the {bound.average.replace('-', ' ')} of its class"


def _quoted(texts: Counter[str | None]) -> Counter[str | None]:
    found: Counter[str | None] = Counter()
    for value, records in texts.items():
        found[value and quoted(value)] += records
    return found


def _is_readable(bound: BoundColumn, column: Column) -> bool:
    return bound.kind.measured and (column.storage.kind.measured or bool(column.date_format))


def _distributions(
    bound: BoundColumn, after: Any, before: Any, order: Sequence[str] | None
) -> tuple[Bins | Shares, Bins | Shares | None]:
    """Count both sides over the same edges, or the same labels, where they are of one sort."""
    known = [column.finite for column in (after, before) if isinstance(column, Numbers)]
    texts = [column for column in (after, before) if isinstance(column, Counter)]
    edges, written = edges_of(*known), partial(_day, bound) if bound.kind is Kind.DATE else None
    labels = labels_of(texts, order)

    def counted(column: Any) -> Bins | Shares:
        if isinstance(column, Numbers):
            return bins(column.finite, column.records, edges, written)
        return shares(column, labels)

    return counted(after), None if before is None else counted(before)


def _day(bound: BoundColumn, edge: float) -> str:
    """Write an edge of a chart as a date; the calendar ends where four digits of a year do."""
    first, last = (float((end - date(1970, 1, 1)).days) for end in (date.min, date.max))
    return as_text(bound, min(max(edge, first), last))


def _singling(release: Release, bound: BoundColumn, column: Column) -> float:
    """Return the share of records whose value no other record holds, told apart exactly: charts have doubles only."""
    if release.drawn is not None or column.distinct > MOST:  # there may be a value for each record
        return release.engine.alone(release.released, [bound.name]) / max(release.verdict.records, 1)
    spread = release.engine.tally(release.released, (), {bound.name: _reading(bound, column)}).spreads[bound.name]
    return float((spread.totals() == 1).sum() / max(spread.totals().sum(), 1))


def _reading(bound: BoundColumn, column: Column) -> Reading:
    if not _is_readable(bound, column) or column.not_finite:
        return AS_TEXT
    return Reading("moment", column.date_format) if bound.kind is Kind.DATE else Reading("number")
