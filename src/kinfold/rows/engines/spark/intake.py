"""Taking in: files, frames, and frames of Spark itself.

Parquet      by Spark, one file or many; each is looked at first by an executor: its columns, its types, its rows, its
             checksum. By the embedded engine where Spark does not find a file by its name
other files  by the embedded engine, which then hands the rows to Spark: CSV has no types, and one reader judges it
frames       Arrow as it is; a frame of Spark as it is, in the order in which it stands

A path is a path: no pattern, nothing out of folder names, no address. What lies where only Spark reads comes as its
frame.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from kinfold.errors import DataError, Problem
from kinfold.rows.column_names import check_names
from kinfold.rows.engines.database import Database
from kinfold.rows.engines.expressions import Frame
from kinfold.rows.engines.parts import is_many, parts_of, require_same
from kinfold.rows.engines.source import Format, format_of
from kinfold.rows.engines.spark.carried import carrier, outward, schema_in_words, type_here
from kinfold.rows.engines.spark.frame import PLACE, Distributed
from kinfold.rows.engines.spark.running_spark import RunningSpark
from kinfold.rows.engines.spark.surveying import Survey, surveyed
from kinfold.rows.source_form import Form

WIDTH = 33  # bits of a row's number within its partition, as Spark gives them
UNKNOWN = ("TIME", "TIME_NS", "TIMESTAMP_NS", "TIMESTAMPTZ_NS", "UUID")  # what Parquet has and Spark does not read


def is_parquet(source: Any, form: Form) -> bool:
    """Whether Spark reads a source itself: files of Parquet, by names that it takes for files."""
    if not isinstance(source, Path):
        return False
    files = _files(source, form)
    return format_of(files[0]).format is Format.PARQUET and all(map(_named_for_spark, files))


def _named_for_spark(file: Path) -> bool:
    """Whether Spark finds a file by its name: it passes over hidden ones, and takes a colon for the end of a scheme."""
    return not file.name.startswith(("_", ".")) and ":" not in str(file.absolute())


def taken(session: RunningSpark, db: Database, local: Frame, table: str) -> Distributed:
    """Hand the rows of a table of the embedded engine to Spark; the table goes."""
    kinds = dict(zip(local.columns, local.types, strict=True))
    values = ", ".join(f"{outward(c, kind)} AS {c}" for c, kind in kinds.items())
    place = "CAST(row_number() OVER () - 1 AS BIGINT)"
    arrow = db.arrow(f"SELECT {values}, {place} AS {PLACE} FROM (SELECT * FROM {local.table} ORDER BY {local.order})")
    db.drop(local.table)
    with session.job():
        rows = session.spark.createDataFrame(arrow, schema_in_words(kinds, place="bigint"))
    return Distributed(rows, replace(local, table=table, order=PLACE))


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
        rows = _placed(session, numbered, _by_partition(numbered))
    seen = Frame(table, names, types, typed=True, order=PLACE)
    return Distributed(rows, seen)


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
    """Let Spark read Parquet; parts in the order of their names."""
    files = _files(source, form)
    looks = _looked_at(session, files)
    first = looks[0]
    for each in looks[1:]:
        require_same(first.frame, each.frame, first.name, each.name)
    _refuse_unknown(first)
    rows = _scanned(session, [str(file.absolute()) for file in files])
    counts = {str(file.absolute()): look.rows for file, look in zip(files, looks, strict=True)}
    if not sum(counts.values()):
        raise DataError(f"'{source.name}' has no rows", fix="give a table with at least one row")
    return _in_order(session, rows, replace(first.frame, table=table, checksum=_checksum(looks)), counts)


def require_unchanged(session: RunningSpark, source: Path, form: Form, checksum: str | None) -> None:
    """Refuse files that are not what they were: Spark reads them again whenever it needs their rows."""
    if _checksum(_looked_at(session, _files(source, form))) != checksum:
        raise DataError(f"'{source.name}' was changed while it was read", fix="wait until it is written, then again")


def _files(source: Path, form: Form) -> list[Path]:
    return [*parts_of(source)] if form.parts and is_many(source) else [source]


def _looked_at(session: RunningSpark, files: Sequence[Path]) -> list[Survey]:
    """Let executors look at every file, and raise the first problem."""
    paths = [str(file.absolute()) for file in files]
    with session.job():
        arrow = session.spark.createDataFrame(pa.table({"number": range(len(paths)), "path": paths}))
        spread = arrow.repartition(min(len(paths), 64))
        found = spread.mapInArrow(surveyed, "number bigint, told string").toArrow().to_pydict()
    told = dict(zip(found["number"], found["told"], strict=True))
    looks = [Survey.read(told[i]) for i in range(len(paths))]
    problems = [Problem(*each) for look in looks for each in look.problems]
    if problems:
        raise DataError(problems)
    return looks


def _refuse_unknown(look: Survey) -> None:
    seen = look.frame
    odd = [name for name, kind in zip(seen.names, seen.types, strict=True) if kind in UNKNOWN]
    if odd:
        raise DataError(
            [
                Problem(f"column '{name}' holds {seen.type_of(name)}, which Spark does not read", "write it as text")
                for name in odd
            ]
        )


def _checksum(looks: Sequence[Survey]) -> str:
    """Return the checksum of a file, or of the list of many."""
    if len(looks) == 1:
        return looks[0].checksum
    return hashlib.sha256("".join(f"{look.checksum}  {look.name}\n" for look in looks).encode()).hexdigest()


def _scanned(session: RunningSpark, paths: Sequence[str]) -> Any:
    """Return a frame of Spark over files: their columns by number, the file, and the row within it."""
    from pyspark.sql.functions import col

    options = {"recursiveFileLookup": "true", "mergeSchema": "false", "__globPaths__": "false"}
    reader = session.spark.read.options(**options)  # nothing out of folder names; a name is no pattern
    with session.job():
        rows = reader.parquet(*paths)
        about = rows.metadataColumn("_metadata")
        kept = [rows[_quoted(name)] for name in rows.columns]
        names = [f"c{i}" for i in range(len(kept))]
        whole = rows.select(*kept, about.getField("file_path"), about.getField("row_index")).toDF(*names, "file", "at")
        return whole.select(*(col(name) for name in (*names, "file", "at")))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _in_order(session: RunningSpark, rows: Any, seen: Frame, counts: dict[str, int]) -> Distributed:
    """Return the rows in the types that carry theirs, each with its place."""
    from pyspark.sql.functions import broadcast, col, expr

    carried = [col(c).cast(carrier(kind)[0]).alias(c) for c, kind in zip(seen.columns, seen.types, strict=True)]
    if len(counts) == 1:
        placed = rows.select(*carried, col("at").alias(PLACE))
        return Distributed(placed, replace(seen, order=PLACE))
    with session.job():
        files = rows.select("file").distinct().toArrow().column(0).to_pylist()
        by_path = {_path_in(address): address for address in files}
        offsets, before = [], 0
        for path in sorted(counts):
            if path in by_path:
                offsets.append((by_path[path], before))
            before += counts[path]
        known = pa.table({"file": [name for name, _ in offsets], "before": [at for _, at in offsets]})
        beside = session.spark.createDataFrame(known, "file string, before bigint")
    placed = rows.join(broadcast(beside), "file").select(*carried, expr("before + at").alias(PLACE))
    return Distributed(placed, replace(seen, order=PLACE))


def _path_in(address: str) -> str:
    return unquote(urlsplit(address).path)
