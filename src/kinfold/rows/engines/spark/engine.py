"""The engine for clusters: the verbs of the seam, on rows in Spark.

What is asked of distinct values is asked of their tally in the embedded engine beside it (see `distributed_counts`), by
the same code that answers it there; so both engines give the same answers. Tuples live there too.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa

from kinfold.errors import PolicyError
from kinfold.rows.appearance import Appearance, Succession
from kinfold.rows.databases.address import DatabaseAddress
from kinfold.rows.engines import NumbersInBoth, expressions
from kinfold.rows.engines.duckdb import DuckDB
from kinfold.rows.engines.expressions import Frame
from kinfold.rows.engines.normalizing import plainly
from kinfold.rows.engines.regions import Asked, Regions, Route
from kinfold.rows.engines.released_schema import AfterRecoding
from kinfold.rows.engines.spark import distributed_counts, intake, recoded
from kinfold.rows.engines.spark.distributed_counts import Counts
from kinfold.rows.engines.spark.frame import Distributed
from kinfold.rows.engines.spark.gathering import brought, picked
from kinfold.rows.engines.spark.moments import errors_of, moments_of
from kinfold.rows.engines.spark.regions_in_spark import RegionsInSpark, regions
from kinfold.rows.engines.spark.running_spark import RunningSpark
from kinfold.rows.engines.spark.splitting import split
from kinfold.rows.engines.treating import classes_after
from kinfold.rows.engines.value_sql import changes, fresh_values, told
from kinfold.rows.recoding import Recoding, Replace
from kinfold.rows.resources import Resources
from kinfold.rows.schema import Column, Exactly, Reading, Schema
from kinfold.rows.source_form import PLAIN, Form
from kinfold.rows.tally import Tally
from kinfold.rows.value_recoding import Recoded, ValueRecoding

FOUND = ("separator", "encoding", "sheet")


class Spark:
    """One run in a session of Spark. Close it, or use it in a `with` block: what it held in memory goes with it."""

    def __init__(self, spark: Any, resources: Resources) -> None:
        self._session = RunningSpark(spark)
        self._here = DuckDB(replace(resources, on_disk=True))
        self._db = self._here.database
        self._counts = Counts(self._session, self._db)
        self._numbers = count()
        self._schemas: dict[str, Schema] = {}
        self._recoded: dict[str, AfterRecoding] = {}
        self._files: list[tuple[Path, Form, str | None]] = []  # that were read, and their checksums
        self._kept: list[Any] = []
        self._discard = weakref.finalize(self, _forget, self._kept)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Forget every row; the session stays. Done by itself when nobody holds the engine any more."""
        self._here.close()
        self._discard()

    def _named(self) -> str:
        return f"s{next(self._numbers)}"

    # Reading

    def read(self, source: Any, missing: Sequence[str] = (), form: Form = PLAIN) -> Distributed:
        """Take in files, an Arrow table or a frame of Spark; `missing` are texts that become null."""
        if isinstance(source, DatabaseAddress):
            what = "engine.name: rows of a database are not read into Spark"
            raise PolicyError(what, fix="use engine duckdb; or read them with spark.read.jdbc, and give that frame")
        if isinstance(source, pa.Table) or (isinstance(source, Path) and not intake.is_parquet(source, form)):
            local = self._here.read(source, missing, form)
            return intake.taken(self._session, self._db, local, self._named())
        if isinstance(source, Path):
            frame = intake.read_parquet(self._session, source, form, self._named())
            self._kept.append(frame.rows)
            self._files.append((source, form, frame.seen.checksum))
        else:
            frame = intake.read_frame(self._session, source, self._named())
        given = {key: getattr(frame.seen.form, key) or getattr(form, key) for key in FOUND}
        return self._plain(replace(frame, seen=replace(frame.seen, form=replace(form, **given))), missing)

    def _plain(self, frame: Distributed, missing: Sequence[str]) -> Distributed:
        """Return the table with null for words for missing, and plain numbers."""
        seen, fresh = plainly(frame.seen, missing, lambda asked: self._asked(frame, asked))
        if not fresh:
            return replace(frame, seen=seen)
        found = frame.rewritten(fresh, seen.types, self._named(), seen)
        self._kept.append(found.rows.persist())
        return found

    def _asked(self, frame: Distributed, asked: Mapping[str, Sequence[str]]) -> Any:
        """Answer questions about columns of text, which are counts: by their distinct values, or by all rows."""
        if self._counts.rows(frame) > distributed_counts.MOST:  # there may be a text for each row
            yield from self._counts.summed(frame, [each for questions in asked.values() for each in questions])
            return
        for c, questions in asked.items():
            held = self._counts.of(frame, [frame.seen.names[int(c[1:])]])
            yield from self._db.row(f"SELECT {', '.join(questions)} FROM (SELECT c0 AS {c} FROM {held.table})")

    def form(self, frame: Distributed | Frame) -> Form:
        """Return how a table is written."""
        return _seen(frame).form

    def names(self, frame: Distributed | Frame) -> tuple[str, ...]:
        """Return the names of the columns, in order."""
        return _seen(frame).names

    def checksum(self, frame: Distributed | Frame) -> str | None:
        """Return the SHA-256 of the bytes that were read; None where they were no file of this machine."""
        return _seen(frame).checksum

    def blanked(self, frame: Distributed | Frame) -> frozenset[str]:
        """Return the columns in which a text stood for a missing value."""
        return _seen(frame).blanked

    # Asking

    def schema(self, frame: Distributed | Frame) -> Schema:
        """Ask every column what it is, by its distinct values; a table is asked once."""
        if isinstance(frame, Frame):
            return self._here.schema(frame)
        table = frame.seen.table
        if table not in self._schemas:
            after, rows = self._recoded.get(table), self._counts.rows(frame)
            ask = partial(self._columns, frame)
            self._schemas[table] = after.schema(rows, self._here.schema, ask) if after else ask(frame.seen.names)
        return self._schemas[table]

    def _columns(self, frame: Distributed, names: Sequence[str]) -> Schema:
        columns = [self._described(frame, name) for name in names]
        return Schema.of(columns, self._counts.rows(frame), frame.seen.doubtful, frame.seen.notes)

    def _described(self, frame: Distributed, name: str) -> Column:
        found = self._here.schema(self._counts.sample(frame, name))[name]
        rows = self._counts.rows(frame)
        if found.rows == rows:
            return found
        filled, distinct = self._counts.facts(frame, name)  # of a column that a sample of its values describes
        share = filled / max(found.rows - found.nulls, 1)
        scaled = {key: round(getattr(found, key) * share) for key in ("numbers", "not_finite", "formulas")}
        return replace(found, rows=rows, nulls=rows - filled, distinct=max(found.distinct, distinct), **scaled)

    def appearances(self, frame: Distributed, columns: Sequence[Column]) -> dict[str, Appearance]:
        """Say what the values of columns look like, by their names."""
        found: dict[str, Appearance] = {}
        for column in columns:
            found |= self._here.appearances(self._held(frame, [column.name]), [column])
        return found

    def succession(self, frame: Distributed, column: Column) -> Succession:
        """Say how the values of a column follow one another."""
        return self._here.succession(self._brought(frame, [column.name]), column)

    def alone(self, frame: Distributed, names: Sequence[str]) -> int:
        """Count the rows that are alone with their values of some columns."""
        if not self._counts.here(frame, names):
            return self._counts.alone(frame, names)
        return self._here.alone(self._held(frame, names), names)

    def pairs(self, frame: Distributed, one: str, other: str) -> tuple[int, int]:
        """Count the pairs of values of two columns, and the values of the first in them."""
        return self._here.pairs(self._held(frame, [one, other]), one, other)

    def unmet(self, original: Distributed, released: Distributed, pairs: Sequence[tuple[str, str]]) -> list[int]:
        """Count the released rows whose two values no row of the original has together, for each pair of columns."""
        names = list(dict.fromkeys(name for pair in pairs for name in pair))
        if self._counts.here(original, names) and self._counts.here(released, names):
            return self._here.unmet(self._held(original, names), self._held(released, names), pairs)
        return self._counts.unmet(original, released, pairs)

    def sizes(self, frame: Distributed, by: Sequence[str]) -> list[tuple[int, int]]:
        """Count the classes of some columns by their sizes."""
        if by and not self._counts.here(frame, by):
            return self._counts.sizes(frame, by)
        return self._here.sizes(self._held(frame, by), by)

    def tally(self, frame: Distributed | Frame, by: Sequence[str], of: Mapping[str, Reading | Column]) -> Tally:
        """Count classes, and confidential values within them, a column at a time."""
        spreads = {
            name: self._here.tally(self._held(frame, [*by, name]), by, {name: how}).spreads[name]
            for name, how in of.items()
        }
        return replace(self._here.tally(self._held(frame, by), by, {}), spreads=spreads)

    def distinct(self, frame: Distributed | Frame, by: Sequence[str]) -> Frame:
        """Return the key columns of a tally's classes, in its order, as they are stored: a table beside Spark."""
        return self._here.distinct(self._held(frame, by), by)

    def moments(self, frame: Distributed | Frame, columns: Mapping[str, Column]) -> tuple[int, Any, Any]:
        """Return how many records have a number in all of some columns, and their means and covariances."""
        if isinstance(frame, Frame) or self._counts.rows(frame) <= distributed_counts.SHORT:
            return self._here.moments(self._brought(frame, [*columns]), columns)
        values = [expressions.number(frame.seen, column) for column in columns.values()]
        return moments_of(self._session, frame, values)

    def forget_counts(self) -> None:
        """Let go of what was counted in the embedded engine."""
        self._here.forget_counts()

    def _held(self, frame: Distributed | Frame, names: Sequence[str]) -> Frame:
        return frame if isinstance(frame, Frame) else self._counts.of(frame, names)

    # Rows

    def _brought(self, frame: Distributed | Frame, names: Sequence[str] | None = None) -> Frame:
        if isinstance(frame, Frame):
            return frame
        wanted = frame.seen.names if names is None else tuple(dict.fromkeys(names))
        return brought(self._session, self._db, frame, wanted)

    def collect(self, frame: Distributed | Frame, columns: Mapping[str, Column | Reading | Exactly | None]) -> pa.Table:
        """Return columns as Arrow, in the order of the rows."""
        local = self._brought(frame, [*columns])
        found = self._here.collect(local, columns)
        self._let_go(frame, local)
        return found

    def split(self, orders: Any, hall: Any) -> Any:
        """Work on blocks in the executors."""
        return split(self._session, orders, hall)

    def regions(self, frame: Distributed | Frame, asked: Asked, route: Route) -> Regions:
        """Let every row find its region, where it is."""
        if isinstance(frame, Frame):
            return self._here.regions(frame, asked, route)
        rows = regions(self._session, self._db, frame, asked, route)
        return RegionsInSpark(self._session, rows, len(asked), self._kept)

    def picked(self, frame: Distributed | Frame, places: Any, recoding: Recoding | None = None) -> tuple[Frame, Any]:
        """Return the rows that stood at some places, beside Spark, and the numbers of the places that have one."""
        if isinstance(frame, Frame):
            return self._here.picked(frame, places, recoding)
        found, there = picked(self._session, self._db, frame, places)
        return self._here.described_as(found, self.schema(frame)), there

    def like(self, frame: Distributed | Frame, by: Sequence[str], some: Frame) -> Any:
        """Count the rows that are like each of some rows: where they are, but of no others."""
        if isinstance(frame, Frame):
            return self._here.like(frame, by, some)
        tuples = self._here.distinct(some, by)
        sizes = recoded.sizes_of(self._session, self._db, frame, tuples)
        return self._here.by_row(some, Recoding(sizes, {}, tuples)).labels.astype(np.int64)

    def errors(
        self,
        original: Distributed,
        released: Distributed,
        columns: Sequence[NumbersInBoth],
        recoding: Recoding,  # noqa: ARG002
    ) -> list[float]:
        """Sum the squared errors of columns, where the rows are."""
        return errors_of(self._session, original, released, columns)

    def rows(self, frame: Distributed | Frame, schema: Schema | None = None) -> pa.Table:
        """Return every column as it is stored, or in the type that its values have by a schema."""
        local = self._brought(frame)
        self._require_unchanged()
        found = self._here.rows(local, schema)
        self._let_go(frame, local)
        return found

    def _let_go(self, frame: Distributed | Frame, local: Frame) -> None:
        """Drop what was brought here for one question."""
        if isinstance(frame, Distributed):
            self._db.drop(local.table)

    def page(self, frame: Distributed, start: int, many: int) -> list[list[str | None]]:
        """Return some rows as text, to be looked at."""
        end = min(frame.end, int(start) + int(many))
        some = replace(frame, rows=frame.rows.where(f"place >= {int(start)} AND place < {end}"), end=end)
        return self._here.page(brought(self._session, self._db, some, frame.seen.names), 0, many)

    def native(self, frame: Distributed) -> Any:
        """Return the rows as a frame of Spark, in their order, under their names."""
        rows = frame.rows.orderBy("place").drop("place")
        return rows.toDF(*frame.seen.names)

    # Recoding

    def recode(self, frame: Distributed, how: Mapping[str, ValueRecoding], schema: Schema) -> Recoded:
        """Recode single values: named ones become others, numbers are limited and rounded."""
        fresh = fresh_values(self._db, frame.seen, how, schema)
        found: dict[str, list[int]] = {}
        kinds = dict(zip(frame.seen.names, frame.seen.types, strict=True))
        for name in fresh:
            held = self._counts.of(frame, [name])
            own = fresh_values(self._db, held, {name: how[name]}, schema)
            found |= changes(self._db, held, own)
            table = self._db.table(f"SELECT {own[name].value} AS c0 FROM {held.table} LIMIT 0")
            kinds[name] = self._db.types(table)[0]
            self._db.drop(table)
        values = {frame.seen.at(name): each.value for name, each in fresh.items()}
        rewritten = frame.rewritten(values, tuple(kinds.values()), self._named(), frame.seen)
        self._kept.append(rewritten.rows.persist())
        return told(rewritten, fresh, found)

    def apply(self, frame: Distributed | Frame, recoding: Recoding, schema: Schema) -> Distributed | Frame:
        """Carry out a recoding: a new table without the dropped columns and rows, in the same order."""
        if isinstance(frame, Frame):
            return self._here.apply(frame, recoding, schema)
        how = recoded.treat(self._db, frame, recoding, schema)
        join = recoded.by_place if recoding.tuples is None else recoded.by_tuple
        with self._session.job():
            found = recoded.released(frame, join(self._session, self._db, frame, recoding, how), how, self._named())
        self._kept.append(found.rows)
        fresh = {name: how.values[name] for name, t in how.columns.items() if isinstance(t, Replace)}
        classes = classes_after(self._db, replace(found.seen, order="rowid"), recoding, fresh)
        self._recoded[found.seen.table] = AfterRecoding(found.seen, schema, how.columns, classes)
        return found

    def by_row(self, frame: Distributed | Frame, recoding: Recoding) -> Recoding:
        """Return the recoding with a label for each row, brought here where Spark holds them."""
        if recoding.held is not None and isinstance(frame, Distributed):
            return replace(
                recoding, labels=recoded.held_labels(self._session, recoding, self._counts.rows(frame)), held=None
            )
        if recoding.tuples is None:
            return recoding
        if isinstance(frame, Frame):
            return self._here.by_row(frame, recoding)
        labels = recoded.labels_by_row(self._session, self._db, frame, recoding)
        return replace(recoding, labels=labels.astype(np.int32), tuples=None)

    # Writing

    def separator(self, frame: Distributed | Frame) -> str:
        """Return what stands between two fields of a CSV file."""
        return self._here.separator(_seen(frame))

    def write(self, frame: Distributed | Frame, path: Path, schema: Schema, *, ordered: bool) -> None:
        """Write one file: its rows come here a part at a time, onto the disk."""
        local = self._brought(frame)
        self._require_unchanged()
        self._here.write(local, path, schema, ordered=ordered)
        self._let_go(frame, local)

    def hand_out(self, frame: Distributed, schema: Schema, fitted: Callable[[str], str], *, ordered: bool) -> Any:
        """Hand out every row, a batch at a time, in types that somebody takes."""
        local = self._brought(frame)
        self._require_unchanged()
        return self._here.hand_out(local, schema, fitted, ordered=ordered)

    def _require_unchanged(self) -> None:
        """Refuse a release of files that were changed since their checksums were taken."""
        for source in self._files:
            intake.require_unchanged(self._session, *source)


def _forget(kept: list[Any]) -> None:
    """Let Spark forget what it holds in memory for a run; a frame made of it can still be computed."""
    for rows in kept:
        with suppress(Exception):  # of a session that is gone
            rows.unpersist()
    kept.clear()


def _seen(frame: Distributed | Frame) -> Frame:
    return frame if isinstance(frame, Frame) else frame.seen
