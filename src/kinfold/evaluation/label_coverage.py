"""Coverage: what a released label says about a value.

The values that a column can hold stand in one order (of its hierarchy, its scale, or by size), in which every label
covers a stretch: a value itself, a label of a hierarchy the values under it, a range `[low, high]` those inside it,
`*` and a label that nobody knows all of them. A column without a hierarchy has two levels: the value, and more.
Null is a value beside the others, covered by itself and by `*`; in place of a value it says nothing, like `*`.
Cost: one look-up for each distinct label.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from kinfold.evaluation.pairing import GONE, PairedColumn
from kinfold.evaluation.value_transitions import met
from kinfold.hierarchy import TOP, Hierarchy
from kinfold.request.encoding import Coded, Measured, as_text, leaves_of
from kinfold.rows.points import Scale

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
RANGE = re.compile(r"\[(.+), (.+)\]", re.DOTALL)


@dataclass(frozen=True, eq=False)
class Spans:
    """Of each label of a column: its level, and where the stretch of values that it covers starts and stops."""

    level: Ints
    start: Ints
    stop: Ints
    height: int
    values: int
    known: NDArray[np.bool_]  # False: nobody knows what the label says


@dataclass(frozen=True, eq=False)
class Coverage:
    """What is said of values: the level of `height`, how many of `values` are covered, and how many records.

    One for each pair of an original value and a label, which `records` hold. `under` is 0 where the statement is not
    true; `held` is how many original records hold the value.
    """

    level: Ints
    height: int
    covered: Ints
    values: int
    under: Ints
    held: Ints
    records: Ints


def coverage_of(column: PairedColumn, weight: Ints | None = None) -> Coverage:
    """Return what the release says in the cells of a generalized column; a record left out is at the top.

    `weight` is how many records each row stands for.
    """
    spans = spans_of(column)
    pairs = met(_told_places(column, spans), column, weight)
    told = column.place is None  # still numbers: nothing was generalized, but values and records may be left out
    own = pairs.value // 2 if told else pairs.value
    counts = np.bincount(own, pairs.records, spans.values + 1).astype(np.int64)  # the last is null
    held, records = counts[own], int(counts.sum())
    if told:
        here = (pairs.label >= 0) & (pairs.value % 2 == 0)
        covered, level = np.where(here, 1, spans.values), np.where(here, 0, spans.height)
        under = np.where(here, held, records)
        return Coverage(level, spans.height, covered, spans.values, under, held, pairs.records)
    before = np.concatenate([[0], np.cumsum(counts[:-1])])
    under = np.where(spans.stop - spans.start == spans.values, records, before[spans.stop] - before[spans.start])
    # after the labels: -2 left out, -1 null, a value by itself
    level = np.append(spans.level, [spans.height, 0])
    covered = np.append(spans.stop - spans.start, [spans.values, 1])
    under = np.append(under, [records, counts[-1]])
    at = np.where((pairs.label == -1) & (own < spans.values), GONE, pairs.label)  # blanked: nothing is said
    start, stop = np.append(spans.start, [0, spans.values]), np.append(spans.stop, [spans.values, spans.values + 1])
    true = ((start[at] <= own) & (own < stop[at])) | (covered[at] == spans.values)
    said = np.where(true, under[at], 0)
    return Coverage(level[at], spans.height, covered[at], spans.values, said, held, pairs.records)


def _told_places(column: PairedColumn, spans: Spans) -> Ints:
    """Return where original values stand; of numbers twice that, and one more where the release has none."""
    own = own_places(column)
    if column.place is not None:
        return own
    assert column.numbers is not None  # noqa: S101  a column has numbers or labels
    return 2 * own + (np.isnan(column.numbers) & (own < spans.values))


_looked_up: WeakKeyDictionary[PairedColumn, Spans] = WeakKeyDictionary()  # several measures ask for the same


def spans_of(column: PairedColumn) -> Spans:
    """Look up every label of a column, once."""
    if column not in _looked_up:
        _looked_up[column] = _spans(column)
    return _looked_up[column]


def _spans(column: PairedColumn) -> Spans:
    known = _values_of(column)
    values, height = len(known), _height(column)
    whole = (height, 0, values)
    if column.attribute.hierarchy is not None:
        stretches = _stretches(column.attribute.hierarchy)
        found = [stretches.get(label) for label in column.labels]
    else:
        place = {value: i for i, value in enumerate(known)}
        found = [_told(label, place) for label in column.labels]
    told = [each or whole for each in found]
    level, start, stop = (np.array(part, np.int64) for part in zip(*told, strict=True)) if told else _NONE
    return Spans(level, start, stop, height, values, np.array([each is not None for each in found], np.bool_))


_NONE = (np.empty(0, np.int64),) * 3


def own_places(column: PairedColumn) -> Ints:
    """Return where each record's original value stands among the values; null stands after the last."""
    if column.attribute.hierarchy is None:
        places, values = column.before, len(_values_of(column))
    else:
        places, values = leaves_of(column.attribute).astype(np.int64), len(column.attribute.hierarchy)
    return np.where(places < 0, values, places)


