"""Attributes of people and of events, in a table in which a person has several rows (`people = "together"`).

An attribute of the person has one value in all rows of every person: sex, date of birth. An attribute of the event may
differ from row to row: diagnosis, blood pressure. The rows decide, unless the policy says it (`of`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import DataError, PolicyError, Problem, plural
from kinfold.policy.binding import BoundPolicy
from kinfold.policy.terms import number_texts
from kinfold.policy.toml_values import format_toml_key
from kinfold.tables.engine import Engine
from kinfold.tables.schema import AS_TEXT, Role

PROTECTED = (Role.QUASI, Role.CONFIDENTIAL)


def separate_events(engine: Engine, frame: Any, policy: BoundPolicy) -> BoundPolicy:
    """Return the policy in which every protected column is of the person or of the event; raise if it cannot be."""
    unit = policy.request.privacy.unit
    if policy.request.method.people is None or unit is None:
        return policy
    person = number_texts(engine, frame, unit, AS_TEXT)
    if missing := int((person == 0).sum()):
        what = (
            f"method.people: {plural(missing, 'row has', 'rows have')} no value in '{unit}', and may be of one person"
        )
        raise DataError(what, fix="give each person a number, or leave such rows out")
    columns, problems = [], []
    for column in policy.columns:
        differing = _count_differing(engine, frame, column.name, person) if column.role in PROTECTED else 0
        if column.request.of == "person" and differing:
            people = plural(differing, "person has", "people have")
            what = f"columns.{column.name}.of is person, but {people} several values"
            problems.append(Problem(what, 'correct them, or set of = "event"'))
        columns.append(replace(column, event=bool(differing) or column.request.of == "event"))
    if problems:
        raise DataError(problems)
    result = replace(policy, columns=tuple(columns))
    if problems := _find_problems(result):
        raise PolicyError(problems)
    return result


def _count_differing(engine: Engine, frame: Any, name: str, person: NDArray[np.int64]) -> int:
    """Count the people with more than one value of a column, as written."""
    codes = number_texts(engine, frame, name)
    low, high = np.full(person.max() + 1, codes.max() + 1), np.full(person.max() + 1, -1)
    np.minimum.at(low, person, codes)
    np.maximum.at(high, person, codes)
    return int((low < high).sum())


def _find_problems(policy: BoundPolicy) -> list[Problem]:
    """Return what the policy asks for that has no meaning for people with several rows."""
    request, events = policy.request, [c.name for c in policy.columns if c.event and c.role is Role.QUASI]
    problems = []
    if events:
        what = f"{', '.join(map(repr, events))}: a quasi-identifier that differs between the rows of a person"
        problems.append(Problem(what, "correct the rows, or give it the role confidential, other or remove"))
    if not policy.with_role(Role.QUASI):
        what = "method.people: no quasi-identifier is of the person, so that there are no classes of people"
        problems.append(Problem(what, "name an attribute of the person, or leave out method.people"))
    if any(rule.repair for rule in policy.rules):
        what = "method.people: rules cannot be repaired if the rows of a person are recoded together"
        problems.append(Problem(what, "leave out repair"))
    if request.output.weighted or any(column.request.regrouped for column in policy.columns):
        where = next(
            (f"columns.{format_toml_key(c.name)}" for c in policy.columns if c.request.regrouped), "output.weighted"
        )
        problems.append(
            Problem(f"{where}: sampling weights are of rows, and people are recoded together", "leave it out")
        )
    return problems
