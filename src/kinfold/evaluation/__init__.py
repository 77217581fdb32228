"""Measurement: what a release costs and what it risks, from the original rows and the released ones side by side.

Every measure of the contract has its key; one that does not apply is null, with the reason under `notes`. What else was
asked for has its key beside them, and so have the measures that only `measures = "all"` computes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from kinfold.evaluation.answers import answer
from kinfold.evaluation.cautions import amounts_of, dominance, dominance_told, protected_by_k_alone, singling
from kinfold.evaluation.confidential_by_class import held_in
from kinfold.evaluation.drawn_records import Drawn, exact_errors
from kinfold.evaluation.loss import loss, loss_of_all
from kinfold.evaluation.pairing import Pair, Tables
from kinfold.evaluation.plausibility import FAR, Plausibility, far_plausibility, plausibility
from kinfold.evaluation.questions import Questions
from kinfold.evaluation.record_risk import RecordRisk, record_risk
from kinfold.evaluation.risk import Shown, risk, risk_before
from kinfold.evaluation.sheet import notes_of, remembered, told_of_sample
from kinfold.evaluation.statistics import Statistics, statistics
from kinfold.measures import NotApplicable
from kinfold.measures.disclosure import SizeCounts
from kinfold.models.verdict import Verdict
from kinfold.request.binding import BoundPolicy
from kinfold.request.encoding import Attribute
from kinfold.rows.displayed import Displayed
from kinfold.rows.schema import Role
from kinfold.rows.text_warnings import formulas, look_alikes

__all__ = ["Measures", "Questions", "RecordRisk", "Statistics", "Tables", "measure_release"]

NOTHING = Statistics({}, {"columns": [], "before": [], "after": []}, {})


@dataclass(frozen=True)
class Measures(Displayed):
    """Risk and loss as in the JSON contract, statistics before and after, and what to look at before it leaves.

    `risk_by_record` has the risk of each original record, where original and release can be paired; no file holds it.
    """

    values: Mapping[str, Any]
    statistics: Statistics = NOTHING
    warnings: tuple[str, ...] = field(default=())
    by_record: Callable[[], RecordRisk] | None = field(default=None, repr=False)

    @cached_property
    def risk_by_record(self) -> RecordRisk | None:
        """The risk of each original record, found out when it is asked for."""
        return None if self.by_record is None else self.by_record()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nested by `risk` and `loss`."""
        return dict(self.values)

    def __getitem__(self, key: str) -> Any:
        return self.values[key]

    def display(self) -> tuple[str, dict[str, Any]]:
        """Return what a notebook shows."""
        return "measures", self.to_dict()

    def __repr__(self) -> str:
        lost, risk = self.values["loss"]["overall"], self.values["risk"]["prosecutor_max"]
        told = "loss unknown" if lost is None else f"{lost:.1%} lost"
        return f"<Measures: {told}, highest risk {'unknown' if risk is None else f'{risk:.1%}'}>"

    def with_risk(self, key: str, value: Any, note: str) -> Measures:
        """Return the measures with one more measure of risk, and a sentence about it."""
        values = {**self.values, "risk": {**self.values["risk"], key: value}, "notes": [*self.values["notes"], note]}
        return replace(self, values=values)

    def paired_by(self, how: str) -> Measures:
        """Return the measures with how rows of both tables were paired."""
        return replace(self, values={"pairing": how, **self.values})

    def warned(self, *warnings: str) -> Measures:
        """Return the measures with more to look at."""
        values = {**self.values, "notes": [*warnings, *self.values["notes"]]}
        return replace(self, values=values, warnings=(*warnings, *self.warnings))


