"""Reading hints: what a column of text seems to hold, what `[source]` would have to say, and when that stops a run.

A column of numbers or dates must not become one of words because nobody said how they are written. Where its type is
not declared, or declared as what it seems to be, the run stops and the key is named; `type = "nominal"` goes on.
"""

from __future__ import annotations

from collections.abc import Iterator

from kinfold.errors import Problem
from kinfold.rows.date_formats import turned
from kinfold.rows.schema import Column, Seeming
from kinfold.rows.source_form import Form

NAMES = {"number": "numbers", "moment": "dates"}


def seeming(column: Column, form: Form, key: str) -> Iterator[Problem]:
    """Say what a column of text seems to be and what to do about it; `key` is how a policy calls it."""
    if column.seems is not None:
        yield Problem(seemingly(column, form), f'{remedy(column.seems, form)}, or say columns.{key}.type = "nominal"')


def seemingly(column: Column, form: Form) -> str:
    """Say what a column of text seems to be, in counts; `form` is how its source is said to be written."""
    seems, filled = column.seems, column.rows - column.nulls
    if seems is None:
        return f"column '{column.name}' is text"
    what = f"column '{column.name}' seems to hold {NAMES[seems.sort]}{_written(seems, form)}"
    words = filled - seems.fitting - seems.others
    rest = [f"{words:,} {'is a word' if words == 1 else 'are words'} for missing"] if words else []
    rest += [f"{seems.others:,} {_be(seems.others)} something else"] if seems.others else []
    counted = f": {seems.fitting:,} of its {filled:,} values are such"
    return what + counted + "".join(f", {part}" for part in rest)


def _be(count: int) -> str:
    return "is" if count == 1 else "are"


def remedy(seems: Seeming, form: Form) -> str:
    """Return what to say in `[source]`, or on the command line, so that a column is read as what it seems to be."""
    keys = _marks(seems, form) if seems.sort == "number" else _dates(seems, form)
    if seems.words:
        texts = ", ".join(f'"{word}"' for word in (*form.na, *seems.words))
        keys.append(f"source.na = [{texts}] (--na)")
    told = f"say {' and '.join(keys)}" if keys else ""
    if seems.others:
        return f"{told}, and correct the others" if told else "correct them, or empty them"
    return told or "declare its type"


def _marks(seems: Seeming, form: Form) -> list[str]:
    if (form.decimal, form.thousands) in seems.ways:
        return []
    if doubtful(seems):
        return ['source.decimal = "," (--decimal) if the commas are decimal, source.thousands = "," if they are not']
    decimal, thousands = next((way for way in seems.ways if way[0] == form.decimal), seems.ways[0])
    told = [f'source.decimal = "{decimal}" (--decimal)'] if decimal != form.decimal else []
    return told + ([f'source.thousands = "{thousands}" (--thousands)'] if thousands != form.thousands else [])


def _dates(seems: Seeming, form: Form) -> list[str]:
    if {*form.dates} & {*seems.ways}:
        return []
    forms = seems.ways[:1] if not doubtful(seems) else (seems.ways[0], turned(seems.ways[0]))
    quoted = [f'"{each}"' for each in forms]
    return [f"source.dates = {' or '.join(quoted)} (--dates)"]


def doubtful(seems: Seeming) -> bool:
    """Whether values can be read in two ways that mean different things.

    >>> doubtful(Seeming("moment", 9, 0, ("%d/%m/%Y", "%m/%d/%Y"))), doubtful(Seeming("number", 9, 0, ((",", ""),)))
    (True, False)
    """
    if seems.sort == "moment":
        return turned(seems.ways[0]) != seems.ways[0] and turned(seems.ways[0]) in seems.ways
    return {(",", ""), (".", ",")} <= {*seems.ways} and (".", "") not in seems.ways


def _written(seems: Seeming, form: Form) -> str:
    if doubtful(seems):
        exchanged = "day and month could be exchanged" if seems.sort == "moment" else "a comma could be decimal or not"
        return f", ambiguous: {exchanged}"
    if seems.sort == "moment":
        return f" written as {seems.ways[0]}"
    decimal, thousands = seems.ways[0]
    marks = ["a decimal comma"] if decimal == "," else ["a decimal point"] if form.decimal == "," else []
    marks += ["marks for thousands"] if thousands else []
    return f" with {' and '.join(marks)}" if marks else ""
