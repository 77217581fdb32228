"""Layouts of files: titles, two headers, units, row names, totals and footers, in CSV files and workbooks."""

from __future__ import annotations

import csv
import tomllib
from pathlib import Path
from typing import Any

import openpyxl
import pytest

import kinfold
from command import run
from everyday import first
from kinfold.errors import DataError
from kinfold.profiling.starter_policy import write_starter_policy

NAMES = ["id", "age", "sex", "income"]
PEOPLE = [[100_001 + 7 * i, 20 + i * 7 % 60, "fm"[i % 2], 1_000 + 37 * i] for i in range(60)]
GERMAN = ["Nr", "Alter", "Geschlecht", "Einkommen"]

LAYOUTS: dict[str, tuple[list[list[Any]], dict[str, Any]]] = {
    "plain": ([NAMES, *PEOPLE], {}),
    "title": ([["Patients of 2024"], ["do not share"], [], NAMES, *PEOPLE], {"header": 4}),
    "title in German": ([["Auszug, Stand: heute"], GERMAN, *PEOPLE], {"header": 2}),
    "groups": ([[None, "person", None, "money"], NAMES, *PEOPLE], {"header": 2}),
    "repeated groups": ([["key", "person", "person", "money"], NAMES, *PEOPLE], {"header": 2}),
    "title and groups": ([["Survey"], [None, "person", None, "money"], NAMES, *PEOPLE], {"header": 3}),
    "units": ([NAMES, [None, "years", None, "EUR"], *PEOPLE], {"header": 1, "skip": 2}),
    "long names": ([NAMES, ["number", "age in years", "sex at birth", "monthly"], *PEOPLE], {"header": 1, "skip": 2}),
    "title and units": ([["Survey"], [], NAMES, ["", "(y)", "", "[EUR]"], *PEOPLE], {"header": 3, "skip": 4}),
    "units of a date and an amount": (
        [
            NAMES,
            [None, "DD.MM.YYYY", None, "net"],
            *([a, f"{b % 28 + 1}.03.1980", c, f"{d} EUR"] for a, b, c, d in PEOPLE),
        ],
        {"header": 1, "skip": 2},
    ),
    "one unit": ([NAMES, [None, None, None, "[EUR]"], *PEOPLE], {"header": 1, "skip": 2}),
    "total": ([NAMES, *PEOPLE, ["Total", None, None, 125_430]], {"skip_totals": True}),
    "subtotals": (
        [NAMES, *PEOPLE[:30], ["Subtotal north", None, None, 1], *PEOPLE[30:], ["Gesamt:", None, None, 2]],
        {"skip_totals": True},
    ),
    "means": (
        [NAMES, *PEOPLE, ["Gesamttotal", None, None, 125_430], ["Mittelwert", 41, None, 2_090]],
        {"skip_totals": True},
    ),
    "joined files": ([NAMES, *PEOPLE[:30], NAMES, *PEOPLE[30:]], {"skip_totals": True}),
    "footer": ([NAMES, *PEOPLE, [], ["Source: the office, own figures"]], {"skip_totals": True}),
    "title and footer": ([["Bericht"], NAMES, *PEOPLE, ["Quelle: Amt"]], {"header": 2, "skip_totals": True}),
}


def save(folder: Path, rows: list[list[Any]], kind: str) -> Path:
    """A file with these rows; short rows of a CSV file stay short."""
    path = folder / f"t.{kind}"
    if kind == "xlsx":
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(row)
        book.save(path)
    else:
        separator = ";" if kind == "txt" else ","
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, delimiter=separator).writerows(rows)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("kind", first(["csv", "txt", "xlsx"], 2))
@pytest.mark.parametrize(("rows", "keys"), LAYOUTS.values(), ids=[*LAYOUTS])
def test_profile_proposes_the_layout(tmp_path: Path, rows: list[list[Any]], keys: dict[str, Any], kind: str) -> None:
    path = save(tmp_path, rows, kind)
    profile = kinfold.profile(path)
    assert {key: profile.source[key] for key in ("header", "skip", "skip_totals") if key in profile.source} == keys
    assert (profile.rows, len(profile.columns)) == (60, 4)
    assert {column.kind for column in profile.columns[1::2]} <= {"continuous", "date"}
    assert not keys or "guessed:" in profile.readings[0]
    assert not any("skip_totals" in warning for warning in profile.warnings)
    source = tomllib.loads(write_starter_policy(profile)).get("source", {})
    read = kinfold.profile(path, **source)
    assert (read.rows, [c.name for c in read.columns]) == (60, [c.name for c in profile.columns])


@pytest.mark.parametrize(
    ("layout", "message", "fix"),
    [
        ("title", "line 4 looks like the header, not line 1", "source.header = 4"),
        ("groups", "line 2 looks like the header", "source.header = 2"),
        ("units", "line 2, below the header, looks like units", "source.header = 1 (--header) and source.skip = 2"),
        ("footer", "1 line looks like a total or a footer", "source.skip_totals = true (--skip-totals)"),
    ],
)
def test_other_commands_name_the_keys_to_set(tmp_path: Path, layout: str, message: str, fix: str) -> None:
    path = save(tmp_path, LAYOUTS[layout][0], "csv")
    result = run("anonymize", path, "--quasi", "age,sex", "-k", "3", "--others", "drop", "--out", tmp_path / "out")
    assert result.code == 3
    assert message in result.err
    assert fix in result.err
    assert result.err.count("error:") == 1


