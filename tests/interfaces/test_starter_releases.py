"""A steward's own file: profiled, and released by the policy that came of it, unedited, as a statistician would accept.

identifiers      gone
weights          gone
codes            categories that the table had, whether written 3 or 3.0
numbers, dates   within the range that the table had, with no more decimals
confidential     as they were, and promised about by t or l
"""

import csv
import tomllib
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from command import run
from reference.public_data import found
from unprepared_tables import TABLES, hospital, with_nulls

pytestmark = [pytest.mark.compiled, pytest.mark.slow]

IDENTIFIERS = {"sdcmicro_testdata.csv": {"ori_hid"}}
WEIGHTS = {
    "free1.csv": {"WEIGHT"},
    "sdcmicro_testdata.csv": {"sampling_weight", "household_weights"},
    "francdat.csv": {"w"},
}
POPULATION = {"free1.csv": "WEIGHT", "sdcmicro_testdata.csv": "sampling_weight", "francdat.csv": "w"}
NUMBERS = {  # everything else is a code, a weight or a number of a household
    "free1.csv": {"AGE", "INCOME", "MONEY", "ASSETS", "DEBTS"},
    "sdcmicro_testdata.csv": {"age", "expend", "income", "savings"},
    "francdat.csv": {"Num1", "Num2", "Num3"},
    "adult/adult.csv": {"age"},
}
CONFIDENTIAL = {
    "free1.csv": {"INCOME", "ASSETS", "DEBTS"},  # MONEY is determined by REGION
    "sdcmicro_testdata.csv": {"expend", "income", "savings"},
    "francdat.csv": {"Num1", "Num2"},
    "adult/adult.csv": {"salary-class"},
}

Columns = dict[str, list[str]]


def table(path: Path) -> Columns:
    """The columns of a CSV file, as text."""
    with path.open(newline="", encoding="utf-8") as lines:
        separator = ";" if ";" in lines.readline() else ","
        lines.seek(0)
        names, *rows = csv.reader(lines, delimiter=separator)
    return {name: [row[at] if row else "" for row in rows] for at, name in enumerate(names)}


def released(data: Path, folder: Path) -> tuple[dict[str, Any], Columns]:
    """Profile a file, release it by the policy that was written, and return the policy and the release."""
    policy, out = folder / "policy.toml", folder / "release"
    assert run("profile", data, "--write-policy", policy).code == 0
    run("anonymize", data, "--policy", policy, "--out", out, "--accept-proposal").ok()
    assert run("verify", out / "public").code == 0
    return tomllib.loads(policy.read_text()), table(out / "public" / "release.csv")


def accept(before: Columns, after: Columns, policy: dict[str, Any]) -> None:
    """Go through the columns as somebody would who knows what they mean."""
    kept = len(next(iter(after.values())))
    for name, column in policy["columns"].items():
        if column["role"] in ("identifier", "remove", "weight"):
            assert name not in after
        elif column.get("average") == "generalize":
            assert column["hierarchy"], f"{name} cannot be generalized"
        elif column["role"] == "quasi-identifier":
            likely(name, before[name], after[name], column["type"])
        else:
            gone = Counter(before[name]) - Counter(after[name])
            assert sum(gone.values()) == len(before[name]) - kept, f"{name} was changed"
        if column["role"] == "confidential":
            assert column.get("t") or column.get("l"), f"{name} is protected by k alone"


def likely(name: str, before: list[str], after: list[str], kind: str) -> None:
    """Every value is one that the column could have had."""
    if kind in ("nominal", "ordinal"):
        assert set(after) <= set(before) | {""}, f"{name} has categories that were not there"
    elif kind == "date":
        assert min(filter(None, before)) <= min(filter(None, after)), name
        assert max(filter(None, after)) <= max(filter(None, before)), name
    else:
        was, now = ([Decimal(value) for value in side if value] for side in (before, after))
        assert min(was) <= min(now), name
        assert max(now) <= max(was), name
        assert max(map(decimals, now)) <= max(map(decimals, was)), f"{name} has decimals that it had not"


def decimals(number: Decimal) -> int:
    """Digits behind the point that say something: 43.0 has none."""
    return max(0, -int(number.normalize().as_tuple().exponent))


@pytest.mark.parametrize("planted", [False, True], ids=["as it is", "with nulls"])
@pytest.mark.parametrize("name", CONFIDENTIAL)
def test_a_statistician_accepts_what_the_starter_policy_releases(name: str, planted: bool, tmp_path: Path) -> None:
    data = found(name)
    if planted:
        separator = ";" if name.startswith("adult") else ","
        data = tmp_path / "planted.csv"
        original = pl.read_csv(found(name), separator=separator, infer_schema=False, n_rows=2_000)
        with_nulls(original).write_csv(data, separator=separator)
    policy, after = released(data, tmp_path)
    accept(table(data), after, policy)
    columns = policy["columns"]
    protected = {column for column, keys in columns.items() if keys["role"] == "confidential"}
    assert protected == CONFIDENTIAL[name]
    weights, identifiers = WEIGHTS.get(name, set()), IDENTIFIERS.get(name, set())
    assert {columns[column]["role"] for column in identifiers} <= {"identifier"}
    assert {columns[column]["role"] for column in weights} <= {"weight"}
    assert policy.get("report", {}).get("sampling_weights") == POPULATION.get(name)
    codes = set(columns) - NUMBERS[name] - weights - identifiers
    assert {columns[column].get("type", "nominal") for column in codes} == {"nominal"}
    quasi = {column for column, keys in columns.items() if keys["role"] == "quasi-identifier"}
    assert 3 <= len(quasi) <= 9  # eight, and one that another determines


@pytest.mark.parametrize("planted", [False, True], ids=["as it is", "with nulls"])
@pytest.mark.parametrize("name", TABLES)
def test_tables_that_nobody_prepared_are_released(name: str, planted: bool, tmp_path: Path) -> None:
    made = with_nulls(TABLES[name]()) if planted and name != "three rows" else TABLES[name]()
    data = tmp_path / "table.csv"
    made.write_csv(data, separator=";" if name == "german survey" else ",")
    policy, after = released(data, tmp_path)
    accept(table(data), after, policy)


def test_a_patient_with_several_stays_is_counted_once(tmp_path: Path) -> None:
    data = tmp_path / "stays.csv"
    hospital().write_csv(data)
    policy, after = released(data, tmp_path)
    assert policy["privacy"]["unit"] == "patient_id"
    assert {"patient_id", "remark"}.isdisjoint(after)
    assert policy["columns"]["icd"]["role"] == "confidential"
    assert policy["columns"]["icd"]["hierarchy"]["levels"]
    assert policy["columns"]["admission"]["hierarchy"]["dates"] == ["month", "quarter", "year"]
    assert policy["columns"]["zip"]["hierarchy"] == {"mask": 5}


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_a_table_of_hardly_any_records_ends_with_a_reason(rows: int, tmp_path: Path) -> None:
    data = tmp_path / "few.csv"
    data.write_text("age,sex\n" + "31,f\n" * rows)
    profiled = run("profile", data, "--write-policy", tmp_path / "policy.toml")
    assert profiled.code in (0, 3)
    if profiled.code == 0:
        ran = run("anonymize", data, "--policy", tmp_path / "policy.toml", "--out", tmp_path / "release")
        assert ran.code in ((0,) if rows >= 2 else (2, 3, 4))
        assert ran.code == 0 or "fix:" in ran.err
