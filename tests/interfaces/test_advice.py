"""`kinfold anonymize --dry-run`: what a release would cost, from a sample, with nothing written."""

import random
import tomllib
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from command import content, run, text
from kinfold.comparison import advice
from kinfold.comparison.advice import coarsen
from kinfold.pipeline import MISSING_TEXTS, bind_table, open_engine, resolve_source
from kinfold.policy.model import Policy

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


@pytest.mark.slow
def test_a_larger_k_and_a_smaller_t_cost_more(tmp_path: Path) -> None:
    result = run(*desk(tmp_path), "--set", "privacy.t=0.1", "--dry-run", "--json").ok().json
    by_k = {trial["change"]: trial["overall"] for trial in find(result, "k")}
    assert list(by_k) == ["k = 3", "k = 5", "k = 10"]
    assert by_k["k = 3"] < by_k["k = 5"] == result["overall"] < by_k["k = 10"]
    assert [trial["change"] for trial in find(result, "t")] == ["t = 0.05", "t = 0.2"]
    strict, loose = (trial["overall"] for trial in find(result, "t"))
    assert strict > loose


def test_only_the_t_of_confidential_columns_is_tried() -> None:
    rent = '[columns.rent]\nrole = "quasi-identifier"\nt = 0.3  # for another answer to a question'
    policy = Policy.parse(tomllib.loads(f"{POLICY}t = 0.3\n{rent}\n"))
    changes = [change for kind, change, _ in advice._change_levels(policy) if kind == "t"]
    assert changes == ["t = 0.15 for income", "t = 0.6 for income"]


@pytest.mark.slow
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
    assert "measured on all 300 records" in ran.out
    assert "job-" not in ran.out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "coarser"), [("auto", "job without its last character"), ("lattice", "age with round_to = 10")]
)
def test_a_large_table_is_sampled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, coarser: str) -> None:
    """The sample has missing values and numbers as the table has them, and a code column can be coarser."""
    monkeypatch.setattr(advice, "TRIAL_RECORDS", 200)
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


EVERY_KIND = """
[privacy]
k = 3
[columns.pay]
role = "quasi-identifier"
type = "continuous"
[columns.seen]
role = "quasi-identifier"
type = "date"
[columns.born]
role = "quasi-identifier"
type = "nominal"
average = "generalize"
hierarchy = { dates = ["year", "decade"] }
[columns.zip]
role = "quasi-identifier"
type = "nominal"
hierarchy = { mask = 3 }
[columns.job]
role = "quasi-identifier"
type = "nominal"
hierarchy = { tree = { hands = ["smith", "cook"], heads = ["clerk", "judge"] } }
[columns.grade]
role = "quasi-identifier"
type = "ordinal"
order = ["low", "middle", "high"]
[columns.town]
role = "quasi-identifier"
type = "nominal"
map = { Baden = "Bern" }
[columns.sex]
role = "quasi-identifier"
type = "nominal"
"""


def test_every_kind_of_column_has_a_coarser_form_that_the_policy_accepts(tmp_path: Path) -> None:
    draw = random.Random(3)
    rows = [
        (draw.randint(0, 900), f"{draw.randint(1, 28)}.{draw.randint(1, 12)}.2023", f"{draw.randint(1, 28)}.5.19{d}",
         draw.randint(100, 130), draw.choice(["smith", "cook", "clerk", "judge"]),
         draw.choice(["low", "middle", "high"]), draw.choice(["Bern", "Baden", "Chur", "Genf"]), draw.choice("mf"))
        for d in range(30, 90)
    ]  # fmt: skip
    frame = pl.DataFrame(rows, schema=["pay", "seen", "born", "zip", "job", "grade", "town", "sex"], orient="row")
    written = tomllib.loads(EVERY_KIND) | {"source": {"dates": ["%d.%m.%Y"]}}
    policy = Policy.parse(written)
    frame.write_csv(tmp_path / "people.csv")
    source = resolve_source(tmp_path / "people.csv")
    words = {}
    with open_engine(policy, source) as engine:
        original = engine.read(source, MISSING_TEXTS, policy.form)
        prepared, _, table = bind_table(engine, original, policy)
        for attribute in table.attributes:
            name = attribute.bound.name
            if coarser := coarsen(engine, prepared.mapped, attribute):
                words[name] = coarser.words
                keys = {key: value for key, value in coarser.keys.items() if value is not None}
                changed = written | {"columns": written["columns"] | {name: written["columns"][name] | keys}}
                schema = bind_table(engine, original, Policy.parse(changed))[1]
                assert schema[name].distinct < engine.schema(prepared.frame)[name].distinct, name
    assert words == {
        "pay": "with round_to = 100",
        "seen": "by month",
        "born": "one level coarser",
        "zip": "without its last character",
        "job": "one level coarser",
        "grade": "with its neighbours merged in pairs",
        "town": "with its 2 rarest categories merged",
    }


