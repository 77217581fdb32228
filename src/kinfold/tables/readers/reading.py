"""Reading: files, folders of files, Arrow tables and streams become tables of the database.

A path is a path: no pattern, no partition from folder names, no URL; no extension is loaded. If `source.parts` is set,
a folder or a pattern is a table in many files. All parts have one format, the same columns in the same order and, if
the format has types, the same types. Files and folders that start with a dot or an underscore are left out, because
cluster programs write such files. On every engine parts are ordered by folder, then by file name, by code points:
`2024/b` comes before `2024-01/a`, `B` before `a`, and `10` before `9`.
"""

from __future__ import annotations

import csv
import glob
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

from kinfold.errors import DataError, KinfoldError, LayoutError, PolicyError, Problem, plural
from kinfold.tables.column_names import check_column_names
from kinfold.tables.duckdb import expressions
from kinfold.tables.duckdb.columns import WHOLE_TYPES
from kinfold.tables.duckdb.connection import Database
from kinfold.tables.duckdb.expressions import CategoryOrder, Frame, quote_string
from kinfold.tables.duckdb.writing import ROWS_PER_BATCH
from kinfold.tables.frames import get_categories
from kinfold.tables.readers import typed_files
from kinfold.tables.readers.csv_files import SAMPLE_ROWS, Dialect, check_header, find_dialect, transcode
from kinfold.tables.readers.files import (
    GLOB_CHARACTERS,
    Format,
    PartRows,
    combine_checksums,
    detect_format,
    hash_file,
    make_plain_path,
    unpack,
)
from kinfold.tables.readers.normalization import is_total_sql, leave_out_totals, note_totals, present_text_sql
from kinfold.tables.readers.statistics_files import get_labels, get_title, read_statistics
from kinfold.tables.readers.workbooks import SheetCells, read_sheet
from kinfold.tables.schema import UTC_ZONE
from kinfold.tables.source_form import SourceForm

FLAT_TYPES = {*WHOLE_TYPES, "FLOAT", "DOUBLE", "DATE", "BOOLEAN", "VARCHAR"}
MAX_LINES_NAMED = 5  # in a message
MAX_DIFFERENT_COLUMNS = 5  # in a message
CELL_NUMBER_PATTERN = r"-?(0|[1-9][0-9]*)(\.[0-9]*[1-9])?"  # as `workbook_xml` writes numbers


def read_part(db: Database, path: Path, form: SourceForm, name: str = "") -> Frame:
    """Read a file, which may have no rows; refuse a file that changes meanwhile."""
    kind, packing = detect_format(path)
    name = name or path.name
    try:
        before = hash_file(path)
        if packing:
            with _write_copy(db, path, kind, lambda copy: unpack(path, packing, copy)) as copy:
                frame = _read_plain(db, copy, kind, form, name)
        else:
            frame = _read_plain(db, path, kind, form, name)
        after = hash_file(path)
    except OSError as error:
        raise DataError(f"'{name}' cannot be read: {error.strerror}", fix="check the file") from None
    if before != after:
        raise DataError(f"'{name}' changed while it was read", fix="wait until the file is complete, then start again")
    return replace(frame, checksum=before)


def _read_plain(db: Database, path: Path, kind: Format, form: SourceForm, name: str) -> Frame:
    """Read an uncompressed file; messages call it `name`, because the path may be that of a copy."""
    if kind is Format.CSV:
        return _read_csv(db, path, form, name)
    if kind is Format.WORKBOOK:
        return _read_workbook(db, read_sheet(path, form), form, name)
    if kind is Format.STATISTICS:
        frame = _load_arrow(db, read_statistics(path, form.encoding), f"'{name}'", ordered_only=False)
    elif kind is Format.PARQUET and typed_files.needs_arrow(typed_files.check_parquet_types(path, f"'{name}'")):
        frame = _load_arrow(db, pq.ParquetFile(path).read(), f"'{name}'", ordered_only=True)
    else:
        frame = _read_typed(db, path, kind, name)
    return leave_out_totals(db, frame, name) if form.skip_totals else frame


@contextmanager
def _write_copy(db: Database, path: Path, kind: Format, write: Callable[[Path], None]) -> Iterator[Path]:
    """Write a copy of a file with `write`, and remove it after the block."""
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


def _read_csv(db: Database, path: Path, form: SourceForm, name: str) -> Frame:
    dialect = find_dialect(path, form, name)
    if dialect.above or dialect.encoding not in ("utf-8", "utf-8-sig"):
        with _write_copy(db, path, Format.CSV, lambda copy: transcode(path, dialect, copy)) as copy:
            return _load_csv(db, copy, dialect, name, totals=form.skip_totals)
    plain = make_plain_path(path, db.folder, next(db.numbers))
    return _load_csv(db, plain, dialect, name, totals=form.skip_totals)


