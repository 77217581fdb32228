"""Utility for an analyst: summaries, propensity scores, and regression or classification fitted on both tables.

    propensity_mse    mean (p - c)², p the fitted probability that a record is a released one, c their share: 0 if the
                      tables cannot be distinguished, at most c (1 - c), 1/4 for tables of one size
    regression_loss   R² on the original records of a least-squares fit to the original, minus that to the release
    accuracy_loss     share of original records classified correctly by logistic regressions (one against the rest)
                      fitted to the original, minus that of a fit to the release

The propensity model has the columns, their squares and their products: microaggregation keeps means exactly, so a model
of the columns alone would see no difference. Records with missing values are left out; categories are 0/1 columns.
Source: Woo, Reiter, Oganian & Karr, J. Privacy Confid. 1 (2009).

Logistic regression has a small ridge, so that separable tables have a finite fit. Cost: O(n p²) for each Newton step, p
features; memory O(n p).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from kinfold.errors import DataError
from kinfold.measures.formulas.arrays import (
    Flags,
    Floats,
    Ints,
    NotApplicable,
    check_codes,
    compute_quantiles,
    select_complete,
    to_numbers,
)

MAX_NEWTON_STEPS = 100  # usually fewer than 15; separable tables need the most
RIDGE = 1e-6  # per row: too small to move a fit, large enough to end one
SLOPE_TOLERANCE = 1e-9  # per row, at the end of the fit: scores have about 10 digits then


@dataclass(frozen=True, eq=False)
class Features:
    """Standardized columns, an intercept and, for degree 2, their squares and products."""

    means: Floats
    units: Floats
    degree: int

    @classmethod
    def from_table(cls, x: Floats, degree: int = 1) -> Features:
        """Return features with the means and deviations of a table; a constant column becomes 0."""
        deviation = x.std(axis=0)
        varied = (x.max(axis=0) > x.min(axis=0)) & (deviation > 0)
        return cls(x.mean(axis=0), np.where(varied, deviation, np.inf), degree)

    def __call__(self, x: Floats) -> Floats:
        """Return the features of these rows."""
        z = (x - self.means) / self.units
        parts = [np.ones((len(z), 1)), z]
        if self.degree == 2:
            i, j = np.triu_indices(z.shape[1])
            parts.append(z[:, i] * z[:, j])
        return np.hstack(parts)


def fit_logistic(design: Floats, chosen: Flags) -> Floats:
    """Return the coefficients of the highest likelihood that separate the chosen rows from the others."""
    from scipy.optimize import minimize  # slow to load
    from scipy.special import expit

    records = len(design)

    def cost(beta: Floats) -> tuple[float, Floats]:
        z = design @ beta
        slope = design.T @ (expit(z) - chosen) / records + RIDGE * beta
        likelihood = z[chosen].sum() - np.logaddexp(0.0, z).sum() - RIDGE * records * (beta @ beta) / 2.0
        return -float(likelihood) / records, slope

    def hessian(beta: Floats) -> Floats:
        chance = expit(design @ beta)
        weighted = design * (chance * (1.0 - chance))[:, None]
        return np.asarray(weighted.T @ design / records + RIDGE * np.eye(len(beta)), np.float64)

    start = np.zeros(design.shape[1])
    with np.errstate(under="ignore", over="ignore"):  # tiny probabilities become 0
        fitted = minimize(
            cost,
            start,
            jac=True,
            hess=hessian,
            method="trust-exact",
            options={"gtol": SLOPE_TOLERANCE, "maxiter": MAX_NEWTON_STEPS},
        )
    return np.asarray(fitted.x, np.float64)


def predict_probability(design: Floats, beta: Floats) -> Floats:
    """Return the fitted probability of each row to be a chosen one."""
    from scipy.special import expit

    return np.asarray(expit(design @ beta), np.float64)


MAX_PROPENSITY_RECORDS = 20_000  # of a table; larger ones are thinned evenly: the mean is good to about 0.001


def propensity_mse(original: ArrayLike, released: ArrayLike, degree: int = 2) -> float:
    """Return the mean squared distance of the propensity scores from chance, 0 to 1/4: less is better.

    >>> x = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> propensity_mse(x, x)
    0.0
    >>> round(propensity_mse(x, x + 100), 3)
    0.25
    """
    x, y = _sample_complete(original), _sample_complete(released)
    if x.shape[1] != y.shape[1]:
        raise DataError("the tables have different columns", fix="give the same columns in the same order")
    both = np.vstack([x, y])
    if (both.max(axis=0) == both.min(axis=0)).all():
        raise NotApplicable("the columns are constant: nothing can distinguish the tables")
    chosen = np.arange(len(both)) >= len(x)
    design = Features.from_table(both, degree)(both)
    score = predict_probability(design, fit_logistic(design, chosen))
    return float(((score - chosen.mean()) ** 2).mean())


def _sample_complete(table: ArrayLike) -> Floats:
    x = to_numbers(table)
    missing = np.isnan(x).any(axis=1)
    x = x[~missing] if missing.any() else x
    if len(x) == 0:
        raise NotApplicable("a table has no complete record")
    most = MAX_PROPENSITY_RECORDS
    return x if len(x) <= most else x[np.arange(most) * len(x) // most]


SUMMARY_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)  # quartiles, and tails that no single record determines


@dataclass(frozen=True)
class ColumnSummary:
    """A summary of a numeric column, with the population (1/n) variance."""

    count: int
    missing: int
    mean: float
    variance: float
    quantiles: tuple[float, ...]


@dataclass(frozen=True)
class TaskScores:
    """The scores on the original records of a task fitted to the original and to the release."""

    original: float
    released: float

    @property
    def loss(self) -> float:
        """The loss of score by the release."""
        return self.original - self.released


def summarize(
    column: ArrayLike, quantiles: Sequence[float] = SUMMARY_QUANTILES, weight: ArrayLike | None = None
) -> ColumnSummary:
    """Return the count, mean, variance and quantiles of the known values of a column.

    `weight` is the number of records of each value, 1 by default.

    >>> summarize([1.0, 3.0, np.nan], quantiles=[0.5])
    ColumnSummary(count=2, missing=1, mean=2.0, variance=1.0, quantiles=(2.0,))
    """
    values = np.asarray(column, np.float64)
    records = np.ones(len(values), np.int64) if weight is None else np.asarray(weight, np.int64)
    missing = np.isnan(values)
    known, counts = values[~missing], records[~missing]
    if not counts.sum():
        raise NotApplicable("every value is missing")
    order = np.argsort(known, kind="stable")
    shares = tuple(float(value) for value in compute_quantiles(known[order], quantiles, counts[order]))
    mean = float(np.average(known, weights=counts))
    variance = float(np.average((known - mean) ** 2, weights=counts))
    return ColumnSummary(int(counts.sum()), int(records[missing].sum()), mean, variance, shares)


def correlate(count: int, covariances: Floats) -> Floats:
    """Return the correlations from the covariances of `count` records; NaN for a constant column.

    >>> correlate(3, np.array([[1.0, 2.0], [2.0, 4.0]])).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    if count < 2:
        raise NotApplicable("there are fewer than two complete records")
    deviations = np.sqrt(np.diag(covariances))
    constant = deviations == 0
    unit = np.where(constant, 1.0, deviations)
    correlations = np.clip(covariances / np.outer(unit, unit), -1.0, 1.0)
    correlations[constant, :] = np.nan
    correlations[:, constant] = np.nan
    return np.asarray(correlations, np.float64)


