"""Places that only Spark reads: URLs of a cluster's storage, tables of its catalogue, and JDBC.

Parquet, ORC, Delta, Iceberg, catalogue tables and JDBC are read by Spark's own readers. Files without types (CSV,
JSON) are read by the embedded engine in the executors, from the bytes that Spark gives it: so the rules of reading are
the same everywhere. Rows keep the order of the paths, and in a file that of its rows.
"""

from __future__ import annotations

import json
import pickle
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from kinfold.errors import DataError, PolicyError
from kinfold.tables.databases.address import SparkPlace
from kinfold.tables.readers.files import ENDINGS, PACKED_ENDINGS, combine_checksums
from kinfold.tables.source_form import SourceForm
from kinfold.tables.spark.driver import Driver
from kinfold.tables.spark.frame import PLACE, SparkFrame, cast_for_spark, describe_schema
from kinfold.tables.spark.reading import FileSurvey, join_surveys, read_file, read_frame, survey_file
from kinfold.tables.spark.session import UNREADABLE_MARKER, UnreadablePartError

MAX_FILE_BYTES = 1 << 30  # of a file that an executor reads as a whole; Spark allows twice as much
REFUSALS = {  # signs in a message of Spark: what is wrong, and how to fix it
    "DATA_SOURCE_NOT_FOUND": ("this Spark has no reader of this format", "add its package: spark.jars.packages"),
    "PATH_NOT_FOUND": ("there is nothing at this place", "check the address"),
    "TABLE_OR_VIEW_NOT_FOUND": ("the catalogue has no such table", "check its name, and the catalogue of the session"),
    "No suitable driver": ("this Spark has no JDBC driver for this address", "add its jar: spark.jars"),
    "No FileSystem for scheme": ("this Spark cannot open such addresses", "add its package: spark.jars.packages"),
    "FileSystem not found": ("this Spark cannot open such addresses", "add its package: spark.jars.packages"),
    "UnknownHostException": ("the server of this place cannot be found", "check the address"),
}


def read_place(driver: Driver, place: SparkPlace, table: str) -> SparkFrame:
    """Read a place with Spark's own reader."""
    with driver.session.job():
        rows, refused = _open(driver.session.spark, place)
    if refused is not None:
        raise refused
    return read_frame(driver, rows, table, by_file=place.kind == "url" and place.format in ("parquet", "orc"))


def _open(spark: Any, place: SparkPlace) -> tuple[Any, Exception | None]:
    """Return the rows of a place, or why they cannot be read; Spark's message would quote the address."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        if place.kind == "table":
            return spark.table(place.uri), None
        if place.kind == "jdbc":
            option = ("query", place.query) if place.query else ("dbtable", _name_table(spark, place))
            return spark.read.format("jdbc").option("url", place.uri).option(*option).load(), None
        return spark.read.options(**_choose_options(place)).format(place.format).load(place.uri), None
    except (PySparkException, Py4JJavaError) as error:
        message = str(error)
    for sign, (what, fix) in REFUSALS.items():
        if sign in message:
            return None, PolicyError(f"'{place.place}': {what}", fix=fix)
    return None, DataError(
        f"'{place.place}' cannot be read by Spark", fix="check the address, its rights and its format"
    )


def _choose_options(place: SparkPlace) -> dict[str, str]:
    """Return options of Spark's reader: a file is named as it is, and no column of a later file is left out."""
    is_file = place.uri.startswith("file:") and Path(place.uri.removeprefix("file://")).exists()
    merged = {"mergeSchema": "true"} if place.format in ("parquet", "orc") else {}
    return merged | ({"__globPaths__": "false"} if is_file else {})


def _name_table(spark: Any, place: SparkPlace) -> str:
    """Return the name of a table in the SQL of its database."""
    names = (place.table.schema, place.table.table) if place.table else ()
    dialect = spark._jvm.org.apache.spark.sql.jdbc.JdbcDialects.get(place.uri)
    return ".".join(dialect.quoteIdentifier(name) for name in names if name)


