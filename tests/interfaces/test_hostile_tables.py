"""A pipe, a device or a folder where a file should be: said at once, for a pipe may never end."""

import json
import os
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kinfold
from command import run, text
from everyday import first
from kinfold.errors import DataError

pytestmark = pytest.mark.timeout(60)

POLICY = '[privacy]\nk = 3\n[columns.age]\nrole = "quasi"\n'
ENTRIES: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "folder": Path.mkdir,
    "device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release")
    text(folder, "t.csv", "age\n" + "".join(f"{i // 4}\n" for i in range(24)))
    text(folder, "policy.toml", POLICY)
    assert run("anonymize", folder / "t.csv", "--policy", folder / "policy.toml", "--out", folder / "out").code == 0
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("kind", ENTRIES)
def test_what_is_no_file_is_refused_by_every_command(release: Path, kind: str, tmp_path: Path) -> None:
    odd, table, policy = tmp_path / "odd.csv", release / "t.csv", release / "policy.toml"
    ENTRIES[kind](odd)
    asked = [
        ("profile", odd),
        ("anonymize", odd, "--policy", policy, "--out", tmp_path / "a"),
        ("anonymize", table, "--policy", odd, "--out", tmp_path / "b"),
        ("measure", table, odd, "--policy", policy),
        ("measure", table, table, "--policy", policy, "--weights", odd),
        ("compare", odd, "--policy", policy, "--methods", "mdav", "--k", "3", "--out", tmp_path / "c"),
        ("convert", odd, "--out", tmp_path / "d"),
    ]
    for arguments in asked:
        ran = run(*arguments)
        assert ran.code in (2, 3), arguments
        assert "fix:" in ran.err


@pytest.mark.parametrize("kind", ENTRIES)
@pytest.mark.parametrize("name", ["release.csv", "certificate.json", "report.html"])
def test_what_is_no_file_in_a_release_fails_it(release: Path, name: str, kind: str, tmp_path: Path) -> None:
    public = shutil.copytree(release / "out" / "public", tmp_path / "public")
    (public / name).unlink()
    ENTRIES[kind](public / name)
    ran = run("verify", public)
    assert ran.code in (3, 5)
    assert "fix:" in ran.err + ran.out


@pytest.mark.parametrize("kind", ENTRIES)
def test_a_folder_whose_certificate_is_no_file_is_not_replaced(release: Path, kind: str, tmp_path: Path) -> None:
    folder = shutil.copytree(release / "out", tmp_path / "out")
    (folder / "public" / "certificate.json").unlink()
    ENTRIES[kind](folder / "public" / "certificate.json")
    run("anonymize", release / "t.csv", "--policy", release / "policy.toml", "--out", folder, "--force").fails(2)
    assert (folder / "public" / "release.csv").exists()


# Tables that mean no good: names that other libraries read as patterns, values that no file holds, keys told twice


