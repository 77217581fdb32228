"""A task and its plan: the input of a method, and what to do to the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import Unreachable, plural
from kinfold.methods.blocks.pool import NO_CHECKPOINTS, JobRunner, run_in_threads
from kinfold.methods.generalize.levels import required_k, suppression_limit
from kinfold.methods.generalize.result import Belief
from kinfold.methods.partition.requirement import Requirement
from kinfold.models import Model, TCloseness, to_class_models
from kinfold.policy.binding import BoundPolicy
from kinfold.policy.encoding import Attribute, build_points, count_records
from kinfold.policy.model import Method
from kinfold.policy.people import Households
from kinfold.policy.table import Table, Tuples
from kinfold.progress import Progress, SearchMarks, no_progress
from kinfold.tables.points import Points
from kinfold.tables.recoding import Drop, Keep, Recoding, Treatment
from kinfold.tables.regions import CheckpointStore
from kinfold.tables.schema import Role
from kinfold.tables.tally import Ints, PersonScopes, Scopes

# Takes the level of each attribute and how many records are outliers; returns the attribute to generalize, or None.
Chooser: TypeAlias = Callable[[Mapping[str, int], int], str | None]


@dataclass(frozen=True, eq=False)
class Records:
    """Some records as arrays: quasi-identifiers, confidential columns, and the scopes of promises beyond rows."""

    attributes: Sequence[Attribute]
    confidential: Mapping[str, NDArray[Any]]
    scopes: Scopes | PersonScopes | None = None
    table_requirements: Sequence[Requirement] | None = None  # of a block: the promises of the whole table
    sampling_weights: NDArray[np.int64] | None = None  # if averages are weighted
    households: Households | None = None  # whose members show the same


@dataclass(frozen=True, eq=False)
class EarlierClasses:
    """Who was in which class of earlier releases, for the records of a table."""

    group: Ints  # of each record: people who shared a class in every earlier release; NO_CLASS for a new person
    sets: Sequence[Mapping[str, frozenset[int]]]  # of each group: the codes that its class held, by column
    values: Mapping[str, Ints]  # the code of each record's value

    @property
    def count(self) -> int:
        """The number of groups."""
        return len(self.sets)

    def are_alike(self, one: int, other: int) -> bool:
        """Whether two classes may merge: groups with equal sets, or two classes of new people, with higher numbers."""
        if max(one, other) >= self.count:
            return min(one, other) >= self.count
        return self.sets[one] == self.sets[other]

    def take(self, rows: NDArray[np.intp]) -> EarlierClasses:
        """Return the earlier classes of some records."""
        return EarlierClasses(self.group[rows], self.sets, {name: code[rows] for name, code in self.values.items()})


@dataclass(frozen=True, eq=False)
class Task:
    """The policy, the models to keep, and the table, or some of its records."""

    policy: BoundPolicy
    models: Sequence[Model]
    table: Table | Records
    progress: Progress = no_progress
    choose: Chooser | None = None  # the data holder's choices (mu-argus)
    checkpoints: CheckpointStore = NO_CHECKPOINTS  # of finished blocks, for a resumed run
    stage_progress: Callable[[str], Progress] | None = None  # by the name of a stage; None: `progress` for all
    run_jobs: JobRunner = run_in_threads  # where the engine runs blocks
    scope_models: Sequence[Model] | None = None  # of people with several rows: the promises to keep over all rows
    earlier: EarlierClasses | None = None  # of people who were in earlier releases

    @property
    def attributes(self) -> Sequence[Attribute]:
        """The quasi-identifiers of every record."""
        return self.table.attributes

    @property
    def confidential(self) -> Mapping[str, NDArray[Any]]:
        """The confidential values of every record."""
        return self.table.confidential

    @property
    def scopes(self) -> Scopes | PersonScopes | None:
        """The scopes of promises about people and of joint promises."""
        return self.table.scopes

    @property
    def sampling_weights(self) -> NDArray[np.int64] | None:
        """The sampling weight of every record, in units of its last decimal, if averages are weighted."""
        return self.table.sampling_weights

    @property
    def households(self) -> Households | None:
        """The household of every record, if the members of a household show the same."""
        return self.table.households

    @property
    def tuples(self) -> Tuples:
        """The distinct tuples of the table, as its engine counts them."""
        assert isinstance(self.table, Table)  # noqa: S101  only called for whole tables
        return self.table.tuples

    @property
    def k(self) -> int:
        """The least size of a class: k, or more if a promise about the whole table is kept by larger classes."""
        return required_k(to_class_models(self.models, self.policy.rows))

    @property
    def records(self) -> int:
        """How many records there are."""
        return self.policy.rows if isinstance(self.table, Table) else count_records(self.attributes)

    @property
    def method(self) -> Method:
        """The section `[method]` of the policy."""
        return self.policy.request.method

    @property
    def starred(self) -> bool:
        """Whether suppressed records are released, with a star in every quasi-identifier."""
        return self.policy.request.output.suppressed == "star"

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each quasi-identifier."""
        return {column.name: column.request.weight for column in self.policy.with_role(Role.QUASI)}

    @property
    def closeness_models(self) -> list[TCloseness]:
        """The promises of t-closeness, one for each column."""
        return [model for model in self.models if isinstance(model, TCloseness)]

    @property
    def has_promises(self) -> bool:
        """Whether there is a promise about a confidential column."""
        return any(model.column is not None for model in self.models)

    def may_suppress(self, kept: int) -> int | None:
        """Return how many of the `kept` records may still be suppressed; None without a limit.

        The limit counts every record that is dropped or starred, for any reason. Raise if it is already exceeded.
        """
        if "suppression" not in self.method.model_fields_set:
            return None
        rows = self.policy.rows
        limit = suppression_limit(self.method.suppression, rows)
        if rows - kept > limit:
            what = f"{rows - kept:,} of {plural(rows, 'record')} would be suppressed, but at most {limit:,} may be"
            fix = "raise method.suppression, relax the promises, or keep records that are left out for a missing value"
            raise Unreachable(what, fix=fix)
        return limit - (rows - kept)

    def treat_columns(self, replaced: Mapping[str, Treatment]) -> dict[str, Treatment]:
        """Return what to do to each column: replace quasi-identifiers, drop removed columns, keep the others."""
        return {
            column.name: replaced[column.name] if column.name in replaced else Drop() if column.removed else Keep()
            for column in self.policy.columns
        }

    def stage(self, name: str) -> Progress:
        """Return the progress callback of a named stage."""
        return self.progress if self.stage_progress is None else self.stage_progress(name)

    def points(self) -> Points:
        """Return the records as points."""
        return build_points(self.attributes, np.arange(self.records))

    def requirements(self) -> list[Requirement]:
        """Return the requirements on each class beyond its size, one for each promise about a confidential column."""
        if isinstance(self.table, Records) and self.table.table_requirements is not None:
            return list(self.table.table_requirements)
        models = [(model, name) for model in self.models if (name := model.column) is not None]
        return [Requirement.of(model, self.confidential[name]) for model, name in models]  # type: ignore[arg-type]

    def take(self, rows: NDArray[np.intp]) -> Task:
        """Return the task over some of the records; for all records nothing is copied."""
        if len(rows) == self.records and (rows == np.arange(self.records)).all():
            return self
        attributes = [attribute.take(rows) for attribute in self.attributes]
        confidential = {name: values[rows] for name, values in self.confidential.items()}
        scopes = None if self.scopes is None else self.scopes.take(rows)
        weights = None if self.sampling_weights is None else self.sampling_weights[rows]
        households = None if self.households is None else self.households.take(rows)
        earlier = None if self.earlier is None else self.earlier.take(rows)
        records = Records(attributes, confidential, scopes, None, weights, households)
        return replace(self, table=records, earlier=earlier)

    def to_records(self, attributes: Sequence[Attribute]) -> Records:
        """Return every record with these attributes."""
        return Records(attributes, self.confidential, self.scopes, None, self.sampling_weights, self.households)

    def take_block(self, rows: NDArray[np.intp], required: Sequence[Requirement]) -> Task:
        """Return the task over a block, without callbacks, so that it can be pickled; its reference is the table."""
        part = self.take(rows)
        requirements = [each.within(rows) for each in required]
        records = Records(part.attributes, part.confidential, part.scopes, requirements)
        return Task(self.policy, self.models, records)

    def without_table_requirements(self) -> Task:
        """Return the task over a block whose classes are compared with the block only."""
        assert isinstance(self.table, Records)  # noqa: S101  only called for blocks
        return replace(self, table=replace(self.table, table_requirements=None))


