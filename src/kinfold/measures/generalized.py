"""Information loss of generalization and of classes: from levels, leaf counts and class sizes alone.

    prec                  1 - mean over the cells of level / height, attributes by weight     Sweeney 2002, Definition 5
    granularity           1 - mean over the cells of (leaves covered - 1) / (leaves - 1)      Iyengar 2002
    non_uniform_entropy   Σ log2(records covered / records with the value), over its maximum  Gionis & Tassa 2009
    discernibility        Σ |class|², and n for each suppressed record                        Bayardo & Agrawal 2005
    average_class_size    released records / classes                                          LeFevre et al. 2006

The height of a hierarchy counts its steps, the top included: a suppressed cell is at the top, covers every leaf and
every record. The printed Definition 5 divides by all attributes: it is the quasi-identifier's that are meant.
An attribute with a single value (height 0, one leaf) has nothing to lose and counts 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold.errors import DataError, PolicyError
from kinfold.measures.arrays import Floats, NotApplicable, counts

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def prec(levels: ArrayLike, heights: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Precision kept, 0 (all at the top) to 1 (nothing generalized): more is better.

    `levels` is the level of each cell, or one row for all records: their mean, or that of the whole attribute.

    >>> prec([[0, 1]], heights=[2, 3])  # Sweeney's Example 6, GT[0,1]
    0.8333333333333334
    """
    level, height = np.atleast_2d(np.asarray(levels, np.float64)), np.asarray(heights, np.float64)
    if level.size == 0 or not (height > 0).any():
        raise NotApplicable("no quasi-identifier has a hierarchy")
    if level.shape[1] != len(height) or (level < 0).any() or (level > height).any():
        raise DataError("a level is not on its hierarchy", fix="levels go from 0 to the height of the attribute")
    lost = level.mean(axis=0) / np.where(height > 0, height, 1.0)
    return 1.0 - _average(lost, weights)


def granularity(covered: ArrayLike, leaves: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Share of the detail of the cells that is kept, 0 (all at the top) to 1 (nothing generalized): more is better.

    `covered` is the number of leaves under each released value, or one row for all records, as in `prec`.

    >>> granularity([[1, 3], [5, 3]], leaves=[5, 5])  # 1 less the mean of 0, 2/4, 4/4, 2/4
    0.5
    """
    under, total = np.atleast_2d(np.asarray(covered, np.float64)), np.asarray(leaves, np.float64)
    if under.size == 0 or not (total > 1).any():
        raise NotApplicable("no quasi-identifier has more than one value")
    if under.shape[1] != len(total) or (under < 1).any() or (under > total).any():
        raise DataError(
            "a value covers leaves that are not there", fix="leaves covered go from 1 to all of the attribute"
        )
    lost = (under.mean(axis=0) - 1.0) / np.where(total > 1, total - 1.0, 1.0)
    return 1.0 - _average(lost, weights)


def non_uniform_entropy(held: ArrayLike, covered: ArrayLike, records: int, weight: ArrayLike | None = None) -> float:
    """Share of the original values' information that is lost, 0 (nothing generalized) to 1 (all at the top).

    For each cell, `held` is how many original records hold its original value, `covered` how many hold any value
    under its released one, of `records` in all; `weight` is how many records each row stands for.

    >>> non_uniform_entropy([[1], [1], [2], [2]], [[2], [2], [2], [2]], records=4)
    0.3333333333333333
    """
    own, under = np.asarray(held, np.float64), np.asarray(covered, np.float64)
    if own.shape != under.shape or (own < 1).any() or (under < own).any() or (under > records).any():
        raise DataError("counts of values do not nest", fix="1 ≤ held ≤ covered ≤ records in every cell")
    rows = np.ones(len(own)) if weight is None else np.asarray(weight, np.float64)
    most = float((rows @ np.log2(records / own)).sum())
    if not most:
        raise NotApplicable("every quasi-identifier is constant: there is no information to lose")
    return float((rows @ np.log2(under / own)).sum() / most)


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


def _average(lost: Floats, weights: ArrayLike | None) -> float:
    weight = np.ones(len(lost)) if weights is None else np.asarray(weights, np.float64)
    if weight.shape != lost.shape or (weight < 0).any() or not weight.any():
        raise PolicyError("weights are not one number from 0 up per attribute", fix="give each attribute its weight")
    return float((lost * weight).sum() / weight.sum())
