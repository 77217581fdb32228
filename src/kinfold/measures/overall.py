"""One loss from 0 to 1 that holds for every method: the mean over the columns of what each of them lost.

    a column of numbers     min(1, SSE / SST)
    a category              its distance to the original one, 0 to 1
    a statement             (values covered - 1) / (values - 1)             as granularity, see `generalized`
    a record left out       1

SSE / SST is the mean over the records of (x - x')² over the variance of the column, so that numbers, categories and
statements can stand in one column and records that were left out can be counted among them. A cell that is empty on one
side only is wrong: 1. A number that is missing from both tables has nothing to lose and is left out; where a column has
no variation a number that changed is wrong: 1. Cost: one pass over the cells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kinfold.measures.arrays import Flags, Floats, Ints, NotApplicable
from kinfold.measures.continuous import column_means

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike


def lost_numbers(
    original: ArrayLike, released: ArrayLike, kept: ArrayLike | None = None, weight: ArrayLike | None = None
) -> float:
    """Share of a column's variation that is lost, 0 (nothing changed) to 1: less is better.

    >>> lost_numbers([1.0, 3.0, 11.0, 13.0], [2.0, 2.0, 12.0, 12.0])  # 4 / 104
    0.038461538461538464
    >>> lost_numbers([1.0, 3.0, 11.0, 13.0], [1.0, 3.0, 11.0, 0.0], kept=[True, True, True, False])
    0.25
    """
    x, y = np.asarray(original, np.float64), np.asarray(released, np.float64)
    there = np.ones(len(x), np.bool_) if kept is None else np.asarray(kept, np.bool_)
    records = np.ones(len(x)) if weight is None else np.asarray(weight, np.float64)
    filled, told = ~np.isnan(x), np.isfinite(y) & there
    counted = float(records[~(there & ~filled & ~told)].sum())
    if not counted:
        return 0.0
    both = filled & told
    wrong = counted - float(records[both].sum())  # empty on one side only, or left out
    column = WeighedColumn(x[filled], records[filled])
    return min(1.0, float((squared_errors(x[both], y[both], column) * records[both]).sum() + wrong) / counted)


class WeighedColumn(NamedTuple):
    """The known numbers of a column, and how many records hold each."""

    numbers: Floats
    records: Floats


def squared_errors(original: Floats, released: Floats, column: WeighedColumn) -> Floats:
    """Squared gap of each number in units of the variance of a column; without variation 1 where it changed.

    >>> column = WeighedColumn(np.array([1.0, 3.0]), np.ones(2))
    >>> squared_errors(np.array([1.0, 3.0]), np.array([1.0, 5.0]), column).tolist()
    [0.0, 4.0]
    """
    largest = max(float(np.abs(part).max(initial=0.0)) for part in (original, released, column.numbers))
    unit = 2.0 ** (np.frexp(largest)[1] - 1) if largest else 1.0  # dividing by it is exact, and no square overflows
    known, records = (column.numbers / unit)[:, None], column.records
    gaps = (known - column_means(known, records)) ** 2
    variance = float((gaps[:, 0] * records).sum() / records.sum()) if len(known) else 0.0
    if not variance:
        return np.asarray(original != released, np.float64)
    gap = original / unit - released / unit
    return np.asarray(gap * gap / variance, np.float64)


def lost_statements(covered: Ints, values: int, true: Flags) -> Floats:
    """Loss of each statement: what it leaves open of the values there are, 0 to 1; 1 where it is not true.

    >>> lost_statements(np.array([1, 3, 5, 2]), 5, np.array([True, True, True, False])).tolist()
    [0.0, 0.5, 1.0, 1.0]
    """
    return np.where(true, (covered - 1) / max(values - 1, 1), 1.0)


def overall(columns: Sequence[float]) -> float:
    """Mean loss of the columns, 0 (nothing changed) to 1 (nothing is left): less is better.

    >>> overall([0.0, 0.5])
    0.25
    """
    if not columns:
        raise NotApplicable("there is no column to compare")
    return float(np.mean(columns))
