"""Households: the values of a household are recoded once, so that all its members show the same.

A quasi-identifier is an attribute of the household if no household shows two values of it, else of the member.

    households   partition the households by their attributes, at least k of them in a class, each counted once; merge
                 classes whose members together miss a promise
    members      partition the members of each class of households by their own attributes, under every promise
    values       attributes of households are averaged over their class, each household counted once; attributes of
                 members over theirs

Where a repair merges classes of members across classes of households, these are connected, and averaged together: so
all members of a household show the same, whatever is merged.

The household stage uses the method of the policy, or the default method if that one needs more than k, and its
refinement; the members of a class of households are too few to refine.

For local suppression the two stages are searches: empty cells of households first, which k households share, then
empty cells of members, with the cells of households as they are.

Cost: that of the method on the households, and on the members of each class.   Ties: those of the method.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinfold.errors import Unreachable
from kinfold.methods.aggregation import ReplacedColumn, average_column
from kinfold.methods.blocks.pool import NO_CHECKPOINTS
from kinfold.methods.classes import Classes, make_classes, repair_classes, separate_strata
from kinfold.methods.missing_values import make_promise_check
from kinfold.methods.partition.requirement import require_reachable
from kinfold.methods.plan import load_method
from kinfold.methods.promises import make_scope_check, merge_failing
from kinfold.methods.task import Records, Task
from kinfold.models import KAnonymity
from kinfold.policy.encoding import Attribute
from kinfold.policy.registry import Declaration, get_default_method
from kinfold.progress import no_progress
from kinfold.tables.points import Labels, Points


def make_household_classes(task: Task, method: Declaration) -> tuple[Task, Classes]:
    """Return the classes of records, and the task with the classes of households that contain them."""
    assert task.households is not None  # noqa: S101  the caller checks it
    require_reachable(task.requirements())
    households, members = split_attributes(task)
    numbers = np.unique(task.households.numbers, return_inverse=True)[1]
    strata, repaired, steps, seconds = np.zeros(task.records, np.int32), 0, 0, 0.0
    if households:
        grouped = _partition_households(task, households, numbers, method)
        strata, repaired, steps, seconds = (
            grouped.labels[numbers],
            grouped.repaired,
            grouped.steps,
            grouped.refine_seconds,
        )
    known = replace(task.households, groups=strata.astype(np.int64))
    task = replace(task, table=replace(task.to_records(task.attributes), households=known))
    own = replace(task, table=task.to_records(members), checkpoints=NO_CHECKPOINTS)
    labels = _partition_members(own, method, strata) if members else strata
    check = make_scope_check(task)
    if check is not None:
        points = separate_strata(task.points() if not members else own.points(), strata)
        labels, merged = merge_failing(points, labels, check)
        repaired += merged
    return task, Classes(labels, repaired, steps, refine_seconds=seconds)


def split_attributes(task: Task) -> tuple[list[Attribute], list[Attribute]]:
    """Return the quasi-identifiers of households, and those of members."""
    names = task.households.attributes if task.households is not None else ()
    shared = [each for each in task.attributes if each.bound.name in names]
    return shared, [each for each in task.attributes if each.bound.name not in names]


def _partition_households(
    task: Task, attributes: Sequence[Attribute], numbers: NDArray[np.intp], method: Declaration
) -> Classes:
    """Return the class of each household; the members of every class keep every promise together."""
    first = np.unique(numbers, return_index=True)[1]
    k = max(task.k, task.policy.request.privacy.household_k or 0)
    if len(first) < k:
        what = f"a class of households has at least {k}, but there are only {len(first):,}"
        raise Unreachable(what, fix="lower k or privacy.household_k, or leave out privacy.household")
    privacy = task.policy.request.privacy.model_copy(update={"k": k})
    request = task.policy.request.model_copy(update={"privacy": privacy})
    records = Records([each.take(first) for each in attributes], {})
    reduced = replace(
        task,
        policy=replace(task.policy, request=request),
        models=[KAnonymity(k)],
        table=records,
        checkpoints=NO_CHECKPOINTS,
    )
    chosen = get_default_method() if method.needs else method
    classes = make_classes(reduced, chosen, np.zeros(len(first), np.int32))
    check = make_promise_check(task)  # over the members

    def mark_failing(labels: Labels) -> NDArray[np.bool_]:
        return check(labels[numbers])

    labels, merged = merge_failing(reduced.points(), classes.labels, mark_failing)
    return replace(classes, labels=labels, repaired=merged)


def _partition_members(task: Task, method: Declaration, strata: Labels) -> Labels:
    """Partition the members in each class of households; a class that cannot be divided stays as it is."""
    required, points = [each.with_reference() for each in task.requirements()], task.points()
    labels, classes = np.empty(task.records, np.int32), 0
    order = np.argsort(strata, kind="stable")
    progress, count = task.stage("members"), int(strata.max()) + 1
    for number, rows in enumerate(np.split(order, np.cumsum(np.bincount(strata))[:-1])):
        progress(number, count)
        part = np.zeros(len(rows), np.int32)
        if len(rows) >= 2 * task.k:
            part = _divide(task.take_block(rows, required), method, points.take(rows))
        labels[rows] = part + classes
        classes += int(part.max()) + 1
    return labels


def _divide(task: Task, method: Declaration, points: Points) -> Labels:
    required = task.requirements()
    try:
        labels = load_method(method).run(points, task, no_progress)
        if required:
            labels = repair_classes(task, points, labels, required, no_progress).labels
    except Unreachable:
        return np.zeros(len(points), np.int32)
    return np.asarray(labels, np.int32)


def connect_classes(labels: Labels, numbers: NDArray[np.int64]) -> Labels:
    """Return, for each class, the group of classes that are connected by records with equal numbers.

    >>> connect_classes(np.array([0, 1, 1, 2, 3]), np.array([0, 0, 1, 1, 2])).tolist()
    [0, 0, 0, 1]
    """
    shared = np.unique(numbers, return_inverse=True)[1]
    group = np.arange(int(labels.max()) + 1)
    while True:
        least = np.full(int(shared.max()) + 1, len(group))
        np.minimum.at(least, shared, group[labels])
        joined = group.copy()
        np.minimum.at(joined, labels, least[shared])
        joined = joined[joined]  # follow the groups that were joined themselves
        if (joined == group).all():
            return np.unique(group, return_inverse=True)[1].astype(np.int32)
        group = joined


def average_households(task: Task, attributes: Sequence[Attribute], labels: Labels) -> dict[str, ReplacedColumn]:
    """Return the values of each class for the attributes of households: averages over the households of its group."""
    households = task.households
    assert households is not None  # noqa: S101  the caller checks it
    _, first, inverse = np.unique(households.numbers, return_index=True, return_inverse=True)
    group = connect_classes(labels, households.numbers if households.groups is None else households.groups)
    weights, output = task.sampling_weights, task.policy.request.output
    if weights is not None:  # of a household: the mean weight of its members
        mean = np.bincount(inverse, weights) / np.bincount(inverse)
        weights = np.maximum(np.round(mean), 1).astype(np.int64)
    results = {}
    for attribute in (each for each in attributes if each.bound.name in households.attributes):
        part = average_column(attribute.take(first), group[labels[first]], output, weights)
        values = part.replace.values.take(pa.array(group))
        results[attribute.bound.name] = replace(part, replace=replace(part.replace, values=values))
    return results
