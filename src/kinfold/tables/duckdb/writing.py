"""Writing: a table as a file, as part files or as batches for a database, and a checksum of rows in any order.

Part files are cut from the rows in the order of the one file: the rows are sorted into a table, on disk if there are
many, and each part is a range of it, written by all threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import duckdb
import pyarrow as pa

from kinfold.errors import DataError, PolicyError, Problem, plural
from kinfold.tables.duckdb.connection import Database, DiskFull
from kinfold.tables.duckdb.expressions import (
    FLOAT_TYPES,
    Frame,
    quote_formula_sql,
    quote_identifier,
    quote_path,
    quote_string,
)
from kinfold.tables.duckdb.tallies import decimal_sql, digits_sql
from kinfold.tables.engine import PartFolder
from kinfold.tables.readers.normalization import csv_value_sql
from kinfold.tables.schema import Column, Schema, Storage

MIN_ROWS_TO_COUNT = 200_000  # below, counting equal rows before sorting saves no time
MIN_ROWS_PER_DISTINCT = 3  # with fewer equal rows on average, counting takes longer than sorting
ROWS_PER_BATCH = 65_536  # that a database driver gets at a time
RowCounter: TypeAlias = Callable[[Sequence[str]], Iterable[int]]  # of counts over all rows, given as SQL

TRIAL_ROWS = 1 << 18  # written to find how many bytes a row takes
BLOCK_ROWS = 1 << 13  # of consecutive rows in a trial, because sorted rows compress well


def write_file(db: Database, frame: Frame, path: Path, schema: Schema, *, ordered: bool, quoted: bool) -> None:
    """Write a CSV or Parquet file, by its ending; `ordered` sorts the rows by all their written values."""
    values, options = prepare_values(db, frame, path.suffix, schema, quoted=quoted)
    rows = f"SELECT {name_sql(values, frame.names)} FROM {frame.table} s"
    _copy(db, _sort_sql(db, frame, rows, ordered=ordered), path, options)


def write_parts(db: Database, frame: Frame, target: PartFolder, schema: Schema, *, ordered: bool, quoted: bool) -> None:
    """Write part files of equally many rows, whose rows are those of the one file in its order; none is empty."""
    values, options = prepare_values(db, frame, target.ending, schema, quoted=quoted)
    written = [f"w{i}" for i in range(len(values))]
    rows = f"SELECT {name_sql(values, written)} FROM {frame.table} s"
    table = db.table(_sort_sql(db, frame, rows, ordered=ordered))
    count, named = db.count(table), f"SELECT {name_sql(written, frame.names)} FROM {table} s"
    parts = target.parts
    if target.bytes is not None:
        trial = db.folder / f"trial{next(db.numbers)}{target.ending}"
        _copy(db, f"{named} WHERE {make_trial_sql('s.rowid', count)}", trial, options)
        parts = count_parts(trial.stat().st_size, count, target.bytes)
        trial.unlink()
    parts = max(1, min(parts or 1, count))
    for number in range(parts):
        first, end = number * count // parts, (number + 1) * count // parts
        part = name_part(target.folder, number, target.ending)
        _copy(db, f"{named} WHERE s.rowid >= {first} AND s.rowid < {end}", part, options)
    db.drop(table)


def name_part(folder: Path, number: int, ending: str) -> Path:
    """Return the path of a part file; names are in the order of the numbers."""
    return folder / f"part-{number:05}{ending}"


def make_trial_sql(position: str, rows: int) -> str:
    """Return a test of a row's position that is true of about `TRIAL_ROWS` rows."""
    return f"CAST(floor({position} / {BLOCK_ROWS}) AS BIGINT) % {_count_strides(rows)} = 0"


def count_parts(trial: int, rows: int, size: int) -> int:
    """Return how many parts of a size all rows make, given the bytes of the rows of a trial."""
    stride = BLOCK_ROWS * _count_strides(rows)
    tried = rows // stride * BLOCK_ROWS + min(rows % stride, BLOCK_ROWS)
    return math.ceil(trial * rows / max(tried, 1) / size)


