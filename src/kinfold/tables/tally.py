"""The tally: everything that a privacy model needs to know about a table.

A tally holds the size of each equivalence class and, for each confidential column, how many records of each class hold
each value. It is one GROUP BY in any engine. It keeps the class keys, so it can be rolled up a hierarchy without the
rows: merging classes adds their sizes and their spreads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Values: TypeAlias = NDArray[Any]
Item = TypeVar("Item")


class Computed(Mapping[str, Item]):
    """Values by name that are computed when they are read."""

    def __init__(self, names: Sequence[str], compute: Callable[[str], Item]) -> None:
        self._names, self._compute = tuple(names), compute

    def __getitem__(self, name: str) -> Item:
        if name not in self._names:
            raise KeyError(name)
        return self._compute(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclass(frozen=True, eq=False)
class Spread:
    """The values of one column by class: `count[i]` records of class `group[i]` hold the value `code[i]`.

    Codes number the distinct `values` in order, null first.
    """

    group: Ints
    code: Ints
    count: Ints
    values: Values

    def totals(self) -> Ints:
        """Return the number of records of each value."""
        return np.bincount(self.code, self.count, len(self.values)).astype(np.int64)

    def class_totals(self, classes: int) -> Ints:
        """Return the total of each class: its records, or its pairs of a person and a value if people are counted.

        Shares refer to this total, so they add up to one however many values a person has.
        """
        return np.bincount(self.group, self.count, classes).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Tally:
    """Classes: their values of each key column, their sizes, and the spread of each confidential column."""

    keys: Mapping[str, Values]
    sizes: Ints
    spreads: Mapping[str, Spread] = field(default_factory=dict)
    tuples: Any = None  # the engine's frame with one row per class, in this order
    people: Ints | None = None  # of the population in each class, if a promise needs them

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def records(self) -> int:
        """The number of records."""
        return int(self.sizes.sum())

    def merge(self, into: Ints, keys: Mapping[str, Values]) -> Tally:
        """Return the tally in which class i is merged into class `into[i]`; `keys` are those of the merged classes.

        >>> small = Tally({"zip": np.array(["a", "b", "c"])}, np.array([1, 2, 3]))
        >>> small.merge(np.array([0, 0, 1]), {"zip": np.array(["*", "c"])}).sizes.tolist()
        [3, 3]
        """
        classes = int(into.max()) + 1 if len(into) else 0
        sizes = np.bincount(into, self.sizes, classes).astype(np.int64)
        people = None if self.people is None else np.bincount(into, self.people, classes).astype(np.int64)
        spreads = {name: _merge_spread(spread, into) for name, spread in self.spreads.items()}
        return Tally(keys, sizes, spreads, people=people)

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
        keys, people = {name: values[kept] for name, values in self.keys.items()}, self.people
        return Tally(keys, self.sizes[kept], spreads, people=None if people is None else people[kept])


def _merge_spread(spread: Spread, into: Ints) -> Spread:
    width = max(len(spread.values), 1)
    cell = into[spread.group] * width + spread.code
    order = np.argsort(cell)
    cell = cell[order]
    starts = np.flatnonzero(np.diff(cell, prepend=-1))  # of runs of equal cells
    count = np.add.reduceat(spread.count[order], starts)
    return Spread(cell[starts] // width, cell[starts] % width, count, spread.values)


def tally_labels(labels: Ints, confidential: Mapping[str, Sequence[Any] | Values] | None = None) -> Tally:
    """Tally classes by the label of each record; `confidential` holds the values of each column by name.

    >>> tally = tally_labels(np.array([0, 0, 1]), {"disease": ["flu", "flu", "cold"]})
    >>> tally.sizes.tolist(), tally.spreads["disease"].count.tolist()
    ([2, 1], [2, 1])
    """
    sizes = np.bincount(labels).astype(np.int64)
    columns = {name: encode_values(np.asarray(values)) for name, values in (confidential or {}).items()}
    return Tally({}, sizes, {name: count_spread(labels, *column) for name, column in columns.items()})


def is_null(values: Values) -> NDArray[np.bool_]:
    """Mark missing values: None, NaN, NaT.

    >>> is_null(np.array(["a", None], object)).tolist()
    [False, True]
    """
    if values.dtype.kind in "fcmM":
        return np.asarray(np.isnan(values), np.bool_)
    if values.dtype.kind != "O" or _are_texts(values):
        return np.zeros(len(values), np.bool_)
    return np.array([_is_missing(value) for value in values], np.bool_)


def _is_missing(value: Any) -> bool:
    # NaN and NaT are not equal to themselves; pandas' NA compared with itself is not a bool
    return value is None or value is np.ma.masked or not isinstance(value == value, bool | np.bool_) or value != value


def _are_texts(values: Values) -> bool:
    return values.dtype.kind == "O" and set(map(type, values)) <= {str}


def encode_values(column: Values) -> tuple[Values, Ints]:
    """Return the distinct values in order, null first, and the code of each record's value.

    >>> encode_values(np.array([2.0, np.nan, 1.0, np.nan]))[1].tolist()
    [2, 0, 1, 0]
    """
    null = is_null(column)
    if not null.any():
        return _number_values(column)
    values, known = _number_values(column[~null])
    code = np.zeros(len(column), np.int64)
    code[~null] = known + 1
    return np.concatenate([column[null][:1], values]), code


def _number_values(column: Values) -> tuple[Values, Ints]:
    if _are_texts(column):  # looking texts up is ten times faster than sorting them
        texts = sorted(set(column))
        place = {text: i for i, text in enumerate(texts)}
        return np.array(texts, object), np.fromiter(map(place.__getitem__, column), np.int64, len(column))
    values, code = np.unique(column, return_inverse=True)
    return values, code.astype(np.int64)


PEOPLE_WORDS = "each person counted once"
HOUSEHOLD_WORDS = "each household counted once"
WEIGHT_WORDS = "each record counted by its weight"
JOINT_PEOPLE_WORDS = f"{PEOPLE_WORDS}, given the other confidential columns"


@dataclass(frozen=True, eq=False)
class Scope:
    """A further tally on which a promise must hold."""

    tally: Tally
    owner: Ints  # for each class of the tally, the class of the release that it is part of
    counting: str = ""  # how people are counted, in words; empty if rows are counted


@dataclass(frozen=True, eq=False)
class RecordWeights:
    """The sampling weight of each record, in units of the last decimal."""

    units: Ints  # whose sum is an exact double
    decimals: int
    promised: bool = False  # whether promises about columns count records by their weights

    def add_up(self, labels: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        """Return the sum of the weights of each class."""
        return np.asarray(np.bincount(labels, self.units) / 10.0**self.decimals)


@dataclass(frozen=True, eq=False)
class Scopes:
    """The further tallies on which promises must hold: the people of each class, and its parts by other columns.

        people          a person counts once in a class, and once for each of their values in it: the size of the class
                        is the number of its people, and its spreads count pairs of a person and a value
        joint           the rows of a class with equal values in every other confidential column
        joint people    a person counts once in each such part with one of their rows, and once for each value in it
        weights         a row counts by its sampling weight in the shares of values; the size of a class stays

    None of them implies another: a person in two parts of a class counts in both, and once in the class.

    >>> ill, wage = np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1])
    >>> scopes = Scopes({"ill": (np.array(["cold", "flu"]), ill)}, np.array([0, 0, 0, 1]), {"ill": ill, "wage": wage})
    >>> for scope in scopes.for_column(np.zeros(4, np.int64), "ill"):
    ...     print(scope.counting or "rows", scope.tally.sizes, scope.tally.spreads["ill"].count)
    each person counted once [2] [1 2]
    rows [2 2] [2 2]
    each person counted once, given the other confidential columns [1 2] [1 2]
    """

    columns: Mapping[str, tuple[Values, Ints]]  # distinct values in order, and the code of each row
    person: Ints | None = None  # the person of each row
    joint_codes: Mapping[str, Ints] = field(default_factory=dict)  # joint promises: the code of each row's value
    weights: RecordWeights | None = None  # of each row, if its weight counts

    def take(self, rows: NDArray[np.intp]) -> Scopes:
        """Return the scopes of some of the rows."""
        columns = {name: (values, code[rows]) for name, (values, code) in self.columns.items()}
        joint_codes = {name: code[rows] for name, code in self.joint_codes.items()}
        weights = None if self.weights is None else replace(self.weights, units=self.weights.units[rows])
        person = None if self.person is None else self.person[rows]
        return Scopes(columns, person, joint_codes, weights)

    def for_column(self, labels: NDArray[np.integer[Any]], name: str | None) -> Iterator[Scope]:
        """Yield the scopes of a promise about a column, or about the size of classes if `name` is None."""
        classes: Ints = np.asarray(labels, np.int64)
        if self.person is not None:
            owner = np.arange(classes.max(initial=-1) + 1)
            yield Scope(self._tally_people(classes, name), owner, PEOPLE_WORDS)
        if self.weights is not None and self.weights.promised and name is not None:
            yield Scope(self._tally_weights(classes, name), np.arange(classes.max(initial=-1) + 1), WEIGHT_WORDS)
        if name is None or not self.joint_codes:
            return
        part, owner = split_classes(classes, [code for other, code in self.joint_codes.items() if other != name])
        spread = count_spread(part, *self.columns[name])
        yield Scope(Tally({}, np.bincount(part).astype(np.int64), {name: spread}), owner)
        if self.person is not None:
            yield Scope(self._tally_people(part, name), owner, JOINT_PEOPLE_WORDS)

    def _tally_people(self, labels: Ints, name: str | None) -> Tally:
        sizes = np.bincount(self._list_distinct_people(labels)).astype(np.int64)
        if name is None:
            return Tally({}, sizes)
        values, code = self.columns[name]
        cell, inverse = np.unique(labels * len(values) + code, return_inverse=True)
        count = np.bincount(self._list_distinct_people(inverse)).astype(np.int64)
        return Tally({}, sizes, {name: Spread(cell // len(values), cell % len(values), count, values)})

    def _tally_weights(self, labels: Ints, name: str) -> Tally:
        assert self.weights is not None  # noqa: S101  only called if they count
        values, code = self.columns[name]
        cell, inverse = np.unique(labels * len(values) + code, return_inverse=True)
        count = np.bincount(inverse, self.weights.units, len(cell)).astype(np.int64)
        spread = Spread(cell // len(values), cell % len(values), count, values)
        return Tally({}, np.bincount(labels).astype(np.int64), {name: spread})

    def _list_distinct_people(self, labels: Ints) -> Ints:
        """Return the labels of each person, each label once for a person."""
        assert self.person is not None  # noqa: S101  only called if people are counted
        people = int(self.person.max(initial=0)) + 1
        return np.unique(labels * people + self.person) // people


@dataclass(frozen=True, eq=False)
class PersonScopes:
    """The scopes of a table with one row for each person: the rows of these people, which have its classes.

    A promise must hold for the rows of a class, and for its people as in `Scopes`.

    >>> rows = Scopes({"ill": (np.array(["cold", "flu"]), np.array([0, 0, 1]))}, np.array([0, 0, 1]))
    >>> for scope in PersonScopes(rows, 2).for_column(np.array([0, 0]), "ill"):
    ...     print(scope.counting or "rows", scope.tally.sizes, scope.tally.spreads["ill"].count)
    rows [3] [2 1]
    each person counted once [2] [1 1]
    """

    rows: Scopes  # whose people are places in the table
    people: int
    person: None = None  # of each record of the table: it is a person

    def take(self, people: NDArray[np.intp]) -> PersonScopes:
        """Return the scopes of some of the people."""
        place = np.full(self.people, -1, np.int64)
        place[people] = np.arange(len(people))
        owner = place[self.rows.person]
        rows = self.rows.take(np.flatnonzero(owner >= 0))
        return PersonScopes(replace(rows, person=owner[owner >= 0]), len(people))

    def for_column(self, labels: NDArray[np.integer[Any]], name: str | None) -> Iterator[Scope]:
        """Yield the scopes of a promise about a column, or about the size of classes if `name` is None."""
        classes: Ints = np.asarray(labels, np.int64)[self.rows.person]
        if name is not None:
            spread = count_spread(classes, *self.rows.columns[name])
            sizes = np.bincount(classes).astype(np.int64)
            yield Scope(Tally({}, sizes, {name: spread}), np.arange(len(sizes)))
        yield from self.rows.for_column(classes, name)


def split_classes(labels: Ints, columns: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Split classes by the codes of further columns; return the finer labels and the class of each finer one.

    >>> [array.tolist() for array in split_classes(np.array([0, 0, 1]), [np.array([0, 1, 1])])]
    [[0, 1, 2], [0, 0, 1]]
    """
    finer = labels
    for code in columns:
        finer = np.unique(finer * (code.max(initial=0) + 1) + code, return_inverse=True)[1]
    owner = np.empty(int(finer.max(initial=-1)) + 1, np.int64)
    owner[finer] = labels
    return finer, owner


def count_spread(labels: NDArray[np.integer[Any]], values: Values, code: Ints) -> Spread:
    """Return the spread of a column, given the label and the code of each record and the distinct values."""
    cell, count = np.unique(np.asarray(labels, np.int64) * len(values) + code, return_counts=True)
    return Spread(cell // len(values), cell % len(values), count, values)
