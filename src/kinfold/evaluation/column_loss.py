"""What each column lost: its loss from 0 to 1, and the share of its cells that changed.

A cell of the release is a number, a category, a statement (a label of a hierarchy, a range), `*`, or nothing at all;
one column may hold several of these. Formulas: `measures.overall`. What a label says is looked up once for each pair
of an original value and a label that occur together.

    number               squared error in units of the column's variance
    category             0 or 1; Eq. (1) of Domingo-Ferrer & Torra 2005 (ordinal); the distance in the hierarchy
    statement            values covered: of numbers those that occur in the column, else those of the hierarchy or order
    * and left out       1, whatever the column holds
    null                 one more value: 0 where it was null, else 1

A statement that is not true of the value is wrong: 1, and so is a label that nobody knows.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.evaluation.label_coverage import Spans, own_places, spans_of
from kinfold.evaluation.pairing import PairedColumn
from kinfold.evaluation.value_transitions import Meetings, met
from kinfold.hierarchy import TOP
from kinfold.measures.overall import WeighedColumn, lost_numbers, lost_statements, squared_errors
from kinfold.request.encoding import Coded, Measured
from kinfold.request.exact_values import SECONDS
from kinfold.rows.schema import Kind

Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]
Ints: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class ColumnLoss:
    """What one column lost, 0 to 1, and the share of its cells that are not as they were."""

    lost: float
    changed: float


def column_loss(column: PairedColumn, weight: Ints | None = None) -> ColumnLoss:
    """Measure one column of a pair of tables; `weight` is how many records each row stands for."""
    records = np.ones(len(column.kept), np.int64) if weight is None else weight
    if isinstance(column.attribute, Coded):
        return _categories(column, column.attribute, records)
    measured = _numbers if column.numbers is not None else _statements
    return measured(column, column.attribute, records)


def _numbers(column: PairedColumn, attribute: Measured, records: Ints) -> ColumnLoss:
    x, y = attribute.numbers, column.numbers
    assert y is not None  # noqa: S101  told apart by the caller
    same = column.kept & ((x == y) | (np.isnan(x) & np.isnan(y)))
    return ColumnLoss(lost_numbers(x, y, column.kept, records), float(records[~same].sum() / records.sum()))


def _categories(column: PairedColumn, attribute: Coded, records: Ints) -> ColumnLoss:
    null, spans = attribute.null_code, spans_of(column)
    pairs = met(attribute.codes, column, records)
    code = {text: number for number, text in enumerate(attribute.texts[:-1])}
    category = np.array([*(code.get(label, -1) for label in column.labels), -1, null], np.int64)[pairs.label]
    leaf = pairs.value if attribute.leaf is None else attribute.leaf[pairs.value].astype(np.int64)
    lost = _stated(column, spans, pairs, leaf, (spans.stop - spans.start, spans.values))
    lost[pairs.value == null] = 1.0
    told = category >= 0
    lost[told] = attribute.scale.apart(pairs.value[told], category[told])
    return _mean(pairs, lost, same=category == pairs.value)


def _statements(column: PairedColumn, attribute: Measured, records: Ints) -> ColumnLoss:
    """Measure numbers that were released as statements, be it that some cells are numbers still."""
    own, spans, null = own_places(column), spans_of(column), attribute.null
    pairs = met(own, column, records)
    present = np.concatenate([[0], np.cumsum(np.bincount(own[~null], minlength=spans.values) > 0)])
    lost = _stated(column, spans, pairs, pairs.value, (present[spans.stop] - present[spans.start], int(present[-1])))
    number = np.full(spans.values + 1, np.nan)
    number[own[~null]] = attribute.numbers[~null]
    x, y = number[pairs.value], _told_numbers(column, spans, number)[pairs.label]
    both = ~np.isnan(x) & ~np.isnan(y)
    known = WeighedColumn(attribute.numbers[~null], records[~null].astype(np.float64))
    lost[both] = squared_errors(x[both], y[both], known)
    unfilled = pairs.value == spans.values
    lost[unfilled] = 1.0
    lost[unfilled & (pairs.label == -1)] = 0.0
    return _mean(pairs, lost, same=(x == y) | (unfilled & (pairs.label == -1)))


def _stated(column: PairedColumn, spans: Spans, met: Meetings, place: Ints, covers: tuple[Ints, int]) -> Floats:
    """Loss of each pair by how many of all values its label covers; null, `*` and what is left out cover nothing."""
    covered, values = covers
    start, stop = np.append(spans.start, [0, 0]), np.append(spans.stop, [0, 0])
    true = (start[met.label] <= place) & (place < stop[met.label])
    plain = np.array([label != TOP for label in column.labels] + [False, False])
    known = np.append(spans.known, [False, False])
    return lost_statements(np.append(covered, [0, 0])[met.label], values, true & (plain & known)[met.label])


def _told_numbers(column: PairedColumn, spans: Spans, number: Floats) -> Floats:
    """Return the number that each label is, NaN where it is a statement; after the labels left out and null."""
    kind, value = column.attribute.bound.kind, (spans.level == 0) & spans.known
    told = [
        number[start] if is_value else np.nan if known or label == TOP else _parsed(label, kind)
        for label, start, is_value, known in zip(column.labels, spans.start, value, spans.known, strict=True)
    ]
    return np.array([*told, np.nan, np.nan])


def _parsed(label: str, kind: Kind) -> float:
    """Return a label that is a number or a date which the original does not hold, NaN for any other text."""
    try:
        read = float(label) if kind is Kind.CONTINUOUS else _days(label)
    except (ValueError, OverflowError):
        return np.nan
    return read if np.isfinite(read) else np.nan


def _days(label: str) -> float:
    moment = datetime.fromisoformat(label)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() / SECONDS


def _mean(met: Meetings, lost: Floats, same: Flags) -> ColumnLoss:
    records = int(met.records.sum())
    changed = float(met.records[~same].sum()) / records
    return ColumnLoss(min(1.0, float((lost * met.records).sum()) / records), changed)
