"""SQLite: a query finds out what each column holds, because types belong to values, not to columns.

integers, numbers    are read as such if the column holds nothing else
everything else      is read as text; dates and decimals, which SQLite does not have, are inferred as in a CSV file
bytes                are refused

The driver takes the type of a column from its first rows, and fails on a later value of another type. So the first row
of the query is an example of the type of each column; `transfer` drops it again. The file is opened read-only, and a
query is nested in another one, so that it cannot write.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from kinfold.errors import DataError, PolicyError, Problem
from kinfold.tables.databases.address import DatabaseAddress, TableName
from kinfold.tables.databases.session import SEVERAL, QueryColumn, RowQuery, Session, check_query, open_session
from kinfold.tables.duckdb.expressions import quote_identifier, quote_string
from kinfold.tables.schema import MAX_EXACT_INTEGER

BATCH_OPTIONS = {"adbc.sqlite.query.batch_rows": "65536"}
EXAMPLES = {"integer": "0", "real": "0.5", "text": "''"}
COLUMN_TYPES = {"BIGINT": "INTEGER", "DOUBLE": "REAL", "VARCHAR": "TEXT"}
WHOLE_TYPES = ("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER")
FITTED_TYPES = dict.fromkeys(WHOLE_TYPES, "BIGINT") | {"FLOAT": "DOUBLE"}
COLUMNS_PER_QUERY = 200  # SQLite limits the columns of a result


def connect(address: DatabaseAddress, *, writing: bool = False) -> Session:
    """Open a file, by default read-only; make it if it is to be written and does not exist."""
    path = Path(address.uri)
    if path.exists() or not writing:
        _check_file(path)
    if writing and path.exists() and not os.access(path, os.W_OK):
        raise PolicyError(f"you have no permission to write '{path}'", fix="ask for write permission")
    uri = f"file:{quote(str(path.absolute()))}?mode={'rwc' if writing else 'ro'}"
    return open_session("SQLite", uri, address.place, PolicyError if writing else DataError)


def make_query(session: Session, address: DatabaseAddress) -> RowQuery:
    """Return the query for the rows of a table or a query, and its columns."""
    inner = f"SELECT * FROM {address.table.sql}" if address.table else _check_one_statement(check_query(address.query))
    with session.stream(f"SELECT * FROM (\n{inner}\n) AS q LIMIT 0", {}) as rows:
        names = list(rows.schema.names)
    kinds = _find_types(session, inner, names)
    problems = [
        Problem(f"column '{name}' holds bytes, not single values", "convert the column, or leave it out, with a query")
        for name, kind in zip(names, kinds, strict=True)
        if kind == "blob"
    ]
    if problems:
        raise session.error(*problems)
    example = ", ".join(f"{EXAMPLES[kind]} AS c{i}" for i, kind in enumerate(kinds))
    values = ", ".join(_value_sql(f"q.{quote_identifier(name)}", kind) for name, kind in zip(names, kinds, strict=True))
    columns = tuple(QueryColumn(name, untyped=kind == "text") for name, kind in zip(names, kinds, strict=True))
    sql = f"SELECT {example} UNION ALL SELECT {values} FROM (\n{inner}\n) AS q"
    return RowQuery(sql, columns, BATCH_OPTIONS, example=True)


def _check_file(path: Path) -> None:
    if not path.exists():
        raise DataError(f"no such file: '{path}'", fix="check the path; an absolute path has four slashes")
    if not path.is_file():
        raise DataError(f"'{path}' is not a regular file", fix="name the file of the database")
    if not os.access(path, os.R_OK):
        raise DataError(f"you have no permission to read '{path}'", fix="ask for read permission")


def _check_one_statement(query: str) -> str:
    """Refuse a query with more than one statement: SQLite would run only the first."""
    ends = [i + 1 for i, character in enumerate(query) if character == ";"]
    if any(sqlite3.complete_statement(query[:end]) for end in ends):
        raise PolicyError(SEVERAL.what, fix=SEVERAL.fix)
    return query


def _find_types(session: Session, inner: str, names: Sequence[str]) -> list[str]:
    """Return the type of each column: integer, real, blob, or text for everything else."""
    types: list[str] = []
    for start in range(0, len(names), COLUMNS_PER_QUERY):
        columns = [f"q.{quote_identifier(name)}" for name in names[start : start + COLUMNS_PER_QUERY]]
        questions = ", ".join(f"group_concat(DISTINCT {_value_type_sql(c)})" for c in columns)
        ((*answers,),) = session.run(f"SELECT {questions} FROM (\n{inner}\n) AS q")
        types += [_choose_type({*(answer or "").split(",")} - {"null", ""}) for answer in answers]
    return types


def _value_type_sql(c: str) -> str:
    """Return SQL for the type of a value; 'wide' for an integer that is not exact as a double."""
    is_wide = f"typeof({c}) = 'integer' AND {c} NOT BETWEEN -{MAX_EXACT_INTEGER} AND {MAX_EXACT_INTEGER}"
    return f"CASE WHEN {is_wide} THEN 'wide' ELSE typeof({c}) END"


def _choose_type(types: set[str]) -> str:
    if "blob" in types:
        return "blob"
    if types and types <= {"integer", "wide"}:
        return "integer"
    return "real" if types and types <= {"integer", "real"} else "text"


def _value_sql(c: str, kind: str) -> str:
    """Return SQL for a value in the type of its column; a number among texts keeps all its digits."""
    if kind != "text":
        return f"CAST({c} AS {kind.upper()})"
    short, long = (f"printf('%!.{digits}g', {c})" for digits in (15, 17))
    number = f"CASE WHEN CAST({short} AS REAL) = {c} THEN {short} ELSE {long} END"
    return f"CASE typeof({c}) WHEN 'real' THEN {number} ELSE CAST({c} AS TEXT) END"


# The functions below make a new table; postgresql.py has the same ones.


def get_default_schema(_: Session) -> str:
    """Return the only schema of a file."""
    return "main"


def read_mark(session: Session, table: TableName) -> str | None:
    """Return the SQL that made a table, which contains the mark of a release; None if there is no such table."""
    if table.schema != "main":
        raise session.error(Problem("an SQLite file has no schemas", "give only the name of the table"))
    where = f"lower(name) = lower({quote_string(table.table)})"
    rows = session.run(f"SELECT coalesce(sql, '') FROM main.sqlite_master WHERE {where}")
    return str(rows[0][0]) if rows else None


def check_permission(_: Session, __: TableName) -> None:
    """Accept any user: the permissions of the file decide."""


def check_names(_: Session, __: Sequence[str]) -> None:
    """Accept any name."""


def make_create_statements(table: TableName, columns: str, mark: str) -> list[str]:
    """Return the statement that makes a table; SQLite keeps its text, with the mark in it."""
    return [f"CREATE TABLE {table.sql} (/* {mark} */ {columns})"]


def fit_type(kind: str) -> str:
    """Return the engine's type in which SQLite keeps values of this type exactly; text for most types."""
    return FITTED_TYPES.get(kind, kind if kind in COLUMN_TYPES else "VARCHAR")


def get_column_type(kind: str) -> str:
    """Return the name of an engine's type in SQLite."""
    return COLUMN_TYPES[kind]
