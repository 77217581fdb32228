"""Requirements: promises about confidential columns, as a partitioner reads them.

A requirement is a criterion (from a model) and the codes of one column, which number its distinct values in order.
Packed together they are what the kernels ask of every class, beside its size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from kinfold import kernels
from kinfold.errors import DataError, PolicyError
from kinfold.methods.partition.index import laid_out
from kinfold.models.class_criterion import ClassCriterion
from kinfold.rows.tally import coded

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from kinfold.kernels.mixed import Mixed
    from kinfold.kernels.promises import Promises
    from kinfold.rows.points import Labels, Points

KINDS = ("ordered", "nested", "share", "distinct", "effective", "recursive")


class Gauged(Protocol):
    """A model that hands out a criterion."""

    def criterion(self, values: NDArray[Any]) -> ClassCriterion:
        """Return the promise as a search reads it."""
        ...


class CountTables(NamedTuple):
    """Counts of a table end to end, one row of codes after the other, as the kernels take them."""

    start: NDArray[np.int64]
    total: NDArray[np.float64]
    below: NDArray[np.float64]
    area: NDArray[np.float64]
    turn: NDArray[np.int32]

    @classmethod
    def of(cls, totals: Sequence[NDArray[np.float64]]) -> CountTables:
        """Lay out how many records have each code of each row."""
        known = kernels.load("promises").KNOWN
        below = [np.cumsum(total) for total in totals]
        area = [np.concatenate([[0.0], np.cumsum(each)]) for each in below]
        size, j = np.divmod(np.arange((known + 1) ** 2), known + 1)
        turn = [np.searchsorted(each, j * int(each[-1]) // np.maximum(size, 1), side="right") for each in below]
        start = np.concatenate([[0], np.cumsum([len(total) for total in totals])]).astype(np.int64)
        total, under, sums = (np.concatenate([np.zeros(0), *each]) for each in (totals, below, area))
        return cls(start, total, under, sums, np.array(turn, np.int32).reshape(len(turn), len(j)))


@dataclass(frozen=True, eq=False)
class Reference:
    """How many records of a table have each code of each row of a requirement: what classes are compared with."""

    totals: tuple[NDArray[np.float64], ...]
    laid: dict[tuple[Reference, ...], CountTables] = field(default_factory=dict)  # by what stands beside it

    @staticmethod
    def together(references: Sequence[Reference]) -> CountTables:
        """Lay out several, the first of which remembers it: thousands of blocks ask for the same."""
        totals = [total for each in references for total in each.totals]
        if not references:
            return CountTables.of(totals)
        first, beside = references[0], tuple(references[1:])
        if beside not in first.laid:
            first.laid[beside] = CountTables.of(totals)
        return first.laid[beside]


@dataclass(frozen=True, eq=False)
class Requirement:
    """A promise about one column: the criterion, the code of each record's value, and how often the table has each.

    The records may be some of the table: classes are compared with all of it.
    """

    criterion: ClassCriterion
    codes: NDArray[np.int64]
    table: Reference | None = None  # None: these records are all

    @classmethod
    def of(cls, model: Gauged, column: ArrayLike) -> Requirement:
        """Take a model and the values of its column, in the order of the records; an ordinal column as ranks."""
        values, codes = coded(np.asarray(column))
        return cls(model.criterion(values), codes)

    @classmethod
    def close(cls, column: ArrayLike, t: float) -> Requirement:
        """Ask that in every class the values, which have an order, are within the distance t of the table."""
        if not 0 < t <= 1:
            raise PolicyError(f"t is {t}", fix="t is above 0 and at most 1")
        return cls(ClassCriterion("ordered", float(t)), coded(np.asarray(column))[1])

    def rows(self) -> NDArray[np.int64]:
        """Codes of the records, one row for each level of a hierarchy, each numbered without gaps."""
        if (levels := self._levels()) is None:
            return self.codes[None, :]
        return np.stack([level[self.codes] for level in levels]).astype(np.int64)

    def reference(self) -> Reference:
        """Return what classes are compared with."""
        return self.table or Reference(tuple(np.bincount(row).astype(np.float64) for row in self.rows()))

    def compared(self) -> Requirement:
        """Return the same with its reference at hand, for whoever asks for many blocks of the records."""
        return replace(self, table=self.reference())

    def within(self, rows: NDArray[np.intp]) -> Requirement:
        """Return what is asked of classes of some of the records: to be as the whole table is."""
        return Requirement(self.criterion, self.codes[rows], self.reference())

    def _levels(self) -> list[NDArray[np.int64]] | None:
        if self.criterion.statistic != "nested" or self.criterion.paths is None:
            return None
        return [np.unique(path, return_inverse=True)[1] for path in self.criterion.paths.T]


def closeness(confidential: object, t: object, records: int) -> tuple[Requirement, ...]:
    """Return one requirement for each confidential column: an array, or a sequence of arrays, with one t or one each.

    >>> [each.criterion.limit for each in closeness([[1, 2], [3, 3]], [0.1, 0.2], 2)]
    [0.1, 0.2]
    """
    # a list may hold columns of different types; anything else is one array
    first = np.asarray(confidential, dtype=object if isinstance(confidential, list | tuple) else None)
    columns = [first] if first.ndim == 1 and len(first) == records else list(confidential)  # type: ignore[call-overload]
    levels = [float(level) for level in np.broadcast_to(np.asarray(t, np.float64), len(columns))]
    wrong = [np.shape(column) for column in columns if np.shape(column) != (records,)]
    if wrong or not columns:
        raise DataError(
            f"confidential columns have the shapes {wrong}", fix=f"give one value for each of the {records} records"
        )
    return tuple(Requirement.close(np.asarray(column), level) for column, level in zip(columns, levels, strict=True))


def packed(requirements: Sequence[Requirement], records: int) -> Promises:
    """Lay requirements end to end for the kernels."""
    rows = [each.rows() for each in requirements]
    codes = np.concatenate([*rows, np.zeros((0, records), np.int64)]).astype(np.int32)
    promises: Promises = kernels.load("promises").Promises(
        kind=np.array([KINDS.index(each.criterion.statistic) for each in requirements], np.int64),
        limit=np.array([each.criterion.limit for each in requirements], np.float64),
        c=np.array([each.criterion.c for each in requirements], np.float64),
        row=np.concatenate([[0], np.cumsum([len(each) for each in rows])]).astype(np.int64),
        codes=np.ascontiguousarray(codes),
        **Reference.together([each.reference() for each in requirements])._asdict(),
        codes_held=np.zeros(records + 2, np.int32),
        heaps=np.zeros(records + 2),
    )
    return promises


def mixed(points: Points) -> Mixed:
    """Lay points and their scales end to end for the kernels."""
    return laid_out(points)


def missed(requirements: Sequence[Requirement], labels: Labels) -> NDArray[np.float64]:
    """How far each class misses its requirements, all together; 0 where it keeps them.

    >>> missed([Requirement.close([1, 2, 3, 4], 0.3)], np.array([0, 0, 1, 1], np.int32)).round(3).tolist()
    [0.033, 0.033]
    """
    order = np.argsort(labels, kind="stable").astype(np.int32)
    sizes = np.bincount(labels)
    result = np.zeros(len(sizes))
    kernels.load("class_misses").misses(
        packed(requirements, len(labels)), order, np.concatenate([[0], np.cumsum(sizes)]), result
    )
    return result
