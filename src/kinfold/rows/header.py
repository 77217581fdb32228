"""Whether the first line of a CSV file is one of names or a record: a record must not be shown in a message.

A field of the first line looks like a value of its column, not like its name, where

digits      it is a number, a date, a telephone number (digits and no letter), and so is most of what stands below it;
            but years in even steps above what is no year are the columns of a wide table
codes       it has two digits or more, or an @, and all that stands below it is of the same form: P00123 above P00124
repeated    it is found again below, in this way in two columns, or in one where the table has no more than two

No such field, and the line is a header. Any, and it is one only if a name in it is known from the policy.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import pairwise

from kinfold.errors import DataError
from kinfold.rows.schema import Schema

YEARS = range(1800, 2200)
PLACES_SHOWN = 5


def require_header(schema: Schema, known: Collection[str] = ()) -> None:
    """Refuse a table whose first line is a record, without showing it; a line with a known name is a header."""
    if schema.doubtful and not set(schema.names) & set(known):
        raise no_header(schema.doubtful)


def no_header(places: Sequence[int]) -> DataError:
    """Return the error that says where the first line looks like a record."""
    shown = ", ".join(map(str, places[:PLACES_SHOWN])) + (", ..." if len(places) > PLACES_SHOWN else "")
    columns = f"column {shown} holds" if len(places) == 1 else f"columns {shown} hold"
    return DataError(
        f"the first line does not look like a header: in it {columns} what could be a value from the lines below",
        fix="say source.header = 0 (--header 0) if no line has the names, source.header = 1 if this one has, or the "
        "number of another line; rename columns such as 2019 (to year_2019), or name one of the columns in a policy",
    )


def values_in(first: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[int, ...]:
    """Return the places, from 1, where the first line of a file looks like a record among the lines below.

    >>> values_in(["34", "f", "flu"], [["51", "m", "flu"], ["47", "f", "cold"]])
    (1, 2, 3)
    >>> values_in(["age", "sex", "disease"], [["51", "m", "flu"], ["47", "f", "cold"]])
    ()
    """
    fields = [field.strip() for field in first]
    others = [
        row for row in rows if list(row) != list(first) or len(fields) == 1
    ]  # files joined have their header twice
    below = [[row[i].strip() for row in others if len(row) > i] for i in range(len(fields))]
    filled = [[value for value in column if value] for column in below]
    found = {i for i, field in enumerate(fields) if _digits(field, filled[i]) or _code(field, filled[i])}
    if _is_wide([fields[i] for i in sorted(found)], [filled[i] for i in sorted(found)]):
        return ()
    repeated = {i for i, field in enumerate(fields) if field and field in filled[i]}
    if len(repeated) >= min(2, (len(fields) + 1) // 2) or found:
        found |= repeated
    return tuple(i + 1 for i in sorted(found))


def _digits(field: str, below: Sequence[str]) -> bool:
    return _is_digits(field) and 2 * sum(map(_is_digits, below)) >= max(len(below), 1)


def _is_digits(field: str) -> bool:
    """Whether a text is digits and signs; 1e5 and NaN are numbers too."""
    if re.fullmatch(r"(?i)[+-]?(nan|inf|infinity|[\d.]+e[+-]?\d+)", field):
        return True
    return any(c.isdigit() for c in field) and not any(c.isalpha() for c in field)


def _code(field: str, below: Sequence[str]) -> bool:
    if "@" not in field and sum(c.isdigit() for c in field) < 2:
        return False
    return bool(below) and all(_form(value) == _form(field) for value in below)


def _form(text: str) -> str:
    """Return the form of a text: runs of digits and letters as one sign each.

    >>> _form("P00123"), _form("ann.lee@x.org"), _form("3 Jan 2024")
    ('A9', 'a.a@a.a', '9 Aa 9')
    """
    kinds = ("9" if c.isdigit() else "A" if c.isupper() else "a" if c.isalpha() else c for c in text)
    return re.sub(r"(.)\1+", r"\1", "".join(kinds))


def _is_wide(names: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Whether these are years in even steps, with other things than years below them."""
    if len(names) < 2 or not all(re.fullmatch(r"\d{4}", name) and int(name) in YEARS for name in names):
        return False
    steps = {int(after) - int(before) for before, after in pairwise(names)}
    values = [value for column in below for value in column]
    years = sum(bool(re.fullmatch(r"\d{4}", value)) and int(value) in YEARS for value in values)
    return len(steps) == 1 and min(steps) > 0 and 2 * years < len(values)
