"""Texts of cells: those that a spreadsheet would run, and those that look alike."""

from __future__ import annotations

import csv
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kinfold
from command import run, text
from everyday import pairwise
from kinfold import checker
from kinfold.tables.duckdb.engine import DuckDB
from kinfold.tables.queries import collect_rows
from kinfold.tables.source_form import SourceForm
from kinfold.tables.text_values import count_look_alikes, fold_text, is_formula, quote_columns, quote_formula
from small_tables import SMALL

TEXTS = st.text(st.sampled_from("'=+-@ \t\ra1.,e%\uff1d\uff0b\u00a0\n"), max_size=6)
FORMULAS = ["=1+1", "+A1", "-A1", "@SUM(A1)", " =1", "\t=1", "\r=1", "=cmd|' /C calc'!A0", "\uff1d1+1", "-5-3", "- 5"]
HARMLESS = ["-5", "+5.5", "-1,234.5", "-1e9", " -5 ", "5-3", "a=b", "-", "--", "=", "", "'=1", "-inf", "+3%", "x@y.org"]


def test_formulas_and_what_is_none() -> None:
    assert [cell for cell in FORMULAS if not is_formula(cell) or quote_formula(cell) != f"'{cell}"] == []
    assert [cell for cell in HARMLESS if is_formula(cell)] == []


@given(st.sets(TEXTS))
def test_quoting_keeps_values_apart_and_can_be_undone(cells: set[str]) -> None:
    assert len({quote_formula(cell) for cell in cells}) == len(cells)
    assert {checker.unquote(quote_formula(cell)) for cell in cells} == cells
    assert checker.unquote("'tis") == "'tis"
    assert not any(is_formula(quote_formula(cell)) for cell in cells)


@pytest.mark.slow
@settings(max_examples=25)
@given(st.lists(TEXTS, min_size=1, max_size=30))
def test_files_and_frames_are_quoted_as_python_quotes(cells: list[str]) -> None:
    rows = pa.table({"a": cells, "n": [-1] * len(cells)})
    quoted = [quote_formula(cell) for cell in cells]
    assert quote_columns(rows).column("a").to_pylist() == quoted
    with DuckDB(SMALL) as engine, TemporaryDirectory() as folder:
        frame, file = engine.read(rows), Path(folder) / "t.parquet"
        engine.write(frame, file, engine.schema(frame), ordered=False, quoted=True)
        written, back = engine.read(file), engine.read(file, form=SourceForm(quoted=True))
        assert engine.schema(frame)["a"].formulas == sum(map(is_formula, cells))
        assert engine.schema(written)["a"].formulas == 0
        assert collect_rows(engine, written).column("a").to_pylist() == quoted
        assert collect_rows(engine, written).column("n").type == pa.int64()
        assert collect_rows(engine, back).equals(collect_rows(engine, frame))
        assert back.formulas == (("a", 0),)
        assert engine.read(rows, form=SourceForm(quoted=True)).formulas == (("a", sum(map(is_formula, cells))),)


DISEASES = ["=flu", "'=flu", "+cold", "-gout", "=flu", "'=flu", "+cold", "-gout"] * 3
TREE = {"=lung": ["=flu", "'=flu"], "rest": ["+cold", "-gout"]}


def people() -> dict[str, list[Any]]:
    zips = ["@a1", "@a2", "b1", "b2"] * 6
    return {"zip": zips, "age": [-1, -2, 3, 4, 5, 6, 7, 8] * 3, "disease": DISEASES, "note": ["=x", "y", "-3"] * 8}


def asked(method: str = "mdav", safe: bool = True, **disease: Any) -> dict[str, Any]:
    tree = {"@": ["@a1", "@a2"], "b": ["b1", "b2"]}
    columns = {
        "zip": {"role": "quasi", "type": "nominal", "hierarchy": {"tree": tree}},
        "age": {"role": "quasi", "type": "continuous", "hierarchy": {"intervals": [5], "origin": -5}},
        "disease": {"role": "confidential", **disease},
        "note": {"role": "other"},
    }
    output = {"spreadsheet_safe": safe, "others": "refuse"}
    return {"privacy": {"k": 3, "l": 2, "t": 0.9}, "method": {"name": method}, "columns": columns, "output": output}


