"""Layout: which line of a file has the names of the columns, and which lines below it are not records.

    title           lines with few fields above the first line that has a name for every column
    groups          a first header with gaps or repeated names above a second one with a name for every column
    units           a line of texts below the header, above columns of numbers: units, or long names
    row names       the first column has no name, or the header has one field less than the records, which are numbered,
                    as R writes them

Nothing is changed silently. A file with another header than its first line is refused with the keys to set; `profile`
sets them and says so. A first column without a name is read under the name `row_names`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from kinfold.errors import LayoutError
from kinfold.tables.column_names import Hint, find_hints, find_values_in_header
from kinfold.tables.duckdb.columns import MISSING_WORDS, NUMBER_LIKE_PATTERN

ROW_NAMES = "row_names"
SAMPLED_LINES = 200  # at the start of a file, in which the layout is detected
MAX_LINES_ABOVE = 50  # that do not belong to the table
MIN_RECORDS = 6  # below a line of units: with fewer, a record may look like one
MOSTLY = 0.8  # share of the columns that a header names, and of the numbers in a column of numbers
NUMBER = re.compile(NUMBER_LIKE_PATTERN)
DIGITAL = re.compile(r"[+-]?[$\u20ac\u00a3]? ?[.,]?[0-9]")  # the start of a number, a date or an amount
NO_UNITS = frozenset((*MISSING_WORDS, "*"))  # a released record may be all stars
BRACKETS = re.compile(r"\[.*\]|\(.*\)")


class Line(NamedTuple):
    """A line that is not empty: its number in the file, from 1, and its fields."""

    number: int
    fields: Sequence[str]


def check_layout(lines: Sequence[Line], name: str, noun: str) -> None:
    """Refuse a table whose header is not its first line, or that has units below its header; `noun`: line or row."""
    lines = lines[:SAMPLED_LINES]
    width = Counter(_count_filled(line.fields) for line in lines).most_common(1)[0][0] if lines else 0
    if width < 2 or len(lines) < 2:
        return
    place = _find_header(lines, max(len(line.fields) for line in lines if _count_filled(line.fields) == width))
    if place is None:
        return
    header, below, keys = lines[place].number, lines[place + 1 :], {}
    what = f"{noun} {header} looks like the header, not {noun} {lines[0].number}" if place else ""
    if len(below) > MIN_RECORDS and _is_units(below[0].fields, [line.fields for line in below[1:]]):
        what += f"{'; ' if what else ''}{noun} {below[0].number}, below the header, looks like units or labels"
        keys = {"skip": below[0].number}
    if what:
        raise LayoutError.suggest(f"'{name}': {what}", header=header, **keys)


def name_first_column(header: Sequence[str], rows: Sequence[Sequence[str]] = ()) -> list[str]:
    """Return the header with a name for row names, which R writes without one; `rows` are the first records."""
    names = list(header)
    if _lacks_row_names(names, rows):
        names.insert(0, "")
    if len(names) > 1 and not names[0].strip() and all(name.strip() for name in names[1:]):
        used = {name.casefold() for name in names}
        names[0] = next(name for at in range(len(names) + 1) if (name := ROW_NAMES + "_" * at) not in used)
    return names


def _lacks_row_names(names: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether each record has one field more than the header, and starts with its number: 1, 2, 3 ...

    Otherwise the name of another column may be absent, or the lines may end with a separator.
    """
    if not rows or not all(name.strip() for name in names):
        return False
    numbered = all(row[:1] == [str(at)] and len(row) == len(names) + 1 for at, row in enumerate(rows, 1))
    filled = numbered and any(row[-1].strip() for row in rows)
    return filled and Hint.NUMBER not in find_hints(names[0])


def _find_header(lines: Sequence[Line], width: int) -> int | None:
    """Return the place of the first line that names every column, if only titles or groups are above it."""
    for place, line in enumerate(lines[:MAX_LINES_ABOVE]):
        below = [list(other.fields) for other in lines[place + 1 :]]
        if _names_columns(line.fields, width) and not find_values_in_header(list(line.fields), below):
            return place if below else None
        if _count_filled(line.fields) >= width and len(set(line.fields)) == len(line.fields):
            return None  # a record, or a header that cannot be used
    return None


def _names_columns(fields: Sequence[str], width: int) -> bool:
    """Whether a line has a different text for each column; the first may be empty, or left out: row names."""
    names = [field.strip() for field in fields]
    if len(names) not in (width, width - 1) or not all(names[1:]) or (not names[0] and len(names) < 3):
        return False
    texts = sum(not NUMBER.fullmatch(name) for name in names)
    return len({name.casefold() for name in names}) == len(names) and texts >= MOSTLY * len(names)


def _is_units(fields: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Whether a line has texts above columns of numbers and dates, above half of them or in brackets, and no number."""
    columns = [[row[at].strip() for row in below if len(row) > at and row[at].strip()] for at in range(len(fields))]
    numeric = [at for at, values in enumerate(columns) if values and _count_digital(values) >= MOSTLY * len(values)]
    filled = [cell for at in numeric if (cell := fields[at].strip())]
    if not filled or _count_digital(filled) or any(cell.casefold() in NO_UNITS for cell in filled):
        return False
    bracketed = all(BRACKETS.fullmatch(field.strip()) for field in fields if field.strip())
    repeated = any(fields[at].strip() in values for at, values in enumerate(columns) if fields[at].strip())
    return not repeated and (bracketed or len(filled) >= 0.5 * len(numeric))


def _count_digital(values: Sequence[str]) -> int:
    return sum(DIGITAL.match(value) is not None for value in values)


def _count_filled(fields: Sequence[str]) -> int:
    return sum(bool(field.strip()) for field in fields)
