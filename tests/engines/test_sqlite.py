"""Rows of SQLite, where every value has a type of its own: what a column is, queries, and what cannot be read."""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kinfold.errors import DataError, PolicyError
from kinfold.tables.databases.address import DatabaseAddress, parse_source, select_rows
from kinfold.tables.duckdb.engine import DuckDB
from kinfold.tables.duckdb.expressions import Frame
from kinfold.tables.queries import collect_rows
from kinfold.tables.schema import Schema, Storage


def made(path: Path, *statements: str) -> Path:
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()
    return path


def at(path: Path, table: str | None = None, query: str | None = None) -> DatabaseAddress:
    found = select_rows(parse_source(f"sqlite:///{quote(str(path))}"), table, query)
    assert isinstance(found, DatabaseAddress)
    return found


def read(path: Path, table: str | None = None, query: str | None = None) -> list[dict[str, Any]]:
    with DuckDB() as engine:
        rows: list[dict[str, Any]] = collect_rows(engine, engine.read(at(path, table, query))).to_pylist()
        return rows


def described(path: Path, table: str) -> tuple[Frame, Schema]:
    with DuckDB() as engine:
        frame = engine.read(at(path, table))
        return frame, engine.schema(frame)


def test_a_column_is_what_its_values_are(tmp_path: Path) -> None:
    path = made(
        tmp_path / "a.db",
        "CREATE TABLE t (i, r, m, w, x, d DATE, n NUMERIC, z, empty, zip TEXT)",
        "INSERT INTO t VALUES (1, 0.1, 1, 1, 'a', '2020-02-29', '12.50', 1.5, NULL, '02138')",
        "INSERT INTO t VALUES (-9223372036854775808, 2, 2.5, '7', 3, '2020-03-01', 3, 'b', NULL, '02139')",
        "INSERT INTO t VALUES (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    )
    frame, schema = described(path, "t")
    types = {"i": "BIGINT", "r": "DOUBLE", "m": "DOUBLE", "n": "DOUBLE"}
    assert {*zip(frame.names, frame.types, strict=True)} == {
        *types.items(),
        *((name, "VARCHAR") for name in ("w", "x", "d", "z", "empty", "zip")),
    }
    kinds = {column.name: column.storage for column in schema}
    assert kinds["w"] is Storage.INTEGER  # in a text, as in a CSV file
    assert kinds["d"] is Storage.DATE
    assert kinds["x"] is kinds["zip"] is Storage.TEXT
    rows = read(path, "t")
    assert [*rows[0].items()] == [
        *[("i", 1), ("r", 0.1), ("m", 1.0), ("w", "1"), ("x", "a"), ("d", "2020-02-29"), ("n", 12.5), ("z", "1.5")],
        *[("empty", None), ("zip", "02138")],
    ]
    assert rows[1]["i"] == -9223372036854775808
    assert all(value is None for value in rows[2].values())


def test_what_comes_late_is_read_as_well(tmp_path: Path) -> None:
    """The driver takes a column for what its first rows are."""
    path = made(tmp_path / "a.db", "CREATE TABLE t (a, b, c, d)")
    with sqlite3.connect(path) as connection:
        late = [(1, None, None, i) for i in range(70_000)] + [(0.5, "x", 7, "x")]
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", late)
    connection.close()
    rows = read(path, "t")
    assert len(rows) == 70_001
    assert rows[-1] == {"a": 0.5, "b": "x", "c": 7, "d": "x"}
    assert [row["d"] for row in rows[:-1]] == [str(i) for i in range(70_000)]


def test_numbers_among_texts_are_written_in_full(tmp_path: Path) -> None:
    numbers = [0.1, 1 / 3, 1e300, 123456789.123456789, 5e-324, -0.1 - 0.2]
    path = made(tmp_path / "a.db", "CREATE TABLE t (a)", "INSERT INTO t VALUES ('x')")
    with sqlite3.connect(path) as connection:
        connection.executemany("INSERT INTO t VALUES (?)", [(number,) for number in numbers])
    connection.close()
    texts = [row["a"] for row in read(path, "t")]
    assert texts[0] == "x"
    assert texts[1] == "0.1"
    assert [float(text) for text in texts[1:]] == numbers


VALUES = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5),
)