HELD = {
    "nominal": {},
    "ordered": {"type": "ordinal", "order": ["=flu", "'=flu", "+cold", "-gout"]},
    "in a tree": {"hierarchy": {"tree": TREE}},
}


@pairwise(held=[*HELD], method=["mdav", "mingen-cell", "datafly"], form=["csv", "parquet"])
def test_a_safe_release_has_no_formula_and_verifies(held: str, method: str, form: str, tmp_path: Path) -> None:
    policy = asked(method, **HELD[held])
    policy["output"]["format"] = form
    release = kinfold.anonymize(pa.table(people()), policy)
    release.save(tmp_path / "out")
    file = tmp_path / "out" / "public" / f"release.{form}"
    with DuckDB(SMALL) as engine:
        rows = collect_rows(engine, engine.read(file))
    cells = [cell for name in rows.column_names for cell in rows.column(name).to_pylist() if isinstance(cell, str)]
    assert any(cell.startswith("'") for cell in cells)
    assert not any(is_formula(cell) for cell in cells)
    assert set(rows.column("disease").to_pylist()) == {quote_formula(text) for text in DISEASES}
    assert run("verify", tmp_path / "out", "--twice").code == 0
    assert checker.check_release(file.parent)["holds"]
    assert kinfold.verify(file.parent, spreadsheet_safe=True).holds  # with the order and the hierarchy as certified
    assert kinfold.verify(file.parent, policy).holds
    found = kinfold.verify(file, policy, twice=True)
    assert found.to_dict() == release.verdict.to_dict()
    assert found.holds


@pytest.mark.slow
@pytest.mark.parametrize("method", ["mdav", "mingen-cell"])
def test_quoting_changes_neither_promises_nor_measures(method: str) -> None:
    table = pa.table(people())
    safe, plain = (kinfold.anonymize(table, asked(method, safe=safe, **HELD["ordered"])) for safe in (True, False))
    assert safe.verdict.to_dict() == plain.verdict.to_dict()
    assert safe.measures["loss"] == plain.measures["loss"]
    again = kinfold.measure(table, safe.frame, asked(method, **HELD["ordered"]))
    assert again["loss"] == plain.measures["loss"]


def test_a_database_holds_texts_as_they_are(tmp_path: Path) -> None:
    pytest.importorskip("adbc_driver_sqlite")
    release, address = kinfold.anonymize(pa.table(people()), asked()), f"sqlite:///{tmp_path / 'out.db'}?table=people"
    release.save(tmp_path / "out", into=address)
    with closing(sqlite3.connect(tmp_path / "out.db")) as database:
        cells = [row[0] for row in database.execute("SELECT disease FROM people")]
    assert sorted(cells) == sorted(DISEASES)
    assert kinfold.verify(address, asked()).holds
    assert kinfold.measure(pa.table(people()), address, asked()).warnings


@pytest.mark.parametrize("kind", ["text", "categories", "ordered"])
def test_frames_are_quoted_whatever_holds_their_texts(kind: str) -> None:
    frame = pd.DataFrame(people())
    names = sorted(set(DISEASES))
    if kind != "text":
        frame["disease"] = pd.Categorical(frame["disease"], names, ordered=kind == "ordered")
    result = kinfold.anonymize(frame, asked()).frame
    assert result["disease"].tolist() == [quote_formula(text) for text in DISEASES]
    if kind != "text":
        assert result["disease"].cat.categories.tolist() == [quote_formula(name) for name in names]
        assert result["disease"].cat.ordered == (kind == "ordered")


def test_columns_of_other_types_stay_as_they_are_beside_quoted_ones() -> None:
    frame = pd.DataFrame(people())
    frame["note"] = pd.Series([True, None, False] * 8, dtype=object)
    frame["day"] = pd.date_range("2024-01-01", periods=24, tz="Europe/Berlin", unit="us")
    frame["part"] = pd.Categorical([3, 1, 2] * 8, [3, 2, 1])
    frame.index = pd.interval_range(0, 24)
    policy = asked()
    policy["output"]["others"] = "release"
    result = kinfold.anonymize(frame, policy).frame
    assert result["disease"].tolist() == [quote_formula(text) for text in DISEASES]
    pd.testing.assert_frame_equal(result[["note", "day", "part"]], frame[["note", "day", "part"]])


