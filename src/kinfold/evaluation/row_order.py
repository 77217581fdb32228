"""The order of rows: whether released rows stand where their original rows do, by what the two tables show.

    untouched   columns that are released as they are: the same values in the same rows, or in other rows
    sorted      a quasi-identifier whose released values are in order while the original ones are in none
    errors      beyond the total: one value for all rows would be nearer to the original than what the rows hold

The first kind decides where it shows anything. Without any evidence rows are taken to be where they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import lgamma, log
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.evaluation.matching import numbered
from kinfold.evaluation.pairing import PairedColumn, Tables, pair_up
from kinfold.request.binding import BoundColumn
from kinfold.request.encoding import Attribute, Measured
from kinfold.rows.points import Nested

Ints: TypeAlias = NDArray[np.int64]

ALIKE = 0.9  # share of values that a column has in common with the original, at least, to speak of their rows
TELLING = 0.02  # share of rows by which equal values must exceed what chance makes equal
BY_CHANCE = log(0.01)  # as likely as this may values be in order by chance
IN_ORDER = 0.5  # correlation of the original values with their rows, beyond which order is no surprise
ROUNDING = 1e-9


@dataclass(frozen=True)
class RowOrder:
    """Whether the rows of a release are in another order than those of its original, and what shows it."""

    reordered: bool
    why: str
    doubtful: bool = False  # something speaks against the order that is assumed, but proves nothing


def row_order(
    tables: Tables, original: Any, untouched: Sequence[BoundColumn], quasi: Sequence[Attribute], *, kept: bool
) -> RowOrder:
    """Return what two tables of as many rows show of their order; `original` has untouched values as released.

    Where it is said that the order was `kept`, that is believed unless every column that shows something denies it.
    """
    known = [each for each in _by_untouched(tables, original, untouched) if each is not None]
    if known:
        return (min if kept else max)(known, key=lambda each: each.reordered)
    if kept:
        return RowOrder(False, 'the policy says output.order = "kept"')
    columns = pair_up(tables.engine, tables.released, quasi, np.arange(tables.engine.schema(original).rows)).columns
    for column in columns:
        if _sorted_anew(column):
            return RowOrder(
                True, f"the rows of the release are sorted by '{column.name}', those of the original are not"
            )
    errors = [error for column in columns if (error := _error(column)) is not None]
    if errors and sum(errors) > (1 + ROUNDING) * len(errors):
        what = "at the same position values of the release are farther from the original than one value for all rows"
        told = f"{what} would be (SSE exceeds SST, or its like for categories): most likely rows were reordered"
        return RowOrder(False, told, doubtful=True)
    return RowOrder(False, "both tables have as many rows, and nothing shows another order")


def _by_untouched(tables: Tables, original: Any, untouched: Sequence[BoundColumn]) -> Iterator[RowOrder | None]:
    engine = tables.engine
    before, after = engine.schema(original), engine.schema(tables.released)
    for column in untouched:
        if column.name in after:
            how = [side[column.name] for side in (before, after)]
            numbers = all(each.storage.kind is column.kind and column.kind.measured for each in how)
            asked = [{column.name: each if numbers else None} for each in how]
            sides = [engine.collect(*each).column(0) for each in zip((original, tables.released), asked, strict=True)]
            number: dict[Any, int] = {}
            yield _of_column(column.name, *(numbered(side, number) + 1 for side in sides))  # null is a value: 0


def _of_column(name: str, before: Ints, after: Ints) -> RowOrder | None:
    """Return what a column shows that should be the same in both tables; None where it shows nothing."""
    rows, width = len(before), int(max(before.max(initial=0), after.max(initial=0))) + 1
    one, other = (np.bincount(side, minlength=width) / max(rows, 1) for side in (before, after))
    common, chance, same = np.minimum(one, other).sum(), (one * other).sum(), (before == after).mean()
    if common < ALIKE or common - chance < TELLING:
        return None
    if same == 1.0:
        return RowOrder(False, f"'{name}' is the same in every row of both tables")
    if common > 1.0 - ROUNDING or same - chance < (common - chance) / 2:
        return RowOrder(True, f"'{name}' has the same values in both tables, but in other rows")
    return RowOrder(False, f"'{name}' is the same in {same:.1%} of the rows of both tables")


def _sorted_anew(column: PairedColumn) -> bool:
    """Whether released values are in order, which is no chance, and original ones are in none."""
    after = _ranks(column.labels, column.told_after) if column.place is not None else column.told_after
    steps = np.diff(after[column.kept])
    if not len(steps) or not ((steps >= 0).all() or (steps <= 0).all()):
        return False
    sizes = np.unique(after, return_counts=True)[1]
    if log(2) + sum(map(lgamma, sizes + 1.0)) - lgamma(len(after) + 1.0) > BY_CHANCE:
        return False
    attribute = column.attribute
    before = attribute.numbers if isinstance(attribute, Measured) else _ranks(attribute.texts, attribute.codes)
    known = np.isfinite(before)
    if known.sum() < 2 or np.ptp(before[known]) == 0:
        return False
    return bool(abs(np.corrcoef(np.flatnonzero(known), before[known])[0, 1]) < IN_ORDER)


def _ranks(texts: Iterable[Any], places: NDArray[Any]) -> NDArray[np.float64]:
    """Return the rank of each value among its texts; missing values come first."""
    written = [str(text) for text in texts]
    rank = np.full(len(written) + 2, -1.0)
    rank[np.argsort(written, kind="stable")] = np.arange(len(written))
    return np.asarray(rank[places])


def _error(column: PairedColumn) -> float | None:
    """Return the error at the same positions over that of the best value for all rows; None where it says nothing.

    Averages of classes have 1 at most: squared errors of numbers beside their mean, unequal categories beside the mode.
    """
    attribute = column.attribute
    if isinstance(attribute, Measured) and column.numbers is not None:
        known = np.isfinite(column.numbers) & ~attribute.null
        before, after = attribute.numbers[known], column.numbers[known]
        most = float(((before - before.mean()) ** 2).sum()) if known.any() else 0.0
        return float(((before - after) ** 2).sum()) / most if most else None
    if column.generalized or not isinstance(getattr(attribute, "scale", None), Nested):
        return None
    most = len(column.before) - int(np.unique(column.before, return_counts=True)[1].max(initial=0))
    return float((column.before != column.after).sum()) / most if most else None
