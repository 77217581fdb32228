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

from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import PolicyError, plural
from kinfold.methods.averaging import averaged
from kinfold.methods.blocks.saved_stages import BARE
from kinfold.methods.blocks.size import in_words
from kinfold.methods.planning.classes import Classes, classes_of, kept_apart
from kinfold.methods.planning.closeness_advice import advice
from kinfold.methods.planning.edit_rules import Nudged, Results, Rules, nudged
from kinfold.methods.planning.in_blocks import Blocks
from kinfold.methods.planning.missing import given_up, lacking_alike, refuse_mixed, strata
from kinfold.methods.planning.needs import lacking
from kinfold.methods.planning.people_and_joint import alike, beyond_rows, merge_until, merged_once
from kinfold.methods.planning.rare_patterns import keeping
from kinfold.methods.planning.running import announced, expected_partition
from kinfold.methods.planning.to_release import to_release
from kinfold.methods.task import Plan, Task
from kinfold.request.encoding import Attribute
from kinfold.request.methods import Declaration
from kinfold.rows.recoding import LEFT_OUT, Drop, Keep, Recoding, Treatment
from kinfold.rows.schema import Role

Labels: TypeAlias = NDArray[np.int32]

PROVED = 1e-6  # a share of the loss that rounding alone can be


def microaggregate(task: Task, method: Declaration, reason: str) -> Plan:
    """Return the recoding that gives every record the average of its class."""
    if problems := lacking(method, task):
        raise PolicyError(problems)
    taken = to_release(announced(task, method, expected_partition(method, task)), method)
    here, rows = taken.task, taken.rows
    found = classes_of(here, method)
    found, results, released = _averaged(here, found, taken.rules)
    told = [*taken.told, *given_up(taken.attributes, released), *_ruled(found.nudged)]
    labels = np.full(task.records, LEFT_OUT, np.int32)
    labels[rows] = found.labels
    recoding = Recoding(labels, treatments(task, results))
    notes = [*taken.notes, *(note for result in results.values() for note in result.notes), *told]
    notes += repaired_told(found.repaired)
    told += _blocks_in_words(found.blocks, notes)
    classes = int(found.labels.max()) + 1
    notes += advice(here, classes, len(rows), lambda looser: _count(looser, method))
    if found.gap is not None:
        notes.append(_told(found.gap, task))
    name, steps, blocks = method.name, found.steps or None, found.blocks.many if found.blocks else 0
    how = (found.repaired, name, steps, found.gap, found.refined, blocks, tuple(told))
    return Plan(recoding, name, reason, tuple(notes), *how)


def repaired_told(repaired: int) -> list[str]:
    """Say how many classes were repaired."""
    if not repaired:
        return []
    were = "was" if repaired == 1 else "were"
    return [f"{plural(repaired, 'class', 'classes')} missed a promise at first and {were} repaired"]


def _blocks_in_words(blocks: Blocks | None, notes: list[str]) -> list[str]:
    """Say that there were blocks: with the reason in the notes, without it for a recipient."""
    if blocks is None or not blocks.many:
        return []
    notes.append(in_words(blocks.many, blocks.size))
    return [notes[-1].partition(" of at most")[0]]


def _count(task: Task, method: Declaration) -> int:
    """Count the classes that a method makes, without refinement."""
    return int(classes_of(replace(task, shelf=BARE), method, refine=False).labels.max()) + 1


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
        labels, merged = merge_until(kept_apart(task, strata(task.attributes)), together, failing)
        refuse_mixed(task.attributes, labels)
        found = replace(found, labels=labels, repaired=found.repaired + merged)


def _by_rules(task: Task, found: Classes, rules: Rules | None) -> tuple[Classes, Results, list[Attribute]]:
    """Average each class; where edit rules are kept, nudge averages, and merge classes as long as that helps."""
    attributes, results = plainly(task, found.labels)
    if rules is None:
        return found, results, attributes
    exact = not task.policy.request.output.round
    best = nudged(rules, found.labels, results, exact=exact)
    apart = strata(task.attributes)
    while best.left.any() and len(best.left) > 1:
        labels = merged_once(kept_apart(task, apart), found.labels, best.left > 0)
        if keeping(task)(labels).any() or _crosses(labels, apart):
            break
        fresh, results = plainly(task, labels)
        trial = nudged(rules, labels, results, exact=exact)
        if trial.left.sum() >= best.left.sum():
            break
        found, attributes, best = replace(found, labels=labels), fresh, trial
    if best.left.any():
        best = nudged(rules, found.labels, plainly(task, found.labels)[1], exact=exact, blank=True)
    return replace(found, nudged=best), best.results, attributes


def plainly(task: Task, labels: Labels) -> tuple[list[Attribute], Results]:
    """Average each attribute over each class, whatever edit rules say."""
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


def treatments(task: Task, results: Results) -> dict[str, Treatment]:
    """Return what is done to each column, given what replaces the quasi-identifiers."""
    found: dict[str, Treatment] = {}
    for column in task.policy.columns:
        if column.role is Role.QUASI:
            found[column.name] = results[column.name].replace
        else:
            found[column.name] = Drop() if column.role is Role.IDENTIFIER else Keep()
    return found


def _told(gap: float, task: Task) -> str:
    # of categories larger classes may lose less, and no bound speaks of those
    sizes = f"of {task.k} to {2 * task.k - 1}" if task.points().scales else f"of at least {task.k}"
    if gap <= PROVED:
        return f"proved: no classes {sizes} records lose less"
    return f"within {gap:.2%} of the least loss that any classes {sizes} can have"
