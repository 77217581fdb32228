"""Generalization: roll up the distinct tuples of the quasi-identifiers along their hierarchies, suppress outliers.

leave out     records with a missing value if `missing = "drop"`; otherwise null is a value
tally         distinct tuples of hierarchy rows, with the counts of each confidential column; at cell level single
              records, unless there are many
search        with the method of the policy, under every promise
release       the label of each tuple; suppressed records are dropped or starred. They count towards
              `method.suppression`, as do records left out
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinfold.errors import PolicyError, Problem, Unreachable, plural
from kinfold.hierarchies import TOP, Hierarchy
from kinfold.measures.formulas.arrays import group_rows
from kinfold.methods.aggregation import numbers_to_arrow
from kinfold.methods.generalize.domain import Domain, Population
from kinfold.methods.generalize.levels import Generalization, required_k
from kinfold.methods.generalize.result import SearchResult
from kinfold.methods.missing_values import describe_left_out, mark_left_out
from kinfold.methods.plan import MAX_SEPARATE_RECORDS, announce_duration, find_unmet_needs, load_method
from kinfold.methods.task import Plan, Task
from kinfold.models import CombinationAnonymity, CombinationConfidence, DeltaPresence, KMap, to_class_models
from kinfold.policy.encoding import Attribute, CategoricalAttribute, get_leaves
from kinfold.policy.registry import Declaration
from kinfold.policy.table import Table
from kinfold.progress import watch_search
from kinfold.tables.recoding import NO_CLASS, Recoding, Replace
from kinfold.tables.tally import Tally, tally_labels

if TYPE_CHECKING:
    from kinfold.methods.generalize.lattice import Lattice
    from kinfold.methods.generalize.mu_argus import MuArgusState

Ints: TypeAlias = NDArray[np.int64]

MAX_CACHED_SPREAD_CELLS = 10_000_000  # more cells of value counts are counted again rather than held twice
EQUAL_RECORDS_NOTE = (
    f"equal records are treated equally, as at cell level in every table of more than {MAX_SEPARATE_RECORDS:,} records"
)


def generalize(task: Task, method: Declaration, reason: str) -> Plan:
    """Return the recoding that replaces values by coarser, true statements."""
    if not method.whole_table:
        task = replace(task, models=to_class_models(task.models, task.policy.rows))
    by_record, rows = _read_domain(task, method)
    records, k = rows.domain.records, required_k(task.models)
    if records < k:
        what = f"k is {k}, but there are only {plural(records, 'record')}"
        raise Unreachable(what, fix="lower k, or add records")
    task.may_suppress(records)  # or raise, before the search
    announced = announce_duration(task, method, _estimate_seconds(method, task, rows.domain))
    if by_record:  # single records have a person, too
        announced = announced.take(np.flatnonzero(~rows.excluded))
    with watch_search() as curve:
        result: SearchResult = load_method(method).run(announced, rows.domain)
    suppressed = result.generalization.records_suppressed
    task.may_suppress(records - suppressed)
    classes, class_of_tuple = result.generalization.one_row_per_class()
    kept = np.ones(len(rows.domain), np.bool_) if task.starred else ~result.generalization.suppressed
    labels = np.full(len(rows.excluded), NO_CLASS, np.int32)
    labels[~rows.excluded] = np.where(kept, class_of_tuple, NO_CLASS)[rows.tuple]
    notes = [*result.notes, *([EQUAL_RECORDS_NOTE] if method.by_record and not by_record else [])]
    if suppressed:
        star = " (kept, with * in every quasi-identifier)" if task.starred else ""
        notes.append(plural(suppressed, "record was suppressed", "records were suppressed") + star)
    notes += describe_left_out(rows.left_out)
    columns = classes.columns()
    replaced = {a.bound.name: _replace_column(a, columns[a.bound.name], classes) for a in rows.attributes}
    recoding = Recoding(labels, task.treat_columns(replaced), None if by_record else task.tuples.frame)
    return Plan(
        recoding, method.name, reason, tuple(notes), steps=result.steps, belief=result.belief, curve=tuple(curve.marks)
    )


def estimate_generalization_seconds(method: Declaration, task: Task) -> float:
    """Estimate how many seconds the search takes; raise if the method cannot do what the policy requests."""
    return _estimate_seconds(method, task, _read_domain(task, method)[1].domain)


def _estimate_seconds(method: Declaration, task: Task, domain: Domain) -> float:
    refinement = task.method.search_limits[1] if task.method.search_limits else None
    return float(load_method(method).estimate_seconds(domain)) if refinement is None else refinement


def _read_domain(task: Task, method: Declaration) -> tuple[bool, _DomainRows]:
    """Return whether equal records are treated separately, and the rows of the domain."""
    by_record = method.by_record and task.policy.rows <= MAX_SEPARATE_RECORDS
    _check_request(task, task.attributes if by_record else task.tuples.attributes, method)
    return by_record, _read_records(task) if by_record else _read_tuples(task)


@dataclass(frozen=True, eq=False)
class _DomainRows:
    """Tuples of the engine, or records, and their rows in the domain."""

    attributes: Sequence[Attribute]  # without those left out
    excluded: NDArray[np.bool_]
    left_out: int  # records
    domain: Domain
    tuple: Ints  # the row of the domain, without those left out


def _read_tuples(task: Task) -> _DomainRows:
    """Return the tuples of the engine's tally; tuples that are equal to their hierarchies (1.5, 1.50) are merged."""
    tuples = task.tuples
    excluded = mark_left_out(tuples.attributes)
    kept = np.flatnonzero(~excluded)
    attributes = [attribute.take(kept) for attribute in tuples.attributes] if excluded.any() else tuples.attributes
    codes, hierarchies = encode_labels(attributes)
    into, first = group_rows(codes)
    tally = Tally({}, tuples.tally.sizes, tuples.tally.spreads)
    tally = (tally.drop(excluded) if excluded.any() else tally).merge(into, {})
    domain = _make_domain(task, attributes, hierarchies, np.ascontiguousarray(codes[first]), tally)
    if sum(len(spread.code) for spread in tally.spreads.values()) > MAX_CACHED_SPREAD_CELLS:
        tuples.forget_counts()
    return _DomainRows(attributes, excluded, int(tuples.tally.sizes[excluded].sum()), domain, into)


