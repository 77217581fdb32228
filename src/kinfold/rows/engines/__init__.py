"""Engines: where rows live. The seam is a handful of verbs; everything above speaks to any engine through them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kinfold.rows.appearance import Appearance, Succession
from kinfold.rows.engines.regions import Asked, Regions, Route
from kinfold.rows.recoding import Recoding
from kinfold.rows.schema import Column, Exactly, Reading, Schema
from kinfold.rows.source_form import PLAIN, Form
from kinfold.rows.tally import Tally
from kinfold.rows.value_recoding import Recoded, ValueRecoding


class NumbersInBoth(NamedTuple):
    """A column that is numbers before and after a recoding, and the mean of those before."""

    before: Column
    after: Column
    mean: float


class Engine(Protocol):
    """What an engine can do. A frame is whatever it hands out; only the same engine looks inside."""

    def read(self, source: Any, missing: Sequence[str] = (), form: Form = PLAIN) -> Any:
        """Take in a file, an Arrow table or rows of a database, in their order. Texts for a missing value become null.

        What a form does not say of a file (its encoding, what stands between two fields) is found out.
        """

    def form(self, frame: Any) -> Form:
        """Return how a table is written: what was declared, and what was found out."""

    def names(self, frame: Any) -> tuple[str, ...]:
        """Return the names of the columns, in order."""

    def checksum(self, frame: Any) -> str | None:
        """Return the SHA-256 of the bytes that were read, or a checksum of rows; None where they were a frame."""

    def schema(self, frame: Any) -> Schema:
        """Say what every column is."""

    def appearances(self, frame: Any, columns: Sequence[Column]) -> dict[str, Appearance]:
        """Say what the values of columns look like, by their names."""

    def succession(self, frame: Any, column: Column) -> Succession:
        """Say how the values of a column follow one another, from the first row to the last."""

    def alone(self, frame: Any, names: Sequence[str]) -> int:
        """Count the rows that no other row is like in all of these columns together."""

    def pairs(self, frame: Any, one: str, other: str) -> tuple[int, int]:
        """Count the pairs of values of two columns that occur, and the values of the first that occur in them."""

    def unmet(self, original: Any, released: Any, pairs: Sequence[tuple[str, str]]) -> list[int]:
        """Count for each pair of columns the released rows whose two texts no row of the original has together."""

    def blanked(self, frame: Any) -> frozenset[str]:
        """Return the columns in which a text stood for a missing value."""

    def recode(self, frame: Any, how: Mapping[str, ValueRecoding], schema: Schema) -> Recoded:
        """Recode single values of some columns, and count what changed."""

    def tally(self, frame: Any, by: Sequence[str], of: Mapping[str, Reading | Column]) -> Tally:
        """Count classes by the text of the key columns, and within them values, in the exact order of their reading.

        A `Column` asks for numbers, as in `collect`.
        """

    def moments(self, frame: Any, columns: Mapping[str, Column]) -> tuple[int, Any, Any]:
        """Return how many records have a number in all of some columns, and their means and covariances (1/n)."""

    def sizes(self, frame: Any, by: Sequence[str]) -> list[tuple[int, int]]:
        """Count the classes of a tally by these columns by how many rows they have: (rows, classes), ascending."""

    def page(self, frame: Any, start: int, many: int) -> list[list[str | None]]:
        """Return some rows as text, from one on in the order in which they came; long texts are cut."""

    def distinct(self, frame: Any, by: Sequence[str]) -> Any:
        """Return a frame with one row for each class of a tally by these columns, in its order."""

    def collect(self, frame: Any, columns: Mapping[str, Column | Reading | Exactly | None]) -> Any:
        """Return columns as an Arrow table.

        A `Column` asks for numbers (doubles; dates as days), a `Reading` for the place of each value in its exact
        order, `Exactly` for values without a loss, nothing for text.
        """

    def split(self, orders: Any, hall: Any) -> Any:
        """Do what is ordered to every bundle of blocks, side by side, and return what is made of each.

        `orders` packs each bundle so that it can travel, and keeps what is made; `hall` has this process's threads.
        """

    def regions(self, frame: Any, asked: Asked, route: Route) -> Regions:
        """Let every row find its region by the columns that are asked for: numbers, or codes of values."""

    def picked(self, frame: Any, places: NDArray[np.int64], recoding: Recoding | None = None) -> tuple[Any, Any]:
        """Return the rows that stood at some places, in order, as a frame; and the numbers of the places that have one.

        Of a table that was recoded they are the places in its source; rows that were left out are not there.
        """

    def like(self, frame: Any, by: Sequence[str], some: Any) -> NDArray[np.int64]:
        """Count the rows that are like each of some rows, which were picked, in all of these columns."""

    def errors(self, original: Any, released: Any, columns: Sequence[NumbersInBoth], recoding: Recoding) -> list[float]:
        """Sum over all rows the squared errors of columns; where no value is released, that of the mean stands for it.

        The release is the original after a recoding, in the same order.
        """

    def rows(self, frame: Any, schema: Schema | None = None) -> Any:
        """Return every column as an Arrow table: as it is stored, or in the type that its values have by a schema."""

    def native(self, frame: Any) -> Any:
        """Return every row as a frame of the engine's own kind: Arrow, or a frame of Spark."""

    def apply(self, frame: Any, recoding: Recoding, schema: Schema) -> Any:
        """Carry out a recoding: a join, by place or by tuple."""

    def by_row(self, frame: Any, recoding: Recoding) -> Recoding:
        """Return the recoding with a label for each row of the frame."""

    def separator(self, frame: Any) -> str:
        """Return what stands between two fields where the table is written as CSV."""

    def write(self, frame: Any, path: Path, schema: Schema, *, ordered: bool) -> None:
        """Write a file, in the format of its ending."""

    def hand_out(self, frame: Any, schema: Schema, fitted: Callable[[str], str], *, ordered: bool) -> Any:
        """Hand out every row, a batch at a time: `fitted` names the type in which one of the engine's is taken."""

    def forget_counts(self) -> None:
        """Let go of what was counted and can be counted again: somebody else needs the memory."""

    def close(self) -> None:
        """Forget every row and remove every temporary file."""
