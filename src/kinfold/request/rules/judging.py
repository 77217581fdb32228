"""Judging: rules on arrays of values, in the logic of three values. What is not known is neither kept nor broken.

A value is known where it is there and can be read: a missing one is not, nor is a generalized or starred cell. A rule
is broken by a record where it is false, whatever the unknown values are. Numbers are equal up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.request.binding import BoundColumn
from kinfold.request.rules.language import RulePart
from kinfold.request.rules.meaning import day

Mask: TypeAlias = NDArray[np.bool_]

SAME = 1e-12  # of numbers, relative to the larger one, or absolute below 1


@dataclass(frozen=True, eq=False)
class Held:
    """What the records hold in one column, as one sort: the values, which are known, and which are missing."""

    values: NDArray[Any]
    known: Mask
    missing: Mask

    def take(self, rows: NDArray[np.integer[Any]]) -> Held:
        """Return what these records hold."""
        return Held(self.values[rows], self.known[rows], self.missing[rows])


Values: TypeAlias = Callable[[str, str], Held]  # of a column, by a sort


def read(texts: Any, sort: str, column: BoundColumn, known: frozenset[str] | None = None) -> Held:
    """Read texts, an Arrow array, as a sort; of texts those that are `known`, or all where nobody says."""
    encoded = (texts.combine_chunks() if hasattr(texts, "combine_chunks") else texts).dictionary_encode()
    index = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    read_as = [_read(text, sort, column, known) for text in encoded.dictionary.to_pylist()]
    readable = np.array([value is not None for value in read_as] + [False])
    nothing: Any = "" if sort == "text" else np.nan
    filled = [nothing if value is None else value for value in read_as] + [nothing]
    values = np.array(filled, object if sort == "text" else np.float64)
    return Held(values[index], readable[index], index < 0)


def _read(text: str, sort: str, column: BoundColumn, known: frozenset[str] | None) -> float | str | None:
    if sort == "text":
        return text if known is None or text in known else None
    if sort == "date":
        return day(text, column.column.date_format)
    if sort == "rank":
        order = column.request.order or ()
        return float(order.index(text)) if text in order else None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if np.isfinite(number) else None


@dataclass(frozen=True, eq=False)
class Answers:
    """Of which records something is true, and of which it is false; of the others it is not known."""

    true: Mask
    false: Mask


def judge(tree: RulePart, values: Values) -> Answers:
    """Return where a rule holds and where it is broken."""
    if tree.kind in ("and", "or", "not"):
        return _combined(tree.kind, [judge(part, values) for part in tree.parts])
    if tree.kind == "missing":
        held = values(str(tree.parts[0].value), tree.parts[0].sort)
        return Answers(held.missing, held.known)
    left, right = (_valued(part, values) for part in tree.parts)
    known = left[1] & right[1]
    found = _related(tree.kind, left[0], right[0], tree.parts[0].sort)
    return Answers(found & known, ~found & known)


def _combined(word: str, parts: Sequence[Answers]) -> Answers:
    if word == "not":
        return Answers(parts[0].false, parts[0].true)
    true, false = (
        np.array(np.broadcast_arrays(*sides)) for sides in zip(*((p.true, p.false) for p in parts), strict=True)
    )
    if word == "and":
        return Answers(np.asarray(true.all(axis=0)), np.asarray(false.any(axis=0)))
    return Answers(np.asarray(true.any(axis=0)), np.asarray(false.all(axis=0)))


def _valued(node: RulePart, values: Values) -> tuple[Any, Any]:
    """Return the value of each record, and where it is known; a literal is one value for all."""
    if node.kind == "column":
        held = values(str(node.value), node.sort)
        return held.values, held.known
    if not node.parts:
        return node.value, np.True_
    parts = [_valued(part, values) for part in node.parts]
    known = np.logical_and.reduce([known for _, known in parts]) if len(parts) == 1 else parts[0][1] & parts[1][1]
    with np.errstate(over="ignore", invalid="ignore"):
        return _computed(node.kind, [value for value, _ in parts]), known


def _computed(kind: str, values: Sequence[Any]) -> Any:
    if kind == "negative":
        return -values[0]
    first, second = values
    return first + second if kind == "+" else first - second if kind == "-" else first * second


def _related(kind: str, left: Any, right: Any, sort: str) -> Any:
    if sort == "text":
        same = np.asarray(left == right, np.bool_)
        return same if kind == "=" else ~same
    with np.errstate(over="ignore", invalid="ignore"):
        size = np.maximum(1.0, np.maximum(np.abs(left), np.abs(right)))
        same, less = np.abs(left - right) <= SAME * size, np.asarray(left < right)
    if kind in ("=", "!="):
        return same if kind == "=" else ~same
    if kind in ("<", ">="):
        return (less & ~same) if kind == "<" else ~(less & ~same)
    return (less | same) if kind == "<=" else ~(less | same)