def _read_records(task: Task) -> _DomainRows:
    excluded = mark_left_out(task.attributes)
    rest = task.take(np.flatnonzero(~excluded))
    codes, hierarchies = encode_labels(rest.attributes)
    rows = np.arange(len(codes))
    domain = _make_domain(task, rest.attributes, hierarchies, codes, tally_labels(rows, rest.confidential))
    return _DomainRows(rest.attributes, excluded, int(excluded.sum()), domain, rows)


def _make_domain(
    task: Task,
    attributes: Sequence[Attribute],
    hierarchies: tuple[Hierarchy, ...],
    codes: NDArray[np.int32],
    tally: Tally,
) -> Domain:
    """Return a domain whose views have what the promises of the task need."""
    names = tuple(attribute.bound.name for attribute in attributes)
    keyed = any(isinstance(model, CombinationAnonymity | CombinationConfidence) for model in task.models)
    people = task.table.population if isinstance(task.table, Table) else None
    population = None
    if people is not None and any(isinstance(model, KMap | DeltaPresence) for model in task.models):
        own, trees = encode_labels(people.attributes)
        labels = tuple(Domain(names, trees, own, people.tally).label_table(a) for a in range(len(names)))
        population = Population(own, labels, people.tally.sizes)
    return Domain(names, hierarchies, codes, tally, keyed, population)


