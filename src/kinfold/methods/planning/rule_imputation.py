"""Imputed values that break no edit rule: the mean, or the nearest value of the column that fits its record.

A record breaks a rule that it could not break while the value was missing: then its imputed value is moved to the
nearest one that the column holds and no rule forbids, with its other values as they are. Where two values of a record
are imputed, both may move. A record that nothing fits is left out, and counted.

Cost: a judgement of one record a trial, at most `MOST` trials for each record that breaks a rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from kinfold.methods.planning.edit_rules import MOST, PAIRED, Mask, Rows, Rules
from kinfold.methods.task import Task
from kinfold.request.encoding import Attribute, Measured
from kinfold.request.rules.judging import Held, Values


def fill(task: Task, attributes: Sequence[Attribute], rules: Rules | None) -> tuple[list[Attribute], Mask]:
    """Move imputed values that break a rule to the nearest value that does not; mark records that have none such."""
    hopeless = np.zeros(task.records, np.bool_)
    found = {a.bound.name: a for a in attributes}
    if rules is None or not rules.imputed:
        return [*attributes], hopeless
    rows = np.flatnonzero(np.logical_or.reduce([*rules.imputed.values()]))
    moved: dict[str, dict[int, float]] = {name: {} for name in rules.imputed}
    for place in np.flatnonzero(rules.take(rows).newly(_filled(rules, found, rows))):
        row = int(rows[place])
        fits = _fitting(rules, found, row)
        hopeless[row] = fits is None
        for name, number in (fits or {}).items():
            moved[name][row] = number
    return [_with(attribute, moved.get(attribute.bound.name)) for attribute in attributes], hopeless


def _with(attribute: Attribute, moved: Mapping[int, float] | None) -> Attribute:
    if not moved or not isinstance(attribute, Measured):
        return attribute
    numbers = attribute.numbers.copy()
    numbers[[*moved]] = [*moved.values()]
    return replace(attribute, numbers=numbers, exact=None)


def _filled(rules: Rules, attributes: Mapping[str, Attribute], rows: Rows) -> Values:
    """Return what some records hold, imputed values in their places."""

    def values(name: str, sort: str) -> Held:
        held = rules.values(name, sort).take(rows)
        if name not in rules.imputed:
            return held
        there = rules.imputed[name][rows]
        numbers = np.where(there, attributes[name].numbers[rows], held.values)  # type: ignore[union-attr]
        return Held(numbers, held.known | there, held.missing & ~there)

    return values


def _fitting(rules: Rules, attributes: Mapping[str, Attribute], row: int) -> dict[str, float] | None:
    """Return other numbers for the imputed values of a record, the nearest with which it breaks no rule."""
    names = [name for name in rules.imputed if rules.imputed[name][row] and name in rules.columns]
    options = {name: _nearest(rules.attributes[name], attributes[name], row) for name in names}
    trials = [[name] for name in names] + ([names] if len(names) > 1 else [])
    for chosen in trials:
        limit = MOST if len(chosen) == 1 else PAIRED
        grid = [
            dict(zip(chosen, numbers, strict=True)) for numbers in product(*(options[name][:limit] for name in chosen))
        ]
        fits = [trial for trial in grid[:MOST] if not _breaks(rules, attributes, row, trial)]
        if fits:
            return fits[0]
    return None


def _breaks(rules: Rules, attributes: Mapping[str, Attribute], row: int, trial: Mapping[str, float]) -> bool:
    rows = np.array([row])
    plain = _filled(rules, attributes, rows)

    def values(name: str, sort: str) -> Held:
        held = plain(name, sort)
        return replace(held, values=np.array([trial[name]])) if name in trial else held

    return bool(rules.take(rows).newly(values).any())


def _nearest(attribute: Attribute, filled: Attribute, row: int) -> list[float]:
    """Return the values that a column holds, from the nearest to an imputed one on."""
    assert isinstance(attribute, Measured)  # noqa: S101  only these are imputed
    assert isinstance(filled, Measured)  # noqa: S101  as above
    known = np.unique(attribute.numbers[~attribute.null])
    return [float(x) for x in known[np.argsort(np.abs(known - filled.numbers[row]), kind="stable")]]
