"""Pairing: original and released values in the same order, as the arrays that measures use.

    by record   released row i belongs to the original row `rows[i]`
    by tuple    the distinct tuples of quasi-identifiers represent all records, if the recoding is by tuple
    by sample   a sample of records represents a large table; the sizes of their classes are counted on the whole tables

Released values are numbers if the column still holds numbers, else labels: a category, a generalized label, a range or
*. `measures = "all"`, sampling weights and values that were recoded before the method need records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.measures.formulas.arrays import Flags, Floats, Ints, NotApplicable, count_class_sizes, group_equal_rows
from kinfold.policy.binding import BoundColumn
from kinfold.policy.encoding import Attribute, CategoricalAttribute, NumericAttribute, count_records
from kinfold.policy.table import Table
from kinfold.tables.engine import Engine, NumericPair
from kinfold.tables.queries import (
    compute_sample_weights,
    count_equal_rows,
    label_rows,
    limit_sample,
    round_stable,
    sample_positions,
    sum_squared_errors,
)
from kinfold.tables.recoding import Recoding, encode_dictionary
from kinfold.tables.schema import Column

MAX_DISTINCT_COUNTED = 1_000_000  # of a column; with more, a sample is counted, if there is one
SAMPLE_RECORDS = 200_000  # about; enough for shares to 0.001
LEFT_OUT = -2  # the place of a record that is not in the release


@dataclass(frozen=True, eq=False)
class Sample:
    """A sample of records of a large table, drawn by a hash of their positions: the same records on any engine."""

    original: Any
    prepared: Any
    released: Any
    rows: NDArray[np.intp]  # place of each released record in the sample
    weight: Ints  # records that each represents
    before: Ints  # size of its class in the original
    after: Ints  # size of its class in the release, 0 if it is left out
    classes: Any  # frame of the classes of the release
    sizes: Ints
    recoding: Recoding  # of the whole table
    dominant_classes: Mapping[str, tuple[int, int]]  # of the whole table, by the (n,k) and the p % rule

    @property
    def note(self) -> str:
        """The note on measures that are estimated from the sample."""
        sample, records = len(self.weight), int(self.weight.sum())
        return f"estimated from {sample:,} of {records:,} records, drawn by a hash of their position"


class NumberCounts(NamedTuple):
    """Distinct numbers in ascending order, NaN for null, each with its number of records."""

    values: Floats
    records: Ints

    @property
    def finite(self) -> Floats:
        """The values, NaN instead of infinite ones."""
        return np.where(np.isfinite(self.values), self.values, np.nan)


ValueCounts: TypeAlias = NumberCounts | Counter[str | None]


def max_distinct_counted(engine: Engine) -> int:
    """Return how many distinct values of a column are counted one by one."""
    return limit_sample(engine, MAX_DISTINCT_COUNTED)


def count_values(
    engine: Engine, frame: Any, bound: BoundColumn, sample: Sample | None = None, *, original: bool = False
) -> ValueCounts:
    """Count the values of a column as numbers, if it holds numbers or dates, else as text.

    If it has very many values and there is a `sample` of the table, `original` or released, the sample is counted; a
    sample of the rows if the engine cannot collect so many values.
    """
    column = engine.schema(frame)[bound.name]
    estimated = (
        sample is not None or engine.max_collected_rows is not None
    ) and column.distinct > max_distinct_counted(engine)
    rows = frame
    if estimated and sample is not None:
        rows = sample.original if original else sample.released
    elif estimated:
        rows = engine.take(frame, sample_positions(column.rows, limit_sample(engine, SAMPLE_RECORDS)))[0]
    if column.holds(bound.kind):
        spread = engine.tally(rows, (), {bound.name: column}).spreads[bound.name]
        values, records = np.asarray(spread.values, np.float64), spread.totals()
        return NumberCounts(values, _scale_up(records, column.rows) if estimated else records)
    tally = engine.tally(rows, [bound.name], {})
    sizes = _scale_up(tally.sizes, column.rows) if estimated else tally.sizes
    return Counter(dict(zip(tally.keys[bound.name].tolist(), sizes.tolist(), strict=True)))


def _scale_up(counts: Ints, rows: int) -> Ints:
    """Return the estimated counts of a whole table from those of a sample; their sum is exact."""
    cumulative = np.round(np.cumsum(counts) * (rows / max(int(counts.sum()), 1))).astype(np.int64)
    return np.diff(cumulative, prepend=np.int64(0))


def draw_sample(
    table: Table, original: Any, released: Any, recoding: Recoding, dominant_classes: Mapping[str, tuple[int, int]]
) -> Sample:
    """Draw a sample of a large table, with the sizes of the classes of its records."""
    engine, quasi = table.engine, table.policy.quasi
    records = engine.schema(original).rows
    places = sample_positions(records, limit_sample(engine, SAMPLE_RECORDS))
    sampled = engine.take(original, places)[0]
    released_sample, rows = engine.take(released, places, replace(recoding, columns={}))
    after = np.zeros(len(places), np.int64)
    after[rows] = count_equal_rows(engine, released, quasi, released_sample)
    return Sample(
        sampled,
        sampled if table.frame is original else engine.take(table.frame, places)[0],
        released_sample,
        rows,
        weight=compute_sample_weights(records, len(places)),
        before=count_equal_rows(engine, original, quasi, sampled),
        after=after,
        classes=engine.tally(released, quasi, {}).tuples,
        sizes=engine.tally(released, quasi, {}).sizes,
        recoding=recoding,
        dominant_classes=dominant_classes,
    )


def sum_errors(tables: TablePair, recoding: Recoding, names: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return SSE and SST of each column over all records, in units of its variance, if it has any."""
    engine = tables.engine
    before, after = (engine.schema(frame) for frame in (tables.original, tables.released))
    moments = _column_moments(engine, tables.original, [before[name] for name in names])
    columns = [NumericPair(before[name], after[name], moments[name][1]) for name in names]
    squared = sum_squared_errors(engine, tables.original, tables.released, columns, recoding)
    errors = {}
    for name, lost in zip(names, squared, strict=True):
        count, _, variance = moments[name]
        unit = variance if variance > 0 else 1.0
        errors[name] = round_stable(lost / unit), float(count) if variance > 0 else 0.0
    return errors


