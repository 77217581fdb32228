"""Regions: parts of a table that rows find by their own values, and that are worked on wherever their rows are.

What is handed to whoever finds a region, or works on one, is an Arrow table: `place`, where each row stood in the
table, and `v0`, `v1`, ... doubles, one for each column that was asked for: numbers, or codes of values. Rows come in
the order of their places. So it is the same on any engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinfold.rows.recoding import LEFT_OUT
from kinfold.rows.schema import Column

Listener: TypeAlias = Callable[[int, int], None]

AT_ONCE = 1_000_000  # rows that find their regions at a time


@dataclass(frozen=True, eq=False)
class ValueCodes:
    """A code for each distinct value of a column: `values` is the engine's frame of them, as `distinct` gives it."""

    name: str
    values: Any
    codes: NDArray[np.integer[Any]]


class Labelling(NamedTuple):
    """What is made of a region: the class of each of its rows, from 0 up, and whatever else there is to say.

    Classes that are to be looked at once more, with those of other regions, are numbered after all others, from
    `classes` on; `seam` says of each row with which.
    """

    labels: NDArray[np.int32]
    classes: int
    told: bytes
    seam: NDArray[np.int64]  # -1: with none


Asked: TypeAlias = Sequence[Column | ValueCodes]
Route: TypeAlias = Callable[[pa.Table], NDArray[np.int64]]  # the region of each row; below 0 where it is in none
Work: TypeAlias = Callable[[pa.Table, "Listener | None"], Labelling]


class RegionAndSeam(NamedTuple):
    """What is done to the rows of a region, and to those at a seam: these come with `number`, of their region."""

    region: Work
    seam: Work  # its rows also have `number` and `label`, those of their region


class RegionShelf(Protocol):
    """Where what was made of a region is kept for a later run."""

    def get(self, name: str) -> Mapping[str, NDArray[Any]] | None:
        """Return what was put under a name, or nothing."""

    def put(self, name: str, **arrays: NDArray[Any]) -> None:
        """Put arrays under a name."""


class LabelledRows(NamedTuple):
    """The class of each row, numbered through all regions, in an array or held by the engine; what regions told."""

    labels: NDArray[np.int32]
    held: Any
    told: list[bytes]


class Regions(Protocol):
    """Rows that know their region."""

    def counts(self) -> dict[int, int]:
        """Return how many rows each region has."""

    def spread(self, asked: int) -> dict[int, int]:
        """Return how many rows that are in a region have each code of a column, by its number among those asked for."""

    def labelled(
        self, number: Mapping[int, int], work: RegionAndSeam, heard: Listener, kept: RegionShelf
    ) -> LabelledRows:
        """Work on every region, some of which may be one: `number` numbers them anew, from 0 up; then at the seams."""


def named(many: int) -> list[str]:
    """Return the names of the columns that were asked for."""
    return [f"v{i}" for i in range(many)]


def offsets_of(classes: Sequence[int]) -> NDArray[np.int64]:
    """Return the number of the first class of each part."""
    return np.concatenate([[0], np.cumsum(classes)]).astype(np.int64)[: len(classes)]


class RegionsHere:
    """Regions of rows that are in this process."""

    def __init__(self, columns: Sequence[NDArray[np.float64]], rows: int, route: Route) -> None:
        held = {"place": np.arange(rows, dtype=np.int64)} | dict(zip(named(len(columns)), columns, strict=True))
        self._rows = pa.table(held)
        parts = [route(self._rows.slice(start, AT_ONCE)) for start in range(0, rows, AT_ONCE)]
        self._region = np.concatenate(parts)

    def counts(self) -> dict[int, int]:
        """Return how many rows each region has."""
        return _counted(self._region[self._region >= 0])

    def spread(self, asked: int) -> dict[int, int]:
        """Return how many rows that are in a region have each code of a column."""
        return _counted(self._rows.column(f"v{asked}").to_numpy()[self._region >= 0].astype(np.int64))

    def labelled(
        self, number: Mapping[int, int], work: RegionAndSeam, heard: Listener, kept: RegionShelf
    ) -> LabelledRows:
        """Work on one region after the other, then on the seams."""
        known = np.array(sorted(number), np.int64)
        fresh = np.array([number[region] for region in known.tolist()], np.int64)
        found = np.where(self._region < 0, -1, fresh[np.searchsorted(known, np.maximum(self._region, known[0]))])
        run = _Run(self._rows, heard, kept)
        seam = run.worked(found, work.region, "region")
        run.worked(seam, work.seam, "seam", {"number": found.astype(np.int32), "label": run.labels.copy()})
        return LabelledRows(run.labels, None, run.told)


class _Run:
    """Labels while they are made, part by part of the rows."""

    def __init__(self, rows: pa.Table, heard: Listener, kept: RegionShelf) -> None:
        self.rows, self.heard, self.kept = rows, heard, kept
        self.labels, self.told, self.past = np.full(rows.num_rows, LEFT_OUT, np.int32), list[bytes](), 0

    def worked(
        self, part: NDArray[np.int64], work: Work, name: str, beside: Mapping[str, NDArray[np.int32]] | None = None
    ) -> NDArray[np.int64]:
        """Work on the rows of every part, and return the seam of each row."""
        seam = np.full(len(part), -1, np.int64)
        order = np.argsort(part, kind="stable")
        order = order[part[order] >= 0]
        done = 0
        for rows in np.split(order, np.flatnonzero(np.diff(part[order])) + 1) if len(order) else []:
            made = self._made(
                rows, f"{name}-{part[rows[0]]}", work, partial(_told, self.heard, (done, len(order))), beside
            )
            stays = made.seam < 0
            self.labels[rows] = np.where(stays, made.labels + self.past, made.labels)
            self.past += made.classes
            self.told.append(made.told)
            seam[rows], done = made.seam, done + len(rows)
        return seam

    def _made(
        self, rows: NDArray[np.intp], name: str, work: Work, heard: Listener, beside: Mapping[str, Any] | None
    ) -> Labelling:
        if (known := self.kept.get(name)) is not None:
            return Labelling(known["labels"], int(known["classes"]), known["told"].tobytes(), known["seam"])
        some = self.rows.take(pa.array(rows))
        for each, values in (beside or {}).items():
            some = some.append_column(each, pa.array(values[rows]))
        made = work(some, heard)
        told, classes = np.frombuffer(made.told, np.uint8), np.array(made.classes)
        self.kept.put(name, labels=made.labels, seam=made.seam, told=told, classes=classes)
        return made


def _told(heard: Listener, share: tuple[int, int], *_: int) -> None:
    """Report how far all regions are, whatever one of them says of itself."""
    heard(*share)


def _counted(values: NDArray[np.int64]) -> dict[int, int]:
    found, many = np.unique(values, return_counts=True)
    return dict(zip(found.tolist(), many.tolist(), strict=True))