def measure_release(
    tables: Tables,
    policy: BoundPolicy,
    verdict: Verdict,
    attributes: Sequence[Attribute],
    questions: Questions | None = None,
) -> Measures:
    """Measure a release; `attributes` are the original columns that losses are measured over."""
    asked = questions or Questions()
    asked = asked.completed(policy.request.report)
    quasi = [column.name for column in policy.of(Role.QUASI)]
    sizes = tables.engine.tally(tables.released, quasi, {}).sizes
    pair = tables.rows if isinstance(tables.rows, str) else tables.paired(attributes)
    known = pair if isinstance(pair, str) else pair.only(quasi)  # what an attacker knows
    beside = remembered(lambda: tables.unpaired(attributes).only(quasi) if isinstance(known, str) else known)
    shown = Shown(sizes, held_in(tables, tables.released, policy, lambda: beside().masked[beside().kept]))
    lost = loss(pair, sizes, max(policy.rows - verdict.records, 0), tables.recorded.get("loss", {}), every=asked.every)
    seed, recorded = policy.request.method.seed, tables.recorded.get("risk", {})
    risked = risk(known, shown, policy.request.privacy.k, asked, seed, recorded)
    if isinstance(tables.rows, Drawn) and not isinstance(pair, str):
        exact = loss_of_all(lost, exact_errors(tables.engine, tables.rows, pair.compared))
        told_of_sample(tables.rows.told, exact, risked, lost)
    answer(asked, tables, policy, beside, (risked, lost))
    warnings = tuple(_warnings(tables, policy, known))
    odd = _odd(tables, policy, beside)
    before = risk_before(_shown_before(tables, policy, known, beside))  # last: of large counts the latest is held
    sections = {
        "measures": asked.measures,  # which set of them
        "risk": risked.values,
        "risk_before": before.values,
        "loss": lost.values,
        "plausibility": odd.values,
        "notes": [*warnings, *odd.notes, *notes_of(risked, before, lost)],
    }
    kept = [column for column in policy.columns if column.role is not Role.IDENTIFIER]
    paired = not isinstance(known, str) and known.far is None
    by_record = partial(record_risk, known, tables.rows) if paired else None  # type: ignore[arg-type]
    return Measures({**_counted(policy, verdict), **sections}, statistics(tables, kept), warnings, by_record)


def _counted(policy: BoundPolicy, verdict: Verdict) -> dict[str, Any]:
    """Return what was counted on the release, and how much of the original is not in it."""
    return {
        "records": policy.rows,
        "released": verdict.records,
        "suppressed": policy.rows - verdict.records,
        "classes": verdict.classes,
        "k": verdict.k,
        "l": dict(verdict.l),
        "t": dict(verdict.t),
    }


def _shown_before(tables: Tables, policy: BoundPolicy, known: Pair | str, beside: Callable[[], Pair]) -> Shown:
    """Return what the original would show if it were released as it is."""
    if isinstance(tables.rows, Drawn):
        return _shown_far(tables, policy)
    if isinstance(known, str):
        quasi = [column.name for column in policy.of(Role.QUASI)]
        sizes = tables.engine.tally(tables.original, quasi, {}).sizes
    else:
        sizes = np.bincount(known.initial, known.weight).astype(np.int64)
    return Shown(sizes, held_in(tables, tables.original, policy, lambda: beside().initial))


def _shown_far(tables: Tables, policy: BoundPolicy) -> Shown:
    """Return what a far original would show: how many of its classes have each size, and no more."""

    def unknown() -> Any:
        raise NotApplicable(FAR)

    counted = tables.engine.sizes(tables.original, [column.name for column in policy.of(Role.QUASI)])
    sizes, classes = (np.array(each, np.int64) for each in zip(*counted, strict=True))
    columns = {column.name: unknown for column in policy.of(Role.CONFIDENTIAL)}
    return Shown(SizeCounts(sizes, classes, sizes * classes), columns)


def _odd(tables: Tables, policy: BoundPolicy, beside: Callable[[], Pair]) -> Plausibility:
    """Return what is not plausible; nothing can be said where the release has more rows than its original."""
    others = [c.name for c in policy.columns if c.role in (Role.CONFIDENTIAL, Role.OTHER) and not c.kind.measured]
    if tables.drawn is not None:
        return far_plausibility(tables, beside())
    try:
        return plausibility(tables, beside(), others)
    except NotApplicable as nothing:
        return Plausibility({}, (f"plausibility: {nothing}",))


def _warnings(tables: Tables, policy: BoundPolicy, known: Pair | str) -> list[str]:
    large = [] if isinstance(known, str) else list(dominance(known))
    if tables.drawn is not None:
        named = tables.drawn.whole.dominant.keys() if isinstance(known, str) else amounts_of(known).keys()
        counted = {name: counts for name, counts in tables.drawn.whole.dominant.items() if name in named}
        large = [told for name, counts in counted.items() for told in dominance_told(name, *counts)]
    others = [column.name for column in policy.of(Role.OTHER)]
    alike = look_alikes(tables.engine, tables.original, policy.compared)
    safe = policy.request.output.spreadsheet_safe
    bare = protected_by_k_alone(tables.engine, tables.released, policy)
    odd = formulas(tables.engine, tables.released, safe)
    return [*bare, *large, *singling(tables, [column.name for column in policy.of(Role.QUASI)], others), *alike, *odd]
