"""Random mixed tables with a policy that fits them, for tests of the whole way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

LEVELS = ("low", "mid", "high", "top")
AREAS = ("02138", "02139", "02141", "1", "940")


@dataclass(frozen=True)
class Case:
    """A table, the policy for it, and what must be known to judge the release."""

    table: pa.Table
    policy: dict[str, Any]

    @property
    def quasi(self) -> list[str]:
        return [name for name, column in self.policy["columns"].items() if column["role"] == "quasi-identifier"]

    @property
    def kept(self) -> np.ndarray:
        """Which rows are released: those without a null where the policy says drop."""
        gone = np.zeros(len(self.table), bool)
        for name, column in self.policy["columns"].items():
            if column.get("missing") == "drop":
                gone |= self.table.column(name).is_null().to_numpy(zero_copy_only=False)
        return ~gone


def case(seed: int, **output: Any) -> Case:
    """Draw a case; the same seed draws the same one."""
    random = np.random.default_rng(seed)
    n, k = int(random.integers(4, 40)), int(random.integers(2, 5))
    columns: dict[str, Any] = {}
    policy: dict[str, Any] = {}

    def add(name: str, values: list[Any], kind: pa.DataType, nulls: float, **asked: Any) -> None:
        missing = random.random(n) < nulls
        columns[name] = pa.array([None if gone else v for v, gone in zip(values, missing, strict=True)], kind)
        policy[name] = {"role": "quasi-identifier", "weight": float(random.choice([0.5, 1.0, 4.0])), **asked}

    def one_of(*choices: str) -> str:
        return str(random.choice(choices))

    def some_nulls() -> float:
        return float(random.choice([0, 0, 0.3]))

    def numbers(name: str, values: list[Any], kind: pa.DataType, **asked: Any) -> None:
        average, missing = one_of("mean", "mean", "median", "generalize"), one_of("separate", "mean", "drop")
        if average == "generalize" and missing == "mean":
            missing = "separate"
        add(name, values, kind, some_nulls(), average=average, missing=missing, **asked)
        if columns[name].null_count == n:
            del columns[name], policy[name]

    add("id", [f"person {i}" for i in range(n)], pa.string(), 0)
    policy["id"] = {"role": "identifier"}
    numbers("age", random.integers(-5, 30, n).tolist(), pa.int16(), type="continuous")
    numbers("rate", random.normal(0, 3, n).round(2).tolist(), pa.float64(), type="continuous")
    days = [date(2020, 1, 1) + timedelta(days=int(day)) for day in random.integers(-900, 900, n)]
    numbers("day", days, pa.date32(), type="date", **_maybe(random, hierarchy={"dates": ["month", "year"]}))
    order = {"type": "ordinal", "order": list(LEVELS)}
    level = random.choice(LEVELS, n).tolist()
    add(
        "level",
        level,
        pa.string(),
        some_nulls(),
        average=one_of("median", "convex-median", "mode", "generalize"),
        **order,
    )
    area = random.choice(AREAS, n).tolist()
    tree = _maybe(random, hierarchy={"mask": 3})
    add("zip", area, pa.string(), some_nulls(), type="nominal", average=one_of("mode", "generalize"), **tree)
    add("flag", (random.random(n) < 0.5).tolist(), pa.bool_(), some_nulls(), type="nominal")
    add("disease", random.choice(["flu", "cold", "gout"], n).tolist(), pa.string(), 0.1)
    policy["disease"] = {"role": "confidential"}
    add("note", random.normal(0, 1, n).tolist(), pa.float64(), 0.2)
    policy["note"] = {"role": "other"}
    whole = {"privacy": {"k": k}, "method": {"name": "mdav"}, "columns": policy, "output": output}
    return Case(pa.table(columns), whole)


def usable(seed: int, fits: Callable[[Case], bool], **output: Any) -> Case:
    """Draw the first case of a seed that a test can use: every seed counts, and ten draws without one are an error."""
    draws = (case(seed + 1000 * turn, **output) for turn in range(10))
    return next(drawn for drawn in draws if fits(drawn))


def _maybe(random: np.random.Generator, **asked: Any) -> dict[str, Any]:
    return asked if random.random() < 0.5 else {}
