"""A recoding: what to do to each column and each row of a table, as a value that an engine carries out.

Rows are led to their class by `labels` (-1: the row is left out). A column is kept as it is, dropped, or replaced by
the value of the row's class. Whatever method made it, a release is the table after one recoding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

LEFT_OUT = -1


@dataclass(frozen=True)
class Keep:
    """Release the column as it is."""


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


Treatment: TypeAlias = Keep | Drop | Replace


@dataclass(frozen=True, eq=False)
class Recoding:
    """A class for each row and a treatment for each column."""

    labels: NDArray[np.int32]
    columns: Mapping[str, Treatment]

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Which rows are released."""
        return np.asarray(self.labels != LEFT_OUT)
