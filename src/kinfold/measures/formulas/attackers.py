"""Risk of re-identification by attacker, and estimates of population uniques.

    prosecutor   knows that the person is in the release: 1 / f, f the size of the released class
    journalist   does not know it: 1 / F, F the size of the class in the population; with sampling weights, the mean of
                 1 / F given f, see `individual_risk`
    marketer     attacks all records: the mean of those risks

`individual_risk`: F given f is negative binomial with f successes of probability p = f / Σ weights, so that

    r_f = (p/f) F(1, 1; f+1; 1-p) = (p/f) Σ_j j! (1-p)^j / ((f+1)…(f+j))

with the hypergeometric function F: by scipy for small classes, by the sum for large ones, where scipy may return NaN.

    sample_uniques   classes of size 1
    zayatz_uniques   f_1 · P(population unique | sample unique) · N/n, by Bayes' rule from hypergeometric sampling, with
                     the class sizes of the sample as those of the population
    pitman_uniques   N G(t+1) G(t+a+N-1) / (G(t+a) G(t+N)), G the gamma function: the expected singletons of Pitman's
                     random partition of N people, with the t (theta) and a (alpha) of the highest likelihood

The log-likelihood of n records in u classes, c_i of them larger than i, is (Pitman 1995)

    Σ_{i<u} log(t + i a) - Σ_{i<n} log(t + i) + Σ_i c_i log(i - a)        0 ≤ a < 1, t > -a

Its maximum is found by scipy's root finding: for each a the t with slope 0 in t, then the a with slope 0 in a, or 0 if
that slope is negative at 0 (the Ewens partition). Cost: O(n) for each of one or two hundred evaluations.

Sources: El Emam, Guide to the De-Identification of Personal Health Information, 2013; Benedetti & Franconi, NTTS 1998;
Zayatz, US Census Bureau report 1991; Hoshino, J. Off. Stat. 17 (2001).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from kinfold.errors import DataError
from kinfold.measures.formulas.arrays import Floats, Ints, NotApplicable, check_labels, check_sizes, count_class_sizes

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


MIN_SERIES_CLASS = 48  # from this class size up, SERIES_TERMS terms suffice for any p
SERIES_TERMS = 64  # at f = 48 and p near 0, the slowest case, the last term is 1e-32 of the first


def prosecutor_risk(classes: ArrayLike) -> Floats:
    """Return 1 / class size of each released record, above 0 to 1: less is better.

    >>> prosecutor_risk([0, 0, 1, -1]).tolist()  # the last record is dropped
    [0.5, 0.5, 1.0]
    """
    sizes = count_class_sizes(check_labels(classes))
    sizes = sizes[sizes > 0]
    if sizes.size == 0:
        raise NotApplicable("there is no released record")
    return np.asarray(1.0 / sizes, np.float64)


def prosecutor_max(sizes: ArrayLike) -> float:
    """Return the highest risk of any released record, 1 / the smallest class, above 0 to 1: less is better.

    >>> prosecutor_max([5, 4, 10])
    0.25
    """
    return float(1.0 / check_sizes(sizes).min())


def prosecutor_mean(sizes: ArrayLike, classes: Ints | None = None) -> float:
    """Return the mean risk, classes / records, above 0 to 1: less is better. It is also the marketer's risk.

    `classes` is the number of classes of each size, 1 by default.

    >>> prosecutor_mean([5, 4, 11])
    0.15
    """
    size = check_sizes(sizes)
    return float(len(size) / size.sum() if classes is None else classes.sum() / (size @ classes))


def journalist_risk(classes: ArrayLike, population: ArrayLike) -> Floats:
    """Return 1 / F of each released record, 0 to 1: less is better; `population[c]` is F of class c.

    >>> journalist_risk([0, 0, 1], [100, 4]).tolist()
    [0.01, 0.01, 0.25]
    """
    kept = check_labels(classes)
    kept = kept[kept >= 0]
    if kept.size == 0:
        raise NotApplicable("there is no released record")
    people = np.asarray(population, np.float64)
    sizes = np.bincount(kept, minlength=len(people))
    if len(sizes) > len(people) or (people < sizes).any():
        fix = "give a population table that holds every released record"
        raise DataError("a class has more records in the release than in the population", fix=fix)
    return np.asarray(1.0 / people[kept], np.float64)


def individual_risk(classes: ArrayLike, weights: ArrayLike) -> Floats:
    """Return the expected 1 / F of each released record by the sampling weights, 0 to 1: less is better.

    >>> individual_risk([0, 0, 1], [55.0, 55.0, 17.0]).round(6).tolist()
    [0.017144, 0.017144, 0.177076]
    """
    kept = check_labels(classes)
    weight = np.asarray(weights, np.float64)
    if kept.shape != weight.shape or not (weight[kept >= 0] >= 1).all():
        fix = "a weight is the number of people that a record stands for"
        raise DataError("sampling weights are not one number from 1 up per record", fix=fix)
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
    """Return the mean risk: the expected share of records found, 0 to 1: less is better.

    >>> marketer_risk([0.25, 0.25, 1.0])
    0.5
    """
    return float(_require_records(risks).mean())


def share_above(risks: ArrayLike, threshold: float) -> float:
    """Return the share of records whose risk is above the threshold, 0 to 1: less is better.

    >>> share_above([0.5, 0.5, 0.1, 0.05], 0.1)
    0.5
    """
    return float((_require_records(risks) > threshold).mean())


def mean_reciprocal(sizes: Ints, rate: Floats) -> Floats:
    """Return E[1 / F] of classes of f records, F negative binomial with success rate p in (0, 1]."""
    from scipy.special import hyp2f1  # slow to load

    result = np.empty(len(sizes))
    small = sizes < MIN_SERIES_CLASS
    result[small] = rate[small] / sizes[small] * hyp2f1(1.0, 1.0, sizes[small] + 1.0, 1.0 - rate[small])
    result[~small] = _sum_series(sizes[~small], rate[~small])
    return result


def _sum_series(sizes: Ints, rate: Floats) -> Floats:
    term = rate / sizes
    total = term.copy()
    for j in range(1, SERIES_TERMS):
        term = term * (j * (1.0 - rate) / (sizes + j))
        total += term
    return np.asarray(total, np.float64)


def _require_records(risks: ArrayLike) -> Floats:
    array = np.asarray(risks, np.float64)
    if array.size == 0:
        raise NotApplicable("there is no released record")
    return array


MAX_ALPHA = 1.0 - 1e-9  # alpha is below 1
MAX_LOG_THETA = 50.0  # log of the largest theta in the search: one pair among n uniques has theta of about n²/2
ROOT_TOLERANCE = 1e-12


def sample_uniques(sizes: ArrayLike, classes: Ints | None = None) -> int:
    """Return the number of classes with one record, 0 to n: less is better.

    `classes` is the number of classes of each size, 1 by default.

    >>> sample_uniques([1, 1, 3])
    2
    """
    unique = check_sizes(sizes) == 1
    return int(unique.sum() if classes is None else classes[unique].sum())


def zayatz_uniques(sizes: ArrayLike, population: int) -> float:
    """Return the estimated number of population uniques, 0 to N: less is better.

    >>> round(zayatz_uniques([1, 1, 1, 2, 3], population=80), 2)
    12.31
    """
    classes = _check_sample(sizes, population)
    n = int(classes.sum())
    distinct, number = np.unique(classes, return_counts=True)
    chances = np.array([_chance_of_one(int(size), n, population) for size in distinct])
    if distinct[0] != 1:
        return 0.0  # the formula without sample uniques
    return float(number[0] * (number[0] * chances[0] / (number * chances).sum()) * population / n)


def pitman_uniques(sizes: ArrayLike, population: int) -> float:
    """Return the estimated number of population uniques, 0 to N: less is better.

    >>> round(pitman_uniques([1, 1, 1, 1, 2, 2, 3, 5], population=160), 1)
    5.5
    """
    classes = _check_sample(sizes, population)
    if len(classes) == 1:
        return 0.0  # the limit for theta + alpha to 0
    if classes.max() == 1:
        raise NotApplicable("every record is unique: the likelihood has no maximum")
    theta, alpha = pitman_fit(classes)
    log_share = math.lgamma(theta + 1) + math.lgamma(theta + alpha + population - 1)
    log_share = log_share - math.lgamma(theta + alpha) - math.lgamma(theta + population)
    return float(min(population, population * math.exp(log_share)))


def pitman_fit(sizes: ArrayLike) -> tuple[float, float]:
    """Return (theta, alpha) of the highest likelihood, for at least two classes, one of them larger than 1."""
    from scipy.optimize import brentq  # slow to load

    classes = check_sizes(sizes)
    i, record = np.arange(1, len(classes)), np.arange(1, int(classes.sum()))
    larger = len(classes) - np.cumsum(np.bincount(classes))[1:-1]  # c_1, c_2, …: classes larger than i
    size = np.arange(1, len(larger) + 1)

    def above(alpha: float) -> float:
        """Return the theta + alpha, above 0, with slope 0 in theta."""

        def slope(log: float) -> float:
            t = math.exp(log)
            return float((1 / (t + (i - 1) * alpha)).sum() - (1 / (t + (record - alpha))).sum())

        return math.exp(brentq(slope, -MAX_LOG_THETA, MAX_LOG_THETA, xtol=ROOT_TOLERANCE))

    def slope(alpha: float) -> float:
        return float((i / (above(alpha) + (i - 1) * alpha)).sum() - (larger / (size - alpha)).sum())

    if slope(0.0) <= 0:
        alpha = 0.0
    else:
        alpha = MAX_ALPHA if slope(MAX_ALPHA) > 0 else float(brentq(slope, 0.0, MAX_ALPHA, xtol=ROOT_TOLERANCE))
    return above(alpha) - alpha, alpha


def _chance_of_one(size: int, n: int, population: int) -> float:
    """Return the chance that exactly one of the `size` people of a class is in a sample of n."""
    if population - size < n - 1:
        return 0.0
    return size * math.exp(_log_choose(population - size, n - 1) - _log_choose(population, n))


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _check_sample(sizes: ArrayLike, population: int) -> Ints:
    classes = check_sizes(sizes)
    if population < classes.sum():
        raise DataError("the population is smaller than the release", fix="give the number of people it was drawn from")
    return classes
