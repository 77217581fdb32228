"""What the executors read: files of every format, rows of databases, and places that only Spark reads."""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc, parquet

import kinfold
from command import run
from kinfold.errors import DataError, PolicyError
from kinfold.policy.model import Policy
from kinfold.tables.databases.address import SparkPlace, locate, parse_source, select_rows
from kinfold.tables.duckdb.engine import DuckDB
from kinfold.tables.queries import collect_rows
from kinfold.tables.resources import Resources
from kinfold.tables.source_form import SourceForm
from kinfold.tables.spark import places
from kinfold.tables.spark.session import SCRATCH_PREFIX, WAREHOUSE
from postgres import Server

MISSING = ("",)
PARTS = SourceForm(parts=True)
GERMAN = SourceForm(
    na=("NA",), decimal=",", thousands=".", dates=("%d.%m.%Y",), encoding="cp1252", separator=";", skip=1, parts=True
)
ROWS = ["alter;größe;tag;text", '31;1.234,5;01.02.2024;"a;""b"""', "NA;7,25;29.02.2024;", '45;NA;NA;"zwei\nZeilen"']


def write_german(folder: Path) -> SourceForm:
    for number, rows in enumerate((ROWS, [ROWS[0], *ROWS[:0:-1]])):
        (folder / f"t{number}.csv").write_bytes(("Stand 2024\n" + "\n".join(rows) + "\n").encode("cp1252"))
    return GERMAN


def write_plain(folder: Path) -> SourceForm:
    (folder / "a.csv").write_text("\ufeffa,b\n1,x\n2,\n", encoding="utf-8")
    with gzip.open(folder / "c.csv.gz", "wt") as file:  # another kind of file is refused; this one is read alone
        file.write("a,b\n3,z\n")
    (folder / "c.csv.gz").unlink()
    (folder / "b.csv").write_text("a,b\n03,NA\n-4.50,'x\n", encoding="utf-8")
    return SourceForm(parts=True, na=("NA",))


def write_lines(folder: Path) -> SourceForm:
    for number in range(2):
        rows = [{"a": 10**17 + 1 + number, "b": 0.5, "c": "x" if number else None}, {"a": 2, "b": None, "c": ""}]
        (folder / f"t{number}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return PARTS


def write_totals(folder: Path) -> SourceForm:
    (folder / "t.csv").write_text("area,n,m\nnorth,1,2\nsouth,3,4\nTotal,4,6\n")
    return SourceForm(skip_totals=True, parts=True)


FILES = {"german": write_german, "plain": write_plain, "lines": write_lines, "totals": write_totals}


@pytest.mark.parametrize("kind", FILES)
def test_files_are_read_by_the_rules_of_the_embedded_engine(spark: Any, kind: str, tmp_path: Path) -> None:
    """In the executors, from a path and from a URL: the same columns, values, form, notes and missing values."""
    from kinfold.tables.spark.engine import Spark

    form = FILES[kind](tmp_path)
    place = SparkPlace("spark", "t", tmp_path.as_uri(), format="jsonl" if kind == "lines" else "csv")
    with DuckDB() as plain, Spark(spark, Resources()) as engine:
        wanted = plain.read(tmp_path, MISSING, form)
        for source in (tmp_path, place):
            found = engine.read(source, MISSING, form)
            assert (found.names, found.layout.types) == (wanted.names, wanted.types)
            assert (found.form, found.blanked, found.layout.numeric) == (wanted.form, wanted.blanked, wanted.numeric)
            assert (found.layout.notes, found.separator) == (wanted.notes, wanted.separator)
            assert engine.schema(found) == plain.schema(wanted)
            assert collect_rows(engine, found).to_pydict() == collect_rows(plain, wanted).to_pydict()
            assert found.checksum == wanted.checksum
        assert not any(each.what.startswith("records") for each in engine.driver.collected[:3])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a,b\n1,2\n3\n", "another number of fields"),
        ('a,b\n1,"2\n', "wrong quote"),
        ("a,a\n1,2\n", "same name"),
        ("a,b\n", "no rows"),
    ],
)
def test_a_file_that_breaks_a_rule_is_refused_in_the_same_words(
    spark: Any, text: str, told: str, tmp_path: Path
) -> None:
    from kinfold.tables.spark.engine import Spark

    (tmp_path / "t.csv").write_text(text)
    with DuckDB() as plain, pytest.raises(DataError) as wanted:
        plain.read(tmp_path / "t.csv", MISSING)
    with Spark(spark, Resources()) as engine, pytest.raises(DataError) as found:
        engine.read(tmp_path / "t.csv", MISSING)
    assert found.value.problems == wanted.value.problems
    assert told in str(found.value)


