"""IL1 to IL5: how far values, means, variances, covariances and correlations moved, and their score IL.

    il1    mean |x - x'| / |x| over the cells with x ≠ 0
    il2    mean |m - m'| / |m| over the attributes, m a mean
    il3    mean |v - v'| / |v| over the attributes, v a variance
    il4    mean |s - s'| / |s| over the pairs of attributes, s a covariance
    il5    mean |r - r'|       over the pairs of attributes, r a correlation: absolute
    il     20 (il1 + il2 + il3 + il4 + il5)
    il1s   mean |x - x'| / (√2 S), S the original standard deviation: no trouble with zeros

Paper: Domingo-Ferrer & Torra 2005, section 6.1 and Table 2; il1s: Yancey, Winkler & Creecy 2002. The paper's `il` is
taken from columns rounded to 3 decimals.

Statistics are those of the complete records of each table. An original statistic that is 0 has no relative variation
and is left out; a constant column has no correlation: in the original its pairs are left out, in the release they are
0. A value missing from the release counts as the original mean. Cost: one pass, and O(n m²) for the pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kinfold.measures.arrays import Flags, Floats, NotApplicable, filled, numbers, paired, total
from kinfold.measures.continuous import at_means, column_deviations, column_means

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

ROUNDING = 1e-12  # of the deviations: a mean or a covariance below it is 0, off by the rounding of its sum


@dataclass(frozen=True, eq=False)
class Moments:
    """Means, covariances and correlations of the complete records; the correlation with a constant column is 0."""

    means: Floats
    covariances: Floats
    correlations: Floats
    constant: Flags

    @classmethod
    def of(cls, table: ArrayLike, weight: ArrayLike | None = None) -> Moments:
        """Compute them with population (1/n) covariances; `weight` is how many records each row stands for.

        >>> Moments.of([[1.0, 2.0], [3.0, 6.0]]).covariances.tolist()
        [[1.0, 2.0], [2.0, 4.0]]
        """
        x, counted = numbers(table), None if weight is None else np.asarray(weight, np.float64)
        missing = np.isnan(x).any(axis=1)
        if missing.any():
            x, counted = x[~missing], None if counted is None else counted[~missing]
        records = len(x) if counted is None else counted.sum()
        if records < 2:
            raise NotApplicable("there are fewer than two complete records")
        means = column_means(x, counted)
        gap = x - means
        weighed = gap if counted is None else gap * counted[:, None]
        covariances = np.asarray(weighed.T @ gap / records, np.float64)
        deviations = np.sqrt(np.diag(covariances))
        constant = deviations == 0
        unit = np.where(constant, 1.0, deviations)
        return cls(means, covariances, covariances / np.outer(unit, unit), constant)

    @property
    def variances(self) -> Floats:
        """The diagonal of the covariances."""
        return np.asarray(np.diag(self.covariances), np.float64)


def il1(original: ArrayLike, released: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Mean relative variation of the values, from 0 (nothing changed) up: less is better.

    >>> il1([1.0, 2.0, 4.0, 0.0], [2.0, 2.0, 3.0, 3.0])  # (1/1 + 0/2 + 1/4) / 3
    0.4166666666666667
    """
    x, y = paired(original, released)
    known = np.abs(x) > 0  # not so where it is missing
    if not known.any():
        raise NotApplicable("every original value is 0 or missing")
    varied = np.abs(np.divide(x - at_means(x, y, weight), x, out=np.zeros_like(x), where=known))
    return float(total(varied, weight).sum() / filled(known, weight).sum())


