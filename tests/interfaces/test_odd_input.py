"""Odd input: types, sizes and depths that nobody plans for end in a result or in an error of kinfold, and soon.

Every command runs in this process; an exception that is no error of kinfold goes through and fails the test, and so
does a minute on a busy machine (twice that on one with others on it).
"""

import os
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import kinfold
from command import run, text
from fuzz.readers import MARKER, TABLE
from kinfold.errors import PolicyError
from kinfold.hierarchies import build_from_tree
from ledger import SCALE

pytestmark = [pytest.mark.timeout(120), pytest.mark.slow]


ODD = {
    "timestamp_ns": "make_timestamp_ns(i * 1000000007)",
    "timestamptz": "TIMESTAMPTZ '2024-01-01 00:00:00+00' + INTERVAL (i) DAY",
    "time": "TIME '00:00:01' + INTERVAL (i) MINUTE",
    "time with zone": "('12:00:0' || (i % 9) || '+02')::TIMETZ",
    "decimal": "(i::DECIMAL(38,10) / 3)::DECIMAL(38,10)",
    "hugeint": "170141183460469231731687303715884105727::HUGEINT - i",
    "uhugeint": "340282366920938463463374607431768211455::UHUGEINT - i::UHUGEINT",
    "ubigint": "18446744073709551615::UBIGINT - i::UBIGINT",
    "uuid": "('00000000-0000-0000-0000-00000000000' || (i % 5))::UUID",
    "interval": "INTERVAL (i) MONTH",
    "blob": "('\\xAA\\xFF\\x0' || (i % 5))::BLOB",
    "bits": "'0101'::BIT",
    "dates after 9999": "DATE '9999-12-31' + (i * 1000)::INT",
    "dates far away": "DATE '5000000-01-01' + i::INT",
    "dates before 0001": "DATE '0001-01-01' - (i * 1000)::INT",
    "infinite dates": "CASE WHEN i % 2 = 0 THEN 'infinity'::DATE ELSE DATE '2024-01-01' END",
    "infinite times": "CASE WHEN i % 2 = 0 THEN '-infinity'::TIMESTAMP ELSE TIMESTAMP '2024-01-01' END",
    "times after 9999": "TIMESTAMP '200000-01-01' + INTERVAL (i) DAY",
    "subnormals": "5e-324 * i",
    "infinite": "CASE WHEN i % 2 = 0 THEN 'inf'::DOUBLE ELSE i END",
    "not a number": "CASE WHEN i % 2 = 0 THEN 'nan'::DOUBLE ELSE i END",
    "two zeros": "CASE WHEN i % 2 = 0 THEN -0.0::DOUBLE ELSE 0.0::DOUBLE END",
    "widest": "CASE WHEN i % 2 = 0 THEN 1e308 ELSE -1e308 END",
    "float": "(i / 7)::FLOAT",
    "list": "[i, i + 1]",
    "struct": "{'a': i, 'b': 'x'}",
    "map": "MAP {'a': i}",
    "enum": "(CASE WHEN i % 2 = 0 THEN 'lo' ELSE 'hi' END)::ENUM('lo', 'hi')",
    "nothing": "NULL",
}


FORMS = ("csv", "parquet")  # of a release: the long form writes both of each, the short one one, in turn


def ended(*args: object) -> int:
    """Run a command: it ends with a code of its own, says what to do about an error, and tells no value."""
    ran = run(*args)
    assert ran.code in (0, 2, 3, 4, 5), ran.err
    assert ran.code == 0 or "fix: " in ran.err or ran.code == 5
    assert MARKER not in ran.err
    return ran.code


@pytest.mark.parametrize("role", ["quasi-identifier", "confidential"])
@pytest.mark.parametrize("name", ODD)
def test_a_column_of_any_type(tmp_path: Path, name: str, role: str) -> None:
    path = tmp_path / "odd.parquet"
    with duckdb.connect() as database:
        rows = f"SELECT {ODD[name]} AS odd, i % 4 AS age, '{MARKER}' || (i % 3) AS disease FROM range(20) r(i)"
        database.execute(f"COPY ({rows}) TO '{path}' (FORMAT parquet)")
    quasi, confidential = ("odd,age", "disease") if role == "quasi-identifier" else ("age", "odd")
    ended("profile", path)
    turn = (list(ODD).index(name) + (role == "confidential")) % 2
    for form in FORMS if SCALE > 1 else FORMS[turn:][:1]:
        asked = ("--quasi", quasi, "--confidential", confidential, "-k", 3, "-t", 0.9, "--others", "drop")
        if ended("anonymize", path, *asked, "--format", form, "--out", tmp_path / form) == 0:
            assert ended("verify", tmp_path / form / "public") == 0


def test_dates_of_any_year_are_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "late.parquet"
    with duckdb.connect() as database:
        rows = "SELECT DATE '12345-06-07' AS born, i % 2 AS age FROM range(8) r(i)"
        database.execute(f"COPY ({rows}) TO '{path}' (FORMAT parquet)")
    asked = ("--quasi", "born,age", "-k", 2, "--set", "columns.born.average=generalize")
    assert run("anonymize", path, *asked, "--out", tmp_path / "out").code == 0
    assert "12345-06-07" in (tmp_path / "out" / "public" / "release.csv").read_text()


