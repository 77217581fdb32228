"""Loss of categories that were exchanged for others, and of generalized values.

    dist                 Σ over the cells: 0 or 1 for a nominal attribute, the steps on the scale for an ordinal one
    ctbil                Σ of |f - f'| / f over the cells of the contingency tables of up to `dimension` attributes
    actbil               ctbil / the number of cells of those tables
    ebil                 Σ over the cells of H(V | V' = v') in bits: the uncertainty of the original value
    prec                 1 - mean over the cells of level / height, attributes by weight
    granularity          1 - mean over the cells of (leaves covered - 1) / (leaves - 1)
    discernibility       Σ |class|², and n for each suppressed record
    average_class_size   released records / classes

Dist to EBIL: Domingo-Ferrer & Torra, Data Min. Knowl. Discov. 11 (2005), section 6.2. The paper leaves open which
tables CTBIL' takes (here all of 1, 2, … `dimension` attributes) and what a cell counts that is empty in the original
(`empty`: "one" divides by 1, "skip" leaves it out). The cells of a table are all combinations of its categories. EBIL
takes P(V | V') from the two files (EBILMF of Domingo-Ferrer & Torra 2001). Null (-1) and stars are one more category, a
whole scale away from the others. Cost: O(n) for each attribute and each table.

Prec: Sweeney 2002, Definition 5, over the attributes of the quasi-identifier. Granularity: Iyengar, KDD 2002.
Discernibility: Bayardo & Agrawal, ICDE 2005. Average class size: LeFevre, DeWitt & Ramakrishnan, ICDE 2006. The height
of a hierarchy counts its steps with the top. A suppressed cell is at the top and covers every leaf. An attribute with a
single value loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import prod
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from kinfold.errors import DataError, PolicyError
from kinfold.measures.formulas.arrays import Floats, Ints, NotApplicable, check_codes, check_sizes, require_pairs

EmptyCells: TypeAlias = Literal["one", "skip"]

MAX_DENSE_COUNTS = 4_000_000  # larger tables are counted by sorting instead of in one array (32 MB)


def dist(original: ArrayLike, released: ArrayLike, scales: Sequence[int]) -> float:
    """Return the sum of the distances between original and released categories, from 0 up: less is better.

    `scales` holds the number of categories of each ordinal attribute, 0 for a nominal one.

    >>> dist([[0, 0], [3, 1]], [[2, 0], [3, 0]], scales=[4, 0])  # two steps and one exchange
    3.0
    """
    x, y = _pair_codes(original, released)
    total = 0
    for j, scale in enumerate(scales):
        a, b = x[:, j], y[:, j]
        steps = np.abs(a - b) if scale else (a != b).astype(np.int64)
        whole = max(scale - 1, 1)
        total += int(np.where((a < 0) != (b < 0), whole, steps).sum())
    return float(total)


def contingency_loss(
    original: ArrayLike, released: ArrayLike, sizes: Sequence[int], dimension: int = 2, empty: EmptyCells = "one"
) -> tuple[float, int]:
    """Return CTBIL' and the number of cells of its tables; ACTBIL' is their ratio.

    `sizes` is the number of categories of each attribute, without null.

    >>> contingency_loss([0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 0, 1], sizes=[2])
    (0.75, 2)
    """
    x, y = _pair_codes(original, released)
    loss, cells = 0.0, 0
    for a, b, number in _list_tables(x, y, sizes, dimension):
        loss += _table_loss(a, b, number, empty)
        cells += number
    return loss, cells


def ebil(original: ArrayLike, released: ArrayLike) -> float:
    """Return the bits of uncertainty about the original values, 0 to n times their entropy: less is better.

    >>> ebil([0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 1, 1])  # four records with one bit each
    4.0
    """
    x, y = _pair_codes(original, released)
    bits = 0.0
    for a, b in zip(x.T, y.T, strict=True):  # -log2 P(a | b) of each record
        base = int(a.max()) + 2
        pairs, records = np.unique((b + 1) * base + a + 1, return_counts=True)
        groups = np.bincount(pairs // base, records)
        bits += float((records * np.log2(groups[pairs // base] / records)).sum())
    return bits


def _list_tables(x: Ints, y: Ints, sizes: Sequence[int], dimension: int) -> Iterator[tuple[Ints, Ints, int]]:
    """Yield for each table the cell of each record in both files, and the number of cells."""
    null = [bool((x[:, j] < 0).any() or (y[:, j] < 0).any()) for j in range(x.shape[1])]
    width = [size + extra for size, extra in zip(sizes, null, strict=True)]
    for count in range(1, min(dimension, x.shape[1]) + 1):
        for chosen in combinations(range(x.shape[1]), count):
            yield _number_cells(x, chosen, width), _number_cells(y, chosen, width), prod(width[j] for j in chosen)


def _number_cells(x: Ints, chosen: tuple[int, ...], width: Sequence[int]) -> Ints:
    cell = np.zeros(len(x), np.int64)
    for j in chosen:
        cell = cell * width[j] + np.where(x[:, j] < 0, width[j] - 1, x[:, j])
    return cell


def _table_loss(a: Ints, b: Ints, cells: int, empty: EmptyCells) -> float:
    if cells > MAX_DENSE_COUNTS:
        distinct, place = np.unique(np.concatenate([a, b]), return_inverse=True)
        a, b, cells = place[: len(a)], place[len(a) :], len(distinct)
    before, after = np.bincount(a, minlength=cells), np.bincount(b, minlength=cells)
    counted = (before > 0) | (empty == "one")
    return float((np.abs(before - after) / np.maximum(before, 1))[counted].sum())


def _pair_codes(original: ArrayLike, released: ArrayLike) -> tuple[Ints, Ints]:
    x, y = check_codes(original), check_codes(released)
    require_pairs(x, y, "category", "-1")
    return x, y


def prec(levels: ArrayLike, heights: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Return the precision, 0 (all at the top) to 1 (nothing generalized): more is better.

    `levels` is the level of each cell, or one row with the mean level of each attribute.

    >>> prec([[0, 1]], heights=[2, 3])  # Sweeney's Example 6, GT[0,1]
    0.8333333333333334
    """
    level, height = np.atleast_2d(np.asarray(levels, np.float64)), np.asarray(heights, np.float64)
    if level.size == 0 or not (height > 0).any():
        raise NotApplicable("no quasi-identifier has a hierarchy")
    if level.shape[1] != len(height) or (level < 0).any() or (level > height).any():
        raise DataError("a level is not on its hierarchy", fix="levels go from 0 to the height of the attribute")
    lost = level.mean(axis=0) / np.where(height > 0, height, 1.0)
    return 1.0 - _weighted_average(lost, weights)


