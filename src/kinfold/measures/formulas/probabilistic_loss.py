"""Probabilistic information loss: the shift of statistics in units of their sampling error.

A statistic s of the original is an estimate with standard error se; s' is the same statistic of the release.
PIL = P(|Z| ≤ |s - s'| / se) = erf(|s - s'| / (se √2)), Z standard normal, averaged over attributes or pairs:

    means          se² = mu_2 / n
    variances      se² = (mu_4 - mu_2²) / n
    covariances    se² = (mu_22 - mu_11²) / n
    correlations   se² = (r²/n) (mu_22/mu_11² + (mu_40/mu_20² + mu_04/mu_02² + 2 mu_22/(mu_20 mu_02)) / 4
                                  - mu_31/(mu_11 mu_20) - mu_13/(mu_11 mu_02))
    quantiles      se² = q (1-q) / (n f²), q = 5 %, 10 %, …, 95 %, f the density at the quantile

with the central moments mu of the original. Paper: Domingo-Ferrer & Torra, Data Min. Knowl. Discov. 11 (2005), section
6.1 and Table 3, after Mateo-Sanz, Domingo-Ferrer & Sebé, same volume. The paper does not define its density: here it is
a Gaussian kernel estimate with Silverman's bandwidth 0.9 min(sd, IQR/1.34) n^(-1/5) (sd alone if the IQR is 0), so that
PIL(Q) differs from the column of the paper. scipy.stats.gaussian_kde gives the same density, but is slow to load.

Without a standard error (a constant column) PIL is 0 for an unchanged statistic and 1 for any other.
Statistics are those of the complete records. Cost: O(n m²), and O(19 n m) for the densities.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from kinfold.measures.formulas.arrays import Floats, compute_quantiles, select_complete
from kinfold.measures.formulas.numeric_loss import Moments

QUANTILE_SHARES = np.arange(1, 20) / 20.0  # 5 %, 10 %, …, 95 %, as in the paper
MAX_DENSITY_VALUES = 50_000  # more than twice as many are thinned, evenly by rank
KERNEL_REACH = 9.0  # in bandwidths: farther values add less than rounding
MIN_ERROR_RATIO = 1e-9  # of se: a smaller change is rounding


@dataclass(frozen=True)
class Pil:
    """Probabilistic loss, each 0 to 1; covariances and correlations are None for a single attribute."""

    quantiles: float
    means: float
    variances: float
    covariances: float | None
    correlations: float | None


def pil(
    original: ArrayLike,
    released: ArrayLike,
    weight: ArrayLike | None = None,
    moments: tuple[Moments, Moments] | None = None,
) -> Pil:
    """Return the probabilistic loss of quantiles, means, variances, covariances and correlations, 0 to 1 each.

    `weight` is the number of records of each row, 1 by default; `moments` are those of both tables, if known.

    >>> x = np.array([[1.0, 2.0], [2.0, 1.0], [3.0, 5.0], [6.0, 4.0]])
    >>> pil(x, x)
    Pil(quantiles=0.0, means=0.0, variances=0.0, covariances=0.0, correlations=0.0)
    >>> round(pil(x, x + [1.0, 0.0]).means, 3)  # the first mean moved by 1.07 standard errors
    0.357
    """
    (x, records), (y, after_records) = select_complete(original, weight), select_complete(released, weight)
    before, after = moments or (Moments.from_table(x, records), Moments.from_table(y, after_records))
    scale = np.where(before.constant, 1.0, np.sqrt(before.variances))
    z = (x - before.means) / scale
    n, counted = (len(z), 1.0) if records is None else (float(records.sum()), records[:, None])
    square = z * z
    fourth = (square * counted).T @ square / n  # mu_22, and mu_4 on the diagonal, of the standardized columns
    third = (square * z * counted).T @ z / n  # mu_31; its transpose is mu_13
    root = math.sqrt(n)
    varied = np.sqrt(np.maximum(np.diag(fourth) - (~before.constant), 0.0)) * scale**2 / root
    return Pil(
        quantiles=_quantile_loss(x, y, records, after_records),
        means=_loss(before.means - after.means, np.where(before.constant, 0.0, scale) / root),
        variances=_loss(before.variances - after.variances, varied),
        covariances=_pair_loss(before.covariances, after.covariances, _covariance_error(before, fourth, scale) / root),
        correlations=_pair_loss(
            before.correlations, after.correlations, _correlation_error(before, fourth, third) / root
        ),
    )


def gaussian_density(ranked: Floats, at: Floats, records: Floats | None = None) -> Floats:
    """Return the Gaussian kernel density of sorted values at some points, with Silverman's bandwidth.

    >>> gaussian_density(np.array([0.0, 1.0, 2.0, 3.0]), np.array([1.5])).round(3).tolist()
    [0.249]
    """
    n = len(ranked) if records is None else float(records.sum())
    mean = np.average(ranked, weights=records)
    deviation = float(np.sqrt(np.average((ranked - mean) ** 2, weights=records)))
    low, high = compute_quantiles(ranked, (0.25, 0.75), records)
    spread = min(deviation, (high - low) / 1.34) or deviation
    width = 0.9 * spread * n**-0.2
    step = max(1, len(ranked) // MAX_DENSITY_VALUES) if records is None else 1
    ranked = np.ascontiguousarray(ranked[step // 2 :: step])
    weight = np.ones(len(ranked)) if records is None else records
    sums = []
    for point in at:
        first, last = np.searchsorted(ranked, [point - KERNEL_REACH * width, point + KERNEL_REACH * width])
        sums.append(weight[first:last] @ np.exp(-0.5 * ((ranked[first:last] - point) / width) ** 2))
    return np.asarray(np.array(sums) / (weight.sum() * width * math.sqrt(2.0 * math.pi)), np.float64)


def _covariance_error(before: Moments, fourth: Floats, scale: Floats) -> Floats:
    return np.asarray(np.sqrt(np.maximum(fourth - before.correlations**2, 0.0)) * np.outer(scale, scale), np.float64)


def _correlation_error(before: Moments, fourth: Floats, third: Floats) -> Floats:
    r = before.correlations
    peak = np.diag(fourth)
    square = fourth + r**2 * (peak[:, None] + peak[None, :] + 2.0 * fourth) / 4.0 - r * (third + third.T)
    return np.asarray(np.sqrt(np.maximum(square, 0.0)), np.float64)


def _quantile_loss(x: Floats, y: Floats, before: Floats | None, after: Floats | None) -> float:
    losses, n = [], len(x) if before is None else before.sum()
    for j in range(x.shape[1]):
        ranked, records = _sort_column(x[:, j], before)
        ranked_after, records_after = _sort_column(y[:, j], after)
        old = compute_quantiles(ranked, QUANTILE_SHARES, records)
        new = compute_quantiles(ranked_after, QUANTILE_SHARES, records_after)
        if ranked[0] == ranked[-1]:
            error = np.zeros(len(QUANTILE_SHARES))
        else:
            density = np.maximum(gaussian_density(ranked, old, records), np.finfo(float).tiny)
            error = np.sqrt(QUANTILE_SHARES * (1 - QUANTILE_SHARES) / n) / density
        losses.append(_loss(old - new, error))
    return float(np.mean(losses))


def _pair_loss(before: Floats, after: Floats, error: Floats) -> float | None:
    pairs = np.triu_indices(len(before), 1)
    return _loss(before[pairs] - after[pairs], error[pairs]) if len(before) > 1 else None


def _loss(gap: Floats, error: Floats) -> float:
    size = np.abs(gap)
    exact = error <= 0
    ratio = np.where(exact, np.where(size > 0, np.inf, 0.0), size / np.where(exact, 1.0, error))
    ratio[ratio < MIN_ERROR_RATIO] = 0.0
    return float(np.mean([math.erf(step / math.sqrt(2.0)) for step in ratio]))


def _sort_column(column: Floats, records: Floats | None) -> tuple[Floats, Floats | None]:
    if records is None:
        return np.sort(column), None
    order = np.argsort(column, kind="stable")
    return column[order], records[order]
