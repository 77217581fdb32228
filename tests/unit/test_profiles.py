"""Profiles and starter policies: what is proposed can be run as it is written."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pyarrow as pa
import pytest

import kinfold
from command import run, text
from kinfold.demo.table import patients
from kinfold.profiling.profile import propose
from kinfold.profiling.starter_policy import starter
from kinfold.request.policy import Policy
from kinfold.rows.schema import Column, Role, Storage
from reference.public_data import found


@pytest.mark.parametrize(
    "name",
    ["name", "Name", "NAME", "patient_id", "PatientId", "SSN", "e-mail", "EMail", "Phone", "home address", "uuid"],
)
def test_names_that_identify(name: str) -> None:
    assert propose(Column(name, Storage.TEXT, 100, distinct=3))[0] is Role.IDENTIFIER


@pytest.mark.parametrize(
    "name", ["Disease", "diagnosis_code", "income", "MonthlySalary", "hiv_status", "charge", "total_cost"]
)
def test_names_that_are_sensitive(name: str) -> None:
    assert propose(Column(name, Storage.INTEGER, 100, distinct=30))[0] is Role.CONFIDENTIAL


@pytest.mark.parametrize("name", ["age", "zip", "discharge_date", "archive_box", "width", "valid", "idea", "renamed"])
def test_names_that_somebody_else_may_know(name: str) -> None:
    assert propose(Column(name, Storage.INTEGER, 100, distinct=30))[0] is Role.QUASI


def test_values_that_identify_or_tell_nothing() -> None:
    assert propose(Column("x", Storage.TEXT, 100, distinct=99))[0] is Role.IDENTIFIER
    assert propose(Column("x", Storage.NUMBER, 100, distinct=99))[0] is Role.QUASI
    assert propose(Column("x", Storage.TEXT, 100, distinct=1))[0] is Role.OTHER
    assert propose(Column("x", Storage.TEXT, 100, nulls=100))[0] is Role.OTHER


def test_a_profile_tells_how_much_columns_single_out() -> None:
    table = pa.table({"a": [1, 1, 2, 3, None], "b": ["x", "y", "x", "x", "x"], "c": ["p", "p", "q", "q", "q"]})
    profile = kinfold.profile(table)
    assert [(c.name, c.distinct, c.missing, c.unique) for c in profile.columns] == [
        ("a", 3, 1, 3 / 5),
        ("b", 2, 0, 1 / 5),
        ("c", 2, 0, 0.0),
    ]
    assert {c.columns: c.unique for c in profile.combinations} == {
        ("a", "b"): 1.0,
        ("a", "c"): 3 / 5,
        ("b", "c"): 2 / 5,
        ("a", "b", "c"): 1.0,
    }
    assert any("'a' is continuous and misses 1 value" in warning for warning in profile.warnings)


def test_an_identifier_that_repeats_is_a_warning() -> None:
    profile = kinfold.profile(pa.table({"patient_id": ["a", "a", "b"], "age": [1, 2, 3]}))
    assert "repeats: 3 rows, 2 values" in profile.warnings[0]


def test_the_starter_policy_of_the_demo_table_runs_as_written(tmp_path: Path) -> None:
    from pyarrow import csv

    csv.write_csv(patients(300), tmp_path / "t.csv")
    ran = run("profile", tmp_path / "t.csv", "--write-policy", tmp_path / "p.toml")
    assert ran.code == 0
    assert "age + zip + admission" in ran.out
    written = (tmp_path / "p.toml").read_text()
    assert "# A starter policy" in written
    assert run("profile", tmp_path / "t.csv", "--write-policy", tmp_path / "p.toml").code == 2
    release = kinfold.anonymize(tmp_path / "t.csv", tmp_path / "p.toml")
    assert release.verdict.k >= 5
    assert {c.role for c in release.policy.columns} >= {Role.IDENTIFIER, Role.QUASI, Role.CONFIDENTIAL}


@pytest.mark.parametrize("missing", [1, 3, 5, 40])
def test_a_starter_policy_runs_however_many_values_are_missing(missing: int) -> None:
    table = pa.table({"age": [None] * missing + list(range(60 - missing)), "sex": ["f", "m", None] * 20})
    policy = tomllib.loads(starter(kinfold.profile(table)))
    policy["method"]["name"] = "mdav"  # the same roles and kinds, without a search
    assert kinfold.anonymize(table, policy).verdict.k >= 5


def test_a_starter_policy_with_strange_names_is_toml() -> None:
    table = pa.table({name: [1, 2, 3, 4, 5, 6] for name in ('a"b', "a.b", "ünï", "new\nline", "a b", "[x]", "#")})
    policy = Policy.parse(tomllib.loads(starter(kinfold.profile(table), k=2)))
    assert set(policy.columns) == set(table.column_names)


def test_census_is_profiled_as_numbers() -> None:
    profile = kinfold.profile(found("census.csv"))
    assert profile.rows == 1080
    assert {c.kind for c in profile.columns} == {"continuous"}


def test_a_profile_as_json(tmp_path: Path) -> None:
    ran = run("profile", text(tmp_path, "t.csv", "a,b\n1,x\n2,\n3,[red]\n"), "--json")
    assert [c["name"] for c in ran.json["columns"]] == ["a", "b"]
