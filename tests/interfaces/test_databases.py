"""The whole way from a database and into one, on a real PostgreSQL and on SQLite; and what goes wrong on it."""

import csv
import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import kinfold
from command import content, run
from kinfold.errors import PolicyError
from kinfold.tables.queries import collect_rows
from postgres import PASSWORD, Server

pytestmark = pytest.mark.slow

SECRETS = (PASSWORD, "Geheim-7")
PEOPLE = """
    SELECT i AS id, 20 + (i * 7) % 50 AS age, CASE i % 2 WHEN 0 THEN 'f' ELSE 'm' END AS sex, 0.25 * (i % 9) AS dose,
        CASE WHEN i % 10 = 0 THEN NULL ELSE 'Zoë, "😀" ' || (i % 3) END AS disease
"""
ASKED = ("--identifier", "id", "--quasi", "age,sex,dose", "--confidential", "disease", "-k", 4, "--method", "mdav")
WAIT = 120.0  # seconds on a loaded machine


@dataclass(frozen=True)
class System:
    """A database with a table of people: its address, and a way to ask it something."""

    address: Callable[[str], str]
    ask: Callable[[str], list[tuple[Any, ...]]]
    home: str  # where its tables stand

    def tables(self) -> set[str]:
        return {str(name) for (name,) in self.ask(self.home)}


@pytest.fixture(params=["postgresql", "sqlite"])
def system(request: pytest.FixtureRequest, tmp_path: Path) -> System:
    if request.param == "postgresql":
        return _postgresql(request.getfixturevalue("server"))
    path = tmp_path / "a b.db"
    numbers = "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 60)"
    _ask(path, f"CREATE TABLE people AS {numbers} {PEOPLE} FROM n")
    names = "SELECT name FROM sqlite_master WHERE type = 'table'"
    return System(lambda table: f"sqlite:///{path}?table={table}", lambda sql: _ask(path, sql), names)


def _postgresql(server: Server) -> System:
    server.run(
        "DROP SCHEMA IF EXISTS release CASCADE",
        "DROP SCHEMA public CASCADE",
        "CREATE SCHEMA public",
        "GRANT USAGE ON SCHEMA public TO PUBLIC",  # as a new database has it
        f"CREATE TABLE people AS {PEOPLE} FROM generate_series(1, 60) i",
    )
    names = "SELECT table_name::text FROM information_schema.tables WHERE table_schema IN ('public', 'release')"
    return System(lambda table: server.address(table=table), server.run, names)


