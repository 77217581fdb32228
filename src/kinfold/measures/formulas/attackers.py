"""Risk of re-identification by attacker: of a record, of a household, and of being in the table at all.

    prosecutor   knows that the person is in the release: 1 / f, f the size of the released class
    journalist   does not know it: 1 / F, F the size of the class in the population; with sampling weights, the mean of
                 1 / F given f, see `individual_risk`
    marketer     attacks all records: the mean of those risks

`individual_risk`: F given f is negative binomial with f successes of probability p = f / Σ weights, so that

    r_f = (p/f) F(1, 1; f+1; 1-p) = (p/f) Σ_j j! (1-p)^j / ((f+1)…(f+j))

with the hypergeometric function F: by scipy for small classes, by the sum for large ones, where scipy may return NaN.

    household_risk   1 - Π (1 - r_i) over the records of a household: the chance to find one of them finds all
    presence         n_c / N_c by class, the share of the people of a class of the population who are in the table

    count_fitting    the records that fit record i if a missing value may be any value, and the sum of their weights:
                     those with its tuple, and those of every other tuple that fits it, times `share` if that tuple
                     lacks a value. Two tuples fit if they agree in every column in which neither lacks a value; a
                     record that lacks every key fits all. This is a reading of risk measures (sdcMicro counts so): no
                     promise uses it, because an attacker can tell a missing value from others

Cost: O(n); of `count_fitting` one join of the distinct tuples for each pair of patterns of missing values.

Sources: El Emam, Guide to the De-Identification of Personal Health Information, 2013; Benedetti & Franconi, NTTS 1998;
Hundepool et al., Statistical Disclosure Control, Wiley 2012, section 3.3 (households); Nergiz, Atzori & Clifton,
SIGMOD 2007 (presence).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinfold.errors import DataError
from kinfold.measures.formulas.arrays import (
    Floats,
    Ints,
    NotApplicable,
    check_codes,
    check_labels,
    check_sizes,
    count_class_sizes,
    group_rows,
)

MIN_SERIES_CLASS = 48  # from this class size up, SERIES_TERMS terms suffice for any p
SERIES_TERMS = 64  # at f = 48 and p near 0, the slowest case, the last term is 1e-32 of the first


def prosecutor_risk(classes: ArrayLike) -> Floats:
    """Return 1 / class size of each released record, above 0 to 1: less is better.

    >>> prosecutor_risk([0, 0, 1, -1]).tolist()  # the last record is dropped
    [0.5, 0.5, 1.0]
    """
    sizes = count_class_sizes(check_labels(classes))
    sizes = sizes[sizes > 0]
    if sizes.size == 0:
        raise NotApplicable("there is no released record")
    return np.asarray(1.0 / sizes, np.float64)


def prosecutor_max(sizes: ArrayLike) -> float:
    """Return the highest risk of any released record, 1 / the smallest class, above 0 to 1: less is better.

    >>> prosecutor_max([5, 4, 10])
    0.25
    """
    return float(1.0 / check_sizes(sizes).min())


def prosecutor_mean(sizes: ArrayLike, classes: Ints | None = None) -> float:
    """Return the mean risk, classes / records, above 0 to 1: less is better. It is also the marketer's risk.

    `classes` is the number of classes of each size, 1 by default.

    >>> prosecutor_mean([5, 4, 11])
    0.15
    """
    size = check_sizes(sizes)
    return float(len(size) / size.sum() if classes is None else classes.sum() / (size @ classes))


def journalist_risk(classes: ArrayLike, population: ArrayLike) -> Floats:
    """Return 1 / F of each released record, 0 to 1: less is better; `population[c]` is F of class c.

    >>> journalist_risk([0, 0, 1], [100, 4]).tolist()
    [0.01, 0.01, 0.25]
    """
    kept = check_labels(classes)
    kept = kept[kept >= 0]
    if kept.size == 0:
        raise NotApplicable("there is no released record")
    people = np.asarray(population, np.float64)
    sizes = np.bincount(kept, minlength=len(people))
    if len(sizes) > len(people) or (people < sizes).any():
        fix = "give a population table that holds every released record"
        raise DataError("a class has more records in the release than in the population", fix=fix)
    return np.asarray(1.0 / people[kept], np.float64)


def individual_risk(classes: ArrayLike, weights: ArrayLike) -> Floats:
    """Return the expected 1 / F of each released record by the sampling weights, 0 to 1: less is better.

    >>> individual_risk([0, 0, 1], [55.0, 55.0, 17.0]).round(6).tolist()
    [0.017144, 0.017144, 0.177076]
    """
    kept = check_labels(classes)
    weight = np.asarray(weights, np.float64)
    if kept.shape != weight.shape or not (weight[kept >= 0] >= 1).all():
        fix = "a weight is the number of people that a record stands for"
        raise DataError("sampling weights are not one number from 1 up per record", fix=fix)
    weight, kept = weight[kept >= 0], kept[kept >= 0]
    if kept.size == 0:
        raise NotApplicable("there is no released record")
    return measure_class_risk(kept, np.asarray(np.bincount(kept, weight), np.float64))[kept]


def measure_class_risk(classes: NDArray[np.integer[Any]], people: Floats) -> Floats:
    """Return the individual risk of each class, 0 to 1: less is better; `people` are the sums of the weights.

    It falls as classes merge: with more records and more people.

    >>> measure_class_risk(np.array([0, 0, 1]), np.array([110.0, 17.0])).round(6).tolist()
    [0.017144, 0.177076]
    """
    sizes = np.bincount(classes)
    used = sizes > 0
    risk = np.zeros(len(sizes))
    risk[used] = mean_reciprocal(sizes[used], sizes[used] / people[used])
    return risk


def marketer_risk(risks: ArrayLike) -> float:
    """Return the mean risk: the expected share of records found, 0 to 1: less is better.

    >>> marketer_risk([0.25, 0.25, 1.0])
    0.5
    """
    return float(_require_records(risks).mean())


def share_above(risks: ArrayLike, threshold: float) -> float:
    """Return the share of records whose risk is above the threshold, 0 to 1: less is better.

    >>> share_above([0.5, 0.5, 0.1, 0.05], 0.1)
    0.5
    """
    return float((_require_records(risks) > threshold).mean())


def mean_reciprocal(sizes: Ints | Floats, rate: Floats) -> Floats:
    """Return E[1 / F] of classes of f records, F negative binomial with success rate p in (0, 1]."""
    from scipy.special import hyp2f1  # slow to load

    result = np.empty(len(sizes))
    small = sizes < MIN_SERIES_CLASS
    result[small] = rate[small] / sizes[small] * hyp2f1(1.0, 1.0, sizes[small] + 1.0, 1.0 - rate[small])
    result[~small] = _sum_series(sizes[~small], rate[~small])
    return result


def _sum_series(sizes: Ints | Floats, rate: Floats) -> Floats:
    term = rate / sizes
    total = term.copy()
    for j in range(1, SERIES_TERMS):
        term = term * (j * (1.0 - rate) / (sizes + j))
        total += term
    return np.asarray(total, np.float64)


def _require_records(risks: ArrayLike) -> Floats:
    array = np.asarray(risks, np.float64)
    if array.size == 0:
        raise NotApplicable("there is no released record")
    return array


def household_risk(risk: ArrayLike, household: ArrayLike) -> Floats:
    """Return for each record the chance that a person of its household is found, 0 to 1: less is better.

    `household` labels the household of each record.

    >>> household_risk([0.1, 0.5, 0.2], [0, 0, 1]).round(3).tolist()
    [0.55, 0.55, 0.2]
    """
    chance, label = np.asarray(risk, np.float64), check_labels(household)
    if chance.shape != label.shape or (label.size and label.min() < 0):
        raise DataError("risks and households do not pair up", fix="give one risk and one household per record")
    if not ((chance >= 0) & (chance <= 1)).all():
        raise DataError("the risks are not numbers from 0 to 1", fix="give the risk of each record")
    if chance.size == 0:
        raise NotApplicable("there is no record")
    with np.errstate(divide="ignore"):  # a certain member makes the household certain
        log_none = np.bincount(label, np.log1p(-chance))
    return np.asarray(-np.expm1(log_none)[label], np.float64)


def presence(sizes: ArrayLike, population: ArrayLike) -> Floats:
    """Return the share of the people of each class who are in the table, 0 to 1: less is better.

    `sizes` has 0 for a class of the population without records.

    >>> presence([2, 0, 3], [4, 7, 3]).tolist()
    [0.5, 0.0, 1.0]
    """
    records, people = np.asarray(sizes, np.float64), np.asarray(population, np.float64)
    if records.shape != people.shape or not ((records >= 0) & (records <= people) & (people > 0)).all():
        fix = "give a population table that holds every record of the table"
        raise DataError("a class has more records in the table than in the population", fix=fix)
    return np.asarray(records / people, np.float64)


def count_fitting(keys: ArrayLike, weights: ArrayLike | None = None, share: float = 1.0) -> tuple[Floats, Floats]:
    """Return for each record the records that fit it, and the sum of their weights.

    With several keys, a record without any key is not counted for complete records, as in sdcMicro.

    >>> [each.tolist() for each in count_fitting([[0], [0], [1], [-1]], [10.0, 20.0, 30.0, 40.0], share=0.5)]
    [[2.5, 2.5, 1.5, 4.0], [50.0, 50.0, 50.0, 100.0]]
    """
    codes = check_codes(keys)
    if not codes.size:
        raise NotApplicable("there is no record")
    weight = np.ones(len(codes)) if weights is None else np.asarray(weights, np.float64)
    group, first = group_rows(codes)
    counts = np.column_stack([np.bincount(group), np.bincount(group, weight)]).astype(np.float64)
    tuples = codes[first]
    pattern, example = group_rows(tuples < 0)
    rows = [np.flatnonzero(pattern == number) for number in range(len(example))]
    totals, missing = counts.copy(), (tuples < 0).sum(axis=1)
    for known in rows:
        for other in rows:
            if missing[known[0]] == 0 and missing[other[0]] == tuples.shape[1] > 1:
                continue
            shared = (tuples[known[0]] >= 0) & (tuples[other[0]] >= 0)
            totals[known] += _sum_fitting(tuples, counts, known, other, shared, share)
    totals[missing == tuples.shape[1]] = counts.sum(axis=0)
    return totals[group, 0], totals[group, 1]


def _sum_fitting(tuples: Ints, counts: Floats, known: Ints, other: Ints, shared: np.ndarray, share: float) -> Floats:
    """Return for some tuples the counts of other tuples that agree in the shared columns."""
    part = (tuples[other[0]] < 0).any()
    both, _ = group_rows(np.concatenate([tuples[known], tuples[other]])[:, shared]) if shared.any() else (None, None)
    group = np.zeros(len(known) + len(other), np.int64) if both is None else both
    one, two = group[: len(known)], group[len(known) :]
    sums = np.column_stack([np.bincount(two, counts[other, j], int(group.max()) + 1) for j in (0, 1)])[one]
    others = sums - counts[known] if known[0] == other[0] else sums  # the tuple itself is no other one
    return np.asarray(others * (share if part else 1.0), np.float64)
