"""Equal numbers are one value, however they are written: what is certified equals a count over exact fractions."""

from __future__ import annotations

import csv
import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kinfold
from kinfold import checker
from kinfold.errors import DataError, PolicyError
from kinfold.rows.categories import category
from ledger import cases
from reference import definitions

SPELLINGS = {
    Fraction(0): ("0", "-0", "0.0", "-0.0", "+0", "0e0", ".0", "-0e5"),
    Fraction(1): ("1", "1.0", "+1", "1e0", "1.", "10e-1", "1.000", " 1"),
    Fraction(5, 2): ("2.5", "2.50", "+2.5", "25e-1", "0.25e1"),
    Fraction(-3): ("-3", "-3.0", "-3e0"),
    Fraction(10**30): ("1e30", "1E+30", "1" + "0" * 30, "1" + "0" * 30 + ".0"),
    Fraction(1, 10**500): ("1e-500", "0.1e-499"),
}
PRIVACY: tuple[dict[str, Any], ...] = (
    {"l": 2},
    {"l": 1.3, "l_kind": "entropy"},
    {"l": 2, "l_kind": "recursive", "c": 4.0},
    {"p": 2},
    {"alpha": 0.85},
    {"t": 0.6},
)


def spelled(chance: np.random.Generator, few: int, n: int = 36) -> list[str]:
    """Draw numbers, each written in any of its ways."""
    numbers = [list(SPELLINGS)[i] for i in chance.choice(len(SPELLINGS), few, replace=False)]
    weights = np.array([3.0] + [1.0] * (few - 1))
    drawn = [numbers[i] for i in chance.choice(few, n, p=weights / weights.sum())]
    return [SPELLINGS[number][int(chance.integers(len(SPELLINGS[number])))] for number in drawn]


def number(text: str | None) -> Fraction | None:
    return None if not text else Fraction(Decimal(text.strip()))


def by_definition(rows: list[dict[str, Any]], asked: dict[str, Any], *, ordered: bool) -> float:
    """What a promise has on some rows, by exact fractions."""
    held = definitions.classes([row["zip"] for row in rows], [row["x"] for row in rows])
    whole = sum(held[1:], held[0])
    if "alpha" in asked:
        return definitions.farthest(held, definitions.alpha)
    if "t" in asked and ordered:
        order = sorted(whole, key=lambda value: (value is not None, value))
        return definitions.farthest(held, lambda each: definitions.ordered_emd(each, whole, order))
    if "t" in asked:
        return definitions.farthest(held, lambda each: definitions.equal_emd(each, whole))
    if asked.get("l_kind") == "entropy":
        return min(map(definitions.entropy, held))
    if asked.get("l_kind") == "recursive":
        return min(definitions.recursive(each, asked["c"]) for each in held)
    return min(map(len, held))


def table(x: Any) -> dict[str, Any]:
    return {"zip": [f"{i // 3:02}z" for i in range(len(x))], "x": x}


def released(source: Any, column: dict[str, Any], privacy: dict[str, Any], folder: Path, **output: Any) -> Path | None:
    columns = {"zip": {"role": "quasi", "type": "nominal"}, "x": {"role": "confidential", **column}}
    policy = {"privacy": {"k": 3, **privacy}, "method": {"name": "mdav"}, "columns": columns, "output": output}
    try:
        kinfold.anonymize(source, policy).save(folder)
    except kinfold.Unreachable:
        return None
    return folder / "public"


@pytest.mark.parametrize("privacy", PRIVACY, ids=str)
@pytest.mark.parametrize("kind", [None, "nominal", "order", "hierarchy"])
def test_numbers_of_a_csv_file_are_told_apart_as_numbers(
    privacy: dict[str, Any], kind: str | None, tmp_path: Path
) -> None:
    made = 0
    for seed in range(cases(1, 20)):
        chance = np.random.default_rng(seed)
        x = spelled(chance, 2 if kind is None else 3)
        source = tmp_path / f"{seed}.csv"
        pd.DataFrame(table(x)).to_csv(source, index=False)
        texts = sorted({category(text) for text in x}, key=Fraction)
        column: dict[str, Any] = {} if kind is None else {"type": "nominal"}
        if kind == "order":
            column = {"type": "ordinal", "order": texts}
        if kind == "hierarchy":
            column |= {"hierarchy": {"levels": [[text, text] for text in texts]}}
        public = released(source, column, privacy, tmp_path / f"out{seed}")
        if public is None:
            continue
        made += 1
        told = json.loads((public / "certificate.json").read_text())
        with (public / "release.csv").open() as file:
            rows = [{**row, "x": number(row["x"])} for row in csv.DictReader(file)]
        ordered = next(c for c in told["columns"] if c["name"] == "x")["distance"] == "ordered"
        assert told["promises"][1]["found"] == pytest.approx(by_definition(rows, privacy, ordered=ordered))
        assert told["found"]["l"]["x"] == by_definition(rows, {}, ordered=False)
        assert kinfold.verify(public, twice=True).holds
        assert checker.examine(public)["holds"]
    assert made