@pytest.mark.parametrize("kind", [pl.String, pl.Categorical, pl.Enum(sorted(set(DISEASES)))])
def test_polars_frames_are_quoted(kind: Any) -> None:
    frame = pl.DataFrame(people()).with_columns(pl.col("disease").cast(kind))
    result = kinfold.anonymize(frame, asked()).frame
    assert result["disease"].to_list() == [quote_formula(text) for text in DISEASES]


def test_arrow_dictionaries_are_quoted() -> None:
    table = pa.table({**people(), "disease": pa.array(DISEASES).dictionary_encode()})
    result = kinfold.anonymize(table, asked()).frame
    assert result.schema.field("disease").type == table.schema.field("disease").type
    assert result.column("disease").to_pylist() == [quote_formula(text) for text in DISEASES]


def test_formulas_are_told_everywhere_with_counts_and_without_values(tmp_path: Path) -> None:
    release = kinfold.anonymize(pa.table(people()), asked(safe=False))
    notes = [note for note in release.measures.warnings if "formula" in note]
    assert any(note.startswith("'disease': 18 cells start like a formula") for note in notes)
    assert any(note.startswith("'note': 8 cells") and "spreadsheet_safe = true" in note for note in notes)
    assert not any("=flu" in note or "=x" in note for note in notes)
    release.save(tmp_path / "out")
    for page in (tmp_path / "out").glob("*/report.html"):
        assert "18 cells start like a formula" in page.read_text()
    warned = kinfold.profile(pa.table(people())).warnings
    assert any("'note': 8 cells start like a formula" in warning for warning in warned)


def test_a_table_with_formulas_is_not_what_a_safe_policy_promises() -> None:
    raw = kinfold.anonymize(pa.table(people()), asked(safe=False)).frame
    assert kinfold.verify(raw, asked(safe=False)).holds
    found = kinfold.verify(raw, asked())
    assert not found.holds
    assert any("'disease': 18 cells start like a formula" in problem.what for problem in found.problems)


def test_a_safe_release_says_what_was_quoted(tmp_path: Path) -> None:
    release = kinfold.anonymize(pa.table(people()), asked())
    assert any("an apostrophe is written before each" in note for note in release.measures.warnings)
    release.save(tmp_path / "out")
    assert "like a formula" not in (tmp_path / "out" / "public" / "report.html").read_text()


