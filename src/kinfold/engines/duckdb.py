"""The embedded engine: files and frames in DuckDB, one database in memory a run, spilling to disk when it must.

Verbs: read, schema, tally, collect, apply, write. Inside the database columns are called c0, c1, ...: a name in the
data never becomes part of a query. Rows keep the order in which they came.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Self

import duckdb
import numpy as np
import pyarrow as pa

from kinfold.engines import inference
from kinfold.engines.cells import literal, requoted
from kinfold.engines.dialect import Dialect, find_dialect, transcode
from kinfold.engines.inference import Stored
from kinfold.engines.source import Format, check_names, format_of
from kinfold.errors import DataError, PolicyError, Problem
from kinfold.recoding import Drop, Keep, Recoding, Replace
from kinfold.schema import Column, Schema, Storage
from kinfold.tally import Spread, Tally

FLAT_TYPES = {*inference.WHOLE_TYPES, "FLOAT", "DOUBLE", "DATE", "BOOLEAN", "VARCHAR"}
LINES_SHOWN = 5
FIRST_ROWS = 1000  # looked at before all are


@dataclass(frozen=True)
class Frame:
    """A table inside the engine: its name there, the columns' own names and SQL types, in order."""

    table: str
    names: tuple[str, ...]
    types: tuple[str, ...]
    typed: bool  # False where every field is text as written: CSV
    separator: str = ","
    labelled: frozenset[str] = frozenset()  # columns that hold generalized labels instead of what the source had
    doubtful: tuple[int, ...] = ()  # places where the first line looks like a record instead of names

    def at(self, name: str) -> str:
        """The name of a column inside the engine."""
        return f"c{self.names.index(name)}"

    def type_of(self, name: str) -> str:
        """The SQL type of a column."""
        return self.types[self.names.index(name)]