def _load_csv(db: Database, path: Path, dialect: Dialect, name: str, *, totals: bool) -> Frame:
    fields = "{" + ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(dialect.header))) + "}"
    options = (
        f"auto_detect=false, columns={fields}, header={dialect.has_header}, skip={dialect.blank}, "
        f"delim={quote_string(dialect.separator)}, quote='\"', escape='\"', "
        "store_rejects=true, compression='none', hive_partitioning=false"
    )
    try:
        table = db.table(f"SELECT * FROM read_csv({expressions.quote_path(path)}, {options})")
    except duckdb.Error:  # its message quotes the line
        what = f"'{name}' cannot be read as CSV: quotes or line endings are wrong"
        raise DataError(what, fix="check that quotes are closed and that all lines have the same ending") from None
    short = _drop_short_totals(db, dialect, 0 if totals else db.count(table))
    _refuse_rejects(db, name, dialect.above)
    if short and not totals:
        what = f"'{name}': {plural(short, 'line looks like a total or a footer', 'lines look like totals or footers')}"
        raise LayoutError.suggest(what, skip_totals=True)
    form = SourceForm(separator=dialect.separator, encoding=dialect.encoding)
    frame = Frame(table, dialect.header, db.types(table), typed=False, form=form, doubtful=dialect.doubtful)
    return leave_out_totals(db, frame, name, short) if totals else note_totals(db, frame, name)


def _drop_short_totals(db: Database, dialect: Dialect, start: int) -> int:
    """Accept rejected lines that have fewer fields than the header and are totals or footers; return their number.

    Up to line `start` only a word makes a total, and below it several words: a single one may be a damaged record.
    """
    is_short = "SELECT line FROM reject_errors GROUP BY line HAVING bool_and(error_type = 'MISSING COLUMNS')"
    query = f"SELECT DISTINCT line, csv_line FROM reject_errors WHERE line IN ({is_short})"
    if not (lines := dict(db.execute(query))):
        return 0
    names = [f"c{i}" for i in range(len(dialect.header))]
    fields = [_split_line(text, dialect.separator) for text in lines.values()]
    cells = {c: pa.array([dict(enumerate(row)).get(i) for row in fields], pa.string()) for i, c in enumerate(names)}
    with db.registered(pa.table({"line": pa.array([*lines], pa.int64()), **cells})) as view:
        sentence = "regexp_matches(c0, '[ :*]')" if start else "TRUE"
        test = f"{is_total_sql(names, by_word=True)} OR (line > {start} AND {sentence} AND ({is_total_sql(names)}))"
        totals = db.execute(f"SELECT line FROM {view} WHERE {test}")
    for (line,) in totals:
        db.execute(f"DELETE FROM reject_errors WHERE line = {line}")
    return len(totals)


def _split_line(text: str, separator: str) -> list[str]:
    """Return the fields of a rejected line; empty lines before it are part of its text."""
    try:
        return next((row for row in csv.reader(text.strip("\r\n").splitlines(), delimiter=separator) if row), [])
    except csv.Error:
        return []


def _refuse_rejects(db: Database, name: str, above: int) -> None:
    long = "bool_or(error_type = 'LINE SIZE OVER MAXIMUM')"
    lines = db.execute(f"SELECT line, {long} FROM reject_errors GROUP BY line ORDER BY line")
    db.execute("DROP TABLE reject_errors; DROP TABLE reject_scans")
    if not lines:
        return
    first_lines = _list_first([str(line + above) for line, _ in lines], MAX_LINES_NAMED)
    if all(too_long for _, too_long in lines):
        what = f"{plural(len(lines), 'line is', 'lines are')} longer than two million bytes (line {first_lines})"
        raise DataError(f"'{name}': {what}", fix="shorten them, or give the table as Parquet")
    has = plural(len(lines), "line has", "lines have")
    what = f"'{name}': {has} another number of fields than the header, or a wrong quote (line {first_lines})"
    raise DataError(what, fix="correct these lines; a field that contains the separator must be quoted")


