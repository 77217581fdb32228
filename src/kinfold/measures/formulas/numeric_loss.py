"""Loss of numbers: squared error, the loss of a column from 0 to 1, and IL1 to IL5.

    sse              Σ (x - x')² over all cells                          Sun et al. 2012, Eq. (1)
    sst              the same with every value at its column mean        Sun et al. 2012, section 5
    sse_ratio        sse / sst, on standardized columns
    normalized_sse   mean over the cells of ((x - x') / range)²          Soria-Comas et al. 2015, Eq. (5)
    number_loss      min(1, SSE / SST) of one column; a dropped record or a cell that is missing in one table counts 1
    label_loss   (values covered - 1) / (values - 1) of each generalized cell
    il1              mean |x - x'| / |x| over the cells with x ≠ 0
    il2, il3         mean |s - s'| / |s| over the attributes, s a mean or a variance
    il4              mean |s - s'| / |s| over the pairs of attributes, s a covariance
    il5              mean |r - r'| over the pairs of attributes, r a correlation
    il               20 (il1 + il2 + il3 + il4 + il5)
    il1s             mean |x - x'| / (√2 S), S the original standard deviation

Eq. (5) does not define its normalized distance: here it is the difference over the range of the original column. In a
constant column it is 0 for an unchanged value and 1 for any other.

A value missing from the original is left out. A value missing from the release counts as the mean of the column in
`sse` and il1, and as a whole range in `normalized_sse`. `weight` is the number of records of each row, 1 by default.

IL: Domingo-Ferrer & Torra, Data Min. Knowl. Discov. 11 (2005), section 6.1 and Table 2, where `il` is computed from
columns rounded to 3 decimals; il1s: Yancey, Winkler & Creecy 2002. Statistics are those of the complete records of each
table. An original statistic that is 0 is left out, and so are pairs with a constant original column; a constant
released column has correlation 0. Cost: one pass, and O(n m²) for the pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kinfold.measures.formulas.arrays import (
    Flags,
    Floats,
    Ints,
    NotApplicable,
    count_filled,
    pair_arrays,
    select_complete,
    sum_columns,
    to_numbers,
)


def sse(original: ArrayLike, released: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Return the sum of squared errors, from 0 up: less is better.

    >>> sse([1.0, 3.0, 11.0, 13.0], [2.0, 2.0, 12.0, 12.0])
    4.0
    """
    x, y = pair_arrays(original, released)
    return float(sum_columns((x - fill_with_means(x, y, weight)) ** 2, weight).sum())


