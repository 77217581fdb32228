"""Microaggregation: partition the records, mend what misses a promise, average each class.

take          the records to release, missing values dealt with as the policy says (see `to_release`)
stratify      by the pattern of missing values where it says "separate": a class has one pattern
partition     each stratum with the method that the policy names
repair        classes that miss a promise about a confidential column, inside their stratum; `auto` from several starts
refine        by local search, as long as the policy lets it
merge         what still misses a promise about people, or a joint one
average       each attribute over each class
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import PolicyError, plural
from kinfold.methods.averaging import averaged
from kinfold.methods.planning.closeness_advice import advice, only_one_class
from kinfold.methods.planning.edit_rules import Nudged, Results, Rules, nudged
from kinfold.methods.planning.missing import given_up, lacking_alike, refuse_mixed, strata
from kinfold.methods.planning.needs import lacking
from kinfold.methods.planning.people_and_joint import APART, alike, beyond_rows, merge_until, merged_once
from kinfold.methods.planning.rare_patterns import keeping
from kinfold.methods.planning.refinement import Refined, not_exact, proved_gap, refined
from kinfold.methods.planning.running import partition
from kinfold.methods.planning.to_release import to_release
from kinfold.methods.task import Plan, Task
from kinfold.progress import Progress
from kinfold.request.encoding import Attribute, points
from kinfold.request.methods import Declaration
from kinfold.rows.points import Points
from kinfold.rows.recoding import LEFT_OUT, Drop, Keep, Recoding, Treatment
from kinfold.rows.schema import Role

if TYPE_CHECKING:
    from kinfold.methods.partition.repair import Repair
    from kinfold.methods.partition.requirement import Requirement

Labels: TypeAlias = NDArray[np.int32]

PROVED = 1e-6  # a share of the loss that rounding alone can be


@dataclass(frozen=True, eq=False)
class Classes:
    """The class of each record, how many were repaired, and the steps of refinement."""

    labels: Labels
    repaired: int = 0
    steps: int = 0
    gap: float | None = None
    refined: float = 0.0  # seconds of refinement
    nudged: Nudged | None = None  # for edit rules


def microaggregate(task: Task, method: Declaration, reason: str) -> Plan:
    """Return the recoding that gives every record the average of its class."""
    if problems := lacking(method, task):
        raise PolicyError(problems)
    taken = to_release(task, method)
    here, rows = taken.task, taken.rows
    found = _classes(here, method)
    found, results, released = _averaged(here, found, taken.rules)
    told = [*taken.told, *given_up(taken.attributes, released), *_ruled(found.nudged)]
    labels = np.full(task.records, LEFT_OUT, np.int32)
    labels[rows] = found.labels
    recoding = Recoding(labels, _treatments(task, results))
    notes = [*taken.notes, *(note for result in results.values() for note in result.notes), *told]
    if found.repaired:
        were = "was" if found.repaired == 1 else "were"
        notes.append(f"{plural(found.repaired, 'class', 'classes')} missed a promise at first and {were} repaired")
    classes = int(found.labels.max()) + 1
    notes += advice(
        here, classes, len(rows), lambda looser: int(_classes(looser, method, refine=False).labels.max()) + 1
    )
    if found.gap is not None:
        notes.append(_told(found.gap, task))
    name, steps = method.name, found.steps or None
    return Plan(
        recoding, name, reason, tuple(notes), found.repaired, name, steps, found.gap, found.refined, tuple(told)
    )


def _averaged(task: Task, found: Classes, rules: Rules | None) -> tuple[Classes, Results, list[Attribute]]:
    """Average each class, and merge further where classes that came out alike miss a promise together.

    Alike in the release, they are one class. It keeps any promise about rows that its parts keep; but a person who is
    in both is counted once in it, and so changes the table that classes are compared with.
    """
    failing = beyond_rows(task)
    while True:
        found, results, attributes = _by_rules(task, found, rules)
        if failing is None:
            return found, results, attributes
        together = alike([result.replace.values for result in results.values()])[found.labels]
        if not failing(together).any():
            return found, results, attributes
        labels, merged = merge_until(_kept_apart(task, strata(task.attributes)), together, failing)
        refuse_mixed(task.attributes, labels)
        found = replace(found, labels=labels, repaired=found.repaired + merged)


def _by_rules(task: Task, found: Classes, rules: Rules | None) -> tuple[Classes, Results, list[Attribute]]:
    """Average each class; where edit rules are kept, nudge averages, and merge classes as long as that helps."""
    attributes, results = _plainly(task, found.labels)
    if rules is None:
        return found, results, attributes
    exact = not task.policy.request.output.round
    best = nudged(rules, found.labels, results, exact=exact)
    apart = strata(task.attributes)
    while best.left.any() and len(best.left) > 1:
        labels = merged_once(_kept_apart(task, apart), found.labels, best.left > 0)
        if keeping(task)(labels).any() or _crosses(labels, apart):
            break
        fresh, results = _plainly(task, labels)
        trial = nudged(rules, labels, results, exact=exact)
        if trial.left.sum() >= best.left.sum():
            break
        found, attributes, best = replace(found, labels=labels), fresh, trial
    if best.left.any():
        best = nudged(rules, found.labels, _plainly(task, found.labels)[1], exact=exact, blank=True)
    return replace(found, nudged=best), best.results, attributes


def _plainly(task: Task, labels: Labels) -> tuple[list[Attribute], Results]:
    attributes = lacking_alike(task.attributes, labels)
    return attributes, {a.bound.name: averaged(a, labels, task.policy.request.output) for a in attributes}


def _ruled(nudged: Nudged | None) -> list[str]:
    if nudged is None:
        return []
    moved = f"{nudged.moved:,} class averages were moved so that edit rules hold"
    lost = [
        f"'{name}': {count:,} values were blanked so that edit rules hold" for name, count in nudged.blanked.items()
    ]
    return [*([moved] if nudged.moved else []), *lost]


def _crosses(labels: Labels, apart: Labels) -> bool:
    return len(np.unique(np.column_stack([labels, apart]), axis=0)) > int(labels.max()) + 1


def _treatments(task: Task, results: Results) -> dict[str, Treatment]:
    treatments: dict[str, Treatment] = {}
    for column in task.policy.columns:
        if column.role is Role.QUASI:
            treatments[column.name] = results[column.name].replace
        else:
            treatments[column.name] = Drop() if column.role is Role.IDENTIFIER else Keep()
    return treatments


def _classes(task: Task, method: Declaration, *, refine: bool = True) -> Classes:
    apart = strata(task.attributes)
    if problems := [*not_exact(task, apart)]:
        raise PolicyError(problems)
    if not apart.any() and only_one_class(task):
        return Classes(np.zeros(len(apart), np.int32))
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
        labels = _unmixed(task, every, labels, apart)
    started = time.perf_counter()
    found = refined(every, labels, task.k, required, task.method, task.progress) if refine else Refined(labels)
    seconds = time.perf_counter() - started if found.steps else 0.0
    better, gap = found.labels, found.gap
    if gap is None and refine and not required and not apart.any():
        gap = _gap(task, every, better)
    if failing := beyond_rows(task):
        better, merged = merge_until(every, better, failing)
        repaired += merged
    refuse_mixed(task.attributes, better)
    return Classes(better, repaired, found.steps, gap, seconds)


def _unmixed(task: Task, every: Points, labels: Labels, apart: Labels) -> Labels:
    """Part classes that repair made across strata; what then misses a promise is merged within its stratum."""
    pieces = np.unique(labels * (int(apart.max()) + 1) + apart, return_inverse=True)[1].astype(np.int32)
    return labels if pieces.max() == labels.max() else merge_until(every, pieces, keeping(task))[0]


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


def _share(progress: Progress, before: int, total: int) -> Progress:
    """Report the progress of one stratum as part of the whole."""
    return lambda done, _: progress(before + done, total)
