"""Findings that a recipient cannot repeat: about the population, removed columns of people, and perturbed columns.

The first two are counted on the released rows, with a table of the population, or with the column before it is removed.
If a release has surrogates, both checkers count people and households on the file instead.

Promises hold with the values as released. Perturbation may make a class look more diverse than it is: an analyst who
corrects for it sees the difference. The same classes are therefore checked with the values before the perturbation too,
and every promise that they would break is a warning for the holder.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from kinfold.measures.formulas.attackers import measure_class_risk
from kinfold.measures.measurement import Measures
from kinfold.measures.perturbation import measure_perturbation
from kinfold.methods.plan import Plan
from kinfold.models import Finding
from kinfold.models.model import Promise
from kinfold.models.verdict import Verdict
from kinfold.policy.population import count_people
from kinfold.policy.preparation import PreparedTable
from kinfold.policy.table import Table
from kinfold.policy.terms import build_scopes
from kinfold.tables.queries import label_rows, number_rows
from kinfold.tables.recoding import Recoding
from kinfold.tables.schema import Role
from kinfold.tables.tally import Tally
from kinfold.verification import describe_split, judge_households, judge_people, verify

PEOPLE_NOTE = "the rows of a person are perturbed independently: with several rows, an average of them shows more"


def add_removed_findings(verdict: Verdict, table: Table, released: Any, recoding: Recoding) -> Verdict:
    """Add the findings about people and households that the released rows do not show."""
    verdict = _add_population_findings(verdict, table, released)
    verdict = _add_people_findings(verdict, table, released, recoding)
    verdict = _add_weighted_findings(verdict, table, released, recoding)
    return _add_household_findings(verdict, table, released, recoding)


def _add_population_findings(verdict: Verdict, table: Table, released: Any) -> Verdict:
    """Add the findings about the population: people who fit each class of the released rows, and estimates."""
    terms = table.terms
    if not terms.statements or verdict.problems:
        return verdict
    tally = _tally_people(table, released)
    return replace(verdict, statements=tuple(model.check(tally) for model in terms.statements))


def _tally_people(table: Table, released: Any) -> Tally:
    """Return the classes of the released rows, with the people who fit each if the population is known."""
    tally = table.engine.tally(released, table.terms.quasi, {})
    if table.population is None:
        return tally
    return replace(tally, people=count_people(tally, table.population, table.tuples, table.terms.quasi))


def add_population_risks(measures: Measures, table: Table, released: Any) -> Measures:
    """Return the measures with the risk by the table of the population that the policy names."""
    if table.population is None:
        return measures
    tally = _tally_people(table, released)
    assert tally.people is not None  # noqa: S101  the population is known
    risk = 1.0 / np.maximum(tally.people, tally.sizes)
    largest, mean = float(risk.max()), float(np.average(risk, weights=tally.sizes))
    values = {"journalist": {"max": largest, "mean": mean}, "journalist_max": largest, "marketer": mean}
    return measures.with_measures("risk", values)


def _add_people_findings(verdict: Verdict, table: Table, released: Any, recoding: Recoding) -> Verdict:
    """Add the findings about people, counted on the released rows with the person of each row."""
    if table.person is None or verdict.problems or verdict.people:  # with surrogates they are counted from the rows
        return verdict
    engine, terms = table.engine, table.terms
    person = table.person[label_rows(engine, table.frame, recoding).kept]
    scopes = build_scopes(engine, released, terms, person)
    assert scopes is not None  # noqa: S101  the table has people
    return replace(verdict, people=judge_people(number_rows(engine, released, terms.quasi), scopes, terms))


def _add_weighted_findings(verdict: Verdict, table: Table, released: Any, recoding: Recoding) -> Verdict:
    """Add the findings by the sampling weights of the original, which a release does not have."""
    if table.weights is None or verdict.problems:
        return verdict
    engine, terms = table.engine, table.terms
    kept = label_rows(engine, table.frame, recoding).kept
    weights, labels = (
        replace(table.weights, units=table.weights.units[kept]),
        number_rows(engine, released, terms.quasi),
    )
    findings: list[Finding] = []
    if weights.promised:
        scopes = build_scopes(engine, released, terms, None, weights)
        assert scopes is not None  # noqa: S101  the table has weights
        findings += judge_people(labels, scopes, terms)
    limit = table.policy.request.privacy.individual_risk
    if limit is not None:
        risk, sizes = measure_class_risk(labels, weights.add_up(labels)), Tally({}, np.bincount(labels))
        promise = Promise(f"individual risk of at most {limit:g}, by sampling weights", "individual_risk", None, limit)
        findings.append(promise.compare(float(risk.max(initial=0.0)), risk > limit, sizes))
    return replace(verdict, statements=(*verdict.statements, *findings))


def _add_household_findings(verdict: Verdict, table: Table, released: Any, recoding: Recoding) -> Verdict:
    """Add the findings about households, by the household of each released row, unless the rows show it."""
    engine, terms = table.engine, table.terms
    if table.households is None or terms.household is None or verdict.problems or terms.released_household is not None:
        return verdict
    households = table.households.take(np.flatnonzero(label_rows(engine, table.frame, recoding).kept))
    people, problems, number = [*verdict.people], [*verdict.problems], len(np.unique(households.numbers))
    for name in terms.household.attributes:
        values = households.count(number_rows(engine, released, [name]))
        problems += describe_split(name, int(values.sum()) - number)
    if terms.household.k is not None:
        sizes = households.count(number_rows(engine, released, terms.quasi))
        people.append(judge_households(sizes, terms.household.k))
    return replace(verdict, people=tuple(people), problems=tuple(problems))


def add_perturbation(
    measures: Measures, table: Table, prepared: PreparedTable, released: Any, planned: Plan
) -> Measures:
    """Return the measures with what perturbed columns keep and give away, checked on the released rows."""
    engine = table.engine
    kept = label_rows(engine, prepared.frame, planned.recoding).kept
    figures, linked, notes = measure_perturbation(engine, prepared, table.policy, released, kept)
    by_record = any(c.perturbed is not None and c.perturbed.places is None for c in table.policy.columns)
    notes += [PEOPLE_NOTE] if by_record and table.policy.request.privacy.unit is not None else []
    measures = measures.with_measure("loss", "perturbed", figures)
    measures = measures.with_measure("risk", "perturbed_linkage", linked, *notes)
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
