"""A task and its plan: what a method is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.models import Model
from kinfold.progress import Progress, silent
from kinfold.request.binding import BoundPolicy
from kinfold.request.encoding import Attribute
from kinfold.request.table import Table, Tuples
from kinfold.rows.recoding import Recoding

# Given the level of each attribute and how many records still have outliers, the attribute to generalize next, or None.
Ask: TypeAlias = Callable[[Mapping[str, int], int], str | None]


@dataclass(frozen=True, eq=False)
class Records:
    """Some records as arrays: quasi-identifiers, confidential columns, and, where people are counted, whose each is."""

    attributes: Sequence[Attribute]
    confidential: Mapping[str, NDArray[Any]]
    unit: NDArray[Any] | None = None


@dataclass(frozen=True, eq=False)
class Task:
    """The policy, the models to keep, and the table, or some of its records, to keep them on."""

    policy: BoundPolicy
    models: Sequence[Model]
    table: Table | Records
    progress: Progress = silent
    ask: Ask | None = None  # whom to ask for the data holder's choices (mu-argus)

    @property
    def attributes(self) -> Sequence[Attribute]:
        """The quasi-identifiers of every record."""
        return self.table.attributes

    @property
    def confidential(self) -> Mapping[str, NDArray[Any]]:
        """What the models protect, of every record."""
        return self.table.confidential

    @property
    def unit(self) -> NDArray[Any] | None:
        """Whose each record is, where people are counted."""
        return self.table.unit

    @property
    def tuples(self) -> Tuples:
        """The distinct tuples of the table, as its engine counts them."""
        assert isinstance(self.table, Table)  # noqa: S101  asked of whole tables only
        return self.table.tuples

    @property
    def k(self) -> int:
        """The size that every class must have."""
        return self.policy.request.privacy.k

    def take(self, rows: NDArray[np.intp]) -> Task:
        """Return the task over some of the records."""
        attributes = [attribute.take(rows) for attribute in self.attributes]
        confidential = {name: values[rows] for name, values in self.confidential.items()}
        unit = None if self.unit is None else self.unit[rows]
        return replace(self, table=Records(attributes, confidential, unit))


@dataclass(frozen=True, eq=False)
class Plan:
    """A recoding, the method that made it, why that one, and what there is to say."""

    recoding: Recoding
    method: str
    reason: str
    notes: tuple[str, ...] = ()
    repaired: int = 0  # classes that missed a promise and were mended
    start: str | None = None  # where refinement began
    steps: int | None = None  # of refinement
    gap: float | None = None  # proved: the loss lies at most this share of itself above the least possible
