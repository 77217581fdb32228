"""A table in Spark: its rows, the layout of its columns, and the types that carry its values.

Columns are named c0, c1, ...; `place` is the row's position in the source and keeps the order of the rows. Values of
types that Spark does not have (wide integers, nanoseconds, times of day) travel as text: two values are equal if and
only if their texts are equal. Floating-point numbers are grouped and joined by their text too, because Spark treats
0.0 and -0.0 as equal.

Executors evaluate SQL with the embedded engine, batch by batch, so an expression has the same value wherever its rows
are. A recoding is two joins with maps that every executor gets: from distinct tuples, or from places, to classes, and
from classes to their values. Spark may hold the classes of places itself.

Columns and rows that the driver needs are collected in the order of the rows, one part at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import attrgetter
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinfold.errors import DataError
from kinfold.tables.duckdb import recoding as recoding_sql
from kinfold.tables.duckdb.connection import Database
from kinfold.tables.duckdb.expressions import FLOAT_TYPES, Frame, quote_formula_sql
from kinfold.tables.recoding import NO_CLASS, Keep, Recoding, Replace
from kinfold.tables.schema import Schema
from kinfold.tables.spark.driver import Driver
from kinfold.tables.spark.session import MISFIT_MARKER, JobSession, MisfitError, silence_pyspark

PLACE = "place"

SPARK_TYPES = {  # of DuckDB's types
    "TINYINT": "tinyint", "SMALLINT": "smallint", "INTEGER": "int", "BIGINT": "bigint", "FLOAT": "float",
    "DOUBLE": "double", "BOOLEAN": "boolean", "DATE": "date", "TIMESTAMP": "timestamp_ntz",
    "TIMESTAMP WITH TIME ZONE": "timestamp", "VARCHAR": "string",
}  # fmt: skip
WIDER_TYPES = {  # of types that Spark does not have; any other becomes text
    "UTINYINT": "SMALLINT", "USMALLINT": "INTEGER", "UINTEGER": "BIGINT", "UBIGINT": "DECIMAL(20,0)",
    "TIMESTAMP_S": "TIMESTAMP", "TIMESTAMP_MS": "TIMESTAMP",
}  # fmt: skip
DUCKDB_TYPES = {spark: kind for kind, spark in SPARK_TYPES.items()} | {"void": "VARCHAR"}


def get_carrier(kind: str) -> tuple[str, str]:
    """Return the Spark type that carries a DuckDB type, and the DuckDB type that Arrow converts to it."""
    wider = WIDER_TYPES.get(kind, kind)
    if wider.startswith("DECIMAL"):
        return wider.lower(), wider
    wider = wider if wider in SPARK_TYPES else "VARCHAR"
    return SPARK_TYPES[wider], wider


def cast_for_spark(value: str, kind: str) -> str:
    """Return DuckDB's SQL for a value that is sent to Spark."""
    return f"CAST({value} AS {get_carrier(kind)[1]})"


def cast_from_spark(value: str, kind: str) -> str:
    """Return DuckDB's SQL for a value that comes from Spark."""
    return f"CAST({value} AS {kind})"


def make_key(column: str, kind: str) -> str:
    """Return Spark's SQL for a key of groups and joins: equal if and only if the texts of the values are."""
    return f"CAST({column} AS STRING)" if kind in FLOAT_TYPES else column


def get_duckdb_type(spark_type: str, name: str) -> str:
    """Return the DuckDB type of a Spark column; refuse arrays, maps and structs."""
    simple = re.sub(r"\s+", "", spark_type)
    if simple.startswith("decimal"):
        return simple.upper()
    if simple.startswith(("varchar", "char")):
        return "VARCHAR"
    if simple not in DUCKDB_TYPES:
        what = f"column '{name}' of the frame has values of type {spark_type.partition('<')[0]}, not single values"
        raise DataError(what, fix="unpack the column, or leave it out")
    return DUCKDB_TYPES[simple]


def describe_schema(kinds: dict[str, str], **spark_types: str) -> str:
    """Return the Spark schema of columns, given by their DuckDB types, and of further ones by their Spark types."""
    types = {name: get_carrier(kind)[0] for name, kind in kinds.items()} | spark_types
    return ", ".join(f"{name} {kind}" for name, kind in types.items())


