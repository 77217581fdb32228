"""Attributes of people and of events, in a table in which a person has several rows (`people = "together"`).

An attribute of the person has one value in all rows of every person: sex, date of birth. An attribute of the event may
differ from row to row: diagnosis, blood pressure. The rows decide, unless the policy says it (`of`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import DataError, PolicyError, Problem, plural
from kinfold.policy.binding import BoundColumn, BoundPolicy
from kinfold.policy.encoding import NumericAttribute, encode
from kinfold.policy.model import Policy
from kinfold.policy.toml_values import format_toml_key
from kinfold.tables.engine import Engine
from kinfold.tables.queries import number_texts
from kinfold.tables.readers.linked_tables import JoinedParts, LinkedFile, LinkedFiles
from kinfold.tables.recoding import encode_dictionary
from kinfold.tables.relations import MIN_ROWS_COMPARED, SampledColumn, find_function
from kinfold.tables.schema import AS_TEXT, Kind, Role

PROTECTED = (Role.QUASI, Role.CONFIDENTIAL)
DATE_TEXT = re.compile(r"\s*(\d{4}[-./]\d\d?[-./]\d\d?|\d\d?[-./]\d\d?[-./](\d\d){1,2})([T ].*)?")
DATE_TEXT_SHARE = 0.9  # of the texts of a column: a few can be unreadable
SAMPLED_TEXTS = 1_000  # of a column, spread over the table
RISING = 0.99  # the correlation of ranks with dates from which values tell the date


def link_tables(policy: Policy, source: Any) -> Any:
    """Return the source with the further tables of the policy, if it has any; raise if they cannot be released."""
    if not policy.tables:
        return source
    unit, problems = policy.privacy.unit, []
    if unit is None or policy.method.people is None or not policy.output.surrogate:
        what = "tables: tables are linked by the surrogates of people who stay together"
        fix = 'set privacy.unit, method.people = "together" and output.surrogate = true'
        problems.append(Problem(what, fix))
    if not isinstance(source, Path) or policy.source.parts or policy.engine.name == "spark":
        what = "tables: the main table is a single file, read by the embedded engine"
        problems.append(
            Problem(what, "give a path of a file, without source.parts and Spark; or join the tables first")
        )
    if policy.output.parts is not None:
        problems.append(Problem("output.parts: a release of several tables has one file for each", "leave it out"))
    if problems:
        raise PolicyError(problems)
    assert unit is not None  # noqa: S101  checked above
    return LinkedFiles(source, unit, tuple(LinkedFile(each.file, each.link or unit) for each in policy.tables.values()))


def refuse_tables(policy: Policy, what: str, fix: str) -> None:
    """Raise if a policy has further tables, which a question about one table cannot take into account."""
    if policy.tables:
        raise PolicyError(f"tables: {what}", fix=fix)


def assign_attributes(policy: Policy, parts: JoinedParts | None, names: Sequence[str]) -> Policy:
    """Return the policy in which columns of tables of people are of the person, and all others of the event.

    A column of the main table is of the person if the policy says so.
    """
    if parts is None:
        return policy
    linked = {name for columns in parts.columns for name in columns}
    stated = policy.for_columns(names).columns
    if wrong := [name for name in sorted(linked) if name in stated and stated[name].of == "event"]:
        what = f'{", ".join(map(repr, wrong))}: of = "event", but a table of people has one row for each person'
        raise PolicyError(what, fix="move the column to the table of events, or leave out of")
    columns = {
        name: column.model_copy(update={"of": "person" if name in linked else column.of or "event"})
        if column.role in PROTECTED
        else column
        for name, column in stated.items()
    }
    return policy.model_copy(update={"columns": columns})


def separate_events(engine: Engine, frame: Any, policy: BoundPolicy) -> BoundPolicy:
    """Return the policy in which every protected column is of the person or of the event; raise if it cannot be."""
    unit = policy.request.privacy.unit
    if policy.request.method.people is None or unit is None:
        return policy
    person = number_texts(engine, frame, unit, AS_TEXT)
    if missing := int((person == 0).sum()):
        rows = plural(missing, "row has", "rows have")
        what = f"method.people: {rows} no value in '{unit}', so they could belong to one person"
        raise DataError(what, fix="give each person a number, or leave such rows out")
    columns, problems = [], []
    for column in policy.columns:
        compared = column.role in PROTECTED or (column.kind is Kind.DATE and not column.removed)
        differing = _count_differing(engine, frame, column.name, person) if compared else 0
        if column.request.of == "person" and differing:
            people = plural(differing, "person has", "people have")
            what = f"columns.{column.name}.of is person, but {people} several values"
            problems.append(Problem(what, 'correct them, or set of = "event"'))
        event = bool(differing) or column.request.of == "event"
        average = "mode" if event and column.suppressed else column.average  # the method leaves events as they are
        columns.append(replace(column, event=event, average=column.request.average or average))
    if problems:
        raise DataError(problems)
    result = replace(policy, columns=tuple(columns))
    telling = _find_telling_columns(engine, frame, result, person)
    if problems := [*_find_problems(result), *_find_date_texts(engine, frame, result), *telling]:
        raise PolicyError(problems)
    return result


def mark_events(engine: Engine, frame: Any, policy: BoundPolicy, units: Sequence[str]) -> BoundPolicy:
    """Return the policy for a release with surrogates in which quasi-identifiers of events are marked."""
    if policy.request.method.people is None or not units or units[0] not in frame.names:
        return policy
    person = number_texts(engine, frame, units[0])
    columns = tuple(
        replace(
            column, event=column.request.of == "event" or (_count_differing(engine, frame, column.name, person) > 0)
        )
        if column.role is Role.QUASI
        else column
        for column in policy.columns
    )
    return replace(policy, columns=columns)


def _count_differing(engine: Engine, frame: Any, name: str, person: NDArray[np.int64]) -> int:
    """Count the people with more than one value of a column, as written."""
    codes = number_texts(engine, frame, name)
    low, high = np.full(person.max() + 1, codes.max() + 1), np.full(person.max() + 1, -1)
    np.minimum.at(low, person, codes)
    np.maximum.at(high, person, codes)
    return int((low < high).sum())


def _find_date_texts(engine: Engine, frame: Any, policy: BoundPolicy) -> Iterator[Problem]:
    """Yield texts that look like dates, which could not be moved: in frames, and in formats that are not declared."""
    events = [c for c in policy.columns if c.event and c.role is Role.QUASI]
    moving = any(c.kind is Kind.DATE for c in events)
    others = [c for c in policy.columns if moving and c.role in (Role.CONFIDENTIAL, Role.OTHER)]
    texts = [c for c in (*events, *others) if c.kind is not Kind.DATE and c.column.storage.kind is Kind.NOMINAL]
    rows = np.unique(np.linspace(0, policy.rows - 1, min(policy.rows, SAMPLED_TEXTS)).astype(np.int64))
    some = engine.take(frame, rows)[0] if texts else None
    for column in texts:
        values = [text for text in engine.collect(some, {column.name: AS_TEXT}).column(0).to_pylist() if text]
        if sum(bool(DATE_TEXT.fullmatch(text)) for text in values) > DATE_TEXT_SHARE * len(values):
            what = f"columns.{format_toml_key(column.name)}: its texts look like dates, which are moved if it is a date"
            yield Problem(
                what, 'declare type = "date" (and source.dates, if they are not like 2024-12-31), or remove it'
            )


def _find_telling_columns(
    engine: Engine, frame: Any, policy: BoundPolicy, person: NDArray[np.int64]
) -> Iterator[Problem]:
    """Yield released columns that tell when an event was, and so how far its date was moved: year, weekday, time stamp.

    Such a column has one value for each date, or for each first date of a person; or it rises with the dates.
    """
    dates = [c for c in policy.columns if c.event and c.role is Role.QUASI and c.kind is Kind.DATE]
    for date in dates:
        (days,) = encode(engine, frame, [replace(date, average="mean", event=False)])
        assert isinstance(days, NumericAttribute)  # noqa: S101  it is a date
        day = np.floor(np.where(days.null, 0, days.numbers)).astype(np.int64)
        known = np.flatnonzero(~days.null)
        first = known[np.lexsort((day[known], person[known]))]
        first = first[np.flatnonzero(np.diff(person[first], prepend=-1))]
        for column in (c for c in policy.columns if not c.removed and not c.surrogate and c not in dates):
            if column.role is Role.QUASI and not column.event:
                continue  # recoded in classes of people
            texts = number_texts(engine, frame, column.name)
            rows = known if column.event or column.role is Role.OTHER else first
            if any(_tells(day[some], texts[some]) for some in (rows, first)) or _rises(
                engine, frame, column, day, known
            ):
                what = f"columns.{format_toml_key(column.name)}: its values show when the events of '{date.name}' were"
                yield Problem(f"{what}, and so how far they were moved", "give it the role remove")


def _tells(day: NDArray[np.int64], texts: NDArray[np.int64]) -> bool:
    """Whether rows of one day almost always have one value, more often than by chance."""
    codes = np.unique(day, return_inverse=True)[1]
    one, other = (SampledColumn(name, None, each, ()) for name, each in (("day", codes), ("value", texts)))
    return find_function(one, other) is not None


def _rises(engine: Engine, frame: Any, column: BoundColumn, day: NDArray[np.int64], rows: NDArray[np.intp]) -> bool:
    """Whether the values, as numbers or as texts, rise or fall with the days, like numbers given one after another."""
    if len(rows) < MIN_ROWS_COMPARED:
        return False
    if column.column.storage.kind is Kind.CONTINUOUS:
        values = engine.collect(frame, {column.name: column.column}).column(0).to_numpy(zero_copy_only=False)[rows]
        values = np.nan_to_num(values.astype(np.float64))
    else:
        codes, texts = encode_dictionary(engine.collect(frame, {column.name: None}).column(0))
        values = np.append(np.argsort(np.argsort(texts.to_numpy(zero_copy_only=False))), -1)[codes][rows]
    ranks = [np.unique(each, return_inverse=True)[1].astype(np.float64) for each in (values, day[rows])]
    if min(map(np.ptp, ranks)) == 0:
        return False
    return bool(abs(np.corrcoef(ranks[0], ranks[1])[0, 1]) >= RISING)


def _find_problems(policy: BoundPolicy) -> list[Problem]:
    """Return what the policy asks for that has no meaning for people with several rows."""
    request, problems = policy.request, [*_find_event_problems(policy)]
    if not policy.with_role(Role.QUASI):
        what = (
            "method.people: every quasi-identifier differs between rows of a person, so there are no classes of people"
        )
        problems.append(Problem(what, "name an attribute of the person, or leave out method.people"))
    if any(rule.repair for rule in policy.rules):
        what = "method.people: rules cannot be repaired if the rows of a person are recoded together"
        problems.append(Problem(what, "leave out repair"))
    if request.output.weighted or any(column.request.regrouped for column in policy.columns):
        where = next(
            (f"columns.{format_toml_key(c.name)}" for c in policy.columns if c.request.regrouped), "output.weighted"
        )
        problems.append(
            Problem(f"{where}: sampling weights belong to rows, and people are recoded as a whole", "leave it out")
        )
    return problems


def _find_event_problems(policy: BoundPolicy) -> Iterator[Problem]:
    """Yield what the policy lacks to protect quasi-identifiers of events."""
    request, events = policy.request, [c for c in policy.columns if c.event and c.role is Role.QUASI]
    if not events:
        if request.privacy.events_known is not None:
            yield Problem(
                "privacy.events_known: no quasi-identifier differs between the rows of a person", "leave it out"
            )
        return
    names, dates = ", ".join(repr(c.name) for c in events), [c for c in events if c.kind is Kind.DATE]
    if request.privacy.events_known is None:
        what = f"{names}: a quasi-identifier that differs between the rows of a person"
        yield Problem(
            what, "set privacy.events_known, correct the rows, or give it the role confidential, other or remove"
        )
    if not request.output.surrogate:
        yield Problem(f"{names}: events of a person can be counted only by a surrogate", "set output.surrogate = true")
    for column in events:
        if column.kind is Kind.CONTINUOUS and column.request.hierarchy is None:
            what = f"columns.{format_toml_key(column.name)}: a numeric attribute of events needs a hierarchy"
            yield Problem(what, "add one, for example hierarchy = { intervals = [10, 20, 40] }")
        elif column.suppressed or column.request.missing != "refuse":
            key = format_toml_key(column.name)
            what = f"columns.{key}: attributes of events cannot have 'missing' or suppressed cells"
            yield Problem(what, "leave it out")
    if dates and request.output.format == "parquet":
        yield Problem("output.format: a release with dates of events is a CSV file", "leave it out")
    for column in (c for c in policy.columns if dates and c.role in (Role.CONFIDENTIAL, Role.OTHER)):
        # a date of the person, such as of death, can be that of an event; so can one kept as text
        stored = column.column
        if column.kind is Kind.DATE or stored.storage.kind is Kind.DATE or stored.date_format is not None:
            what = f"columns.{format_toml_key(column.name)}: a released date shows how far those of events were moved"
            yield Problem(what, 'remove it, or let it move with them: role = "quasi-identifier" and of = "event"')
