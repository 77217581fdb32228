"""The work on a region of a far table, and on a seam between regions: all that is needed for it, so that it may travel.

Classes are made as those of any table; what they are compared with is the whole one. What comes of a region are the
class of each record, and what each class releases.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinfold.errors import Cancelled, DataError, KinfoldError, PolicyError, Problem, Unreachable
from kinfold.measures.dominance import Sorted, given_away
from kinfold.methods.blocks.borders import across
from kinfold.methods.blocks.parallel_blocks import at_most
from kinfold.methods.partition.requirement import Reference, Requirement
from kinfold.methods.planning import region_routes
from kinfold.methods.planning.classes import made_of
from kinfold.methods.planning.far_columns import ConfidentialColumn
from kinfold.methods.planning.microaggregation import plainly
from kinfold.methods.planning.region_routes import RegionRoute
from kinfold.methods.planning.region_seams import NOWHERE, SeamRoute, blocks_and_labels
from kinfold.methods.task import Records, Task
from kinfold.models import Model
from kinfold.progress import silent
from kinfold.request.encoding import Measured
from kinfold.request.methods import Declaration
from kinfold.rows.engines.regions import Labelling, Listener
from kinfold.rows.recoding import Replace
from kinfold.rows.schema import Kind

Ints: TypeAlias = NDArray[np.int64]
Labels: TypeAlias = NDArray[np.int32]
Values: TypeAlias = NDArray[Any]

COUNTS = ("records", "repaired", "refined", "blocks", "imputed", "dominant")  # that a region tells of itself


@dataclass(frozen=True, eq=False)
class PromisedColumn:
    """A confidential column as regions need it: its values that are released, their codes, and how often each is."""

    name: str
    values: Values
    code: Ints  # of each distinct value of the table
    totals: Ints

    def required(self, model: Any, codes: Ints) -> Requirement:
        """Return what a model asks of some records: to be as all records that are released."""
        criterion = model.criterion(self.values)
        every = Requirement(criterion, np.arange(len(self.values)))
        totals = tuple(np.bincount(row, self.totals).astype(np.float64) for row in every.rows())
        return Requirement(criterion, self.code[codes], Reference(totals))


def promised_of(column: ConfidentialColumn, released: Mapping[int, int]) -> PromisedColumn:
    """Return a column without the values that no released record has."""
    totals = np.zeros(len(column.values), np.int64)
    totals[[*released]] = [*released.values()]
    there = totals > 0
    return PromisedColumn(column.name, column.values[there], np.cumsum(there) - 1, totals[there])


@dataclass(frozen=True, eq=False)
class RegionWork:
    """All that is needed to make the classes of a region; it may travel."""

    route: RegionRoute
    task: Task  # without records
    method: Declaration
    models: tuple[Model, ...]
    promised: tuple[PromisedColumn, ...]

    def __call__(self, rows: pa.Table, heard: Listener | None = None) -> Labelling:
        """Return the classes of these records, and what they release; an error comes back as what it is."""
        return _answered(self._made, rows, heard)

    def _made(self, rows: pa.Table, heard: Listener | None) -> Labelling:
        here = self.over(rows, heard)
        found = made_of(here, self.method, np.zeros(rows.num_rows, np.int32))
        labels, seam = self._at_seams(rows, here, found.labels)
        told = RegionTold(
            rows.num_rows,
            found.repaired,
            found.refined,
            max(found.blocks.many if found.blocks else 0, 1),
            self.route.reader.filled(rows),
        )
        return labelling(here, labels, seam, told)

    def _at_seams(self, rows: pa.Table, here: Task, labels: Labels) -> tuple[Labels, Ints]:
        """Return the labels, those of classes at seams after all others, and the seam of each record."""
        pattern = int(region_routes.patterns(here.attributes)[0])
        if pattern not in self.route.ways:
            return labels, np.full(len(labels), NOWHERE, np.int64)
        seams = SeamRoute(self.route.ways[pattern], self.route.others[pattern], pattern)
        of_class = seams.of_classes(here.points(), labels, rows.column("place").to_numpy())
        number = np.empty(len(of_class), np.int32)
        number[np.argsort(of_class >= 0, kind="stable")] = np.arange(len(of_class))
        return number[labels], of_class[labels]

    def over(self, rows: pa.Table, heard: Listener | None) -> Task:
        """Return the task over these records, with its share of the steps of refinement."""
        reader = self.route.reader
        codes = {each.name: reader.codes(rows, number) for number, each in enumerate(self.promised)}
        column = {each.name: each for each in self.promised}
        required = [
            column[name].required(model, codes[name]) for model in self.models if (name := model.column) is not None
        ]
        values = {name: column[name].values[column[name].code[each]] for name, each in codes.items()}
        request, whole = self.task.policy.request, self.task.policy.rows
        share = (request.method.refine_steps or 0) * rows.num_rows // whole
        method = request.method.model_copy(update={"refine_steps": share})
        policy = replace(self.task.policy, request=request.model_copy(update={"method": method}))
        records = Records(reader.read(rows), values, None, required)
        return Task(policy, self.models, records, heard or silent)


@dataclass(frozen=True, eq=False)
class SeamWork:
    """What is done to classes that came together at a seam; it may travel."""

    work: RegionWork

    def __call__(self, rows: pa.Table, heard: Listener | None = None) -> Labelling:
        """Return better classes of these records, and what they release; an error comes back as what it is."""
        return _answered(self._made, rows, heard)

    def _made(self, rows: pa.Table, heard: Listener | None) -> Labelling:
        here = self.work.over(rows, heard)
        region, labels = blocks_and_labels(rows)
        if region.min() < region.max():
            labels = across(here.points(), labels, region, here.k, here.requirements(), heard or silent)
        return labelling(here, labels, np.full(len(labels), NOWHERE, np.int64), RegionTold())


def _answered(
    made: Callable[[pa.Table, Listener | None], Labelling], rows: pa.Table, heard: Listener | None
) -> Labelling:
    try:
        with at_most(1) if heard is None else nullcontext():  # in an executor, which has others beside it
            return made(rows, heard)
    except Cancelled:
        raise
    except KinfoldError as error:
        nothing = np.zeros(rows.num_rows, np.int32), 1, RegionTold(failed=error).packed()
        return Labelling(*nothing, np.full(rows.num_rows, NOWHERE, np.int64))


def labelling(task: Task, labels: Labels, seam: Ints, told: RegionTold) -> Labelling:
    """Return the classes of some records with the averages of those that stay."""
    stays = np.flatnonzero(seam < 0)
    if not len(stays):
        return Labelling(labels, 0, told.packed(), seam)
    here, kept = task.take(stays), labels[stays]
    results = {name: each.replace for name, each in plainly(here, kept)[1].items()}
    told = replace(told, results=results, dominant=_dominant(here, kept))
    return Labelling(labels, int(kept.max()) + 1, told.packed(), seam)


def _dominant(task: Task, labels: Labels) -> dict[str, tuple[int, int]]:
    """Count for each number that is averaged the classes whose average gives away its largest record, by two rules."""
    classes, found = Sorted.of(labels), {}
    for attribute in task.attributes:
        bound = attribute.bound
        if isinstance(attribute, Measured) and bound.kind is Kind.CONTINUOUS and bound.average != "generalize":
            shown, told = (int(marked.sum()) for marked in given_away(classes, attribute.numbers))
            found[bound.name] = shown, told
    return found


@dataclass(frozen=True, eq=False)
class RegionTold:
    """What a region, or a seam, says of itself: the values of its classes, if it has any, and counts."""

    records: int = 0
    repaired: int = 0
    refined: float = 0.0
    blocks: int = 0
    imputed: Mapping[str, int] = field(default_factory=dict)
    dominant: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    results: Mapping[str, Replace] = field(default_factory=dict)
    failed: KinfoldError | None = None  # instead of all that

    def packed(self) -> bytes:
        """Return it as bytes that travel: the values as Arrow, with the rest beside them."""
        values = [treatment.values for treatment in self.results.values()]
        table = pa.table(values, [f"v{i}" for i in range(len(values))])
        counts = {name: getattr(self, name) for name in COUNTS}
        stored = {name: treatment.as_stored for name, treatment in self.results.items()}
        words = [counts, stored, _in_words(self.failed)]
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema.with_metadata({"told": json.dumps(words)})) as stream:
            stream.write_table(table)
        return sink.getvalue().to_pybytes()

    @classmethod
    def unpacked(cls, held: bytes) -> RegionTold:
        """Return what was packed."""
        table = pa.ipc.open_stream(held).read_all()
        counts, stored, failed = json.loads(table.schema.metadata[b"told"])
        values = (column.combine_chunks() for column in table.columns)
        results = {
            name: Replace(each, as_stored) for each, (name, as_stored) in zip(values, stored.items(), strict=True)
        }
        return cls(**counts, results=results, failed=_error(failed))


def _in_words(error: KinfoldError | None) -> list[Any] | None:
    if error is None:
        return None
    return [type(error).__name__, [[each.what, each.fix] for each in error.problems]]


def _error(told: list[Any] | None) -> KinfoldError | None:
    if told is None:
        return None
    kinds = {kind.__name__: kind for kind in (PolicyError, DataError, Unreachable)}
    return kinds.get(told[0], KinfoldError)([Problem(what, fix) for what, fix in told[1]])
