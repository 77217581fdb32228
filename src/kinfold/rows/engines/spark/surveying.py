"""Files of Parquet in an executor: a survey of each (columns, types, rows, checksum, or problems), and their rows.

Spark reads the rows itself where it has the types. Where it has not (times of day, nanoseconds), or does not find a
file by its name, the embedded engine reads them here, and what Spark has no type for is handed over as text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from kinfold.errors import DataError
from kinfold.rows.engines.expressions import Frame
from kinfold.rows.engines.spark.in_executors import UNREADABLE, UnreadablePart

if TYPE_CHECKING:
    from kinfold.rows.engines.database import Database


@dataclass(frozen=True)
class Survey:
    """What a file is, or what is wrong with it."""

    name: str
    frame: Frame
    values: tuple[str, ...]  # SQL of the embedded engine for each column
    rows: int
    checksum: str
    problems: tuple[tuple[str, str], ...] = ()

    def written(self) -> str:
        """Return the survey as a text that travels."""
        seen = {"names": self.frame.names, "types": self.frame.types, "mixed": [*self.frame.mixed]}
        about = {"values": self.values, "rows": self.rows, "checksum": self.checksum}
        return json.dumps({"name": self.name, "problems": self.problems, **seen, **about})

    @classmethod
    def read(cls, told: str) -> Survey:
        """Return what was written."""
        found = json.loads(told)
        mixed = frozenset(found["mixed"])
        frame = Frame("", tuple(found["names"]), tuple(found["types"]), typed=True, mixed=mixed)
        problems = tuple((what, fix) for what, fix in found["problems"])
        return cls(found["name"], frame, tuple(found["values"]), found["rows"], found["checksum"], problems)


def surveyed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Look at the files that the rows of batches name."""
    for batch in batches:
        told = [_survey(Path(row["path"]), row["name"]).written() for row in batch.to_pylist()]
        yield pa.record_batch({"number": batch.column("number"), "told": pa.array(told, pa.string())})


def _survey(path: Path, name: str) -> Survey:
    from kinfold.rows.engines.reading import described_parquet
    from kinfold.rows.engines.source import digest

    try:
        with _database() as db:
            return Survey(name, *described_parquet(db, path, name), digest(path))
    except DataError as error:
        problems = tuple((each.what, each.fix) for each in error.problems)
    except OSError as error:
        problems = ((f"'{name}' cannot be read: {error.strerror}", "check the file, on every machine"),)
    return Survey(name, Frame("", (), (), typed=True), (), 0, "", problems)


def read_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read the files that the rows of batches name: which values of each, and the place of its first row."""
    from kinfold.rows.engines.reading import parquet_batches

    for batch in batches:
        for part in batch.to_pylist():
            try:
                with _database() as db:
                    yield from parquet_batches(db, Path(part["path"]), part["name"], part["values"], part["before"])
            except DataError:
                raise UnreadablePart(UNREADABLE + json.dumps(part["name"])) from None


@contextmanager
def _database() -> Iterator[Database]:
    from kinfold.rows.engines.database import Database
    from kinfold.rows.resources import Resources

    db = Database(Resources(threads=1))
    try:
        yield db
    finally:
        db.connection.close()
