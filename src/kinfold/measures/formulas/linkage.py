"""The linkage attack: the share of records that an attacker with the original values finds in the release.

The attacker has the original quasi-identifiers of every record and links each record to its nearest released records.
Ties are broken at random:

    credit of a record = 1 / the released records at the smallest distance, if its own is among them, else 0
    linkage            = the mean credit of the released records

The class of a record has at least k records with equal released values, so that the linkage on the quasi-identifiers is
at most 1/k. With columns that were released unchanged there is no such bound.

    1  group the released records by their values: m points, each with its number of records
    2  few pairs: compare every record with every point
    3  else build a box tree of the points and search it for each record

The caller defines the distance: standardized and weighted numbers; codes with a table of squared gaps from original to
released codes. Results are exact to the last bit, see `kernels.linkage`. Cost: O(m log m) to build, about O(log m) for
each record with few attributes, O(m) at worst; memory O((n + m) d).
Source: Domingo-Ferrer & Torra, A quantitative comparison of disclosure control methods for microdata, 2001; credit for
ties is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold import kernels
from kinfold.errors import DataError
from kinfold.measures.formulas.arrays import Flags, Floats, Ints, NotApplicable, group_equal_rows, group_rows
from kinfold.progress import Progress, no_progress

Gaps: TypeAlias = Sequence[Floats]  # a table of squared distances for each code

MAX_PAIRS_IN_NUMPY = 4_000_000  # faster than loading the kernel
RECORDS_PER_PROGRESS = 8_192  # between two calls of `progress`


@dataclass(frozen=True, eq=False)
class LinkageRecords:
    """Records of the attack: `numbers` (n, a) and `codes` (n, b)."""

    numbers: Floats
    codes: Ints
    weight: Ints | None = None  # records of each row, 1 by default

    @classmethod
    def from_arrays(cls, numbers: object = None, codes: object = None, weight: Ints | None = None) -> LinkageRecords:
        """Return records from numbers, codes or both."""
        rows = len(np.asarray(codes if numbers is None else numbers))
        left = np.empty((rows, 0)) if numbers is None else np.asarray(numbers, np.float64)
        right = np.empty((rows, 0), np.int64) if codes is None else np.asarray(codes, np.int64)
        if left.ndim != 2 or right.ndim != 2 or len(left) != len(right) or not np.isfinite(left).all():
            what = "records are not numbers and codes, records by attributes, without missing numbers"
            raise DataError(what, fix="give missing numbers a code, or leave those records out")
        return cls(left, right, weight)

    @property
    def columns(self) -> int:
        """The number of attributes."""
        return int(self.numbers.shape[1] + self.codes.shape[1])

    def join(self) -> Floats:
        """Return all attributes as one array of floats."""
        return np.ascontiguousarray(np.hstack([self.numbers, self.codes.astype(np.float64)]))

    def select(self, rows: Flags | Ints) -> LinkageRecords:
        """Return some of the records."""
        return LinkageRecords(self.numbers[rows], self.codes[rows], None if self.weight is None else self.weight[rows])


def linkage(credit: Floats) -> float:
    """Return the expected share of records found, 0 to 1: less is better.

    >>> original = LinkageRecords.from_arrays([[1.0], [3.0], [11.0], [13.0]])
    >>> released = LinkageRecords.from_arrays([[2.0], [2.0], [12.0], [12.0]])
    >>> linkage(linkage_credit(original, released))
    0.5
    """
    if len(credit) == 0:
        raise NotApplicable("there is no released record")
    return float(credit.mean())


def linkage_credit(
    original: LinkageRecords,
    released: LinkageRecords,
    gaps: Sequence[Floats] = (),
    kept: Flags | None = None,
    attacked: Ints | None = None,
    progress: Progress = no_progress,
) -> Floats:
    """Return the chance to find each released record, 0 to 1: less is better.

    Record i of `released` is record i of `original`; records that are not `kept` are not released. `attacked` are the
    places of the released records to attack, all by default.

    >>> original = LinkageRecords.from_arrays([[1.0], [5.0], [6.0]])
    >>> linkage_credit(original, LinkageRecords.from_arrays([[1.0], [9.0], [5.5]])).tolist()
    [1.0, 0.0, 1.0]
    """
    queries, points = original, released
    if kept is not None:
        queries, points = original.select(kept), released.select(kept)
    shapes = [(side.numbers.shape, side.codes.shape) for side in (queries, points)]
    if shapes[0] != shapes[1] or len(gaps) != queries.codes.shape[1]:
        fix = "give the same records and attributes, and one table of gaps for each code"
        raise DataError("the tables have different shapes", fix=fix)
    if len(queries.numbers) == 0 or queries.columns == 0:
        raise NotApplicable("there is no released record, or no attribute to link by")
    point, first = group_equal_rows([*points.join().T])
    sizes, points = np.bincount(point, points.weight).astype(np.int64), points.select(first)
    if attacked is not None:
        queries, point = queries.select(attacked), point[attacked]
    tables = [np.asarray(table, np.float64) for table in gaps]
    if len(point) * len(first) <= MAX_PAIRS_IN_NUMPY:
        return _compare_all(queries, points, sizes, point, tables)
    return _search(queries, points, sizes, point, tables, progress)


def find_telling_subsets(released: LinkageRecords, largest: int = 3, top: int = 5) -> list[tuple[int, ...]]:
    """Return the subsets of at most `largest` attributes that split the release into the most classes.

    The number of classes bounds the linkage on a subset. Ties: fewer attributes, then the first.

    >>> find_telling_subsets(LinkageRecords.from_arrays(None, [[0, 0], [0, 1], [0, 2]]), top=1)
    [(1,)]
    """
    values = released.join()
    columns = [group_rows(values[:, [j]])[0][:, None] for j in range(values.shape[1])]
    sizes = range(1, min(largest, len(columns)) + 1)
    subsets = [chosen for size in sizes for chosen in combinations(range(len(columns)), size)]
    classes = [len(group_rows(np.hstack([columns[j] for j in chosen]))[1]) for chosen in subsets]
    best = sorted(range(len(subsets)), key=lambda s: (-classes[s], len(subsets[s]), subsets[s]))
    return [subsets[s] for s in best[:top]]


def _compare_all(queries: LinkageRecords, points: LinkageRecords, sizes: Ints, point: Ints, tables: Gaps) -> Floats:
    distance = np.zeros((len(queries.numbers), len(sizes)))
    for x, y in zip(queries.numbers.T, points.numbers.T, strict=True):
        distance += (x[:, None] - y) ** 2
    for c, d, table in zip(queries.codes.T, points.codes.T, tables, strict=True):
        distance += table[c][:, d]
    nearest = distance == distance.min(axis=1, keepdims=True)
    return np.asarray(nearest[np.arange(len(point)), point] / (nearest @ sizes), np.float64)


def _search(
    queries: LinkageRecords, points: LinkageRecords, sizes: Ints, point: Ints, tables: Gaps, progress: Progress
) -> Floats:
    kernel = kernels.load("linkage")  # slow to load
    target = kernel.make_target(*_kernel_arrays(points), sizes, tables)
    order = np.argsort(target.tree.home[point], kind="stable")  # neighbours one after the other use the cache
    credit = np.empty(len(point))
    for start in range(0, len(order), RECORDS_PER_PROGRESS):
        rows = order[start : start + RECORDS_PER_PROGRESS]
        credit[rows] = kernel.credit(*_kernel_arrays(queries.select(rows)), point[rows], target)
        progress(start + len(rows), len(order))
    return credit


def _kernel_arrays(records: LinkageRecords) -> tuple[Floats, NDArray[np.int32]]:
    return np.require(records.numbers, requirements=["C", "A", "W"]), np.ascontiguousarray(records.codes, np.int32)
