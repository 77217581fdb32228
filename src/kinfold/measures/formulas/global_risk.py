"""Global disclosure risk from the classification matrix of class sizes.

    for each released record: i = size of its released class, j = size of its original class
    c_ij counts them: the classification matrix, stored as its cells that are not 0

    DRmin = c_11 / n
    DRmax = (1/n) Σ_i (1/i) Σ_{j≤i} c_ij
    DRw   = 1/(n w_11) Σ_i (1/i) Σ_{j≤i} w_ij c_ij

n is the number of released records; original classes are counted over the whole original table. The weights W satisfy

    1  w_jj ≥ w_j+1,j ≥ …         down a column: a larger released class weighs no more
    2  w_i1 ≥ w_i2 ≥ … ≥ w_ii     along a row: a larger original class weighs no more
    3  w_j1 ≥ w_j+1,2 ≥ …         down a diagonal: larger classes weigh no more; follows from 1 and 2
    4  the weights sum to n

A weight matrix may have fewer than n rows: missing rows are 0, so n may be millions.

Paper: Truta, Fotouhi & Barth-Jones 2006, Algorithm 1 and Eqs. (3) to (6), with two misprints corrected: Algorithm 1
counts the record's own original key, and Eq. (4) has the 1/i. "DRmin = 0 if and only if 2-anonymous" is not true in
general: a unique released record may come from a larger original class. No DR measure counts such records, hence
`unique_from_larger` and `uncounted`. Cost: O(n), and one sort of the pairs of sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from kinfold.errors import DataError, PolicyError, Problem
from kinfold.measures.formulas.arrays import Floats, Ints, NotApplicable, check_labels, count_class_sizes

SUM_TOLERANCE = 1e-9  # relative: weights such as 2/9 do not sum to an integer exactly


@dataclass(frozen=True, eq=False)
class WeightMatrix:
    """A checked weight matrix: its rows that are not 0, and the number of released records n."""

    matrix: Floats
    records: int

    @classmethod
    def from_matrix(cls, matrix: ArrayLike, records: int) -> WeightMatrix:
        """Return a checked matrix; raise with all conditions that fail.

        >>> WeightMatrix.from_matrix([[4, 0], [2, 2]], 8).largest
        4.0
        """
        try:
            w = np.asarray(matrix, np.float64)
        except (TypeError, ValueError, OverflowError):
            what = "the weights are not a matrix of numbers"
            raise PolicyError(what, fix="give a square matrix of numbers") from None
        if w.ndim != 2 or w.shape[0] != w.shape[1] or w.size == 0 or not np.isfinite(w).all():
            raise PolicyError(f"the weights have the shape {w.shape}", fix="give a square matrix of numbers")
        if len(w) > records:
            raise PolicyError(f"the weights have {len(w)} rows for {records} records", fix="give at most n rows")
        if problems := tuple(_find_violations(w, records)):
            raise PolicyError(problems)
        return cls(w, records)

    @classmethod
    def equal_below(cls, k: int, records: int) -> WeightMatrix:
        """Return equal weights on the rows below k, so that the risk counts the classes that break k-anonymity.

        >>> WeightMatrix.equal_below(3, 6).weights_at(np.array([1, 2, 2, 3]), np.array([1, 1, 2, 1])).tolist()
        [2.0, 2.0, 2.0, 0.0]
        """
        if k < 2:
            raise PolicyError(f"k is {k}", fix="k is a whole number from 2 up")
        rows = min(k - 1, records)
        weight = np.float64(2.0 * records / (rows * (rows + 1)))
        return cls(np.broadcast_to(weight, (rows, rows)), records)  # no copies

    @property
    def largest(self) -> float:
        """The largest weight, w_11."""
        return float(self.matrix[0, 0])

    def weights_at(self, masked: Ints, initial: Ints) -> Floats:
        """Return the weight of each pair of class sizes; 0 outside the matrix and above its diagonal."""
        rows = len(self.matrix)
        inside = (masked <= rows) & (initial <= masked)
        return np.where(inside, self.matrix[np.where(inside, masked, 1) - 1, np.where(inside, initial, 1) - 1], 0.0)


def _find_violations(w: Floats, records: int) -> Iterator[Problem]:
    """Yield one problem for each condition that does not hold."""
    if np.triu(w, 1).any():
        yield Problem("there are weights above the diagonal", "put 0 where the original class is larger")
    if len(w) < records:  # the first missing row is 0 in conditions 1 and 3
        w = np.pad(w, (0, 1))
    if (np.tril(w[:-1, :-1] - w[1:, :-1]) < 0).any():
        yield Problem("the weights grow down a column", "lower them, so that w_jj ≥ w_j+1,j ≥ …")
    if (np.tril(w[1:, :-1] - w[1:, 1:]) < 0).any():
        yield Problem("the weights grow along a row", "lower them, so that w_i1 ≥ … ≥ w_ii")
    if (np.tril(w[:-1, :-1] - w[1:, 1:]) < 0).any():
        yield Problem("the weights grow down a diagonal", "lower them, so that w_j1 ≥ w_j+1,2 ≥ …")
    if abs(w.sum() - records) > SUM_TOLERANCE * records:
        yield Problem(f"the weights sum to {w.sum():g}, not to {records}", "scale them to the released records")


@dataclass(frozen=True, eq=False)
class SizeCounts:
    """For each class size of a table, the number of classes and of records."""

    sizes: Ints
    classes: Ints
    records: Ints

    @classmethod
    def from_classes(cls, classes: ArrayLike) -> SizeCounts:
        """Count the classes of each size, without records labelled -1.

        >>> SizeCounts.from_classes([0, 0, 1, 1, 2, 2, 2, 2]).classes.tolist()  # two of size 2, one of size 4
        [2, 1]
        """
        kept = check_labels(classes)
        sizes = np.bincount(kept[kept >= 0])
        distinct, number = np.unique(sizes[sizes > 0], return_counts=True)
        return cls(distinct, number, distinct * number)


@dataclass(frozen=True, eq=False)
class ClassificationMatrix:
    """The cells of C: `count` records with a released class of size `masked` and an original one of `initial`."""

    masked: Ints
    initial: Ints
    count: Ints

    @classmethod
    def from_classes(
        cls, initial: ArrayLike, masked: ArrayLike, weight: ArrayLike | None = None
    ) -> ClassificationMatrix:
        """Count the released records by the sizes of their two classes.

        `initial` and `masked` label each original record; a dropped record is -1 in `masked`. `weight` is the number of
        records of each row, 1 by default.

        >>> matrix = ClassificationMatrix.from_classes([0, 1, 2, 2], [0, 0, 1, 1])
        >>> matrix.masked.tolist(), matrix.initial.tolist(), matrix.count.tolist()
        ([2, 2], [1, 2], [2, 2])
        """
        before, after = check_labels(initial), check_labels(masked)
        if before.shape != after.shape or (before.size and before.min() < 0):
            fix = "label every original record in both; -1 only in the release, for a dropped record"
            raise DataError("original and released classes do not pair up", fix=fix)
        released = after >= 0
        if not released.any():
            raise NotApplicable("there is no released record")
        records = None if weight is None else np.asarray(weight, np.int64)
        j, i = (count_class_sizes(each, records)[released] for each in (before, after))
        return cls.from_sizes(j, i, None if records is None else records[released])

    @classmethod
    def from_sizes(cls, initial: Ints, masked: Ints, weight: Ints | None = None) -> ClassificationMatrix:
        """Count released records by the sizes of their two classes.

        >>> ClassificationMatrix.from_sizes(np.array([1, 1]), np.array([2, 2]), np.array([3, 1])).count.tolist()
        [4]
        """
        j, i = initial, masked
        width = int(j.max()) + 1
        cells, place = np.unique(i * width + j, return_inverse=True)
        count = np.bincount(place, weight, len(cells)).astype(np.int64)
        return cls(cells // width, cells % width, count)

    @property
    def released(self) -> int:
        """The number of released records, n."""
        return int(self.count.sum())


def dr_min(matrix: ClassificationMatrix) -> float:
    """Return the share of released records that are unique in both tables, 0 to 1: less is better.

    >>> dr_min(ClassificationMatrix.from_classes([0, 1, 2, 2], [0, 1, 2, 2]))
    0.5
    """
    unique = (matrix.masked == 1) & (matrix.initial == 1)
    return float(matrix.count[unique].sum() / matrix.released)


def dr_max(matrix: ClassificationMatrix) -> float:
    """Return the expected share of records found by a random pick in their class, 0 to 1: less is better.

    Records whose class shrank are not counted, see `uncounted`.

    >>> dr_max(ClassificationMatrix.from_classes([0, 1, 2, 2], [0, 0, 1, 1]))
    0.5
    """
    grown = matrix.initial <= matrix.masked
    return float((matrix.count[grown] / matrix.masked[grown]).sum() / matrix.released)


def dr_weighted(matrix: ClassificationMatrix, weights: WeightMatrix) -> float:
    """Return the same share, weighted by the sizes of the classes, 0 to 1: less is better.

    >>> dr_weighted(ClassificationMatrix.from_classes([0, 1, 2, 2], [0, 0, 1, 1]), WeightMatrix.equal_below(3, 4))
    0.5
    >>> dr_weighted(ClassificationMatrix.from_classes([0, 1, 2, 2], [0, 0, 1, 1]), WeightMatrix.equal_below(2, 4))
    0.0
    """
    if weights.records != matrix.released:
        what = f"the weights are for {weights.records} records, but {matrix.released} are released"
        raise DataError(what, fix="give weights that sum to the number of released records")
    weight = weights.weights_at(matrix.masked, matrix.initial)
    risk = (weight * matrix.count / matrix.masked).sum()
    return float(risk / (matrix.released * weights.largest))


def unique_from_larger(matrix: ClassificationMatrix) -> int:
    """Return the number of records that are unique in the release only, 0 to n.

    >>> unique_from_larger(ClassificationMatrix.from_classes([0, 0, 1, 1], [0, 1, 2, 2]))
    2
    """
    return int(matrix.count[(matrix.masked == 1) & (matrix.initial > 1)].sum())


def uncounted(matrix: ClassificationMatrix) -> int:
    """Return the number of records whose class shrank, 0 to n; no DR measure counts them.

    >>> uncounted(ClassificationMatrix.from_classes([0, 0, 0, 1], [0, 0, 1, 1]))
    3
    """
    return int(matrix.count[matrix.initial > matrix.masked].sum())
