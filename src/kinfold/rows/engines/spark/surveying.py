"""A look at a file of Parquet by whoever is near it: its columns and types, its rows, its checksum, or its problems."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from kinfold.errors import DataError
from kinfold.rows.engines.expressions import Frame


@dataclass(frozen=True)
class Survey:
    """What a file is, or what is wrong with it."""

    name: str
    frame: Frame
    rows: int
    checksum: str
    problems: tuple[tuple[str, str], ...] = ()

    def written(self) -> str:
        """Return the survey as a text that travels."""
        about = {"names": self.frame.names, "types": self.frame.types, "rows": self.rows, "checksum": self.checksum}
        return json.dumps({"name": self.name, "problems": self.problems, **about})

    @classmethod
    def read(cls, told: str) -> Survey:
        """Return what was written."""
        found = json.loads(told)
        frame = Frame("", tuple(found["names"]), tuple(found["types"]), typed=True)
        problems = tuple((what, fix) for what, fix in found["problems"])
        return cls(found["name"], frame, found["rows"], found["checksum"], problems)


def surveyed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Look at the files that the rows of batches name."""
    for batch in batches:
        told = [_survey(Path(path)).written() for path in batch.column("path").to_pylist()]
        yield pa.record_batch({"number": batch.column("number"), "told": pa.array(told, pa.string())})


def _survey(path: Path) -> Survey:
    from kinfold.rows.engines.database import Database
    from kinfold.rows.engines.reading import described_parquet
    from kinfold.rows.engines.source import digest
    from kinfold.rows.resources import Resources

    db = Database(Resources(threads=1))
    try:
        frame, rows = described_parquet(db, path)
        return Survey(path.name, frame, rows, digest(path))
    except DataError as error:
        problems = tuple((each.what, each.fix) for each in error.problems)
    except OSError as error:
        problems = ((f"'{path.name}' cannot be read: {error.strerror}", "check the file, on every machine"),)
    finally:
        db.connection.close()
    return Survey(path.name, Frame("", (), (), typed=True), 0, "", problems)
