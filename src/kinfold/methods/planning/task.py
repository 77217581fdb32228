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
from kinfold.rows.recoding import Recoding

# Given the level of each attribute and how many records still have outliers, the attribute to generalize next, or None.
Ask: TypeAlias = Callable[[Mapping[str, int], int], str | None]


@dataclass(frozen=True, eq=False)
class Task:
    """Encoded quasi-identifiers, the policy, the models to keep and the confidential columns that they speak of."""

    attributes: Sequence[Attribute]
    policy: BoundPolicy
    models: Sequence[Model]
    confidential: Mapping[str, NDArray[Any]]
    unit: NDArray[Any] | None = None  # whose row it is, where people are counted
    progress: Progress = silent
    ask: Ask | None = None  # whom to ask for the data holder's choices (mu-argus)

    @property
    def k(self) -> int:
        """The size that every class must have."""
        return self.policy.request.privacy.k

    def take(self, rows: NDArray[np.intp]) -> Task:
        """Return the task over some of the records."""
        attributes = [attribute.take(rows) for attribute in self.attributes]
        confidential = {name: values[rows] for name, values in self.confidential.items()}
        unit = None if self.unit is None else self.unit[rows]
        return replace(self, attributes=attributes, confidential=confidential, unit=unit)


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
