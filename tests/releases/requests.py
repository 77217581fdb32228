"""Requests to draw: a table in one of the forms that kinfold takes, and a policy for it.

The same number draws the same request. Levels are mild: what cannot be met is refused, and a refusal shows little.
"""

import csv
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet

from battery.cases import get_needs
from kinfold.policy.registry import generalizes, list_method_names
from releases.columns import CONFIDENTIAL, NUMBERS, QUASI, Chance, Column

METHODS = list_method_names()
PARTITIONERS = tuple(name for name in METHODS if not generalizes(name))
MODELS: dict[str, dict[str, Any]] = {
    "t": {"t": 0.25},
    "distinct": {"l": 2, "l_kind": "distinct"},
    "entropy": {"l": 1.8, "l_kind": "entropy"},
    "recursive": {"l": 2, "l_kind": "recursive", "c": 2.0},
    "p": {"p": 2},
    "alpha": {"alpha": 0.7},
    "beta": {"beta": 1.5},
    "enhanced": {"beta": 1.5, "beta_kind": "enhanced"},
    "delta": {"delta": 2.0},
}
EVERY = 6  # one request of so many is about people, with joint promises; each model in its turn
ROW = "row number"  # released as it is, so that a judge can tell whose each row was
NAMES = ("age", "date of birth", 'wei"rd', "naïve ☃", "a,b", "x;y", "=sum", "c0", "select", "'", "it\\n", "Ä")
AVERAGES = {
    "continuous": ("mean", "mean", "median", "generalize"),
    "date": ("mean", "median", "generalize"),
    "ordinal": ("median", "convex-median", "mode", "generalize"),
    "nominal": ("mode", "generalize"),
}
FORMS = ("csv", "csv", "csv", "parquet", "arrow", "pandas", "polars")


@dataclass
class Request:
    """What is asked of kinfold, put together piece by piece."""

    number: int
    chance: Chance
    method: str
    n: int
    k: int
    columns: dict[str, Column] = field(default_factory=dict)
    asked: dict[str, dict[str, Any]] = field(default_factory=dict)
    privacy: dict[str, Any] = field(default_factory=dict)
    output: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)

    def one_of(self, *choices: Any) -> Any:
        return choices[int(self.chance.integers(len(choices)))]

    def often(self, share: float) -> bool:
        return bool(self.chance.random() < share)

    def of(self, role: str) -> list[str]:
        return [name for name, asked in self.asked.items() if asked["role"] == role]

    @property
    def generalizing(self) -> bool:
        return generalizes(self.method)

    @property
    def policy(self) -> dict[str, Any]:
        method = {"name": self.method, "seed": self.number, **self.settings}
        return {"privacy": self.privacy, "method": method, "columns": self.asked, "output": self.output}

    def table(self) -> pa.Table:
        return pa.table({name: column.array() for name, column in self.columns.items()})

    def source(self, folder: Path) -> Any:
        """The table in one of the forms that kinfold takes."""
        form = FORMS[self.number % len(FORMS)]
        if form == "csv":
            return self._as_csv(folder / "table.csv")
        if form == "parquet":
            pyarrow.parquet.write_table(self.table(), folder / "table.parquet")
            return folder / "table.parquet"
        if form == "pandas":
            return self.table().to_pandas(types_mapper=pd.ArrowDtype)
        return pl.from_arrow(self.table()) if form == "polars" else self.table()

    def _as_csv(self, path: Path) -> Path:
        with path.open("w", encoding="utf-8", newline="") as file:
            style = {"delimiter": self.one_of(",", ",", ";", "\t", "|"), "lineterminator": self.one_of("\n", "\r\n")}
            out = csv.writer(file, quoting=self.one_of(csv.QUOTE_MINIMAL, csv.QUOTE_ALL), **style)
            out.writerow(self.columns)
            out.writerows(zip(*(column.texts() for column in self.columns.values()), strict=True))
        return path


