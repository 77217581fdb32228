"""The input of a generalization method: the distinct quasi-identifier tuples of a table as codes, with hierarchies.

A code is the row of a value in the hierarchy of its column. Null is one more leaf, directly below the top.
Generalizing every attribute to a level merges rows with equal labels. It rolls up the tally, never the records.

    roll_up(levels)        the classes of the table at these levels: sizes, spreads, and the first row of each
    roll_up(levels, view)  the same from a view below, which has fewer rows

Cost: O(rows * attributes) for a view.   Ties: classes are numbered by their first rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold import kernels
from kinfold.errors import PolicyError, Problem
from kinfold.hierarchies import Hierarchy
from kinfold.measures.formulas.arrays import group_rows
from kinfold.tables.tally import Ints, Spread, Tally, Values, is_null

Codes: TypeAlias = NDArray[np.int32]
Floats: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Levels: TypeAlias = tuple[int, ...]

MAX_ROWS_WITHOUT_KERNEL = 3000  # numpy is as fast as a kernel up to here, and needs no compilation
MAX_DENSE_CELLS = 200_000  # of a spread: above, most cells of classes and values are empty
CELLS_PER_CHUNK = 1_000_000  # of a spread; limits the memory of intermediate arrays
MAX_KEY_SPACE = 2**62  # distinct tuples that fit into one 64-bit key


@dataclass(frozen=True, eq=False)
class View:
    """The table at one level for each attribute: a tally of its classes and the first row of each."""

    levels: Levels
    rows: Ints
    tally: Tally

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, eq=False)
class Population:
    """The distinct tuples of a table of the population, with the labels of their values and their numbers of people."""

    codes: Codes
    labels: tuple[Values, ...]  # of each column, by code and level; the last code is null
    counts: Ints

    def count(self, domain: Domain, rows: Ints, levels: Sequence[int]) -> Ints:
        """Return the people of each class, given the first row of each class in a domain."""
        inside, classes = [], []
        for a, level in enumerate(levels):
            own, theirs = domain.paths[a][:, level], self.labels[a]
            place = dict(zip(domain.label_table(a)[:, level].tolist(), own.tolist(), strict=True))
            known = [place.get(label, -1) for label in theirs[:, min(level, theirs.shape[1] - 1)].tolist()]
            inside.append(np.array(known, np.int64)[self.codes[:, a]])
            classes.append(own[domain.codes[rows, a]])
        people = np.column_stack(inside)
        fits = (people >= 0).all(axis=1)
        number = group_rows(np.vstack([np.column_stack(classes), people[fits]]))[0]
        totals = np.bincount(number[len(rows) :], self.counts[fits], int(number.max(initial=-1)) + 1)
        return np.asarray(totals[number[: len(rows)]], np.int64)


@dataclass(frozen=True, eq=False)
class Domain:
    """Rows of codes, one per class of `tally`, with one column per attribute in the order of `names`."""

    names: tuple[str, ...]
    hierarchies: tuple[Hierarchy, ...]
    codes: Codes
    tally: Tally
    keyed: bool = False  # tallies of views have the labels of each class, for promises about combinations
    population: Population | None = None  # tallies of views have the people of each class

    @classmethod
    def from_tally(cls, tally: Tally, hierarchies: Mapping[str, Hierarchy]) -> Domain:
        """Encode the keys of a tally by their hierarchies; raise an error for values without a leaf."""
        names = tuple(tally.keys)
        columns = {name: _encode_column(tally.keys[name], hierarchies[name]) for name in names if name in hierarchies}
        problems = list(_find_problems(tally, columns))
        if problems:
            raise PolicyError(problems)
        codes = np.column_stack([columns[name] for name in names]).astype(np.int32)
        plain = Tally({}, np.asarray(tally.sizes, np.int64), tally.spreads)
        return cls(names, tuple(hierarchies[name] for name in names), np.ascontiguousarray(codes), plain)

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def records(self) -> int:
        """The number of records."""
        return self.tally.records

    @property
    def compiled(self) -> bool:
        """Whether views are rolled up by a kernel."""
        return len(self) > MAX_ROWS_WITHOUT_KERNEL

    @property
    def heights(self) -> Levels:
        """The height of the hierarchy of each attribute."""
        return tuple(hierarchy.height for hierarchy in self.hierarchies)

    @property
    def bottom(self) -> View:
        """The table at level 0, with equal rows merged."""
        return self.roll_up((0,) * len(self.names))

    def roll_up(self, levels: Sequence[int], below: View | None = None) -> View:
        """Return the table at these levels, rolled up from a view below it if one is given."""
        rows = np.arange(len(self)) if below is None else below.rows
        tally = self.tally if below is None else below.tally
        into, classes = self._classify(rows, levels)
        first, sizes, spreads = rows, tally.sizes, tally.spreads
        if classes < len(rows):  # else nothing is copied
            first, sizes = _gather_classes(into, rows, tally.sizes, classes, compiled=self.compiled)
            spreads = {
                name: merge_spread(spread, into, classes, compiled=self.compiled)
                for name, spread in tally.spreads.items()
            }
        at = tuple(int(level) for level in levels)
        people = self.population.count(self, first, at) if self.population else None
        return View(at, first, Tally(self._list_keys(first, at) if self.keyed else {}, sizes, spreads, people=people))

    def _list_keys(self, rows: Ints, levels: Levels) -> dict[str, Ints]:
        """Return the number of the label of some rows in each column."""
        columns = zip(self.names, self.paths, self.codes.T, levels, strict=True)
        return {name: paths[codes[rows], level].astype(np.int64) for name, paths, codes, level in columns}

    def classes(self, levels: Sequence[int]) -> Ints:
        """Return the class of each row at these levels, numbered as in `roll_up`."""
        return self._classify(np.arange(len(self)), levels)[0]

    def labels_at(self, attribute: int, levels: NDArray[np.integer[Any]]) -> Values:
        """Return the label of each row in one column, each at its own level; null stays null below the top."""
        return np.asarray(self.label_table(attribute)[self.codes[:, attribute], levels])

    def label_table(self, attribute: int) -> Values:
        """Return the labels of a column by code and level; null, the last code, stays null below the top."""
        hierarchy = self.hierarchies[attribute]
        return np.vstack([hierarchy.labels, [[None] * hierarchy.height + [hierarchy.labels[0, -1]]]])

    @cached_property
    def paths(self) -> tuple[Codes, ...]:
        """For each attribute, the number of the label by code and level; the last row is null."""
        return tuple(_add_null(hierarchy.paths) for hierarchy in self.hierarchies)

    @cached_property
    def _labels(self) -> tuple[Codes, Ints]:
        flat = [path[:, level] for path in self.paths for level in range(path.shape[1])]
        return np.concatenate(flat), np.concatenate([[0], np.cumsum([len(column) for column in flat])])

    @cached_property
    def _first_level(self) -> Ints:
        return np.concatenate([[0], np.cumsum([height + 1 for height in self.heights])[:-1]]).astype(np.int64)

    @cached_property
    def widths(self) -> list[list[int]]:
        """The number of labels of each attribute at each level, including null."""
        return [(path.max(axis=0) + 1).tolist() for path in self.paths]

    def _classify(self, rows: Ints, levels: Sequence[int]) -> tuple[Ints, int]:
        labels, starts = self._labels
        start = starts[self._first_level + np.asarray(levels, np.int64)].astype(np.int64)
        widths = [width[level] for width, level in zip(self.widths, levels, strict=True)]
        into, classes = np.zeros(len(rows), np.int64), 1
        for factor, space in _key_factors(widths):
            if not self.compiled:
                used = np.flatnonzero(factor)
                keys = (labels[start[used] + self.codes[rows][:, used]].astype(np.int64) * factor[used]).sum(axis=1)
            else:
                keys = kernels.load("rollup").keys(self.codes, rows, labels, start, factor)
            part, parts = number_keys(keys, space, compiled=self.compiled)
            if classes == 1:
                into, classes = part, parts
            else:
                into, classes = number_keys(into * parts + part, classes * parts, compiled=self.compiled)
        return into, classes


def number_keys(keys: Ints, space: int, *, compiled: bool = False) -> tuple[Ints, int]:
    """Number the distinct keys, all below `space`, in order of first appearance; return labels and their number.

    >>> number_keys(np.array([7, 3, 7]), 8)[0].tolist()
    [0, 1, 0]
    """
    if not compiled and len(keys) <= MAX_ROWS_WITHOUT_KERNEL:
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        rank = np.empty(len(first), np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        return rank[inverse], len(first)
    into = np.empty(len(keys), np.int64)
    return into, int(kernels.load("rollup").number(keys, space, into))


def merge_spread(spread: Spread, into: Ints, classes: int, *, compiled: bool = False) -> Spread:
    """Return the spread after merging class i into class `into[i]`, sorted by class and code."""
    width = max(len(spread.values), 1)
    if compiled and classes * width <= MAX_DENSE_CELLS:
        group, code, count = (np.empty(len(spread.group), np.int64) for _ in range(3))
        cells = kernels.load("rollup").merge_cells(
            spread.group, spread.code, spread.count, into, np.zeros((classes, width), np.int64), group, code, count
        )
        return Spread(group[:cells], code[:cells], count[:cells], spread.values)
    if classes * width <= 8 * len(spread.group):
        total = np.zeros(classes * width, np.int64)
        for start in range(0, len(spread.group), CELLS_PER_CHUNK):
            part = slice(start, start + CELLS_PER_CHUNK)
            np.add.at(total, into[spread.group[part]] * width + spread.code[part], spread.count[part])
        cell = np.flatnonzero(total)
        count = total[cell]
    else:
        cell, inverse = np.unique(into[spread.group] * width + spread.code, return_inverse=True)
        count = np.bincount(inverse, spread.count, len(cell)).astype(np.int64)
    group = cell // width
    cell %= width
    return Spread(group, cell, count, spread.values)


def _gather_classes(into: Ints, rows: Ints, sizes: Ints, classes: int, *, compiled: bool) -> tuple[Ints, Ints]:
    if not compiled:
        first = np.full(classes, -1, np.int64)
        first[into[::-1]] = rows[::-1]
        return first, np.bincount(into, sizes, classes).astype(np.int64)
    first, total = np.empty(classes, np.int64), np.empty(classes, np.int64)
    kernels.load("rollup").gather(into, rows, sizes, first, total)
    return first, total


def _key_factors(widths: Sequence[int]) -> Iterable[tuple[Ints, int]]:
    # One key holds as many attributes as fit into MAX_KEY_SPACE; wide tables need several keys.
    edges, space = [0], 1
    for attribute, width in enumerate(widths):
        if space * width > MAX_KEY_SPACE:
            edges.append(attribute)
            space = 1
        space *= width
    for low, high in pairwise([*edges, len(widths)]):
        factor, space = np.zeros(len(widths), np.int64), 1
        for attribute in range(low, high):
            factor[attribute] = space
            space *= widths[attribute]
        yield factor, space


def _add_null(paths: Codes) -> Codes:
    null = paths.max(axis=0) + 1
    null[-1] = 0
    return np.vstack([paths, null]).astype(np.int32)


def _encode_column(values: Values, hierarchy: Hierarchy) -> Codes:
    null = is_null(values)
    codes = np.full(len(values), len(hierarchy), np.int32)
    codes[~null] = hierarchy.index(str(value) for value in values[~null])
    return codes


def _find_problems(tally: Tally, columns: Mapping[str, Codes]) -> Iterable[Problem]:
    if not tally.keys:
        yield Problem("the policy has no quasi-identifier", "give at least one column the role 'quasi-identifier'")
    for name, values in tally.keys.items():
        if name not in columns:
            yield Problem(
                f"column '{name}' has no hierarchy", "give it a hierarchy, or choose a method that needs none"
            )
        elif (columns[name] < 0).any():
            missing = tuple(sorted({str(value) for value in values[columns[name] < 0]}))
            what = f"{len(missing)} values of column '{name}' are not in its hierarchy"
            yield Problem(what, "add a row for each of them", missing)