def _column_moments(engine: Engine, frame: Any, columns: Sequence[Column]) -> dict[str, tuple[int, float, float]]:
    """Return count, mean and variance of each column; in one pass if no value is missing."""
    if not columns:
        return {}
    count, means, covariances = engine.moments(frame, {column.name: column for column in columns})
    if count < engine.schema(frame).rows and len(columns) > 1:
        return {column.name: _column_moments(engine, frame, [column])[column.name] for column in columns}
    names = [column.name for column in columns]
    return {name: (count, float(means[i]), float(covariances[i, i])) for i, name in enumerate(names)}


@dataclass(frozen=True, eq=False)
class PairedColumn:
    """One column of both tables: released `numbers`, or the label `labels[place[i]]` of record i."""

    attribute: Attribute
    kept: Flags  # False: the record is left out
    numbers: Floats | None  # NaN for null and for a record that is left out
    labels: tuple[str, ...] = ()
    place: NDArray[np.integer[Any]] | None = None  # -1 null, -2 left out

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.attribute.bound.name

    @property
    def compares_numbers(self) -> bool:
        """Whether both tables have numbers."""
        return isinstance(self.attribute, NumericAttribute) and self.numbers is not None

    @cached_property
    def generalized(self) -> bool:
        """Whether the release holds labels, or could: the column is generalized or suppressed."""
        if isinstance(self.attribute, CategoricalAttribute) and not self.attribute.null_code and not len(self.labels):
            return False  # all null in both
        if self.attribute.bound.average in ("generalize", "suppress"):
            return True
        if self.numbers is not None:
            return False
        if isinstance(self.attribute, NumericAttribute):
            return True
        return not set(self.labels) <= set(self.attribute.texts[:-1])

    @property
    def original_keys(self) -> NDArray[Any]:
        """The original values as numbers or codes."""
        return self.attribute.numbers if isinstance(self.attribute, NumericAttribute) else self.attribute.codes

    @property
    def released_keys(self) -> NDArray[Any]:
        """The released values as numbers or places of labels."""
        return self.numbers if self.place is None else self.place  # type: ignore[return-value]

    @cached_property
    def before(self) -> Ints:
        """Original values as codes; of a numeric column ranks among its distinct values; -1 for null."""
        if isinstance(self.attribute, CategoricalAttribute):
            codes = self.attribute.codes.astype(np.int64)
            return np.where(codes == self.attribute.null_code, -1, codes)
        if self.attribute.exact is not None:
            return self.attribute.exact.places.astype(np.int64)
        known = ~self.attribute.null
        ranks = np.full(len(known), -1, np.int64)
        ranks[known] = np.unique(self.attribute.numbers[known], return_inverse=True)[1]
        return ranks

    @cached_property
    def after(self) -> Ints:
        """Released values as codes of the same scale; other labels get codes after them."""
        if self.place is None:
            assert self.numbers is not None  # noqa: S101  a column has numbers or labels
            known = ~np.isnan(self.numbers)
            codes = np.full(len(known), -1, np.int64)
            codes[known] = np.unique(self.numbers[known], return_inverse=True)[1]
            return codes
        categories = () if isinstance(self.attribute, NumericAttribute) else self.attribute.texts[:-1]
        code = {text: number for number, text in enumerate(categories)}
        number = [code.get(label, len(code) + i) for i, label in enumerate(self.labels)]
        return np.asarray(np.array([*number, LEFT_OUT, -1], np.int64)[self.place], np.int64)


