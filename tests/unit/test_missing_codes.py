"""Codes for missing values and units: proposed by column, asked about in doubt, never a legitimate value."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import kinfold
from kinfold.policy.model import Policy
from kinfold.profiling.missing_codes import find_missing_codes
from kinfold.profiling.starter_policy import write_starter_policy
from kinfold.tables.duckdb.engine import DuckDB
from kinfold.tables.schema import Column, Storage, ValueStats
from small_tables import SMALL

ROWS = 800


def draw(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def plant(values: Sequence[Any], *codes: Any, count: int = 20) -> list[Any]:
    """Put each code into some rows, spread over the column."""
    planted = list(values)
    for at, code in enumerate(codes):
        for row in range(at, len(planted), len(planted) // count):
            planted[row] = code
    return planted


def count_values(values: Sequence[Any]) -> ValueStats:
    counts = Counter(map(str, values)).most_common()
    numbers = [float(value) for value in values if not isinstance(value, str)]
    return ValueStats(
        len(values),
        len(counts),
        low=min(numbers, default=0),
        high=max(numbers, default=0),
        values=tuple(value for value, _ in counts),
        counts=tuple(n for _, n in counts),
    )


def find(table: Mapping[str, Sequence[Any]], **labels: Mapping[str, str]) -> dict[str, tuple[tuple[str, ...], bool]]:
    """The codes of each column, and whether they are doubtful."""
    columns = []
    for name, values in table.items():
        kinds = {type(value) for value in values}
        storage = Storage.TEXT if str in kinds else Storage.NUMBER if float in kinds else Storage.INTEGER
        columns.append(Column(name, storage, len(values), labels=labels.get(name, {})))
    findings = find_missing_codes(columns, {name: count_values(values) for name, values in table.items()}, {})
    return {each.column: (each.codes, each.doubtful) for each in findings}


AGES = np.clip(draw(1).normal(48, 15, ROWS), 18, 88).astype(int).tolist()
INCOMES = draw(2).lognormal(8, 0.6, ROWS).astype(int).tolist()
WEEKS = draw(3).integers(0, 53, ROWS).tolist()
GRADES = draw(4).integers(1, 6, ROWS).tolist()
LAB = np.round(draw(5).gamma(4, 1.5, ROWS), 1).tolist()
DAYS = [str(np.datetime64("2020-01-01") + day) for day in range(ROWS)]
GERMAN_DAYS = [f"{day[8:]}.{day[5:7]}.{day[:4]}" for day in DAYS]

CERTAIN = {
    "age -9": ("age", plant(AGES, -9), ("-9",)),
    "age -1": ("Alter", plant(AGES, -1), ("-1",)),
    "an age of 999 in a survey": ("agea", plant(AGES, 999, count=1), ("999",)),
    "two ages of -9": ("age", plant(AGES, -9, count=2), ("-9",)),
    "age 999": ("edad", plant(AGES, 999, count=2), ("999",)),
    "unnamed -8 and -9": ("v7", plant(AGES, -8, -9), ("-9", "-8")),
    "income 999999": ("income", plant(INCOMES, 999_999), ("999999",)),
    "income -1": ("Einkommen", plant(INCOMES, -1), ("-1",)),
    "weeks 99": ("weeks", plant(WEEKS, 99), ("99",)),
    "weeks 98 and one 97": ("semaines", plant(plant(WEEKS, 98), 97, count=1), ("97", "98")),
    "grades 97 98 99": ("q3", plant(GRADES, 97, 98, 99), ("97", "98", "99")),
    "grades -9": ("q3", plant(GRADES, -9), ("-9",)),
    "grades 88 and 99": ("q3", plant(GRADES, 88, 99), ("88", "99")),
    "measurements 999": ("crp", plant(LAB, 999.0), ("999",)),
    "measurements -9": ("crp", plant(LAB, -9.0), ("-9",)),
    "years 9999": ("jahr", plant(draw(6).integers(1930, 2006, ROWS).tolist(), 9999), ("9999",)),
    "heights 99": ("groesse", plant(draw(7).integers(150, 196, ROWS).tolist(), 99), ("99",)),
    "a body mass index of 99.9": ("bmi", plant(LAB, 99.9), ("99.9",)),
    "measurements -9.9": ("crp", plant(LAB, -9.9), ("-9.9",)),
    "77 and 88 without 99": ("q3", plant(draw(23).integers(1, 11, ROWS).tolist(), 77, 88), ("77", "88")),
    "years 7777": ("yrbrn", plant(draw(24).integers(1930, 2008, ROWS).tolist(), 7777, count=5), ("7777",)),
    "a day that never comes": ("end", plant(DAYS, "9999-12-31", "9999-09-09", count=2), ("9999-09-09", "9999-12-31")),
    "a German day that never comes": ("bis", plant(GERMAN_DAYS, "31.12.9999"), ("31.12.9999",)),
    "the first day of a program": ("von", plant(DAYS, "1900-01-01", "1899-12-30"), ("1899-12-30", "1900-01-01")),
    "incomes -13": ("inkomen", plant(INCOMES, -13), ("-13",)),
    "floor areas 9999": ("Wohnfl_qm", plant(draw(29).gamma(20, 4, ROWS).astype(int).tolist(), 9999), ("9999",)),
    "visits -9": ("visits", plant(draw(8).integers(0, 12, ROWS).tolist(), -9), ("-9",)),
}
VALUES = {
    "an age of 99 at the end of a smooth tail": ("age", [*range(20, 100)] * 9 + [99]),
    "old ages without a name": ("v2", [int(age) for age in np.clip(draw(9).normal(70, 12, ROWS), 30, 101)]),
    "temperatures": ("temp", draw(10).normal(4, 5, ROWS).astype(int).tolist()),
    "temperatures just below zero": ("t2", np.clip(draw(10).normal(9, 4, ROWS), -1, 30).astype(int).tolist()),
    "scores up to 100": ("score", draw(11).integers(0, 101, ROWS).tolist()),
    "scores up to 99": ("v4", draw(12).integers(0, 100, ROWS).tolist()),
    "hours up to 99": ("hours", np.clip(draw(13).normal(42, 16, ROWS), 1, 99).astype(int).tolist()),
    "grades around zero": ("opinion", draw(14).integers(-2, 3, ROWS).tolist()),
    "one, zero, minus one": ("vote", draw(15).integers(-1, 2, ROWS).tolist()),
    "numbers of regions": ("region", plant(draw(16).integers(1, 17, ROWS).tolist(), 99)),
    "numbers of people": ("patient_id", [*range(1, 1000)]),
    "amounts that happen to be 999": ("price", plant(draw(17).integers(100, 3000, ROWS).tolist(), 999, count=4)),
    "losses": ("profit", draw(18).normal(50, 400, ROWS).astype(int).tolist()),
    "percentages up to 99.9": ("pct", np.clip(draw(25).normal(70, 14, ROWS), 1, 99.9).round(1).tolist()),
    "prices of 9.99": ("price", plant(draw(26).gamma(4, 3, ROWS).round(2).tolist(), 9.99, count=8)),
    "77 among ages": ("v3", draw(27).integers(20, 91, ROWS).tolist()),
    "777 among amounts": ("v5", plant(draw(28).integers(100, 700, ROWS).tolist(), 777)),
    "years of birth from 88 to 99": ("Jg", draw(30).integers(88, 100, ROWS).tolist()),
    "a birth on the first of 1900": ("born", [*DAYS, "1900-01-01", "1900-01-01"]),
    "numbers of eight digits": ("no", [f"{n}" for n in range(99_991_000, 99_991_300)] * 3),
    "yes and no": ("flag", draw(19).integers(0, 2, ROWS).tolist()),
}


@pytest.mark.parametrize(("name", "values", "codes"), CERTAIN.values(), ids=[*CERTAIN])
def test_a_code_that_stands_apart_is_proposed(name: str, values: list[Any], codes: tuple[str, ...]) -> None:
    assert find({name: values}) == {name: (codes, False)}


@pytest.mark.parametrize(("name", "values"), VALUES.values(), ids=[*VALUES])
def test_a_legitimate_value_is_no_code(name: str, values: list[Any]) -> None:
    assert find({name: values}) == {}


DOUBTS = {
    "99 close to the ages, but frequent": ("age", plant(AGES, 99, count=60), "99"),
    "an amount at the end of its range": ("capital_gain", plant([*range(100, 41_000, 51)], 99_999), "99999"),
    "ages of -1 next to newborns": ("age", plant(draw(20).integers(0, 90, ROWS).tolist(), -1, count=8), "-1"),
    "minus one child": ("children", plant(draw(21).integers(0, 9, ROWS).tolist(), -1), "-1"),
}


@pytest.mark.parametrize(("name", "values", "code"), DOUBTS.values(), ids=[*DOUBTS])
def test_a_number_that_may_be_a_value_is_a_question(name: str, values: list[Any], code: str) -> None:
    assert find({name: values}) == {name: ((code,), True)}


def test_columns_that_share_a_code_decide_for_each_other() -> None:
    table = {"age": plant(AGES, 99, count=60), "weeks": plant(WEEKS, 99), "grade": GRADES}
    assert find(table) == {"age": (("99",), False), "weeks": (("99",), False)}


WORDS = {
    "German": ["ja", "nein", "k.A.", "keine Angabe", "weiß nicht"],
    "English": ["daily", "never", "sometimes", "often", "refused", "don't know", "Unknown"],
    "signs": ["red", "green", "blue", ".", "?", "n/a"],
    "French": ["oui", "non", "ne sait pas"],
    "Spanish": ["sí", "no", "no contesta"],
}


@pytest.mark.parametrize("words", WORDS.values(), ids=[*WORDS])
def test_words_among_categories(words: list[str]) -> None:
    kept = {"ja", "nein", "daily", "never", "sometimes", "often", "red", "green", "blue", "oui", "non", "sí", "no"}
    expected = tuple(sorted(word for word in words if word not in kept))
    assert find({"x": words * 40}) == {"x": (expected, False)}


@pytest.mark.parametrize("words", [["none", "some", "many"], ["DE", "NA", "FR"], ["+", "-"], ["yes", "no"]], ids=str)
def test_words_that_may_be_categories(words: list[str]) -> None:
    assert find({"x": words * 40}) == {}


def test_value_labels_say_what_is_missing() -> None:
    labels = {"8": "Don't know", "9": "Refused", "1": "low"}
    assert find({"q": [1, 2, 3, 8, 9] * 50}, q=labels) == {"q": (("8", "9"), False)}


def write(folder: Path, table: dict[str, Any]) -> Path:
    pl.DataFrame(table).write_csv(folder / "t.csv", separator=";")
    return folder / "t.csv"


def test_the_starter_policy_reads_the_codes_of_each_column(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        {"age": plant(AGES, -9), "children": plant([0, 1, 2, 3, 4, 5, 6, 7] * 100, -1), "sex": ["f", "m"] * 400},
    )
    profile = kinfold.profile(path)
    assert [(c.na, c.missing) for c in profile.columns] == [(("-9",), 20), (("-1",), 20), ((), 0)]
    assert [(q.sets, q.answers) for q in profile.questions] == [("columns.children.na", ("[-1]", "none"))]
    policy = tomllib.loads(write_starter_policy(profile))
    assert [column.get("na") for column in policy["columns"].values()] == [[-9], [-1], None]
    assert not any("read as missing" in warning for warning in profile.warnings)


UNITS = {
    "dollars": (lambda v: f"${v:,.2f}", ("$",), {"thousands": ","}),
    "euros": (lambda v: f"{v:,.2f} €".translate(str.maketrans(",.", ".,")), ("€",), {"decimal": ",", "thousands": "."}),
    "thousands": (lambda v: f"{v:,.0f} EUR".replace(",", "."), ("EUR",), {"decimal": ",", "thousands": "."}),
    "kilograms": (lambda v: f"{v / 30:.0f} kg", ("kg",), {}),
    "percent": (lambda v: f"{v % 100:.0f}%", ("%",), {}),
    "pressures": (lambda v: f"{60 + v % 50:.0f} mmHg", ("mmHg",), {}),
    "two currencies": (lambda v: f"{v:.0f} {'EUR' if v % 2 < 1 else 'USD'}", ("EUR", "USD"), {}),
    "mostly with a unit": (lambda v: f"{v:.0f}{' h' if v % 3 < 2 else ''}", ("h",), {}),
}


@pytest.mark.slow
@pytest.mark.parametrize(("show", "unit", "marks"), UNITS.values(), ids=[*UNITS])
def test_numbers_with_a_unit_are_quantities(tmp_path: Path, show: Any, unit: tuple[str, ...], marks: Any) -> None:
    amounts = draw(22).lognormal(7.5, 0.5, ROWS)
    path = write(tmp_path, {"x": [show(amount) for amount in amounts], "age": AGES, "sex": ["f", "m"] * 400})
    profile = kinfold.profile(path)
    column = profile.columns[0]
    assert (column.kind, column.role, {*column.unit}) == ("continuous", "confidential", {*unit}), column.reason
    assert {key: value for key, value in profile.source.items() if key in ("decimal", "thousands")} == marks
    policy = Policy.parse(tomllib.loads(write_starter_policy(profile)))
    assert {*policy.columns["x"].unit} == {*unit}


def test_units_of_a_frame_are_parsed_too() -> None:
    amounts = draw(25).lognormal(7.5, 0.5, ROWS)
    frame = pl.DataFrame({"pay": [f"${v:,.2f}" for v in amounts], "age": AGES, "sex": ["f", "m"] * 400})
    profile = kinfold.profile(frame)
    assert [(c.kind, c.role) for c in profile.columns[:1]] == [("continuous", "confidential")]
    policy = tomllib.loads(write_starter_policy(profile))
    policy["method"] = {"name": "mdav"}
    released = kinfold.anonymize(frame, policy).frame
    assert sorted(map(float, released["pay"])) == sorted(np.round(amounts, 2).tolist())


@pytest.mark.parametrize(
    "values", [["P100", "P200", "P310"], ["12 A", "14 B", "16 C"], ["1012 AB", "1013 CD", "1014 EF"]]
)
def test_codes_have_no_unit(tmp_path: Path, values: list[str]) -> None:
    assert kinfold.profile(write(tmp_path, {"x": values * 50, "age": AGES[:150]})).columns[0].unit == ()


@pytest.mark.parametrize("ending", ["sav", "dta"])
def test_value_labels_of_a_file_are_kept_and_name_the_codes(tmp_path: Path, ending: str) -> None:
    pyreadstat = pytest.importorskip("pyreadstat")
    table = pl.DataFrame({"hours": plant([0, 1, 2, 3, 4, 5, 6, 7] * 20, 9), "sex": [1, 2] * 80}).to_pandas()
    labels = {"hours": {9: "Refused"}, "sex": {1: "male", 2: "female"}}
    getattr(pyreadstat, f"write_{ending}")(table, str(tmp_path / f"t.{ending}"), variable_value_labels=labels)
    with DuckDB(SMALL) as engine:
        schema = engine.schema(engine.read(tmp_path / f"t.{ending}"))
    assert [column.labels for column in schema] == [{"9": "Refused"}, {"1": "male", "2": "female"}]
    profile = kinfold.profile(tmp_path / f"t.{ending}")
    assert [(column.na, column.missing) for column in profile.columns] == [(("9",), 20), ((), 0)]
