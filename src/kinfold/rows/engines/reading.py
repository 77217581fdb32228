"""Reading: files and frames into tables of the database, checked before anybody asks them anything.

A path is a path: no pattern, no partition read out of folder names, no address, and no extension is loaded by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from kinfold.errors import DataError, KinfoldError, PolicyError, Problem
from kinfold.rows.column_copies import categories
from kinfold.rows.column_names import check_names
from kinfold.rows.engines import expressions, type_inference
from kinfold.rows.engines.arrow_types import check_stored, known_types, needs_arrow, unknown_types
from kinfold.rows.engines.database import Database
from kinfold.rows.engines.dialect import SAMPLE_ROWS, Dialect, check_header, find_dialect, transcode
from kinfold.rows.engines.expressions import Frame, Order
from kinfold.rows.engines.formula_cells import string
from kinfold.rows.engines.json_tables import loaded, read_json
from kinfold.rows.engines.names_in_files import check_parquet, names_in
from kinfold.rows.engines.normalizing import present_text
from kinfold.rows.engines.row_export import BATCH
from kinfold.rows.engines.source import Format, digest, format_of, plain_name
from kinfold.rows.engines.statistics_files import read_statistics
from kinfold.rows.engines.unpacking import unpack
from kinfold.rows.engines.workbooks import SheetCells, read_sheet
from kinfold.rows.schema import UTC_ZONE
from kinfold.rows.source_form import Form

FLAT_TYPES = {*type_inference.WHOLE_TYPES, "FLOAT", "DOUBLE", "DATE", "BOOLEAN", "VARCHAR"}
LINES_SHOWN = 5
NUMBER = r"-?(0|[1-9][0-9]*)(\.[0-9]*[1-9])?"  # as a workbook's cells of numbers are written as text


def read_file(db: Database, path: Path, form: Form) -> Frame:
    """Read a file that holds a table."""
    frame = read_part(db, path, form)
    refuse_empty(db, frame.table, f"'{path.name}'")
    return frame


def read_part(db: Database, path: Path, form: Form, name: str = "") -> Frame:
    """Read a file, which may have no rows, and make sure that what was read is what was hashed."""
    kind, packing = format_of(path)
    name = name or path.name
    try:
        before = digest(path)
        frame = _unpacked(db, path, packing, kind, form, name) if packing else _read(db, path, kind, form, name)
        after = digest(path)
    except OSError as error:
        raise DataError(f"'{name}' cannot be read: {error.strerror}", fix="check the file") from None
    if before != after:
        raise DataError(f"'{name}' was changed while it was read", fix="wait until it is written, then again")
    return replace(frame, checksum=before)


def _read(db: Database, path: Path, kind: Format, form: Form, name: str) -> Frame:
    """Read a plain file; messages call it by its name, not by that of a copy."""
    if kind is Format.CSV:
        return _read_csv(db, path, form, name)
    if kind is Format.WORKBOOK:
        return _read_workbook(db, read_sheet(path, form), form, name)
    if kind is Format.STATISTICS:
        table = read_statistics(path, form.encoding)
        return _taken(db, table, f"'{name}'", ordered_only=False)
    if kind is Format.PARQUET and needs_arrow(check_stored(path, f"'{name}'")):
        return _taken(db, pq.ParquetFile(path).read(), f"'{name}'", ordered_only=True)
    return _read_typed(db, path, kind, name)


def _unpacked(db: Database, path: Path, packing: str, kind: Format, form: Form, name: str) -> Frame:
    with _copied(db, path, kind, lambda copy: unpack(path, packing, copy)) as copy:
        return _read(db, copy, kind, form, name)


@contextmanager
def _copied(db: Database, path: Path, kind: Format, write: Callable[[Path], None]) -> Iterator[Path]:
    """Let somebody write a copy of the original in plain form; it stays no longer than it must."""
    copy = db.folder / f"source{next(db.numbers)}.{kind}"
    try:
        write(copy)
    except KinfoldError:
        copy.unlink(missing_ok=True)
        raise
    except OSError as error:
        copy.unlink(missing_ok=True)
        what = f"cannot write a copy of '{path.name}' to '{db.folder.parent}': {error.strerror}"
        raise PolicyError(what, fix="free some space, or set TMPDIR to another folder") from None
    try:
        yield copy
    finally:
        copy.unlink()


def _read_csv(db: Database, path: Path, form: Form, name: str) -> Frame:
    dialect = find_dialect(path, form, name)
    if dialect.above or dialect.encoding not in ("utf-8", "utf-8-sig"):
        with _copied(db, path, Format.CSV, lambda copy: transcode(path, dialect, copy)) as copy:
            return _load_csv(db, copy, dialect, name)
    return _load_csv(db, plain_name(path, db.folder, next(db.numbers)), dialect, name)


def _load_csv(db: Database, path: Path, dialect: Dialect, name: str) -> Frame:
    fields = "{" + ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(dialect.header))) + "}"
    options = (
        f"auto_detect=false, header={dialect.headed}, delim={string(dialect.separator)}, quote='\"', escape='\"', "
        f"columns={fields}, skip={dialect.blank}, store_rejects=true, compression='none', hive_partitioning=false"
    )
    try:
        table = db.table(f"SELECT * FROM read_csv({expressions.literal(path)}, {options})")
    except duckdb.Error:  # whose message quotes the line
        what = f"'{name}' cannot be read as CSV: quotes or line ends are broken"
        raise DataError(what, fix="check that quotes are closed and that all lines end alike") from None
    _refuse_rejects(db, name, dialect.above)
    found = Form(separator=dialect.separator, encoding=dialect.encoding)
    return Frame(table, dialect.header, db.types(table), typed=False, form=found, doubtful=dialect.doubtful)


def _refuse_rejects(db: Database, name: str, above: int) -> None:
    long = "bool_or(error_type = 'LINE SIZE OVER MAXIMUM')"
    found = db.connection.execute(f"SELECT line, {long} FROM reject_errors GROUP BY line ORDER BY line").fetchall()
    db.connection.execute("DROP TABLE reject_errors; DROP TABLE reject_scans")
    if not found:
        return
    shown = ", ".join(str(line + above) for line, _ in found[:LINES_SHOWN]) + (
        ", ..." if len(found) > LINES_SHOWN else ""
    )
    plural = len(found) > 1
    if all(too_long for _, too_long in found):
        what = f"{len(found)} line{'s are' if plural else ' is'} longer than two million bytes (line {shown})"
        raise DataError(f"'{name}': {what}", fix="shorten them, or give the table as Parquet")
    what = f"{len(found)} line{'s have' if plural else ' has'} other fields than the header, or a broken quote"
    raise DataError(
        f"'{name}': {what} (line {shown})", fix="mend those lines; fields that hold the separator must be quoted"
    )


def _read_workbook(db: Database, sheet: SheetCells, form: Form, name: str) -> Frame:
    """Take in the cells of a sheet: texts as written, but columns of numbers as such where every cell is one."""
    sample = sheet.cells.slice(0, SAMPLE_ROWS).to_pylist()
    doubtful = check_header(sheet.header, [[value or "" for value in row.values()] for row in sample], name)
    frame = _taken(db, sheet.cells.rename_columns(list(sheet.header)), f"'{name}'", ordered_only=True)
    doubtful = () if form.header is not None else doubtful
    frame = replace(frame, typed=False, doubtful=doubtful, form=Form(sheet=sheet.title), notes=sheet.notes)
    present = {f"c{i}": present_text(f"c{i}", form.na) for i in sheet.numbers}
    asked = [f"bool_and({v} IS NULL OR regexp_full_match({v}, '{NUMBER}'))" for v in present.values()]
    numbers = [c for c, fits in zip(present, db.answers(asked, frame.table), strict=True) if fits]
    fraction = "count(*) FILTER (WHERE {0} LIKE '%.%' OR length({0}) > 18) = 0"
    whole = db.answers([fraction.format(present[c]) for c in numbers], frame.table)
    fresh = {c: f"CAST({present[c]} AS {'BIGINT' if next(whole) else 'DOUBLE'}) AS {c}" for c in numbers}
    table = db.table(f"SELECT {', '.join(fresh.get(c, c) for c in frame.columns)} FROM {frame.table}")
    return replace(frame, table=table, types=db.types(table))


def _read_typed(db: Database, path: Path, kind: Format, name: str) -> Frame:
    source = expressions.literal(plain_name(path, db.folder, next(db.numbers)))
    try:
        if kind is Format.PARQUET:
            scan = f"read_parquet({source}, hive_partitioning=false)"
            check_parquet(db, source, f"'{name}'")
            names = names_in(db, scan)
            table = loaded(db, scan, names)
        else:
            names, table = read_json(db, source, f"'{name}'", lines=kind is Format.JSONL)
    except duckdb.Error:
        raise _unreadable(name) from None
    return _checked(db, table, names, f"'{name}'")


class DescribedParquet(NamedTuple):
    """What a file of Parquet holds: its columns, SQL for the value of each, and how many rows."""

    frame: Frame
    values: tuple[str, ...]
    rows: int


def described_parquet(db: Database, path: Path, name: str) -> DescribedParquet:
    """Return what a file of Parquet holds; of its rows only columns that have to be flattened are read."""
    source = expressions.literal(plain_name(path, db.folder, next(db.numbers)))
    try:
        check_stored(path, f"'{name}'")
        check_parquet(db, source, f"'{name}'")
        names = names_in(db, f"read_parquet({source}, hive_partitioning=false)")
        view = db.view(f"SELECT * FROM {_parquet_rows(source, len(names))}")
        fresh, mixed = _flat_values(db, view)
        values = tuple(fresh.get(f"c{i}", f"c{i}") for i in range(len(names)))
        described = db.types(db.view(f"SELECT {', '.join(values)} FROM {view}"))
        rows = db.count(view)
    except duckdb.Error:
        raise _unreadable(name) from None
    _refuse_nested(names, described, f"'{name}'")
    return DescribedParquet(Frame("", names, described, typed=True, mixed=_named(names, mixed)), values, rows)


def parquet_batches(
    db: Database, path: Path, name: str, values: Sequence[str], before: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file of Parquet: values of its columns c0, c1, ..., and their places from `before` on."""
    source = expressions.literal(plain_name(path, db.folder, next(db.numbers)))
    place = f"CAST(row_number() OVER () - 1 + {before} AS BIGINT) AS place"
    query = f"SELECT {', '.join([*values, place])} FROM {_parquet_rows(source, len(values))}"
    try:
        yield from db.connection.reader(query, BATCH)
    except (duckdb.Error, pa.ArrowException, OSError):  # whose message may quote a value
        raise _unreadable(name) from None


