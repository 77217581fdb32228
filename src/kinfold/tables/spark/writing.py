"""Part files that the executors write: the same bytes as those of the embedded engine.

    the embedded engine computes the written values next to the rows, and a key whose bytes are in their order
    Spark sorts the rows by key and place into ranges; the sizes of the ranges give the position of every row
    the position of a row gives its part: all parts have the same number of rows
    an executor sorts the rows of a part, writes them to a file of another name, and renames it

A lost or repeated task writes the same bytes again. No machine holds all rows in order; an executor holds one part.
One row for each range and each part comes to the driver.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any
from uuid import uuid4

import pyarrow as pa

from kinfold.errors import PolicyError
from kinfold.tables.duckdb.connection import Database, start_instance
from kinfold.tables.duckdb.expressions import Frame, quote_path
from kinfold.tables.duckdb.writing import count_parts, make_trial_sql, name_part, name_sql, prepare_values
from kinfold.tables.engine import PartFolder
from kinfold.tables.schema import Schema
from kinfold.tables.spark.driver import Driver
from kinfold.tables.spark.frame import PLACE, SparkFrame, cast_from_spark

KEY, POSITION, PART = "key", "position", "part"
RANGE_BITS = 33  # of Spark's row ids: the lower bits number the rows of a range, the upper ones the range
TRIAL = -1  # the number of the part that is written to find how many bytes a row takes
ATTEMPTS = "attempts"  # the folder of files that are not complete, next to that of the parts
WRITTEN = "part bigint, records bigint, bytes bigint"


@dataclass(frozen=True)
class PartWriter:
    """Writes the rows of one part, in an executor."""

    target: PartFolder
    rows: str  # SQL of the written values
    columns: str  # SQL of the written columns
    options: str

    def __call__(self, rows: pa.Table) -> pa.Table:
        """Write the rows and return the number of the part, its records and its bytes."""
        number = rows.column(PART)[0].as_py()
        attempts = self.target.folder.with_name(ATTEMPTS)
        file = attempts / f"{uuid4().hex}{self.target.ending}"
        with start_instance(":memory:", {"threads": "1"})[0] as db:
            db.register("batch", rows)
            db.execute(f"CREATE TABLE part AS SELECT {self.rows}, {POSITION} FROM batch b ORDER BY {POSITION}")
            db.execute(f"COPY (SELECT {self.columns} FROM part) TO {quote_path(file)} ({self.options})")
        size = file.stat().st_size
        if number == TRIAL:
            file.unlink()
        else:
            file.replace(name_part(self.target.folder, number, self.target.ending))
        return pa.table({PART: [number], "records": [rows.num_rows], "bytes": [size]})


def write_parts(
    driver: Driver,
    db: Database,
    frame: SparkFrame,
    target: PartFolder,
    schema: Schema,
    count: Callable[[Sequence[str]], Sequence[int]],
    tally: Callable[[str], Frame],
    *,
    ordered: bool,
    quoted: bool,
) -> None:
    """Write part files in the executors; `count` counts rows by SQL, `tally` counts the values of a column."""
    layout = frame.layout
    nulls = ", ".join(f"CAST(NULL AS {kind}) AS {c}" for c, kind in zip(layout.columns, layout.types, strict=True))
    empty = replace(layout, table=db.table(f"SELECT {nulls} LIMIT 0"))
    find = partial(_find_values, db, empty, tally)
    values, options = prepare_values(db, empty, target.ending, schema, quoted=quoted, find=find, count=count)
    kinds = {f"w{i}": kind for i, kind in enumerate(db.types(f"SELECT {', '.join(values)} FROM {empty.table}"))}
    keys = ", ".join(f"{value}, 'ASC NULLS LAST'" for value in (*values, "''"))  # at least one text: the key is bytes
    key = f"hex(create_sort_key({keys}))" if ordered else "''"
    computed = frame.compute({**dict(zip(kinds, values, strict=True)), KEY: key}, {**kinds, KEY: "VARCHAR"})
    select = ", ".join(f"{cast_from_spark(c, kind)} AS {c}" for c, kind in kinds.items())
    attempts = target.folder.with_name(ATTEMPTS)
    attempts.mkdir()
    try:
        ordered_rows, rows, total, filled = _number_rows(driver, computed, [*kinds])
        # DuckDB marks a column of Parquet as required if it has no null: in all parts or in none, as in one file
        written = [c if filled[c] == total else f"CASE WHEN {POSITION} IS NULL THEN NULL ELSE {c} END" for c in kinds]
        writer = PartWriter(target, select, name_sql(written, layout.names), options)
        write = partial(_write_groups, driver, writer)
        parts = target.parts
        if target.bytes is not None:
            trial = write(rows.where(make_trial_sql(POSITION, total)), TRIAL, 1)
            parts = count_parts(trial.column("bytes")[0].as_py(), total, target.bytes)
        parts = max(1, min(parts or 1, total))
        finished = write(rows, f"(({POSITION} + 1) * {parts} - 1) div {total}", parts)
        ordered_rows.unpersist()
    finally:
        shutil.rmtree(attempts.rename(attempts.with_name(uuid4().hex)))  # a task that still runs cannot add a file
    files = {name_part(target.folder, number, target.ending) for number in range(parts)}
    if {*target.folder.iterdir()} != files or sum(finished.column("records").to_pylist()) != total:
        what = f"the executors wrote their part files to another disk than '{target.folder.parent.parent.parent}'"
        raise PolicyError(what, fix="name a folder on a disk that all machines share: --out DIR")


def _find_values(db: Database, empty: Frame, tally: Callable[[str], Frame], name: str) -> Frame:
    """Return a table with the values of a column of text whose type follows from them."""
    if empty.sql_type(name) != "VARCHAR" or empty.knows_type(name) or name in empty.labelled:
        return empty
    return replace(empty, table=db.view(f"SELECT c0 AS {empty.at(name)} FROM {tally(name).table}"))


def _number_rows(driver: Driver, computed: Any, columns: Sequence[str]) -> tuple[Any, Any, int, dict[str, int]]:
    """Return the rows in order, and with their positions; how many there are, and how many have a value by column."""
    from pyspark.sql.functions import broadcast, expr, monotonically_increasing_id

    with driver.session.job():
        ordered = computed.orderBy(KEY, PLACE).drop(KEY, PLACE).withColumn("at", monotonically_increasing_id())
        ordered = ordered.withColumn("range", expr(f"shiftright(at, {RANGE_BITS})")).persist()
        counts = [expr("count(*) AS records"), *(expr(f"count({c}) AS {c}") for c in columns)]
        ranges = ordered.groupBy("range").agg(*counts).orderBy("range")
    sizes = driver.collect(ranges, "the rows of each sorted range").to_pydict()
    before = [0, *accumulate(sizes["records"])]
    offsets = pa.table({"range": sizes["range"], "before": before[:-1]})
    with driver.session.job():
        offsets_of_ranges = broadcast(driver.session.spark.createDataFrame(offsets, "range bigint, before bigint"))
        position = expr(f"before + at - shiftleft(range, {RANGE_BITS})")
        rows = ordered.join(offsets_of_ranges, "range").withColumn(POSITION, position).drop("at", "range", "before")
    return ordered, rows, before[-1], {c: sum(sizes[c]) for c in columns}


def _write_groups(driver: Driver, writer: PartWriter, rows: Any, part: Any, parts: int) -> pa.Table:
    """Write the rows of each part in one task, and return what was written."""
    from pyspark.sql.functions import expr

    def run(group: pa.Table) -> pa.Table:  # Spark inspects the signature, so it must be a function
        return writer(group)

    with driver.session.job():
        numbered = rows.withColumn(PART, expr(f"CAST({part} AS BIGINT)"))
        written = numbered.repartition(parts, PART).groupBy(PART).applyInArrow(run, WRITTEN)
    return driver.collect(written, "the size of each part", at_most=parts)