def read_contents(driver: Driver, place: SparkPlace, form: SourceForm, table: str) -> SparkFrame:
    """Read files without types with the embedded engine in the executors, each file in one task."""
    with driver.session.job():
        files, refused = _open(driver.session.spark, replace(place, format="binaryFile"))
    if refused is not None:
        raise refused
    sizes = driver.collect(files.select("path", "length"), "the name and size of each file").to_pydict()
    if not sizes["path"]:
        raise DataError(f"there are no files in '{place.place}'", fix="check the address")
    if max(sizes["length"]) > MAX_FILE_BYTES:
        what = f"a file in '{place.place}' is larger than {MAX_FILE_BYTES >> 20:,} MiB, which one executor would hold"
        raise DataError(what, fix="write it in several files, or as Parquet")
    ending = f".{place.format}"
    contents = files.select("path", "content")
    with driver.session.job():
        surveyed = contents.mapInArrow(SurveyContents(form, ending), "path string, survey binary")
    packed = driver.collect(surveyed, "a description of each file", at_most=len(sizes["path"])).to_pydict()
    surveys = [
        replace(pickle.loads(survey), path=path)  # noqa: S301  from our own executors
        for path, survey in sorted(
            zip(packed["path"], packed["survey"], strict=True), key=lambda each: each[0].split("/")
        )
    ]
    layout, offsets = join_surveys(surveys, place.name, table)
    layout = replace(layout, checksum=combine_checksums((survey.name, survey.checksum) for survey in surveys))
    kinds = dict(zip(layout.columns, layout.types, strict=True))
    values = [f"{cast_for_spark(c, kind)} AS {c}" for c, kind in kinds.items()]
    before = {survey.path: offset for survey, offset in zip(surveys, offsets, strict=True)}
    with driver.session.job():
        reader = ReadContents(form, ending, values, before)
        rows = contents.mapInArrow(reader, describe_schema(kinds, place="bigint")).persist()
    return SparkFrame(rows, replace(layout, order=PLACE), sum(survey.rows for survey in surveys))


class SurveyContents:
    """Surveys files, given by their bytes, in an executor."""

    def __init__(self, form: SourceForm, ending: str) -> None:
        self.form, self.ending = form, ending

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield what each file contains."""
        for path, copy in _write_copies(batches, self.ending):
            survey: FileSurvey = survey_file(str(copy), _get_name(path), self.form)
            packed = pa.array([pickle.dumps(survey)], pa.binary())
            yield pa.record_batch({"path": pa.array([path]), "survey": packed})


class ReadContents:
    """Reads files, given by their bytes, in an executor."""

    def __init__(self, form: SourceForm, ending: str, values: list[str], before: Mapping[str, int]) -> None:
        self.form, self.ending, self.values, self.before = form, ending, values, before

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of each file, with their places."""
        for path, copy in _write_copies(batches, self.ending):
            name = _get_name(path)
            file = {"path": str(copy), "name": name, "values": self.values, "before": self.before[path]}
            try:
                yield from read_file(file, self.form)
            except DataError:
                raise UnreadablePartError(UNREADABLE_MARKER + json.dumps(name)) from None


def _write_copies(batches: Iterator[pa.RecordBatch], ending: str) -> Iterator[tuple[str, Path]]:
    """Yield the address of each file, and a copy of it on the disk of the executor while it is used."""
    for batch in batches:
        for row in batch.to_pylist():
            with tempfile.TemporaryDirectory() as folder:
                copy = Path(folder, _get_name(row["path"]))
                suffixes = [suffix.lower() for suffix in copy.suffixes if suffix.lower() not in PACKED_ENDINGS]
                if not suffixes or suffixes[-1] not in ENDINGS:
                    copy = copy.with_name(f"{copy.name}{ending}")
                copy.write_bytes(row["content"])
                yield row["path"], copy


def _get_name(path: str) -> str:
    return unquote(path.rpartition("/")[2])
