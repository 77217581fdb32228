"""Encoding: quasi-identifiers as arrays of numbers or codes, with their hierarchies, checked against the policy.

Continuous and date columns become numbers (NaN for null; dates as days). Ordinal and nominal columns become codes on a
scale; the last code is null. A column with `average = "suppress"` becomes codes that are equal or not, for any type.
Later code meets only values that were checked here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Context, Decimal
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinfold.errors import DataError, Problem, call_all, plural
from kinfold.hierarchies import (
    TOP,
    Hierarchy,
    build_from_dates,
    build_from_intervals,
    build_from_mask,
    build_from_rows,
    build_from_tree,
    read_arx,
)
from kinfold.policy.binding import BoundColumn
from kinfold.policy.exact_values import (
    DistinctValues,
    doubles_suffice,
    format_number,
    read_exact_values,
    shows_time,
)
from kinfold.tables.engine import Engine
from kinfold.tables.points import MAX_MAGNITUDE, NominalScale, OrdinalScale, Points, Scale
from kinfold.tables.recoding import encode_dictionary
from kinfold.tables.schema import (
    MAX_DECIMAL_DIGITS,
    MAX_EXACT_INTEGER,
    SECONDS_PER_DAY,
    ExactColumn,
    Kind,
    Role,
    Storage,
    normalize_category,
)

Codes: TypeAlias = NDArray[np.int32]
Texts: TypeAlias = NDArray[Any]

ISO_DAY = "%Y-%m-%d"  # read many times faster than other formats
WEEK_WITHOUT_DAY = re.compile(r"[0-9]{4}-?W[0-9]{2}(?!-?[0-9]).*", re.DOTALL)


def build_hierarchy(bound: BoundColumn, values: Sequence[str] | Texts) -> Hierarchy:
    """Build the hierarchy of a column over its values, as the policy defines it."""
    spec, where = bound.request.hierarchy, f"the hierarchy of '{bound.name}'"
    assert spec is not None  # noqa: S101  callers check
    if not len(values) and (spec.levels, spec.tree, spec.file) == (None, None, None):
        return Hierarchy.from_rows([("", TOP)])  # a column of nulls
    if spec.mask is not None:
        return build_from_mask(values, spec.mask, where, spec.sparse)
    if spec.intervals is not None:
        numbers = _require(is_number, values, f"{where}: {{}} not written as a number", "intervals are for numbers")
        return build_from_intervals(numbers, spec.intervals, spec.origin, where, (spec.bottom, spec.top))
    if spec.dates is not None:
        fix = 'give their format, source.dates = "%d.%m.%Y" (--dates), or write them as 2024-12-31'
        read = partial(_read_moment, form=None if bound.kind is Kind.DATE else bound.column.date_format)
        dates = _require(partial(_is_readable, read), values, f"{where}: {{}} not written as a date", fix)
        return build_from_dates(dates, spec.dates, where, read)
    if spec.levels is not None:
        return build_from_rows(spec.levels, where)
    return build_from_tree(spec.tree, where) if spec.tree is not None else read_arx(Path(str(spec.file)))


def locate_values(bound: BoundColumn, hierarchy: Hierarchy, values: Texts) -> Codes:
    """Return the row of each value in the hierarchy; refuse values that are not in it."""
    rows = hierarchy.index(values)
    missing = tuple(sorted(values[rows < 0]))
    if missing:
        total = plural(len(values), "category", "categories")
        what = f"the hierarchy of '{bound.name}' misses {len(missing)} of its {total}"
        raise DataError(Problem(what, "add them to the hierarchy", missing))
    return rows


def require_known_categories(bound: BoundColumn, values: Texts) -> None:
    """Refuse categories that are not in the declared order of a column."""
    normalize = str if bound.role is Role.QUASI else normalize_category
    known = {normalize(text) for text in bound.request.order or values}
    unknown = tuple(sorted({text for text in values if normalize(text) not in known}))
    if unknown:
        what = f"column '{bound.name}': {plural(len(unknown), 'category is', 'categories are')} not in its order"
        raise DataError(Problem(what, f"add them to columns.{bound.name}.order", unknown))


def _require(check: Callable[[str], bool], values: Sequence[str] | Texts, what: str, fix: str) -> Sequence[str]:
    """Return the values; raise with those that fail a check."""
    if failed := tuple(value for value in values if not check(value)):
        raise DataError(Problem(what.format(plural(len(failed), "category is", "categories are")), fix, failed))
    return list(values)


def is_number(value: str) -> bool:
    """Return whether a text is a finite number."""
    try:
        return bool(np.isfinite(float(value)))
    except ValueError:
        return False


def _read_moment(value: str, form: str | None) -> datetime:
    """Read a day or a time in ISO format, or in the format of the source; an ISO week is none.

    The days of a week may be in two months or years.
    """
    if form is not None and form != ISO_DAY:
        return datetime.strptime(value.strip(), form)
    if WEEK_WITHOUT_DAY.fullmatch(value):
        raise ValueError("a week without a day")
    return datetime.fromisoformat(value if form is None else value.strip())


def _is_readable(read: Callable[[str], object], value: str) -> bool:
    try:
        return bool(read(value))
    except ValueError:
        return False


Floats: TypeAlias = NDArray[np.float64]
ExactReader: TypeAlias = Callable[[Floats], DistinctValues | None]

LARGEST_DAY = 1e8  # the microseconds of a released date fit into 64 bits
LARGEST_INTEGER = 2.0**63  # released integers have 64 bits


@dataclass(frozen=True, eq=False)
class NumericAttribute:
    """A continuous or date attribute: numbers, NaN for null; with a hierarchy if it is generalized by one."""

    bound: BoundColumn
    numbers: Floats
    leaves: Codes | None = None  # row of each record in the hierarchy, -1 for null
    hierarchy: Hierarchy | None = None
    mean_and_deviation: tuple[float, float] | None = None  # of the whole table, if these are only some of its rows
    exact: DistinctValues | None = None  # if the column is generalized and doubles cannot distinguish its values
    units: NDArray[np.object_] | None = None  # integers in units of the last decimal, if doubles cannot hold them

    @property
    def is_long(self) -> bool:
        """Whether the numbers have more digits than a double holds."""
        decimals = self.bound.column.decimals if self.bound.kind is Kind.CONTINUOUS else None
        largest = max(np.nanmax(self.numbers, initial=0.0), -np.nanmin(self.numbers, initial=0.0))
        return decimals is not None and float(largest) * 10.0**decimals >= MAX_EXACT_INTEGER

    @property
    def null(self) -> NDArray[np.bool_]:
        """The mask of missing values."""
        return np.isnan(self.numbers)

    def standardize(self) -> Floats:
        """Return numbers with mean 0 and deviation 1, times the root of the weight; 0 for a constant column."""
        if self.null.all():
            return self.numbers
        mean, deviation = self.mean_and_deviation or (float(np.nanmean(self.numbers)), None)
        centred = self.numbers - mean
        if deviation is None:
            deviation = float(np.sqrt(np.nanmean(centred * centred)))
        scale = np.sqrt(self.bound.request.weight) / deviation if deviation > 0 else 0.0
        return np.asarray(centred * scale, np.float64)

    def take(self, rows: NDArray[np.intp]) -> NumericAttribute:
        """Return the attribute of these records."""
        leaves = None if self.leaves is None else self.leaves[rows]
        exact = None if self.exact is None else self.exact.take(rows)
        units = None if self.units is None else self.units[rows]
        return replace(self, numbers=self.numbers[rows], leaves=leaves, exact=exact, units=units)


@dataclass(frozen=True, eq=False)
class CategoricalAttribute:
    """An ordinal or nominal attribute: codes on a scale; `texts[code]` is the category, None for null."""

    bound: BoundColumn
    codes: Codes
    texts: Texts
    scale: Scale
    hierarchy: Hierarchy | None = None
    leaf_of_code: Codes | None = None  # row of each code in the hierarchy, -1 for null

    @property
    def null_code(self) -> int:
        """The code of null, the last one."""
        return len(self.texts) - 1

    @property
    def null(self) -> NDArray[np.bool_]:
        """The mask of missing values."""
        return np.asarray(self.codes == self.null_code)

    def take(self, rows: NDArray[np.intp]) -> CategoricalAttribute:
        """Return the attribute of these records."""
        return replace(self, codes=self.codes[rows])


Attribute: TypeAlias = NumericAttribute | CategoricalAttribute


def encode(engine: Engine, frame: Any, columns: Sequence[BoundColumn]) -> tuple[Attribute, ...]:
    """Return columns of a table as arrays; raise with the problems of all columns together."""
    wanted = {c.name: c.column if c.kind.is_numeric and not c.suppressed else None for c in columns}
    table = engine.collect(frame, wanted)
    encoders = [
        partial(_encode_column, bound, table.column(bound.name), partial(_read_exact_values, engine, frame, bound))
        for bound in columns
    ]
    return tuple(_add_units(engine, frame, attribute) for attribute in call_all(encoders))


def _read_exact_values(engine: Engine, frame: Any, bound: BoundColumn, numbers: Floats) -> DistinctValues | None:
    """Return the exact values of a generalized column, if doubles cannot distinguish them."""
    if bound.average != "generalize" or doubles_suffice(bound, numbers):
        return None
    return read_exact_values(bound, engine.collect(frame, {bound.name: ExactColumn(bound.column)}).column(0))


def _add_units(engine: Engine, frame: Any, attribute: Attribute) -> Attribute:
    """Return an averaged attribute with all digits of its numbers, if doubles cannot hold them."""
    if isinstance(attribute, CategoricalAttribute) or attribute.bound.average == "generalize" or not attribute.is_long:
        return attribute
    texts = engine.collect(frame, {attribute.bound.name: None}).column(0).to_pylist()
    shift, context = attribute.bound.column.decimals or 0, Context(prec=2 * MAX_DECIMAL_DIGITS)
    units = [int(Decimal(text.strip()).scaleb(shift, context)) if text else 0 for text in texts]
    if max(map(abs, units), default=0) >= 10**MAX_DECIMAL_DIGITS:
        return attribute
    return replace(attribute, units=np.array(units, object))


def build_points(attributes: Sequence[Attribute], rows: NDArray[np.intp]) -> Points:
    """Return some rows as points for a partitioner, standardized over all records.

    A missing number counts as the mean: all records of a part lack it.
    """
    numeric = [a for a in attributes if isinstance(a, NumericAttribute)]
    coded = [a for a in attributes if isinstance(a, CategoricalAttribute)]
    numbers = np.empty((len(rows), len(numeric)))
    for column, attribute in enumerate(numeric):  # one at a time, to save memory
        numbers[:, column] = np.nan_to_num(attribute.standardize()[rows])
    codes = np.column_stack([a.codes[rows] for a in coded]) if coded else np.empty((len(rows), 0), np.int32)
    return Points(numbers, codes, tuple(a.scale for a in coded))


def count_records(attributes: Sequence[Attribute]) -> int:
    """Return the number of records of the attributes."""
    first = attributes[0]
    return len(first.numbers if isinstance(first, NumericAttribute) else first.codes)


def get_leaves(attribute: Attribute) -> Codes:
    """Return the row of each record in the hierarchy of the attribute, -1 for null."""
    if isinstance(attribute, NumericAttribute):
        assert attribute.leaves is not None  # noqa: S101  encoded with its hierarchy
        return attribute.leaves
    assert attribute.leaf_of_code is not None  # noqa: S101  encoded with its hierarchy
    return np.asarray(attribute.leaf_of_code[attribute.codes], np.int32)


def _encode_column(bound: BoundColumn, column: pa.ChunkedArray, read_exact: ExactReader) -> Attribute:
    if bound.kind.is_numeric and not bound.suppressed:
        return encode_numbers(bound, column.to_numpy(zero_copy_only=False).astype(np.float64, copy=False), read_exact)
    index, distinct = encode_dictionary(column)
    categories = np.array(distinct.to_pylist(), dtype=object)
    if bound.suppressed:
        return _encode_texts(bound, categories, index)
    encode_categories = _encode_ordinal if bound.kind is Kind.ORDINAL else _encode_nominal
    return encode_categories(bound, categories, index)


def encode_numbers(bound: BoundColumn, numbers: Floats, read_exact: ExactReader = lambda _: None) -> NumericAttribute:
    """Return numbers, or dates as days, as an attribute; refuse values too large to be released."""
    too_large = int((np.abs(numbers) >= LARGEST_DAY).sum()) if bound.kind is Kind.DATE else 0
    if too_large:
        dates = plural(too_large, "date that is", "dates that are")
        what = f"column '{bound.name}' holds {dates} infinite or more than 270,000 years away"
        raise DataError(what, fix="correct or empty them")
    limit = LARGEST_INTEGER if bound.column.storage is Storage.INTEGER else MAX_MAGNITUDE
    if max(np.nanmax(numbers, initial=0.0), -np.nanmin(numbers, initial=0.0)) >= limit:
        raise DataError(f"column '{bound.name}' holds values above {limit:.0e}", fix="use larger units")
    exact = read_exact(numbers)
    if not bound.request.hierarchy or bound.average != "generalize":
        return NumericAttribute(bound, numbers, exact=exact)
    texts, places = (exact.texts, exact.places) if exact else _find_distinct_numbers(bound, numbers)
    hierarchy = build_hierarchy(bound, texts)
    leaves = np.append(locate_values(bound, hierarchy, texts), np.int32(-1))[places]
    return NumericAttribute(bound, numbers, leaves, hierarchy, exact=exact)


def collect_value_texts(engine: Engine, frame: Any, bound: BoundColumn) -> list[str | None]:
    """Return the values of a column of numbers or dates as its hierarchy names them, None for null."""
    (flat,) = encode(engine, frame, [replace(bound, request=bound.request.model_copy(update={"hierarchy": None}))])
    assert isinstance(flat, NumericAttribute)  # noqa: S101  callers check
    texts, places = (flat.exact.texts, flat.exact.places) if flat.exact else _find_distinct_numbers(bound, flat.numbers)
    return [None if place < 0 else str(texts[place]) for place in places]


def _find_distinct_numbers(bound: BoundColumn, numbers: Floats) -> tuple[Texts, Codes]:
    """Return the distinct numbers as text, and the place of each record among them, -1 for null."""
    known = ~np.isnan(numbers)
    places = np.full(len(numbers), -1, np.int32)
    distinct, places[known] = np.unique(numbers[known], return_inverse=True)
    return np.array([format_value(bound, value) for value in distinct], object), places


def format_value(bound: BoundColumn, number: float) -> str:
    """Return a number of a column as text, in the form of its values: integer, decimal, ISO date or time."""
    if bound.kind is Kind.DATE:
        moment = np.datetime64(round(number * SECONDS_PER_DAY), "s")  # numpy knows all years, Python only 1 to 9999
        return str(np.datetime_as_string(moment, "s" if shows_time(bound.column) else "D")).replace("T", " ")
    return format_number(float(number), whole=bound.column.storage is Storage.INTEGER or bound.column.decimals == 0)


def _encode_ordinal(bound: BoundColumn, categories: Texts, index: NDArray[Any]) -> CategoricalAttribute:
    require_known_categories(bound, categories)
    order = bound.request.order or tuple(sorted(categories, key=_number_key))
    place = {text: rank for rank, text in enumerate(order)}
    null = len(order)
    codes = np.array([*(place[text] for text in categories), null], np.int32)[index]
    texts, scale = np.array([*order, None], object), OrdinalScale(null, bound.request.weight)
    coded = CategoricalAttribute(bound, codes, texts, scale)
    if not bound.request.hierarchy:
        return coded
    hierarchy = build_hierarchy(bound, order)
    leaf = np.array([*locate_values(bound, hierarchy, np.array(order, object)), -1], np.int32)
    return replace(coded, hierarchy=hierarchy, leaf_of_code=leaf)


def _number_key(text: str) -> tuple[bool, Decimal]:
    """Return the exact sort key of a number; NaN comes last."""
    number = Decimal(text)
    return number.is_nan(), Decimal() if number.is_nan() else number


def _encode_texts(bound: BoundColumn, categories: Texts, index: NDArray[Any]) -> CategoricalAttribute:
    """Encode values as texts that are equal or not."""
    require_known_categories(bound, categories)
    texts = np.array(sorted(categories), object)
    place = {text: code for code, text in enumerate(texts)}
    codes = np.array([*(place[text] for text in categories), len(texts)], np.int32)[index]
    scale = NominalScale.flat(len(texts) + 1, bound.request.weight)
    return CategoricalAttribute(bound, codes, np.array([*texts, None], object), scale)


def _encode_nominal(bound: BoundColumn, categories: Texts, index: NDArray[Any]) -> CategoricalAttribute:
    if not bound.request.hierarchy:
        return _encode_texts(bound, categories, index)
    hierarchy = build_hierarchy(bound, categories)
    codes = np.array([*locate_values(bound, hierarchy, categories), len(hierarchy)], np.int32)[index]
    texts = np.array([*hierarchy.values, None], object)
    leaf = np.array([*range(len(hierarchy)), -1], np.int32)
    scale = build_nested_scale(hierarchy, bound.request.weight)
    return CategoricalAttribute(bound, codes, texts, scale, hierarchy, leaf)


def build_nested_scale(hierarchy: Hierarchy, weight: float) -> NominalScale:
    """Return the scale of the values of a hierarchy, with null as a value that meets the others at the top."""
    below = hierarchy.paths.max(axis=0) + 1
    null = np.where(np.arange(hierarchy.height + 1) < hierarchy.height, below, 0)
    return NominalScale(np.vstack([hierarchy.paths, null]).astype(np.int32), weight)
