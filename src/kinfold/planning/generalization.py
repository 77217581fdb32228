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

from kinfold.averaging import as_arrow
from kinfold.covering import leaves_of
from kinfold.encoding import Attribute, Coded, Measured
from kinfold.errors import PolicyError, Problem, Unreachable
from kinfold.generalize.domain import Domain, Levels
from kinfold.generalize.generalization import Generalization
from kinfold.generalize.mu_argus import Outliers
from kinfold.hierarchy import TOP, Hierarchy
from kinfold.measures.grouping import group_rows
from kinfold.planning.levels import levels_of, released_at
from kinfold.planning.missing import left_out
from kinfold.planning.needs import needs
from kinfold.planning.refinement import Budget, budget
from kinfold.planning.task import Plan, Task
from kinfold.recoding import LEFT_OUT, Drop, Keep, Recoding, Replace, Treatment
from kinfold.schema import Role
from kinfold.tally import of_labels

if TYPE_CHECKING:
    from kinfold.generalize.lattice import Lattice

Ints: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Found:
    """What a method releases, and what there is to say about it."""

    released: Generalization
    notes: tuple[str, ...] = ()
    steps: int | None = None


def generalize(task: Task, method: str, reason: str) -> Plan:
    """Return the recoding that replaces values by coarser, true statements."""
    _check(task, method)
    gone = left_out(task.attributes)
    rows = np.flatnonzero(~gone)
    if len(rows) < task.k:
        raise Unreachable(
            f"k is {task.k}, but there are only {len(rows)} records", fix="lower k, or bring more records"
        )
    here = task.take(rows)
    domain, tuples = domain_of(here, one_by_one=method == "mingen-cell")
    found = METHODS[method](here, domain)
    starred = task.policy.policy.output.suppressed == "star"
    labels = np.full(len(gone), LEFT_OUT, np.int32)
    kept = np.ones(len(domain), np.bool_) if starred else ~found.released.suppressed
    labels[rows] = np.where(kept[tuples], tuples, LEFT_OUT)
    notes = [*found.notes]
    if suppressed := found.released.records_suppressed:
        notes.append(
            f"{suppressed} records were suppressed" + (" (kept, with * in every quasi-identifier)" if starred else "")
        )
    if gone.any():
        notes.append(f"{int(gone.sum())} records were left out because a value is missing, as the policy asks")
    recoding = Recoding(labels, _treatments(here, found.released))
    return Plan(recoding, method, reason, tuple(notes), steps=found.steps)


def domain_of(task: Task, *, one_by_one: bool = False) -> tuple[Domain, Ints]:
    """Return the distinct tuples of a task as a domain, and the tuple of each record.

    At cell level records are taken one by one: equal ones can end up in different classes.
    """
    hierarchies = [hierarchy_of(attribute) for attribute in task.attributes]
    codes = np.column_stack([_codes(a, h) for a, h in zip(task.attributes, hierarchies, strict=True)])
    tuples, first = (np.arange(len(codes)), np.arange(len(codes))) if one_by_one else group_rows(codes)
    tally = of_labels(tuples, task.confidential)
    names = tuple(attribute.bound.name for attribute in task.attributes)
    return Domain(names, tuple(hierarchies), np.ascontiguousarray(codes[first], np.int32), tally), tuples


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


def _treatments(task: Task, released: Generalization) -> dict[str, Treatment]:
    labels = released.columns()
    attributes = {attribute.bound.name: attribute for attribute in task.attributes}
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


def _check(task: Task, method: str) -> None:
    needed = needs(method)
    problems = [
        _without_hierarchy(a, method)
        for a in task.attributes
        if needed.hierarchies and isinstance(a, Measured) and a.hierarchy is None
    ]
    problems += [
        Problem(f"'{a.bound.name}': generalized values cannot be imputed", 'choose missing = "separate" or "drop"')
        for a in task.attributes
        if isinstance(a, Measured) and a.bound.asked.missing == "mean" and a.null.any()
    ]
    if needed.rows and (task.unit is not None or task.policy.policy.privacy.joint):
        what = f"the method '{method}' cannot keep promises about people (privacy.unit) or joint ones"
        problems.append(Problem(what, "choose a partitioning method, for example mdav"))
    if problems:
        raise PolicyError(problems)