@dataclass(frozen=True, eq=False)
class Plan:
    """A recoding, the method that made it, why that one, and notes."""

    recoding: Recoding
    method: str
    reason: str
    notes: tuple[str, ...] = ()
    repaired: int = 0  # classes that missed a promise
    start: str | None = None  # the method that refinement started from
    steps: int | None = None  # of refinement
    gap: float | None = None  # proved: the loss is at most this share of itself above the least possible
    refine_seconds: float = 0.0
    curve: SearchMarks = ()  # how a search lowered the loss
    blocks: int = 0  # 0 if the table was partitioned as a whole
    public_notes: tuple[str, ...] = ()  # the notes for a recipient: counts, nothing about the original
    regions: int = 0  # of a large table, 0 if its records were in one place
    # of a large table: classes in which one record dominates
    dominated: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    belief: Belief | None = None  # what a recipient who knows the method can conclude; measured for minimal levels

    @property
    def large(self) -> bool:
        """Whether the table was planned in regions, because it is too large to be held in one place."""
        return self.regions > 0

    def prepend_notes(self, notes: Sequence[str], public_notes: Sequence[str]) -> Plan:
        """Return the plan with earlier notes before its own."""
        return replace(self, notes=(*notes, *self.notes), public_notes=(*public_notes, *self.public_notes))
