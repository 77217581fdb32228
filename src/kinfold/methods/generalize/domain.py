"""What a generalizer works on: the distinct quasi-identifier tuples of a table as codes, a hierarchy for each column.

A code is the row of a value in its column's hierarchy; null is one more leaf, which joins the others at the top only.
Generalizing to a level for each attribute merges rows that then say the same: a roll-up of the tally, never of records.

    at(levels)        the classes of the table at these levels: sizes, spreads, and the first row of each
    at(levels, view)  the same from a view that lies below, which has fewer rows to look at

Cost: O(rows · attributes) for a view.   Ties: classes are numbered by their first rows.
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
from kinfold.hierarchy import Hierarchy
from kinfold.rows.tally import Ints, Spread, Tally, Values, is_null

Codes: TypeAlias = NDArray[np.int32]
Floats: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Levels: TypeAlias = tuple[int, ...]

FEW = 3000  # rows up to which numpy is as fast as a kernel, and nobody waits for a compiler
MOST_KEYS = 2**62  # tuples that one whole number can tell apart


@dataclass(frozen=True, eq=False)
class View:
    """The table at one level for each attribute: a tally of its classes and the first row of each."""

    levels: Levels
    rows: Ints
    tally: Tally

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, eq=False)
class Domain:
    """Rows of codes (one a class of `tally`), attribute by attribute in the order of `names`."""

    names: tuple[str, ...]
    hierarchies: tuple[Hierarchy, ...]
    codes: Codes
    tally: Tally

    @classmethod
    def of_tally(cls, tally: Tally, hierarchies: Mapping[str, Hierarchy]) -> Domain:
        """Look the keys of a tally up in their hierarchies; every value that is missing there is a problem."""
        found = {name: _coded(values, hierarchies[name]) for name, values in tally.keys.items() if name in hierarchies}
        problems = list(_problems(tally, found))
        if problems:
            raise PolicyError(problems)
        names = tuple(tally.keys)
        codes = np.column_stack([found[name] for name in names]).astype(np.int32)
        plain = Tally({}, np.asarray(tally.sizes, np.int64), tally.spreads)
        return cls(names, tuple(hierarchies[name] for name in names), np.ascontiguousarray(codes), plain)

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def records(self) -> int:
        """How many records the rows stand for."""
        return self.tally.records

    @property
    def heights(self) -> Levels:
        """How many steps lead to the top, for each attribute."""
        return tuple(hierarchy.height for hierarchy in self.hierarchies)

    @property
    def bottom(self) -> View:
        """The table as it is, rows that are equal counted once."""
        return self.at((0,) * len(self.names))

    def at(self, levels: Sequence[int], below: View | None = None) -> View:
        """Return the table at these levels, rolled up from a view below it where one is given."""
        rows = np.arange(len(self)) if below is None else below.rows
        tally = self.tally if below is None else below.tally
        into, classes = self._merged(rows, levels)
        if classes == len(rows):  # nothing became one, and classes are numbered as they come: nothing is copied
            return View(tuple(int(level) for level in levels), rows, Tally({}, tally.sizes, tally.spreads))
        first, sizes = _gathered(into, rows, tally.sizes, classes)
        spreads = {name: merged(spread, into, classes) for name, spread in tally.spreads.items()}
        return View(tuple(int(level) for level in levels), first, Tally({}, sizes, spreads))

    def classes(self, levels: Sequence[int]) -> Ints:
        """The class of each row at these levels, numbered as in `at`."""
        return self._merged(np.arange(len(self)), levels)[0]

    def released(self, attribute: int, levels: NDArray[np.integer[Any]]) -> Values:
        """The label of each row in one column, each at its own level; null stays null below the top."""
        return np.asarray(self.labels(attribute)[self.codes[:, attribute], levels])

    def labels(self, attribute: int) -> Values:
        """The labels of each code of a column by level; null, the last code, stays null below the top."""
        hierarchy = self.hierarchies[attribute]
        return np.vstack([hierarchy.labels, [[None] * hierarchy.height + [hierarchy.labels[0, -1]]]])

    @cached_property
    def paths(self) -> tuple[Codes, ...]:
        """For each attribute the number of a code's label at each level; the last row is null."""
        return tuple(_with_null(hierarchy.paths) for hierarchy in self.hierarchies)

    @cached_property
    def _labels(self) -> tuple[Codes, Ints]:
        flat = [path[:, level] for path in self.paths for level in range(path.shape[1])]
        return np.concatenate(flat), np.concatenate([[0], np.cumsum([len(column) for column in flat])])

    @cached_property
    def _first_level(self) -> Ints:
        return np.concatenate([[0], np.cumsum([height + 1 for height in self.heights])[:-1]]).astype(np.int64)

    @cached_property
    def widths(self) -> list[list[int]]:
        """How many labels each attribute has at each level, null counted."""
        return [(path.max(axis=0) + 1).tolist() for path in self.paths]

    def _merged(self, rows: Ints, levels: Sequence[int]) -> tuple[Ints, int]:
        labels, starts = self._labels
        start = starts[self._first_level + np.asarray(levels, np.int64)].astype(np.int64)
        widths = [width[level] for width, level in zip(self.widths, levels, strict=True)]
        into, classes = np.zeros(len(rows), np.int64), 1
        for factor, space in _factors(widths):
            if len(rows) <= FEW:
                used = np.flatnonzero(factor)
                found = (labels[start[used] + self.codes[rows][:, used]].astype(np.int64) * factor[used]).sum(axis=1)
            else:
                rollup = kernels.load("rollup")

                found = rollup.keys(self.codes, rows, labels, start, factor)
            part, parts = numbered(found, space)
            into, classes = (part, parts) if classes == 1 else numbered(into * parts + part, classes * parts)
        return into, classes


