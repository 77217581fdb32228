"""The records that classes are made of, their missing values dealt with as the policy says.

impute        the column's mean where it says `missing = "mean"`, or the nearest value that breaks no edit rule
leave out     records with a missing value where it says "drop"
set aside     records that the method does not want in any class
settle        rare patterns of missing values, where it says "separate": they join others, or are left out
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import Unreachable, plural
from kinfold.methods.planning.edit_rules import Rules
from kinfold.methods.planning.missing import imputed, left_out
from kinfold.methods.planning.rare_patterns import settled
from kinfold.methods.planning.rule_imputation import fill
from kinfold.methods.planning.running import set_aside
from kinfold.methods.task import Records, Task
from kinfold.request.encoding import Attribute
from kinfold.request.methods import Declaration

Mask: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Taken:
    """The task over the records that are released, which rows they are, and what there is to say."""

    task: Task
    rows: NDArray[np.intp]
    attributes: Sequence[Attribute]  # of these records, before any value was blanked
    rules: Rules | None
    notes: tuple[str, ...]
    told: tuple[str, ...]


def to_release(task: Task, method: Declaration) -> Taken:
    """Take the records to release, or say that there are too few."""
    rules = Rules.of(task)
    attributes, notes = imputed(task.attributes)
    attributes, unfit = fill(task, attributes, rules)
    gone = left_out(attributes)
    if missing := int(gone.sum()):
        told_of = plural(missing, "record was", "records were")
        notes.append(f"{told_of} left out because a value is missing, as the policy asks")
    rows = np.flatnonzero(~gone & ~unfit)
    _require(len(rows), task)
    here = replace(task, table=Records(attributes, task.confidential, task.scopes)).take(rows)
    spare, done, rare = _set_aside_and_settled(method, here)
    if spare.any():
        told_of = plural(int(spare.sum()), "record was", "records were")
        notes.append(f"{told_of} discarded so that classes are of one size, as the policy allows")
    _require(done.records, here, " lack the same values as enough others")
    rows = rows[~spare][~rare]
    task.may_suppress(len(rows))  # or raise
    told = {
        "no imputed value keeps every edit rule": int((unfit & ~gone).sum()),
        "too few others lack the same values": int(rare.sum()),
    }
    said = tuple(
        f"{plural(count, 'record was', 'records were')} left out, because {why}" for why, count in told.items() if count
    )
    before = attributes if len(rows) == task.records else [attribute.take(rows) for attribute in attributes]
    return Taken(done, rows, before, rules and rules.take(rows), tuple(notes), said)


def _set_aside_and_settled(method: Declaration, task: Task) -> tuple[Mask, Task, Mask]:
    """Return what is set aside, the task with every pattern settled, and what is left out for that.

    A limit on suppression counts both, so nothing is set aside where patterns of missing values take records.
    """
    spare = set_aside(method, task)
    done, rare = settled(task.take(np.flatnonzero(~spare)) if spare.any() else task)
    if spare.any() and rare.any():
        spare = np.zeros(task.records, np.bool_)
        done, rare = settled(task)
    return spare, done, rare


def _require(records: int, task: Task, which: str = "") -> None:
    if records >= task.k:
        return
    if which:
        what = f"k is {task.k}, but only {records:,} of {plural(task.records, 'record')}{which}"
        raise Unreachable(what, fix='lower k, or choose missing_rare = "blank"')
    raise Unreachable(
        f"k is {task.k}, but there are only {plural(records, 'record')}", fix="lower k, or bring more records"
    )
