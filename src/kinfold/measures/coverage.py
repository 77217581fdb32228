"""Coverage: which original values a released label covers.

The values of a column have one order: that of its hierarchy, of its scale, or by size. Every label covers a span of
them:

    a value                      itself
    a label of a hierarchy       the values under it
    a range [low, high]          the values inside it
    * or an unknown label        all values

A column without a hierarchy has two levels: the value, and everything else. Null is one more value, covered by itself
and by *. Null in place of another value covers all, like *. Cost: one look-up for each distinct label.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from kinfold.hierarchies import TOP, Hierarchy
from kinfold.measures.formulas.arrays import Flags, Floats, Ints, NotApplicable
from kinfold.measures.formulas.categorical_loss import MAX_DENSE_COUNTS
from kinfold.measures.pairing import LEFT_OUT, PairedColumn
from kinfold.policy.encoding import CategoricalAttribute, NumericAttribute, format_value, get_leaves
from kinfold.tables.points import Scale

RANGE_PATTERN = re.compile(r"\[(.+), (.+)\]", re.DOTALL)


@dataclass(frozen=True, eq=False)
class Transitions:
    """The pairs of an original value and a released label that occur, each with its number of records."""

    value: Ints
    label: Ints  # -1 null, -2 left out
    records: Ints


def count_transitions(value: NDArray[Any], column: PairedColumn, records: Ints | None) -> Transitions:
    """Count the pairs of original values, numbered from 0, and labels of a column."""
    place = column.place if column.place is not None else np.where(column.kept, 0, LEFT_OUT)
    width = len(column.labels) - LEFT_OUT + (column.place is None)
    pairs = value.astype(np.int64) * width
    pairs += place - LEFT_OUT
    size = (int(value.max(initial=0)) + 1) * width
    if size <= MAX_DENSE_COUNTS:
        counts = np.bincount(pairs, records, size)
        distinct = np.flatnonzero(counts)
        counts = counts[distinct]
    else:
        distinct, inverse = np.unique(pairs, return_inverse=True)
        counts = np.bincount(inverse, records, len(distinct))
    return Transitions(distinct // width, distinct % width + LEFT_OUT, counts.astype(np.int64))


@dataclass(frozen=True, eq=False)
class LabelSpans:
    """The level of each label of a column, and the start and stop of the span of values that it covers."""

    level: Ints
    start: Ints
    stop: Ints
    height: int
    values: int
    known: Flags  # False: an unknown label


class Coverage(NamedTuple):
    """The mean level of the cells of a column, of `height`, and the mean number of values covered, of `values`."""

    level: float
    height: int
    covered: float
    values: int


def compute_coverage(column: PairedColumn, weight: Ints | None = None) -> Coverage:
    """Return the mean level and coverage of a generalized column; a dropped record is at the top.

    `weight` is the number of records of each row, 1 by default.
    """
    spans, places = find_spans(column), find_places(column)
    if column.place is None:  # still numbers: some values or records may be missing
        assert column.numbers is not None  # noqa: S101  a column has numbers or labels
        released = column.kept & ~(np.isnan(column.numbers) & (places < spans.values))
        level, covered, records = np.where(released, 0, spans.height), np.where(released, 1, spans.values), weight
    else:
        pairs = count_transitions(places, column, weight)
        blank = (pairs.label == -1) & (pairs.value < spans.values)  # null in place of a value
        at = np.where(blank, LEFT_OUT, pairs.label)
        level = np.append(spans.level, [spans.height, 0])[at]  # after the labels: left out, null
        covered = np.append(spans.stop - spans.start, [spans.values, 1])[at]
        records = pairs.records
    # A column in which every value is missing has no value to cover: its null counts as the only one.
    means = (float(np.average(each, weights=records)) for each in (level, np.maximum(covered, 1)))
    return Coverage(next(means), spans.height, next(means), max(spans.values, 1))


_spans_by_column: WeakKeyDictionary[PairedColumn, LabelSpans] = WeakKeyDictionary()  # shared by several measures


def find_spans(column: PairedColumn) -> LabelSpans:
    """Return the spans of the labels of a column, computed once."""
    if column not in _spans_by_column:
        _spans_by_column[column] = _compute_spans(column)
    return _spans_by_column[column]


def _compute_spans(column: PairedColumn) -> LabelSpans:
    values, hierarchy = _list_values(column), column.attribute.hierarchy
    height = 1 if hierarchy is None else hierarchy.height
    if hierarchy is not None:
        spans_by_label = _list_label_spans(hierarchy)
        spans = [spans_by_label.get(label) for label in column.labels]
    else:
        place = {value: i for i, value in enumerate(values)}
        spans = [_find_span(label, place) for label in column.labels]
    filled = np.array([span or (height, 0, len(values)) for span in spans], np.int64).reshape(-1, 3)
    known = np.array([span is not None for span in spans], np.bool_)
    return LabelSpans(filled[:, 0], filled[:, 1], filled[:, 2], height, len(values), known)


def require_known_labels(columns: Sequence[PairedColumn]) -> None:
    """Raise if the policy does not explain some labels: an attack that ignores them would look too weak."""
    unknown = []
    for column in columns:
        explained = {TOP, *(column.attribute.bound.request.map or {}).values()}
        spans = find_spans(column) if column.place is not None else None
        labels = zip(column.labels, spans.known, strict=True) if spans is not None else ()
        if any(not known and label not in explained for label, known in labels):
            unknown.append(f"'{column.name}'")
    if unknown:
        what = f"the policy does not explain the released labels of {', '.join(unknown)}"
        raise NotApplicable(f"{what}: give the policy of the release, with its hierarchies")


def find_places(column: PairedColumn) -> Ints:
    """Return the place of each original value among the values of its column; null comes last."""
    if column.attribute.hierarchy is None:
        places, values = column.before, len(_list_values(column))
    else:
        places, values = get_leaves(column.attribute).astype(np.int64), len(column.attribute.hierarchy)
    return np.where(places < 0, values, places)


def _list_values(column: PairedColumn) -> list[str]:
    attribute = column.attribute
    if attribute.hierarchy is not None:
        return [str(value) for value in attribute.hierarchy.values]
    if isinstance(attribute, CategoricalAttribute):
        return [str(text) for text in attribute.texts[:-1]]
    if attribute.exact is not None:
        return [str(text) for text in attribute.exact.texts]
    distinct = np.unique(attribute.numbers[~attribute.null])
    return [format_value(attribute.bound, float(number)) for number in distinct]


def _list_label_spans(hierarchy: Hierarchy) -> dict[str, tuple[int, int, int]]:
    """Return level, start and stop of every label at its lowest level; subtrees are contiguous."""
    spans: dict[str, tuple[int, int, int]] = {}
    for level in range(hierarchy.height + 1):
        column = hierarchy.labels[:, level]
        starts = np.flatnonzero(np.append(True, hierarchy.paths[1:, level] != hierarchy.paths[:-1, level]))
        for start, stop in zip(starts, [*starts[1:], len(column)], strict=True):
            spans.setdefault(str(column[start]), (level, int(start), int(stop)))
    return spans


def _find_span(label: str, place: dict[str, int]) -> tuple[int, int, int] | None:
    if label == TOP:
        return None
    if label in place:
        return 0, place[label], place[label] + 1
    match = RANGE_PATTERN.fullmatch(label)
    low, high = match.groups() if match else (TOP, TOP)
    return (1, place[low], place[high] + 1) if low in place and high in place else None


def compute_gaps(column: PairedColumn) -> Floats:
    """Return the squared distance of each original code to the nearest value that each label covers.

    It is 0 if the label covers the code. The last column is null, which covers all if cells are suppressed.
    """
    attribute = column.attribute
    assert isinstance(attribute, CategoricalAttribute)  # noqa: S101  numbers have no table
    spans = find_spans(column)
    leaf = np.arange(attribute.null_code) if attribute.leaf_of_code is None else attribute.leaf_of_code[:-1]
    rows = []
    for label, start, stop in zip(column.labels, spans.start, spans.stop, strict=True):
        inside = np.flatnonzero((leaf >= start) & (leaf < stop))
        rows.append(np.zeros(attribute.scale.codes) if label == TOP else _nearest_gaps(attribute.scale, inside))
    empty = attribute.scale.squared_distances(attribute.null_code)
    return np.column_stack([*rows, np.zeros_like(empty) if attribute.bound.suppressed else empty])


def _nearest_gaps(scale: Scale, inside: Ints) -> Floats:
    """Return the squared distance of each code to the nearest of some codes; of a span, one of its ends is nearest."""
    if not len(inside):
        return np.full(scale.codes, scale.weight)
    is_span = inside[-1] - inside[0] + 1 == len(inside)
    ends = inside[[0, -1]] if is_span else inside
    gaps = np.minimum.reduce([scale.squared_distances(int(code)) for code in ends])
    gaps[inside] = 0.0
    return np.asarray(gaps, np.float64)


def find_extents(column: PairedColumn) -> tuple[Floats, Floats]:
    """Return the smallest and the largest number that each label of a generalized column covers."""
    attribute = column.attribute
    assert isinstance(attribute, NumericAttribute)  # noqa: S101  codes have no extent
    known, spans = attribute.numbers[~attribute.null], find_spans(column)
    number = np.full(spans.values, np.nan)
    number[find_places(column)[~attribute.null]] = known
    if attribute.hierarchy is None:  # values are in ascending order
        return number[spans.start], number[spans.stop - 1]
    covered = [number[start:stop] for start, stop in zip(spans.start, spans.stop, strict=True)]
    present = [known if np.isnan(values).all() else values for values in covered]
    return np.array([np.nanmin(values) for values in present]), np.array([np.nanmax(values) for values in present])


def get_released_numbers(column: PairedColumn) -> Floats:
    """Return the released numbers of a column; of labels the middle of the numbers that they cover, else NaN."""
    if column.numbers is not None:
        return column.numbers
    assert column.place is not None  # noqa: S101  a column has numbers or labels
    low, high = find_extents(column)
    return np.asarray(np.append(low + (high - low) / 2, [np.nan, np.nan])[column.place], np.float64)
