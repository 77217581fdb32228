"""Microaggregation: partition the records, mend what misses a promise, average each class.

take          the records to release, missing values dealt with as the policy says (see `to_release`)
stratify      by the pattern of missing values where it says "separate": a class has one pattern
partition     each stratum with the method that the policy names; a large one in blocks (see `in_blocks`)
repair        classes that miss a promise about a confidential column, inside their stratum; `auto` from several starts
borders       of blocks, if there are any
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
from kinfold.methods.blocks.parallel_blocks import Labelled
from kinfold.methods.blocks.saved_stages import BARE
from kinfold.methods.blocks.size import in_words
from kinfold.methods.planning.closeness_advice import advice, only_one_class
from kinfold.methods.planning.edit_rules import Nudged, Results, Rules, nudged
from kinfold.methods.planning.in_blocks import Blocks, blocks_of, bordered, mended, partitioned
from kinfold.methods.planning.missing import given_up, lacking_alike, refuse_mixed, strata
from kinfold.methods.planning.needs import lacking
from kinfold.methods.planning.people_and_joint import APART, alike, beyond_rows, merge_until, merged_once
from kinfold.methods.planning.rare_patterns import keeping
from kinfold.methods.planning.refinement import Refined, not_exact, proved_gap, refined, refined_in_blocks
from kinfold.methods.planning.to_release import to_release
from kinfold.methods.task import Plan, Task
from kinfold.request.encoding import Attribute, points
from kinfold.request.methods import Declaration
from kinfold.rows.points import Points
from kinfold.rows.recoding import LEFT_OUT, Drop, Keep, Recoding, Treatment
from kinfold.rows.schema import Role

if TYPE_CHECKING:
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
    blocks: Blocks | None = None  # that they were made in


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
    told += _blocks_in_words(found.blocks, notes)
    classes = int(found.labels.max()) + 1
    notes += advice(here, classes, len(rows), lambda looser: _count(looser, method))
    if found.gap is not None:
        notes.append(_told(found.gap, task))
    name, steps, blocks = method.name, found.steps or None, found.blocks.many if found.blocks else 0
    how = (found.repaired, name, steps, found.gap, found.refined, blocks, tuple(told))
    return Plan(recoding, name, reason, tuple(notes), *how)


def _blocks_in_words(blocks: Blocks | None, notes: list[str]) -> list[str]:
    """Say that there were blocks: with the reason in the notes, without it for a recipient."""
    if blocks is None or not blocks.many:
        return []
    notes.append(in_words(blocks.many, blocks.size))
    return [notes[-1].partition(" of at most")[0]]


def _count(task: Task, method: Declaration) -> int:
    """Count the classes that a method makes, without refinement."""
    return int(_classes(replace(task, shelf=BARE), method, refine=False).labels.max()) + 1


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
    every = points(task.attributes, np.arange(len(apart)))
    blocks = blocks_of(task, method, every, apart)
    part = partitioned(task, method, every, blocks)
    every, required = _further_apart(every, apart), task.requirements()
    part = _repaired(task, every, part, blocks, required)
    labels = bordered(task, every, part.labels, blocks, required)
    return _improved(task, every, replace(part, labels=labels), blocks, refine=refine)


def _repaired(task: Task, every: Points, part: Labelled, blocks: Blocks, required: Sequence[Requirement]) -> Labelled:
    """Repair what misses a promise; in blocks that was done but for what a block alone could not."""
    if not required:
        return part
    if blocks.many:
        from kinfold.methods.partition.repair import repair

        found = repair(every, part.labels, task.k, required, progress=task.stage("repair"))
    else:
        found = mended(task, every, part.labels, required, task.progress)
    return Labelled(_unmixed(task, every, found.labels, blocks.apart), part.mended + found.repaired)


def _improved(task: Task, every: Points, part: Labelled, blocks: Blocks, *, refine: bool) -> Classes:
    """Refine, and merge what still misses a promise that a search cannot steer by."""
    required, repaired = task.requirements(), part.mended
    started = time.perf_counter()
    found = Refined(part.labels)
    if refine and blocks.many:
        found = refined_in_blocks(task, every, part.labels, required)
    elif refine:
        found = refined(every, part.labels, task.k, required, task.method, task.progress)
    seconds = time.perf_counter() - started if found.steps else 0.0
    better, gap = found.labels, found.gap
    if gap is None and refine and not required and not blocks.apart.any():
        gap = _gap(task, every, better)
    if failing := beyond_rows(task):
        better, merged = merge_until(every, better, failing)
        repaired += merged
    refuse_mixed(task.attributes, better)
    return Classes(better, repaired, found.steps, gap, seconds, blocks=blocks)


def _unmixed(task: Task, every: Points, labels: Labels, apart: Labels) -> Labels:
    """Labelled classes that repair made across strata; what then misses a promise is merged within its stratum."""
    pieces = np.unique(labels * (int(apart.max()) + 1) + apart, return_inverse=True)[1].astype(np.int32)
    return labels if pieces.max() == labels.max() else merge_until(every, pieces, keeping(task))[0]


def _kept_apart(task: Task, apart: Labels) -> Points:
    """Return the records as points, strata so far apart that nothing is ever gained by crossing."""
    return _further_apart(points(task.attributes, np.arange(len(apart))), apart)


def _further_apart(every: Points, apart: Labels) -> Points:
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
