"""Blocks and regions processed in the executors.

Blocks     batches of blocks are sent in waves, each batch as one group. Results are saved after each wave, so that a
           run can be stopped and resumed.
Regions    every row finds its region where it is (`mapInArrow`); the rows of a region come together in one executor
           (`applyInArrow`). Labels stay in Spark, the summary of each region comes to the driver.

A result depends only on the rows of the block or region, not on the executor: a lost one is computed again.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kinfold.tables.duckdb.connection import Database
from kinfold.tables.duckdb.expressions import number_sql
from kinfold.tables.duckdb.recoding import add_labels
from kinfold.tables.recoding import Recoding
from kinfold.tables.regions import (
    NO_SEAM,
    CheckpointStore,
    LabelledRows,
    RegionAndSeam,
    RegionProgress,
    RegionWork,
    RequestedColumns,
    Route,
    ValueCodes,
    class_offsets,
    value_names,
)
from kinfold.tables.spark.driver import Driver
from kinfold.tables.spark.frame import PLACE, SparkFrame, cast_for_spark, make_key, send_map
from kinfold.tables.spark.session import JobSession

BATCHES_PER_CORE = 2  # in one wave
DEFAULT_CORES = 8  # of a cluster that does not report its cores
SUMMARY_PLACE = -1  # the place of the summary of a part


def run_in_executors(driver: Driver, jobs: Any, pool: Any) -> list[Any]:
    """Return the result of every batch: `jobs` is a `BlockJobs`, `pool` the `BlockPool` that reports progress."""
    results = {at: saved for at in range(jobs.count) if (saved := jobs.load(at)) is not None}
    waiting = [at for at in range(jobs.count) if at not in results]
    for at in results:
        pool.done[at] = pool.sizes[at]
    width = max(1, BATCHES_PER_CORE * _count_cluster_cores(driver.session))
    for start in range(0, len(waiting), width):
        pool.progress(int(pool.done.sum()), pool.total)
        wave = waiting[start : start + width]
        for at, result in zip(wave, _run_wave(driver, [jobs.make_batch(at) for at in wave]), strict=True):
            results[at] = jobs.save(at, result)
            pool.done[at] = pool.sizes[at]
    pool.progress(int(pool.done.sum()), pool.total)
    return [results[at] for at in range(jobs.count)]


def _count_cluster_cores(session: JobSession) -> int:
    try:
        return int(session.spark.sparkContext.defaultParallelism)
    except Exception:  # a session that only connects to a cluster
        return DEFAULT_CORES


def _run_wave(driver: Driver, batches: list[Any]) -> list[Any]:
    from pyspark.cloudpickle import dumps

    packed = pa.table({"at": pa.array(range(len(batches)), pa.int32()), "batch": [dumps(each) for each in batches]})
    with driver.session.job():
        rows = driver.session.spark.createDataFrame(packed, "at int, batch binary")
        results = _apply_to_groups(rows, len(batches), "at", run_batches, "at int, result binary")
    arrow = driver.collect(results, "the classes of blocks", at_most=len(batches))
    packed_results = dict(zip(arrow.column("at").to_pylist(), arrow.column("result").to_pylist(), strict=True))
    unpacked = [pickle.loads(packed_results[at]) for at in range(len(batches))]  # noqa: S301  from our own executors
    for result in unpacked:
        if isinstance(result, Exception):
            raise result
    return unpacked


def _apply_to_groups(rows: Any, groups: int, key: str, run: Callable[[pa.Table], pa.Table], schema: str) -> Any:
    """Run a function on each group of rows, in one task per group."""
    return rows.repartition(groups, key).groupBy(key).applyInArrow(run, schema)


def run_batches(group: pa.Table) -> pa.Table:
    """Run the batches of a group in an executor; an exception is returned as a result."""
    results = []
    for packed in group.column("batch").to_pylist():
        try:
            result = pickle.loads(packed)(_ignore_progress)  # noqa: S301  from our own driver
        except Exception as error:
            result = error
        results.append(pickle.dumps(result))
    return pa.table({"at": group.column("at"), "result": pa.array(results, pa.binary())})


def _ignore_progress(*_: int) -> Any:
    """Return itself: it is both the progress callback of a block and the function that makes one."""
    return _ignore_progress


class SparkRegions:
    """Regions of rows in Spark; what it caches is appended to `cached`."""

    def __init__(self, driver: Driver, rows: Any, cached: list[Any]) -> None:
        self._driver, self._session = driver, driver.session
        self._rows, self._cached = rows.persist(), cached
        cached.append(self._rows)

    def counts(self) -> dict[int, int]:
        """Return how many rows each region has."""
        return self._count("region")

    def count_codes(self, column: int) -> dict[int, int]:
        """Return how many rows in regions have each code of a column."""
        return self._count(f"CAST(v{column} AS BIGINT)")

    def _count(self, value: str) -> dict[int, int]:
        rows = self._rows.where("region >= 0").selectExpr(f"{value} AS x").groupBy("x").count()
        counts = self._driver.collect(rows, "the records of each region or value").to_pydict()
        return dict(zip(counts["x"], counts["count"], strict=True))

    def label(
        self,
        numbers: Mapping[int, int],
        work: RegionAndSeam,
        progress: RegionProgress,
        checkpoints: CheckpointStore,  # noqa: ARG002
    ) -> LabelledRows:
        """Process every region in the executors, then the seams; there are no checkpoints, labels stay in Spark."""
        parts = max(numbers.values()) + 1
        known = {"region": pa.array(numbers.keys(), pa.int64()), "part": pa.array(numbers.values(), pa.int64())}
        with self._session.job():
            part_of_region = send_map(self._session, pa.table(known), {"region": "BIGINT", "part": "BIGINT"})
            rows = self._rows.join(part_of_region, "region", "inner").drop("region")
        progress(0, 2)
        first = self._run(rows, parts, work.region)
        at_seams = first.rows.where(f"seam <> {NO_SEAM} AND place <> {SUMMARY_PLACE}").selectExpr(
            "place", "CAST(part AS INT) AS number", "label", "seam AS part"
        )
        progress(1, 2)
        seams = self._rows.drop("region").join(at_seams, "place", "inner")
        second = self._run(seams, parts, work.seam, sum(first.classes))
        progress(2, 2)
        labels = first.number_classes(self._session, 0).unionAll(
            second.number_classes(self._session, sum(first.classes))
        )
        return LabelledRows(np.empty(0, np.int32), labels, [*first.summaries, *second.summaries])

    def _run(self, rows: Any, parts: int, work: RegionWork, before: int = 0) -> _RegionLabels:
        """Process the parts of some rows, after so many classes."""
        schema = "part bigint, place bigint, label int, seam bigint, summary binary"

        def label(group: pa.Table) -> pa.Table:  # Spark inspects the signature, so it must be a function
            return _label_group(work, group)

        with self._session.job():
            labels = _apply_to_groups(rows, parts, "part", label, schema).persist()
            self._cached.append(labels)
            summaries = labels.where(f"place = {SUMMARY_PLACE}").orderBy("part")
        counts = self._driver.collect(summaries.select("part", "label"), "the classes of each region", at_most=parts)
        classes = counts.column("label").to_pylist()
        what = "the released values of each class"
        self._driver.require(before + sum(classes), what)
        packed = self._driver.collect(summaries.select("summary"), what, rows=sum(classes))
        return _RegionLabels(labels, counts.column("part").to_pylist(), classes, packed.column("summary").to_pylist())


class _RegionLabels(NamedTuple):
    """Labels in Spark; the number, the count of final classes, and the summary of each part."""

    rows: Any
    parts: list[int]
    classes: list[int]
    summaries: list[bytes]

    def number_classes(self, session: JobSession, first: int) -> Any:
        """Return the class of each row that is at no seam, numbered through all parts."""
        offsets = pa.table({"part": pa.array(self.parts, pa.int64()), "first": first + class_offsets(self.classes)})
        with session.job():
            first_of_part = send_map(session, offsets, {"part": "BIGINT", "first": "BIGINT"})
            final = self.rows.where(f"seam = {NO_SEAM} AND place <> {SUMMARY_PLACE}")
            rows = final.join(first_of_part, "part", "inner")
            return rows.selectExpr("place AS at", "CAST(label + first AS INT) AS label")


def _label_group(work: RegionWork, group: pa.Table) -> pa.Table:
    """Return the labels of a part in an executor, and a row with its count of final classes and its summary."""
    rows = group.sort_by(PLACE)
    labelling = work(rows.drop_columns(["part"]), None)
    count = rows.num_rows
    return pa.table(
        {
            "part": np.full(count + 1, rows.column("part")[0].as_py(), np.int64),
            "place": np.append(rows.column(PLACE).to_numpy(), SUMMARY_PLACE),
            "label": np.append(labelling.labels, labelling.classes).astype(np.int32),
            "seam": np.append(labelling.seam, NO_SEAM),
            "summary": pa.array([*[None] * count, labelling.summary], pa.binary()),
        }
    )


def route_rows(session: JobSession, db: Database, frame: SparkFrame, columns: RequestedColumns, route: Route) -> Any:
    """Return the requested columns of a table as doubles, with the place and the region of each row."""
    rows = _encode(session, db, frame, columns)
    schema = ", ".join(f"{name} double" for name in value_names(len(columns)))
    with session.job():
        return rows.mapInArrow(partial(_route_batches, route), f"place bigint, {schema}, region bigint")


def _encode(session: JobSession, db: Database, frame: SparkFrame, columns: RequestedColumns) -> Any:
    """Return columns as doubles with the places: numbers, or codes of values."""
    layout, values, kinds = frame.layout, {}, {}
    for name, column in zip(value_names(len(columns)), columns, strict=True):
        if isinstance(column, ValueCodes):
            values[name], kinds[name] = layout.at(column.name), layout.sql_type(column.name)
        else:
            values[name], kinds[name] = number_sql(layout, column), "DOUBLE"
    rows = frame.compute(values, kinds)
    for name, column in zip(value_names(len(columns)), columns, strict=True):
        if isinstance(column, ValueCodes):
            rows = _encode_values(session, db, rows, name, column, kinds[name])
    return rows.select(PLACE, *value_names(len(columns)))


def _encode_values(session: JobSession, db: Database, rows: Any, name: str, column: ValueCodes, kind: str) -> Any:
    from pyspark.sql.functions import col, expr

    coded = add_labels(db, Recoding(column.codes.astype(np.int32), {}, column.values))
    arrow = db.arrow(f"SELECT {cast_for_spark('c0', kind)} AS m, label AS code FROM {coded.table}")
    db.drop(coded.table)
    codes = send_map(session, arrow, {"m": kind, "code": "INTEGER"})
    same = expr(make_key(name, kind)).eqNullSafe(expr(make_key("m", kind)))
    joined = rows.join(codes, same, "inner").drop(name, "m")
    return joined.withColumn(name, col("code").cast("double")).drop("code")


def _route_batches(route: Route, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of each batch with their regions."""
    for batch in batches:
        regions = pa.array(route(pa.Table.from_batches([batch])), pa.int64())
        yield pa.record_batch([*batch.columns, regions], [*batch.schema.names, "region"])