@dataclass(frozen=True, eq=False)
class Pair:
    """Both tables by column, and the class of each record before and after."""

    columns: tuple[PairedColumn, ...]
    kept: Flags
    weight: Ints | None = None  # records of each row, 1 by default
    large: LargePair | None = None  # counts of the whole tables, if the rows are a sample

    @cached_property
    def initial(self) -> Ints:
        """The class of each record by its original values."""
        return group_equal_rows([column.original_keys for column in self.columns])[0]

    @cached_property
    def masked(self) -> Ints:
        """The class of each record by its released values, -1 if it is left out."""
        classes = np.full(len(self.kept), -1, np.int64)
        if self.kept.any():
            classes[self.kept] = group_equal_rows([column.released_keys for column in self.columns], self.kept)[0]
        return classes

    @cached_property
    def class_sizes(self) -> tuple[Ints, Ints]:
        """The sizes of the classes of each record before and after; 0 if it is left out."""
        if self.large is not None:
            return self.large.before, self.large.after
        return count_class_sizes(self.initial, self.weight), count_class_sizes(self.masked, self.weight)

    @property
    def records(self) -> int:
        """The number of original records."""
        return len(self.kept) if self.weight is None else int(self.weight.sum())

    @property
    def released(self) -> int:
        """The number of released records."""
        return int(self.kept.sum() if self.weight is None else self.weight[self.kept].sum())

    @cached_property
    def numbers(self) -> tuple[Floats, Floats] | None:
        """The columns that are numbers in both tables, records by attributes; None if there are none."""
        both = [
            (c.attribute.numbers, c.numbers)
            for c in self.columns
            if isinstance(c.attribute, NumericAttribute) and c.numbers is not None
        ]
        if not both:
            return None
        x, y = (np.stack(side).T for side in zip(*both, strict=True))  # contiguous by column, as they are summed
        return x, y

    @property
    def numeric_names(self) -> list[str]:
        """The names of the columns that are numbers in both tables."""
        return [column.name for column in self.columns if column.compares_numbers]

    def select(self, names: Sequence[str]) -> Pair:
        """Return the pair with some of its columns."""
        columns = tuple(column for column in self.columns if column.name in names)
        large = None if self.large is None else replace(self.large, classes=self.large.classes.select(names))
        return replace(self, columns=columns, large=large)