@dataclass(frozen=True, eq=False)
class SparkFrame:
    """Rows in Spark. `layout` has their names and types; its table does not exist, but its name is unique."""

    rows: Any  # a DataFrame
    layout: Frame
    end: int  # every place is below it
    dense: bool = True  # whether the places are 0, 1, 2, ..., so that there are `end` rows

    names = property(attrgetter("layout.names"))
    form = property(attrgetter("layout.form"))
    checksum = property(attrgetter("layout.checksum"))
    blanked = property(attrgetter("layout.blanked"))
    separator = property(attrgetter("layout.separator"))
    formulas = property(attrgetter("layout.formulas"))
    files = property(attrgetter("layout.files"))
    parts = property(attrgetter("layout.parts"))

    def to_spark(self, *, quoted: bool = False) -> Any:
        """Return the rows as a Spark frame, in their order, with their names; formulas may be quoted."""
        layout, rows = self.layout, self.rows
        if quoted:
            texts = {
                c: quote_formula_sql(c)
                for c, kind in zip(layout.columns, layout.types, strict=True)
                if kind == "VARCHAR"
            }
            rows = self.rewrite(texts, layout.types, layout.table, layout).rows
        return rows.orderBy("place").drop("place").toDF(*self.names)

    def keys(self, names: tuple[str, ...]) -> list[Any]:
        """Return the keys of some columns, as k0, k1, ..."""
        from pyspark.sql.functions import expr

        keys = [make_key(self.layout.at(name), self.layout.sql_type(name)) for name in names]
        return [expr(key).alias(f"k{i}") for i, key in enumerate(keys)]

    def compute(self, values: dict[str, str], kinds: dict[str, str]) -> Any:
        """Return a DataFrame of values by name, computed by DuckDB's SQL, with the places."""
        select = [f"{cast_for_spark(value, kinds[name])} AS {name}" for name, value in values.items()]
        query = f"SELECT {', '.join([*select, PLACE])} FROM ({self._batch_query()}) s"
        with silence_pyspark():
            return self.rows.mapInArrow(partial(_query_batches, query), describe_schema(kinds, place="bigint"))

    def count_by_sql(self, counts: Sequence[str]) -> Any:
        """Return a DataFrame of one row: counts over all rows, each given as DuckDB's SQL over a batch."""
        names = [f"a{i}" for i in range(len(counts))]
        select = ", ".join(f"CAST({count} AS BIGINT) AS {name}" for name, count in zip(names, counts, strict=True))
        query, schema = f"SELECT {select} FROM ({self._batch_query()}) s", ", ".join(f"{name} bigint" for name in names)
        with silence_pyspark():
            rows = self.rows.mapInArrow(partial(_query_batches, query), schema)
        return rows.selectExpr(*(f"sum({name}) AS {name}" for name in names))

    def _batch_query(self) -> str:
        columns = zip(self.layout.columns, self.layout.types, strict=True)
        return f"SELECT {', '.join([*(f'{cast_from_spark(c, kind)} AS {c}' for c, kind in columns), PLACE])} FROM batch"

    def rewrite(self, values: dict[str, str], types: tuple[str, ...], table: str, layout: Frame) -> SparkFrame:
        """Return the table with some columns computed by SQL."""
        every = {c: values.get(c, c) for c in layout.columns}
        rows = self.compute(every, dict(zip(layout.columns, types, strict=True)))
        return replace(self, rows=rows, layout=replace(layout, table=table, types=types))


