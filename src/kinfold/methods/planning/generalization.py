"""Generalization: the distinct tuples of the quasi-identifiers rolled up their hierarchies, outliers suppressed.

leave out     records with a missing value where the policy says `missing = "drop"`; null is a value otherwise
tally         distinct tuples of hierarchy rows, with the spread of each confidential column
search        by the method that the policy names, with every promise in it
release       the label of each tuple; suppressed records are dropped, or starred
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinfold.errors import PolicyError, Problem, Unreachable
from kinfold.hierarchy import TOP, Hierarchy
from kinfold.measures.grouping import group_rows
from kinfold.methods.averaging import as_arrow
from kinfold.methods.generalize.domain import Domain, Levels
from kinfold.methods.generalize.generalization import Generalization
from kinfold.methods.generalize.mu_argus import Outliers
from kinfold.methods.planning.levels import levels_of, released_at
from kinfold.methods.planning.missing import left_out
from kinfold.methods.planning.needs import needs
from kinfold.methods.planning.refinement import Budget, budget
from kinfold.methods.planning.task import Plan, Task
from kinfold.request.encoding import Attribute, Coded, Measured, leaves_of
from kinfold.rows.recoding import LEFT_OUT, Drop, Keep, Recoding, Replace, Treatment
from kinfold.rows.schema import Role
from kinfold.rows.tally import Tally, of_labels

if TYPE_CHECKING:
    from kinfold.methods.generalize.lattice import Lattice

Ints: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Found:
    """What a method releases, and what there is to say about it."""

    released: Generalization
    notes: tuple[str, ...] = ()
    steps: int | None = None


def generalize(task: Task, method: str, reason: str) -> Plan:
    """Return the recoding that replaces values by coarser, true statements."""
    one_by_one = method == "mingen-cell"  # equal records can end up in different classes
    _check(task, task.attributes if one_by_one else task.tuples.attributes, method)
    rows = _records(task) if one_by_one else _tuples(task)
    if rows.records < task.k:
        raise Unreachable(
            f"k is {task.k}, but there are only {rows.records} records", fix="lower k, or bring more records"
        )
    found = METHODS[method](task, rows.domain)
    starred = task.policy.request.output.suppressed == "star"
    kept = np.ones(len(rows.domain), np.bool_) if starred else ~found.released.suppressed
    labels = np.full(len(rows.gone), LEFT_OUT, np.int32)
    labels[~rows.gone] = np.where(kept[rows.tuple], rows.tuple, LEFT_OUT)
    notes = [*found.notes]
    if suppressed := found.released.records_suppressed:
        notes.append(
            f"{suppressed} records were suppressed" + (" (kept, with * in every quasi-identifier)" if starred else "")
        )
    if rows.left_out:
        notes.append(f"{rows.left_out} records were left out because a value is missing, as the policy asks")
    treatments = _treatments(task, rows.attributes, found.released)
    recoding = Recoding(labels, treatments, None if one_by_one else task.tuples.frame)
    return Plan(recoding, method, reason, tuple(notes), steps=found.steps)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Tuples as the engine counted them, or records: which are left out, and the row of the domain that each is."""

    attributes: Sequence[Attribute]  # of those that are not left out
    gone: NDArray[np.bool_]
    left_out: int  # records
    domain: Domain
    tuple: Ints  # of those that are not left out

    @property
    def records(self) -> int:
        return self.domain.records


def _tuples(task: Task) -> _Rows:
    """Take the table as the engine tallied it; tuples that are one to their hierarchies (1.5 and 1.50) are merged."""
    found = task.tuples
    gone = left_out(found.attributes)
    attributes = [attribute.take(np.flatnonzero(~gone)) for attribute in found.attributes]
    codes, hierarchies = _coded(attributes)
    into, first = group_rows(codes)
    tally = Tally({}, found.tally.sizes, found.tally.spreads).drop(gone).merge(into, {})
    domain = Domain(_names(attributes), hierarchies, np.ascontiguousarray(codes[first]), tally)
    return _Rows(attributes, gone, int(found.tally.sizes[gone].sum()), domain, into)


def _records(task: Task) -> _Rows:
    """Take records one by one."""
    gone = left_out(task.attributes)
    here = task.take(np.flatnonzero(~gone))
    codes, hierarchies = _coded(here.attributes)
    rows = np.arange(len(codes))
    domain = Domain(_names(here.attributes), hierarchies, codes, of_labels(rows, here.confidential))
    return _Rows(here.attributes, gone, int(gone.sum()), domain, rows)