PairSource: TypeAlias = Callable[[], Pair]  # raises `NotApplicable` if the tables cannot be paired


@dataclass(frozen=True, eq=False)
class LargePair:
    """The class sizes of sampled records before and after, and the classes of the whole release."""

    before: Ints
    after: Ints
    classes: Pair  # one row for each class; its original values mean nothing


@dataclass(frozen=True, eq=False)
class TupleRows:
    """The distinct tuples of quasi-identifiers and their released values."""

    released: Any  # frame of the released tuples, in their order
    rows: NDArray[np.intp]  # their places among all tuples
    sizes: Ints  # records of each tuple
    places: Callable[[], Ints]  # returns the tuple of each original record


@dataclass(frozen=True, eq=False)
class TablePair:
    """Both tables in their engine; `rows` maps released rows to original ones, or is the reason why it cannot.

    `recorded` are measures by section from the audit of the release.
    """

    engine: Engine
    original: Any
    released: Any
    rows: NDArray[np.intp] | TupleRows | Sample | str
    recorded: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def uses_counts(self) -> bool:
        """Whether confidential columns are counted by the engine, because tuples or a sample represent the records."""
        return isinstance(self.rows, TupleRows | Sample)

    @property
    def is_paired(self) -> bool:
        """Whether released rows can be paired with original ones."""
        return not isinstance(self.rows, str)

    @property
    def sample(self) -> Sample | None:
        """The sample of a large table."""
        return self.rows if isinstance(self.rows, Sample) else None

    @property
    def inspected(self) -> tuple[Any, Any]:
        """The original and the release, or the samples of them."""
        inspected = self.rows if isinstance(self.rows, Sample) else self
        return inspected.original, inspected.released

    def pair(self, attributes: Sequence[Attribute]) -> Pair:
        """Return the paired tables; raise `NotApplicable` if they cannot be paired."""
        if isinstance(self.rows, str):
            raise NotApplicable(self.rows)
        if isinstance(self.rows, TupleRows):
            pair = pair_columns(self.engine, self.rows.released, attributes, self.rows.rows)
            return replace(pair, weight=self.rows.sizes)
        if not isinstance(self.rows, Sample):
            return pair_columns(self.engine, self.released, attributes, self.rows)
        sample, count = self.rows, len(self.rows.sizes)
        pair = pair_columns(self.engine, sample.released, attributes, sample.rows)
        any_record = [attribute.take(np.zeros(count, np.intp)) for attribute in attributes]
        classes = replace(pair_columns(self.engine, sample.classes, any_record, np.arange(count)), weight=sample.sizes)
        return replace(pair, weight=sample.weight, large=LargePair(sample.before, sample.after, classes))

    def pair_in_any_order(self, attributes: Sequence[Attribute]) -> Pair:
        """Return the paired tables, or both tables with rows in any order, for measures of one table."""
        if not isinstance(self.rows, str):
            return self.pair(attributes)
        released, before = self.engine.schema(self.released).rows, count_records(attributes)
        if released > before:
            raise NotApplicable("the release has more rows than the original")
        return pair_columns(self.engine, self.released, attributes, np.arange(released))


