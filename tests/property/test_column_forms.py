"""Codes for missing values and units by column, patterns of columns, rows of totals: against a plain reading."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import kinfold
from kinfold.errors import PolicyError
from kinfold.policy.model import Policy
from kinfold.tables.column_names import match_patterns
from kinfold.tables.duckdb.engine import DuckDB
from kinfold.tables.queries import collect_rows
from ledger import cases
from reference import plain_reading
from small_tables import SMALL

MARKS = [(".", ""), (",", ""), (",", "."), (".", ","), (".", " "), (",", "'")]
UNITS = ["$", "EUR", "€", "kg", "mm Hg"]
WORDS = ["k.A.", "n/a", "refused"]


def write_number(number: Decimal, decimal: str, thousands: str) -> str:
    return f"{number:,f}".translate(str.maketrans({",": thousands, ".": decimal}))


@st.composite
def written_columns(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Return the keys of [source], those of a column, and its cells."""
    decimal, thousands = draw(st.sampled_from(MARKS))
    numbers = st.decimals(-99999, 99999, places=draw(st.integers(0, 2)))
    codes = draw(st.lists(st.sampled_from([-9, 99, -1, 999999, *WORDS]), max_size=3, unique=True))
    units = draw(st.lists(st.sampled_from(UNITS), max_size=2, unique=True))
    sides = [("", "")] + [side for unit in units for side in ((unit, ""), ("", f" {unit}"), (f"{unit} ", ""))]

    def cell() -> str:
        if codes and draw(st.booleans()):
            code = draw(st.sampled_from(codes))
            written = code if isinstance(code, str) else write_number(Decimal(code), decimal, thousands)
            return f"{written} " if draw(st.booleans()) else written
        before, after = draw(st.sampled_from(sides))
        return before + write_number(draw(numbers), decimal, thousands) + after

    cells = [cell() for _ in range(draw(st.integers(1, 8)))]
    cells += ["x?"] if draw(st.booleans()) else []
    keys = {"na": codes} if codes else {}
    return {"decimal": decimal, "thousands": thousands}, keys | ({"unit": units} if units else {}), cells


def save_csv(columns: dict[str, list[str]], path: Path) -> Path:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=";").writerows([list(columns), *zip(*columns.values(), strict=True)])
    path.write_text(text.getvalue(), encoding="utf-8")
    return path


def save_workbook(columns: dict[str, list[str]], path: Path) -> Path:
    book = openpyxl.Workbook()
    for line in [list(columns), *zip(*columns.values(), strict=True)]:
        book.active.append(line)
    book.save(path)
    return path


def save_parquet(columns: dict[str, list[str]], path: Path) -> Path:
    parquet.write_table(pa.table(columns), path)
    return path


def read(source: Any, policy: dict[str, Any]) -> dict[str, list[Any]]:
    with DuckDB(SMALL) as engine:
        frame = engine.read(source, ("",), Policy.parse({"privacy": {"k": 2}, **policy}).form)
        return dict(collect_rows(engine, frame).to_pydict())


def to_values(cells: Sequence[Any], source: dict[str, Any], *, stored: bool) -> list[Any]:
    """Return numbers as numbers, however they are stored; a text is one if the column has no other text."""
    marks = ("." if stored else source["decimal"], "" if stored else source["thousands"])
    values = [plain_reading.parse_number(c, *marks) if isinstance(c, str) else c for c in cells]
    return [c if v is None else float(v) for c, v in zip(cells, values, strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "xlsx", "parquet", "frame"])
@settings(max_examples=cases(60, 100))
@given(written_columns())
def test_codes_and_units_are_read_as_in_the_plain_reading(tmp_path_factory: Any, kind: str, written: Any) -> None:
    source, keys, cells = written
    columns = {"id": [f"p{i}" for i in range(len(cells))], "x": cells}
    save = {"csv": save_csv, "xlsx": save_workbook, "parquet": save_parquet}
    path = tmp_path_factory.mktemp("forms") / f"t.{kind}"
    table = pa.table(columns) if kind == "frame" else save[kind](columns, path)
    policy = {"source": source, "columns": {"x": {"role": "other", **keys}}}
    found = read(table, policy)["x"]
    expected = [
        plain_reading.read_cell(cell, [*map(str, keys.get("na", ()))], keys.get("unit", ()), **source) for cell in cells
    ]
    numeric = all(value is None or isinstance(value, Decimal) for value in expected)
    if numeric:
        assert to_values(found, source, stored=True) == [None if v is None else float(v) for v in expected]
    else:  # a text stays as it is, without its unit
        assert [v is None for v in found] == [v is None for v in expected]
        shown = to_values(found, source, stored=False)
        assert shown == [float(v) if isinstance(v, Decimal) else v for v in expected]


TYPED = {
    "whole": [3, -9, 99, 5, None],
    "float": [3.5, -9.0, 99.0, 5.0, None],
    "date": ["2024-01-01", "1900-01-01", "2024-05-01", None, "2024-01-02"],
}


