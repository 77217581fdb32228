"""Uniques: how many records of a sample are alone in their class, and how many people are alone in the population.

    sample_uniques      classes of size 1
    zayatz_uniques      f_1 · P(population unique | sample unique) · N/n, the chance by Bayes' rule from hypergeometric
                        sampling and the sample's own class sizes as those of the population     Zayatz 1991
    pitman_uniques      N G(t+1) G(t+a+N-1) / (G(t+a) G(t+N)), G the gamma function: the expected singletons of Pitman's
                        random partition of N people, with the t (theta) and a (alpha) of the highest likelihood for
                        the sample's class sizes                                                 Hoshino 2001

The likelihood of a sample of n records in u classes, c_i of them larger than i (Pitman 1995):

    log L = Σ_{i<u} log(t + i a) - Σ_{i<n} log(t + i) + Σ_i c_i log(i - a)        0 ≤ a < 1, t > -a

Its maximum is where both slopes are 0, found by scipy's root finding: for each a the t at which the slope in t is 0
(it falls from infinity at t = -a to below 0), and the a at which the other slope is 0 as well, or 0 where that is
negative from the start (the Ewens partition). Cost: O(n) for each of one or two hundred looks.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from kinfold.errors import DataError
from kinfold.measures.arrays import Ints, NotApplicable, counts

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

HIGHEST = 1.0 - 1e-9  # alpha is below 1
WIDEST = 50.0  # logarithm of the largest theta that is looked at: one pair among n uniques has theta of about n²/2
TIGHT = 1e-12  # how closely a root is looked for


def sample_uniques(sizes: ArrayLike) -> int:
    """Return the number of records that are alone in their class, 0 to n: less is better.

    >>> sample_uniques([1, 1, 3])
    2
    """
    return int((counts(sizes) == 1).sum())


def zayatz_uniques(sizes: ArrayLike, population: int) -> float:
    """Return the estimated number of people alone in their class in the population, 0 to N: less is better.

    >>> round(zayatz_uniques([1, 1, 1, 2, 3], population=80), 2)
    12.31
    """
    classes = _sample(sizes, population)
    n = int(classes.sum())
    found, number = np.unique(classes, return_counts=True)
    chances = np.array([_alone(int(size), n, population) for size in found])
    if found[0] != 1:
        return 0.0  # no sample unique: the estimate is none, by its formula
    return float(number[0] * (number[0] * chances[0] / (number * chances).sum()) * population / n)


def pitman_uniques(sizes: ArrayLike, population: int) -> float:
    """Return the estimated number of people alone in their class in the population, 0 to N: less is better.

    >>> round(pitman_uniques([1, 1, 1, 1, 2, 2, 3, 5], population=160), 1)
    5.5
    """
    classes = _sample(sizes, population)
    if len(classes) == 1:
        return 0.0  # theta + alpha goes to 0, and with it the estimate
    if classes.max() == 1:
        raise NotApplicable("every record is unique: the likelihood has no maximum")
    theta, alpha = pitman_fit(classes)
    log_share = (
        math.lgamma(theta + 1)
        + math.lgamma(theta + alpha + population - 1)
        - math.lgamma(theta + alpha)
        - math.lgamma(theta + population)
    )
    return float(min(population, population * math.exp(log_share)))


def pitman_fit(sizes: ArrayLike) -> tuple[float, float]:
    """Return (theta, alpha) of the highest likelihood for two classes or more, of which one is larger than 1."""
    from scipy.optimize import brentq  # loaded only where it is asked for

    classes = counts(sizes)
    i, record = np.arange(1, len(classes)), np.arange(1, int(classes.sum()))
    larger = len(classes) - np.cumsum(np.bincount(classes))[1:-1]  # c_1, c_2, …: classes larger than i
    size = np.arange(1, len(larger) + 1)

    def above(alpha: float) -> float:
        """Return theta + alpha, which is above 0, where the slope in theta is 0."""

        def slope(log: float) -> float:
            t = math.exp(log)
            return float((1 / (t + (i - 1) * alpha)).sum() - (1 / (t + (record - alpha))).sum())

        return math.exp(brentq(slope, -WIDEST, WIDEST, xtol=TIGHT))

    def slope(alpha: float) -> float:
        return float((i / (above(alpha) + (i - 1) * alpha)).sum() - (larger / (size - alpha)).sum())

    if slope(0.0) <= 0:
        alpha = 0.0
    else:
        alpha = HIGHEST if slope(HIGHEST) > 0 else float(brentq(slope, 0.0, HIGHEST, xtol=TIGHT))
    return above(alpha) - alpha, alpha


def _alone(size: int, n: int, population: int) -> float:
    """Chance that exactly one of `size` people of a class is among n drawn from the population."""
    if population - size < n - 1:
        return 0.0
    return size * math.exp(_log_choose(population - size, n - 1) - _log_choose(population, n))


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _sample(sizes: ArrayLike, population: int) -> Ints:
    classes = counts(sizes)
    if population < classes.sum():
        raise DataError("the population is smaller than the release", fix="give the number of people it was drawn from")
    return classes
