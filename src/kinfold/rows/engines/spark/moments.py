"""Means, covariances and errors of columns, computed where the rows are: two passes, around the means of the first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfold.rows.engines import NumbersInBoth
from kinfold.rows.engines.expressions import number
from kinfold.rows.engines.spark.frame import PLACE, Distributed
from kinfold.rows.engines.spark.running_spark import RunningSpark
from kinfold.rows.engines.two_passes import Aggregates, two_passes
from kinfold.rows.schema import Column

Floats = NDArray[np.float64]


def moments_of(session: RunningSpark, frame: Distributed, values: Sequence[str]) -> tuple[int, Floats, Floats]:
    """Return how many rows have a finite number in every column, given as SQL, and their means and covariances."""
    names = [f"x{i}" for i in range(len(values))]
    finite = {x: f"CASE WHEN isfinite({v}) THEN {v} END" for x, v in zip(names, values, strict=True)}
    with session.job():
        rows = frame.computed(finite, dict.fromkeys(names, "DOUBLE")).dropna(subset=names).persist()
        found = two_passes(Aggregates(lambda asked: rows.selectExpr(*asked).collect()[0], "avg", "D"), names)
        rows.unpersist()
    return found


def errors_of(
    session: RunningSpark, original: Distributed, released: Distributed, columns: Sequence[NumbersInBoth]
) -> list[float]:
    """Sum the squared errors of columns over all rows, by their places; the mean stands for what is not released."""
    before = _numbers(original, [each.before for each in columns], "x")
    after = _numbers(released, [each.after for each in columns], "y")
    told = [f"coalesce(sum(power(x{i} - coalesce(y{i}, {c.mean!r}D), 2)), 0D)" for i, c in enumerate(columns)]
    with session.job():
        found = before.join(after, PLACE, "left").selectExpr(*told).collect()[0]
    return [float(each) for each in found]


def _numbers(frame: Distributed, columns: Sequence[Column], letter: str) -> Any:
    """Return columns as numbers, beside their places; what is no number is null."""
    values = [number(frame.seen, column) for column in columns]
    finite = {f"{letter}{i}": f"CASE WHEN isfinite({v}) THEN {v} END" for i, v in enumerate(values)}
    return frame.computed(finite, dict.fromkeys(finite, "DOUBLE"))
