"""What the data is still good for: columns before and after, and a task fitted on either table.

    summary           count, mean, variance and quantiles of a numeric column
    correlations      the correlation matrix of the complete records
    regression_loss   R² on the original records of a least-squares fit to the original, less that of one to the release
    accuracy_loss     share of the original records classified right by logistic regressions (one against the rest)
                      fitted to the original, less that of those fitted to the release

Both scores are taken on the original records: what counts is what an analyst of the release gets wrong about them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kinfold.measures import logistic
from kinfold.measures.arrays import Floats, Ints, NotApplicable, codes, numbers
from kinfold.measures.quantiles import quantiles as ranked_quantiles
from kinfold.measures.variation import Moments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

SHOWN = (0.05, 0.25, 0.5, 0.75, 0.95)  # quartiles, and tails that no single record makes


@dataclass(frozen=True)
class ColumnSummary:
    """A numeric column in a few numbers; the variance is the population's (1/n)."""

    count: int
    missing: int
    mean: float
    variance: float
    quantiles: tuple[float, ...]


@dataclass(frozen=True)
class TaskScores:
    """The score of a task on the original records, fitted on the original and on the release."""

    original: float
    released: float

    @property
    def loss(self) -> float:
        """What the release costs in the score."""
        return self.original - self.released


def summary(column: ArrayLike, quantiles: Sequence[float] = SHOWN, weight: ArrayLike | None = None) -> ColumnSummary:
    """Return the count, mean, variance and quantiles of the known values of a column.

    `weight` is how many records hold each value, where equal ones are given once.

    >>> summary([1.0, 3.0, np.nan], quantiles=[0.5])
    ColumnSummary(count=2, missing=1, mean=2.0, variance=1.0, quantiles=(2.0,))
    """
    values = np.asarray(column, np.float64)
    records = np.ones(len(values), np.int64) if weight is None else np.asarray(weight, np.int64)
    there = ~np.isnan(values)
    known, held = values[there], records[there]
    if not held.sum():
        raise NotApplicable("every value is missing")
    order = np.argsort(known, kind="stable")
    found = tuple(float(value) for value in ranked_quantiles(known[order], quantiles, held[order]))
    mean = float(np.average(known, weights=held))
    variance = float(np.average((known - mean) ** 2, weights=held))
    return ColumnSummary(int(held.sum()), int(records[~there].sum()), mean, variance, found)


def correlations(table: ArrayLike) -> Floats:
    """Return the correlation matrix of the complete records, -1 to 1; NaN marks a constant column, which has none.

    >>> correlations([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]).round(6).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    return correlated(len(numbers(table)), Moments.of(table).covariances)


def correlated(count: int, covariances: Floats) -> Floats:
    """Return the correlations of so many records by their covariances; NaN marks a constant column.

    >>> correlated(3, np.array([[1.0, 2.0], [2.0, 4.0]])).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    if count < 2:
        raise NotApplicable("there are fewer than two complete records")
    deviations = np.sqrt(np.diag(covariances))
    constant = deviations == 0
    unit = np.where(constant, 1.0, deviations)
    found = np.clip(covariances / np.outer(unit, unit), -1.0, 1.0)
    found[constant, :] = np.nan
    found[:, constant] = np.nan
    return np.asarray(found, np.float64)


def regression_loss(original: ArrayLike, released: ArrayLike, target: int) -> TaskScores:
    """Return R² of column `target` on the others, on the original records: 1 explains all, 0 no more than the mean.

    The loss is 0 or more: nothing fits the original better than its own fit.

    >>> x = np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0], [4.0, 8.0]])
    >>> regression_loss(x, x[[1, 1, 2, 2]], target=1).loss < 1e-9
    True
    """
    x, y = _complete(original), _complete(released)
    truth, others = x[:, target], np.delete(x, target, axis=1)
    if truth.min() == truth.max():
        raise NotApplicable("the target is constant: there is nothing to explain")
    features = logistic.Features.of(others)
    scores = []
    for fitted, answer in ((others, truth), (np.delete(y, target, axis=1), y[:, target])):
        beta = np.linalg.lstsq(features(fitted), answer, rcond=None)[0]
        error = ((truth - features(others) @ beta) ** 2).sum()
        scores.append(float(1.0 - error / ((truth - truth.mean()) ** 2).sum()))
    return TaskScores(*scores)


def accuracy_loss(original: ArrayLike, released: ArrayLike, truth: ArrayLike, answers: ArrayLike) -> TaskScores:
    """Return the share of original records classified right, 0 to 1, by either fit.

    `truth` and `answers` are the categories of the original and the released records.

    >>> x = np.array([[1.0], [2.0], [8.0], [9.0]])
    >>> accuracy_loss(x, [[1.5], [1.5], [8.5], [8.5]], [0, 0, 1, 1], [0, 0, 1, 1])
    TaskScores(original=1.0, released=1.0)
    """
    x, y = numbers(original), numbers(released)
    real, given = codes(truth)[:, 0], codes(answers)[:, 0]
    known, left = ~np.isnan(x).any(axis=1), ~np.isnan(y).any(axis=1)
    x, real, y, given = x[known], real[known], y[left], given[left]
    if len(np.unique(real)) < 2 or len(given) == 0:
        raise NotApplicable("there are not two categories to tell apart")
    features = logistic.Features.of(x)
    shown = features(x)
    guesses = (_classify(design, answer, shown) for design, answer in ((shown, real), (features(y), given)))
    return TaskScores(*(float((guess == real).mean()) for guess in guesses))


def _classify(design: Floats, answer: Ints, at: Floats) -> Ints:
    """Return for each row of `at` the category whose regression gives it the highest score; ties: the lowest."""
    found = np.unique(answer)
    score = [at @ logistic.fit(design, answer == category) for category in found]
    return np.asarray(found[np.argmax(score, axis=0)], np.int64)


def _complete(table: ArrayLike) -> Floats:
    x = numbers(table)
    x = x[~np.isnan(x).any(axis=1)]
    if len(x) < 2:
        raise NotApplicable("there are fewer than two complete records")
    return x
