"""The Spark engine: the verbs of the engine protocol on rows in Spark.

Questions about distinct values are answered from a tally, counted in Spark and stored in the embedded engine, by the
same code as there: so both engines give the same answers. A tally of some columns is derived from a wider one if there
is one; a short table is tallied once, by all columns. Tuples, and rows that were taken, are frames of the embedded
engine, which answers all questions about them.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial, wraps
from itertools import count
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinfold.tables.databases.address import DatabaseAddress, SparkPlace
from kinfold.tables.databases.transfer import DatabaseRows, TargetTable
from kinfold.tables.duckdb import recoding as recoding_sql
from kinfold.tables.duckdb.connection import Database
from kinfold.tables.duckdb.engine import DuckDB
from kinfold.tables.duckdb.expressions import Frame
from kinfold.tables.duckdb.tallies import group_keys
from kinfold.tables.engine import ClassLabels, ColumnRequest, PartFolder, ReleasedColumns, StoredValues
from kinfold.tables.readers.normalization import normalize, plan_normalization
from kinfold.tables.recoding import RecodedValues, Recoding, ValueRecoding
from kinfold.tables.regions import Regions, RequestedColumns, Route
from kinfold.tables.resources import Resources, refuse_to_collect
from kinfold.tables.schema import Column, OrderedReading, Schema, ValueStats
from kinfold.tables.source_form import DEFAULT_FORM, SourceForm, refuse_totals
from kinfold.tables.spark import places, reading
from kinfold.tables.spark.blocks import SparkRegions, route_rows, run_in_executors
from kinfold.tables.spark.driver import Driver
from kinfold.tables.spark.figures import compute_frame_moments, compute_squared_errors, count_order
from kinfold.tables.spark.frame import (
    SparkFrame,
    SparkJoins,
    cast_from_spark,
    plan_columns,
    select_release_columns,
)
from kinfold.tables.spark.session import JobSession
from kinfold.tables.spark.writing import write_parts
from kinfold.tables.tally import Tally


def answer_locally(verb: Callable[..., Any]) -> Any:
    """Let the embedded engine answer if the frame is one of its own."""

    @wraps(verb)
    def run(self: Spark, frame: SparkFrame | Frame, *args: Any, **keywords: Any) -> Any:
        if isinstance(frame, Frame):
            return getattr(self._duckdb, verb.__name__)(frame, *args, **keywords)
        return verb(self, frame, *args, **keywords)

    return run


class Spark:
    """One run in a session of Spark. Close it, or use it in a `with` block, to free what it caches in memory."""

    def __init__(self, spark: Any, resources: Resources) -> None:
        self._session = JobSession(spark)
        self.driver = Driver(self._session, resources.driver_rows)
        self.max_collected_rows: int | None = resources.driver_rows
        self._gathering = resources.gathering
        self._duckdb = DuckDB(replace(resources, on_disk=True))
        self._db = self._duckdb.database
        self._tallies = SparkTallies(self.driver, self._db)
        self._joins = SparkJoins(self.driver, self._db)
        self._numbers = count()
        self._schemas: dict[str, Schema] = {}
        self._recoded: dict[str, recoding_sql.RecodedTable] = {}
        self._files: list[tuple[Path, SourceForm, str | None]] = []  # with the checksum of each
        self._cached: list[Any] = []
        self._discard = weakref.finalize(self, _unpersist, self._cached)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self, *, only_counts: bool = False) -> None:
        """Drop every row, as the garbage collector does, or only cached counts; the session stays."""
        self._duckdb.close(only_counts=only_counts)
        if not only_counts:
            self._discard()

    def _make_name(self) -> str:
        return f"s{next(self._numbers)}"

    # Reading

    def read(self, source: Any, missing: Sequence[str] = (), form: SourceForm = DEFAULT_FORM) -> SparkFrame | Frame:
        """Read files, an Arrow table or a Spark frame; the texts in `missing` become null.

        If the run needs every record in one place, the embedded engine gets the rows, and makes the release.
        """
        if isinstance(source, pa.Table):
            if self._gathering:
                refuse_to_collect(self.driver.limit, source.num_rows, self._gathering)
                return self._duckdb.read(source, missing, form)
            local = self._duckdb.read(source, missing, form)
            return reading.send_table(self._session, self._db, local, self._make_name())
        if isinstance(source, Path):
            frame = reading.read_files(self.driver, source, form, self._make_name())
            self._cached.append(frame.rows)
            self._files.append((source, form, frame.layout.checksum))
        else:
            frame = self._read_rows(source, form)
        layout = replace(frame.layout, form=form.complete(frame.layout.form))
        frame, words = replace(frame, layout=layout), missing if layout.typed else ()
        return self._gather(frame, words) if self._gathering else self._normalize(frame, words)

    def _gather(self, frame: SparkFrame, missing: Sequence[str]) -> Frame:
        """Return the rows as a table of the embedded engine; raise if they are more than the driver may collect."""
        refuse_to_collect(self.driver.limit, self._tallies.count_rows(frame), self._gathering)
        rows = self._joins.collect_columns(frame, frame.names)
        _unpersist(self._cached)  # Spark needs its rows no more
        self._session.free_memory()
        return normalize(self._db, replace(rows, order="rowid"), missing)

    def _read_rows(self, source: Any, form: SourceForm) -> SparkFrame:
        if isinstance(source, SparkPlace) and source.holds_files:
            frame = places.read_contents(self.driver, source, form, self._make_name())
            self._cached.append(frame.rows)
            return frame
        if form.skip_totals:
            refuse_totals()
        if isinstance(source, SparkPlace):
            return places.read_place(self.driver, source, self._make_name())
        if isinstance(source, DatabaseAddress):
            return reading.read_rows_of_database(self.driver, DatabaseRows(source), self._make_name())
        return reading.read_frame(self.driver, source, self._make_name())

    def _normalize(self, frame: SparkFrame, missing: Sequence[str]) -> SparkFrame:
        """Replace words for missing values by null, and write numbers plainly."""
        layout, values = plan_normalization(frame.layout, missing, partial(self._count_texts, frame))
        if not values:
            return replace(frame, layout=layout)
        normalized = frame.rewrite(values, layout.types, self._make_name(), layout)
        self._cached.append(normalized.rows.persist())
        return normalized

    def _count_texts(self, frame: SparkFrame, questions: Mapping[str, Sequence[str]]) -> Any:
        """Yield counts of columns of text, given as SQL, by their distinct values or, if they are many, by rows."""
        if self._tallies.count_rows(frame) > min(MAX_VALUES_DESCRIBED, self.driver.limit):
            yield from self._tallies.sum_counts(frame, [each for counts in questions.values() for each in counts])
            return
        for c, counts in questions.items():
            tally = self._tallies.get(frame, [frame.layout.names[int(c[1:])]])
            yield from self._db.row(f"SELECT {', '.join(counts)} FROM (SELECT c0 AS {c} FROM {tally.table})")

    # Columns

    @answer_locally
    def schema(self, frame: SparkFrame) -> Schema:
        """Return what every column is, by its distinct values; each table is queried once."""
        table = frame.layout.table
        if table not in self._schemas:
            recoded, rows = self._recoded.get(table), self._tallies.count_rows(frame)
            describe = partial(self._describe, frame)
            of_rows = recoded.schema(rows, self._duckdb.schema, describe) if recoded else describe(frame.layout.names)
            self._schemas[table] = of_rows
        return self._schemas[table]

    def _describe(self, frame: SparkFrame, names: Sequence[str]) -> Schema:
        columns = [self._describe_column(frame, name) for name in names]
        layout, rows = frame.layout, self._tallies.count_rows(frame)
        return Schema(tuple(columns), rows, layout.doubtful, layout.notes, layout.totals)

    def _describe_column(self, frame: SparkFrame, name: str) -> Column:
        column = self._duckdb.schema(self._tallies.sample(frame, name))[name]
        rows = self._tallies.count_rows(frame)
        if column.rows == rows:
            return column
        filled, distinct = self._tallies.count_values(frame, name)  # the column is described by a sample
        share = filled / max(column.rows - column.nulls, 1)
        scaled = {key: round(getattr(column, key) * share) for key in ("numbers", "not_finite", "formulas")}
        return replace(column, rows=rows, nulls=rows - filled, distinct=max(column.distinct, distinct), **scaled)

    @answer_locally
    def profile(self, frame: SparkFrame, columns: Sequence[Column], *, ordered: bool = False) -> dict[str, ValueStats]:
        """Return statistics on the values of columns, by name; `ordered` adds how they follow from row to row."""
        stats: dict[str, ValueStats] = {}
        for column in columns:
            stats |= self._duckdb.profile(self._tallies.get(frame, [column.name]), [column])
            if ordered:
                stats[column.name] = replace(stats[column.name], order=count_order(self.driver, frame, column))
        return stats

    # Counting

    @answer_locally
    def count_classes(
        self, frame: SparkFrame, by: Sequence[str], *, present: Sequence[str] = ()
    ) -> list[tuple[int, int]]:
        """Return (rows, classes) ascending, of the rows that have a value in every column of `present`."""
        if by and {*present} <= {*by} and not self._tallies.has_tally(frame, by):
            return self._tallies.sizes(frame, by, present)
        tally = self._tallies.get(frame, list(dict.fromkeys((*by, *present))))
        return self._duckdb.count_classes(tally, by, present=present)

    @answer_locally
    def tally(
        self, frame: SparkFrame, by: Sequence[str], of: Mapping[str, OrderedReading | Column], *, among: Any = None
    ) -> Tally:
        """Count classes, and the values of columns in them, one column at a time; `among`: only its classes."""
        if among is not None:
            own = self._duckdb.tally(among, by, {})
            counts = self._joins.count_tuples(frame, own.tuples)
            return replace(own, sizes=counts.astype(np.int64))
        spreads = {
            name: self._duckdb.tally(self._tallies.get(frame, [*by, name]), by, {name: reading}).spreads[name]
            for name, reading in of.items()
        }
        return replace(self._duckdb.tally(self._tallies.get(frame, by), by, {}), spreads=spreads)

    @answer_locally
    def moments(
        self, frame: SparkFrame, columns: Mapping[str, Column], *, released: ReleasedColumns | None = None
    ) -> tuple[int, Any, Any]:
        """Return how many records have a number in every column, and their means and covariances: see `Engine`."""
        if released is not None:
            sums = compute_squared_errors(self.driver, frame, released.frame, released.columns)
            records = self._tallies.count_rows(frame)
            return records, np.array([each.mean for each in released.columns]), np.diag(np.array(sums) / records)
        if self._tallies.count_rows(frame) <= MAX_ROWS_TALLIED_WHOLE:
            return self._duckdb.moments(self._joins.collect_columns(frame, [*columns]), columns)
        return compute_frame_moments(self.driver, frame, [*columns.values()])

    # Rows

    @answer_locally
    def collect(
        self, frame: SparkFrame, columns: Mapping[str, ColumnRequest], *, rows: tuple[int, int] | None = None
    ) -> pa.Table:
        """Return columns as Arrow, in the order of the rows; `rows` is a range (start, stop) of them."""
        labels = {name: how for name, how in columns.items() if isinstance(how, ClassLabels)}
        arrays = {name: self._collect_labels(frame, how.recoding) for name, how in labels.items()}
        others = {name: how for name, how in columns.items() if name not in labels}
        if others:
            held = self._tallies.count_rows(frame) if rows is None else rows[1] - rows[0]
            self.driver.require(held, f"{', '.join(others)} of every record")
            if any(isinstance(how, StoredValues) for how in others.values()):
                self._require_unchanged()
            if rows is not None:
                start, end = rows[0], min(frame.end, rows[1])
                frame = replace(frame, rows=frame.rows.where(f"place >= {start} AND place < {end}"), end=end)
            local = self._joins.collect_columns(frame, [*others])
            table = self._duckdb.collect(local, others)
            self._db.drop(local.table)
            arrays |= dict(zip(others, table.columns, strict=True))
        return pa.table({name: arrays[name] for name in columns})

    def _collect_labels(self, frame: SparkFrame, recoding: Recoding) -> Any:
        if recoding.engine_labels is not None:
            return self._joins.collect_labels(recoding, self._tallies.count_rows(frame))
        if recoding.tuples is None:
            return recoding.labels
        return self._joins.label_rows(frame, recoding, self._tallies.count_rows(frame))

    def map_blocks(self, jobs: Any, pool: Any) -> Any:
        """Run jobs on blocks in the executors."""
        return run_in_executors(self.driver, jobs, pool)

    @answer_locally
    def regions(self, frame: SparkFrame, columns: RequestedColumns, route: Route) -> Regions:
        """Route every row to its region, in the executors."""
        rows = route_rows(self._session, self._db, frame, columns, route)
        return SparkRegions(self.driver, rows, self._cached)

    @answer_locally
    def take(self, frame: SparkFrame, places: Any, recoding: Recoding | None = None) -> tuple[Frame, Any]:  # noqa: ARG002  places are those of the source
        """Return the rows at some places as a DuckDB table, and the indexes of the places that have a row."""
        rows, present = self._joins.collect_rows_at(frame, places)
        return self._duckdb.remember_schema(rows, self.schema(frame)), present

    # Recoding

    @answer_locally
    def recode(self, frame: SparkFrame, how: Mapping[str, ValueRecoding], schema: Schema) -> RecodedValues:
        """Recode single values of some columns, and count what changed."""
        recoded = recoding_sql.make_value_sql(self._db, frame.layout, how, schema)
        changes: dict[str, list[int]] = {}
        kinds = dict(zip(frame.layout.names, frame.layout.types, strict=True))
        for name in recoded:
            tally = self._tallies.get(frame, [name])
            own = recoding_sql.make_value_sql(self._db, tally, {name: how[name]}, schema)
            changes |= recoding_sql.count_changes(self._db, tally, own)
            kinds[name] = self._db.types(f"SELECT {own[name].value} AS c0 FROM {tally.table}")[0]
        values = {frame.layout.at(name): each.value for name, each in recoded.items()}
        rewritten = frame.rewrite(values, tuple(kinds.values()), self._make_name(), frame.layout)
        self._cached.append(rewritten.rows.persist())
        return recoding_sql.make_recoded(rewritten, recoded, changes)

    @answer_locally
    def apply(self, frame: SparkFrame, recoding: Recoding, schema: Schema) -> SparkFrame:
        """Apply a recoding: a new table without the dropped columns and rows, in the same order."""
        release = plan_columns(self._db, frame, recoding, schema)
        with self._session.job():
            rows = self._joins.join_classes(frame, recoding, release)
            released = select_release_columns(frame, rows, release, self._make_name())
        self._cached.append(released.rows)
        layout, values = released.layout, {name: release.values[name] for name in release.new_types}
        classes = recoding_sql.make_released_classes(self._db, replace(layout, order="rowid"), recoding, values)
        self._recoded[layout.table] = recoding_sql.RecodedTable(layout, schema, release.columns, classes)
        return released

    # Writing

    def write(
        self,
        frame: SparkFrame | Frame,
        target: Path | PartFolder | TargetTable,
        schema: Schema,
        *,
        ordered: bool,
        quoted: bool = False,
    ) -> str | None:
        """Write one file or a new table: the rows are collected on disk, one part at a time. Executors write parts."""
        if isinstance(target, PartFolder) and isinstance(frame, SparkFrame) and self._tallies.count_rows(frame):
            self._require_unchanged()
            count, tally = partial(self._tallies.sum_counts, frame), lambda name: self._tallies.get(frame, [name])
            write_parts(self.driver, self._db, frame, target, schema, count, tally, ordered=ordered, quoted=quoted)
            return None
        local = frame if isinstance(frame, Frame) else self._joins.collect_columns(frame, frame.names)
        self._require_unchanged()
        checksum = self._duckdb.write(local, target, schema, ordered=ordered, quoted=quoted)
        if isinstance(frame, SparkFrame):
            self._db.drop(local.table)
        return checksum

    def to_spark(self, frame: SparkFrame | Frame, *, quoted: bool = False) -> Any:
        """Return the rows as a Spark frame, in their order, with their names; formulas may be quoted."""
        if isinstance(frame, Frame):
            copy = replace(frame, table=self._db.table(f"SELECT * FROM {frame.table} ORDER BY {frame.order}"))
            frame = reading.send_table(self._session, self._db, replace(copy, order="rowid"), self._make_name())
        return frame.to_spark(quoted=quoted)

    def _require_unchanged(self) -> None:
        for source in self._files:
            reading.require_unchanged(self.driver, *source)


def _unpersist(cached: list[Any]) -> None:
    """Free the memory of cached rows; a frame derived from them can still be computed."""
    for rows in cached:
        with suppress(Exception):  # the session may be gone
            rows.unpersist()
    cached.clear()


Floats = NDArray[np.float64]

MAX_ROWS_TALLIED_WHOLE = 20_000  # a shorter table is tallied once, by all its columns
MAX_VALUES_DESCRIBED = 1_000_000  # a column with more distinct values is described by a sample of them
COUNT_COLUMN = "n"


class SparkTallies:
    """The tallies of the tables of a run."""

    def __init__(self, driver: Driver, db: Database) -> None:
        self._driver, self._session, self._db = driver, driver.session, db
        self._tallies: dict[str, list[Frame]] = {}
        self._rows: dict[str, int] = {}

    def count_rows(self, frame: SparkFrame) -> int:
        """Return how many rows a table has."""
        if frame.dense:
            return frame.end
        if frame.layout.table not in self._rows:
            with self._session.job():
                self._rows[frame.layout.table] = frame.rows.count()
        return self._rows[frame.layout.table]

    def get(self, frame: SparkFrame, names: Sequence[str]) -> Frame:
        """Return the tally of some columns."""
        tallies = self._tallies.setdefault(frame.layout.table, [])
        wanted = tuple(name for name in frame.layout.names if name in {*names})
        if not tallies and self.count_rows(frame) <= MAX_ROWS_TALLIED_WHOLE:
            tallies.append(self._count_in_spark(frame, frame.layout.names))
        wider = [tally for tally in tallies if {*wanted} <= {*tally.names}]
        for tally in wider:
            if tally.names == wanted:
                return tally
        narrowest = min(wider, key=lambda tally: len(tally.names), default=None)
        tallies.append(self._narrow(narrowest, wanted) if narrowest else self._count_in_spark(frame, wanted))
        return tallies[-1]

    def _count_in_spark(self, frame: SparkFrame, names: tuple[str, ...]) -> Frame:
        if not names:
            table = self._db.table(f"SELECT CAST({self.count_rows(frame)} AS BIGINT) AS {COUNT_COLUMN}")
            return _describe_tally(frame.layout, table, names)
        what = f"the distinct combinations of {', '.join(names)}"
        return self._store(frame, names, self._driver.collect(_group(frame, names), what, at_most=self._bound(frame)))

    def _bound(self, frame: SparkFrame) -> int | None:
        """Return a number of rows that no tally exceeds, None if it is more than the driver may collect."""
        return rows if (rows := self.count_rows(frame)) <= self._driver.limit else None

    def _store(self, frame: SparkFrame, names: tuple[str, ...], arrow: Any) -> Frame:
        typed = [f"{cast_from_spark(f'k{i}', frame.layout.sql_type(name))} AS c{i}" for i, name in enumerate(names)]
        table = self._db.load(arrow, ", ".join([*typed, f"count AS {COUNT_COLUMN}"]))
        return _describe_tally(frame.layout, table, names)

    def _narrow(self, tally: Frame, names: tuple[str, ...]) -> Frame:
        columns = [f"{tally.at(name)} AS c{i}" for i, name in enumerate(names)]
        select = ", ".join([*columns, f"{tally.row_count_sql} AS {COUNT_COLUMN}"])
        groups = f" GROUP BY {', '.join(group_keys(tally, names))}" if names else ""
        return _describe_tally(tally, self._db.table(f"SELECT {select} FROM {tally.table}{groups}"), names)

    def has_tally(self, frame: SparkFrame, names: Sequence[str]) -> bool:
        """Return whether a tally of some columns exists, or comes with that of a short table."""
        tallies = self._tallies.get(frame.layout.table, [])
        return self.count_rows(frame) <= MAX_ROWS_TALLIED_WHOLE or any({*names} <= {*each.names} for each in tallies)

    def sample(self, frame: SparkFrame, name: str) -> Frame:
        """Return the tally of a column; if it has more than `MAX_VALUES_DESCRIBED` values, of a fixed sample."""
        from pyspark.sql.functions import xxhash64

        tallies, limit = self._tallies.get(frame.layout.table, []), min(MAX_VALUES_DESCRIBED, self._driver.limit)
        if any(name in tally.names for tally in tallies) or self.count_rows(frame) <= limit:
            return self.get(frame, [name])
        values = _group(frame, [name]).orderBy(xxhash64("k0"), "k0").limit(limit)
        arrow = self._driver.collect(values, f"a sample of the values of {name}", at_most=limit)
        return self._store(frame, (name,), arrow)

    def sizes(self, frame: SparkFrame, names: Sequence[str], present: Sequence[str] = ()) -> list[tuple[int, int]]:
        """Return (rows, classes) ascending: how many classes of some columns have so many rows; counted in Spark."""
        classes = _group(frame, names)
        if present:
            classes = classes.dropna(subset=[f"k{names.index(name)}" for name in present])
        counts = self._driver.collect(classes.groupBy("count").agg({"*": "count"}), "the sizes of classes")
        return sorted(zip(*(column.to_pylist() for column in counts.columns), strict=True))

    def sum_counts(self, frame: SparkFrame, counts: Sequence[str]) -> list[int]:
        """Return counts over all rows of a long table, given as DuckDB's SQL."""
        sums = self._driver.collect(frame.count_by_sql(counts), "counts", at_most=1)
        return [int(column[0].as_py() or 0) for column in sums.columns]

    def count_values(self, frame: SparkFrame, name: str) -> tuple[int, int]:
        """Return how many rows have a value in a column, and about how many distinct ones there are."""
        from pyspark.sql.functions import approx_count_distinct, col, count

        c = col(frame.layout.at(name))
        counts = frame.rows.select(count(c).alias("filled"), approx_count_distinct(c).alias("distinct"))
        filled, distinct = self._driver.collect(counts, "counts", at_most=1).to_pylist()[0].values()
        return int(filled), int(distinct)


def _group(frame: SparkFrame, names: Sequence[str]) -> Any:
    return frame.rows.select(*frame.keys(tuple(names))).groupBy(*(f"k{i}" for i in range(len(names)))).count()


def _describe_tally(layout: Frame, table: str, names: tuple[str, ...]) -> Frame:
    return replace(layout.select(names, table), order="rowid", weight=COUNT_COLUMN)