def _ask(path: Path, sql: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(path)
    try:
        with connection:
            return connection.execute(sql).fetchall()
    finally:
        connection.close()


def silent(*texts: str) -> bool:
    """Whether no text has a password in it."""
    return not any(secret in text for secret in SECRETS for text in texts)


def test_a_table_becomes_a_table(system: System, tmp_path: Path) -> None:
    before, out = system.ask("SELECT * FROM people ORDER BY id"), tmp_path / "out"
    ran = run("anonymize", system.address("people"), *ASKED, "--out", out, "--into", system.address("released")).ok()
    assert "table 'released'" in ran.out
    assert system.tables() == {"people", "released"}
    assert system.ask("SELECT * FROM people ORDER BY id") == before
    with (out / "public" / "release.csv").open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == ["age", "sex", "dose", "disease"]
    assert [tuple(map(_text, row)) for row in system.ask("SELECT * FROM released")] == [tuple(row) for row in rows]
    assert run("verify", out, "--twice").code == 0
    checked = run("verify", system.address("released"), "--policy", out / "internal" / "policy.toml", "--json").ok()
    assert checked.json["k"] >= 4
    assert run("verify", system.address("people"), "--policy", out / "internal" / "policy.toml").code == 5
    assert silent(ran.out, ran.err, *(data.decode(errors="replace") for data in content(out).values()))


def _text(value: object) -> str:
    """A value as a CSV file has it."""
    return "" if value is None else str(value)


def test_the_audit_says_where_from_and_where_to(system: System, tmp_path: Path) -> None:
    out = tmp_path / "out"
    into = system.address("released")
    ran = run("anonymize", system.address("people"), *ASKED, "--out", out, "--into", into, "--json")
    shown = into.replace(f":{PASSWORD}@", "@")
    assert ran.json["table"] == shown.replace("a b", "a%20b")
    audit = json.loads((out / "internal" / "audit.json").read_text())
    assert audit["source"]["database"] == ran.json["table"].replace("released", "people")
    assert audit["source"]["rows"].startswith("60-")
    assert audit["into"] == ran.json["table"]
    assert "into" not in (out / "public" / "certificate.json").read_text()


def test_a_table_that_is_there_is_replaced_by_force_alone_and_only_if_it_is_a_release(
    system: System, tmp_path: Path
) -> None:
    system.ask("CREATE TABLE taken (a int)")
    args = ("anonymize", system.address("people"), *ASKED)
    for target, force in (("taken", False), ("taken", True), ("people", True)):
        run(*args, "--out", tmp_path / "no", "--into", system.address(target), *(["--force"] * force)).fails(
            2, "exists already"
        )
    assert system.ask("SELECT count(*) FROM people") == [(60,)]
    assert not (tmp_path / "no").exists()
    assert run(*args, "--out", tmp_path / "a", "--into", system.address("released")).code == 0
    run(*args, "--out", tmp_path / "b", "--into", system.address("released")).fails(2)
    assert not (tmp_path / "b").exists()
    again = (*args, "--set", "privacy.k=6", "--out", tmp_path / "b", "--into", system.address("released"), "--force")
    assert run(*again).code == 0
    smallest = "SELECT min(n) FROM (SELECT count(*) AS n FROM released GROUP BY age, sex, dose) q"
    assert system.ask(smallest)[0][0] >= 6
    assert system.tables() == {"people", "released", "taken"}


def test_files_go_into_databases_and_databases_into_files(system: System, tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    rows = [f"{i},{20 + i % 5},2020-01-0{1 + i % 7},{i % 3}.50,0{i % 2}" for i in range(40)]
    file.write_text("\n".join(["id,age,day,cost,code", *rows]) + "\n")
    asked = ("--identifier", "id", "--quasi", "age,day", "--confidential", "cost", "--others", "release", "-k", 3)
    run("anonymize", file, *asked, "--method", "mdav", "--out", tmp_path / "a", "--into", system.address("made")).ok()
    assert system.ask("SELECT count(*), min(code), max(cost) FROM made") == [(40, "00", 2.5)]
    out = tmp_path / "b"
    assert run("anonymize", system.address("people"), *ASKED, "--out", out, "--format", "parquet").code == 0
    assert run("verify", out).code == 0
    assert json.loads((out / "internal" / "audit.json").read_text())["source"]["rows"].startswith("60-")


def test_the_same_rows_give_the_same_release_from_a_file(system: System, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    from kinfold.tables.databases.address import parse_source
    from kinfold.tables.duckdb.engine import DuckDB

    with DuckDB() as engine:
        pq.write_table(
            collect_rows(engine, engine.read(parse_source(system.address("people")))), tmp_path / "people.parquet"
        )
    for name, source in {"a": system.address("people"), "b": tmp_path / "people.parquet"}.items():
        assert run("anonymize", source, *ASKED, "--out", tmp_path / name).code == 0
    one, other = ((tmp_path / name / "public" / "release.csv").read_bytes() for name in "ab")
    assert one == other


def test_the_other_commands_read_databases(system: System, tmp_path: Path) -> None:
    policy, people = tmp_path / "policy.toml", system.address("people")
    ran = run("profile", people, "--write-policy", policy).ok()
    assert "60 records" in ran.out
    assert "kinfold anonymize 'postgresql://" in ran.out or "kinfold anonymize 'sqlite:///" in ran.out
    assert silent(ran.out)
    out = tmp_path / "out"
    assert run("anonymize", people, *ASKED, "--out", out, "--into", system.address("released")).code == 0
    applied = out / "internal" / "policy.toml"
    measured = run("measure", people, out / "public" / "release.csv", "--policy", applied, "--json")
    assert measured.json["loss"]["overall"] is not None  # by its audit
    unpaired = run("measure", people, system.address("released"), "--policy", applied, "--json").json
    assert unpaired["records"] == 60
    assert unpaired["risk"]["prosecutor_max"] <= 0.25
    run("compare", people, "--policy", applied, "--methods", "mdav", "--k", "3", "--out", tmp_path / "c").ok()


def test_rows_are_named_in_the_address_or_beside_it(system: System) -> None:
    database = system.address("people").partition("?")[0]
    assert "60 records" in run("profile", database, "--table", "people").out
    assert "20 records" in run("profile", database, "--query", "SELECT * FROM people WHERE id <= 20;").out
    assert run("profile", database).code == 2
    assert run("profile", database, "--table", "people", "--query", "SELECT 1").code == 2
    assert run("profile", system.address("people"), "--table", "people").code == 2
    assert run("profile", database, "--query", "DROP TABLE people").code == 2
    assert run("profile", database, "--query", "SELECT 1 AS a; DROP TABLE people").code == 2
    assert run("profile", database, "--table", "nothing").code == 3
    assert system.tables() == {"people"}


def test_python_reads_and_writes_them_too(system: System, tmp_path: Path) -> None:
    people = system.address("people")
    assert kinfold.profile(people).rows == 60
    release = kinfold.anonymize(people, quasi=["age", "sex"], identifier=["id"], k=3, method="mdav", others="drop")
    assert release.frame.num_rows == 60
    assert silent(repr(release), repr(release.source))
    release.save(tmp_path / "out", into=system.address("released"))
    found = kinfold.verify(system.address("released"), quasi=["age", "sex"], k=3)
    assert found.k >= 3
    with pytest.raises(PolicyError, match="exists already"):
        release.save(tmp_path / "again", into=system.address("released"))
    with pytest.raises(PolicyError, match="not the address of a table"):
        release.save(tmp_path / "again", into=str(tmp_path / "a.csv"))
    assert not (tmp_path / "again").exists()


def test_where_the_driver_is_missing_it_is_said_how_to_get_it(
    system: System, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = system.address("people")
    monkeypatch.setitem(sys.modules, f"adbc_driver_{address.partition(':')[0]}.dbapi", None)
    for args in (("profile", address), ("anonymize", __file__, *ASKED, "--out", tmp_path / "o", "--into", address)):
        run(*args).fails(2, "pip install '.[databases]' in a checkout")


def test_what_cannot_get_its_folder_gets_no_table(system: System, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    release = kinfold.anonymize(system.address("people"), quasi=["age"], k=3, method="mdav", others="drop")
    with pytest.raises(PolicyError):
        release.save(tmp_path / "out", into=system.address("released"))
    assert system.tables() == {"people"}


# SQLite alone


def test_a_new_file_is_made_whole_or_not_at_all(tmp_path: Path) -> None:
    path, new = tmp_path / "a.db", tmp_path / "new.db"
    _ask(path, f"CREATE TABLE people AS SELECT * FROM ({PEOPLE} FROM (SELECT 1 AS i UNION ALL SELECT 2))")
    args = ("anonymize", f"sqlite:///{path}?table=people", *ASKED[:-4], "--method", "mdav", "--into")
    run(*args, f"sqlite:///{new}?table=t", "-k", 3, "--out", tmp_path / "out").fails(4)
    assert {entry.name for entry in tmp_path.iterdir()} == {"a.db"}
    run(*args, f"sqlite:///{new}?table=t", "-k", 2, "--out", tmp_path / "out").ok()
    assert {entry.name for entry in tmp_path.iterdir()} == {"a.db", "new.db", "out"}
    assert _ask(new, "SELECT count(*) FROM t") == [(2,)]
    run(*args, f"sqlite:///{tmp_path}/no/where.db?table=t", "-k", 2, "--out", tmp_path / "again").fails(
        2, "cannot write"
    )


def test_a_table_without_its_folder_is_told(tmp_path: Path) -> None:
    """Both want the same name, and the table gets it first."""
    path, same = tmp_path / "a.db", tmp_path / "same"
    _ask(path, f"CREATE TABLE people AS SELECT * FROM ({PEOPLE} FROM (SELECT 1 AS i UNION ALL SELECT 2))")
    release = kinfold.anonymize(f"sqlite:///{path}?table=people", quasi=["age"], k=2, method="mdav", others="drop")
    with pytest.raises(PolicyError, match="written and verified, but its folder is not"):
        release.save(same, into=f"sqlite:///{same}?table=t")
    assert _ask(same, "SELECT count(*) FROM t") == [(2,)]
    assert {entry.name for entry in tmp_path.iterdir()} == {"a.db", "same"}


def test_a_database_that_changes_a_value_is_not_released_into(tmp_path: Path) -> None:
    """SQLite makes null of what is no number: here a value that the file keeps."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"age": [1, 1, 2, 2], "note": [0.5, float("nan"), 1.5, 2.5]}), tmp_path / "t.parquet")
    args = ("anonymize", tmp_path / "t.parquet", "--quasi", "age", "--others", "release", "-k", 2, "--method", "mdav")
    run(*args, "--out", tmp_path / "out", "--into", f"sqlite:///{tmp_path}/a.db?table=t").fails(
        5, "are not those that were written"
    )
    assert {entry.name for entry in tmp_path.iterdir()} == {"t.parquet"}


def test_a_file_that_somebody_else_holds_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    _ask(path, f"CREATE TABLE people AS SELECT * FROM ({PEOPLE} FROM (SELECT 1 AS i UNION ALL SELECT 2))")
    release = kinfold.anonymize(f"sqlite:///{path}?table=people", quasi=["age"], k=2, method="mdav", others="drop")
    hold = (  # from elsewhere: a process does not lock itself out
        "import sqlite3, sys; held = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "held.execute('BEGIN EXCLUSIVE'); print('held', flush=True); sys.stdin.read()"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", hold, str(path)], stdin=pipe, stdout=pipe, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(PolicyError, match="locked"):
            release.save(tmp_path / "out", into=f"sqlite:///{path}?table=t")
        holder.communicate("")
    assert {entry.name for entry in tmp_path.iterdir()} == {"a.db"}


# PostgreSQL alone


@pytest.fixture
def people(server: Server) -> System:
    return _postgresql(server)


def test_types_go_through_exactly(server: Server, people: System, tmp_path: Path) -> None:
    people.ask(
        "CREATE TABLE typed AS SELECT i % 3 AS age, (i / 7.0)::numeric(12,4) AS exact, i::numeric / 3 AS wide,"
        " date '2020-01-01' + i AS day, timestamp '2020-01-01 12:00:00.000001' + i * interval '1 second' AS at,"
        " timestamptz '2020-01-01 12:00+02' AS zoned, i % 2 = 0 AS flag, i::bigint AS big, i::real AS short,"
        " nullif(i, 3)::smallint AS small, time '12:00' AS hour FROM generate_series(1, 12) i"
    )
    args = ("--quasi", "age", "--others", "release", "-k", 2, "--method", "mdav", "--out", tmp_path / "out")
    run("anonymize", people.address("typed"), *args, "--into", people.address("release.typed")).ok()
    types = "SELECT column_name::text, data_type::text FROM information_schema.columns WHERE table_schema = '{}'"
    names = {"public": {}, "release": {}}
    for schema in names:
        names[schema] = dict(people.ask(types.format(schema) + " AND table_name = 'typed'"))
    assert names["public"] == names["release"]
    columns = ", ".join(names["public"])
    changed = f"(SELECT {columns} FROM typed EXCEPT ALL SELECT {columns} FROM release.typed)"
    assert people.ask(f"SELECT count(*) FROM {changed} q") == [(0,)]


def test_what_was_written_is_read_back_and_what_differs_leaves_no_trace(people: System, tmp_path: Path) -> None:
    """A trigger that somebody set on every new table makes the rows differ from what was verified."""
    people.ask(
        "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.age := 1000 + NEW.age; RETURN NEW; END'"
    )
    with on_every_new_table(people, "spoil"):
        args = ("--out", tmp_path / "out", "--into", people.address("release.people"))
        ran = run("anonymize", people.address("people"), *ASKED, *args)
    assert ran.code == 5, ran.err
    assert "are not those that were written" in ran.err
    assert people.tables() == {"people"}
    assert people.ask("SELECT count(*) FROM pg_namespace WHERE nspname = 'release'") == [(0,)]
    assert list(tmp_path.iterdir()) == []


@contextmanager
def on_every_new_table(people: System, function: str) -> Iterator[None]:
    """Let a trigger be set on every table as soon as it is made."""
    people.ask(
        "CREATE FUNCTION set_trigger() RETURNS event_trigger LANGUAGE plpgsql AS $$ DECLARE made record; BEGIN"
        " FOR made IN SELECT * FROM pg_event_trigger_ddl_commands() LOOP EXECUTE format('CREATE TRIGGER t BEFORE"
        f" INSERT ON %s FOR EACH ROW EXECUTE FUNCTION {function}()', made.object_identity); END LOOP; END $$"
    )
    people.ask(
        "CREATE EVENT TRIGGER every ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION set_trigger()"
    )
    try:
        yield
    finally:
        people.ask("DROP EVENT TRIGGER every")


def busy(server: Server, with_what: str) -> bool:
    """Whether somebody else keeps the server busy with something."""
    others = "state = 'active' AND pid <> pg_backend_pid()"
    found = server.run(f"SELECT count(*) FROM pg_stat_activity WHERE query LIKE '{with_what}%' AND {others}")
    return found != [(0,)]


def killed_when(server: Server, active: str) -> threading.Thread:
    """Kill the server as soon as it is busy with something."""

    def watch() -> None:
        until = time.monotonic() + WAIT
        while time.monotonic() < until and not busy(server, active):
            time.sleep(0.02)
        server.kill()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


def test_a_database_that_goes_away_while_it_is_read_leaves_nothing(
    server: Server, people: System, tmp_path: Path
) -> None:
    slowly = "SELECT people.*, pg_sleep(0.001)::text AS t FROM people, generate_series(1, 999)"
    killer = killed_when(server, "COPY (")
    try:
        address = people.address("x").partition("?")[0]
        ran = run("anonymize", address, "--query", slowly, *ASKED, "--others", "drop", "--out", tmp_path / "out")
    finally:
        killer.join(WAIT)
        server.start()
    assert ran.code == 3, ran.err
    assert "connection to the database is lost" in ran.err
    assert silent(ran.err)
    assert list(tmp_path.iterdir()) == []
    assert people.ask("SELECT count(*) FROM people") == [(60,)]


def test_a_database_that_goes_away_while_it_is_written_leaves_nothing(
    server: Server, people: System, tmp_path: Path
) -> None:
    people.ask(
        "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(9); RETURN NEW; END'"
    )
    with on_every_new_table(people, "wait"):
        killer = killed_when(server, 'COPY "')
        try:
            into = people.address("release.people")
            ran = run("anonymize", people.address("people"), *ASKED, "--out", tmp_path / "out", "--into", into)
        finally:
            killer.join(WAIT)
            server.start()
    assert ran.code == 2, ran.err
    assert "connection to the database is lost" in ran.err
    assert silent(ran.err)
    assert list(tmp_path.iterdir()) == []
    assert people.tables() == {"people"}


def test_a_user_who_may_not_make_tables_is_told_before_any_work(people: System, tmp_path: Path) -> None:
    people.ask("DROP ROLE IF EXISTS eve")
    people.ask("CREATE ROLE eve LOGIN PASSWORD 'x'")
    for table in ("public.released", "new.released"):
        into = people.address(table).replace(f"ada:{PASSWORD}", "eve:x")
        run("anonymize", tmp_path / "none.csv", *ASKED, "--out", tmp_path / "out", "--into", into).fails(
            2, "no permission"
        )


def test_an_old_release_that_others_need_stays_and_so_does_its_folder(people: System, tmp_path: Path) -> None:
    out, into = tmp_path / "out", people.address("released")
    args = ("anonymize", people.address("people"), *ASKED, "--out", out, "--into", into)
    assert run(*args).code == 0
    people.ask("CREATE VIEW needs AS SELECT * FROM released")
    before, rows = content(out), people.ask("SELECT * FROM released")
    run(*args, "--set", "privacy.k=6", "--force").fails(2, "depends on the old table")
    assert content(out) == before
    assert people.ask("SELECT * FROM released") == rows
    assert people.tables() == {"people", "released", "needs"}


def test_a_column_that_the_database_keeps_for_itself_is_told(people: System, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("age,ctid\n" + "1,2\n" * 4)
    asked = ("--quasi", "age", "--others", "release", "-k", 2, "--method", "mdav", "--out", tmp_path / "out")
    run("anonymize", file, *asked, "--into", people.address("released")).fails(2, "that the database reserves")
    assert not (tmp_path / "out").exists()
    assert people.tables() == {"people"}


def test_a_name_that_the_database_would_cut_off_is_refused(people: System, tmp_path: Path) -> None:
    into = people.address("ü" * 32)
    run("anonymize", tmp_path / "none.csv", *ASKED, "--out", tmp_path / "out", "--into", into).fails(2, "too long")


@pytest.mark.parametrize(
    "wrong",
    [
        "postgresql://ada:Geheim-7@{host}/postgres?table=people",
        "postgresql://ada:Geheim-7@{host}/nowhere?table=people",
        "postgresql://ada:Geheim-7@127.0.0.1:1/postgres?table=people",
        "postgresql://ada:Geheim-7%20 @{host}/postgres?table=people",
        "postgresql://ada:Geheim-7@x@{host}/postgres?table=people",
        "postgresql://ada:Geheim-7%ZZ@{host}/postgres?table=people",
        "postgresql://ada@{host}/postgres?password=Geheim-7%ZZ&table=people",
        "postgresql://ada@{host}/postgres?password=Geheim-7&nonsense=1&table=people",
        "mysql://ada:Geheim-7@{host}/postgres",
        "POSTGRES://ada:Geheim-7@{host}/postgres",
        "https://ada:Geheim-7@{host}/people.csv",
    ],
)
def test_no_message_has_a_password(server: Server, wrong: str, tmp_path: Path) -> None:
    address = wrong.format(host=f"127.0.0.1:{server.port}")
    out, policy = tmp_path / "out", tmp_path / "p.toml"
    policy.write_text("[privacy]\nk = 2\n[columns.age]\nrole = 'quasi'\n")
    commands = [
        ("profile", address),
        ("profile", address, address),
        ("profile", "--table", "a", "--nonsense", address),
        ("anonymize", address, *ASKED, "--out", out),
        ("anonymize", __file__, *ASKED, "--out", out, "--into", address),
        ("verify", address),
        ("verify", address, "--policy", policy),
        ("verify", address, "--policy", address),
        ("measure", address, address, "--policy", policy),
        ("lattice", address, "--policy", policy),
        ("compare", address, "--policy", policy, "--out", out),
    ]
    for args in commands:
        ran = run(*args)
        assert ran.code in (2, 3)
        assert silent(ran.out, ran.err), args[0]
    for act in (kinfold.profile, lambda text: kinfold.verify(text, quasi=["age"], k=2)):
        with pytest.raises(kinfold.KinfoldError) as met:
            act(address)
        told: BaseException | None = met.value
        while told is not None:
            assert silent(str(told), repr(told))
            told = told.__context__


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="where arguments are is known on Linux")
def test_no_process_shows_a_password_and_one_that_is_stopped_leaves_nothing(
    server: Server, people: System, tmp_path: Path
) -> None:
    slowly = "SELECT id, age, pg_sleep(0.05)::text AS t FROM people, generate_series(1, 999) i"
    command = [sys.executable, "-c", "from kinfold.cli import main; main()", "anonymize", server.address(), "--query"]
    command += [slowly, "--quasi", "age", "--others", "drop", "-k", "2", "--out", str(tmp_path / "out")]
    environment = {**os.environ, "PYTHONPATH": str(Path(kinfold.__file__).parents[1])}
    ran = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        until = time.monotonic() + WAIT
        while not busy(server, "COPY ("):
            assert time.monotonic() < until
            assert ran.poll() is None
            time.sleep(0.05)
        shown = [_arguments(pid) for pid in (ran.pid, *_children(ran.pid))]
        assert len(shown) > 1
        assert all("postgresql://ada:***" in arguments for arguments in shown)
        assert silent(*shown)
        ran.terminate()
        out, err = ran.communicate(timeout=WAIT)
    finally:
        ran.kill()
        ran.wait(WAIT)
    assert ran.returncode == 143
    assert silent(out, err)
    assert list(tmp_path.iterdir()) == []


def _arguments(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode()


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
