"""Read files, Arrow tables and Spark frames into Spark.

Parquet      by the executors, one file or many. Each file is surveyed first: columns, types, rows and checksum. Spark
             reads the rows, or the embedded engine does it in the executors if Spark lacks a type or cannot find the
             file by its name. The number of rows read must match the survey.
other files  by the embedded engine in the executors, each file in one task: CSV, JSON, workbooks and statistics files
databases    by the embedded engine in one executor
frames       Arrow as it is; a Spark frame as it is, in its current order

A path is a path: no pattern, no partition from folder names. Places that only Spark reads are in `places`.
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

from kinfold.errors import DataError, KinfoldError, PolicyError, Problem
from kinfold.tables.column_names import check_column_names
from kinfold.tables.databases.transfer import DatabaseRows, read_database
from kinfold.tables.duckdb.connection import Database
from kinfold.tables.duckdb.expressions import Frame
from kinfold.tables.duckdb.writing import ROWS_PER_BATCH
from kinfold.tables.readers import reading
from kinfold.tables.readers.files import (
    Format,
    PartRows,
    combine_checksums,
    detect_format,
    hash_file,
    refuse_other_encodings,
)
from kinfold.tables.readers.reading import PartFile
from kinfold.tables.resources import Resources
from kinfold.tables.source_form import SourceForm
from kinfold.tables.spark.driver import Driver
from kinfold.tables.spark.frame import PLACE, SparkFrame, cast_for_spark, describe_schema, get_carrier, get_duckdb_type
from kinfold.tables.spark.session import UNREADABLE_MARKER, JobSession, UnreadablePartError

PARTITION_ROW_BITS = 33  # Spark's row ids: the lower bits number the rows of a partition, the upper ones the partition
MAX_FILE_TASKS = 1_000  # that survey or read files
ONE_THREAD = Resources(threads=1, on_disk=True)  # of an executor


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


def read_frame(driver: Driver, frame: Any, table: str, *, by_file: bool = False) -> SparkFrame:
    """Read a Spark frame in its current order, or in the order of its files.

    A frame is computed once. If an executor loses the result, the run ends: computed again, the rows might differ or
    come in another order. Rows of files are read again, because their places follow from the files.
    """
    from pyspark.sql.functions import broadcast, expr, lit, monotonically_increasing_id

    names = tuple(frame.columns)
    check_column_names(names, "the frame")
    types = tuple(get_duckdb_type(field.dataType.simpleString(), field.name) for field in frame.schema.fields)
    metadata = frame.metadataColumn("_metadata") if by_file else None
    file = lit("") if metadata is None else metadata.getField("file_path")
    block = lit(0) if metadata is None else metadata.getField("file_block_start")
    quoted = [frame["`" + name.replace("`", "``") + "`"] for name in names]
    columns = [quoted[i].cast(get_carrier(kind)[0]).alias(f"c{i}") for i, kind in enumerate(types)]
    session = driver.session
    with session.job():
        numbered = frame.select(*columns, file.alias("file"), block.cast("bigint").alias("block"))
        numbered = numbered.withColumn("at", monotonically_increasing_id())
        numbered = numbered.persist() if by_file else numbered.localCheckpoint()
        numbered = numbered.withColumn("part", expr(f"shiftright(at, {PARTITION_ROW_BITS})"))
        runs = numbered.groupBy("file", "block", "part").agg(expr("count(*) AS rows"), expr("min(at) AS first"))
    per_run = driver.collect(runs, "the rows of each partition").to_pylist()
    if not per_run:
        raise DataError("the frame has no rows", fix="give a table with at least one row")
    per_run.sort(key=lambda run: (run["file"].split("/"), run["block"], run["part"]))
    keys = {key: [run[key] for run in per_run] for key in ("file", "block", "part", "first")}
    offsets = pa.table(keys | {"before": _compute_offsets([run["rows"] for run in per_run])})
    with session.job():
        schema = "file string, block bigint, part bigint, first bigint, before bigint"
        offset_of_run = broadcast(session.spark.createDataFrame(offsets, schema))
        joined = numbered.join(offset_of_run, ["file", "block", "part"])
        rows = joined.withColumn(PLACE, expr("before + at - first")).select(
            *(f"c{i}" for i in range(len(names))), PLACE
        )
    total = sum(run["rows"] for run in per_run)
    return SparkFrame(rows, Frame(table, names, types, typed=True, order=PLACE), total)


def read_files(driver: Driver, source: Path, form: SourceForm, table: str) -> SparkFrame:
    """Read files in the executors, parts in their order, and check that every row is read."""
    session = driver.session
    surveys = _survey_files(driver, _list_files(source, form), form)
    layout, _ = join_surveys(surveys, source.name, table)
    layout, total = replace(layout, checksum=_compute_checksum(surveys, source, form)), sum(s.rows for s in surveys)
    if _has_parts(source, form):
        layout = replace(layout, files=tuple(PartRows(each.name, each.checksum, each.rows) for each in surveys))
    scan = _scan(session, surveys, layout) if _is_scanned(surveys, form) else None
    if scan is None:
        rows = _read_in_executors(session, surveys, layout, form)
    else:
        rows = _number_scanned_rows(driver, scan, surveys, layout)
    with session.job():
        count = rows.count()
    if count != total:
        what = f"Spark reads {count:,} of the {total:,} rows of '{source.name}'"
        raise DataError(what, fix="wait until its files are written, then run again; or use engine duckdb")
    return SparkFrame(rows, layout, total)


def join_surveys(surveys: Sequence[FileSurvey], name: str, table: str) -> tuple[Frame, list[int]]:
    """Return the columns of files that are one table, and the place of the first row of each; raise if they differ."""
    if problems := [each for survey in surveys for each in survey.problems]:
        raise DataError(problems)
    first = surveys[0]
    for each in surveys[1:]:
        reading.check_same_columns(first.frame, each.frame, first.name, each.name)
    if not any(survey.rows for survey in surveys):
        raise DataError(f"'{name}' has no rows", fix="give a table with at least one row")
    mixed = frozenset[str]().union(*(survey.frame.mixed for survey in surveys))
    notes = tuple(note for survey in surveys for note in survey.frame.notes)
    layout = replace(first.frame, table=table, order=PLACE, mixed=mixed, notes=notes)
    return layout, _compute_offsets([survey.rows for survey in surveys])


def read_rows_of_database(driver: Driver, source: DatabaseRows, table: str) -> SparkFrame:
    """Read the rows of a database with the embedded engine, in one executor.

    Their columns are known only there, so the first row is the description of the columns, the others are batches.
    """
    session = driver.session
    with session.job():
        task = session.spark.range(1).repartition(1)
        packed = task.mapInArrow(ReadDatabase(source), "number bigint, content binary").localCheckpoint()
    first = driver.collect(packed.where("number = 0"), "the columns of the table", at_most=1)
    described = pickle.loads(first.column("content")[0].as_py())  # noqa: S301  from our own executor
    if isinstance(described, Exception):
        raise described
    layout, rows = described
    kinds = dict(zip(layout.columns, layout.types, strict=True))
    with session.job():
        batches = packed.where("number > 0").repartition(max(1, -(-rows // ROWS_PER_BATCH)))
        unpacked = batches.mapInArrow(unpack_batches, describe_schema(kinds, place="bigint")).persist()
    return SparkFrame(unpacked, replace(layout, table=table, order=PLACE), rows)


class ReadDatabase:
    """Reads the rows of a database in an executor."""

    def __init__(self, source: DatabaseRows) -> None:
        self.source = source

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the description of the columns, then batches of rows, as bytes."""
        for _ in batches:
            with closing(Database(ONE_THREAD)) as db:
                try:
                    frame = read_database(db, self.source)
                except KinfoldError as error:
                    yield _pack(0, pickle.dumps(error))
                    return
                yield _pack(0, pickle.dumps((replace(frame, table=""), db.count(frame.table))))
                values = [
                    f"{cast_for_spark(c, kind)} AS {c}" for c, kind in zip(frame.columns, frame.types, strict=True)
                ]
                for number, batch in enumerate(read_table(db, frame, values), 1):
                    yield _pack(number, pickle.dumps(batch))


