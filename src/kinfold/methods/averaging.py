"""Averaging: from an attribute and the classes of its records to the values that are released.

The policy's `average` chooses the operator (see `aggregate`), `output.round` whether averages keep the decimals that
the column had, `output.preserve = "variance"` the rescaling of Domingo-Ferrer & Torra 2005, section 5.2:

    (x - mean of the averages) · (deviation of the original / deviation of the averages) + mean of the original

which moves values but no record to another class. Where the averages do not vary it is undefined: left out, and said.

An average is in the range of its class. Numbers with more digits than a double holds are averaged as whole numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinfold.errors import DataError, plural
from kinfold.methods import aggregate
from kinfold.methods.aggregate import Floats, Labels
from kinfold.methods.covering import covering
from kinfold.request.encoding import DIGITS, Attribute, Coded, Measured
from kinfold.request.exact_values import SECONDS
from kinfold.request.policy import Output
from kinfold.rows.recoding import Replace
from kinfold.rows.schema import Kind, Storage

MORE_DECIMALS = 6  # of averages that are not rounded, where doubles do not hold them


@dataclass(frozen=True, eq=False)
class Averaged:
    """What replaces a column, and what there is to say about it."""

    replace: Replace
    notes: tuple[str, ...] = ()


def averaged(attribute: Attribute, labels: Labels, output: Output) -> Averaged:
    """Return the value of each class of one attribute."""
    if attribute.bound.average == "generalize":
        return Averaged(Replace(pa.array(covering(attribute, labels), pa.string()), as_stored=False))
    if isinstance(attribute, Coded):
        codes = _central(attribute, labels)
        notes = blanks_told(attribute, codes[labels]) if attribute.bound.suppressed else ()
        return Averaged(Replace(pa.array(attribute.texts[codes], pa.string())), notes)
    return _measured(attribute, labels, output)


def blanks_told(attribute: Coded, released: NDArray[np.integer[Any]]) -> tuple[str, ...]:
    """Say how many cells of a column were suppressed, given what is released of each record."""
    null, records = attribute.null_code, len(released)
    cells = int(((released == null) & (attribute.codes != null)).sum())
    if not cells:
        return ()
    return (f"'{attribute.bound.name}': {cells:,} of {records:,} cells were suppressed ({cells / records:.1%})",)


def _central(attribute: Coded, labels: Labels) -> NDArray[np.int32]:
    codes, null = attribute.codes, attribute.null_code
    if attribute.bound.suppressed:
        return aggregate.shared(codes, labels, null)
    if attribute.bound.average == "median":
        return aggregate.ordinal_median(codes, labels, null)
    if attribute.bound.average == "convex-median":
        return aggregate.convex_median(codes, labels, null)
    return aggregate.mode(codes, labels, None if attribute.bound.kind is Kind.ORDINAL else _text_rank(attribute))


def _text_rank(attribute: Coded) -> NDArray[np.intp]:
    """Place of each code in the order of its text; null comes last."""
    order = sorted(range(attribute.null_code), key=lambda code: attribute.texts[code])
    return np.argsort([*order, attribute.null_code])


def _measured(attribute: Measured, labels: Labels, output: Output) -> Averaged:
    if attribute.is_long and output.preserve != "variance":
        return _exactly(attribute, labels, output)
    missing = np.bincount(labels, attribute.null) > 0  # a class has one null pattern, so all of it or none
    filled = np.where(attribute.null, 0.0, attribute.numbers)
    operator = aggregate.mean if attribute.bound.average == "mean" else aggregate.median
    values = np.clip(operator(filled, labels), *(low_high := aggregate.extremes(filled, labels)))
    notes: tuple[str, ...] = ()
    if output.preserve == "variance":
        values, notes = _rescaled(attribute, values, labels, missing)
    values = np.where(missing, np.nan, values)
    if not output.round:
        return Averaged(Replace(as_arrow(attribute, values, exact=True), as_stored=False), notes)
    # Small integer types hold every average, but not every rescaled one.
    fits = attribute.bound.column.storage is not Storage.INTEGER or not notes
    rounded = _rounded(attribute, values)
    rounded = rounded if notes else np.clip(rounded, *low_high)
    return Averaged(Replace(as_arrow(attribute, rounded, exact=False), as_stored=fits), notes)


def _exactly(attribute: Measured, labels: Labels, output: Output) -> Averaged:
    """Average numbers that doubles do not hold."""
    if attribute.units is None:
        what = f"column '{attribute.bound.name}' holds numbers of more digits than can be averaged exactly"
        raise DataError(what, fix='give it in larger units, or say type = "nominal"')
    more = 0 if output.round else MORE_DECIMALS
    operator = aggregate.exact_mean if attribute.bound.average == "mean" else aggregate.exact_median
    values = operator(attribute.units * 10**more, labels)
    missing = np.bincount(labels, attribute.null) > 0
    return Averaged(Replace(exact_arrow(attribute, values, missing, more), as_stored=not more))


def exact_arrow(attribute: Measured, values: NDArray[Any], missing: NDArray[np.bool_], more: int = 0) -> Any:
    """Return whole numbers of the last decimal as numbers; `more` decimals than the column has."""
    if attribute.bound.column.storage is Storage.INTEGER and not more:
        return pa.array(np.where(missing, 0, values).astype(np.int64), mask=missing)
    shift, context = (attribute.bound.column.decimals or 0) + more, Context(prec=2 * DIGITS)
    held = [None if gone else Decimal(int(v)).scaleb(-shift, context) for v, gone in zip(values, missing, strict=True)]
    try:
        return pa.array(held, pa.decimal128(DIGITS, shift))
    except pa.ArrowInvalid:  # whose message quotes a value
        what = f"column '{attribute.bound.name}' holds numbers of more digits than can be averaged exactly"
        raise DataError(what, fix='give it in larger units, or say type = "nominal"') from None


def _rescaled(
    attribute: Measured, values: Floats, labels: Labels, missing: NDArray[np.bool_]
) -> tuple[Floats, tuple[str, ...]]:
    name, there = attribute.bound.name, ~attribute.null
    released, original = values[labels[there]], attribute.numbers[there]
    if not len(released) or released.std() == 0:
        return values, (f"'{name}': the averages do not vary, so their variance was left as it is",)
    stretched = (values - released.mean()) * (original.std() / released.std()) + original.mean()
    outside = (stretched < original.min()) | (stretched > original.max())
    cells = int(np.bincount(labels)[outside & ~missing].sum())
    return stretched, (
        f"'{name}': variance preserved; {plural(cells, 'cell lies', 'cells lie')} outside the original range",
    )


def _rounded(attribute: Measured, values: Floats) -> Floats:
    column = attribute.bound.column
    if column.storage is Storage.TIMESTAMP:
        return np.asarray(np.round(values * SECONDS) / SECONDS)
    decimals = column.decimals if attribute.bound.kind is Kind.CONTINUOUS else 0
    return values if decimals is None else np.round(values, decimals) + 0.0  # and no -0


def as_arrow(attribute: Measured, values: Floats, *, exact: bool) -> Any:
    """Return values as integers, numbers, dates or times; `exact` ones keep every digit."""
    null, storage = np.isnan(values), attribute.bound.column.storage
    if attribute.bound.kind is Kind.DATE:
        micros = np.round(np.where(null, 0, values) * SECONDS * 1e6).astype(np.int64)
        times = pa.array(micros, pa.timestamp("us"), mask=null)
        return times if storage is Storage.TIMESTAMP or exact else times.cast(pa.date32())
    if storage is Storage.INTEGER and not exact:
        return pa.array(np.where(null, 0, values).astype(np.int64), mask=null)
    return pa.array(values, mask=null)
