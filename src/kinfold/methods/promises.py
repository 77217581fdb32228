"""Promises that the row counts of a class cannot decide, and advice on t.

    unit     every promise counts each person once in a class, however many rows they have there
    joint    a promise about one confidential column must hold for a recipient who knows the others as well
    both     and also with each person counted once among the rows that share the other columns
    household_k  a class has members of at least so many households

`tables.tally.Scopes` defines the counts, for the checker as well. A search cannot steer by these promises: classes
that miss one are merged with their nearest class until none does. One class of all records keeps every promise about
people that the table keeps; it may still miss a joint promise, and then the request cannot be met.

Advice on t is given if t-closeness leaves fewer than a tenth of the classes that k alone allows. What a looser t
would keep takes one partition per level: it is computed only if `report.measures` is "all".

Cost: O(n log n) a round, at worst one round per merge.   Ties: the lowest label.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import Unreachable, plural
from kinfold.measures.formulas.attackers import measure_class_risk
from kinfold.methods.partition.geometry import compute_centres, distances_to
from kinfold.methods.partition.requirement import CLOSENESS_ROUNDING, Requirement, find_least_closeness
from kinfold.methods.task import Task
from kinfold.models import TCloseness
from kinfold.tables.points import Labels, Points

FailingClasses: TypeAlias = Callable[[Labels], NDArray[np.bool_]]  # marks the classes that miss a promise

STRATUM_DISTANCE = 1e6  # deviations between strata: two records of one stratum are always nearer
FEW_CLASSES_SHARE = 0.1  # of the classes that k alone allows: a larger share would give most releases a note
LOOSER_FACTORS = (1.5, 2.0, 3.0)  # times t: from a small step to a different promise


def make_scope_check(task: Task) -> FailingClasses | None:
    """Return a function that marks classes that miss a promise about people or weights, or a joint one; or None."""
    privacy = task.policy.request.privacy
    scopes, households, k, risk = task.scopes, task.households, privacy.household_k, privacy.individual_risk
    if scopes is None and (households is None or k is None):
        return None

    def mark_failing(labels: Labels) -> NDArray[np.bool_]:
        failing = np.zeros(int(labels.max()) + 1, np.bool_)
        for model in (task.scope_models or task.models) if scopes is not None else ():
            for scope in scopes.for_column(labels, model.column):  # type: ignore[union-attr]
                failing[scope.owner[model.failing(scope.tally)]] = True
        if households is not None and k is not None:
            failing |= households.count(labels) < k
        if risk is not None:
            failing |= measure_class_risk(labels, scopes.weights.add_up(labels)) > risk  # type: ignore[union-attr]
        return failing

    return mark_failing


def merge_failing(points: Points, labels: Labels, mark_failing: FailingClasses) -> tuple[Labels, int]:
    """Merge failing classes with their nearest ones until none fails; return the labels and how many failed first."""
    labels, first = labels.copy(), 0
    while (failing := mark_failing(labels)).any():
        first = first or int(failing.sum())
        if len(failing) == 1:
            what = "a promise about people or weights, or a joint one, fails even with all records in one class"
            raise Unreachable(what, fix="relax the promises, or leave out privacy.joint or weighted")
        labels = merge_round(points, labels, failing)
    return labels, first


def merge_round(points: Points, labels: Labels, failing: NDArray[np.bool_]) -> Labels:
    """Merge every failing class, the smallest first, with its nearest class; each class takes part in one merge."""
    centres = compute_centres(points, labels)
    into = np.arange(len(failing))
    free = np.ones(len(failing), np.bool_)
    for group in np.lexsort((np.arange(len(failing)), np.bincount(labels)))[: len(failing)]:
        if not failing[group] or not free[group]:
            continue
        distances = distances_to(centres, centres, int(group))
        distances[group] = np.inf
        nearest = int(np.argmin(distances))
        near = int(np.argmin(np.where(free, distances, np.inf))) if free.sum() > 1 else nearest
        if distances[near] >= STRATUM_DISTANCE > distances[nearest]:  # stay in the stratum
            near = nearest
        into[group] = into[near]
        free[[group, near]] = False
    return np.unique(into[labels], return_inverse=True)[1].astype(np.int32)


def describe_repaired(repaired: int) -> list[str]:
    """Return a note on repaired classes."""
    if not repaired:
        return []
    were = "was" if repaired == 1 else "were"
    return [f"{plural(repaired, 'class', 'classes')} missed a promise at first and {were} repaired"]


def explain_single_class(task: Task) -> list[str]:
    """Return a note on each column whose t only one class of all records keeps, with the least t for more classes."""
    notes = []
    for model in task.closeness_models:
        least = find_least_closeness(Requirement.of(model, task.confidential[model.column]), task.k, model.t)
        if least is not None and model.t + CLOSENESS_ROUNDING < least < np.inf:
            what = f"'{model.column}': only a single class of all records keeps t = {model.t:g}"
            notes.append(f"{what}; more than one class needs t of at least {_round_up(least):g}")
    return notes


def _round_up(level: float) -> float:
    """Round up to three digits.

    >>> _round_up(0.012341), _round_up(0.25)
    (0.0124, 0.25)
    """
    unit = 10.0 ** (np.floor(np.log10(level)) - 2)
    return float(f"{np.ceil(round(level / unit, 6)) * unit:.3g}")


def note_few_classes(task: Task, classes: int, records: int) -> list[str]:
    """Return a note if t-closeness leaves few classes."""
    if not task.closeness_models or classes >= FEW_CLASSES_SHARE * records / task.k:
        return []
    return [f"t-closeness leaves only {plural(classes, 'class', 'classes')} of {plural(records, 'record')}"]


def advise_on_closeness(task: Task, classes: int, records: int, count_classes: Callable[[Task], int]) -> list[str]:
    """Return a note on few classes, with the classes that a looser t would keep; `count_classes` partitions a task."""
    if not (few := note_few_classes(task, classes, records)):
        return []
    if classes == 1 and (explanations := explain_single_class(task)):
        return explanations
    if task.policy.request.report.measures != "all":
        return [few[0] + '; report.measures = "all" says what a looser t would keep']
    counts, largest = [], max(model.t for model in task.closeness_models)
    for factor in (each for each in LOOSER_FACTORS if largest * each <= 1):
        models = [replace(m, t=m.t * factor) if isinstance(m, TCloseness) else m for m in task.models]
        counts.append(f"{count_classes(replace(task, models=models)):,} at {factor:g} times t")
    return [few[0] + (f"; a looser t would keep {', '.join(counts)}" if counts else "")]
