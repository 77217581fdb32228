"""Covering: the narrowest statement that is true of every record of a class.

With a hierarchy it is the lowest common ancestor. Without one it is the value itself where all records share it, else
the range `[low, high]` of a continuous, date or ordinal attribute, else `*`. Null among values is covered by `*` alone;
a class of nothing but nulls stays null.

The ends of a range are values of the class, exactly. Of a far table, whose values are known as doubles only, they are
rounded outward, to the double or second before the lowest and after the highest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from kinfold.hierarchy import TOP, Hierarchy
from kinfold.methods import aggregate
from kinfold.methods.aggregate import Codes, Floats, Labels
from kinfold.request.binding import BoundColumn
from kinfold.request.encoding import Attribute, Coded, Measured, as_text, leaves_of
from kinfold.request.exact_values import SECONDS, doubles_suffice, is_zoned
from kinfold.rows.schema import Kind


def covering(attribute: Attribute, labels: Labels) -> list[str | None]:
    """Return the statement that covers each class."""
    if attribute.hierarchy is not None:
        return _ancestors(attribute.hierarchy, leaves_of(attribute), labels)
    if isinstance(attribute, Measured):
        return _measured(attribute, labels)
    numbers = np.where(attribute.codes == attribute.null_code, np.nan, attribute.codes).astype(np.float64)
    if attribute.bound.kind is Kind.ORDINAL:
        return _ranges(numbers, labels, lambda code: str(attribute.texts[int(code)]))
    shared = _ranges(numbers, labels, str)
    names = aggregate.mode(attribute.codes, labels)
    return [
        text if text in (None, TOP) else _one(attribute, int(c), text) for text, c in zip(shared, names, strict=True)
    ]


def _measured(attribute: Measured, labels: Labels) -> list[str | None]:
    bound, exact = attribute.bound, attribute.exact
    if exact is not None:
        places = np.where(exact.places < 0, np.nan, exact.places)
        return _ranges(places, labels, lambda place: str(exact.texts[int(place)]))
    if doubles_suffice(bound, attribute.numbers):
        return _ranges(attribute.numbers, labels, lambda number: as_text(bound, number))
    return _ranges(attribute.numbers, labels, lambda number: _outward(bound, number, number), partial(_outward, bound))


def _outward(bound: BoundColumn, low: float, high: float) -> str:
    """Return a range that holds every value whose double is between two numbers."""
    if bound.kind is Kind.DATE:
        low, high = (math.floor(low * SECONDS) - 1) / SECONDS, (math.ceil(high * SECONDS) + 1) / SECONDS
        offset = "+00:00" if is_zoned(bound.column) else ""
        return f"[{as_text(bound, low)}{offset}, {as_text(bound, high)}{offset}]"
    low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
    return f"[{as_text(bound, low)}, {as_text(bound, high)}]"


def _one(attribute: Coded, code: int, text: str) -> Any:
    return TOP if text.startswith("[") else attribute.texts[code]


def _ancestors(hierarchy: Hierarchy, leaves: Codes, labels: Labels) -> list[str | None]:
    rows, levels = aggregate.ancestors(leaves, labels, hierarchy.paths)
    found = hierarchy.labels[rows, levels]
    return [None if row < 0 else label for row, label in zip(rows, found, strict=True)]


def _ranges(
    numbers: Floats, labels: Labels, text: Callable[[float], str], span: Callable[[float, float], str] | None = None
) -> list[str | None]:
    span = span or (lambda low, high: f"[{text(low)}, {text(high)}]")
    sizes = np.bincount(labels)
    missing = np.bincount(labels, np.isnan(numbers)).astype(np.int64)
    lows, highs = aggregate.extremes(np.where(np.isnan(numbers), 0.0, numbers), labels)
    return [
        (None if gone == size else TOP) if gone else text(low) if low == high else span(low, high)
        for low, high, gone, size in zip(lows, highs, missing, sizes, strict=True)
    ]
