"""A release in part files: the rows of the one file, every part certified, and nothing added, lost or moved."""

from __future__ import annotations

import json
import shutil
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import kinfold
from command import run
from kinfold import checker
from kinfold.errors import PolicyError
from kinfold.release.certificate import Certificate
from kinfold.studio.release_files import pack_folder, save_folder
from kinfold.tables.duckdb.engine import DuckDB
from kinfold.tables.engine import PartFolder
from kinfold.tables.queries import collect_rows
from kinfold.tables.readers.files import hash_rows

COLUMNS: dict[str, Any] = {"age": {"role": "quasi"}, "sex": {"role": "quasi"}, "disease": {"role": "confidential"}}


def people(rows: int = 300) -> pa.Table:
    numbers = range(rows)
    return pa.table(
        {
            "age": [20 + i * 7 % 50 for i in numbers],
            "sex": ["fm"[i % 2] for i in numbers],
            "disease": [["flu", "cold", None][i % 3] for i in numbers],
        }
    )


def policy(**output: Any) -> dict[str, Any]:
    return {"privacy": {"k": 5}, "columns": COLUMNS, "output": output}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release in five parts."""
    return kinfold.anonymize(people(), policy(parts=5)).save(tmp_path_factory.mktemp("parts") / "out")


# The rows

values = st.sampled_from([None, "", "a", "b", "ä,ß", 'q"q', "=1+1", "two\nlines", "7", "7.0", " 7"])
numbers = st.one_of(st.none(), st.sampled_from([0.0, -0.0, 0.1, 1e300, 2.5]), st.integers(-3, 3).map(float))


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(values, numbers, st.integers(0, 2)), min_size=1, max_size=25),
    st.integers(1, 30),
    st.integers(1, 3),
    st.booleans(),
    st.booleans(),
)
def test_the_rows_of_all_parts_are_those_of_the_one_file_in_its_order(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[Any, ...]],
    parts: int,
    columns: int,
    ordered: bool,
    quoted: bool,
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    types = (pa.string(), pa.float64(), pa.int64())
    table = pa.table(
        {n: pa.array([row[i] for row in rows], types[i]) for i, n in enumerate(("a", "rowid", "c")[:columns])}
    )
    with DuckDB() as engine:
        frame = engine.read(table)
        for ending in (".csv", ".parquet"):
            whole, several = folder / f"one{ending}", folder / ending[1:]
            several.mkdir()
            for target in (whole, PartFolder(several, ending, parts)):
                engine.write(frame, target, engine.schema(frame), ordered=ordered, quoted=quoted)
            files = sorted(several.iterdir())
            assert [file.name for file in files] == [f"part-{i:05}{ending}" for i in range(min(parts, len(rows)))]
            if ending == ".parquet":
                tables = [parquet.read_table(file) for file in files]
                assert str(pa.concat_tables(tables).to_pylist()) == str(parquet.read_table(whole).to_pylist())
                counts = [len(each) for each in tables]
                assert max(counts) - min(counts) <= 1
                continue
            header = whole.read_bytes().partition(b"\n")[0] + b"\n"
            texts = [file.read_bytes() for file in files]
            assert all(text.startswith(header) for text in texts)
            assert header + b"".join(text.removeprefix(header) for text in texts) == whole.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("many", [1, 1000])  # many equal rows are counted before they are sorted
def test_a_release_in_parts_has_the_rows_of_the_one_file(
    form: str, many: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kinfold.tables.duckdb import writing

    monkeypatch.setattr(writing, "MIN_ROWS_TO_COUNT", 10**9 // many)
    release = kinfold.anonymize(people(), policy(format=form))
    one = release.save(tmp_path / "one") / "public" / f"release.{form}"
    many_parts = kinfold.anonymize(people(), policy(format=form, parts=7)).save(tmp_path / "many")
    assert kinfold.verify(many_parts, twice=True).to_dict() == kinfold.verify(tmp_path / "one", twice=True).to_dict()
    with DuckDB() as engine:
        from kinfold.tables.source_form import ReleasedForm

        whole = collect_rows(engine, engine.read(one, form=ReleasedForm(separator=",")))
        frame = engine.read(many_parts / "public" / "release", form=ReleasedForm(separator=",", parts=True))
        assert collect_rows(engine, frame).equals(whole)
        assert [each.rows for each in frame.files] == [300 * (i + 1) // 7 - 300 * i // 7 for i in range(7)]


def test_more_parts_than_rows_are_as_many_parts_as_rows(tmp_path: Path) -> None:
    out = kinfold.anonymize(people(6), policy(parts=100)).save(tmp_path / "out")
    entry = json.loads((out / "public" / "certificate.json").read_text())["release"]
    assert [part["records"] for part in entry["parts"]] == [1] * 6
    assert kinfold.verify(out, twice=True).holds


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_parts_of_a_size_are_about_that_large(form: str, tmp_path: Path) -> None:
    table = pa.table({"x": [f"{i * 7919 % 1000003:040x}" for i in range(120_000)]})
    (tmp_path / "parts").mkdir()
    with DuckDB() as engine:
        frame = engine.read(table)
        target = PartFolder(tmp_path / "parts", f".{form}", None, 1_000_000)
        engine.write(frame, target, engine.schema(frame), ordered=True)
        engine.write(frame, tmp_path / f"one.{form}", engine.schema(frame), ordered=True)
    sizes = [file.stat().st_size for file in (tmp_path / "parts").iterdir()]
    total = (tmp_path / f"one.{form}").stat().st_size
    assert len(sizes) == -(-total // 1_000_000)
    assert max(sizes) < 1_300_000


# The folder

ALTERED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "missing": (lambda parts: (parts / "part-00002.csv").unlink(), "release/part-00002.csv"),
    "last missing": (lambda parts: (parts / "part-00004.csv").unlink(), "release/part-00004.csv"),
    "extra": (lambda parts: shutil.copy(parts / "part-00001.csv", parts / "part-00005.csv"), "release/part-00005.csv"),
    "other file": (lambda parts: (parts / "_SUCCESS").touch(), "release/_SUCCESS"),
    "changed": (lambda parts: replace(parts / "part-00003.csv", b"flu", b"hiv"), "release/part-00003.csv"),
    "truncated": (lambda parts: replace(parts / "part-00000.csv", None, b""), "release/part-00000.csv"),
    "exchanged": (lambda parts: exchange(parts / "part-00001.csv", parts / "part-00002.csv"), "release/part-00001.csv"),
    "all missing": (lambda parts: shutil.rmtree(parts), "release/part-00000.csv"),
}


def replace(file: Path, old: bytes | None, new: bytes) -> None:
    text = file.read_bytes()
    file.write_bytes(text[:-20] if old is None else text.replace(old, new, 1))


def exchange(one: Path, other: Path) -> None:
    text = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(text)


@pytest.mark.parametrize("how", ALTERED)
def test_a_part_that_is_not_as_certified_is_named_by_both_checkers(how: str, made: Path, tmp_path: Path) -> None:
    alter, name = ALTERED[how]
    shutil.copytree(made, tmp_path / "out")
    alter(tmp_path / "out" / "public" / "release")
    ran = run("verify", tmp_path / "out")
    assert ran.code in (3, 5)
    assert f"'{name}'" in ran.err
    said = checker.check_release(tmp_path / "out" / "public")
    assert not said["holds"]
    if how != "all missing":
        assert name.removeprefix("release/") in said["problems"][0]


def test_parts_without_a_certificate_are_no_release(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made, tmp_path / "out")
    (tmp_path / "out" / "public" / "certificate.json").unlink()
    run("verify", tmp_path / "out").fails(3, "no certificate can be read")
    assert not checker.check_release(tmp_path / "out" / "public")["holds"]


def move(entry: dict[str, Any], first: int, second: int) -> None:
    entry["parts"][first], entry["parts"][second] = entry["parts"][second], entry["parts"][first]


FORGED: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "other counts": (
        lambda entry: entry["parts"][0].update(records=59) or entry["parts"][1].update(records=61),
        "part-00000.csv",
    ),
    "other total": (lambda entry: entry["parts"][0].update(records=59), "release"),
    "other order": (lambda entry: move(entry, 0, 1), "release"),
    "left out": (lambda entry: entry["parts"].pop(), "release"),
    "another folder": (lambda entry: entry.update(file=".."), "release"),
}


@pytest.mark.parametrize("how", FORGED)
def test_a_certificate_that_lists_other_parts_is_refused(how: str, made: Path, tmp_path: Path) -> None:
    forge, named = FORGED[how]
    shutil.copytree(made, tmp_path / "out")
    file = tmp_path / "out" / "public" / "certificate.json"
    content = json.loads(file.read_text())
    del content["checksum"]
    forge(content["release"])
    file.write_text(Certificate(content).text())
    ran = run("verify", tmp_path / "out")
    assert ran.code in (3, 5)
    assert named in ran.err
    assert not checker.check_release(file.parent)["holds"]


def test_the_certificate_lists_every_part(made: Path) -> None:
    entry = json.loads((made / "public" / "certificate.json").read_text())["release"]
    assert entry["file"] == "release"
    assert entry["sha256"] == hash_rows(made / "public" / "release")  # sha256sum part-* | sha256sum
    assert [part["file"] for part in entry["parts"]] == [f"part-{i:05}.csv" for i in range(5)]
    assert sum(part["records"] for part in entry["parts"]) == entry["records"] == 300


def test_the_plain_checker_keeps_distinct_rows_only(tmp_path: Path) -> None:
    row = "40,f,flu\n"
    (tmp_path / "release").mkdir()
    parts = []
    for number in range(4):
        file = tmp_path / "release" / f"part-{number:05}.csv"
        file.write_text("age,sex,disease\n" + row * 20_000)
        parts.append({"file": file.name, "sha256": "0" * 64, "records": 20_000})
    columns = [{"name": name, "role": "quasi-identifier", "type": "nominal"} for name in ("age", "sex")]
    columns.append({"name": "disease", "role": "confidential", "type": "nominal", "distance": "equal"})
    asked = {"model": "KAnonymity", "parameters": {"k": 5}, "promise": "5-anonymity", "asked": 5, "found": 80_000}
    told = {
        "release": {"file": "release", "separator": ",", "parts": parts, "records": 80_000, "classes": 1},
        "columns": columns,
        "promises": [asked],
        "joint": False,
        "found": {"k": 80_000, "l": {"disease": 1}, "t": {"disease": 0.0}},
    }
    tracemalloc.start()
    try:
        assert checker.check_table(tmp_path / "release", told)["holds"]
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


# What uses a release


def test_the_data_package_names_every_part(made: Path) -> None:
    (resource,) = json.loads((made / "public" / "datapackage.json").read_text())["resources"]
    assert resource["path"] == [f"release/part-{i:05}.csv" for i in range(5)]
    assert all((made / "public" / path).is_file() for path in resource["path"])
    assert (resource["name"], resource["format"], resource["mediatype"]) == ("release", "csv", "text/csv")
    assert "`release/part-*`, 300 records" in (made / "public" / "dictionary.md").read_text()
    assert json.loads((made / "public" / "dictionary.json").read_text())["parts"] == 5


def test_the_studio_packs_and_saves_parts(made: Path, tmp_path: Path) -> None:
    names = {file.relative_to(made / "public").as_posix() for file in (made / "public").rglob("*") if file.is_file()}
    with zipfile.ZipFile(pack_folder(made / "public", tmp_path)) as archive:
        assert {*archive.namelist()} == names
    save_folder(made / "public", tmp_path, tmp_path / "saved")
    assert kinfold.verify(tmp_path / "saved", twice=True).holds


@pytest.mark.slow
def test_measure_and_diff_read_parts(tmp_path: Path) -> None:
    parquet.write_table(people(), tmp_path / "t.parquet")
    for name, output in (("one", {}), ("many", {"parts": 3})):
        kinfold.anonymize(tmp_path / "t.parquet", policy(**output)).save(tmp_path / name)
    one, many = (
        kinfold.measure(tmp_path / "t.parquet", tmp_path / name / "public" / file, policy()).to_dict()
        for name, file in (("one", "release.csv"), ("many", "release"))
    )
    assert one == many
    assert one["loss"]["overall"] is not None
    ran = run("diff", tmp_path / "one", tmp_path / "many", "--json")
    assert all(each["same"] for each in json.loads(ran.out)["release"].values())
    pattern = tmp_path / "many" / "public" / "release" / "*.csv"
    assert kinfold.verify(pattern, policy() | {"source": {"parts": True}}).holds
    with pytest.raises(PolicyError, match="the second checker reads only"):
        kinfold.verify(pattern, policy() | {"source": {"parts": True}}, twice=True)


@pytest.mark.slow
def test_later_releases_of_the_same_people_read_parts(tmp_path: Path) -> None:
    table = people().append_column("id", pa.array(range(300)))
    asked = policy(parts=4) | {"columns": COLUMNS | {"id": {"role": "identifier"}}}
    asked["privacy"] = {"k": 5, "unit": "id"}
    for name, after in (("first", []), ("second", [tmp_path / "first"])):
        kinfold.anonymize(table, asked, after=after).save(tmp_path / name)
    assert kinfold.verify(tmp_path / "second", together_with=[tmp_path / "first"]).disclosure is not None
    for name in ("first", "second"):  # as a recipient
        shutil.rmtree(tmp_path / name / "internal")
    estimated = kinfold.verify(tmp_path / "second", together_with=[tmp_path / "first"]).disclosure
    assert estimated is not None
    assert estimated.estimated


@pytest.mark.slow
def test_the_command_and_python_write_parts(tmp_path: Path) -> None:
    parquet.write_table(people(), tmp_path / "t.parquet")
    asked = ("--quasi", "age,sex", "--confidential", "disease", "-k", "5")
    for name, setting in (("flag", ("--part-files", "3")), ("set", ("--set", "output.parts=3"))):
        run("anonymize", tmp_path / "t.parquet", *asked, *setting, "--out", tmp_path / name).ok()
    release = kinfold.anonymize(people(), quasi=["age", "sex"], confidential=["disease"], k=5, output_parts=3)
    release.save(tmp_path / "python")
    release.save(tmp_path / "python", force=True)
    sums = {hash_rows(tmp_path / name / "public" / "release") for name in ("flag", "set", "python")}
    assert len(sums) == 1
    run("verify", tmp_path / "flag", "--twice").ok()


def test_parts_read_are_not_parts_written(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    parquet.write_table(people(), tmp_path / "t" / "p.parquet")
    release = kinfold.anonymize(tmp_path / "t", quasi=["age", "sex"], confidential=["disease"], k=5, parts=True)
    assert (release.save(tmp_path / "out") / "public" / "release.csv").is_file()


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        (0, "output.parts"),
        (True, "output.parts"),
        (100_001, "output.parts"),
        ("many", '16 or "256MB"'),
        ("5 KB", "not smaller than 1 MB"),
        (2.5, "output.parts"),
    ],
)
def test_parts_that_make_no_sense_are_refused(parts: Any, told: str) -> None:
    with pytest.raises(PolicyError, match=told):
        kinfold.anonymize(people(), policy(parts=parts))


def test_a_release_of_several_tables_has_no_parts(tmp_path: Path) -> None:
    visits = pa.table({"id": [i % 20 for i in range(40)], "code": ["ab"[i % 2] for i in range(40)]})
    parquet.write_table(visits, tmp_path / "visits.parquet")
    parquet.write_table(
        pa.table({"id": range(20), "sex": ["fm"[i % 2] for i in range(20)]}), tmp_path / "people.parquet"
    )
    asked = {
        "privacy": {"k": 2, "unit": "id"},
        "method": {"people": "together"},
        "tables": {"people": {"file": str(tmp_path / "people.parquet")}},
        "columns": {"id": {"role": "identifier"}, "sex": {"role": "quasi"}, "code": {"role": "quasi"}},
        "output": {"surrogate": True, "parts": 2},
    }
    with pytest.raises(PolicyError, match="a release of several tables has one file for each"):
        kinfold.anonymize(tmp_path / "visits.parquet", asked)
