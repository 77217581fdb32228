"""Taking in: files, frames, and frames of Spark itself.

Parquet      by the executors, one file or many; each is looked at first: its columns, types, rows and checksum. Spark
             reads the rows, or the embedded engine does, in the executors, where Spark has not the types or does not
             find a file by its name. The rows that were read are counted: they must be those of the first look
other files  by the embedded engine, which then hands the rows to Spark: CSV has no types, and one reader judges it
frames       Arrow as it is; a frame of Spark as it is, in the order in which it stands

A path is a path: no pattern, nothing out of folder names, no address. What lies where only Spark reads comes as its
frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from kinfold.errors import DataError, Problem
from kinfold.rows.column_names import check_names
from kinfold.rows.engines.database import Database
from kinfold.rows.engines.expressions import Frame
from kinfold.rows.engines.parts import PartFile, checksum_of, is_many, parts_of, require_same
from kinfold.rows.engines.source import Format, format_of
from kinfold.rows.engines.spark.carried import carrier, outward, schema_in_words, type_here
from kinfold.rows.engines.spark.frame import PLACE, Distributed
from kinfold.rows.engines.spark.running_spark import RunningSpark
from kinfold.rows.engines.spark.surveying import Survey, read_rows, surveyed
from kinfold.rows.source_form import Form

WIDTH = 33  # bits of a row's number within its partition, as Spark gives them
TASKS = 1_000  # files are looked at, and read beside Spark, in so many tasks at most


def is_parquet(source: Path, form: Form) -> bool:
    """Whether the executors read a source: files of Parquet."""
    return format_of(_files(source, form)[0].file).format is Format.PARQUET


def taken(session: RunningSpark, db: Database, local: Frame, table: str) -> Distributed:
    """Hand the rows of a table of the embedded engine to Spark; the table goes."""
    kinds = dict(zip(local.columns, local.types, strict=True))
    values = ", ".join(f"{outward(c, kind)} AS {c}" for c, kind in kinds.items())
    place = "CAST(row_number() OVER () - 1 AS BIGINT)"
    arrow = db.arrow(f"SELECT {values}, {place} AS {PLACE} FROM (SELECT * FROM {local.table} ORDER BY {local.order})")
    db.drop(local.table)
    with session.job():
        rows = session.spark.createDataFrame(arrow, schema_in_words(kinds, place="bigint"))
    return Distributed(rows, replace(local, table=table, order=PLACE), arrow.num_rows)


def read_frame(session: RunningSpark, frame: Any, table: str) -> Distributed:
    """Take a frame of Spark, in the order in which it stands now.

    It is computed once. Where what was computed is lost with an executor the run ends: computed again, rows might
    come in another order, or be others.
    """
    from pyspark.sql.functions import col, monotonically_increasing_id

    names = tuple(frame.columns)
    check_names(names, "the frame")
    types = tuple(type_here(field.dataType.simpleString(), field.name) for field in frame.schema.fields)
    plain = frame.toDF(*(f"c{i}" for i in range(len(names))))
    carried = [col(f"c{i}").cast(carrier(kind)[0]).alias(f"c{i}") for i, kind in enumerate(types)]
    with session.job():
        numbered = plain.select(*carried, monotonically_increasing_id().alias("at")).localCheckpoint()
        counts = _by_partition(numbered)
        rows = _placed(session, numbered, counts)
    seen = Frame(table, names, types, typed=True, order=PLACE)
    return Distributed(rows, seen, sum(count for _, count in counts))


def _by_partition(numbered: Any) -> list[tuple[int, int]]:
    """Return how many rows each partition has, by its number."""
    found = numbered.selectExpr(f"shiftright(at, {WIDTH}) AS part").groupBy("part").count().toArrow().to_pydict()
    if not found["part"]:
        raise DataError("the frame has no rows", fix="give a table with at least one row")
    return sorted(zip(found["part"], found["count"], strict=True))


def _placed(session: RunningSpark, numbered: Any, counts: Sequence[tuple[int, int]]) -> Any:
    """Number the rows of all partitions, one after the other."""
    from pyspark.sql.functions import broadcast, expr

    offsets, before = [], 0
    for part, count in counts:
        offsets.append((part, before))
        before += count
    known = pa.table({"part": [part for part, _ in offsets], "before": [at for _, at in offsets]})
    beside = session.spark.createDataFrame(known, "part bigint, before bigint")
    within = numbered.withColumn("part", expr(f"shiftright(at, {WIDTH})"))
    place = expr(f"before + at - shiftleft(part, {WIDTH})")
    return within.join(broadcast(beside), "part").withColumn(PLACE, place).drop("at", "part", "before")


def read_parquet(session: RunningSpark, source: Path, form: Form, table: str) -> Distributed:
    """Read Parquet in the executors, parts in their order, and make sure that every row is there."""
    files = _files(source, form)
    looks = _looked_at(session, files)
    first = looks[0]
    for each in looks[1:]:
        require_same(first.frame, each.frame, first.name, each.name)
    every = sum(look.rows for look in looks)
    if not every:
        raise DataError(f"'{source.name}' has no rows", fix="give a table with at least one row")
    mixed = frozenset[str]().union(*(look.frame.mixed for look in looks))
    seen = replace(
        first.frame, table=table, checksum=_checksum(looks, parts=_in_parts(source, form)), order=PLACE, mixed=mixed
    )
    parts = [_SurveyedPart(_address(file), look) for file, look in zip(files, looks, strict=True)]
    scan = _scanned(session, parts, seen)
    rows = _read_beside(session, parts, seen) if scan is None else _in_order(session, scan, parts, seen)
    with session.job():
        found = rows.count()
    if found != every:
        what = f"Spark reads {found:,} of the {every:,} rows of '{source.name}'"
        raise DataError(what, fix="wait until its files are written, then run again; or use engine duckdb")
    return Distributed(rows, seen, every)


def require_unchanged(session: RunningSpark, source: Path, form: Form, checksum: str | None) -> None:
    """Refuse files that are not what they were: Spark reads them again whenever it needs their rows."""
    looks = _looked_at(session, _files(source, form))
    if _checksum(looks, parts=_in_parts(source, form)) != checksum:
        raise DataError(f"'{source.name}' was changed while it was read", fix="wait until it is written, then again")


class _SurveyedPart(NamedTuple):
    """A file, by the path under which Spark finds it, and what it holds."""

    path: str
    look: Survey


def _files(source: Path, form: Form) -> list[PartFile]:
    return parts_of(source) if _in_parts(source, form) else [PartFile(source, source.name)]


def _in_parts(source: Path, form: Form) -> bool:
    return form.parts and is_many(source)


def _address(part: PartFile) -> str:
    """Return the path of a file as Spark would write it: it takes `..` out as text, which a link makes wrong."""
    whole = part.file.absolute()
    if ".." in whole.parts:
        whole = whole.parent.resolve() / whole.name
    return "/" + str(whole).lstrip("/")  # two slashes at the start would name a machine


def _looked_at(session: RunningSpark, files: Sequence[PartFile]) -> list[Survey]:
    """Let executors look at every file, and raise the first problem."""
    asked = {"number": range(len(files)), "path": [*map(_address, files)], "name": [each.name for each in files]}
    with session.job():
        found = _spread(session, asked).mapInArrow(surveyed, "number bigint, told string").toArrow().to_pydict()
    told = dict(zip(found["number"], found["told"], strict=True))
    looks = [Survey.read(told[i]) for i in range(len(files))]
    problems = [Problem(*each) for look in looks for each in look.problems]
    if problems:
        raise DataError(problems)
    return looks


def _spread(session: RunningSpark, asked: dict[str, Any]) -> Any:
    """Return a frame of files, over as many tasks as there are files, within reason."""
    arrow = session.spark.createDataFrame(pa.table(asked))
    return arrow.repartition(min(len(asked["path"]), TASKS))


def _checksum(looks: Sequence[Survey], *, parts: bool) -> str:
    """Return the checksum of a file, or of the list of parts."""
    return checksum_of((look.name, look.checksum) for look in looks) if parts else looks[0].checksum


def _read_beside(session: RunningSpark, parts: Sequence[_SurveyedPart], seen: Frame) -> Any:
    """Let the embedded engine read the files in the executors, each in one task."""
    kinds = dict(zip(seen.columns, seen.types, strict=True))
    values = [
        [f"{outward(value, kind)} AS {c}" for value, (c, kind) in zip(part.look.values, kinds.items(), strict=True)]
        for part in parts
    ]
    names = [part.look.name for part in parts]
    asked = {"path": [part.path for part in parts], "name": names, "values": values, "before": _offsets(parts)}
    with session.job():
        return _spread(session, asked).mapInArrow(read_rows, schema_in_words(kinds, place="bigint")).persist()


def _offsets(parts: Sequence[_SurveyedPart]) -> list[int]:
    """Return the place of the first row of each part."""
    return [0, *accumulate(part.look.rows for part in parts)][: len(parts)]


def _scanned(session: RunningSpark, parts: Sequence[_SurveyedPart], seen: Frame) -> Any:
    """Return a frame of Spark over files: their columns by number, the file, and the row within it.

    None where Spark does not find the files by their names, or has no type for one of their columns.
    """
    from pyspark.errors import AnalysisException, ArithmeticException
    from pyspark.sql.functions import col

    if not all(map(_named_for_spark, parts)):
        return None
    options = {"recursiveFileLookup": "true", "mergeSchema": "false", "__globPaths__": "false"}
    reader = session.spark.read.options(**options)  # nothing out of folder names; a name is no pattern
    with session.job():
        try:
            rows = reader.parquet(*(part.path for part in parts))
        except (AnalysisException, ArithmeticException):
            return None
        if not _has_types(rows, parts, seen):
            return None
        about = rows.metadataColumn("_metadata")
        kept = [rows[_quoted(name)] for name in rows.columns]
        names = [f"c{i}" for i in range(len(kept))]
        whole = rows.select(*kept, about.getField("file_path"), about.getField("row_index")).toDF(*names, "file", "at")
        return whole.select(*(col(name) for name in (*names, "file", "at")))


def _named_for_spark(part: _SurveyedPart) -> bool:
    """Whether Spark finds a file by its name: it passes over hidden ones, and takes a colon for the end of a scheme."""
    return not Path(part.path).name.startswith(("_", ".")) and ":" not in part.path


def _has_types(rows: Any, parts: Sequence[_SurveyedPart], seen: Frame) -> bool:
    """Whether Spark reads every column as the type that carries its values here."""
    plain = all([*part.look.values] == seen.columns for part in parts)
    return plain and [field.dataType.simpleString() for field in rows.schema] == [
        carrier(kind)[0] for kind in seen.types
    ]


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _in_order(session: RunningSpark, rows: Any, parts: Sequence[_SurveyedPart], seen: Frame) -> Any:
    """Return the rows, each with its place among those of all parts."""
    from pyspark.sql.functions import broadcast, col, expr

    if len(parts) == 1:
        return rows.select(*seen.columns, col("at").alias(PLACE))
    with session.job():
        addresses = rows.select("file").distinct().toArrow().column(0).to_pylist()
        known = {unquote(urlsplit(address).path): address for address in addresses}
        offsets = dict(zip((part.path for part in parts), _offsets(parts), strict=True))
        found = [(address, offsets[path]) for path, address in known.items() if path in offsets]
        both = pa.table({"file": [file for file, _ in found], "before": [before for _, before in found]})
        beside = session.spark.createDataFrame(both, "file string, before bigint")
    return rows.join(broadcast(beside), "file").select(*seen.columns, expr("before + at").alias(PLACE))
