"""The rows of a run before and after, for a page: filtered, sorted, and by class.

A run keeps the released rows in the order of the original (`released.csv`), and the class and the risk of each record
(`records.npz`). Both sides are compared as texts, as the two files have them. They show the original: they are private.

Two columns are compared by contingency tables, quantiles and their correlation. Columns of numbers are cut at the
quintiles of the original, so that both sides have the same bins. Other columns have their most frequent values on each
side; the rest is one row. Of one column, the shift of its distribution is measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kinfold.pipeline import open_engine
from kinfold.release.release import Release
from kinfold.release.report.facts import Bins, Shares
from kinfold.tables.engine import Engine
from kinfold.tables.recoding import NO_CLASS
from kinfold.tables.source_form import SourceForm

Ints: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

MAX_CELLS_SHOWN = 10_000_000  # of a side; the texts of both are in memory
MAX_CELL_TEXT = 200  # characters
STAR = "*"
FILTERS = ("all", "changed", "suppressed", "cells", "risk")
RECORDS_FILE, RELEASED_FILE = "records.npz", "released.csv"


def write_rows(release: Release, folder: Path) -> None:
    """Write what a page needs to show the rows of a release next to those of the original."""
    if release.policy.rows * len(release.schema.names) > MAX_CELLS_SHOWN:
        return
    kept = release.recoding.kept
    labels = np.full(len(kept), NO_CLASS, np.int64)
    labels[kept] = release.labels
    risks = release.measures.risk_by_record
    sizes = np.bincount(release.labels) if kept.any() else np.zeros(0, np.int64)
    after = np.full(len(kept), np.nan)
    after[kept] = 1 / sizes[release.labels] if risks is None else risks.after[kept]
    quasi = np.array(release.terms.quasi, np.str_)
    np.savez(folder / RECORDS_FILE, labels=labels, risk=after, quasi=quasi)
    release.engine.write(release.released, folder / RELEASED_FILE, release.output_schema, ordered=False)


@dataclass(frozen=True, eq=False)
class ReleaseRows:
    """The texts of both sides, and the class and the risk of each record."""

    before: pa.Table
    after: pa.Table  # of the released records
    labels: Ints  # NO_CLASS if a record is not released
    risk: NDArray[np.float64]  # not a number if it is not released
    quasi: tuple[str, ...]

    @classmethod
    def load(cls, before: pa.Table, form: SourceForm, folder: Path) -> ReleaseRows:
        """Load the rows of a run; `before` are the texts of the original, `form` is how it is written."""
        with np.load(folder / RECORDS_FILE) as arrays:
            labels, risk, quasi = arrays["labels"], arrays["risk"], tuple(map(str, arrays["quasi"]))
        with open_engine() as engine:
            frame = engine.read(folder / RELEASED_FILE, (), form.for_other_file())
            after = collect_texts(engine, frame)
        return cls(before, after, labels, risk, quasi)

    @cached_property
    def kept(self) -> Mask:
        """Whether each record is released."""
        return np.asarray(self.labels != NO_CLASS)

    @cached_property
    def place(self) -> pa.Array:
        """The row of each record in the release; null if it is not released."""
        return pa.array(np.cumsum(self.kept) - 1, mask=~self.kept)

    @cached_property
    def sizes(self) -> Ints:
        """The number of records in each class."""
        return np.bincount(self.labels[self.kept])

    @cached_property
    def changed(self) -> Mapping[str, Mask]:
        """The released records whose cell differs, for each released column."""
        return {name: self._differ(name) for name in self.after.column_names if name in self.before.column_names}

    def _differ(self, name: str) -> Mask:
        before, after = self.before.column(name), self.after.column(name).take(self.place)
        equal = pc.fill_null(pc.equal(before, after), False)
        both_null = pc.and_(pc.is_null(before), pc.is_null(after))
        return np.asarray(pc.invert(pc.or_(equal, both_null)), np.bool_) & self.kept

    @cached_property
    def suppressed_cells(self) -> Mapping[str, Mask]:
        """The released records whose quasi-identifier is starred or blank, but was filled in the original."""
        return {name: self.changed[name] & self._is_suppressed(name) for name in self.quasi if name in self.changed}

    def _is_suppressed(self, name: str) -> Mask:
        after = self.after.column(name).take(self.place)
        return np.asarray(pc.fill_null(pc.equal(after, STAR), True), np.bool_)

    @cached_property
    def counts(self) -> dict[str, int]:
        """The number of records that each filter keeps."""
        return {show: len(self.select(show, None, None, "record", down=False)) for show in FILTERS}

    @property
    def released_quasi(self) -> tuple[str, ...]:
        """The quasi-identifiers that the release has."""
        return tuple(name for name in self.quasi if name in self.after.column_names)

    def describe_columns(self) -> list[dict[str, Any]]:
        """Return every column of the original: whether it is released, and its changed and suppressed cells."""
        return [
            {
                "name": name,
                "released": name in self.after.column_names,
                "changed": int(self.changed[name].sum()) if name in self.changed else 0,
                "cells": int(self.suppressed_cells[name].sum()) if name in self.suppressed_cells else 0,
            }
            for name in self.before.column_names
        ]

    def select(self, show: str, column: str | None, group: int | None, order: str, *, down: bool) -> Ints:
        """Return the records that a filter keeps, in an order; ties keep the order of the original."""
        mask = np.ones(len(self.labels), np.bool_)
        masks = {"changed": self.changed, "cells": self.suppressed_cells}.get(show)
        if masks is not None:
            mask = masks.get(column, ~mask) if column else _any_of(masks, len(mask))
        elif show == "suppressed":
            mask = ~self.kept
        elif show == "risk":
            mask = self.kept & (self.risk >= np.nanmax(self.risk, initial=0.0))
        if group is not None:
            mask = mask & (self.labels == group)
        records = np.flatnonzero(mask)
        keys = {"risk": np.nan_to_num(self.risk, nan=-1.0), "class": self.labels}.get(order)
        if keys is None:
            keys = self._rank(order) if order in self.before.column_names else np.arange(len(self.labels))
        values = keys[records]
        return records[np.argsort(-values if down else values, kind="stable")]

    def _rank(self, name: str) -> Ints:
        """Return the rank of each record by the original value of a column: as a number if every value is one."""
        texts = self.before.column(name).combine_chunks()
        try:
            values: Any = texts.cast(pa.float64())
        except pa.ArrowInvalid:
            values = texts
        return np.asarray(pc.rank(values, sort_keys="ascending", tiebreaker="dense"), np.int64)

    def describe_page(self, records: Ints) -> list[dict[str, Any]]:
        """Return records with their cells before and after; a column that is not released has null after."""
        chosen = pa.array(records)
        before = [_cut(column.take(chosen)) for column in self.before.columns]
        places = self.place.take(chosen)
        after = {name: _cut(self.after.column(name).take(places)) for name in self.after.column_names}
        empty = [None] * len(records)
        sides = [after.get(name, empty) for name in self.before.column_names]
        return [
            {
                "record": int(record),
                "class": int(self.labels[record]) if self.kept[record] else None,
                "size": int(self.sizes[self.labels[record]]) if self.kept[record] else None,
                "risk": float(self.risk[record]) if self.kept[record] else None,
                "before": [column[row] for column in before],
                "after": [column[row] for column in sides],
                "changed": [
                    bool(self.changed[name][record]) if name in self.changed else None
                    for name in self.before.column_names
                ],
            }
            for row, record in enumerate(records.tolist())
        ]

    def get_sides(self, name: str) -> tuple[Any, Any]:
        """Return the texts of a column in the original and in the release."""
        return self.before.column(name), self.after.column(name)

    def describe_classes(self, order: str, start: int, count: int, *, down: bool) -> list[dict[str, Any]]:
        """Return classes with their size, their risk, and the released quasi-identifiers of their first record."""
        first = np.full(len(self.sizes), -1)
        records = np.flatnonzero(self.kept)[::-1]
        first[self.labels[records]] = records
        risk = np.zeros(len(self.sizes))
        np.maximum.at(risk, self.labels[self.kept], self.risk[self.kept])
        keys = {"risk": risk, "size": self.sizes}.get(order, np.arange(len(self.sizes)))
        chosen = np.argsort(-keys if down else keys, kind="stable")[start : start + count]
        places = self.place.take(pa.array(first[chosen]))
        values = [_cut(self.after.column(name).take(places)) for name in self.released_quasi]
        return [
            {
                "class": int(group),
                "size": int(self.sizes[group]),
                "risk": float(risk[group]),
                "values": [column[row] for column in values],
            }
            for row, group in enumerate(chosen.tolist())
        ]


def collect_texts(engine: Engine, frame: Any) -> pa.Table:
    """Return every column as texts."""
    names: dict[str, None] = dict.fromkeys(frame.names)
    return engine.collect(frame, names)


def _any_of(masks: Mapping[str, Mask], count: int) -> Mask:
    return np.asarray(np.logical_or.reduce([np.zeros(count, np.bool_), *masks.values()]), np.bool_)


def _cut(column: Any) -> Sequence[str | None]:
    return pc.utf8_slice_codeunits(column.cast(pa.string()), 0, MAX_CELL_TEXT).to_pylist()  # type: ignore[no-any-return]


Floats: TypeAlias = NDArray[np.float64]

MAX_COMPARED_VALUES = 8  # of a column of categories, on each side
MAX_LABEL_LENGTH = 60  # characters
LEVELS = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
CUTS = (0.2, 0.4, 0.6, 0.8)


class CodedSide(NamedTuple):
    """One side of a column: the label of each record, by number."""

    labels: tuple[str, ...]
    codes: Ints


def compare_pair(one: Sequence[Any], other: Sequence[Any]) -> dict[str, Any]:
    """Return two columns before and after; each column is a pair of texts: original, released."""
    numbers = [_read_numbers(column) for column in (one, other)]
    coded = [_code_column(column, sides) for column, sides in zip((one, other), numbers, strict=True)]
    tables = [_count(coded[0][side], coded[1][side]) for side in (0, 1)]
    comparable = all(column[0].labels == column[1].labels for column in coded)
    return {
        "tables": [
            {"rows": coded[0][side].labels, "columns": coded[1][side].labels, "counts": tables[side].tolist()}
            for side in (0, 1)
        ],
        "moved": _measure_distance(*tables) if comparable else None,
        "quantiles": [None if sides is None else [_list_quantiles(side) for side in sides] for sides in numbers],
        "correlation": [_correlate(numbers[0][side], numbers[1][side]) for side in (0, 1)]
        if numbers[0] is not None and numbers[1] is not None
        else None,
    }


def _read_numbers(column: Sequence[Any]) -> tuple[Floats, Floats] | None:
    """Return both sides as numbers, with nan for missing values; None if a side is not of numbers."""
    try:
        sides = [side.combine_chunks().cast(pa.float64()) for side in column]
    except pa.ArrowInvalid:
        return None
    before, after = (np.asarray(side.to_numpy(zero_copy_only=False), np.float64) for side in sides)
    return before, after


def _code_column(column: Sequence[Any], numbers: tuple[Floats, Floats] | None) -> tuple[CodedSide, CodedSide]:
    if numbers is not None and len(np.unique(numbers[0])) > MAX_COMPARED_VALUES:
        cuts = np.unique(np.nanquantile(numbers[0], CUTS))
        names = [f"to {cut:g}" for cut in cuts]
        missing = ("missing",) if any(np.isnan(side).any() for side in numbers) else ()
        labels = (*names, f"above {cuts[-1]:g}", *missing)
        codes = [np.where(np.isnan(side), len(cuts) + 1, np.searchsorted(cuts, side)) for side in numbers]
        return CodedSide(labels, codes[0]), CodedSide(labels, codes[1])
    before, after = (_code_texts(side) for side in column)
    return before, after


def _code_texts(side: Any) -> CodedSide:
    """Number the most frequent texts, in their order as texts; the others have the last number."""
    encoded = pc.fill_null(side, "missing").combine_chunks().dictionary_encode()
    indices = np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int64)
    texts = encoded.dictionary.to_pylist()
    most = sorted(np.argsort(-np.bincount(indices, minlength=len(texts)), kind="stable")[:MAX_COMPARED_VALUES].tolist())
    most.sort(key=texts.__getitem__)
    number = np.full(len(texts), len(most), np.int64)
    number[most] = np.arange(len(most))
    rest = ("others",) if len(texts) > len(most) else ()
    return CodedSide((*(texts[index][:MAX_LABEL_LENGTH] for index in most), *rest), number[indices])


def _count(one: CodedSide, other: CodedSide) -> Ints:
    counts = np.zeros((len(one.labels), len(other.labels)), np.int64)
    np.add.at(counts, (one.codes, other.codes), 1)
    return counts


def _measure_distance(before: Ints, after: Ints) -> float | None:
    """Return the share of the records that would have to be in another cell."""
    if not before.sum() or not after.sum():
        return None
    return float(np.abs(before / before.sum() - after / after.sum()).sum() / 2)


def _list_quantiles(side: Floats) -> list[float] | None:
    known = side[~np.isnan(side)]
    return [float(each) for each in np.quantile(known, LEVELS)] if len(known) else None


def _correlate(one: Floats, other: Floats) -> float | None:
    known = ~np.isnan(one) & ~np.isnan(other)
    if known.sum() < 2 or not one[known].std() or not other[known].std():
        return None
    return float(np.corrcoef(one[known], other[known])[0, 1])


def measure_shift(original: Bins | Shares | None, released: Bins | Shares | None) -> float | None:
    """Return the share of the records by which two distributions differ at least; None if they cannot be compared.

    >>> measure_shift(Shares(("f", "m"), (6, 4)), Shares(("f", "m"), (9, 1)))
    0.3
    """
    if original is None or released is None or type(original) is not type(released):
        return None
    parts = [_list_parts(side) for side in (original, released)]
    rest = original.rest + released.rest if isinstance(original, Shares) and isinstance(released, Shares) else 0
    names = parts[0].keys() & parts[1].keys() if rest else parts[0].keys() | parts[1].keys()  # else in the rest of one
    totals = [sum(each.values()) for each in parts]
    if not all(totals):
        return None
    shares = [[part.get(name, 0) / total for part, total in zip(parts, totals, strict=True)] for name in names]
    unlisted = abs(sum(one - other for one, other in shares))
    return round((sum(abs(one - other) for one, other in shares) + unlisted) / 2, 6)


def _list_parts(side: Bins | Shares) -> dict[str | int, int]:
    """Return the number of records by label or bin; -1 are missing values, -2 labels that are not listed."""
    if isinstance(side, Bins):
        return {**dict(enumerate(side.counts)), -1: side.missing}
    return {**dict(zip(side.labels, side.counts, strict=True)), -1: side.missing, -2: side.rest}