def granularity(covered: ArrayLike, leaves: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Return the share of detail kept, 0 (all at the top) to 1 (nothing generalized): more is better.

    `covered` is the number of leaves under each released value, or one row of means, as in `prec`.

    >>> granularity([[1, 3], [5, 3]], leaves=[5, 5])  # 1 less the mean of 0, 2/4, 4/4, 2/4
    0.5
    """
    under, total = np.atleast_2d(np.asarray(covered, np.float64)), np.asarray(leaves, np.float64)
    if under.size == 0 or not (total > 1).any():
        raise NotApplicable("no quasi-identifier has more than one value")
    if under.shape[1] != len(total) or (under < 1).any() or (under > total).any():
        fix = "leaves covered go from 1 to all of the attribute"
        raise DataError("a value covers more leaves than the hierarchy has, or none", fix=fix)
    lost = (under.mean(axis=0) - 1.0) / np.where(total > 1, total - 1.0, 1.0)
    return 1.0 - _weighted_average(lost, weights)


def average_class_size(sizes: ArrayLike) -> float:
    """Return the mean number of released records per class, from 1 to n: less is better.

    >>> average_class_size([2, 2, 4])
    2.6666666666666665
    """
    classes = check_sizes(sizes)
    return float(classes.sum() / len(classes))


def discernibility(sizes: ArrayLike, suppressed: int = 0) -> float:
    """Return the sum over the records of the size of their class, from n to n²: less is better.

    A suppressed record counts all n records, released and suppressed.

    >>> discernibility([2, 2, 4])
    24.0
    >>> discernibility([2, 2], suppressed=1)
    13.0
    """
    classes = check_sizes(sizes).astype(np.float64)  # squares may overflow integers
    return float((classes**2).sum() + suppressed * (classes.sum() + suppressed))


def _weighted_average(lost: Floats, weights: ArrayLike | None) -> float:
    weight = np.ones(len(lost)) if weights is None else np.asarray(weights, np.float64)
    if weight.shape != lost.shape or (weight < 0).any() or not weight.any():
        raise PolicyError("weights are not one number from 0 up per attribute", fix="give each attribute its weight")
    return float((lost * weight).sum() / weight.sum())
