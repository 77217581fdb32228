"""What a release with perturbed columns keeps, and what its promises would be without the perturbation.

Promises hold with the values as released. Perturbation may make a class look more diverse than it is: an analyst who
corrects for it sees the difference. The same classes are therefore checked with the values before the perturbation too,
and every promise that they would break is a warning for the holder.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kinfold.measures.measurement import Measures
from kinfold.measures.perturbation import measure_perturbation
from kinfold.methods.plan import Plan
from kinfold.models import Finding
from kinfold.policy.preparation import PreparedTable
from kinfold.policy.table import Table
from kinfold.tables.queries import label_rows
from kinfold.tables.schema import Role
from kinfold.verification import verify

PEOPLE_NOTE = "the rows of a person are perturbed independently: with several rows, an average of them shows more"


def add_perturbation(
    measures: Measures, table: Table, prepared: PreparedTable, released: Any, planned: Plan
) -> Measures:
    """Return the measures with what perturbed columns keep and give away, checked on the released rows."""
    engine = table.engine
    kept = label_rows(engine, prepared.frame, planned.recoding).kept
    figures, linked, notes = measure_perturbation(engine, prepared, table.policy, released, kept)
    notes += [PEOPLE_NOTE] if table.policy.request.privacy.unit is not None else []
    measures = measures.with_loss("perturbed", figures).with_risk("perturbed_linkage", linked, *notes)
    return measures.with_warnings([_describe_finding(each) for each in _find_broken_promises(table, prepared, planned)])


def _find_broken_promises(table: Table, prepared: PreparedTable, planned: Plan) -> Iterator[Finding]:
    """Yield the promises about confidential columns that the classes break with the values before the perturbation."""
    perturbed = [column for column in table.policy.columns if column.perturbed is not None]
    if not any(c.role is Role.CONFIDENTIAL for c in perturbed) or any(c.role is Role.QUASI for c in perturbed):
        return  # with other quasi-identifiers there are other classes
    engine, before = table.engine, prepared.unperturbed
    frame = engine.apply(before, planned.recoding, engine.schema(before))
    names = {column.name for column in perturbed}
    yield from (f for f in verify(engine, frame, table.terms).findings if f.column in names and not f.holds)


def _describe_finding(finding: Finding) -> str:
    figures = f"{finding.found:.4g} instead of {finding.asked:.4g}"
    what = f"with the values before the perturbation, {finding.promise} would not hold ({figures})"
    return f"{what}: it rests on the perturbation alone"
