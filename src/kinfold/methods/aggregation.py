"""Aggregation: the value that replaces an attribute in each class.

The policy's `average` chooses the function:

    mean            continuous and date; it preserves the means of the table
    median          the value in the middle of the class; the lower of two
    convex median   Definition 5.3 of Domingo-Ferrer & Torra 2005: the median after raising the frequency of each
                    category to the lower of the highest frequencies on its two sides, over the full scale
    mode            the most frequent value; ties go to the first in the order
    shares          a value of the class, so that the share of each category in the table stays as it was
    suppress        the value that all records of the class share, else null
    generalize      the lowest common ancestor in the hierarchy; without one, the range of the class

Each function takes values and labels (0 to m - 1, all used) and returns one value for each class. Null is a value: it
can be the mode. A median is null if more than half of the class is null, else the median of the others.

With `output.weighted`, each record counts as many times as its sampling weight, a whole number of the last decimal; the
weighted total of the table stays as it was. Shares have no weights.

`output.round` says whether averages keep the decimals of the column. `output.preserve = "variance"` rescales them
(Domingo-Ferrer & Torra 2005, section 5.2):

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
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinfold.errors import DataError, plural
from kinfold.hierarchies import TOP
from kinfold.policy.binding import BoundColumn
from kinfold.policy.encoding import (
    Attribute,
    CategoricalAttribute,
    NumericAttribute,
    format_value,
    get_leaves,
)
from kinfold.policy.exact_values import doubles_suffice, is_zoned
from kinfold.policy.model import Output
from kinfold.tables.points import Codes, Floats, Labels
from kinfold.tables.recoding import Replace
from kinfold.tables.schema import MAX_DECIMAL_DIGITS, SECONDS_PER_DAY, Kind, Storage

EXTRA_DECIMALS = 6  # of averages that are not rounded, if doubles do not hold them
LARGER_UNITS = 'give the values in larger units, or set type = "nominal"'
NO_VALUE = -1  # the code of a missing value
Weights: TypeAlias = NDArray[np.int64]  # how many times each record counts
MAX_SHARE_PASSES = 20  # over the classes; each brings the shares closer, and most tables need three
CELLS_AT_A_TIME = 1 << 22  # of frequencies


def mean(numbers: Floats, labels: Labels, weights: Weights | None = None) -> Floats:
    """Return the mean of each class.

    >>> mean(np.array([1.0, 3.0, 7.0]), np.array([0, 0, 1])).tolist()
    [2.0, 7.0]
    >>> mean(np.array([1.0, 3.0, 7.0]), np.array([0, 0, 1]), np.array([3, 1, 5])).tolist()
    [1.5, 7.0]
    """
    middle = numbers.mean()  # differences from it lose fewer digits
    gaps = numbers - middle if weights is None else (numbers - middle) * weights
    return np.asarray(middle + np.bincount(labels, gaps) / np.bincount(labels, weights), np.float64)


def median(numbers: Floats, labels: Labels, weights: Weights | None = None) -> Floats:
    """Return the lower median of each class.

    >>> median(np.array([1.0, 9.0, 3.0, 4.0]), np.array([0, 0, 0, 1])).tolist()
    [3.0, 4.0]
    >>> median(np.array([1.0, 9.0, 3.0, 4.0]), np.array([0, 0, 0, 1]), np.array([1, 3, 1, 1])).tolist()
    [9.0, 4.0]
    """
    order = np.lexsort((numbers, labels))
    return np.asarray(numbers[order][_find_middles(order, labels, _count_weights(labels, weights), weights)])


def _count_weights(labels: Labels, weights: Weights | None) -> Weights:
    """Return the records of each class, or their weight; sums of whole numbers below 2^53 are exact."""
    return np.bincount(labels, weights).astype(np.int64)


def _find_middles(
    order: NDArray[np.intp], labels: Labels, present: Weights, weights: Weights | None
) -> NDArray[np.intp]:
    """Return the place of the lower median of each class in the order; its first records have the `present` weight."""
    totals = _count_weights(labels, weights)
    upto = np.arange(1, len(order) + 1) if weights is None else np.cumsum(weights[order])
    return np.searchsorted(upto, np.cumsum(totals) - totals + (present + 1) // 2)


def exact_mean(numbers: NDArray[np.object_], labels: Labels, weights: Weights | None = None) -> NDArray[np.object_]:
    """Return the mean of whole numbers of any size, rounded to the nearest whole number, halves to even.

    >>> exact_mean(np.array([2**62 + 1, 2**62 + 3, 5], object), np.array([0, 0, 1])).tolist()
    [4611686018427387906, 5]
    """
    order, sizes = np.argsort(labels, kind="stable"), np.bincount(labels)
    times = np.ones(len(labels), object) if weights is None else weights.astype(object)
    starts = np.cumsum(sizes) - sizes
    sums, counts = (np.add.reduceat(each[order], starts) for each in (numbers * times, times))
    return np.array([round(Fraction(total, count)) for total, count in zip(sums, counts, strict=True)], object)


def exact_median(numbers: NDArray[np.object_], labels: Labels, weights: Weights | None = None) -> NDArray[np.object_]:
    """Return the lower median of whole numbers of any size.

    >>> exact_median(np.array([2**62 + 3, 2**62 + 1, 5], object), np.array([0, 0, 1])).tolist()
    [4611686018427387905, 5]
    """
    values, places = np.unique(numbers, return_inverse=True)
    return np.asarray(values[median(places.astype(np.float64), labels, weights).astype(np.intp)])


def ordinal_median(codes: Codes, labels: Labels, null: int, weights: Weights | None = None) -> Codes:
    """Return the lower median of the codes of each class; null if more than half are.

    The median of {1, 2, 2, 5, 6} on the scale 0..7 (Domingo-Ferrer & Torra 2005, after Definition 5.2):

    >>> ordinal_median(np.array([1, 2, 2, 5, 6]), np.zeros(5, int), null=8).tolist()
    [2]
    """
    times = np.ones(len(codes), np.int64) if weights is None else weights
    totals, present = (_count_weights(labels, each) for each in (times, np.where(codes == null, 0, times)))
    order = np.lexsort((codes, labels))  # null is the last code
    middle = codes[order][_find_middles(order, labels, present, weights)]
    return np.where(2 * present < totals, null, middle).astype(np.int32)


def convex_median(codes: Codes, labels: Labels, null: int, weights: Weights | None = None) -> Codes:
    """Return the convex median of the codes of each class on the scale 0 to null - 1; null if more than half are.

    Examples after Definition 5.3 of Domingo-Ferrer & Torra 2005, on the scale 0..7:

    >>> convex_median(np.array([1, 2, 7]), np.zeros(3, int), null=8).tolist()
    [4]
    >>> convex_median(np.array([1, 2, 2, 5, 6]), np.zeros(5, int), null=8).tolist()
    [3]
    """
    classes, step = int(labels.max()) + 1, max(CELLS_AT_A_TIME // (null + 1), 1)
    times = np.ones(len(codes), np.int64) if weights is None else weights
    starts = range(0, classes, step)
    parts = [_convex_medians(codes, labels, null, times, range(low, min(low + step, classes))) for low in starts]
    return np.concatenate(parts)


def _convex_medians(codes: Codes, labels: Labels, null: int, weights: Weights, classes: range) -> Codes:
    chosen = (labels >= classes.start) & (labels < classes.stop)
    cell = (labels[chosen] - classes.start).astype(np.int64) * (null + 1) + codes[chosen]
    frequency = np.bincount(cell, weights[chosen], len(classes) * (null + 1)).astype(np.int64)
    frequency = frequency.reshape(len(classes), null + 1)
    present, missing = frequency[:, :null], frequency[:, null]
    left = np.maximum.accumulate(present, axis=1)
    right = np.maximum.accumulate(present[:, ::-1], axis=1)[:, ::-1]
    below = np.cumsum(np.minimum(left, right), axis=1)
    middle = (below >= (below[:, -1:] + 1) // 2).argmax(axis=1)
    return np.where(2 * missing > frequency.sum(axis=1), null, middle).astype(np.int32)


def mode(codes: Codes, labels: Labels, rank: NDArray[np.intp] | None = None, weights: Weights | None = None) -> Codes:
    """Return the most frequent code of each class. Ties go to the lowest rank, by default the code itself.

    >>> mode(np.array([2, 1, 2, 1, 0]), np.array([0, 0, 0, 0, 0])).tolist()
    [1]
    """
    width = int(codes.max()) + 1
    cell, inverse = np.unique(labels.astype(np.int64) * width + codes, return_inverse=True)
    group, code, count = cell // width, cell % width, _count_weights(inverse, weights)
    order = np.lexsort((code if rank is None else rank[code], -count, group))
    first = np.unique(group[order], return_index=True)[1]
    return np.asarray(code[order][first], np.int32)


def preserve_shares(codes: Codes, labels: Labels, rank: NDArray[np.intp] | None = None) -> Codes:
    """Return one code of each class, so that the records of each code are about as many as before.

    Starts with the modes. While it brings the table closer to the shares of the original, a class takes another of its
    codes: first where the fewest cells change, ties in the order of the classes.

    >>> preserve_shares(np.array([0, 0, 1, 0, 0, 1, 0, 0, 1]), np.array([0, 0, 0, 1, 1, 1, 2, 2, 2])).tolist()
    [1, 0, 0]
    """
    width = int(codes.max()) + 1
    cell, count = np.unique(labels.astype(np.int64) * width + codes, return_counts=True)
    group, code, sizes = cell // width, cell % width, np.bincount(labels)
    central = mode(codes, labels, rank)
    most = np.zeros(len(sizes), np.int64)
    np.maximum.at(most, group, count)
    cost = (most[group] - count) / sizes[group]
    order = np.lexsort((code if rank is None else rank[code], group, cost))
    moves = list(zip(group[order].tolist(), code[order].tolist(), strict=True))
    value, size = central.tolist(), sizes.tolist()
    excess = (np.bincount(central, sizes, width).astype(np.int64) - np.bincount(codes, minlength=width)).tolist()
    for _ in range(MAX_SHARE_PASSES):
        before = list(value)
        for c, new in moves:
            old, n = value[c], size[c]
            if old != new and abs(excess[old] - n) + abs(excess[new] + n) < abs(excess[old]) + abs(excess[new]):
                value[c] = new
                excess[old] -= n
                excess[new] += n
        if value == before:
            break
    return np.asarray(value, np.int32)


def common_ancestors(leaves: Codes, labels: Labels, paths: Codes) -> tuple[Codes, Codes]:
    """Return the lowest common ancestor of each class: a row of the hierarchy below it and its level; -1 for nulls.

    The ancestor of a class with nulls (-1) and values is the top.

    >>> paths = np.array([[0, 0, 0], [1, 0, 0], [2, 1, 0]])
    >>> [a.tolist() for a in common_ancestors(np.array([0, 1, 2, 2, -1]), np.array([0, 0, 1, 1, 2]), paths)]
    [[1, 2, -1], [1, 0, -1]]
    """
    order = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels)
    starts = np.cumsum(sizes) - sizes
    level = np.zeros(len(sizes), np.int32)
    for path in paths.T[:-1]:
        number = np.where(leaves[order] < 0, NO_VALUE, path[leaves[order]])
        level += np.minimum.reduceat(number, starts) != np.maximum.reduceat(number, starts)
    row = np.maximum.reduceat(leaves[order], starts)
    return row.astype(np.int32), np.where(row < 0, NO_VALUE, level).astype(np.int32)


def shared_value(codes: Codes, labels: Labels, null: int) -> Codes:
    """Return the code that all records of a class share; null if they differ.

    >>> shared_value(np.array([1, 1, 0, 2]), np.array([0, 0, 1, 1]), null=3).tolist()
    [1, 3]
    """
    low, high = np.full((2, int(labels.max()) + 1), null)
    np.minimum.at(low, labels, codes)
    high[:] = 0
    np.maximum.at(high, labels, codes)
    return np.where(low == high, low, null).astype(np.int32)


def value_ranges(numbers: Floats, labels: Labels) -> tuple[Floats, Floats]:
    """Return the smallest and the largest value of each class; NaN if a value is missing.

    >>> [part.tolist() for part in value_ranges(np.array([1.0, 3.0, 7.0]), np.array([0, 0, 1]))]
    [[1.0, 7.0], [3.0, 7.0]]
    """
    order = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels)
    starts = np.cumsum(sizes) - sizes
    return np.minimum.reduceat(numbers[order], starts), np.maximum.reduceat(numbers[order], starts)


def cover_classes(attribute: Attribute, labels: Labels) -> list[str | None]:
    """Return the narrowest text that is true of every record of each class."""
    if attribute.hierarchy is not None:
        rows, levels = common_ancestors(get_leaves(attribute), labels, attribute.hierarchy.paths)
        ancestors = attribute.hierarchy.labels[rows, levels]
        return [None if row < 0 else label for row, label in zip(rows, ancestors, strict=True)]
    if isinstance(attribute, NumericAttribute):
        return _cover_numbers(attribute, labels)
    numbers = np.where(attribute.codes == attribute.null_code, np.nan, attribute.codes).astype(np.float64)
    if attribute.bound.kind is Kind.ORDINAL:
        return _cover_by_range(numbers, labels, lambda code: str(attribute.texts[int(code)]))
    shared = _cover_by_range(numbers, labels, str)
    names = mode(attribute.codes, labels)
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
    lows, highs = value_ranges(np.where(np.isnan(numbers), 0.0, numbers), labels)
    return [
        (None if nulls == size else TOP) if nulls else text(low) if low == high else span(low, high)
        for low, high, nulls, size in zip(lows, highs, missing, sizes, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class ReplacedColumn:
    """The values that replace a column, and notes about them."""

    replace: Replace
    notes: tuple[str, ...] = ()


def average_column(
    attribute: Attribute, labels: Labels, output: Output, weights: Weights | None = None
) -> ReplacedColumn:
    """Return the value of each class of one attribute; `weights` are sampling weights."""
    if attribute.bound.average == "generalize":
        return ReplacedColumn(Replace(pa.array(cover_classes(attribute, labels), pa.string()), as_stored=False))
    if isinstance(attribute, CategoricalAttribute):
        codes = _central_codes(attribute, labels, weights)
        null, notes = attribute.null_code, []
        if attribute.bound.suppressed and (cells := int(((codes[labels] == null) & (attribute.codes != null)).sum())):
            share = f"{cells:,} of {len(labels):,} cells were suppressed ({cells / len(labels):.1%})"
            notes.append(f"'{attribute.bound.name}': {share}")
        return ReplacedColumn(Replace(pa.array(attribute.texts[codes], pa.string())), tuple(notes))
    return _average_numbers(attribute, labels, output, weights)


def _central_codes(attribute: CategoricalAttribute, labels: Labels, weights: Weights | None) -> Codes:
    codes, null = attribute.codes, attribute.null_code
    if attribute.bound.suppressed:
        return shared_value(codes, labels, null)
    if attribute.bound.average == "median":
        return ordinal_median(codes, labels, null, weights)
    if attribute.bound.average == "convex-median":
        return convex_median(codes, labels, null, weights)
    if attribute.bound.kind is Kind.ORDINAL:
        return mode(codes, labels, weights=weights)
    order = sorted(range(null), key=lambda code: attribute.texts[code])  # ties go to the first text; null is last
    rank = np.argsort([*order, null])
    if attribute.bound.average == "shares":
        return preserve_shares(codes, labels, rank)
    return mode(codes, labels, rank, weights)


def _average_numbers(
    attribute: NumericAttribute, labels: Labels, output: Output, weights: Weights | None
) -> ReplacedColumn:
    if attribute.is_long and output.preserve != "variance":
        return _average_exactly(attribute, labels, output, weights)
    missing = np.bincount(labels, attribute.null) > 0  # all records of a class have a null, or none
    filled = np.where(attribute.null, 0.0, attribute.numbers)
    operator = mean if attribute.bound.average == "mean" else median
    values = np.clip(operator(filled, labels, weights), *(low_high := value_ranges(filled, labels)))
    notes: tuple[str, ...] = ()
    if output.preserve == "variance":
        values, notes = _rescale(attribute, values, labels, missing)
    values = np.where(missing, np.nan, values)
    if not output.round:
        return ReplacedColumn(Replace(numbers_to_arrow(attribute, values, exact=True), as_stored=False), notes)
    # Small integer types hold every average, but not every rescaled one.
    fits = attribute.bound.column.storage is not Storage.INTEGER or not notes
    rounded = round_to_decimals(attribute, values)
    rounded = rounded if notes else np.clip(rounded, *low_high)
    return ReplacedColumn(Replace(numbers_to_arrow(attribute, rounded, exact=False), as_stored=fits), notes)


def _average_exactly(
    attribute: NumericAttribute, labels: Labels, output: Output, weights: Weights | None
) -> ReplacedColumn:
    """Average numbers that doubles do not hold."""
    if attribute.units is None:
        what = f"column '{attribute.bound.name}' holds numbers of more digits than can be averaged exactly"
        raise DataError(what, fix=LARGER_UNITS)
    more = 0 if output.round else EXTRA_DECIMALS
    operator = exact_mean if attribute.bound.average == "mean" else exact_median
    values = operator(attribute.units * 10**more, labels, weights)
    missing = np.bincount(labels, attribute.null) > 0
    return ReplacedColumn(Replace(exact_to_arrow(attribute, values, missing, more), as_stored=not more))


def exact_to_arrow(attribute: NumericAttribute, values: NDArray[Any], missing: NDArray[np.bool_], more: int = 0) -> Any:
    """Convert whole numbers of the last decimal to an array with `more` decimals than the column has."""
    if attribute.bound.column.storage is Storage.INTEGER and not more:
        return pa.array(np.where(missing, 0, values).astype(np.int64), mask=missing)
    shift, context = (attribute.bound.column.decimals or 0) + more, Context(prec=2 * MAX_DECIMAL_DIGITS)
    exact = [None if null else Decimal(int(v)).scaleb(-shift, context) for v, null in zip(values, missing, strict=True)]
    try:
        return pa.array(exact, pa.decimal128(MAX_DECIMAL_DIGITS, shift))
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


def round_to_decimals(attribute: NumericAttribute, values: Floats) -> Floats:
    """Return values with the decimals of their column: whole numbers, days or seconds if it has such values."""
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