def people(records: int = 60) -> pa.Table:
    return pa.table({"age": [20 + i % 7 for i in range(records)], "ill": ["flu", "cold", "none"] * (records // 3)})


def policy(**source: Any) -> dict[str, Any]:
    columns = {"age": {"role": "quasi"}, "ill": {"role": "confidential", "type": "nominal"}}
    method = {"name": "mdav"}
    return {"privacy": {"k": 4}, "method": method, "columns": columns, "source": source, "engine": {"name": "spark"}}


@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_a_url_is_read_in_the_order_of_its_files(spark: Any, form: str, tmp_path: Path) -> None:
    for number, start in enumerate((0, 12, 45)):  # the largest one is not the first
        part = people().slice(start, (12, 33, 15)[number])
        (parquet if form == "parquet" else orc).write_table(part, str(tmp_path / f"p{number}.{form}"))
    release = kinfold.anonymize(tmp_path.as_uri(), policy(format=form))
    wanted = kinfold.anonymize(people(), policy() | {"engine": {}})
    assert release.labels.tolist() == wanted.labels.tolist()
    assert release.source.name == tmp_path.name


def test_a_file_of_any_name_is_read_and_no_column_is_left_out(spark: Any, tmp_path: Path) -> None:
    """A path is no pattern and no percent code; a column that only a later file has is a column of the table."""
    from kinfold.tables.spark.engine import Spark

    folder = tmp_path / "50% [x] \u00fc"
    folder.mkdir()
    orc.write_table(people(6), str(tmp_path / "1+1 [x].orc"))
    parquet.write_table(people(6), str(folder / "a.parquet"))
    parquet.write_table(people(6).append_column("name", pa.array(list("uvwxyz"))), str(folder / "b.parquet"))
    with Spark(spark, Resources()) as engine:
        assert engine.read(locate(tmp_path / "1+1 [x].orc", "orc", "spark")).names == ("age", "ill")
        found = engine.read(SparkPlace("spark", "t", f"file://{folder}", format="parquet"))
        assert found.names == ("age", "ill", "name")
        assert collect_rows(engine, found).to_pydict()["name"] == [None] * 6 + list("uvwxyz")


def test_a_table_of_the_catalogue_is_read_by_its_name(spark: Any, tmp_path: Path) -> None:
    spark.createDataFrame(people()).coalesce(1).createOrReplaceTempView("people_of_a_clinic")
    release = kinfold.anonymize("people_of_a_clinic", policy(format="table"))
    assert release.verdict.k >= 4
    with pytest.raises(PolicyError, match="no such table"):
        kinfold.anonymize("clinic.nobody", policy(format="table"))
    with pytest.raises(DataError, match="no name of a table"):
        kinfold.anonymize("not a name", policy(format="table"))


def test_rows_of_databases_are_read_in_an_executor(spark: Any, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "a.db") as db:
        db.execute("CREATE TABLE t (age INTEGER, ill TEXT)")
        db.executemany("INSERT INTO t VALUES (?, ?)", zip(*people().to_pydict().values(), strict=True))
    address = f"sqlite:///{tmp_path / 'a.db'}?table=t"
    release = kinfold.anonymize(address, policy())
    wanted = kinfold.anonymize(address, policy() | {"engine": {}})
    assert release.labels.tolist() == wanted.labels.tolist()
    assert release.original.checksum == wanted.original.checksum
    with pytest.raises(DataError, match="nothing"):
        kinfold.anonymize(f"sqlite:///{tmp_path / 'a.db'}?table=nothing", policy())


def test_rows_of_postgresql_have_their_types_in_spark(spark: Any, server: Server) -> None:
    from kinfold.tables.spark.engine import Spark

    values = (
        "numeric '7.7500' AS a, date '2020-02-29' AS b, time '12:34:56' AS c, timestamptz '2020-01-01 01:00+02' AS d"
    )
    server.run("DROP TABLE IF EXISTS typed", f"CREATE TABLE typed AS SELECT {values}, 'x'::text AS e")
    server.run("INSERT INTO typed (e) VALUES (NULL), ('')")
    address = select_rows(parse_source(server.address()), "typed", None)
    with DuckDB() as plain, Spark(spark, Resources()) as engine:
        wanted, found = plain.read(address, MISSING), engine.read(address, MISSING)
        assert engine.schema(found) == plain.schema(wanted)
        assert collect_rows(engine, found).to_pydict() == collect_rows(plain, wanted).to_pydict()
        assert (found.checksum, found.blanked) == (wanted.checksum, wanted.blanked)


def test_the_command_reads_a_table_of_the_catalogue(spark: Any, tmp_path: Path) -> None:
    spark.createDataFrame(people()).coalesce(1).createOrReplaceTempView("people_of_a_town")
    keys = ("--quasi", "age", "--confidential", "ill", "-k", 4, "--method", "mdav", "--engine", "spark")
    asked = ("anonymize", "people_of_a_town", *keys)
    run(*asked, "--source-format", "table", "--out", tmp_path / "out").ok()
    assert kinfold.verify(tmp_path / "out").k >= 4
    run(*asked, "--out", tmp_path / "other").fails(3, "no such file")
    run(*asked[:-2], "--source-format", "table", "--out", tmp_path / "other").fails(2, "for Spark alone")


def test_jdbc_is_read_by_spark(spark: Any, tmp_path: Path) -> None:
    """By the database that comes with Spark, Derby, and without a driver in words of our own."""
    address = f"jdbc:derby:{tmp_path / 'd'};create=true"
    spark.createDataFrame(people()).coalesce(1).write.jdbc(address, "PEOPLE")
    release = kinfold.anonymize(f"{address}?table=PEOPLE", policy())
    assert release.verdict.records == 60
    mysql = parse_source("jdbc:mysql://host/name?table=a.b")
    assert isinstance(mysql, SparkPlace)
    assert places._name_table(spark, mysql) == "`a`.`b`"
    log, warehouse = spark._jvm.System.getProperty("derby.stream.error.file"), spark.conf.get(WAREHOUSE)
    assert SCRATCH_PREFIX in log  # not in the folder where the command runs
    assert Path(log).exists()
    assert SCRATCH_PREFIX in warehouse
    with pytest.raises(PolicyError, match=r"'jdbc:unknown://host/name': this Spark has no JDBC driver"):
        kinfold.anonymize("jdbc:unknown://u:secret@host/name?table=t", policy())


@pytest.mark.parametrize(
    ("source", "form", "told"),
    [
        ("s3a://bucket/folder", None, "the format of 's3a://bucket/folder' is not known"),
        ("s3a://bucket/t.parquet", None, "cannot open such addresses"),
        ("file:///no/such/place.parquet", None, "nothing at this place"),
        ("file:///", "delta", "no reader of this format"),
        ("file:///no/such/place.csv", None, "nothing at this place"),
    ],
)
def test_a_place_that_cannot_be_read_is_refused(spark: Any, source: str, form: str | None, told: str) -> None:
    with pytest.raises((PolicyError, DataError), match=told):
        kinfold.anonymize(source, policy(**({"format": form} if form else {})))


def test_addresses_that_only_spark_reads() -> None:
    place = parse_source("s3a://key:secret@bucket/people.parquet")
    assert isinstance(place, SparkPlace)
    assert "secret" not in f"{place} {place!r} {place.name}"
    assert locate(place, None, "spark").format == "parquet"
    assert locate(place, "orc", "spark").format == "orc"
    jdbc = parse_source("jdbc:postgresql://u:secret@host/db?table=clinic.people&password=secret&ssl=true")
    assert isinstance(jdbc, SparkPlace)
    assert (jdbc.kind, str(jdbc.table), jdbc.name) == ("jdbc", "clinic.people", "clinic.people")
    assert jdbc.uri == "jdbc:postgresql://u:secret@host/db?password=secret&ssl=true"
    assert "secret" not in f"{jdbc} {jdbc!r}"
    table = locate(Path("catalog.db.people"), "iceberg", "spark")
    assert (table.kind, table.uri, table.name) == ("table", "catalog.db.people", "catalog.db.people")
    for source, more in (("s3a://bucket/t.csv", {}), ("t.csv", {"source": {"format": "csv"}})):
        with pytest.raises(PolicyError, match="is for Spark alone"):
            kinfold.anonymize(source, Policy.parse({"privacy": {"k": 2}} | more))