def _height(column: PairedColumn) -> int:
    return column.attribute.hierarchy.height if column.attribute.hierarchy is not None else 1


def _values_of(column: PairedColumn) -> list[str]:
    attribute = column.attribute
    if attribute.hierarchy is not None:
        return [str(value) for value in attribute.hierarchy.values]
    if isinstance(attribute, Coded):
        return [str(text) for text in attribute.texts[:-1]]
    if attribute.exact is not None:
        return [str(text) for text in attribute.exact.texts]
    distinct = np.unique(attribute.numbers[~attribute.null])
    return [as_text(attribute.bound, float(number)) for number in distinct]


def _stretches(hierarchy: Hierarchy) -> dict[str, tuple[int, int, int]]:
    """Return level, start and stop of every label, at its lowest level; subtrees are contiguous."""
    found: dict[str, tuple[int, int, int]] = {}
    for level in range(hierarchy.height + 1):
        column = hierarchy.labels[:, level]
        starts = np.flatnonzero(np.append(True, hierarchy.paths[1:, level] != hierarchy.paths[:-1, level]))
        for start, stop in zip(starts, [*starts[1:], len(column)], strict=True):
            found.setdefault(str(column[start]), (level, int(start), int(stop)))
    return found


def _told(label: str, place: dict[str, int]) -> tuple[int, int, int] | None:
    if label == TOP:
        return None
    if label in place:
        return 0, place[label], place[label] + 1
    found = RANGE.fullmatch(label)
    low, high = found.groups() if found else (TOP, TOP)
    return (1, place[low], place[high] + 1) if low in place and high in place else None


def gaps(column: PairedColumn) -> Floats:
    """Squared distance of each original code to each released label: 0 where the label covers the value.

    Elsewhere it is that of the nearest value that the label covers. The last column is null, which says nothing where
    cells are suppressed.
    """
    attribute = column.attribute
    assert isinstance(attribute, Coded)  # noqa: S101  numbers have no table
    spans = spans_of(column)
    leaf = np.arange(attribute.null_code) if attribute.leaf is None else attribute.leaf[:-1]
    rows = []
    for label, start, stop in zip(column.labels, spans.start, spans.stop, strict=True):
        inside = np.flatnonzero((leaf >= start) & (leaf < stop))
        rows.append(np.zeros(attribute.scale.codes) if label == TOP else _nearest(attribute.scale, inside))
    empty = attribute.scale.gaps(attribute.null_code)
    return np.column_stack([*rows, np.zeros_like(empty) if attribute.bound.suppressed else empty])


def _nearest(scale: Scale, inside: Ints) -> Floats:
    """Gap of each code to the nearest of some codes; of a stretch that is one of its ends, for gaps only grow."""
    if not len(inside):
        return np.full(scale.codes, scale.weight)
    stretch = inside[-1] - inside[0] + 1 == len(inside)
    found = np.minimum.reduce([scale.gaps(int(code)) for code in (inside[[0, -1]] if stretch else inside)])
    found[inside] = 0.0
    return np.asarray(found, np.float64)


def extents(column: PairedColumn) -> tuple[Floats, Floats]:
    """Return the lowest and the highest number that each label of a generalized number covers."""
    attribute = column.attribute
    assert isinstance(attribute, Measured)  # noqa: S101  codes have no extent
    known, spans = attribute.numbers[~attribute.null], spans_of(column)
    number = np.full(spans.values, np.nan)
    number[own_places(column)[~attribute.null]] = known
    if attribute.hierarchy is None:  # by size: the ends of a stretch are its extremes
        return number[spans.start], number[spans.stop - 1]
    ends = [_ends(number[start:stop], known) for start, stop in zip(spans.start, spans.stop, strict=True)]
    return np.array([a for a, _ in ends]), np.array([b for _, b in ends])


def _ends(values: Floats, known: Floats) -> tuple[float, float]:
    there = values[~np.isnan(values)]
    return (float(there.min()), float(there.max())) if len(there) else (float(known.min()), float(known.max()))
