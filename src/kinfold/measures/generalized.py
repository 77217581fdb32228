"""Information loss of generalization and of classes: from levels, leaf counts and class sizes alone.

average_class_size   released records / classes
discernibility       Σ |class|², and n for each suppressed record            Bayardo & Agrawal 2005
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold.measures.arrays import counts

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def average_class_size(sizes: ArrayLike) -> float:
    """Mean number of released records per class, from 1 (all unique) to n (one class): less is better.

    >>> average_class_size([2, 2, 4])
    2.6666666666666665
    """
    classes = counts(sizes)
    return float(classes.sum() / len(classes))


def discernibility(sizes: ArrayLike, suppressed: int = 0) -> float:
    """Sum over the records of how many each is confused with, from n (all unique) to n² (one class): less is better.

    A suppressed record is confused with all n, released and suppressed.

    >>> discernibility([2, 2, 4])
    24.0
    >>> discernibility([2, 2], suppressed=1)
    13.0
    """
    classes = counts(sizes).astype(np.float64)  # squares of big classes would overflow whole numbers
    return float((classes**2).sum() + suppressed * (classes.sum() + suppressed))
