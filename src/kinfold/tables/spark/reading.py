"""Read files, Arrow tables and Spark frames into Spark.

Parquet      by the executors, one file or many. Each file is surveyed first: columns, types, rows and checksum. Spark
             reads the rows, or the embedded engine does it in the executors if Spark lacks a type or cannot find the
             file by its name. The number of rows read must match the survey.
other files  by the embedded engine, which sends the rows to Spark: CSV has no types, and one reader decides them
frames       Arrow as it is; a Spark frame as it is, in its current order

A path is a path: no pattern, no partition from folder names, no URL. Data that only Spark can read is given as a
Spark frame.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from kinfold.errors import DataError, Problem
from kinfold.tables.column_names import check_column_names
from kinfold.tables.duckdb.connection import Database
from kinfold.tables.duckdb.expressions import Frame
from kinfold.tables.readers import reading
from kinfold.tables.readers.files import Format, PartRows, combine_checksums, detect_format, hash_file
from kinfold.tables.readers.reading import PartFile
from kinfold.tables.resources import Resources
from kinfold.tables.source_form import SourceForm
from kinfold.tables.spark.frame import PLACE, SparkFrame, cast_for_spark, describe_schema, get_carrier, get_duckdb_type
from kinfold.tables.spark.session import UNREADABLE_MARKER, JobSession, UnreadablePartError

PARTITION_ROW_BITS = 33  # Spark's row ids: the lower bits number the rows of a partition, the upper ones the partition
MAX_FILE_TASKS = 1_000  # that survey or read files
ONE_THREAD = Resources(threads=1)  # of an executor


def is_parquet(source: Path, form: SourceForm) -> bool:
    """Return whether a source is one or more Parquet files, which the executors read."""
    return detect_format(_list_files(source, form)[0].file).format is Format.PARQUET


def send_table(session: JobSession, db: Database, local: Frame, table: str) -> SparkFrame:
    """Move the rows of a DuckDB table to Spark."""
    kinds = dict(zip(local.columns, local.types, strict=True))
    values = ", ".join(f"{cast_for_spark(c, kind)} AS {c}" for c, kind in kinds.items())
    place = "CAST(row_number() OVER () - 1 AS BIGINT)"
    arrow = db.arrow(f"SELECT {values}, {place} AS {PLACE} FROM (SELECT * FROM {local.table} ORDER BY {local.order})")
    db.drop(local.table)
    with session.job():
        rows = session.spark.createDataFrame(arrow, describe_schema(kinds, place="bigint"))
    return SparkFrame(rows, replace(local, table=table, order=PLACE), arrow.num_rows)


def read_frame(session: JobSession, frame: Any, table: str) -> SparkFrame:
    """Read a Spark frame in its current order.

    It is computed once. If an executor loses the result, the run ends: computed again, the rows might differ or come
    in another order.
    """
    from pyspark.sql.functions import broadcast, col, expr, monotonically_increasing_id

    names = tuple(frame.columns)
    check_column_names(names, "the frame")
    types = tuple(get_duckdb_type(field.dataType.simpleString(), field.name) for field in frame.schema.fields)
    renamed = frame.toDF(*(f"c{i}" for i in range(len(names))))
    columns = [col(f"c{i}").cast(get_carrier(kind)[0]).alias(f"c{i}") for i, kind in enumerate(types)]
    with session.job():
        numbered = renamed.select(*columns, monotonically_increasing_id().alias("at")).localCheckpoint()
        numbered = numbered.withColumn("part", expr(f"shiftright(at, {PARTITION_ROW_BITS})"))
        counts = numbered.groupBy("part").count().orderBy("part").toArrow().to_pydict()
        if not counts["part"]:
            raise DataError("the frame has no rows", fix="give a table with at least one row")
        offsets = pa.table({"part": counts["part"], "before": _compute_offsets(counts["count"])})
        offset_of_part = broadcast(session.spark.createDataFrame(offsets, "part bigint, before bigint"))
        place = expr(f"before + at - shiftleft(part, {PARTITION_ROW_BITS})")
        rows = numbered.join(offset_of_part, "part").withColumn(PLACE, place).drop("at", "part", "before")
    return SparkFrame(rows, Frame(table, names, types, typed=True, order=PLACE), sum(counts["count"]))


def read_parquet(session: JobSession, source: Path, form: SourceForm, table: str) -> SparkFrame:
    """Read Parquet in the executors, parts in their order, and check that every row is read."""
    surveys = _survey_files(session, _list_files(source, form))
    first = surveys[0]
    for each in surveys[1:]:
        reading.check_same_columns(first.frame, each.frame, first.name, each.name)
    total = sum(survey.rows for survey in surveys)
    if not total:
        raise DataError(f"'{source.name}' has no rows", fix="give a table with at least one row")
    mixed = frozenset[str]().union(*(survey.frame.mixed for survey in surveys))
    checksum = _compute_checksum(surveys, source, form)
    layout = replace(first.frame, table=table, checksum=checksum, order=PLACE, mixed=mixed)
    if _has_parts(source, form):
        layout = replace(layout, files=tuple(PartRows(each.name, each.checksum, each.rows) for each in surveys))
    scan = _scan(session, surveys, layout)
    if scan is None:
        rows = _read_in_executors(session, surveys, layout)
    else:
        rows = _number_scanned_rows(session, scan, surveys, layout)
    with session.job():
        count = rows.count()
    if count != total:
        what = f"Spark reads {count:,} of the {total:,} rows of '{source.name}'"
        raise DataError(what, fix="wait until its files are written, then run again; or use engine duckdb")
    return SparkFrame(rows, layout, total)


def require_unchanged(session: JobSession, source: Path, form: SourceForm, checksum: str | None) -> None:
    """Refuse files that changed: Spark reads them again whenever it needs their rows."""
    surveys = _survey_files(session, _list_files(source, form))
    if _compute_checksum(surveys, source, form) != checksum:
        what = f"'{source.name}' was changed while it was read"
        raise DataError(what, fix="wait until it is written, then run again")


def _list_files(source: Path, form: SourceForm) -> list[PartFile]:
    return reading.list_parts(source) if _has_parts(source, form) else [PartFile(source, source.name)]


def _has_parts(source: Path, form: SourceForm) -> bool:
    return form.parts and reading.is_many_files(source)


def _compute_checksum(surveys: Sequence[FileSurvey], source: Path, form: SourceForm) -> str:
    """Return the checksum of a file, or of the list of parts."""
    if not _has_parts(source, form):
        return surveys[0].checksum
    return combine_checksums((survey.name, survey.checksum) for survey in surveys)


@dataclass(frozen=True)
class FileSurvey:
    """A Parquet file: its columns, or its problems."""

    path: str  # as Spark writes it
    name: str
    frame: Frame
    values: tuple[str, ...]  # DuckDB's SQL for each column
    rows: int
    checksum: str
    problems: tuple[Problem, ...] = ()


def _survey_files(session: JobSession, files: Sequence[PartFile]) -> list[FileSurvey]:
    """Survey every file in the executors; raise if one has a problem."""
    paths, names = [_make_spark_path(file) for file in files], [file.name for file in files]
    columns = {"number": range(len(files)), "path": paths, "name": names}
    with session.job():
        rows = _distribute(session, columns).mapInArrow(survey_batches, "number bigint, survey binary")
        packed = rows.orderBy("number").toArrow().column("survey").to_pylist()
    surveys: list[FileSurvey] = [pickle.loads(each) for each in packed]  # noqa: S301  from our own executors
    if problems := [each for survey in surveys for each in survey.problems]:
        raise DataError(problems)
    return surveys


def _make_spark_path(part: PartFile) -> str:
    """Return the path of a file as Spark writes it. Spark removes `..` from the text, which is wrong after a link."""
    path = part.file.absolute()
    if ".." in path.parts:
        path = path.parent.resolve() / path.name
    return "/" + str(path).lstrip("/")  # two slashes at the start would mean a host


def _distribute(session: JobSession, columns: dict[str, Any]) -> Any:
    """Return a frame of files, one task for each file, up to a limit."""
    rows = session.spark.createDataFrame(pa.table(columns))
    return rows.repartition(min(len(columns["path"]), MAX_FILE_TASKS))


def survey_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Survey the files that batches of rows list, in an executor."""
    for batch in batches:
        surveys = [pickle.dumps(_survey_file(row["path"], row["name"])) for row in batch.to_pylist()]
        yield pa.record_batch({"number": batch.column("number"), "survey": pa.array(surveys, pa.binary())})


