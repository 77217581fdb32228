"""The embedded engine: files and frames in DuckDB, one database in memory a run, spilling to disk when it must.

Verbs: read, schema, tally, collect, apply, write. Inside the database columns are called c0, c1, ...: a name in the
data never becomes part of a query. Rows keep the order in which they came.

A path is a path: no pattern, no partition read out of folder names, no address, and no extension is loaded by itself.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, Self

import duckdb
import numpy as np
import pyarrow as pa

from kinfold.errors import DataError, PolicyError, Problem
from kinfold.rows.engines import expressions, ordering, type_inference
from kinfold.rows.engines.connection import Connection
from kinfold.rows.engines.dialect import Dialect, find_dialect, transcode
from kinfold.rows.engines.expressions import Frame
from kinfold.rows.engines.formula_cells import requoted, string
from kinfold.rows.engines.source import Format, check_names, digest, format_of, plain_name
from kinfold.rows.engines.type_inference import Stored
from kinfold.rows.recoding import Drop, Keep, Recoding, Replace
from kinfold.rows.schema import AS_TEXT, Column, Reading, Schema, Storage
from kinfold.rows.tally import Spread, Tally

FLAT_TYPES = {*type_inference.WHOLE_TYPES, "FLOAT", "DOUBLE", "DATE", "BOOLEAN", "VARCHAR"}
LINES_SHOWN = 5
PIECE = 50  # questions of one query: what a query costs grows faster than its length
WIDE, STRIP = 400, 100  # columns of a table that is asked in strips, and of a strip
REMEMBERED, MODEST = 4, 100_000  # tallies, for pages and checks ask again; cells of one that is worth its memory
FIRST_ROWS = 1000  # looked at before all are


class DuckDB:
    """One run's database. Close it, or use it in a `with` block: its temporary files go with it."""

    def __init__(self) -> None:
        self._connection = Connection()
        self._folder = self._connection.folder
        self._connection.execute("SET TimeZone = 'UTC'")  # a day is the same day on every machine
        self._connection.execute("SET lock_configuration = true")
        self._numbers = count()
        self._schemas: dict[str, Schema] = {}
        self._tallies: dict[Any, Tally] = {}
        self._cut: dict[str, list[Frame]] = {}  # wide tables in strips
        self._discard = weakref.finalize(self, self._connection.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Forget every row and remove every temporary file; done by itself when nobody holds the engine any more."""
        self._discard()

    def read(self, source: Path | pa.Table, missing: Sequence[str] = (), separator: str | None = None) -> Frame:
        """Take in a CSV, Parquet or JSON-lines file, or an Arrow table; `missing` are texts that become null."""
        frame = self._read_arrow(source) if isinstance(source, pa.Table) else self._read_file(source, separator)
        return self._without(frame, missing) if frame.typed and missing else frame

    def names(self, frame: Frame) -> tuple[str, ...]:
        """Return the names of the columns, in order."""
        return frame.names

    def checksum(self, frame: Frame) -> str | None:
        """Return the SHA-256 of the bytes that were read; None where they were no file."""
        return frame.checksum

    def blanked(self, frame: Frame) -> frozenset[str]:
        """Return the columns in which a text stood for a missing value."""
        return frame.blanked

    def schema(self, frame: Frame) -> Schema:
        """Ask every column what it is; a table is asked once."""
        if frame.table not in self._schemas:
            self._schemas[frame.table] = self._asked(frame)
        return self._schemas[frame.table]

    def tally(self, frame: Frame, by: Sequence[str], of: Mapping[str, Reading]) -> Tally:
        """Count classes, and confidential values within them; what was counted a moment ago is not counted again."""
        asked = (frame.table, tuple(by), tuple(of.items()))
        if asked in self._tallies:
            return self._tallies[asked]
        found = self._tallied(frame, by, of)
        if sum(len(spread.code) for spread in found.spreads.values()) + len(found) <= MODEST:
            self._tallies = {**dict(list(self._tallies.items())[1 - REMEMBERED :]), asked: found}
        return found

    def _tallied(self, frame: Frame, by: Sequence[str], of: Mapping[str, Reading]) -> Tally:
        """Group by the text of the key columns and count, then count each confidential column within the groups."""
        frame = self._strip(frame, (*by, *of))
        keys = ", ".join(f"{expressions.text(frame, name)} AS k{i}" for i, name in enumerate(by))
        names = ", ".join(f"k{i}" for i in range(len(by)))
        groups = self._arrow(
            f"SELECT {keys}{',' if keys else ''} count(*) AS n FROM {frame.table} GROUP BY ALL ORDER BY {names or 1}"
        )
        spreads = {name: self._spread(frame, keys, names, self._exact(frame, name, how)) for name, how in of.items()}
        found = {name: groups.column(f"k{i}").to_numpy(zero_copy_only=False) for i, name in enumerate(by)}
        return Tally(found, groups.column("n").to_numpy().astype(np.int64), spreads)

    def distinct(self, frame: Frame, by: Sequence[str]) -> Frame:
        """Return the key columns of a tally's classes, in its order, as they are stored."""
        frame = self._strip(frame, by)
        texts = ", ".join(expressions.text(frame, name) for name in by)
        values = ", ".join(f"any_value({frame.at(name)}) AS c{i}" for i, name in enumerate(by))
        table = self._table(f"SELECT {values} FROM {frame.table} GROUP BY {texts} ORDER BY {texts}")
        return Frame(table, tuple(by), self._types(table), frame.typed, frame.separator, frame.labelled)

    def collect(self, frame: Frame, columns: Mapping[str, Column | Reading | None]) -> pa.Table:
        """Return columns as Arrow: numbers for a `Column`, places in the exact order for a `Reading`, else text."""
        values = {name: self._value(frame, name, how) for name, how in columns.items()}
        select = ", ".join(f"{value} AS c{i}" for i, value in enumerate(values.values()))
        return self._arrow(f"SELECT {select} FROM {frame.table} ORDER BY rowid").rename_columns(list(columns))

    def rows(self, frame: Frame, schema: Schema | None = None) -> pa.Table:
        """Return every column as it is stored, or in the type that its values have by a schema."""
        values = self._columns(frame) if schema is None else [self._typed(frame, name, schema) for name in frame.names]
        select = ", ".join(f"{value} AS v{i}" for i, value in enumerate(values))
        return self._arrow(f"SELECT {select} FROM {frame.table} ORDER BY rowid").rename_columns(list(frame.names))

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
                value = expressions.restored(value, treatment.values.type, frame.type_of(name), schema[name])
            if treatment.quotes and expressions.holds_text(treatment, frame.type_of(name)):
                value = requoted(value, treatment.quotes)
            select.append(f"{value} AS c{i}")
        with self._registered(arrow) as view:
            rows, order = self._joined(frame, recoding.tuples, view)
            try:
                table = self._table(f"SELECT {', '.join(select)} FROM {rows} WHERE n.kept {order}")
            except duckdb.ConversionException:
                what = "a released value does not fit the type that its column had"
                raise DataError(what, fix="give the column a wider type, or say output.round = false") from None
        labelled = frozenset(name for name, treatment in fresh.items() if not treatment.as_stored)
        return Frame(table, tuple(treated), self._types(table), frame.typed, frame.separator, labelled)

    def by_row(self, frame: Frame, recoding: Recoding) -> Recoding:
        """Return the recoding with a label for each row, where it has one for each tuple."""
        if recoding.tuples is None:
            return recoding
        with self._registered(pa.table({"label": recoding.labels})) as view:
            rows, order = self._joined(frame, recoding.tuples, view)
            labels = self._arrow(f"SELECT n.label FROM {rows} {order}").column(0).to_numpy()
        return replace(recoding, labels=labels.astype(np.int32), tuples=None)

    def _joined(self, frame: Frame, tuples: Frame | None, view: str) -> tuple[str, str]:
        """SQL for the rows `s` of a table beside those of a view, `n`, by their places or by tuple; and their order."""
        if tuples is None:
            return f"{frame.table} s POSITIONAL JOIN {view} n", ""
        keys = range(len(tuples.names))
        ours = ", ".join(f"{expressions.text(frame, name)} AS k{i}" for i, name in enumerate(tuples.names))
        theirs = ", ".join(f"{expressions.text(tuples, name)} AS k{i}" for i, name in enumerate(tuples.names))
        same = " AND ".join(f"s.k{i} IS NOT DISTINCT FROM n.k{i}" for i in keys)
        rows = f"(SELECT *, rowid AS place, {ours} FROM {frame.table})"
        named = f"(SELECT {view}.*, {theirs} FROM {tuples.table} POSITIONAL JOIN {view})"
        return f"{rows} s JOIN {named} n ON {same}", "ORDER BY s.place"

    def write(self, frame: Frame, path: Path, schema: Schema, *, ordered: bool) -> None:
        """Write a CSV or Parquet file, by its ending; `ordered` sorts the rows by all their values."""
        order = "ORDER BY ALL" if ordered else "ORDER BY rowid"
        if path.suffix == ".parquet":
            values, options = [self._typed(frame, name, schema) for name in frame.names], "FORMAT parquet"
        else:
            values, options = self._columns(frame), f"FORMAT csv, HEADER, DELIMITER '{self.separator(frame)}'"
            if len(values) == 1:  # a null alone on its line is an empty line, which many readers skip
                values = [f"coalesce(CAST({values[0]} AS VARCHAR), '')"]
        select = ", ".join(
            f"{value} AS {expressions.identifier(name)}" for value, name in zip(values, frame.names, strict=True)
        )
        inner = f"SELECT {select} FROM {frame.table} {order}"
        try:
            self._connection.execute(f"COPY ({inner}) TO {expressions.literal(path)} ({options})")
        except duckdb.IOException:
            raise PolicyError(
                f"cannot write '{path.name}' into '{path.parent}'", fix="check the folder's rights and the free space"
            ) from None

    def separator(self, frame: Frame) -> str:
        """Return what stands between two fields of a CSV file: a comma where there is one field only."""
        return frame.separator if len(frame.names) > 1 else ","

    # Reading

    def _read_file(self, path: Path, separator: str | None) -> Frame:
        """Read a file, and make sure that what was read is what was hashed."""
        form = format_of(path)
        try:
            before = digest(path)
            frame = self._read_csv(path, separator) if form is Format.CSV else self._read_typed(path, form)
            after = digest(path)
        except OSError as error:
            raise DataError(f"'{path.name}' cannot be read: {error.strerror}", fix="check the file") from None
        if before != after:
            raise DataError(f"'{path.name}' was changed while it was read", fix="wait until it is written, then again")
        return replace(frame, checksum=before)

    def _without(self, frame: Frame, missing: Sequence[str]) -> Frame:
        """Return the table with null where a text stands for a missing value."""
        texts = [f"c{i}" for i, kind in enumerate(frame.types) if kind == "VARCHAR"]
        stand = ", ".join(map(string, missing))
        held = (
            self._row(f"SELECT {', '.join(f'count_if({c} IN ({stand}))' for c in texts)} FROM {frame.table}")
            if texts
            else ()
        )
        found = {c for c, count in zip(texts, held, strict=True) if count}
        if not found:
            return frame
        select = (
            f"CASE WHEN {c} NOT IN ({stand}) THEN {c} END AS {c}" if c in found else c for c in self._columns(frame)
        )
        blanked = frozenset(name for name in frame.names if frame.at(name) in found)
        return replace(frame, table=self._table(f"SELECT {', '.join(select)} FROM {frame.table}"), blanked=blanked)

    def _read_csv(self, path: Path, separator: str | None) -> Frame:
        dialect = find_dialect(path, separator)
        if dialect.encoding not in ("utf-8", "utf-8-sig"):
            copy = self._transcoded(path, dialect.encoding)
            try:
                return self._load_csv(copy, dialect, path.name)
            finally:
                copy.unlink()  # a copy of the original stays no longer than it must
        return self._load_csv(plain_name(path, self._folder, next(self._numbers)), dialect, path.name)

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
            f"skip={dialect.blank}, store_rejects=true, compression='none', hive_partitioning=false"
        )
        try:
            table = self._table(f"SELECT * FROM read_csv({expressions.literal(path)}, {options})")
        except duckdb.Error:  # whose message quotes the line
            what = f"'{name}' cannot be read as CSV: quotes or line ends are broken"
            raise DataError(what, fix="check that quotes are closed and that all lines end alike") from None
        self._refuse_rejects(name)
        self._refuse_empty(table, f"'{name}'")
        types, separator = self._types(table), dialect.separator
        return Frame(table, dialect.header, types, typed=False, separator=separator, doubtful=dialect.doubtful)

    def _refuse_rejects(self, name: str) -> None:
        long = "bool_or(error_type = 'LINE SIZE OVER MAXIMUM')"
        found = self._connection.execute(
            f"SELECT line, {long} FROM reject_errors GROUP BY line ORDER BY line"
        ).fetchall()
        self._connection.execute("DROP TABLE reject_errors; DROP TABLE reject_scans")
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

    def _read_typed(self, path: Path, form: Format) -> Frame:
        source = expressions.literal(plain_name(path, self._folder, next(self._numbers)))
        scan = f"read_parquet({source}, hive_partitioning=false)"
        if form is Format.JSONL:
            scan = f"read_ndjson({source}, sample_size=-1, compression='none', hive_partitioning=false)"
        try:
            names = [row[0] for row in self._connection.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()]
            select = ", ".join(f"{expressions.identifier(name)} AS c{i}" for i, name in enumerate(names))
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
        columns = [column for strip in self._strips(frame) for column in self._described(strip, rows)]
        return Schema.of(columns, rows, frame.doubtful)

    def _described(self, frame: Frame, rows: int) -> list[Column]:
        distinct = self._distinct(frame)
        asked = [type_inference.questions(kind, f"c{i}") for i, kind in enumerate(frame.types)]
        # A column of nothing but nulls is not asked: the database stumbles over some questions about none.
        select = [
            sql for questions, values in zip(asked, distinct, strict=True) if values for sql in questions.values()
        ]
        answers = self._answers(select, frame.table)
        found = [
            {key: (next(answers) or 0) if values else 0 for key in questions} | {"distinct": values}
            for questions, values in zip(asked, distinct, strict=True)
        ]
        formats = self._date_formats(frame, rows, [type_inference.may_be_dates(answer) for answer in found])
        return [
            type_inference.column(Stored(name, kind, frame.typed), rows, answer, form)
            for name, kind, answer, form in zip(frame.names, frame.types, found, formats, strict=True)
        ]

    def _strips(self, frame: Frame) -> list[Frame]:
        """Return a table in strips that are cheap to ask: what a query costs grows with the width of its table."""
        if len(frame.names) <= WIDE:
            return [frame]
        if frame.table not in self._cut:
            starts = range(0, len(frame.names), STRIP)
            self._cut[frame.table] = [self._copied(frame, slice(start, start + STRIP)) for start in starts]
        return self._cut[frame.table]

    def _copied(self, frame: Frame, part: slice) -> Frame:
        columns = self._columns(frame)[part]
        select = ", ".join(f"{c} AS c{i}" for i, c in enumerate(columns))
        table = self._table(f"SELECT {select} FROM {frame.table}")
        return replace(frame, table=table, names=frame.names[part], types=frame.types[part])

    def _strip(self, frame: Frame, names: Sequence[str]) -> Frame:
        """Return the strip that has these columns, or the table where it is narrow or they are in several."""
        if len(frame.names) <= WIDE or not names:
            return frame
        strips = {frame.names.index(name) // STRIP for name in names}
        return self._strips(frame)[strips.pop()] if len(strips) == 1 else frame

    def _distinct(self, frame: Frame) -> list[int]:
        # Far cheaper than as many count(DISTINCT ...) in one query.
        counts = [
            f"SELECT {i} AS i, count(*) AS n FROM (SELECT DISTINCT c{i} FROM {frame.table} WHERE c{i} IS NOT NULL)"
            for i in range(len(frame.names))
        ]
        found = [self._connection.execute(" UNION ALL ".join(piece)).fetchall() for piece in _pieces(counts)]
        return [n for _, n in sorted(pair for pairs in found for pair in pairs)]

    def _date_formats(self, frame: Frame, rows: int, wanted: Sequence[bool]) -> list[str | None]:
        """The one format that all texts of a column are dates in; the first rows rule most of them out."""
        every = [type_inference.FORMATS if asked else () for asked in wanted]
        left = self._fitting(f"(SELECT * FROM {frame.table} LIMIT {FIRST_ROWS})", every)
        if rows > FIRST_ROWS:
            left = self._fitting(frame.table, left)
        return [forms[0] if len(forms) == 1 else None for forms in left]

    def _fitting(self, rows: str, formats: Sequence[Sequence[str]]) -> list[list[str]]:
        asked = [(i, form) for i, forms in enumerate(formats) for form in forms]
        if not asked:
            return [[] for _ in formats]
        fits = [f"count(c{i}) = count(try_strptime(trim(c{i}), '{form}'))" for i, form in asked]
        left: list[list[str]] = [[] for _ in formats]
        for (i, form), answer in zip(asked, self._answers(fits, rows), strict=True):
            left[i] += [form] if answer else []
        return left

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

    def _answers(self, questions: Sequence[str], rows: str) -> Iterator[Any]:
        for piece in _pieces(questions):
            yield from self._row(f"SELECT {', '.join(piece)} FROM {rows}")

    def _row(self, query: str) -> tuple[Any, ...]:
        (row,) = self._connection.execute(query).fetchall()  # whole, or the connection stays busy with it
        return tuple(row)

    def _arrow(self, query: str) -> pa.Table:
        return self._connection.arrow(query)

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
        return Spread(g, code, n, _distinct(cells.column("v").take(pa.array(first))))

    def _value(self, frame: Frame, name: str, how: Column | Reading | None) -> str:
        if how is None or how == AS_TEXT:
            return expressions.text(frame, name)
        if isinstance(how, Column):
            return expressions.number(frame, how)
        value = self._exact(frame, name, how)
        return f"CASE WHEN {frame.at(name)} IS NOT NULL THEN dense_rank() OVER (ORDER BY {value} NULLS FIRST) END"

    def _exact(self, frame: Frame, name: str, reading: Reading) -> str:
        """SQL for a column in its exact order; values that cannot be read so are an error, with their number."""
        c = frame.at(name)
        found = ordering.ordered(c, frame.type_of(name), reading)
        if found is not None:
            fits = f"coalesce(count_if({c} IS NOT NULL AND {found.fits}), 0)"
            filled, fitting = self._row(f"SELECT count({c}), {fits} FROM {frame.table}")
            ordering.check_fit(name, reading, filled, fitting)
            return found.value
        filled, fitting, exponents, before, after = self._row(f"SELECT {ordering.digits(c)} FROM {frame.table}")
        ordering.check_fit(name, reading, filled, fitting)
        return ordering.decimals(c, exponents, before, after) or self._placed(frame.table, c)

    def _placed(self, table: str, c: str) -> str:
        """SQL for numbers that the database cannot hold, by their place among the distinct ones."""
        texts = self._arrow(f"SELECT DISTINCT trim({c}) AS text FROM {table} WHERE {c} IS NOT NULL").column(0)
        order = pa.table({"text": texts, "place": ordering.places(texts.to_pylist())})
        with self._registered(order) as view:
            places = self._table(f"SELECT * FROM {view}")
        return f"(SELECT place FROM {places} WHERE text = trim({c}))"

    def _typed(self, frame: Frame, name: str, schema: Schema) -> str:
        """SQL for a column in the type that its values have, for formats that know types."""
        c, kind, column = frame.at(name), frame.type_of(name), schema.get(name)
        if frame.typed or kind != "VARCHAR" or column is None or name in frame.labelled:
            return c
        typed = self._by_storage(frame, column)
        changed = f"SELECT count_if(CAST({typed} AS VARCHAR) IS DISTINCT FROM {c}) FROM {frame.table}"
        return c if column.literal and self._row(changed)[0] else typed

    def _by_storage(self, frame: Frame, column: Column) -> str:
        c = frame.at(column.name)
        if column.storage is Storage.INTEGER:
            return f"CAST(trim({c}) AS BIGINT)"
        if column.storage is Storage.NUMBER:
            return self._as_numbers(frame, column.name)
        if column.storage in (Storage.DATE, Storage.TIMESTAMP):
            return f"CAST(strptime(trim({c}), '{column.date_format}') AS {column.storage.upper()})"
        return c

    def _as_numbers(self, frame: Frame, name: str) -> str:
        """SQL for numbers written as text: doubles, unless two of them would become one."""
        c = frame.at(name)
        double = f"CAST(trim({c}) AS DOUBLE)"
        texts, doubles = self._row(f"SELECT count(DISTINCT trim({c})), count(DISTINCT {double}) FROM {frame.table}")
        if texts == doubles:
            return double
        _, _, exponents, before, after = self._row(f"SELECT {ordering.digits(c)} FROM {frame.table}")
        return ordering.decimals(c, exponents, before, after) or c

    def _columns(self, frame: Frame) -> list[str]:
        return [f"c{i}" for i in range(len(frame.names))]

    def _registered(self, arrow: pa.Table) -> _View:
        return _View(self._connection, f"v{next(self._numbers)}", arrow)


def _pieces(questions: Sequence[str]) -> Iterator[Sequence[str]]:
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


def _distinct(values: pa.ChunkedArray) -> Any:
    """Return values, in order, as an array; moments in parts, which Python ends in the year 9999, as their places."""
    if not pa.types.is_struct(values.type):
        return values.to_numpy(zero_copy_only=False)
    return np.where(values.is_null().to_numpy(), np.nan, np.arange(len(values)))
