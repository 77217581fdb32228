"""The table of a request: its distinct tuples as the engine counts them, or its records as arrays, when asked for.

Generalization asks for tuples and never for records. Nothing is read before it is asked for, and once at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfold.models.terms import Terms
from kinfold.request.binding import BoundColumn, BoundPolicy
from kinfold.request.encoding import Attribute, Coded, encode
from kinfold.request.terms import confidential_values, people, scopes_of
from kinfold.rows.engines import Engine
from kinfold.rows.engines.regions import ValueCodes
from kinfold.rows.recoding import Recoding
from kinfold.rows.schema import Column, Role
from kinfold.rows.tally import Scopes, Spread, Tally


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

    def scale(self, bound: BoundColumn) -> tuple[Coded, ValueCodes]:
        """Return a column of categories by its distinct values, and the code of each on its scale."""
        values = self.engine.distinct(self.frame, [bound.name])
        found = encode(self.engine, values, [bound])[0]
        assert isinstance(found, Coded)  # noqa: S101  numbers are not asked for
        return found, ValueCodes(bound.name, values, found.codes)

    def column(self, some: Any, how: Column | ValueCodes) -> NDArray[np.float64]:
        """Return a column of some of the rows as numbers, or as codes."""
        if isinstance(how, ValueCodes):
            found = self.engine.by_row(some, Recoding(how.codes.astype(np.int32), {}, how.values)).labels
        else:
            found = self.engine.collect(some, {how.name: how}).column(0).to_numpy(zero_copy_only=False)
        return found.astype(np.float64, copy=False)

    def of_rows(self, some: Any) -> tuple[Attribute, ...]:
        """The quasi-identifiers of some of the rows, on the scales of the whole table."""
        return tuple(self._of_rows(some, bound) for bound in self.policy.of(Role.QUASI))

    def _of_rows(self, some: Any, bound: BoundColumn) -> Attribute:
        if bound.kind.measured and not bound.suppressed:
            return encode(self.engine, some, [bound])[0]
        known, how = self.scale(bound)
        return replace(known, codes=self.column(some, how).astype(np.int32))

    @cached_property
    def confidential(self) -> Mapping[str, NDArray[Any]]:
        """What the models protect, of every record."""
        return confidential_values(self.engine, self.frame, self.terms)

    @cached_property
    def person(self) -> NDArray[np.int64] | None:
        """Whose each record is, where people are counted."""
        return people(self.engine, self.frame, self.policy)

    @cached_property
    def scopes(self) -> Scopes | None:
        """What promises must hold for beside the rows of each class."""
        return scopes_of(self.engine, self.frame, self.terms, self.person)

    def _tally(self) -> Tally:
        counted = self.engine.tally(self.frame, self.terms.quasi, {})
        return replace(counted, spreads=Spreads(self.engine, self.frame, self.terms))


class Spreads(Mapping[str, Spread]):
    """The spreads of a table's tuples, asked of the engine each time: they may be larger than all the rest."""

    def __init__(self, engine: Engine, frame: Any, terms: Terms) -> None:
        self._engine, self._frame, self._quasi = engine, frame, terms.quasi
        self._columns = {column.name: column for column in terms.confidential}

    def __getitem__(self, name: str) -> Spread:
        column = self._columns[name]
        tally = self._engine.tally(self._frame, self._quasi, {name: column.reading})
        return column.arranged(tally.spreads[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)
