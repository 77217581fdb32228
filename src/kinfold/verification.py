"""Verification: group the released rows from scratch and check every promise.

This module does not import the code that makes releases. It computes k, l, t and every promise only from
the rows (read by an engine) and the terms (from a policy or a certificate).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from kinfold.errors import DataError, Problem
from kinfold.models import Finding, TCloseness
from kinfold.models.terms import ConfidentialColumn, Terms
from kinfold.models.verdict import Verdict
from kinfold.tables.schema import OrderedReading
from kinfold.tables.tally import JOINT_PEOPLE_WORDS, PEOPLE_WORDS, Scopes, Spread, Tally, encode_values, split_classes


class TallyEngine(Protocol):
    """The verb of an engine that a check needs; its frames have `names`."""

    def tally(self, frame: Any, by: Sequence[str], of: Mapping[str, OrderedReading]) -> Tally:
        """Count the classes by the text of their keys, and the confidential values in each class."""


def verify(engine: TallyEngine, frame: Any, terms: Terms) -> Verdict:
    """Group the rows by their quasi-identifiers and compare every class with every promise.

    If a column is missing, unexpected or cannot be parsed, the verdict holds these problems only.
    """
    problems: Sequence[Problem] = _find_column_problems(frame.names, terms)
    if not problems:
        try:
            verdict = judge(*_count_tallies(engine, frame, terms), terms)
            return replace(verdict, people=tuple(_judge_released_people(engine, frame, terms)))
        except DataError as error:  # values that cannot be parsed
            problems = error.problems
    records = engine.tally(frame, (), {}).records
    return Verdict(
        (), records, 0, 0, quasi=terms.quasi, confidential=_confidential_names(terms), problems=tuple(problems)
    )


def _count_tallies(engine: TallyEngine, frame: Any, terms: Terms) -> tuple[Tally, dict[str, Tally]]:
    """Return the tally by the quasi-identifiers; for joint promises also one per confidential column by all others."""

    def count(by: Sequence[str], columns: Sequence[ConfidentialColumn]) -> Tally:
        tally = engine.tally(frame, by, {c.name: c.reading for c in columns})
        return replace(tally, spreads={c.name: c.sort_spread(tally.spreads[c.name]) for c in columns})

    names = _confidential_names(terms)
    known = {c.name: [*terms.quasi, *(n for n in names if n != c.name)] for c in terms.confidential if terms.joint}
    joint = {c.name: count(known[c.name], [c]) for c in terms.confidential if c.name in known}
    return count(terms.quasi, terms.confidential), joint


def judge(tally: Tally, joint: Mapping[str, Tally], terms: Terms) -> Verdict:
    """Return the findings of all models, and k, l and t; `joint` has a tally per confidential column by all others."""
    tallies = {c.name: joint.get(c.name, tally) for c in terms.confidential}
    return Verdict(
        findings=tuple(model.check(tallies.get(model.column or "", tally)) for model in terms.models),
        records=tally.records,
        classes=len(tally),
        k=int(tally.sizes.min()) if len(tally) else 0,
        l={c.name: _min_distinct_values(tallies[c.name], c.name) for c in terms.confidential},
        t={c.name: _max_distance(tallies[c.name], c) for c in terms.confidential},
        quasi=terms.quasi,
        confidential=_confidential_names(terms),
    )


def judge_people(labels: Any, scopes: Scopes, terms: Terms) -> tuple[Finding, ...]:
    """Return the findings of all models with every person counted once per class.

    For joint promises, a person counts once in each part of a class that shares the other confidential values.
    """
    findings = [
        (model.check(s.tally), s)
        for model in terms.models
        for s in scopes.for_column(labels, model.column)
        if s.counting
    ]
    return tuple(replace(finding, promise=f"{finding.promise}, {scope.counting}") for finding, scope in findings)


def _judge_released_people(engine: TallyEngine, frame: Any, terms: Terms) -> Iterator[Finding]:
    """Yield the findings with every person counted once, as `judge_people` does, by the surrogates of the release."""
    unit = terms.counted_by
    if unit is None:
        return

    def count(by: Sequence[str], columns: Sequence[ConfidentialColumn]) -> Tally:
        tally = engine.tally(frame, [*by, unit], {c.name: c.reading for c in columns})
        return _count_once(tally, by, {c.name: c.sort_spread(tally.spreads[c.name]) for c in columns})

    names = _confidential_names(terms)
    whole = count(terms.quasi, terms.confidential)
    known = {c.name: [*terms.quasi, *(n for n in names if n != c.name)] for c in terms.confidential if terms.joint}
    joint = {c.name: count(known[c.name], [c]) for c in terms.confidential if c.name in known}
    for model in terms.models:
        finding = model.check(whole)
        yield replace(finding, promise=f"{finding.promise}, {PEOPLE_WORDS}")
        if model.column in joint:
            finding = model.check(joint[model.column])
            yield replace(finding, promise=f"{finding.promise}, {JOINT_PEOPLE_WORDS}")


def _count_once(tally: Tally, by: Sequence[str], spreads: Mapping[str, Spread]) -> Tally:
    """Return a tally by columns and the person as one by the columns: a person counts once, and once for each value."""
    codes = [encode_values(tally.keys[name])[1] for name in by]
    classes = split_classes(np.zeros(len(tally), np.int64), codes)[0]
    once = {name: replace(spread, count=np.ones_like(spread.count)) for name, spread in spreads.items()}
    return Tally({}, np.ones_like(tally.sizes), once).merge(classes, {})


def _confidential_names(terms: Terms) -> tuple[str, ...]:
    return tuple(column.name for column in terms.confidential)


def _find_column_problems(names: Sequence[str], terms: Terms) -> list[Problem]:
    expected = [*terms.quasi, *_confidential_names(terms), *terms.other, *terms.surrogates]
    kept = [name for name in terms.removed if name in names]
    absent = [name for name in expected if name not in names]
    unknown = [name for name in names if name not in {*expected, *terms.removed}]
    fix = "name it in the policy, or remove it"
    return [
        *(Problem(f"the column '{name}' is in the release, but must be removed", "remove it") for name in kept),
        *(Problem(f"the column '{name}' is not in the release", "check the file") for name in absent),
        *(Problem(f"the column '{name}' is in the release, but not in the policy", fix) for name in unknown),
    ]


def _min_distinct_values(tally: Tally, name: str) -> int:
    group = tally.spreads[name].group
    return int(np.bincount(group, minlength=len(tally)).min()) if len(tally) else 0


def _max_distance(tally: Tally, column: ConfidentialColumn) -> float:
    model = TCloseness(1.0, column.name, column.distance, column.hierarchy)  # type: ignore[arg-type]
    distances = model.distances(tally)
    return float(distances.max()) if len(distances) else 0.0
