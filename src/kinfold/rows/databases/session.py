"""A session: one connection and one transaction, with what a driver says in our words.

A driver's own words quote queries, values of the data and sometimes the address with its password. So they are read
for what kind of thing went wrong, and never shown; nor do they travel along in the errors that are raised here.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa

from kinfold.errors import DataError, KinfoldError, PolicyError, Problem, install_extra

Found = TypeVar("Found")
Words: TypeAlias = tuple[tuple[tuple[str, ...], Problem], ...]
INSTALL = install_extra("databases", "install the drivers of databases")

GONE = Problem("the database went away", "see that it runs and can be reached, then start again")
LOGIN = Problem(
    "the database refuses this user or password",
    "check the user; put the password into PGPASSWORD or ~/.pgpass, or write it as in postgresql://user:password@host",
)
NO_TABLE = Problem("there is no such table", "check the name, capitals count; say schema.table where it needs a schema")
SEVERAL = Problem("the query holds several statements", "give one SELECT")
WRITES = Problem("the query would write", "give a SELECT that only reads")
UNREADABLE = Problem("the query cannot be understood", "give one SELECT, and try it on the database first")
NO_COLUMN = Problem("the query names a column that is not there", "try the query on the database first")
TOO_WIDE = Problem("there are more columns than the database takes", "leave some out, or release to a file")
ASKED_WRONGLY = (SEVERAL, WRITES, UNREADABLE, NO_COLUMN)  # the request is wrong, not the data
BY_STATE = {
    "25006": WRITES,
    "0A000": WRITES,
    "28P01": LOGIN,
    "28000": LOGIN,
    "42501": Problem("the database does not let this user do that", "ask for the right to read, or to make tables"),
    "42601": UNREADABLE,
    "42703": NO_COLUMN,
    "42P01": NO_TABLE,
    "3F000": NO_TABLE,
    "42701": Problem("a column has a name that the database keeps for itself", "rename that column, or leave it out"),
    "54011": TOO_WIDE,
    "42P07": Problem("it exists already", "replace it with --force, or name another table"),
    "53100": Problem("the disk of the database is full", "free some space there"),
    "57014": Problem("the database stopped the query", "see its time limits (statement_timeout)"),
    "2BP01": Problem("something else in the database needs the old table", "drop that first, or name another table"),
    "22021": Problem("a text holds a character that the database cannot", "take it out, or release to a file"),
}
BY_WORDS: Words = (  # where there is no state: SQLite, and rows that stop coming
    (("no such table", "unknown database"), NO_TABLE),
    (("no such column",), NO_COLUMN),
    (("syntax error", "incomplete input"), UNREADABLE),
    (("readonly database", "read-only transaction"), WRITES),
    (("too many columns",), TOO_WIDE),
    (("not a database",), Problem("the file is not an SQLite database", "check the path")),
    (("database is locked", "table is locked"), Problem("somebody else has it locked", "wait until they are done")),
    (("disk is full", "disk I/O"), Problem("the disk of the database is full or broken", "free some space there")),
    (("server closed the connection", "connection to server was lost", "begin transaction", "terminating"), GONE),
)
CONNECTING: Words = (  # what libpq says that cannot connect
    (("password", "authentication", "no pg_hba.conf entry", 'role "'), LOGIN),
    (('database "',), Problem("the server has no database of that name", "check the name after the last /")),
    (("translate host name",), Problem("there is no such host", "check the name of the host")),
    (("timeout expired", "timed out"), Problem("the database does not answer", "check host, port and network")),
    (("Connection refused", "No such file or directory"), Problem("no database answers there", "check host and port")),
    (("starting up", "shutting down", "too many"), Problem("the database takes nobody in now", "try again later")),
)
UNKNOWN = Problem("the database ended it with an error", "try the same on the database itself")


class Session:
    """One connection, one transaction. Errors are of the kind given: what cannot be read, or what cannot be written."""

    def __init__(self, connection: Any, where: str, kind: type[KinfoldError]) -> None:
        self._inside, self.where, self.kind = connection, where, kind

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement, and return its rows: a few."""
        with self._cursor() as cursor:
            return self.told(lambda: _rows(cursor.execute(sql)))

    def asked(self, sql: str) -> pa.Schema:
        """Ask what columns a query would give, without running it."""
        with self._cursor() as cursor:
            found: pa.Schema = self.told(lambda: cursor.adbc_execute_schema(sql))
            return found

    @contextmanager
    def stream(self, sql: str, options: Mapping[str, str]) -> Iterator[pa.RecordBatchReader]:
        """Run a query, and let its rows be read a batch at a time."""
        with self._cursor() as cursor:
            cursor.adbc_statement.set_options(**options)
            self.told(lambda: cursor.execute(sql))
            yield cursor.fetch_record_batch()

    def put(self, table: str, schema: str | None, rows: pa.RecordBatchReader) -> None:
        """Append rows to a table, a batch at a time."""
        with self._cursor() as cursor:
            self.told(lambda: cursor.adbc_ingest(table, rows, mode="append", db_schema_name=schema))

    def commit(self) -> None:
        """Make everything done here true for everybody."""
        self.told(self._inside.commit)

    def close(self) -> None:
        """End the connection; what was not committed did not happen."""
        with contextlib.suppress(Exception):  # a connection that is lost cannot even be left
            self._inside.rollback()
        with contextlib.suppress(Exception):
            self._inside.close()

    def broken(self, said: str) -> KinfoldError:
        """Return what to tell of rows that stopped coming midway; what was said is read and not repeated."""
        return self.error(_by_words(said, BY_WORDS))

    def error(self, *problems: Problem) -> KinfoldError:
        """Return an error with the place in it."""
        if UNKNOWN in problems and not self._alive():
            problems = (GONE,)
        kind = PolicyError if any(problem in ASKED_WRONGLY for problem in problems) else self.kind
        return kind([Problem(f"{self.where}: {problem.what}", problem.fix) for problem in problems])

    def _alive(self) -> bool:
        try:
            self._inside.rollback()
            with self._cursor() as cursor:
                cursor.execute("SELECT 1").fetchall()
        except Exception:  # whatever it is: nobody answers
            return False
        return True

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        cursor = self._inside.cursor()
        try:
            yield cursor
        finally:
            with contextlib.suppress(Exception):  # of a connection that is lost
                cursor.close()

    def told(self, act: Callable[[], Found]) -> Found:
        """Do something with the driver; what it says of a failure stays behind."""
        return in_our_words(act, self.error)


