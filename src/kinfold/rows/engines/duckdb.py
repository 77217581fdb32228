"""The embedded engine: files and frames in DuckDB, one database a run, in memory or on disk (see `instances`).

Verbs: read (see `reading`), schema (see `describing`), appearances and what else a profile asks (see `looking`), tally,
distinct, collect, apply, write.
Inside the database columns are called c0, c1, ...: a name in the data never becomes part of a query. Rows keep the
order in which they came.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import duckdb
import numpy as np
import pyarrow as pa

from kinfold.errors import DataError, PolicyError, Problem, plural
from kinfold.rows.appearance import Appearance, Succession
from kinfold.rows.categories import category
from kinfold.rows.databases.address import DatabaseAddress
from kinfold.rows.databases.row_import import RowsAt, read_database
from kinfold.rows.engines import NumbersInBoth, expressions, ordering
from kinfold.rows.engines.connection import DiskFull
from kinfold.rows.engines.database import PIECE, Database
from kinfold.rows.engines.describing import schema_of
from kinfold.rows.engines.expressions import Frame
from kinfold.rows.engines.formula_cells import string
from kinfold.rows.engines.looking import alone_in, look_at, page_of, pairs_in, sizes_in, succession_of, unmet_in
from kinfold.rows.engines.normalizing import normalized, written
from kinfold.rows.engines.parts import is_many, read_parts
from kinfold.rows.engines.reading import read_arrow, read_file, read_part
from kinfold.rows.engines.regions import Asked, RegionsHere, Route, ValueCodes
from kinfold.rows.engines.released_schema import AfterRecoding, only
from kinfold.rows.engines.row_export import Handed, handed
from kinfold.rows.engines.sorted_rows import MANY, sorted_counts
from kinfold.rows.engines.tallying import beside_tuples, classes_of, moments_of, spread_of, tuples_of
from kinfold.rows.engines.treating import class_values, classes_after, fitting, labelled_tuples, treated_values
from kinfold.rows.engines.value_sql import recode_values
from kinfold.rows.engines.wide_tables import Strips
from kinfold.rows.recoding import LEFT_OUT, Drop, Recoding, Replace
from kinfold.rows.resources import ANY, Resources
from kinfold.rows.schema import AS_TEXT, Column, Exactly, Reading, Schema, Storage
from kinfold.rows.source_form import PLAIN, Form
from kinfold.rows.tally import Spread, Tally
from kinfold.rows.value_recoding import Recoded, ValueRecoding

CELL = 24  # bytes: the class, the value, and how often
VALUES = 4  # that a class may hold, when room is made for its count
MODEST = 100_000  # cells of a count that is remembered whatever memory there is

FORGOTTEN: dict[str, Any] = {"checksum": None, "blanked": frozenset(), "doubtful": ()}  # of a table that was recoded


class DuckDB:
    """One run's database. Close it, or use it in a `with` block: its temporary files go with it."""

    def __init__(self, resources: Resources = ANY) -> None:
        self._db = Database(resources)
        self._strips = Strips(self._db)
        self._schemas: dict[str, Schema] = {}
        self._recoded: dict[str, AfterRecoding] = {}
        self._tuples: dict[tuple[str, tuple[str, ...]], Frame] = {}
        self._counted: dict[Any, Any] = {}
        self._categories: dict[tuple[str, str], str | None] = {}  # tables of numbers that are spelled in other ways
        self._room = resources.for_counts
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
        frame = self._taken_in(source, form)
        found = {key: getattr(frame.form, key) or getattr(form, key) for key in ("separator", "encoding", "sheet")}
        return normalized(self._db, replace(frame, form=replace(form, **found)), missing if frame.typed else ())

    def _taken_in(self, source: Path | pa.Table | DatabaseAddress | RowsAt, form: Form) -> Frame:
        if isinstance(source, pa.Table):
            return read_arrow(self._db, source)
        if isinstance(source, DatabaseAddress | RowsAt):
            return read_database(self._db, source if isinstance(source, RowsAt) else RowsAt(source))
        if form.parts and is_many(source):
            return read_parts(self._db, source, lambda part: read_part(self._db, part.file, form, part.name))
        return read_file(self._db, source, form)

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
            recoded = self._recoded.get(frame.table)
            self._schemas[frame.table] = self._after(recoded) if recoded else self._described(frame)
        return self._schemas[frame.table]

    def _described(self, frame: Frame) -> Schema:
        return schema_of(self._db, frame, self._strips)

    def _after(self, recoded: AfterRecoding) -> Schema:
        rows = self._db.count(recoded.frame.table)
        return recoded.schema(
            rows, self._described, lambda names: self._described(only(self._db, recoded.frame, names))
        )

    def recode(self, frame: Frame, how: Mapping[str, ValueRecoding], schema: Schema) -> Recoded:
        """Recode single values: named ones become others, numbers are limited and rounded."""
        try:
            return recode_values(self._db, frame, how, schema)
        except duckdb.ConversionException:
            what = f"a recoded value of {', '.join(map(repr, how))} does not fit the type that its column had"
            raise DataError(what, fix="give the column a wider type, or recode to values that fit") from None

    def tally(self, frame: Frame, by: Sequence[str], of: Mapping[str, Reading | Column]) -> Tally:
        """Count classes, and confidential values within them; what was counted before is not counted again."""
        here = self._strips.holding(frame, (*by, *of))
        tuples = self.distinct(here, by)
        keys, sizes = self._remembered((tuples.table, tuples.names, None), partial(classes_of, self._db, tuples))
        spreads = {
            name: self._remembered(
                (tuples.table, tuples.names, (name, how)), partial(self._spread, here, tuples, name, how), len(sizes)
            )
            for name, how in of.items()
        }
        return Tally(keys, sizes, spreads)

    def _remembered(self, asked: Any, count: Callable[[], Any], classes: int = 0) -> Any:
        """Return what was counted; of large counts the latest are remembered: measures, pages and checks ask again."""
        if asked in self._counted:
            return self._counted[asked]
        self._make_room(self._room - CELL * VALUES * classes)
        found = count()
        if asked[1] or _cells(found) <= MODEST:
            self._counted[asked] = found
            self._make_room(self._room)
        return found

    def _make_room(self, most: float) -> None:
        """Forget large counts, the oldest first, until those that are left take no more than so many bytes."""
        large = [key for key, held in self._counted.items() if _cells(held) > MODEST]
        while large and sum(CELL * _cells(self._counted[key]) for key in large) > most:
            del self._counted[large.pop(0)]

    def forget_counts(self) -> None:
        """Let go of what was counted; the tuples stay."""
        self._counted.clear()
        pa.default_memory_pool().release_unused()

    def _spread(self, frame: Frame, tuples: Frame, name: str, how: Reading | Column) -> Spread:
        asked = expressions.number(frame, how) if isinstance(how, Column) else self._exact(frame, name, how)
        return spread_of(self._db, frame, tuples, asked)

    def moments(self, frame: Frame, columns: Mapping[str, Column]) -> tuple[int, Any, Any]:
        """Return how many records have a number in all of some columns, and their means and covariances."""
        return moments_of(self._db, frame, [expressions.number(frame, column) for column in columns.values()])

    def appearances(self, frame: Frame, columns: Sequence[Column]) -> dict[str, Appearance]:
        """Say what the values of columns look like, by their names."""
        found: dict[str, Appearance] = {}
        together = PIECE if self._db.is_short(frame.table) else 1
        for strip in self._strips.of(frame) if len(columns) > 1 else [frame]:
            own = [column for column in columns if column.name in set(strip.names)]
            for start in range(0, len(own), together):
                found |= look_at(self._db, strip, own[start : start + together])
        return found

    def succession(self, frame: Frame, column: Column) -> Succession:
        """Say how the values of a column follow one another."""
        return succession_of(self._db, self._strips.holding(frame, (column.name,)), column)

    def alone(self, frame: Frame, names: Sequence[str]) -> int:
        """Count the rows that are alone with their values of some columns."""
        return alone_in(self._db, self._strips.holding(frame, names), names)

    def pairs(self, frame: Frame, one: str, other: str) -> tuple[int, int]:
        """Count the pairs of values of two columns, and the values of the first in them."""
        return pairs_in(self._db, self._strips.holding(frame, (one, other)), one, other)

    def unmet(self, original: Frame, released: Frame, pairs: Sequence[tuple[str, str]]) -> list[int]:
        """Count the released rows whose two values no row of the original has together, for each pair of columns."""
        return unmet_in(self._db, original, released, pairs)

    def sizes(self, frame: Frame, by: Sequence[str]) -> list[tuple[int, int]]:
        """Count the classes of some columns by their sizes; nothing but these numbers leaves the database."""
        return sizes_in(self._db, self._strips.holding(frame, by), by)

    def page(self, frame: Frame, start: int, many: int) -> list[list[str | None]]:
        """Return some rows as text, to be looked at."""
        return page_of(self._db, frame, start, many)

    def distinct(self, frame: Frame, by: Sequence[str]) -> Frame:
        """Return the key columns of a tally's classes, in its order, as they are stored."""
        frame = self._strips.holding(frame, by)
        asked = (frame.table, tuple(by))
        if asked not in self._tuples:
            self._tuples[asked] = tuples_of(self._db, frame, by)
        return self._tuples[asked]

    def collect(self, frame: Frame, columns: Mapping[str, Column | Reading | Exactly | None]) -> pa.Table:
        """Return columns as Arrow: numbers for a `Column`, places in the exact order for a `Reading`, else text."""
        values = {name: self._value(frame, name, how) for name, how in columns.items()}
        select = ", ".join(f"{value} AS c{i}" for i, value in enumerate(values.values()))
        return self._db.arrow(f"SELECT {select} FROM {frame.table} ORDER BY {frame.order}").rename_columns(
            list(columns)
        )

    def split(self, orders: Any, hall: Any) -> Any:
        """Work on blocks in threads of this process."""
        return hall.run(lambda at: orders.made(at, partial(hall.part, at)))

    def regions(self, frame: Frame, asked: Asked, route: Route) -> RegionsHere:
        """Let every row find its region."""
        return RegionsHere([self._asked(frame, how) for how in asked], self._db.count(frame.table), route)

    def _asked(self, frame: Frame, how: Column | ValueCodes) -> Any:
        """Return a column of every row as numbers, or as codes."""
        if isinstance(how, Column):
            found = self.collect(frame, {how.name: how}).column(0).to_numpy(zero_copy_only=False)
        else:
            found = self.by_row(frame, Recoding(how.codes.astype(np.int32), {}, how.values)).labels
        return found.astype(np.float64, copy=False)

    def picked(self, frame: Frame, places: Any, recoding: Recoding | None = None) -> tuple[Frame, Any]:
        """Return the rows that stood at some places, and the numbers of the places that have one."""
        there, at = np.arange(len(places)), places
        if recoding is not None:
            there = np.flatnonzero(recoding.kept[places])
            at = (np.cumsum(recoding.kept) - 1)[places[there]]
        wanted = np.zeros(self._db.count(frame.table), np.bool_)
        wanted[at] = True
        with self._db.registered(pa.table({"wanted": wanted})) as view:
            table = self._db.table(f"SELECT s.* FROM {frame.table} s POSITIONAL JOIN {view} n WHERE n.wanted")
        return self.described_as(replace(frame, table=table, checksum=None), self.schema(frame)), there

    def like(self, frame: Frame, by: Sequence[str], some: Frame) -> Any:
        """Count the rows that are like each of some rows."""
        tuples = self.distinct(some, by)
        numbers = Recoding(np.arange(self._db.count(tuples.table), dtype=np.int32), {}, tuples)
        named = labelled_tuples(self._db, numbers)
        joined = beside_tuples(frame, named, "1 AS one", "label")
        found = self._db.arrow(f"SELECT u.label, count(*) AS many FROM {joined} GROUP BY u.label")
        self._db.drop(named.table)
        sizes = np.zeros(len(numbers.labels), np.int32)
        sizes[found.column("label").to_numpy()] = found.column("many").to_numpy()
        return self.by_row(some, replace(numbers, labels=sizes)).labels.astype(np.int64)

    def errors(
        self, original: Frame, released: Frame, columns: Sequence[NumbersInBoth], recoding: Recoding
    ) -> list[float]:
        """Sum the squared errors of columns, one at a time."""
        found = []
        for before, after, mean in columns:
            x, y = self._asked(original, before), np.full(len(recoding.labels), np.nan)
            y[recoding.kept] = self._asked(released, after)
            gaps = x - np.where(np.isnan(y), mean, y)
            found.append(float(np.nansum(gaps * gaps)))
        return found

    def described_as(self, frame: Frame, schema: Schema) -> Frame:
        """Return some rows of a table that is described already: its columns are what they are in the whole."""
        rows = self._db.count(frame.table)
        columns = (replace(column, rows=rows, nulls=min(column.nulls, rows)) for column in schema)
        self._schemas[frame.table] = Schema.of([column for column in columns if column.name in frame.names], rows)
        return frame

    def rows(self, frame: Frame, schema: Schema | None = None) -> pa.Table:
        """Return every column as it is stored, or in the type that its values have by a schema."""
        values = frame.columns if schema is None else [self._typed(frame, name, schema) for name in frame.names]
        select = ", ".join(f"{value} AS v{i}" for i, value in enumerate(values))
        return self._db.arrow(f"SELECT {select} FROM {frame.table} ORDER BY {frame.order}").rename_columns(
            list(frame.names)
        )

    def native(self, frame: Frame) -> pa.Table:
        """Return every column as it is stored."""
        return self.rows(frame)

    def apply(self, frame: Frame, recoding: Recoding, schema: Schema) -> Frame:
        """Carry out a recoding: a new table without the dropped columns and rows, in the same order."""
        treated = {name: t for name, t in recoding.columns.items() if not isinstance(t, Drop)}
        values = treated_values(frame, treated, schema)
        fresh = {name: t for name, t in treated.items() if isinstance(t, Replace)}
        with fitting():
            table = (self._by_place if recoding.tuples is None else self._by_tuple)(frame, recoding, fresh, values)
        labelled = frozenset(name for name, treatment in fresh.items() if not treatment.as_stored)
        found = replace(
            frame,
            table=table,
            names=tuple(treated),
            types=self._db.types(table)[: len(treated)],
            labelled=labelled,
            orders=(),
            order="rowid" if recoding.tuples is None else "place",
            **FORGOTTEN,
        )
        classes = classes_after(self._db, found, recoding, {name: values[name] for name in fresh})
        self._recoded[table] = AfterRecoding(found, schema, treated, classes)
        return found

    def _by_place(
        self, frame: Frame, recoding: Recoding, fresh: Mapping[str, Replace], values: Mapping[str, str]
    ) -> str:
        """Put what becomes of each row beside it."""
        select = ", ".join(f"{value} AS c{i}" for i, value in enumerate(values.values()))
        labels = pa.array(np.maximum(recoding.labels, 0))
        beside = {f"v{i}": t.values.take(labels) for i, t in enumerate(fresh.values())}
        with self._db.registered(pa.table({"kept": recoding.kept} | beside)) as view:
            return self._db.table(f"SELECT {select} FROM {frame.table} s POSITIONAL JOIN {view} n WHERE n.kept")

    def _by_tuple(
        self, frame: Frame, recoding: Recoding, fresh: Mapping[str, Replace], values: Mapping[str, str]
    ) -> str:
        """Note the class of each row by a join of its tuple, and where it stood, for a join may come in any order.

        What becomes of a class is written out once, and joined by whoever reads the rows; of few rows at once.
        """
        kept = "".join(f"{value} AS c{i}, " for i, (name, value) in enumerate(values.items()) if name not in fresh)
        named = labelled_tuples(self._db, recoding)
        joined = beside_tuples(frame, named, f"*, {frame.order} AS place", "label")
        rows = self._db.table(f"SELECT {kept}u.label, s.place FROM {joined} WHERE u.label <> {LEFT_OUT}")
        self._db.drop(named.table)
        classes = class_values(self._db, recoding, {name: values[name] for name in fresh}, list(values))
        columns = [f"{'n' if name in fresh else 's'}.c{i}" for i, name in enumerate(values)]
        released = f"SELECT {', '.join([*columns, 's.place'])} FROM {rows} s JOIN {classes} n ON n.id = s.label"
        return self._db.view(released) if self._db.count(rows) > MANY else self._db.table(released)

    def by_row(self, frame: Frame, recoding: Recoding) -> Recoding:
        """Return the recoding with a label for each row, where it has one for each tuple."""
        if recoding.tuples is None:
            return recoding
        named = labelled_tuples(self._db, recoding)
        joined = beside_tuples(frame, named, f"{frame.order} AS place", "label")
        labels = self._db.arrow(f"SELECT u.label FROM {joined} ORDER BY s.place").column(0).to_numpy()
        self._db.drop(named.table)
        return replace(recoding, labels=labels.astype(np.int32), tuples=None)

    def hand_out(self, frame: Frame, schema: Schema, fitted: Callable[[str], str], *, ordered: bool) -> Handed:
        """Hand out every row, a batch at a time, in types that somebody takes."""
        return handed(self._db, frame, [self._typed(frame, name, schema) for name in frame.names], fitted, ordered)

    def write(self, frame: Frame, path: Path, schema: Schema, *, ordered: bool) -> None:
        """Write a CSV or Parquet file, by its ending; `ordered` sorts the rows by all their values."""
        order = "ORDER BY ALL" if ordered else f"ORDER BY {frame.order}"
        if path.suffix == ".parquet":
            values, options = [self._typed(frame, name, schema) for name in frame.names], "FORMAT parquet"
        else:
            self._check_texts(frame)
            values = [written(frame, name) for name in frame.names]
            options = f"FORMAT csv, HEADER, DELIMITER {string(self.separator(frame))}"
            if len(values) == 1:  # a null alone on its line is an empty line, which many readers skip
                values = [f"coalesce(CAST({values[0]} AS VARCHAR), '')"]
        select = ", ".join(
            f"{value} AS {expressions.identifier(name)}" for value, name in zip(values, frame.names, strict=True)
        )
        inner = f"SELECT {select} FROM {frame.table} {order}"
        if ordered and (counted := sorted_counts(self._db, f"SELECT {select} FROM {frame.table}")):
            inner = counted
        try:
            self._db.connection.execute(f"COPY ({inner}) TO {expressions.literal(path)} ({options})")
        except (duckdb.IOException, DiskFull):
            raise PolicyError(
                f"cannot write '{path.name}' into '{path.parent}'", fix="check the folder's rights and the free space"
            ) from None

    def _check_texts(self, frame: Frame) -> None:
        """Refuse texts that no file of text can hold; one that was read from such a file has none."""
        names = [name for name in frame.names if frame.typed and frame.type_of(name) == "VARCHAR"]
        asked = [frame.rows_where(f"contains({frame.at(name)}, chr(0))") for name in names]
        found = zip(names, self._db.answers(asked, frame.table), strict=True)
        fix = 'take it out of the values, or write Parquet: output.format = "parquet" (--format parquet)'
        problems = [
            Problem(f"column '{n}': {plural(rows, 'value')} with a NUL character", fix) for n, rows in found if rows
        ]
        if problems:
            raise DataError(problems)

    def separator(self, frame: Frame) -> str:
        """Return what stands between two fields of a CSV file: a comma where there is one field only."""
        return frame.form.between_fields if len(frame.names) > 1 else ","

    @property
    def database(self) -> Database:
        """The database, for an engine that holds rows elsewhere and counts them here."""
        return self._db

    # SQL

    def _value(self, frame: Frame, name: str, how: Column | Reading | Exactly | None) -> str:
        if how is None:
            return expressions.text(frame, name)
        if isinstance(how, Exactly):
            return expressions.exact(frame, how.column)
        if isinstance(how, Column):
            return expressions.number(frame, how)
        if how == AS_TEXT:
            return self._exact(frame, name, how)
        value = self._exact(frame, name, how)
        return f"CASE WHEN {frame.at(name)} IS NOT NULL THEN dense_rank() OVER (ORDER BY {value} NULLS FIRST) END"

    def _exact(self, frame: Frame, name: str, reading: Reading) -> str:
        """SQL for a column in its exact order; values that cannot be read so are an error, with their number."""
        c = frame.at(name)
        if reading == AS_TEXT and frame.type_of(name) == "VARCHAR":
            return self._category(frame.table, c)
        found = ordering.ordered(c, frame.type_of(name), reading)
        if found is not None and found.fits == ordering.EVERY:
            return found.value
        if found is not None:
            asked = (frame.rows_where(f"{c} IS NOT NULL"), frame.rows_where(f"{c} IS NOT NULL AND {found.fits}"))
            answers = self._db.row(f"SELECT {', '.join(asked)} FROM {frame.table}")
            ordering.check_fit(name, reading, *(int(answer or 0) for answer in answers))
            return found.value
        filled, fitting, exponents, before, after = self._db.row(f"SELECT {ordering.digits(c)} FROM {frame.table}")
        ordering.check_fit(name, reading, filled, fitting)
        return ordering.decimals(c, exponents, before, after) or self._placed(frame.table, c)

    def _category(self, table: str, c: str) -> str:
        """SQL for a column of text in which equal numbers have one text."""
        if (table, c) not in self._categories:
            texts = self._db.arrow(ordering.other_spellings(c, table)).column(0).to_pylist()
            spelled = pa.table({"text": texts, "category": list(map(category, texts))}) if texts else None
            self._categories[table, c] = self._held(spelled)
        spellings = self._categories[table, c]
        return f"coalesce((SELECT category FROM {spellings} WHERE text = {c}), {c})" if spellings else c

    def _held(self, rows: pa.Table | None) -> str | None:
        """Put a small table into the database."""
        if rows is None:
            return None
        with self._db.registered(rows) as view:
            return self._db.table(f"SELECT * FROM {view}")

    def _placed(self, table: str, c: str) -> str:
        """SQL for numbers that the database cannot hold, by their place among the distinct ones."""
        texts = self._db.arrow(f"SELECT DISTINCT trim({c}) AS text FROM {table} WHERE {c} IS NOT NULL").column(0)
        places = self._held(pa.table({"text": texts, "place": ordering.places(texts.to_pylist())}))
        return f"(SELECT place FROM {places} WHERE text = trim({c}))"

    def _typed(self, frame: Frame, name: str, schema: Schema) -> str:
        """SQL for a column in the type that its values have, for formats that know types."""
        c, kind, column = frame.at(name), frame.type_of(name), schema.get(name)
        if frame.knows_type(name) or kind != "VARCHAR" or column is None or name in frame.labelled:
            return c
        typed = self._by_storage(frame, column)
        changed = f"SELECT count(*) FILTER (WHERE CAST({typed} AS VARCHAR) IS DISTINCT FROM {c}) FROM {frame.table}"
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


def _cells(counted: Any) -> int:
    return len(counted.code) if isinstance(counted, Spread) else len(counted[1])
