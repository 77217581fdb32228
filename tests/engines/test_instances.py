"""Small tables share an instance of the database, and nothing else."""

from __future__ import annotations

import gc
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import kinfold
from kinfold.errors import Cancelled
from kinfold.tables.duckdb import connection as instances
from kinfold.tables.duckdb.engine import DuckDB
from kinfold.tables.queries import collect_rows
from kinfold.tables.resources import MAX_BYTES_IN_MEMORY, MAX_EXPANSION, MAX_SMALL_BYTES, Resources

ENDLESS = "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE (a.range * b.range) % 7 = 3"


def small() -> DuckDB:
    return DuckDB(Resources(small=True))


def names() -> set[str]:
    """The databases that runs have in the shared instance."""
    found = instances._shared_instances[0].cursor().execute("SELECT database_name FROM duckdb_databases()").fetchall()
    return {name for (name,) in found if name.startswith("run")}


def test_each_run_sees_its_own_tables_and_one_that_is_closed_leaves_the_others_alone() -> None:
    with small() as one:
        a = one.read(pa.table({"x": [1, 2]}))
        with small() as other:
            b = other.read(pa.table({"x": [7, 8, 9]}))
            assert a.table == b.table
            assert collect_rows(one, a)["x"].to_pylist() == [1, 2]
            assert collect_rows(other, b)["x"].to_pylist() == [7, 8, 9]
        assert collect_rows(one, a)["x"].to_pylist() == [1, 2]


@pytest.mark.slow
@pytest.mark.parametrize("closed", [True, False])
def test_nothing_of_a_run_is_left(closed: bool) -> None:
    gc.collect()  # earlier tests may have left engines that only the collector closes
    with small():
        before = names()
        engine = small()
        engine.read(pa.table({"x": [1, 2]}))
        assert len(names()) == len(before) + 1
        if closed:
            engine.close()
        else:
            del engine
            gc.collect()
        assert names() == before


def test_rows_that_are_still_being_read_do_not_keep_a_run() -> None:
    with small():
        before = names()
        engine = small()
        reader = engine._db.reader("SELECT * FROM range(100000)", 1000)
        assert reader.read_next_batch().num_rows == 1000
        engine.close()
        assert names() == before


def test_what_one_run_registers_no_other_sees() -> None:
    with small() as one, small() as other, one._db.registered(pa.table({"x": [1]})) as view:
        assert one._db.count(view) == 1
        with pytest.raises(duckdb.CatalogException):
            other._db.count(view)


def test_runs_are_stopped_one_at_a_time() -> None:
    with small() as one, small() as other:
        ends: list[BaseException] = []

        def run() -> None:
            try:
                one._db.row(ENDLESS)
            except BaseException as error:
                ends.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        frame = other.read(pa.table({"x": [1, 2]}))
        deadline = time.monotonic() + 30
        while thread.is_alive() and time.monotonic() < deadline:
            one._db.interrupt()
            thread.join(0.05)
        assert isinstance(ends[0], Cancelled)
        assert collect_rows(other, frame)["x"].to_pylist() == [1, 2]


@pytest.mark.slow
def test_many_at_once_release_what_each_releases_alone() -> None:
    table = pa.table({"age": [31, 32, 33, 34, 51, 52, 53, 54] * 4, "illness": ["flu", "cold"] * 16})

    def released(k: int) -> dict[str, Any]:
        made = kinfold.anonymize(table, quasi=["age"], confidential=["illness"], k=k)
        return made.frame.to_pydict()

    alone = [released(k) for k in range(2, 10)]
    with ThreadPoolExecutor(8) as several:
        assert list(several.map(released, range(2, 10))) == alone


@pytest.mark.parametrize("setting", ["SET threads = 2", "SET TimeZone = 'Asia/Tokyo'", "SET temp_directory = '/'"])
def test_nobody_changes_the_settings_of_all(setting: str) -> None:
    with small() as engine, pytest.raises(duckdb.InvalidInputException, match="locked"):
        engine._db.execute(setting)


@pytest.mark.parametrize("limits", [Resources(small=True), Resources(), Resources(on_disk=True)])
def test_a_day_is_the_same_day_everywhere(limits: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        monkeypatch.setattr(instances, "_shared_instances", [])
        with DuckDB(limits) as engine:
            assert engine._db.row("SELECT CAST(TIMESTAMPTZ '2020-01-01' AS VARCHAR)")[0] == "2020-01-01 00:00:00+00"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_after_what_ends_an_instance_there_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instances, "_shared_instances", [])
    with small() as before:
        (first,) = instances._shared_instances
        instances.forget_broken_instance(duckdb.BinderException("a wrong question ends nothing"))
        assert instances._shared_instances == [first]
        instances.forget_broken_instance(duckdb.FatalException("the database has been invalidated"))
        with small() as after:
            assert instances._shared_instances != [first]
            assert after._db.row("SELECT 1") == before._db.row("SELECT 1")


def test_a_fault_inside_the_database_is_told_to_the_instances(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[duckdb.Error] = []
    monkeypatch.setattr(instances, "forget_broken_instance", told.append)
    with small() as engine, pytest.raises(duckdb.CatalogException):
        engine._db.row("SELECT * FROM nowhere")
    assert [type(error) for error in told] == [duckdb.CatalogException]


def test_what_is_small_is_told_by_the_bytes(tmp_path: Path) -> None:
    few, many, most = (tmp_path / f"{name}.csv" for name in ("few", "many", "most"))
    few.write_bytes(b"x" * MAX_SMALL_BYTES)
    many.write_bytes(b"x" * (MAX_SMALL_BYTES + 1))
    with most.open("wb") as file:
        file.truncate(MAX_BYTES_IN_MEMORY + 1)
    packed, hidden = tmp_path / "few.parquet", tmp_path / "many.csv.gz"
    packed.write_bytes(b"x" * (MAX_SMALL_BYTES // MAX_EXPANSION))
    hidden.write_bytes(b"x" * (MAX_SMALL_BYTES // MAX_EXPANSION + 1))
    cases = {(few,): (1, 0), (many,): (0, 0), (most,): (0, 1), (tmp_path,): (0, 1), (few, few, packed): (1, 0)}
    cases |= {(packed,): (1, 0), (hidden,): (0, 0), (few, many): (0, 0), (few, few, most): (0, 1), (): (0, 0)}
    for sources, (small, on_disk) in cases.items():
        found = Resources().for_sources(*sources)
        assert (found.small, found.on_disk) == (small, on_disk), [source.name for source in sources]
    assert Resources().for_sources(pa.table({"x": [1]})).small
    assert not Resources().for_sources(pa.table({"x": range(MAX_SMALL_BYTES)})).small
    assert not Resources().for_sources(None).small


@pytest.mark.parametrize("limits", [{"memory": 1 << 30}, {"threads": 2}, {"spill": Path()}])
def test_whoever_names_limits_gets_an_instance_with_them(limits: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_text("x\n1\n")
    found = Resources(**limits).for_sources(file)
    assert not found.small
    assert found.on_disk == ("memory" in limits)
