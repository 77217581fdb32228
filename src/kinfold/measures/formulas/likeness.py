"""How far the values of a confidential column in a class are from those of the whole table; diversity by record.

With p the share of a value among all records and q its share in a class, over all classes:

    basic β       the largest (q - p) / p: how much more frequent a value becomes in a class
    enhanced β    the same, if no value has (q - p) / p > -ln p; otherwise no β holds, and it is infinite
    δ             the largest |log2(q / p)| over every value of the column in every class: infinite if a value is absent
                  from a class. Over the values that are present it is finite, but not monotone: merging two classes may
                  raise it

    multi-entropy of a record    exp(entropy) of each confidential column in the part of the class that agrees in the
                                 other confidential columns; the least over the parts and the columns

A missing value is a value. Cost: one sort of the records for each column.

Sources: Cao & Karras, PVLDB 5(11), 2012 (β-likeness); Brickell & Shmatikov, KDD 2008 (δ-disclosure); Machanavajjhala
et al., ACM TKDD 1(1), 2007, section 4.3 (several confidential columns).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from kinfold.errors import DataError
from kinfold.measures.formulas.arrays import (
    Floats,
    Ints,
    NamedResult,
    NotApplicable,
    check_codes,
    check_labels,
    group_rows,
)


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
