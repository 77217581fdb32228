"""Information loss of categories that were exchanged for others: Dist, CTBIL', ACTBIL' and EBIL.

    dist     Σ over the cells: 0 or 1 for a nominal attribute, the steps on the scale for an ordinal one
    ctbil    Σ over the contingency tables of up to `dimension` attributes, over their cells, of |f - f'| / f
    actbil   ctbil / the number of cells of those tables
    ebil     Σ over the cells of H(V | V' = v'), in bits: how uncertain the original value is, given the released one

Paper: Domingo-Ferrer & Torra 2005, section 6.2, which leaves two things open for CTBIL': which tables are taken (here:
all of 1, 2, … `dimension` attributes) and what a cell counts that is empty in the original (`empty`: "one" divides by
1, "skip" leaves it out). The cells of a table are all combinations of its categories. EBIL takes P(V | V') from the two
files themselves (EBILMF of Domingo-Ferrer & Torra 2001).

Null (-1) is one more category: a whole scale away from the others. A starred value is null.
Cost: O(n) for each attribute and each table.
"""

from __future__ import annotations

from itertools import combinations
from math import prod
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from kinfold.measures.arrays import Ints, codes, require_pairs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike

Empty: TypeAlias = Literal["one", "skip"]

DENSE = 4_000_000  # cells of a table that are counted in one array (32 MB); larger tables are counted by sorting


def dist(original: ArrayLike, released: ArrayLike, scales: Sequence[int]) -> float:
    """Sum of the distances between original and released categories, from 0 (nothing changed) up: less is better.

    `scales` holds the number of categories of each ordinal attribute, 0 for a nominal one.

    >>> dist([[0, 0], [3, 1]], [[2, 0], [3, 0]], scales=[4, 0])  # two steps, and one category exchanged
    3.0
    """
    x, y = _paired(original, released)
    total = 0
    for j, scale in enumerate(scales):
        a, b = x[:, j], y[:, j]
        steps = np.abs(a - b) if scale else (a != b).astype(np.int64)
        whole = max(scale - 1, 1)
        total += int(np.where((a < 0) != (b < 0), whole, steps).sum())
    return float(total)


def contingency_loss(
    original: ArrayLike, released: ArrayLike, sizes: Sequence[int], dimension: int = 2, empty: Empty = "one"
) -> tuple[float, int]:
    """Return CTBIL' and the number of cells of its tables, for whoever wants ACTBIL' as well.

    `sizes` is the number of categories of each attribute, null left out.

    >>> contingency_loss([0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 0, 1], sizes=[2])
    (0.75, 2)
    """
    x, y = _paired(original, released)
    loss, cells = 0.0, 0
    for a, b, number in _tables(x, y, sizes, dimension):
        loss += _table_loss(a, b, number, empty)
        cells += number
    return loss, cells


def ebil(original: ArrayLike, released: ArrayLike) -> float:
    """Sum of the bits of uncertainty about the original values, 0 (nothing lost) to n times their entropy.

    >>> ebil([0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 1, 1])  # four records with one bit each
    4.0
    """
    x, y = _paired(original, released)
    return float(sum(_bits(x[:, j], y[:, j]) for j in range(x.shape[1])))


def _bits(a: Ints, b: Ints) -> float:
    """Σ over the records of -log2 P(a | b): the conditional entropy of each, summed."""
    base = int(a.max()) + 2
    pairs, held = np.unique((b + 1) * base + a + 1, return_counts=True)
    groups = np.bincount(pairs // base, held)
    return float((held * np.log2(groups[pairs // base] / held)).sum())


def _tables(x: Ints, y: Ints, sizes: Sequence[int], dimension: int) -> Iterator[tuple[Ints, Ints, int]]:
    """Yield the cell of each record in either file, and the number of cells, table by table."""
    null = [bool((x[:, j] < 0).any() or (y[:, j] < 0).any()) for j in range(x.shape[1])]
    width = [size + extra for size, extra in zip(sizes, null, strict=True)]
    for count in range(1, min(dimension, x.shape[1]) + 1):
        for chosen in combinations(range(x.shape[1]), count):
            yield _cells(x, chosen, width), _cells(y, chosen, width), prod(width[j] for j in chosen)


def _cells(x: Ints, chosen: tuple[int, ...], width: Sequence[int]) -> Ints:
    cell = np.zeros(len(x), np.int64)
    for j in chosen:
        cell = cell * width[j] + np.where(x[:, j] < 0, width[j] - 1, x[:, j])
    return cell


def _table_loss(a: Ints, b: Ints, cells: int, empty: Empty) -> float:
    if cells > DENSE:
        found, place = np.unique(np.concatenate([a, b]), return_inverse=True)
        a, b, cells = place[: len(a)], place[len(a) :], len(found)
    before, after = np.bincount(a, minlength=cells), np.bincount(b, minlength=cells)
    counted = (before > 0) | (empty == "one")
    return float((np.abs(before - after) / np.maximum(before, 1))[counted].sum())


def _paired(original: ArrayLike, released: ArrayLike) -> tuple[Ints, Ints]:
    x, y = codes(original), codes(released)
    require_pairs(x, y, "category", "-1")
    return x, y