@pytest.mark.parametrize("make", [pa.table, pd.DataFrame, pl.DataFrame], ids=["arrow", "pandas", "polars"])
def test_codes_of_typed_columns_are_compared_as_numbers(make: Any) -> None:
    columns = {
        "whole": {"role": "other", "na": ["-9.0", "99"]},
        "float": {"role": "other", "na": [-9]},
        "date": {"role": "other", "na": ["1900-01-01"]},
    }
    table = make({**TYPED, "q": ["a", "a", "a", "b", "b"]})
    policy = {"privacy": {"k": 2}, "columns": {"q": {"role": "quasi"}, **columns}, "output": {"order": "kept"}}
    release = kinfold.anonymize(table, policy)
    found = pa.table(release.frame) if make is not pd.DataFrame else pa.Table.from_pandas(release.frame)
    assert found.column("whole").to_pylist() == [3, None, None, 5, None]
    assert found.column("float").to_pylist() == [3.5, None, 99.0, 5.0, None]
    assert found.column("date").to_pylist() == ["2024-01-01", None, "2024-05-01", None, "2024-01-02"]
    assert "'whole': 2 values are read as missing (-9, 99)" in release.plan.notes


@pytest.mark.parametrize("make", [pa.table, pd.DataFrame, pl.DataFrame], ids=["arrow", "pandas", "polars"])
def test_numbers_with_a_unit_are_averaged(make: Any) -> None:
    table = make({"cost": ["$1", "3 $", "$11", "$13"], "w": [1.5, 2.5, 3.5, 9.0]})
    columns = {"cost": {"role": "key", "unit": "$"}, "w": {"role": "weight", "round_to": 2}}
    release = kinfold.anonymize(table, {"privacy": {"k": 2}, "columns": columns})
    found = pa.table(release.frame) if make is not pd.DataFrame else pa.Table.from_pandas(release.frame)
    assert [*map(float, found.column("cost").to_pylist())] == [2, 2, 12, 12]
    assert found.column("w").to_pylist() == [2, 2, 6, 6]  # the mean of each class, rounded


def test_a_code_of_one_column_is_a_value_of_another(tmp_path: Path) -> None:
    path = save_csv({"age": ["-9", "41"], "temperature": ["-9", "12"]}, tmp_path / "t.csv")
    found = read(path, {"columns": {"age": {"role": "quasi", "na": -9}}})
    assert found == {"age": [None, "41"], "temperature": ["-9", "12"]}


TOTALS = st.sampled_from(
    ["Total", "total:", "Summe", "Sub-total of wards", "Ward 3 total", "Totalitarian", "a", "", "1"]
)


@pytest.mark.slow
@settings(max_examples=cases(60, 100))
@given(st.lists(st.lists(TOTALS, min_size=3, max_size=3), min_size=1, max_size=8))
@pytest.mark.parametrize("kind", ["csv", "xlsx", "parquet"])
def test_rows_of_totals_are_left_out_as_in_the_plain_reading(tmp_path_factory: Any, kind: str, rows: Any) -> None:
    rows = [["p", "q", "r"], *rows]
    kept = [row for row in rows if not plain_reading.is_total(row)]
    columns = {name: [row[i] for row in rows] for i, name in enumerate(("a", "b", "c"))}
    save = {"csv": save_csv, "xlsx": save_workbook, "parquet": save_parquet}[kind]
    path = save(columns, tmp_path_factory.mktemp("totals") / f"t.{kind}")
    found = read(path, {"source": {"skip_totals": True, "header": 1} if kind != "parquet" else {"skip_totals": True}})
    read_rows = [[value or "" for value in row] for row in zip(*found.values(), strict=True)]
    expected = [row for row in kept if kind == "parquet" or any(row)]  # an empty line is no row of a file
    assert [list(map(str, row)) for row in read_rows if kind == "parquet" or any(row)] == expected


def test_lines_of_totals_may_have_fewer_fields(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("age,zip,ill\n30,8001,no\n40,8002,yes\nTotal,70\nSource: registry\n")
    found = read(path, {"source": {"skip_totals": True}})
    assert found == {"age": ["30", "40"], "zip": ["8001", "8002"], "ill": ["no", "yes"]}


def test_rows_of_a_frame_are_never_left_out() -> None:
    with pytest.raises(PolicyError, match=r"source\.skip_totals is for files"):
        read(pa.table({"a": ["1", "Total"]}), {"source": {"skip_totals": True}})


KEYS = st.lists(st.text("ab*?", min_size=1, max_size=3), max_size=4, unique=True)


@given(KEYS, st.lists(st.text("ab", min_size=1, max_size=3), max_size=5, unique=True))
def test_patterns_match_as_the_shell_matches(keys: list[str], names: list[str]) -> None:
    from fnmatch import fnmatchcase

    matching = {n: [k for k in keys if {*k} & {*"*?"} and fnmatchcase(n, k)] for n in names if n not in keys}
    if any(len(patterns) > 1 for patterns in matching.values()):
        with pytest.raises(PolicyError, match="matches"):
            match_patterns(keys, names)
        return
    expected: dict[str, list[str]] = {}
    for name, patterns in matching.items():
        for pattern in patterns:
            expected.setdefault(pattern, []).append(name)
    assert match_patterns(keys, names) == expected
