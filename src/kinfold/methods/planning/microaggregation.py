"""Microaggregation: partition the records, mend what misses a promise, average each class.

leave out     records with a missing value where the policy says `missing = "drop"`
impute        the column's mean where it says "mean"
stratify      by the pattern of missing values where it says "separate": a class has one pattern
partition     each stratum with the method that the policy names
repair        classes that miss a promise about a confidential column, inside their stratum; `auto` from several starts
refine        by local search, as long as the policy lets it
merge         what still misses a promise about people, or a joint one
average       each attribute over each class
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import PolicyError, Unreachable
from kinfold.methods.averaging import Averaged, averaged
from kinfold.methods.planning.closeness_advice import advice
from kinfold.methods.planning.missing import imputed, left_out, strata
from kinfold.methods.planning.needs import lacking
from kinfold.methods.planning.people_and_joint import alike, beyond_rows, merge_until
from kinfold.methods.planning.refinement import Refined, not_exact, proved_gap, refined
from kinfold.methods.planning.running import partition, set_aside
from kinfold.methods.task import Plan, Records, Task
from kinfold.progress import Progress
from kinfold.request.encoding import points
from kinfold.request.methods import Declaration
from kinfold.rows.points import Points
from kinfold.rows.recoding import LEFT_OUT, Drop, Keep, Recoding, Treatment
from kinfold.rows.schema import Role

if TYPE_CHECKING:
    from kinfold.methods.partition.repair import Repair
    from kinfold.methods.partition.requirement import Requirement

Labels: TypeAlias = NDArray[np.int32]

PROVED = 1e-6  # a share of the loss that rounding alone can be
APART = 1e6  # deviations between strata: nothing is ever nearer across than within


@dataclass(frozen=True, eq=False)
class Classes:
    """The class of each record, how many were repaired, and the steps of refinement."""

    labels: Labels
    repaired: int = 0
    steps: int = 0
    gap: float | None = None


def microaggregate(task: Task, method: Declaration, reason: str) -> Plan:
    """Return the recoding that gives every record the average of its class."""
    if problems := lacking(method, task):
        raise PolicyError(problems)
    attributes, notes = imputed(task.attributes)
    gone = left_out(attributes)
    missing = int(gone.sum())
    rows = np.flatnonzero(~gone)
    if len(rows) < task.k:
        raise Unreachable(
            f"k is {task.k}, but there are only {len(rows)} records", fix="lower k, or bring more records"
        )
    here = replace(task, table=Records(attributes, task.confidential, task.unit)).take(rows)
    if (spare := set_aside(method, here)).any():
        notes.append(f"{int(spare.sum())} records were discarded so that classes are of one size, as the policy allows")
        rows, here = rows[~spare], here.take(np.flatnonzero(~spare))
    found = _classes(here, method)
    found, results = _averaged(here, found)
    labels = np.full(len(gone), LEFT_OUT, np.int32)
    labels[rows] = found.labels
    recoding = Recoding(labels, _treatments(task, results))
    notes += [note for result in results.values() for note in result.notes]
    if missing:
        notes.append(f"{missing} records were left out because a value is missing, as the policy asks")
    if found.repaired:
        notes.append(f"{found.repaired} classes missed a promise at first and were repaired")
    classes = int(found.labels.max()) + 1
    notes += advice(
        here, classes, len(rows), lambda looser: int(_classes(looser, method, refine=False).labels.max()) + 1
    )
    if found.gap is not None:
        notes.append(_told(found.gap, task))
    name = method.name
    return Plan(recoding, name, reason, tuple(notes), found.repaired, name, found.steps or None, found.gap)


def _averaged(task: Task, found: Classes) -> tuple[Classes, dict[str, Averaged]]:
    """Average each class, and merge further where classes that came out alike miss a promise together.

    Alike in the release, they are one class. It keeps any promise about rows that its parts keep; but a person who is
    in both is counted once in it, and so changes the table that classes are compared with.
    """
    failing, output = beyond_rows(task), task.policy.request.output
    while True:
        results = {a.bound.name: averaged(a, found.labels, output) for a in task.attributes}
        if failing is None:
            return found, results
        together = alike([result.replace.values for result in results.values()])[found.labels]
        if not failing(together).any():
            return found, results
        apart = strata(task.attributes, task.k)
        labels, merged = merge_until(_kept_apart(task, apart), together, failing)
        _refuse_mixed(labels, apart)
        found = replace(found, labels=labels, repaired=found.repaired + merged)


def _treatments(task: Task, results: Mapping[str, Averaged]) -> dict[str, Treatment]:
    treatments: dict[str, Treatment] = {}
    for column in task.policy.columns:
        if column.role is Role.QUASI:
            treatments[column.name] = results[column.name].replace
        else:
            treatments[column.name] = Drop() if column.role is Role.IDENTIFIER else Keep()
    return treatments


def _classes(task: Task, method: Declaration, *, refine: bool = True) -> Classes:
    apart = strata(task.attributes, task.k)
    if problems := [*not_exact(task, apart)]:
        raise PolicyError(problems)
    labels = np.empty(len(apart), np.int32)
    done = classes = 0
    for stratum in range(int(apart.max()) + 1):
        rows = np.flatnonzero(apart == stratum)
        part = partition(
            method, points(task.attributes, rows), task.take(rows), _share(task.progress, done, len(apart))
        )
        labels[rows] = part + classes
        classes, done = classes + int(part.max()) + 1, done + len(rows)
    return _improved(task, labels, apart, refine)


def _improved(task: Task, labels: Labels, apart: Labels, refine: bool) -> Classes:
    """Repair what misses a promise, then refine."""
    every = _kept_apart(task, apart)
    required, repaired = task.requirements(), 0
    if required:
        mended = _mended(task, every, labels, required)
        labels, repaired = mended.labels, mended.repaired
        _refuse_mixed(labels, apart)
    found = refined(every, labels, task.k, required, task.method, task.progress) if refine else Refined(labels)
    better, gap = found.labels, found.gap
    if gap is None and refine and not required and not apart.any():
        gap = _gap(task, every, better)
    if failing := beyond_rows(task):
        better, merged = merge_until(every, better, failing)
        repaired += merged
    _refuse_mixed(better, apart)
    return Classes(better, repaired, found.steps, gap)


def _mended(task: Task, every: Points, labels: Labels, required: Sequence[Requirement]) -> Repair:
    """Return classes that keep every promise, from those of the method and, where it is asked for, from others."""
    if task.method.starts:
        from kinfold.methods.partition.starts import best_start

        return best_start(every, labels, task.k, required, progress=task.progress)
    from kinfold.methods.partition.repair import repair

    return repair(every, labels, task.k, required, progress=task.progress)


def _kept_apart(task: Task, apart: Labels) -> Points:
    """Return the records as points, strata so far apart that nothing is ever gained by crossing."""
    every = points(task.attributes, np.arange(len(apart)))
    if not apart.any():
        return every
    return Points(np.column_stack([every.numbers, apart * APART]), every.codes, every.scales)


def _gap(task: Task, every: Points, labels: Labels) -> float | None:
    seconds = task.method.prove
    return proved_gap(every, labels, task.k, seconds, task.progress) if seconds and beyond_rows(task) is None else None


def _told(gap: float, task: Task) -> str:
    # of categories larger classes may lose less, and no bound speaks of those
    sizes = f"of {task.k} to {2 * task.k - 1}" if task.points().scales else f"of at least {task.k}"
    if gap <= PROVED:
        return f"proved: no classes {sizes} records lose less"
    return f"within {gap:.2%} of the least loss that any classes {sizes} can have"


def _refuse_mixed(labels: Labels, apart: Labels) -> None:
    first = np.full(int(labels.max()) + 1, -1, np.int64)
    first[labels] = apart
    if mixed := len(np.unique(labels[first[labels] != apart])):
        what = f"{mixed} classes keep the promises only if they hold records with and without missing values"
        raise Unreachable(what, fix='choose missing = "mean" or missing = "drop", or ask for less')


def _share(progress: Progress, before: int, total: int) -> Progress:
    """Report the progress of one stratum as part of the whole."""
    return lambda done, _: progress(before + done, total)