def test_a_declared_line_is_the_header(tmp_path: Path) -> None:
    path = save(tmp_path, LAYOUTS["units"][0], "csv")
    assert kinfold.profile(path, header=1).rows == 61


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_a_first_column_without_a_name_has_row_names(tmp_path: Path, kind: str) -> None:
    profile = kinfold.profile(save(tmp_path, [["", *NAMES[1:]], *PEOPLE], kind))
    assert [column.name for column in profile.columns] == ["row_names", "age", "sex", "income"]
    assert (profile.rows, profile.columns[0].role) == (60, "identifier")


def test_a_header_without_the_row_names_of_r(tmp_path: Path) -> None:
    rows = [["row_names", "age", "sex"], *([i, *person[1:]] for i, person in enumerate(PEOPLE, 1))]
    profile = kinfold.profile(save(tmp_path, rows, "csv"))
    assert [column.name for column in profile.columns] == ["row_names_", "row_names", "age", "sex"]
    assert profile.rows == 60


@pytest.mark.parametrize(
    "lines",
    [
        ["id,age", *(f"{i},{20 + i},f" for i in range(1, 9))],  # the last column has no name
        ["age,sex", *(f"{i * 7},{20 + i},f" for i in range(1, 9))],  # the records are not numbered
    ],
)
def test_a_header_with_a_field_less_is_refused_if_the_records_are_not_numbered(
    tmp_path: Path, lines: list[str]
) -> None:
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n", "utf-8")
    with pytest.raises(DataError, match="another number of fields"):
        kinfold.profile(tmp_path / "t.csv")


def test_records_that_end_with_a_separator_have_no_row_names(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age,sex\n" + "".join(f"{i},f,\n" for i in range(1, 9)), "utf-8")
    assert [(c.name, c.distinct) for c in kinfold.profile(tmp_path / "t.csv").columns] == [("age", 8), ("sex", 1)]


ORDINARY: dict[str, list[list[Any]]] = {
    "a record with missing words": [NAMES, ["1", "NA", "f", "k.A."], *PEOPLE],
    "only text": [["town", "word"], ["Ulm", "a"], ["Bonn", "b"], ["Ulm", "b"], ["Bonn", "a"], ["Ulm", "a"]],
    "a category called total": [["group", "n"], *([["total", "part"][i % 2], i] for i in range(60))],
    "records with one value": [NAMES, *PEOPLE, ["P61", None, None, None]],
    "years as names": [["land", "2019", "2020"], ["a", 1, 2], ["b", 3, 4], ["c", 5, 6], ["d", 7, 8]],
}


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
@pytest.mark.parametrize("rows", ORDINARY.values(), ids=[*ORDINARY])
def test_ordinary_tables_are_read_as_they_are(tmp_path: Path, rows: list[list[Any]], kind: str) -> None:
    profile = kinfold.profile(save(tmp_path, rows, kind))
    assert {"header", "skip", "skip_totals"}.isdisjoint(profile.source)
    assert profile.rows == len(rows) - 1


def test_a_gap_in_the_header_is_still_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="column 2 has no name"):
        kinfold.profile(save(tmp_path, [["id", "", "sex", "income"], *PEOPLE], "csv"))


@pytest.mark.compiled
def test_the_file_of_an_office_is_released_by_its_unedited_policy(tmp_path: Path) -> None:
    jobs = ["teacher", "nurse", "clerk", "keine Angabe"]
    rows: list[list[Any]] = [["Staff of the town"], [], ["Nr", "Alter", "Geschlecht", "Beruf", "Gehalt", "Konfession"]]
    rows += [[None, "Jahre", None, None, "brutto", None]]
    for i in range(200):
        pay = "k.A." if i % 40 == 0 else f"{1 + i % 7}.{100 + i * 37 % 900} EUR"
        rows.append(
            [i + 1, -9 if i % 25 == 0 else 20 + i * 7 % 45, "mw"[i % 2], jobs[i % 4], pay, ["rk", "ev", "ohne"][i % 3]]
        )
    rows += [["Gesamt", None, None, None, "700.000 EUR", None], ["Quelle: Amt"]]
    path = save(tmp_path, rows, "txt")
    run("profile", path, "--write-policy", tmp_path / "policy.toml").ok()
    run("anonymize", path, "--policy", tmp_path / "policy.toml", "--accept-proposal", "--out", tmp_path / "out").ok()
    with (tmp_path / "out/public/release.csv").open(newline="", encoding="utf-8") as file:
        released = list(csv.DictReader(file, delimiter=";"))
    assert len(released) == 200
    assert [*released[0]] == ["Alter", "Geschlecht", "Beruf", "Gehalt", "Konfession"]
    assert all(20 <= float(row["Alter"]) < 65 for row in released if row["Alter"])
    assert {row["Beruf"] for row in released} <= {"teacher", "nurse", "clerk", ""}
    assert sum(row["Gehalt"] == "" for row in released) == 5
    assert all(float(row["Gehalt"]) >= 1_100 for row in released if row["Gehalt"])
