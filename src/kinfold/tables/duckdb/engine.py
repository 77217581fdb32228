"""The embedded engine: the verbs of the seam on tables in DuckDB, one database per run.

Inside the database columns are named c0, c1, ...: a name in the data never becomes part of a query. Rows keep the order
of their source.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeAlias

import duckdb
import numpy as np
import pyarrow as pa

from kinfold.errors import DataError
from kinfold.tables.databases.address import DatabaseAddress
from kinfold.tables.databases.transfer import DatabaseRows, TargetTable, read_database
from kinfold.tables.duckdb import expressions, tallies
from kinfold.tables.duckdb import recoding as recoding_sql
from kinfold.tables.duckdb.columns import Strips, describe_table
from kinfold.tables.duckdb.connection import QUESTIONS_PER_QUERY, Database
from kinfold.tables.duckdb.expressions import Frame
from kinfold.tables.duckdb.writing import MIN_ROWS_TO_COUNT, export_rows, typed_sql, write_file, write_parts
from kinfold.tables.engine import ClassLabels, ColumnRequest, PartFolder, ReleasedColumns, StoredValues
from kinfold.tables.readers.files import Format, detect_format, hash_file
from kinfold.tables.readers.linked_tables import LinkedFiles, read_linked_files
from kinfold.tables.readers.normalization import normalize
from kinfold.tables.readers.reading import is_many_files, read_arrow, read_part, read_parts, refuse_empty
from kinfold.tables.recoding import NO_CLASS, Drop, RecodedValues, Recoding, Replace, ValueRecoding
from kinfold.tables.regions import LocalRegions, RequestedColumns, Route, ValueCodes
from kinfold.tables.resources import DEFAULT_RESOURCES, Resources
from kinfold.tables.schema import (
    AS_TEXT,
    Column,
    ExactColumn,
    OrderedReading,
    Schema,
    Storage,
    ValueStats,
    normalize_category,
)
from kinfold.tables.source_form import DEFAULT_FORM, SourceForm, refuse_totals
from kinfold.tables.tally import Spread, Tally

TableSource: TypeAlias = Path | LinkedFiles | pa.Table | DatabaseAddress | DatabaseRows

BYTES_PER_CELL = 24  # of a count: the class, the value, the number of rows
VALUES_PER_CLASS = 4  # expected, to free memory before a count
MAX_SMALL_COUNT = 100_000  # cells: smaller counts are always kept


class DuckDB:
    """The database of one run. Close it, or use it in a `with` block: that removes its temporary files."""

    max_collected_rows: int | None = None

    def __init__(self, resources: Resources = DEFAULT_RESOURCES) -> None:
        self._db = Database(resources)
        self._strips = Strips(self._db)
        self._schemas: dict[str, Schema] = {}
        self._stats: dict[str, dict[tuple[str, Storage], ValueStats]] = {}  # by table
        self._loaded: tuple[Path, SourceForm, Frame] | None = None  # the latest file, its layout and its table
        self._recoded: dict[str, recoding_sql.RecodedTable] = {}
        self._tuples: dict[tuple[str, tuple[str, ...]], Frame] = {}
        self._counts: dict[Any, Any] = {}  # the latest counts: measures, pages and checks need them again
        self._large_counts: dict[Any, int] = {}  # the bytes of each large one
        self._max_count_bytes = resources.counts_bytes
        self._categories: dict[tuple[str, str], str | None] = {}  # tables of numbers with several spellings
        self._finalize = weakref.finalize(self, self._db.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self, *, only_counts: bool = False) -> None:
        """Drop every row and remove every temporary file, as the garbage collector does; or only cached counts."""
        self._counts.clear()
        self._large_counts.clear()
        pa.default_memory_pool().release_unused()
        if not only_counts:
            self._finalize()

    @property
    def database(self) -> Database:
        """The database, for an engine that stores rows elsewhere and counts them here."""
        return self._db

    # Reading

    def read(self, source: TableSource, missing: Sequence[str] = (), form: SourceForm = DEFAULT_FORM) -> Frame:
        """Read a file, an Arrow table or rows of a database; the texts in `missing` become null."""
        if (loaded := self._find_loaded(source, form)) and (again := self._read_loaded(loaded, form, missing)):
            return again
        frame = self._read_source(source, form)
        frame = replace(frame, form=form.complete(frame.form))
        normalized = normalize(self._db, frame, missing if frame.typed else ())
        if isinstance(source, Path) and not form.parts and normalized.table == frame.table:
            self._loaded = (source, form.layout, frame)
        return normalized

    def _find_loaded(self, source: TableSource, form: SourceForm) -> Frame | None:
        """Return the table of the file that was read last, if the form differs only in keys of single columns."""
        path, layout, frame = self._loaded or (None, None, None)
        if path is None or frame is None or (path, layout) != (source, form.layout) or not form.columns:
            return None
        same = form.notation == frame.form.notation and detect_format(path)[0] is not Format.WORKBOOK
        return frame if same and frame.checksum == hash_file(path) else None

    def _read_loaded(self, loaded: Frame, form: SourceForm, missing: Sequence[str]) -> Frame | None:
        """Normalize a copy of a table in another form, and keep what is known about its other columns.

        Return None if the table was not described, or if no column differs.
        """
        if (before := self._schemas.get(loaded.table)) is None:
            return None
        words = missing if loaded.typed else ()
        frame = normalize(self._db, replace(loaded, form=form.complete(loaded.form)), words, keep=True)
        if frame.table == loaded.table:
            return None
        column_forms = form.get_columns(loaded.names)
        described = self.schema(recoding_sql.select_columns(self._db, frame, [*column_forms]))
        columns = tuple(described[c.name] if c.name in column_forms else c for c in before)
        self._schemas[frame.table] = replace(before, columns=columns, notes=frame.notes)
        stats = self._stats.get(loaded.table, {})
        self._stats[frame.table] = {key: each for key, each in stats.items() if key[0] not in column_forms}
        return frame

    def _read_source(self, source: TableSource, form: SourceForm) -> Frame:
        if isinstance(source, LinkedFiles):
            return read_linked_files(self._db, source, lambda path: self._read_source(path, form))
        if form.skip_totals and not isinstance(source, Path):
            refuse_totals()
        if isinstance(source, pa.Table):
            return read_arrow(self._db, source)
        if isinstance(source, DatabaseAddress | DatabaseRows):
            return read_database(self._db, source if isinstance(source, DatabaseRows) else DatabaseRows(source))
        if form.parts and is_many_files(source):
            return read_parts(self._db, source, lambda part: read_part(self._db, part.file, form, part.name))
        frame = read_part(self._db, source, form)
        refuse_empty(self._db, frame.table, f"'{source.name}'")
        return frame

    # Columns

    def schema(self, frame: Frame) -> Schema:
        """Return what every column is; each table is queried once."""
        if frame.table not in self._schemas:
            describe, recoded = partial(describe_table, self._db, self._strips), self._recoded.get(frame.table)

            def describe_columns(names: Sequence[str]) -> Schema:
                return describe(recoding_sql.select_columns(self._db, frame, names))

            rows = self._db.count(frame.table)
            self._schemas[frame.table] = (
                recoded.schema(rows, describe, describe_columns) if recoded else describe(frame)
            )
        return self._schemas[frame.table]

    def remember_schema(self, frame: Frame, schema: Schema) -> Frame:
        """Give some rows of a table the schema of the whole table, with their own counts, and return them."""
        counts = ", ".join(f"count({name})" for name in frame.columns)
        rows, *filled = self._db.row(f"SELECT count(*), {counts} FROM {frame.table}")
        columns = []
        for c in (column for column in schema if column.name in frame.names):
            values = filled[frame.names.index(c.name)]
            numbers = values if c.numbers == c.rows - c.nulls else min(c.numbers, values)
            columns.append(replace(c, rows=rows, nulls=rows - values, numbers=numbers))
        self._schemas[frame.table] = Schema.from_columns(columns, rows)
        return frame

    def profile(self, frame: Frame, columns: Sequence[Column], *, ordered: bool = False) -> dict[str, ValueStats]:
        """Return statistics on the values of columns, by name; `ordered` adds how they follow from row to row."""
        known = self._stats.setdefault(frame.table, {})
        batch = QUESTIONS_PER_QUERY if self._db.is_short(frame.table) else 1
        new = [column for column in columns if (column.name, column.storage) not in known]
        for strip in self._strips.of(frame) if len(new) > 1 else [frame]:
            columns_of_strip = [column for column in new if column.name in set(strip.names)]
            for start in range(0, len(columns_of_strip), batch):
                some = columns_of_strip[start : start + batch]
                counted = tallies.profile_columns(self._db, strip, some)
                known |= {(column.name, column.storage): counted[column.name] for column in some}
        stats = {column.name: known[column.name, column.storage] for column in columns}
        if not ordered:
            return stats
        return {c.name: replace(stats[c.name], order=tallies.compute_order_stats(self._db, frame, c)) for c in columns}

    def count_classes(self, frame: Frame, by: Sequence[str], *, present: Sequence[str] = ()) -> list[tuple[int, int]]:
        """Return (rows, classes) ascending, of the rows that have a value in every column of `present`."""
        return tallies.count_class_sizes(self._db, self._strips.holding(frame, (*by, *present)), by, present)

    # Counting

    def tally(
        self, frame: Frame, by: Sequence[str], of: Mapping[str, OrderedReading | Column], *, among: Frame | None = None
    ) -> Tally:
        """Count classes, and values in them; `among`: only the classes of that frame. The latest counts are kept."""
        if among is not None:
            return self._tally_among(frame, self._make_tuples(among, by))
        strip = self._strips.holding(frame, (*by, *of))
        tuples = self._make_tuples(strip, by)
        key = (tuples.table, tuples.names)
        keys, sizes = self._count_once((*key, None), partial(tallies.fetch_classes, self._db, tuples))
        spreads = {}
        for name, reading in of.items():
            count = partial(self._count_spread, strip, tuples, name, reading)
            spreads[name] = self._count_once((*key, (name, reading)), count, len(sizes))
        return Tally(keys, sizes, spreads, tuples)

    def _tally_among(self, frame: Frame, tuples: Frame) -> Tally:
        """Count the rows of each of some tuples, without tallying the whole table."""
        keys, tuple_sizes = tallies.fetch_classes(self._db, tuples)
        numbers = Recoding(np.arange(len(tuple_sizes), dtype=np.int32), {}, tuples)
        labelled = recoding_sql.add_labels(self._db, numbers)
        joined = tallies.join_tuples_sql(frame, labelled, "1 AS one", "label")
        counted = self._db.arrow(f"SELECT u.label, count(*) AS n FROM {joined} GROUP BY u.label")
        self._db.drop(labelled.table)
        sizes = np.zeros(len(tuple_sizes), np.int64)
        sizes[counted.column("label").to_numpy()] = counted.column("n").to_numpy()
        return Tally(keys, sizes, {}, tuples)

    def _count_once(self, key: Any, count: Callable[[], Any], classes: int = 0) -> Any:
        if key in self._counts:
            return self._counts[key]
        self._drop_counts(self._max_count_bytes - BYTES_PER_CELL * VALUES_PER_CLASS * classes)
        counted = count()
        cells = _count_cells(counted)
        if key[1] or cells <= MAX_SMALL_COUNT:
            self._counts[key] = counted
            if cells > MAX_SMALL_COUNT:
                self._large_counts[key] = BYTES_PER_CELL * cells
            self._drop_counts(self._max_count_bytes)
        return counted

    def _drop_counts(self, max_bytes: float) -> None:
        """Drop large counts from the cache, the oldest first, until the rest fits."""
        while self._large_counts and sum(self._large_counts.values()) > max_bytes:
            oldest = next(iter(self._large_counts))
            del self._counts[oldest], self._large_counts[oldest]

    def _count_spread(self, frame: Frame, tuples: Frame, name: str, reading: OrderedReading | Column) -> Spread:
        if isinstance(reading, Column):
            value = expressions.number_sql(frame, reading)
        else:
            value = self._exact_sql(frame, name, reading)
        return tallies.count_spread(self._db, frame, tuples, value)

    def moments(
        self, frame: Frame, columns: Mapping[str, Column], *, released: ReleasedColumns | None = None
    ) -> tuple[int, Any, Any]:
        """Return how many records have a number in every column, and their means and covariances: see `Engine`."""
        if released is not None:
            return self._compute_error_moments(frame, released)
        values = [expressions.number_sql(frame, column) for column in columns.values()]
        return tallies.compute_table_moments(self._db, frame, values)

    def _compute_error_moments(self, original: Frame, released: ReleasedColumns) -> tuple[int, Any, Any]:
        kept, squares = released.recoding.kept, []
        for before, after, mean in released.columns:
            x, y = self._collect_numbers(original, before), np.full(len(kept), np.nan)
            y[kept] = self._collect_numbers(released.frame, after)
            errors = x - np.where(np.isnan(y), mean, y)
            squares.append(np.nansum(errors * errors) / len(kept))
        return len(kept), np.array([each.mean for each in released.columns]), np.diag(squares)

    def _make_tuples(self, frame: Frame, by: Sequence[str]) -> Frame:
        """Return one row for each class of a tally by these columns, in its order, with values as stored."""
        frame = self._strips.holding(frame, by)
        key = (frame.table, tuple(by))
        if key not in self._tuples:
            self._tuples[key] = tallies.make_tuples(self._db, frame, by)
        return self._tuples[key]

    # Rows

    def collect(
        self, frame: Frame, columns: Mapping[str, ColumnRequest], *, rows: tuple[int, int] | None = None
    ) -> pa.Table:
        """Return columns as Arrow, in the order of the rows; `rows` is a range (start, stop) of them."""
        labels = {name: how for name, how in columns.items() if isinstance(how, ClassLabels)}
        arrays = {name: self._collect_labels(frame, how.recoding) for name, how in labels.items()}
        values = {name: self._value_sql(frame, name, how) for name, how in columns.items() if name not in labels}
        if values:
            select = ", ".join(f"{value} AS v{i}" for i, value in enumerate(values.values()))
            ordered = f"SELECT {select} FROM {frame.table} ORDER BY {frame.order}"
            if rows is not None:
                ordered += f" LIMIT {rows[1] - rows[0]} OFFSET {rows[0]}"
            arrays |= dict(zip(values, self._db.arrow(ordered).columns, strict=True))
        return pa.table({name: arrays[name] for name in columns})

    def map_blocks(self, jobs: Any, pool: Any) -> Any:
        """Run jobs on blocks in threads of this process."""
        return pool.run(lambda i: jobs.run(i, partial(pool.part_progress, i)))

    def regions(self, frame: Frame, columns: RequestedColumns, route: Route) -> LocalRegions:
        """Route every row to its region."""
        arrays = [self._collect_numbers(frame, column) for column in columns]
        return LocalRegions(arrays, self._db.count(frame.table), route)

    def _collect_numbers(self, frame: Frame, column: Column | ValueCodes) -> Any:
        """Return a column as doubles: its numbers, or codes of its values."""
        if isinstance(column, Column):
            values = self.collect(frame, {column.name: column}).column(0).to_numpy(zero_copy_only=False)
        else:
            values = self._collect_labels(frame, Recoding(column.codes.astype(np.int32), {}, column.values))
        return values.astype(np.float64, copy=False)

    def take(self, frame: Frame, places: Any, recoding: Recoding | None = None) -> tuple[Frame, Any]:
        """Return the rows at some places, and the indexes of the places that have a row."""
        present, rows = np.arange(len(places)), places
        if recoding is not None:
            present = np.flatnonzero(recoding.kept[places])
            rows = (np.cumsum(recoding.kept) - 1)[places[present]]
        mask = np.zeros(self._db.count(frame.table), np.bool_)
        mask[rows] = True
        with self._db.registered(pa.table({"wanted": mask})) as view:
            table = self._db.table(f"SELECT s.* FROM {frame.table} s POSITIONAL JOIN {view} n WHERE n.wanted")
        return self.remember_schema(replace(frame, table=table, checksum=None), self.schema(frame)), present

    # Recoding

    def recode(self, frame: Frame, how: Mapping[str, ValueRecoding], schema: Schema) -> RecodedValues:
        """Recode single values of some columns: map, limit and round them."""
        try:
            return recoding_sql.recode_values(self._db, frame, how, schema)
        except duckdb.ConversionException:
            what = f"a recoded value of {', '.join(map(repr, how))} does not fit the type of its column"
            raise DataError(what, fix="give the column a wider type, or recode to values that fit") from None

    def apply(self, frame: Frame, recoding: Recoding, schema: Schema) -> Frame:
        """Carry out a recoding: a new table without the dropped columns and rows, in the same order."""
        treated = {name: t for name, t in recoding.columns.items() if not isinstance(t, Drop)}
        values = recoding_sql.make_treatment_sql(frame, treated, schema)
        replaced = {name: t for name, t in treated.items() if isinstance(t, Replace)}
        apply = self._apply_by_row if recoding.tuples is None else self._apply_by_tuple
        with recoding_sql.report_misfits():
            table = apply(frame, recoding, replaced, values)
        types, order = self._db.types(table)[: len(treated)], "rowid" if recoding.tuples is None else "place"
        released = recoding_sql.release_frame(frame, table, types, treated, order)
        new_values = {name: values[name] for name in replaced}
        classes = recoding_sql.make_released_classes(self._db, released, recoding, new_values)
        self._recoded[table] = recoding_sql.RecodedTable(released, schema, treated, classes)
        return released

    def _apply_by_row(
        self, frame: Frame, recoding: Recoding, replaced: Mapping[str, Replace], values: Mapping[str, str]
    ) -> str:
        """Join the values of its class to each row, by position."""
        select = ", ".join(f"{value} AS c{i}" for i, value in enumerate(values.values()))
        labels = pa.array(np.maximum(recoding.labels, 0))
        arrays = {f"v{i}": t.values.take(labels) for i, t in enumerate(replaced.values())}
        with self._db.registered(pa.table({"kept": recoding.kept} | arrays)) as view:
            return self._db.table(f"SELECT {select} FROM {frame.table} s POSITIONAL JOIN {view} n WHERE n.kept")

    def _apply_by_tuple(
        self, frame: Frame, recoding: Recoding, replaced: Mapping[str, Replace], values: Mapping[str, str]
    ) -> str:
        """Join each row to its tuple to find its class; keep its place, because a join loses the order.

        The values of the classes are a table of their own. Many rows are joined to it by a view, when they are read.
        """
        kept = "".join(f"{value} AS c{i}, " for i, (name, value) in enumerate(values.items()) if name not in replaced)
        labelled = recoding_sql.add_labels(self._db, recoding)
        joined = tallies.join_tuples_sql(frame, labelled, f"*, {frame.order} AS place", "label")
        rows = self._db.table(f"SELECT {kept}u.label, s.place FROM {joined} WHERE u.label <> {NO_CLASS}")
        self._db.drop(labelled.table)
        select = [f"{value} AS c{i}" for i, (name, value) in enumerate(values.items()) if name in replaced]
        classes = self._db.load(recoding_sql.make_class_values(recoding), ", ".join(["n.id", *select]))
        columns = [f"{'n' if name in replaced else 's'}.c{i}" for i, name in enumerate(values)]
        released = f"SELECT {', '.join([*columns, 's.place'])} FROM {rows} s JOIN {classes} n ON n.id = s.label"
        return self._db.view(released) if self._db.count(rows) > MIN_ROWS_TO_COUNT else self._db.table(released)

    def _collect_labels(self, frame: Frame, recoding: Recoding) -> Any:
        if recoding.tuples is None:
            return recoding.labels
        labelled = recoding_sql.add_labels(self._db, recoding)
        joined = tallies.join_tuples_sql(frame, labelled, f"{frame.order} AS place", "label")
        labels = self._db.arrow(f"SELECT u.label FROM {joined} ORDER BY s.place").column(0).to_numpy()
        self._db.drop(labelled.table)
        return labels.astype(np.int32)

    # Writing

    def write(
        self,
        frame: Frame,
        target: Path | PartFolder | TargetTable,
        schema: Schema,
        *,
        ordered: bool,
        quoted: bool = False,
    ) -> str | None:
        """Write CSV or Parquet, by the ending: a file or parts; or a new table, whose checksum is returned."""
        if isinstance(target, Path | PartFolder):
            write = write_file if isinstance(target, Path) else write_parts
            write(self._db, frame, target, schema, ordered=ordered, quoted=quoted)  # type: ignore[arg-type]
            return None
        exported = export_rows(self._db, frame, schema, target.fit_type, ordered=ordered)
        target.write(exported)
        return exported.checksum

    # SQL

    def _value_sql(self, frame: Frame, name: str, how: ColumnRequest) -> str:
        if how is None:
            return expressions.text_sql(frame, name)
        if isinstance(how, StoredValues):
            return frame.at(name) if how.column is None else typed_sql(self._db, frame, name, how.column)
        if isinstance(how, ExactColumn):
            return expressions.exact_sql(frame, how.column)
        if isinstance(how, Column):
            return expressions.number_sql(frame, how)
        assert isinstance(how, OrderedReading)  # noqa: S101  labels are collected apart
        value = self._exact_sql(frame, name, how)
        if how == AS_TEXT:
            return value
        return f"CASE WHEN {frame.at(name)} IS NOT NULL THEN dense_rank() OVER (ORDER BY {value} NULLS FIRST) END"

    def _exact_sql(self, frame: Frame, name: str, reading: OrderedReading) -> str:
        """Return SQL for a column in its exact order; refuse a column with unreadable values."""
        c = frame.at(name)
        if reading == AS_TEXT and frame.sql_type(name) == "VARCHAR":
            return self._category_sql(frame.table, c)
        order = tallies.find_exact_order(c, frame.sql_type(name), reading)
        if order is not None and order.fits == tallies.ALWAYS:
            return order.value
        if order is not None:
            conditions = (f"{c} IS NOT NULL", f"{c} IS NOT NULL AND {order.fits}")
            counts = self._db.row(f"SELECT {', '.join(map(frame.count_where_sql, conditions))} FROM {frame.table}")
            tallies.check_readable(name, reading, *(int(count or 0) for count in counts))
            return order.value
        filled, fitting, exponents, before, after = self._db.row(f"SELECT {tallies.digits_sql(c)} FROM {frame.table}")
        tallies.check_readable(name, reading, filled, fitting)
        return tallies.decimal_sql(c, exponents, before, after) or self._rank_sql(frame.table, c)

    def _category_sql(self, table: str, c: str) -> str:
        """Return SQL for a text column in which equal numbers have one text."""
        if (table, c) not in self._categories:
            texts = self._db.arrow(tallies.other_spellings_sql(c, table)).column(0).to_pylist()
            categories = pa.table({"text": texts, "category": list(map(normalize_category, texts))})
            self._categories[table, c] = self._db.load(categories) if texts else None
        spellings = self._categories[table, c]
        return f"coalesce((SELECT category FROM {spellings} WHERE text = {c}), {c})" if spellings else c

    def _rank_sql(self, table: str, c: str) -> str:
        """Return SQL for the ranks of numbers that DuckDB cannot hold exactly."""
        texts = self._db.arrow(f"SELECT DISTINCT trim({c}) AS text FROM {table} WHERE {c} IS NOT NULL").column(0)
        ranks = self._db.load(pa.table({"text": texts, "place": tallies.rank_numbers(texts.to_pylist())}))
        return f"(SELECT place FROM {ranks} WHERE text = trim({c}))"


def _count_cells(counted: Any) -> int:
    return len(counted.code) if isinstance(counted, Spread) else len(counted[1])