def _read_workbook(db: Database, sheet: SheetCells, form: SourceForm, name: str) -> Frame:
    """Load the cells of a sheet as text, and a column as numbers if every cell is one."""
    sample = sheet.cells.slice(0, SAMPLE_ROWS).to_pylist()
    doubtful = check_header(sheet.header, [[value or "" for value in row.values()] for row in sample], name)
    frame = _load_arrow(db, sheet.cells.rename_columns(list(sheet.header)), f"'{name}'", ordered_only=True)
    doubtful = () if form.header is not None else doubtful
    frame = replace(frame, typed=False, doubtful=doubtful, form=SourceForm(sheet=sheet.title), notes=sheet.notes)
    frame = (leave_out_totals if form.skip_totals else note_totals)(db, frame, name)
    forms = form.get_columns(sheet.header)
    words = {i: (*form.na, *forms[sheet.header[i]].na) if sheet.header[i] in forms else form.na for i in sheet.numbers}
    present = {f"c{i}": present_text_sql(f"c{i}", words[i]) for i in sheet.numbers}
    questions = [f"bool_and({v} IS NULL OR regexp_full_match({v}, '{CELL_NUMBER_PATTERN}'))" for v in present.values()]
    numbers = [c for c, fits in zip(present, db.answers(questions, frame.table), strict=True) if fits]
    is_whole = "count(*) FILTER (WHERE {0} LIKE '%.%' OR length({0}) > 18) = 0"
    whole = db.answers([is_whole.format(present[c]) for c in numbers], frame.table)
    values = {c: f"CAST({present[c]} AS {'BIGINT' if next(whole) else 'DOUBLE'}) AS {c}" for c in numbers}
    table = db.table(f"SELECT {', '.join(values.get(c, c) for c in frame.columns)} FROM {frame.table}")
    return replace(frame, table=table, types=db.types(table))


def _read_typed(db: Database, path: Path, kind: Format, name: str) -> Frame:
    source = expressions.quote_path(make_plain_path(path, db.folder, next(db.numbers)))
    try:
        if kind is Format.PARQUET:
            scan = f"read_parquet({source}, hive_partitioning=false)"
            typed_files.check_parquet_names(db, source, f"'{name}'")
            names = typed_files.read_column_names(db, scan)
            table = typed_files.load_table(db, scan, names)
        else:
            names, table = typed_files.read_json(db, source, path, f"'{name}'", lines=kind is Format.JSONL)
    except duckdb.Error:
        raise _unreadable_error(name) from None
    return _make_frame(db, table, names, f"'{name}'")


def describe_parquet(db: Database, path: Path, name: str) -> tuple[Frame, tuple[str, ...], int]:
    """Return the columns of a Parquet file, SQL for the value of each, and the number of rows.

    Rows are read only of columns that must be converted.
    """
    source = expressions.quote_path(make_plain_path(path, db.folder, next(db.numbers)))
    try:
        typed_files.check_parquet_types(path, f"'{name}'")
        typed_files.check_parquet_names(db, source, f"'{name}'")
        names = typed_files.read_column_names(db, f"read_parquet({source}, hive_partitioning=false)")
        view = db.view(f"SELECT * FROM {_parquet_sql(source, len(names))}")
        converted, mixed = _flat_value_sql(db, view)
        values = tuple(converted.get(f"c{i}", f"c{i}") for i in range(len(names)))
        types = db.types(f"SELECT {', '.join(values)} FROM {view}")
        rows = db.count(view)
    except duckdb.Error:
        raise _unreadable_error(name) from None
    _refuse_nested(names, types, f"'{name}'")
    return Frame("", names, types, typed=True, mixed=_name_columns(names, mixed)), values, rows


