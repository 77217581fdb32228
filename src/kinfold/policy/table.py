"""A table in an engine with its bound policy: distinct tuples and records as arrays, read once, on first use.

Generalization uses the tuples and never reads records. If an engine limits how many records one place holds, what needs
all of them is refused for larger tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfold.models.terms import Terms
from kinfold.policy.binding import BoundColumn, BoundPolicy
from kinfold.policy.encoding import Attribute, CategoricalAttribute, encode
from kinfold.policy.model import Policy
from kinfold.policy.people import Households, number_households
from kinfold.policy.terms import build_scopes, collect_confidential, collect_weights, number_people, number_weights
from kinfold.tables.engine import Engine
from kinfold.tables.queries import label_rows
from kinfold.tables.recoding import Recoding
from kinfold.tables.regions import ValueCodes
from kinfold.tables.schema import Column, Role
from kinfold.tables.tally import Computed, PersonScopes, RecordWeights, Scopes, Spread, Tally


@dataclass(frozen=True, eq=False)
class Tuples:
    """Distinct tuples of quasi-identifiers: encoded, counted with spreads, and as a frame of the engine."""

    attributes: tuple[Attribute, ...]
    tally: Tally
    frame: Any
    forget_counts: Callable[[], None] = lambda: None  # frees the counts of the engine


@dataclass(frozen=True, eq=False)
class Table:
    """A table in an engine, with its bound policy and terms."""

    engine: Engine
    frame: Any
    policy: BoundPolicy
    terms: Terms
    rule_frame: Any = None  # the rows on which edit rules are counted, if not `frame`
    population: Tuples | None = None  # the people of `privacy.population.table`

    @cached_property
    def tuples(self) -> Tuples:
        """The distinct tuples of the quasi-identifiers."""
        columns = self.policy.with_role(Role.QUASI)
        frame = self.engine.tally(self.frame, [column.name for column in columns], {}).tuples
        tally = self.engine.tally(self.frame, self.terms.quasi, {})
        names = [column.name for column in self.terms.confidential]
        count = partial(_count_spread, self.engine, self.frame, self.terms)  # on each access: they may be large
        tally = replace(tally, spreads=Computed(names, count))
        return Tuples(encode(self.engine, frame, columns), tally, frame, partial(self.engine.close, only_counts=True))

    @cached_property
    def attributes(self) -> tuple[Attribute, ...]:
        """The quasi-identifiers of every record."""
        return encode(self.engine, self.frame, self.policy.with_role(Role.QUASI))

    def encode_categories(self, bound: BoundColumn) -> tuple[CategoricalAttribute, ValueCodes]:
        """Return a column of categories by its distinct values, and the code of each on its scale."""
        values = self.engine.tally(self.frame, [bound.name], {}).tuples
        attribute = encode(self.engine, values, [bound])[0]
        assert isinstance(attribute, CategoricalAttribute)  # noqa: S101  the caller checks the type
        return attribute, ValueCodes(bound.name, values, attribute.codes)

    def collect_column(self, some: Any, how: Column | ValueCodes) -> NDArray[np.float64]:
        """Return a column of some rows as numbers or codes."""
        if isinstance(how, ValueCodes):
            values = label_rows(self.engine, some, Recoding(how.codes.astype(np.int32), {}, how.values)).labels
        else:
            values = self.engine.collect(some, {how.name: how}).column(0).to_numpy(zero_copy_only=False)
        return values.astype(np.float64, copy=False)

    def encode_rows(self, some: Any) -> tuple[Attribute, ...]:
        """Return the quasi-identifiers of some rows, on the scales of the whole table."""
        attributes: list[Attribute] = []
        for bound in self.policy.with_role(Role.QUASI):
            if bound.kind.is_numeric and not bound.suppressed:
                attributes += encode(self.engine, some, [bound])
            else:
                known, how = self.encode_categories(bound)
                attributes.append(replace(known, codes=self.collect_column(some, how).astype(np.int32)))
        return tuple(attributes)

    @cached_property
    def confidential(self) -> Mapping[str, NDArray[Any]]:
        """The confidential columns of every record."""
        return collect_confidential(self.engine, self.frame, self.terms)

    @cached_property
    def sampling_weights(self) -> NDArray[np.int64] | None:
        """The sampling weight of each record, in units of its last decimal, if averages are weighted."""
        name = self.policy.request.sampling_weights
        if not self.policy.request.output.weighted or name is None:
            return None
        return collect_weights(self.engine, self.frame, self.policy[name].column)[0]

    @cached_property
    def households(self) -> Households | None:
        """The household of each record, if the members of a household show the same."""
        return number_households(self.engine, self.frame, self.terms)

    @cached_property
    def person(self) -> NDArray[np.int64] | None:
        """The number of the person of each record, if the policy counts people."""
        return number_people(self.engine, self.frame, self.policy)

    @cached_property
    def weights(self) -> RecordWeights | None:
        """The sampling weight of each record, if promises count it."""
        return number_weights(self.engine, self.frame, self.policy)

    @cached_property
    def scopes(self) -> Scopes | PersonScopes | None:
        """People and joint columns, if promises count them in addition to the rows of each class."""
        return build_scopes(self.engine, self.frame, self.terms, self.person, self.weights)


def _count_spread(engine: Engine, frame: Any, terms: Terms, name: str) -> Spread:
    column = next(column for column in terms.confidential if column.name == name)
    return column.sort_spread(engine.tally(frame, terms.quasi, {name: column.reading}).spreads[name])


def find_gathering_reasons(policy: Policy) -> Iterator[str]:
    """Yield what needs every record in one place, whatever the method."""
    privacy = policy.privacy
    if privacy.unit is not None:
        yield "privacy.unit counts people over the whole table"
    if privacy.household is not None:
        yield "privacy.household keeps households together over the whole table"
    if privacy.joint:
        yield "privacy.joint keeps promises about combinations of confidential values over the whole table"
    if policy.rules:
        yield "edit rules ([[rules]]) are checked in every record"
    if policy.sampling_weights is not None:
        yield "sampling weights are added up record by record"
    if policy.report.measures == "all":
        yield 'report.measures = "all" compares every record'
    if perturbed := [f"columns.{name}" for name, column in policy.columns.items() if column.perturb is not None]:
        yield f"perturb ({', '.join(perturbed)}) changes values in the order of the records"
