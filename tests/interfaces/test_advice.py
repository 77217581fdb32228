"""`kinfold anonymize --dry-run`: what a release would cost, from a sample, with nothing written."""

import random
from pathlib import Path
from typing import Any

import pytest

from command import content, run, text
from kinfold.comparison import advice

POLICY = """
[privacy]
k = 5
[method]
name = "mdav"
[columns.age]
role = "quasi-identifier"
[columns.sex]
role = "quasi-identifier"
[columns.job]
role = "quasi-identifier"
[columns.income]
role = "confidential"
"""
QUESTION = """
[review.unit]
question = "Do rows of one person occur?"
seen = "a column repeats"
proposed = "none"
answers = ["none", "job"]
sets = "privacy.unit"
"""


def desk(
    folder: Path, policy: str = POLICY, rows: int = 300, job: Any = lambda draw: f"job-{draw.randint(0, 150)}"
) -> tuple[Any, ...]:
    """A table in which `job` has nearly as many values as records, and its policy."""
    draw = random.Random(7)
    lines = [f"{draw.randint(20, 60)},{draw.choice('mf')},{job(draw)},{draw.randint(1, 9)}" for _ in range(rows)]
    table = text(folder, "table.csv", "\n".join(["age,sex,job,income", *lines, ""]))
    return "anonymize", table, "--policy", text(folder, "policy.toml", policy)


def find(result: Any, kind: str) -> list[Any]:
    return [trial for trial in result["trials"] if trial["kind"] == kind]


def test_the_most_expensive_column_and_what_its_removal_saves(tmp_path: Path) -> None:
    result = run(*desk(tmp_path), "--dry-run", "--json").ok().json
    assert (result["method"], result["records"], result["sampled"]) == ("mdav", 300, 300)
    assert result["costliest"] == "job" == next(iter(result["by_column"]))
    assert result["by_column"]["job"] > 5 * max(loss for name, loss in result["by_column"].items() if name != "job")
    [removed] = find(result, "remove")
    assert removed["overall"] == removed["others"] < result["others"] < result["overall"]


def test_a_larger_k_and_a_smaller_t_cost_more(tmp_path: Path) -> None:
    result = run(*desk(tmp_path), "--set", "privacy.t=0.1", "--dry-run", "--json").ok().json
    by_k = {trial["change"]: trial["overall"] for trial in find(result, "k")}
    assert list(by_k) == ["k = 3", "k = 5", "k = 10"]
    assert by_k["k = 3"] < by_k["k = 5"] == result["overall"] < by_k["k = 10"]
    assert [trial["change"] for trial in find(result, "t")] == ["t = 0.05", "t = 0.2"]
    strict, loose = (trial["overall"] for trial in find(result, "t"))
    assert strict > loose


def test_the_advice_is_the_loss_of_the_release_where_the_sample_is_the_table(tmp_path: Path) -> None:
    command = desk(tmp_path)
    expected = run(*command, "--out", tmp_path / "release", "--json").ok().json["loss"]
    result = run(*command, "--dry-run", "--json").ok().json
    assert (result["overall"], result["by_column"]) == (expected["overall"], expected["by_column"])


def test_nothing_is_written_and_no_value_is_printed(tmp_path: Path) -> None:
    command = desk(tmp_path)
    before = content(tmp_path)
    ran = run(*command, "--out", tmp_path / "release", "--dry-run").ok()
    assert content(tmp_path) == before
    assert not (tmp_path / "release").exists()
    assert "job costs most: it will lose" in ran.out
    assert "tried on all 300 records" in ran.out
    assert "job-" not in ran.out


@pytest.mark.parametrize(
    ("method", "coarser"), [("auto", "job without its last character"), ("lattice", "age with round_to = 10")]
)
def test_a_large_table_is_sampled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, coarser: str) -> None:
    """The sample has missing values and numbers as the table has them, and a code column can be coarser."""
    monkeypatch.setattr(advice, "SAMPLE_RECORDS", 200)
    codes = 'hierarchy = { mask = 3 }\naverage = "generalize"\ntype = "nominal"\n'
    ages = 'role = "quasi-identifier"\nhierarchy = { intervals = [10, 20] }\naverage = "generalize"\n[columns.sex]'
    policy = POLICY.replace("mdav", method).replace('role = "quasi-identifier"\n[columns.sex]', ages)
    policy = policy.replace("[columns.income]", f"{codes}[columns.income]")
    command = desk(tmp_path, policy, 1000, lambda draw: draw.choice(["", draw.randint(100, 999)]))
    ran = run(*command, "--dry-run", "--json").ok()
    assert ran.json["records"] == 1000
    assert 150 < ran.json["sampled"] < 250
    assert [trial["failure"] for trial in ran.json["trials"]] == [""] * len(ran.json["trials"])
    assert [trial["change"] for trial in find(ran.json, "coarsen")] == [coarser]
    assert "a sample of" in run(*command, "--dry-run").ok().out


def test_people_are_sampled_with_all_their_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advice, "SAMPLE_RECORDS", 200)
    policy = POLICY.replace("k = 5", 'k = 3\nunit = "job"').replace(
        '[columns.job]\nrole = "quasi-identifier"', '[columns.job]\nrole = "identifier"'
    )
    people = iter(range(3000))
    result = run(*desk(tmp_path, policy, 900, lambda _: next(people) // 3), "--dry-run", "--json").ok().json
    assert 100 < result["sampled"] < 300
    assert result["sampled"] % 3 == 0


def test_a_change_that_is_not_possible_is_reported(tmp_path: Path) -> None:
    ran = run(*desk(tmp_path, POLICY.replace("k = 5", "k = 3"), rows=8), "--dry-run").ok()
    assert "not possible: k = 10: " in ran.out


def test_what_anonymize_refuses_is_refused(tmp_path: Path) -> None:
    run(*desk(tmp_path, POLICY + QUESTION), "--dry-run").fails(2, "Do rows of one person occur?", "1 question")
    run(*desk(tmp_path, POLICY + QUESTION), "--answer", "unit=none", "--dry-run").ok()
    run(*desk(tmp_path, POLICY + '[columns.town]\nrole = "quasi-identifier"\n'), "--dry-run").fails(2, "town")
    run(*desk(tmp_path, POLICY.replace("mdav", "lattice")), "--dry-run").fails(2, "needs a hierarchy for 'age'")
    run(*desk(tmp_path, POLICY.replace("k = 5", "k = 301")), "--dry-run").fails(4, "k is 301")


def test_a_release_needs_a_folder(tmp_path: Path) -> None:
    run(*desk(tmp_path)).fails(2, "the release has no folder", "--out DIR", "--dry-run")
