"""Templates: each binds to the demo table, and what comes out is verified and keeps what the rule names."""

import csv
import re
import tomllib
from pathlib import Path

import pyarrow as pa
import pytest

import kinfold
from command import run
from everyday import first
from kinfold.demo import make_patients
from kinfold.policy.model import Policy
from kinfold.profiling.frameworks import DISCLAIMER, fit_framework, get_framework, load_frameworks, write_skeleton

NAMES = ("gdpr", "hipaa", "hipaa-expert", "wp216")
pytestmark = pytest.mark.compiled


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo table, every fifth record: the way is the same."""
    path = tmp_path_factory.mktemp("templates") / "patients.csv"
    from pyarrow import csv as writer

    writer.write_csv(make_patients().take(list(range(0, 1000, 5))), path)
    return path


def test_they_are_listed() -> None:
    listed = run("template").ok()
    assert tuple(line.split()[0] for line in listed.out.splitlines()) == NAMES == tuple(load_frameworks())


@pytest.mark.parametrize("name", NAMES)
def test_without_a_table_it_parses_and_says_that_it_is_no_legal_advice(name: str) -> None:
    ran = run("template", name).ok()
    policy = Policy.parse(tomllib.loads(ran.out))
    assert not policy.columns
    assert DISCLAIMER.splitlines()[0] in ran.out
    uncommented = re.sub(r"^# ?(?=\[columns|\w+ = )", "", ran.out, flags=re.MULTILINE)
    assert Policy.parse(tomllib.loads(uncommented)).columns["name"].role == "identifier"


@pytest.mark.slow
@pytest.mark.parametrize("name", first(NAMES, 2))
def test_fitted_to_a_table_it_runs_to_a_verified_release(name: str, table: Path, tmp_path: Path) -> None:
    policy, out = tmp_path / "policy.toml", tmp_path / "out"
    run("template", name, table, "--out", policy).ok()
    assert DISCLAIMER.splitlines()[0] in policy.read_text("utf-8")
    run("anonymize", table, "--policy", policy, "--out", out, "--json").ok()
    assert run("verify", out / "public", "--twice").code == 0
    assert run("template", name, table, "--out", policy).code == 2  # it is not overwritten


def released(folder: Path) -> list[dict[str, str]]:
    with (folder / "public/release.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_safe_harbor_keeps_three_digits_years_and_ages_up_to_89(tmp_path: Path) -> None:
    table = tmp_path / "seen.csv"
    people = [
        (f"P{i}", 60 + i % 40, ("02138", "02139", "03601", "05901")[i % 4], f"2023-0{i % 9 + 1}-11") for i in range(80)
    ]
    lines = [f"{name},{age},{zip_},{day},town{age % 3}" for name, age, zip_, day in people]
    table.write_text("\n".join(["name,age,zip,seen,city", *lines]) + "\n", "utf-8")
    policy = tmp_path / "policy.toml"
    assert run("template", "hipaa", table, "--out", policy).code == 0
    run("anonymize", table, "--policy", policy, "--out", tmp_path / "out", "--json").ok()
    rows = released(tmp_path / "out")
    assert len(rows) == 80
    assert rows[0].keys() == {"age", "zip", "seen"}
    assert {row["zip"] for row in rows} == {"021**", "000**"}  # 036 and 059: too few people
    assert {row["seen"] for row in rows} == {"2023"}
    assert max(int(row["age"]) for row in rows) == 90


def test_loss_of_dates_that_became_years_is_no_difference_of_days(table: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text(fit_framework(get_framework("hipaa"), kinfold.profile(table)), "utf-8")
    loss = kinfold.anonymize(table, policy).measures.to_dict()["loss"]
    assert loss["sse_ratio"] is None  # no column is released as numbers or dates
    assert 0 < loss["by_column"]["admission"] <= 1


def test_where_no_rule_makes_a_quasi_identifier_the_coarsest_is_one() -> None:
    codes = pa.table({"sex": ["f", "m"] * 30, "job": ["a", "b", "c"] * 20, "disease": ["flu", "cold"] * 30})
    text = fit_framework(get_framework("hipaa"), kinfold.profile(codes))
    policy = Policy.parse(tomllib.loads(text))
    assert {name for name, column in policy.columns.items() if column.role == "quasi-identifier"} == {"sex"}
    assert policy.method.levels == {"sex": 0}
    assert kinfold.anonymize(codes, policy).verdict.k >= 2


def test_a_template_that_is_not_there_is_told_with_those_that_are() -> None:
    run("template", "hippa").fails(2, "hipaa, hipaa-expert")
    assert write_skeleton(get_framework("gdpr")).count("recital 26") == 1
