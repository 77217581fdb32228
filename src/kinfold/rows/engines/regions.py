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
    """What is made of a region: the class of each of its rows, from 0 up, and whatever else there is to say."""

    labels: NDArray[np.int32]
    told: bytes


Asked: TypeAlias = Sequence[Column | ValueCodes]
Route: TypeAlias = Callable[[pa.Table], NDArray[np.int64]]  # the region of each row; below 0 where it is in none
Work: TypeAlias = Callable[[pa.Table, "Listener | None"], Labelling]


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

    def labelled(self, number: Mapping[int, int], work: Work, heard: Listener, kept: RegionShelf) -> LabelledRows:
        """Work on every region, some of which may be one: `number` numbers them anew, from 0 up."""


def named(many: int) -> list[str]:
    """Return the names of the columns that were asked for."""
    return [f"v{i}" for i in range(many)]


def offsets_of(classes: Sequence[int]) -> NDArray[np.int64]:
    """Return the number of the first class of each region."""
    return np.concatenate([[0], np.cumsum(classes)[:-1]]).astype(np.int64)


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

    def labelled(self, number: Mapping[int, int], work: Work, heard: Listener, kept: RegionShelf) -> LabelledRows:
        """Work on one region after the other."""
        known = np.array(sorted(number), np.int64)
        fresh = np.array([number[region] for region in known.tolist()], np.int64)
        found = np.where(self._region < 0, -1, fresh[np.searchsorted(known, np.maximum(self._region, known[0]))])
        labels, told, past = np.full(len(found), LEFT_OUT, np.int32), [], 0
        for region in range(int(fresh.max()) + 1):
            rows = np.flatnonzero(found == region)
            share = int((labels >= 0).sum()), int((found >= 0).sum())
            made = self._made(rows, f"region-{region}", work, partial(_told, heard, share), kept)
            labels[rows] = made.labels + past
            told.append(made.told)
            past += int(made.labels.max()) + 1
        return LabelledRows(labels, None, told)

    def _made(self, rows: NDArray[np.intp], name: str, work: Work, heard: Listener, kept: RegionShelf) -> Labelling:
        if (known := kept.get(name)) is not None:
            return Labelling(known["labels"].astype(np.int32), known["told"].tobytes())
        made = work(self._rows.take(pa.array(rows)), heard)
        kept.put(name, labels=made.labels, told=np.frombuffer(made.told, np.uint8))
        return made


def _told(heard: Listener, share: tuple[int, int], *_: int) -> None:
    """Report how far all regions are, whatever one of them says of itself."""
    heard(*share)


def _counted(values: NDArray[np.int64]) -> dict[int, int]:
    found, many = np.unique(values, return_counts=True)
    return dict(zip(found.tolist(), many.tolist(), strict=True))
