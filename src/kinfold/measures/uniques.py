"""Uniques: how many records of a sample are alone in their class, and how many people are alone in the population.

    sample_uniques      classes of size 1
    zayatz_uniques      f_1 · P(population unique | sample unique) · N/n, the chance by Bayes' rule from hypergeometric
                        sampling and the sample's own class sizes as those of the population     Zayatz 1991
    pitman_uniques      N G(t+1) G(t+a+N-1) / (G(t+a) G(t+N)), G the gamma function: the expected singletons of Pitman's
                        random partition of N people, with the t (theta) and a (alpha) of the highest likelihood for
                        the sample's class sizes                                                 Hoshino 2001

The likelihood of a sample of n records in u classes, c_i of them larger than i (Pitman 1995):

    log L = Σ_{i<u} log(t + i a) - Σ_{i<n} log(t + i) + Σ_i c_i log(i - a)        0 ≤ a < 1, t > -a

climbed by Newton's steps, halved until they climb. Cost: O(n) for each of a few dozen steps.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from kinfold.errors import DataError
from kinfold.measures.arrays import Floats, Ints, NotApplicable, counts

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

STEPS = 200
HALVINGS = 40


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
    6.7
    """
    classes = _sample(sizes, population)
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
    """Return (theta, alpha) of the highest likelihood for these class sizes."""
    classes = counts(sizes)
    n = int(classes.sum())
    larger = len(classes) - np.cumsum(np.bincount(classes))[1:-1]  # c_1, c_2, …: classes larger than i
    point = np.array([max(1.0, len(classes) / 2.0), 0.1])
    score, slope, bend = _likelihood(point, n, len(classes), larger)
    for _ in range(STEPS):
        direction = _uphill(slope, bend)
        point, score, slope, bend, moved = _climb(point, direction, score, (n, len(classes), larger))
        if moved <= 1e-10:
            break
    return float(point[0]), float(point[1])


def _climb(
    point: Floats, direction: Floats, score: float, data: tuple[int, int, Ints]
) -> tuple[Floats, float, Floats, Floats, float]:
    """Go along the direction, halved until the likelihood grows; stay where it never does."""
    n, u, larger = data
    step = 1.0
    for _ in range(HALVINGS):
        theta, alpha = point + step * direction
        alpha = min(max(alpha, 0.0), 1.0 - 1e-9)  # the edge alpha = 0 is the Ewens partition, and allowed
        if theta > -alpha:
            here = np.array([theta, alpha])
            found, slope, bend = _likelihood(here, n, u, larger)
            if found > score:
                return here, found, slope, bend, float(np.abs(here - point).max() / max(1.0, abs(theta)))
        step /= 2
    return point, score, np.zeros(2), np.eye(2), 0.0


def _uphill(slope: Floats, bend: Floats) -> Floats:
    """Return Newton's step where the likelihood is hollow downwards, else a step along the slope."""
    if bend[0, 0] < 0 and np.linalg.det(bend) > 0:
        return np.asarray(-np.linalg.solve(bend, slope), np.float64)
    scale = np.abs(np.diag(bend))
    return np.asarray(slope / np.where(scale > 0, scale, 1.0), np.float64)


def _likelihood(point: Floats, n: int, u: int, larger: Ints) -> tuple[float, Floats, Floats]:
    """Return the log-likelihood, its slope and its second derivatives."""
    theta, alpha = point
    i = np.arange(1, u)
    a, b, c = theta + i * alpha, theta + np.arange(1, n), np.arange(1, len(larger) + 1) - alpha
    value = np.log(a).sum() - np.log(b).sum() + (larger * np.log(c)).sum()
    slope = np.array([(1 / a).sum() - (1 / b).sum(), (i / a).sum() - (larger / c).sum()])
    across = -(i / a**2).sum()
    bend = np.array(
        [
            [(1 / b**2).sum() - (1 / a**2).sum(), across],
            [across, -((i / a) ** 2).sum() - (larger / c**2).sum()],
        ]
    )
    return float(value), slope, bend


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
