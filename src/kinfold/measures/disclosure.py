"""Global disclosure risk: how many records of small released classes came from small original ones.

    for each released record: i = size of its class in the release, j = size of its own original class
    c_ij  counts them: the classification matrix, kept as its cells that are not 0

    DRmin = c_11 / n
    DRmax = (1/n) Σ_i (1/i) Σ_{j≤i} c_ij
    DRw   = 1/(n w_11) Σ_i (1/i) Σ_{j≤i} w_ij c_ij        W: see `weights`

n is the number of released records; original classes are counted over the whole original file.
Paper: Truta, Fotouhi & Barth-Jones 2006, Algorithm 1 and Eqs. (3) to (6). Two misprints are corrected: Algorithm 1
counts the record's own original key, and Eq. (4) has the 1/i. "DRmin = 0 if and only if 2-anonymous" is not true in
general: a record that is unique in the release may come from a larger original class. Such records are in no DR
measure, so
`unique_from_larger` and `uncounted` stand beside them.
Cost: O(n), and one sort of the pairs of sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kinfold.errors import DataError
from kinfold.measures.arrays import Ints, NotApplicable, class_sizes, labels

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from kinfold.measures.weights import WeightMatrix


@dataclass(frozen=True, eq=False)
class SizeCounts:
    """How a file falls into classes: for each class size that occurs, the number of classes and of records.

    The F, F_i and n_i of the paper for the original file, f, f_i and t_i for the released one.
    """

    sizes: Ints
    classes: Ints
    records: Ints

    @classmethod
    def of(cls, classes: ArrayLike) -> SizeCounts:
        """Count the classes of each size; records labelled -1 are left out.

        >>> SizeCounts.of([0, 0, 1, 1, 2, 2, 2, 2]).classes.tolist()  # two of size 2, one of size 4
        [2, 1]
        """
        kept = labels(classes)
        sizes = np.bincount(kept[kept >= 0])
        found, number = np.unique(sizes[sizes > 0], return_counts=True)
        return cls(found, number, found * number)

    @property
    def mean_risk(self) -> float:
        """Classes over records: the mean of 1 over the size of a record's class, above 0 to 1."""
        return float(self.classes.sum() / self.records.sum())

    @property
    def alone(self) -> int:
        """The records that are alone in their class."""
        return int(self.records[self.sizes == 1].sum())


@dataclass(frozen=True, eq=False)
class Classification:
    """The classification matrix C: `count` records in released classes of size `masked`, original ones of `initial`."""

    masked: Ints
    initial: Ints
    count: Ints

    @classmethod
    def of(cls, initial: ArrayLike, masked: ArrayLike, weight: ArrayLike | None = None) -> Classification:
        """Count the released records by the sizes of their two classes.

        `initial` and `masked` label each original record; a dropped record is -1 in `masked`. `weight` is how many
        records each label stands for, where equal ones are given once.

        >>> found = Classification.of([0, 1, 2, 2], [0, 0, 1, 1])
        >>> found.masked.tolist(), found.initial.tolist(), found.count.tolist()
        ([2, 2], [1, 2], [2, 2])
        """
        before, after = labels(initial), labels(masked)
        if before.shape != after.shape or (before.size and before.min() < 0):
            raise DataError(
                "original and released classes do not pair up",
                fix="label every original record in both; -1 only in the release, for a dropped record",
            )
        released = after >= 0
        if not released.any():
            raise NotApplicable("there is no released record")
        records = None if weight is None else np.asarray(weight, np.int64)
        j, i = (class_sizes(each, records)[released] for each in (before, after))
        return cls.by_size(j, i, None if records is None else records[released])

    @classmethod
    def by_size(cls, initial: Ints, masked: Ints, weight: Ints | None = None) -> Classification:
        """Count released records whose two classes have these sizes; each may stand for several.

        >>> Classification.by_size(np.array([1, 1, 2]), np.array([2, 2, 2]), np.array([3, 1, 1])).count.tolist()
        [4, 1]
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


def dr_min(matrix: Classification) -> float:
    """Share of released records that are unique both in the release and in the original, 0 to 1: less is better.

    >>> dr_min(Classification.of([0, 1, 2, 2], [0, 1, 2, 2]))
    0.5
    """
    unique = (matrix.masked == 1) & (matrix.initial == 1)
    return float(matrix.count[unique].sum() / matrix.released)


def dr_max(matrix: Classification) -> float:
    """Share of records expected to be found by picking blindly in their released class, 0 to 1: less is better.

    Only records whose class did not shrink are counted, see `uncounted`.

    >>> dr_max(Classification.of([0, 1, 2, 2], [0, 0, 1, 1]))
    0.5
    """
    grown = matrix.initial <= matrix.masked
    return float((matrix.count[grown] / matrix.masked[grown]).sum() / matrix.released)


def dr_weighted(matrix: Classification, weights: WeightMatrix) -> float:
    """Share of records expected to be found, each weighted by the sizes of its classes, 0 to 1: less is better.

    >>> from kinfold.measures.weights import WeightMatrix
    >>> dr_weighted(Classification.of([0, 1, 2, 2], [0, 0, 1, 1]), WeightMatrix.below(3, 4))
    0.5
    >>> dr_weighted(Classification.of([0, 1, 2, 2], [0, 0, 1, 1]), WeightMatrix.below(2, 4))
    0.0
    """
    if weights.records != matrix.released:
        raise DataError(
            f"the weights are for {weights.records} records, but {matrix.released} are released",
            fix="give weights that sum to the number of released records",
        )
    weight = weights.at(matrix.masked, matrix.initial)
    risk = (weight * matrix.count / matrix.masked).sum()
    return float(risk / (matrix.released * weights.first))


def unique_from_larger(matrix: Classification) -> int:
    """Return the records that are unique in the release but were not in the original, 0 to n: DRmin misses them.

    >>> unique_from_larger(Classification.of([0, 0, 1, 1], [0, 1, 2, 2]))
    2
    """
    return int(matrix.count[(matrix.masked == 1) & (matrix.initial > 1)].sum())


def uncounted(matrix: Classification) -> int:
    """Return the records whose released class is smaller than their original one, 0 to n: in no DR measure.

    >>> uncounted(Classification.of([0, 0, 0, 1], [0, 0, 1, 1]))
    3
    """
    return int(matrix.count[matrix.initial > matrix.masked].sum())