def test_the_command_tells_and_quotes(tmp_path: Path) -> None:
    lines = [",".join(map(str, row)) for row in zip(*people().values(), strict=True)]
    data = text(tmp_path, "t.csv", "\n".join(["zip,age,disease,note", *lines]) + "\n")
    roles = ("--quasi", "age", "--confidential", "disease", "--others", "release", "-k", 3)
    ran = run("anonymize", data, *roles, "--out", tmp_path / "plain")
    assert "'disease': 18 cells start like a formula" in ran.out
    ran = run("anonymize", data, *roles, "--out", tmp_path / "safe", "--set", "output.spreadsheet_safe=true")
    assert ran.code == 0, ran.err
    with (tmp_path / "safe" / "public" / "release.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["disease"] for row in rows} == {quote_formula(cell) for cell in DISEASES}
    assert {row["note"] for row in rows} == {"'=x", "y", "-3"}  # numbers are no formulas


def test_a_column_whose_name_is_a_formula(tmp_path: Path) -> None:
    table = pa.table({"=age": [1, 2, 3, 4]})
    policy = {"privacy": {"k": 2}, "columns": {"=age": {"role": "quasi"}}}
    assert any("name of the column '=age'" in each for each in kinfold.profile(table).warnings)
    release = kinfold.anonymize(table, policy)
    assert any("name of the column '=age'" in each for each in release.measures.warnings)
    with pytest.raises(kinfold.PolicyError, match=r"spreadsheet_safe: the name of the column '=age'[\s\S]*rename"):
        kinfold.anonymize(table, {**policy, "output": {"spreadsheet_safe": True}})


# Values that look alike make a class seem diverse: counted and told, never shown.


ALIKE = [
    ("HIV", "hiv"),
    ("HIV", "HIV "),
    ("HIV", "\tHIV"),
    ("HIV", "HIV\u00a0"),
    ("HIV", "H\u200bIV"),
    ("HIV", "\ufeffHIV"),
    ("HIV", "HI\u00adV"),
    ("HIV", "\uff28\uff29\uff36"),
    ("Straße", "STRASSE"),
    ("caf\u00e9", "cafe\u0301"),
    ("\ufb01sh", "fish"),
    ("lung cancer", "Lung\u00a0 Cancer"),
    ("\u212b", "\u00e5"),
    ("a\ufe0f", "a"),
    ("\u2126", "\u03c9"),
]
APART = [("HIV", "HIV-1"), ("flu", "flux"), ("e", "\u00e9"), ("1", "1.0"), ("ab", "a b"), ("", "x")]


def test_values_that_look_alike_and_those_that_do_not() -> None:
    assert [pair for pair in ALIKE if fold_text(pair[0]) != fold_text(pair[1])] == []
    assert [pair for pair in APART if fold_text(pair[0]) == fold_text(pair[1])] == []


def test_groups_values_and_records_are_counted() -> None:
    found = count_look_alikes({"HIV": 5, "hiv": 2, "HIV ": 1, "flu": 9, "Cold": 1, "cold": 1})
    assert (found.groups, found.values, found.records) == (2, 5, 10)

    found = count_look_alikes({f"value {i}": 1 for i in range(200_000)} | {"Value 7": 2, "VALUE 9 ": 3})
    assert (found.groups, found.values, found.records) == (2, 4, 7)


DISEASE = ["HIV", "hiv", "HIV ", "flu", "flu", "cold", "Gout", "gout"] * 2
TOLD = "'disease': 5 values in 2 groups differ only in case"


def table() -> pa.Table:
    return pa.table({"age": list(range(16)), "disease": DISEASE, "note": ["x", "X"] * 8})


def policy(**disease: Any) -> dict[str, Any]:
    columns = {
        "age": {"role": "quasi", "type": "continuous"},
        "disease": {"role": "confidential", **disease},
        "note": {"role": "other"},
    }
    return {"privacy": {"k": 4, "l": 2}, "method": {"name": "mdav"}, "columns": columns}


@pytest.mark.parametrize(
    "disease", [{}, {"type": "ordinal", "order": sorted(set(DISEASE))}], ids=["nominal", "ordinal"]
)
def test_look_alikes_are_told_in_both_reports_and_to_the_caller(disease: Any, tmp_path: Path) -> None:
    release = kinfold.anonymize(table(), policy(**disease))
    told = [warning for warning in release.measures.warnings if "differ only in case" in warning]
    assert len(told) == 1  # nobody tells the notes apart
    assert told[0].startswith(TOLD)
    assert "(10 records)" in told[0]
    assert not any(value in told[0] for value in ("HIV", "hiv", "Gout", "gout"))
    release.save(tmp_path / "out")
    for page in (tmp_path / "out").glob("*/report.html"):
        assert "5 values in 2 groups differ only in case" in page.read_text()


def test_quasi_identifiers_that_look_alike_are_told_too() -> None:
    asked = {"privacy": {"k": 2}, "columns": {"city": {"role": "quasi"}}}
    release = kinfold.anonymize(pa.table({"city": ["Ulm", "ulm", "Ulm", "ulm"]}), asked)
    assert any("'city': 2 values in 1 group" in warning for warning in release.measures.warnings)


def test_the_public_page_speaks_of_what_is_released_only(tmp_path: Path) -> None:
    ages = [None if value == "hiv" else i for i, value in enumerate(DISEASE)]
    rows = table().set_column(0, "age", pa.array(ages, pa.int64()))
    asked = policy()
    asked["columns"]["age"]["missing"] = "drop"
    kinfold.anonymize(rows, asked).save(tmp_path / "out")
    assert "4 values in 2 groups" in (tmp_path / "out" / "public" / "report.html").read_text()
    assert "5 values in 2 groups" in (tmp_path / "out" / "internal" / "report.html").read_text()


def test_a_profile_and_the_console_warn(tmp_path: Path) -> None:
    assert any(warning.startswith(TOLD) for warning in kinfold.profile(table()).warnings)
    lines = [f"{age},{disease}" for age, disease in enumerate(DISEASE)]
    data = text(tmp_path, "t.csv", "\n".join(["age,disease", *lines]) + "\n")
    assert TOLD in run("profile", data).out
    ran = run("anonymize", data, "--quasi", "age", "--confidential", "disease", "-k", 4, "--out", tmp_path / "out")
    assert TOLD in ran.out
