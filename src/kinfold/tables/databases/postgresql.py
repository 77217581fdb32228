"""PostgreSQL: which types are read as they are, which as text, and which are refused.

A query is nested in another one, `SELECT ... FROM (query) AS q`, in a read-only transaction: it is a single statement
and cannot write. Rows keep the order of the table: scans start at its beginning and use one worker. The driver turns
`infinity` into a date, so `transfer` looks for it after reading.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

import pyarrow as pa

from kinfold.errors import DataError, PolicyError, Problem
from kinfold.tables.databases.address import DatabaseAddress, TableName
from kinfold.tables.databases.session import BY_STATE, QueryColumn, RowQuery, Session, check_query, open_session
from kinfold.tables.duckdb.expressions import quote_identifier, quote_string
from kinfold.tables.schema import MAX_DECIMAL_DIGITS

# They detect a lost network; the address and the environment override them.
TIMEOUTS = {"connect_timeout": "30", "keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3"}
READ_ONLY_SETTINGS = (
    "SET TRANSACTION READ ONLY, ISOLATION LEVEL REPEATABLE READ",
    "SET LOCAL TimeZone = 'UTC'",
    "SET LOCAL synchronize_seqscans = off",
    "SET LOCAL max_parallel_workers_per_gather = 0",
)
BATCH_OPTIONS = {"adbc.postgresql.batch_size_hint_bytes": str(4 << 20)}
NUMBERS, TEXTS = {"int2", "int4", "int8", "float4", "float8"}, {"text", "varchar", "bpchar", "name", "uuid"}
PLAIN_TYPES = NUMBERS | TEXTS | {"bool", "date", "timestamp", "timestamptz", "time"}
TEXTUAL = "enum"  # also stands for user-defined types of text
TYPES_AS_TEXT = {TEXTUAL, "numeric", "inet", "cidr", "macaddr", "macaddr8", "timetz", "char", "bit", "varbit"}
CASTS = {"money": "::numeric::text", "oid": "::bigint"} | dict.fromkeys(TYPES_AS_TEXT, "::text")
READABLE = PLAIN_TYPES | {*CASTS}
DECIMAL = {"numeric", "money"}
MODIFIER_OFFSET = 4  # the modifier of a numeric is (digits << 16 | decimals) + 4
MAX_NAME_BYTES = 63  # PostgreSQL cuts longer names
COLUMN_TYPES = {  # of the engine: their names in PostgreSQL
    "BOOLEAN": "boolean", "TINYINT": "smallint", "UTINYINT": "smallint", "SMALLINT": "smallint",
    "USMALLINT": "integer", "INTEGER": "integer", "UINTEGER": "bigint", "BIGINT": "bigint", "FLOAT": "real",
    "DOUBLE": "double precision", "DATE": "date", "TIME": "time", "TIMESTAMP": "timestamp",
    "TIMESTAMP WITH TIME ZONE": "timestamptz", "VARCHAR": "text",
}  # fmt: skip
FITTED_TYPES = {"UBIGINT": "DECIMAL(20,0)", "HUGEINT": "DECIMAL(38,0)", "TIMESTAMP_NS": "TIMESTAMP"}


def connect(address: DatabaseAddress, *, writing: bool = False) -> Session:
    """Open a connection, by default read-only and on one snapshot of the database.

    libpq takes a missing password from PGPASSWORD or ~/.pgpass.
    """
    kind = PolicyError if writing else DataError
    session = open_session("PostgreSQL", _add_timeouts(address.uri), address.place, kind)
    session.run("SET LOCAL client_min_messages = error")  # libpq would print notices, which may quote values
    for statement in () if writing else READ_ONLY_SETTINGS:
        session.run(statement)
    return session


def make_query(session: Session, address: DatabaseAddress) -> RowQuery:
    """Return the query for the rows of a table or a query, and its columns."""
    inner = f"SELECT * FROM {address.table.sql}" if address.table else check_query(address.query)
    session.describe(inner)  # not nested: so the server refuses several statements
    fields = list(session.describe(f"SELECT q.* FROM (\n{inner}\n) AS q"))
    kinds = _find_types(session, fields)
    problems, select, columns = [], [], []
    for i, (field, kind) in enumerate(zip(fields, kinds, strict=True)):
        if kind not in READABLE:
            what = f"arrays ({kind[1:]}[])" if kind.startswith("_") else f"values of type {kind}"
            fix = "convert the column, or leave it out, with a query"
            problems.append(Problem(f"column '{field.name}' holds {what}, not single values", fix))
        select.append(f"q.{quote_identifier(field.name)}{CASTS.get(kind, '')} AS c{i}")
        digits = _read_declared_digits(field) if kind == "numeric" else None
        columns.append(QueryColumn(field.name, decimal=kind in DECIMAL, digits=digits))
    if problems:
        raise session.error(*problems)
    return RowQuery(f"SELECT {', '.join(select)} FROM (\n{inner}\n) AS q", tuple(columns), BATCH_OPTIONS)


def _find_types(session: Session, fields: list[pa.Field]) -> list[str]:
    """Return the type names of the columns; `TEXTUAL` for a user-defined type of text."""
    types = [(field.metadata or {}).get(b"POSTGRESQL:type", b"").decode() for field in fields]
    unknown = sorted({kind for kind in types if kind not in READABLE})
    if not unknown:
        return types
    numbers = [m[1] for kind in unknown if (m := re.search(r"<oid:([0-9]+)>", kind))]  # newer than the session
    where = f"typname IN ({', '.join(map(quote_string, unknown))}) OR oid IN ({', '.join(['0', *numbers])})"
    kinds: dict[str, set[str]] = {}
    for name, number, category in session.run(
        f"SELECT typname::text, oid::text, typcategory::text FROM pg_type WHERE {where}"
    ):
        for known in (name, f"unnamed<oid:{number}>"):
            kinds.setdefault(known, set()).add(TEXTUAL if category in "ES" else name)
    return [next(iter(kinds[kind])) if len(kinds.get(kind, ())) == 1 else kind for kind in types]


def _read_declared_digits(field: pa.Field) -> tuple[int, int] | None:
    """Return the declared (digits, decimals) of a numeric column."""
    modifier = int((field.metadata or {}).get(b"POSTGRESQL:typmod", b"-1"))
    digits, decimals = (modifier - MODIFIER_OFFSET) >> 16, (modifier - MODIFIER_OFFSET) & 0x7FF
    return (digits, decimals) if modifier >= MODIFIER_OFFSET and decimals <= digits <= MAX_DECIMAL_DIGITS else None


def _add_timeouts(uri: str) -> str:
    """Add the timeouts that the address does not set, and UTF-8 as the encoding."""
    missing = {key: value for key, value in TIMEOUTS.items() if f"{key}=" not in uri}
    if "PGCONNECT_TIMEOUT" in os.environ:
        missing.pop("connect_timeout", None)
    added = "&".join(f"{key}={value}" for key, value in {**missing, "client_encoding": "UTF8"}.items())
    return f"{uri}{'&' if '?' in uri else '?'}{added}"


# The functions below make a new table; sqlite.py has the same ones.


def get_default_schema(session: Session) -> str:
    """Return the schema of a table whose name has none."""
    ((schema,),) = session.run("SELECT current_schema()::text")
    if schema is None:
        raise session.error(Problem("this user has no default schema", "write schema.table"))
    return str(schema)


def read_mark(session: Session, table: TableName) -> str | None:
    """Return the comment of the table, view or other relation of this name; None if there is none."""
    query = (
        "SELECT coalesce(obj_description(c.oid, 'pg_class'), '') FROM pg_class c JOIN pg_namespace n"
        f" ON n.oid = c.relnamespace WHERE n.nspname = {quote_string(str(table.schema))}"
        f" AND c.relname = {quote_string(table.table)}"
    )
    rows = session.run(query)
    return str(rows[0][0]) if rows else None


def check_permission(session: Session, table: TableName) -> None:
    """Refuse a schema in which this user cannot create a table, or that the user cannot create."""
    schema = quote_string(str(table.schema))
    exists = f"EXISTS (SELECT FROM pg_namespace WHERE nspname = {schema})"
    new = "has_database_privilege(current_database(), 'CREATE')"
    old = f"(SELECT has_schema_privilege(oid, 'CREATE') FROM pg_namespace WHERE nspname = {schema})"
    ((allowed,),) = session.run(f"SELECT CASE WHEN {exists} THEN {old} ELSE {new} END")
    if not allowed:
        raise session.error(BY_STATE["42501"])


def check_names(session: Session, names: Sequence[str]) -> None:
    """Refuse names that the database would truncate."""
    fix = f"use at most {MAX_NAME_BYTES} bytes"
    problems = [Problem(f"the name '{n}' is too long", fix) for n in names if len(n.encode()) > MAX_NAME_BYTES]
    if problems:
        raise session.error(*problems)


def make_create_statements(table: TableName, columns: str, mark: str) -> list[str]:
    """Return the statements that make a table, and its schema if there is none."""
    return [
        f"CREATE SCHEMA IF NOT EXISTS {quote_identifier(str(table.schema))}",
        f"CREATE TABLE {table.sql} ({columns})",
        f"COMMENT ON TABLE {table.sql} IS {quote_string(mark)}",
    ]


def fit_type(kind: str) -> str:
    """Return the engine's type in which the driver accepts values of this type."""
    return FITTED_TYPES.get(kind, kind if kind in COLUMN_TYPES or kind.startswith("DECIMAL") else "VARCHAR")


def get_column_type(kind: str) -> str:
    """Return the name of an engine's type in PostgreSQL."""
    return kind.replace("DECIMAL", "numeric") if kind.startswith("DECIMAL") else COLUMN_TYPES[kind]
