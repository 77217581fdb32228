"""Databases of DuckDB: instances, queries that can be interrupted, and the tables of a run.

A run of a large table has an instance of its own. All small tables of a process share one, because starting an instance
takes longer than all queries about a small table. In the shared instance every run has its own in-memory database,
which is detached when the run closes. The shared instance has one thread and does not spill.

A query that exceeds the default memory limit runs again with all the memory that is free. A signal interrupts the
query, and its handler runs right after; DuckDB alone would finish the query first, or lose the handler's exception.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from threading import RLock
from typing import Any, TypeAlias, TypeVar

import duckdb
import pyarrow as pa

from kinfold.disk import folders
from kinfold.disk.folders import defer_signals
from kinfold.errors import Cancelled, PolicyError, Unreachable
from kinfold.progress import add_to_watches
from kinfold.tables.resources import DEFAULT_RESOURCES, Resources, format_mebibytes, get_reachable_memory

LOCKED_SETTINGS = {  # no extension is downloaded, and no Python variable is read as a table
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
}
FATAL_ERRORS = (duckdb.FatalException, duckdb.InternalException)  # an instance is unusable after these
STARTUP_SQL = """
SET enable_progress_bar_print = false;
SET enable_progress_bar = true;  -- for query_progress()
SET GLOBAL TimeZone = 'UTC';  -- a day is the same day on every machine
PRAGMA disable_checkpoint_on_shutdown;  -- its file is never read again
SET allowed_configs = ['memory_limit'];  -- the default limit can be raised
SET lock_configuration = true
"""
TEMPORARY_PREFIX = "kinfold-"
MIN_MEMORY_GROWTH = 1.25  # raise the memory limit only by at least this factor: less hardly helps a query
DISK_FULL_MESSAGES = ("No space left on device", "disk full", "Could not write all bytes")
QUESTIONS_PER_QUERY = 50  # the cost of a query grows faster than its length
MAX_SHORT_ROWS = 10_000  # planning a query on so few rows takes as long as running it: ask as few queries as possible

OpenConnection: TypeAlias = tuple[duckdb.DuckDBPyConnection, Callable[[], None]]  # and the function that closes it
Result = TypeVar("Result")

_database_numbers = count()
_instance_lock = RLock()  # reentrant: the garbage collector can close an engine at any moment, in this thread too
_shared_instances: list[duckdb.DuckDBPyConnection] = []  # at most one: the instance of small tables


def start_instance(path: str, settings: dict[str, Any]) -> OpenConnection:
    """Start an instance for one run."""
    connection = duckdb.connect(path, config={**LOCKED_SETTINGS, **settings})
    connection.execute(STARTUP_SQL)
    return connection, connection.close


def open_shared_database() -> OpenConnection:
    """Open a database in the instance that small tables share."""
    name = f"run{next(_database_numbers)}"
    with _instance_lock:
        if not _shared_instances:
            _shared_instances.append(start_instance(":memory:", {"threads": "1", "temp_directory": ""})[0])
        instance = _shared_instances[0]
        connection = instance.cursor()
    connection.execute(f"ATTACH ':memory:' AS {name}; USE {name}")
    return connection, partial(_detach, instance, connection, name)


def forget_broken_instance(error: duckdb.Error) -> None:
    """Forget the shared instance if an error ended it: the next small table starts another."""
    if isinstance(error, FATAL_ERRORS):
        with _instance_lock:
            _shared_instances.clear()


def _detach(instance: duckdb.DuckDBPyConnection, connection: duckdb.DuckDBPyConnection, name: str) -> None:
    connection.close()
    with _instance_lock, suppress(*FATAL_ERRORS):  # the instance may have failed before
        instance.cursor().execute(f"DETACH DATABASE IF EXISTS {name}")


class DiskFull(Unreachable):
    """A disk has no space left."""


class Database:
    """The database of a run, in memory or on disk, and its temporary folder; closing it removes both.

    Each table has a number as its name.
    """

    def __init__(self, resources: Resources = DEFAULT_RESOURCES) -> None:
        self.folder = _make_temporary_folder(resources.spill)
        path = str(self.folder / "rows.duckdb") if resources.on_disk else ":memory:"
        limit = resources.engine_bytes
        self._limit = limit if resources.memory is None and not resources.small else None  # None: never raised
        settings: dict[str, Any] = {"temp_directory": str(self.folder), **resources.build_settings(limit)}
        try:
            with _translate_errors():
                self._inner, self._close = open_shared_database() if resources.small else start_instance(path, settings)
        except BaseException:
            folders.remove_scratch(self.folder)
            raise
        self.numbers = count()
        self._rows: dict[str, int] = {}  # row counts of tables, known from their creation
        add_to_watches(self)

    def share(self) -> float:
        """Return the finished share of the running query, 0 to 1; 0 if none runs."""
        with suppress(duckdb.Error):
            return min(max(self._inner.query_progress() / 100, 0.0), 1.0)
        return 0.0

    def interrupt(self) -> None:
        """Interrupt the running query, in whatever thread it runs."""
        with suppress(duckdb.Error):  # the connection may be closed already
            self._inner.interrupt()

    def close(self) -> None:
        """Drop every row and remove every temporary file."""
        self._close()
        folders.remove_scratch(self.folder)

    close_after_error = close  # no row of a failed run stays in memory or on disk

    def execute(self, query: str) -> list[tuple[Any, ...]]:
        """Run a query and return all of its rows."""
        with self._interruptible():
            return self._retry(lambda: self._inner.execute(query).fetchall())

    def row(self, query: str) -> tuple[Any, ...]:
        """Return the only row of a query."""
        (row,) = self.execute(query)
        return tuple(row)

    def answers(self, questions: Sequence[str], rows: str) -> Iterator[Any]:
        """Yield the values of many aggregates over the same rows, computed in several queries."""
        for batch in split_questions(questions):
            yield from self.row(f"SELECT {', '.join(batch)} FROM {rows}")

    def arrow(self, query: str) -> pa.Table:
        """Return the rows of a query as Arrow."""
        with self._interruptible():
            return self._retry(lambda: self._inner.sql(query).to_arrow_table())

    def reader(self, query: str, rows: int) -> pa.RecordBatchReader:
        """Run a query and return a reader of its rows in batches; run nothing else until it is read."""
        with self._interruptible():
            return self._inner.sql(query).to_arrow_reader(rows)

    def table(self, query: str) -> str:
        """Create a table from a query and return its name."""
        name = f"t{next(self.numbers)}"
        (self._rows[name],) = self.row(f"CREATE TABLE {name} AS {query}")
        return name

    def load(self, arrow: pa.Table | pa.RecordBatchReader, select: str = "*", order: str = "") -> str:
        """Create a table from Arrow, called `n` in the expressions to select, and return its name."""
        with self.registered(arrow) as view:
            return self.table(f"SELECT {select} FROM {view} n {order}")

    def append(self, table: str, other: str) -> None:
        """Append the rows of another table."""
        (added,) = self.row(f"INSERT INTO {table} SELECT * FROM {other}")
        self._rows[table] += added

    def view(self, query: str) -> str:
        """Create a view of a query and return its name."""
        name = f"t{next(self.numbers)}"
        self.execute(f"CREATE VIEW {name} AS {query}")
        return name

    def drop(self, table: str) -> None:
        """Drop a table."""
        self.execute(f"DROP TABLE {table}")

    def describe(self, query: str) -> list[tuple[str, str]]:
        """Return the name and the SQL type of each column of a table or a query, in order."""
        return [(name, kind) for name, kind, *_ in self.execute(f"DESCRIBE {query}")]

    def types(self, query: str) -> tuple[str, ...]:
        """Return the SQL types of the columns of a table or a query, in order."""
        return tuple(kind for _, kind in self.describe(query))

    def count(self, table: str) -> int:
        """Return the number of rows of a table or a view."""
        return self._rows[table] if table in self._rows else int(self.row(f"SELECT count(*) FROM {table}")[0])

    def is_short(self, table: str) -> bool:
        """Whether this is a table with few rows; False for a view, whose rows are not counted."""
        return self._rows.get(table, MAX_SHORT_ROWS + 1) <= MAX_SHORT_ROWS

    @contextmanager
    def registered(self, arrow: pa.Table | pa.RecordBatchReader) -> Iterator[str]:
        """Let queries inside the block read an Arrow table under the name that is returned."""
        name = f"v{next(self.numbers)}"
        self._inner.register(name, arrow)
        try:
            yield name
        finally:
            self._inner.unregister(name)

    def _retry(self, run: Callable[[], Result]) -> Result:
        """Run a query; run it again if only the default memory limit was too small."""
        try:
            return run()
        except duckdb.OutOfMemoryException:
            if not self._raise_limit():
                raise
        return run()

    def _raise_limit(self) -> bool:
        """Raise the default memory limit to what the process can have now; return whether that is worth a retry."""
        reachable = None if self._limit is None else get_reachable_memory()
        if self._limit is None or reachable is None or reachable < MIN_MEMORY_GROWTH * self._limit:
            return False
        self._limit = reachable
        self._inner.execute(f"SET memory_limit = '{format_mebibytes(reachable)}'")
        return True

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        with defer_signals(self._inner.interrupt), _translate_errors():
            yield


def _make_temporary_folder(parent: Path | None) -> Path:
    try:
        folders.sweep_scratch(TEMPORARY_PREFIX, parent)
        return folders.make_scratch(TEMPORARY_PREFIX, parent)
    except OSError as error:
        fix = "free some space, or set TMPDIR to a folder that you can write to"
        if parent is not None:
            fix = "name an existing folder that you can write to: engine.spill, --spill"
        raise PolicyError(f"cannot make a temporary folder: {error.strerror}", fix=fix) from None


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Raise kinfold's errors for those of the database."""
    try:
        yield
    except duckdb.InterruptException:  # and the handler of the signal raised nothing
        raise Cancelled("stopped in the middle of a query") from None
    except duckdb.OutOfMemoryException:
        what = "there is not enough memory for this table, nor space to spill to disk"
        fix = "give it more memory (engine.memory), or a disk with more space (engine.spill, or TMPDIR)"
        raise Unreachable(what, fix=fix) from None
    except duckdb.Error as error:
        forget_broken_instance(error)
        if not any(message in str(error) for message in DISK_FULL_MESSAGES):
            raise
        what = "the disk that rows are spilled to is full"
        raise DiskFull(what, fix="free some space, or name a disk with more space: engine.spill") from None


def split_questions(questions: Sequence[str]) -> Iterator[Sequence[str]]:
    """Split questions into batches of one query each."""
    return (questions[start : start + QUESTIONS_PER_QUERY] for start in range(0, len(questions), QUESTIONS_PER_QUERY))