def wide(columns: int) -> str:
    names = ",".join(f"c{i}" for i in range(columns))
    return "\n".join([names, *(",".join(str(i * row % 7) for i in range(columns)) for row in range(8))])


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("form", "columns"),
    [
        ("csv", 600),
        ("parquet", 300),
        pytest.param("csv", 10_000, marks=[pytest.mark.long, pytest.mark.trust("wide tables")]),
    ],
)
def test_many_columns(tmp_path: Path, columns: int, form: str) -> None:
    path = text(tmp_path, "wide.csv", wide(columns))
    if form == "parquet":
        with duckdb.connect() as database:
            database.execute(f"COPY (FROM read_csv('{path}')) TO '{tmp_path / 'wide.parquet'}' (FORMAT parquet)")
        path = tmp_path / "wide.parquet"
    assert ended("profile", path) == 0
    asked = ("--quasi", "c1,c2", "--confidential", "c3", "-k", 2, "--others", "drop")
    assert ended("anonymize", path, *asked, "--out", tmp_path / "out") == 0
    assert ended("verify", tmp_path / "out" / "public") == 0


@pytest.mark.parametrize("number", ["1" * 400, "-0." + "3" * 400, "1e999999999", "1e-999999999", "9" * 5000])
@pytest.mark.parametrize(("quasi", "confidential"), [("a", "b"), ("b", "a")])
def test_a_number_of_very_many_digits(tmp_path: Path, number: str, quasi: str, confidential: str) -> None:
    path = text(tmp_path, "table.csv", "a,b\n" + "".join(f"{i},{i % 2}\n" for i in range(8)) + f"{number},1\n")
    ended("profile", path)
    asked = ("--quasi", quasi, "--confidential", confidential, "-k", 2, "-t", 0.9)
    for more in ((), ("--set", f"columns.{quasi}.type=continuous"), ("--set", f"columns.{quasi}.type=nominal")):
        ended("anonymize", path, *asked, *more, "--out", tmp_path / "out", "--force")
    intervals = ("--set", "columns.a.hierarchy={intervals=[5]}", "--set", "method.name=datafly")
    ended("anonymize", path, *asked, *intervals, "--out", tmp_path / "out", "--force")


def test_a_cell_of_ten_megabytes(tmp_path: Path) -> None:
    rows = "".join(f"{i},{MARKER}{i % 2}\n" for i in range(8))
    path = text(tmp_path, "table.csv", f"a,b\n{rows}9,{'y' * 10_000_000}\n")
    assert ended("profile", path) == 3
    assert "1 line is longer than two million bytes (line 10)" in run("profile", path).err
    ended("anonymize", path, "--quasi", "a", "--confidential", "b", "-k", 2, "--out", tmp_path / "out")
    hierarchy = ("--set", "columns.b.hierarchy={mask=1000000000}", "--set", "method.name=datafly")
    ended("anonymize", path, "--quasi", "b", "--confidential", "a", "-k", 2, *hierarchy, "--out", tmp_path / "two")


def hierarchical(folder: Path, hierarchy: str, method: str) -> int:
    """Release a small table by a method with this hierarchy."""
    table = text(
        folder, "table.csv", "zip,ill\n" + "".join(f"{i % 6 + 1}00{i % 3},{MARKER}{i % 3}\n" for i in range(24))
    )
    columns = f'[columns.zip]\nrole = "quasi"\nhierarchy = {hierarchy}\n[columns.ill]\nrole = "confidential"\n'
    policy = text(folder, "policy.toml", f'[privacy]\nk = 2\n[method]\nname = "{method}"\n{columns}')
    return ended("anonymize", table, "--policy", policy, "--out", folder / "out", "--force")


@pytest.mark.parametrize("method", ["datafly", "lattice", "mu-argus", "mdav"])
@pytest.mark.parametrize("hierarchy", ["{ mask = 1000000000 }", "{ intervals = [1e-9, 1e-3, 1, 1e300] }"])
def test_a_hierarchy_of_enormous_height_or_width(tmp_path: Path, hierarchy: str, method: str) -> None:
    assert hierarchical(tmp_path, hierarchy, method) == 0


@pytest.mark.parametrize("method", ["datafly", "lattice", "mdav"])
def test_a_hierarchy_file_of_thousands_of_levels(tmp_path: Path, method: str) -> None:
    values = {f"{i % 6 + 1}00{i % 3}" for i in range(24)}
    text(
        tmp_path, "deep.csv", "\n".join(";".join([value, *(f"g{j}" for j in range(3000))]) for value in sorted(values))
    )
    assert hierarchical(tmp_path, '{ file = "deep.csv" }', method) == 0


def test_a_hierarchy_that_never_ends_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/zero", "pipe", ".", "no\\u0000name"):
        assert hierarchical(tmp_path, f'{{ file = "{path}" }}', "lattice") in (2, 3)
    table = text(tmp_path, "table.csv", "a,b\n1,2\n1,2\n")
    for path in (Path("/dev/zero"), tmp_path / "pipe"):
        assert ended("anonymize", table, "--policy", path, "--out", tmp_path / "out") == 2


