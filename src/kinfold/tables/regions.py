"""Regions: parts of a large table that rows find by their own values, and that are processed where their rows are.

A function that routes rows, or processes a region, gets an Arrow table: `place`, the position of each row in the table,
and `v0`, `v1`, ..., a column of doubles for each requested column: numbers, or codes of values. Rows are ordered by
place. So the result is the same on any engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinfold.tables.recoding import NO_CLASS
from kinfold.tables.schema import Column

RegionProgress: TypeAlias = Callable[[int, int], None]

NO_SEAM = -1  # the seam of rows that are at none
ROWS_PER_ROUTE = 1_000_000  # rows that are routed at a time


@dataclass(frozen=True, eq=False)
class ValueCodes:
    """A code for each distinct value of a column; `values` is the engine's frame of them, as `distinct` returns it."""

    name: str
    values: Any
    codes: NDArray[np.integer[Any]]


class Labelling(NamedTuple):
    """The result for a region: the class of each row, from 0 up, and a summary for the caller.

    The numbers from `classes` on are classes to form again together with those of other regions; `seam` says for each
    row with which.
    """

    labels: NDArray[np.int32]
    classes: int
    summary: bytes
    seam: NDArray[np.int64]  # -1: the class is final


RequestedColumns: TypeAlias = Sequence[Column | ValueCodes]
Route: TypeAlias = Callable[[pa.Table], NDArray[np.int64]]  # the region of each row; negative: in no region
RegionWork: TypeAlias = Callable[[pa.Table, "RegionProgress | None"], Labelling]


class RegionAndSeam(NamedTuple):
    """The functions that process the rows of a region, and the rows of a seam."""

    region: RegionWork
    seam: RegionWork  # its rows also have `number` and `label`, those of their region


class CheckpointStore(Protocol):
    """Arrays by name, for a later run. An entry that was not written completely does not exist."""

    def get(self, name: str) -> Mapping[str, NDArray[Any]] | None:
        """Return the arrays of an entry, or None."""

    def put(self, name: str, **arrays: NDArray[Any]) -> None:
        """Store an entry."""


class LabelledRows(NamedTuple):
    """The class of each row, numbered through all regions, in an array or held by the engine; and the summaries."""

    labels: NDArray[np.int32]
    held: Any
    summaries: list[bytes]


class Regions(Protocol):
    """Rows with the number of their region."""

    def counts(self) -> dict[int, int]:
        """Return the number of rows of each region."""

    def count_codes(self, index: int) -> dict[int, int]:
        """Count the rows in regions by their code in a requested column, given by its index."""

    def label(
        self, number: Mapping[int, int], work: RegionAndSeam, progress: RegionProgress, checkpoints: CheckpointStore
    ) -> LabelledRows:
        """Process every region, then every seam; `number` renumbers regions from 0 up, and can join several."""


def value_names(count: int) -> list[str]:
    """Return the names of requested columns."""
    return [f"v{i}" for i in range(count)]


def class_offsets(classes: Sequence[int]) -> NDArray[np.int64]:
    """Return the number of the first class of each part."""
    return np.concatenate([[0], np.cumsum(classes)]).astype(np.int64)[: len(classes)]


class LocalRegions:
    """Regions of rows in this process."""

    def __init__(self, columns: Sequence[NDArray[np.float64]], rows: int, route: Route) -> None:
        places = {"place": np.arange(rows, dtype=np.int64)}
        self._rows = pa.table(places | dict(zip(value_names(len(columns)), columns, strict=True)))
        parts = [route(self._rows.slice(start, ROWS_PER_ROUTE)) for start in range(0, rows, ROWS_PER_ROUTE)]
        self._region = np.concatenate(parts)

    def counts(self) -> dict[int, int]:
        """Return the number of rows of each region."""
        return _count_values(self._region[self._region >= 0])

    def count_codes(self, index: int) -> dict[int, int]:
        """Count the rows in regions by their code in a requested column."""
        return _count_values(self._rows.column(f"v{index}").to_numpy()[self._region >= 0].astype(np.int64))

    def label(
        self, number: Mapping[int, int], work: RegionAndSeam, progress: RegionProgress, checkpoints: CheckpointStore
    ) -> LabelledRows:
        """Process one region after the other, then the seams."""
        old = np.array(sorted(number), np.int64)
        new = np.array([number[region] for region in old.tolist()], np.int64)
        region = np.where(self._region < 0, -1, new[np.searchsorted(old, np.maximum(self._region, old[0]))])
        run = _LabellingRun(self._rows, progress, checkpoints)
        seam = run.process(region, work.region, "region")
        run.process(seam, work.seam, "seam", {"number": region.astype(np.int32), "label": run.labels.copy()})
        return LabelledRows(run.labels, None, run.summaries)


class _LabellingRun:
    """The labels of the rows while parts are processed."""

    def __init__(self, rows: pa.Table, progress: RegionProgress, checkpoints: CheckpointStore) -> None:
        self.rows, self.progress, self.checkpoints = rows, progress, checkpoints
        self.labels, self.summaries, self.classes = np.full(rows.num_rows, NO_CLASS, np.int32), list[bytes](), 0

    def process(
        self,
        part: NDArray[np.int64],
        work: RegionWork,
        name: str,
        columns: Mapping[str, NDArray[np.int32]] | None = None,
    ) -> NDArray[np.int64]:
        """Process the rows of every part, with extra columns, and return the seam of each row."""
        seam = np.full(len(part), -1, np.int64)
        order = np.argsort(part, kind="stable")
        order = order[part[order] >= 0]
        done = 0
        for rows in np.split(order, np.flatnonzero(np.diff(part[order])) + 1) if len(order) else []:
            progress = (done, len(order))  # of all parts
            result = self._process_part(rows, f"{name}-{part[rows[0]]}", work, progress, columns or {})
            final = result.seam < 0
            self.labels[rows] = np.where(final, result.labels + self.classes, result.labels)
            self.classes += result.classes
            self.summaries.append(result.summary)
            seam[rows], done = result.seam, done + len(rows)
        return seam

    def _process_part(
        self, rows: NDArray[np.intp], name: str, work: RegionWork, done: tuple[int, int], columns: Mapping[str, Any]
    ) -> Labelling:
        if (saved := self.checkpoints.get(name)) is not None:
            return Labelling(saved["labels"], int(saved["classes"]), saved["summary"].tobytes(), saved["seam"])
        table = self.rows.take(pa.array(rows))
        for column, values in columns.items():
            table = table.append_column(column, pa.array(values[rows]))
        result = work(table, lambda *_: self.progress(*done))
        summary, classes = np.frombuffer(result.summary, np.uint8), np.array(result.classes)
        self.checkpoints.put(name, labels=result.labels, seam=result.seam, summary=summary, classes=classes)
        return result


def _count_values(values: NDArray[np.int64]) -> dict[int, int]:
    distinct, counts = np.unique(values, return_counts=True)
    return dict(zip(distinct.tolist(), counts.tolist(), strict=True))
