"""The linkage attack: how many people somebody who knows their original values finds in the release.

The attacker holds the original quasi-identifiers of every record and links each to its nearest released records. All
that are nearest look the same to him: he picks one of them blindly, so ties share the credit:

    credit of a record = 1 / the released records at the smallest distance, if its own is among them, else 0
    linkage            = the mean credit of the released records

A record's own class holds at least k records with the same released values, so that on the quasi-identifiers the
linkage is at most 1/k. On columns that were released untouched it is not bounded by 1/k.

    1  group the released records by their values: m points, each with its number of records
    2  few pairs: compare every record with every point
    3  else grow a box tree of the points and search it for each record

The distance is the one of the caller: numbers standardized and weighted by him, codes with a table of squared gaps, row
the original code, column the released one (it may be generalized, and need not be among the original ones).
Exact, to the last bit: see `kernels.linkage`. Cost: O(m log m) to build, about O(log m) for each record where few
attributes vary, O(m) at worst; memory O((n + m) d).
Source: Domingo-Ferrer & Torra 2001; the sharing of credit is here.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from kinfold import kernels
from kinfold.errors import DataError
from kinfold.measures.arrays import Flags, Floats, Ints, NotApplicable
from kinfold.measures.grouping import alike, group_rows
from kinfold.progress import Progress, silent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

FEW = 4_000_000  # pairs compared outright: less than the kernel takes to load
CHUNK = 8_192  # records between two calls of progress


@dataclass(frozen=True, eq=False)
class Located:
    """Records as the attacker sees them: `numbers` (n, a) and `codes` (n, b), columns counted numbers first."""

    numbers: Floats
    codes: Ints
    weight: Ints | None = None  # how many records each row stands for, where equal ones are given once

    @classmethod
    def of(cls, numbers: object = None, codes: object = None, weight: Ints | None = None) -> Located:
        """Take either part or both; the absent one has no columns."""
        rows = len(np.asarray(codes if numbers is None else numbers))
        left = np.empty((rows, 0)) if numbers is None else np.asarray(numbers, np.float64)
        right = np.empty((rows, 0), np.int64) if codes is None else np.asarray(codes, np.int64)
        if left.ndim != 2 or right.ndim != 2 or len(left) != len(right) or not np.isfinite(left).all():
            raise DataError(
                "records are not numbers and codes, records by attributes, without missing numbers",
                fix="give missing numbers a code of their own, or leave those records out",
            )
        return cls(left, right, weight)

    @property
    def columns(self) -> int:
        """How many attributes there are."""
        return int(self.numbers.shape[1] + self.codes.shape[1])

    def joined(self) -> Floats:
        """All attributes as one table, codes as whole numbers."""
        return np.ascontiguousarray(np.hstack([self.numbers, self.codes.astype(np.float64)]))

    def of_rows(self, rows: Flags | Ints) -> Located:
        """Return some of the records."""
        return Located(self.numbers[rows], self.codes[rows], None if self.weight is None else self.weight[rows])


def linkage(credit: Floats) -> float:
    """Return the share of released records that the attacker is expected to find, 0 to 1: less is better.

    >>> original, released = Located.of([[1.0], [3.0], [11.0], [13.0]]), Located.of([[2.0], [2.0], [12.0], [12.0]])
    >>> linkage(linkage_credit(original, released))
    0.5
    """
    if len(credit) == 0:
        raise NotApplicable("there is no released record")
    return float(credit.mean())


def linkage_credit(
    original: Located,
    released: Located,
    gaps: Sequence[Floats] = (),
    kept: Flags | None = None,
    attacked: Ints | None = None,
    progress: Progress = silent,
) -> Floats:
    """Return the chance to find each released record by its nearest released neighbours, 0 to 1: less is better.

    Record i of `released` is record i of `original`; records that are not `kept` were not released. Where `attacked`
    names some of the released records, by their place among them, only those are looked for, in the whole release.

    >>> linkage_credit(Located.of([[1.0], [5.0], [6.0]]), Located.of([[1.0], [9.0], [5.5]])).tolist()
    [1.0, 0.0, 1.0]
    """
    queries, points = original, released
    if kept is not None:
        queries, points = original.of_rows(kept), released.of_rows(kept)
    shapes = [(side.numbers.shape, side.codes.shape) for side in (queries, points)]
    if shapes[0] != shapes[1] or len(gaps) != queries.codes.shape[1]:
        raise DataError(
            "the tables do not pair up", fix="give the same records and attributes, one table of gaps a code"
        )
    if len(queries.numbers) == 0 or queries.columns == 0:
        raise NotApplicable("there is no released record, or no attribute to link by")
    own, first = alike([*points.joined().T])
    sizes, points = np.bincount(own, points.weight).astype(np.int64), points.of_rows(first)
    if attacked is not None:
        queries, own = queries.of_rows(attacked), own[attacked]
    tables = [np.asarray(table, np.float64) for table in gaps]
    if len(own) * len(first) <= FEW:
        return _compare_all(queries, points, sizes, own, tables)
    return _search(queries, points, sizes, own, tables, progress)


def telling_subsets(released: Located, largest: int = 3, top: int = 5) -> list[tuple[int, ...]]:
    """Return the subsets of at most `largest` attributes that split the release into the most classes.

    The number of classes on a subset bounds what the linkage on it can find, so these are the ones to try.
    Ties: fewer attributes, then the first.

    >>> telling_subsets(Located.of(None, [[0, 0], [0, 1], [0, 2]]), top=1)
    [(1,)]
    """
    values = released.joined()
    columns = [group_rows(values[:, [j]])[0][:, None] for j in range(values.shape[1])]
    sizes = range(1, min(largest, len(columns)) + 1)
    subsets = [chosen for size in sizes for chosen in combinations(range(len(columns)), size)]
    found = [len(group_rows(np.hstack([columns[j] for j in chosen]))[1]) for chosen in subsets]
    best = sorted(range(len(subsets)), key=lambda s: (-found[s], len(subsets[s]), subsets[s]))
    return [subsets[s] for s in best[:top]]


def _compare_all(queries: Located, points: Located, sizes: Ints, own: Ints, tables: Sequence[Floats]) -> Floats:
    distance = np.zeros((len(queries.numbers), len(sizes)))
    for x, y in zip(queries.numbers.T, points.numbers.T, strict=True):
        distance += (x[:, None] - y) ** 2
    for c, d, table in zip(queries.codes.T, points.codes.T, tables, strict=True):
        distance += table[c][:, d]
    nearest = distance == distance.min(axis=1, keepdims=True)
    return np.asarray(nearest[np.arange(len(own)), own] / (nearest @ sizes), np.float64)


def _search(
    queries: Located, points: Located, sizes: Ints, own: Ints, tables: Sequence[Floats], progress: Progress
) -> Floats:
    kernel = kernels.load("linkage")  # a compiler: loaded only where it pays
    target = kernel.target_of(*_arrays(points), sizes, tables)
    walk = np.argsort(target.tree.home[own], kind="stable")  # neighbours in turn find their boxes in the cache
    credit = np.empty(len(own))
    for start in range(0, len(walk), CHUNK):
        rows = walk[start : start + CHUNK]
        credit[rows] = kernel.credit(*_arrays(queries.of_rows(rows)), own[rows], target)
        progress(start + len(rows), len(walk))
    return credit


def _arrays(located: Located) -> tuple[Floats, NDArray[np.int32]]:
    """Return numbers and codes as the kernels take them."""
    return np.require(located.numbers, requirements=["C", "A", "W"]), np.ascontiguousarray(located.codes, np.int32)
