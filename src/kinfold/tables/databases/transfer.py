"""Transfer: rows of a database into the engine, and a release into a new table, in one transaction.

Reading: rows come in batches, and never all at once into Python. Infinity and decimals, which a driver cannot
represent, are handled after reading. The checksum does not depend on the order of rows, because a table has none.

Writing: check that the name is free; make a table with a temporary name and write the rows; the caller reads them back
in the same transaction and verifies them; then drop the old table, rename the new one and commit. `--force` replaces
only a table with kinfold's mark. A new SQLite file is made in a temporary folder next to its path and moved there at
the end.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa

from kinfold.disk import folders
from kinfold.errors import DataError, PolicyError, Problem, report_failed_write
from kinfold.tables.column_names import check_column_names
from kinfold.tables.databases import postgresql, sqlite
from kinfold.tables.databases.address import POSTGRESQL, SQLITE, DatabaseAddress, TableName
from kinfold.tables.databases.session import QueryColumn, RowQuery, Session, match_message
from kinfold.tables.duckdb.connection import Database
from kinfold.tables.duckdb.expressions import Frame, quote_identifier
from kinfold.tables.duckdb.writing import ExportedRows, compute_row_checksum
from kinfold.tables.readers.reading import read_stream
from kinfold.tables.schema import MAX_DECIMAL_DIGITS

MAX_WORD_DIGITS = 18  # of a decimal of 64 bits
FINITE_PATTERN = r"-?[0-9]+(\.[0-9]+)?"
FIRST_DAY = "DATE '4714-01-01 (BC)'"  # of PostgreSQL; the driver returns infinity as an earlier date


def get_system(address: DatabaseAddress) -> ModuleType:
    """Return the module for the database system of an address."""
    return postgresql if address.system == POSTGRESQL else sqlite


@dataclass(frozen=True)
class DatabaseRows:
    """Rows at an address, and the session that can see them; by default a new read-only one."""

    address: DatabaseAddress
    session: Session | None = None

    @contextmanager
    def open_session(self) -> Iterator[Session]:
        """Connect while the block reads the rows."""
        if self.session is not None:
            yield self.session
            return
        session: Session = get_system(self.address).connect(self.address)
        try:
            yield session
        finally:
            session.close()


def read_database(db: Database, rows: DatabaseRows) -> Frame:
    """Read the rows of a table or a query."""
    description = rows.address.description
    with rows.open_session() as session:
        session.where = f"{description} of {rows.address.place}"
        query: RowQuery = get_system(rows.address).make_query(session, rows.address)
        names = tuple(column.name for column in query.columns)
        check_column_names(names, description)
        with session.stream(query.sql, query.options) as stream:
            batches = _drop_example(stream) if query.example else stream
            frame = read_stream(db, batches, names, description, lambda text: session.error(match_message(text)))
    frame = _store_decimals(db, frame, query, description)
    _refuse_infinity(db, frame, description)
    untyped = frozenset(column.name for column in query.columns if column.untyped)
    return replace(frame, mixed=untyped, checksum=compute_row_checksum(db, frame.columns, frame.table))


def _drop_example(stream: pa.RecordBatchReader) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        first = True
        for batch in stream:
            yield batch.slice(1) if first else batch
            first = False

    return pa.RecordBatchReader.from_batches(stream.schema, batches())


def _store_decimals(db: Database, frame: Frame, query: RowQuery, where: str) -> Frame:
    """Store decimal numbers, which the driver returns as text, in an exact type."""
    decimals = {f"c{i}": column for i, column in enumerate(query.columns) if column.decimal}
    if not decimals:
        return frame
    types = {c: _find_decimal_type(db, frame.table, c, column, where) for c, column in decimals.items()}
    values = {c: f"CAST({c} AS {kind}) AS {c}" for c, kind in types.items()}
    table = db.table(f"SELECT {', '.join(values.get(c, c) for c in frame.columns)} FROM {frame.table}")
    db.drop(frame.table)
    return replace(frame, table=table, types=db.types(table))


def _find_decimal_type(db: Database, table: str, c: str, column: QueryColumn, where: str) -> str:
    """Return the type of a column of decimals: as declared, or wide enough for its values."""
    whole, fraction = (f"split_part(ltrim({c}, '-'), '.', {part})" for part in (1, 2))
    longest = f"max(length({whole})), max(length(rtrim({fraction}, '0')))"
    finite = f"count(*) FILTER (WHERE regexp_full_match({c}, '{FINITE_PATTERN}'))"
    filled, numbers, before, after = db.row(f"SELECT count({c}), {finite}, {longest} FROM {table}")
    if filled != numbers:
        what = f"column '{column.name}' of {where} holds NaN or infinity ({filled - numbers} of {filled} values)"
        raise DataError(what, fix="set them to null with a query")
    if column.digits:
        return "DECIMAL({}, {})".format(*column.digits)
    digits, decimals = (before or 1) + (after or 0), after or 0
    if digits > MAX_DECIMAL_DIGITS:
        what = f"column '{column.name}' of {where} holds numbers of {digits} digits; {MAX_DECIMAL_DIGITS} is the limit"
        raise DataError(what, fix="round them, or cast them to text, with a query")
    return f"DECIMAL({MAX_WORD_DIGITS if digits < MAX_WORD_DIGITS else MAX_DECIMAL_DIGITS}, {decimals})"


def _refuse_infinity(db: Database, frame: Frame, where: str) -> None:
    dates = [i for i, kind in enumerate(frame.types) if kind == "DATE" or kind.startswith("TIMESTAMP")]
    infinite = [f"count(*) FILTER (WHERE NOT isfinite(c{i}) OR c{i} < {FIRST_DAY})" for i in dates]
    counts = db.answers(infinite, frame.table)
    problems = [
        Problem(f"column '{frame.names[i]}' of {where} holds infinity {count} times", "set it to null with a query")
        for i in dates
        if (count := next(counts))
    ]
    if problems:
        raise DataError(problems)


RELEASE_MARK = "released by kinfold"


def check_target(address: DatabaseAddress, *, force: bool) -> None:
    """Refuse, before any work, a table that exists or cannot be made."""
    with open_target(address, force=force):
        pass


@contextmanager
def open_target(address: DatabaseAddress, *, force: bool) -> Iterator[TargetTable]:
    """Connect while the block writes a release; roll back what is not committed."""
    if address.table is None:
        raise PolicyError("the address of the new table has no table name", fix="add ?table=NAME to it")
    path, folder = Path(address.uri), None
    if address.system == SQLITE and not path.exists():
        with report_failed_write(path):
            folders.sweep_scratch(f".{path.name}-", path.parent, path.name)
            folder = folders.make_scratch(f".{path.name}-", path.parent, path.name)
    temporary = replace(address, uri=str(folder / path.name)) if folder else address
    session: Session | None = None
    try:
        session = get_system(address).connect(temporary, writing=True)
        target = TargetTable(address, session, folder, force)
        target.check()
        yield target
    finally:
        if session is not None:
            session.close()
        if folder is not None:
            folders.remove_scratch(folder)


class TargetTable:
    """A new table inside its transaction: only its session can read its rows."""

    def __init__(self, address: DatabaseAddress, session: Session, folder: Path | None, force: bool) -> None:
        assert address.table is not None  # noqa: S101  checked before
        self.address, self.session, self._folder, self._force = address, session, folder, force
        self._system: Any = get_system(address)
        session.where = f"{address.description} of {address.place}"
        schema = address.table.schema or self._system.get_default_schema(session)
        self.table = TableName(address.table.table, schema)
        self._temporary = TableName(f"kinfold_{secrets.token_hex(8)}", schema)
        self.rows = DatabaseRows(replace(address, table=self._temporary, query=None), session)  # to read them back
        self.committed = False

    def check(self) -> bool:
        """Return whether an old release will be replaced; refuse a table that is not a release, or without --force."""
        self._system.check_names(self.session, [self.table.table])
        mark = self._system.read_mark(self.session, self.table)
        if mark is None:
            self._system.check_permission(self.session, self.table)
            return False
        if not self._force:
            raise self.session.error(Problem("it exists already", "replace it with --force, or name another table"))
        if RELEASE_MARK not in mark:
            fix = "name another table, or drop that one yourself"
            raise self.session.error(Problem("it exists already, and is not a release by kinfold", fix))
        return True

    def write(self, exported: ExportedRows) -> None:
        """Write rows to the new table."""
        types = [self._system.get_column_type(kind) for kind in exported.types]
        self._system.check_names(self.session, exported.names)
        named = zip(exported.names, types, strict=True)
        columns = ", ".join(f"{quote_identifier(name)} {kind}" for name, kind in named)
        for statement in self._system.make_create_statements(self._temporary, columns, RELEASE_MARK):
            self.session.run(statement)
        schema = self._temporary.schema if self.address.system == POSTGRESQL else None  # a file has no others
        self.session.append(self._temporary.table, schema, exported.rows)

    def fit_type(self, kind: str) -> str:
        """Return the engine's type in which this database accepts values of a type."""
        return str(self._system.fit_type(kind))

    def commit(self) -> None:
        """Replace an old release, rename the new table, and commit."""
        self.session.where = f"{self.address.description} of {self.address.place}"
        if self.check():
            self.session.run(f"DROP TABLE {self.table.sql}")
        self.session.run(f"ALTER TABLE {self._temporary.sql} RENAME TO {quote_identifier(self.table.table)}")
        self.session.commit()
        if self._folder is not None:
            self.session.close()
            _move_into_place(self._folder / Path(self.address.uri).name, Path(self.address.uri))
        self.committed = True
        folders.record_event("kept", f"{self.session.where} is written")


def _move_into_place(temporary: Path, path: Path) -> None:
    """Give a new file its name; refuse if a file of that name was made meanwhile."""
    try:
        path.hardlink_to(temporary)
    except FileExistsError:
        raise PolicyError(f"'{path}' exists now", fix="start again, or name another file") from None
    except OSError:  # the disk has no links
        temporary.rename(path)
