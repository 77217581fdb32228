"""Regions in Spark: rows find them where they are, and the rows of each come together in one executor.

    encoded    numbers by the embedded engine beside the rows, codes by a join of the distinct values
    routed     the region of each row, by its own values (`mapInArrow`)
    worked on  each region as one group (`applyInArrow`): labels stay in Spark, what is told of a region comes here

A region's labels depend on nothing but its rows: where they are lost with an executor they are computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from kinfold.rows.engines.database import Database
from kinfold.rows.engines.expressions import number as number_of
from kinfold.rows.engines.regions import (
    Asked,
    LabelledRows,
    Listener,
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

TOLD = -1  # the place of what is told of a region, which is no row


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

    def labelled(self, number: Mapping[int, int], work: Work, heard: Listener, kept: RegionShelf) -> LabelledRows:  # noqa: ARG002
        """Work on every region in the executors; for a later run nothing is kept: labels do not leave Spark."""
        heard(0, 1)
        many = max(number.values()) + 1
        known = pa.table(
            {"region": pa.array(number.keys(), pa.int64()), "number": pa.array(number.values(), pa.int32())}
        )
        with self._session.job():
            beside = handed(self._session, known, {"region": "BIGINT", "number": "INTEGER"})
            rows = self._rows.join(beside, "region", "inner").drop("region").repartition(many, "number")
            made = rows.groupBy("number").applyInArrow(
                _worker(work), "number int, place bigint, label int, told binary"
            )
            made = made.persist()
            self._kept.append(made)
            told = made.where(f"place = {TOLD}").select("number", "label", "told").toArrow()
        heard(1, 1)
        order = np.argsort(told.column("number").to_numpy())
        classes = told.column("label").to_numpy()[order]
        return LabelledRows(
            np.empty(0, np.int32),
            self._held(made, classes),
            [told.column("told")[int(at)].as_py() for at in order],
        )

    def _held(self, made: Any, classes: Any) -> Any:
        """Return the class of each place, numbered through all regions."""
        offsets = pa.table({"number": np.arange(len(classes), dtype=np.int32), "past": offsets_of(classes)})
        with self._session.job():
            beside = handed(self._session, offsets, {"number": "INTEGER", "past": "BIGINT"})
            rows = made.where(f"place <> {TOLD}").join(beside, "number", "inner")
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
        return _worked(work, group)

    return on


def _worked(work: Work, group: pa.Table) -> pa.Table:
    """Return the labels of a region, and a row of what is told of it: its classes, and the rest."""
    rows = group.sort_by(PLACE)
    made = work(rows.drop_columns(["number"]), None)
    places = np.append(rows.column(PLACE).to_numpy(), TOLD)
    labels = np.append(made.labels, made.labels.max() + 1).astype(np.int32)
    told = pa.array([*[None] * len(made.labels), made.told], pa.binary())
    number = np.full(len(places), rows.column("number")[0].as_py(), np.int32)
    return pa.table({"number": number, "place": places, "label": labels, "told": told})
