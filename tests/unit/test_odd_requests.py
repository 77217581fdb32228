"""Requests that once ended in a traceback or a broken promise: one test a cause."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import kinfold
from command import run, text
from kinfold.methods.partition.refine_under import refine_under
from kinfold.methods.partition.requirement import Requirement
from kinfold.rows.points import Nested, Points

N = 60


def words(seed: int, many: int, n: int = N) -> list[str]:
    return [f"w{i}" for i in np.random.default_rng(seed).integers(0, many, n)]


def policy(columns: dict[str, Any], method: str = "auto", **privacy: Any) -> dict[str, Any]:
    return {"privacy": {"k": 3, **privacy}, "method": {"name": method, "refine_steps": 20}, "columns": columns}


def test_quasi_identifiers_that_are_all_nominal_with_t(tmp_path: Path) -> None:
    rows = "".join(f"{a},{b},{c}\n" for a, b, c in zip(words(1, 2), words(2, 9), words(3, 3), strict=True))
    table = text(tmp_path, "t.csv", "sex,zip,disease\n" + rows)
    asked = ("--quasi", "sex,zip", "--confidential", "disease", "-k", 5, "-t", 0.3)
    assert run("anonymize", table, *asked, "--out", tmp_path / "out").code == 0


def test_points_without_numbers_are_refined_under_a_promise() -> None:
    codes = np.random.default_rng(0).integers(0, 9, (N, 1)).astype(np.int32)
    points = Points(np.empty((N, 0)), codes, (Nested.flat(9),))
    wages = Requirement.close(np.arange(N) % 5, 0.9)
    start = (np.arange(N) // 3).astype(np.int32)
    found = refine_under(points, start, 3, [wages], steps=400 * N)
    assert np.bincount(found.labels).min() >= 3
    assert found.cost < 20


@pytest.mark.parametrize("method", ["auto", "t-first", "k-first", "t-merge", "mdav"])
def test_fewer_records_than_k_with_t(method: str) -> None:
    table = pa.table({"age": [71, 72], "disease": ["flu", "cold"]})
    columns = {"age": {"role": "quasi"}, "disease": {"role": "confidential"}}
    with pytest.raises(kinfold.Unreachable, match="k is 3, but there are only 2 records"):
        kinfold.anonymize(table, policy(columns, method, t=0.5))


@pytest.mark.parametrize("method", ["auto", "datafly", "lattice", "mingen-cell"])
def test_a_hierarchy_over_a_column_of_nothing_but_nulls(method: str, tmp_path: Path) -> None:
    nothing = pa.nulls(N, pa.string())
    table = pa.table({"sex": words(1, 2), "zip": nothing, "disease": nothing})
    hierarchy = {"mask": 3}
    columns = {
        "sex": {"role": "quasi"},
        "zip": {"role": "quasi", "type": "nominal", "hierarchy": hierarchy},
        "disease": {"role": "confidential", "type": "nominal", "hierarchy": hierarchy},
    }
    release = kinfold.anonymize(table, policy(columns, method, t=0.5))
    assert release.frame.column("zip").null_count == N
    release.save(tmp_path / "out")
    assert run("verify", tmp_path / "out").code == 0


@pytest.mark.parametrize(("n", "t", "people", "seed"), [(17, 0.2, 12, 35), (24, 0.15, 8, 39), (30, 0.2, 12, 10)])
def test_people_are_counted_in_classes_as_released(n: int, t: float, people: int, seed: int) -> None:
    """Classes that come out alike are one in the release, and a person in both is counted once."""
    chance = np.random.default_rng(seed)
    table = pa.table(
        {
            "zip": [f"w{i}" for i in chance.integers(0, 30, n)],
            "wage": chance.integers(0, 12, n),
            "who": [f"p{i}" for i in chance.integers(0, people, n)],
        }
    )
    columns = {
        "zip": {"role": "quasi", "type": "nominal", "average": "generalize"},
        "wage": {"role": "confidential", "type": "continuous"},
        "who": {"role": "identifier"},
    }
    asked = {"privacy": {"k": 3, "t": t, "unit": "who"}, "method": {"name": "mdav"}, "columns": columns}
    assert kinfold.anonymize(table, asked).verdict.holds


@pytest.mark.parametrize("role", ["quasi", "confidential"])
@pytest.mark.parametrize("unit", [5e-324, 1e-170, 1e140])
def test_numbers_whose_squares_a_double_cannot_hold(role: str, unit: float, tmp_path: Path) -> None:
    chance = np.random.default_rng(0)
    table = pa.table({"age": chance.integers(20, 90, N), "x": chance.integers(0, 9, N) * unit})
    columns = {"age": {"role": "quasi"}, "x": {"role": role, "type": "continuous"}}
    release = kinfold.anonymize(table, policy(columns, "mdav"))
    json.dumps(release.measures.to_dict(), allow_nan=False)
    json.dumps(release.measures.statistics.to_dict(), allow_nan=False)
    release.save(tmp_path / "out")


@pytest.mark.parametrize("role", ["quasi", "confidential"])
@pytest.mark.parametrize("method", ["auto", "mdav"])
def test_years_after_9999(role: str, method: str, tmp_path: Path) -> None:
    day = 86_400_000_000
    first = 2_932_897 * day  # the first of January 10000
    moments = pa.array([first + day * int(i) for i in np.random.default_rng(0).integers(0, 999, N)], pa.timestamp("us"))
    columns = {"age": {"role": "quasi"}, "x": {"role": role, "type": "date"}, "sex": {"role": "confidential"}}
    table = pa.table({"age": [i % 7 for i in range(N)], "x": moments, "sex": words(0, 2)})
    kinfold.anonymize(table, policy(columns, method, t=0.9)).save(tmp_path / "out")
    assert run("verify", tmp_path / "out").code == 0


def test_a_generalizing_method_does_not_ask_for_the_hierarchy_that_is_there() -> None:
    table = pa.table({"age": list(range(N))})
    columns = {"age": {"role": "quasi", "average": "mean", "hierarchy": {"intervals": [5, 20]}}}
    with pytest.raises(kinfold.PolicyError, match=r"columns.age.average is mean[\s\S]*leave out the average"):
        kinfold.anonymize(table, policy(columns, "lattice"))
