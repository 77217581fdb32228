"""Pairing: original and released rows side by side, as the arrays that measures take.

Released row i belongs to the original row `rows[i]`; original rows that were left out have lost every value. Released
values are read as numbers where they still are, else as labels: a category, a generalized label, a range, or `*`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.evaluation.drawn_records import Drawn
from kinfold.measures import NotApplicable
from kinfold.measures.grouping import alike
from kinfold.request.encoding import Attribute, Coded, Measured, records_of
from kinfold.rows.engines import Engine
from kinfold.rows.schema import Column

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

GONE = -2  # no released value: the record was left out


@dataclass(frozen=True, eq=False)
class PairedColumn:
    """One column of both tables: `numbers` where the release still has them, else `labels[place[i]]` for record i."""

    attribute: Attribute
    kept: NDArray[np.bool_]  # False: the record was left out
    numbers: Floats | None  # NaN for null and for a record that was left out
    labels: tuple[str, ...] = ()
    place: NDArray[np.integer[Any]] | None = None  # -1 null, -2 left out

    @property
    def name(self) -> str:
        """The column's name."""
        return self.attribute.bound.name

    @property
    def compares_numbers(self) -> bool:
        """Whether it is numbers in both tables."""
        return isinstance(self.attribute, Measured) and self.numbers is not None

    @cached_property
    def generalized(self) -> bool:
        """Whether the release holds statements about values, if only that they are what they are."""
        if isinstance(self.attribute, Coded) and not self.attribute.null_code and not len(self.labels):
            return False  # nothing but nulls in both: there is nothing to say
        if self.attribute.bound.average in ("generalize", "suppress"):
            return True
        if self.numbers is not None:
            return False
        if isinstance(self.attribute, Measured):
            return True
        return not set(self.labels) <= set(self.attribute.texts[:-1])

    @property
    def told_before(self) -> NDArray[Any]:
        """What tells original values apart: numbers, or codes."""
        return self.attribute.numbers if isinstance(self.attribute, Measured) else self.attribute.codes

    @property
    def told_after(self) -> NDArray[Any]:
        """What tells released values apart: numbers, or places among the labels."""
        return self.numbers if self.place is None else self.place  # type: ignore[return-value]

    @cached_property
    def before(self) -> Ints:
        """Original values as codes: of a measured column the rank among its distinct values; -1 for null."""
        if isinstance(self.attribute, Coded):
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
        """Released values as codes of the same scale; labels that are no category get codes of their own."""
        if self.place is None:
            assert self.numbers is not None  # noqa: S101  a column has numbers or labels
            known = ~np.isnan(self.numbers)
            codes = np.full(len(known), -1, np.int64)
            codes[known] = np.unique(self.numbers[known], return_inverse=True)[1]
            return codes
        known_texts = {} if isinstance(self.attribute, Measured) else _codes(self.attribute)
        number = [known_texts.get(label, len(known_texts) + i) for i, label in enumerate(self.labels)]
        return np.asarray(np.array([*number, GONE, -1], np.int64)[self.place], np.int64)


def _codes(attribute: Coded) -> dict[str, int]:
    return {text: code for code, text in enumerate(attribute.texts[:-1])}


@dataclass(frozen=True, eq=False)
class Pair:
    """Both tables, column by column, and the classes of each record before and after."""

    columns: tuple[PairedColumn, ...]
    kept: NDArray[np.bool_]
    weight: Ints | None = None  # how many records each row stands for, where equal ones are given once
    far: FarPair | None = None  # what is known of the whole tables, where these are some of their records

    @cached_property
    def initial(self) -> Ints:
        """Class of each original record by its original values."""
        return alike([column.told_before for column in self.columns])[0]

    @cached_property
    def masked(self) -> Ints:
        """Class of each original record by its released values, -1 where it was left out."""
        classes = np.full(len(self.kept), -1, np.int64)
        if self.kept.any():
            classes[self.kept] = alike([column.told_after for column in self.columns], self.kept)[0]
        return classes

    @property
    def records(self) -> int:
        """How many records there are."""
        return len(self.kept) if self.weight is None else int(self.weight.sum())

    @property
    def released(self) -> int:
        """How many of them were released."""
        return int(self.kept.sum() if self.weight is None else self.weight[self.kept].sum())

    @cached_property
    def numbers(self) -> tuple[Floats, Floats] | None:
        """The columns that are numbers in both tables, records by attributes; None where there is none."""
        both = [
            (c.attribute.numbers, c.numbers)
            for c in self.columns
            if isinstance(c.attribute, Measured) and c.numbers is not None
        ]
        if not both:
            return None
        x, y = (np.stack(side).T for side in zip(*both, strict=True))  # column by column, as they are added up
        return x, y

    @property
    def compared(self) -> list[str]:
        """The names of the columns that are numbers in both tables."""
        return [column.name for column in self.columns if column.compares_numbers]

    def only(self, names: Sequence[str]) -> Pair:
        """Return the pair on some columns."""
        columns = tuple(column for column in self.columns if column.name in names)
        far = None if self.far is None else replace(self.far, heads=self.far.heads.only(names))
        return replace(self, columns=columns, far=far)


@dataclass(frozen=True, eq=False)
class FarPair:
    """Of records that were drawn: how many are like each, before and after; and the classes of the release as rows."""

    before: Ints
    after: Ints
    heads: Pair  # a row for each class; its original values are nobody's


