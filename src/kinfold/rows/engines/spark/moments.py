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
from kinfold.rows.schema import Column

Floats = NDArray[np.float64]


def moments_of(session: RunningSpark, frame: Distributed, values: Sequence[str]) -> tuple[int, Floats, Floats]:
    """Return how many rows have a finite number in every column, given as SQL, and their means and covariances."""
    names = [f"x{i}" for i in range(len(values))]
    finite = {x: f"CASE WHEN isfinite({v}) THEN {v} END" for x, v in zip(names, values, strict=True)}
    with session.job():
        rows = frame.computed(finite, dict.fromkeys(names, "DOUBLE")).dropna(subset=names).persist()
        asked = [f"{what}({x})" for x in names for what in ("avg", "min", "max")]
        first = rows.selectExpr("count(*)", *asked).collect()[0]
    count, facts = int(first[0]), np.array([first[1:]], np.float64).reshape(-1, 3)
    means = np.where(facts[:, 1] == facts[:, 2], facts[:, 1], facts[:, 0])
    pairs = [(i, j) for i in range(len(names)) for j in range(i, len(names))]
    gaps = [f"({x} - ({mean!r}D))" for x, mean in zip(names, means.tolist(), strict=True)]
    covariances = np.zeros((len(names), len(names)))
    if count:
        with session.job():
            found = rows.selectExpr(*(f"avg({gaps[i]} * {gaps[j]})" for i, j in pairs)).collect()[0]
        for (i, j), value in zip(pairs, found, strict=True):
            covariances[i, j] = covariances[j, i] = value
    rows.unpersist()
    return count, means, covariances


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
