"""The connection to the database: a query can be stopped, and want of memory is told as such.

A query that does not fit into the memory that the engine has by default runs once more with all that is free.

The database notices a signal while it works, but by itself it goes on to the end of the query, or forgets what the
handler raised. Here a signal interrupts the query, and its handler runs right after: `KeyboardInterrupt` as usual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Protocol, TypeVar
from weakref import WeakSet

import duckdb
import pyarrow as pa

from kinfold.disk import scratch
from kinfold.disk.deferred_signals import undisturbed
from kinfold.errors import Cancelled, PolicyError, Unreachable
from kinfold.rows.engines import instances
from kinfold.rows.free_memory import reachable_memory
from kinfold.rows.resources import ANY, Resources, in_mebibytes

PREFIX = "kinfold-"
WORTH = 1.25  # times the memory it had: less more would hardly help a query

Answer = TypeVar("Answer")

_watched: ContextVar[Watch | None] = ContextVar("watched", default=None)


class Watched(Protocol):
    """What can be stopped, and says how far it is."""

    def interrupt(self) -> None:
        """Let what runs end here."""

    def share(self) -> float:
        """Return how far it is, 0 to 1."""


class Watch:
    """The connections that were opened while somebody watches, in any thread of the same context."""

    def __init__(self) -> None:
        self.opened: WeakSet[Watched] = WeakSet()

    def interrupt(self) -> None:
        """Let every query end here."""
        for connection in tuple(self.opened):
            connection.interrupt()

    @contextmanager
    def closing_on_error(self) -> Iterator[None]:
        """Close every connection where what is done meanwhile fails; for the thread that uses them."""
        try:
            yield
        except BaseException:
            for opened in tuple(self.opened):
                if isinstance(opened, Connection):  # others, such as a session of Spark, outlive a run
                    opened.close()
            raise

    def share(self) -> float:
        """Return how far the query is that runs now, 0 to 1; 0 where none does."""
        return max((connection.share() for connection in tuple(self.opened)), default=0.0)


@contextmanager
def watched() -> Iterator[Watch]:
    """Watch the connections that are opened meanwhile."""
    watch = Watch()
    before = _watched.set(watch)
    try:
        yield watch
    finally:
        _watched.reset(before)


def join_watch(opened: Watched) -> None:
    """Let whoever watches now watch this too."""
    if (watch := _watched.get()) is not None:
        watch.opened.add(opened)


FULL = ("No space left on device", "disk full", "Could not write all bytes")  # of a disk, in the words of the database


class DiskFull(Unreachable):
    """There is no room left on a disk."""


class Connection:
    """A database in memory or on disk, with a temporary folder of its own to spill to; close it, and both are gone."""

    def __init__(self, resources: Resources = ANY) -> None:
        self.folder = _temporary(resources.spill)
        place = str(self.folder / "rows.duckdb") if resources.on_disk else ":memory:"
        limit = resources.for_engine
        self._limit = limit if resources.memory is None and not resources.small else None  # None: it is not raised
        told: dict[str, Any] = {"temp_directory": str(self.folder), **resources.settings(limit)}
        try:
            with _in_our_words():
                self._inside, self._leave = instances.share() if resources.small else instances.start(place, told)
        except BaseException:
            scratch.remove(self.folder)
            raise
        self.register, self.unregister = self._inside.register, self._inside.unregister
        join_watch(self)

    def share(self) -> float:
        """Return how far the query is that runs, in whatever thread, 0 to 1; 0 where none does."""
        with suppress(duckdb.Error):
            return min(max(self._inside.query_progress() / 100, 0.0), 1.0)
        return 0.0

    def interrupt(self) -> None:
        """Let the query that runs, in whatever thread, end here."""
        with suppress(duckdb.Error):  # of a connection that was closed meanwhile
            self._inside.interrupt()

    def close(self) -> None:
        """Forget every row and remove every temporary file."""
        self._leave()
        scratch.remove(self.folder)

    def execute(self, query: str, *parameters: Any) -> Connection:
        """Run a query."""
        with self._stoppable():
            self._asked(lambda: self._inside.execute(query, *parameters))
        return self

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all rows of what was run last."""
        with self._stoppable():
            rows: list[tuple[Any, ...]] = self._inside.fetchall()
        return rows

    def arrow(self, query: str) -> pa.Table:
        """Run a query and return its rows as Arrow."""
        with self._stoppable():
            return self._asked(lambda: self._inside.sql(query).to_arrow_table())

    def reader(self, query: str, rows: int) -> pa.RecordBatchReader:
        """Run a query, and let its rows be read some at a time; nothing else may be run meanwhile."""
        with self._stoppable():
            return self._inside.sql(query).to_arrow_reader(rows)

    def _asked(self, question: Callable[[], Answer]) -> Answer:
        """Ask the database; once more where only the default limit of memory was too small."""
        try:
            return question()
        except duckdb.OutOfMemoryException:
            if not self._grown():
                raise
        return question()

    def _grown(self) -> bool:
        """Raise a default limit of memory to what the process can have now; say whether that is worth another try."""
        most = None if self._limit is None else reachable_memory()
        if self._limit is None or most is None or most < WORTH * self._limit:
            return False
        self._limit = most
        self._inside.execute(f"SET memory_limit = '{in_mebibytes(most)}'")
        return True

    @contextmanager
    def _stoppable(self) -> Iterator[None]:
        with undisturbed(self._inside.interrupt), _in_our_words():
            yield


def _temporary(parent: Path | None) -> Path:
    try:
        scratch.sweep(PREFIX, parent)
        return scratch.make(PREFIX, parent)
    except OSError as error:
        fix = "free some space, or set TMPDIR to a folder that you may write to"
        if parent is not None:
            fix = "name a folder that is there and that you may write to: engine.spill, --spill"
        raise PolicyError(f"cannot make a temporary folder: {error.strerror}", fix=fix) from None


@contextmanager
def _in_our_words() -> Iterator[None]:
    try:
        yield
    except duckdb.InterruptException:  # and the handler of the signal did not raise anything
        raise Cancelled("stopped in the middle of a query") from None
    except duckdb.OutOfMemoryException:
        what = "there is not enough memory for this table, nor space to spill to disk"
        fix = "give it more memory (engine.memory), or a disk with more room (engine.spill, or TMPDIR)"
        raise Unreachable(what, fix=fix) from None
    except duckdb.Error as error:
        instances.forget(error)
        if not any(sign in str(error) for sign in FULL):
            raise
        what = "the disk is full that rows are spilled to"
        raise DiskFull(what, fix="free some space, or name a disk with more room: engine.spill") from None
