"""Risk from outside: what somebody finds who knows a population, or how many people each record stands for.

    population          a table of the people the release was drawn from, with the quasi-identifiers as they are.
                        Each of them looks like the released classes that are nearest to him in the distance of the
                        policy, 0 from every class that covers him; F of a class is how many look like it, and never
                        less than the records in it. The journalist's risk is 1 / F
    sampling weights    a column of the release, or of the original: the individual risk of Benedetti & Franconi

Either also gives the size of the population, and with it the estimates of population uniques.
Cost of the former: distinct people times classes, at most `MOST_PAIRS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import DataError, Problem
from kinfold.evaluation.label_coverage import extents, gaps
from kinfold.evaluation.pairing import Pair, PairedColumn, Tables
from kinfold.hierarchy import TOP
from kinfold.measures import NotApplicable
from kinfold.measures.attacker import journalist_risk, marketer_risk
from kinfold.measures.grouping import group_rows
from kinfold.request.encoding import Coded
from kinfold.rows.schema import Kind

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

CHUNK = 2_000_000  # pairs compared at a time: some 16 MB for each column
MOST_PAIRS = 2_000_000_000  # about a minute; beyond, there is no answer instead of a long wait
SLACK, TINY = 1 + 1e-9, 1e-12  # what differs by the rounding of an average alone is as near


def journalist(pair: Pair, engine: Any, people: Any) -> Floats:
    """Return 1 / F of each released record; `people` is the engine's frame of the population."""
    table = _collected(pair, engine, people)
    classes, first = classes_of(pair)
    sides = sides_of(pair, first)
    known = [side.read(table.column(column.name)) for side, column in zip(sides, pair.columns, strict=True)]
    looks = _look_alike(sides, np.column_stack(known), len(first))
    return journalist_risk(classes, np.maximum(looks, np.bincount(classes)))


def outside(risks: Floats) -> dict[str, float]:
    """Return the highest risk of a record and the mean: the marketer's."""
    return {"max": float(risks.max()), "mean": marketer_risk(risks)}


def sampling_weights(tables: Tables, name: str) -> Floats:
    """Return the weights of the released records: from the release if the column is there, else from the original."""
    for frame, rows in ((tables.released, None), (tables.original, tables.rows)):
        column = tables.engine.schema(frame).get(name)
        if column is None:
            continue
        if isinstance(rows, str):
            raise NotApplicable(rows)
        if column.storage.kind is not Kind.CONTINUOUS or column.nulls:
            raise DataError(f"the sampling weights '{name}' are not all numbers", fix="give every record a weight")
        weights = tables.engine.collect(frame, {name: column}).column(0).to_numpy(zero_copy_only=False)
        return np.asarray(weights if rows is None else weights[rows], np.float64)
    raise DataError(f"no column '{name}' for the sampling weights", fix="name a column of either table")


def _collected(pair: Pair, engine: Any, people: Any) -> Any:
    schema, problems, wanted = engine.schema(people), [], {}
    for column in pair.columns:
        found = schema.get(column.name)
        measured = not isinstance(column.attribute, Coded)
        if found is None:
            problems.append(Problem(f"the population has no column '{column.name}'", "give all quasi-identifiers"))
        elif measured and not (found.storage.kind.measured or found.date_format):
            problems.append(
                Problem(f"'{column.name}' of the population is not {column.attribute.bound.kind}", "mend it")
            )
        wanted[column.name] = found if measured else None
    if problems:
        raise DataError(problems)
    return engine.collect(people, wanted)


def sides_of(pair: Pair, first: Ints) -> list[_Numbers | _Categories]:
    """Return what each class says of each column; `first` is a row of each class."""
    return [_Categories(c, first) if isinstance(c.attribute, Coded) else _Numbers(c, first) for c in pair.columns]


def classes_of(pair: Pair) -> tuple[Ints, Ints]:
    """Return the class of each released record and the first original row of each class."""
    classes, first = group_rows(np.column_stack([column.after[pair.kept] for column in pair.columns]))
    return classes, np.flatnonzero(pair.kept)[first]


class _Numbers:
    """What each class says of a number, from `low` to `high`, and how far a person's is from it."""

    def __init__(self, column: PairedColumn, at: Ints) -> None:
        if column.numbers is not None:
            self.low = self.high = column.numbers[at]
        else:
            assert column.place is not None  # noqa: S101  a column has numbers or labels
            low, high = (np.append(ends, [np.nan, np.nan])[column.place[at]] for ends in extents(column))
            self.low, self.high = low, high
        numbers = column.attribute.numbers  # type: ignore[union-attr]
        deviation = float(np.nanstd(numbers))
        self.weight = column.attribute.bound.request.weight
        self.unit = 1.0 / deviation if deviation > 0 else 0.0

    def read(self, values: Any) -> Floats:
        """Return a column of the population as numbers."""
        return np.asarray(values.to_numpy(zero_copy_only=False), np.float64)

    def squared(self, values: Floats) -> Floats:
        """Return the squared distance of each value to each class."""
        x = values[:, None]
        gap = np.maximum(np.maximum(self.low - x, x - self.high), 0.0) * self.unit
        alike = np.isnan(x) & np.isnan(self.low)
        return self.weight * np.where(alike, 0.0, np.where(np.isnan(gap), 1.0, gap)) ** 2


class _Categories:
    """How far each category is from what each class says of it."""

    def __init__(self, column: PairedColumn, at: Ints) -> None:
        self.column = column
        assert column.place is not None  # noqa: S101  codes are released as labels
        table = gaps(column)
        anything = np.array([label == TOP for label in (*column.labels, "")])
        unknown = np.where(anything, 0.0, table.max())  # a category that the original does not have
        self.table = np.vstack([table, unknown])[:, np.where(column.place < 0, len(column.labels), column.place)[at]]

    def read(self, values: Any) -> Floats:
        """Return a column of the population as numbers."""
        attribute = self.column.attribute
        assert isinstance(attribute, Coded)  # noqa: S101  told apart by the caller
        place = {text: code for code, text in enumerate(attribute.texts[:-1])}
        encoded = values.combine_chunks().dictionary_encode()
        code = [place.get(text, len(self.table) - 1) for text in encoded.dictionary.to_pylist()]
        index = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return np.asarray(np.array([*code, attribute.null_code], np.float64)[index], np.float64)

    def squared(self, values: Floats) -> Floats:
        """Return the squared distance of each value to each class."""
        return np.asarray(self.table[values.astype(np.int64)], np.float64)


def _look_alike(sides: Sequence[_Numbers | _Categories], people: Floats, classes: int) -> Ints:
    """Count for each class the people whose nearest class it is; all that are nearest count."""
    group, first = group_rows(people)
    number, distinct = np.bincount(group), people[first]
    if len(distinct) * classes > MOST_PAIRS:
        raise NotApplicable("the population and the classes are too many to compare each with each")
    looks = np.zeros(classes, np.int64)
    step = max(1, CHUNK // max(classes, 1))
    for start in range(0, len(distinct), step):
        rows = distinct[start : start + step]
        distance = sum((side.squared(rows[:, j]) for j, side in enumerate(sides)), np.zeros((len(rows), classes)))
        nearest = distance <= distance.min(axis=1, keepdims=True) * SLACK + TINY
        looks += number[start : start + step] @ nearest
    return looks
