"""The connection to the database: a query can be stopped, and want of memory is told as such.

The database notices a signal while it works, but by itself it goes on to the end of the query, or forgets what the
handler raised. Here a signal interrupts the query, and its handler runs right after: `KeyboardInterrupt` as usual.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import pyarrow as pa

from kinfold.disk.undisturbed import undisturbed
from kinfold.errors import Unreachable


class Connection:
    """A database in memory that spills to a folder."""

    def __init__(self, spill: str) -> None:
        self._inside = duckdb.connect(":memory:", config={"temp_directory": spill})
        self.register, self.unregister = self._inside.register, self._inside.unregister
        self.close = self._inside.close

    def execute(self, query: str, *parameters: Any) -> Connection:
        """Run a query."""
        with self._stoppable():
            self._inside.execute(query, *parameters)
        return self

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all rows of what was run last."""
        with self._stoppable():
            rows: list[tuple[Any, ...]] = self._inside.fetchall()
        return rows

    def arrow(self, query: str) -> pa.Table:
        """Run a query and return its rows as Arrow."""
        with self._stoppable():
            return self._inside.sql(query).to_arrow_table()

    @contextmanager
    def _stoppable(self) -> Iterator[None]:
        with undisturbed(self._inside.interrupt):
            try:
                yield
            except duckdb.OutOfMemoryException:  # whose message may quote a value
                what = "there is not enough memory for this table, and no space left to spill to disk"
                raise Unreachable(what, fix="give it more memory, free the temporary folder's disk (TMPDIR)") from None
