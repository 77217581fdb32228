"""PostgreSQL, by its own type names: what is read as it is, what as text, and what is no single value.

A query is read inside another one, `SELECT ... FROM (query) AS q`, in a read-only transaction: so it is one statement,
and one that reads. Rows come as they lie in the table: no scan that starts in the middle, no workers that race.
`infinity` is no day: the driver would make one of it, so it is looked for after reading (see `row_import`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from kinfold.errors import DataError, KinfoldError, Problem
from kinfold.rows.databases.address import DatabaseAddress, TableName
from kinfold.rows.databases.selection import Selected, Selection, inner_query
from kinfold.rows.databases.session import BY_STATE, Session, no_driver, opened
from kinfold.rows.engines.expressions import identifier
from kinfold.rows.engines.formula_cells import string

PATIENCE = {  # unless the address or the environment says otherwise: a network that is cut is noticed
    "connect_timeout": "30",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
}
READING = (
    "SET TRANSACTION READ ONLY, ISOLATION LEVEL REPEATABLE READ",
    "SET LOCAL TimeZone = 'UTC'",
    "SET LOCAL synchronize_seqscans = off",
    "SET LOCAL max_parallel_workers_per_gather = 0",
)
BATCHES = {"adbc.postgresql.batch_size_hint_bytes": str(4 << 20)}
NUMBERS, TEXTS = {"int2", "int4", "int8", "float4", "float8"}, {"text", "varchar", "bpchar", "name", "uuid"}
PLAIN = NUMBERS | TEXTS | {"bool", "date", "timestamp", "timestamptz", "time"}
TEXTUAL = "enum"  # and whatever else somebody added that is a kind of text
AS_TEXT = {TEXTUAL, "numeric", "inet", "cidr", "macaddr", "macaddr8", "timetz", "char", "bit", "varbit"}
CASTS = {"money": "::numeric::text", "oid": "::bigint"} | dict.fromkeys(AS_TEXT, "::text")
READABLE = PLAIN | {*CASTS}
DECIMAL = {"numeric", "money"}
HEADER = 4  # bytes that the number of digits is shifted by in a type's modifier
MOST_DIGITS = 38  # that the engine holds exactly
NAME_BYTES = 63
TYPES = {  # of the engine, and what it is called here
    "BOOLEAN": "boolean",
    "TINYINT": "smallint",
    "UTINYINT": "smallint",
    "SMALLINT": "smallint",
    "USMALLINT": "integer",
    "INTEGER": "integer",
    "UINTEGER": "bigint",
    "BIGINT": "bigint",
    "FLOAT": "real",
    "DOUBLE": "double precision",
    "DATE": "date",
    "TIME": "time",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP WITH TIME ZONE": "timestamptz",
    "VARCHAR": "text",
}
FITTED = {"UBIGINT": "DECIMAL(20,0)", "HUGEINT": "DECIMAL(38,0)", "TIMESTAMP_NS": "TIMESTAMP"}


def connect(address: DatabaseAddress, kind: type[KinfoldError] = DataError) -> Session:
    """Open a connection; libpq finds a password in PGPASSWORD or ~/.pgpass where the address has none."""
    driver, uri = _driver(), _patient(address.uri)
    session = opened(lambda: driver.connect(uri), address.place, kind)
    session.run("SET LOCAL client_min_messages = error")  # which libpq would print, whatever is in them
    return session


def begin_reading(session: Session) -> None:
    """Let the transaction see one state of the database, and change nothing."""
    for statement in READING:
        session.run(statement)


def _driver() -> Any:
    try:
        import adbc_driver_postgresql.dbapi

        return adbc_driver_postgresql.dbapi
    except ImportError:
        raise no_driver("PostgreSQL") from None


def selection(session: Session, address: DatabaseAddress) -> Selection:
    """Return what to ask for the rows of a table or a query, and what comes."""
    inner = f"SELECT * FROM {named(address.table)}" if address.table else inner_query(address.query)
    session.asked(inner)  # by itself: the server tells several statements from one
    fields = list(session.asked(f"SELECT q.* FROM (\n{inner}\n) AS q"))
    kinds = _kinds(session, fields)
    problems = [_refusal(field.name, kind) for field, kind in zip(fields, kinds, strict=True) if kind not in READABLE]
    if problems:
        raise session.error(*problems)
    select = ", ".join(
        f"q.{identifier(field.name)}{CASTS.get(kind, '')} AS c{i}"
        for i, (field, kind) in enumerate(zip(fields, kinds, strict=True))
    )
    found = [
        Selected(field.name, decimal=kind in DECIMAL, digits=_digits(field) if kind == "numeric" else None)
        for field, kind in zip(fields, kinds, strict=True)
    ]
    return Selection(f"SELECT {select} FROM (\n{inner}\n) AS q", tuple(found), BATCHES)


def _kinds(session: Session, fields: list[pa.Field]) -> list[str]:
    """Return the names of the columns' types; one that somebody added, and that is a kind of text, is `TEXTUAL`."""
    said = [(field.metadata or {}).get(b"POSTGRESQL:type", b"").decode() for field in fields]
    unknown = sorted({kind for kind in said if kind not in READABLE})
    if not unknown:
        return said
    numbers = [found[1] for kind in unknown if (found := re.search(r"<oid:([0-9]+)>", kind))]  # made since the session
    where = f"typname IN ({', '.join(map(string, unknown))}) OR oid IN ({', '.join(['0', *numbers])})"
    kinds: dict[str, set[str]] = {}
    for name, number, category in session.run(
        f"SELECT typname::text, oid::text, typcategory::text FROM pg_type WHERE {where}"
    ):
        for known in (name, f"unnamed<oid:{number}>"):
            kinds.setdefault(known, set()).add(TEXTUAL if category in "ES" else name)
    return [next(iter(kinds[kind])) if len(kinds.get(kind, ())) == 1 else kind for kind in said]