def _names(attributes: Sequence[Attribute]) -> tuple[str, ...]:
    return tuple(attribute.bound.name for attribute in attributes)


def _coded(attributes: Sequence[Attribute]) -> tuple[NDArray[np.int32], tuple[Hierarchy, ...]]:
    """Return the rows of values in their hierarchies, one past the last for null, and the hierarchies."""
    hierarchies = tuple(hierarchy_of(attribute) for attribute in attributes)
    codes = [_codes(attribute, hierarchy) for attribute, hierarchy in zip(attributes, hierarchies, strict=True)]
    return np.ascontiguousarray(np.column_stack(codes)), hierarchies


def hierarchy_of(attribute: Attribute) -> Hierarchy:
    """Return an attribute's hierarchy; categories without one go up to `*` in one step."""
    if attribute.hierarchy is not None:
        return attribute.hierarchy
    assert isinstance(attribute, Coded)  # noqa: S101  numbers without one are refused by `_check`
    # A column of nothing but nulls has no category; one that never occurs keeps its hierarchy whole.
    return Hierarchy.of([(text, TOP) for text in attribute.texts[:-1]] or [("", TOP)])


def _codes(attribute: Attribute, hierarchy: Hierarchy) -> NDArray[np.int32]:
    if attribute.hierarchy is not None:
        leaves = leaves_of(attribute)
        return np.where(leaves < 0, len(hierarchy), leaves).astype(np.int32)
    assert isinstance(attribute, Coded)  # noqa: S101  as above
    return np.where(attribute.codes == attribute.null_code, len(hierarchy), attribute.codes).astype(np.int32)


def _treatments(task: Task, used: Sequence[Attribute], released: Generalization) -> dict[str, Treatment]:
    labels = released.columns()
    attributes = {attribute.bound.name: attribute for attribute in used}
    treatments: dict[str, Treatment] = {}
    for column in task.policy.columns:
        if column.role is Role.QUASI:
            treatments[column.name] = _replaced(attributes[column.name], labels[column.name], released)
        else:
            treatments[column.name] = Drop() if column.role is Role.IDENTIFIER else Keep()
    return treatments


def _replaced(attribute: Attribute, labels: NDArray[Any], released: Generalization) -> Replace:
    """Return the labels of a column; one that nothing was done to goes back into the type it had."""
    place = released.domain.names.index(attribute.bound.name)
    if released.levels[~released.suppressed, place].any() or released.suppressed.any():
        return Replace(pa.array(labels.tolist(), pa.string()), as_stored=False)
    if isinstance(attribute, Coded):
        return Replace(pa.array(labels.tolist(), pa.string()))
    leaves, code = leaves_of(attribute), released.domain.codes[:, place]
    numbers = np.full(len(released.domain.hierarchies[place]) + 1, np.nan)
    numbers[leaves[leaves >= 0]] = attribute.numbers[leaves >= 0]
    return Replace(as_arrow(attribute, numbers[code], exact=False))


def _check(task: Task, attributes: Sequence[Attribute], method: str) -> None:
    needed, privacy = needs(method), task.policy.request.privacy
    problems = [
        _without_hierarchy(a, method)
        for a in attributes
        if needed.hierarchies and isinstance(a, Measured) and a.hierarchy is None
    ]
    problems += [
        Problem(f"'{a.bound.name}': generalized values cannot be imputed", 'choose missing = "separate" or "drop"')
        for a in attributes
        if isinstance(a, Measured) and a.bound.request.missing == "mean" and a.null.any()
    ]
    if needed.rows and (privacy.unit is not None or privacy.joint):
        what = f"the method '{method}' cannot keep promises about people (privacy.unit) or joint ones"
        problems.append(Problem(what, "choose a partitioning method, for example mdav"))
    if problems:
        raise PolicyError(problems)


def _without_hierarchy(attribute: Attribute, method: str) -> Problem:
    name, asked = attribute.bound.name, attribute.bound.request
    if asked.hierarchy is not None:  # not built, for the values are to be averaged
        what = f"the method '{method}' generalizes '{name}', and columns.{name}.average is {asked.average}"
        return Problem(what, "leave out the average, or choose a partitioning method, for example mdav")
    return Problem(
        f"the method '{method}' needs a hierarchy for '{name}'",
        f"add hierarchy = {{ intervals = [5, 10, 20] }} or another to columns.{name}",
    )


def _weights(task: Task) -> dict[str, float]:
    return {column.name: column.request.weight for column in task.policy.of(Role.QUASI)}


