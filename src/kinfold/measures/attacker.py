"""The risk of each record, by what an attacker knows, and its summaries.

    prosecutor   knows that the person is in the release: 1 / f, f the size of the record's released class
    journalist   does not know it: 1 / F, F the size of the record's class in the population; where only sampling
                 weights are known, the mean of 1 / F given f, see `individual_risk`
    marketer     wants as many as possible: the mean of those risks over the records

`individual_risk` is the estimator of Benedetti & Franconi 1998: F given f is negative binomial with f successes of
probability p = f / Σ weights, so that

    r_f = (p/f) F(1, 1; f+1; 1-p) = (p/f) Σ_j j! (1-p)^j / ((f+1)…(f+j))

with the hypergeometric function F: by scipy for small classes; for large ones by the sum, whose terms at least halve
there and where scipy's answer is NaN (f = 200, p = 0.01).
Sources: El Emam 2013 for the three attackers; Benedetti & Franconi 1998.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold.errors import DataError
from kinfold.measures.arrays import Floats, Ints, NotApplicable, class_sizes, counts, labels

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

LARGE = 48  # from this class size on the sum needs no more than TERMS terms for any p
TERMS = 64  # at f = 48 and p near 0, the slowest, the last is 1e-32 of the first


def prosecutor_risk(classes: ArrayLike) -> Floats:
    """Return for each released record the chance that picking in its class finds it, above 0 to 1: less is better.

    >>> prosecutor_risk([0, 0, 1, -1]).tolist()  # the last record was dropped
    [0.5, 0.5, 1.0]
    """
    sizes = class_sizes(labels(classes))
    sizes = sizes[sizes > 0]
    if sizes.size == 0:
        raise NotApplicable("there is no released record")
    return np.asarray(1.0 / sizes, np.float64)


def prosecutor_max(sizes: ArrayLike) -> float:
    """Return the highest risk of any released record, 1 / the smallest class, above 0 to 1: less is better.

    >>> prosecutor_max([5, 4, 10])
    0.25
    """
    return float(1.0 / counts(sizes).min())


def prosecutor_mean(sizes: ArrayLike) -> float:
    """Return the mean risk of the released records, classes / records, above 0 to 1: less is better.

    It is also the marketer's risk: the share of all records expected to be found.

    >>> prosecutor_mean([5, 4, 11])
    0.15
    """
    classes = counts(sizes)
    return float(len(classes) / classes.sum())


def journalist_risk(classes: ArrayLike, population: ArrayLike) -> Floats:
    """Return for each released record 1 over the population's records that look like it, 0 to 1: less is better.

    `population[c]` counts the people of the population who fall into released class c.

    >>> journalist_risk([0, 0, 1], [100, 4]).tolist()
    [0.01, 0.01, 0.25]
    """
    kept = labels(classes)
    kept = kept[kept >= 0]
    if kept.size == 0:
        raise NotApplicable("there is no released record")
    people = np.asarray(population, np.float64)
    sizes = np.bincount(kept, minlength=len(people))
    if len(sizes) > len(people) or (people < sizes).any():
        raise DataError(
            "a class has more records in the release than in the population",
            fix="give a population table that holds every released record",
        )
    return np.asarray(1.0 / people[kept], np.float64)


def individual_risk(classes: ArrayLike, weights: ArrayLike) -> Floats:
    """Return for each released record the expected 1 / F from its class's sampling weights, 0 to 1: less is better.

    >>> individual_risk([0, 0, 1], [55.0, 55.0, 17.0]).round(6).tolist()
    [0.017144, 0.017144, 0.177076]
    """
    kept = labels(classes)
    weight = np.asarray(weights, np.float64)
    if kept.shape != weight.shape or not (weight[kept >= 0] >= 1).all():
        raise DataError(
            "sampling weights are not one number from 1 up per record",
            fix="a weight is the number of people a record stands for",
        )
    weight, kept = weight[kept >= 0], kept[kept >= 0]
    if kept.size == 0:
        raise NotApplicable("there is no released record")
    sizes = np.bincount(kept)
    people = np.bincount(kept, weight)
    used = sizes > 0
    risk = np.zeros(len(sizes))
    risk[used] = mean_reciprocal(sizes[used], sizes[used] / people[used])
    return risk[kept]


def marketer_risk(risks: ArrayLike) -> float:
    """Return the mean of the records' risks: the share of records expected to be found, 0 to 1: less is better.

    >>> marketer_risk([0.25, 0.25, 1.0])
    0.5
    """
    return float(_some(risks).mean())


def share_above(risks: ArrayLike, threshold: float) -> float:
    """Return the share of records whose risk is above the threshold, 0 to 1: less is better.

    >>> share_above([0.5, 0.5, 0.1, 0.05], 0.1)
    0.5
    """
    return float((_some(risks) > threshold).mean())


def mean_reciprocal(sizes: Ints, rate: Floats) -> Floats:
    """Return E[1 / F] for a class of f sampled records, F negative binomial with success rate p in (0, 1]."""
    from scipy.special import hyp2f1  # loaded only where it is asked for

    result = np.empty(len(sizes))
    small = sizes < LARGE
    result[small] = rate[small] / sizes[small] * hyp2f1(1.0, 1.0, sizes[small] + 1.0, 1.0 - rate[small])
    result[~small] = _by_series(sizes[~small], rate[~small])
    return result


def _by_series(sizes: Ints, rate: Floats) -> Floats:
    term = rate / sizes
    total = term.copy()
    for j in range(1, TERMS):
        term = term * (j * (1.0 - rate) / (sizes + j))
        total += term
    return np.asarray(total, np.float64)


def _some(risks: ArrayLike) -> Floats:
    array = np.asarray(risks, np.float64)
    if array.size == 0:
        raise NotApplicable("there is no released record")
    return array