def pair_columns(engine: Engine, released: Any, attributes: Sequence[Attribute], rows: NDArray[np.intp]) -> Pair:
    """Read the released columns and pair them with the original ones; row i belongs to the original row `rows[i]`."""
    schema = engine.schema(released)
    records = count_records(attributes)
    kept = np.zeros(records, np.bool_)
    kept[rows] = True
    readable: dict[str, Column | None] = {}
    for attribute in attributes:
        column, bound = schema[attribute.bound.name], attribute.bound
        same = column.storage.kind is bound.kind or bool(column.date_format)  # a year is not a date
        readable[bound.name] = column if same and isinstance(attribute, NumericAttribute) else None
    table = engine.collect(released, readable)
    columns = []
    for attribute in attributes:
        values = table.column(attribute.bound.name)
        if readable[attribute.bound.name] is not None:
            numbers = np.full(records, np.nan)
            numbers[rows] = values.to_numpy(zero_copy_only=False).astype(np.float64)
            columns.append(PairedColumn(attribute, kept, numbers))
        else:
            place = np.full(records, LEFT_OUT, np.int32)
            place[rows], texts = encode_dictionary(values)
            columns.append(PairedColumn(attribute, kept, None, tuple(texts.to_pylist()), place))
    return Pair(tuple(columns), kept)


def stack_pairs(one: Pair, other: Pair) -> Pair:
    """Return the rows of two pairs, one after the other; those of the first have weight 0."""
    assert other.weight is not None  # noqa: S101  a sample has weights
    columns = tuple(_stack_columns(*both) for both in zip(one.columns, other.columns, strict=True))
    weight = np.concatenate([np.zeros(len(one.kept), np.int64), other.weight])
    return Pair(columns, np.concatenate([one.kept, other.kept]), weight)


def _stack_columns(one: PairedColumn, other: PairedColumn) -> PairedColumn:
    rows = np.concatenate([np.zeros(len(one.kept), np.intp), np.arange(len(other.kept))])
    attribute, kept = other.attribute.take(rows), np.concatenate([one.kept, other.kept])
    if one.numbers is not None and other.numbers is not None:
        return PairedColumn(attribute, kept, np.concatenate([one.numbers, other.numbers]))
    assert one.place is not None and other.place is not None  # noqa: S101, PT018  both are labels
    number = {label: place for place, label in enumerate(dict.fromkeys([*one.labels, *other.labels]))}
    places = [np.array([*map(number.get, c.labels), LEFT_OUT, -1], np.int32)[c.place] for c in (one, other)]
    return PairedColumn(attribute, kept, None, tuple(number), np.concatenate(places))


def pair_tables(
    table: Table,
    original: Any,
    released: Any,
    recoding: Recoding,
    *,
    large: bool = False,
    dominated: Mapping[str, tuple[int, int]] = MappingProxyType({}),
) -> TablePair:
    """Return both tables with their pairing; a `large` table by a sample, with its `dominated` classes."""
    engine, request = table.engine, table.policy.request
    every = request.report.measures == "all" or bool(request.sampling_weights)
    limit, whole = engine.max_collected_rows, recoding.tuples is not None and original is table.frame
    large = large or (limit is not None and table.policy.rows > limit and not whole)
    if large and not every:
        return TablePair(engine, original, released, draw_sample(table, original, released, recoding, dominated))
    if recoding.tuples is None or original is not table.frame or every:
        return TablePair(engine, original, released, np.flatnonzero(label_rows(engine, table.frame, recoding).kept))
    quasi = table.policy.quasi
    treatments = {name: treatment for name, treatment in recoding.columns.items() if name in quasi}
    released_tuples = engine.apply(recoding.tuples, Recoding(recoding.labels, treatments), engine.schema(table.frame))
    numbered = replace(recoding, labels=np.arange(len(recoding.labels), dtype=np.int32))

    def places() -> Any:
        return label_rows(engine, table.frame, numbered).labels

    rows = TupleRows(released_tuples, np.flatnonzero(recoding.kept), table.tuples.tally.sizes, places)
    return TablePair(engine, original, released, rows)


def encode_quasi(table: Table, tables: TablePair) -> tuple[Attribute, ...]:
    """Return the quasi-identifiers of the tuples, of the sample, or of every record."""
    if isinstance(tables.rows, TupleRows):
        return table.tuples.attributes
    return table.encode_rows(tables.rows.prepared) if isinstance(tables.rows, Sample) else table.attributes
