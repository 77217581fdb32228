"""Population uniques and correct matches among the sample uniques, by a log-linear model of the cells of a table.

The cells are all combinations of the values of the keys that occur. The expected number of records of a cell, mu, is
fitted to the counts f: by main effects (independent columns), or with interactions of some columns. With the sampling
fraction pi of a cell, the number of people in it who are not in the sample is Poisson with mean h = mu (1 - pi) / pi:

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
from kinfold.measures.formulas.arrays import Floats, Ints, NamedResult, NotApplicable, check_codes, group_rows

MAX_CELLS = 10_000_000  # of connected columns: 80 MB
MAX_STEPS = 1000
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
    if math.prod(shape) > MAX_CELLS:
        raise NotApplicable("the keys with interactions have too many combinations of values for a log-linear model")
    observed = np.zeros(shape)
    np.add.at(observed, tuple(cells.T), count)
    observed /= count.sum()
    fitted = np.ones(shape)
    named = {j for margin in margins for j in margin}
    margins = [*margins, *([j] for j in range(len(shape)) if j not in named)]
    for _ in range(MAX_STEPS):
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
