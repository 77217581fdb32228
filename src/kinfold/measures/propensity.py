"""Propensity-score mean squared error: whether a model can tell the released records from the original ones.

Both tables are stacked and a logistic regression is fitted to tell them apart; p is the fitted chance that a record is
a released one, c their share:

    pmse = mean (p - c)²        0: no telling them apart; at most c (1 - c), 1/4 for tables of one size

The model has the columns, their squares and their products: microaggregation keeps means exactly, so that a model of
the columns alone would never see it. Source: Woo, Reiter, Oganian & Karr 2009.
Records with a missing value are left out. Categories come as 0/1 columns. Of a table with more than 20,000 records, as
many evenly spaced ones are taken: the scores of 40,000 records give the mean to about 0.001.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold.errors import DataError
from kinfold.measures import logistic
from kinfold.measures.arrays import Floats, NotApplicable, numbers

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


LARGE = 20_000  # records of a table beyond which evenly spaced ones stand for all: the mean is good to about 0.001


def propensity_mse(original: ArrayLike, released: ArrayLike, degree: int = 2) -> float:
    """Mean squared distance of the propensity scores from chance, 0 (alike) to 1/4 (told apart): less is better.

    >>> x = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> propensity_mse(x, x)
    0.0
    >>> round(propensity_mse(x, x + 100), 3)
    0.25
    """
    x, y = _known(original), _known(released)
    if x.shape[1] != y.shape[1]:
        raise DataError("the tables have different columns", fix="give the same columns in the same order")
    both = np.vstack([x, y])
    if (both.max(axis=0) == both.min(axis=0)).all():
        raise NotApplicable("the columns are constant: there is nothing to tell the tables apart by")
    chosen = np.arange(len(both)) >= len(x)
    design = logistic.Features.of(both, degree)(both)
    score = logistic.chances(design, logistic.fit(design, chosen))
    return float(((score - chosen.mean()) ** 2).mean())


def _known(table: ArrayLike) -> Floats:
    x = numbers(table)
    missing = np.isnan(x).any(axis=1)
    x = x[~missing] if missing.any() else x
    if len(x) == 0:
        raise NotApplicable("a table has no complete record")
    return x if len(x) <= LARGE else x[np.arange(LARGE) * len(x) // LARGE]
