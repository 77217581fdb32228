"""A session: a query, one connection with one transaction, and messages for what a driver reports.

The message of a driver quotes queries, values of the data and sometimes the address with its password. It is only used
to find out what went wrong: it is not shown, and not part of the errors raised here.
"""

from __future__ import annotations

import contextlib
import importlib
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias, TypeVar

import pyarrow as pa

from kinfold.errors import KinfoldError, PolicyError, Problem, explain_install

LEADING_COMMENTS = re.compile(r"\s+|--[^\n]*(\n|$)|/\*.*?\*/|\(", re.DOTALL)
READING_KEYWORD = re.compile(r"(?i)(select|with|values|table)\b")


class QueryColumn(NamedTuple):
    """A column of the query: its name, whether its text is a decimal number, and with how many (digits, decimals)."""

    name: str
    decimal: bool = False
    digits: tuple[int, int] | None = None
    untyped: bool = False  # its type is inferred from its text


@dataclass(frozen=True)
class RowQuery:
    """A query for rows as c0, c1, ..., its columns, and options for the driver."""

    sql: str
    columns: tuple[QueryColumn, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    example: bool = False  # the first row only shows the driver the types of the columns


def check_query(query: str | None) -> str:
    """Return a query, or refuse it if it does not begin like a SELECT."""
    if query is None:
        what = "the address names a database, but no table or query"
        raise PolicyError(what, fix="add ?table=NAME to it, or use --table NAME or --query 'SELECT ...'")
    start = 0
    while match := LEADING_COMMENTS.match(query, start):
        start = match.end()
    if not READING_KEYWORD.match(query, start):
        raise PolicyError("the query is not a SELECT", fix="give one SELECT")
    return query


Result = TypeVar("Result")
MessageTable: TypeAlias = tuple[tuple[tuple[str, ...], Problem], ...]
INSTALL_HINT = explain_install("databases", "install the database drivers")

GONE = Problem("the connection to the database is lost", "check that it runs and can be reached, then start again")
LOGIN = Problem(
    "the database refuses this user or password",
    "check the user; put the password into PGPASSWORD or ~/.pgpass, or write it as in postgresql://user:password@host",
)
NO_TABLE = Problem(
    "there is no such table", "check the name, which is case-sensitive; write schema.table if it needs a schema"
)
SEVERAL = Problem("the query has several statements", "give one SELECT")
WRITES = Problem("the query would write", "give a SELECT that only reads")
UNREADABLE = Problem("the query has a syntax error", "give one SELECT, and try it in the database first")
NO_COLUMN = Problem("the query names a column that does not exist", "try the query in the database first")
TOO_WIDE = Problem("the database does not accept so many columns", "leave some out, or release to a file")
REQUEST_PROBLEMS = (SEVERAL, WRITES, UNREADABLE, NO_COLUMN)  # the request is wrong, not the data
BY_STATE = {
    "25006": WRITES,
    "0A000": WRITES,
    "28P01": LOGIN,
    "28000": LOGIN,
    "42501": Problem(
        "this database user has no permission for this", "ask for permission to read, or to create tables"
    ),
    "42601": UNREADABLE,
    "42703": NO_COLUMN,
    "42P01": NO_TABLE,
    "3F000": NO_TABLE,
    "42701": Problem("a column has a name that the database reserves", "rename the column, or leave it out"),
    "54011": TOO_WIDE,
    "42P07": Problem("it exists already", "replace it with --force, or name another table"),
    "53100": Problem("the disk of the database is full", "free some space there"),
    "57014": Problem("the database cancelled the query", "check its time limit (statement_timeout)"),
    "2BP01": Problem(
        "another object of the database depends on the old table", "drop that first, or name another table"
    ),
    "22021": Problem(
        "a text contains a character that the database does not accept", "remove it, or release to a file"
    ),
}
BY_MESSAGE: MessageTable = (  # for errors without a state: SQLite, and streams that break
    (("no such table", "unknown database"), NO_TABLE),
    (("no such column",), NO_COLUMN),
    (("syntax error", "incomplete input"), UNREADABLE),
    (("readonly database", "read-only transaction"), WRITES),
    (("too many columns",), TOO_WIDE),
    (("not a database",), Problem("the file is not an SQLite database", "check the path")),
    (("database is locked", "table is locked"), Problem("another program has locked it", "wait until it has finished")),
    (("disk is full", "disk I/O"), Problem("the disk of the database is full or damaged", "free some space there")),
    (("server closed the connection", "connection to server was lost", "begin transaction", "terminating"), GONE),
)
CONNECT_MESSAGES: MessageTable = (  # of libpq, when it cannot connect
    (("password", "authentication", "no pg_hba.conf entry", 'role "'), LOGIN),
    (('database "',), Problem("the server has no database of that name", "check the name after the last /")),
    (("translate host name",), Problem("the host does not exist", "check the name of the host")),
    (("timeout expired", "timed out"), Problem("the database does not answer", "check host, port and network")),
    (
        ("Connection refused", "No such file or directory"),
        Problem("no database answers at this address", "check host and port"),
    ),
    (
        ("starting up", "shutting down", "too many"),
        Problem("the database accepts no connections now", "try again later"),
    ),
)
UNKNOWN = Problem("the database reports an error", "try the same in the database itself")


class Session:
    """One connection with one transaction; errors have the class `kind`, for reading or for writing."""

    def __init__(self, connection: Any, where: str, kind: type[KinfoldError]) -> None:
        self._connection, self.where, self.kind = connection, where, kind

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows, which must be few."""
        with self._cursor() as cursor:
            self.call(lambda: cursor.execute(sql))
            return list(self.call(cursor.fetchall)) if cursor.description else []

    def describe(self, sql: str) -> pa.Schema:
        """Return the columns of a query without running it."""
        with self._cursor() as cursor:
            schema: pa.Schema = self.call(lambda: cursor.adbc_execute_schema(sql))
            return schema

    @contextmanager
    def stream(self, sql: str, options: Mapping[str, str]) -> Iterator[pa.RecordBatchReader]:
        """Run a query; the block reads its rows in batches."""
        with self._cursor() as cursor:
            cursor.adbc_statement.set_options(**options)
            self.call(lambda: cursor.execute(sql))
            yield cursor.fetch_record_batch()

    def append(self, table: str, schema: str | None, rows: pa.RecordBatchReader) -> None:
        """Append rows to a table, in batches."""
        with self._cursor() as cursor:
            self.call(lambda: cursor.adbc_ingest(table, rows, mode="append", db_schema_name=schema))

    def commit(self) -> None:
        """Commit the transaction."""
        self.call(self._connection.commit)

    def close(self) -> None:
        """Roll back what is not committed, and close the connection."""
        with contextlib.suppress(Exception):  # the connection may be lost
            self._connection.rollback()
        with contextlib.suppress(Exception):
            self._connection.close()

    def error(self, *problems: Problem) -> KinfoldError:
        """Return an error that names the table and the database."""
        if UNKNOWN in problems and not self._alive():
            problems = (GONE,)
        kind = PolicyError if any(problem in REQUEST_PROBLEMS for problem in problems) else self.kind
        return kind([Problem(f"{self.where}: {problem.what}", problem.fix) for problem in problems])

    def _alive(self) -> bool:
        try:
            self._connection.rollback()
            with self._cursor() as cursor:
                cursor.execute("SELECT 1").fetchall()
        except Exception:  # of any kind: the connection is lost
            return False
        return True

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        cursor = self._connection.cursor()
        try:
            yield cursor
        finally:
            with contextlib.suppress(Exception):  # the connection may be lost
                cursor.close()

    def call(self, action: Callable[[], Result]) -> Result:
        """Call the driver, and translate its errors."""
        return translate_errors(action, self.error)


def translate_errors(
    action: Callable[[], Result], error: Callable[[Problem], KinfoldError], messages: MessageTable = BY_MESSAGE
) -> Result:
    """Call a driver, and raise our error for its error."""
    try:
        return action()
    except KinfoldError:
        raise
    except Exception as cause:  # drivers raise their own errors and, in a stream, those of Arrow
        problem = _find_problem(cause, messages)
    raise error(problem)  # here: the exception of the driver is not its context


def open_session(system: str, uri: str, where: str, kind: type[KinfoldError]) -> Session:
    """Connect to a database; errors have the class `kind`."""
    try:
        driver = importlib.import_module(f"adbc_driver_{system.lower()}.dbapi")
    except ImportError:
        raise PolicyError(f"the driver for {system} is not installed", fix=INSTALL_HINT) from None

    def connect_error(problem: Problem) -> KinfoldError:
        what = "cannot connect" if problem is UNKNOWN else problem.what
        return kind(f"{where}: {what}", fix=LOGIN.fix if problem is UNKNOWN else problem.fix)

    return Session(translate_errors(lambda: driver.connect(uri), connect_error, CONNECT_MESSAGES), where, kind)


def _find_problem(cause: Exception, messages: MessageTable) -> Problem:
    message, state = re.split(r"\nquery: |\n\nQuery was: ", str(cause))[0], getattr(cause, "sqlstate", None)
    if "multiple commands" in message:
        return SEVERAL
    if state:
        return BY_STATE.get(state, GONE if state.startswith(("57P", "08")) else UNKNOWN)
    return match_message(message, messages)


def match_message(message: str, messages: MessageTable = BY_MESSAGE) -> Problem:
    """Return what a message of a driver means."""
    problems = (problem for parts, problem in messages if any(part in message for part in parts))
    return next(problems, UNKNOWN)
