"""k and confidence on every combination of a few quasi-identifiers (LKC privacy, k^m-anonymity).

An attacker who knows at most `size` of the quasi-identifiers of a person looks for the records with these values:

    CombinationAnonymity     every tuple of values of at most `size` quasi-identifiers has k records or more
    CombinationConfidence    in the records of such a tuple, no confidential value has a share above `confidence`

k-anonymity implies the first: a tuple of fewer columns holds whole classes. Tuples of exactly `size` columns (of all,
if there are fewer) decide: a shorter tuple is a union of them. A missing value is a value, as in every promise: where
an empty cell is visible, an attacker can tell its record from the others.

Both are promises about the table, because the classes of a tuple have other values in the other columns. They hold
after all values of a column are generalized alike, but not after single classes change. For k, `failing` marks every
class that must be dropped: dropping some leaves others without company, until nothing changes. What remains is the
largest part of the table that keeps the promise, and it only grows up the lattice.

A tally must have its keys: texts, or numbers of labels.

Papers: Mohammed, Fung, Hung & Lee, KDD 2009 (LKC privacy); Terrovitis, Mamoulis & Kalnis, PVLDB 1(1), 2008 (k^m).
Cost: one grouping of the classes for each set of columns, repeated while classes are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np

from kinfold.errors import PolicyError
from kinfold.models.diversity import AlphaK
from kinfold.models.k_anonymity import KAnonymity
from kinfold.models.model import Finding, Mask, Model, Promise, TableModel
from kinfold.tables.tally import Ints, Spread, Tally, encode_values

MAX_DIRECT_KEYS = 1_000_000  # counted in an array of 8 MB; more keys are sorted
MAX_TUPLE_KEYS = 2**62  # numbers of tuples that fit into 64 bits


@dataclass(frozen=True)
class CombinationAnonymity(TableModel):
    """Every tuple of values of at most `size` quasi-identifiers is shared by at least k records.

    >>> tally = Tally({"age": np.array([30, 30, 41]), "sex": np.array(["f", "m", "m"])}, np.array([2, 1, 2]))
    >>> CombinationAnonymity(2, size=1).check(tally).found, CombinationAnonymity(2, size=2).check(tally).found
    (2, 1)
    """

    k: int
    size: int
    column: ClassVar[None] = None
    monotone: ClassVar[bool] = True  # a tuple of coarser values is a union of tuples
    absorbing: ClassVar[bool] = True  # up a lattice no further class has to be dropped

    def __post_init__(self) -> None:
        KAnonymity(self.k)
        _require_size(self.size)

    def imply(self, records: int) -> tuple[Model, ...]:  # noqa: ARG002  the same for any table
        """Return the promise about each class that implies this one."""
        return (KAnonymity(self.k),)

    def failing(self, tally: Tally) -> Mask:
        """Mark the classes that have to be dropped, so that the others keep the promise."""
        codes, kept = encode_keys(tally), np.ones(len(tally), np.bool_)
        before = -1
        while (count := int(kept.sum())) != before:
            before = count
            for columns in list_column_sets(codes, self.size):
                group = number_tuples(codes, columns)
                kept &= np.bincount(group, tally.sizes * kept)[group] >= self.k
        return ~kept

    def check(self, tally: Tally) -> Finding:
        """Compare the rarest tuple with k."""
        least, codes = tally.records, encode_keys(tally)
        for columns in list_column_sets(codes, self.size):
            counts = np.bincount(number_tuples(codes, columns), tally.sizes)
            least = min(least, int(counts[counts > 0].min(initial=tally.records)))
        text = f"{self.k}-anonymity of every combination of at most {_count_columns(self.size)}"
        return Promise(text, "combinations", None, self.k).compare(least, self.failing(tally), tally)


@dataclass(frozen=True)
class CombinationConfidence(TableModel):
    """In no tuple of at most `size` quasi-identifiers does a value of the column have a share above `confidence`.

    >>> from kinfold.tables.tally import tally_labels
    >>> spreads = tally_labels(np.array([0, 0, 1, 1]), {"disease": ["flu", "flu", "flu", "cold"]}).spreads
    >>> tally = Tally({"age": np.array([30, 41])}, np.array([2, 2]), spreads)
    >>> CombinationConfidence(0.8, 1, "disease").check(tally).found
    1.0
    """

    confidence: float
    size: int
    column: str
    monotone: ClassVar[bool] = True  # the share in a union lies between the shares in its parts
    absorbing: ClassVar[bool] = False

    def __post_init__(self) -> None:
        AlphaK(self.confidence, self.column)
        _require_size(self.size)

    def imply(self, records: int) -> tuple[Model, ...]:  # noqa: ARG002  the same for any table
        """Return the promise about each class that implies this one."""
        return (AlphaK(self.confidence, self.column),)

    def failing(self, tally: Tally) -> Mask:
        """Mark the classes of every tuple with a share above the limit."""
        return self._measure(tally)[1]

    def check(self, tally: Tally) -> Finding:
        """Compare the largest share in a tuple with the limit."""
        largest, failing = self._measure(tally)
        text = f"confidence of at most {self.confidence:g} in {self.column} by {_count_columns(self.size)}"
        return Promise(text, "confidence", self.column, self.confidence).compare(largest, failing, tally)

    def _measure(self, tally: Tally) -> tuple[float, Mask]:
        spread, codes = tally.spreads[self.column], encode_keys(tally)
        largest, failing = 0.0, np.zeros(len(tally), np.bool_)
        for columns in list_column_sets(codes, self.size):
            share, marked = self.mark_groups(number_tuples(codes, columns), spread)
            largest, failing = max(largest, share), failing | marked
        return largest, failing

    def mark_groups(self, group: Ints, spread: Spread) -> tuple[float, Mask]:
        """Return the largest share in a group, and the classes whose group has one above the limit."""
        width, of_cell = max(len(spread.values), 1), group[spread.group]
        totals = np.bincount(of_cell, spread.count, int(group.max(initial=-1)) + 1)
        cells, place = np.unique(of_cell * width + spread.code, return_inverse=True)
        shares = np.bincount(place, spread.count) / totals[cells // width]
        marked = np.isin(group, cells[shares > self.confidence] // width)
        return float(shares.max(initial=0.0)), np.asarray(marked)


def encode_keys(tally: Tally) -> Ints:
    """Return the keys of a tally as codes, classes by columns."""
    columns = [values if values.dtype.kind in "iu" else encode_values(values)[1] for values in tally.keys.values()]
    return np.column_stack(columns).astype(np.int64)


def list_column_sets(codes: Ints, size: int, *, within: int | None = None) -> Iterator[tuple[int, ...]]:
    """Yield the sets of `size` columns, or all columns if there are fewer; those of one column on request."""
    columns = codes.shape[1]
    for each in combinations(range(columns), min(size, columns)):
        if within is None or within in each:
            yield each


def number_tuples(codes: Ints, columns: tuple[int, ...]) -> Ints:
    """Return a number for the values of each row in some columns; not every number below the largest is used.

    >>> number_tuples(np.array([[0, 1, 2], [1, 1, 2], [0, 0, 2]]), (0, 2)).tolist()
    [2, 5, 2]
    """
    number, space = np.zeros(len(codes), np.int64), 1
    for a in columns:
        width = int(codes[:, a].max(initial=0)) + 1
        if space * width > MAX_TUPLE_KEYS:
            distinct, number = np.unique(number, return_inverse=True)
            space = len(distinct)
        number, space = number * width + codes[:, a], space * width
    return number if space <= MAX_DIRECT_KEYS else np.unique(number, return_inverse=True)[1]


def _require_size(size: int) -> None:
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise PolicyError(f"size is {size}", fix="size is the number of quasi-identifiers that others know, from 1 up")


def _count_columns(size: int) -> str:
    return "1 quasi-identifier" if size == 1 else f"{size} quasi-identifiers"
