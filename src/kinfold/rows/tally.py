"""The tally: everything a privacy model may ask of a table.

The size of each equivalence class and, for each confidential column, how many records of each class hold each value.
It is one GROUP BY in any engine. The class keys are kept, so that a tally can be rolled up a hierarchy without going
back to the rows: merging classes adds their sizes and their spreads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Values: TypeAlias = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Spread:
    """How the values of one column fall into the classes: `count[i]` records of class `group[i]` hold `code[i]`.

    Codes number the distinct `values` in their order (null first), so that neighbouring codes are neighbouring values.
    """

    group: Ints
    code: Ints
    count: Ints
    values: Values

    def totals(self) -> Ints:
        """How many records of the table hold each value."""
        return np.bincount(self.code, self.count, len(self.values)).astype(np.int64)

    def counted(self, classes: int) -> Ints:
        """How much is counted in each class: its records, or, where people are counted, its pairs of person and value.

        Shares are of this, so that they add up to one however many values a person holds.
        """
        return np.bincount(self.group, self.count, classes).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Tally:
    """Classes: the values of each key column, the size, and the spread of each confidential column."""

    keys: Mapping[str, Values]
    sizes: Ints
    spreads: Mapping[str, Spread] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def records(self) -> int:
        """How many records were counted."""
        return int(self.sizes.sum())

    def merge(self, into: Ints, keys: Mapping[str, Values]) -> Tally:
        """Return the tally after class i has become part of class `into[i]`, whose keys are given.

        >>> small = Tally({"zip": np.array(["a", "b", "c"])}, np.array([1, 2, 3]))
        >>> small.merge(np.array([0, 0, 1]), {"zip": np.array(["*", "c"])}).sizes.tolist()
        [3, 3]
        """
        classes = int(into.max()) + 1 if len(into) else 0
        sizes = np.bincount(into, self.sizes, classes).astype(np.int64)
        return Tally(keys, sizes, {name: _merged(spread, into) for name, spread in self.spreads.items()})

    def drop(self, classes: NDArray[np.bool_]) -> Tally:
        """Return the tally without the marked classes.

        >>> Tally({}, np.array([1, 2, 3])).drop(np.array([True, False, False])).sizes.tolist()
        [2, 3]
        """
        kept = ~classes
        number = np.cumsum(kept) - 1
        spreads = {}
        for name, spread in self.spreads.items():
            rows = kept[spread.group]
            spreads[name] = Spread(number[spread.group[rows]], spread.code[rows], spread.count[rows], spread.values)
        return Tally({name: values[kept] for name, values in self.keys.items()}, self.sizes[kept], spreads)


def _merged(spread: Spread, into: Ints) -> Spread:
    width = max(len(spread.values), 1)
    cell = into[spread.group] * width + spread.code
    order = np.argsort(cell)
    cell = cell[order]
    if (cell[1:] > cell[:-1]).all():  # nothing became one
        return Spread(cell // width, cell % width, spread.count[order], spread.values)
    cell, inverse = np.unique(into[spread.group] * width + spread.code, return_inverse=True)
    count = np.bincount(inverse, spread.count, len(cell)).astype(np.int64)
    return Spread(cell // width, cell % width, count, spread.values)


def of_labels(labels: Ints, confidential: Mapping[str, Sequence[Any] | Values] | None = None) -> Tally:
    """Tally classes that are known by their labels alone; `confidential` holds a column of values for each name.

    >>> tally = of_labels(np.array([0, 0, 1]), {"disease": ["flu", "flu", "cold"]})
    >>> tally.sizes.tolist(), tally.spreads["disease"].count.tolist()
    ([2, 1], [2, 1])
    """
    sizes = np.bincount(labels).astype(np.int64)
    spreads = {name: _spread(labels, np.asarray(values)) for name, values in (confidential or {}).items()}
    return Tally({}, sizes, spreads)


def is_null(values: Values) -> NDArray[np.bool_]:
    """Mark what is missing: None, NaN, NaT.

    >>> is_null(np.array(["a", None], object)).tolist()
    [False, True]
    """
    if values.dtype.kind in "fcmM":
        return np.asarray(np.isnan(values), np.bool_)
    if values.dtype.kind != "O":
        return np.zeros(len(values), np.bool_)
    return np.array([_is_missing(value) for value in values], np.bool_)


def _is_missing(value: Any) -> bool:
    # NaN, NaT and pandas' NA are not equal to themselves, or will not say
    return value is None or value is np.ma.masked or not isinstance(value == value, bool | np.bool_) or value != value


def coded(column: Values) -> tuple[Values, Ints]:
    """Return the distinct values in order, null first, and the number of each record's value among them.

    >>> coded(np.array([2.0, np.nan, 1.0, np.nan]))[1].tolist()
    [2, 0, 1, 0]
    """
    null = is_null(column)
    if not null.any():
        values, code = np.unique(column, return_inverse=True)
        return values, code.astype(np.int64)
    values, known = np.unique(column[~null], return_inverse=True)
    code = np.zeros(len(column), np.int64)
    code[~null] = known + 1
    return np.concatenate([column[null][:1], values]), code


@dataclass(frozen=True, eq=False)
class Scope:
    """A tally on which a promise must hold beside that of rows by class, and the class that each of its classes is in.

    `counted` says in words what is counted, where that is people.
    """

    tally: Tally
    owner: Ints
    counted: str = ""


@dataclass(frozen=True, eq=False)
class Scopes:
    """What promises must hold for beside the rows of each class: its people, and its parts by other columns.

        people          a person counts once in a class, and once for each value that they hold there: the size of the
                        class is its people, and its spreads count pairs of a person and a value
        joint           the rows of a class that hold the same in every other confidential column, by its text
        joint people    a person counts once in each such part that holds a row of theirs, and once for each value there

    None of them follows from another: a person who is in two parts of a class counts in both, and once in the class.

    >>> ill, wage = np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1])
    >>> scopes = Scopes({"ill": (np.array(["cold", "flu"]), ill)}, np.array([0, 0, 0, 1]), {"ill": ill, "wage": wage})
    >>> for scope in scopes.of(np.zeros(4, np.int64), "ill"):
    ...     print(scope.counted or "rows", scope.tally.sizes, scope.tally.spreads["ill"].count)
    each person counted once [2] [1 2]
    rows [2 2] [2 2]
    each person counted once by whoever knows the other confidential columns [1 2] [1 2]
    """

    columns: Mapping[str, tuple[Values, Ints]]  # distinct values in order, and which of them each row holds
    person: Ints | None = None  # whose each row is
    known: Mapping[str, Ints] = field(default_factory=dict)  # joint promises: the text that each row holds, numbered

    def take(self, rows: NDArray[np.intp]) -> Scopes:
        """Return the scopes of some of the rows."""
        columns = {name: (values, code[rows]) for name, (values, code) in self.columns.items()}
        known = {name: code[rows] for name, code in self.known.items()}
        return Scopes(columns, None if self.person is None else self.person[rows], known)

    def of(self, labels: NDArray[np.integer[Any]], name: str | None) -> Iterator[Scope]:
        """Yield the scopes of a promise about a column, or about the size of classes where there is none."""
        classes: Ints = np.asarray(labels, np.int64)
        if self.person is not None:
            yield Scope(self._people(classes, name), np.arange(classes.max(initial=-1) + 1), "each person counted once")
        if name is None or not self.known:
            return
        part, owner = within(classes, [code for other, code in self.known.items() if other != name])
        spread = spread_of(part, *self.columns[name])
        yield Scope(Tally({}, np.bincount(part).astype(np.int64), {name: spread}), owner)
        if self.person is not None:
            counted = "each person counted once by whoever knows the other confidential columns"
            yield Scope(self._people(part, name), owner, counted)

    def _people(self, labels: Ints, name: str | None) -> Tally:
        sizes = np.bincount(self._once(labels)).astype(np.int64)
        if name is None:
            return Tally({}, sizes)
        values, code = self.columns[name]
        cell, held = np.unique(labels * len(values) + code, return_inverse=True)
        count = np.bincount(self._once(held)).astype(np.int64)
        return Tally({}, sizes, {name: Spread(cell // len(values), cell % len(values), count, values)})

    def _once(self, labels: Ints) -> Ints:
        """Return the label of each person's rows, each once."""
        assert self.person is not None  # noqa: S101  asked where people are counted
        people = int(self.person.max(initial=0)) + 1
        return np.unique(labels * people + self.person) // people


def within(labels: Ints, columns: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Split classes by the codes of further columns; return the finer labels and the class of each finer one.

    >>> [found.tolist() for found in within(np.array([0, 0, 1]), [np.array([0, 1, 1])])]
    [[0, 1, 2], [0, 0, 1]]
    """
    finer = labels
    for code in columns:
        finer = np.unique(finer * (code.max(initial=0) + 1) + code, return_inverse=True)[1]
    owner = np.empty(int(finer.max(initial=-1)) + 1, np.int64)
    owner[finer] = labels
    return finer, owner


def _spread(labels: Ints, column: Values) -> Spread:
    return spread_of(labels, *coded(column))


def spread_of(labels: NDArray[np.integer[Any]], values: Values, code: Ints) -> Spread:
    """Count how the values of a column, known by their codes, fall into classes that are known by their labels."""
    cell, count = np.unique(np.asarray(labels, np.int64) * len(values) + code, return_counts=True)
    return Spread(cell // len(values), cell % len(values), count, values)
