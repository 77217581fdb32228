"""Aggregation: the value that replaces an attribute in each class.

The policy's `average` chooses the function (see `aggregate_functions`), and `output.round` whether averages keep the
decimals of the column. `output.preserve = "variance"` rescales them (Domingo-Ferrer & Torra 2005, section 5.2):

    (x - mean of the averages) · (deviation of the original / deviation of the averages) + mean of the original

which changes values but not classes. It is undefined if the averages do not vary; then a note says so. An average lies
in the range of its class. Numbers with more digits than a double holds are averaged as whole numbers.

`average = "generalize"` takes the narrowest text that is true of every record. With a hierarchy it is the lowest common
ancestor. Without one it is the value if all records share it, else the range `[low, high]` of a continuous, date or
ordinal attribute, else `*`. Nulls among values are covered by `*` only; a class of nulls stays null. The ends of a
range are values of the class. In a large table, whose values are known as doubles only, they are rounded outward, to
the double or second before the lowest and after the highest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinfold.errors import DataError, plural
from kinfold.hierarchies import TOP
from kinfold.methods import aggregate_functions as aggregate
from kinfold.policy.binding import BoundColumn
from kinfold.policy.encoding import (
    DECIMAL_DIGITS,
    Attribute,
    CategoricalAttribute,
    NumericAttribute,
    format_value,
    get_leaves,
)
from kinfold.policy.exact_values import SECONDS_PER_DAY, doubles_suffice, is_zoned
from kinfold.policy.model import Output
from kinfold.tables.points import Floats, Labels
from kinfold.tables.recoding import Replace
from kinfold.tables.schema import Kind, Storage

EXTRA_DECIMALS = 6  # of averages that are not rounded, if doubles do not hold them
LARGER_UNITS = 'give the values in larger units, or set type = "nominal"'


def cover_classes(attribute: Attribute, labels: Labels) -> list[str | None]:
    """Return the narrowest text that is true of every record of each class."""
    if attribute.hierarchy is not None:
        rows, levels = aggregate.common_ancestors(get_leaves(attribute), labels, attribute.hierarchy.paths)
        ancestors = attribute.hierarchy.labels[rows, levels]
        return [None if row < 0 else label for row, label in zip(rows, ancestors, strict=True)]
    if isinstance(attribute, NumericAttribute):
        return _cover_numbers(attribute, labels)
    numbers = np.where(attribute.codes == attribute.null_code, np.nan, attribute.codes).astype(np.float64)
    if attribute.bound.kind is Kind.ORDINAL:
        return _cover_by_range(numbers, labels, lambda code: str(attribute.texts[int(code)]))
    shared = _cover_by_range(numbers, labels, str)
    names = aggregate.mode(attribute.codes, labels)
    texts = [TOP if text and text.startswith("[") else text for text in shared]
    return [text if text in (None, TOP) else attribute.texts[code] for text, code in zip(texts, names, strict=True)]


def _cover_numbers(attribute: NumericAttribute, labels: Labels) -> list[str | None]:
    bound, exact = attribute.bound, attribute.exact
    if exact is not None:
        places = np.where(exact.places < 0, np.nan, exact.places)
        return _cover_by_range(places, labels, lambda place: str(exact.texts[int(place)]))
    if doubles_suffice(bound, attribute.numbers):
        return _cover_by_range(attribute.numbers, labels, lambda number: format_value(bound, number))
    return _cover_by_range(
        attribute.numbers, labels, lambda number: _outward_range(bound, number, number), partial(_outward_range, bound)
    )


def _outward_range(bound: BoundColumn, low: float, high: float) -> str:
    """Return a range that holds every value whose double is between two numbers."""
    if bound.kind is Kind.DATE:
        low = (math.floor(low * SECONDS_PER_DAY) - 1) / SECONDS_PER_DAY
        high = (math.ceil(high * SECONDS_PER_DAY) + 1) / SECONDS_PER_DAY
        offset = "+00:00" if is_zoned(bound.column) else ""
        return f"[{format_value(bound, low)}{offset}, {format_value(bound, high)}{offset}]"
    low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
    return f"[{format_value(bound, low)}, {format_value(bound, high)}]"


def _cover_by_range(
    numbers: Floats, labels: Labels, text: Callable[[float], str], span: Callable[[float, float], str] | None = None
) -> list[str | None]:
    span = span or (lambda low, high: f"[{text(low)}, {text(high)}]")
    sizes = np.bincount(labels)
    missing = np.bincount(labels, np.isnan(numbers)).astype(np.int64)
    lows, highs = aggregate.value_ranges(np.where(np.isnan(numbers), 0.0, numbers), labels)
    return [
        (None if nulls == size else TOP) if nulls else text(low) if low == high else span(low, high)
        for low, high, nulls, size in zip(lows, highs, missing, sizes, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class ReplacedColumn:
    """The values that replace a column, and notes about them."""

    replace: Replace
    notes: tuple[str, ...] = ()


def average_column(attribute: Attribute, labels: Labels, output: Output) -> ReplacedColumn:
    """Return the value of each class of one attribute."""
    if attribute.bound.average == "generalize":
        return ReplacedColumn(Replace(pa.array(cover_classes(attribute, labels), pa.string()), as_stored=False))
    if isinstance(attribute, CategoricalAttribute):
        codes = _central_codes(attribute, labels)
        null, notes = attribute.null_code, []
        if attribute.bound.suppressed and (cells := int(((codes[labels] == null) & (attribute.codes != null)).sum())):
            share = f"{cells:,} of {len(labels):,} cells were suppressed ({cells / len(labels):.1%})"
            notes.append(f"'{attribute.bound.name}': {share}")
        return ReplacedColumn(Replace(pa.array(attribute.texts[codes], pa.string())), tuple(notes))
    return _average_numbers(attribute, labels, output)


def _central_codes(attribute: CategoricalAttribute, labels: Labels) -> NDArray[np.int32]:
    codes, null = attribute.codes, attribute.null_code
    if attribute.bound.suppressed:
        return aggregate.shared_value(codes, labels, null)
    if attribute.bound.average == "median":
        return aggregate.ordinal_median(codes, labels, null)
    if attribute.bound.average == "convex-median":
        return aggregate.convex_median(codes, labels, null)
    if attribute.bound.kind is Kind.ORDINAL:
        return aggregate.mode(codes, labels)
    order = sorted(range(null), key=lambda code: attribute.texts[code])  # ties go to the first text; null is last
    return aggregate.mode(codes, labels, np.argsort([*order, null]))


def _average_numbers(attribute: NumericAttribute, labels: Labels, output: Output) -> ReplacedColumn:
    if attribute.is_long and output.preserve != "variance":
        return _average_exactly(attribute, labels, output)
    missing = np.bincount(labels, attribute.null) > 0  # all records of a class have a null, or none
    filled = np.where(attribute.null, 0.0, attribute.numbers)
    operator = aggregate.mean if attribute.bound.average == "mean" else aggregate.median
    values = np.clip(operator(filled, labels), *(low_high := aggregate.value_ranges(filled, labels)))
    notes: tuple[str, ...] = ()
    if output.preserve == "variance":
        values, notes = _rescale(attribute, values, labels, missing)
    values = np.where(missing, np.nan, values)
    if not output.round:
        return ReplacedColumn(Replace(numbers_to_arrow(attribute, values, exact=True), as_stored=False), notes)
    # Small integer types hold every average, but not every rescaled one.
    fits = attribute.bound.column.storage is not Storage.INTEGER or not notes
    rounded = _round(attribute, values)
    rounded = rounded if notes else np.clip(rounded, *low_high)
    return ReplacedColumn(Replace(numbers_to_arrow(attribute, rounded, exact=False), as_stored=fits), notes)


def _average_exactly(attribute: NumericAttribute, labels: Labels, output: Output) -> ReplacedColumn:
    """Average numbers that doubles do not hold."""
    if attribute.units is None:
        what = f"column '{attribute.bound.name}' holds numbers of more digits than can be averaged exactly"
        raise DataError(what, fix=LARGER_UNITS)
    more = 0 if output.round else EXTRA_DECIMALS
    operator = aggregate.exact_mean if attribute.bound.average == "mean" else aggregate.exact_median
    values = operator(attribute.units * 10**more, labels)
    missing = np.bincount(labels, attribute.null) > 0
    return ReplacedColumn(Replace(exact_to_arrow(attribute, values, missing, more), as_stored=not more))


def exact_to_arrow(attribute: NumericAttribute, values: NDArray[Any], missing: NDArray[np.bool_], more: int = 0) -> Any:
    """Convert whole numbers of the last decimal to an array with `more` decimals than the column has."""
    if attribute.bound.column.storage is Storage.INTEGER and not more:
        return pa.array(np.where(missing, 0, values).astype(np.int64), mask=missing)
    shift, context = (attribute.bound.column.decimals or 0) + more, Context(prec=2 * DECIMAL_DIGITS)
    exact = [None if null else Decimal(int(v)).scaleb(-shift, context) for v, null in zip(values, missing, strict=True)]
    try:
        return pa.array(exact, pa.decimal128(DECIMAL_DIGITS, shift))
    except pa.ArrowInvalid:  # its message quotes a value
        what = f"column '{attribute.bound.name}' holds numbers of more digits than can be averaged exactly"
        raise DataError(what, fix=LARGER_UNITS) from None


def _rescale(
    attribute: NumericAttribute, values: Floats, labels: Labels, missing: NDArray[np.bool_]
) -> tuple[Floats, tuple[str, ...]]:
    name, present = attribute.bound.name, ~attribute.null
    released, original = values[labels[present]], attribute.numbers[present]
    if not len(released) or released.std() == 0:
        return values, (f"'{name}': the averages do not vary, so their variance is not rescaled",)
    rescaled = (values - released.mean()) * (original.std() / released.std()) + original.mean()
    outside = (rescaled < original.min()) | (rescaled > original.max())
    cells = int(np.bincount(labels)[outside & ~missing].sum())
    return rescaled, (
        f"'{name}': variance preserved; {plural(cells, 'cell lies', 'cells lie')} outside the original range",
    )


def _round(attribute: NumericAttribute, values: Floats) -> Floats:
    column = attribute.bound.column
    if column.storage is Storage.TIMESTAMP:
        return np.asarray(np.round(values * SECONDS_PER_DAY) / SECONDS_PER_DAY)
    decimals = column.decimals if attribute.bound.kind is Kind.CONTINUOUS else 0
    return values if decimals is None else np.round(values, decimals) + 0.0  # and no -0


def numbers_to_arrow(attribute: NumericAttribute, values: Floats, *, exact: bool) -> Any:
    """Convert values to an array of integers, numbers, dates or times; `exact` keeps every digit."""
    null, storage = np.isnan(values), attribute.bound.column.storage
    if attribute.bound.kind is Kind.DATE:
        micros = np.round(np.where(null, 0, values) * SECONDS_PER_DAY * 1e6).astype(np.int64)
        times = pa.array(micros, pa.timestamp("us"), mask=null)
        return times if storage is Storage.TIMESTAMP or exact else times.cast(pa.date32())
    if storage is Storage.INTEGER and not exact:
        return pa.array(np.where(null, 0, values).astype(np.int64), mask=null)
    return pa.array(values, mask=null)
