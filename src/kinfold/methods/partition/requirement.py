"""Requirements: promises about confidential columns, as a partitioner reads them.

A requirement is a criterion (from a model) and the codes of one column, which number its distinct values in order. The
kernels check the packed requirements for every class, beyond its size.

The kind of a record stands for its confidential values: one column of few values has a kind for each value. Many values
are merged, neighbours if the column has an order, else the rare ones; so are the values of several columns before they
are crossed. So there are few kinds, and an index for each is small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinfold import kernels
from kinfold.errors import DataError, PolicyError, Unreachable, plural
from kinfold.models.model import ClassCriterion
from kinfold.tables.points import Floats, Labels
from kinfold.tables.tally import encode_values

if TYPE_CHECKING:
    from kinfold.kernels.promises import Promises

STATISTICS = (
    *("ordered", "nested", "share", "distinct", "effective", "recursive"),
    *("likeness", "enhanced", "disclosure"),
)
MAX_KINDS = 32  # of one column, and about as many of several
SIZES_TRIED_FIRST = 64  # for the least t: nearly always one of them is near enough
CELLS_AT_A_TIME = 1_000_000  # values times sizes, after those
MAX_CLOSENESS_WORK = 50_000_000  # values times sizes: about a second
CLOSENESS_ROUNDING = 1e-9  # above the rounding errors of a distance


class HasCriterion(Protocol):
    """A model with a criterion."""

    def criterion(self, values: NDArray[Any]) -> ClassCriterion:
        """Return the limit that a class must keep."""
        ...


class CountTables(NamedTuple):
    """The counts of a table, one row of codes after the other, as the kernels take them."""

    start: NDArray[np.int64]
    total: NDArray[np.float64]
    below: NDArray[np.float64]
    area: NDArray[np.float64]
    turn: NDArray[np.int32]

    @classmethod
    def from_totals(cls, totals: Sequence[NDArray[np.float64]]) -> CountTables:
        """Lay out the number of records with each code of each row."""
        known = kernels.load("promises").MAX_TABLED_SIZE
        below = [np.cumsum(total) for total in totals]
        area = [np.concatenate([[0.0], np.cumsum(each)]) for each in below]
        size, j = np.divmod(np.arange((known + 1) ** 2), known + 1)
        turn = [np.searchsorted(each, j * int(each[-1]) // np.maximum(size, 1), side="right") for each in below]
        start = np.concatenate([[0], np.cumsum([len(total) for total in totals])]).astype(np.int64)
        total, under, sums = (np.concatenate([np.zeros(0), *each]) for each in (totals, below, area))
        return cls(start, total, under, sums, np.array(turn, np.int32).reshape(len(turn), len(j)))


@dataclass(frozen=True, eq=False)
class Reference:
    """The number of records with each code of a table, which classes are compared with."""

    totals: tuple[NDArray[np.float64], ...]
    cache: dict[tuple[Reference, ...], CountTables] = field(default_factory=dict)  # by the other references

    @staticmethod
    def combine(references: Sequence[Reference]) -> CountTables:
        """Lay out several references. The first one caches the result: thousands of blocks need the same."""
        totals = [total for each in references for total in each.totals]
        if not references:
            return CountTables.from_totals(totals)
        first, others = references[0], tuple(references[1:])
        if others not in first.cache:
            first.cache[others] = CountTables.from_totals(totals)
        return first.cache[others]


@dataclass(frozen=True, eq=False)
class Requirement:
    """A promise about one column: the criterion, the code of each record, and the counts of the table.

    The records may be a part of the table: classes are compared with all of it.
    """

    criterion: ClassCriterion
    codes: NDArray[np.int64]
    table: Reference | None = None  # None: the records are the whole table

    @classmethod
    def of(cls, model: HasCriterion, column: ArrayLike) -> Requirement:
        """Create a requirement from a model and the values of its column; an ordinal column as ranks."""
        values, codes = encode_values(np.asarray(column))
        return cls(model.criterion(values), codes)

    @classmethod
    def close(cls, column: ArrayLike, t: float) -> Requirement:
        """Require that the values of every class, which have an order, are within the distance t of the table."""
        if not 0 < t <= 1:
            raise PolicyError(f"t is {t}", fix="choose t above 0 and at most 1")
        return cls(ClassCriterion("ordered", float(t)), encode_values(np.asarray(column))[1])

    def rows(self) -> NDArray[np.int64]:
        """Return the codes of the records, one row for each level of a hierarchy, each numbered without gaps."""
        if self.criterion.statistic != "nested" or self.criterion.paths is None:
            return self.codes[None, :]
        levels = [np.unique(path, return_inverse=True)[1] for path in self.criterion.paths.T]
        return np.stack([level[self.codes] for level in levels]).astype(np.int64)

    def reference(self) -> Reference:
        """Return the counts that classes are compared with."""
        return self.table or Reference(tuple(np.bincount(row).astype(np.float64) for row in self.rows()))

    def with_reference(self) -> Requirement:
        """Return the requirement with its reference computed, for callers that take many blocks of the records."""
        return replace(self, table=self.reference())

    def within(self, rows: NDArray[np.intp]) -> Requirement:
        """Return the requirement for some of the records, whose classes are compared with the whole table."""
        return Requirement(self.criterion, self.codes[rows], self.reference())


def closeness_requirements(confidential: object, t: object, records: int) -> tuple[Requirement, ...]:
    """Return a requirement for each confidential column: an array, or a sequence of arrays, with one t or one for each.

    >>> [each.criterion.limit for each in closeness_requirements([[1, 2], [3, 3]], [0.1, 0.2], 2)]
    [0.1, 0.2]
    """
    # a list may hold columns of different types; anything else is one array
    first = np.asarray(confidential, dtype=object if isinstance(confidential, list | tuple) else None)
    try:
        columns = [first] if first.ndim == 1 and len(first) == records else list(confidential)  # type: ignore[call-overload]
        levels = [float(level) for level in np.broadcast_to(np.asarray(t, np.float64), len(columns))]
    except (TypeError, ValueError, OverflowError):
        what = "confidential is not an array or a list of arrays, or t not one number or one for each of them"
        raise DataError(what, fix=f"give one array of {records:,} values and one t, or a list of each") from None
    wrong = [np.shape(column) for column in columns if np.shape(column) != (records,)]
    if wrong or not columns:
        shapes = f", one of shape {wrong[0]}" if wrong else ""
        what = f"confidential has {plural(len(columns), 'column')}{shapes}"
        raise DataError(what, fix=f"give one array of {records:,} values, or a list of such arrays")
    return tuple(Requirement.close(np.asarray(column), level) for column, level in zip(columns, levels, strict=True))


def pack_promises(requirements: Sequence[Requirement], records: int) -> Promises:
    """Return the requirements as the kernels take them."""
    rows = [each.rows() for each in requirements]
    codes = np.concatenate([*rows, np.zeros((0, records), np.int64)]).astype(np.int32)
    promises: Promises = kernels.load("promises").Promises(
        kind=np.array([STATISTICS.index(each.criterion.statistic) for each in requirements], np.int64),
        limit=np.array([each.criterion.limit for each in requirements], np.float64),
        c=np.array([each.criterion.c for each in requirements], np.float64),
        row=np.concatenate([[0], np.cumsum([len(each) for each in rows])]).astype(np.int64),
        codes=np.ascontiguousarray(codes),
        **Reference.combine([each.reference() for each in requirements])._asdict(),
        codes_held=np.zeros(records + 2, np.int32),
        heaps=np.zeros(records + 2),
    )
    return promises


def measure_misses(requirements: Sequence[Requirement], labels: Labels) -> NDArray[np.float64]:
    """Return by how much each class misses its requirements, summed; 0 if it keeps them all.

    >>> measure_misses([Requirement.close([1, 2, 3, 4], 0.3)], np.array([0, 0, 1, 1], np.int32)).round(3).tolist()
    [0.033, 0.033]
    """
    order = np.argsort(labels, kind="stable").astype(np.int32)
    sizes = np.bincount(labels)
    result = np.zeros(len(sizes))
    kernels.load("promises").measure_misses(
        pack_promises(requirements, len(labels)), order, np.concatenate([[0], np.cumsum(sizes)]), result
    )
    return result


def require_reachable(requirements: Sequence[Requirement]) -> None:
    """Raise unless one class of all records keeps every promise. It always keeps t-closeness: it is the table."""
    one_class = [(each, np.zeros(len(each.codes), np.int32)) for each in requirements]
    best = [_describe_best(each) for each, labels in one_class if measure_misses([each], labels)[0] > 0]
    if best:
        what = f"a promise fails even with all records in one class: {'; '.join(best)}"
        raise Unreachable(what, fix="lower l or p, or raise t, alpha or c: the table itself does not keep it")


def _describe_best(required: Requirement) -> str:
    """Describe what one class of all records reaches, in counts and shares.

    >>> from kinfold.models import AlphaK, LDiversity
    >>> _describe_best(Requirement.of(LDiversity(3, "ill"), ["flu", "cold", "cold"]))
    '3 distinct values are required, there are 2'
    >>> _describe_best(Requirement.of(AlphaK(0.5, "ill"), ["flu", "cold", "cold"]))
    'a share of at most 0.5 is required, the most frequent value has 0.6667'
    """
    count, limit = np.sort(np.bincount(required.codes))[::-1], required.criterion.limit
    count = count[count > 0]  # a block need not have every value of its table
    share = count / count.sum()
    if required.criterion.statistic == "distinct":
        return f"{limit:g} distinct values are required, there are {len(count)}"
    if required.criterion.statistic == "share":
        return f"a share of at most {limit:g} is required, the most frequent value has {share[0]:.4g}"
    if required.criterion.statistic == "effective":
        effective = np.exp(-(share * np.log(share)).sum())
        return f"the entropy of {limit:g} values is required, the table has that of {effective:.4g}"
    tail = count[int(limit) - 1 :].sum()
    needed = f"c would have to be above {count[0] / tail:.4g}" if tail else f"there are {len(count)} values"
    return f"recursive diversity with l = {limit:g} and c = {required.criterion.c:g} is required, {needed}"


def find_least_closeness(required: Requirement, k: int, enough: float = 0.0) -> float | None:
    """Return the least t that several classes of k can keep, or any that is at most `enough`; None if it is not known.

    Of several classes one has at most half of the records, and at least k. A class of m records holds whole numbers of
    each value, but the table's share of it is m times the share of the value:

        values in order    m·F(v) records up to each value, rounded: Σ |m·F(v) - round| / (m (values - 1))
        equal distances    shares rounded down, or up for the largest remainders: Σ |m·share - count| / (2 m)
        a hierarchy        the mean of the latter over its levels: a lower bound

    The other records together are nearer to the table. So for values in order or with equal distances two classes reach
    this t, and only one class of all records keeps a smaller one. Cost: O(values) for each size, from half of the
    records down until one is near enough; None where that would exceed MAX_CLOSENESS_WORK.

    >>> from kinfold.models import TCloseness
    >>> wages = Requirement.close([1, 2, 3, 4, 5, 6], 0.1)
    >>> round(find_least_closeness(wages, 2), 3), round(find_least_closeness(wages, 3), 3)
    (0.1, 0.1)
    >>> ill = Requirement.of(TCloseness(0.01, "ill", "equal"), ["flu", "cold", "cold", "cold", "cold"])
    >>> find_least_closeness(ill, 2)
    0.2
    """
    totals = [np.bincount(row) for row in required.rows()]
    ordered = required.criterion.statistic == "ordered"
    values, n = sum(map(len, totals)), len(required.codes)
    top, count, least = n // 2, SIZES_TRIED_FIRST, np.inf
    while top >= k:
        sizes = np.arange(max(k, top - count + 1), top + 1)
        distances = [(_least_ordered if ordered else _least_equal)(total, sizes) for total in totals]
        least = min(least, float(np.mean(distances, axis=0).min()))
        if least <= enough + CLOSENESS_ROUNDING:
            break
        if (n // 2 - int(sizes[0])) * values > MAX_CLOSENESS_WORK:
            return None
        top, count = int(sizes[0]) - 1, max(1, CELLS_AT_A_TIME // values)
    return least


def _least_ordered(total: NDArray[np.int64], sizes: NDArray[np.int64]) -> Floats:
    """Return the least distance of a class of each size over values in order."""
    n = int(total.sum())
    if len(total) < 2:
        return np.zeros(len(sizes))
    remainder = sizes[:, None] * np.cumsum(total)[:-1] % n
    return np.asarray(np.minimum(remainder, n - remainder).sum(axis=1) / (n * sizes * (len(total) - 1)))


def _least_equal(total: NDArray[np.int64], sizes: NDArray[np.int64]) -> Floats:
    """Return the least distance of a class of each size if all values are equally distant: by largest remainders."""
    n = int(total.sum())
    remainder = -np.sort(-(sizes[:, None] * total % n), axis=1)  # the largest first
    rounded_up = np.arange(len(total)) < remainder.sum(axis=1)[:, None] // n
    return np.asarray(np.where(rounded_up, n - remainder, remainder).sum(axis=1) / (2 * n * sizes))


def number_kinds(requirements: Sequence[Requirement]) -> NDArray[np.int32]:
    """Return the kind of each record.

    >>> number_kinds([Requirement.close([7, 5, 5, 9], 0.2)]).tolist()
    [1, 0, 0, 2]
    """
    columns = _distinct_columns(requirements)
    limit = max(2, int(MAX_KINDS ** (1 / len(columns)) + 1e-9))  # of each column
    kind = np.zeros(len(columns[0][0]), np.int64)
    for codes, ordered in columns:
        kind = np.unique(kind * limit + coarsen(codes, limit, ordered=ordered), return_inverse=True)[1]
        if kind.max() >= MAX_KINDS:  # of many columns the first count most
            kind = np.unique(coarsen(kind, MAX_KINDS, ordered=False), return_inverse=True)[1]
    return kind.astype(np.int32)


def coarsen(codes: NDArray[np.int64], limit: int, *, ordered: bool) -> NDArray[np.int64]:
    """Merge values until there are at most `limit`: neighbours about evenly, or the rare ones.

    >>> coarsen(np.array([0, 1, 2, 2, 3, 3]), 2, ordered=True).tolist()
    [0, 0, 1, 1, 1, 1]
    >>> coarsen(np.array([0, 1, 2, 2, 3, 3]), 3, ordered=False).tolist()
    [2, 2, 0, 0, 1, 1]
    """
    total = np.bincount(codes)
    if len(total) <= limit:
        return codes
    if ordered:
        middle = np.cumsum(total) - total / 2
        place = np.minimum(middle * limit / len(codes), limit - 1).astype(np.int64)
    else:
        place = np.empty(len(total), np.int64)
        place[np.argsort(-total, kind="stable")] = np.arange(len(total))
        place = np.minimum(place, limit - 1)
    return np.asarray(place[codes])


def _distinct_columns(requirements: Sequence[Requirement]) -> list[tuple[NDArray[np.int64], bool]]:
    """Return the codes of each column once, and whether some promise depends on its order."""
    columns: list[tuple[NDArray[np.int64], bool]] = []
    for each in requirements:
        ordered = each.criterion.statistic == "ordered"
        # a block holds few values of its table: without the others no array is as long as the table
        codes = each.codes if each.table is None else np.unique(each.codes, return_inverse=True)[1].astype(np.int64)
        known = [i for i, (other, _) in enumerate(columns) if np.array_equal(other, codes)]
        if known:
            columns[known[0]] = (codes, columns[known[0]][1] or ordered)
        else:
            columns.append((codes, ordered))
    return columns
