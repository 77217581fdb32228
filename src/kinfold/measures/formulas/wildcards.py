"""Class sizes and sums of weights where a missing value may be any value.

    f_i = the records with the tuple of record i
        + the sum over the other tuples that fit it of their records, times `share` if that tuple lacks a value

Two tuples fit if they agree in every column in which neither lacks a value. A record that lacks every key fits all: it
has f = n. Weights are summed in the same way. This is a reading of risk measures (sdcMicro counts so): no promise uses
it, because an attacker can tell a missing value from others.

Cost: one join of the distinct tuples for each pair of patterns of missing values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold.measures.formulas.arrays import Floats, Ints, NotApplicable, check_codes, group_rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def count_fitting(keys: ArrayLike, weights: ArrayLike | None = None, share: float = 1.0) -> tuple[Floats, Floats]:
    """Return for each record the records that fit it, and the sum of their weights.

    >>> [each.tolist() for each in count_fitting([[0], [0], [1], [-1]], [10.0, 20.0, 30.0, 40.0], share=0.5)]
    [[2.5, 2.5, 1.5, 4.0], [50.0, 50.0, 50.0, 100.0]]
    """
    codes = check_codes(keys)
    if not codes.size:
        raise NotApplicable("there is no record")
    weight = np.ones(len(codes)) if weights is None else np.asarray(weights, np.float64)
    group, first = group_rows(codes)
    own = np.column_stack([np.bincount(group), np.bincount(group, weight)]).astype(np.float64)
    tuples = codes[first]
    pattern, example = group_rows(tuples < 0)
    rows = [np.flatnonzero(pattern == number) for number in range(len(example))]
    totals = own.copy()
    for known in rows:
        for other in rows:
            shared = (tuples[known[0]] >= 0) & (tuples[other[0]] >= 0)
            totals[known] += _sum_fitting(tuples, own, known, other, shared, share)
    totals[(tuples < 0).all(axis=1)] = own.sum(axis=0)
    return totals[group, 0], totals[group, 1]


def _sum_fitting(tuples: Ints, own: Floats, known: Ints, other: Ints, shared: np.ndarray, share: float) -> Floats:
    """Return for some tuples the counts of other tuples that agree in the shared columns."""
    part = (tuples[other[0]] < 0).any()
    both, _ = group_rows(np.concatenate([tuples[known], tuples[other]])[:, shared]) if shared.any() else (None, None)
    group = np.zeros(len(known) + len(other), np.int64) if both is None else both
    here, there = group[: len(known)], group[len(known) :]
    sums = np.column_stack([np.bincount(there, own[other, j], int(group.max()) + 1) for j in (0, 1)])[here]
    others = sums - own[known] if known[0] == other[0] else sums  # the tuple itself is no other one
    return np.asarray(others * (share if part else 1.0), np.float64)
