"""Exact order in SQL: confidential values told apart and ordered by what they say, never as doubles.

A column that knows its type is ordered by it. Numbers written as text become decimals where 38 digits hold all of them;
where they do not, their distinct texts are ordered outside the database. Moments written as text are read in the format
that the reading names, or as ISO 8601 writes them: to the second by the database, and beyond that digit by digit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from kinfold.errors import DataError
from kinfold.rows.categories import LONGEST, PLAIN
from kinfold.rows.categories import NUMBER as SPELLED
from kinfold.rows.engines.expressions import FLOATING, as_text
from kinfold.rows.engines.type_inference import WHOLE_TYPES
from kinfold.rows.schema import Reading

EVERY = "TRUE"  # value fits
WIDEST = 38  # digits of a decimal in the database
NUMBER = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,9})?"  # whatever zeros it starts with
ISO = (
    r"[0-9]{4,6}-[0-9]{1,2}-[0-9]{1,2}( \(BC\))?([ T][0-9]{1,2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?)?"
    r"( ?(Z|[+-][0-9]{2}(:?[0-9]{2})?))?( \(BC\))?"
)


@dataclass(frozen=True)
class ExactOrder:
    """SQL for a value in its order, and for whether a value that is there can be read so."""

    value: str
    fits: str


def ordered(c: str, sql_type: str, reading: Reading) -> ExactOrder | None:
    """Return how to order a column, or None for numbers written as text: `digits` tells more of those."""
    if reading.sort == "text":
        return ExactOrder(_categories(c, sql_type), EVERY)
    if reading.sort == "moment":
        return _moments(c, sql_type, reading.date_format)
    if sql_type in WHOLE_TYPES or sql_type.startswith("DECIMAL"):
        return ExactOrder(c, EVERY)
    if sql_type in ("FLOAT", "DOUBLE"):
        return ExactOrder(c, f"isfinite({c})")
    return None if sql_type == "VARCHAR" else ExactOrder(c, "FALSE")


def _categories(c: str, sql_type: str) -> str:
    """SQL for the text of a column whose type writes equal values equally, but for the zeros of floating point.

    Numbers written as text are left to `other_spellings`.
    """
    text = as_text(c, sql_type)
    return f"CASE WHEN {c} = 0 THEN '0.0' ELSE {text} END" if sql_type in FLOATING else text


def other_spellings(c: str, table: str) -> str:
    """SQL for the distinct texts of a column that are numbers, but not written as `categories.category` does it."""
    plain = f"regexp_full_match(v, '{PLAIN}') AND length(v) <= {LONGEST}"
    return (
        f"SELECT v FROM (SELECT DISTINCT {c} AS v FROM {table}) "
        f"WHERE regexp_full_match(trim(v), '{SPELLED}') AND NOT ({plain})"
    )


def _moments(c: str, sql_type: str, date_format: str | None) -> ExactOrder:
    if sql_type == "DATE" or sql_type.startswith("TIMESTAMP"):
        return ExactOrder(c, EVERY)
    if sql_type != "VARCHAR":
        return ExactOrder(c, "FALSE")
    text = f"trim({c})"
    if date_format:
        read = "try_strptime({}, '{}')".format(text, date_format.replace("'", "''"))
        return ExactOrder(read, f"{read} IS NOT NULL")
    fraction = rf"regexp_extract({text}, '\.([0-9]+)', 1)"
    second = rf"try_cast(regexp_replace({text}, '\.[0-9]+', '') AS TIMESTAMPTZ)"
    value = f"CASE WHEN {c} IS NOT NULL THEN struct_pack(at := {second}, beyond := rtrim({fraction}, '0')) END"
    return ExactOrder(value, f"regexp_full_match({text}, '{ISO}') AND {second} IS NOT NULL")


def digits(c: str) -> str:
    """SQL that asks a column of text: values, numbers among them, exponents, most digits before and after the point."""
    text = f"trim({c})"
    asked = (
        f"count({c})",
        f"count(*) FILTER (WHERE regexp_full_match({text}, '{NUMBER}'))",
        f"count(*) FILTER (WHERE {text} ILIKE '%e%')",
        f"max(length(split_part(ltrim({text}, '+-'), '.', 1)))",
        f"max(length(split_part({text}, '.', 2)))",
    )
    return ", ".join(f"coalesce({question}, 0)" for question in asked)  # of nothing but nulls some are null


def decimals(c: str, exponents: int, before: int, after: int) -> str | None:
    """SQL for numbers written as text as decimals, or None where the database has none that are wide enough."""
    return None if exponents or before + after > WIDEST else f"CAST(trim({c}) AS DECIMAL({WIDEST}, {after}))"


def places(texts: Sequence[str]) -> list[int]:
    """Number texts by the numbers that they say; equal numbers share a place.

    >>> places(["1e3", "2", "1000.0", "-1e-500"])
    [2, 1, 2, 0]
    """
    numbers = [Decimal(text) for text in texts]
    place = {number: at for at, number in enumerate(sorted(set(numbers)))}
    return [place[number] for number in numbers]


def check_fit(name: str, reading: Reading, filled: int, fitting: int) -> None:
    """Refuse a column with values that are not what it is read as."""
    if fitting < filled:
        what = {"number": "numbers", "moment": "dates"}[reading.sort]
        written = f", written as {reading.date_format}" if reading.date_format else ""
        raise DataError(
            f"column '{name}' holds {what}{written}, but {filled - fitting:,} of its {filled:,} values are none",
            fix="correct them, or declare the column nominal",
        )
