"""Treating: what a recoding makes of columns, as SQL, and the tables of tuples and of classes that it joins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import duckdb
import numpy as np
import pyarrow as pa

from kinfold.errors import DataError
from kinfold.rows.engines import expressions
from kinfold.rows.engines.database import Database
from kinfold.rows.engines.expressions import Frame
from kinfold.rows.engines.formula_cells import requoted
from kinfold.rows.recoding import Keep, Recoding, Replace
from kinfold.rows.schema import Schema


def treated_values(frame: Frame, treated: Mapping[str, Keep | Replace], schema: Schema) -> dict[str, str]:
    """SQL for the columns after a recoding: of the rows `s`, or of the class values `n`."""
    values, fresh = {}, [name for name, t in treated.items() if isinstance(t, Replace)]
    for name, treatment in treated.items():
        value = f"n.v{fresh.index(name)}" if isinstance(treatment, Replace) else f"s.{frame.at(name)}"
        if isinstance(treatment, Replace) and treatment.as_stored:
            value = expressions.restored(value, treatment.values.type, frame.type_of(name), schema[name])
        if treatment.quotes and expressions.holds_text(treatment, frame.type_of(name)):
            value = requoted(value, treatment.quotes)
        values[name] = value
    return values


def labelled_tuples(db: Database, recoding: Recoding) -> Frame:
    """Return the tuples of a recoding with the class of each beside it."""
    tuples: Frame = recoding.tuples
    with db.registered(pa.table({"label": recoding.labels})) as view:
        return replace(tuples, table=db.table(f"SELECT * FROM {tuples.table} POSITIONAL JOIN {view}"))


def class_values(db: Database, recoding: Recoding, values: Mapping[str, str], columns: Sequence[str]) -> str:
    """Make a table of what becomes of each class, by its number; a column is called by its place among all."""
    held = {f"v{i}": t.values for i, t in enumerate(t for t in recoding.columns.values() if isinstance(t, Replace))}
    many = max((len(each) for each in held.values()), default=int(recoding.labels.max(initial=0)) + 1)
    changed = (f"{value} AS c{columns.index(name)}" for name, value in values.items())
    with db.registered(pa.table({"id": np.arange(many, dtype=np.int32)} | held)) as view:
        return db.table(f"SELECT {', '.join(['n.id', *changed])} FROM {view} n")


def classes_after(db: Database, frame: Frame, recoding: Recoding, values: Mapping[str, str]) -> Frame | None:
    """Return the values of the classes that occur, as a table of the columns that they replace."""
    if not values:
        return None
    fresh = [t.values for t in recoding.columns.values() if isinstance(t, Replace)]
    if recoding.held is None:  # of labels that the engine holds every class has some
        used = pa.array(np.unique(recoding.labels[recoding.kept]))
        fresh = [each.take(used) for each in fresh]
    arrow = pa.table({f"v{i}": each for i, each in enumerate(fresh)})
    select = ", ".join(f"{value} AS c{i}" for i, value in enumerate(values.values()))
    with db.registered(arrow) as view:
        table = db.table(f"SELECT {select} FROM {view} n")
    return replace(frame, table=table, names=tuple(values), types=db.types(table))


@contextmanager
def fitting() -> Iterator[None]:
    """Tell of released values that do not fit the type that their column had."""
    try:
        yield
    except duckdb.ConversionException:
        raise misfit() from None


def misfit() -> DataError:
    """Return what is said of released values that do not fit the type that their column had."""
    what = "a released value does not fit the type that its column had"
    return DataError(what, fix="give the column a wider type, or say output.round = false")