def sst(original: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Return the total sum of squares, from 0 up: the SSE of a release of means.

    >>> sst([1.0, 3.0, 11.0, 13.0])
    104.0
    """
    x = to_numbers(original)
    if x.size == 0:
        raise NotApplicable("there is no cell to compare")
    return float(sum_columns((x - column_means(x, weight)) ** 2, weight).sum())


def sse_ratio(original: ArrayLike, released: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Return SSE / SST, 0 to 1 if released values are class means: less is better.

    Columns count by their variance, so standardize them first, see `standardize`.

    >>> sse_ratio([1.0, 3.0, 11.0, 13.0], [2.0, 2.0, 12.0, 12.0])
    0.038461538461538464
    """
    return lost_share(sse(original, released, weight), sst(original, weight))


def lost_share(lost: float, varied: float) -> float:
    """Return SSE / SST; not applicable if SST is 0."""
    if not varied:
        raise NotApplicable("the original columns are constant: there is no variation to lose")
    return lost / varied


def normalized_sse(original: ArrayLike, released: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Return the mean squared error per cell in units of the range of its column, 0 to 1: less is better.

    >>> normalized_sse([1.0, 3.0, 11.0, 13.0], [2.0, 2.0, 12.0, 12.0])  # 1/12 squared
    0.006944444444444444
    """
    x, y = pair_arrays(original, released)
    known = ~np.isnan(x)
    if not known.any():
        raise NotApplicable("every original value is missing")
    low, high = _column_limits(x, known)
    spread = high - low
    varied = spread > 0
    gap = (x - y) / np.where(varied, spread, 1.0)
    if not varied.all():
        gap = np.where(varied, gap, x != y)
    gap[np.isnan(y)] = 1.0
    gap[~known] = np.nan
    return float(sum_columns(gap**2, weight).sum() / count_filled(known, weight).sum())


def standardize(original: ArrayLike, released: ArrayLike, weight: ArrayLike | None = None) -> tuple[Floats, Floats]:
    """Return both tables standardized by the means and deviations of the original; constant columns keep their unit.

    >>> standardize([1.0, 3.0], [2.0, 2.0])[0].ravel().tolist()
    [-1.0, 1.0]
    """
    x, y = pair_arrays(original, released)
    means = column_means(x, weight)
    deviations = column_deviations(x, means, weight)
    unit = np.where(deviations > 0, deviations, 1.0)
    return (x - means) / unit, (y - means) / unit


def column_means(x: Floats, weight: ArrayLike | None = None) -> Floats:
    """Return the mean of the known values of each column, exact for a constant column; 0 without values."""
    known = ~np.isnan(x)
    means = sum_columns(x, weight) / np.maximum(count_filled(known, weight), 1.0)
    low, high = _column_limits(x, known)
    return np.asarray(np.where(low == high, low, means), np.float64)


def _column_limits(x: Floats, known: Flags) -> tuple[Floats, Floats]:
    """Return the smallest and the largest known value of each column."""
    where: Any = True if known.all() else known  # a mask is ten times slower
    return np.min(x, axis=0, where=where, initial=np.inf), np.max(x, axis=0, where=where, initial=-np.inf)


def column_deviations(x: Floats, means: Floats, weight: ArrayLike | None = None) -> Floats:
    """Return the population standard deviation of the known values of each column; 0 without values."""
    known = np.maximum(count_filled(~np.isnan(x), weight), 1.0)
    return np.asarray(np.sqrt(sum_columns((x - means) ** 2, weight) / known), np.float64)


def fill_with_means(x: Floats, y: Floats, weight: ArrayLike | None = None) -> Floats:
    """Return the released values y, missing ones replaced by the original mean."""
    missing = np.isnan(y)
    return np.where(missing, column_means(x, weight), y) if missing.any() else y


def number_loss(
    original: ArrayLike, released: ArrayLike, kept: ArrayLike | None = None, weight: ArrayLike | None = None
) -> float:
    """Return the lost share of the variation of a column, 0 to 1: less is better.

    >>> number_loss([1.0, 3.0, 11.0, 13.0], [2.0, 2.0, 12.0, 12.0])  # 4 / 104
    0.038461538461538464
    >>> number_loss([1.0, 3.0, 11.0, 13.0], [1.0, 3.0, 11.0, 0.0], kept=[True, True, True, False])
    0.25
    """
    x, y = np.asarray(original, np.float64), np.asarray(released, np.float64)
    released_rows = np.ones(len(x), np.bool_) if kept is None else np.asarray(kept, np.bool_)
    records = np.ones(len(x)) if weight is None else np.asarray(weight, np.float64)
    before, after = ~np.isnan(x), np.isfinite(y) & released_rows
    counted = float(records[before | after | ~released_rows].sum())
    if not counted:
        return 0.0
    both = before & after
    wrong = counted - float(records[both].sum())  # missing in one table only, or dropped
    column = WeightedColumn(x[before], records[before])
    return min(1.0, float((squared_errors(x[both], y[both], column) * records[both]).sum() + wrong) / counted)


class WeightedColumn(NamedTuple):
    """The known numbers of a column, and the number of records of each."""

    numbers: Floats
    records: Floats


def squared_errors(original: Floats, released: Floats, column: WeightedColumn) -> Floats:
    """Return the squared errors in units of the variance of a column; without variance, 1 for a changed number.

    >>> column = WeightedColumn(np.array([1.0, 3.0]), np.ones(2))
    >>> squared_errors(np.array([1.0, 3.0]), np.array([1.0, 5.0]), column).tolist()
    [0.0, 4.0]
    """
    largest = max(float(np.abs(part).max(initial=0.0)) for part in (original, released, column.numbers))
    unit = 2.0 ** (np.frexp(largest)[1] - 1) if largest else 1.0  # a power of 2: exact, and squares do not overflow
    known, records = (column.numbers / unit)[:, None], column.records
    gaps = (known - column_means(known, records)) ** 2
    variance = float((gaps[:, 0] * records).sum() / records.sum()) if len(known) else 0.0
    if not variance:
        return np.asarray(original != released, np.float64)
    gap = original / unit - released / unit
    return np.asarray(gap * gap / variance, np.float64)


def label_loss(covered: Ints, values: int, true: Flags) -> Floats:
    """Return the loss of each generalized cell by the number of values covered, 0 to 1; 1 if it is not true.

    >>> label_loss(np.array([1, 3, 5, 2]), 5, np.array([True, True, True, False])).tolist()
    [0.0, 0.5, 1.0, 1.0]
    """
    return np.where(true, (covered - 1) / max(values - 1, 1), 1.0)


def mean_loss(columns: Sequence[float]) -> float:
    """Return the mean loss of the columns, 0 to 1: less is better.

    >>> mean_loss([0.0, 0.5])
    0.25
    """
    if not columns:
        raise NotApplicable("there is no column to compare")
    return float(np.mean(columns))


ROUNDING_NOISE = 1e-12  # in deviations: a smaller mean or covariance is 0 but for rounding


@dataclass(frozen=True, eq=False)
class Moments:
    """Means, covariances and correlations of the complete records; the correlation with a constant column is 0."""

    means: Floats
    covariances: Floats
    correlations: Floats
    constant: Flags

    @classmethod
    def from_table(cls, table: ArrayLike, weight: ArrayLike | None = None) -> Moments:
        """Return the moments of a table, with population (1/n) covariances.

        >>> Moments.from_table([[1.0, 2.0], [3.0, 6.0]]).covariances.tolist()
        [[1.0, 2.0], [2.0, 4.0]]
        """
        x, counted = select_complete(table, weight)
        records = len(x) if counted is None else counted.sum()
        means = column_means(x, counted)
        gap = x - means
        weighted = gap if counted is None else gap * counted[:, None]
        covariances = np.asarray(weighted.T @ gap / records, np.float64)
        deviations = np.sqrt(np.diag(covariances))
        constant = deviations == 0
        unit = np.where(constant, 1.0, deviations)
        return cls(means, covariances, covariances / np.outer(unit, unit), constant)

    @property
    def variances(self) -> Floats:
        """The diagonal of the covariances."""
        return np.asarray(np.diag(self.covariances), np.float64)


def il1(original: ArrayLike, released: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Return the mean relative change of the values, from 0 up: less is better.

    >>> il1([1.0, 2.0, 4.0, 0.0], [2.0, 2.0, 3.0, 3.0])  # (1/1 + 0/2 + 1/4) / 3
    0.4166666666666667
    """
    x, y = pair_arrays(original, released)
    known = np.abs(x) > 0  # False for NaN
    if not known.any():
        raise NotApplicable("every original value is 0 or missing")
    varied = np.abs(np.divide(x - fill_with_means(x, y, weight), x, out=np.zeros_like(x), where=known))
    return float(sum_columns(varied, weight).sum() / count_filled(known, weight).sum())


def il1s(original: ArrayLike, released: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Return the mean change of the values in units of √2 standard deviations, from 0 up: less is better.

    >>> round(il1s([1.0, 3.0], [2.0, 2.0]), 6)  # 1 / √2
    0.707107
    """
    x, y = pair_arrays(original, released)
    deviation = column_deviations(x, column_means(x, weight), weight)
    varied = deviation > 0
    if not varied.any():
        raise NotApplicable("the original columns are constant: they have no standard deviation")
    gap = np.abs(x - fill_with_means(x, y, weight))[:, varied] / (np.sqrt(2.0) * deviation[varied])
    return float(sum_columns(gap, weight).sum() / count_filled(~np.isnan(x[:, varied]), weight).sum())


def il2(before: Moments, after: Moments) -> float:
    """Return the mean relative change of the means, from 0 up: less is better.

    >>> il2(Moments.from_table([1.0, 3.0]), Moments.from_table([2.0, 3.0]))
    0.25
    """
    noise = ROUNDING_NOISE * np.sqrt(before.variances)
    return _mean_relative(before.means, after.means, noise, "every original mean is 0")


def il3(before: Moments, after: Moments) -> float:
    """Return the mean relative change of the variances, from 0 up: less is better.

    >>> il3(Moments.from_table([1.0, 3.0]), Moments.from_table([2.0, 2.0]))
    1.0
    """
    none = np.zeros_like(before.means)
    return _mean_relative(before.variances, after.variances, none, "the original columns are constant")


def il4(before: Moments, after: Moments) -> float:
    """Return the mean relative change of the covariances, from 0 up: less is better.

    >>> il4(Moments.from_table([[1.0, 2.0], [3.0, 6.0]]), Moments.from_table([[1.0, 3.0], [3.0, 5.0]]))
    0.5
    """
    i, j = np.triu_indices(len(before.means), 1)
    noise = ROUNDING_NOISE * np.sqrt(before.variances[i] * before.variances[j])
    return _mean_relative(before.covariances[i, j], after.covariances[i, j], noise, "no two attributes vary together")


def il5(before: Moments, after: Moments) -> float:
    """Return the mean absolute change of the correlations, 0 to 2: less is better.

    >>> il5(Moments.from_table([[1.0, 2.0], [3.0, 6.0]]), Moments.from_table([[1.0, 4.0], [3.0, 4.0]]))
    1.0
    """
    i, j = np.triu_indices(len(before.means), 1)
    varied = ~before.constant[i] & ~before.constant[j]
    if not varied.any():
        raise NotApplicable("there are not two columns that vary")
    gap = np.abs(before.correlations[i, j] - after.correlations[i, j])
    return float(gap[varied].mean())


def il(parts: tuple[float, float, float, float, float]) -> float:
    """Return 100 times the mean of il1 to il5, from 0 up: less is better.

    >>> il((0.131, 0.0, 0.0, 0.036, 0.007))  # Table 2, first row
    3.48
    """
    return round(20.0 * sum(parts), 12)


def eigenvalue_shift(before: Moments, after: Moments) -> float:
    """Return the shift of the eigenvalues of the covariances over their total, 0 to 2: less is better.

    Both covariances are in units of the original deviations: 1 means that all variance is lost.

    >>> eigenvalue_shift(Moments.from_table([[1.0, 0.0], [3.0, 1.0]]), Moments.from_table([[2.0, 0.5], [2.0, 0.5]]))
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
    """Return the mean of |before - after| / |before| over values above the rounding noise."""
    known = np.abs(before) > noise  # False for NaN
    if not known.any():
        raise NotApplicable(reason)
    return float((np.abs(before[known] - after[known]) / np.abs(before[known])).mean())
