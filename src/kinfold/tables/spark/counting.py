"""Tallies of columns, counted in Spark and stored in the embedded engine; moments and squared errors.

Every question about distinct values is answered from such a tally, by the same SQL as in the embedded engine. A tally
of some columns is derived from a wider one if there is one; a short table is tallied once, by all columns. Moments
take two passes, the second around the means of the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfold.tables.duckdb.connection import Database
from kinfold.tables.duckdb.expressions import Frame, number_sql
from kinfold.tables.duckdb.tallies import AggregateQuery, compute_moments, group_keys
from kinfold.tables.engine import NumericPair
from kinfold.tables.schema import Column
from kinfold.tables.spark.frame import PLACE, SparkFrame, cast_from_spark
from kinfold.tables.spark.session import JobSession

Floats = NDArray[np.float64]

MAX_ROWS_TALLIED_WHOLE = 20_000  # a shorter table is tallied once, by all its columns
MAX_VALUES_DESCRIBED = 1_000_000  # a column with more distinct values is described by a sample of them
COUNT_COLUMN = "n"


class SparkTallies:
    """The tallies of the tables of a run."""

    def __init__(self, session: JobSession, db: Database) -> None:
        self._session, self._db = session, db
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
        with self._session.job():
            arrow = _group(frame, names).toArrow()
        return self._store(frame, names, arrow)

    def _store(self, frame: SparkFrame, names: tuple[str, ...], arrow: Any) -> Frame:
        typed = [f"{cast_from_spark(f'k{i}', frame.layout.sql_type(name))} AS c{i}" for i, name in enumerate(names)]
        with self._db.registered(arrow) as view:
            table = self._db.table(f"SELECT {', '.join([*typed, f'count AS {COUNT_COLUMN}'])} FROM {view}")
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

        tallies = self._tallies.get(frame.layout.table, [])
        if any(name in tally.names for tally in tallies) or self.count_rows(frame) <= MAX_VALUES_DESCRIBED:
            return self.get(frame, [name])
        with self._session.job():
            arrow = _group(frame, [name]).orderBy(xxhash64("k0"), "k0").limit(MAX_VALUES_DESCRIBED).toArrow()
        return self._store(frame, (name,), arrow)

    def sizes(self, frame: SparkFrame, names: Sequence[str]) -> list[tuple[int, int]]:
        """Return (rows, classes) ascending: how many classes of some columns have so many rows; counted in Spark."""
        with self._session.job():
            counts = _group(frame, names).groupBy("count").agg({"*": "count"}).toArrow()
        return sorted(zip(*(column.to_pylist() for column in counts.columns), strict=True))

    def sum_counts(self, frame: SparkFrame, counts: Sequence[str]) -> list[int]:
        """Return counts over all rows of a long table, given as DuckDB's SQL."""
        with self._session.job():
            return [int(each or 0) for each in frame.count_by_sql(counts).collect()[0]]

    def count_values(self, frame: SparkFrame, name: str) -> tuple[int, int]:
        """Return how many rows have a value in a column, and about how many distinct ones there are."""
        from pyspark.sql.functions import approx_count_distinct, col, count

        c = col(frame.layout.at(name))
        with self._session.job():
            filled, distinct = frame.rows.select(count(c), approx_count_distinct(c)).collect()[0]
        return int(filled), int(distinct)


def _group(frame: SparkFrame, names: Sequence[str]) -> Any:
    return frame.rows.select(*frame.keys(tuple(names))).groupBy(*(f"k{i}" for i in range(len(names)))).count()


def _describe_tally(layout: Frame, table: str, names: tuple[str, ...]) -> Frame:
    orders = tuple(layout.category_order(layout.names.index(name)) for name in names) if layout.orders else ()
    types = tuple(layout.sql_type(name) for name in names)
    return replace(layout, table=table, names=names, types=types, orders=orders, order="rowid", weight=COUNT_COLUMN)


def compute_frame_moments(
    session: JobSession, frame: SparkFrame, columns: Sequence[Column]
) -> tuple[int, Floats, Floats]:
    """Return how many rows have a finite number in every column, and their means and covariances."""
    names = [f"x{i}" for i in range(len(columns))]
    with session.job():
        rows = _compute_numbers(frame, columns, "x").dropna(subset=names).persist()
        query = AggregateQuery(lambda aggregates: rows.selectExpr(*aggregates).collect()[0], "avg", "D")
        moments = compute_moments(query, names)
        rows.unpersist()
    return moments


def compute_squared_errors(
    session: JobSession, original: SparkFrame, released: SparkFrame, columns: Sequence[NumericPair]
) -> list[float]:
    """Sum the squared errors of columns over all rows, by their places; the mean replaces values not released."""
    before, after = [each.before for each in columns], [each.after for each in columns]
    originals, releases = _compute_numbers(original, before, "x"), _compute_numbers(released, after, "y")
    sums = [f"coalesce(sum(power(x{i} - coalesce(y{i}, {c.mean!r}D), 2)), 0D)" for i, c in enumerate(columns)]
    with session.job():
        return [float(each) for each in originals.join(releases, PLACE, "left").selectExpr(*sums).collect()[0]]


def _compute_numbers(frame: SparkFrame, columns: Sequence[Column], letter: str) -> Any:
    """Return numbers with their places; anything else is null."""
    values = {f"{letter}{i}": number_sql(frame.layout, column) for i, column in enumerate(columns)}
    finite = {name: f"CASE WHEN isfinite({value}) THEN {value} END" for name, value in values.items()}
    return frame.compute(finite, dict.fromkeys(finite, "DOUBLE"))