def read_parquet_batches(
    db: Database, path: Path, name: str, values: Sequence[str], before: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a Parquet file: `values` of its columns c0, c1, ..., and their places, from `before` on."""
    source = expressions.quote_path(make_plain_path(path, db.folder, next(db.numbers)))
    place = f"CAST(row_number() OVER () - 1 + {before} AS BIGINT) AS place"
    query = f"SELECT {', '.join([*values, place])} FROM {_parquet_sql(source, len(values))}"
    try:
        yield from db.reader(query, ROWS_PER_BATCH)
    except (duckdb.Error, pa.ArrowException, OSError):  # the message may quote a value
        raise _unreadable_error(name) from None


def _parquet_sql(source: str, columns: int) -> str:
    names = ", ".join(f"c{i}" for i in range(columns))
    return f"read_parquet({source}, hive_partitioning=false) AS t({names})"


def _unreadable_error(name: str) -> DataError:
    return DataError(f"'{name}' cannot be read", fix="check that the file is complete and that its ending is right")


def read_arrow(db: Database, source: pa.Table) -> Frame:
    """Load an Arrow table; ordered categories keep their order."""
    frame = _load_arrow(db, source, "the frame", ordered_only=True)
    refuse_empty(db, frame.table, "the frame")
    return frame


def read_stream(
    db: Database,
    stream: pa.RecordBatchReader,
    names: tuple[str, ...],
    source: str,
    make_error: Callable[[str], KinfoldError],
) -> Frame:
    """Load rows in batches; if the stream breaks, raise what `make_error` makes of the driver's message."""
    table, message = "", ""
    try:
        table = db.load(stream)
    except duckdb.InvalidInputException as error:
        message = str(error)
    if not table:  # raised here, so that the driver's message is not part of the traceback
        raise make_error(message)
    refuse_empty(db, table, source)
    return _make_frame(db, table, names, source)


def _load_arrow(db: Database, source: pa.Table, name: str, *, ordered_only: bool) -> Frame:
    converted = typed_files.convert_types(source, name)
    try:
        table = _store_arrow(db, converted)
    except duckdb.NotImplementedException:
        raise typed_files.unsupported_types_error(converted, name, partial(_is_supported, db)) from None
    frame = _make_frame(db, table, tuple(source.column_names), name)
    zones = tuple((field.name, zone) for field in source.schema if (zone := _find_time_zone(field.type)))
    orders = tuple(_find_category_order(column, ordered_only) for column in source.columns)
    labels = tuple((field.name, tuple(own.items())) for field in source.schema if (own := get_labels(field)))
    titles = tuple((field.name, title) for field in source.schema if (title := get_title(field)))
    return replace(frame, orders=orders, zones=zones, labels=labels, titles=titles)


def _find_time_zone(kind: pa.DataType) -> str | None:
    """Return the time zone of a column of timestamps; UTC for an unknown one."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not pa.types.is_timestamp(kind) or kind.tz is None:
        return None
    try:
        return kind.tz if kind.tz[:1] in ("+", "-") else ZoneInfo(kind.tz).key
    except (ValueError, OSError, ZoneInfoNotFoundError):
        return UTC_ZONE


def _store_arrow(db: Database, source: pa.Table) -> str:
    return db.load(source.rename_columns([f"c{i}" for i in range(source.num_columns)]))


def _is_supported(db: Database, source: pa.Table) -> bool:
    try:
        db.drop(_store_arrow(db, source))
    except duckdb.NotImplementedException:
        return False
    return True


def _find_category_order(column: pa.ChunkedArray, ordered_only: bool) -> CategoryOrder | None:
    """Return the order of categories that are texts or whole numbers."""
    kind = column.type
    if not pa.types.is_dictionary(kind) or (ordered_only and not kind.ordered):
        return None
    texts = pa.types.is_string(kind.value_type) or pa.types.is_large_string(kind.value_type)
    if not texts and not pa.types.is_integer(kind.value_type):
        return None
    return CategoryOrder(tuple(map(str, get_categories(column).to_pylist())), kind.ordered)


def _flat_value_sql(db: Database, table: str) -> tuple[dict[str, str], list[str]]:
    """Return SQL for columns to convert, and the JSON columns that mix texts and numbers.

    Codes, columns of nulls and mixed JSON columns become text. Timestamps with a time zone in nanoseconds become
    microseconds if no digit is lost, else timestamps in UTC.
    """
    described = db.describe(table)
    values = {c: f"CAST({c} AS VARCHAR)" for c, kind in described if kind.startswith(('"NULL"', "UUID", "ENUM"))}
    for c, kind in described:
        if kind == "JSON" and (text := _json_text_sql(db, table, c)):
            values[c] = text
        elif kind == "TIMESTAMPTZ_NS":
            finer = db.row(f"SELECT count(*) FROM {table} WHERE {c} <> {c}::TIMESTAMPTZ")[0]
            values[c] = f"make_timestamp_ns(epoch_ns({c}))" if finer else f"{c}::TIMESTAMPTZ"
    return values, [c for c, kind in described if kind == "JSON" and c in values]


def _json_text_sql(db: Database, table: str, column: str) -> str | None:
    """Return SQL for the texts of a JSON column; None if it holds lists or objects."""
    valid, nested = f"json_valid({column})", f"json_type({column}) IN ('OBJECT', 'ARRAY')"
    counts = f"count(*) FILTER (NOT {valid}), count(*) FILTER (CASE WHEN {valid} THEN {nested} END)"
    invalid, nested_values = db.row(f"SELECT {counts} FROM {table}")
    if nested_values:
        return None
    return f"CAST({column} AS VARCHAR)" if invalid else f"{column} ->> '$'"


def _make_frame(db: Database, table: str, names: tuple[str, ...], source: str) -> Frame:
    """Convert columns to known types, check them, and return the table as a frame."""
    values, mixed = _flat_value_sql(db, table)
    if values:
        columns = [f"c{i}" for i in range(len(names))]
        table = db.table(f"SELECT {', '.join(f'{values.get(c, c)} AS {c}' for c in columns)} FROM {table}")
    check_column_names(names, source)
    types = db.types(table)
    _refuse_nested(names, types, source)
    return Frame(table, names, types, typed=True, mixed=_name_columns(names, mixed))


def _name_columns(names: Sequence[str], columns: Sequence[str]) -> frozenset[str]:
    return frozenset(names[int(c[1:])] for c in columns)


def _refuse_nested(names: Sequence[str], types: Sequence[str], source: str) -> None:
    problems = [
        Problem(f"column '{name}' of {source} holds {kind}, not single values", "split the column, or leave it out")
        for name, kind in zip(names, types, strict=True)
        if kind not in FLAT_TYPES and not kind.startswith(("DECIMAL", "TIME"))
    ]
    if problems:
        raise DataError(problems)


def refuse_empty(db: Database, table: str, source: str) -> None:
    """Refuse a table without rows."""
    if not db.count(table):
        raise DataError(f"{source} has no rows", fix="give a table with at least one row")


def is_many_files(path: Path) -> bool:
    """Whether a path is a folder, or a pattern that is not the name of a file."""
    return path.is_dir() or (not path.exists() and bool(GLOB_CHARACTERS & {*str(path)}))


class PartFile(NamedTuple):
    """One file of many, and its name with the folders that vary."""

    file: Path
    name: str


def list_parts(path: Path) -> list[PartFile]:
    """Return the files of a folder or a pattern, in their order."""
    globs = (i for i, name in enumerate(path.parts) if GLOB_CHARACTERS & {*name})
    fixed = len(path.parts) if path.is_dir() else next(globs)  # names before the first that is a pattern
    paths = path.iterdir() if path.is_dir() else map(Path, glob.glob(str(path)))  # noqa: PTH207  the path may be absolute
    entries = [entry for entry in paths if not any(name.startswith((".", "_")) for name in entry.parts[fixed:])]
    entries.sort(key=lambda entry: entry.parts)
    if not entries:
        what = f"there are no files in '{path}'" if path.is_dir() else f"no file matches '{path}'"
        raise DataError(what, fix="check the path")
    if inner := [entry for entry in entries if entry.is_dir()]:
        what = f"'{inner[0].name}' among the parts is a folder: names of folders are not read as values"
        raise DataError(what, fix="name a pattern that reaches the files, such as 'folder/*/*.parquet'")
    kinds = {detect_format(entry) for entry in entries}
    if len(kinds) > 1:
        what = f"the parts in '{path}' have different formats"
        raise DataError(what, fix="name the files of one format: 'folder/*.parquet'")
    return [PartFile(entry, "/".join(entry.parts[fixed:])) for entry in entries]


def read_parts(db: Database, path: Path, read: Callable[[PartFile], Frame]) -> Frame:
    """Read every part into one table with `read`; single parts may be empty."""
    first, *others = list_parts(path)
    whole = read(first)
    files = [PartRows(first.name, whole.checksum, db.count(whole.table))]
    for entry in others:
        part = read(entry)
        check_same_columns(whole, part, first.name, entry.name)
        files.append(PartRows(entry.name, part.checksum, db.count(part.table)))
        db.append(whole.table, part.table)
        db.drop(part.table)
        whole = replace(whole, mixed=whole.mixed | part.mixed, notes=(*whole.notes, *part.notes))
    refuse_empty(db, whole.table, f"'{path.name}'")
    return replace(whole, checksum=combine_checksums(each[:2] for each in files), files=tuple(files))


def check_same_columns(whole: Frame, part: Frame, first: str, name: str) -> None:
    """Refuse a part whose columns differ from those of the first part."""
    types, expected = dict(zip(part.names, part.types, strict=True)), dict(zip(whole.names, whole.types, strict=True))
    fix = "write all parts with the same columns, in the same order and with the same types"
    if part.names != whole.names:
        different = [f"'{column}'" for column in (*types, *expected) if (column in types) != (column in expected)]
        listed = _list_first(different, MAX_DIFFERENT_COLUMNS)
        detail = f": {listed} in one of them only" if different else " in another order"
        raise DataError(f"the part '{name}' has other columns than '{first}'{detail}", fix=fix)
    if different := [f"'{column}'" for column in types if types[column] != expected[column]]:
        what = f"the part '{name}' has other types than '{first}': {_list_first(different, MAX_DIFFERENT_COLUMNS)}"
        raise DataError([Problem(what, fix)])


def _list_first(items: Sequence[str], count: int) -> str:
    return ", ".join([*items[:count], "..."] if len(items) > count else items)
