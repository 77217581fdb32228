"""Plausibility: values outside the range, combinations that the original does not have."""

import re
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv

import kinfold
from command import run
from kinfold.errors import PolicyError

COLUMNS: dict[str, Any] = {
    "age": {"role": "quasi", "type": "continuous"},
    "sex": {"role": "quasi"},
    "town": {"role": "quasi"},
    "pregnant": {"role": "confidential"},
}
POLICY = {"privacy": {"k": 2}, "columns": COLUMNS}


def test_what_is_not_plausible_is_counted_by_column_and_by_pair() -> None:
    table = pd.DataFrame(
        {
            "age": [20, 30, 40, 50],
            "sex": ["f", "f", "m", "m"],
            "town": ["north", "rare", "south", "south"],
            "pregnant": ["yes", "no", "no", "no"],
        }
    )
    released = table.assign(age=[19, 30, 40, 51], sex=["m", "f", "m", "m"], town=["north", "north", "south", "north"])
    found = kinfold.measure(table, released, POLICY)
    assert found["plausibility"] == {
        "outside": {"age": 2},
        "combinations": {"sex + town": 2, "sex + pregnant": 1, "town + pregnant": 2},
    }
    told = " ".join(found["notes"])
    assert "'age': 2 released values outside the range of the original" in told
    assert "sex + pregnant: 1 released record with a combination of values that the original does not have" in told
    assert "rare" not in told


def test_an_unchanged_table_and_true_statements_are_plausible() -> None:
    table = pd.DataFrame({"sex": ["f", "f", "m", "m"], "town": ["a1", "a2", "b1", "b1"]})
    columns = {"sex": {"role": "quasi"}, "town": {"role": "quasi", "hierarchy": {"mask": 1}, "average": "generalize"}}
    policy = {"privacy": {"k": 2}, "columns": columns}
    for released in (table, table.assign(town=["a*", "a*", "b1", "b1"])):
        found = kinfold.measure(table, released, policy)["plausibility"]
        assert not any(value for part in found.values() for value in part.values())


@pytest.mark.parametrize("seed", range(4))
def test_the_counts_of_a_release_are_those_of_a_plain_count(seed: int) -> None:
    random = np.random.default_rng(seed)
    n = 40
    table = pd.DataFrame(
        {
            "age": random.integers(20, 80, n),
            "sex": random.choice(["f", "m", None], n, p=[0.5, 0.4, 0.1]),
            "town": random.choice(list("abcdefg"), n),
            "pregnant": random.choice(["yes", "no"], n),
        }
    )
    release = kinfold.anonymize(table, {**POLICY, "method": {"name": "mdav"}, "output": {"preserve": "variance"}})
    after, found = release.frame, release.measures["plausibility"]
    outside = (after["age"] < table["age"].min()) | (after["age"] > table["age"].max())
    assert found["outside"]["age"] == int(outside.sum())
    pairs = Counter()
    for one, other in combinations(["sex", "town", "pregnant"], 2):
        met = {tuple(row) for row in table[[one, other]].astype(str).to_numpy()}
        strange = sum(tuple(row) not in met for row in after[[one, other]].astype(str).to_numpy())
        if strange:
            pairs[f"{one} + {other}"] = strange
    assert found["combinations"] == dict(pairs)


@pytest.mark.compiled
def test_the_internal_page_counts_it_and_the_public_one_does_not(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    names = list("abcdefgh")
    table = pd.DataFrame({"age": random.integers(20, 80, 60), "town": random.choice(names, 60)})
    columns = {"age": COLUMNS["age"], "town": COLUMNS["town"]}
    kinfold.anonymize(table, {"privacy": {"k": 10}, "columns": columns}).save(tmp_path / "out")
    internal, public = ((tmp_path / "out" / part / "report.html").read_text() for part in ("internal", "public"))
    assert "Plausibility" in internal
    assert "Values outside the range" in internal
    assert "Plausibility" not in public


# Confidential columns that only k protects: told on the console and on both pages, with how many it gives away


# two classes of five: in the first everybody has the flu, in the second some have
TABLE = pa.table({"age": [30] * 5 + [60] * 5, "disease": ["flu"] * 5 + ["flu", "cold"] + ["flu"] * 3})
TOLD = "'disease' is confidential and protected by k alone: 50.0% of the records are in classes with one value of it"


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
    [
        {"t": 0.9},
        {"l": 1},
        {"p": 1},
        {"alpha": 1.0},
        {"beta": 9.0},
        {"delta": 9.0},
        {"combinations": {"size": 1, "confidence": 1.0}},
        {"column": {"t": 0.9}},
        {"column": {"l": 1}},
    ],
    ids=["t", "l", "p", "alpha", "beta", "delta", "confidence", "its own t", "its own l"],
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
    assert any("1 missing sampling weights were replaced by the mean" in note for note in release.measures["notes"])


@pytest.mark.parametrize("name", ["v", "disease"])
def test_weights_that_are_none_are_refused_before_the_work(name: str) -> None:
    with pytest.raises(PolicyError, match=r"report\.sampling_weights"):
        kinfold.anonymize(TABLE, policy(t=0.9) | {"report": {"sampling_weights": name}})
