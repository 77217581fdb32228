"""Source detection: how a table is written, one answer for all of its columns, and what stays undecided.

marks       a decimal comma or thousands separators: what fits every numeric column; if commas may be either, or columns
            contradict each other, nothing is guessed
missing     known words for missing values in columns of numbers or dates; they count in every column
dates       formats other than ISO that fit every date of a column; one column decides for others that do not show
            whether the day or the month comes first

Declared settings are not guessed. Every guess is reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kinfold.tables.schema import Column, Schema, Storage
from kinfold.tables.source_form import SourceForm, choose_date_format, describe_likely_type, suggest_source_keys

PLAIN_POINT = (".", "")
DEFAULT_VALUES = {"separator": ",", "encoding": ("utf-8", "utf-8-sig")}  # not written to a policy


def detect_form(schema: Schema, declared: SourceForm) -> SourceForm:
    """Return the format of a table: what is declared, and the rest as detected in its columns of text."""
    detected = declared
    if not declared.has_marks:
        decimal, thousands = _detect_marks(schema)
        detected = replace(detected, decimal=decimal, thousands=thousands)
    if not declared.na:
        likely = [c.likely_type for c in schema if c.likely_type and not c.likely_type.others]
        detected = replace(detected, na=tuple(sorted({word for each in likely for word in each.missing_words})))
    if not declared.dates:
        formats = [form for c in schema if (form := _detect_date_format(c)) and not form.startswith("%Y-%m-%d")]
        detected = replace(detected, dates=tuple(dict.fromkeys(formats)))
    return detected


def _detect_marks(schema: Schema) -> tuple[str, str]:
    """Return the marks that fit every numeric column, or a decimal point if none or several do."""
    marked = [{*c.likely_type.notations} for c in schema if _has_marks(c) and c.likely_type]
    if not marked:
        return PLAIN_POINT
    grouped = [{*c.likely_type.notations} for c in schema if c.storage is Storage.NUMBER and c.likely_type]
    plain = any(c.storage is Storage.NUMBER and c.decimals and not c.likely_type for c in schema)
    notations = [notation for notation in set.intersection(*marked, *grouped) if notation[0] == "." or not plain]
    if not notations or {(",", ""), (".", ",")} <= {*notations}:
        return PLAIN_POINT
    decimal, thousands = min(notations, key=lambda notation: (notation[1] != "", notation[0] != ".", notation))
    return decimal, thousands


def _has_marks(column: Column) -> bool:
    likely = column.likely_type
    if column.storage is not Storage.TEXT or likely is None or likely.sort != "number":
        return False
    return not likely.others and PLAIN_POINT not in likely.notations


def _detect_date_format(column: Column) -> str | None:
    if column.date_format and column.storage in (Storage.DATE, Storage.TIMESTAMP):
        return column.date_format
    likely = column.likely_type
    return choose_date_format(likely.notations) if likely and likely.sort == "moment" and not likely.others else None


def select_source_keys(source: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of `[source]` that are worth writing to a policy."""
    return {key: value for key, value in source.items() if value not in DEFAULT_VALUES.get(key, ())}


def describe_readings(before: Schema, after: Schema, declared: SourceForm, form: SourceForm) -> tuple[str, ...]:
    """Return notes on what was guessed, by column, and on texts that could be more than text."""
    guesses = {
        _describe_marks: (form.decimal, form.thousands) != (declared.decimal, declared.thousands),
        _describe_missing: form.na != declared.na,
        _describe_dates: form.dates != declared.dates,
    }
    notes = [
        f"{'guessed' if guessed else 'as declared'}: {line}"
        for describe, guessed in guesses.items()
        for line in describe(before, after, form)
    ]
    return (*notes, *_describe_undecided(after, form))


def _describe_marks(before: Schema, after: Schema, form: SourceForm) -> Iterator[str]:
    if form.has_marks:
        names = [f"'{c.name}'" for c in before if _has_marks(c) and after[c.name].storage is not Storage.TEXT]
        thousands = f", thousands {form.thousands!r}" if form.thousands else ""
        where = f" in {', '.join(names)}" if names else ""
        yield f"numbers are written with decimal {form.decimal!r}{thousands}{where}"


def _describe_missing(before: Schema, after: Schema, form: SourceForm) -> Iterator[str]:
    if form.na:
        counts = {c.name: after[c.name].nulls - c.nulls for c in before}
        where = ", ".join(f"'{name}' {count:,}" for name, count in counts.items() if count)
        meaning = f"{', '.join(map(repr, form.na))} {'means' if len(form.na) == 1 else 'mean'} missing"
        yield f"{meaning}, in every column; cells by column: {where}" if where else meaning


def _describe_dates(_: Schema, after: Schema, form: SourceForm) -> Iterator[str]:
    for each in form.dates:
        names = ", ".join(f"'{c.name}'" for c in after if c.date_format == each)
        yield f"dates are written as {each}" + (f" in {names}" if names else "")


def _describe_undecided(schema: Schema, form: SourceForm) -> Iterator[str]:
    for column in schema:
        if column.likely_type and column.storage is Storage.TEXT and column.distinct > column.MAX_CODE_VALUES:
            yield f"not decided: {describe_likely_type(column, form)}; {suggest_source_keys(column.likely_type, form)}"
