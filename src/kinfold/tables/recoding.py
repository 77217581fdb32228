"""Recodings: what to do with each column and each row of a table, as a value that an engine carries out.

Before the method runs, single values of a column can be recoded:

    ValueMap       replaces each value of a map, by a missing value where the new text is empty; others stay
    ValueLimits    sets values at or above `top` to `top` and values at or below `bottom` to `bottom`, and rounds those
                   between to the nearest multiple of `step` (halves away from zero), within `bottom` and `top`

A value that does not change keeps its text. Missing values stay missing.

A `Recoding` is the result of every method; a release is the table after one recoding. `labels` assign a class (-1: the
row is dropped) to each row, or to each distinct tuple of the quasi-identifiers. If the engine holds the labels of the
rows itself, `labels` is empty. A column is kept, dropped, or replaced by the value of the row's class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class ValueMap:
    """The new text of each value; an empty text is a missing value."""

    names: Mapping[str, str]


@dataclass(frozen=True)
class ValueLimits:
    """Limits and a step for numbers; the limits of dates are ISO texts, without a step."""

    bottom: float | str | None = None
    top: float | str | None = None
    step: float | None = None


ValueRecoding: TypeAlias = ValueMap | ValueLimits


@dataclass(frozen=True, eq=False)
class RecodedValues:
    """A table with recoded values; by column, the number of values that changed and of names that do not occur."""

    frame: Any
    changed: Mapping[str, int]
    unused_names: Mapping[str, int] = field(default_factory=dict)
    as_stored: Mapping[str, bool] = field(default_factory=dict)  # whether the new values fit the old type of the column


def count_decimals(number: float) -> int:
    """Return the number of decimals of a number.

    >>> count_decimals(1000.0), count_decimals(0.25)
    (0, 2)
    """
    return max(0, -int(Decimal(repr(number)).normalize().as_tuple().exponent))


NO_CLASS = -1  # label of a row that is dropped


@dataclass(frozen=True)
class Keep:
    """Release the column unchanged."""


@dataclass(frozen=True)
class Drop:
    """Do not release the column."""


@dataclass(frozen=True, eq=False)
class Replace:
    """Replace each value by the value of the row's class, from an Arrow array with one value for each class.

    `as_stored` values are converted back to the type of the column; others (generalized labels, averages with decimals)
    keep their own type.
    """

    values: Any
    as_stored: bool = True


Treatment: TypeAlias = Keep | Drop | Replace


@dataclass(frozen=True, eq=False)
class Recoding:
    """A class for each row, or for each of the engine's distinct `tuples`, and a treatment for each column."""

    labels: NDArray[np.int32]
    columns: Mapping[str, Treatment]
    tuples: Any = None  # the engine's frame of tuples
    engine_labels: Any = None  # the engine's frame of the labels of rows, if it holds them; `labels` is then empty

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Marks of the rows, or tuples, that are released."""
        return np.asarray(self.labels != NO_CLASS)


def encode_dictionary(column: Any) -> tuple[NDArray[np.int32], Any]:
    """Return the code of each value of an Arrow column, -1 for null, and the array of its distinct values."""
    encoded = (column.combine_chunks() if hasattr(column, "combine_chunks") else column).dictionary_encode()
    return encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False), encoded.dictionary


def number_equal_classes(columns: Sequence[Any]) -> NDArray[np.int32]:
    """Number classes by their released values, given as one Arrow column for each attribute.

    >>> import pyarrow as pa
    >>> number_equal_classes([pa.array([1, 1, 2]), pa.array(["a", "a", None])]).tolist()
    [0, 0, 1]
    """
    number = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        code = encode_dictionary(column)[0].astype(np.int64)
        number = np.unique(number * (code.max() + 2) + code + 1, return_inverse=True)[1]
    return number.astype(np.int32)
