"""Far tables: so many records that nobody holds them all. They are microaggregated region by region, where they are.

describe      quasi-identifiers and confidential columns, by their distinct values and a sample of the records
part          every record into its region, by its own values (see `region_routes`); small regions are joined
classes       of each region as of any table, its promises compared with the whole one; averages over each class
number        the classes through all regions

What comes here are tallies, the sample, and what each class releases: nothing of a record. What cannot be done so (see
`_gathering`) is done as for any other table, and a note says why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from kinfold.errors import PolicyError, Unreachable, plural
from kinfold.methods.averaging import Averaged
from kinfold.methods.blocks.size import block_size
from kinfold.methods.partition.refine import blocks_by_size
from kinfold.methods.planning import region_routes
from kinfold.methods.planning.closeness_advice import few_classes
from kinfold.methods.planning.far_columns import far_columns, route_of
from kinfold.methods.planning.microaggregation import microaggregate, repaired_told, treatments
from kinfold.methods.planning.needs import lacking
from kinfold.methods.planning.region_work import RegionTold, RegionWork, SeamWork, promised_of
from kinfold.methods.task import Plan, Records, Task
from kinfold.request.methods import Declaration
from kinfold.request.table import Table
from kinfold.rows.engines.regions import LabelledRows, RegionAndSeam
from kinfold.rows.recoding import Recoding, Replace
from kinfold.rows.schema import Role

PATTERNS = 40  # columns whose missing values are kept apart


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
    known = far_columns(task, table)
    route = route_of(table, known)
    regions = table.engine.regions(table.frame, known.asked, route)
    counts = regions.counts()
    if _too_few(counts, task.k):
        return "too few records lack the same values"
    promised = [
        promised_of(each, regions.spread(len(known.quasi) + number)) for number, each in enumerate(known.promised)
    ]
    limited = _limited(task, block_size(method, task).records)
    work = RegionWork(route, limited, method, tuple(task.models), tuple(promised))
    number = region_routes.numbered(counts, task.k)
    made = regions.labelled(number, RegionAndSeam(work, SeamWork(work)), task.stage("regions"), task.shelf)
    told = [RegionTold.unpacked(each) for each in made.told]
    for error in (each.failed for each in told if each.failed is not None):
        if isinstance(error, Unreachable):
            return "a region alone could not keep what is promised"
        raise error
    return _planned(task, made, told, (method.name, reason, limited.method.refine_steps or None))


def _too_few(counts: Mapping[int, int], k: int) -> bool:
    """Whether too few records have a pattern of missing values for a class of their own."""
    by_pattern: Counter[int] = Counter()
    for region, records in counts.items():
        by_pattern[region // region_routes.MOST] += records
    return not by_pattern or min(by_pattern.values()) < k


def _limited(task: Task, blocks: int) -> Task:
    """Return the task without its table: blocks are those of the whole, and refinement has steps for all regions."""
    method = task.method
    if method.limits is None or (task.promises and method.by_itself):
        steps = 0
    else:
        steps = method.limits[0] or blocks_by_size(task.records)
    fixed = method.model_copy(update={"refine_steps": steps, "block": blocks or method.block})
    policy = replace(task.policy, request=task.policy.request.model_copy(update={"method": fixed}))
    return Task(policy, task.models, Records((), {}))


def _planned(task: Task, made: LabelledRows, told: Sequence[RegionTold], named: tuple[str, str, int | None]) -> Plan:
    """Return the recoding over all regions."""
    found = [each.results for each in told if each.results]
    results = {name: _together([each[name] for each in found]) for name in found[0]}
    recoding = Recoding(made.labels, treatments(task, results), held=made.held)
    classes = len(next(iter(results.values())).replace.values)
    released, repaired = sum(each.records for each in told), sum(each.repaired for each in told)
    task.may_suppress(released)  # or raise
    notes = [*_missing_told(task, told, released), *repaired_told(repaired)]
    blocks = sum(each.blocks for each in told)
    parted = f"the classes were made in {plural(blocks, 'block')}"
    most, far = max(each.records for each in told), region_routes.FAR
    many = sum(each.blocks > 0 for each in told)
    notes.append(
        f"{parted}, in {plural(many, 'region')} of at most {plural(most, 'record')}: "
        f"a table of more than {far:,} records is parted first"
    )
    notes += _steps_told(task)
    notes += few_classes(task, classes, released)
    name, reason, steps = named
    seconds = sum(each.refined for each in told)
    how = (repaired, name, steps, None, seconds, blocks, (parted,), many, _dominant(told))
    return Plan(recoding, name, reason, tuple(notes), *how)


def _dominant(told: Sequence[RegionTold]) -> dict[str, tuple[int, int]]:
    """Add up the classes in which one record dominates."""
    names = {name: None for each in told for name in each.dominant}
    parts = {name: [each.dominant[name] for each in told if name in each.dominant] for name in names}
    return {name: (sum(a for a, _ in counts), sum(b for _, b in counts)) for name, counts in parts.items()}


def _steps_told(task: Task) -> list[str]:
    """Say that a refinement by seconds was one by steps."""
    if task.method.limits is None or task.method.limits[1] is None:
        return []
    return ['the classes of a table that is parted are refined by steps, as many as refine = "auto" takes, not seconds']


def _together(parts: Sequence[Replace]) -> Averaged:
    values = pa.chunked_array([part.values for part in parts]).combine_chunks()
    return Averaged(Replace(values, parts[0].as_stored))


def _missing_told(task: Task, told: Sequence[RegionTold], released: int) -> list[str]:
    imputed: Counter[str] = Counter()
    for each in told:
        imputed.update(each.imputed)
    notes = [f"'{name}': {many} missing values were imputed with the mean" for name, many in imputed.items() if many]
    if gone := task.records - released:
        told_of = plural(gone, "record was", "records were")
        notes.append(f"{told_of} left out because a value is missing, as the policy asks")
    return notes
