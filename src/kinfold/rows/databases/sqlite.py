"""SQLite, where every value has a type of its own and a column has none: each column is asked what it holds.

whole numbers, numbers    as such, where nothing else is in the column
everything else           as text; SQLite has no dates and no decimals, so they are found in the text as in a CSV file
bytes                     are no single values

The driver takes a column for what its first rows are, and fails where a later one is something else. So the first row
that it gets is an example, made up, of what each column holds; it is left out again (see `row_import`).
The file is opened for reading only, and a query is read inside another one, so that it cannot write.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kinfold.errors import DataError, KinfoldError, PolicyError, Problem
from kinfold.rows.databases.address import DatabaseAddress, TableName
from kinfold.rows.databases.selection import Selected, Selection, inner_query
from kinfold.rows.databases.session import SEVERAL, Session, no_driver, opened
from kinfold.rows.engines.expressions import identifier
from kinfold.rows.engines.formula_cells import string

BATCHES = {"adbc.sqlite.query.batch_rows": "65536"}
EXAMPLES = {"integer": "0", "real": "0.5", "text": "''"}
TYPES = {"BIGINT": "INTEGER", "DOUBLE": "REAL", "VARCHAR": "TEXT"}
WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER")
FITTED = dict.fromkeys(WHOLE, "BIGINT") | {"FLOAT": "DOUBLE"}
EXACT = 2**53
CHUNK = 200  # columns of one question: SQLite has a limit


def connect(address: DatabaseAddress, kind: type[KinfoldError] = DataError, mode: str = "ro") -> Session:
    """Open a file, for reading only unless another mode is named."""
    path = Path(address.uri)
    if mode == "ro" or path.exists():
        _check_file(path)
    if mode != "ro" and path.exists() and not os.access(path, os.W_OK):
        raise PolicyError(f"'{path}' may not be written", fix="ask for the right to write it")
    driver, uri = _driver(), f"file:{quote(str(path.absolute()))}?mode={mode}"
    return opened(lambda: driver.connect(uri), address.place, kind)


def _driver() -> Any:
    try:
        import adbc_driver_sqlite.dbapi

        return adbc_driver_sqlite.dbapi
    except ImportError:
        raise no_driver("SQLite") from None


def selection(session: Session, address: DatabaseAddress) -> Selection:
    """Return what to ask for the rows of a table or a query, and what comes."""
    inner = f"SELECT * FROM {named(address.table)}" if address.table else _one_statement(inner_query(address.query))
    names = _names(session, inner)
    kinds = _kinds(session, inner, names)
    problems = [
        Problem(f"column '{name}' holds bytes, not single values", "unpack or leave out that column with a query")
        for name, kind in zip(names, kinds, strict=True)
        if kind == "blob"
    ]
    if problems:
        raise session.error(*problems)
    example = ", ".join(f"{EXAMPLES[kind]} AS c{i}" for i, kind in enumerate(kinds))
    values = ", ".join(_value(f"q.{identifier(name)}", kind) for name, kind in zip(names, kinds, strict=True))
    found = tuple(Selected(name, written=kind == "text") for name, kind in zip(names, kinds, strict=True))
    sql = f"SELECT {example} UNION ALL SELECT {values} FROM (\n{inner}\n) AS q"
    return Selection(sql, found, BATCHES, example=True)


def _check_file(path: Path) -> None:
    if not path.exists():
        raise DataError(f"no such file: '{path}'", fix="check the path; four slashes start at the root")
    if not path.is_file():
        raise DataError(f"'{path}' is no ordinary file", fix="name the file of the database")
    if not os.access(path, os.R_OK):
        raise DataError(f"'{path}' may not be read", fix="ask for the right to read it")


def _one_statement(query: str) -> str:
    """Refuse a query with more than one statement: SQLite would run the first, and forget the others."""
    ends = [place + 1 for place, sign in enumerate(query) if sign == ";"]
    if any(sqlite3.complete_statement(query[:end]) for end in ends):
        raise PolicyError(SEVERAL.what, fix=SEVERAL.fix)
    return query


def _names(session: Session, inner: str) -> list[str]:
    with session.stream(f"SELECT * FROM (\n{inner}\n) AS q LIMIT 0", {}) as rows:
        return list(rows.schema.names)


def _kinds(session: Session, inner: str, names: Sequence[str]) -> list[str]:
    """Return what each column holds: whole numbers, numbers, bytes, or text and whatever else."""
    found: list[str] = []
    for start in range(0, len(names), CHUNK):
        held = [_held(f"q.{identifier(name)}") for name in names[start : start + CHUNK]]
        asked = ", ".join(f"group_concat(DISTINCT {kind})" for kind in held)
        ((*answers,),) = session.run(f"SELECT {asked} FROM (\n{inner}\n) AS q")
        found += [_kind({*(answer or "").split(",")} - {"null", ""}) for answer in answers]
    return found


def _held(c: str) -> str:
    """SQL for what a value is; whole numbers that no double holds exactly are told apart."""
    return (
        f"CASE WHEN typeof({c}) = 'integer' AND {c} NOT BETWEEN -{EXACT} AND {EXACT} THEN 'wide' ELSE typeof({c}) END"
    )


def _kind(held: set[str]) -> str:
    if "blob" in held:
        return "blob"
    if held and held <= {"integer", "wide"}:
        return "integer"
    return "real" if held and held <= {"integer", "real"} else "text"


def _value(c: str, kind: str) -> str:
    """SQL for a value of a column, in the type that the column has; a number among texts is written in full."""
    if kind != "text":
        return f"CAST({c} AS {kind.upper()})"
    short, long = (f"printf('%!.{digits}g', {c})" for digits in (15, 17))
    number = f"CASE WHEN CAST({short} AS REAL) = {c} THEN {short} ELSE {long} END"
    return f"CASE typeof({c}) WHEN 'real' THEN {number} ELSE CAST({c} AS TEXT) END"


def named(table: TableName | None) -> str:
    """SQL for a table."""
    parts = [table.schema, table.table] if table else []
    return ".".join(identifier(part) for part in parts if part)


# A new table


def home(_: Session) -> str:
    """Return the schema in which a table is made that names none: a file has one."""
    return "main"


def mark_of(session: Session, table: TableName) -> str | None:
    """Return the text by which a table was made, where a mark is a comment; None where there is no such table."""
    if table.schema != "main":
        raise session.error(Problem("an SQLite file has no schemas", "say the name of the table alone"))
    where = f"lower(name) = lower({string(table.table)})"
    found = session.run(f"SELECT coalesce(sql, '') FROM main.sqlite_master WHERE {where}")
    return str(found[0][0]) if found else None


def check_rights(_: Session, __: TableName) -> None:
    """Accept any user: the system says who may write a file."""


def check_names(_: Session, __: Sequence[str]) -> None:
    """Accept any name: SQLite does."""


def making(table: TableName, columns: str, mark: str) -> list[str]:
    """Return the statement that makes a table; SQLite keeps its text, with the mark in it."""
    return [f"CREATE TABLE {named(table)} (/* {mark} */ {columns})"]


def fitted(kind: str) -> str:
    """Return the engine's type in which a value is kept exactly: whole numbers, doubles, and text for all else."""
    return FITTED.get(kind, kind if kind in TYPES else "VARCHAR")


def type_of(kind: str) -> str:
    """Return what a type of the engine is called here."""
    return TYPES[kind]