def il1s(original: ArrayLike, released: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Mean variation of the values in units of √2 standard deviations, from 0 (nothing changed) up: less is better.

    >>> round(il1s([1.0, 3.0], [2.0, 2.0]), 6)  # 1 / √2
    0.707107
    """
    x, y = paired(original, released)
    deviation = column_deviations(x, column_means(x, weight), weight)
    varied = deviation > 0
    if not varied.any():
        raise NotApplicable("the original columns are constant: they have no standard deviation")
    gap = np.abs(x - at_means(x, y, weight))[:, varied] / (np.sqrt(2.0) * deviation[varied])
    return float(total(gap, weight).sum() / filled(~np.isnan(x[:, varied]), weight).sum())


def il2(before: Moments, after: Moments) -> float:
    """Mean relative variation of the attributes' means, from 0 (nothing changed) up: less is better.

    >>> il2(Moments.of([1.0, 3.0]), Moments.of([2.0, 3.0]))
    0.25
    """
    noise = ROUNDING * np.sqrt(before.variances)
    return _mean_relative(before.means, after.means, noise, "every original mean is 0")


def il3(before: Moments, after: Moments) -> float:
    """Mean relative variation of the attributes' variances, from 0 (nothing changed) up: less is better.

    >>> il3(Moments.of([1.0, 3.0]), Moments.of([2.0, 2.0]))
    1.0
    """
    none = np.zeros_like(before.means)
    return _mean_relative(before.variances, after.variances, none, "the original columns are constant")


def il4(before: Moments, after: Moments) -> float:
    """Mean relative variation of the covariances of the pairs, from 0 (nothing changed) up: less is better.

    >>> il4(Moments.of([[1.0, 2.0], [3.0, 6.0]]), Moments.of([[1.0, 3.0], [3.0, 5.0]]))
    0.5
    """
    i, j = np.triu_indices(len(before.means), 1)
    noise = ROUNDING * np.sqrt(before.variances[i] * before.variances[j])
    return _mean_relative(before.covariances[i, j], after.covariances[i, j], noise, "no two attributes vary together")


def il5(before: Moments, after: Moments) -> float:
    """Mean absolute variation of the correlations of the pairs, 0 (nothing changed) to 2: less is better.

    >>> il5(Moments.of([[1.0, 2.0], [3.0, 6.0]]), Moments.of([[1.0, 4.0], [3.0, 4.0]]))
    1.0
    """
    i, j = np.triu_indices(len(before.means), 1)
    varied = ~before.constant[i] & ~before.constant[j]
    if not varied.any():
        raise NotApplicable("there are not two columns that vary")
    gap = np.abs(before.correlations[i, j] - after.correlations[i, j])
    return float(gap[varied].mean())


def il(parts: tuple[float, float, float, float, float]) -> float:
    """Return 100 times the mean of il1 to il5, from 0 (nothing changed) up: less is better.

    >>> il((0.131, 0.0, 0.0, 0.036, 0.007))  # Table 2, first row
    3.48
    """
    return round(20.0 * sum(parts), 12)


def eigenvalue_shift(before: Moments, after: Moments) -> float:
    """Sum of the shifts of the correlation spectrum over its total, 0 (nothing changed) to 2: less is better.

    Both covariances are taken in units of the original deviations, so that lost variance shows: all lost is 1.

    >>> eigenvalue_shift(Moments.of([[1.0, 0.0], [3.0, 1.0]]), Moments.of([[2.0, 0.5], [2.0, 0.5]]))
    1.0
    """
    varied = ~before.constant
    if not varied.any():
        raise NotApplicable("the original columns are constant: there is no variance to compare")
    unit = np.sqrt(before.variances[varied])
    grid = np.outer(unit, unit)
    old, new = (np.linalg.eigvalsh(m.covariances[np.ix_(varied, varied)] / grid) for m in (before, after))
    return float(np.abs(old - new).sum() / old.sum())


def _mean_relative(before: Floats, after: Floats, noise: Floats, reason: str) -> float:
    """Mean of |before - after| / |before| where `before` is more than rounding noise."""
    known = np.abs(before) > noise  # not so where it is missing
    if not known.any():
        raise NotApplicable(reason)
    return float((np.abs(before[known] - after[known]) / np.abs(before[known])).mean())
