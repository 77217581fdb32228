"""Encoding: quasi-identifiers as arrays, every value checked against what the policy declares.

Continuous and date attributes become numbers (NaN for null; dates and times as days), ordinal and nominal ones codes
on a scale whose last code is null. Where cells are released as they are or not at all (`suppress`), a column of any
kind becomes codes that are equal or not. Nothing past this door meets a value that it does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinfold.errors import DataError, plural, together
from kinfold.hierarchy import Hierarchy
from kinfold.request.binding import BoundColumn
from kinfold.request.column_hierarchies import hierarchy_of, in_order, rows_of
from kinfold.request.exact_values import (
    SECONDS,
    ExactValues,
    doubles_suffice,
    exact_values,
    number_text,
    shows_time,
)
from kinfold.rows.engines import Engine
from kinfold.rows.points import LARGEST, Nested, Ordered, Points, Scale
from kinfold.rows.schema import Exactly, Kind, Storage

Floats: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.int32]
Texts: TypeAlias = NDArray[Any]
Exact: TypeAlias = Callable[[Floats], ExactValues | None]

LARGEST_DAY = 1e8  # dates are released as 64 bits hold their microseconds
LARGEST_WHOLE = 2.0**63  # integers are released as 64 bits hold them
EXACT = 2.0**53  # doubles hold every whole number up to this
DIGITS = 38  # of a decimal


@dataclass(frozen=True, eq=False)
class Measured:
    """A continuous or date attribute: numbers, NaN for null; a hierarchy where its values are generalized by one."""

    bound: BoundColumn
    numbers: Floats
    leaves: Codes | None = None  # row of each record in the hierarchy, -1 for null
    hierarchy: Hierarchy | None = None
    standard: tuple[float, float] | None = None  # mean and deviation of the whole table, where these are some of it
    exact: ExactValues | None = None  # where values are generalized that doubles do not tell apart
    units: NDArray[np.object_] | None = None  # where doubles do not hold the numbers: in units of the last decimal

    @property
    def is_long(self) -> bool:
        """Whether the numbers have more digits than a double holds."""
        decimals = self.bound.column.decimals if self.bound.kind is Kind.CONTINUOUS else None
        largest = max(np.nanmax(self.numbers, initial=0.0), -np.nanmin(self.numbers, initial=0.0))
        return decimals is not None and float(largest) * 10.0**decimals >= EXACT

    @property
    def null(self) -> NDArray[np.bool_]:
        """Which records lack a value."""
        return np.isnan(self.numbers)

    def standardized(self) -> Floats:
        """Numbers with mean 0 and deviation 1, times the root of the weight; a constant column is 0 everywhere."""
        if self.null.all():
            return self.numbers
        mean, deviation = self.standard or (float(np.nanmean(self.numbers)), None)
        centred = self.numbers - mean
        if deviation is None:
            deviation = float(np.sqrt(np.nanmean(centred * centred)))
        scale = np.sqrt(self.bound.request.weight) / deviation if deviation > 0 else 0.0
        return np.asarray(centred * scale, np.float64)

    def take(self, rows: NDArray[np.intp]) -> Measured:
        """Return the attribute of these records."""
        leaves = None if self.leaves is None else self.leaves[rows]
        exact = None if self.exact is None else self.exact.take(rows)
        units = None if self.units is None else self.units[rows]
        return Measured(self.bound, self.numbers[rows], leaves, self.hierarchy, self.standard, exact, units)


@dataclass(frozen=True, eq=False)
class Coded:
    """An ordinal or nominal attribute: codes on a scale; `texts[code]` is the category, None for the null code."""

    bound: BoundColumn
    codes: Codes
    texts: Texts
    scale: Scale
    hierarchy: Hierarchy | None = None
    leaf: Codes | None = None  # row of each code in the hierarchy, -1 for null

    @property
    def null_code(self) -> int:
        """The code of null: the last one."""
        return len(self.texts) - 1

    @property
    def null(self) -> NDArray[np.bool_]:
        """Which records lack a value."""
        return np.asarray(self.codes == self.null_code)

    def take(self, rows: NDArray[np.intp]) -> Coded:
        """Return the attribute of these records."""
        return replace(self, codes=self.codes[rows])


Attribute: TypeAlias = Measured | Coded


def encode(engine: Engine, frame: Any, columns: Sequence[BoundColumn]) -> tuple[Attribute, ...]:
    """Collect columns of a table; raise with every value problem of every column."""
    wanted = {c.name: c.column if c.kind.measured and not c.suppressed else None for c in columns}
    table = engine.collect(frame, wanted)
    encoders = [
        partial(_encoded, bound, table.column(bound.name), partial(_exactly, engine, frame, bound)) for bound in columns
    ]
    return tuple(_with_units(engine, frame, attribute) for attribute in together(encoders))


def _exactly(engine: Engine, frame: Any, bound: BoundColumn, numbers: Floats) -> ExactValues | None:
    """Return the values of a column that is generalized, where the numbers do not tell them."""
    if bound.average != "generalize" or doubles_suffice(bound, numbers):
        return None
    return exact_values(bound, engine.collect(frame, {bound.name: Exactly(bound.column)}).column(0))


def _with_units(engine: Engine, frame: Any, attribute: Attribute) -> Attribute:
    """Return an attribute that is averaged with every digit of its numbers, where doubles do not hold them."""
    if isinstance(attribute, Coded) or attribute.bound.average == "generalize" or not attribute.is_long:
        return attribute
    texts = engine.collect(frame, {attribute.bound.name: None}).column(0).to_pylist()
    shift, context = attribute.bound.column.decimals or 0, Context(prec=2 * DIGITS)
    units = [int(Decimal(text.strip()).scaleb(shift, context)) if text else 0 for text in texts]
    if max(map(abs, units), default=0) >= 10**DIGITS:
        return attribute
    return replace(attribute, units=np.array(units, object))


def points(attributes: Sequence[Attribute], rows: NDArray[np.intp]) -> Points:
    """Put attributes side by side for a partitioner, standardized over all records, and return those of some rows.

    A missing number counts as the mean: it tells nobody apart among records that all lack it.
    """
    measured = [a for a in attributes if isinstance(a, Measured)]
    coded = [a for a in attributes if isinstance(a, Coded)]
    numbers = np.empty((len(rows), len(measured)))
    for column, attribute in enumerate(measured):  # one at a time: all of them twice would be most of the memory
        numbers[:, column] = np.nan_to_num(attribute.standardized()[rows])
    return Points(
        numbers,
        np.column_stack([a.codes[rows] for a in coded]) if coded else np.empty((len(rows), 0), np.int32),
        tuple(a.scale for a in coded),
    )


def records_of(attributes: Sequence[Attribute]) -> int:
    """Return how many records the attributes describe."""
    first = attributes[0]
    return len(first.numbers if isinstance(first, Measured) else first.codes)


def leaves_of(attribute: Attribute) -> Codes:
    """Row of each record's value in the attribute's hierarchy, -1 for null."""
    if isinstance(attribute, Measured):
        assert attribute.leaves is not None  # noqa: S101  encoded with its hierarchy
        return attribute.leaves
    assert attribute.leaf is not None  # noqa: S101  encoded with its hierarchy
    return np.asarray(attribute.leaf[attribute.codes], np.int32)


def _encoded(bound: BoundColumn, column: pa.ChunkedArray, exactly: Exact) -> Attribute:
    if bound.kind.measured and not bound.suppressed:
        return measured_of(bound, column.to_numpy(zero_copy_only=False).astype(np.float64, copy=False), exactly)
    encoded = column.combine_chunks().dictionary_encode()
    categories = np.array(encoded.dictionary.to_pylist(), dtype=object)
    index = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    if bound.suppressed:
        return _told_apart(bound, categories, index)
    return _ordinal(bound, categories, index) if bound.kind is Kind.ORDINAL else _nominal(bound, categories, index)


def measured_of(bound: BoundColumn, numbers: Floats, exactly: Exact = lambda _: None) -> Measured:
    """Return numbers, or dates as days, as an attribute, if they can be released; `exactly` tells their values."""
    _check_dates(bound, numbers)
    limit = LARGEST_WHOLE if bound.column.storage is Storage.INTEGER else LARGEST
    if max(np.nanmax(numbers, initial=0.0), -np.nanmin(numbers, initial=0.0)) >= limit:
        raise DataError(f"column '{bound.name}' holds values beyond {limit:.0e}", fix="give it in larger units")
    exact = exactly(numbers)
    if not bound.request.hierarchy or bound.average != "generalize":
        return Measured(bound, numbers, exact=exact)
    texts, places = (exact.texts, exact.places) if exact else _distinct(bound, numbers)
    hierarchy = hierarchy_of(bound, texts)
    leaves = np.append(rows_of(bound, hierarchy, texts), np.int32(-1))[places]
    return Measured(bound, numbers, leaves, hierarchy, exact=exact)


def value_texts(engine: Engine, frame: Any, bound: BoundColumn) -> list[str | None]:
    """Return every value of a column of numbers or moments as its hierarchy knows it, None for null."""
    (flat,) = encode(engine, frame, [replace(bound, request=bound.request.model_copy(update={"hierarchy": None}))])
    assert isinstance(flat, Measured)  # noqa: S101  asked of numbers and moments
    texts, places = (flat.exact.texts, flat.exact.places) if flat.exact else _distinct(bound, flat.numbers)
    return [None if place < 0 else str(texts[place]) for place in places]


def _distinct(bound: BoundColumn, numbers: Floats) -> tuple[Texts, Codes]:
    """Return the distinct numbers as text, and which of them each record has, -1 for null."""
    there = ~np.isnan(numbers)
    places = np.full(len(numbers), -1, np.int32)
    distinct, places[there] = np.unique(numbers[there], return_inverse=True)
    return np.array([as_text(bound, value) for value in distinct], object), places


def _check_dates(bound: BoundColumn, numbers: Floats) -> None:
    """Refuse dates that no average can be written for: beyond the microseconds of 64 bits, or infinite."""
    beyond = int((np.abs(numbers) >= LARGEST_DAY).sum()) if bound.kind is Kind.DATE else 0
    if beyond:
        held = plural(beyond, "date that is", "dates that are")
        what = f"column '{bound.name}' holds {held} infinite or more than 270,000 years away"
        raise DataError(what, fix="correct or empty them")


def as_text(bound: BoundColumn, number: float) -> str:
    """Write a number of a column the way its values are written: integers, decimals, ISO dates and times."""
    if bound.kind is Kind.DATE:
        moment = np.datetime64(round(number * SECONDS), "s")  # of any year; Python's calendar has those from 1 to 9999
        return str(np.datetime_as_string(moment, "s" if shows_time(bound.column) else "D")).replace("T", " ")
    return number_text(float(number), whole=bound.column.storage is Storage.INTEGER or bound.column.decimals == 0)


def _ordinal(bound: BoundColumn, categories: Texts, index: NDArray[Any]) -> Coded:
    in_order(bound, categories)
    order = bound.request.order or tuple(sorted(categories, key=_as_number))
    place = {text: rank for rank, text in enumerate(order)}
    null = len(order)
    codes = np.array([*(place[text] for text in categories), null], np.int32)[index]
    coded = Coded(bound, codes, np.array([*order, None], object), Ordered(null, bound.request.weight))
    if not bound.request.hierarchy:
        return coded
    hierarchy = hierarchy_of(bound, order)
    leaf = np.array([*rows_of(bound, hierarchy, np.array(order, object)), -1], np.int32)
    return replace(coded, hierarchy=hierarchy, leaf=leaf)


def _as_number(text: str) -> tuple[bool, Decimal]:
    """Return by what numbers are put in order, exactly; what is not a number comes last."""
    number = Decimal(text)
    return number.is_nan(), Decimal() if number.is_nan() else number


def _told_apart(bound: BoundColumn, categories: Texts, index: NDArray[Any]) -> Coded:
    """Take values as texts that are equal or not: what is released of them is the text itself or nothing."""
    in_order(bound, categories)
    texts = np.array(sorted(categories), object)
    place = {text: code for code, text in enumerate(texts)}
    codes = np.array([*(place[text] for text in categories), len(texts)], np.int32)[index]
    return Coded(bound, codes, np.array([*texts, None], object), Nested.flat(len(texts) + 1, bound.request.weight))


def _nominal(bound: BoundColumn, categories: Texts, index: NDArray[Any]) -> Coded:
    if not bound.request.hierarchy:
        return _told_apart(bound, categories, index)
    hierarchy = hierarchy_of(bound, categories)
    codes = np.array([*rows_of(bound, hierarchy, categories), len(hierarchy)], np.int32)[index]
    texts = np.array([*hierarchy.values, None], object)
    leaf = np.array([*range(len(hierarchy)), -1], np.int32)
    return Coded(bound, codes, texts, nested(hierarchy, bound.request.weight), hierarchy, leaf)


def nested(hierarchy: Hierarchy, weight: float) -> Nested:
    """Return the scale of a hierarchy's values, with null as one more value that meets the others at the top."""
    below = hierarchy.paths.max(axis=0) + 1
    null = np.where(np.arange(hierarchy.height + 1) < hierarchy.height, below, 0)
    return Nested(np.vstack([hierarchy.paths, null]).astype(np.int32), weight)