def request(number: int) -> Request:
    """Draw a request."""
    chance, turn = np.random.default_rng(number), number // EVERY
    about_people = number % EVERY == EVERY - 1
    method, k = METHODS[number % len(METHODS)], int(chance.integers(2, 5))
    if about_people:
        method = PARTITIONERS[turn % len(PARTITIONERS)]
    most = 141 if about_people else 61  # where people have several rows, and classes parts
    drawn = Request(number, chance, method, int(chance.integers(max(10, 3 * k, most - 60), most)), k)
    names = [NAMES[i] for i in chance.permutation(len(NAMES))]
    _quasi(drawn, names)
    _confidential(drawn, names)
    _rest(drawn, names)
    _promises(drawn)
    _settings(drawn)
    if about_people:
        _people(drawn, names, [*MODELS][turn % len(MODELS)])
    order = [[*drawn.columns][i] for i in chance.permutation(len(drawn.columns))]
    drawn.columns = {name: drawn.columns[name] for name in order}
    return drawn


def _quasi(drawn: Request, names: list[str]) -> None:
    kinds = NUMBERS if "one number" in get_needs(drawn.method) else QUASI
    count = 1 if "one number" in get_needs(drawn.method) else drawn.one_of(1, 1, 1, 2, 2, 3)
    missing = int(drawn.chance.integers(count)) if drawn.often(0.4) else -1
    for number in range(count):
        column = drawn.one_of(*kinds)(drawn.n, drawn.chance)
        if number == missing:
            column = column.with_nulls(drawn.chance, 0.35)
        if any(value is not None for value in column.values):
            _add_quasi(drawn, names.pop(), column)


def _add_quasi(drawn: Request, name: str, column: Column) -> None:
    asked: dict[str, Any] = {"role": "quasi-identifier", **column.asked}
    if drawn.often(0.7):
        asked["type"] = column.kind
    measured = column.kind in ("continuous", "date")
    if not drawn.generalizing and drawn.often(0.6):
        asked["average"] = drawn.one_of(*AVERAGES[column.kind])
    truthful = drawn.generalizing or asked.get("average") in ("generalize", "suppress")
    if column.hierarchy and ((truthful and measured) or drawn.often(0.5)):
        asked["hierarchy"] = column.hierarchy
    if measured and None in column.values:
        asked["missing"] = drawn.one_of("separate", "drop", *(() if truthful else ("mean",)))
    drawn.columns[name], drawn.asked[name] = column, asked


def _confidential(drawn: Request, names: list[str]) -> None:
    for _ in range(drawn.one_of(1, 1, 2) if "t" in get_needs(drawn.method) else drawn.one_of(0, 1, 1, 1, 2)):
        name, column = names.pop(), drawn.one_of(*CONFIDENTIAL)(drawn.n, drawn.chance)
        if drawn.often(0.25):
            column = column.with_nulls(drawn.chance, 0.2)
        asked: dict[str, Any] = {"role": "confidential", **column.asked, "type": column.kind}
        if column.kind == "nominal" and "levels" in (column.hierarchy or {}) and drawn.often(0.5):
            asked["hierarchy"] = column.hierarchy
        elif column.kind != "nominal" and drawn.often(0.2):
            asked["distance"] = "equal"
        drawn.columns[name], drawn.asked[name] = column, asked


def _rest(drawn: Request, names: list[str]) -> None:
    """Columns that must go, or stay as they are, named by the policy or not."""
    if drawn.often(0.4):
        name = names.pop()
        drawn.columns[name] = Column([f"person {i}" for i in range(drawn.n)], pa.string(), "nominal")
        drawn.asked[name] = {"role": "identifier"}
    if drawn.often(0.3):
        name = names.pop()
        drawn.columns[name] = drawn.one_of(*QUASI)(drawn.n, drawn.chance)
        drawn.output["others"] = drawn.one_of("release", "drop")
        if drawn.often(0.5):
            drawn.asked[name] = {"role": "other"}


