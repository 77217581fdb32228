"""Far tables: so many records that nobody holds them all. They are microaggregated region by region, where they are.

describe      quasi-identifiers and confidential columns, by their distinct values and a sample of the records
part          every record into its region, by its own values (see `region_routes`); small regions are joined
classes       of each region as of any table, its promises compared with the whole one; averages over each class
number        the classes through all regions

What comes here are tallies, the sample, and what each class releases: nothing of a record. What cannot be done so (see
`_gathering`) is done as for any other table, and a note says why.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinfold.errors import Cancelled, KinfoldError, PolicyError, Unreachable, plural
from kinfold.methods.averaging import Averaged
from kinfold.methods.blocks.borders import across
from kinfold.methods.blocks.marginality import ranks
from kinfold.methods.blocks.parallel_blocks import at_most
from kinfold.methods.partition.refine import blocks_by_size
from kinfold.methods.partition.requirement import Reference, Requirement
from kinfold.methods.planning import region_routes
from kinfold.methods.planning.classes import made_of
from kinfold.methods.planning.closeness_advice import few_classes
from kinfold.methods.planning.microaggregation import microaggregate, plainly, repaired_told, treatments
from kinfold.methods.planning.needs import lacking
from kinfold.methods.planning.region_routes import RegionRoute, RowReader, layer_count, layers_of, routed
from kinfold.methods.planning.region_seams import NOWHERE, SeamRoute, blocks_and_labels
from kinfold.methods.task import Plan, Records, Task
from kinfold.models import Model
from kinfold.progress import silent
from kinfold.request.encoding import Attribute, Measured
from kinfold.request.methods import Declaration
from kinfold.request.table import Table
from kinfold.request.terms import confidential_values
from kinfold.rows.drawing import drawn
from kinfold.rows.engines.regions import Asked, LabelledRows, Labelling, Listener, ValueCodes, Works
from kinfold.rows.recoding import Recoding, Replace
from kinfold.rows.schema import Column, Role
from kinfold.rows.tally import coded

Ints: TypeAlias = NDArray[np.int64]
Labels: TypeAlias = NDArray[np.int32]
Values: TypeAlias = NDArray[Any]

PATTERNS = 40  # columns whose missing values are kept apart
DIGITS = 10  # of a mean: as many as any order of its sum gives


def microaggregate_anywhere(task: Task, method: Declaration, reason: str) -> Plan:
    """Return the recoding that gives every record the average of its class, wherever the records are."""
    if not isinstance(task.table, Table) or task.records <= region_routes.FAR:
        return microaggregate(task, method, reason)
    if problems := lacking(method, task):
        raise PolicyError(problems)
    why = next(_gathering(task, method), None)
    if why is None:
        found = _in_regions(task, task.table, method, reason)
        if isinstance(found, Plan):
            return found
        why = found
    return microaggregate(task, method, reason).after([f"every record was gathered in one place: {why}"], [])


def _gathering(task: Task, method: Declaration) -> Iterator[str]:
    """Say what a request asks for that takes all records in one place."""
    request, quasi = task.policy.request, task.policy.of(Role.QUASI)
    if request.method.block == 0:
        yield "method.block = 0 forbids blocks"
    if request.method.refine == "exact" or request.method.prove:
        yield "the least loss possible is asked for"
    if request.privacy.unit is not None or request.privacy.joint:
        yield "promises about people, and joint ones, are kept over the whole table"
    if task.policy.rules:
        yield "edit rules are kept over the whole table"
    if request.output.preserve == "variance":
        yield "output.preserve is variance, which rescales over the whole table"
    if method.sets_aside and request.method.suppression:
        yield "records may be discarded, those farthest from all others"
    if any(column.suppressed for column in quasi):
        yield "cells are suppressed"
    if any(c.kind.measured and c.average == "generalize" and c.request.hierarchy for c in quasi):
        yield "numbers or dates are generalized by a hierarchy"
    if sum(column.request.missing == "separate" for column in quasi) > PATTERNS:
        yield f"missing values of more than {PATTERNS} columns are kept apart"


def _in_regions(task: Task, table: Table, method: Declaration, reason: str) -> Plan | str:
    """Return the plan of a far table, or say why its records must be gathered."""
    known = _described(task, table)
    route = _route(table, known)
    regions = table.engine.regions(table.frame, known.asked, route)
    counts = regions.counts()
    if _too_few(counts, task.k):
        return "too few records lack the same values"
    promised = [
        _reference(each, regions.spread(len(known.quasi) + number)) for number, each in enumerate(known.promised)
    ]
    work = RegionWork(route, _limited(task), method, tuple(task.models), tuple(promised))
    number = region_routes.numbered(counts, task.k)
    made = regions.labelled(number, Works(work, SeamWork(work)), task.stage("regions"), task.shelf)
    told = [pickle.loads(each) for each in made.told]  # noqa: S301  of our own executors
    for each in told:
        if isinstance(each, Unreachable):
            return "a region alone could not keep what is promised"
        if isinstance(each, Exception):
            raise each
    return _planned(task, made, told, (method.name, reason))


@dataclass(frozen=True, eq=False)
class ConfidentialColumn:
    """A column that something is promised about: its distinct values, and how many records of the table have each."""

    name: str
    values: Values
    totals: Ints


@dataclass(frozen=True, eq=False)
class FarColumns:
    """What is known of a far table without its records."""

    quasi: tuple[Attribute, ...]  # without records
    promised: tuple[ConfidentialColumn, ...]
    asked: Asked  # columns that regions are handed: quasi-identifiers, then those that are promised about
    models: tuple[Model, ...]
    imputed: tuple[float | None, ...]


def _described(task: Task, table: Table) -> FarColumns:
    """Ask for the distinct values of every column but numbers and dates."""
    quasi: list[Attribute] = []
    asked: list[Column | ValueCodes] = []
    imputed: list[float | None] = []
    for bound in task.policy.of(Role.QUASI):
        mean: float | None = None
        if bound.kind.measured:
            attribute: Attribute = Measured(bound, np.empty(0))
            asked.append(bound.column)
            mean = _mean(table, bound.column) if bound.request.missing == "mean" and bound.column.nulls else None
        else:
            attribute, codes = table.scale(bound)
            asked.append(codes)
        quasi.append(attribute.take(np.arange(0)))
        imputed.append(mean)
    names = dict.fromkeys(model.column for model in task.models if model.column is not None)
    promised = [_confidential(table, name) for name in names]
    asked += [codes for _, codes in promised]
    return FarColumns(tuple(quasi), tuple(column for column, _ in promised), asked, tuple(task.models), tuple(imputed))


def _mean(table: Table, column: Any) -> float:
    """Return the mean of a column, to as many digits as do not depend on the order in which it is summed."""
    mean = float(table.engine.moments(table.frame, {column.name: column})[1][0])
    return float(f"{mean:.{DIGITS}g}")


def _confidential(table: Table, name: str) -> tuple[ConfidentialColumn, ValueCodes]:
    """Return a confidential column by its distinct values, and the code of each."""
    engine, frame = table.engine, table.frame
    held = engine.distinct(frame, [name])
    only = replace(table.terms, confidential=tuple(c for c in table.terms.confidential if c.name == name))
    values, codes = coded(np.asarray(confidential_values(engine, held, only)[name]))
    totals = np.bincount(codes, engine.tally(frame, [name], {}).sizes).astype(np.int64)
    return ConfidentialColumn(name, values, totals), ValueCodes(name, held, codes)


def _route(table: Table, known: FarColumns) -> RegionRoute:
    """Return the way to the regions, by the cuts of a sample."""
    places = drawn(table.policy.rows, region_routes.DRAWN)
    sample = _sample(table, known.asked, places)
    reader = RowReader(known.quasi, known.imputed).standardized(sample)
    many = layer_count(len(places), region_routes.regions_of(table.policy.rows))
    order = [ranks(_first(known.models, each.name).criterion(each.values), each.totals) for each in known.promised]
    layers = layers_of(order, [each.totals for each in known.promised], many)
    return routed(reader, layers, sample, table.policy.rows)


def _first(models: Sequence[Model], name: str) -> Any:
    return next(model for model in models if model.column == name)


def _sample(table: Table, asked: Asked, places: Ints) -> pa.Table:
    """Return what regions would be handed, of the records at these places."""
    some = table.engine.picked(table.frame, places)[0]
    return pa.table({"place": places} | {f"v{at}": table.column(some, how) for at, how in enumerate(asked)})


def _too_few(counts: Mapping[int, int], k: int) -> bool:
    """Whether too few records have a pattern of missing values for a class of their own."""
    by_pattern: Counter[int] = Counter()
    for region, records in counts.items():
        by_pattern[region // region_routes.MOST] += records
    return not by_pattern or min(by_pattern.values()) < k


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


def _reference(column: ConfidentialColumn, released: Mapping[int, int]) -> PromisedColumn:
    """Return a column without the values that no released record has."""
    totals = np.zeros(len(column.values), np.int64)
    totals[[*released]] = [*released.values()]
    there = totals > 0
    return PromisedColumn(column.name, column.values[there], np.cumsum(there) - 1, totals[there])


def _limited(task: Task) -> Task:
    """Return the task without its table; refinement has a number of steps for all regions, whatever the clock says."""
    method = task.method
    if method.limits is None or (task.promises and method.by_itself):
        steps = 0
    else:
        steps = method.limits[0] or blocks_by_size(task.records)
    fixed = method.model_copy(update={"refine_steps": steps})
    policy = replace(task.policy, request=task.policy.request.model_copy(update={"method": fixed}))
    return Task(policy, task.models, Records((), {}))


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
        nothing = np.zeros(rows.num_rows, np.int32), 1, pickle.dumps(error)
        return Labelling(*nothing, np.full(rows.num_rows, NOWHERE, np.int64))


def labelling(task: Task, labels: Labels, seam: Ints, told: RegionTold) -> Labelling:
    """Return the classes of some records with the averages of those that stay."""
    stays = np.flatnonzero(seam < 0)
    if not len(stays):
        return Labelling(labels, 0, pickle.dumps(told), seam)
    results = plainly(task.take(stays), labels[stays])[1]
    return Labelling(labels, int(labels[stays].max()) + 1, pickle.dumps(replace(told, results=results)), seam)


@dataclass(frozen=True, eq=False)
class RegionTold:
    """What a region, or a seam, says of itself: the values of its classes, if it has any, and counts."""

    records: int = 0
    repaired: int = 0
    refined: float = 0.0
    blocks: int = 0
    imputed: Mapping[str, int] = field(default_factory=dict)
    results: Mapping[str, Averaged] | None = None


def _planned(task: Task, made: LabelledRows, told: Sequence[RegionTold], named: tuple[str, str]) -> Plan:
    """Return the recoding over all regions."""
    found = [each.results for each in told if each.results is not None]
    results = {name: _together([each[name] for each in found]) for name in found[0]}
    recoding = Recoding(made.labels, treatments(task, results), held=made.held)
    classes = len(next(iter(results.values())).replace.values)
    released, repaired = sum(each.records for each in told), sum(each.repaired for each in told)
    notes = [*_missing_told(task, told, released), *repaired_told(repaired)]
    blocks = sum(each.blocks for each in told)
    parted = f"the classes were made in {plural(blocks, 'block')}"
    most, far = max(each.records for each in told), region_routes.FAR
    many = sum(each.blocks > 0 for each in told)
    notes.append(
        f"{parted}, in {plural(many, 'region')} of at most {plural(most, 'record')}: "
        f"a table of more than {far:,} records is held nowhere as a whole"
    )
    notes += few_classes(task, classes, released)
    name, reason = named
    steps = _limited(task).method.refine_steps or None
    seconds = sum(each.refined for each in told)
    how = (repaired, name, steps, None, seconds, blocks, (parted,), many)
    return Plan(recoding, name, reason, tuple(notes), *how)


def _together(parts: Sequence[Averaged]) -> Averaged:
    values = pa.chunked_array([part.replace.values for part in parts]).combine_chunks()
    return Averaged(Replace(values, parts[0].replace.as_stored))


def _missing_told(task: Task, told: Sequence[RegionTold], released: int) -> list[str]:
    imputed: Counter[str] = Counter()
    for each in told:
        imputed.update(each.imputed)
    notes = [f"'{name}': {many} missing values were imputed with the mean" for name, many in imputed.items() if many]
    if gone := task.records - released:
        told_of = plural(gone, "record was", "records were")
        notes.append(f"{told_of} left out because a value is missing, as the policy asks")
    return notes
