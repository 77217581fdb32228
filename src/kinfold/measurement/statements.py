"""Statements: what a released label says about a value.

A label of a hierarchy stands at a level and covers the values under it; a range `[low, high]` covers the values inside
it; a value covers itself; `*` covers everything. A column without a hierarchy has two levels: the value, and more.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.covering import leaves_of
from kinfold.encoding import Coded, Measured, as_text
from kinfold.hierarchy import TOP, Hierarchy
from kinfold.measurement.pairing import PairedColumn

Ints: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]
RANGE = re.compile(r"\[(.+), (.+)\]", re.DOTALL)


@dataclass(frozen=True, eq=False)
class Statements:
    """Of each record's released value: its level of `height`, and how many of `values` it covers."""

    level: Ints
    height: int
    covered: Ints
    values: int


def statements(column: PairedColumn) -> Statements:
    """Return what the release says in each cell of a generalized column; a record left out is at the top."""
    domain = values_of(column)
    if column.place is None:  # still numbers: nothing was generalized
        level = np.zeros(len(column.before), np.int64)
        return Statements(level, _height(column), level + 1, len(domain))
    height = _height(column)
    told = [_told(label, column.attribute.hierarchy, domain) for label in column.labels]
    level = np.array([*(at for at, _ in told), height, 0], np.int64)  # -2 left out, -1 null: a value by itself
    covered = np.array([*(count for _, count in told), len(domain), 1], np.int64)
    return Statements(level[column.place], height, covered[column.place], len(domain))


def _height(column: PairedColumn) -> int:
    return column.attribute.hierarchy.height if column.attribute.hierarchy is not None else 1


def values_of(column: PairedColumn) -> list[str]:
    """Return the values that a column can hold, in order: of its hierarchy, its scale, or the original itself."""
    attribute = column.attribute
    if attribute.hierarchy is not None:
        return [str(value) for value in attribute.hierarchy.values]
    if isinstance(attribute, Coded):
        return [str(text) for text in attribute.texts[:-1]]
    distinct = np.unique(attribute.numbers[~attribute.null])
    return [as_text(attribute.bound, float(number)) for number in distinct]


def _told(label: str, hierarchy: Hierarchy | None, domain: list[str]) -> tuple[int, int]:
    if hierarchy is not None:
        rows, levels = np.nonzero(hierarchy.labels == label)
        if not len(rows):
            return hierarchy.height, len(domain)
        first = levels.argmin()
        return int(levels[first]), int(hierarchy.leaves[rows[first], levels[first]])
    inside = covers(label, domain)
    count = int(inside.sum())
    return (0 if count == 1 and label != TOP else 1), max(count, 1)


def covers(label: str, domain: list[str]) -> Flags:
    """Mark the values of an ordered domain that a label without a hierarchy covers."""
    if label == TOP:
        return np.ones(len(domain), np.bool_)
    found = RANGE.fullmatch(label)
    low, high = found.groups() if found else (label, label)
    inside = np.zeros(len(domain), np.bool_)
    if low in domain and high in domain:
        inside[domain.index(low) : domain.index(high) + 1] = True
    return inside


def gaps(column: PairedColumn) -> NDArray[np.float64]:
    """Squared distance of each original code to each released label, and to null: 0 where the label covers the value.

    Elsewhere it is that of the nearest value that the label covers. Those stand side by side on the scale, and gaps
    only grow away from them, so the nearest is one of the two ends.
    """
    attribute = column.attribute
    assert isinstance(attribute, Coded)  # noqa: S101  numbers have no table
    known = {text: code for code, text in enumerate(attribute.texts[:-1])}
    domain = [str(text) for text in attribute.texts[:-1]]
    rows = [
        attribute.scale.gaps(known[label]) if label in known else _nearest(label, attribute, domain)
        for label in column.labels
    ]
    return np.column_stack([*rows, attribute.scale.gaps(attribute.null_code)])


def _nearest(label: str, attribute: Coded, domain: list[str]) -> NDArray[np.float64]:
    if label == TOP:
        return np.zeros(attribute.scale.codes)
    if attribute.hierarchy is not None and attribute.leaf is not None:
        under = (attribute.hierarchy.labels == label).any(axis=1)[attribute.leaf[:-1]]
    else:
        under = covers(label, domain)
    inside = np.flatnonzero(under)
    if not len(inside):
        return np.full(attribute.scale.codes, attribute.scale.weight)
    found = np.minimum(attribute.scale.gaps(int(inside[0])), attribute.scale.gaps(int(inside[-1])))
    found[inside] = 0.0
    return found


def middles(column: PairedColumn) -> NDArray[np.float64]:
    """Return the middle of what each label of a generalized number covers: where an attacker would look."""
    attribute = column.attribute
    assert isinstance(attribute, Measured)  # noqa: S101  codes have no middle
    known = attribute.numbers[~attribute.null]
    if attribute.hierarchy is not None:
        leaf = leaves_of(attribute)
        number = np.full(len(attribute.hierarchy), np.nan)
        number[leaf[~attribute.null]] = known
        found = [number[(attribute.hierarchy.labels == label).any(axis=1)] for label in column.labels]
    else:
        distinct, domain = np.unique(known), values_of(column)
        found = [distinct[covers(label, domain)] for label in column.labels]
    return np.array([_middle(values, known) for values in found])


def _middle(values: NDArray[np.float64], known: NDArray[np.float64]) -> float:
    there = values[~np.isnan(values)]
    return float((there.min() + there.max()) / 2) if len(there) else float(known.mean())
