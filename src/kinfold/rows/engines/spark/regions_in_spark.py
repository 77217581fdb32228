"""Regions in Spark: rows find them where they are, and the rows of each come together in one executor.

    encoded    numbers by the embedded engine beside the rows, codes by a join of the distinct values
    routed     the region of each row, by its own values (`mapInArrow`)
    worked on  each region as one group (`applyInArrow`): labels stay in Spark, what is told of a region comes here

A region's labels depend on nothing but its rows: where they are lost with an executor they are computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kinfold.rows.engines.database import Database
from kinfold.rows.engines.expressions import number as number_of
from kinfold.rows.engines.regions import (
    Asked,
    LabelledRows,
    Listener,
    RegionAndSeam,
    RegionShelf,
    Route,
    ValueCodes,
    Work,
    named,
    offsets_of,
)
from kinfold.rows.engines.spark.carried import key, outward
from kinfold.rows.engines.spark.frame import PLACE, Distributed
from kinfold.rows.engines.spark.recoded import handed
from kinfold.rows.engines.spark.running_spark import RunningSpark
from kinfold.rows.engines.treating import labelled_tuples
from kinfold.rows.recoding import Recoding

TOLD = -1  # the place of what is told of a part, which is no row
NONE = -1  # the seam of rows that are at none


class RegionsInSpark:
    """Regions of rows in Spark; `kept` has what Spark is to forget at the end of a run."""

    def __init__(self, session: RunningSpark, rows: Any, many: int, kept: list[Any]) -> None:
        self._session, self._rows, self._many, self._kept = session, rows.persist(), many, kept
        kept.append(self._rows)

    def counts(self) -> dict[int, int]:
        """Return how many rows each region has."""
        return self._counted("region")

    def spread(self, asked: int) -> dict[int, int]:
        """Return how many rows that are in a region have each code of a column."""
        return self._counted(f"CAST(v{asked} AS BIGINT)")

    def _counted(self, value: str) -> dict[int, int]:
        with self._session.job():
            rows = self._rows.where("region >= 0").selectExpr(f"{value} AS x").groupBy("x").count()
            found = rows.toArrow().to_pydict()
        return dict(zip(found["x"], found["count"], strict=True))

    def labelled(
        self,
        number: Mapping[int, int],
        work: RegionAndSeam,
        heard: Listener,
        kept: RegionShelf,  # noqa: ARG002
    ) -> LabelledRows:
        """Work on every region in the executors; for a later run nothing is kept: labels do not leave Spark."""
        many = max(number.values()) + 1
        known = {"region": pa.array(number.keys(), pa.int64()), "part": pa.array(number.values(), pa.int64())}
        with self._session.job():
            beside = handed(self._session, pa.table(known), {"region": "BIGINT", "part": "BIGINT"})
            rows = self._rows.join(beside, "region", "inner").drop("region")
        heard(0, 2)
        first = self._worked(rows, many, work.region)
        again = first.rows.where(f"seam <> {NONE} AND place <> {TOLD}").selectExpr(
            "place", "CAST(part AS INT) AS number", "label", "seam AS part"
        )
        heard(1, 2)
        second = self._worked(self._rows.drop("region").join(again, "place", "inner"), many, work.seam)
        heard(2, 2)
        held = first.stays(self._session, 0).unionAll(second.stays(self._session, sum(first.classes)))
        return LabelledRows(np.empty(0, np.int32), held, [*first.told, *second.told])

    def _worked(self, rows: Any, many: int, work: Work) -> _Worked:
        """Work on the parts of these rows, each as one group."""
        columns = "part bigint, place bigint, label int, seam bigint, told binary"
        with self._session.job():
            made = rows.repartition(many, "part").groupBy("part").applyInArrow(_worker(work), columns).persist()
            self._kept.append(made)
            told = made.where(f"place = {TOLD}").orderBy("part").toArrow()
        return _Worked(made, *(told.column(name).to_pylist() for name in ("part", "label", "told")))


class _Worked(NamedTuple):
    """Labels in Spark, and of each part its number, how many classes stay in it, and what it told."""

    rows: Any
    parts: list[int]
    classes: list[int]
    told: list[bytes]

    def stays(self, session: RunningSpark, past: int) -> Any:
        """Return the class of each place that is in no seam, numbered through all parts."""
        offsets = past + offsets_of(self.classes)
        known = pa.table({"part": pa.array(self.parts, pa.int64()), "past": offsets})
        with session.job():
            beside = handed(session, known, {"part": "BIGINT", "past": "BIGINT"})
            rows = self.rows.where(f"seam = {NONE} AND place <> {TOLD}").join(beside, "part", "inner")
            return rows.selectExpr("place AS at", "CAST(label + past AS INT) AS label")


def regions(session: RunningSpark, db: Database, frame: Distributed, asked: Asked, route: Route) -> Any:
    """Return the rows of a table as they are asked for, each with its place and its region."""
    rows = _encoded(session, db, frame, asked)
    columns = ", ".join(f"{name} double" for name in named(len(asked)))
    with session.job():
        return rows.mapInArrow(Routing(route), f"place bigint, {columns}, region bigint")


def _encoded(session: RunningSpark, db: Database, frame: Distributed, asked: Asked) -> Any:
    """Return columns as doubles beside the places: numbers, or codes of values."""
    seen = frame.seen
    values = {
        f"v{i}": seen.at(a.name) if isinstance(a, ValueCodes) else number_of(seen, a) for i, a in enumerate(asked)
    }
    kinds = {f"v{i}": seen.type_of(a.name) if isinstance(a, ValueCodes) else "DOUBLE" for i, a in enumerate(asked)}
    rows = frame.computed(values, kinds)
    for at, how in enumerate(asked):
        if isinstance(how, ValueCodes):
            rows = _coded(session, db, rows, at, how, kinds[f"v{at}"])
    return rows.select(PLACE, *named(len(asked)))


def _coded(session: RunningSpark, db: Database, rows: Any, at: int, how: ValueCodes, kind: str) -> Any:
    """Put the code of each value in its place."""
    from pyspark.sql.functions import col, expr

    known = labelled_tuples(db, Recoding(how.codes.astype(np.int32), {}, how.values))
    arrow = db.arrow(f"SELECT {outward('c0', kind)} AS m, label AS code FROM {known.table}")
    db.drop(known.table)
    beside = handed(session, arrow, {"m": kind, "code": "INTEGER"})
    same = expr(key(f"v{at}", kind)).eqNullSafe(expr(key("m", kind)))
    return (
        rows.join(beside, same, "inner")
        .drop(f"v{at}", "m")
        .withColumn(f"v{at}", col("code").cast("double"))
        .drop("code")
    )


class Routing:
    """The region of each row, beside it, in an executor."""

    def __init__(self, route: Route) -> None:
        self.route = route

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of each batch with their regions."""
        for batch in batches:
            found = pa.array(self.route(pa.Table.from_batches([batch])), pa.int64())
            yield pa.record_batch([*batch.columns, found], [*batch.schema.names, "region"])


def _worker(work: Work) -> Callable[[pa.Table], pa.Table]:
    """Return what is done to the rows of a region, in an executor: a function, for Spark asks for its types."""

    def on(group: pa.Table) -> pa.Table:
        return _done(work, group)

    return on


def _done(work: Work, group: pa.Table) -> pa.Table:
    """Return the labels of a part, and a row of what is told of it: how many of its classes stay, and the rest."""
    rows = group.sort_by(PLACE)
    made = work(rows.drop_columns(["part"]), None)
    many = rows.num_rows
    return pa.table(
        {
            "part": np.full(many + 1, rows.column("part")[0].as_py(), np.int64),
            "place": np.append(rows.column(PLACE).to_numpy(), TOLD),
            "label": np.append(made.labels, made.classes).astype(np.int32),
            "seam": np.append(made.seam, NONE),
            "told": pa.array([*[None] * many, made.told], pa.binary()),
        }
    )
