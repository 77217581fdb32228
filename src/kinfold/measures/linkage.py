"""The linkage attack: how many people somebody who knows their original values finds in the release.

The attacker holds the original quasi-identifiers of every record and links each to its nearest released records. All
that are nearest look the same to him: he picks one of them blindly, so ties share the credit:

    credit of a record = 1 / the released records at the smallest distance, if its own is among them, else 0
    linkage            = the mean credit of the released records

A record's own class holds at least k records with the same released values, so that on the quasi-identifiers the
linkage is at most 1/k. On columns that were released untouched it is not bounded by 1/k.

    1  group the released records by their values: m points, each with its number of records
    2  few pairs: compare every record with every point
    3  else build a tree of boxes over the points (halves along the widest attribute) and search it for each record

The distance is the one of the caller: numbers standardized and weighted by him, codes with a table of squared gaps, row
the original code, column the released one (it may be generalized, and need not be among the original ones).
Exact, to the last bit: see `kernels.nearest`. Cost: O(m log² m) to build, about O(log m) for each record where few
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
from kinfold.measures.boxes import box_tree
from kinfold.measures.grouping import group_rows
from kinfold.progress import Progress, silent

if TYPE_CHECKING:
    from collections.abc import Sequence

LEAF = 16  # points in a box that is not halved
FEW = 4_000_000  # pairs compared outright: less than the kernel takes to load
CHUNK = 8_192  # records between two calls of progress


@dataclass(frozen=True, eq=False)
class Located:
    """Records as the attacker sees them: `numbers` (n, a) and `codes` (n, b), columns counted numbers first."""

    numbers: Floats
    codes: Ints

    @classmethod
    def of(cls, numbers: object = None, codes: object = None) -> Located:
        """Take either part or both; the absent one has no columns."""
        rows = len(np.asarray(codes if numbers is None else numbers))
        left = np.empty((rows, 0)) if numbers is None else np.asarray(numbers, np.float64)
        right = np.empty((rows, 0), np.int64) if codes is None else np.asarray(codes, np.int64)
        if left.ndim != 2 or right.ndim != 2 or len(left) != len(right) or not np.isfinite(left).all():
            raise DataError(
                "records are not numbers and codes, records by attributes, without missing numbers",
                fix="give missing numbers a code of their own, or leave those records out",
            )
        return cls(left, right)

    @property
    def columns(self) -> int:
        """How many attributes there are."""
        return int(self.numbers.shape[1] + self.codes.shape[1])

    def joined(self) -> Floats:
        """All attributes as one table, codes as whole numbers."""
        return np.ascontiguousarray(np.hstack([self.numbers, self.codes.astype(np.float64)]))


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
    queries, points = original.joined(), released.joined()
    if kept is not None:
        queries, points = queries[kept], points[kept]
    if queries.shape != points.shape or len(gaps) != original.codes.shape[1]:
        raise DataError(
            "the tables do not pair up", fix="give the same records and attributes, one table of gaps a code"
        )
    if len(queries) == 0 or queries.shape[1] == 0:
        raise NotApplicable("there is no released record, or no attribute to link by")
    own, first = group_rows(points)
    sizes = np.bincount(own)
    if attacked is not None:
        queries, own = queries[attacked], own[attacked]
    flat = _Gaps.of(gaps, original.numbers.shape[1])
    if len(queries) * len(first) <= FEW:
        return _compare_all(queries, (points[first], sizes), own, flat)
    return _search(queries, (points[first], sizes), own, flat, progress)


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


@dataclass(frozen=True, eq=False)
class _Gaps:
    """The tables of squared gaps in one array: where each starts and how many columns it has."""

    plain: int
    tables: Floats
    offsets: Ints
    widths: Ints

    @classmethod
    def of(cls, gaps: Sequence[Floats], plain: int) -> _Gaps:
        tables = [np.asarray(table, np.float64) for table in gaps]
        offsets = np.cumsum([0, *(table.size for table in tables)])[:-1].astype(np.int64)
        widths = np.array([table.shape[1] for table in tables], np.int64)
        return cls(plain, np.concatenate([np.zeros(0), *(t.ravel() for t in tables)]), offsets, widths)


def _compare_all(queries: Floats, classes: tuple[Floats, Ints], own: Ints, gaps: _Gaps) -> Floats:
    points, sizes = classes
    distance = np.zeros((len(queries), len(points)))
    for j in range(queries.shape[1]):
        if j < gaps.plain:
            distance += (queries[:, [j]] - points[:, j]) ** 2
        else:
            c = j - gaps.plain
            cell = queries[:, [j]].astype(np.int64) * gaps.widths[c] + points[:, j].astype(np.int64)
            distance += gaps.tables[gaps.offsets[c] + cell]
    nearest = distance == distance.min(axis=1, keepdims=True)
    return np.asarray(nearest[np.arange(len(own)), own] / (nearest @ sizes), np.float64)


def _search(queries: Floats, classes: tuple[Floats, Ints], own: Ints, gaps: _Gaps, progress: Progress) -> Floats:
    share_credit = kernels.load("nearest").share_credit  # a compiler: loaded only where it pays

    points, sizes = classes
    order, nodes, boxes = box_tree(points, LEAF)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    own = place[own]
    walk = np.argsort(own, kind="stable")  # neighbours one after the other find their boxes in the cache
    credit = np.empty(len(queries))
    cloud = (points[order], sizes[order], nodes, boxes)
    tables = (gaps.plain, gaps.tables, gaps.offsets, gaps.widths)
    for start in range(0, len(walk), CHUNK):
        rows = walk[start : start + CHUNK]
        credit[rows] = share_credit(queries[rows], own[rows], cloud, tables)
        progress(start + len(rows), len(walk))
    return credit