def test_the_loss_of_a_large_table_is_expected_from_its_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loss falls with more records: the expected one is closer to that of the table than that of the sample."""
    monkeypatch.setattr(advice, "TRIAL_RECORDS", 300)
    command = desk(tmp_path, POLICY, 3000, lambda draw: draw.randint(0, 900))
    result = run(*command, "--dry-run", "--json").ok().json
    real = run(*command, "--out", tmp_path / "release", "--json").ok().json["loss"]["overall"]
    assert result["in_sample"] > 1.5 * real
    assert abs(result["overall"] - real) < 0.5 * abs(result["in_sample"] - real)


def test_people_are_sampled_with_all_their_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advice, "TRIAL_RECORDS", 200)
    policy = POLICY.replace("k = 5", 'k = 3\nunit = "job"').replace(
        '[columns.job]\nrole = "quasi-identifier"', '[columns.job]\nrole = "identifier"'
    )
    people = iter(range(3000))
    result = run(*desk(tmp_path, policy, 900, lambda _: next(people) // 3), "--dry-run", "--json").ok().json
    assert 100 < result["sampled"] < 300
    assert result["sampled"] % 3 == 0


@pytest.mark.slow
@pytest.mark.parametrize("method", ["mdav", "lattice"])  # which counts rows, but not if the rows of a person are one
def test_the_classes_of_people_together_are_of_people(method: str, tmp_path: Path) -> None:
    lines = [f"{i // 3},{20 + i // 3 % 40},{'mf'[i // 3 % 2]},{i % 5}" for i in range(180)]
    table = text(tmp_path, "table.csv", "\n".join(["job,age,sex,income", *lines, ""]))
    keys = ("--set", "privacy.unit=job", "--set", "method.people=together", "--method", method, "--identifier", "job")
    keys += ("--set", "columns.age.hierarchy={intervals=[5,20,40]}") if method == "lattice" else ()
    asked = ("anonymize", table, "--quasi", "age,sex", "--confidential", "income", "-k", 4, *keys)
    expected = run(*asked, "--dry-run", "--json").ok().json
    made = run(*asked, "--out", tmp_path / "out", "--json").ok().json
    assert (expected["records"], expected["sampled"]) == (180, 180)
    assert expected["overall"] == pytest.approx(made["loss"]["overall"])


def test_a_release_after_earlier_ones_has_no_dry_run(tmp_path: Path) -> None:
    run(*desk(tmp_path), "--dry-run", "--after", tmp_path).fails(2, "--dry-run cannot say", "leave out --after")


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


def test_a_dry_run_on_spark_says_what_a_cluster_takes(spark: Any, tmp_path: Path) -> None:
    ran = run(*desk(tmp_path), "--dry-run", "--engine", "spark").ok()
    assert "on Spark: 8 executors of 4 cores" in ran.out
    assert "the driver collects at most 300 rows at a time" in ran.out


@pytest.mark.parametrize("family", ["partition", "generalize"])
def test_more_executors_take_no_longer_and_no_task_is_empty(family: str) -> None:
    small, large = ([*advice.estimate_clusters(family, records, 300_000)] for records in (10**6, 10**9))
    assert len({cost.seconds for cost in small}) == 1  # one task
    seconds = [cost.seconds for cost in large]
    assert seconds == sorted(seconds, reverse=True)
    assert seconds[0] - advice.SPARK_START == pytest.approx(16 * (seconds[-1] - advice.SPARK_START))
    assert all(cost.driver_rows == 300_000 for cost in large)
    assert min(cost.executor_bytes for cost in large) > max(cost.executor_bytes for cost in small)
