"""Confidential columns that only k protects: told on the console and on both pages, with how many it gives away."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv

import kinfold
from command import run
from kinfold.errors import PolicyError

# two classes of five: in the first everybody has the flu, in the second some have
TABLE = pa.table({"age": [30] * 5 + [60] * 5, "disease": ["flu"] * 5 + ["flu", "cold"] + ["flu"] * 3})
TOLD = "'disease' is confidential and protected by k alone: 50.0% of the records are in classes where everybody shares"


def policy(**keys: Any) -> dict[str, Any]:
    columns = {"age": {"role": "quasi-identifier"}, "disease": {"role": "confidential", **keys.pop("column", {})}}
    return {"privacy": {"k": 5, **keys}, "method": {"name": "mdav"}, "columns": columns}


def test_a_run_without_a_promise_says_how_many_share_one_value(tmp_path: Path) -> None:
    csv.write_csv(TABLE, tmp_path / "t.csv")
    roles = ("--quasi", "age", "--confidential", "disease", "-k", 5, "--method", "mdav")
    ran = run("anonymize", tmp_path / "t.csv", *roles, "--out", tmp_path / "out")
    assert TOLD in re.sub(r"\s+", " ", ran.out)
    for side in ("public", "internal"):
        page = (tmp_path / "out" / side / "report.html").read_text("utf-8").replace("&#39;", "'")
        assert TOLD in page
    assert "flu" not in TOLD


@pytest.mark.parametrize(
    "keys",
    [{"t": 0.9}, {"l": 1}, {"p": 1}, {"alpha": 1.0}, {"column": {"t": 0.9}}, {"column": {"l": 1}}],
    ids=["t", "l", "p", "alpha", "its own t", "its own l"],
)
def test_a_run_with_a_promise_about_it_says_nothing_of_the_kind(keys: dict[str, Any]) -> None:
    release = kinfold.anonymize(TABLE, policy(**keys))
    assert not any("k alone" in warning for warning in release.measures.warnings)


def test_no_class_that_shares_a_value_is_told_as_none() -> None:
    varied = TABLE.set_column(1, "disease", [["flu", "cold"] * 5])
    (warning,) = (w for w in kinfold.anonymize(varied, policy()).measures.warnings if "k alone" in w)
    assert ": 0.0% of the records" in warning


def test_weights_of_the_policy_give_the_risk_in_the_population() -> None:
    weighed = TABLE.append_column("w", [[100.0] * 9 + [None]])
    asked = policy(t=0.9) | {"report": {"sampling_weights": "w"}}
    asked["columns"]["w"] = {"role": "identifier"}
    release = kinfold.anonymize(weighed, asked)
    assert 0 < release.measures["risk"]["individual"]["max"] < 0.05
    assert any("1 missing sampling weights were taken to be the mean" in note for note in release.measures["notes"])


@pytest.mark.parametrize("name", ["v", "disease"])
def test_weights_that_are_none_are_refused_before_the_work(name: str) -> None:
    with pytest.raises(PolicyError, match=r"report\.sampling_weights"):
        kinfold.anonymize(TABLE, policy(t=0.9) | {"report": {"sampling_weights": name}})