def regression_loss(original: ArrayLike, released: ArrayLike, target: int) -> TaskScores:
    """Return R² of column `target` on the others, on the original records, by either fit.

    1 explains all, 0 no more than the mean. The loss is never negative.

    >>> x = np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0], [4.0, 8.0]])
    >>> regression_loss(x, x[[1, 1, 2, 2]], target=1).loss < 1e-9
    True
    """
    (x, _), (y, _) = select_complete(original), select_complete(released)
    truth, others = x[:, target], np.delete(x, target, axis=1)
    if truth.min() == truth.max():
        raise NotApplicable("the target is constant: there is nothing to explain")
    features = Features.from_table(others)
    scores = []
    for fitted, answer in ((others, truth), (np.delete(y, target, axis=1), y[:, target])):
        beta = np.linalg.lstsq(features(fitted), answer, rcond=None)[0]
        error = ((truth - features(others) @ beta) ** 2).sum()
        scores.append(float(1.0 - error / ((truth - truth.mean()) ** 2).sum()))
    return TaskScores(*scores)


def fit_coefficients(features: Floats, target: Floats) -> tuple[Floats, Floats]:
    """Return the coefficients of a linear regression with an intercept, and their standard errors, without its own.

    >>> x = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> coefficients, errors = fit_coefficients(x, np.array([1.0, 3.0, 5.0, 9.0]))
    >>> coefficients.round(3).tolist(), errors.round(3).tolist()
    ([2.6], [0.346])
    """
    design = np.column_stack([np.ones(len(features)), features])
    freedom = len(design) - design.shape[1]
    if freedom < 1 or np.linalg.matrix_rank(design) < design.shape[1]:
        raise NotApplicable("the columns of the task determine each other, or there are too few records")
    inverse = np.linalg.inv(design.T @ design)
    beta = np.linalg.lstsq(design, target, rcond=None)[0]
    variance = float(((target - design @ beta) ** 2).sum()) / freedom
    errors = np.sqrt(variance * np.diag(inverse))
    return np.asarray(beta[1:], np.float64), np.asarray(errors[1:], np.float64)


def accuracy_loss(original: ArrayLike, released: ArrayLike, truth: ArrayLike, answers: ArrayLike) -> TaskScores:
    """Return the share of original records classified correctly, 0 to 1, by either fit.

    `truth` and `answers` are the categories of the original and the released records.

    >>> x = np.array([[1.0], [2.0], [8.0], [9.0]])
    >>> accuracy_loss(x, [[1.5], [1.5], [8.5], [8.5]], [0, 0, 1, 1], [0, 0, 1, 1])
    TaskScores(original=1.0, released=1.0)
    """
    x, y = to_numbers(original), to_numbers(released)
    real, given = check_codes(truth)[:, 0], check_codes(answers)[:, 0]
    known, left = ~np.isnan(x).any(axis=1), ~np.isnan(y).any(axis=1)
    x, real, y, given = x[known], real[known], y[left], given[left]
    if len(np.unique(real)) < 2 or len(given) == 0:
        raise NotApplicable("there are fewer than two categories")
    features = Features.from_table(x)
    design = features(x)
    guesses = (_classify(fitted, answer, design) for fitted, answer in ((design, real), (features(y), given)))
    return TaskScores(*(float((guess == real).mean()) for guess in guesses))


def _classify(design: Floats, answer: Ints, at: Floats) -> Ints:
    """Return the category with the highest score of each row of `at`; ties: the lowest code."""
    categories = np.unique(answer)
    scores = [at @ fit_logistic(design, answer == category) for category in categories]
    return np.asarray(categories[np.argmax(scores, axis=0)], np.int64)