def _promises(drawn: Request) -> None:
    asked, confidential = drawn.privacy, drawn.of("confidential")
    asked["k"] = drawn.k
    if not confidential:
        return
    if "t" in get_needs(drawn.method) or drawn.often(0.5):
        asked["t"] = drawn.one_of(0.3, 0.45, 0.6, 0.9)
    if "t" in asked and drawn.often(0.3):
        drawn.asked[confidential[0]]["t"] = drawn.one_of(0.4, 0.8)
    if drawn.often(0.4):
        kind = drawn.one_of("distinct", "entropy", "recursive")
        asked |= {"l_kind": kind, "l": {"distinct": 2, "entropy": 1.4, "recursive": 2}[kind]}
        asked |= {"c": 3.0} if kind == "recursive" else {}
    if drawn.often(0.2):
        asked["p"] = 2
    if drawn.often(0.2):
        asked["alpha"] = drawn.one_of(0.75, 0.9)
    if drawn.often(0.2):
        asked |= {"beta": drawn.one_of(1.0, 3.0), "beta_kind": drawn.one_of("basic", "enhanced")}
    if drawn.often(0.15):
        asked["average_risk"] = drawn.one_of(0.2, 0.4)
    if drawn.often(0.15):
        asked["risk_share"] = {"above": drawn.one_of(0.2, 0.3), "most": 0.3}
    if drawn.often(0.1):
        asked["delta"] = drawn.one_of(2.0, 3.0)
    if not drawn.generalizing and len(confidential) > 1 and drawn.often(0.1):
        asked["joint"] = True


def _people(drawn: Request, names: list[str], model: str) -> None:
    """Ask for promises about people with several rows, and joint ones: by one model, and t where a method needs it."""
    t = MODELS["t"] if "t" in get_needs(drawn.method) else {}
    drawn.privacy = {"k": drawn.k, **t, **MODELS[model], "joint": True}
    while len(drawn.of("confidential")) < 2:
        _confidential(drawn, names)
    _count_people(drawn, names)
    whose = drawn.columns[drawn.privacy["unit"]].values
    for name in drawn.of("confidential"):  # few values: the parts of a class that share one are not too small
        column = drawn.columns[name]
        known = [*dict.fromkeys(column.values)][:2] if len({*column.values}) > 1 else [None, *column.values[:1]]
        values = [known[int(i)] for i in _repeating(drawn, whose)]
        drawn.columns[name] = replace(column, values=values)
        drawn.asked[name].pop("t", None)


def _repeating(drawn: Request, whose: list[Any]) -> list[int]:
    """Draw 0 or 1 for each row: often that of the person's other rows, for there rows tell more than people."""
    own = {person: int(drawn.chance.random() < 0.5) for person in dict.fromkeys(whose)}
    return [own[person] if drawn.often(0.7) else int(drawn.chance.random() < 0.5) for person in whose]


def _count_people(drawn: Request, names: list[str]) -> None:
    """Count people, most of whom have several rows."""
    whose = [f"person {i}" for i in drawn.chance.integers(0, max(drawn.k + 2, drawn.n // 4), drawn.n)]
    unit = (drawn.of("identifier") or [names.pop()])[0]
    drawn.columns[unit], drawn.asked[unit] = Column(whose, pa.string(), "nominal"), {"role": "identifier"}
    drawn.columns[ROW] = Column([f"r{i}" for i in range(drawn.n)], pa.string(), "nominal")
    drawn.asked[ROW] = {"role": "other"}
    drawn.privacy["unit"] = unit


def _settings(drawn: Request) -> None:
    output, settings = drawn.output, drawn.settings
    output["format"] = drawn.one_of("csv", "csv", "parquet")
    output["order"] = drawn.one_of("sorted", "kept")
    output["round"] = drawn.often(0.7)
    if drawn.generalizing:
        output["suppressed"] = drawn.one_of("drop", "star")
        coarse = () if drawn.method == "mingen-cell" else ("discernibility",)
        settings["objective"] = drawn.one_of("granularity", "prec", *coarse)
    elif drawn.often(0.2):
        output["preserve"] = "variance"
    if drawn.method in ("datafly", "lattice", "t-first") and drawn.often(0.7):
        settings["suppression"] = drawn.one_of(2, 0.1, 0.3)
    if not drawn.generalizing and drawn.often(0.2):
        settings["refine_steps"] = int(drawn.chance.integers(1, 200))
    if drawn.of("identifier") and not drawn.generalizing and drawn.often(0.2):
        _count_people(drawn, [])
