"""Relations between columns that hold in almost every row of a sample, found by comparing columns.

    order         a <= b                                  admission <= discharge
    sum           c = a + b; of dates c = b - a           stay = discharge - admission
    function      equal values of a have equal b          town -> postcode; both ways: town <-> postcode
    implication   one value of a has one value of b       alive = "yes" implies cause is missing

A relation counts only if it says something: at least `MIN_EXPECTED_BREAKS` rows would break it by chance, if the
columns were independent, and few of them do. Missing values are values of categories; rows with a missing number are
left out of orders and sums. `check` is an edit rule of a policy. Cost: O(s log s) for each pair of the columns of s
sampled rows, and for each triple of numbers O(1) for most.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, permutations
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

RELATION_SAMPLE_ROWS = 5_000  # a share of 1 % is then fifty rows
MIN_ROWS_COMPARED = 30  # with both values, of an order or a sum
MIN_EXPECTED_BREAKS = 10.0  # rows that would break a relation by chance
MIN_HOLDING_SHARE = 0.99  # of the rows to which a relation applies in which it holds
MAX_UNEXPLAINED_BREAKS = 0.1  # share of the rows expected by chance that break a relation
MAX_NUMBERS_SUMMED = 14  # columns of numbers whose sums are tested: 364 triples
MAX_IMPLICATION_CATEGORIES = 30  # of a column in an implication
FIRST_ROWS_COMPARED = 200  # tested before the others: most sums and functions fail there
MIN_FIRST_SHARE = 0.95  # of the first rows in which a relation holds, if it may hold in all
MIN_VARIED_SHARE = 0.2  # of rows in which a number of a sum is not the one of the first row
TOLERANCE = 1e-9  # of sums, relative to the larger side
WORD = re.compile(r"[^\W\d]\w*")
KEYWORDS = {"and", "or", "not", "implies", "in", "is", "missing", "true", "false"}  # of edit rules

Codes: TypeAlias = NDArray[np.int64]
Numbers: TypeAlias = NDArray[np.float64]
RelationKind: TypeAlias = Literal["order", "sum", "function", "implication"]


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
    """A relation between columns as an edit rule, the rows to which it applies and the share in which it holds."""

    kind: RelationKind
    columns: tuple[str, ...]
    check: str
    rows: int
    share: float
    expected: float  # rows that would break it by chance


def find_relations(columns: Sequence[SampledColumn], recoded: Collection[str]) -> list[Relation]:
    """Return the relations with a recoded column that hold in almost every sampled row."""
    numbers = [column for column in columns if column.numbers is not None][:MAX_NUMBERS_SUMMED]
    pairs = [(a, b) for a, b in permutations(columns, 2) if {a.name, b.name} & {*recoded}]
    relations = [r for r in (*_find_orders(numbers), *_find_sums(numbers)) if {*r.columns} & {*recoded}]
    functions = {r.columns: r for r in (find_function(a, b) for a, b in pairs) if r}
    for (first, second), relation in sorted(functions.items()):
        if (back := functions.get((second, first))) is None:
            relations.append(relation)
        elif first < second:
            relations.append(
                replace(
                    min(relation, back, key=lambda r: r.share),
                    columns=relation.columns,
                    check=f"{quote(first)} <-> {quote(second)}",
                )
            )
    for a, b in pairs:
        if a.numbers is None and (a.name, b.name) not in functions:
            relations += _find_implications(a, b)
    return relations


def _judge(kind: RelationKind, columns: tuple[str, ...], check: str, counts: tuple[int, int, float]) -> Relation | None:
    """Return a relation, given the rows to which it applies, those that break it and those that chance would break."""
    rows, broken, expected = counts
    if expected < MIN_EXPECTED_BREAKS or broken > min(
        (1 - MIN_HOLDING_SHARE) * rows, MAX_UNEXPLAINED_BREAKS * expected
    ):
        return None
    return Relation(kind, columns, check, rows, 1 - broken / rows, expected)


def _find_orders(numbers: Sequence[SampledColumn]) -> Iterator[Relation]:
    for a, b in combinations(numbers, 2):
        assert a.numbers is not None  # noqa: S101  the caller selects numbers
        assert b.numbers is not None  # noqa: S101
        known = ~np.isnan(a.numbers) & ~np.isnan(b.numbers)
        rows = int(known.sum())
        if a.dates != b.dates or rows < MIN_ROWS_COMPARED:
            continue
        x, y = a.numbers[known], b.numbers[known]
        if (x == y).all():
            if x.min() < x.max():
                check = f"{quote(a.name)} = {quote(b.name)}"
                yield Relation("order", (a.name, b.name), check, rows, 1.0, float(rows))
            continue
        for low, high, one, other in ((a, b, x, y), (b, a, y, x)):
            broken = int((one > other).sum())
            if broken <= (1 - MIN_HOLDING_SHARE) * rows:
                expected = float(np.searchsorted(np.sort(other), one, side="left").sum() / rows)  # of shuffled rows
                check = f"{quote(low.name)} <= {quote(high.name)}"
                if relation := _judge("order", (low.name, high.name), check, (rows, broken, expected)):
                    yield relation


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
            rows, broken = _count_sum(total.numbers, a.numbers, b.numbers)
            if rows and (relation := _judge("sum", (total.name, a.name, b.name), check, (rows, broken, float(rows)))):
                yield relation


def _count_sum(total: Any, a: Any, b: Any) -> tuple[int, int]:
    """Return the rows with all numbers and those in which the sum is another number; 0 and 0 if it says nothing."""
    first = ~np.isnan(total[:FIRST_ROWS_COMPARED] + a[:FIRST_ROWS_COMPARED] + b[:FIRST_ROWS_COMPARED])
    if (
        _count_unequal(*(each[:FIRST_ROWS_COMPARED][first] for each in (total, a, b)))
        > (1 - MIN_FIRST_SHARE) * FIRST_ROWS_COMPARED
    ):
        return 0, 0
    known = ~np.isnan(total + a + b)
    parts = [column[known] for column in (total, a, b)]
    if known.sum() < MIN_ROWS_COMPARED or min((part != part[0]).mean() for part in parts) < MIN_VARIED_SHARE:
        return 0, 0
    return int(known.sum()), _count_unequal(*parts)


def _count_unequal(total: Numbers, a: Numbers, b: Numbers) -> int:
    return int((np.abs(total - (a + b)) > TOLERANCE * np.maximum(1.0, np.abs(total))).sum())


def find_function(a: SampledColumn, b: SampledColumn) -> Relation | None:
    """Return the relation if rows with equal values of `a` almost always have equal values of `b`."""
    sizes, shares = np.bincount(a.keys), np.bincount(b.keys) / max(len(b.keys), 1)
    rows, differ = int(sizes[sizes > 1].sum()), 1.0 - float((shares**2).sum())
    expected = float(np.maximum(sizes - 1, 0).sum()) * differ
    pairs = a.keys * len(shares) + b.keys
    if (
        expected < MIN_EXPECTED_BREAKS
        or _count_minority(pairs[:FIRST_ROWS_COMPARED], len(shares)) > (1 - MIN_FIRST_SHARE) * FIRST_ROWS_COMPARED
    ):
        return None
    check = f"{quote(a.name)} -> {quote(b.name)}"
    return _judge("function", (a.name, b.name), check, (rows, _count_minority(pairs, len(shares)), expected))


def _count_minority(pairs: Codes, values: int) -> int:
    """Count the rows that do not have the most frequent second value of their first one."""
    present, counts = np.unique(pairs, return_counts=True)
    starts = np.flatnonzero(np.diff(present // values, prepend=-1))
    return len(pairs) - int(np.maximum.reduceat(counts, starts).sum())


def _find_implications(a: SampledColumn, b: SampledColumn) -> Iterator[Relation]:
    if len(a.labels) > MAX_IMPLICATION_CATEGORIES + 1 or len(b.labels) > MAX_IMPLICATION_CATEGORIES + 1:
        return
    counts = np.bincount(a.codes * len(b.labels) + b.codes, minlength=len(a.labels) * len(b.labels))
    table = counts.reshape(len(a.labels), len(b.labels))
    sizes, shares = table.sum(axis=1), table.sum(axis=0) / max(len(a.codes), 1)
    for i, w in enumerate(table.argmax(axis=1).tolist()):
        check = f"{_write_condition(a, i)} implies {_write_condition(b, w)}"
        size, broken = int(sizes[i]), int(sizes[i] - table[i, w])
        if relation := _judge("implication", (a.name, b.name), check, (size, broken, float(size * (1.0 - shares[w])))):
            yield relation


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
