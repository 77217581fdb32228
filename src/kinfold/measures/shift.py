"""Distribution shift by column, from the counts of both tables.

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

from kinfold.hierarchies import TOP
from kinfold.measures.formulas.shift import compute_shares, find_moved_quantiles, find_moved_shares
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


def rank_shifts(shifts: dict[str, ColumnShift]) -> dict[str, dict[str, Any]]:
    """Return the columns that moved, the largest move first."""
    moved = [(name, shift) for name, shift in shifts.items() if shift.moves]
    return {name: shift.to_dict() for name, shift in sorted(moved, key=lambda each: -each[1].most)}
