"""The class sizes of every combination of a few key columns, and how surely a combination tells a confidential value.

A combination is a tuple of values of `size` of the keys (of all of them, if there are fewer) that some record has. Its
class are the records with these values; the confidence of a confidential value is its share in that class. k-anonymity
on combinations (LKC privacy, k^m-anonymity) asks for k records in every class and a confidence of at most C, also for
shorter combinations: their classes are unions of these, so they hold as many records and have no higher confidence. A
missing value is a value.

Cost: one sort of the records for each set of `size` columns.

Sources: Mohammed, Fung, Hung & Lee, KDD 2009 (LKC privacy); Terrovitis, Mamoulis & Kalnis, PVLDB 1(1), 2008 (k^m).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kinfold.errors import DataError, PolicyError
from kinfold.measures.formulas.arrays import Floats, Ints, NamedResult, NotApplicable, check_codes, group_rows


@dataclass(frozen=True, eq=False, repr=False)
class Combinations(NamedResult):
    """The classes of every combination of `size` keys; shorter ones have no smaller class and no higher confidence."""

    least_class: int
    confidence: float | None  # the largest of any confidential value; None without such a column
    combinations: int  # distinct tuples of values
    sizes: Ints  # of their classes
    by_value: Floats | Mapping[Any, float] | None  # the largest confidence of each value; by code null comes last

    def count_below(self, k: int) -> int:
        """Return the number of combinations with fewer than k records."""
        return int((self.sizes < k).sum())


def measure_combinations(keys: ArrayLike, size: int, values: ArrayLike | None = None) -> Combinations:
    """Return the classes of every combination of `size` keys; `values` are confidential.

    >>> result = measure_combinations([[0, 0], [0, 1], [1, 1], [1, 1]], size=1, values=[0, 1, 1, 1])
    >>> result.least_class, result.combinations, result.confidence
    (1, 4, 1.0)
    """
    codes = check_codes(keys)
    if size < 1:
        raise PolicyError(f"size is {size}", fix="give the number of values that an attacker knows, from 1 up")
    if not codes.size:
        raise NotApplicable("there is no record")
    value = None if values is None else check_codes(values)[:, 0]
    if value is not None and len(value) != len(codes):
        raise DataError("keys and values do not pair up", fix="give one value per record")
    width = 0 if value is None else int(value.max()) + 2
    sizes, best = [], np.zeros(width)
    for columns in combinations(range(codes.shape[1]), min(size, codes.shape[1])):
        group, _ = group_rows(codes[:, columns])
        count = np.bincount(group)
        sizes.append(count)
        if value is not None:
            cells, joint = np.unique(group * width + np.where(value < 0, width - 1, value), return_counts=True)
            np.maximum.at(best, cells % width, joint / count[cells // width])
    classes = np.concatenate(sizes)
    confidence = None if value is None else float(best.max())
    return Combinations(int(classes.min()), confidence, len(classes), classes, None if value is None else best)