@dataclass(frozen=True, eq=False)
class ByTuple:
    """What became of the distinct tuples of quasi-identifiers: those of a table stand for all of its records."""

    released: Any  # the engine's frame of those that are released, in their order
    rows: NDArray[np.intp]  # their places among all
    sizes: Ints  # how many records each of all stands for
    places: Callable[[], Ints]  # the tuple of each original record, found out when it is asked for


@dataclass(frozen=True, eq=False)
class Tables:
    """The two tables in their engine; `rows` leads each released row to its original one, or says why it cannot.

    Where it is known by tuple instead, no value of a record is looked at. `recorded` are measures by section that were
    taken when they could still be paired.
    """

    engine: Engine
    original: Any
    released: Any
    rows: NDArray[np.intp] | ByTuple | Drawn | str
    recorded: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def counted(self) -> bool:
        """Whether confidential columns are taken as they were counted: tuples, or some records, stand for all."""
        return isinstance(self.rows, ByTuple | Drawn)

    @property
    def drawn(self) -> Drawn | None:
        """The records that stand for all of a far table."""
        return self.rows if isinstance(self.rows, Drawn) else None

    @property
    def looked_at(self) -> Any:
        """The original, or those of its rows that stand for all."""
        return self.rows.original if isinstance(self.rows, Drawn) else self.original

    def paired(self, attributes: Sequence[Attribute]) -> Pair:
        """Return the tables side by side, or say that they cannot be."""
        if isinstance(self.rows, str):
            raise NotApplicable(self.rows)
        if isinstance(self.rows, ByTuple):
            found = pair_up(self.engine, self.rows.released, attributes, self.rows.rows)
            return replace(found, weight=self.rows.sizes)
        if isinstance(self.rows, Drawn):
            return self._drawn(self.rows, attributes)
        return pair_up(self.engine, self.released, attributes, self.rows)

    def _drawn(self, rows: Drawn, attributes: Sequence[Attribute]) -> Pair:
        """Return the records that were drawn side by side, beside the classes of the release."""
        found, classes = pair_up(self.engine, rows.released, attributes, rows.rows), len(rows.sizes)
        anybody = [attribute.take(np.zeros(classes, np.intp)) for attribute in attributes]
        heads = replace(pair_up(self.engine, rows.classes, anybody, np.arange(classes)), weight=rows.sizes)
        return replace(found, weight=rows.weight, far=FarPair(rows.before, rows.after, heads))

    def unpaired(self, attributes: Sequence[Attribute]) -> Pair:
        """Return the tables side by side, paired if they can be, else in any order: each is right by itself."""
        if not isinstance(self.rows, str):
            return self.paired(attributes)
        released, before = self.engine.schema(self.released).rows, records_of(attributes)
        if released > before:
            raise NotApplicable("the release has more rows than the original")
        return pair_up(self.engine, self.released, attributes, np.arange(released))


def pair_up(engine: Engine, released: Any, attributes: Sequence[Attribute], rows: NDArray[np.intp]) -> Pair:
    """Read the released columns and put them beside the original ones."""
    schema = engine.schema(released)
    records = records_of(attributes)
    kept = np.zeros(records, np.bool_)
    kept[rows] = True
    readable = {a.bound.name: _readable(a, schema[a.bound.name]) for a in attributes}
    table = engine.collect(released, readable)
    columns = []
    for attribute in attributes:
        column = table.column(attribute.bound.name)
        if readable[attribute.bound.name] is not None:
            numbers = np.full(records, np.nan)
            numbers[rows] = column.to_numpy(zero_copy_only=False).astype(np.float64)
            columns.append(PairedColumn(attribute, kept, numbers))
        else:
            columns.append(_labelled(attribute, column, kept, rows))
    return Pair(tuple(columns), kept)


def stacked(one: Pair, other: Pair) -> Pair:
    """Return the rows of two pairs, one after the other; those of the first count for nobody."""
    assert other.weight is not None  # noqa: S101  how many each was drawn for
    columns = tuple(_stacked(*both) for both in zip(one.columns, other.columns, strict=True))
    weight = np.concatenate([np.zeros(len(one.kept), np.int64), other.weight])
    return Pair(columns, np.concatenate([one.kept, other.kept]), weight)


def _stacked(one: PairedColumn, other: PairedColumn) -> PairedColumn:
    rows = np.concatenate([np.zeros(len(one.kept), np.intp), np.arange(len(other.kept))])
    attribute, kept = other.attribute.take(rows), np.concatenate([one.kept, other.kept])
    if one.numbers is not None and other.numbers is not None:
        return PairedColumn(attribute, kept, np.concatenate([one.numbers, other.numbers]))
    assert one.place is not None and other.place is not None  # noqa: S101, PT018  both are labels
    number = {label: place for place, label in enumerate(dict.fromkeys([*one.labels, *other.labels]))}
    places = [np.array([*map(number.get, c.labels), GONE, -1], np.int32)[c.place] for c in (one, other)]
    return PairedColumn(attribute, kept, None, tuple(number), np.concatenate(places))


def _readable(attribute: Attribute, released: Column) -> Column | None:
    """Return the released column where it still is what it was, numbers or dates: a year is no date of its own."""
    if not isinstance(attribute, Measured):
        return None
    same = released.storage.kind is attribute.bound.kind or bool(released.date_format)
    return released if same else None


def _labelled(attribute: Attribute, column: Any, kept: NDArray[np.bool_], rows: NDArray[np.intp]) -> PairedColumn:
    encoded = column.combine_chunks().dictionary_encode()
    place = np.full(len(kept), GONE, np.int32)
    place[rows] = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    labels = tuple(encoded.dictionary.to_pylist())
    return PairedColumn(attribute, kept, None, labels, place)
