"""Verification: group the released rows from scratch and check every promise.

This module does not import the code that makes releases. It computes k, l, t and every promise only from
the rows (read by an engine) and the terms (from a policy or a certificate).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import DataError, Problem, plural
from kinfold.models import Finding, KAnonymity, TCloseness
from kinfold.models.known_events import NO_DAY, KnownEvents, find_first_days, find_least_match, number_events
from kinfold.models.terms import ConfidentialColumn, Terms
from kinfold.models.verdict import Verdict
from kinfold.tables.schema import OrderedReading
from kinfold.tables.tally import (
    HOUSEHOLD_WORDS,
    JOINT_PEOPLE_WORDS,
    PEOPLE_WORDS,
    Scopes,
    Tally,
    encode_values,
    is_null,
    split_classes,
)


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
            people = (*_judge_released_people(engine, frame, terms), *_judge_released_households(engine, frame, terms))
            return replace(verdict, people=people, problems=tuple(_find_split_households(engine, frame, terms)))
        except DataError as error:  # values that cannot be parsed
            problems = error.problems
    records = engine.tally(frame, (), {}).records
    return Verdict(
        (), records, 0, 0, quasi=terms.quasi, confidential=_confidential_names(terms), problems=tuple(problems)
    )


def _count_tallies(
    engine: TallyEngine, frame: Any, terms: Terms, unit: str | None = None
) -> tuple[Tally, dict[str, Tally]]:
    """Return the tally by the quasi-identifiers; for joint promises also one per confidential column by all others.

    With a `unit`, each of its values counts once in a class.
    """
    values = _number_joint_values(engine, frame, terms)

    def count(by: Sequence[str], columns: Sequence[ConfidentialColumn]) -> Tally:
        tally = engine.tally(frame, by if unit is None else [*by, unit], {c.name: c.reading for c in columns})
        tally = replace(tally, spreads={c.name: c.sort_spread(tally.spreads[c.name]) for c in columns})
        if unit is not None:
            return _count_once(tally, _number_keys(tally, by, values), unit)
        return tally if values.keys().isdisjoint(by) else _merge_equal_parts(tally, values)

    known = {name: [*terms.quasi, *(other for other in values if other != name)] for name in values}
    joint = {c.name: count(known[c.name], [c]) for c in terms.confidential if values}
    return count(terms.quasi, terms.confidential), joint


def _number_joint_values(engine: TallyEngine, frame: Any, terms: Terms) -> dict[str, dict[Any, int]]:
    """Return the number of the value that each text of a confidential column has, for joint promises: 1 is 1.0."""
    numbers = {}
    for column in terms.confidential if terms.joint else ():
        tally = engine.tally(frame, [column.name], {column.name: column.reading})
        spread, texts = tally.spreads[column.name], tally.keys[column.name]
        numbers[column.name] = dict(zip(texts[spread.group].tolist(), spread.code.tolist(), strict=True))
    return numbers


def _merge_equal_parts(tally: Tally, values: Mapping[str, Mapping[Any, int]]) -> Tally:
    """Return a tally by quasi-identifiers and confidential columns in which texts with one value are one."""
    parts = _number_keys(tally, [*tally.keys], values)
    return tally if len(np.unique(parts)) == len(tally) else tally.merge(parts, {})


def _number_keys(tally: Tally, names: Sequence[str], values: Mapping[str, Mapping[Any, int]]) -> NDArray[np.int64]:
    """Number the classes of a tally by some of its keys: by the numbers of their values, else by their texts."""
    codes = [
        np.array([values[name][text] for text in tally.keys[name].tolist()], np.int64)
        if name in values
        else encode_values(tally.keys[name])[1]
        for name in names
    ]
    return split_classes(np.zeros(len(tally), np.int64), codes)[0]


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
    whole, joint = _count_tallies(engine, frame, terms, unit)
    for model in terms.models:
        finding = model.check(whole)
        yield replace(finding, promise=f"{finding.promise}, {PEOPLE_WORDS}")
        if model.column in joint:
            finding = model.check(joint[model.column])
            yield replace(finding, promise=f"{finding.promise}, {JOINT_PEOPLE_WORDS}")
    if terms.events is not None:
        yield from _judge_events(engine, frame, terms, terms.events, unit)


def _judge_events(engine: TallyEngine, frame: Any, terms: Terms, events: KnownEvents, unit: str) -> Iterator[Finding]:
    """Yield the findings about known events, and about the first dates of the people of a class."""
    tally = engine.tally(frame, [*terms.quasi, unit, *events.columns], {})
    code = {name: encode_values(values)[1] for name, values in tally.keys.items()}
    classes = split_classes(np.zeros(len(tally), np.int64), [code[name] for name in terms.quasi])[0]
    owner, group = split_classes(classes, [code[unit]])
    visible = ~np.logical_and.reduce([is_null(tally.keys[name]) for name in events.columns])
    rows = np.repeat(np.flatnonzero(visible), tally.sizes[visible])
    days = [
        _read_days(tally.keys[name], name, form)[rows] for name, form in zip(events.dates, events.formats, strict=True)
    ]
    present, person = np.unique(owner[rows], return_inverse=True)
    numbered = number_events(classes[rows], person, days, [code[name][rows] for name in events.codes], events.days)
    least = find_least_match(numbered, events.known, int(np.bincount(group).min(initial=len(group))))
    promise = f"{events.k}-anonymity for {plural(events.known, 'known event')}, {PEOPLE_WORDS}"
    yield Finding(promise, "events", None, events.k, least, holds=least >= events.k)
    if events.dates:
        widest = _find_widest_range(find_first_days(person, days), group[present])
        promise = f"first events of a class within {plural(2 * events.shift, 'day')}"
        yield Finding(promise, "first events", None, 2 * events.shift, widest, holds=widest <= 2 * events.shift)


def _find_widest_range(first: NDArray[np.int64], group: NDArray[np.int64]) -> int:
    """Return the most days between the first events of two people of a class."""
    known = first != NO_DAY
    if not known.any():
        return 0
    low, high = np.full(int(group.max()) + 1, NO_DAY), np.full(int(group.max()) + 1, -NO_DAY)
    np.minimum.at(low, group[known], first[known])
    np.maximum.at(high, group[known], first[known])
    return int((high - low)[low != NO_DAY].max())


def _read_days(values: NDArray[Any], name: str, form: str | None) -> NDArray[np.int64]:
    """Return dates as days; a missing one is `NO_DAY`."""
    try:
        days = {
            text: (date.fromisoformat(text[:10]) if form is None else datetime.strptime(text, form)).toordinal()
            for text in set(values[~is_null(values)].tolist())
        }
    except ValueError:
        raise DataError(f"column '{name}' holds values that are not dates of events", fix="check the file") from None
    return np.array([NO_DAY if missing else days[text] for text, missing in zip(values, is_null(values), strict=True)])


def judge_households(sizes: NDArray[np.int64], k: int) -> Finding:
    """Return the finding that every class has members of at least k households."""
    finding = KAnonymity(k).check(Tally({}, sizes))
    return replace(finding, promise=f"{finding.promise}, {HOUSEHOLD_WORDS}")


def _judge_released_households(engine: TallyEngine, frame: Any, terms: Terms) -> Iterator[Finding]:
    household = terms.released_household
    if household is not None and household.k is not None:
        tally = engine.tally(frame, [*terms.quasi, household.column], {})
        pairs = _count_once(tally, _number_keys(tally, terms.quasi, {}), household.column)
        yield judge_households(pairs.sizes, household.k)


def _find_split_households(engine: TallyEngine, frame: Any, terms: Terms) -> Iterator[Problem]:
    """Yield attributes of households that differ between members, so that one member shows what another hides."""
    household = terms.released_household
    if household is not None:
        number = len(engine.tally(frame, [household.column], {}))
        for name in household.attributes:
            yield from describe_split(name, len(engine.tally(frame, [household.column, name], {})) - number)


def describe_split(name: str, more: int) -> list[Problem]:
    """Return the problem that an attribute of households has more values than households; none if it has not."""
    what = (
        f"the members of a household differ in '{name}', which is an attribute of households ({more:,} values too many)"
    )
    return [Problem(what, "do not release this file")] if more else []


def _count_once(tally: Tally, classes: NDArray[np.int64], unit: str) -> Tally:
    """Return a tally that has people among its keys as one of classes: each counts once, and once for each value."""
    owner, group = split_classes(classes, [encode_values(tally.keys[unit])[1]])
    people = tally.merge(owner, {})
    once = {name: replace(spread, count=np.ones_like(spread.count)) for name, spread in people.spreads.items()}
    return Tally({}, np.ones_like(people.sizes), once).merge(group, {})


def _confidential_names(terms: Terms) -> tuple[str, ...]:
    return tuple(column.name for column in terms.confidential)


def _find_column_problems(names: Sequence[str], terms: Terms) -> list[Problem]:
    expected = [*terms.quasi, *_confidential_names(terms), *terms.other, *terms.surrogates]
    expected += [] if terms.events is None else terms.events.columns
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