def _count_strides(rows: int) -> int:
    return max(1, rows // TRIAL_ROWS)


def prepare_values(
    db: Database,
    frame: Frame,
    ending: str,
    schema: Schema,
    *,
    quoted: bool,
    find: Callable[[str], Frame] | None = None,
    count: RowCounter | None = None,
) -> tuple[list[str], str]:
    """Return SQL for the value of each column as it is written, and the options of the format.

    If the rows are not in this database, `find` returns a table with the values of a column, and `count` counts rows.
    """
    if ending == ".parquet":
        tables = [find(name) if find else frame for name in frame.names]
        values = [typed_sql(db, each, name, schema.get(name)) for each, name in zip(tables, frame.names, strict=True)]
        options = "FORMAT parquet"
    else:
        _refuse_nul_characters(frame, count or (lambda questions: db.answers(questions, frame.table)))
        values = [csv_value_sql(frame, name) for name in frame.names]
        options = f"FORMAT csv, HEADER, DELIMITER {quote_string(frame.separator)}"
    if quoted:
        kinds = db.types(f"SELECT {', '.join(values)} FROM {frame.table}")
        values = [quote_formula_sql(v) if kind == "VARCHAR" else v for v, kind in zip(values, kinds, strict=True)]
    if ending != ".parquet" and len(values) == 1:  # many readers skip the empty line of a null
        values = [f"coalesce(CAST({values[0]} AS VARCHAR), '')"]
    return values, options


def name_sql(values: Sequence[str], names: Sequence[str]) -> str:
    """Return SQL for values with the names of columns."""
    return ", ".join(f"{value} AS {quote_identifier(name)}" for value, name in zip(values, names, strict=True))


def _sort_sql(db: Database, frame: Frame, rows: str, *, ordered: bool) -> str:
    """Return SQL for rows in the order of the file."""
    counted = _sort_by_counting(db, rows) if ordered else None
    return counted or f"{rows} ORDER BY {_order_sql(frame, ordered)}"


def _copy(db: Database, query: str, path: Path, options: str) -> None:
    try:
        db.execute(f"COPY ({query}) TO {quote_path(path)} ({options})")
    except (duckdb.IOException, DiskFull):
        what = f"cannot write '{path.name}' into '{path.parent}'"
        raise PolicyError(what, fix="check the permissions of the folder and the free space") from None


def _order_sql(frame: Frame, ordered: bool) -> str:
    """Return SQL for the order of the rows of `s`; a written column can have the name of the one with their places."""
    return "ALL" if ordered else f"s.{frame.order}"


def _refuse_nul_characters(frame: Frame, count: RowCounter) -> None:
    """Refuse texts with a NUL character, which no text file can hold; a table read from a text file has none."""
    names = [name for name in frame.names if frame.typed and frame.sql_type(name) == "VARCHAR"]
    counts = count([frame.count_where_sql(f"contains({frame.at(name)}, chr(0))") for name in names]) if names else ()
    fix = 'remove it from the values, or write Parquet: output.format = "parquet" (--format parquet)'
    problems = [
        Problem(f"column '{name}': {plural(rows, 'value')} with a NUL character", fix)
        for name, rows in zip(names, counts, strict=True)
        if rows
    ]
    if problems:
        raise DataError(problems)


def _sort_by_counting(db: Database, rows: str) -> str | None:
    """Return SQL that sorts rows by all their values faster, by counting equal rows first; None if it is not faster.

    Tables with floating columns are left out: 0.0 and -0.0 are equal, but are written differently.
    """
    described = db.describe(rows)
    if any(kind in FLOAT_TYPES for _, kind in described):
        return None
    names = [quote_identifier(name) for name, _ in described]
    keys = ", ".join(f"w{i}" for i in range(len(names)))
    renamed = f"SELECT {', '.join(f'{name} AS w{i}' for i, name in enumerate(names))} FROM ({rows})"
    count, distinct = db.row(f"SELECT count(*), approx_count_distinct(hash({keys})) FROM ({renamed})")
    if count < MIN_ROWS_TO_COUNT or distinct * MIN_ROWS_PER_DISTINCT > count:
        return None
    table = db.table(f"SELECT *, count(*) AS n FROM ({renamed}) GROUP BY ALL ORDER BY {keys}")
    repeated = f"SELECT {keys}, unnest(range(n)) FROM {table}"
    return f"SELECT {', '.join(f'w{i} AS {name}' for i, name in enumerate(names))} FROM ({repeated})"


def typed_sql(db: Database, frame: Frame, name: str, column: Column | None) -> str:
    """Return SQL for a column in the type of its values, for formats that have types."""
    c = frame.at(name)
    is_text = frame.sql_type(name) == "VARCHAR" and not frame.knows_type(name)
    if not is_text or column is None or name in frame.labelled:
        return c
    typed = _cast_to_storage(db, frame, column)
    changed = f"SELECT count(*) FILTER (WHERE CAST({typed} AS VARCHAR) IS DISTINCT FROM {c}) FROM {frame.table}"
    return c if column.literal and db.row(changed)[0] else typed


def _cast_to_storage(db: Database, frame: Frame, column: Column) -> str:
    c = frame.at(column.name)
    if column.storage is Storage.INTEGER:
        return f"CAST(trim({c}) AS BIGINT)"
    if column.storage in (Storage.DATE, Storage.TIMESTAMP):
        return f"CAST(strptime(trim({c}), '{column.date_format}') AS {column.storage.upper()})"
    if column.storage is not Storage.NUMBER:
        return c
    double = f"CAST(trim({c}) AS DOUBLE)"
    texts, doubles = db.row(f"SELECT count(DISTINCT trim({c})), count(DISTINCT {double}) FROM {frame.table}")
    if texts == doubles:  # no two texts become one number
        return double
    _, _, exponents, before, after = db.row(f"SELECT {digits_sql(c)} FROM {frame.table}")
    return decimal_sql(c, exponents, before, after) or c


class ExportedRows(NamedTuple):
    """Rows for a database: the names and types of the columns, the rows in batches, and the checksum of all rows."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    rows: pa.RecordBatchReader
    checksum: str


def export_rows(
    db: Database, frame: Frame, schema: Schema, fit_type: Callable[[str], str], *, ordered: bool
) -> ExportedRows:
    """Return the rows in types that a database takes: the one that `fit_type` names if no value changes, else text."""
    values = [typed_sql(db, frame, name, schema.get(name)) for name in frame.names]
    kinds = db.types(f"SELECT {', '.join(values)} FROM {frame.table}")
    types = [_check_type(db, frame, value, kind, fit_type(kind)) for value, kind in zip(values, kinds, strict=True)]
    cast = [f"CAST({value} AS {kind})" for value, kind in zip(values, types, strict=True)]
    columns = name_sql(cast, frame.names)
    checksum = compute_row_checksum(db, cast, frame.table)
    rows = db.reader(f"SELECT {columns} FROM {frame.table} s ORDER BY {_order_sql(frame, ordered)}", ROWS_PER_BATCH)
    return ExportedRows(frame.names, tuple(types), rows, checksum)


def _check_type(db: Database, frame: Frame, value: str, kind: str, wanted: str) -> str:
    if wanted in (kind, "VARCHAR"):
        return wanted
    cast_back = f"TRY_CAST(TRY_CAST({value} AS {wanted}) AS {kind})"
    (changed,) = db.row(f"SELECT count(*) FILTER (WHERE {cast_back} IS DISTINCT FROM {value}) FROM {frame.table}")
    return "VARCHAR" if changed else wanted


def compute_row_checksum(db: Database, values: Sequence[str], rows: str) -> str:
    """Return the number of rows and the sum of the MD5 of each row's text: it detects accidents, not forgery."""
    texts = [f"CAST({value} AS VARCHAR)" for value in values]
    fields = " || ".join(f"coalesce(length({text}) || ':' || {text}, '-')" for text in texts)
    count, total = db.row(f"SELECT count(*), sum(CAST(md5_number_lower({fields}) AS HUGEINT)) FROM {rows}")
    return f"{count}-{int(total or 0):x}"
