"""Attribute disclosure: inference, intervals, dominance in class averages, likeness, and combinations of few columns.

Inference: how much better an attacker guesses a confidential value with the release. Without it the best guess is the
same for all records; with it there is one guess for each class.

    categories   the most frequent value. Gain = (hits with - hits without) / (n - hits without), the lambda of
                 Goodman & Kruskal 1954. Null is a category
    numbers      the mean. Gain = 1 - squared error with / without, the squared correlation ratio (eta²). Missing
                 numbers are left out

Interval disclosure: the share of cells whose original value lies among the released values with ranks within p/2
percent of n of the rank of the released value, averaged over p = 1 … 10 (Domingo-Ferrer & Torra 2001). Tied released
values share the outermost ranks of the tie. A value missing from either table counts as outside. Cost: O(n log n) for
each column.

Interval by deviations: the share of records whose original values all lie within k standard deviations of the released
ones (Mateo-Sanz, Sebé & Domingo-Ferrer, PSD 2004; Templ, PSD 2008).

Dominance: the average of a class reveals its largest record. With the absolute values of a class in descending order
x_1 ≥ x_2 ≥ … and their total T:

    (n,k) rule   unsafe if x_1 + … + x_n > (k / 100) T, here with n = 1
    p % rule     unsafe if T - x_1 - x_2 < (p / 100) x_1: the second can estimate the first to within p percent

Both rules are about amounts, which add up, such as turnover or income, not about ages or years; see `are_amounts`. A
class with total 0 is safe. Source: Hundepool et al., Statistical Disclosure Control, Wiley 2012, chapter 4. Cost: one
sort for all columns, then one pass for each.

Likeness: how far the values of a confidential column in a class are from those of the whole table. With p the share of
a value among all records and q its share in a class, over all classes:

    basic β       the largest (q - p) / p: how much more frequent a value becomes in a class
    enhanced β    the same, if no value has (q - p) / p > -ln p; otherwise no β holds, and it is infinite
    δ             the largest |log2(q / p)| over every value of the column in every class: infinite if a value is absent
                  from a class. Over the values that are present it is finite, but not monotone: merging two classes may
                  raise it

    multi-entropy of a record    exp(entropy) of each confidential column in the part of the class that agrees in the
                                 other confidential columns; the least over the parts and the columns

A missing value is a value. Cost: one sort of the records for each column.

Sources: Cao & Karras, PVLDB 5(11), 2012 (β-likeness); Brickell & Shmatikov, KDD 2008 (δ-disclosure); Machanavajjhala et
al., ACM TKDD 1(1), 2007, section 4.3 (several confidential columns).

Combinations: their class sizes, and how surely one tells a confidential value. A combination is a tuple of values of
`size` of the keys (of all of them, if there are fewer) that some record has. Its class are the records with these
values; the confidence of a confidential value is its share in that class. k-anonymity on combinations (LKC privacy,
k^m-anonymity) asks for k records in every class and a confidence of at most C, also for shorter combinations: their
classes are unions of these, so they hold as many records and have no higher confidence. A missing value is a value.

Cost: one sort of the records for each set of `size` columns.

Sources: Mohammed, Fung, Hung & Lee, KDD 2009 (LKC privacy); Terrovitis, Mamoulis & Kalnis, PVLDB 1(1), 2008 (k^m).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kinfold.errors import DataError, PolicyError
from kinfold.measures.formulas.arrays import (
    Flags,
    Floats,
    Ints,
    NamedResult,
    NotApplicable,
    check_codes,
    check_labels,
    group_rows,
    pair_arrays,
)


def inference_gain(classes: ArrayLike, values: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Return the share of wrong guesses of a category that the release corrects, 0 to 1: less is better.

    `weight` is the number of records of each pair of class and value, 1 by default.

    >>> inference_gain([0, 0, 1, 1], [0, 0, 1, 1])
    1.0
    >>> inference_gain([0, 0, 1, 1], [0, 1, 0, 1])
    0.0
    """
    kept = check_labels(classes)
    records = np.ones(len(kept), np.int64) if weight is None else np.asarray(weight, np.int64)
    value = check_codes(values)[:, 0]
    if kept.size and kept.min() < 0:
        kept, value, records = kept[kept >= 0], value[kept >= 0], records[kept >= 0]
    if kept.size == 0:
        raise NotApplicable("there is no released record")
    width = int(value.max()) + 2  # with null, code -1
    blind, total = int(np.bincount(value + 1, records).max()), int(records.sum())
    if blind == total:
        raise NotApplicable("the confidential column is constant: there is nothing to guess")
    best = np.zeros(int(kept.max()) + 1, np.int64)
    np.maximum.at(best, *_count_pairs(kept * width + value + 1, records, width))
    return float((best.sum() - blind) / (total - blind))


