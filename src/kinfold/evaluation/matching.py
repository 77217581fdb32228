"""Matching by class: which original records a class was made of, where its values leave no doubt.

    a class covers a record if what it says is true of each of its quasi-identifiers
    while a class covers as many records as it holds: those are its records, and no other class's
    what no class covers was left out

Records of one class share their released quasi-identifiers, so that who is who within a class makes no difference to
what they have lost. Inside it they are put in the order of the other columns, which pairs those that were released as
they are. Averages cover nobody but who equals them, and are not matched.
Cost: distinct original tuples times classes, at most `MOST_PAIRS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.evaluation.pairing import GONE, Pair, Tables
from kinfold.evaluation.population import classes_of, sides_of
from kinfold.measures import NotApplicable
from kinfold.measures.grouping import group_rows
from kinfold.request.encoding import Attribute, Coded

Ints: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]

MOST_PAIRS = 50_000_000  # about a second for each column


def matched(tables: Tables, attributes: Sequence[Attribute], others: Sequence[str]) -> NDArray[np.intp] | None:
    """Return the original row of each released one, None where classes do not tell it.

    `attributes` are the quasi-identifiers; `others` name the columns beside them.
    """
    try:
        pair = tables.unpaired(attributes)
    except NotApplicable:
        return None
    classes, first = classes_of(pair)
    values = np.column_stack([a.codes if isinstance(a, Coded) else a.numbers for a in attributes]).astype(np.float64)
    group, chosen = group_rows(values)
    if len(chosen) * len(first) > MOST_PAIRS:
        return None
    owner = _owners(_covers(pair, first, values[chosen]), np.bincount(group), np.bincount(classes))
    return None if owner is None else _rows(tables, owner[group], classes, others)


def _covers(pair: Pair, first: Ints, values: NDArray[np.float64]) -> Flags:
    """Mark which class (of which `first` is a row) is true of which tuple of original values."""
    true = np.ones((len(values), len(first)), np.bool_)
    for j, side in enumerate(sides_of(pair, first)):
        true &= side.squared(values[:, j]) == 0.0
    return true


def _owners(true: Flags, records: Ints, sizes: Ints) -> Ints | None:
    """Return the class of each tuple, `GONE` where it has none; None where it is in doubt."""
    owner = np.full(len(true), GONE, np.int64)
    left = np.ones(len(sizes), np.bool_)
    while left.any():
        sure = left & (records @ true == sizes)
        if not sure.any() or (true[:, sure].sum(axis=1) > 1).any():
            return None
        taken = true[:, sure].any(axis=1)
        owner[taken] = np.flatnonzero(sure)[true[taken][:, sure].argmax(axis=1)]
        true[taken] = False
        left &= ~sure
    return owner


def _rows(tables: Tables, before: Ints, after: Ints, others: Sequence[str]) -> NDArray[np.intp]:
    """Pair the records of each class in the order of the other columns."""
    there = [name for name in others if name in tables.engine.schema(tables.released)]
    both = (tables.original, tables.released) if there else ()
    sides = [tables.engine.collect(side, dict.fromkeys(there)) for side in both]
    numbers: list[dict[Any, int]] = [{} for _ in there]
    keys = [[numbered(side.column(n), number) for n, number in zip(there, numbers, strict=True)] for side in sides]
    first, second = keys or ([], [])
    old = np.lexsort((*first, before))[int((before == GONE).sum()) :]
    new = np.lexsort((*second, after))
    rows = np.empty(len(after), np.intp)
    rows[new] = old
    return rows


def numbered(column: Any, number: dict[Any, int]) -> Ints:
    """Number the values of a column, those that have a number already by that one; -1 for null."""
    encoded = column.combine_chunks().dictionary_encode()
    codes = [number.setdefault(text, len(number)) for text in encoded.dictionary.to_pylist()]
    places: Ints = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return np.array([*codes, -1], np.int64)[places]
