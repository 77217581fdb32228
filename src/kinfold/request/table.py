"""The table of a request: its distinct tuples as the engine counts them, or its records as arrays, when asked for.

Generalization asks for tuples and never for records. Nothing is read before it is asked for, and once at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from kinfold.models.terms import Terms
from kinfold.request.binding import BoundPolicy
from kinfold.request.encoding import Attribute, encode
from kinfold.request.terms import confidential_values, unit_values
from kinfold.rows.engines import Engine
from kinfold.rows.schema import Role
from kinfold.rows.tally import Tally


@dataclass(frozen=True, eq=False)
class Tuples:
    """Distinct tuples of quasi-identifiers, by text: encoded, counted with spreads, and as the engine has them."""

    attributes: tuple[Attribute, ...]
    tally: Tally
    frame: Any


@dataclass(frozen=True, eq=False)
class Table:
    """A table in an engine, with the policy and the terms that say what its columns are."""

    engine: Engine
    frame: Any
    policy: BoundPolicy
    terms: Terms
    came: Any = None  # the rows as edit rules are counted on them, where that is not `frame`

    @cached_property
    def tuples(self) -> Tuples:
        """The distinct tuples of the quasi-identifiers."""
        columns = self.policy.of(Role.QUASI)
        found = self.engine.distinct(self.frame, [column.name for column in columns])
        return Tuples(encode(self.engine, found, columns), self._tally(), found)

    @cached_property
    def attributes(self) -> tuple[Attribute, ...]:
        """The quasi-identifiers of every record."""
        return encode(self.engine, self.frame, self.policy.of(Role.QUASI))

    def described(self, by_tuple: bool) -> tuple[Attribute, ...]:
        """The quasi-identifiers of every tuple, or of every record."""
        return self.tuples.attributes if by_tuple else self.attributes

    @cached_property
    def confidential(self) -> Mapping[str, NDArray[Any]]:
        """What the models protect, of every record."""
        return confidential_values(self.engine, self.frame, self.terms)

    @cached_property
    def unit(self) -> NDArray[Any] | None:
        """Whose each record is, where people are counted."""
        return unit_values(self.engine, self.frame, self.policy)

    def _tally(self) -> Tally:
        columns = self.terms.confidential
        tally = self.engine.tally(self.frame, self.terms.quasi, {c.name: c.reading for c in columns})
        return replace(tally, spreads={c.name: c.arranged(tally.spreads[c.name]) for c in columns})
