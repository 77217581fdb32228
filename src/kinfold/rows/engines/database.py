"""The database of a run: tables made of queries, and questions put to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import pyarrow as pa

from kinfold.rows.engines.connection import Connection
from kinfold.rows.resources import Resources

PIECE = 50  # questions of one query: what a query costs grows faster than its length
SHORT = 10_000  # rows of a table that is counted as fast as a query is planned: the fewer queries, the better


class Database:
    """A connection, and numbers for what is made in it."""

    def __init__(self, resources: Resources) -> None:
        self.connection = Connection(resources)
        self.folder = self.connection.folder
        self.numbers = count()
        self._rows: dict[str, int] = {}  # of tables, as they were told when they were made

    def table(self, query: str) -> str:
        """Make a table of what a query gives, and return its name."""
        name = f"t{next(self.numbers)}"
        ((self._rows[name],),) = self.connection.execute(f"CREATE TABLE {name} AS {query}").fetchall()
        return name

    def append(self, table: str, other: str) -> None:
        """Add the rows of another table to one."""
        ((added,),) = self.connection.execute(f"INSERT INTO {table} SELECT * FROM {other}").fetchall()
        self._rows[table] += added

    def view(self, query: str) -> str:
        """Name what a query gives, without writing it out: it is asked again by whoever reads it."""
        name = f"t{next(self.numbers)}"
        self.connection.execute(f"CREATE VIEW {name} AS {query}")
        return name

    def drop(self, table: str) -> None:
        """Forget a table."""
        self.connection.execute(f"DROP TABLE {table}")

    def types(self, table: str) -> tuple[str, ...]:
        """Return the SQL types of the columns of a table, in order."""
        described = self.connection.execute(f"DESCRIBE {table}").fetchall()
        return tuple(row[1] for row in described)

    def count(self, table: str) -> int:
        """Return how many rows a table or a view has."""
        return self._rows[table] if table in self._rows else int(self.row(f"SELECT count(*) FROM {table}")[0])

    def is_short(self, table: str) -> bool:
        """Whether a table has few rows, and is one: to ask a view would be to count it."""
        return self._rows.get(table, SHORT + 1) <= SHORT

    def answers(self, questions: Sequence[str], rows: str) -> Iterator[Any]:
        """Ask many questions of the same rows, some at a time, and return the answers in order."""
        for piece in pieces(questions):
            yield from self.row(f"SELECT {', '.join(piece)} FROM {rows}")

    def row(self, query: str) -> tuple[Any, ...]:
        """Return the only row that a query gives."""
        (row,) = self.connection.execute(query).fetchall()  # whole, or the connection stays busy with it
        return tuple(row)

    def arrow(self, query: str) -> pa.Table:
        """Return the rows that a query gives as Arrow."""
        return self.connection.arrow(query)

    def registered(self, arrow: pa.Table) -> _View:
        """Let the database see an Arrow table for the length of a `with` block."""
        return _View(self.connection, f"v{next(self.numbers)}", arrow)


def pieces(questions: Sequence[str]) -> Iterator[Sequence[str]]:
    """Cut questions into as many as one query takes."""
    return (questions[start : start + PIECE] for start in range(0, len(questions), PIECE))


class _View:
    """An Arrow table that the database sees for as long as the `with` block lasts."""

    def __init__(self, connection: Connection, name: str, arrow: pa.Table) -> None:
        self._connection, self._name, self._arrow = connection, name, arrow

    def __enter__(self) -> str:
        self._connection.register(self._name, self._arrow)
        return self._name

    def __exit__(self, *_: object) -> None:
        self._connection.unregister(self._name)
