"""Figures over all rows of a table in Spark: moments, squared errors, and the order of values. One row comes back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfold.tables.duckdb.expressions import number_sql, text_sql
from kinfold.tables.duckdb.tallies import NUMERIC_STORAGES, AggregateQuery, compute_moments
from kinfold.tables.engine import NumericPair
from kinfold.tables.schema import Column, OrderStats
from kinfold.tables.spark.driver import Driver
from kinfold.tables.spark.frame import PLACE, SparkFrame

Floats = NDArray[np.float64]

ROWS_PER_RUN = 1_000_000  # whose order one task counts
CHANGED, NOT_FALLEN = "NOT (v <=> p)", "coalesce(v >= p, FALSE)"  # from the value before, `p`


def compute_frame_moments(driver: Driver, frame: SparkFrame, columns: Sequence[Column]) -> tuple[int, Floats, Floats]:
    """Return how many rows have a finite number in every column, and their means and covariances."""
    names = [f"x{i}" for i in range(len(columns))]
    rows = _compute_numbers(frame, columns, "x").dropna(subset=names).persist()
    query = AggregateQuery(lambda aggregates: _collect_figures(driver, rows, aggregates), "avg", "D")
    moments = compute_moments(query, names)
    rows.unpersist()
    return moments


def _collect_figures(driver: Driver, rows: Any, figures: Sequence[str]) -> list[Any]:
    """Return figures over all rows, given as Spark's SQL."""
    named = [f"{figure} AS a{i}" for i, figure in enumerate(figures)]
    return [column[0].as_py() for column in driver.collect(rows.selectExpr(*named), "figures", at_most=1).columns]


def compute_squared_errors(
    driver: Driver, original: SparkFrame, released: SparkFrame, columns: Sequence[NumericPair]
) -> list[float]:
    """Sum the squared errors of columns over all rows, by their places; the mean replaces values not released."""
    before, after = [each.before for each in columns], [each.after for each in columns]
    originals, releases = _compute_numbers(original, before, "x"), _compute_numbers(released, after, "y")
    sums = [f"coalesce(sum(power(x{i} - coalesce(y{i}, {c.mean!r}D), 2)), 0D)" for i, c in enumerate(columns)]
    return [float(each) for each in _collect_figures(driver, originals.join(releases, PLACE, "left"), sums)]


def count_order(driver: Driver, frame: SparkFrame, column: Column) -> OrderStats:
    """Count, from the first row to the last, where the value of a column changes and where it does not fall.

    Runs of rows are counted apart, then the first value of each run is compared with the last one of the run before.
    """
    from pyspark.sql.functions import expr

    name, is_numeric = column.name, column.storage in NUMERIC_STORAGES
    value = number_sql(frame.layout, column) if is_numeric else text_sql(frame.layout, name)
    known = f"{frame.layout.at(name)} IS NOT NULL"
    rows = frame.compute({"v": value, "known": known}, {"v": "DOUBLE" if is_numeric else "VARCHAR", "known": "BOOLEAN"})
    rows = rows.where("known").selectExpr("v", PLACE, f"{PLACE} div {ROWS_PER_RUN} AS run")
    steps = rows.selectExpr("*", f"lag(v) OVER (PARTITION BY run ORDER BY {PLACE}) AS p")
    steps = steps.selectExpr("*", f"row_number() OVER (PARTITION BY run ORDER BY {PLACE}) > 1 AS within")
    counts = [f"count_if(within AND {step}) AS {count}" for count, step in (("c", CHANGED), ("s", NOT_FALLEN))]
    ends = [f"min_by(v, {PLACE}) AS v", f"max_by(v, {PLACE}) AS last"]
    runs = steps.groupBy("run").agg(*map(expr, (*counts, *ends)))
    joints = runs.selectExpr(
        "c", "s", "v", "lag(last) OVER (ORDER BY run) AS p", "row_number() OVER (ORDER BY run) AS i"
    )
    sums = [f"sum(c + CAST(i = 1 OR {CHANGED} AS INT))", f"sum(s + CAST(i > 1 AND {NOT_FALLEN} AS INT))"]
    return OrderStats(*(int(each or 0) for each in _collect_figures(driver, joints, sums)))


def _compute_numbers(frame: SparkFrame, columns: Sequence[Column], letter: str) -> Any:
    """Return numbers with their places; anything else is null."""
    values = {f"{letter}{i}": number_sql(frame.layout, column) for i, column in enumerate(columns)}
    finite = {name: f"CASE WHEN isfinite({value}) THEN {value} END" for name, value in values.items()}
    return frame.compute(finite, dict.fromkeys(finite, "DOUBLE"))
