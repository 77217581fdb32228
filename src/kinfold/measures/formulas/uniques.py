"""The number of people who are unique in the population, estimated from a sample: from class sizes, or by a model.

    sample_uniques   f_1, classes of size 1; f_j are the classes of size j, n the records, N the people
    zayatz_uniques   f_1 · P(population unique | sample unique) · N/n, by Bayes' rule from hypergeometric sampling, with
                     the class sizes of the sample as those of the population
    pitman_uniques   N G(t+1) G(t+a+N-1) / (G(t+a) G(t+N)), G the gamma function: the expected singletons of Pitman's
                     random partition of N people, with the t (theta) and a (alpha) of the highest likelihood
    snb_uniques      K b^a: the classes of the population have 1 + negative binomial(a, b) people. K by Shlosser's
                     estimate; a and b such that the expected f_1 and f_2 of a sample are those counted
    dankar_uniques   Pitman up to a sampling fraction of 0.1, above it the less of Zayatz and SNB

The log-likelihood of n records in u classes, c_i of them larger than i, is (Pitman 1995)

    Σ_{i<u} log(t + i a) - Σ_{i<n} log(t + i) + Σ_i c_i log(i - a)        0 ≤ a < 1, t > -a

Its maximum is found by scipy's root finding: for each a the t with slope 0 in t, then the a with slope 0 in a, or 0 if
that slope is negative at 0 (the Ewens partition). Cost: O(n) for each of one or two hundred evaluations.

With the sampling fraction f = n/N and d = (1-f)(1-b), the equations of SNB are

    E[f_1] = K f (b/(1-d))^a (1 + a d/(1-d))
    E[f_2] = K f² a b^a (1-b) (2 - (1-a) d) / (2 (1-d)^(a+2))
    K      = u + f_1 S² Σ i f² (1-f²)^(i-1) f_i / Σ (1-f)^i ((1+f)^i - 1) f_i,
             S = Σ (1-f)^i f_i / Σ i f (1-f)^(i-1) f_i         Shlosser's estimate as modified by Haas & Stokes

Their ratio E[f_2] / E[f_1] is free of powers and gives, for each b, a quadratic equation with one positive root a. What
is left is one equation in b, whose sign is looked for on a grid. Without a change of sign there is no root.

If SNB has no root, Dankar's rule gives Zayatz's estimate, the larger one.

Sources: Zayatz, US Census Bureau report 1991; Hoshino, J. Off. Stat. 17 (2001); Chen & Keller-McNulty, J. Off. Stat. 14
(1998), for SNB; Haas & Stokes, J. Am. Stat. Assoc. 93 (1998), for Shlosser; Dankar, El Emam, Neisa & Roffey, BMC Med.
Inform. Decis. Mak. 12:66 (2012).

Population uniques and correct matches among the sample uniques, by a log-linear model: its cells are all combinations
of the values of the keys that occur. The expected number of records of a cell, mu, is fitted to the counts f: by main
effects (independent columns), or with interactions of some columns. With the sampling fraction pi of a cell, the number
of people in it who are not in the sample is Poisson with mean h = mu (1 - pi) / pi:

    tau1 = Σ exp(-h)             over the sample uniques: the expected number of population uniques among them
    tau2 = Σ (1 - exp(-h)) / h   over the sample uniques: the expected number of correct matches

pi is n over the sum of the weights, or by cell: 1 / weight of the sample unique.

The model with main effects has the product of the column's shares as its fit. Interactions are fitted by iterative
proportional fitting: each margin in turn, until none changes by more than 1e-10 of its count. A missing value is a
value. Cost: O(n) with main effects, else the cells of all connected columns times the steps.

Sources: Skinner & Shlomo, J. Am. Stat. Assoc. 103, 2008; Skinner & Holmes, J. Off. Stat. 14(4), 1998; Bishop, Fienberg
& Holland, Discrete Multivariate Analysis, MIT Press 1975, chapter 3 (fitting).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from kinfold.errors import DataError, PolicyError
from kinfold.measures.formulas.arrays import (
    Floats,
    Ints,
    NamedResult,
    NotApplicable,
    check_codes,
    check_sizes,
    group_rows,
)

MAX_ALPHA = 1.0 - 1e-9  # alpha is below 1
MAX_LOG_THETA = 50.0  # log of the largest theta in the search: one pair among n uniques has theta of about n²/2
ROOT_TOLERANCE = 1e-12  # of a parameter: estimates are shown with four digits


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
    if classes.max() == 1:
        raise NotApplicable("every record is unique: the likelihood has no maximum")
    if len(classes) == 1:
        return 0.0  # the limit for theta + alpha to 0
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
    others = np.arange(size - 1)  # of the class, drawn after the one: none of them is in the sample
    return size * n / population * float(np.prod((population - n - others) / (population - 1.0 - others)))


LARGEST_PITMAN_FRACTION = 0.1  # Dankar et al. 2012
LOGITS = np.linspace(-40.0, 20.0, 1201)  # of b, in steps of 5 %; nearer to 1, rounding errors look like roots


def snb_uniques(sizes: ArrayLike, population: int) -> float:
    """Return the estimated number of population uniques, 0 to N: less is better.

    >>> round(snb_uniques([1] * 40 + [2] * 20 + [3] * 10 + [8] * 5, population=300), 1)
    34.3
    """
    classes = _check_sample(sizes, population)
    frequencies = np.bincount(classes, minlength=3)
    fraction = float(classes.sum()) / population
    if frequencies[1] == 0 or fraction == 1.0:
        return float(frequencies[1])
    if frequencies[2] == 0:
        raise NotApplicable("no class has two records: the equations of the SNB estimate have no root")
    alpha, beta = snb_fit(frequencies, fraction)
    return float(estimate_classes(frequencies, fraction) * beta**alpha)


def snb_fit(frequencies: Ints, fraction: float) -> tuple[float, float]:
    """Return the (alpha, beta) with the expected uniques and pairs; `frequencies[j]` classes have j records."""
    from scipy.optimize import brentq  # slow to load

    ratio, log_target = (
        frequencies[2] / frequencies[1],
        math.log(frequencies[1] / (fraction * estimate_classes(frequencies, fraction))),
    )

    def excess(logit: Floats | float) -> Floats:
        """Return the log of expected over counted uniques."""
        a, b, d = _solve_ratio(logit, ratio, fraction)
        return np.asarray(a * np.log(b / (1.0 - d)) + np.log1p(a * d / (1.0 - d)) - log_target, np.float64)

    signs = np.sign(excess(LOGITS))
    changes = np.flatnonzero(signs[:-1] * signs[1:] <= 0)
    if changes.size == 0:
        raise NotApplicable("the equations of the SNB estimate have no root")
    low, high = LOGITS[changes[0]], LOGITS[changes[0] + 1]
    alpha, beta, _ = _solve_ratio(brentq(lambda x: float(excess(x)), low, high, xtol=ROOT_TOLERANCE), ratio, fraction)
    return float(alpha), float(beta)


def _solve_ratio(logit: Floats | float, ratio: float, fraction: float) -> tuple[Floats, Floats, Floats]:
    """Return the alpha with this ratio of expected pairs to uniques for the b of each logit; b; and d."""
    b, rest = 1.0 / (1.0 + np.exp(-np.asarray(logit))), 1.0 / (1.0 + np.exp(logit))  # rest: 1 - b, not cancelled
    d = (1.0 - fraction) * rest
    square = fraction * rest * d
    linear = fraction * rest * (2.0 - d) - 2.0 * ratio * (1.0 - d) * d
    constant = 2.0 * ratio * (1.0 - d) ** 2
    root = np.sqrt(linear**2 + 4.0 * square * constant)
    positive = 2.0 * constant / (root + np.abs(linear))  # the form without cancellation, by the sign of `linear`
    return np.where(linear > 0, positive, (root + np.abs(linear)) / (2.0 * square)), b, d


def estimate_classes(frequencies: Ints, fraction: float) -> float:
    """Return the estimated number of classes in the population; `frequencies[j]` classes have j records.

    >>> round(estimate_classes(np.array([0, 4, 2, 1]), 0.5), 2)
    9.73
    """
    f, size = fraction, np.arange(1, len(frequencies))
    number, missed = frequencies[1:], (1.0 - f) ** size
    unseen = (missed * number).sum() / (size * f * (1.0 - f) ** (size - 1) * number).sum()
    pairs = (size * f**2 * (1.0 - f**2) ** (size - 1) * number).sum()
    return float(number.sum() + frequencies[1] * unseen**2 * pairs / (((1.0 - f**2) ** size - missed) * number).sum())


def dankar_uniques(sizes: ArrayLike, population: int) -> float:
    """Return the estimated number of population uniques by the rule of Dankar et al., 0 to N: less is better.

    >>> dankar_uniques([1, 1, 1, 1, 2, 2, 3, 5], 160) == pitman_uniques([1, 1, 1, 1, 2, 2, 3, 5], 160)
    True
    """
    classes = _check_sample(sizes, population)
    if classes.sum() <= LARGEST_PITMAN_FRACTION * population:
        return pitman_uniques(classes, population)
    zayatz = zayatz_uniques(classes, population)
    try:
        return min(zayatz, snb_uniques(classes, population))
    except NotApplicable:
        return zayatz


def _check_sample(sizes: ArrayLike, population: int) -> Ints:
    classes = check_sizes(sizes)
    if population < classes.sum():
        raise DataError("the population is smaller than the release", fix="give the number of people it was drawn from")
    return classes


MAX_MODEL_CELLS = 10_000_000  # of connected columns: 80 MB
MAX_FITTING_STEPS = 1000  # of iterative proportional fitting, if MARGIN_TOLERANCE does not end it earlier
MARGIN_TOLERANCE = 1e-10  # the largest relative change of a margin in the last step


@dataclass(frozen=True, eq=False, repr=False)
class LogLinearRisk(NamedResult):
    """The risk of the sample uniques by a log-linear model."""

    tau1: float
    tau2: float
    sample_uniques: int
    deviance: float  # of the model: 2 Σ f log(f / mu)
    cells: int
    fitted: Floats  # mu of the cell of each record


def measure_log_linear(
    keys: ArrayLike, weights: ArrayLike, interactions: Sequence[Sequence[int]] = (), *, by_cell: bool = True
) -> LogLinearRisk:
    """Return the risk of the sample uniques; `interactions` are sets of positions of keys.

    >>> result = measure_log_linear([[0, 0], [0, 1], [1, 0], [0, 0]], [10.0, 10.0, 10.0, 10.0])
    >>> round(result.tau1, 6), round(result.tau2, 6), result.sample_uniques
    (0.002342, 0.295949, 2)
    """
    codes, weight = check_codes(keys), np.asarray(weights, np.float64)
    if not codes.size:
        raise NotApplicable("there is no record")
    if len(weight) != len(codes) or not (np.isfinite(weight) & (weight >= 1)).all():
        fix = "a weight is the number of people that a record stands for"
        raise DataError("sampling weights are not one number from 1 up per record", fix=fix)
    columns = np.column_stack([np.unique(column, return_inverse=True)[1] for column in codes.T])
    group, first = group_rows(columns)
    count, cells = np.bincount(group), columns[first]
    fitted = np.full(len(first), float(len(codes)))
    for part in _connect(interactions, codes.shape[1]):
        margins = [[part.index(j) for j in each] for each in interactions if each[0] in part]
        fitted *= _fit(cells[:, part], count, margins)
    unique = count == 1
    people = weight[first][unique] if by_cell else float(weight.mean())
    unsampled = fitted[unique] * (people - 1.0)  # (1 - pi) / pi = people - 1
    matches = np.where(unsampled > 0, -np.expm1(-unsampled) / np.where(unsampled > 0, unsampled, 1.0), 1.0)
    deviance = 2.0 * float((count * np.log(count / fitted)).sum())
    number = math.prod(int(column.max()) + 1 for column in columns.T)
    tau1 = float(np.exp(-unsampled).sum())
    return LogLinearRisk(tau1, float(matches.sum()), int(unique.sum()), deviance, number, fitted[group])


def _connect(interactions: Sequence[Sequence[int]], columns: int) -> Iterator[list[int]]:
    """Yield the sets of columns that interactions connect; their fits are independent."""
    parts = [{j} for j in range(columns)]
    for each in interactions:
        if not each or len({*each}) < len(each) or min(each) < 0 or max(each) >= columns:
            raise PolicyError("an interaction does not name key columns, each once", fix="name two or more keys")
        joined = {j for part in parts if part & {*each} for j in part}
        parts = [*(part for part in parts if not part & joined), joined]
    yield from (sorted(part) for part in parts)


def _fit(cells: Ints, count: Ints, margins: list[list[int]]) -> Floats:
    """Return the fitted share of the records in each of these cells of some columns."""
    shape = tuple(int(column.max()) + 1 for column in cells.T)
    if math.prod(shape) > MAX_MODEL_CELLS:
        raise NotApplicable("the keys with interactions have too many combinations of values for a log-linear model")
    observed = np.zeros(shape)
    np.add.at(observed, tuple(cells.T), count)
    observed /= count.sum()
    fitted = np.ones(shape)
    named = {j for margin in margins for j in margin}
    margins = [*margins, *([j] for j in range(len(shape)) if j not in named)]
    for _ in range(MAX_FITTING_STEPS):
        change = max(_fit_margin(fitted, observed, margin) for margin in margins)
        if change < MARGIN_TOLERANCE:
            break
    return np.asarray(fitted[tuple(cells.T)], np.float64)


def _fit_margin(fitted: Floats, observed: Floats, margin: list[int]) -> float:
    """Scale the fit to a margin of the observed table, and return the largest change relative to the margin."""
    others = tuple(j for j in range(observed.ndim) if j not in margin)
    target, current = (table.sum(axis=others, keepdims=True) for table in (observed, fitted))
    scale = np.divide(target, current, out=np.zeros_like(target), where=current > 0)
    fitted *= scale
    return float(np.abs(np.where(target > 0, scale - 1.0, 0.0)).max())
