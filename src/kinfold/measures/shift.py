"""Distribution shift by column, from counts of both tables: categories and quantiles that moved by more than a fifth.

    category   its share p of the original records, p' of the released ones: |p' - p| > p / 5
    quantile   its value q in the original, q' in the release: |q' - q| > s / 5, with the standard deviation s of the
               original column

A category with p' = 0 vanished. The largest move comes first: of categories |p' - p|, then |p' - p| / p; of quantiles
|q' - q| / s. Ties go to the first in the order given. Cost: O(m log m) for m categories.

Values are compared as they are: a missing value and * are categories like others. Columns released as ranges or as
labels of a hierarchy have other categories than the original; they are left out, with a note. The categories of a shift
are values of the original: they are internal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from kinfold.hierarchies import TOP
from kinfold.measures.formulas.arrays import Floats, Ints, NotApplicable
from kinfold.measures.formulas.utility import SUMMARY_QUANTILES, ColumnSummary

MAX_MOVES_LISTED = 10  # of a column; the counts are complete

Texts: TypeAlias = Counter[str | None]


@dataclass(frozen=True)
class ColumnShift:
    """What moved in a column: the number of categories that vanished or moved, and the largest move.

    `most` is a difference of shares, or of quantiles in standard deviations. `moves` are the largest ones, as
    `{"value", "before", "after"}` or `{"quantile", "before", "after"}`.
    """

    vanished: int
    moved: int
    most: float
    moves: tuple[dict[str, Any], ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {"vanished": self.vanished, "moved": self.moved, "most": self.most, "moves": list(self.moves)}


def compare_categories(before: Texts, after: Texts, renamed: set[str]) -> ColumnShift | None:
    """Return the shift of a column of categories; None if the release has labels that are not among its values.

    `renamed` are the new names that the policy gives to values.
    """
    if not {value for value in after if value is not None} <= {*before, *renamed, TOP} or not after.total():
        return None
    values = sorted({*before, *after}, key=lambda value: (value is None, value))
    counts = [np.array([side[value] for value in values], np.int64) for side in (before, after)]
    places = find_moved_shares(*counts)
    p, q = (compute_shares(side) for side in counts)
    moves = [{"value": values[i], "before": float(p[i]), "after": float(q[i])} for i in places[:MAX_MOVES_LISTED]]
    vanished = int(((counts[0] > 0) & (counts[1] == 0)).sum())
    most = float(np.abs(q - p)[places].max(initial=0.0))
    return ColumnShift(vanished, len(places) - vanished, most, tuple(moves))


def compare_quantiles(
    before: ColumnSummary, after: ColumnSummary, format_number: Callable[[float], float | str]
) -> ColumnShift:
    """Return the shift of the quantiles of a column of numbers or dates."""
    deviation = before.variance**0.5
    places = find_moved_quantiles(before.quantiles, after.quantiles, deviation)
    moves = tuple(
        {
            "quantile": SUMMARY_QUANTILES[i],
            "before": format_number(before.quantiles[i]),
            "after": format_number(after.quantiles[i]),
        }
        for i in places
    )
    largest = max((abs(after.quantiles[i] - before.quantiles[i]) for i in places), default=0.0)
    return ColumnShift(0, len(places), largest / deviation if deviation else float(largest > 0), moves)


LEAST_MOVE = 0.2  # a fifth
SLACK = 1 + 1e-9  # moves that differ from a fifth only by rounding do not count


def compute_shares(counts: ArrayLike) -> Floats:
    """Return the share of each category.

    >>> compute_shares([3, 1]).tolist()
    [0.75, 0.25]
    """
    records = np.asarray(counts, np.float64)
    if not records.sum():
        raise NotApplicable("one of the tables has no records")
    return np.asarray(records / records.sum(), np.float64)


def find_moved_shares(before: ArrayLike, after: ArrayLike) -> Ints:
    """Return the places of the categories whose share moved by more than a fifth, the largest move first.

    >>> find_moved_shares([72, 5, 23], [96, 0, 4]).tolist()
    [0, 2, 1]
    """
    p, q = compute_shares(before), compute_shares(after)
    moved = np.abs(q - p)
    relative = np.divide(moved, p, out=np.full(len(p), np.inf), where=p > 0)
    order = np.lexsort((-np.round(relative, 12), -np.round(moved, 12)))  # stable; rounded, so that ties are ties
    return np.asarray(order[(moved > LEAST_MOVE * SLACK * p)[order]], np.int64)


def find_moved_quantiles(before: ArrayLike, after: ArrayLike, deviation: float) -> Ints:
    """Return the places of the quantiles that moved by more than a fifth of the standard deviation, largest first.

    >>> find_moved_quantiles([1.0, 5.0, 9.0], [4.0, 5.5, 7.0], deviation=4.0).tolist()
    [0, 2]
    """
    moved = np.abs(np.asarray(after, np.float64) - np.asarray(before, np.float64))
    order = np.argsort(-moved, kind="stable")
    return np.asarray(order[(moved > LEAST_MOVE * SLACK * deviation)[order]], np.int64)