def _query_batches(query: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the result of a query over each batch, whose rows are called `batch`, in the Python of an executor."""
    from kinfold.tables.duckdb.connection import start_instance

    with start_instance(":memory:", {"threads": "1"})[0] as db:
        for batch in batches:
            db.register("batch", pa.Table.from_batches([batch]))
            try:
                yield from db.sql(query).to_arrow_table().combine_chunks().to_batches()
            except duckdb.ConversionException:  # its message quotes the value
                raise MisfitError(MISFIT_MARKER) from None
            db.unregister("batch")


MAX_BROADCAST_ROWS = 500_000  # every executor gets a copy of a smaller map; Spark decides how to join a larger one
EVERY_CLASS = "the class of every record"


class ReleaseColumns(NamedTuple):
    """The columns of a release, the SQL of their values, and the types of the new ones."""

    columns: Mapping[str, Keep | Replace]
    values: Mapping[str, str]  # over rows `s` and class values `n`
    new_types: Mapping[str, str]

    @property
    def new_values(self) -> list[str]:
        """The SQL of the new columns, as f0, f1, ..."""
        return [f"{cast_for_spark(self.values[n], kind)} AS f{i}" for i, (n, kind) in enumerate(self.new_types.items())]

    @property
    def new_kinds(self) -> dict[str, str]:
        """The types of f0, f1, ..."""
        return {f"f{i}": kind for i, kind in enumerate(self.new_types.values())}


def plan_columns(db: Database, frame: SparkFrame, recoding: Recoding, schema: Schema) -> ReleaseColumns:
    """Return the columns that a recoding releases."""
    columns = {name: t for name, t in recoding.columns.items() if isinstance(t, Keep | Replace)}
    values = recoding_sql.make_treatment_sql(frame.layout, columns, schema)
    new = [name for name, t in columns.items() if isinstance(t, Replace)]
    select = ", ".join(f"{values[name]} AS f{i}" for i, name in enumerate(new)) or "1"
    with db.registered(recoding_sql.make_class_values(recoding)) as view:
        types = dict(zip(new, db.types(f"SELECT {select} FROM {view} n"), strict=False))
    return ReleaseColumns(columns, values, types)


def _number_columns(frame: Frame) -> list[tuple[int, str, str]]:
    return [(i, c, kind) for i, (c, kind) in enumerate(zip(frame.columns, frame.types, strict=True))]


def select_release_columns(frame: SparkFrame, rows: Any, release: ReleaseColumns, table: str) -> SparkFrame:
    """Return the release: the columns of joined rows, in their order."""
    names, new = tuple(release.columns), [*release.new_types]
    columns = [f"f{new.index(n)} AS c{i}" if n in new else f"{frame.layout.at(n)} AS c{i}" for i, n in enumerate(names)]
    types = tuple(release.new_types.get(name) or frame.layout.sql_type(name) for name in names)
    layout = recoding_sql.release_frame(frame.layout, table, types, release.columns, PLACE)
    return SparkFrame(rows.selectExpr(*columns, PLACE).persist(), layout, frame.end, dense=False)


def send_map(session: JobSession, arrow: pa.Table, kinds: Mapping[str, str]) -> Any:
    """Send a map to Spark; every executor gets a copy unless it is large."""
    from pyspark.sql.functions import broadcast

    with session.job():
        rows = session.spark.createDataFrame(arrow, describe_schema(dict(kinds)))
    return broadcast(rows) if arrow.num_rows <= MAX_BROADCAST_ROWS else rows


def _match_tuples(layout: Frame, tuples: Frame) -> Any:
    """Return the condition that a row has the values of a tuple; null equals null."""
    rows = [make_key(layout.at(name), layout.sql_type(name)) for name in tuples.names]
    keys = [make_key(f"m{i}", kind) for i, kind in enumerate(tuples.types)]
    tests: Sequence[Any] = [_expr(row).eqNullSafe(_expr(key)) for row, key in zip(rows, keys, strict=True)]
    return reduce(lambda one, other: one & other, tests, _expr("true"))


def _expr(sql: str) -> Any:
    from pyspark.sql.functions import expr

    return expr(sql)


class SparkJoins:
    """Joins of rows with maps, and rows that the driver collects as DuckDB tables."""

    def __init__(self, driver: Driver, db: Database) -> None:
        self._driver, self._session, self._db = driver, driver.session, db

    def join_classes(self, frame: SparkFrame, recoding: Recoding, release: ReleaseColumns) -> Any:
        """Join the rows with their classes and the values of these; if no row is dropped or changed, join nothing."""
        if recoding.tuples is not None:
            labelled = self._join_labels(frame, recoding).where(f"label <> {NO_CLASS}")
        elif recoding.engine_labels is None and recoding.kept.all() and not release.new_types:
            return frame.rows
        else:
            labelled = frame.rows.join(self._send_labels(frame, recoding), _expr(f"{PLACE} = at"), "inner")
        if not release.new_types:
            return labelled
        with recoding_sql.report_misfits(), self._db.registered(recoding_sql.make_class_values(recoding)) as view:
            values = self._db.arrow(f"SELECT {', '.join(['id', *release.new_values])} FROM {view} n")
        return labelled.join(
            send_map(self._session, values, {"id": "INTEGER"} | release.new_kinds), _expr("label = id"), "inner"
        )

    def _send_labels(self, frame: SparkFrame, recoding: Recoding) -> Any:
        if recoding.engine_labels is not None:
            return recoding.engine_labels
        places, kept = np.arange(len(recoding.labels), dtype=np.int64), recoding.kept
        if not frame.dense:
            rows = self._driver.collect(frame.rows.select(PLACE), "the place of every record", at_most=len(places))
            places = np.sort(rows.column(0).to_numpy())
        arrow = pa.table({"at": places[kept], "label": recoding.labels[kept].astype(np.int32)})
        return send_map(self._session, arrow, {"at": "BIGINT", "label": "INTEGER"})

    def collect_labels(self, recoding: Recoding, rows: int) -> NDArray[np.int32]:
        """Return the label of each row from labels in Spark."""
        arrow = self._driver.collect(recoding.engine_labels, EVERY_CLASS, at_most=rows)
        labels = np.full(rows, NO_CLASS, np.int32)
        labels[arrow.column("at").to_numpy()] = arrow.column("label").to_numpy()
        return labels

    def label_rows(self, frame: SparkFrame, recoding: Recoding, rows: int) -> NDArray[np.int32]:
        """Return the label of each row, in the order of the rows, from the labels of tuples."""
        labelled = self._join_labels(frame, recoding).select(PLACE, "label")
        arrow = self._driver.collect(labelled, EVERY_CLASS, at_most=rows)
        order = np.argsort(arrow.column(PLACE).to_numpy(), kind="stable")
        return np.asarray(arrow.column("label").to_numpy()[order], np.int32)

    def count_tuples(self, frame: SparkFrame, tuples: Frame) -> NDArray[np.int32]:
        """Return how many rows have each of some tuples."""
        numbers = Recoding(np.arange(self._db.count(tuples.table), dtype=np.int32), {}, tuples)
        counted = self._join_labels(frame, numbers).groupBy("label").count()
        arrow = self._driver.collect(counted, "the rows of each tuple", at_most=len(numbers.labels))
        counts = np.zeros(len(numbers.labels), np.int32)
        counts[arrow.column("label").to_numpy()] = arrow.column("count").to_numpy()
        return counts

    def _join_labels(self, frame: SparkFrame, recoding: Recoding) -> Any:
        """Return the rows that have one of the tuples of a recoding, each with its label."""
        tuples = recoding_sql.add_labels(self._db, recoding)
        keys = [f"{cast_for_spark(c, kind)} AS m{i}" for i, c, kind in _number_columns(tuples)]
        arrow = self._db.arrow(f"SELECT {', '.join(keys)}, label FROM {tuples.table}")
        self._db.drop(tuples.table)
        kinds = {f"m{i}": kind for i, kind in enumerate(tuples.types)} | {"label": "INTEGER"}
        return frame.rows.join(send_map(self._session, arrow, kinds), _match_tuples(frame.layout, tuples), "inner")

    def collect_rows_at(self, frame: SparkFrame, places: NDArray[np.int64]) -> tuple[Frame, NDArray[np.int64]]:
        """Return the rows at some places as a DuckDB table, and the indexes of the places that have a row."""
        layout, wanted = frame.layout, send_map(self._session, pa.table({"at": places}), {"at": "BIGINT"})
        sampled = frame.rows.join(wanted, frame.rows[PLACE] == wanted["at"], "inner").drop("at")
        arrow = self._driver.collect(sampled, "a sample of the records", at_most=len(places))
        typed = [f"{cast_from_spark(c, kind)} AS {c}" for _, c, kind in _number_columns(layout)]
        table = self._db.load(arrow, ", ".join([*typed, PLACE]), f"ORDER BY {PLACE}")
        present = np.sort(arrow.column(PLACE).to_numpy())
        return replace(layout, table=table, order=PLACE, checksum=None), np.searchsorted(places, present)

    def collect_columns(self, frame: SparkFrame, names: Sequence[str]) -> Frame:
        """Return some columns as a DuckDB table."""
        columns = [frame.layout.at(name) for name in names]
        types = [frame.layout.sql_type(name) for name in names]
        typed = [f"{cast_from_spark(c, kind)} AS c{i}" for i, (c, kind) in enumerate(zip(columns, types, strict=True))]
        parts, size = [], self._driver.limit
        for start in range(0, frame.end, size):
            rows = frame.rows.where(f"{PLACE} >= {start} AND {PLACE} < {start + size}").select(*columns, PLACE)
            arrow = self._driver.collect(rows, "records, for the disk of the driver", at_most=min(size, frame.end))
            parts.append(self._db.load(arrow, ", ".join([*typed, PLACE]), f"ORDER BY {PLACE}"))
        for part in parts[1:]:
            self._db.append(parts[0], part)
            self._db.drop(part)
        return replace(frame.layout.select(names, parts[0]), order=PLACE)
