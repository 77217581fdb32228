"""Addresses of databases: which are read, which rows they name, and that no text made of one has a password."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from kinfold.errors import DataError, KinfoldError, PolicyError
from kinfold.tables.databases.address import DatabaseAddress, TableName, parse_source, parse_table_address, select_rows
from kinfold.tables.databases.session import check_query

SECRET = "Geheim7"


def at(text: str) -> DatabaseAddress:
    found = parse_source(text)
    assert isinstance(found, DatabaseAddress)
    return found


@pytest.mark.parametrize(
    ("text", "place", "driven"),
    [
        ("postgresql://h/d", "postgresql://h/d", "postgresql://h/d"),
        (f"postgresql://ada:{SECRET}@h:5/d", "postgresql://ada@h:5/d", f"postgresql://ada:{SECRET}@h:5/d"),
        (f"postgresql://ada:{SECRET}:x@h/d", "postgresql://ada@h/d", f"postgresql://ada:{SECRET}:x@h/d"),
        ("postgresql://ada@[::1]:5/d", "postgresql://ada@[::1]:5/d", "postgresql://ada@[::1]:5/d"),
        ("postgresql://a:1,b:2/d", "postgresql://a:1,b:2/d", "postgresql://a:1,b:2/d"),
        ("postgresql:///d?host=%2Ftmp", "postgresql:///d?host=%2Ftmp", "postgresql:///d?host=%2Ftmp"),
        (
            f"postgresql://h/d?table=t&sslmode=require&password={SECRET}",
            "postgresql://h/d?sslmode=require",
            f"postgresql://h/d?sslmode=require&password={SECRET}",
        ),
        ("sqlite:///a/b.db?table=t", "sqlite:///a/b.db", "a/b.db"),
        ("sqlite:////a/b.db", "sqlite:////a/b.db", "/a/b.db"),
        ("sqlite:///my%20data%3F.db", "sqlite:///my%20data%3F.db", "my data?.db"),
    ],
)
def test_an_address_is_for_people_or_for_the_driver(text: str, place: str, driven: str) -> None:
    found = at(text)
    assert (found.place, found.uri) == (place, driven)
    assert SECRET not in f"{found} {found!r}"
    assert pickle.loads(pickle.dumps(found)) == found


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("patients", TableName("patients")),
        ("Clinic.Patients", TableName("Patients", "Clinic")),
        ('"a.b"', TableName("a.b")),
        ('"a""b".c', TableName("c", 'a"b')),
        ("zwölf tische", TableName("zwölf tische")),
    ],
)
def test_the_name_of_a_table_comes_back_as_it_was_written(text: str, name: TableName) -> None:
    from urllib.parse import quote

    found = at(f"postgresql://h/d?table={quote(text)}")
    assert found.table == name
    assert at(str(found)).table == name


def test_a_query_comes_back_as_it_was_written_but_for_its_end() -> None:
    found = select_rows(parse_source("sqlite:///a.db"), None, "SELECT a+b, '&?=%' FROM t ; ")
    assert isinstance(found, DatabaseAddress)
    assert found.query == "SELECT a+b, '&?=%' FROM t"
    assert at(str(found)) == found


@pytest.mark.parametrize(
    "text",
    [
        *(f"postgresql://ada:{SECRET}{mark}x@h/d" for mark in "/@?# "),
        f"postgresql://ada:{SECRET}@h:port/d",
        *(f"postgresql://ada:{SECRET}@h/d?{q}" for q in ("sslmode", "table=", "table=a.b.c", "table=t&query=SELECT")),
        f"postgres://ada:{SECRET}@h/d?table=t",
        f"POSTGRESQL://ada:{SECRET}@h/d?table=t",
        f"mysql://ada:{SECRET}@h/d",
        f"postgresql+psycopg://ada:{SECRET}@h/d",
        f"https://ada:{SECRET}@h/t.csv",
        "sqlite://a.db",
        "sqlite:///",
        f"sqlite:///a.db?key={SECRET}",
    ],
)
def test_what_is_no_address_is_refused_without_being_quoted(text: str) -> None:
    with pytest.raises(KinfoldError) as met:
        parse_source(text)
    assert isinstance(met.value, PolicyError if text.startswith(("postgresql://", "sqlite:")) else DataError)
    assert SECRET not in str(met.value)
    assert met.value.problems[0].fix


def test_an_address_that_was_made_a_path_is_not_quoted_either() -> None:
    with pytest.raises(DataError, match="no such file") as met:
        parse_source(Path(f"postgresql://ada:{SECRET}@h/d?table=t"))
    assert SECRET not in str(met.value)


@pytest.mark.parametrize("text", ["a.csv", "md:t.csv", "C:/a.csv", "./postgresql:/a.csv", "a://b.csv"])
def test_a_path_is_a_path(text: str) -> None:
    assert parse_source(text) == Path(text)


def test_a_folder_may_be_called_like_a_scheme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("http:/x").mkdir(parents=True)
    assert parse_source("http://x") == Path("http:/x")


def test_rows_are_named_once() -> None:
    for address, table, query in [
        ("sqlite:///a.db?table=t", "u", None),
        ("sqlite:///a.db?table=t", None, "SELECT 1"),
        ("sqlite:///a.db", "t", "SELECT 1"),
        ("a.csv", "t", None),
    ]:
        with pytest.raises(PolicyError):
            select_rows(parse_source(address), table, query)
    for no_table in ("a.csv", "sqlite:///a.db", "sqlite:///a.db?query=SELECT 1"):
        with pytest.raises(PolicyError, match="not the address of a table"):
            parse_table_address(no_table)


def test_a_query_may_only_read() -> None:
    for query in ("SELECT 1", " with a as (select 1) select * from a", "-- why\n/* and */ ((values (1)))", "TABLE t"):
        assert check_query(query) == query
    writes = ("DROP TABLE t", "insert into t values (1)", "-- select\ndelete from t", "copy t to 'x'")
    for query in ("", "selection", *writes):
        with pytest.raises(PolicyError, match="not a SELECT"):
            check_query(query)