def in_our_words(act: Callable[[], Found], error: Callable[[Problem], KinfoldError], words: Words = BY_WORDS) -> Found:
    """Do something with a driver, and tell what goes wrong by its kind."""
    try:
        return act()
    except KinfoldError:
        raise
    except Exception as met:  # drivers raise their own errors and, in the middle of a stream, those of Arrow
        problem = _problem(met, words)
    raise error(problem)  # outside: what the driver said is not the context of it


def no_driver(system: str) -> PolicyError:
    """Return what to tell where a driver is not installed."""
    return PolicyError(f"nothing here speaks to {system}", fix=INSTALL)


def opened(connect: Callable[[], Any], where: str, kind: type[KinfoldError] = DataError) -> Session:
    """Connect."""

    def refused(problem: Problem) -> KinfoldError:
        told = Problem("cannot connect", LOGIN.fix) if problem is UNKNOWN else problem
        return kind(f"{where}: {told.what}", fix=told.fix)

    return Session(in_our_words(connect, refused, CONNECTING), where, kind)


def _rows(cursor: Any) -> list[tuple[Any, ...]]:
    found: Sequence[tuple[Any, ...]] = cursor.fetchall() if cursor.description else []
    return list(found)


def _problem(met: Exception, words: Words) -> Problem:
    """Tell what kind of thing went wrong."""
    said, state = re.split(r"\nquery: |\n\nQuery was: ", str(met))[0], getattr(met, "sqlstate", None)
    if "multiple commands" in said:
        return SEVERAL
    if state:
        return BY_STATE.get(state, GONE if state.startswith(("57P", "08")) else UNKNOWN)
    return _by_words(said, words)


def _by_words(said: str, words: Words) -> Problem:
    found = (problem for signs, problem in words if any(sign in said for sign in signs))
    return next(found, UNKNOWN)