def _parquet_rows(source: str, columns: int) -> str:
    """Return SQL for the rows of a file of Parquet, its columns by number."""
    numbered = ", ".join(f"c{i}" for i in range(columns))
    return f"read_parquet({source}, hive_partitioning=false) AS t({numbered})"


def _unreadable(name: str) -> DataError:
    """Return the error for a file whose bytes are not what its ending says."""
    return DataError(f"'{name}' cannot be read", fix="check that it is whole and what its ending says")


def read_arrow(db: Database, source: pa.Table) -> Frame:
    """Take in an Arrow table; ordered categories bring their order."""
    frame = _taken(db, source, "the frame", ordered_only=True)
    refuse_empty(db, frame.table, "the frame")
    return frame


def read_stream(
    db: Database,
    stream: pa.RecordBatchReader,
    names: tuple[str, ...],
    source: str,
    broken: Callable[[str], KinfoldError],
) -> Frame:
    """Take in rows as they come, a batch at a time; `broken` says what to tell where they stop coming."""
    table, said = "", ""
    try:
        with db.registered(stream) as view:
            table = db.table(f"SELECT * FROM {view}")
    except duckdb.InvalidInputException as error:  # in the words of whoever sends the rows
        said = str(error)
    if not table:
        raise broken(said)
    refuse_empty(db, table, source)
    return _checked(db, table, names, source)


