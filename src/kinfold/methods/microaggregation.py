"""Microaggregation: partition the records, repair missed promises, average each class.

select        the records to release: impute, leave out, set aside, and settle rare patterns of missing values
place         after earlier releases: people with those of their earlier class (see `successive`), instead of the rest
stratify      by the pattern of missing values if `missing = "separate"`: a class has one pattern
partition     each stratum with the method of the policy; a large one in blocks (see `classes`)
repair        classes that miss a promise about a confidential column, inside their stratum; `auto` from several starts
borders       of blocks, if there are any
refine        by local search, as far as the policy allows
merge         classes that still miss a promise about people, or a joint one
average       each attribute over each class; records that keep no quasi-identifier count as suppressed
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinfold.errors import PolicyError, Unreachable, plural
from kinfold.hierarchies import TOP
from kinfold.methods.aggregation import average_column
from kinfold.methods.blocks.cutting import describe_blocks
from kinfold.methods.blocks.pool import NO_CHECKPOINTS
from kinfold.methods.classes import Classes, make_classes, separate_strata
from kinfold.methods.edit_rules import AdjustedAverages, EditRules, Results, adjust_averages, fit_imputed_values
from kinfold.methods.missing_values import (
    blank_mixed_classes,
    describe_blanked,
    describe_left_out,
    impute_means,
    make_promise_check,
    mark_left_out,
    number_strata,
    refuse_mixed_classes,
    settle_patterns,
)
from kinfold.methods.plan import announce_duration, estimate_partition_seconds, find_unmet_needs, load_method
from kinfold.methods.promises import (
    advise_on_closeness,
    describe_repaired,
    make_scope_check,
    merge_failing,
    merge_round,
)
from kinfold.methods.successive import describe_placement, place_people, separate_equal_classes
from kinfold.methods.task import Plan, Task
from kinfold.policy.encoding import Attribute
from kinfold.policy.registry import Declaration
from kinfold.tables.points import Labels
from kinfold.tables.recoding import NO_CLASS, Recoding, number_equal_classes

Mask: TypeAlias = NDArray[np.bool_]

HEAVY_SHARE = 0.75  # of the weight of a class: as the (1,75) rule for amounts
PROVED_GAP = 1e-6  # a share of the loss that rounding alone can explain


def microaggregate(task: Task, method: Declaration, reason: str) -> Plan:
    """Return the recoding that replaces every record by the average of its class."""
    if problems := find_unmet_needs(method, task):
        raise PolicyError(problems)
    selection = select_records(announce_duration(task, method, estimate_partition_seconds(method, task)), method)
    if task.earlier is None:
        grouped, first_classes = _make_classes(selection.task, method)
    else:
        selection, first_classes = _place_people(selection, method)
        grouped = selection.task
        task.may_suppress(len(selection.rows))  # or raise
    classes, results, released = _average(grouped, first_classes, selection.rules)
    labels = np.full(task.records, NO_CLASS, np.int32)
    labels[selection.rows] = classes.labels
    public = [*selection.public_notes, *describe_blanked(selection.attributes, released)]
    public += _describe_adjusted(classes.adjusted)
    public += _limit_emptied(task, _count_emptied(selection.attributes, results, classes.labels), len(selection.rows))
    notes = [*selection.notes, *(note for result in results.values() for note in result.notes), *public]
    notes += describe_repaired(classes.repaired)
    blocks = classes.blocks.count if classes.blocks else 0
    if classes.blocks and blocks:
        notes.append(describe_blocks(blocks, classes.blocks.size))
        public.append(notes[-1].partition(" of at most")[0])  # without the reason
    count, records = int(classes.labels.max()) + 1, len(selection.rows)

    def count_classes(looser: Task) -> int:
        looser = replace(looser, checkpoints=NO_CHECKPOINTS)
        return int(_make_classes(looser, method, refine=False)[1].labels.max()) + 1

    notes += advise_on_closeness(selection.task, count, records, count_classes)
    notes += describe_heavy_records(classes.labels, selection.task.sampling_weights)
    if classes.gap is not None:
        notes.append(_describe_gap(classes.gap, task))
    return Plan(
        Recoding(labels, task.treat_columns({name: result.replace for name, result in results.items()})),
        method.name,
        reason,
        notes=tuple(notes),
        repaired=classes.repaired,
        start=method.name,
        steps=classes.steps or None,
        gap=classes.gap,
        refine_seconds=classes.refine_seconds,
        curve=classes.curve,
        blocks=blocks,
        public_notes=tuple(public),
    )


def _make_classes(task: Task, method: Declaration, *, refine: bool = True) -> tuple[Task, Classes]:
    """Return the classes, and the task that is averaged over them."""
    if task.households is None:
        return task, make_classes(task, method, refine=refine)
    from kinfold.methods.households import make_household_classes

    return make_household_classes(task, method)


@dataclass(frozen=True, eq=False)
class Selection:
    """The task over the records to release, their rows in the table, and notes."""

    task: Task
    rows: NDArray[np.intp]
    attributes: Sequence[Attribute]  # of these records, before any value is blanked
    rules: EditRules | None
    notes: tuple[str, ...]
    public_notes: tuple[str, ...]


def select_records(task: Task, method: Declaration) -> Selection:
    """Select the records to release; raise if there are too few."""
    rules = EditRules.from_task(task)
    attributes, notes = impute_means(task.attributes)
    attributes, unfit = fit_imputed_values(task, attributes, rules)
    left_out = mark_left_out(attributes)
    notes += describe_left_out(int(left_out.sum()))
    rows = np.flatnonzero(~left_out & ~unfit)
    if len(rows) < task.k:
        what = f"k is {task.k}, but there are only {plural(len(rows), 'record')}"
        raise Unreachable(what, fix="lower k, or add records")
    here = replace(task, table=task.to_records(attributes)).take(rows)
    aside, settled, rare = _set_aside_and_settle(method, here)
    if aside.any():
        discarded = plural(int(aside.sum()), "record was", "records were")
        notes.append(f"{discarded} discarded so that classes are of one size, as the policy allows")
    if settled.records < here.k:
        only = f"only {settled.records:,} of {plural(here.records, 'record')} lack the same values as enough others"
        raise Unreachable(f"k is {here.k}, but {only}", fix='lower k, or choose missing_rare = "blank"')
    rows = rows[~aside][~rare]
    task.may_suppress(len(rows))  # or raise
    counts = {
        "no imputed value keeps every edit rule": int((unfit & ~left_out).sum()),
        "too few others lack the same values": int(rare.sum()),
    }
    public = tuple(
        f"{plural(count, 'record was', 'records were')} left out, because {why}"
        for why, count in counts.items()
        if count
    )
    before = attributes if len(rows) == task.records else [attribute.take(rows) for attribute in attributes]
    return Selection(settled, rows, before, rules and rules.take(rows), tuple(notes), public)


def _place_people(selection: Selection, method: Declaration) -> tuple[Selection, Classes]:
    """Return the records that keep earlier releases protected, and their classes."""
    if selection.rules is not None:
        fix = "leave out repair = true: violations are counted all the same"
        raise PolicyError("edit rules cannot be repaired in a release after earlier ones", fix=fix)
    assert selection.task.earlier is not None  # noqa: S101  asked by the caller
    placement = place_people(selection.task, method, selection.task.earlier)
    while True:
        kept = np.flatnonzero(placement.labels != NO_CLASS)
        labels = np.unique(placement.labels[kept], return_inverse=True)[1].astype(np.int32)
        part = selection.task.take(kept)
        results = average_classes(part, labels)[1]
        released = number_equal_classes([result.replace.values for result in results.values()])[labels]
        if not separate_equal_classes(placement, released):
            break
        placement.withhold_failing()
    note = describe_placement(placement.earlier, placement.labels)
    attributes = [attribute.take(kept) for attribute in selection.attributes]
    placed = replace(selection, task=part, rows=selection.rows[kept], attributes=attributes)
    return replace(placed, notes=(*selection.notes, note)), Classes(labels)


def _set_aside_and_settle(method: Declaration, task: Task) -> tuple[Mask, Task, Mask]:
    """Mark records set aside, return the task with settled patterns, and mark the records left out for that.

    The limit on suppression counts both. If patterns of missing values leave records out, nothing is set aside.
    """
    aside: Mask = np.zeros(task.records, np.bool_)
    if method.sets_aside:
        aside = load_method(method).set_aside(task)
    settled, rare = settle_patterns(task.take(np.flatnonzero(~aside)) if aside.any() else task)
    if aside.any() and rare.any():
        aside = np.zeros(task.records, np.bool_)
        settled, rare = settle_patterns(task)
    return aside, settled, rare


def _average(task: Task, classes: Classes, rules: EditRules | None) -> tuple[Classes, Results, list[Attribute]]:
    """Average each class, and merge classes with equal averages that together miss a promise.

    Classes with equal values are one class in the release. It keeps any promise about rows that its parts keep. But a
    person in both parts counts once, which changes the table that classes are compared with.
    """
    mark_failing = make_scope_check(task)
    while True:
        classes, results, attributes = _average_by_rules(task, classes, rules)
        if mark_failing is None:
            return classes, results, attributes
        merged = number_equal_classes([result.replace.values for result in results.values()])[classes.labels]
        if not mark_failing(merged).any():
            return classes, results, attributes
        strata = number_strata(task.attributes)
        labels, count = merge_failing(separate_strata(task.points(), strata), merged, mark_failing)
        refuse_mixed_classes(task.attributes, labels)
        classes = replace(classes, labels=labels, repaired=classes.repaired + count)


def _average_by_rules(
    task: Task, classes: Classes, rules: EditRules | None
) -> tuple[Classes, Results, list[Attribute]]:
    """Average each class; adjust averages to edit rules, and merge classes as long as that helps."""
    attributes, results = average_classes(task, classes.labels)
    if rules is None:
        return classes, results, attributes
    exact = not task.policy.request.output.round
    best = adjust_averages(rules, classes.labels, results, exact=exact)
    strata = number_strata(task.attributes)
    while best.remaining.any() and len(best.remaining) > 1:
        labels = merge_round(separate_strata(task.points(), strata), classes.labels, best.remaining > 0)
        crosses = len(np.unique(np.column_stack([labels, strata]), axis=0)) > int(labels.max()) + 1
        if crosses or make_promise_check(task)(labels).any():
            break
        merged_attributes, results = average_classes(task, labels)
        trial = adjust_averages(rules, labels, results, exact=exact)
        if trial.remaining.sum() >= best.remaining.sum():
            break
        classes, attributes, best = replace(classes, labels=labels), merged_attributes, trial
    if best.remaining.any():
        results = average_classes(task, classes.labels)[1]
        best = adjust_averages(rules, classes.labels, results, exact=exact, blank=True)
    return replace(classes, adjusted=best), best.results, attributes


def average_classes(task: Task, labels: Labels) -> tuple[list[Attribute], Results]:
    """Average each attribute over each class, without edit rules."""
    attributes = blank_mixed_classes(task.attributes, labels)
    output, weights = task.policy.request.output, task.sampling_weights
    results = {a.bound.name: average_column(a, labels, output, weights) for a in attributes}
    if task.households is not None:
        from kinfold.methods.households import average_households

        results |= average_households(task, attributes, labels)
    return attributes, results


def _limit_emptied(task: Task, emptied: int, kept: int) -> list[str]:
    """Return a note on records that keep no quasi-identifier; raise if there are more than may be suppressed."""
    if not emptied:
        return []
    if "suppression" in task.method.model_fields_set and emptied > (most := task.may_suppress(kept) or 0):
        what = f"{plural(emptied, 'record')} would keep no quasi-identifier, but at most {most:,} may be suppressed"
        fix = "raise method.suppression, require less, or average fewer columns by generalize or suppress"
        raise Unreachable(what, fix=fix)
    return [f"{plural(emptied, 'record keeps', 'records keep')} no quasi-identifier: each one is * or missing"]


def _count_emptied(attributes: Sequence[Attribute], results: Results, labels: Labels) -> int:
    """Return how many records lose every quasi-identifier, * or missing, while others keep some."""
    size = np.bincount(labels)
    nothing, lost = np.ones(len(size), np.bool_), np.zeros(len(size), np.bool_)
    for attribute in attributes:
        values = results[attribute.bound.name].replace.values
        null = np.asarray(values.is_null())
        top = np.zeros(len(size), np.bool_)
        if attribute.bound.average == "generalize":
            top = np.asarray(values.cast(pa.string()).fill_null("")) == TOP
        nothing &= top | null
        lost |= top | (null & (np.bincount(labels, attribute.null) < size))
    return 0 if nothing.all() else int(size[nothing & lost].sum())


def describe_heavy_records(labels: Labels, weights: NDArray[np.int64] | None) -> list[str]:
    """Return a note on classes whose weighted averages are nearly the values of one record."""
    if weights is None:
        return []
    largest = np.zeros(int(labels.max()) + 1, np.int64)
    np.maximum.at(largest, labels, weights)
    heavy = int((largest > HEAVY_SHARE * np.bincount(labels, weights)).sum())
    if not heavy:
        return []
    where = plural(heavy, "class", "classes")
    return [
        f"in {where} one record has more than {HEAVY_SHARE:.0%} of the weight, and averages are close to its values"
    ]


def _describe_adjusted(adjusted: AdjustedAverages | None) -> list[str]:
    if adjusted is None:
        return []
    moved = [f"{adjusted.moved:,} class averages were moved so that edit rules hold"] if adjusted.moved else []
    blanked = adjusted.blanked.items()
    return [*moved, *(f"'{name}': {count:,} values were blanked so that edit rules hold" for name, count in blanked)]


def _describe_gap(gap: float, task: Task) -> str:
    # with categories larger classes may lose less, and the bound does not cover those
    sizes = f"of {task.k} to {2 * task.k - 1}" if task.points().scales else f"of at least {task.k}"
    if gap <= PROVED_GAP:
        return f"proved: no classes {sizes} records lose less"
    return f"within {gap:.2%} of the least loss that any classes {sizes} can have"
