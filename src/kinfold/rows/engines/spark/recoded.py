"""A recoding carried out in Spark: rows beside maps that every executor gets.

by tuple    a map of the distinct tuples, each with what becomes of it: those that are left out are not in it
by place    a map of places to classes, which Spark may hold itself, and one of classes to their values
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinfold.rows.engines.database import Database
from kinfold.rows.engines.expressions import Frame
from kinfold.rows.engines.spark.carried import key, outward, schema_in_words
from kinfold.rows.engines.spark.frame import PLACE, Distributed
from kinfold.rows.engines.spark.running_spark import RunningSpark
from kinfold.rows.engines.treating import fitting, labelled_tuples, treated_values
from kinfold.rows.recoding import LEFT_OUT, Keep, Recoding, Replace
from kinfold.rows.schema import Schema

BROADCAST = 500_000  # rows of a map that every executor gets; a larger one is joined as Spark likes


class Fresh(NamedTuple):
    """Columns of the release that are new: SQL for each of the class values `n`, and their types."""

    values: dict[str, str]
    types: dict[str, str]


class Treated(NamedTuple):
    """What is done to the columns that stay, in SQL, and in which types they come out."""

    columns: Mapping[str, Keep | Replace]
    values: Mapping[str, str]
    fresh: Fresh


def treat(db: Database, frame: Distributed, recoding: Recoding, schema: Schema) -> Treated:
    """Return what a recoding does to the columns."""
    columns = {name: t for name, t in recoding.columns.items() if isinstance(t, Keep | Replace)}
    values = treated_values(frame.seen, columns, schema)
    fresh = {name: values[name] for name, t in columns.items() if isinstance(t, Replace)}
    with db.registered(_class_values(recoding).slice(0, 0)) as view:
        table = db.table(
            f"SELECT {', '.join(f'{sql} AS f{i}' for i, sql in enumerate(fresh.values())) or '1'} FROM {view} n"
        )
    types = dict(zip(fresh, db.types(table), strict=False))
    db.drop(table)
    return Treated(columns, values, Fresh(fresh, types))


def _class_values(recoding: Recoding) -> pa.Table:
    """Return the values of each class, by its number."""
    fresh = [t.values for t in recoding.columns.values() if isinstance(t, Replace)]
    classes = max((len(each) for each in fresh), default=int(recoding.labels.max(initial=0)) + 1)
    return pa.table({"id": np.arange(classes, dtype=np.int32)} | {f"v{i}": each for i, each in enumerate(fresh)})


def by_tuple(session: RunningSpark, db: Database, frame: Distributed, recoding: Recoding, how: Treated) -> Any:
    """Join what becomes of each tuple."""
    named = labelled_tuples(db, recoding)
    fresh = [f"{outward(sql, how.fresh.types[name])} AS f{i}" for i, (name, sql) in enumerate(how.fresh.values.items())]
    keys = [
        f"{outward(f'u.{c}', kind)} AS m{i}" for i, (c, kind) in enumerate(zip(named.columns, named.types, strict=True))
    ]
    with fitting(), db.registered(_class_values(recoding)) as view:
        joined = f"FROM {named.table} u JOIN {view} n ON n.id = u.label"
        arrow = db.arrow(f"SELECT {', '.join([*keys, *fresh])} {joined}")
    db.drop(named.table)
    told = {f"m{i}": kind for i, kind in enumerate(named.types)}
    told |= {f"f{i}": kind for i, kind in enumerate(how.fresh.types.values())}
    beside = handed(session, arrow, told)
    return _kept(frame, how).join(beside, _same(frame.seen, named), "inner")


def by_place(session: RunningSpark, db: Database, frame: Distributed, recoding: Recoding, how: Treated) -> Any:
    """Join the class of each row, and the values of the classes; where rows only stay, nothing is joined."""
    rows = _kept(frame, how)
    if recoding.held is None and recoding.kept.all() and not how.fresh.values:
        return rows
    labelled = rows.join(_labels(session, frame, recoding), _at(), "inner")
    if not how.fresh.values:
        return labelled
    fresh = [f"{outward(sql, how.fresh.types[name])} AS f{i}" for i, (name, sql) in enumerate(how.fresh.values.items())]
    with fitting(), db.registered(_class_values(recoding)) as view:
        values = db.arrow(f"SELECT {', '.join(['id', *fresh])} FROM {view} n")
    told = {"id": "INTEGER"} | {f"f{i}": kind for i, kind in enumerate(how.fresh.types.values())}
    return labelled.join(handed(session, values, told), _expr("label = id"), "inner")


def _labels(session: RunningSpark, frame: Distributed, recoding: Recoding) -> Any:
    """Return the class of each row that is released, by its place."""
    if recoding.held is not None:
        return recoding.held
    places = np.arange(len(recoding.labels), dtype=np.int64) if frame.dense else places_of(session, frame)
    kept = recoding.kept
    arrow = pa.table({"at": places[kept], "label": recoding.labels[kept].astype(np.int32)})
    return handed(session, arrow, {"at": "BIGINT", "label": "INTEGER"})


def held_labels(session: RunningSpark, recoding: Recoding, rows: int) -> NDArray[np.int32]:
    """Return the label of each of so many rows that Spark holds the labels of."""
    with session.job():
        found = recoding.held.toArrow()
    labels = np.full(rows, LEFT_OUT, np.int32)
    labels[found.column("at").to_numpy()] = found.column("label").to_numpy()
    return labels


def released(frame: Distributed, rows: Any, how: Treated, table: str) -> Distributed:
    """Return the columns of the release, in their order, of rows beside their maps."""
    names, fresh = tuple(how.columns), [*how.fresh.values]
    columns = [
        f"f{fresh.index(name)} AS c{i}" if name in fresh else f"{frame.seen.at(name)} AS c{i}"
        for i, name in enumerate(names)
    ]
    types = tuple(how.fresh.types[name] if name in fresh else frame.seen.type_of(name) for name in names)
    labelled = frozenset(n for n, t in how.columns.items() if isinstance(t, Replace) and not t.as_stored)
    seen = replace(frame.seen, table=table, names=names, types=types, labelled=labelled, orders=(), checksum=None)
    seen = replace(seen, blanked=frozenset(), doubtful=())
    return Distributed(rows.selectExpr(*columns, PLACE).persist(), seen, frame.end, dense=False)


def labels_by_row(session: RunningSpark, db: Database, frame: Distributed, recoding: Recoding) -> NDArray[np.int32]:
    """Return the label of each row, in the order of the rows."""
    with session.job():
        found = _beside(session, db, frame, recoding).select(PLACE, "label").toArrow()
    order = np.argsort(found.column(PLACE).to_numpy(), kind="stable")
    return np.asarray(found.column("label").to_numpy()[order], np.int32)


def sizes_of(session: RunningSpark, db: Database, frame: Distributed, tuples: Frame) -> NDArray[np.int32]:
    """Return how many rows have each of some tuples."""
    numbers = Recoding(np.arange(db.count(tuples.table), dtype=np.int32), {}, tuples)
    with session.job():
        found = _beside(session, db, frame, numbers).groupBy("label").count().toArrow()
    sizes = np.zeros(len(numbers.labels), np.int32)
    sizes[found.column("label").to_numpy()] = found.column("count").to_numpy()
    return sizes


def _beside(session: RunningSpark, db: Database, frame: Distributed, recoding: Recoding) -> Any:
    """Return the rows that have one of the tuples, each with its label."""
    named = labelled_tuples(db, recoding)
    keys = [f"{outward(c, kind)} AS m{i}" for i, (c, kind) in enumerate(zip(named.columns, named.types, strict=True))]
    arrow = db.arrow(f"SELECT {', '.join(keys)}, label FROM {named.table}")
    db.drop(named.table)
    told = {f"m{i}": kind for i, kind in enumerate(named.types)} | {"label": "INTEGER"}
    return frame.rows.join(handed(session, arrow, told), _same(frame.seen, named), "inner")


def places_of(session: RunningSpark, frame: Distributed) -> NDArray[np.int64]:
    """Return the places of all rows, in order."""
    with session.job():
        found = frame.rows.select(PLACE).toArrow().column(0).to_numpy()
    return np.sort(found)


def _kept(frame: Distributed, how: Treated) -> Any:
    """Return the rows; where kept texts are quoted, quoted."""
    seen = frame.seen
    quoted = {
        seen.at(name): how.values[name]
        for name, t in how.columns.items()
        if isinstance(t, Keep) and how.values[name] != f"s.{seen.at(name)}"
    }
    return frame.rewritten(quoted, seen.types, seen.table, seen).rows if quoted else frame.rows


def handed(session: RunningSpark, arrow: pa.Table, kinds: Mapping[str, str]) -> Any:
    """Hand a map to Spark; every executor gets a copy unless it is large."""
    from pyspark.sql.functions import broadcast

    with session.job():
        beside = session.spark.createDataFrame(arrow, schema_in_words(dict(kinds)))
    return broadcast(beside) if arrow.num_rows <= BROADCAST else beside


def _same(seen: Frame, tuples: Frame) -> Any:
    """Return the condition that a row has the values of a tuple; null is like null."""
    ours = [key(seen.at(name), seen.type_of(name)) for name in tuples.names]
    theirs = [key(f"m{i}", kind) for i, kind in enumerate(tuples.types)]
    tests: Sequence[Any] = [_expr(one).eqNullSafe(_expr(other)) for one, other in zip(ours, theirs, strict=True)]
    return reduce(lambda one, other: one & other, tests, _expr("true"))


def _at() -> Any:
    return _expr(f"{PLACE} = at")


def _expr(sql: str) -> Any:
    from pyspark.sql.functions import expr

    return expr(sql)
