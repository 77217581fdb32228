"""Large tables: too many records for one place. They are microaggregated region by region, where the records are.

describe      quasi-identifiers and confidential columns, by their distinct values and a sample of the records
route         every record to its region, by its own values (see `routing`); small regions are joined
classes       of each region as of any table, with promises compared with the whole table; averages of each class
number        the classes through all regions

The driver receives tallies, the sample, and the released values of each class: no record. A request that cannot be
met this way (see `_find_gathering_reasons`) is processed like any other table, and a note says why.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinfold.errors import Cancelled, DataError, KinfoldError, PolicyError, Problem, Unreachable, plural
from kinfold.measures.formulas.attribute_disclosure import ClassOrder, find_revealing_classes
from kinfold.methods.blocks import routing
from kinfold.methods.blocks.cutting import choose_block_size, rank_values
from kinfold.methods.blocks.pool import limit_threads
from kinfold.methods.blocks.routing import RegionRouter, RowReader
from kinfold.methods.classes import improve_borders, make_classes
from kinfold.methods.microaggregation import average_classes, microaggregate
from kinfold.methods.missing_values import describe_left_out
from kinfold.methods.partition.refine import default_blocks
from kinfold.methods.partition.requirement import Reference, Requirement
from kinfold.methods.plan import find_unmet_needs
from kinfold.methods.promises import describe_repaired, note_few_classes
from kinfold.methods.task import Plan, Records, Task
from kinfold.policy.encoding import Attribute, NumericAttribute
from kinfold.policy.registry import Declaration
from kinfold.policy.table import Table
from kinfold.policy.terms import collect_confidential
from kinfold.progress import no_progress
from kinfold.tables.points import Labels
from kinfold.tables.queries import round_stable, sample_positions
from kinfold.tables.recoding import Recoding, Replace
from kinfold.tables.regions import (
    NO_SEAM,
    LabelledRows,
    Labelling,
    RegionAndSeam,
    RegionProgress,
    RequestedColumns,
    ValueCodes,
)
from kinfold.tables.resources import refuse_to_collect
from kinfold.tables.schema import Column, Kind, Role
from kinfold.tables.tally import encode_values

Ints: TypeAlias = NDArray[np.int64]
Values: TypeAlias = NDArray[Any]

SUMMARY_COUNTS = ("records", "repaired", "refined", "blocks", "imputed", "dominant")  # fields of a packed summary
MAX_SEPARATE_COLUMNS = 40  # columns with `missing = "separate"`: their patterns must fit a 64-bit region number


class MustGatherError(Exception):
    """A request needs all records in one place; the text says why."""


def microaggregate_large(task: Task, table: Table, method: Declaration, reason: str) -> Plan:
    """Return the recoding that replaces every record by the average of its class, made region by region."""
    if problems := find_unmet_needs(method, task):
        raise PolicyError(problems)
    try:
        for why in _find_gathering_reasons(task, method):
            raise MustGatherError(why)
        return _plan_regions(task, table, method, reason)
    except MustGatherError as error:
        refuse_to_collect(table.engine.max_collected_rows, task.records, [str(error)])
        note = f"all records were collected in one place: {error}"
        return microaggregate(task, method, reason).prepend_notes([note], [])


def count_records_together(table: Table) -> int:
    """Return how many records are microaggregated in one place, before they are divided into regions."""
    limit = table.engine.max_collected_rows
    return routing.MAX_RECORDS_IN_MEMORY if limit is None else min(limit, routing.MAX_RECORDS_IN_MEMORY)


def _find_gathering_reasons(task: Task, method: Declaration) -> Iterator[str]:
    """Yield what the policy asks for that needs all records in one place."""
    request, quasi = task.policy.request, task.policy.with_role(Role.QUASI)
    if request.method.block == 0:
        yield "method.block = 0 forbids blocks"
    if request.method.refine == "exact" or request.method.prove:
        yield "the policy asks for the least possible loss"
    privacy = request.privacy
    if privacy.unit is not None or privacy.joint or privacy.weighted or privacy.individual_risk is not None:
        yield "promises about people or weights, and joint ones, are kept over the whole table"
    if task.policy.rules:
        yield "edit rules are kept over the whole table"
    if request.privacy.household is not None:
        yield "households are kept together over the whole table"
    if request.output.weighted or any(c.request.regrouped for c in task.policy.columns):
        yield "sampling weights are counted over the whole table"
    if request.output.preserve == "variance":
        yield "output.preserve is variance, which rescales over the whole table"
    if method.sets_aside and request.method.suppression:
        yield "records may be discarded, those farthest from all others"
    if any(column.suppressed for column in quasi):
        yield "cells are suppressed"
    if "suppression" in request.method.model_fields_set and all(column.average == "generalize" for column in quasi):
        yield "records that keep no quasi-identifier count as suppressed"
    if any(c.kind.is_numeric and c.average == "generalize" and c.request.hierarchy for c in quasi):
        yield "numbers or dates are generalized by a hierarchy"
    if sum(column.request.missing == "separate" for column in quasi) > MAX_SEPARATE_COLUMNS:
        yield f"missing values of more than {MAX_SEPARATE_COLUMNS} columns are kept apart"


def _plan_regions(task: Task, table: Table, method: Declaration, reason: str) -> Plan:
    """Return the plan of a large table, or raise `MustGatherError`."""
    columns = describe_large_columns(task, table)
    router = route_by_sample(task, table, columns)
    regions = table.engine.regions(table.frame, columns.requested, router)
    counts = regions.counts()
    by_pattern: Counter[int] = Counter()
    for region, records in counts.items():
        by_pattern[region // routing.MAX_REGIONS_PER_PATTERN] += records
    if not by_pattern or min(by_pattern.values()) < task.k:
        raise MustGatherError("too few records lack the same values")
    promised = tuple(
        select_released_values(each, regions.count_codes(len(columns.quasi) + number))
        for number, each in enumerate(columns.confidential)
    )
    limited = _limit_task(task, choose_block_size(method, task).records)
    inputs = (router, limited, method, promised)
    jobs = RegionAndSeam(RegionJob(*inputs), SeamJob(*inputs))
    numbers = routing.number_regions(counts, task.k)
    labelled = regions.label(numbers, jobs, task.stage("regions"), task.checkpoints)
    summaries = [RegionSummary.unpack(each) for each in labelled.summaries]
    for error in (each.error for each in summaries if each.error is not None):
        if isinstance(error, Unreachable):
            raise MustGatherError("a region alone could not keep every promise")
        raise error
    plan = _build_plan(task, method.name, reason, labelled, summaries)
    return replace(plan, steps=limited.method.refine_steps or None)


def _limit_task(task: Task, blocks: int) -> Task:
    """Return the task without its table, with the block size and the refinement steps of the whole table."""
    method = task.method
    if method.refinement_limits is None or (task.has_promises and method.auto_refines):
        steps = 0
    else:
        steps = method.refinement_limits[0] or default_blocks(task.records)
    fixed = method.model_copy(update={"refine_steps": steps, "block": blocks or method.block})
    policy = replace(task.policy, request=task.policy.request.model_copy(update={"method": fixed}))
    return Task(policy, task.models, Records((), {}))


def _build_plan(
    task: Task, method: str, reason: str, labelled: LabelledRows, summaries: Sequence[RegionSummary]
) -> Plan:
    """Return the recoding over all regions."""
    parts = [each.results for each in summaries if each.results]
    results = {}
    for name, first in parts[0].items():
        values = pa.chunked_array([part[name].values for part in parts]).combine_chunks()
        results[name] = Replace(values, first.as_stored)
    classes = len(next(iter(results.values())).values)
    released, repaired = sum(each.records for each in summaries), sum(each.repaired for each in summaries)
    task.may_suppress(released)  # or raise
    blocks, regions = sum(each.blocks for each in summaries), sum(each.blocks > 0 for each in summaries)
    public_note = f"the classes were made in {plural(blocks, 'block')}"
    largest = plural(max(each.records for each in summaries), "record")
    assert isinstance(task.table, Table)  # noqa: S101  the caller has one
    limit = f"a table of more than {count_records_together(task.table):,} records is divided first"
    notes = [*_describe_missing(task, summaries, released), *describe_repaired(repaired)]
    notes.append(f"{public_note}, in {plural(regions, 'region')} of at most {largest}: {limit}")
    if task.method.refinement_limits is not None and task.method.refinement_limits[1] is not None:
        notes.append('the regions of a large table are refined by as many steps as refine = "auto" takes, not seconds')
    notes += note_few_classes(task, classes, released)
    dominated: dict[str, tuple[int, int]] = {}  # the classes in which one record dominates, by two rules
    for name, (alone_known, revealed) in (item for each in summaries for item in each.dominant.items()):
        before = dominated.get(name, (0, 0))
        dominated[name] = before[0] + alone_known, before[1] + revealed
    return Plan(
        Recoding(labelled.labels, task.treat_columns(results), engine_labels=labelled.held),
        method,
        reason,
        notes=tuple(notes),
        repaired=repaired,
        start=method,
        refine_seconds=sum(each.refined for each in summaries),
        blocks=blocks,
        public_notes=(public_note,),
        regions=regions,
        dominated=dominated,
    )


def _describe_missing(task: Task, summaries: Sequence[RegionSummary], released: int) -> list[str]:
    imputed: Counter[str] = Counter()
    for each in summaries:
        imputed.update(each.imputed)
    notes = [f"'{name}': {count} missing values were imputed with the mean" for name, count in imputed.items() if count]
    return [*notes, *describe_left_out(task.records - released)]


@dataclass(frozen=True, eq=False)
class LargeConfidential:
    """A confidential column with a promise: its distinct values, and how many records have each."""

    name: str
    values: Values
    totals: Ints


@dataclass(frozen=True, eq=False)
class LargeColumns:
    """The columns of a large table."""

    quasi: tuple[Attribute, ...]  # without records
    confidential: tuple[LargeConfidential, ...]
    requested: RequestedColumns  # the columns that regions get: quasi-identifiers, then confidential ones
    imputed: tuple[float | None, ...]  # the mean of each quasi-identifier, if it is imputed


def describe_large_columns(task: Task, table: Table) -> LargeColumns:
    """Read the distinct values of every column except numbers and dates."""
    quasi: list[Attribute] = []
    requested: list[Column | ValueCodes] = []
    imputed: list[float | None] = []
    for bound in task.policy.with_role(Role.QUASI):
        mean: float | None = None
        if bound.kind.is_numeric:
            attribute: Attribute = NumericAttribute(bound, np.empty(0))
            requested.append(bound.column)
            if bound.request.missing == "mean" and bound.column.nulls:
                mean = _compute_figure(table, bound.column, 1)
        else:
            attribute, codes = table.encode_categories(bound)
            requested.append(codes)
        quasi.append(attribute.take(np.arange(0)))
        imputed.append(mean)
    names = dict.fromkeys(model.column for model in task.models if model.column is not None)
    confidential = [_describe_confidential(table, name) for name in names]
    requested += [codes for _, codes in confidential]
    columns = tuple(column for column, _ in confidential)
    return LargeColumns(tuple(quasi), columns, requested, tuple(imputed))


def _compute_figure(table: Table, column: Column, which: int) -> float:
    """Return the mean (1) or deviation (2) of a column, the same on any engine."""
    figure = float(np.ravel(table.engine.moments(table.frame, {column.name: column})[which])[0])
    return round_stable(figure if which == 1 else float(np.sqrt(figure)))


def _describe_confidential(table: Table, name: str) -> tuple[LargeConfidential, ValueCodes]:
    """Return a confidential column by its distinct values, and the code of each."""
    engine, frame = table.engine, table.frame
    distinct = engine.tally(frame, [name], {}).tuples
    terms = replace(table.terms, confidential=tuple(c for c in table.terms.confidential if c.name == name))
    values, codes = encode_values(np.asarray(collect_confidential(engine, distinct, terms)[name]))
    totals = np.bincount(codes, engine.tally(frame, [name], {}).sizes).astype(np.int64)
    return LargeConfidential(name, values, totals), ValueCodes(name, distinct, codes)


def route_by_sample(task: Task, table: Table, columns: LargeColumns) -> RegionRouter:
    """Return the router to the regions, by the cuts of a sample."""
    regions = routing.count_regions(table.policy.rows)
    records = max(routing.SAMPLE_RECORDS, routing.SAMPLE_RECORDS_PER_REGION * regions)
    places = sample_positions(table.policy.rows, records)
    rows = table.engine.take(table.frame, places)[0]
    values = {f"v{at}": table.collect_column(rows, column) for at, column in enumerate(columns.requested)}
    sample = pa.table({"place": places} | values)
    reader = _add_deviations(table, RowReader(columns.quasi, columns.imputed).standardize(sample))
    models: dict[str, Any] = {str(model.column): model for model in reversed(task.models)}  # the first of a column
    ranks = [rank_values(models[c.name].criterion(c.values), c.totals) for c in columns.confidential]
    # each region has enough records of the sample in each layer
    enough = len(places) // (regions * routing.SAMPLE_RECORDS_PER_LAYER)
    limit = max(1, min(routing.MAX_REGION_LAYERS, enough))
    layers = routing.layer_values(ranks, [each.totals for each in columns.confidential], limit)
    return routing.build_router(reader, layers, sample, table.policy.rows)


def _add_deviations(table: Table, reader: RowReader) -> RowReader:
    """Return the reader with the deviation of the table for each column that is constant in the sample."""
    attributes: list[Attribute] = []
    for attribute in reader.attributes:
        filled = attribute
        if isinstance(filled, NumericAttribute) and filled.mean_and_deviation is not None:
            mean, deviation = filled.mean_and_deviation
            if not deviation and filled.bound.column.distinct > 1:
                deviation = _compute_figure(table, filled.bound.column, 2)
            filled = replace(filled, mean_and_deviation=(mean, deviation))
        attributes.append(filled)
    return replace(reader, attributes=tuple(attributes))


@dataclass(frozen=True, eq=False)
class PromisedColumn:
    """A confidential column as regions need it."""

    name: str
    values: Values  # those that are released
    code: Ints  # the place among these of each distinct value of the table
    totals: Ints  # how many released records have each

    def make_requirement(self, model: Any, codes: Ints) -> Requirement:
        """Return the requirement of a model on some records, compared with all released records."""
        criterion = model.criterion(self.values)
        all_values = Requirement(criterion, np.arange(len(self.values)))
        totals = tuple(np.bincount(row, self.totals).astype(np.float64) for row in all_values.rows())
        return Requirement(criterion, self.code[codes], Reference(totals))


def select_released_values(column: LargeConfidential, released: Mapping[int, int]) -> PromisedColumn:
    """Return a column without the values that no released record has."""
    totals = np.zeros(len(column.values), np.int64)
    totals[[*released]] = [*released.values()]
    present = totals > 0
    return PromisedColumn(column.name, column.values[present], np.cumsum(present) - 1, totals[present])


@dataclass(frozen=True, eq=False)
class RegionJob:
    """Makes the classes of a region; it can be pickled."""

    router: RegionRouter
    task: Task  # without records
    method: Declaration
    promised: tuple[PromisedColumn, ...]

    def __call__(self, rows: pa.Table, progress: RegionProgress | None = None) -> Labelling:
        """Return the classes of these records and their averages; a summary may hold an error instead."""
        try:
            with limit_threads(1) if progress is None else nullcontext():  # executors run several regions at a time
                return self._run(rows, progress)
        except Cancelled:
            raise
        except KinfoldError as error:
            labels, seam = np.zeros(rows.num_rows, np.int32), np.full(rows.num_rows, NO_SEAM, np.int64)
            return Labelling(labels, 1, RegionSummary(error=error).pack(), seam)

    def _run(self, rows: pa.Table, progress: RegionProgress | None) -> Labelling:
        task = self.make_task(rows, progress)
        classes = make_classes(task, self.method, np.zeros(rows.num_rows, np.int32))
        labels, seam = self._number_seams(rows, task, classes.labels)
        summary = RegionSummary(
            records=rows.num_rows,
            repaired=classes.repaired,
            refined=classes.refine_seconds,
            blocks=max(classes.blocks.count if classes.blocks else 0, 1),
            imputed=self.router.reader.count_imputed(rows),
        )
        return label_and_average(task, labels, seam, summary)

    def _number_seams(self, rows: pa.Table, task: Task, labels: Labels) -> tuple[Labels, Ints]:
        """Return the labels, with the classes at seams last, and the seam of each record."""
        pattern = int(routing.find_patterns(task.attributes)[0])
        if pattern not in self.router.trees:
            return labels, np.full(len(labels), NO_SEAM, np.int64)
        cuts, places = (self.router.trees[pattern], self.router.seam_trees[pattern]), rows.column("place").to_numpy()
        blocks = routing.assign_seams(*cuts, task.points(), labels, places)
        class_seams = np.where(blocks < 0, NO_SEAM, pattern * routing.MAX_REGIONS_PER_PATTERN + blocks)
        number = np.empty(len(class_seams), np.int32)
        number[np.argsort(class_seams >= 0, kind="stable")] = np.arange(len(class_seams))
        return number[labels], class_seams[labels]

    def make_task(self, rows: pa.Table, progress: RegionProgress | None) -> Task:
        """Return the task over these records, with its share of the refinement steps."""
        reader = self.router.reader
        codes = {each.name: reader.codes(rows, number) for number, each in enumerate(self.promised)}
        columns = {each.name: each for each in self.promised}
        required = [
            columns[name].make_requirement(model, codes[name])
            for model in self.task.models
            if (name := model.column) is not None
        ]
        values = {name: columns[name].values[columns[name].code[each]] for name, each in codes.items()}
        request = self.task.policy.request
        steps = (request.method.refine_steps or 0) * rows.num_rows // self.task.policy.rows
        method = request.method.model_copy(update={"refine_steps": steps})
        policy = replace(self.task.policy, request=request.model_copy(update={"method": method}))
        records = Records(reader.read(rows), values, None, required)
        return Task(policy, self.task.models, records, progress or no_progress)


class SeamJob(RegionJob):
    """Improves the classes of a seam group; it can be pickled."""

    def _run(self, rows: pa.Table, progress: RegionProgress | None) -> Labelling:
        task = self.make_task(rows, progress)
        region, labels = read_seam_labels(rows)
        if region.min() < region.max():
            labels = improve_borders(
                task.points(), labels, region, task.k, task.requirements(), progress or no_progress
            )
        return label_and_average(task, labels, np.full(len(labels), NO_SEAM, np.int64), RegionSummary())


def read_seam_labels(rows: pa.Table) -> tuple[Labels, Labels]:
    """Return the region of each record of a seam group, and its class, numbered through all regions."""
    region, label = (rows.column(name).to_numpy().astype(np.int64) for name in ("number", "label"))
    both = region * (int(label.max()) + 1) + label
    return region.astype(np.int32), np.unique(both, return_inverse=True)[1].astype(np.int32)


def label_and_average(task: Task, labels: Labels, seam: Ints, summary: RegionSummary) -> Labelling:
    """Return the classes of some records, with the averages of those at no seam."""
    final = np.flatnonzero(seam < 0)
    if not len(final):
        return Labelling(labels, 0, summary.pack(), seam)
    part, part_labels = task.take(final), labels[final]
    results = {name: each.replace for name, each in average_classes(part, part_labels)[1].items()}
    summary = replace(summary, results=results, dominant=_count_dominated(part, part_labels))
    return Labelling(labels, int(part_labels.max()) + 1, summary.pack(), seam)


def _count_dominated(task: Task, labels: Labels) -> dict[str, tuple[int, int]]:
    """Count for each averaged number the classes whose average reveals the largest record, by two rules."""
    order, counts = ClassOrder.from_classes(labels), {}
    for attribute in task.attributes:
        bound = attribute.bound
        if isinstance(attribute, NumericAttribute) and bound.kind is Kind.CONTINUOUS and bound.average != "generalize":
            dominated, revealed = (int(marked.sum()) for marked in find_revealing_classes(order, attribute.numbers))
            counts[bound.name] = dominated, revealed
    return counts


@dataclass(frozen=True, eq=False)
class RegionSummary:
    """Counts of a region or seam group, and the values of its classes, if it has any."""

    records: int = 0
    repaired: int = 0
    refined: float = 0.0  # seconds
    blocks: int = 0
    imputed: Mapping[str, int] = field(default_factory=dict)
    dominant: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    results: Mapping[str, Replace] = field(default_factory=dict)
    error: KinfoldError | None = None  # instead of everything else

    def pack(self) -> bytes:
        """Return the summary as an Arrow stream: the values, and the rest as metadata."""
        values = [treatment.values for treatment in self.results.values()]
        table = pa.table(values, [f"v{i}" for i in range(len(values))])
        counts = {name: getattr(self, name) for name in SUMMARY_COUNTS}
        stored = {name: treatment.as_stored for name, treatment in self.results.items()}
        error = self.error and [type(self.error).__name__, [[each.what, each.fix] for each in self.error.problems]]
        sink = pa.BufferOutputStream()
        schema = table.schema.with_metadata({"summary": json.dumps([counts, stored, error])})
        with pa.ipc.new_stream(sink, schema) as stream:
            stream.write_table(table)
        return sink.getvalue().to_pybytes()

    @classmethod
    def unpack(cls, packed: bytes) -> RegionSummary:
        """Return a packed summary."""
        table = pa.ipc.open_stream(packed).read_all()
        counts, stored, error = json.loads(table.schema.metadata[b"summary"])
        values = (column.combine_chunks() for column in table.columns)
        results = {
            name: Replace(each, as_stored) for each, (name, as_stored) in zip(values, stored.items(), strict=True)
        }
        if error:
            kinds = {kind.__name__: kind for kind in (PolicyError, DataError, Unreachable)}
            error = kinds.get(error[0], KinfoldError)([Problem(what, fix) for what, fix in error[1]])
        return cls(**counts, results=results, error=error)
