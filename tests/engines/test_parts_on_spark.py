"""Part files that executors write: the bytes of the embedded engine, checked in the cluster, no row to the driver."""

from __future__ import annotations

import datetime
import decimal
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import kinfold
import sparks
from kinfold.errors import PolicyError, VerifyError
from kinfold.tables.duckdb.engine import DuckDB
from kinfold.tables.engine import PartFolder
from kinfold.tables.resources import Resources
from kinfold.tables.spark import writing
from kinfold.tables.spark.engine import Spark


def odd_table(rows: int) -> pa.Table:
    """Types that Spark has, and those that travel as text; many equal rows; a column named like a row number."""
    numbers = range(rows)
    texts = ["x", None, "ä", "=1", "two\nlines", "", 'q"']
    return pa.table(
        {
            "text": [texts[i * 7919 % 7] for i in numbers],
            "rowid": [i * 31 % 101 for i in numbers],
            "number": [[0.5, None, 1e300, -2.25, float("nan")][i * 17 % 5] for i in numbers],
            "day": [datetime.date(2000, 1, 1 + i % 28) for i in numbers],
            "share": [decimal.Decimal(i % 13) / 4 for i in numbers],
            "at": pa.array([i * 1000003 for i in numbers], pa.timestamp("ns")),
            "time": pa.array([i % 1000 for i in numbers], pa.time64("us")),
        }
    )


def write(engine: Any, table: pa.Table, target: PartFolder, **how: bool) -> dict[str, bytes]:
    with engine:
        frame = engine.read(table)
        target.folder.mkdir(parents=True)
        engine.write(frame, target, engine.schema(frame), **how)
    assert [path.name for path in target.folder.parent.iterdir()] == [target.folder.name]
    return {file.name: file.read_bytes() for file in sorted(target.folder.iterdir())}


@pytest.mark.parametrize(
    ("ending", "size", "how"),
    [
        (".csv", {"parts": 7}, {"ordered": True, "quoted": True}),
        (".parquet", {"parts": 7}, {"ordered": True}),
        pytest.param(".csv", {"bytes": 4_000}, {"ordered": True}, marks=pytest.mark.slow),
        pytest.param(".parquet", {"parts": 1000}, {"ordered": False, "quoted": True}, marks=pytest.mark.slow),
    ],
)
def test_executors_write_the_bytes_of_the_embedded_engine(
    spark: Any, ending: str, size: dict[str, int], how: dict[str, bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "bytes" in size:  # so that the trial has some of the rows only
        from kinfold.tables.duckdb import writing as of_duckdb

        monkeypatch.setattr(of_duckdb, "BLOCK_ROWS", 16)
        monkeypatch.setattr(of_duckdb, "TRIAL_ROWS", 64)
    table = odd_table(40 if size == {"parts": 1000} else 500)
    local = write(DuckDB(), table, PartFolder(tmp_path / "one" / "release", ending, **size), **how)
    brought = sparks.watch_driver(monkeypatch)
    sent = write(Spark(spark, Resources()), table, PartFolder(tmp_path / "two" / "release", ending, **size), **how)
    assert sent == local
    assert len(sent) == (40 if size == {"parts": 1000} else len(local))
    written = [each.columns for each in brought if "bytes" in each.columns or "range" in each.columns]
    assert written  # the sizes of ranges and parts
    assert all(each.rows <= max(len(local), spark.sparkContext.defaultParallelism * 2) for each in brought[-2:])


RULES: dict[str, Any] = {
    "privacy": {"k": 5},
    "method": {"name": "lattice", "suppression": 0.1},
    "columns": {
        "age": {"role": "quasi", "type": "continuous", "hierarchy": {"intervals": [10, 50]}},
        "sex": {"role": "quasi"},
        "disease": {"role": "confidential"},
    },
}


@pytest.mark.parametrize("form", ["csv", pytest.param("parquet", marks=pytest.mark.long)])
def test_a_release_in_parts_is_that_of_the_embedded_engine_and_is_checked_in_the_cluster(
    spark: Any, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = range(600)
    columns = {
        "age": [20 + i * 7 % 50 for i in numbers],
        "sex": ["fm"[i % 2] for i in numbers],
        "disease": [["flu", "cold", None][i % 3] for i in numbers],
    }
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    asked = {**RULES, "output": {"format": form, "parts": 4}}
    kinfold.anonymize(tmp_path / "t.parquet", asked).save(tmp_path / "one")
    read: list[Any] = []
    found: Callable[..., Any] = Spark.read

    def watch(self: Any, source: Any, *rest: Any, **more: Any) -> Any:
        read.append(source)
        return found(self, source, *rest, **more)

    monkeypatch.setattr(Spark, "read", watch)
    kinfold.anonymize(tmp_path / "t.parquet", {**asked, "engine": {"name": "spark"}}).save(tmp_path / "two")
    assert [path.name for path in read] == ["t.parquet", "release"]
    one, two = (
        {str(file.relative_to(tmp_path / name)): file.read_bytes() for file in (tmp_path / name / "public").rglob("p*")}
        for name in ("one", "two")
    )
    assert len(one) == 4
    assert one == two
    assert kinfold.verify(tmp_path / "two", twice=True).holds
    assert kinfold.verify(tmp_path / "two", k=5, engine="spark").holds
    assert len(read) == 3
    part = tmp_path / "two" / "public" / "release" / f"part-00002.{form}"
    shutil.copy(part.with_name(f"part-00001.{form}"), part)
    with pytest.raises(VerifyError, match="part-00002"):
        kinfold.verify(tmp_path / "two", k=5, engine="spark")


def test_a_task_that_fails_in_the_middle_of_a_part_is_repeated_with_the_same_bytes(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, failed = odd_table(90), tmp_path / "failed"
    local = write(DuckDB(), table, PartFolder(tmp_path / "one" / "release", ".csv", 3), ordered=True)
    target = PartFolder(tmp_path / "two" / "release", ".csv", 3)
    attempt = target.folder.with_name(writing.ATTEMPTS) / "half.csv"

    def fail(session: Any, writer: Any, rows: Any, part: Any, parts: int) -> Any:
        def fail_once(group: pa.Table) -> pa.Table:
            if group.column("part")[0].as_py() == 1 and not failed.exists():
                failed.touch()
                attempt.write_bytes(b"half of a")
                raise OSError("lost")
            return writer(group)

        return found(session, fail_once, rows, part, parts)

    found = writing._write_groups
    monkeypatch.setattr(writing, "_write_groups", fail)
    assert write(Spark(spark, Resources()), table, target, ordered=True) == local
    assert failed.exists()


def test_a_folder_that_the_executors_do_not_share_is_refused(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = tmp_path / "out" / "public" / "release"
    release.mkdir(parents=True)

    def lose(session: Any, writer: Any, rows: Any, part: Any, parts: int) -> Any:
        written = found(session, writer, rows, part, parts)
        (release / "part-00001.csv").unlink()
        return written

    found = writing._write_groups
    monkeypatch.setattr(writing, "_write_groups", lose)
    with Spark(spark, Resources()) as engine:
        frame = engine.read(odd_table(50))
        schema = engine.schema(frame)
        with pytest.raises(PolicyError, match="another disk than"):
            engine.write(frame, PartFolder(release, ".csv", 3), schema, ordered=True)
    assert not release.with_name(writing.ATTEMPTS).exists()
