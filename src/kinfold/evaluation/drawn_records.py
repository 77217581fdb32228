"""Records that stand for all of a far table: drawn by a hash of their places, the same ones on any engine.

What is asked of single records is asked of them. How many others are like each of them, before and after, is counted on
the whole tables, and so are the classes of the release, among which an attacker looks for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.evaluation.value_counts import RowsForAll
from kinfold.rows.drawing import drawn, shares
from kinfold.rows.engines import Engine, NumbersInBoth
from kinfold.rows.recoding import Recoding
from kinfold.rows.schema import Column
from kinfold.rows.steady import steady

Ints: TypeAlias = NDArray[np.int64]

MANY = 200_000  # records that are drawn, about


@dataclass(frozen=True, eq=False)
class FarTable:
    """The frames of a far table, before and after, the recoding that lies between them, and what was counted by it."""

    original: Any
    prepared: Any
    released: Any
    recoding: Recoding
    dominant: Mapping[str, tuple[int, int]]  # classes in which one record dominates, by two rules


@dataclass(frozen=True, eq=False)
class Drawn:
    """Some records: the engine's frames of them as they came, as they were planned with, and as they are released."""

    original: Any
    prepared: Any
    released: Any
    rows: NDArray[np.intp]  # of each released one among those drawn
    weight: Ints  # how many records each stands for
    before: Ints  # how many records of the original are like each
    after: Ints  # and how many of the release, 0 where it was left out
    classes: Any  # the engine's frame of the classes of the release
    sizes: Ints
    whole: FarTable

    @property
    def told(self) -> str:
        """What is said of a measure that was taken on them."""
        return (
            f"estimated from {len(self.weight):,} of {int(self.weight.sum()):,} records, drawn by a hash of their place"
        )

    def standing(self, engine: Engine, whole: Any, *, original: bool) -> RowsForAll:
        """Return those that stand for the original, or for the release, which is `whole`."""
        return RowsForAll(self.original if original else self.released, engine.schema(whole).rows)


def draw_records(engine: Engine, far: FarTable, quasi: Sequence[str]) -> Drawn:
    """Draw the records that stand for all."""
    records = engine.schema(far.original).rows
    places = drawn(records, MANY)
    original = engine.picked(far.original, places)[0]
    prepared = original if far.prepared is far.original else engine.picked(far.prepared, places)[0]
    released, rows = engine.picked(far.released, places, replace(far.recoding, columns={}))
    after = np.zeros(len(places), np.int64)
    after[rows] = engine.like(far.released, quasi, released)
    found = (original, prepared, released, rows, shares(records, len(places)))
    counted = engine.like(far.original, quasi, original), after
    sizes = engine.tally(far.released, quasi, {}).sizes
    return Drawn(*found, *counted, engine.distinct(far.released, quasi), sizes, far)


def exact_errors(engine: Engine, drawn: Drawn, names: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return the sum of squared errors of each column, and of squared distances from its mean, over all records.

    Both in units of the column's variance, where it has any.
    """
    far, found = drawn.whole, {}
    before, after = (engine.schema(frame) for frame in (far.original, far.released))
    facts = _facts(engine, far.original, [before[name] for name in names])
    columns = [NumbersInBoth(before[name], after[name], facts[name][1]) for name in names]
    for name, lost in zip(names, engine.errors(far.original, far.released, columns, far.recoding), strict=True):
        count, _, variance = facts[name]
        unit = variance if variance > 0 else 1.0
        found[name] = steady(lost / unit), float(count) if variance > 0 else 0.0
    return found


def _facts(engine: Engine, frame: Any, columns: Sequence[Column]) -> dict[str, tuple[int, float, float]]:
    """Return how many values each column has, their mean and variance: of all at once where none is missing."""
    if not columns:
        return {}
    count, means, covariances = engine.moments(frame, {column.name: column for column in columns})
    if count < engine.schema(frame).rows and len(columns) > 1:
        return {name: fact for column in columns for name, fact in _facts(engine, frame, [column]).items()}
    names = [column.name for column in columns]
    return {name: (count, float(means[i]), float(covariances[i, i])) for i, name in enumerate(names)}