SOURCES = {
    "pandas": pd.DataFrame,
    "categorical": lambda data: pd.DataFrame(data).astype({"x": "category"}),
    "object": lambda data: pd.DataFrame({**data, "x": pd.array(list(data["x"]), object)}),
    "float32": lambda data: pd.DataFrame(data).astype({"x": np.float32}),
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "decimal": lambda data: pa.table(data | {"x": pa.array([Decimal(v).quantize(Decimal("1.00")) for v in data["x"]])}),
    "strings": lambda data: pa.table(data | {"x": [str(v) for v in data["x"]]}),
}


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("source", [*SOURCES, "parquet"])
@pytest.mark.parametrize("kind", [None, "nominal"])
def test_the_two_zeros_of_a_frame_are_one_value(source: str, kind: str | None, form: str, tmp_path: Path) -> None:
    x = np.random.default_rng(7).choice([0.0, -0.0, 1.0], 60, p=[0.4, 0.4, 0.2])
    data = table(x)
    if source == "parquet":
        pq.write_table(pa.table(data), tmp_path / "t.parquet")
    frame = SOURCES[source](data) if source in SOURCES else tmp_path / "t.parquet"
    column = {} if kind is None else {"type": kind}
    public = released(frame, column, {"l": 2}, tmp_path / "out", format=form)
    assert public is not None
    rows = pd.read_csv(public / "release.csv") if form == "csv" else pd.read_parquet(public / "release.parquet")
    fewest = rows.assign(x=rows.x.astype(float)).groupby("zip").x.nunique().min()
    assert fewest == 2 == json.loads((public / "certificate.json").read_text())["found"]["l"]["x"]


def test_numbers_among_words_are_numbers(tmp_path: Path) -> None:
    pd.DataFrame(table(["1", "1.0", "a"] * 8)).to_csv(tmp_path / "t.csv", index=False)
    public = released(tmp_path / "t.csv", {"type": "nominal"}, {"l": 2}, tmp_path / "out")
    assert public is not None
    assert json.loads((public / "certificate.json").read_text())["found"]["l"]["x"] == 2


def test_codes_with_leading_zeros_are_no_numbers(tmp_path: Path) -> None:
    pd.DataFrame(table(["01", "1", "001"] * 8)).to_csv(tmp_path / "t.csv", index=False)
    public = released(tmp_path / "t.csv", {"type": "nominal"}, {"l": 3}, tmp_path / "out")
    assert public is not None
    assert checker.examine(public)["found"]["l"] == {"x": 3}


def test_whoever_is_numbered_in_two_ways_is_one_person(tmp_path: Path) -> None:
    pid = [f"{i // 2}" if i % 2 else f"{i // 2}.0" for i in range(24)]
    pd.DataFrame({**table(["a", "b", "c"] * 8), "pid": pid}).to_csv(tmp_path / "t.csv", index=False)
    columns = {"zip": {"role": "quasi"}, "x": {"role": "confidential"}, "pid": {"role": "identifier"}}
    policy = {"privacy": {"k": 3, "unit": "pid"}, "method": {"name": "mdav"}, "columns": columns}
    release = kinfold.anonymize(tmp_path / "t.csv", policy)
    people = pd.DataFrame({"class": release.labels, "pid": [int(float(each)) for each in pid]})
    assert release.verdict.people[0].found == people.groupby("class").pid.nunique().min() >= 3


@pytest.mark.parametrize(
    "column",
    [
        {"type": "ordinal", "order": ["1", "2", "1.0"]},
        {"type": "nominal", "hierarchy": {"levels": [["1", "a"], ["1.0", "b"], ["2", "b"]]}},
    ],
)
def test_a_number_with_two_places_is_refused(column: dict[str, Any]) -> None:
    source = pa.table(table(["1", "1.0", "2"] * 8))
    columns = {"zip": {"role": "quasi"}, "x": {"role": "confidential", **column}}
    with pytest.raises(PolicyError, match="two places"):
        kinfold.anonymize(source, {"privacy": {"k": 3}, "columns": columns})


@pytest.mark.parametrize("kind", [None, "nominal"])
def test_what_is_not_a_number_is_no_value_of_a_column_of_numbers(kind: str | None) -> None:
    source = pa.table(table(pa.array([0.0, float("nan"), None] * 8)))
    columns = {"zip": {"role": "quasi"}, "x": {"role": "confidential", **({"type": kind} if kind else {})}}
    with pytest.raises(DataError, match="8 values that are infinite or not a number"):
        kinfold.anonymize(source, {"privacy": {"k": 3, "l": 2}, "columns": columns})