def _count_pairs(cells: Ints, records: Ints, width: int) -> tuple[Ints, Ints]:
    """Return the class and the number of records of each pair of class and value."""
    if (np.diff(cells) > 0).all():  # already counted and sorted
        return cells // width, records
    distinct, place = np.unique(cells, return_inverse=True)
    return distinct // width, np.bincount(place, records, len(distinct)).astype(np.int64)


def inference_gain_numbers(classes: ArrayLike, values: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Return the share of the squared error of guesses that the release removes, 0 to 1: less is better.

    `weight` as in `inference_gain`.

    >>> inference_gain_numbers([0, 0, 1, 1], [1.0, 3.0, 11.0, 13.0])
    0.9615384615384616
    """
    kept, value = check_labels(classes), np.asarray(values, np.float64)
    known = (kept >= 0) & ~np.isnan(value)
    records = np.ones(len(kept)) if weight is None else np.asarray(weight, np.float64)
    kept, value, records = kept[known], value[known], records[known]
    if value.size == 0 or value.min() == value.max():
        raise NotApplicable("the confidential column is constant or missing: there is nothing to guess")
    value = value - np.average(value, weights=records)
    sizes = np.maximum(np.bincount(kept, records), 1)
    means = np.bincount(kept, value * records) / sizes
    return float(1.0 - (records @ (value - means[kept]) ** 2) / (records @ value**2))


def interval_credit(
    original: ArrayLike,
    released: ArrayLike,
    percents: Sequence[float] = tuple(range(1, 11)),
    attacked: Ints | None = None,
    weight: Ints | None = None,
) -> Floats:
    """Return the share of disclosed values of each record, 0 to 1: less is better.

    `attacked` are the rows to attack, all by default; `weight` is the number of records of each row, 1 by default.

    >>> interval_credit([1.0, 2.0, 9.0, 10.0], [1.5, 1.5, 9.0, 10.0]).tolist()
    [0.0, 0.0, 1.0, 1.0]
    """
    x, y = pair_arrays(original, released)
    rows = np.arange(len(x)) if attacked is None else attacked
    shares = [
        _inside_ranks(x[rows, j], y[rows, j], _ReleasedRanks.from_column(y[:, j], weight), percents)
        for j in range(x.shape[1])
    ]
    return np.asarray(np.mean(shares, axis=0), np.float64)


def interval_by_deviation(
    original: ArrayLike, released: ArrayLike, k: float = 0.05, weight: ArrayLike | None = None
) -> float:
    """Return the share of records with every number within k deviations of its released one, 0 to 1: less is better.

    The deviation is that of the released column, with n - 1. A number missing from either table is outside. `weight` is
    the number of records of each row, 1 by default.

    >>> interval_by_deviation([1.0, 2.0, 9.0, 10.0], [1.5, 1.5, 9.0, 10.0])
    0.5
    """
    x, y = pair_arrays(original, released)
    if not k >= 0:
        raise PolicyError("k is below 0", fix="give the width of the interval in deviations, such as 0.05")
    records = np.ones(len(y)) if weight is None else np.asarray(weight, np.float64)
    there = ~np.isnan(y).any(axis=1)
    known, number = y[there], records[there]
    if number.sum() < 2:
        raise NotApplicable("there are fewer than two released records")
    squares = number @ (known - np.average(known, axis=0, weights=number)) ** 2
    inside = np.abs(x - y) <= k * np.sqrt(squares / (number.sum() - 1))  # a comparison with NaN is false
    return float(np.average(inside.all(axis=1), weights=records))


class _ReleasedRanks(NamedTuple):
    """The sorted values of a released column, and the cumulative number of records, None for one each."""

    values: Floats
    cumulative: Ints | None

    @classmethod
    def from_column(cls, column: Floats, weight: Ints | None) -> _ReleasedRanks:
        known = ~np.isnan(column)
        column = column if known.all() else column[known]
        if weight is None:
            return cls(np.sort(column), None)
        values, place = np.unique(column, return_inverse=True)
        return cls(values, np.cumsum(np.bincount(place, weight[known]).astype(np.int64)))

    @property
    def records(self) -> int:
        """The number of records."""
        return len(self.values) if self.cumulative is None else int(self.cumulative[-1])

    def ties(self, values: Floats) -> tuple[Ints, Ints]:
        """Return the first and the last rank of each of these values, from 0."""
        first, past = (np.searchsorted(self.values, values, side=side) for side in ("left", "right"))
        if self.cumulative is None:
            return first, past - 1
        return np.concatenate([[0], self.cumulative[:-1]])[first], self.cumulative[first] - 1

    def values_at(self, rank: Ints) -> Floats:
        """Return the value of each rank, from 0."""
        place = rank if self.cumulative is None else np.searchsorted(self.cumulative, rank, side="right")
        return np.asarray(self.values[place], np.float64)


def _inside_ranks(x: Floats, y: Floats, ranks: _ReleasedRanks, percents: Sequence[float]) -> Floats:
    """Return the share of the percents at which each value lies within the ranks around its released one."""
    inside, known = np.zeros(len(x)), np.flatnonzero(~np.isnan(y))
    if known.size == 0:
        return inside
    n, (first, last) = ranks.records, ranks.ties(y[known])
    for percent in percents:
        reach = int(percent * n / 200.0)
        low, high = ranks.values_at(np.maximum(first - reach, 0)), ranks.values_at(np.minimum(last + reach, n - 1))
        inside[known] += (low <= x[known]) & (x[known] <= high)
    return inside / len(percents)


@dataclass(frozen=True, eq=False)
class ClassOrder:
    """Released records sorted by class, once for all columns."""

    rows: Ints  # released records by class
    starts: Ints  # of the classes in `rows`
    labels: Ints  # of these classes
    records: int  # with those that were dropped

    @classmethod
    def from_classes(cls, classes: ArrayLike) -> ClassOrder:
        """Sort the released records; a record labelled -1 is dropped."""
        kept = check_labels(classes)
        rows = np.flatnonzero(kept >= 0)
        if rows.size == 0:
            raise NotApplicable("there is no released record")
        rows = rows[np.argsort(kept[rows], kind="stable")]
        starts = np.flatnonzero(np.diff(kept[rows], prepend=-1))
        return cls(rows, starts, kept[rows][starts], len(kept))

    def absolute_values(self, values: ArrayLike) -> Floats:
        """Return the absolute values of the released records by class; 0 for a missing one."""
        value = np.asarray(values, np.float64)
        if value.shape != (self.records,):
            raise DataError("there are not as many values as records", fix="give one value per record")
        return np.asarray(np.nan_to_num(np.abs(value[self.rows])), np.float64)

    def sum_classes(self, value: Floats) -> Floats:
        """Return the sum of each class."""
        return np.asarray(np.add.reduceat(value, self.starts), np.float64)

    def take_largest(self, value: Floats) -> Floats:
        """Return the largest value of each class, and replace it by 0."""
        largest = np.maximum.reduceat(value, self.starts)
        sizes = np.diff(self.starts, append=len(value))
        places = np.flatnonzero(value == np.repeat(largest, sizes))
        first = places[np.searchsorted(places, self.starts)]
        value[first] = 0.0
        return np.asarray(largest, np.float64)

    def by_label(self, marked: Flags) -> Flags:
        """Return marks of classes by label; False for labels that do not occur."""
        marks = np.zeros(int(self.labels[-1]) + 1, np.bool_)
        marks[self.labels] = marked
        return marks


MAX_AGE_LIKE = 130  # integers up to this may be ages, scores, children, hours or percents
YEAR_RANGE = (1800, 2200)  # integers in this range may be years


def are_amounts(values: ArrayLike) -> bool:
    """Return whether numbers may be amounts: none is negative, and they are not integers like ages or years.

    >>> [are_amounts(x) for x in ([1200.0, 0.0, 88000.0], [0.4, 12.5], [34, 81, 7], [1984, 2019], [-3.5])]
    [True, True, False, False, False]
    """
    value = np.asarray(values, np.float64)
    known = value[np.isfinite(value)]
    if not known.size or known.min() < 0:
        return False
    whole = bool((known == np.floor(known)).all())
    low, high = float(known.min()), float(known.max())
    return not whole or not (high <= MAX_AGE_LIKE or YEAR_RANGE[0] <= low <= high <= YEAR_RANGE[1])


def find_revealing_classes(
    classes: ArrayLike | ClassOrder, values: ArrayLike, k: float = 75.0, p: float = 10.0
) -> tuple[Flags, Flags]:
    """Return for each class whether it is unsafe by the (1,k) rule, and by the p % rule.

    >>> [each.tolist() for each in find_revealing_classes([0, 0, 0, 1, 1, 1], [80.0, 15.0, 5.0, 40.0, 30.0, 30.0])]
    [[True, False], [True, False]]
    """
    order = classes if isinstance(classes, ClassOrder) else ClassOrder.from_classes(classes)
    value = order.absolute_values(values)
    totals, first = order.sum_classes(value), order.take_largest(value)
    order.take_largest(value)
    return order.by_label(first > k / 100.0 * totals), order.by_label(order.sum_classes(value) < p / 100.0 * first)


@dataclass(frozen=True, eq=False, repr=False)
class Likeness(NamedResult):
    """The least β, enhanced β and δ that a table has; infinite if none holds."""

    beta: float
    enhanced_beta: float
    delta: float
    delta_present: float  # over the values that are present in a class
    enhanced_excess: float  # the largest (q - p) / p + ln p: no enhanced β holds if it is above 0
    value_is_absent: bool  # from some class


def measure_likeness(classes: ArrayLike, values: ArrayLike) -> Likeness:
    """Return how far the values in the classes are from those of the table; less is better.

    >>> result = measure_likeness([0, 0, 0, 1, 1, 1], [0, 0, 1, 0, 1, 1])
    >>> round(result.beta, 4), round(result.enhanced_beta, 4), round(result.delta, 4)
    (0.3333, 0.3333, 0.585)
    """
    label, value = check_labels(classes), check_codes(values)[:, 0]
    if label.shape != value.shape:
        raise DataError("classes and values do not pair up", fix="give one class and one value per record")
    label, value = label[label >= 0], value[label >= 0]
    if label.size == 0:
        raise NotApplicable("there is no released record")
    totals = np.bincount(value + 1)  # with null, code -1
    sizes = np.bincount(label)
    cells, count = np.unique(label * len(totals) + value + 1, return_counts=True)
    group, place = cells // len(totals), cells % len(totals)
    ratio = (count * len(label)) / (sizes[group] * totals[place])  # q / p
    gain, log_share = ratio - 1.0, np.log(totals[place] / len(label))
    beta, excess = max(0.0, float(gain.max())), float((gain + log_share).max())
    absent = len(cells) < (sizes > 0).sum() * (totals > 0).sum()
    present = float(np.abs(np.log2(ratio)).max())
    return Likeness(
        beta, beta if excess <= 0 else math.inf, math.inf if absent else present, present, excess, bool(absent)
    )


def multi_entropy(classes: ArrayLike, values: ArrayLike) -> Floats:
    """Return the multi-entropy of the class of each record, from 1 up: more is better; `values` is one column each.

    >>> multi_entropy([0, 0, 0, 0, 1, 1], [[0, 0], [0, 1], [1, 0], [1, 1], [0, 0], [1, 0]]).tolist()
    [2.0, 2.0, 2.0, 2.0, 1.0, 1.0]
    """
    label, codes = check_labels(classes), check_codes(values)
    if len(label) != len(codes) or (label.size and label.min() < 0):
        raise DataError("classes and values do not pair up", fix="give one class and the values of each record")
    if label.size == 0:
        raise NotApplicable("there is no record")
    least = np.full(int(label.max()) + 1, np.inf)
    for j in range(codes.shape[1]):
        part, first = group_rows(np.column_stack([label, np.delete(codes, j, axis=1)]))
        np.minimum.at(least, label[first], _exponential_entropy(part, codes[:, j]))
    return np.asarray(least[label], np.float64)


def _exponential_entropy(part: Ints, value: Ints) -> Floats:
    """Return exp(entropy) of the values of each part."""
    width = int(value.max()) + 2
    cells, count = np.unique(part * width + value + 1, return_counts=True)
    group, sizes = cells // width, np.bincount(part)
    logs = np.bincount(group, count * np.log(count))
    return np.asarray(np.exp(np.log(sizes) - logs / sizes), np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class Combinations(NamedResult):
    """The classes of every combination of `size` keys; shorter ones have no smaller class and no higher confidence."""

    least_class: int
    confidence: float | None  # the largest of any confidential value; None without such a column
    combinations: int  # distinct tuples of values
    sizes: Ints  # of their classes
    by_value: Floats | Mapping[Any, float] | None  # the largest confidence of each value; by code null comes last

    def count_below(self, k: int) -> int:
        """Return the number of combinations with fewer than k records."""
        return int((self.sizes < k).sum())


def measure_combinations(keys: ArrayLike, size: int, values: ArrayLike | None = None) -> Combinations:
    """Return the classes of every combination of `size` keys; `values` are confidential.

    >>> result = measure_combinations([[0, 0], [0, 1], [1, 1], [1, 1]], size=1, values=[0, 1, 1, 1])
    >>> result.least_class, result.combinations, result.confidence
    (1, 4, 1.0)
    """
    codes = check_codes(keys)
    if not isinstance(size, int | np.integer) or size < 1:
        raise PolicyError(f"size is {size}", fix="give the number of values that an attacker knows, from 1 up")
    if not codes.size:
        raise NotApplicable("there is no record")
    value = None if values is None else check_codes(values)[:, 0]
    if value is not None and len(value) != len(codes):
        raise DataError("keys and values do not pair up", fix="give one value per record")
    width = 0 if value is None else int(value.max()) + 2
    sizes, best = [], np.zeros(width)
    for columns in combinations(range(codes.shape[1]), min(size, codes.shape[1])):
        group, _ = group_rows(codes[:, columns])
        count = np.bincount(group)
        sizes.append(count)
        if value is not None:
            cells, joint = np.unique(group * width + np.where(value < 0, width - 1, value), return_counts=True)
            np.maximum.at(best, cells % width, joint / count[cells // width])
    classes = np.concatenate(sizes)
    confidence = None if value is None else float(best.max())
    return Combinations(int(classes.min()), confidence, len(classes), classes, None if value is None else best)
