"""How a table seems to be written: one answer for all of its columns, and what was left open.

marks       a decimal comma or marks for thousands: what fits every column of numbers; where commas may be either, or
            columns contradict each other, nothing is guessed
missing     known words for missing in columns that hold numbers or dates but for these; they count in every column
dates       formats other than ISO that fit every date of a column; one column decides for others that leave open
            whether day or month comes first

What is declared is not guessed. What is guessed is told, for it is a guess.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kinfold.rows.date_formats import choose
from kinfold.rows.reading_hints import remedy, seemingly
from kinfold.rows.schema import Column, Schema, Storage
from kinfold.rows.source_form import Form

PLAIN_POINT = (".", "")
EVERYDAY = {"separator": ",", "encoding": ("utf-8", "utf-8-sig")}  # not worth writing down


def guess(schema: Schema, declared: Form) -> Form:
    """Return how a table is written: what is declared, and for the rest what its columns of text look like."""
    found = declared
    if not declared.marked:
        decimal, thousands = _marks(schema)
        found = replace(found, decimal=decimal, thousands=thousands)
    if not declared.na:
        words = {word for c in schema if c.seems and not c.seems.others for word in c.seems.words}
        found = replace(found, na=tuple(sorted(words)))
    if not declared.dates:
        formats = [form for c in schema if (form := _date_format(c)) and not form.startswith("%Y-%m-%d")]
        found = replace(found, dates=tuple(dict.fromkeys(formats)))
    return found


def _marks(schema: Schema) -> tuple[str, str]:
    """Return the marks that fit every column of numbers, or a decimal point where none do or two would."""
    marked = [{*c.seems.ways} for c in schema if _is_marked(c) and c.seems]
    if not marked:
        return PLAIN_POINT
    grouped = [{*c.seems.ways} for c in schema if c.storage is Storage.NUMBER and c.seems]
    plain = any(c.storage is Storage.NUMBER and c.decimals and not c.seems for c in schema)
    ways = [way for way in set.intersection(*marked, *grouped) if way[0] == "." or not plain]
    if not ways or {(",", ""), (".", ",")} <= {*ways}:
        return PLAIN_POINT
    decimal, thousands = min(ways, key=lambda way: (way[1] != "", way[0] != ".", way))
    return decimal, thousands


def _is_marked(column: Column) -> bool:
    seems = column.seems
    text = column.storage is Storage.TEXT and seems is not None
    return bool(text and seems and seems.sort == "number" and not seems.others and PLAIN_POINT not in seems.ways)


def _date_format(column: Column) -> str | None:
    if column.date_format and column.storage in (Storage.DATE, Storage.TIMESTAMP):
        return column.date_format
    seems = column.seems
    return choose(seems.ways) if seems and seems.sort == "moment" and not seems.others else None


def worth_writing(source: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of `[source]` that a policy should have: those that are not as everywhere."""
    return {key: value for key, value in source.items() if value not in EVERYDAY.get(key, ())}


def readings(before: Schema, after: Schema, declared: Form, form: Form) -> tuple[str, ...]:
    """Say what was guessed, by the columns that are read differently for it, and what seems to be more than text."""
    marks = (form.decimal, form.thousands) != (declared.decimal, declared.thousands)
    guesses = {_marks_told: marks, _words_told: form.na != declared.na, _dates_told: form.dates != declared.dates}
    told = [
        f"{'guessed' if guessed else 'as declared'}: {line}"
        for tell, guessed in guesses.items()
        for line in tell(before, after, form)
    ]
    return (*told, *_open(after, form))


def _marks_told(before: Schema, after: Schema, form: Form) -> Iterator[str]:
    if form.marked:
        names = [f"'{c.name}'" for c in before if _is_marked(c) and after[c.name].storage is not Storage.TEXT]
        thousands = f", thousands {form.thousands!r}" if form.thousands else ""
        where = f" in {', '.join(names)}" if names else ""
        yield f"numbers are written with decimal {form.decimal!r}{thousands}{where}"


def _words_told(before: Schema, after: Schema, form: Form) -> Iterator[str]:
    if form.na:
        counts = {c.name: after[c.name].nulls - c.nulls for c in before}
        where = ", ".join(f"'{name}' {count:,}" for name, count in counts.items() if count)
        told = f"{', '.join(map(repr, form.na))} {'means' if len(form.na) == 1 else 'mean'} missing"
        yield f"{told}, in every column; cells by column: {where}" if where else told


def _dates_told(_: Schema, after: Schema, form: Form) -> Iterator[str]:
    for each in form.dates:
        names = ", ".join(f"'{c.name}'" for c in after if c.date_format == each)
        yield f"dates are written as {each}" + (f" in {names}" if names else "")


def _open(schema: Schema, form: Form) -> Iterator[str]:
    for column in schema:
        if column.seems and column.storage is Storage.TEXT and column.distinct > column.FEW:
            yield f"not decided: {seemingly(column, form)}; {remedy(column.seems, form)}"
