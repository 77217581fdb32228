"""The rows of a run before and after, for a page: filtered, sorted, and by class.

A run keeps the released rows in the order of the original (`released.csv`), and the class and the risk of each record
(`records.npz`). Both sides are compared as texts, as the two files have them. They show the original: they are private.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kinfold.pipeline import open_engine
from kinfold.release.release import Release
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