def numbered(keys: Ints, space: int) -> tuple[Ints, int]:
    """Number the distinct keys, all below `space`, in the order of their first appearance.

    >>> numbered(np.array([7, 3, 7]), 8)[0].tolist()
    [0, 1, 0]
    """
    if len(keys) <= FEW:
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        rank = np.empty(len(first), np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        return rank[inverse], len(first)
    rollup = kernels.load("rollup")

    into = np.empty(len(keys), np.int64)
    return into, int(rollup.number(keys, space, into))


def merged(spread: Spread, into: Ints, classes: int) -> Spread:
    """Return the spread after class i has become part of class `into[i]`, in the order of classes, then codes."""
    width = max(len(spread.values), 1)
    cell = into[spread.group] * width + spread.code
    if classes * width <= 8 * len(cell):
        count = np.bincount(cell, spread.count, classes * width)
        cell = np.flatnonzero(count)
        count = count[cell]
    else:
        cell, inverse = np.unique(cell, return_inverse=True)
        count = np.bincount(inverse, spread.count, len(cell))
    return Spread(cell // width, cell % width, count.astype(np.int64), spread.values)


def _gathered(into: Ints, rows: Ints, sizes: Ints, classes: int) -> tuple[Ints, Ints]:
    if len(rows) <= FEW:
        first = np.full(classes, -1, np.int64)
        first[into[::-1]] = rows[::-1]
        return first, np.bincount(into, sizes, classes).astype(np.int64)
    rollup = kernels.load("rollup")

    first, total = np.empty(classes, np.int64), np.empty(classes, np.int64)
    rollup.gather(into, rows, sizes, first, total)
    return first, total


def _factors(widths: Sequence[int]) -> Iterable[tuple[Ints, int]]:
    # As many attributes together as fit into one whole number; wider tables take more than one turn.
    edges, space = [0], 1
    for attribute, width in enumerate(widths):
        if space * width > MOST_KEYS:
            edges.append(attribute)
            space = 1
        space *= width
    for low, high in pairwise([*edges, len(widths)]):
        factor, space = np.zeros(len(widths), np.int64), 1
        for attribute in range(low, high):
            factor[attribute] = space
            space *= widths[attribute]
        yield factor, space


def _with_null(paths: Codes) -> Codes:
    null = paths.max(axis=0) + 1
    null[-1] = 0
    return np.vstack([paths, null]).astype(np.int32)


def _coded(values: Values, hierarchy: Hierarchy) -> Codes:
    null = is_null(values)
    codes = np.full(len(values), len(hierarchy), np.int32)
    codes[~null] = hierarchy.index(str(value) for value in values[~null])
    return codes


def _problems(tally: Tally, found: Mapping[str, Codes]) -> Iterable[Problem]:
    if not tally.keys:
        yield Problem("no column is to be generalized", "give at least one column the role 'quasi-identifier'")
    for name, values in tally.keys.items():
        if name not in found:
            yield Problem(f"column '{name}' has no hierarchy", "give it one, or choose a method that needs none")
        elif (found[name] < 0).any():
            missing = tuple(sorted({str(value) for value in values[found[name] < 0]}))
            what = f"{len(missing)} values of column '{name}' are not in its hierarchy"
            yield Problem(what, "add a row for each of them", missing)
