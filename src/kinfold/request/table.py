"""The table of a request: its distinct tuples as the engine counts them, or its records as arrays, when asked for.

Generalization asks for tuples and never for records. Nothing is read before it is asked for, and once at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from kinfold.models.terms import Confidential, Terms
from kinfold.request.binding import BoundPolicy
from kinfold.request.encoding import Attribute, encode
from kinfold.request.terms import confidential_values, unit_values
from kinfold.rows.engines import Engine
from kinfold.rows.schema import Role
from kinfold.rows.tally import Spread, Tally


@dataclass(frozen=True, eq=False)
class Tuples:
    """Distinct tuples of quasi-identifiers, by text: encoded, counted with spreads, and as the engine has them."""

    attributes: tuple[Attribute, ...]
    tally: Tally
    frame: Any
    forget: Callable[[], None] = lambda: None  # what was counted; it is counted again when asked for


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
        return Tuples(encode(self.engine, found, columns), self._tally(), found, self.engine.forget_counts)

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
        counted = self.engine.tally(self.frame, self.terms.quasi, {})
        return replace(counted, spreads=Spreads(self))

    def spread(self, column: Confidential) -> Spread:
        """Say how the values of a confidential column fall into the tuples."""
        tally = self.engine.tally(self.frame, self.terms.quasi, {column.name: column.reading})
        return column.arranged(tally.spreads[column.name])


class Spreads(Mapping[str, Spread]):
    """The spreads of a table's tuples, asked of the engine each time: they may be larger than all the rest."""

    def __init__(self, table: Table) -> None:
        self._table, self._columns = table, {column.name: column for column in table.terms.confidential}

    def __getitem__(self, name: str) -> Spread:
        return self._table.spread(self._columns[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)
