"""The embedded engine: files and frames in DuckDB, one database in memory a run, spilling to disk when it must.

Verbs: read (see `reading`), schema (see `describing`), appearance and what else a profile asks (see `looking`), tally,
distinct, collect, apply, write.
Inside the database columns are called c0, c1, ...: a name in the data never becomes part of a query. Rows keep the
order in which they came.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import duckdb
import numpy as np
import pyarrow as pa

from kinfold.errors import DataError, PolicyError
from kinfold.rows.appearance import Appearance, Succession
from kinfold.rows.databases.address import DatabaseAddress
from kinfold.rows.databases.intake import RowsAt, read_database
from kinfold.rows.engines import expressions, ordering
from kinfold.rows.engines.database import Database
from kinfold.rows.engines.describing import schema_of
from kinfold.rows.engines.expressions import Frame
from kinfold.rows.engines.formula_cells import requoted, string
from kinfold.rows.engines.handing import Handed, handed
from kinfold.rows.engines.looking import alone_in, look_at, page_of, pairs_in, sizes_in, succession_of
from kinfold.rows.engines.normalizing import normalized, written
from kinfold.rows.engines.reading import read_arrow, read_file
from kinfold.rows.engines.strips import Strips
from kinfold.rows.engines.value_sql import recode_values
from kinfold.rows.recoding import Drop, Keep, Recoding, Replace
from kinfold.rows.schema import AS_TEXT, Column, Reading, Schema, Storage
from kinfold.rows.source_form import PLAIN, Form
from kinfold.rows.tally import Spread, Tally
from kinfold.rows.value_recoding import Recoded, ValueRecoding

REMEMBERED, MODEST = 4, 100_000  # tallies, for pages and checks ask again; cells of one that is worth its memory


class DuckDB:
    """One run's database. Close it, or use it in a `with` block: its temporary files go with it."""

    def __init__(self) -> None:
        self._db = Database()
        self._strips = Strips(self._db)
        self._schemas: dict[str, Schema] = {}
        self._tallies: dict[Any, Tally] = {}
        self._discard = weakref.finalize(self, self._db.connection.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Forget every row and remove every temporary file; done by itself when nobody holds the engine any more."""
        self._discard()

    def read(
        self, source: Path | pa.Table | DatabaseAddress | RowsAt, missing: Sequence[str] = (), form: Form = PLAIN
    ) -> Frame:
        """Take in a file, an Arrow table or rows of a database; `missing` are texts that become null."""
        if isinstance(source, DatabaseAddress | RowsAt):
            frame = read_database(self._db, source if isinstance(source, RowsAt) else RowsAt(source))
        else:
            frame = read_arrow(self._db, source) if isinstance(source, pa.Table) else read_file(self._db, source, form)
        found = {key: getattr(frame.form, key) or getattr(form, key) for key in ("separator", "encoding", "sheet")}
        return normalized(self._db, replace(frame, form=replace(form, **found)), missing if frame.typed else ())

    def form(self, frame: Frame) -> Form:
        """Return how a table is written: what was declared, and what was found out."""
        return frame.form

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
            self._schemas[frame.table] = schema_of(self._db, frame, self._strips)
        return self._schemas[frame.table]

    def recode(self, frame: Frame, how: Mapping[str, ValueRecoding], schema: Schema) -> Recoded:
        """Recode single values: named ones become others, numbers are limited and rounded."""
        try:
            return recode_values(self._db, frame, how, schema)
        except duckdb.ConversionException:
            what = f"a recoded value of {', '.join(map(repr, how))} does not fit the type that its column had"
            raise DataError(what, fix="give the column a wider type, or recode to values that fit") from None

    def tally(self, frame: Frame, by: Sequence[str], of: Mapping[str, Reading]) -> Tally:
        """Count classes, and confidential values within them; what was counted a moment ago is not counted again."""
        asked = (frame.table, tuple(by), tuple(of.items()))
        if asked in self._tallies:
            return self._tallies[asked]
        found = self._tallied(frame, by, of)
        if sum(len(spread.code) for spread in found.spreads.values()) + len(found) <= MODEST:
            self._tallies[asked] = found
        while len(self._tallies) > REMEMBERED:
            del self._tallies[next(iter(self._tallies))]
        return found

    def _tallied(self, frame: Frame, by: Sequence[str], of: Mapping[str, Reading]) -> Tally:
        """Group by the text of the key columns and count, then count each confidential column within the groups."""
        frame = self._strips.holding(frame, (*by, *of))
        keys = ", ".join(f"{expressions.text(frame, name)} AS k{i}" for i, name in enumerate(by))
        names = ", ".join(f"k{i}" for i in range(len(by)))
        groups = self._db.arrow(
            f"SELECT {keys}{',' if keys else ''} count(*) AS n FROM {frame.table} GROUP BY ALL ORDER BY {names or 1}"
        )
        spreads = {name: self._spread(frame, keys, names, self._exact(frame, name, how)) for name, how in of.items()}
        found = {name: groups.column(f"k{i}").to_numpy(zero_copy_only=False) for i, name in enumerate(by)}
        return Tally(found, groups.column("n").to_numpy().astype(np.int64), spreads)

    def appearance(self, frame: Frame, column: Column) -> Appearance:
        """Say what the values of a column look like."""
        return look_at(self._db, self._strips.holding(frame, (column.name,)), column)

    def succession(self, frame: Frame, column: Column) -> Succession:
        """Say how the values of a column follow one another."""
        return succession_of(self._db, self._strips.holding(frame, (column.name,)), column)

    def alone(self, frame: Frame, names: Sequence[str]) -> int:
        """Count the rows that are alone with their values of some columns."""
        return alone_in(self._db, self._strips.holding(frame, names), names)

    def pairs(self, frame: Frame, one: str, other: str) -> tuple[int, int]:
        """Count the pairs of values of two columns, and the values of the first in them."""
        return pairs_in(self._db, self._strips.holding(frame, (one, other)), one, other)

    def sizes(self, frame: Frame, by: Sequence[str]) -> list[tuple[int, int]]:
        """Count the classes of some columns by their sizes; nothing but these numbers leaves the database."""
        return sizes_in(self._db, self._strips.holding(frame, by), by)

    def page(self, frame: Frame, start: int, many: int) -> list[list[str | None]]:
        """Return some rows as text, to be looked at."""
        return page_of(self._db, frame, start, many)

    def distinct(self, frame: Frame, by: Sequence[str]) -> Frame:
        """Return the key columns of a tally's classes, in its order, as they are stored."""
        frame = self._strips.holding(frame, by)
        texts = ", ".join(expressions.text(frame, name) for name in by)
        values = ", ".join(f"any_value({frame.at(name)}) AS c{i}" for i, name in enumerate(by))
        table = self._db.table(f"SELECT {values} FROM {frame.table} GROUP BY {texts} ORDER BY {texts}")
        return Frame(table, tuple(by), self._db.types(table), frame.typed, frame.form, frame.labelled)

    def collect(self, frame: Frame, columns: Mapping[str, Column | Reading | None]) -> pa.Table:
        """Return columns as Arrow: numbers for a `Column`, places in the exact order for a `Reading`, else text."""
        values = {name: self._value(frame, name, how) for name, how in columns.items()}
        select = ", ".join(f"{value} AS c{i}" for i, value in enumerate(values.values()))
        return self._db.arrow(f"SELECT {select} FROM {frame.table} ORDER BY rowid").rename_columns(list(columns))

    def rows(self, frame: Frame, schema: Schema | None = None) -> pa.Table:
        """Return every column as it is stored, or in the type that its values have by a schema."""
        values = frame.columns if schema is None else [self._typed(frame, name, schema) for name in frame.names]
        select = ", ".join(f"{value} AS v{i}" for i, value in enumerate(values))
        return self._db.arrow(f"SELECT {select} FROM {frame.table} ORDER BY rowid").rename_columns(list(frame.names))

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
        with self._db.registered(arrow) as view:
            rows, order = self._joined(frame, recoding.tuples, view)
            try:
                table = self._db.table(f"SELECT {', '.join(select)} FROM {rows} WHERE n.kept {order}")
            except duckdb.ConversionException:
                what = "a released value does not fit the type that its column had"
                raise DataError(what, fix="give the column a wider type, or say output.round = false") from None
        labelled = frozenset(name for name, treatment in fresh.items() if not treatment.as_stored)
        kept = {"typed": frame.typed, "form": frame.form, "numeric": frame.numeric, "mixed": frame.mixed}
        return Frame(table, tuple(treated), self._db.types(table), labelled=labelled, **kept)  # type: ignore[arg-type]

    def by_row(self, frame: Frame, recoding: Recoding) -> Recoding:
        """Return the recoding with a label for each row, where it has one for each tuple."""
        if recoding.tuples is None:
            return recoding
        with self._db.registered(pa.table({"label": recoding.labels})) as view:
            rows, order = self._joined(frame, recoding.tuples, view)
            labels = self._db.arrow(f"SELECT n.label FROM {rows} {order}").column(0).to_numpy()
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

    def hand_out(self, frame: Frame, schema: Schema, fitted: Callable[[str], str], *, ordered: bool) -> Handed:
        """Hand out every row, a batch at a time, in types that somebody takes."""
        return handed(self._db, frame, [self._typed(frame, name, schema) for name in frame.names], fitted, ordered)

    def write(self, frame: Frame, path: Path, schema: Schema, *, ordered: bool) -> None:
        """Write a CSV or Parquet file, by its ending; `ordered` sorts the rows by all their values."""
        order = "ORDER BY ALL" if ordered else "ORDER BY rowid"
        if path.suffix == ".parquet":
            values, options = [self._typed(frame, name, schema) for name in frame.names], "FORMAT parquet"
        else:
            values = [written(frame, name) for name in frame.names]
            options = f"FORMAT csv, HEADER, DELIMITER {string(self.separator(frame))}"
            if len(values) == 1:  # a null alone on its line is an empty line, which many readers skip
                values = [f"coalesce(CAST({values[0]} AS VARCHAR), '')"]
        select = ", ".join(
            f"{value} AS {expressions.identifier(name)}" for value, name in zip(values, frame.names, strict=True)
        )
        inner = f"SELECT {select} FROM {frame.table} {order}"
        try:
            self._db.connection.execute(f"COPY ({inner}) TO {expressions.literal(path)} ({options})")
        except duckdb.IOException:
            raise PolicyError(
                f"cannot write '{path.name}' into '{path.parent}'", fix="check the folder's rights and the free space"
            ) from None

    def separator(self, frame: Frame) -> str:
        """Return what stands between two fields of a CSV file: a comma where there is one field only."""
        return frame.form.between_fields if len(frame.names) > 1 else ","

    # SQL

    def _spread(self, frame: Frame, keys: str, names: str, value: str) -> Spread:
        # Ranked in the order in which the classes themselves are listed; SQL ranks nulls together.
        rows = f"SELECT {keys}{',' if keys else ''} {value} AS v FROM {frame.table}"
        rank = "dense_rank() OVER (ORDER BY {}) - 1"
        places = f"{rank.format(names or 1)} AS g, {rank.format('v NULLS FIRST')} AS code"
        ranked = f"SELECT {places}, v FROM ({rows})"
        cells = self._db.arrow(
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
            filled, fitting = self._db.row(f"SELECT count({c}), {fits} FROM {frame.table}")
            ordering.check_fit(name, reading, filled, fitting)
            return found.value
        filled, fitting, exponents, before, after = self._db.row(f"SELECT {ordering.digits(c)} FROM {frame.table}")
        ordering.check_fit(name, reading, filled, fitting)
        return ordering.decimals(c, exponents, before, after) or self._placed(frame.table, c)

    def _placed(self, table: str, c: str) -> str:
        """SQL for numbers that the database cannot hold, by their place among the distinct ones."""
        texts = self._db.arrow(f"SELECT DISTINCT trim({c}) AS text FROM {table} WHERE {c} IS NOT NULL").column(0)
        order = pa.table({"text": texts, "place": ordering.places(texts.to_pylist())})
        with self._db.registered(order) as view:
            places = self._db.table(f"SELECT * FROM {view}")
        return f"(SELECT place FROM {places} WHERE text = trim({c}))"

    def _typed(self, frame: Frame, name: str, schema: Schema) -> str:
        """SQL for a column in the type that its values have, for formats that know types."""
        c, kind, column = frame.at(name), frame.type_of(name), schema.get(name)
        if frame.knows_type(name) or kind != "VARCHAR" or column is None or name in frame.labelled:
            return c
        typed = self._by_storage(frame, column)
        changed = f"SELECT count_if(CAST({typed} AS VARCHAR) IS DISTINCT FROM {c}) FROM {frame.table}"
        return c if column.literal and self._db.row(changed)[0] else typed

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
        texts, doubles = self._db.row(f"SELECT count(DISTINCT trim({c})), count(DISTINCT {double}) FROM {frame.table}")
        if texts == doubles:
            return double
        _, _, exponents, before, after = self._db.row(f"SELECT {ordering.digits(c)} FROM {frame.table}")
        return ordering.decimals(c, exponents, before, after) or c


def _distinct(values: pa.ChunkedArray) -> Any:
    """Return values, in order, as an array; moments in parts, which Python ends in the year 9999, as their places."""
    if not pa.types.is_struct(values.type):
        return values.to_numpy(zero_copy_only=False)
    return np.where(values.is_null().to_numpy(), np.nan, np.arange(len(values)))