@pytest.mark.parametrize("depth", [50, 200, 5000])
def test_a_tree_that_nests(tmp_path: Path, depth: int) -> None:
    assert hierarchical(tmp_path, f"{{ tree = {'{ a = ' * depth}['x']{' }' * depth} }}", "lattice") in (2, 3)
    tree: dict[str, object] = {"leaf": ["x"]}
    for _ in range(100_000):
        tree = {"a": tree}
    with pytest.raises(PolicyError, match="is nested too deeply"):
        build_from_tree(tree)
    while "a" in tree:  # taken apart by hand: the interpreter would do it by recursion
        tree = tree["a"]  # type: ignore[assignment]


DEEP = {
    "lists": "a = " + "[" * 100_000 + "]" * 100_000,
    "tables": "a = " + "{ a = " * 50_000 + "1" + " }" * 50_000,
    "dots": "a" + ".a" * 100_000 + " = 1",
    "header": "[a" + ".a" * 100_000 + "]",
    "quoted dots": '"a"' + '."a"' * 100_000 + " = 1",
    "digits": "[privacy]\nk = " + "1" * 10_000,
    "columns": "[privacy]\nk = 2\n" + "".join(f'[columns.c{i}]\nrole = "quasi"\n' for i in range(3_000)),
    "wrong columns": "[privacy]\nk = 2\n" + "".join(f'[columns.c{i}]\nrole = "quosi"\nage = 1\n' for i in range(3_000)),
}


@pytest.mark.parametrize("name", DEEP)
def test_a_policy_that_is_deep_or_long(tmp_path: Path, name: str) -> None:
    table, policy = text(tmp_path, "table.csv", "a,b\n1,2\n1,2\n"), text(tmp_path, "policy.toml", DEEP[name])
    assert ended("anonymize", table, "--policy", policy, "--out", tmp_path / "out") == 2


@pytest.mark.parametrize("value", ["[" * 20_000, "1" * 10_000, "a" + ".a" * 20_000])
def test_a_setting_that_is_deep_or_long(tmp_path: Path, value: str) -> None:
    table = text(tmp_path, "table.csv", "a,b\n1,2\n1,2\n")
    asked = ("--quasi", "a", "--confidential", "b", "-k", 2, "--out", tmp_path / "out")
    assert ended("anonymize", table, *asked, "--set", f"method.objective={value}") == 2
    assert ended("anonymize", table, *asked, "--set", f"{'a' + '.a' * 2000}={value}") == 2


@pytest.mark.parametrize("content", ["[" * 200_000, '{"a":' * 200_000, '{"checksum":' + "1" * 10_000 + "}"])
def test_a_certificate_that_is_deep_or_long(tmp_path: Path, content: str) -> None:
    text(tmp_path, "certificate.json", content)
    assert ended("verify", tmp_path) == 3


@pytest.mark.parametrize("content", ["[" * 100_000, '{"a":' * 100_000, '{"a":{"b":1}}\n{"a":[1]}'])
def test_lines_of_json_that_are_deep(tmp_path: Path, content: str) -> None:
    assert ended("profile", text(tmp_path, "table.jsonl", content + "\n")) == 3


@pytest.mark.parametrize(
    "change",
    [
        ("31,", "words,"),
        (f"{MARKER}A,low", f"{MARKER}A,{MARKER}"),
        (f"{MARKER}X\n", f"{MARKER}X,more\n"),
        ("31,", "inf,"),
        ("31,", ","),
    ],
)
def test_a_marker_in_the_data_is_in_no_message(tmp_path: Path, change: tuple[str, str]) -> None:
    table = text(tmp_path, "table.csv", TABLE.replace(*change, 1))
    columns = ("--quasi", "age,zip,level", "--confidential", "disease", "--identifier", "name")
    kinds = ("--set", "columns.age.type=continuous", "--set", 'columns.level.order=["low","mid","high"]')
    ran = run(
        "anonymize", table, *columns, *kinds, "--set", "columns.level.type=ordinal", "-k", 2, "--out", tmp_path / "o"
    ).fails(3)
    assert MARKER not in ran.err + ran.out


@pytest.mark.parametrize("wrong", [{"k": np.array([1, 2])}, {"seed": np.array([1, 2])}, {"answers": np.array([1, 2])}])
def test_an_array_in_the_place_of_one_value_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(kinfold.PolicyError):
        kinfold.anonymize(pd.DataFrame({"age": [1, 2, 3, 4]}), **{"quasi": ["age"], "k": 2, **wrong})


@pytest.mark.parametrize("wrong", [{"t": "x"}, {"t": [0.1, 0.2]}, {"t": 10**400}, {"confidential": 5}, {"t": object()}])
def test_wrong_levels_of_closeness_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(kinfold.DataError, match="confidential is not an array"):
        kinfold.partition.k_first(np.arange(6.0)[:, None], 2, **{"confidential": np.arange(6), "t": 0.4, **wrong})