def _survey_file(path: str, name: str) -> FileSurvey:
    try:
        with closing(Database(ONE_THREAD)) as db:
            return FileSurvey(path, name, *reading.describe_parquet(db, Path(path), name), hash_file(Path(path)))
    except DataError as error:
        problems = tuple(error.problems)
    except OSError as error:
        problems = (Problem(f"'{name}' cannot be read: {error.strerror}", "check the file on every machine"),)
    return FileSurvey(path, name, Frame("", (), (), typed=True), (), 0, "", problems)


def _read_in_executors(session: JobSession, surveys: Sequence[FileSurvey], layout: Frame) -> Any:
    """Read the files with DuckDB in the executors, each file in one task."""
    kinds = dict(zip(layout.columns, layout.types, strict=True))
    columns = {
        "path": [survey.path for survey in surveys],
        "name": [survey.name for survey in surveys],
        "values": [
            [
                f"{cast_for_spark(value, kind)} AS {c}"
                for value, (c, kind) in zip(each.values, kinds.items(), strict=True)
            ]
            for each in surveys
        ],
        "before": _compute_offsets([survey.rows for survey in surveys]),
    }
    with session.job():
        return _distribute(session, columns).mapInArrow(read_rows, describe_schema(kinds, place="bigint")).persist()


def read_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read the files that batches of rows list, in an executor: the values of each, and the place of its first row."""
    for batch in batches:
        for file in batch.to_pylist():
            try:
                with closing(Database(ONE_THREAD)) as db:
                    path = Path(file["path"])
                    yield from reading.read_parquet_batches(db, path, file["name"], file["values"], file["before"])
            except DataError:
                raise UnreadablePartError(UNREADABLE_MARKER + json.dumps(file["name"])) from None


def _compute_offsets(rows: Sequence[int]) -> list[int]:
    """Return the place of the first row of each part, given how many rows each has."""
    return [0, *accumulate(rows)][: len(rows)]


def _scan(session: JobSession, surveys: Sequence[FileSurvey], layout: Frame) -> Any:
    """Return a Spark frame over files: their columns by number, the file, and the row within it.

    None if Spark does not find a file by its name, or has no type for a column.
    """
    from pyspark.errors import AnalysisException, ArithmeticException
    from pyspark.sql.functions import col

    # Spark skips hidden files, and reads a colon as the end of a scheme.
    if any(Path(survey.path).name.startswith(("_", ".")) or ":" in survey.path for survey in surveys):
        return None
    options = {"recursiveFileLookup": "true", "mergeSchema": "false", "__globPaths__": "false"}
    reader = session.spark.read.options(**options)  # no columns from folder names, no patterns
    with session.job():
        try:
            rows = reader.parquet(*(survey.path for survey in surveys))
        except (AnalysisException, ArithmeticException):
            return None
        carriers = [get_carrier(kind)[0] for kind in layout.types]
        unconverted = all([*survey.values] == layout.columns for survey in surveys)
        if not unconverted or [field.dataType.simpleString() for field in rows.schema] != carriers:
            return None
        metadata = rows.metadataColumn("_metadata")
        columns = [rows["`" + name.replace("`", "``") + "`"] for name in rows.columns]
        names = [*(f"c{i}" for i in range(len(columns))), "file", "at"]
        scan = rows.select(*columns, metadata.getField("file_path"), metadata.getField("row_index")).toDF(*names)
        return scan.select(*map(col, names))


def _number_scanned_rows(session: JobSession, rows: Any, surveys: Sequence[FileSurvey], layout: Frame) -> Any:
    from pyspark.sql.functions import broadcast, col, expr

    if len(surveys) == 1:
        return rows.select(*layout.columns, col("at").alias(PLACE))
    places = _compute_offsets([survey.rows for survey in surveys])
    offsets = {survey.path: place for survey, place in zip(surveys, places, strict=True)}
    with session.job():
        addresses = rows.select("file").distinct().toArrow().column(0).to_pylist()
        paths = {unquote(urlsplit(address).path): address for address in addresses}
        known = {address: offsets[path] for path, address in paths.items() if path in offsets}
        table = pa.table({"file": [*known], "before": [*known.values()]})
        offset_of_file = session.spark.createDataFrame(table, "file string, before bigint")
    return rows.join(broadcast(offset_of_file), "file").select(*layout.columns, expr("before + at").alias(PLACE))
