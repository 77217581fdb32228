"""Normalizing: a table as its source writes it becomes plain text, and is written back with the source's marks.

missing     a text that is a word for missing becomes null, in every column of text; spaces around it do not count
numbers     a column of text all of whose values are numbers by the marks of `[source]` is held with a point and
            without marks for thousands: "1.234,5" is held as "1234.5"
written     such a column, and every column of numbers, has the decimal mark in a CSV file again; among generalized
            labels those that are numbers

Without marks for thousands, which no release has, the way there and back is exact: no two texts become one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from kinfold.rows.engines.database import Database
from kinfold.rows.engines.expressions import FLOATING, Frame
from kinfold.rows.engines.formula_cells import string
from kinfold.rows.source_form import Form, alike, pattern


class _Counts(NamedTuple):
    """What a column of text holds: words for missing, other texts, numbers by the marks, and texts with each mark."""

    gone: int
    filled: int
    fitting: int
    decimals: int
    groups: int

    @property
    def numeric(self) -> bool:
        return 0 < self.filled == self.fitting


def normalized(db: Database, frame: Frame, missing: Sequence[str] = ()) -> Frame:
    """Return the table in plain text: null for words for missing, points in numbers; `missing` are whole texts."""
    found, fresh = plainly(
        frame, missing, lambda asked: db.answers([each for one in asked.values() for each in one], frame.table)
    )
    return replace(found, table=_rewritten(db, frame, fresh)) if fresh else found


def plainly(
    frame: Frame, missing: Sequence[str], ask: Callable[[Mapping[str, Sequence[str]]], Iterator[Any]]
) -> tuple[Frame, dict[str, str]]:
    """Return what the table is in plain text, and SQL for columns to rewrite; `ask` answers questions about columns."""
    form = frame.form
    texts = [c for c, kind in zip(frame.columns, frame.types, strict=True) if kind == "VARCHAR"]
    if not texts or not (form.na or missing or form.marked):
        return frame, {}
    values = {c: present_text(c, form.na, missing) for c in texts}
    answers = ask({c: _questions(c, values[c], form) for c in texts})
    counts = {c: _Counts(*(next(answers) or 0 for _ in _Counts._fields)) for c in texts}
    marked = {c for c, held in counts.items() if held.numeric and (held.decimals or held.groups)}
    fresh = {c: _plain(values[c], form) if c in marked else values[c] for c in texts if c in marked or counts[c].gone}
    thousands = form.thousands if any(counts[c].groups for c in marked) else ""
    found = replace(
        frame,
        form=replace(form, thousands=thousands),
        numeric=_names(frame, {c for c in texts if counts[c].numeric}),
        blanked=_names(frame, {c for c in texts if counts[c].gone}),
    )
    return found, fresh


def _rewritten(db: Database, frame: Frame, fresh: Mapping[str, str]) -> str:
    table = db.table(f"SELECT {', '.join(f'{fresh.get(c, c)} AS {c}' for c in frame.columns)} FROM {frame.table}")
    db.drop(frame.table)
    return table


def written(frame: Frame, name: str) -> str:
    """SQL for a column as a CSV file holds it."""
    c, mark, kind = frame.at(name), string(frame.form.decimal), frame.type_of(name)
    if kind in FLOATING:
        c = f"CASE WHEN isnan({c}) THEN CAST('nan' AS {kind}) ELSE {c} END"  # without a sign, as `as_text` has it
    if frame.form.decimal == ".":
        return c
    if kind in FLOATING or kind.startswith("DECIMAL"):
        return f"replace(CAST({c} AS VARCHAR), '.', {mark})"
    if kind != "VARCHAR" or name not in frame.numeric:
        return c
    if name in frame.labelled:
        return f"CASE WHEN {_fits(c, pattern())} THEN replace({c}, '.', {mark}) ELSE {c} END"
    return f"replace({c}, '.', {mark})"


def _names(frame: Frame, columns: set[str]) -> frozenset[str]:
    return frozenset(name for name, c in zip(frame.names, frame.columns, strict=True) if c in columns)


def present_text(c: str, words: Sequence[str], missing: Sequence[str] = ()) -> str:
    """SQL for a text that is there: null where it stands for a missing value."""
    tests = [f"{c} IN ({', '.join(map(string, missing))})"] if missing else []
    tests += [f"trim({c}) IN ({', '.join(string(word.strip(' ')) for word in words)})"] if words else []
    return f"CASE WHEN NOT ({' OR '.join(tests)}) THEN {c} END" if tests else c


def _questions(c: str, value: str, form: Form) -> tuple[str, ...]:
    """Aggregates for what is counted of a column."""
    if not form.marked:
        return f"count({c}) - count({value})", "0", "0", "0", "0"
    return (
        f"count({c}) - count({value})",
        f"count({value})",
        f"count(*) FILTER (WHERE {_fits(value, pattern(form.decimal, form.thousands))})",
        f"count(*) FILTER (WHERE contains({value}, {string(form.decimal)}))" if form.decimal != "." else "0",
        f"count(*) FILTER (WHERE regexp_matches({value}, {string(alike(form.thousands))}))" if form.thousands else "0",
    )


def _fits(value: str, numbers: str) -> str:
    return f"regexp_full_match(trim({value}), {string(numbers)})"


def _plain(value: str, form: Form) -> str:
    plain = f"regexp_replace({value}, {string(alike(form.thousands))}, '', 'g')" if form.thousands else value
    return plain if form.decimal == "." else f"replace({plain}, {string(form.decimal)}, '.')"
