"""Generalization over counts: no value of a record leaves the engine, and the measures are those of the records."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import kinfold
from everyday import first
from kinfold.methods.generalization import EQUAL_RECORDS_NOTE
from kinfold.tables.duckdb.engine import DuckDB

RECORDS = 3_000
CELL_LEVEL = ("mingen-cell", "local-suppression")  # of large tables
METHODS = ("lattice", "datafly", "mu-argus", "mingen", *CELL_LEVEL)


@pytest.fixture(autouse=True)
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the tables here count as large: smaller ones are treated record by record at cell level."""
    monkeypatch.setattr("kinfold.methods.generalization.MAX_SEPARATE_RECORDS", RECORDS // 2)
    monkeypatch.setattr(
        "kinfold.measures.release_warnings.MAX_RELATED_COLUMNS", 0
    )  # rules between columns read a bounded sample


def table(*, nulls: float = 0.0, seed: int = 0) -> pa.Table:
    random = np.random.default_rng(seed)
    gone = random.random((3, RECORDS)) < nulls
    return pa.table(
        {
            "age": pa.array(random.integers(20, 30, RECORDS), mask=gone[0]),
            "area": pa.array(random.choice(["10115", "10117", "20095"], RECORDS), mask=gone[1]),
            "sex": random.choice(["f", "m"], RECORDS, p=[0.9, 0.1]),
            "disease": pa.array(random.choice(["flu", "cold", "none"], RECORDS), mask=gone[2]),
            "pay": random.integers(0, 40, RECORDS) * 12.5,
        }
    )


def policy(method: str, **more: Any) -> dict[str, Any]:
    return {
        "privacy": {"k": 25},
        "method": {"name": method} | ({} if method in CELL_LEVEL else {"suppression": 0.05}),
        "columns": {
            "age": {
                "role": "quasi", "type": "continuous", "missing": "separate", "hierarchy": {"intervals": [2, 4, 12]}
            },
            "area": {"role": "quasi", "type": "nominal", "hierarchy": {"mask": 5}},
            "sex": {"role": "quasi", "type": "nominal"},
            "disease": {"role": "confidential", "type": "nominal"},
            "pay": {"role": "confidential", "type": "continuous"},
        },
        **more,
    }  # fmt: skip


@pytest.mark.parametrize("method", first(METHODS, 2))
def test_no_value_of_a_record_leaves_the_engine(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    most = [0]

    collect = DuckDB.collect

    def watch(self: DuckDB, *arguments: Any, **options: Any) -> Any:
        found = collect(self, *arguments, **options)
        most.append(len(found))
        return found

    monkeypatch.setattr(DuckDB, "collect", watch)
    parquet.write_table(table(), tmp_path / "t.parquet")
    release = kinfold.anonymize(tmp_path / "t.parquet", policy(method))
    release.save(tmp_path / "out")
    assert 0 < max(most) <= 60  # tuples
    assert (EQUAL_RECORDS_NOTE in release.plan.notes) is (method in CELL_LEVEL)
    before, after = release.measures.risk_by_record.before, release.measures.risk_by_record.after  # type: ignore[union-attr]
    assert len(before) == len(after) == RECORDS
    assert np.isnan(after).sum() == RECORDS - release.verdict.records


def close(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(close(one[key], other[key]) for key in one)
    if isinstance(one, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return bool(one == other)


@pytest.mark.slow
@pytest.mark.parametrize("method", first(METHODS, 2))
@pytest.mark.parametrize(("nulls", "suppressed"), [(0.0, "drop"), (0.03, "star")])
def test_measures_over_tuples_are_those_over_records(
    method: str, nulls: float, suppressed: str, tmp_path: Path
) -> None:
    parquet.write_table(table(nulls=nulls, seed=1), tmp_path / "t.parquet")
    output = {"suppressed": suppressed}
    by_tuple = kinfold.anonymize(tmp_path / "t.parquet", policy(method, output=output)).measures
    by_record = kinfold.anonymize(
        tmp_path / "t.parquet", policy(method, output=output, report={"measures": "all"})
    ).measures
    assert by_tuple.statistics.to_dict().keys() == by_record.statistics.to_dict().keys()
    one, other = by_tuple.to_dict(), by_record.to_dict()
    other["loss"].pop("propensity_mse")
    for key in ("records", "released", "suppressed", "classes", "k", "l", "t", "risk", "risk_before", "loss"):
        assert close(one[key], other[key]), (key, one[key], other[key])
    assert one["plausibility"] == other["plausibility"]
    for mine, theirs in zip(
        by_tuple.risk_by_record.__dict__.values(), by_record.risk_by_record.__dict__.values(), strict=True
    ):
        np.testing.assert_allclose(mine, theirs)


def test_moments_in_the_engine_are_those_of_arrays() -> None:
    rows = table(nulls=0.1)
    with DuckDB() as engine:
        frame = engine.read(rows)
        schema = engine.schema(frame)
        count, means, covariances = engine.moments(frame, {name: schema[name] for name in ("age", "pay")})
        held = engine.collect(frame, {name: schema[name] for name in ("age", "pay")})
    x = np.column_stack([held.column(name).to_numpy() for name in ("age", "pay")])
    x = x[~np.isnan(x).any(axis=1)]
    assert count == len(x)
    np.testing.assert_allclose(means, x.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(covariances, np.cov(x.T, bias=True), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("room", [0, 1_000])
def test_what_was_forgotten_is_counted_again(room: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = policy("lattice", privacy={"k": 25, "l": 2})
    held = kinfold.anonymize(table(nulls=0.01), asked)
    counted: list[str] = []
    monkeypatch.setattr("kinfold.methods.generalization.MAX_CACHED_SPREAD_CELLS", 0)
    monkeypatch.setattr("kinfold.tables.duckdb.engine.MAX_SMALL_COUNT", 0)
    monkeypatch.setattr("kinfold.tables.resources.DEFAULT_COUNTS_BYTES", room)
    spread = DuckDB._count_spread
    monkeypatch.setattr(DuckDB, "_count_spread", lambda *given: counted.append(given[3]) or spread(*given))
    again = kinfold.anonymize(table(nulls=0.01), asked)
    assert counted.count("disease") > 2
    assert again.measures.to_dict() == held.measures.to_dict()
    for name, release in (("held", held), ("again", again)):
        release.save(tmp_path / name)
    assert (tmp_path / "held/public/release.csv").read_bytes() == (tmp_path / "again/public/release.csv").read_bytes()
