"""Verification: the released rows, grouped again from scratch, and each model asked.

This module knows nothing of how a release was made. It takes rows (through an engine that is handed to it) and terms
(from a policy or a certificate), and derives k, l, t and every promise from nothing but those.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from kinfold.errors import DataError, Problem
from kinfold.models import Finding, TCloseness
from kinfold.models.terms import Confidential, Terms
from kinfold.models.verdict import Verdict
from kinfold.rows.schema import Reading
from kinfold.rows.tally import Scopes, Tally


class Rows(Protocol):
    """The two verbs of an engine that a check needs."""

    def names(self, frame: Any) -> Sequence[str]:
        """Return the names of the columns."""

    def tally(self, frame: Any, by: Sequence[str], of: Mapping[str, Reading]) -> Tally:
        """Count classes by the text of their keys, and confidential values within them."""


def verify(engine: Rows, frame: Any, terms: Terms) -> Verdict:
    """Group the rows by their quasi-identifiers and compare every class with every promise.

    A column that is missing, left over, or holds what it should not is a problem, and then nothing else is said.
    """
    problems: Sequence[Problem] = _column_problems(engine.names(frame), terms)
    if not problems:
        try:
            return judge(*_tallies(engine, frame, terms), terms)
        except DataError as error:  # values that cannot be read as the terms say
            problems = error.problems
    records = engine.tally(frame, (), {}).records
    return Verdict((), records, 0, 0, quasi=terms.quasi, confidential=_names(terms), problems=tuple(problems))


def _tallies(engine: Rows, frame: Any, terms: Terms) -> tuple[Tally, dict[str, Tally]]:
    """Return the tally by the quasi-identifiers and, for joint promises, one for each column by all the others."""

    def counted(by: Sequence[str], columns: Sequence[Confidential]) -> Tally:
        tally = engine.tally(frame, by, {c.name: c.reading for c in columns})
        return replace(tally, spreads={c.name: c.arranged(tally.spreads[c.name]) for c in columns})

    names = _names(terms)
    known = {c.name: [*terms.quasi, *(n for n in names if n != c.name)] for c in terms.confidential if terms.joint}
    joint = {c.name: counted(known[c.name], [c]) for c in terms.confidential if c.name in known}
    return counted(terms.quasi, terms.confidential), joint


def judge(tally: Tally, joint: Mapping[str, Tally], terms: Terms) -> Verdict:
    """Ask each model, and say what k, l and t are in any case; `joint` tallies are by the other columns as well."""
    of = {c.name: joint.get(c.name, tally) for c in terms.confidential}
    return Verdict(
        findings=tuple(model.check(of.get(model.column or "", tally)) for model in terms.models),
        records=tally.records,
        classes=len(tally),
        k=int(tally.sizes.min()) if len(tally) else 0,
        l={c.name: _fewest_values(of[c.name], c.name) for c in terms.confidential},
        t={c.name: _farthest(of[c.name], c) for c in terms.confidential},
        quasi=terms.quasi,
        confidential=_names(terms),
    )


def judge_people(labels: Any, scopes: Scopes, terms: Terms) -> tuple[Finding, ...]:
    """Ask each model again with every person counted once, before the column that names them leaves.

    Once in a class and, where promises are joint, once in each part of it that shares the other confidential values.
    """
    found = [(model.check(s.tally), s) for model in terms.models for s in scopes.of(labels, model.column) if s.counted]
    return tuple(replace(finding, promise=f"{finding.promise}, {scope.counted}") for finding, scope in found)


def _names(terms: Terms) -> tuple[str, ...]:
    return tuple(column.name for column in terms.confidential)


def _column_problems(names: Sequence[str], terms: Terms) -> list[Problem]:
    problems = [
        Problem(f"the identifier '{name}' is in the release", "remove that column")
        for name in terms.removed
        if name in names
    ]
    expected = [*terms.quasi, *(column.name for column in terms.confidential), *terms.other]
    problems += [
        Problem(f"the column '{name}' is not in the release", "check the file")
        for name in expected
        if name not in names
    ]
    known = {*expected, *terms.removed}
    problems += [
        Problem(
            f"the column '{name}' is in the release, but nothing is said about it",
            "name it in the policy, or remove it",
        )
        for name in names
        if name not in known
    ]
    return problems


def _fewest_values(tally: Tally, name: str) -> int:
    group = tally.spreads[name].group
    return int(np.bincount(group, minlength=len(tally)).min()) if len(tally) else 0


def _farthest(tally: Tally, column: Confidential) -> float:
    model = TCloseness(1.0, column.name, column.distance, column.hierarchy)  # type: ignore[arg-type]
    distances = model.distances(tally)
    return float(distances.max()) if len(distances) else 0.0
