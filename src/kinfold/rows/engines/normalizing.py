"""Normalizing: a table as its source writes it becomes plain text, and is written back with the source's marks.

missing     a text that is a word for missing becomes null, in every column of text; spaces around it do not count
numbers     a column of text all of whose values are numbers by the marks of `[source]` is held with a point and
            without marks for thousands: "1.234,5" is held as "1234.5"
written     such a column, and every column of numbers, has the decimal mark in a CSV file again; among generalized
            labels those that are numbers

Without marks for thousands, which no release has, the way there and back is exact: no two texts become one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kinfold.rows.engines.database import Database
from kinfold.rows.engines.expressions import Frame
from kinfold.rows.engines.formula_cells import string
from kinfold.rows.source_form import Form, alike, pattern


def normalized(db: Database, frame: Frame, missing: Sequence[str] = ()) -> Frame:
    """Return the table in plain text: null for words for missing, points in numbers; `missing` are whole texts."""
    form = frame.form
    texts = [c for c, kind in zip(frame.columns, frame.types, strict=True) if kind == "VARCHAR"]
    values = {c: present_text(c, form.na, missing) for c in texts}
    asked = [question for c in texts for question in _questions(c, values[c], form)]
    answers = db.answers(asked, frame.table) if texts and (form.na or missing or form.marked) else None
    if answers is None:
        return frame
    fresh, numeric, blanked = {}, set(), set()
    for c in texts:
        gone, filled, fitting, marks = (next(answers) or 0 for _ in range(4))
        if gone:
            blanked.add(c)
            fresh[c] = values[c]
        if form.marked and filled and fitting == filled:
            numeric.add(c)
            fresh |= {c: _plain(values[c], form)} if marks else {}
    found = replace(frame, numeric=_names(frame, numeric), blanked=_names(frame, blanked))
    if not fresh:
        return found
    table = db.table(f"SELECT {', '.join(f'{fresh.get(c, c)} AS {c}' for c in frame.columns)} FROM {frame.table}")
    db.connection.execute(f"DROP TABLE {frame.table}")
    return replace(found, table=table)


def written(frame: Frame, name: str) -> str:
    """SQL for a column as a CSV file holds it."""
    c, mark, kind = frame.at(name), string(frame.form.decimal), frame.type_of(name)
    if frame.form.decimal == ".":
        return c
    if kind in ("FLOAT", "DOUBLE") or kind.startswith("DECIMAL"):
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
    """How many texts stand for missing, how many are left, how many of these fit the marks, how many have one."""
    if not form.marked:
        return f"count({c}) - count({value})", "0", "0", "0"
    marks = f"[{''.join(alike(mark)[1:-1] for mark in (form.decimal, form.thousands) if mark)}]"
    has = f"count_if(regexp_matches({value}, {string(marks)}))"
    return (
        f"count({c}) - count({value})",
        f"count({value})",
        f"count_if({_fits(value, pattern(form.decimal, form.thousands))})",
        has,
    )


def _fits(value: str, numbers: str) -> str:
    return f"regexp_full_match(trim({value}), {string(numbers)})"


def _plain(value: str, form: Form) -> str:
    plain = f"regexp_replace({value}, {string(alike(form.thousands))}, '', 'g')" if form.thousands else value
    return plain if form.decimal == "." else f"replace({plain}, {string(form.decimal)}, '.')"
