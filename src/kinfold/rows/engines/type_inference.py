"""What the columns of a table are, asked in SQL of all their values.

Text that looks like a number is a number only if writing it back would give the same text but for its sign and
decimals: `02138` stays text. Dates are read in one of many formats (see `date_formats`), which must fit every value;
where day and month could be exchanged for every value, the column stays text unless the source is declared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kinfold.rows.date_formats import has_time
from kinfold.rows.engines.formula_cells import is_formula, string
from kinfold.rows.engines.seeming_types import Look
from kinfold.rows.schema import Column, Storage

WHOLE = r"[+-]?(0|[1-9][0-9]{0,17})"
NUMBER = r"[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"
NOT_FINITE = r"(?i)[+-]?(nan|inf|infinity)"
MOST_DECIMALS = 12
SHORT = 4  # decimals that are told by rounding

WHOLE_TYPES = (
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "HUGEINT",
    "UTINYINT",
    "USMALLINT",
    "UINTEGER",
    "UBIGINT",
    "UHUGEINT",
)


def plain_count(condition: str) -> str:
    """SQL for how many rows meet a condition, where each is held."""
    return f"count(*) FILTER (WHERE {condition})"


def questions(
    sql_type: str, c: str, marked: str | None = None, rows: Callable[[str], str] = plain_count
) -> dict[str, str]:
    """Aggregates that tell what the column `c` is, by name; of texts over the distinct ones, `n` rows each.

    `rows` is SQL for how many rows meet a condition.
    `marked` is the pattern of numbers by the marks of the source, where not all of the column's texts are such: then
    it is no column of numbers, whatever these look like.
    """
    asked = {"filled": (_rows if sql_type == "VARCHAR" else rows)(f"{c} IS NOT NULL")}
    if marked is not None:
        asked |= dict.fromkeys(("whole", "not_finite", "decimals"), "0")
        asked["numbers"] = _rows(f"regexp_full_match(trim({c}), {string(marked)})")
        asked["formulas"] = _rows(is_formula(c))
    elif sql_type == "VARCHAR":
        text = f"trim({c})"
        fraction = f"nullif(rtrim(split_part({text}, '.', 2), '0'), '')"
        asked |= {
            "whole": _rows(f"regexp_full_match({text}, '{WHOLE}')"),
            "numbers": _rows(f"regexp_full_match({text}, '{NUMBER}') AND isfinite(try_cast({text} AS DOUBLE))"),
            "not_finite": _rows(f"regexp_full_match({text}, '{NOT_FINITE}')"),
            "fractions": _rows(f"CASE WHEN {text} ILIKE '%e%' THEN 'e' ELSE {fraction} END IS NOT NULL"),
            "decimals": f"max(CASE WHEN {text} ILIKE '%e%' THEN 99 ELSE length(split_part({text}, '.', 2)) END)",
            "formulas": _rows(is_formula(c)),
        }
    elif sql_type in ("FLOAT", "DOUBLE"):
        asked |= {"not_finite": rows(f"NOT isfinite({c})"), "decimals": f"max({_decimals_of(c, sql_type)})"}
    elif sql_type.startswith("TIMESTAMP"):
        asked["whole_days"] = rows(f"{c} = date_trunc('day', {c})")
    return asked


def _rows(condition: str) -> str:
    """SQL for how many rows hold a text that meets a condition."""
    return f"coalesce(sum(n) FILTER (WHERE {condition}), 0)"


def _decimals_of(c: str, sql_type: str) -> str:
    """SQL for how many decimals a floating number is written with, 99 for more than are counted.

    Where it is the nearest double to a whole number over 100, say, it is written with two: so most are told without
    writing them. Beyond 15 digits, and below a thousandth, they are written out.
    """
    text = f"CAST({c} AS VARCHAR)"
    written = f"CASE WHEN {text} LIKE '%e%' THEN 99 ELSE length(nullif(split_part({text}, '.', 2), '0')) END"
    if sql_type == "FLOAT":
        return f"CASE WHEN isfinite({c}) THEN {written} END"
    plain = f"abs({c}) < 1e9 AND ({c} = 0 OR abs({c}) > 1e-3)"
    short = "".join(f" WHEN {plain} AND {c} = round({c}, {d}) THEN {d}" for d in range(SHORT + 1))
    return f"CASE WHEN NOT isfinite({c}) THEN NULL{short} ELSE {written} END"


def long_decimals(c: str, sql_type: str) -> str:
    """SQL for whether some of the numbers in a column are written with more decimals than are counted."""
    return f"coalesce(max({_decimals_of(c, sql_type)}), 0) > {MOST_DECIMALS}"


def may_be_whole(found: Mapping[str, int]) -> bool:
    """Whether a column of text holds numbers with a few decimals, all of which may be zeros."""
    return "whole" in found and found["filled"] == found["numbers"] and 0 < found["decimals"] <= MOST_DECIMALS


def has_fractions(c: str) -> str:
    """SQL for whether a number in the column `c` has decimals that are not zeros: 43.0 is a whole number."""
    return f"bool_or(rtrim(split_part(trim({c}), '.', 2), '0') <> '')"


@dataclass(frozen=True)
class Stored:
    """How a column comes: its name, its SQL type, whether its source knows types, and the time zone of moments."""

    name: str
    sql_type: str
    typed: bool
    zone: str | None = None


def column(stored: Stored, rows: int, found: Mapping[str, int], look: Look) -> Column:
    """Judge a column by the answers; in a `typed` source text is text, whatever it looks like."""
    name, sql_type = stored.name, stored.sql_type
    filled = found["filled"]
    decimals = found.get("decimals", 0) if found.get("fractions", 1) else 0  # 43.0 is a whole number
    base: dict[str, Any] = {"rows": rows, "nulls": rows - filled, "distinct": found["distinct"]}
    if sql_type != "VARCHAR":
        storage = Storage.DATE if filled and found.get("whole_days") == filled else _stored(sql_type)
        not_finite = found.get("not_finite", 0)
        numbers = filled - not_finite if storage in (Storage.INTEGER, Storage.NUMBER) else 0
        return Column(
            name,
            storage,
            **base,
            numbers=numbers,
            not_finite=not_finite,
            decimals=_decimals(storage, decimals, sql_type),
            floating=sql_type in ("FLOAT", "DOUBLE"),
            zone=stored.zone,
        )
    storage = Storage.TEXT if stored.typed else _written(found, filled, look.date_format)
    return Column(
        name,
        storage,
        **base,
        numbers=found["numbers"],
        not_finite=found["not_finite"],
        decimals=_decimals(storage, decimals, sql_type),
        date_format=look.date_format,
        formulas=found["formulas"],
        seems=None if stored.typed else look.seems,
    )


def _stored(sql_type: str) -> Storage:
    if sql_type in WHOLE_TYPES:
        return Storage.INTEGER
    if sql_type in ("FLOAT", "DOUBLE") or sql_type.startswith("DECIMAL"):
        return Storage.NUMBER
    if sql_type.startswith("TIMESTAMP"):
        return Storage.TIMESTAMP
    return {"DATE": Storage.DATE, "BOOLEAN": Storage.BOOLEAN}.get(sql_type, Storage.TEXT)


def _written(found: Mapping[str, Any], filled: int, date_format: str | None) -> Storage:
    if not filled:
        return Storage.TEXT
    if date_format:
        return Storage.TIMESTAMP if has_time(date_format) else Storage.DATE
    if found["whole"] == filled:
        return Storage.INTEGER
    if found["numbers"] and found["numbers"] + found["not_finite"] == filled:
        return Storage.NUMBER
    return Storage.TEXT


def _decimals(storage: Storage, found: int, sql_type: str) -> int | None:
    if sql_type.startswith("DECIMAL"):
        return int(sql_type.rstrip(")").split(",")[1])
    if storage not in (Storage.INTEGER, Storage.NUMBER, Storage.TEXT):
        return None
    return found if found <= MOST_DECIMALS else None