def _without_hierarchy(attribute: Attribute, method: str) -> Problem:
    name, asked = attribute.bound.name, attribute.bound.asked
    if asked.hierarchy is not None:  # not built, for the values are to be averaged
        what = f"the method '{method}' generalizes '{name}', and columns.{name}.average is {asked.average}"
        return Problem(what, "leave out the average, or choose a partitioning method, for example mdav")
    return Problem(
        f"the method '{method}' needs a hierarchy for '{name}'",
        f"add hierarchy = {{ intervals = [5, 10, 20] }} or another to columns.{name}",
    )


def _weights(task: Task) -> dict[str, float]:
    return {attribute.bound.name: attribute.bound.asked.weight for attribute in task.attributes}


def _finished(task: Task, released: Generalization) -> Generalization:
    """Star as many records as it takes for those starred to keep the promises too."""
    starred = task.policy.policy.output.suppressed == "star"
    return released.completed(task.models, starred=True) if starred else released


def _datafly(task: Task, domain: Domain) -> Found:
    from kinfold.generalize.datafly import datafly

    method = task.policy.policy.method
    allowed = method.suppression if "suppression" in method.model_fields_set else None
    found = datafly(domain, task.models, allowed, progress=task.progress)
    return Found(_finished(task, found.generalization), (_levels(found.generalization),))


def _mu_argus(task: Task, domain: Domain) -> Found:
    from kinfold.generalize.mu_argus import Ranks, mu_argus

    named: dict[str, list[str]] = {"identifying": [], "more": [], "most": []}
    for attribute in task.attributes:
        named[attribute.bound.asked.identifying].append(attribute.bound.name)
    ranks = Ranks(*(tuple(named[rank]) for rank in ("identifying", "more", "most")))
    holder = _holder(task, domain) if task.ask else task.policy.policy.method.choices
    found = mu_argus(domain, task.k, ranks, holder, progress=task.progress)
    told = f"mu-Argus itself reaches k = {found.k}; the release is completed by suppression"
    starred = task.policy.policy.output.suppressed == "star"
    return Found(found.complete(task.models, starred), (told,))


def _holder(task: Task, domain: Domain) -> Callable[[Levels, Outliers], str | None]:
    """Put the question of steps 4 and 5 into words: levels by name, and the records that have outliers."""

    def decide(levels: Levels, found: Outliers) -> str | None:
        records = sum(int(domain.tally.sizes[row]) for row, combos in enumerate(found) if combos)
        return task.ask(dict(zip(domain.names, levels, strict=True)), records) if task.ask else None

    return decide


def _mingen(task: Task, domain: Domain) -> Found:
    from kinfold.generalize.mingen import mingen, preferred

    minimal = mingen(domain, task.models, _weights(task), task.progress)
    chosen = preferred(minimal)
    released = Generalization.full(domain, chosen.levels)
    return Found(released, (_levels(released), f"{len(minimal)} k-minimal distortions exist; the first was taken"))


def _mingen_cell(task: Task, domain: Domain) -> Found:
    from kinfold.generalize.mingen_cell import mingen_cell

    method = task.policy.policy.method
    allowed = budget(method) or Budget()
    limits = allowed.steps, allowed.seconds, task.progress, method.seed
    found = mingen_cell(domain, task.models, method.objective, _weights(task), *limits)
    told = ("proved optimal at cell level",) if found.exact else ()
    return Found(found.generalization, told, found.steps)


def lattice_of(task: Task) -> Lattice:
    """Return the lattice of a task with its optimum found."""
    _check(task, "lattice")
    rows = np.flatnonzero(~left_out(task.attributes))
    return _searched(task, domain_of(task.take(rows))[0])


def _searched(task: Task, domain: Domain) -> Lattice:
    from kinfold.generalize.lattice import Lattice

    method = task.policy.policy.method
    found = Lattice(domain, task.models, method.suppression, method.objective, _weights(task), method.seed)
    found.search(progress=task.progress)
    return found


def _lattice(task: Task, domain: Domain) -> Found:
    method = task.policy.policy.method
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
    from kinfold.generalize.nodes import Nodes

    levels = levels_of(asked, domain)
    nodes = Nodes(domain, task.models, task.policy.policy.method.suppression)
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
