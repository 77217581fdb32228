"""Generalization: the distinct tuples of the quasi-identifiers rolled up their hierarchies, outliers suppressed.

leave out     records with a missing value where the policy says `missing = "drop"`; null is a value otherwise
tally         distinct tuples of hierarchy rows, with the spread of each confidential column
search        by the method that the policy names, with every promise in it
release       the label of each tuple; suppressed records are dropped, or starred
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinfold.errors import PolicyError, Problem, Unreachable
from kinfold.hierarchy import TOP, Hierarchy
from kinfold.measures.grouping import group_rows
from kinfold.methods.averaging import as_arrow
from kinfold.methods.generalize.domain import Domain
from kinfold.methods.generalize.generalization import Generalization
from kinfold.methods.planning.missing import left_out
from kinfold.methods.planning.needs import lacking
from kinfold.methods.planning.running import generalized
from kinfold.methods.task import Plan, Task
from kinfold.request.encoding import Attribute, Coded, Measured, leaves_of
from kinfold.request.methods import Declaration
from kinfold.rows.recoding import LEFT_OUT, Drop, Keep, Recoding, Replace, Treatment
from kinfold.rows.schema import Role
from kinfold.rows.tally import of_labels

if TYPE_CHECKING:
    from kinfold.methods.generalize.lattice import Lattice

Ints: TypeAlias = NDArray[np.int64]


def generalize(task: Task, method: Declaration, reason: str) -> Plan:
    """Return the recoding that replaces values by coarser, true statements."""
    _check(task, method)
    gone = left_out(task.attributes)
    rows = np.flatnonzero(~gone)
    if len(rows) < task.k:
        raise Unreachable(
            f"k is {task.k}, but there are only {len(rows)} records", fix="lower k, or bring more records"
        )
    here = task.take(rows)
    domain, tuples = domain_of(here, one_by_one=method.one_by_one)
    found = generalized(method, here, domain)
    labels = np.full(len(gone), LEFT_OUT, np.int32)
    kept = np.ones(len(domain), np.bool_) if task.starred else ~found.released.suppressed
    labels[rows] = np.where(kept[tuples], tuples, LEFT_OUT)
    notes = [*found.notes]
    if suppressed := found.released.records_suppressed:
        notes.append(
            f"{suppressed} records were suppressed"
            + (" (kept, with * in every quasi-identifier)" if task.starred else "")
        )
    if gone.any():
        notes.append(f"{int(gone.sum())} records were left out because a value is missing, as the policy asks")
    recoding = Recoding(labels, _treatments(here, found.released))
    return Plan(recoding, method.name, reason, tuple(notes), steps=found.steps)


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


def _check(task: Task, method: Declaration) -> None:
    problems = lacking(method, task)
    problems += [
        Problem(f"'{a.bound.name}': generalized values cannot be imputed", 'choose missing = "separate" or "drop"')
        for a in task.attributes
        if isinstance(a, Measured) and a.bound.asked.missing == "mean" and a.null.any()
    ]
    if task.method.refine == "exact":
        what = f'method.refine: "exact" is for methods that partition, and the method is {method.name}'
        problems.append(Problem(what, "leave it out"))
    if problems:
        raise PolicyError(problems)


def lattice_of(task: Task) -> Lattice:
    """Return the lattice of a task with its optimum found."""
    from kinfold.methods.generalize.lattice import METHOD, searched

    _check(task, METHOD)
    rows = np.flatnonzero(~left_out(task.attributes))
    return searched(task, domain_of(task.take(rows))[0])
