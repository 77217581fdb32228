"""The roles `remove` and `weight`, and patterns of columns: from a run to both checks of its release."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pandas as pd
import pytest

import kinfold
from command import run, text
from kinfold.errors import PolicyError

ROWS = 40
TABLE = pd.DataFrame(
    {
        "age": [20 + i for i in range(ROWS)],
        "sex": ["f", "m"] * (ROWS // 2),
        "L1": [i % 5 for i in range(ROWS)],
        "L2": [i % 7 for i in range(ROWS)],
        "L3": [i % 3 for i in range(ROWS)],
        "ward": [f"w{i % 6}" for i in range(ROWS)],
        "W": [100.25 + 3 * (i % 11) for i in range(ROWS)],
    }
)
POLICY = """
[privacy]
k = 4
[method]
name = "mdav"
[columns]
age = { role = "quasi-identifier" }
sex = { role = "quasi-identifier" }
"L*" = { role = "confidential" }
L3 = { role = "other" }
ward = { role = "remove", reason = "few people share a ward" }
W = { role = "weight", round_to = 10 }
"""


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("desk")
    TABLE.to_csv(folder / "t.csv", index=False)
    text(folder, "p.toml", POLICY)
    run("anonymize", folder / "t.csv", "--policy", folder / "p.toml", "--out", folder / "out").ok()
    return folder


def test_the_certificate_lists_the_columns_that_patterns_match(desk: Path) -> None:
    entries = json.loads((desk / "out/public/certificate.json").read_text())["columns"]
    roles = {entry["name"]: entry["role"] for entry in entries}
    assert roles == {
        **dict.fromkeys(("age", "sex"), "quasi-identifier"),
        **dict.fromkeys(("L1", "L2"), "confidential"),
        "L3": "other",
        "W": "weight",
    }


def test_both_checks_accept_the_release(desk: Path) -> None:
    assert "holds" in run("verify", desk / "out/public", "--twice").ok().out
    run("verify", desk / "out/public", "--policy", desk / "p.toml").ok()
    run("verify", desk / "out/public/release.csv", "--policy", desk / "p.toml", "--twice").ok()


def test_weights_are_rounded_and_the_risk_uses_those_of_the_original(desk: Path) -> None:
    released = pd.read_csv(desk / "out/public/release.csv")
    assert set(released["W"] % 10) == {0}
    assert released.groupby(["age", "sex"])["W"].nunique().max() == 1  # so they tell no more than the class
    risk = json.loads((desk / "out/internal/audit.json").read_text())["measures"]["risk"]["individual"]
    removed = POLICY.replace(", round_to = 10", "")
    key = POLICY.replace('W = { role = "weight", round_to = 10 }', 'W = { role = "remove" }')
    key += '[report]\nsampling_weights = "W"\n'
    for policy in (removed, key):
        release = kinfold.anonymize(TABLE, tomllib.loads(policy))
        assert "W" not in release.frame
        assert release.measures["risk"]["individual"] == risk
    assert risk["max"] < 0.25  # a record stands for about a hundred people


@pytest.mark.parametrize("column", ["ward", "W"])
def test_a_column_that_must_be_removed_fails_the_check(desk: Path, tmp_path: Path, column: str) -> None:
    released = pd.read_csv(desk / "out/public/release.csv")
    policy = text(tmp_path, "p.toml", POLICY.replace(", round_to = 10", ""))
    data = tmp_path / "t.csv"
    released.drop(columns="W").assign(**{column: TABLE[column]}).to_csv(data, index=False)
    run("verify", data, "--policy", policy).fails(5, f"the column '{column}' is in the release, but must be removed")


def test_exact_weights_fail_the_check_of_rounded_ones(desk: Path, tmp_path: Path) -> None:
    released = pd.read_csv(desk / "out/public/release.csv").assign(W=TABLE["W"])
    released.to_csv(tmp_path / "t.csv", index=False)
    run("verify", tmp_path / "t.csv", "--policy", desk / "p.toml").fails(5, "columns.W.round_to")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('L3 = { role = "other" }', '"*3" = { role = "other" }', r"'L3' matches 'L\*' and '\*3'"),
        ('"L*"', '"M*"', r"no column 'M\*'"),
        (
            'sex = { role = "quasi-identifier" }',
            'sex = { role = "weight" }',
            "'sex' has sampling weights, but is not all",
        ),
    ],
)
def test_wrong_keys_are_refused(old: str, new: str, said: str) -> None:
    with pytest.raises(PolicyError, match=said):
        kinfold.anonymize(TABLE, tomllib.loads(POLICY.replace(old, new)))


def test_the_reports_say_why_a_column_is_removed(desk: Path) -> None:
    internal, public = ((desk / f"out/{part}/report.html").read_text() for part in ("internal", "public"))
    assert "removed: few people share a ward" in internal
    assert "Removed columns" in internal
    assert "Sampling weights" in public
    assert "ward" not in public


def test_measure_and_compare_take_patterns(desk: Path, tmp_path: Path) -> None:
    found = run("measure", desk / "t.csv", desk / "out/public/release.csv", "--policy", desk / "p.toml", "--json").ok()
    assert set(found.json["l"]) == {"L1", "L2"}
    run("compare", desk / "t.csv", "--policy", desk / "p.toml", "--methods", "mdav", "--k", "3", "--out", tmp_path).ok()
    roles = ("--quasi", "age,se?", "--confidential", "L*", "--others", "drop")
    run("anonymize", desk / "t.csv", *roles, "-k", "4", "--out", tmp_path / "out").ok()
    assert list(pd.read_csv(tmp_path / "out/public/release.csv")) == ["age", "sex", "L1", "L2", "L3"]
