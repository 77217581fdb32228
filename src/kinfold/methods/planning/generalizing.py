"""Generalization: the distinct tuples of the quasi-identifiers rolled up their hierarchies, outliers suppressed.

leave out     records with a missing value where the policy says `missing = "drop"`; null is a value otherwise
tally         distinct tuples of hierarchy rows, with the spread of each confidential column; at cell level the records
              one by one, unless they are many
search        by the method that the policy names, with every promise in it
release       the label of each tuple; suppressed records are dropped, or starred
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinfold.errors import PolicyError, Problem, Unreachable, plural
from kinfold.hierarchy import TOP, Hierarchy
from kinfold.measures.grouping import group_rows
from kinfold.methods.averaging import as_arrow, exact_arrow
from kinfold.methods.generalize.domain import Domain
from kinfold.methods.generalize.generalization import Generalization
from kinfold.methods.planning.missing import left_out
from kinfold.methods.planning.needs import lacking
from kinfold.methods.planning.running import generalized
from kinfold.methods.task import Plan, Task
from kinfold.request.encoding import Attribute, Coded, leaves_of
from kinfold.request.methods import Declaration
from kinfold.rows.recoding import LEFT_OUT, Drop, Keep, Recoding, Replace, Treatment
from kinfold.rows.schema import Role
from kinfold.rows.tally import Tally, of_labels

if TYPE_CHECKING:
    from kinfold.methods.generalize.lattice import Lattice
    from kinfold.methods.generalize.mu_argus import Standing

Ints: TypeAlias = NDArray[np.int64]

TWICE = 10_000_000  # cells of spreads that are better counted again than held twice
ONE_BY_ONE = 100_000  # records up to which methods at cell level may treat equal ones differently
TOGETHER = f"equal records are treated alike: that is so at cell level in tables of more than {ONE_BY_ONE:,} records"


def generalize(task: Task, method: Declaration, reason: str) -> Plan:
    """Return the recoding that replaces values by coarser, true statements."""
    one_by_one = method.one_by_one and task.policy.rows <= ONE_BY_ONE
    _check(task, task.attributes if one_by_one else task.tuples.attributes, method)
    rows = _records(task) if one_by_one else _tuples(task)
    if rows.records < task.k:
        raise Unreachable(
            f"k is {task.k}, but there are only {plural(rows.records, 'record')}", fix="lower k, or bring more records"
        )
    found = generalized(method, task, rows.domain)
    classed, into = found.released.classed()
    kept = np.ones(len(rows.domain), np.bool_) if task.starred else ~found.released.suppressed
    labels = np.full(len(rows.gone), LEFT_OUT, np.int32)
    labels[~rows.gone] = np.where(kept, into, LEFT_OUT)[rows.tuple]
    notes = [*found.notes, *([TOGETHER] if method.one_by_one and not one_by_one else [])]
    if suppressed := found.released.records_suppressed:
        notes.append(
            plural(suppressed, "record was suppressed", "records were suppressed")
            + (" (kept, with * in every quasi-identifier)" if task.starred else "")
        )
    if rows.left_out:
        told = plural(rows.left_out, "record was", "records were")
        notes.append(f"{told} left out because a value is missing, as the policy asks")
    treatments = _treatments(task, rows.attributes, classed)
    recoding = Recoding(labels, treatments, None if one_by_one else task.tuples.frame)
    return Plan(recoding, method.name, reason, tuple(notes), steps=found.steps)


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
    kept = np.flatnonzero(~gone)
    attributes = [attribute.take(kept) for attribute in found.attributes] if gone.any() else found.attributes
    codes, hierarchies = _coded(attributes)
    into, first = group_rows(codes)
    tally = Tally({}, found.tally.sizes, found.tally.spreads)
    tally = (tally.drop(gone) if gone.any() else tally).merge(into, {})
    domain = Domain(_names(attributes), hierarchies, np.ascontiguousarray(codes[first]), tally)
    if sum(len(spread.code) for spread in tally.spreads.values()) > TWICE:
        found.forget()
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
    if attribute.bound.suppressed:  # whose cells are released as they are or empty, not by these labels
        return Hierarchy.of([(str(code), TOP) for code in range(max(attribute.null_code, 1))])
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
    if attribute.bound.suppressed:
        return _blanked(attribute, released, place)
    if released.levels[~released.suppressed, place].any() or released.suppressed.any():
        return Replace(pa.array(labels.tolist(), pa.string()), as_stored=False)
    if isinstance(attribute, Coded):
        return Replace(pa.array(labels.tolist(), pa.string()))
    leaves, code = leaves_of(attribute), released.domain.codes[:, place]
    if attribute.exact is not None:
        whole = np.zeros(len(released.domain.hierarchies[place]) + 1, object)
        whole[leaves[leaves >= 0]] = attribute.exact[leaves >= 0]
        return Replace(exact_arrow(attribute, whole[code], code == len(whole) - 1))
    numbers = np.full(len(released.domain.hierarchies[place]) + 1, np.nan)
    numbers[leaves[leaves >= 0]] = attribute.numbers[leaves >= 0]
    return Replace(as_arrow(attribute, numbers[code], exact=False))


def _blanked(attribute: Attribute, released: Generalization, place: int) -> Replace:
    """Return values as they are and empty cells, in the type that the column had; stars of whole records are text."""
    assert isinstance(attribute, Coded)  # noqa: S101  encoded as texts that are equal or not
    texts = attribute.texts[np.minimum(released.domain.codes[:, place], attribute.null_code)]
    texts[released.levels[:, place] > 0] = None
    texts[released.suppressed] = TOP
    return Replace(pa.array(texts.tolist(), pa.string()), as_stored=not released.suppressed.any())


def _check(task: Task, attributes: Sequence[Attribute], method: Declaration) -> None:
    problems = lacking(method, task)
    problems += [
        Problem(f"'{a.bound.name}': {_how(a)} values cannot be imputed", 'choose missing = "separate" or "drop"')
        for a in attributes
        if a.bound.request.missing == "mean" and a.null.any()
    ]
    if task.method.refine == "exact":
        what = f'method.refine: "exact" is for methods that partition, and the method is {method.name}'
        problems.append(Problem(what, "leave it out"))
    if problems:
        raise PolicyError(problems)


def _how(attribute: Attribute) -> str:
    return "suppressed" if attribute.bound.suppressed else "generalized"


def lattice_of(task: Task) -> Lattice:
    """Return the lattice of a task with its optimum found."""
    from kinfold.methods.generalize.lattice import METHOD, searched

    _check(task, task.tuples.attributes, METHOD)
    return searched(task, _tuples(task).domain)


def standing_of(task: Task) -> Standing:
    """Return where mu-Argus stands on a task after the choices of its policy."""
    from kinfold.methods.generalize.mu_argus import METHOD, standing

    _check(task, task.tuples.attributes, METHOD)
    return standing(_tuples(task).domain, task.k, task.method.choices)