def _refusal(name: str, kind: str) -> Problem:
    what = f"arrays ({kind[1:]}[])" if kind.startswith("_") else f"values of type {kind}"
    return Problem(f"column '{name}' holds {what}, not single values", "unpack or leave out that column with a query")


def _digits(field: pa.Field) -> tuple[int, int] | None:
    """Return how many digits a numeric has by its declaration, and how many of them are decimals."""
    modifier = int((field.metadata or {}).get(b"POSTGRESQL:typmod", b"-1"))
    digits, decimals = (modifier - HEADER) >> 16, (modifier - HEADER) & 0x7FF
    return (digits, decimals) if modifier >= HEADER and decimals <= digits <= MOST_DIGITS else None


def named(table: TableName | None) -> str:
    """SQL for a table."""
    parts = [table.schema, table.table] if table else []
    return ".".join(identifier(part) for part in parts if part)


def _patient(uri: str) -> str:
    """Add what is not said: how long to wait, and that texts are UTF-8."""
    missing = {key: value for key, value in PATIENCE.items() if f"{key}=" not in uri}
    if "PGCONNECT_TIMEOUT" in os.environ:
        missing.pop("connect_timeout", None)
    added = "&".join(f"{key}={value}" for key, value in {**missing, "client_encoding": "UTF8"}.items())
    return f"{uri}{'&' if '?' in uri else '?'}{added}"


# A new table


def home(session: Session) -> str:
    """Return the schema in which a table is made that names none."""
    ((found,),) = session.run("SELECT current_schema()::text")
    if found is None:
        raise session.error(Problem("there is no schema to make a table in", "say schema.table"))
    return str(found)


def mark_of(session: Session, table: TableName) -> str | None:
    """Return the comment on a table, view or whatever has that name; None where nothing has."""
    asked = (
        "SELECT coalesce(obj_description(c.oid, 'pg_class'), '') FROM pg_class c JOIN pg_namespace n"
        f" ON n.oid = c.relnamespace WHERE n.nspname = {string(str(table.schema))}"
        f" AND c.relname = {string(table.table)}"
    )
    found = session.run(asked)
    return str(found[0][0]) if found else None


def check_rights(session: Session, table: TableName) -> None:
    """Refuse a schema in which this user may not make a table, or that he may not make."""
    schema = string(str(table.schema))
    there = f"EXISTS (SELECT FROM pg_namespace WHERE nspname = {schema})"
    new = "has_database_privilege(current_database(), 'CREATE')"
    old = f"(SELECT has_schema_privilege(oid, 'CREATE') FROM pg_namespace WHERE nspname = {schema})"
    ((allowed,),) = session.run(f"SELECT CASE WHEN {there} THEN {old} ELSE {new} END")
    if not allowed:
        raise session.error(BY_STATE["42501"])


def check_names(session: Session, names: Sequence[str]) -> None:
    """Refuse names that the database would cut off."""
    long = [Problem(f"the name '{n}' is too long", f"{NAME_BYTES} bytes are the most") for n in names if _long(n)]
    if long:
        raise session.error(*long)


def _long(name: str) -> bool:
    return len(name.encode()) > NAME_BYTES


def making(table: TableName, columns: str, mark: str) -> list[str]:
    """Return the statements that make a table, and its schema where there is none."""
    return [
        f"CREATE SCHEMA IF NOT EXISTS {identifier(str(table.schema))}",
        f"CREATE TABLE {named(table)} ({columns})",
        f"COMMENT ON TABLE {named(table)} IS {string(mark)}",
    ]


def fitted(kind: str) -> str:
    """Return the engine's type in which the driver takes another one."""
    return FITTED.get(kind, kind if kind in TYPES or kind.startswith("DECIMAL") else "VARCHAR")


def type_of(kind: str) -> str:
    """Return what a type of the engine is called here."""
    return kind.replace("DECIMAL", "numeric") if kind.startswith("DECIMAL") else TYPES[kind]
