"""Columns of every kind, with values that are easy to find again in a message that must not hold one."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

NULLS = 0.3


@dataclass(frozen=True)
class Made:
    """A column, what the policy says of it, and the hierarchy that fits it."""

    array: pa.Array
    asked: dict[str, Any]
    hierarchy: dict[str, Any]


def places(how: str, n: int, chance: np.random.Generator) -> np.ndarray:
    """Return a number for the value of each record, -1 for null."""
    many = {"ties": 2, "constant": 1}.get(how, max(n // 2, 1))
    many = min(many, n) or 1
    found = chance.permutation(n) if how == "distinct" else chance.integers(0, many, n)
    if how == "some null":
        found[chance.random(n) < NULLS] = -1
    return np.full(n, -1) if how == "all null" else found


def column(kind: str, how: str, n: int, chance: np.random.Generator) -> Made:
    """Make a column of one of the kinds below."""
    at = places(how, n, chance)
    values, stored, asked, hierarchy = KINDS[kind](n, how == "far apart")
    return Made(pa.array([None if i < 0 else values[i] for i in at], stored), asked, hierarchy)


def _whole(n: int, far: bool) -> tuple[Any, ...]:
    values = [10_000 + 37 * i * (10**9 if far and i % 2 else 1) for i in range(n)]
    return values, pa.int64(), {"type": "continuous"}, {"intervals": [100, 1000]}


def _decimal(n: int, far: bool) -> tuple[Any, ...]:
    values = [10_000.25 + 3.5 * i * (1e120 if far and i % 2 else 1) for i in range(n)]
    return values, pa.float64(), {"type": "continuous"}, {"intervals": [100, 1000]}


def _word(n: int, far: bool) -> tuple[Any, ...]:
    return [f"nq{i:03}x" for i in range(n)], pa.string(), {"type": "nominal"}, {"mask": 4}


def _truth(n: int, far: bool) -> tuple[Any, ...]:
    return [i % 2 == 0 for i in range(n)], pa.bool_(), {"type": "nominal"}, {"mask": 2}


def _rank(n: int, far: bool) -> tuple[Any, ...]:
    order = [f"or{i:03}y" for i in range(n)]
    levels = [[text, f"up to or{i // 4:03}z"] for i, text in enumerate(order)]
    return order, pa.string(), {"type": "ordinal", "order": order}, {"levels": levels}


def _grade(n: int, far: bool) -> tuple[Any, ...]:
    return [20_000 + 10 * i for i in range(n)], pa.int32(), {"type": "ordinal"}, {"intervals": [100, 1000]}


def _day(n: int, far: bool) -> tuple[Any, ...]:
    first, step = date(1990, 1, 1), 3000 if far else 37
    return [first + timedelta(step * i) for i in range(n)], pa.date32(), {"type": "date"}, {"dates": ["month", "year"]}


def _moment(n: int, far: bool) -> tuple[Any, ...]:
    first, step = datetime(1990, 1, 1, 6, 30), timedelta(days=3000 if far else 37, hours=5)
    return [first + step * i for i in range(n)], pa.timestamp("us"), {"type": "date"}, {"dates": ["month", "decade"]}


KINDS = {
    "whole": _whole,
    "decimal": _decimal,
    "word": _word,
    "truth": _truth,
    "rank": _rank,
    "grade": _grade,
    "day": _day,
    "moment": _moment,
}
SHAPES = {
    "all continuous": ("whole", "decimal"),
    "all nominal": ("word", "truth"),
    "all ordinal": ("rank", "grade"),
    "all dates": ("day", "moment"),
    "mixed": ("decimal", "word", "rank", "day"),
    "one continuous": ("whole",),
    "one nominal": ("word",),
    "one ordinal": ("rank",),
    "one date": ("day",),
}
