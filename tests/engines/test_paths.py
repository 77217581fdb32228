"""A path is a path, and a release is read with its own separator."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kinfold
from command import run
from everyday import pairwise
from kinfold.errors import DataError, PolicyError
from kinfold.tables.duckdb.engine import DuckDB
from kinfold.tables.queries import collect_rows
from kinfold.tables.readers import files as source
from small_tables import SMALL

NAMES = ["table[1]", "t*", "t?", "t[!a]", "[a-z]", "**", "age=1", "a b", "it's", 'a"b', "{a,b}", "back\\slash[1]", "~"]
NAMES += ["%41", "ü"]
SEPARATORS = [",", ";", "\t", "|"]
DECOYS = ["table1", "ta", "tb", "b"]


def write(path: Path, ages: list[int]) -> Path:
    """Write a table in the format of the ending."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({"age": ages, "wage": ages})
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    else:
        path.write_text("age,wage\n" + "".join(f"{age},{age}\n" for age in ages))
    return path


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".jsonl"])
@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_read_by_its_name(tmp_path: Path, name: str, ending: str) -> None:
    for decoy in DECOYS:
        write(tmp_path / f"{decoy}{ending}", [9, 9, 9])
    path = write(tmp_path / f"{name}{ending}", [1, 2])
    with DuckDB(SMALL) as engine:
        frame = engine.read(path)
        assert collect_rows(engine, frame).column("age").cast(pa.int64()).to_pylist() == [1, 2]
        assert frame.checksum == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".jsonl"])
@pytest.mark.parametrize("folder", ["age=1", "year=2020/wage=5", "*", "a[b]c", "http:", "s3:"])
def test_folders_are_folders(tmp_path: Path, folder: str, ending: str) -> None:
    path = write(tmp_path / folder / f"t{ending}", [1, 2])
    with DuckDB(SMALL) as engine:
        frame = engine.read(path)
        assert frame.names == ("age", "wage")
        assert collect_rows(engine, frame).column("age").cast(pa.int64()).to_pylist() == [1, 2]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("folder", ["age=1", "out[1]", "o*"])
def test_a_release_below_any_folder_is_judged_by_its_file(tmp_path: Path, folder: str, form: str) -> None:
    ages = [1, 1, 2, 3, 8, 8, 9, 9, 9, 9]
    source = write(tmp_path / "t.csv", ages)
    out = tmp_path / folder / "release"
    asked = ("--quasi", "age", "--confidential", "wage", "-k", 5, "--format", form, "--out", out)
    assert run("anonymize", source, *asked).code == 0
    assert kinfold.verify(out).k == 5
    assert run("verify", out, "--twice").code == 0
    raw = write(tmp_path / folder / f"raw.{form}", ages)
    assert kinfold.verify(raw, quasi=["age"], confidential=["wage"], k=5).k == 1


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/t.csv", "md:t.csv"])
def test_an_address_is_no_path(address: str) -> None:
    run("profile", address).fails(3, "no such file")


@pytest.mark.parametrize("address", ["s3://bucket/t.parquet", "file:///t.csv"])
def test_an_address_that_a_cluster_reads_is_refused_by_the_embedded_engine(address: str) -> None:
    run("profile", address).fails(2, "for Spark alone", "--engine spark")


def test_no_extension_is_loaded_and_nothing_can_be_switched_on() -> None:
    import duckdb

    with DuckDB(SMALL) as engine:
        for query in ("SELECT * FROM 'http://127.0.0.1:9/t.csv'", "SET autoload_known_extensions = true"):
            with pytest.raises(duckdb.Error):
                engine._db.execute(query)


def test_what_is_no_ordinary_file_is_refused(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe.csv")
    with DuckDB(SMALL) as engine, pytest.raises(DataError, match="not a regular file"):
        engine.read(tmp_path / "pipe.csv")


def test_a_source_that_changes_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "t.csv", [1, 2])
    plain = source.make_plain_path

    def changed(*args: object) -> Path:
        path.write_text(path.read_text() + "3,3\n")
        return plain(*args)  # type: ignore[arg-type]

    monkeypatch.setattr("kinfold.tables.readers.reading.make_plain_path", changed)
    with DuckDB(SMALL) as engine, pytest.raises(DataError, match="changed while it was read"):
        engine.read(path)


def test_a_temporary_folder_that_is_a_pattern_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t[m]p").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "t[m]p"))
    path = write(tmp_path / "a[1].csv", [1, 2])
    with DuckDB(SMALL) as engine, pytest.raises(PolicyError, match="the name of the temporary folder"):
        engine.read(path)


def test_the_audit_holds_the_hash_of_what_was_read(tmp_path: Path) -> None:
    path = write(tmp_path / "t[1].csv", [1, 1, 2, 2])
    write(tmp_path / "t1.csv", [7, 7, 7, 7])
    read = hashlib.sha256(path.read_bytes()).hexdigest()
    release = kinfold.anonymize(path, quasi=["age"], confidential=["wage"], k=2)
    path.write_text("age,wage\n5,5\n")  # afterwards: it is not what was read
    release.save(tmp_path / "out")
    assert json.loads((tmp_path / "out/internal/audit.json").read_text())["source"]["sha256"] == read


# A release is read with the separator that it was written with, whatever else its fields hold.


@pairwise(mark=SEPARATORS, other=SEPARATORS, role=["confidential", "identifier"])
def test_fields_that_hold_another_separator(tmp_path: Path, mark: str, other: str, role: str) -> None:
    """Every line has the same number of both separators: only the certificate says which one is meant.

    Without the identifier a single column is left, and the file looks like one of two columns.
    """
    header = f"last{other}first"
    rows = [(f'"{i % 2}{other}{i % 2}"', "x" if role == "confidential" else str(i)) for i in range(8)]
    lines = [mark.join((f'"{header}"', "second")), *map(mark.join, rows)]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    release = kinfold.anonymize(tmp_path / "t.csv", quasi=[header], k=2, method="mdav", **{role: ["second"]})
    release.save(tmp_path / "out")
    assert kinfold.verify(tmp_path / "out", twice=True).k == 4
