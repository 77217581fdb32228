"""A task and its plan: what a method is given, and what becomes of the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import Unreachable, plural
from kinfold.methods.blocks.parallel_blocks import Split, in_threads
from kinfold.methods.blocks.saved_stages import BARE, Shelf
from kinfold.methods.generalize.minimality import Belief
from kinfold.methods.generalize.outliers import threshold
from kinfold.methods.partition.requirement import Requirement
from kinfold.models import Model, TCloseness
from kinfold.progress import Progress, silent
from kinfold.request.binding import BoundPolicy
from kinfold.request.encoding import Attribute, points, records_of
from kinfold.request.policy import Method
from kinfold.request.table import Table, Tuples
from kinfold.rows.points import Points
from kinfold.rows.recoding import Recoding
from kinfold.rows.schema import Role
from kinfold.rows.tally import Scopes

# Given the level of each attribute and how many records still have outliers, the attribute to generalize next, or None.
Ask: TypeAlias = Callable[[Mapping[str, int], int], str | None]


@dataclass(frozen=True, eq=False)
class Records:
    """Some records as arrays: quasi-identifiers, confidential columns, and what promises must hold for beside rows."""

    attributes: Sequence[Attribute]
    confidential: Mapping[str, NDArray[Any]]
    scopes: Scopes | None = None
    required: Sequence[Requirement] | None = None  # of a block: what the whole table asks of its classes


@dataclass(frozen=True, eq=False)
class Task:
    """The policy, the models to keep, and the table, or some of its records, to keep them on."""

    policy: BoundPolicy
    models: Sequence[Model]
    table: Table | Records
    progress: Progress = silent
    ask: Ask | None = None  # whom to ask for the data holder's choices (mu-argus)
    shelf: Shelf = BARE  # where what was done in blocks is kept for a later run
    stages: Callable[[str], Progress] | None = None  # the listener of a stage, by its name; None: `progress` hears all
    split: Split = in_threads  # who works on blocks: the engine

    @property
    def attributes(self) -> Sequence[Attribute]:
        """The quasi-identifiers of every record."""
        return self.table.attributes

    @property
    def confidential(self) -> Mapping[str, NDArray[Any]]:
        """What the models protect, of every record."""
        return self.table.confidential

    @property
    def scopes(self) -> Scopes | None:
        """What promises must hold for beside the rows of each class: people, and whoever knows other columns."""
        return self.table.scopes

    @property
    def tuples(self) -> Tuples:
        """The distinct tuples of the table, as its engine counts them."""
        assert isinstance(self.table, Table)  # noqa: S101  asked of whole tables only
        return self.table.tuples

    @property
    def k(self) -> int:
        """The size that every class must have."""
        return self.policy.request.privacy.k

    @property
    def records(self) -> int:
        """How many records there are."""
        return self.policy.rows if isinstance(self.table, Table) else records_of(self.attributes)

    @property
    def method(self) -> Method:
        """What the policy says of how the release is made."""
        return self.policy.request.method

    @property
    def starred(self) -> bool:
        """Whether suppressed records are released, with a star in every quasi-identifier."""
        return self.policy.request.output.suppressed == "star"

    @property
    def weights(self) -> dict[str, float]:
        """How much each quasi-identifier counts."""
        return {column.name: column.request.weight for column in self.policy.of(Role.QUASI)}

    @property
    def close(self) -> list[TCloseness]:
        """The promises of t-closeness, each about its column."""
        return [model for model in self.models if isinstance(model, TCloseness)]

    @property
    def promises(self) -> bool:
        """Whether something is promised about a confidential column."""
        return any(model.column is not None for model in self.models)

    def may_suppress(self, left: int) -> int | None:
        """Return how many of the `left` records may be suppressed besides all that are not left; None: no limit is set.

        The limit counts every record that is dropped or starred, for every reason; raise where it is exceeded already.
        """
        if "suppression" not in self.method.model_fields_set:
            return None
        rows = self.policy.rows
        limit = threshold(self.method.suppression, rows)
        if rows - left > limit:
            what = f"{rows - left:,} of {plural(rows, 'record')} would be suppressed, and at most {limit:,} may be"
            fix = "allow more method.suppression, ask less, or keep records that are left out for a missing value"
            raise Unreachable(what, fix=fix)
        return limit - (rows - left)

    def stage(self, name: str) -> Progress:
        """Return the listener of a long stage that has a name of its own."""
        return self.progress if self.stages is None else self.stages(name)

    def points(self) -> Points:
        """Return the records as points."""
        return points(self.attributes, np.arange(self.records))

    def requirements(self) -> list[Requirement]:
        """Return what is asked of each class beyond its size, one for each promise about a confidential column."""
        if isinstance(self.table, Records) and self.table.required is not None:
            return list(self.table.required)
        asked = [(model, name) for model in self.models if (name := model.column) is not None]
        return [Requirement.of(model, self.confidential[name]) for model, name in asked]  # type: ignore[arg-type]

    def take(self, rows: NDArray[np.intp]) -> Task:
        """Return the task over some of the records; over all of them nothing is copied."""
        if len(rows) == self.records and (rows == np.arange(self.records)).all():
            return self
        attributes = [attribute.take(rows) for attribute in self.attributes]
        confidential = {name: values[rows] for name, values in self.confidential.items()}
        scopes = None if self.scopes is None else self.scopes.take(rows)
        return replace(self, table=Records(attributes, confidential, scopes))

    def within(self, rows: NDArray[np.intp], required: Sequence[Requirement]) -> Task:
        """Return the task over a block of the records, whose classes are compared with the whole table."""
        part = self.take(rows)
        records = Records(part.attributes, part.confidential, part.scopes, [each.within(rows) for each in required])
        return replace(part, table=records)

    def alone(self) -> Task:
        """Return the task without those who listen to it, or wait for it: so it may travel."""
        return Task(self.policy, self.models, self.table)

    def by_itself(self) -> Task:
        """Return the task over a block whose classes are compared with nothing but the block: as close as it gets."""
        assert isinstance(self.table, Records)  # noqa: S101  asked of blocks only
        return replace(self, table=replace(self.table, required=None))


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
    refined: float = 0.0  # seconds of refinement
    blocks: int = 0  # that the classes were made in, 0 where the table was partitioned as a whole
    told: tuple[str, ...] = ()  # those of the notes that a recipient is told as well: counts, nothing of the original
    regions: int = 0  # that a far table was parted into, 0 where its records were in one place
    dominant: Mapping[str, tuple[int, int]] | None = None  # of a far table: classes in which one record dominates
    belief: Belief | None = None  # what someone who knows the method can conclude; measured for minimal levels

    def after(self, notes: Sequence[str], told: Sequence[str]) -> Plan:
        """Return the plan with what was said before it."""
        return replace(self, notes=(*notes, *self.notes), told=(*told, *self.told))
