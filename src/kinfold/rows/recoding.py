"""A recoding: what to do to each column and each row of a table, as a value that an engine carries out.

Rows are led to their class by `labels` (-1: left out), one for each row, or one for each distinct tuple of the quasi-
identifiers that an engine counted; or the labels of rows are where the rows are, and the engine alone knows them. A
column is kept as it is, dropped, or replaced by the value of the row's class.
Whatever method made it, a release is the table after one recoding.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

LEFT_OUT = -1


@dataclass(frozen=True)
class Keep:
    """Release the column as it is, but `quotes`: 1 puts an apostrophe before texts like formulas, -1 takes it away."""

    quotes: int = 0


@dataclass(frozen=True)
class Drop:
    """Leave the column out."""


@dataclass(frozen=True, eq=False)
class Replace:
    """Write the value of the row's class: an Arrow array with one value a class.

    `as_stored` values go back into the type that the column had; others (generalized labels, averages with decimals)
    bring their own.
    """

    values: Any
    as_stored: bool = True
    quotes: int = 0  # as in Keep


Treatment: TypeAlias = Keep | Drop | Replace


@dataclass(frozen=True, eq=False)
class Recoding:
    """A class for each row, or for each of the engine's distinct `tuples`, and a treatment for each column."""

    labels: NDArray[np.int32]
    columns: Mapping[str, Treatment]
    tuples: Any = None  # the engine's frame of them
    held: Any = None  # the engine's frame of the labels of rows, where it holds them: then `labels` is empty

    def quoted(self, quotes: int = 1) -> Recoding:
        """Return the recoding that also puts an apostrophe before every text that looks like a formula, or 0: none."""
        columns = {name: t if isinstance(t, Drop) else replace(t, quotes=quotes) for name, t in self.columns.items()}
        return replace(self, columns=columns)

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Which rows, or tuples, are released."""
        return np.asarray(self.labels != LEFT_OUT)


def without(dropped: Collection[str], names: Sequence[str], rows: int) -> Recoding:
    """Return the recoding that leaves a table as it is but for some columns."""
    return Recoding(np.zeros(rows, np.int32), {name: Drop() if name in dropped else Keep() for name in names})


def unquoting(names: Sequence[str], rows: int) -> Recoding:
    """Return the recoding that leaves a table as it is but for the apostrophes before formulas."""
    return Recoding(np.zeros(rows, np.int32), {name: Keep(quotes=-1) for name in names})