@pytest.mark.slow
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kinds=st.lists(st.sampled_from([0, 1, 2, 3]), min_size=1, max_size=3), data=st.data())
def test_rows_are_those_that_the_standard_library_reads(tmp_path: Path, kinds: list[int], data: st.DataObject) -> None:
    """Columns of nulls, of whole numbers, of numbers, of anything; numbers among texts by what they say."""
    held = [st.one_of(*VALUES.original_strategies[: kind + 1]) for kind in kinds]
    rows = data.draw(st.lists(st.tuples(*held), min_size=1, max_size=8))
    path = tmp_path / "a.db"
    path.unlink(missing_ok=True)
    names = [f"c{i}" for i in range(len(kinds))]
    made(path, f"CREATE TABLE t ({', '.join(names)})")
    with sqlite3.connect(path) as connection:
        connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(names))})", rows)
    connection.close()
    for found, row in zip(read(path, "t"), rows, strict=True):
        for came, value in zip(found.values(), row, strict=True):
            assert came == value or (
                isinstance(came, str) and not isinstance(value, str) and type(value)(came) == value
            )


def test_whole_numbers_that_no_double_holds_stay_whole(tmp_path: Path) -> None:
    rows = f"INSERT INTO t VALUES ({2**53 + 1}, {2**53 + 1}), (0.5, 1)"
    path = made(tmp_path / "a.db", "CREATE TABLE t (a, b)", rows)
    assert read(path, "t") == [{"a": str(2**53 + 1), "b": 2**53 + 1}, {"a": "0.5", "b": 1}]


def test_bytes_are_no_single_values(tmp_path: Path) -> None:
    path = made(tmp_path / "a.db", "CREATE TABLE t (a, b)", "INSERT INTO t VALUES (1, x'00ff')")
    with pytest.raises(DataError, match="column 'b' holds bytes"):
        read(path, "t")


@pytest.mark.parametrize("name", ["a b.db", "ü.db", "a?b#c.db", "100%41.db", "it's.db", 'a"b.db', "[1].db"])
def test_a_file_is_read_by_its_name(tmp_path: Path, name: str) -> None:
    path = made(tmp_path / name, "CREATE TABLE t AS SELECT 1 AS a")
    assert read(path, "t") == [{"a": 1}]


def test_names_are_taken_as_they_are(tmp_path: Path) -> None:
    path = made(tmp_path / "a.db", 'CREATE TABLE "a""b.c" ("x""y", "SELECT", "ü; --")')
    made(path, 'INSERT INTO "a""b.c" VALUES (1, 2, 3)')
    assert read(path, '"a""b.c"') == [{'x"y': 1, "SELECT": 2, "ü; --": 3}]
    assert read(path, 'main."a""b.c"') == [{'x"y': 1, "SELECT": 2, "ü; --": 3}]


QUERIES = {
    "DROP TABLE t": "not a SELECT",
    "DELETE FROM t RETURNING a": "not a SELECT",
    "PRAGMA user_version = 7": "not a SELECT",
    "ATTACH 'b.db' AS b": "not a SELECT",
    "SELECT 1 AS a; SELECT 2": "several statements",
    "SELECT 1 AS a; DROP TABLE t": "several statements",
    "SELECT 1 AS a) AS q; DROP TABLE t; --": "several statements",
    "WITH b AS (SELECT 1) DELETE FROM t": "syntax error",
    "SELECT FROM t": "syntax error",
    "SELECT missing FROM t": "a column that does not exist",
}


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_that_writes_or_is_none_changes_nothing(tmp_path: Path, query: str) -> None:
    path = made(tmp_path / "a.db", "CREATE TABLE t AS SELECT 1 AS a")
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(PolicyError, match=QUERIES[query]):
        read(path, query=query)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.db"]


def test_a_query_may_end_with_a_comment_and_hold_the_sign_that_ends_one(tmp_path: Path) -> None:
    path = made(tmp_path / "a.db", "CREATE TABLE t AS SELECT 1 AS a")
    assert read(path, query='SELECT a, \';\' AS b, "a" AS "c;" FROM t -- so\n;') == [{"a": 1, "b": ";", "c;": 1}]


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    path = made(tmp_path / "a.db", "CREATE TABLE t (a)")
    (tmp_path / "none.db").write_text("not a database, but long enough to be one" * 50)
    for named, said in {"nothing.db": "no such file", ".": "not a regular file", "none.db": "not an SQLite"}.items():
        with pytest.raises(DataError, match=said):
            read(tmp_path / named, "t")
    with pytest.raises(DataError, match="no such table"):
        read(path, "u")
    with pytest.raises(DataError, match="no rows"):
        read(path, "t")
    assert not (tmp_path / "nothing.db").exists()


def test_a_path_in_an_address_starts_here_or_at_the_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path / "a.db", "CREATE TABLE t AS SELECT 1 AS a")
    monkeypatch.chdir(tmp_path)
    for address in ("sqlite:///a.db?table=t", f"sqlite:///{tmp_path}/a.db?table=t"):
        with DuckDB() as engine:
            assert collect_rows(engine, engine.read(parse_source(address))).to_pylist() == [{"a": 1}]
