"""Normalization: a source's own notation becomes plain text, and a CSV file is written in that notation again.

quotes      in a release with `output.spreadsheet_safe` the apostrophe before a formula is removed
missing     in every text column a word for a missing value becomes null; spaces around it do not count
numbers     a text column in which every value is a number with the marks of `[source]` is stored with a decimal point
            and without thousands marks: "1.234,5" is stored as "1234.5"
writing     in a CSV file such columns, and all numeric ones, have the decimal mark again

A release has no thousands marks; without them normalization is exact: different texts stay different.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from kinfold.tables.duckdb.connection import Database
from kinfold.tables.duckdb.expressions import (
    FLOAT_TYPES,
    Frame,
    is_formula_sql,
    is_quoted_sql,
    quote_string,
    unquote_formula_sql,
)
from kinfold.tables.source_form import SourceForm, build_mark_pattern, build_number_pattern


class _TextCounts(NamedTuple):
    """Counts of a text column: quoted and other formulas, words for missing, other texts, numbers, texts with marks."""

    quoted: int
    formulas: int
    missing: int
    filled: int
    fitting: int
    decimals: int
    groups: int

    @property
    def numeric(self) -> bool:
        return 0 < self.filled == self.fitting


def normalize(db: Database, frame: Frame, missing: Sequence[str] = ()) -> Frame:
    """Return the table with null for missing values and plain numbers; `missing` are further words for missing."""
    normalized, values = plan_normalization(
        frame, missing, lambda questions: db.answers([q for own in questions.values() for q in own], frame.table)
    )
    if not values:
        return normalized
    table = db.table(f"SELECT {', '.join(f'{values.get(c, c)} AS {c}' for c in frame.columns)} FROM {frame.table}")
    db.drop(frame.table)
    return replace(normalized, table=table)


def plan_normalization(
    frame: Frame, missing: Sequence[str], ask: Callable[[Mapping[str, Sequence[str]]], Iterator[Any]]
) -> tuple[Frame, dict[str, str]]:
    """Return the normalized frame, and SQL for the columns to rewrite; `ask` computes aggregates by column."""
    form = frame.form
    texts = [c for c, kind in zip(frame.columns, frame.types, strict=True) if kind == "VARCHAR"]
    if not texts or not (form.na or missing or form.has_marks or form.quoted):
        return frame, {}
    plain = {c: unquote_formula_sql(c) if form.quoted else c for c in texts}
    values = {c: present_text_sql(plain[c], form.na, missing) for c in texts}
    answers = ask({c: _questions(c, values[c], form) for c in texts})
    counts = {c: _TextCounts(*(next(answers) or 0 for _ in _TextCounts._fields)) for c in texts}
    marked = {c for c, count in counts.items() if count.numeric and (count.decimals or count.groups)}
    rewritten = {
        c: _plain_number_sql(values[c], form) if c in marked else values[c]
        for c in texts
        if c in marked or counts[c].missing or counts[c].quoted
    }
    thousands = form.thousands if any(counts[c].groups for c in marked) else ""
    normalized = replace(
        frame,
        form=replace(form, thousands=thousands),
        numeric=_names(frame, {c for c in texts if counts[c].numeric}),
        blanked=_names(frame, {c for c in texts if counts[c].missing}),
        formulas=tuple((n, counts[c].formulas) for n, c in zip(frame.names, frame.columns, strict=True) if c in counts),
    )
    return normalized, rewritten


def csv_value_sql(frame: Frame, name: str) -> str:
    """Return SQL for a column as it is written in a CSV file."""
    c, mark, kind = frame.at(name), quote_string(frame.form.decimal), frame.sql_type(name)
    if kind in FLOAT_TYPES:
        c = f"CASE WHEN isnan({c}) THEN CAST('nan' AS {kind}) ELSE {c} END"  # without a sign, as in `cast_text_sql`
    if frame.form.decimal == ".":
        return c
    if kind in FLOAT_TYPES or kind.startswith("DECIMAL"):
        return f"replace(CAST({c} AS VARCHAR), '.', {mark})"
    if kind != "VARCHAR" or name not in frame.numeric:
        return c
    if name in frame.labelled:
        return f"CASE WHEN {_fits_sql(c, build_number_pattern())} THEN replace({c}, '.', {mark}) ELSE {c} END"
    return f"replace({c}, '.', {mark})"


def _names(frame: Frame, columns: set[str]) -> frozenset[str]:
    return frozenset(name for name, c in zip(frame.names, frame.columns, strict=True) if c in columns)


def present_text_sql(c: str, words: Sequence[str], missing: Sequence[str] = ()) -> str:
    """Return SQL that is null for a word for a missing value, else the text."""
    tests = [f"{c} IN ({', '.join(map(quote_string, missing))})"] if missing else []
    tests += [f"trim({c}) IN ({', '.join(quote_string(word.strip(' ')) for word in words)})"] if words else []
    return f"CASE WHEN NOT ({' OR '.join(tests)}) THEN {c} END" if tests else c


def _questions(c: str, value: str, form: SourceForm) -> tuple[str, ...]:
    missing = f"count({c}) - count({value})"
    tests = (is_quoted_sql(c), is_formula_sql(c)) if form.quoted else ()
    quotes = tuple(f"count(*) FILTER (WHERE {test})" for test in tests) or ("0", "0")
    if not form.has_marks:
        return *quotes, missing, "0", "0", "0", "0"
    fitting = _fits_sql(value, build_number_pattern(form.decimal, form.thousands))
    decimals = f"contains({value}, {quote_string(form.decimal)})" if form.decimal != "." else "FALSE"
    marks = quote_string(build_mark_pattern(form.thousands))
    groups = f"regexp_matches({value}, {marks})" if form.thousands else "FALSE"
    counts = (f"count(*) FILTER (WHERE {condition})" for condition in (fitting, decimals, groups))
    return *quotes, missing, f"count({value})", *counts


def _fits_sql(value: str, numbers: str) -> str:
    return f"regexp_full_match(trim({value}), {quote_string(numbers)})"


def _plain_number_sql(value: str, form: SourceForm) -> str:
    if form.thousands:
        value = f"regexp_replace({value}, {quote_string(build_mark_pattern(form.thousands))}, '', 'g')"
    return value if form.decimal == "." else f"replace({value}, {quote_string(form.decimal)}, '.')"