def encode_labels(attributes: Sequence[Attribute]) -> tuple[NDArray[np.int32], tuple[Hierarchy, ...]]:
    """Return the hierarchy row of each value, one past the last for null, and the hierarchies.

    Categories without a hierarchy go up to `*` in one step.
    """
    codes, hierarchies = [], []
    for attribute in attributes:
        hierarchy = attribute.hierarchy
        if hierarchy is None:
            assert isinstance(attribute, CategoricalAttribute)  # noqa: S101  `_check_request` refuses such numbers
            # A column of only nulls has no category; a category that never occurs completes its hierarchy.
            texts = [*attribute.texts[:-1]] or [""]
            if attribute.bound.suppressed:  # its cells are released unchanged or empty, not with these labels
                texts = [str(code) for code in range(max(attribute.null_code, 1))]
            hierarchy = Hierarchy.from_rows([(text, TOP) for text in texts])
            rows = np.where(attribute.codes == attribute.null_code, -1, attribute.codes)
        else:
            rows = get_leaves(attribute)
        codes.append(np.where(rows < 0, len(hierarchy), rows).astype(np.int32))
        hierarchies.append(hierarchy)
    return np.ascontiguousarray(np.column_stack(codes)), tuple(hierarchies)


def _replace_column(attribute: Attribute, labels: NDArray[Any], released: Generalization) -> Replace:
    """Return the labels of a column; an unchanged column keeps its type."""
    place = released.domain.names.index(attribute.bound.name)
    if attribute.bound.suppressed:
        return _blank_cells(attribute, released, place)
    if released.levels[~released.suppressed, place].any() or released.suppressed.any():
        return Replace(pa.array(labels.tolist(), pa.string()), as_stored=False)
    if isinstance(attribute, CategoricalAttribute):
        return Replace(pa.array(labels.tolist(), pa.string()))
    leaves, code = get_leaves(attribute), released.domain.codes[:, place]
    values = len(released.domain.hierarchies[place])
    if attribute.exact is not None:
        stored = np.full(values + 1, -1, np.int64)  # null comes last
        stored[leaves[leaves >= 0]] = attribute.exact.places[leaves >= 0]
        return Replace(attribute.exact.arrow_values.take(pa.array(stored, mask=stored < 0)).take(pa.array(code)))
    numbers = np.full(values + 1, np.nan)
    numbers[leaves[leaves >= 0]] = attribute.numbers[leaves >= 0]
    return Replace(numbers_to_arrow(attribute, numbers[code], exact=False))


def _blank_cells(attribute: Attribute, released: Generalization, place: int) -> Replace:
    """Return unchanged values and empty cells in the type of the column; as text if whole records are starred."""
    assert isinstance(attribute, CategoricalAttribute)  # noqa: S101  suppressed columns are encoded so
    texts = attribute.texts[np.minimum(released.domain.codes[:, place], attribute.null_code)]
    texts[released.levels[:, place] > 0] = None
    texts[released.suppressed] = TOP
    return Replace(pa.array(texts.tolist(), pa.string()), as_stored=not released.suppressed.any())


def _check_request(task: Task, attributes: Sequence[Attribute], method: Declaration) -> None:
    problems = find_unmet_needs(method, task)
    for attribute in attributes:
        if attribute.bound.request.missing == "mean" and attribute.null.any():
            kind = "suppressed" if attribute.bound.suppressed else "generalized"
            what = f"'{attribute.bound.name}': {kind} values cannot be imputed"
            problems.append(Problem(what, 'choose missing = "separate" or "drop"'))
    if task.method.refine == "exact":
        what = f'method.refine: "exact" is for methods that partition, and the method is {method.name}'
        problems.append(Problem(what, "leave out method.refine"))
    if problems:
        raise PolicyError(problems)


def search_lattice(task: Task) -> Lattice:
    """Return the lattice of a task, with its optimum."""
    from kinfold.methods.generalize.lattice import METHOD, search_lattice

    _check_request(task, task.tuples.attributes, METHOD)
    return search_lattice(task, _read_tuples(task).domain)


def inspect_mu_argus(task: Task) -> MuArgusState:
    """Return the state of mu-Argus on a task after the choices of its policy."""
    from kinfold.methods.generalize.mu_argus import METHOD, count_outliers

    _check_request(task, task.tuples.attributes, METHOD)
    return count_outliers(_read_tuples(task).domain, task.k, task.method.choices)
