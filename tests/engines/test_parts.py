"""Tables in many files, and the limits that an engine is given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import kinfold
from command import run
from kinfold.errors import DataError, KinfoldError, PolicyError, Unreachable
from kinfold.tables.duckdb.engine import DuckDB
from kinfold.tables.queries import collect_rows
from kinfold.tables.resources import Resources
from kinfold.tables.source_form import SourceForm

PARTS = SourceForm(parts=True)
RULES: dict[str, Any] = {
    "privacy": {"k": 2},
    "method": {"name": "lattice", "suppression": 0.2},
    "columns": {
        "age": {"role": "quasi", "type": "continuous", "hierarchy": {"intervals": [10, 50]}},
        "sex": {"role": "quasi"},
        "disease": {"role": "confidential"},
    },
}


def rows(start: int, stop: int) -> pa.Table:
    numbers = range(start, stop)
    return pa.table(
        {
            "age": [20 + i * 7 % 50 for i in numbers],
            "sex": ["fm"[i % 2] for i in numbers],
            "disease": [["flu", "cold", None][i % 3] for i in numbers],
        }
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "parts"
    made.mkdir()
    for number, start in enumerate((0, 100, 130)):
        parquet.write_table(rows(start, (100, 130, 300)[number]), made / f"part-{number}.parquet")
    (made / "_SUCCESS").touch()
    return made


@pytest.mark.parametrize("pattern", ["", "*.parquet", "part-[0-9].parquet"])
def test_parts_are_one_table_in_the_order_of_their_names(folder: Path, pattern: str) -> None:
    with DuckDB() as engine:
        frame = engine.read(folder / pattern if pattern else folder, form=PARTS)
        assert collect_rows(engine, frame).to_pylist() == rows(0, 300).to_pylist()


def test_parts_give_the_release_of_the_whole(folder: Path, tmp_path: Path) -> None:
    parquet.write_table(rows(0, 300), tmp_path / "whole.parquet")
    kinfold.anonymize(tmp_path / "whole.parquet", RULES).save(tmp_path / "one")
    kinfold.anonymize(folder, {**RULES, "source": {"parts": True}}).save(tmp_path / "many")
    one, many = ((tmp_path / name / "public" / "release.csv").read_bytes() for name in ("one", "many"))
    assert one == many


def test_a_folder_or_a_pattern_is_no_table_unless_the_policy_says_so(folder: Path) -> None:
    with DuckDB() as engine:
        with pytest.raises(DataError, match="is a folder, not a file"):
            engine.read(folder)
        with pytest.raises(DataError, match="no such file"):
            engine.read(folder / "*.parquet")


FEW = rows(0, 5)
TEXTS = FEW.set_column(0, "age", FEW["age"].cast(pa.string()))
BROKEN = {
    "part 'part-1.parquet' has other columns than 'part-0.parquet': 'gender', 'sex'": lambda part: parquet.write_table(
        FEW.rename_columns(["age", "gender", "disease"]), part
    ),
    "'part-1.parquet' has other columns than 'part-0.parquet' in another order": lambda part: parquet.write_table(
        FEW.select(["sex", "age", "disease"]), part
    ),
    "'part-1.parquet' has other types than 'part-0.parquet': 'age'": lambda part: parquet.write_table(TEXTS, part),
    "'part-1.parquet' cannot be read": lambda part: part.write_bytes(part.read_bytes()[:-20]),
    "have different formats": lambda part: csv.write_csv(FEW, part.with_suffix(".csv")),
    "is a folder: names of folders are not read": lambda part: (part.parent / "sex=f").mkdir(),
}


@pytest.mark.parametrize("told", BROKEN)
def test_parts_that_do_not_fit_are_refused_and_nothing_is_left(folder: Path, tmp_path: Path, told: str) -> None:
    BROKEN[told](folder / "part-1.parquet")
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    with pytest.raises(DataError, match=told.replace("(", r"\(")):
        kinfold.anonymize(folder, {**RULES, "source": {"parts": True}}).save(tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert {path: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_lines_cut_off_in_a_part_are_refused(tmp_path: Path) -> None:
    for number in range(2):
        csv.write_csv(rows(0, 20), tmp_path / f"p{number}.csv")
    whole = (tmp_path / "p1.csv").read_text()
    (tmp_path / "p1.csv").write_text(whole[: whole.rindex(",")])
    with (
        DuckDB() as engine,
        pytest.raises(DataError, match=r"'p1.csv': 1 line has another number of fields than the header"),
    ):
        engine.read(tmp_path / "p*.csv", form=PARTS)


def test_the_command_reads_parts_within_limits(folder: Path, tmp_path: Path) -> None:
    spill = tmp_path / "spill"
    spill.mkdir()
    asked = ("--quasi", "sex", "--confidential", "disease", "--others", "drop", "-k", "2", "--method", "lattice")
    limits = ("--parts", "--memory", "1GB", "--spill", spill, "--threads", "1", "--engine", "duckdb")
    ran = run("anonymize", folder, *asked, *limits, "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    assert not [*spill.iterdir()]
    assert (tmp_path / "out" / "public" / "release.csv").read_text().count("\n") == 301


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("memory", "100MB", "engine.memory"),
        ("memory", "plenty", "engine.memory"),
        ("threads", 0, "engine.threads"),
        ("name", "abacus", "engine.name"),
        ("spill", "/no/such/folder", "cannot make a temporary folder"),
    ],
)
def test_limits_that_make_no_sense_are_refused(key: str, value: Any, told: str, tmp_path: Path) -> None:
    parquet.write_table(rows(0, 50), tmp_path / "t.parquet")
    with pytest.raises(PolicyError, match=told):
        kinfold.anonymize(tmp_path / "t.parquet", {**RULES, "engine": {key: value}})


def test_too_little_memory_is_told_as_such() -> None:
    table = pa.table({"x": [f"{i:09}" for i in range(400_000)]})
    limits = Resources(memory=30 << 20, threads=1)
    with DuckDB(limits) as engine, pytest.raises(Unreachable, match="not enough memory") as raised:
        engine.tally(engine.read(table), ["x"], {})
    assert "engine.memory" in str(raised.value)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
def test_a_full_disk_is_told_as_such(tmp_path: Path) -> None:
    with DuckDB(Resources(on_disk=True)) as engine:
        frame = engine.read(rows(0, 50))
        with pytest.raises(KinfoldError, match=r"disk|write"):
            engine.write(frame, Path("/dev/full"), engine.schema(frame), ordered=False)


def test_rows_on_disk_and_in_memory_give_the_same_bytes(tmp_path: Path) -> None:
    parquet.write_table(rows(0, 3000), tmp_path / "t.parquet")
    kinfold.anonymize(tmp_path / "t.parquet", RULES).save(tmp_path / "memory")
    limited = {**RULES, "engine": {"memory": "600MB", "threads": 1}}
    kinfold.anonymize(tmp_path / "t.parquet", limited).save(tmp_path / "disk")
    one, other = ((tmp_path / name / "public" / "release.csv").read_bytes() for name in ("memory", "disk"))
    assert one == other


def test_many_equal_rows_are_written_as_sorting_writes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kinfold.tables.duckdb import writing as sorted_rows

    table = pa.concat_tables([rows(0, 300)] * 40)
    made = []
    for many in (10, 10**9):
        monkeypatch.setattr(sorted_rows, "MIN_ROWS_TO_COUNT", many)
        with DuckDB() as engine:
            frame = engine.read(table)
            for name in ("t.csv", "t.parquet"):
                engine.write(frame, tmp_path / name, engine.schema(frame), ordered=True)
            made.append([(tmp_path / name).read_bytes() for name in ("t.csv", "t.parquet")])
    assert made[0] == made[1]
