"""Rows of a real PostgreSQL: types, queries, order, batches, and what cannot be read."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from kinfold.errors import DataError, KinfoldError, PolicyError
from kinfold.tables.databases import postgresql
from kinfold.tables.databases.address import DatabaseAddress, parse_source, select_rows
from kinfold.tables.databases.transfer import DatabaseRows
from kinfold.tables.duckdb.engine import DuckDB
from kinfold.tables.queries import collect_rows
from kinfold.tables.schema import Storage
from postgres import Server

pytestmark = pytest.mark.slow

UTC = dt.UTC


def at(server: Server, table: str | None = None, query: str | None = None, **rows: str) -> DatabaseAddress:
    found = select_rows(parse_source(server.address(**rows)), table, query)
    assert isinstance(found, DatabaseAddress)
    return found


def read(server: Server, table: str | None = None, query: str | None = None) -> pa.Table:
    with DuckDB() as engine:
        return collect_rows(engine, engine.read(at(server, table, query)))


VALUES: dict[str, tuple[str, Any]] = {
    "smallint '-7'": ("SMALLINT", -7),
    "integer '2147483647'": ("INTEGER", 2147483647),
    "bigint '-9223372036854775808'": ("BIGINT", -9223372036854775808),
    "real '0.1'": ("FLOAT", pytest.approx(0.1)),
    "double precision '0.1'": ("DOUBLE", 0.1),
    "12.50::numeric(10,2)": ("DECIMAL(10,2)", Decimal("12.50")),
    "0.1::numeric(38,38)": ("DECIMAL(38,38)", Decimal("0.1")),
    "numeric '-123456789012345678901234567890.125'": (
        "DECIMAL(38,3)",
        Decimal("-123456789012345678901234567890.125"),
    ),
    "numeric '7.7500'": ("DECIMAL(18,2)", Decimal("7.75")),
    "1200::numeric(2,-2)": ("DECIMAL(18,0)", Decimal("1200")),
    "numeric '1e20'": ("DECIMAL(38,0)", Decimal("100000000000000000000")),
    "'12.34'::money": ("DECIMAL(18,2)", Decimal("12.34")),
    "text 'Zoë 😀 \"x\", ''y'''": ("VARCHAR", "Zoë 😀 \"x\", 'y'"),
    "text '02138'": ("VARCHAR", "02138"),
    "'ab'::varchar(5)": ("VARCHAR", "ab"),
    "date '2020-02-29'": ("DATE", dt.date(2020, 2, 29)),
    "timestamp '2020-02-29 12:34:56.789012'": ("TIMESTAMP", dt.datetime(2020, 2, 29, 12, 34, 56, 789012)),
    "timestamptz '2020-01-01 01:00+02'": ("TIMESTAMP WITH TIME ZONE", dt.datetime(2019, 12, 31, 23, 0, tzinfo=UTC)),
    "time '12:34:56'": ("TIME", dt.time(12, 34, 56)),
    "true": ("BOOLEAN", True),
    "uuid 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'": ("VARCHAR", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    "inet '10.0.0.1/8'": ("VARCHAR", "10.0.0.1/8"),
    "4294967295::oid": ("BIGINT", 4294967295),
    "timetz '12:00+02'": ("VARCHAR", "12:00:00+02"),
    "B'101'::bit(3)": ("VARCHAR", "101"),
}


def test_every_value_comes_exactly_and_in_its_type(server: Server) -> None:
    select = ", ".join(f"{sql} AS v{i}" for i, sql in enumerate(VALUES))
    server.run(
        "DROP TABLE IF EXISTS every",
        f"CREATE TABLE every AS SELECT {select}",
        "INSERT INTO every (v0) VALUES (NULL)",
    )
    with DuckDB() as engine:
        frame = engine.read(at(server, "every"))
        rows = collect_rows(engine, frame)
    found = {
        sql: (kind, rows.column(i)[0].as_py()) for i, (sql, kind) in enumerate(zip(VALUES, frame.types, strict=True))
    }
    assert found == VALUES
    assert all(column[1].as_py() is None for column in rows.columns)


def test_what_others_made_that_is_text_is_text(server: Server) -> None:
    server.run(
        "DROP TABLE IF EXISTS moods",
        "DROP TYPE IF EXISTS mood",
        "DROP DOMAIN IF EXISTS percent",
        "CREATE TYPE mood AS ENUM ('sad', 'so so')",
        "CREATE DOMAIN percent AS numeric(5,2) CHECK (VALUE <= 100)",
        "CREATE TABLE moods (mood mood, share percent)",
        "INSERT INTO moods VALUES ('so so', 12.5), (NULL, NULL)",
    )
    assert read(server, "moods").to_pylist() == [
        {"mood": "so so", "share": Decimal("12.50")},
        {"mood": None, "share": None},
    ]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("ARRAY[1,2]", r"arrays \(int4\[\]\)"),
        ("ARRAY['a']", r"arrays \(text\[\]\)"),
        ("'{}'::jsonb", "type jsonb"),
        ("'{}'::json", "type json"),
        ("'x'::bytea", "type bytea"),
        ("interval '1 day'", "type interval"),
        ("point '(1,2)'", "type point"),
        ("int4range(1, 2)", "type int4range"),
        ("ROW(1, 2)", "type record"),
        ("'NaN'::numeric", "NaN or infinity"),
        ("'Infinity'::numeric", "NaN or infinity"),
        ("'NaN'::numeric(5,2)", "NaN or infinity"),
        ("10::numeric ^ 40", "digits"),
        ("'infinity'::date", "infinity 1 times"),
        ("'-infinity'::timestamp", "infinity 1 times"),
        ("'infinity'::timestamptz", "infinity 1 times"),
    ],
)
def test_what_is_no_single_value_is_refused_by_its_column(server: Server, sql: str, said: str) -> None:
    with pytest.raises(DataError, match=f"column 'v' .*{said}"):
        read(server, query=f"SELECT 1 AS a, {sql} AS v")


def test_the_columns_of_a_table_have_the_kinds_of_its_types(server: Server) -> None:
    with DuckDB() as engine:
        query = "SELECT 1 AS i, 1.5::numeric(5,1) AS n, '7' AS t, date '2020-01-01' AS d, true AS b, 'x' AS s"
        schema = engine.schema(engine.read(at(server, query=query)))
    kinds = {column.name: column.storage for column in schema}
    number, text = Storage.NUMBER, Storage.TEXT
    assert kinds == {"i": Storage.INTEGER, "n": number, "t": text, "d": Storage.DATE, "b": Storage.BOOLEAN, "s": text}
    assert schema["n"].decimals == 1


def test_names_are_taken_as_they_are(server: Server) -> None:
    server.run(
        'DROP SCHEMA IF EXISTS "Odd.One" CASCADE',
        'CREATE SCHEMA "Odd.One"',
        'CREATE TABLE "Odd.One"."a""b c" ("x""y" int, "SELECT" int, "ü; --" int)',
        'INSERT INTO "Odd.One"."a""b c" VALUES (1, 2, 3)',
    )
    assert read(server, '"Odd.One"."a""b c"').to_pylist() == [{'x"y': 1, "SELECT": 2, "ü; --": 3}]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT 1 AS a, 2 AS a", "same name"),
        ('SELECT 1 AS a, 2 AS "A"', "same name"),
        ('SELECT 1 AS " "', "no name"),
        ("SELECT 1 AS a WHERE false", "no rows"),
        ("SELECT 1 / (1000 - i) AS a FROM generate_series(1, 5000) i", "reports an error"),
    ],
)
def test_what_is_no_table_is_told(server: Server, query: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        read(server, query=query)


WRONG = {
    "DROP TABLE kept": "not a SELECT",
    "INSERT INTO kept VALUES (2) RETURNING a": "not a SELECT",
    "SELECT 1 AS a; SELECT 2": "several statements",
    "SELECT 1 AS a; DROP TABLE kept": "several statements",
    "SELECT 1 AS a) AS q; DROP TABLE kept; --": "syntax error",
    "WITH gone AS (DELETE FROM kept RETURNING a) SELECT * FROM gone": "would write",
    "SELECT nextval('counted') AS a": "would write",
    "SELECT set_config('transaction_read_only', 'off', true) AS a, nextval('counted') AS b": "of postgresql",
    "SELECT pg_notify('a', 'b')::text AS a, writing() AS b": "would write",
    "SELECT a FROM": "syntax error",
    "SELECT nothing FROM kept": "a column that does not exist",
    "TABLE kept INTO other": "syntax error",
    "SELECT * INTO other FROM kept": "syntax error",
}


@pytest.mark.parametrize("query", WRONG)
def test_a_query_that_writes_or_is_none_changes_nothing(server: Server, query: str) -> None:
    server.run(
        "DROP TABLE IF EXISTS kept",
        "CREATE TABLE kept AS SELECT 1 AS a",
        "CREATE SEQUENCE IF NOT EXISTS counted",
        "CREATE OR REPLACE FUNCTION writing() RETURNS int LANGUAGE sql AS 'DELETE FROM kept; SELECT 1'",
    )
    before = server.run("SELECT last_value, is_called FROM counted")
    with pytest.raises(KinfoldError, match=WRONG[query]) as met:
        read(server, query=query)
    assert isinstance(met.value, PolicyError) or "set_config" in query
    assert server.run("SELECT a FROM kept") == [(1,)]
    assert server.run("SELECT last_value, is_called FROM counted") == before
    assert server.run("SELECT to_regclass('other') IS NULL") == [(True,)]


def test_a_query_may_end_with_a_comment_and_hold_the_sign_that_ends_one(server: Server) -> None:
    assert read(server, query="SELECT ';' AS a, $$;$$ AS b -- so;\n;").to_pylist() == [{"a": ";", "b": ";"}]


@pytest.mark.parametrize("rows", [{"table": "nothing"}, {"table": "nowhere.kept"}, {"query": "SELECT * FROM nothing"}])
def test_a_table_that_is_not_there_is_told(server: Server, rows: dict[str, str]) -> None:
    with pytest.raises(DataError, match="no such table"):
        read(server, **rows)


def test_rows_keep_their_order_and_come_in_batches(server: Server) -> None:
    server.run(
        "DROP TABLE IF EXISTS long",
        "CREATE TABLE long AS SELECT i, md5(i::text) AS t FROM generate_series(1, 300000) i",
    )
    address = at(server, "long")
    with DatabaseRows(address).open_session() as session:
        asked = postgresql.make_query(session, address)
        with session.stream(asked.sql, asked.options) as stream:
            sizes = [batch.nbytes for batch in stream]
    assert len(sizes) > 2
    assert max(sizes) < 16 << 20
    with DuckDB() as engine:
        frame = engine.read(address)
        assert collect_rows(engine, frame).column("i").to_pylist() == list(range(1, 300001))


def test_the_order_of_a_query_is_kept(server: Server) -> None:
    rows = read(server, query="SELECT i, i % 7 AS j FROM generate_series(1, 5000) i ORDER BY j DESC, i")
    assert rows.column("i").to_pylist() == sorted(range(1, 5001), key=lambda i: (-(i % 7), i))


def test_the_checksum_of_rows_knows_their_values_and_not_their_order(server: Server) -> None:
    def checksum(values: str) -> str | None:
        with DuckDB() as engine:
            return (engine.read(at(server, query=f"SELECT * FROM (VALUES {values}) v (a, b)"))).checksum

    one = checksum("(1, 'x'), (2, NULL)")
    assert one == checksum("(2, NULL), (1, 'x')")
    others = ["(1, 'x'), (2, '')", "(1, 'x'), (1, 'x')", "(1, 'x')", "(1, NULL), (2, 'x')", "(1, '2-'), (2, NULL)"]
    assert len({one, *map(checksum, others)}) == len(others) + 1


@pytest.mark.parametrize("password", ["wrong", None, ""])
def test_a_wrong_password_is_told_without_it(
    server: Server, password: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    with pytest.raises(DataError, match="refuses this user or password") as met:
        read_at(server.address(password=password, table="kept"))
    assert met.value.__context__ is None
    assert "wrong" not in str(met.value)
    assert "PGPASSWORD" in str(met.value)


def read_at(address: str) -> list[dict[str, Any]]:
    with DuckDB() as engine:
        rows: list[dict[str, Any]] = collect_rows(engine, engine.read(parse_source(address))).to_pylist()
        return rows


def test_a_password_is_found_where_libpq_finds_it(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    address = server.address(password=None, query="SELECT 1 AS a")
    monkeypatch.setenv("PGPASSWORD", "Geheim-7?")
    assert read_at(address) == [{"a": 1}]
    monkeypatch.delenv("PGPASSWORD")
    file = tmp_path / "pgpass"
    file.write_text(f"127.0.0.1:{server.port}:*:ada:Geheim-7?\n")
    file.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(file))
    assert read_at(address) == [{"a": 1}]


def test_where_no_server_is_it_is_told(server: Server) -> None:
    with pytest.raises(DataError, match="no database of that name"):
        read_at(server.address(name="nowhere", table="t"))
    with pytest.raises(DataError, match="no database answers"):
        read_at("postgresql://ada:Geheim7@127.0.0.1:1/d?table=t")
    with pytest.raises(DataError, match="the host does not exist"):
        read_at("postgresql://ada:Geheim7@nowhere.invalid/d?table=t")
    with pytest.raises(DataError, match="cannot connect") as met:
        read_at("postgresql://ada:Geheim7@127.0.0.1/d?table=t&sslmode=Geheim7")
    assert "Geheim7" not in str(met.value).replace("?sslmode=Geheim7", "")
    with pytest.raises(PolicyError, match="no table or query"):
        read_at(server.address())


def test_a_user_without_rights_is_told_so(server: Server) -> None:
    server.run(
        "DROP TABLE IF EXISTS hidden",
        "DROP ROLE IF EXISTS eve",
        "CREATE ROLE eve LOGIN PASSWORD 'x'",
        "CREATE TABLE hidden AS SELECT 1 AS a",
    )
    with pytest.raises(DataError, match="no permission"):
        read_at(server.address(table="hidden").replace("ada:Geheim-7%3F", "eve:x"))