def _pack(number: int, content: bytes) -> pa.RecordBatch:
    return pa.record_batch({"number": pa.array([number], pa.int64()), "content": pa.array([content], pa.binary())})


def unpack_batches(packed: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches of rows in packed ones, in an executor."""
    for batch in packed:
        for content in batch.column("content").to_pylist():
            yield pickle.loads(content)  # noqa: S301  from our own executor


def require_unchanged(driver: Driver, source: Path, form: SourceForm, checksum: str | None) -> None:
    """Refuse files that changed: Spark reads them again whenever it needs their rows."""
    surveys = _survey_files(driver, _list_files(source, form), None)
    if _compute_checksum(surveys, source, form) != checksum:
        what = f"'{source.name}' was changed while it was read"
        raise DataError(what, fix="wait until it is written, then run again")


def _list_files(source: Path, form: SourceForm) -> list[PartFile]:
    refuse_other_encodings(source)
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
    """A file: its columns, or its problems."""

    path: str  # as Spark writes it
    name: str
    frame: Frame
    values: tuple[str, ...]  # DuckDB's SQL for each column
    rows: int
    checksum: str
    problems: tuple[Problem, ...] = ()


def _is_scanned(surveys: Sequence[FileSurvey], form: SourceForm) -> bool:
    """Return whether Spark's own reader may read the files."""
    return not form.skip_totals and all(_is_parquet(survey.path) for survey in surveys)


def _is_parquet(path: str) -> bool:
    return detect_format(Path(path)).format is Format.PARQUET


def _survey_files(driver: Driver, files: Sequence[PartFile], form: SourceForm | None) -> list[FileSurvey]:
    """Survey every file in the executors, or only its checksum without a form; raise if one has a problem."""
    paths, names = [_make_spark_path(file) for file in files], [file.name for file in files]
    columns = {"number": range(len(files)), "path": paths, "name": names}
    with driver.session.job():
        rows = _distribute(driver.session, columns).mapInArrow(SurveyFiles(form), "number bigint, survey binary")
    surveyed = driver.collect(rows.orderBy("number"), "a description of each file", at_most=len(files))
    packed = surveyed.column("survey").to_pylist()
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


class SurveyFiles:
    """Surveys files in an executor."""

    def __init__(self, form: SourceForm | None) -> None:
        self.form = form

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Survey the files that batches of rows list."""
        for batch in batches:
            surveys = [pickle.dumps(survey_file(row["path"], row["name"], self.form)) for row in batch.to_pylist()]
            yield pa.record_batch({"number": batch.column("number"), "survey": pa.array(surveys, pa.binary())})


def survey_file(path: str, name: str, form: SourceForm | None) -> FileSurvey:
    """Return what a file contains, read by the embedded engine; without a form only its checksum."""
    try:
        if form is None:
            return FileSurvey(path, name, Frame("", (), (), typed=True), (), 0, hash_file(Path(path)))
        with closing(Database(ONE_THREAD)) as db:
            if _is_parquet(path) and not form.skip_totals:
                return FileSurvey(path, name, *reading.describe_parquet(db, Path(path), name), hash_file(Path(path)))
            frame = reading.read_part(db, Path(path), form, name)
            layout = replace(frame, table="", checksum=None)
            return FileSurvey(path, name, layout, tuple(frame.columns), db.count(frame.table), str(frame.checksum))
    except (DataError, PolicyError) as error:
        problems = tuple(error.problems)
    except OSError as error:
        problems = (Problem(f"'{name}' cannot be read: {error.strerror}", "check the file on every machine"),)
    return FileSurvey(path, name, Frame("", (), (), typed=True), (), 0, "", problems)


def _read_in_executors(session: JobSession, surveys: Sequence[FileSurvey], layout: Frame, form: SourceForm) -> Any:
    """Read the files with the embedded engine in the executors, each file in one task."""
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
        files = _distribute(session, columns)
        return files.mapInArrow(ReadFiles(form), describe_schema(kinds, place="bigint")).persist()


class ReadFiles:
    """Reads files in an executor."""

    def __init__(self, form: SourceForm) -> None:
        self.form = form

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the files that batches of rows list: the values of each, and the place of its first row."""
        for batch in batches:
            for file in batch.to_pylist():
                try:
                    yield from read_file(file, self.form)
                except DataError:
                    raise UnreadablePartError(UNREADABLE_MARKER + json.dumps(file["name"])) from None


def read_file(file: dict[str, Any], form: SourceForm) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file in batches."""
    path = Path(file["path"])
    with closing(Database(ONE_THREAD)) as db:
        if _is_parquet(file["path"]) and not form.skip_totals:
            yield from reading.read_parquet_batches(db, path, file["name"], file["values"], file["before"])
        else:
            frame = reading.read_part(db, path, form, file["name"])
            yield from read_table(db, frame, file["values"], file["before"])


def read_table(db: Database, frame: Frame, values: Sequence[str], before: int = 0) -> Iterator[pa.RecordBatch]:
    """Yield values of the rows of a table, and their places, from `before` on."""
    place = f"CAST(row_number() OVER () - 1 + {before} AS BIGINT) AS {PLACE}"
    yield from db.reader(
        f"SELECT {', '.join([*values, place])} FROM (SELECT * FROM {frame.table} ORDER BY {frame.order})",
        ROWS_PER_BATCH,
    )


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


def _number_scanned_rows(driver: Driver, rows: Any, surveys: Sequence[FileSurvey], layout: Frame) -> Any:
    from pyspark.sql.functions import broadcast, col, expr

    if len(surveys) == 1:
        return rows.select(*layout.columns, col("at").alias(PLACE))
    places = _compute_offsets([survey.rows for survey in surveys])
    offsets = {survey.path: place for survey, place in zip(surveys, places, strict=True)}
    files = driver.collect(rows.select("file").distinct(), "the name of each file", at_most=len(surveys))
    addresses = files.column(0).to_pylist()
    with driver.session.job():
        paths = {unquote(urlsplit(address).path): address for address in addresses}
        known = {address: offsets[path] for path, address in paths.items() if path in offsets}
        table = pa.table({"file": [*known], "before": [*known.values()]})
        offset_of_file = driver.session.spark.createDataFrame(table, "file string, before bigint")
    return rows.join(broadcast(offset_of_file), "file").select(*layout.columns, expr("before + at").alias(PLACE))
