"""Relations between columns that hold in every row of a sample, found by comparing columns.

    order         a <= b                                  admission <= discharge
    sum           c = a + b; of dates c = b - a           stay = discharge - admission
    function      equal values of a have equal b          town -> postcode; both ways: town <-> postcode
    implication   one value of a has one value of b       alive = "yes" implies cause is missing

A relation counts only if it says something: at least `MIN_EXPECTED` rows would break it by chance, if the columns were
independent. Missing values are values of categories; rows with a missing number are left out of orders and sums.
Except for functions, `check` is an edit rule of a policy. Cost: O(s) for each pair of the columns of s sampled rows,
and for each triple of numbers O(1) for most.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

SAMPLED_ROWS = 5_000
MIN_ROWS = 30  # with both values, of an order or a sum
MIN_EXPECTED = 10.0  # rows that would break a relation by chance
MAX_NUMBERS = 14  # columns of numbers whose sums are tested: 364 triples
MAX_CATEGORIES = 30  # of a column in an implication
FIRST_ROWS = 200  # tested before the others: most sums and functions fail there
TOLERANCE = 1e-9  # of sums, relative to the larger side
WORD = re.compile(r"[^\W\d]\w*")
KEYWORDS = {"and", "or", "not", "implies", "in", "is", "missing", "true", "false"}  # of edit rules

Codes = NDArray[np.int64]
Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SampledColumn:
    """The values of a column in the sampled rows: numbers (NaN: missing; dates in days), or codes of categories."""

    name: str
    numbers: Numbers | None
    codes: Codes  # from 0 up; of numbers 0 for a value and 1 for a missing one
    labels: Sequence[str | None]  # by code; None is a missing value
    dates: bool = False

    @cached_property
    def keys(self) -> Codes:
        """The values as codes, equal for equal values."""
        if self.numbers is None:
            return self.codes
        return np.unique(self.numbers, return_inverse=True)[1].astype(np.int64)

    @classmethod
    def from_texts(cls, name: str, texts: Any) -> SampledColumn:
        """Make a column of categories from an Arrow array of texts."""
        encoded = (texts.combine_chunks() if hasattr(texts, "combine_chunks") else texts).dictionary_encode()
        labels = [*encoded.dictionary.to_pylist(), None]
        codes = encoded.indices.fill_null(len(labels) - 1).to_numpy(zero_copy_only=False)
        return cls(name, None, codes.astype(np.int64), labels)

    @classmethod
    def from_numbers(cls, name: str, numbers: Numbers, *, dates: bool) -> SampledColumn:
        """Make a column of numbers or dates."""
        return cls(name, numbers, np.isnan(numbers).astype(np.int64), ("", None), dates)


@dataclass(frozen=True)
class Relation:
    """A relation between columns; `check` is an edit rule, or `a -> b` or `a <-> b` for a function."""

    kind: Literal["order", "sum", "function", "implication"]
    columns: tuple[str, ...]
    check: str


def find_relations(columns: Sequence[SampledColumn], recoded: Collection[str]) -> list[Relation]:
    """Return the relations with a recoded column that hold in every sampled row."""
    numbers = [column for column in columns if column.numbers is not None][:MAX_NUMBERS]
    pairs = [(a, b) for a, b in permutations(columns, 2) if {a.name, b.name} & {*recoded}]
    functions = {(a.name, b.name) for a, b in pairs if _is_function(a, b)}
    relations = [r for r in (*_find_orders(numbers), *_find_sums(numbers)) if {*r.columns} & {*recoded}]
    for first, second in sorted(functions):
        if (second, first) not in functions:
            relations.append(Relation("function", (first, second), f"{quote(first)} -> {quote(second)}"))
        elif first < second:
            relations.append(Relation("function", (first, second), f"{quote(first)} <-> {quote(second)}"))
    for a, b in pairs:
        if a.numbers is None and (a.name, b.name) not in functions:
            relations += _find_implications(a, b)
    return relations


def _find_orders(numbers: Sequence[SampledColumn]) -> Iterator[Relation]:
    for a, b in combinations(numbers, 2):
        assert a.numbers is not None  # noqa: S101  the caller selects numbers
        assert b.numbers is not None  # noqa: S101
        known = ~np.isnan(a.numbers) & ~np.isnan(b.numbers)
        if a.dates != b.dates or known.sum() < MIN_ROWS:
            continue
        x, y = a.numbers[known], b.numbers[known]
        if (x == y).all():
            if x.min() < x.max():
                yield Relation("order", (a.name, b.name), f"{quote(a.name)} = {quote(b.name)}")
        elif (x <= y).all() and _count_expected_breaks(x, y) >= MIN_EXPECTED:
            yield Relation("order", (a.name, b.name), f"{quote(a.name)} <= {quote(b.name)}")
        elif (y <= x).all() and _count_expected_breaks(y, x) >= MIN_EXPECTED:
            yield Relation("order", (b.name, a.name), f"{quote(b.name)} <= {quote(a.name)}")


def _count_expected_breaks(low: Numbers, high: Numbers) -> float:
    """Return how many rows would have `low` above `high` if the rows of one column were shuffled."""
    return float(np.searchsorted(np.sort(high), low, side="left").sum() / len(high))


def _find_sums(numbers: Sequence[SampledColumn]) -> Iterator[Relation]:
    """Yield the sums of two columns that are a third one; a difference is a sum of its smaller part."""
    for total in numbers:
        for a, b in combinations([column for column in numbers if column is not total], 2):
            if total.dates and a.dates != b.dates:  # a date plus days: written as a difference of dates
                first, days = (a, b) if a.dates else (b, a)
                check = f"{quote(days.name)} = {quote(total.name)} - {quote(first.name)}"
            elif not (total.dates or a.dates or b.dates):
                check = f"{quote(total.name)} = {quote(a.name)} + {quote(b.name)}"
            else:
                continue
            if _is_sum(total.numbers, a.numbers, b.numbers):
                yield Relation("sum", (total.name, a.name, b.name), check)


def _is_sum(total: Any, a: Any, b: Any) -> bool:
    first = ~np.isnan(total[:FIRST_ROWS] + a[:FIRST_ROWS] + b[:FIRST_ROWS])
    if not _are_close(total[:FIRST_ROWS][first], (a[:FIRST_ROWS] + b[:FIRST_ROWS])[first]):
        return False
    known = ~np.isnan(total + a + b)
    parts = [column[known] for column in (total, a, b)]
    if known.sum() < MIN_ROWS or any(part.min() == part.max() for part in parts):
        return False
    return _are_close(parts[0], parts[1] + parts[2])


def _are_close(one: Numbers, other: Numbers) -> bool:
    return bool((np.abs(one - other) <= TOLERANCE * np.maximum(1.0, np.abs(one))).all())


def _is_function(a: SampledColumn, b: SampledColumn) -> bool:
    """Whether rows with equal values of `a` have equal values of `b`, which chance does not explain."""
    sizes, shares = np.bincount(a.keys), np.bincount(b.keys) / max(len(b.keys), 1)
    expected = np.maximum(sizes - 1, 0).sum() * (1.0 - (shares**2).sum())
    pairs = a.keys * len(shares) + b.keys
    return bool(expected >= MIN_EXPECTED) and all(
        len(np.unique(pairs[rows])) == len(np.unique(a.keys[rows])) for rows in (slice(FIRST_ROWS), slice(None))
    )


def _find_implications(a: SampledColumn, b: SampledColumn) -> Iterator[Relation]:
    if len(a.labels) > MAX_CATEGORIES + 1 or len(b.labels) > MAX_CATEGORIES + 1:
        return
    counts = np.bincount(a.codes * len(b.labels) + b.codes, minlength=len(a.labels) * len(b.labels))
    table = counts.reshape(len(a.labels), len(b.labels))
    sizes, shares = table.sum(axis=1), table.sum(axis=0) / max(len(a.codes), 1)
    for i, w in zip(*np.nonzero((table == sizes[:, None]) & (sizes[:, None] > 0)), strict=True):
        if sizes[i] * (1.0 - shares[w]) >= MIN_EXPECTED:
            check = f"{_write_condition(a, int(i))} implies {_write_condition(b, int(w))}"
            yield Relation("implication", (a.name, b.name), check)


def _write_condition(column: SampledColumn, code: int) -> str:
    label = column.labels[code]
    if label is None:
        return f"{quote(column.name)} is missing"
    if column.numbers is not None:
        return f"{quote(column.name)} is not missing"
    return f'{quote(column.name)} = "{label.replace(chr(34), chr(34) * 2)}"'


def quote(name: str) -> str:
    """Return the name of a column as it is written in an edit rule.

    >>> quote("age"), quote("date of birth"), quote("in")
    ('age', '`date of birth`', '`in`')
    """
    return name if WORD.fullmatch(name) and name.lower() not in KEYWORDS else f"`{name.replace('`', '``')}`"
