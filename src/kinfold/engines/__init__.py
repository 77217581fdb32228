"""Engines: where rows live. The seam is a handful of verbs; everything above speaks to any engine through them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from kinfold.recoding import Recoding
from kinfold.schema import Column, Schema
from kinfold.tally import Tally


class Engine(Protocol):
    """What an engine can do. A frame is whatever it hands out; only the same engine looks inside."""

    def read(self, source: Any) -> Any:
        """Take in a file or an Arrow table; rows keep their order."""

    def schema(self, frame: Any) -> Schema:
        """Say what every column is."""

    def tally(self, frame: Any, by: Sequence[str], of: Mapping[str, Column | None]) -> Tally:
        """Count classes and, within them, confidential values: as numbers where a `Column` says how, else as text."""

    def collect(self, frame: Any, columns: Mapping[str, Column | None]) -> Any:
        """Return columns as an Arrow table: as numbers where a `Column` says how to read them, else as text."""

    def rows(self, frame: Any) -> Any:
        """Return every column as it is stored, as an Arrow table."""

    def apply(self, frame: Any, recoding: Recoding, schema: Schema) -> Any:
        """Carry out a recoding."""

    def write(self, frame: Any, path: Path, schema: Schema, *, ordered: bool) -> None:
        """Write a file, in the format of its ending."""

    def close(self) -> None:
        """Forget every row and remove every temporary file."""