class DuckDB:
    """One run's database. Close it, or use it in a `with` block: its temporary files go with it."""

    def __init__(self) -> None:
        folder = Path(tempfile.mkdtemp(prefix="kinfold-"))  # the owner's alone
        self._folder = folder
        self._connection = duckdb.connect(":memory:", config={"temp_directory": str(folder)})
        self._connection.execute("SET TimeZone = 'UTC'")  # a day is the same day on every machine
        self._numbers = count()
        self._schemas: dict[str, Schema] = {}
        self._discard = weakref.finalize(self, _discard, self._connection, folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Forget every row and remove every temporary file; done by itself when nobody holds the engine any more."""
        self._discard()

    def read(self, source: Path | pa.Table) -> Frame:
        """Take in a CSV, Parquet or JSON-lines file, or an Arrow table."""
        if isinstance(source, pa.Table):
            return self._read_arrow(source)
        form = format_of(source)
        if form is Format.CSV:
            return self._read_csv(source)
        reader = "read_parquet({})" if form is Format.PARQUET else "read_ndjson({}, sample_size=-1)"
        return self._read_typed(source, reader.format(_literal(source)))

    def schema(self, frame: Frame) -> Schema:
        """Ask every column what it is; a table is asked once."""
        if frame.table not in self._schemas:
            self._schemas[frame.table] = self._asked(frame)
        return self._schemas[frame.table]

    def tally(self, frame: Frame, by: Sequence[str], of: Mapping[str, Column | None]) -> Tally:
        """Group by the key columns and count, then count each confidential column within the groups."""
        keys = ", ".join(f"{frame.at(name)} AS k{i}" for i, name in enumerate(by))
        names = ", ".join(f"k{i}" for i in range(len(by)))
        groups = self._arrow(
            f"SELECT {keys}{',' if keys else ''} count(*) AS n FROM {frame.table} GROUP BY ALL ORDER BY {names or 1}"
        )
        spreads = {name: self._spread(frame, keys, names, _value(frame, name, column)) for name, column in of.items()}
        found = {name: groups.column(f"k{i}").to_numpy(zero_copy_only=False) for i, name in enumerate(by)}
        return Tally(found, groups.column("n").to_numpy().astype(np.int64), spreads)

    def collect(self, frame: Frame, columns: Mapping[str, Column | None]) -> pa.Table:
        """Return columns as Arrow: as numbers where a `Column` says how to read them, else as text."""
        select = ", ".join(f"{_value(frame, name, column)} AS c{i}" for i, (name, column) in enumerate(columns.items()))
        return self._arrow(f"SELECT {select} FROM {frame.table} ORDER BY rowid").rename_columns(list(columns))

    def rows(self, frame: Frame) -> pa.Table:
        """Return every column as it is stored."""
        return self._arrow(f"SELECT * FROM {frame.table} ORDER BY rowid").rename_columns(list(frame.names))

    def apply(self, frame: Frame, recoding: Recoding, schema: Schema) -> Frame:
        """Carry out a recoding: a new table without the dropped columns and rows, in the same order."""
        treated = {name: t for name, t in recoding.columns.items() if not isinstance(t, Drop)}
        fresh = {name: t for name, t in treated.items() if isinstance(t, Replace)}
        labels = np.maximum(recoding.labels, 0)
        arrow = pa.table(
            {"kept": recoding.kept} | {f"v{i}": t.values.take(pa.array(labels)) for i, t in enumerate(fresh.values())}
        )
        select = []
        for i, (name, treatment) in enumerate(treated.items()):
            value = f"s.{frame.at(name)}" if isinstance(treatment, Keep) else f"n.v{list(fresh).index(name)}"
            if isinstance(treatment, Replace) and treatment.as_stored:
                value = _restored(value, treatment.values.type, frame.type_of(name), schema[name])
            if treatment.quotes and _holds_text(treatment, frame.type_of(name)):
                value = requoted(value, treatment.quotes)
            select.append(f"{value} AS c{i}")
        query = f"SELECT {', '.join(select)} FROM {frame.table} s POSITIONAL JOIN {{}} n WHERE n.kept"
        with self._registered(arrow) as view:
            try:
                table = self._table(query.format(view))
            except duckdb.ConversionException:
                what = "a released value does not fit the type that its column had"
                raise DataError(what, fix="give the column a wider type, or say output.round = false") from None
        labelled = frozenset(name for name, treatment in fresh.items() if not treatment.as_stored)
        return Frame(table, tuple(treated), self._types(table), frame.typed, frame.separator, labelled)

    def write(self, frame: Frame, path: Path, schema: Schema, *, ordered: bool) -> None:
        """Write a CSV or Parquet file, by its ending; `ordered` sorts the rows by all their values."""
        order = "ORDER BY ALL" if ordered else "ORDER BY rowid"
        if path.suffix == ".parquet":
            select = ", ".join(f"{_typed(frame, name, schema)} AS {_quote(name)}" for name in frame.names)
            options = "FORMAT parquet"
        else:
            select = ", ".join(f"c{i} AS {_quote(name)}" for i, name in enumerate(frame.names))
            separator = frame.separator if len(frame.names) > 1 else ","  # what a reader assumes of a single column
            options = f"FORMAT csv, HEADER, DELIMITER '{separator}'"
        inner = f"SELECT {select} FROM {frame.table} {order}"
        try:
            self._connection.execute(f"COPY ({inner}) TO {_literal(path)} ({options})")
        except duckdb.IOException:
            raise PolicyError(
                f"cannot write '{path.name}' into '{path.parent}'", fix="check the folder's rights and the free space"
            ) from None

    # Reading

    def _read_csv(self, path: Path) -> Frame:
        dialect = find_dialect(path)
        if dialect.encoding not in ("utf-8", "utf-8-sig"):
            return self._load_csv(self._transcoded(path, dialect.encoding), dialect, path.name)
        return self._load_csv(path, dialect, path.name)

    def _transcoded(self, path: Path, encoding: str) -> Path:
        copy = self._folder / f"source{next(self._numbers)}.csv"
        try:
            transcode(path, encoding, copy)
        except OSError as error:
            what = f"cannot write a copy of '{path.name}' to '{self._folder.parent}': {error.strerror}"
            raise PolicyError(what, fix="free some space, or set TMPDIR to another folder") from None
        return copy

    def _load_csv(self, path: Path, dialect: Dialect, name: str) -> Frame:
        fields = "{" + ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(dialect.header))) + "}"
        options = (
            f"auto_detect=false, header=true, delim='{dialect.separator}', quote='\"', escape='\"', columns={fields}, "
            f"skip={dialect.blank}, store_rejects=true"
        )
        try:
            table = self._table(f"SELECT * FROM read_csv({_literal(path)}, {options})")
        except duckdb.Error:  # whose message quotes the line
            what = f"'{name}' cannot be read as CSV: quotes or line ends are broken"
            raise DataError(what, fix="check that quotes are closed and that all lines end alike") from None
        self._refuse_rejects(name)
        self._refuse_empty(table, f"'{name}'")
        types, separator = self._types(table), dialect.separator
        return Frame(table, dialect.header, types, typed=False, separator=separator, doubtful=dialect.doubtful)

    def _refuse_rejects(self, name: str) -> None:
        found = self._connection.execute("SELECT DISTINCT line FROM reject_errors ORDER BY line").fetchall()
        lines = [line for (line,) in found]
        self._connection.execute("DROP TABLE reject_errors; DROP TABLE reject_scans")
        if not lines:
            return
        shown = ", ".join(map(str, lines[:LINES_SHOWN])) + (", ..." if len(lines) > LINES_SHOWN else "")
        plural = "s have" if len(lines) > 1 else " has"
        what = f"'{name}': {len(lines)} line{plural} other fields than the header, or a broken quote (line {shown})"
        raise DataError(what, fix="mend those lines; fields that hold the separator must be quoted")

    def _read_typed(self, path: Path, scan: str) -> Frame:
        try:
            names = [row[0] for row in self._connection.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()]
            select = ", ".join(f"{_quote(name)} AS c{i}" for i, name in enumerate(names))
            table = self._table(f"SELECT {select} FROM {scan}")
        except duckdb.Error:
            raise DataError(
                f"'{path.name}' cannot be read", fix="check that it is whole and what its ending says"
            ) from None
        return self._checked(table, tuple(names), f"'{path.name}'")

    def _read_arrow(self, source: pa.Table) -> Frame:
        numbered = source.rename_columns([f"c{i}" for i in range(source.num_columns)])
        with self._registered(numbered) as view:
            table = self._table(f"SELECT * FROM {view}")
        return self._checked(table, tuple(source.column_names), "the frame")

    def _flattened(self, table: str) -> str:
        """Return the table with codes, columns of nothing but nulls, and texts among numbers in JSON as text."""
        described = [row[:2] for row in self._connection.execute(f"DESCRIBE {table}").fetchall()]
        fresh = {c: f"CAST({c} AS VARCHAR)" for c, kind in described if kind.startswith(('"NULL"', "UUID", "ENUM"))}
        for c, kind in described:
            nested = f"SELECT count(*) FROM {table} WHERE json_type({c}) IN ('OBJECT', 'ARRAY')"
            if kind == "JSON" and not self._row(nested)[0]:
                fresh[c] = f"{c} ->> '$'"
        if not fresh:
            return table
        return self._table(f"SELECT {', '.join(f'{fresh.get(c, c)} AS {c}' for c, _ in described)} FROM {table}")

    def _checked(self, table: str, names: tuple[str, ...], source: str) -> Frame:
        table = self._flattened(table)
        check_names(names, source)
        self._refuse_empty(table, source)
        types = self._types(table)
        problems = [
            Problem(f"column '{name}' of {source} holds {kind}, not single values", "unpack or leave out that column")
            for name, kind in zip(names, types, strict=True)
            if kind not in FLAT_TYPES and not kind.startswith(("DECIMAL", "TIME"))
        ]
        if problems:
            raise DataError(problems)
        return Frame(table, names, types, typed=True)

    def _refuse_empty(self, table: str, source: str) -> None:
        if not self._count(table):
            raise DataError(f"{source} has no rows", fix="give a table with at least one row")

    # Asking

    def _asked(self, frame: Frame) -> Schema:
        rows = self._count(frame.table)
        distinct = self._distinct(frame)
        asked = [inference.questions(kind, f"c{i}") for i, kind in enumerate(frame.types)]
        # A column of nothing but nulls is not asked: the database stumbles over some questions about none.
        select = [
            sql for questions, values in zip(asked, distinct, strict=True) if values for sql in questions.values()
        ]
        answers = iter(self._row(f"SELECT {', '.join(select)} FROM {frame.table}") if select else ())
        found = [
            {key: (next(answers) or 0) if values else 0 for key in questions} | {"distinct": values}
            for questions, values in zip(asked, distinct, strict=True)
        ]
        formats = self._date_formats(frame, rows, [inference.may_be_dates(answer) for answer in found])
        columns = [
            inference.column(Stored(name, kind, frame.typed), rows, answer, form)
            for name, kind, answer, form in zip(frame.names, frame.types, found, formats, strict=True)
        ]
        return Schema.of(columns, rows, frame.doubtful)

    def _distinct(self, frame: Frame) -> list[int]:
        # Far cheaper than as many count(DISTINCT ...) in one query.
        counts = " UNION ALL ".join(
            f"SELECT {i} AS i, count(*) AS n FROM (SELECT DISTINCT c{i} FROM {frame.table} WHERE c{i} IS NOT NULL)"
            for i in range(len(frame.names))
        )
        return [n for _, n in self._connection.execute(f"SELECT i, n FROM ({counts}) ORDER BY i").fetchall()]

    def _date_formats(self, frame: Frame, rows: int, wanted: Sequence[bool]) -> list[str | None]:
        """The one format that all texts of a column are dates in; the first rows rule most of them out."""
        every = [inference.FORMATS if asked else () for asked in wanted]
        left = self._fitting(f"(SELECT * FROM {frame.table} LIMIT {FIRST_ROWS})", every)
        if rows > FIRST_ROWS:
            left = self._fitting(frame.table, left)
        return [forms[0] if len(forms) == 1 else None for forms in left]

    def _fitting(self, rows: str, formats: Sequence[Sequence[str]]) -> list[list[str]]:
        asked = [(i, form) for i, forms in enumerate(formats) for form in forms]
        if not asked:
            return [[] for _ in formats]
        fits = ", ".join(f"count(c{i}) = count(try_strptime(trim(c{i}), '{form}'))" for i, form in asked)
        yes = [pair for pair, answer in zip(asked, self._row(f"SELECT {fits} FROM {rows}"), strict=True) if answer]
        return [[form for j, form in yes if j == i] for i in range(len(formats))]

    # The database

    def _table(self, query: str) -> str:
        name = f"t{next(self._numbers)}"
        self._connection.execute(f"CREATE TABLE {name} AS {query}")
        return name

    def _types(self, table: str) -> tuple[str, ...]:
        described = self._connection.execute(f"DESCRIBE {table}").fetchall()
        return tuple(row[1] for row in described)

    def _count(self, table: str) -> int:
        return int(self._row(f"SELECT count(*) FROM {table}")[0])

    def _row(self, query: str) -> tuple[Any, ...]:
        (row,) = self._connection.execute(query).fetchall()  # whole, or the connection stays busy with it
        return tuple(row)

    def _arrow(self, query: str) -> pa.Table:
        return self._connection.sql(query).to_arrow_table()

    def _spread(self, frame: Frame, keys: str, names: str, value: str) -> Spread:
        # Ranked in the order in which the classes themselves are listed; SQL ranks nulls together.
        rows = f"SELECT {keys}{',' if keys else ''} {value} AS v FROM {frame.table}"
        rank = "dense_rank() OVER (ORDER BY {}) - 1"
        places = f"{rank.format(names or 1)} AS g, {rank.format('v NULLS FIRST')} AS code"
        ranked = f"SELECT {places}, v FROM ({rows})"
        cells = self._arrow(
            f"SELECT g, code, any_value(v) AS v, count(*) AS n FROM ({ranked}) GROUP BY g, code ORDER BY g, code"
        )
        g, code, n = (cells.column(name).to_numpy().astype(np.int64) for name in ("g", "code", "n"))
        first = np.unique(code, return_index=True)[1]
        return Spread(g, code, n, cells.column("v").take(pa.array(first)).to_numpy(zero_copy_only=False))

    def _registered(self, arrow: pa.Table) -> _View:
        return _View(self._connection, f"v{next(self._numbers)}", arrow)


def _discard(connection: Any, folder: Path) -> None:
    connection.close()
    shutil.rmtree(folder, ignore_errors=True)


class _View:
    """An Arrow table that the database sees for as long as the `with` block lasts."""

    def __init__(self, connection: Any, name: str, arrow: pa.Table) -> None:
        self._connection, self._name, self._arrow = connection, name, arrow

    def __enter__(self) -> str:
        self._connection.register(self._name, self._arrow)
        return self._name

    def __exit__(self, *_: object) -> None:
        self._connection.unregister(self._name)


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(path: Path) -> str:
    return literal(str(path))


def _value(frame: Frame, name: str, column: Column | None) -> str:
    return f"CAST({frame.at(name)} AS VARCHAR)" if column is None else _number(frame, column)


def _number(frame: Frame, column: Column) -> str:
    """SQL for a column as a number: dates and times as days since 1970."""
    c, kind = frame.at(column.name), frame.type_of(column.name)
    if kind == "VARCHAR" and column.date_format:
        c = f"strptime(trim({c}), '{column.date_format}')"
    elif kind == "VARCHAR":
        return f"CAST(trim({c}) AS DOUBLE)"
    elif kind != "DATE" and not kind.startswith("TIMESTAMP"):
        return f"CAST({c} AS DOUBLE)"
    if column.storage is Storage.TIMESTAMP or (column.date_format or "") in inference.TIME_FORMATS:
        return f"epoch(CAST({c} AS TIMESTAMP)) / 86400"
    return f"CAST(CAST({c} AS DATE) - DATE '1970-01-01' AS DOUBLE)"


def _restored(value: str, held: pa.DataType, stored: str, column: Column) -> str:
    """SQL that brings a class value, held as an Arrow type, back into the type that the column had."""
    if stored == "VARCHAR" and pa.types.is_temporal(held):
        return f"strftime({value}, '{column.date_format}')"
    return f"CAST({value} AS {stored})"


def _holds_text(treatment: Keep | Replace, stored: str) -> bool:
    """Whether a column is text after its treatment."""
    if isinstance(treatment, Replace) and not treatment.as_stored:
        return bool(pa.types.is_string(treatment.values.type) or pa.types.is_large_string(treatment.values.type))
    return stored == "VARCHAR"


def _typed(frame: Frame, name: str, schema: Schema) -> str:
    """SQL for a column in the type that its values have, for formats that know types."""
    c, kind = frame.at(name), frame.type_of(name)
    column = schema.get(name)
    if frame.typed or kind != "VARCHAR" or column is None or name in frame.labelled:
        return c
    target = {Storage.INTEGER: "BIGINT", Storage.NUMBER: "DOUBLE"}.get(column.storage)
    if target:
        return f"CAST(trim({c}) AS {target})"
    if column.storage in (Storage.DATE, Storage.TIMESTAMP):
        return f"CAST(strptime(trim({c}), '{column.date_format}') AS {column.storage.upper()})"
    return c
