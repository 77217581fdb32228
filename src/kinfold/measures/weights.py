"""Weight matrices of the weighted disclosure risk, Eq. (5) of Truta, Fotouhi & Barth-Jones, and their four conditions.

Row i weighs records in released classes of size i, column j those of original classes of size j ≤ i:

    1  w_jj ≥ w_j+1,j ≥ …         down a column: a larger released class weighs no more
    2  w_i1 ≥ w_i2 ≥ … ≥ w_ii     along a row: a larger original class weighs no more
    3  w_j1 ≥ w_j+1,2 ≥ …         down a diagonal: larger classes weigh no more
    4  the weights sum to n, the number of released records

Condition 3 follows from 1 and 2, so that it never fails alone; all that fail are reported together.
A matrix may be given with fewer than n rows: the rows left out are 0, so n may be millions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kinfold.errors import PolicyError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike

    from kinfold.measures.arrays import Floats, Ints

SLACK = 1e-9  # weights such as 2/9 do not sum to a whole number exactly


@dataclass(frozen=True, eq=False)
class WeightMatrix:
    """A checked weight matrix: its rows that are not 0, and the number of released records it is for."""

    matrix: Floats
    records: int

    @classmethod
    def of(cls, matrix: ArrayLike, records: int) -> WeightMatrix:
        """Check a matrix against the shape and the four conditions, and say which ones fail.

        >>> WeightMatrix.of([[4, 0], [2, 2]], 8).first
        4.0
        """
        try:
            w = np.asarray(matrix, np.float64)
        except (TypeError, ValueError, OverflowError):
            raise PolicyError("the weights are no matrix of numbers", fix="give a square matrix of numbers") from None
        if w.ndim != 2 or w.shape[0] != w.shape[1] or w.size == 0 or not np.isfinite(w).all():
            raise PolicyError(f"the weights have the shape {w.shape}", fix="give a square matrix of numbers")
        if len(w) > records:
            raise PolicyError(f"the weights have {len(w)} rows for {records} records", fix="give at most n rows")
        if problems := tuple(_broken(w, records)):
            raise PolicyError(problems)
        return cls(w, records)

    @classmethod
    def below(cls, k: int, records: int) -> WeightMatrix:
        """Return equal weights on the rows below k: the weighted risk counts the classes that break k-anonymity.

        >>> WeightMatrix.below(3, 6).at(np.array([1, 2, 2, 3]), np.array([1, 1, 2, 1])).tolist()
        [2.0, 2.0, 2.0, 0.0]
        """
        if k < 2:
            raise PolicyError(f"k is {k}", fix="k is a whole number from 2 up")
        rows = min(k - 1, records)
        weight = np.float64(2.0 * records / (rows * (rows + 1)))
        return cls(np.broadcast_to(weight, (rows, rows)), records)  # one number, however large k is

    @property
    def first(self) -> float:
        """The largest weight, w_11."""
        return float(self.matrix[0, 0])

    def at(self, masked: Ints, initial: Ints) -> Floats:
        """Return the weight of each pair of class sizes; 0 beyond the matrix and above its diagonal."""
        rows = len(self.matrix)
        inside = (masked <= rows) & (initial <= masked)
        return np.where(inside, self.matrix[np.where(inside, masked, 1) - 1, np.where(inside, initial, 1) - 1], 0.0)


def _broken(w: Floats, records: int) -> Iterator[Problem]:
    """Yield one problem for each condition that does not hold."""
    if np.triu(w, 1).any():
        yield Problem("there are weights above the diagonal", "put 0 where the original class is larger")
    if len(w) < records:  # the first row left out is 0, and it takes part in conditions 1 and 3
        w = np.pad(w, (0, 1))
    if (np.tril(w[:-1, :-1] - w[1:, :-1]) < 0).any():
        yield Problem("weights grow down a column", "w_jj ≥ w_j+1,j ≥ …: a larger released class weighs no more")
    if (np.tril(w[1:, :-1] - w[1:, 1:]) < 0).any():
        yield Problem("weights grow along a row", "w_i1 ≥ … ≥ w_ii: a larger original class weighs no more")
    if (np.tril(w[:-1, :-1] - w[1:, 1:]) < 0).any():
        yield Problem("weights grow down a diagonal", "w_j1 ≥ w_j+1,2 ≥ …: larger classes weigh no more")
    if abs(w.sum() - records) > SLACK * records:
        yield Problem(f"the weights sum to {w.sum():g}, not to {records}", "scale them to the released records")
