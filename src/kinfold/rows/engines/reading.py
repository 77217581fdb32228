"""Reading: files and frames into tables of the database, checked before anybody asks them anything.

A path is a path: no pattern, no partition read out of folder names, no address, and no extension is loaded by itself.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa

from kinfold.errors import DataError, PolicyError, Problem
from kinfold.rows.engines import expressions, type_inference
from kinfold.rows.engines.database import Database
from kinfold.rows.engines.dialect import Dialect, find_dialect, transcode
from kinfold.rows.engines.expressions import Frame
from kinfold.rows.engines.formula_cells import string
from kinfold.rows.engines.source import Format, check_names, digest, format_of, plain_name
from kinfold.rows.source_form import Form

FLAT_TYPES = {*type_inference.WHOLE_TYPES, "FLOAT", "DOUBLE", "DATE", "BOOLEAN", "VARCHAR"}
LINES_SHOWN = 5


def read_file(db: Database, path: Path, form: Form) -> Frame:
    """Read a file, and make sure that what was read is what was hashed."""
    kind = format_of(path)
    try:
        before = digest(path)
        frame = _read_csv(db, path, form) if kind is Format.CSV else _read_typed(db, path, kind)
        after = digest(path)
    except OSError as error:
        raise DataError(f"'{path.name}' cannot be read: {error.strerror}", fix="check the file") from None
    if before != after:
        raise DataError(f"'{path.name}' was changed while it was read", fix="wait until it is written, then again")
    return replace(frame, checksum=before)


def _read_csv(db: Database, path: Path, form: Form) -> Frame:
    dialect = find_dialect(path, form, path.name)
    if dialect.encoding not in ("utf-8", "utf-8-sig"):
        copy = _transcoded(db, path, dialect.encoding)
        try:
            return _load_csv(db, copy, dialect, path.name)
        finally:
            copy.unlink()  # a copy of the original stays no longer than it must
    return _load_csv(db, plain_name(path, db.folder, next(db.numbers)), dialect, path.name)


def _transcoded(db: Database, path: Path, encoding: str) -> Path:
    copy = db.folder / f"source{next(db.numbers)}.csv"
    try:
        transcode(path, encoding, copy)
    except OSError as error:
        what = f"cannot write a copy of '{path.name}' to '{db.folder.parent}': {error.strerror}"
        raise PolicyError(what, fix="free some space, or set TMPDIR to another folder") from None
    return copy


def _load_csv(db: Database, path: Path, dialect: Dialect, name: str) -> Frame:
    fields = "{" + ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(dialect.header))) + "}"
    options = (
        f"auto_detect=false, header=true, delim={string(dialect.separator)}, quote='\"', escape='\"', "
        f"columns={fields}, skip={dialect.blank}, store_rejects=true, compression='none', hive_partitioning=false"
    )
    try:
        table = db.table(f"SELECT * FROM read_csv({expressions.literal(path)}, {options})")
    except duckdb.Error:  # whose message quotes the line
        what = f"'{name}' cannot be read as CSV: quotes or line ends are broken"
        raise DataError(what, fix="check that quotes are closed and that all lines end alike") from None
    _refuse_rejects(db, name)
    _refuse_empty(db, table, f"'{name}'")
    found = Form(separator=dialect.separator, encoding=dialect.encoding)
    return Frame(table, dialect.header, db.types(table), typed=False, form=found, doubtful=dialect.doubtful)


def _refuse_rejects(db: Database, name: str) -> None:
    long = "bool_or(error_type = 'LINE SIZE OVER MAXIMUM')"
    found = db.connection.execute(f"SELECT line, {long} FROM reject_errors GROUP BY line ORDER BY line").fetchall()
    db.connection.execute("DROP TABLE reject_errors; DROP TABLE reject_scans")
    if not found:
        return
    shown = ", ".join(str(line) for line, _ in found[:LINES_SHOWN]) + (", ..." if len(found) > LINES_SHOWN else "")
    plural = len(found) > 1
    if all(too_long for _, too_long in found):
        what = f"{len(found)} line{'s are' if plural else ' is'} longer than two million bytes (line {shown})"
        raise DataError(f"'{name}': {what}", fix="shorten them, or give the table as Parquet")
    what = f"{len(found)} line{'s have' if plural else ' has'} other fields than the header, or a broken quote"
    raise DataError(
        f"'{name}': {what} (line {shown})", fix="mend those lines; fields that hold the separator must be quoted"
    )


def _read_typed(db: Database, path: Path, form: Format) -> Frame:
    source = expressions.literal(plain_name(path, db.folder, next(db.numbers)))
    scan = f"read_parquet({source}, hive_partitioning=false)"
    if form is Format.JSONL:
        scan = f"read_ndjson({source}, sample_size=-1, compression='none', hive_partitioning=false)"
    try:
        names = [row[0] for row in db.connection.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()]
        select = ", ".join(f"{expressions.identifier(name)} AS c{i}" for i, name in enumerate(names))
        table = db.table(f"SELECT {select} FROM {scan}")
    except duckdb.Error:
        raise DataError(
            f"'{path.name}' cannot be read", fix="check that it is whole and what its ending says"
        ) from None
    return _checked(db, table, tuple(names), f"'{path.name}'")


def read_arrow(db: Database, source: pa.Table) -> Frame:
    """Take in an Arrow table."""
    numbered = source.rename_columns([f"c{i}" for i in range(source.num_columns)])
    with db.registered(numbered) as view:
        table = db.table(f"SELECT * FROM {view}")
    return _checked(db, table, tuple(source.column_names), "the frame")


def _flattened(db: Database, table: str) -> str:
    """Return the table with codes, columns of nothing but nulls, and texts among numbers in JSON as text."""
    described = [row[:2] for row in db.connection.execute(f"DESCRIBE {table}").fetchall()]
    fresh = {c: f"CAST({c} AS VARCHAR)" for c, kind in described if kind.startswith(('"NULL"', "UUID", "ENUM"))}
    for c, kind in described:
        nested = f"SELECT count(*) FROM {table} WHERE json_type({c}) IN ('OBJECT', 'ARRAY')"
        if kind == "JSON" and not db.row(nested)[0]:
            fresh[c] = f"{c} ->> '$'"
    if not fresh:
        return table
    return db.table(f"SELECT {', '.join(f'{fresh.get(c, c)} AS {c}' for c, _ in described)} FROM {table}")


def _checked(db: Database, table: str, names: tuple[str, ...], source: str) -> Frame:
    table = _flattened(db, table)
    check_names(names, source)
    _refuse_empty(db, table, source)
    types = db.types(table)
    problems = [
        Problem(f"column '{name}' of {source} holds {kind}, not single values", "unpack or leave out that column")
        for name, kind in zip(names, types, strict=True)
        if kind not in FLAT_TYPES and not kind.startswith(("DECIMAL", "TIME"))
    ]
    if problems:
        raise DataError(problems)
    return Frame(table, names, types, typed=True)


def _refuse_empty(db: Database, table: str, source: str) -> None:
    if not db.count(table):
        raise DataError(f"{source} has no rows", fix="give a table with at least one row")
