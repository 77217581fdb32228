"""Measurement: what a release costs and what it risks, from the original rows and the released ones side by side.

Every measure of the contract has its key; one that does not apply is null, with the reason under `notes`. What else was
asked for has its key beside them, and so have the measures that only `measures = "all"` computes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kinfold.evaluation.answers import answer
from kinfold.evaluation.cautions import dominance, protected_by_k_alone, singling
from kinfold.evaluation.loss import loss
from kinfold.evaluation.pairing import Pair, Tables
from kinfold.evaluation.questions import Questions
from kinfold.evaluation.risk import Shown, risk
from kinfold.evaluation.sheet import remembered
from kinfold.evaluation.statistics import Statistics, statistics
from kinfold.models.verdict import Verdict
from kinfold.request.binding import BoundColumn, BoundPolicy
from kinfold.request.encoding import Attribute
from kinfold.rows.schema import Role
from kinfold.rows.text_warnings import formulas, look_alikes

__all__ = ["Measures", "Questions", "Statistics", "Tables", "measure_release"]

NOTHING = Statistics({}, {"columns": [], "before": [], "after": []}, {})


@dataclass(frozen=True)
class Measures:
    """Risk and loss as in the JSON contract, statistics before and after, and what to look at before it leaves."""

    values: Mapping[str, Any]
    statistics: Statistics = NOTHING
    warnings: tuple[str, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nested by `risk` and `loss`."""
        return dict(self.values)

    def __getitem__(self, key: str) -> Any:
        return self.values[key]


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
    shown = Shown(sizes, lambda: beside().masked[beside().kept], _confidential(tables, policy))
    lost = loss(pair, sizes, max(policy.rows - verdict.records, 0), every=asked.every)
    risked = risk(known, shown, policy.request.privacy.k, asked, policy.request.method.seed)
    answer(asked, tables, policy, beside, (risked, lost))
    warnings = tuple(_warnings(tables, policy, known, shown))
    facts = {
        "records": policy.rows,
        "released": verdict.records,
        "suppressed": policy.rows - verdict.records,
        "classes": verdict.classes,
        "k": verdict.k,
        "l": dict(verdict.l),
        "t": dict(verdict.t),
        "measures": asked.measures,  # which set of them
        "risk": risked.values,
        "loss": lost.values,
        "notes": [*warnings, *risked.notes, *lost.notes],
    }
    kept = [column for column in policy.columns if column.role is not Role.IDENTIFIER]
    return Measures(facts, statistics(tables, kept), warnings)


def _warnings(tables: Tables, policy: BoundPolicy, known: Pair | str, shown: Shown) -> list[str]:
    large = [] if isinstance(known, str) else list(dominance(known))
    others = [column.name for column in policy.of(Role.OTHER)]
    alike = look_alikes(tables.engine, tables.original, policy.compared)
    safe = policy.request.output.spreadsheet_safe
    bare = protected_by_k_alone(tables.engine, tables.released, policy)
    odd = formulas(tables.engine, tables.released, safe)
    return [*bare, *large, *singling(tables, shown.classes, others), *alike, *odd]


def _confidential(tables: Tables, policy: BoundPolicy) -> dict[str, Any]:
    """Return the confidential columns of the release: numbers where they are measured, else codes, -1 for null."""
    schema, values = tables.engine.schema(tables.released), {}
    for column in policy.of(Role.CONFIDENTIAL):
        numeric = _is_measured(column, schema[column.name])
        wanted = {column.name: schema[column.name] if numeric else None}
        held = tables.engine.collect(tables.released, wanted).column(0)
        if numeric:
            values[column.name] = held.to_numpy(zero_copy_only=False).astype(np.float64)
        else:
            encoded = held.combine_chunks().dictionary_encode()
            values[column.name] = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return values


def _is_measured(column: BoundColumn, found: Any) -> bool:
    return column.kind.measured and (found.storage.kind.measured or bool(found.date_format))
