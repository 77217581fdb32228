"""Join rows with maps that every executor gets: recodings, labels, and rows by place.

by tuple    a map from distinct tuples to their new values; tuples that are left out are not in it
by place    a map from places to classes, which Spark may hold itself, and one from classes to their values

Columns and rows that the driver needs are collected in the order of the rows, one part at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinfold.tables.duckdb import recoding as recoding_sql
from kinfold.tables.duckdb.connection import Database
from kinfold.tables.duckdb.expressions import Frame
from kinfold.tables.recoding import NO_CLASS, Keep, Recoding, Replace
from kinfold.tables.schema import Schema
from kinfold.tables.spark.frame import PLACE, SparkFrame, cast_for_spark, cast_from_spark, describe_schema, make_key
from kinfold.tables.spark.session import JobSession

MAX_BROADCAST_ROWS = 500_000  # every executor gets a copy of a smaller map; Spark decides how to join a larger one
ROWS_PER_TRANSFER = 2_000_000


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
    with db.registered(recoding_sql.make_class_values(recoding).slice(0, 0)) as view:
        table = db.table(f"SELECT {select} FROM {view} n")
    types = dict(zip(new, db.types(table), strict=False))
    db.drop(table)
    return ReleaseColumns(columns, values, types)


def join_by_tuple(
    session: JobSession, db: Database, frame: SparkFrame, recoding: Recoding, release: ReleaseColumns
) -> Any:
    """Join the rows with the new values of their tuples."""
    tuples = recoding_sql.add_labels(db, recoding)
    keys = [f"{cast_for_spark(f'u.{c}', kind)} AS m{i}" for i, c, kind in _number_columns(tuples)]
    with recoding_sql.report_misfits(), db.registered(recoding_sql.make_class_values(recoding)) as view:
        joined = f"FROM {tuples.table} u JOIN {view} n ON n.id = u.label"
        arrow = db.arrow(f"SELECT {', '.join([*keys, *release.new_values])} {joined}")
    db.drop(tuples.table)
    kinds = {f"m{i}": kind for i, kind in enumerate(tuples.types)} | release.new_kinds
    return frame.rows.join(send_map(session, arrow, kinds), _match_tuples(frame.layout, tuples), "inner")


def _number_columns(frame: Frame) -> list[tuple[int, str, str]]:
    return [(i, c, kind) for i, (c, kind) in enumerate(zip(frame.columns, frame.types, strict=True))]


def join_by_place(
    session: JobSession, db: Database, frame: SparkFrame, recoding: Recoding, release: ReleaseColumns
) -> Any:
    """Join the rows with their classes and the values of these; if no row is dropped or changed, join nothing."""
    if recoding.engine_labels is None and recoding.kept.all() and not release.new_types:
        return frame.rows
    labelled = frame.rows.join(_send_labels(session, frame, recoding), _expr(f"{PLACE} = at"), "inner")
    if not release.new_types:
        return labelled
    with recoding_sql.report_misfits(), db.registered(recoding_sql.make_class_values(recoding)) as view:
        values = db.arrow(f"SELECT {', '.join(['id', *release.new_values])} FROM {view} n")
    return labelled.join(send_map(session, values, {"id": "INTEGER"} | release.new_kinds), _expr("label = id"), "inner")


def _send_labels(session: JobSession, frame: SparkFrame, recoding: Recoding) -> Any:
    if recoding.engine_labels is not None:
        return recoding.engine_labels
    places, kept = np.arange(len(recoding.labels), dtype=np.int64), recoding.kept
    if not frame.dense:
        with session.job():
            places = np.sort(frame.rows.select(PLACE).toArrow().column(0).to_numpy())
    arrow = pa.table({"at": places[kept], "label": recoding.labels[kept].astype(np.int32)})
    return send_map(session, arrow, {"at": "BIGINT", "label": "INTEGER"})


def collect_labels(session: JobSession, recoding: Recoding, rows: int) -> NDArray[np.int32]:
    """Return the label of each row from labels in Spark."""
    with session.job():
        arrow = recoding.engine_labels.toArrow()
    labels = np.full(rows, NO_CLASS, np.int32)
    labels[arrow.column("at").to_numpy()] = arrow.column("label").to_numpy()
    return labels


def select_release_columns(frame: SparkFrame, rows: Any, release: ReleaseColumns, table: str) -> SparkFrame:
    """Return the release: the columns of joined rows, in their order."""
    names, new = tuple(release.columns), [*release.new_types]
    columns = [f"f{new.index(n)} AS c{i}" if n in new else f"{frame.layout.at(n)} AS c{i}" for i, n in enumerate(names)]
    types = tuple(release.new_types.get(name) or frame.layout.sql_type(name) for name in names)
    layout = recoding_sql.release_frame(frame.layout, table, types, release.columns, PLACE)
    return SparkFrame(rows.selectExpr(*columns, PLACE).persist(), layout, frame.end, dense=False)


def label_rows(session: JobSession, db: Database, frame: SparkFrame, recoding: Recoding) -> NDArray[np.int32]:
    """Return the label of each row, in the order of the rows, from the labels of tuples."""
    with session.job():
        arrow = _join_labels(session, db, frame, recoding).select(PLACE, "label").toArrow()
    order = np.argsort(arrow.column(PLACE).to_numpy(), kind="stable")
    return np.asarray(arrow.column("label").to_numpy()[order], np.int32)


def count_tuples(session: JobSession, db: Database, frame: SparkFrame, tuples: Frame) -> NDArray[np.int32]:
    """Return how many rows have each of some tuples."""
    numbers = Recoding(np.arange(db.count(tuples.table), dtype=np.int32), {}, tuples)
    with session.job():
        arrow = _join_labels(session, db, frame, numbers).groupBy("label").count().toArrow()
    counts = np.zeros(len(numbers.labels), np.int32)
    counts[arrow.column("label").to_numpy()] = arrow.column("count").to_numpy()
    return counts


def _join_labels(session: JobSession, db: Database, frame: SparkFrame, recoding: Recoding) -> Any:
    """Return the rows that have one of the tuples of a recoding, each with its label."""
    tuples = recoding_sql.add_labels(db, recoding)
    keys = [f"{cast_for_spark(c, kind)} AS m{i}" for i, c, kind in _number_columns(tuples)]
    arrow = db.arrow(f"SELECT {', '.join(keys)}, label FROM {tuples.table}")
    db.drop(tuples.table)
    kinds = {f"m{i}": kind for i, kind in enumerate(tuples.types)} | {"label": "INTEGER"}
    return frame.rows.join(send_map(session, arrow, kinds), _match_tuples(frame.layout, tuples), "inner")


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


def collect_rows_at(
    session: JobSession, db: Database, frame: SparkFrame, places: NDArray[np.int64]
) -> tuple[Frame, NDArray[np.int64]]:
    """Return the rows at some places as a DuckDB table, and the indexes of the places that have a row."""
    layout, wanted = frame.layout, send_map(session, pa.table({"at": places}), {"at": "BIGINT"})
    with session.job():
        arrow = frame.rows.join(wanted, frame.rows[PLACE] == wanted["at"], "inner").drop("at").toArrow()
    typed = [f"{cast_from_spark(c, kind)} AS {c}" for _, c, kind in _number_columns(layout)]
    with db.registered(arrow) as view:
        table = db.table(f"SELECT {', '.join([*typed, PLACE])} FROM {view} ORDER BY {PLACE}")
    present = np.sort(arrow.column(PLACE).to_numpy())
    return replace(layout, table=table, order=PLACE, checksum=None), np.searchsorted(places, present)


def collect_columns(session: JobSession, db: Database, frame: SparkFrame, names: Sequence[str]) -> Frame:
    """Return some columns as a DuckDB table."""
    layout = frame.layout
    columns, types = [layout.at(name) for name in names], [layout.sql_type(name) for name in names]
    typed = [f"{cast_from_spark(c, kind)} AS c{i}" for i, (c, kind) in enumerate(zip(columns, types, strict=True))]
    parts = []
    for start in range(0, frame.end, ROWS_PER_TRANSFER):
        rows = frame.rows.where(f"{PLACE} >= {start} AND {PLACE} < {start + ROWS_PER_TRANSFER}")
        with session.job():
            arrow = rows.select(*columns, PLACE).toArrow()
        with db.registered(arrow) as view:
            parts.append(db.table(f"SELECT {', '.join([*typed, PLACE])} FROM {view} ORDER BY {PLACE}"))
    for part in parts[1:]:
        db.connection.execute(f"INSERT INTO {parts[0]} SELECT * FROM {part}")
        db.drop(part)
    orders = tuple(layout.category_order(layout.names.index(name)) for name in names) if layout.orders else ()
    return replace(layout, table=parts[0], names=tuple(names), types=tuple(types), orders=orders, order=PLACE)