N = 24
FIVES = [i // 6 for i in range(N)]


def policy(columns: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"privacy": {"k": 3}, "columns": columns, **more}


@pytest.mark.parametrize("name", first(["*", "^.*$", "^se.*$", "^[$", "a.b"], 3))
def test_a_name_that_is_a_pattern_brings_no_other_column(name: str) -> None:
    table = {name: FIVES, "secret": [f"p{i}" for i in range(N)]}
    asked = policy({name: {"role": "quasi"}, "secret": {"role": "identifier"}})
    for frame in (pl.DataFrame(table), pd.DataFrame(table), pa.table(table)):
        released = kinfold.anonymize(frame, asked).frame
        assert list(getattr(released, "column_names", released.columns)) == [name]
        assert sorted(released[name].to_pylist() if isinstance(released, pa.Table) else released[name]) == FIVES


UNTAKEN: dict[str, Any] = {
    "longer than 64 bits": [10**40 + i for i in range(N)],
    "infinite decimals": [Decimal("Infinity"), *map(Decimal, range(N - 1))],
    "numbers and texts": [4711, *["x"] * (N - 1)],
    "sparse": pd.arrays.SparseArray(FIVES),
    "categories that are intervals": pd.cut(pd.Series(FIVES), 3),
}


@pytest.mark.parametrize("kind", UNTAKEN)
def test_what_no_table_holds_is_refused_by_name(kind: str) -> None:
    frame = pd.DataFrame({"age": FIVES, "odd": UNTAKEN[kind]})
    with pytest.raises(DataError, match="column 'odd' of the frame") as caught:
        kinfold.anonymize(frame, policy({"age": {"role": "quasi"}, "odd": {"role": "other"}}))
    assert all(problem.fix for problem in caught.value.problems)
    assert not any(value in str(caught.value) for value in ("4711", "0000", "Infinity"))


@pytest.mark.parametrize(("name", "told"), [("a\0b", "a NUL"), ("a\rb", "a carriage return")])
@pytest.mark.parametrize("made", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_name_that_no_header_holds_is_refused(made: Any, name: str, told: str) -> None:
    with pytest.raises(DataError, match=f"name of column 2 has {told}"):
        kinfold.anonymize(made({"age": FIVES, name: FIVES}), quasi=["age"], k=3)


def test_a_text_with_a_nul_leaves_in_parquet_only(tmp_path: Path) -> None:
    frame = pa.table({"age": FIVES, "note": ["a\0b", *["c"] * (N - 1)]})
    asked = policy({"age": {"role": "quasi"}, "note": {"role": "other"}})
    with pytest.raises(DataError, match="column 'note': 1 value with a NUL character"):
        kinfold.anonymize(frame, asked).save(tmp_path / "text")
    assert not (tmp_path / "text").exists()
    kinfold.anonymize(frame, {**asked, "output": {"format": "parquet"}}).save(tmp_path / "typed")
    assert kinfold.verify(tmp_path / "typed" / "public").holds


@pytest.mark.parametrize("limit", [{"top": 3}, {"bottom": 3}, {"round_to": 5}, {"map": {"1": "2"}}], ids=str)
def test_a_column_without_a_value_is_recoded_to_none(limit: dict[str, Any]) -> None:
    frame = pa.table({"age": FIVES, "empty": pa.nulls(N, pa.float64())})
    asked = policy({"age": {"role": "quasi"}, "empty": {"role": "other", **limit}})
    assert kinfold.anonymize(frame, asked).frame.column("empty").null_count == N


def test_long_numbers_of_json_stay_apart(tmp_path: Path) -> None:
    """One fraction among account numbers makes doubles of all of them, in which two neighbours are one."""
    accounts = [0.5, *(10**17 + i for i in range(1, N))]
    rows = [{"age": age, "account": account} for age, account in zip(FIVES, accounts, strict=True)]
    asked = {**policy({"age": {"role": "quasi"}, "account": {"role": "confidential"}}), "method": {"name": "mdav"}}
    for name, rows_text in {"t.json": json.dumps(rows), "t.jsonl": "\n".join(map(json.dumps, rows))}.items():
        (tmp_path / name).write_text(rows_text)
        release = kinfold.anonymize(tmp_path / name, asked)
        assert {*release.frame.column("account").to_pylist()} == {Decimal(str(account)) for account in accounts}
        assert release.verdict.l["account"] == 6


SHARED = [["age", "AGE"], ["age", "age"], ["age", "age_1", "Age"]]


@pytest.mark.parametrize("names", SHARED, ids="-".join)
def test_names_that_differ_in_case_only_are_refused_in_every_format(names: list[str], tmp_path: Path) -> None:
    pq.write_table(pa.table([pa.array(FIVES)] * len(names), names=names), tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("\n".join(",".join(row) for row in (names, *[["1"] * len(names)] * 9)))
    (tmp_path / "t.jsonl").write_text("\n".join(json.dumps({name: 1}) for name in names))
    endings = ["parquet", "csv", *(["jsonl"] if len({*names}) == len(names) else [])]
    for ending in endings:
        with pytest.raises(DataError, match="have the same name"):
            kinfold.profile(tmp_path / f"t.{ending}")


def test_a_name_that_would_be_the_mark_of_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbf\xef\xbb\xbfage\n" + b"1\n" * 9)
    for source in (pd.DataFrame({"name": FIVES, "\ufeffage": FIVES}), tmp_path / "t.csv"):
        with pytest.raises(DataError, match="begins with a byte order mark"):
            kinfold.profile(source)


def test_what_an_error_says_steers_no_terminal() -> None:
    frame = pd.DataFrame({"\x1b[2J\u202e": [None, *range(N)]})
    with pytest.raises(DataError, match="column") as caught:
        kinfold.anonymize(frame, quasi=["\x1b[2J\u202e"], k=2)
    assert str(caught.value).replace("\n", "").isprintable()


def test_fewer_rows_are_measured_with_no_column_beside(tmp_path: Path) -> None:
    """Rows are paired by their classes, and nothing else tells those of a class apart."""
    (tmp_path / "o.csv").write_text("sex\n" + "m\nm\nf\nf\n" * 3)
    (tmp_path / "r.csv").write_text("sex\n" + "m\n" * 6)
    assert kinfold.measure(tmp_path / "o.csv", tmp_path / "r.csv", quasi=["sex"], k=2)["released"] == 6


def test_values_where_the_original_has_none_count_as_lost(tmp_path: Path) -> None:
    (tmp_path / "o.csv").write_text("sex,area\n" + ",n\n" * 12)
    (tmp_path / "r.csv").write_text("sex,area\n" + "x,n\ny,n\n[1; 2),n\n*,n\n" * 3)
    measured = kinfold.measure(tmp_path / "o.csv", tmp_path / "r.csv", quasi=["sex", "area"], k=2)
    assert measured["loss"]["overall"] == 0.5