def _taken(db: Database, source: pa.Table, name: str, *, ordered_only: bool) -> Frame:
    known = known_types(source, name)
    try:
        table = _stored(db, known)
    except duckdb.NotImplementedException:
        raise unknown_types(known, name, partial(_known, db)) from None
    frame = _checked(db, table, tuple(source.column_names), name)
    zones = tuple((field.name, zone) for field in source.schema if (zone := _zone(field.type)))
    return replace(frame, orders=tuple(_order(column, ordered_only) for column in source.columns), zones=zones)


def _zone(kind: pa.DataType) -> str | None:
    """Return the time zone that a column of moments names; UTC for one that is not known here."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not pa.types.is_timestamp(kind) or kind.tz is None:
        return None
    try:
        return kind.tz if kind.tz[:1] in ("+", "-") else ZoneInfo(kind.tz).key
    except (ValueError, OSError, ZoneInfoNotFoundError):
        return UTC_ZONE


def _stored(db: Database, source: pa.Table) -> str:
    with db.registered(source.rename_columns([f"c{i}" for i in range(source.num_columns)])) as view:
        return db.table(f"SELECT * FROM {view}")


def _known(db: Database, source: pa.Table) -> bool:
    try:
        db.drop(_stored(db, source))
    except duckdb.NotImplementedException:
        return False
    return True


def _order(column: pa.ChunkedArray, ordered_only: bool) -> Order | None:
    """Return the order of categories that are texts or whole numbers, and whether it means something."""
    kind = column.type
    if not pa.types.is_dictionary(kind) or (ordered_only and not kind.ordered):
        return None
    texts = pa.types.is_string(kind.value_type) or pa.types.is_large_string(kind.value_type)
    if not texts and not pa.types.is_integer(kind.value_type):
        return None
    return Order(tuple(map(str, categories(column).to_pylist())), kind.ordered)


def _flattened(db: Database, table: str) -> tuple[str, list[str]]:
    """Return the table with every column of a type that is known, and those that hold texts among numbers in JSON."""
    fresh, mixed = _flat_values(db, table)
    if not fresh:
        return table, mixed
    columns = [f"c{i}" for i in range(len(db.types(table)))]
    return db.table(f"SELECT {', '.join(f'{fresh.get(c, c)} AS {c}' for c in columns)} FROM {table}"), mixed


def _flat_values(db: Database, table: str) -> tuple[dict[str, str], list[str]]:
    """Return SQL for codes, columns of nothing but nulls, and texts among numbers in JSON as text; and these columns.

    Moments of a time zone that are told to the nanosecond become ones to the microsecond if they are, else ones of UTC.
    """
    described = [row[:2] for row in db.connection.execute(f"DESCRIBE {table}").fetchall()]
    fresh = {c: f"CAST({c} AS VARCHAR)" for c, kind in described if kind.startswith(('"NULL"', "UUID", "ENUM"))}
    for c, kind in described:
        if kind == "JSON" and (text := _json_text(db, table, c)):
            fresh[c] = text
        elif kind == "TIMESTAMPTZ_NS":
            finer = db.row(f"SELECT count(*) FROM {table} WHERE {c} <> {c}::TIMESTAMPTZ")[0]
            fresh[c] = f"make_timestamp_ns(epoch_ns({c}))" if finer else f"{c}::TIMESTAMPTZ"
    return fresh, [c for c, kind in described if kind == "JSON" and c in fresh]


def _json_text(db: Database, table: str, column: str) -> str | None:
    """Return SQL for the texts of a JSON column; None where it holds more than single values."""
    valid, nested = f"json_valid({column})", f"json_type({column}) IN ('OBJECT', 'ARRAY')"
    asked = f"count(*) FILTER (NOT {valid}), count(*) FILTER (CASE WHEN {valid} THEN {nested} END)"
    invalid, many = db.row(f"SELECT {asked} FROM {table}")
    if many:
        return None
    return f"CAST({column} AS VARCHAR)" if invalid else f"{column} ->> '$'"


def _checked(db: Database, table: str, names: tuple[str, ...], source: str) -> Frame:
    table, mixed = _flattened(db, table)
    check_names(names, source)
    types = db.types(table)
    _refuse_nested(names, types, source)
    return Frame(table, names, types, typed=True, mixed=_named(names, mixed))


def _named(names: Sequence[str], columns: Sequence[str]) -> frozenset[str]:
    return frozenset(names[int(c[1:])] for c in columns)


def _refuse_nested(names: Sequence[str], types: Sequence[str], source: str) -> None:
    problems = [
        Problem(f"column '{name}' of {source} holds {kind}, not single values", "unpack or leave out that column")
        for name, kind in zip(names, types, strict=True)
        if kind not in FLAT_TYPES and not kind.startswith(("DECIMAL", "TIME"))
    ]
    if problems:
        raise DataError(problems)


def refuse_empty(db: Database, table: str, source: str) -> None:
    """Refuse a table without rows."""
    if not db.count(table):
        raise DataError(f"{source} has no rows", fix="give a table with at least one row")