def _finished(task: Task, released: Generalization) -> Generalization:
    """Star as many records as it takes for those starred to keep the promises too."""
    starred = task.policy.request.output.suppressed == "star"
    return released.completed(task.models, starred=True) if starred else released


def _datafly(task: Task, domain: Domain) -> Found:
    from kinfold.methods.generalize.datafly import datafly

    method = task.policy.request.method
    allowed = method.suppression if "suppression" in method.model_fields_set else None
    found = datafly(domain, task.models, allowed, progress=task.progress)
    return Found(_finished(task, found.generalization), (_levels(found.generalization),))


def _mu_argus(task: Task, domain: Domain) -> Found:
    from kinfold.methods.generalize.mu_argus import Ranks, mu_argus

    named: dict[str, list[str]] = {"identifying": [], "more": [], "most": []}
    for column in task.policy.of(Role.QUASI):
        named[column.request.identifying].append(column.name)
    ranks = Ranks(*(tuple(named[rank]) for rank in ("identifying", "more", "most")))
    holder = _holder(task, domain) if task.ask else task.policy.request.method.choices
    found = mu_argus(domain, task.k, ranks, holder, progress=task.progress)
    told = f"mu-Argus itself reaches k = {found.k}; the release is completed by suppression"
    starred = task.policy.request.output.suppressed == "star"
    return Found(found.complete(task.models, starred), (told,))


def _holder(task: Task, domain: Domain) -> Callable[[Levels, Outliers], str | None]:
    """Put the question of steps 4 and 5 into words: levels by name, and the records that have outliers."""

    def decide(levels: Levels, found: Outliers) -> str | None:
        records = sum(int(domain.tally.sizes[row]) for row, combos in enumerate(found) if combos)
        return task.ask(dict(zip(domain.names, levels, strict=True)), records) if task.ask else None

    return decide


def _mingen(task: Task, domain: Domain) -> Found:
    from kinfold.methods.generalize.mingen import mingen, preferred

    minimal = mingen(domain, task.models, _weights(task), task.progress)
    chosen = preferred(minimal)
    released = Generalization.full(domain, chosen.levels)
    return Found(released, (_levels(released), f"{len(minimal)} k-minimal distortions exist; the first was taken"))


def _mingen_cell(task: Task, domain: Domain) -> Found:
    from kinfold.methods.generalize.mingen_cell import mingen_cell

    method = task.policy.request.method
    allowed = budget(method) or Budget()
    limits = allowed.steps, allowed.seconds
    found = mingen_cell(domain, task.models, method.objective, _weights(task), *limits, task.progress)
    told = ("proved optimal at cell level",) if found.exact else ()
    return Found(found.generalization, told, found.steps)


def lattice_of(task: Task) -> Lattice:
    """Return the lattice of a task with its optimum found."""
    _check(task, task.tuples.attributes, "lattice")
    return _searched(task, _tuples(task).domain)


def _searched(task: Task, domain: Domain) -> Lattice:
    from kinfold.methods.generalize.lattice import lattice

    method = task.policy.request.method
    return lattice(domain, task.models, method.suppression, method.objective, _weights(task), task.progress)


def _lattice(task: Task, domain: Domain) -> Found:
    method = task.policy.request.method
    if method.levels is not None:
        return _at_levels(task, domain, method.levels)
    found = _searched(task, domain)
    released = found.generalization()
    best = found.best.loss if found.best else 0.0
    told = (
        "proved optimal"
        if found.proved
        else f"not proved optimal: it loses {best:.4f}, and none less than {found.bound:.4f}"
    )
    return Found(_finished(task, released), (_levels(released), f"the node is {told} by {method.objective}"))


def _at_levels(task: Task, domain: Domain, asked: Mapping[str, int]) -> Found:
    from kinfold.methods.generalize.nodes import Nodes

    levels = levels_of(asked, domain)
    nodes = Nodes(domain, task.models, task.policy.request.method.suppression)
    released = released_at(nodes, levels)
    return Found(_finished(task, released), (_levels(released), "the levels are those of the policy"))


def _levels(released: Generalization) -> str:
    vector: Sequence[int] = released.vector or ()
    pairs = [
        f"{name} {level} of {h}"
        for name, level, h in zip(released.domain.names, vector, released.domain.heights, strict=True)
    ]
    return "levels: " + ", ".join(pairs)


METHODS: Mapping[str, Callable[[Task, Domain], Found]] = {
    "datafly": _datafly,
    "mu-argus": _mu_argus,
    "mingen": _mingen,
    "mingen-cell": _mingen_cell,
    "lattice": _lattice,
}
