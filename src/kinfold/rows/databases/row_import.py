"""Intake: rows of a database into the embedded engine, a batch at a time: they are never whole in Python.

ask what will come; make a table of the stream; look for what the driver cannot say (infinity, decimals);
count the rows into a checksum that does not depend on their order, for a table has none
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import ModuleType

import pyarrow as pa

from kinfold.errors import DataError, Problem
from kinfold.rows.column_names import check_names
from kinfold.rows.databases import postgresql, sqlite
from kinfold.rows.databases.address import POSTGRESQL, DatabaseAddress
from kinfold.rows.databases.selection import Selected, Selection
from kinfold.rows.databases.session import Session
from kinfold.rows.engines.database import Database
from kinfold.rows.engines.expressions import Frame
from kinfold.rows.engines.reading import read_stream
from kinfold.rows.engines.row_checksum import row_checksum

MOST_DIGITS, MODEST = 38, 18  # digits that the engine holds exactly, and those that it holds in a word
FINITE = r"-?[0-9]+(\.[0-9]+)?"
FIRST_DAY = "DATE '4714-01-01 (BC)'"  # of PostgreSQL; the driver puts infinity before it


def system_of(address: DatabaseAddress) -> ModuleType:
    """Return what speaks the language of a system."""
    return postgresql if address.system == POSTGRESQL else sqlite


@dataclass(frozen=True)
class RowsAt:
    """Rows at an address, and the session in which they can be seen; without one it is one that changes nothing."""

    address: DatabaseAddress
    session: Session | None = None

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Connect for as long as the rows are read."""
        if self.session is not None:
            yield self.session
            return
        system = system_of(self.address)
        session: Session = system.connect(self.address)
        try:
            if system is postgresql:
                postgresql.begin_reading(session)
            yield session
        finally:
            session.close()


def read_database(db: Database, rows: RowsAt) -> Frame:
    """Read the rows of a table or a query."""
    with rows.reading() as session:
        session.where = f"{rows.address.described} of {rows.address.place}"
        asked: Selection = system_of(rows.address).selection(session, rows.address)
        names = tuple(column.name for column in asked.columns)
        check_names(names, rows.address.described)
        with session.stream(asked.sql, asked.options) as stream:
            come = _without_example(stream) if asked.example else stream
            frame = read_stream(db, come, names, rows.address.described, session.broken)
    frame = _exact(db, frame, asked, rows.address.described)
    _refuse_infinity(db, frame, rows.address.described)
    written = frozenset(column.name for column in asked.columns if column.written)
    return replace(frame, mixed=written, checksum=row_checksum(db, frame.columns, frame.table))


def _without_example(stream: pa.RecordBatchReader) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        first = True
        for batch in stream:
            yield batch.slice(1) if first else batch
            first = False

    return pa.RecordBatchReader.from_batches(stream.schema, batches())


def _exact(db: Database, frame: Frame, asked: Selection, where: str) -> Frame:
    """Return the table with its decimal numbers, which came as text, in a type that holds them exactly."""
    decimals = {f"c{i}": column for i, column in enumerate(asked.columns) if column.decimal}
    if not decimals:
        return frame
    kinds = {c: _decimal(db, frame.table, c, column, where) for c, column in decimals.items()}
    fresh = {c: f"CAST({c} AS {kind}) AS {c}" for c, kind in kinds.items()}
    table = db.table(f"SELECT {', '.join(fresh.get(c, c) for c in frame.columns)} FROM {frame.table}")
    db.drop(frame.table)
    return replace(frame, table=table, types=db.types(table))


def _decimal(db: Database, table: str, c: str, column: Selected, where: str) -> str:
    """Return the type of a column of decimal numbers: as declared, or as wide as what it holds."""
    whole, fraction = (f"split_part(ltrim({c}, '-'), '.', {part})" for part in (1, 2))
    longest = f"max(length({whole})), max(length(rtrim({fraction}, '0')))"
    finite = f"count(*) FILTER (WHERE regexp_full_match({c}, '{FINITE}'))"
    filled, numbers, before, after = db.row(f"SELECT count({c}), {finite}, {longest} FROM {table}")
    if filled != numbers:
        what = f"column '{column.name}' of {where} holds NaN or infinity ({filled - numbers} of {filled} values)"
        raise DataError(what, fix="make them null with a query")
    if column.digits:
        return "DECIMAL({}, {})".format(*column.digits)
    digits, decimals = (before or 1) + (after or 0), after or 0
    if digits > MOST_DIGITS:
        what = f"column '{column.name}' of {where} holds numbers of {digits} digits: more than {MOST_DIGITS}"
        raise DataError(what, fix="round them, or cast them to text, with a query")
    return f"DECIMAL({MODEST if digits < MODEST else MOST_DIGITS}, {decimals})"


def _refuse_infinity(db: Database, frame: Frame, where: str) -> None:
    dated = [i for i, kind in enumerate(frame.types) if kind == "DATE" or kind.startswith("TIMESTAMP")]
    before = [f"count(*) FILTER (WHERE NOT isfinite(c{i}) OR c{i} < {FIRST_DAY})" for i in dated]
    answers = db.answers(before, frame.table)
    problems = [
        Problem(f"column '{frame.names[i]}' of {where} holds infinity {count} times", "make it null with a query")
        for i in dated
        if (count := next(answers))
    ]
    if problems:
        raise DataError(problems)
