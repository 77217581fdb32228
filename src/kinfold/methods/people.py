"""People together: form classes of people, then recode all rows of a person in the same way.

reduce      to a table with one row for each person, with the attributes of people only
plan        the recoding of that table, with any method: k counts people. Events need larger classes: they are tried as
            long as the quasi-identifiers of people and events together lose less
promises    about attributes of events, and those whose figures depend on how many rows a person has, are kept over the
            rows of all people: classes that miss one are merged (see `promises`)
expand      the class of each person to all of their rows

A method with one level per column cannot merge classes. It is refused unless its own search decides every promise: k,
distinct values and p of attributes of people.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinfold.errors import PolicyError, plural
from kinfold.measures.loss import measure_column_loss
from kinfold.measures.pairing import pair_columns
from kinfold.methods.blocks.pool import NO_CHECKPOINTS
from kinfold.methods.blocks.routing import MAX_RECORDS_IN_MEMORY
from kinfold.methods.events import ReleasedEvents, protect_events
from kinfold.methods.task import Plan, Task
from kinfold.models import KAnonymity, LDiversity, Model, PSensitive
from kinfold.models.known_events import KnownEvents
from kinfold.policy.binding import BoundPolicy, bind
from kinfold.policy.model import ColumnPolicy
from kinfold.policy.table import Table
from kinfold.policy.terms import build_scopes
from kinfold.tables.points import Labels
from kinfold.tables.queries import label_rows
from kinfold.tables.recoding import NO_CLASS, Drop, Recoding, Replace, number_equal_classes
from kinfold.tables.schema import Role, Schema
from kinfold.tables.tally import PersonScopes

Ints = NDArray[np.int64]

PEOPLE_PER_KNOWN = (10, 40, 160)  # times k: least classes if events are protected, so that equal events are in them
SAMPLED_ROWS = 200_000  # of some classes: enough to compare how many events two sizes of classes leave empty


@dataclass(frozen=True, eq=False)
class PeopleTable(Table):
    """A table with one row for each person; `source` has all their rows."""

    source: Table | None = None
    owner: Ints | None = None  # the person of each row of the source, by place in this table

    @cached_property
    def scopes(self) -> PersonScopes | None:
        """The rows of all people, on which promises about attributes of events must hold."""
        assert self.source is not None and self.owner is not None  # noqa: S101, PT018  set by `plan_people`
        rows = build_scopes(self.source.engine, self.source.frame, self.source.terms, self.owner)
        return None if rows is None else PersonScopes(rows, self.policy.rows)


def plan_people(task: Task, table: Table, make_plan: Callable[[Task], Plan]) -> Plan:
    """Return the plan for all rows; `make_plan` plans a table of people."""
    people = reduce_to_people(task, table)
    planned = make_plan(people)
    if table.terms.events is None or task.choose is not None:
        return expand_plan(task, table, people, planned)
    least = _measure_loss(people, planned, table.terms.events)
    for times in PEOPLE_PER_KNOWN[1:]:
        larger = replace(reduce_to_people(task, table, times), checkpoints=NO_CHECKPOINTS)
        if larger.k == people.k:
            break
        other = make_plan(larger)
        lost = _measure_loss(larger, other, table.terms.events)
        if lost >= least:
            break
        least, people, planned = lost, larger, other
    return expand_plan(task, table, people, planned)


def _measure_loss(people: Task, planned: Plan, known: KnownEvents) -> float:
    """Return the mean loss of the quasi-identifiers of people and events, for events in a sample of the classes."""
    reduced = people.table
    assert isinstance(reduced, PeopleTable) and reduced.source is not None and reduced.owner is not None  # noqa: S101, PT018
    engine, recoding = reduced.engine, label_rows(reduced.engine, reduced.frame, planned.recoding)
    released = engine.apply(reduced.frame, recoding, engine.schema(reduced.frame))
    pair = pair_columns(engine, released, reduced.attributes, np.flatnonzero(recoding.kept))
    losses = [measure_column_loss(column).lost for column in pair.columns]
    replaced = {name: treatment for name, treatment in recoding.columns.items() if not isinstance(treatment, Drop)}
    classes = _number_released(replaced, recoding.labels[reduced.owner])
    sampled = np.where(classes % (1 + len(classes) // SAMPLED_ROWS) == 0, classes, NO_CLASS)
    lost = protect_events(reduced.source, known, sampled, reduced.owner).loss
    return float(np.mean([*losses, *[lost] * len(known.columns)]))


def reduce_to_people(task: Task, table: Table, times: int = PEOPLE_PER_KNOWN[0]) -> Task:
    """Return the task over a table with one row for each person, for classes of `times` k if events are protected."""
    person = table.person
    assert person is not None  # noqa: S101  the policy has a unit
    _, first, owner = np.unique(person, return_index=True, return_inverse=True)
    if len(first) > MAX_RECORDS_IN_MEMORY:
        what = (
            f"method.people: there are {len(first):,} people, and at most {MAX_RECORDS_IN_MEMORY:,} are kept together"
        )
        raise PolicyError(what, fix="release the table in parts, or leave out method.people")
    owner = np.argsort(np.argsort(first))[owner]  # people in the order of their first rows
    frame, _ = table.engine.take(table.frame, np.sort(first))
    events = table.terms.events
    k = task.k if events is None else max(task.k, min(task.k * times, len(first) // 2))
    policy = _bind_people(table.policy, table.engine.schema(frame), k)
    own = {column.name for column in policy.columns if not column.removed}
    kept = [model for model in task.models if model.column is None or model.column in own]
    models = [KAnonymity(k) if isinstance(model, KAnonymity) else model for model in kept]
    confidential = tuple(column for column in table.terms.confidential if column.name in own)
    terms = replace(table.terms, confidential=confidential, models=tuple(models), unit=None, surrogates=())
    decided = len(models) == len(task.models) and all(map(_is_decided_by_people, models))
    people = PeopleTable(table.engine, frame, policy, terms, source=table, owner=owner)
    return replace(task, policy=policy, models=models, table=people, scope_models=None if decided else task.models)


def _bind_people(policy: BoundPolicy, schema: Schema, k: int) -> BoundPolicy:
    """Return the policy of a table of people: columns of events are removed."""
    request = policy.request
    columns = {
        c.name: ColumnPolicy(role=Role.REMOVE)
        if c.event or c.role not in (Role.QUASI, Role.CONFIDENTIAL)
        else c.request.model_copy(update={"type": c.kind, "of": None})
        for c in policy.columns
    }
    sections = {
        "columns": columns,
        "privacy": request.privacy.model_copy(update={"unit": None, "events_known": None, "k": k}),
        "method": request.method.model_copy(update={"people": None}),
        "output": request.output.model_copy(update={"surrogate": False, "surrogate_secret": None}),
        "report": request.report.model_copy(update={"sampling_weights": None, "task": None}),
        "rules": (),
    }
    return bind(request.model_copy(update=sections), schema)


def _is_decided_by_people(model: Model) -> bool:
    """Whether a promise about an attribute of people holds for their rows as soon as it holds for them."""
    distinct = isinstance(model, LDiversity) and model.kind == "distinct"
    return distinct or isinstance(model, KAnonymity | PSensitive)


def expand_plan(task: Task, table: Table, people: Task, planned: Plan) -> Plan:
    """Return the plan for all rows, given the plan for a table of people."""
    reduced = people.table
    assert isinstance(reduced, PeopleTable) and reduced.owner is not None  # noqa: S101, PT018
    recoding = label_rows(reduced.engine, reduced.frame, planned.recoding)
    labels = recoding.labels[reduced.owner]
    task.may_suppress(int((labels >= 0).sum()))
    replaced = {name: treatment for name, treatment in recoding.columns.items() if not isinstance(treatment, Drop)}
    notes = _describe_people(table.policy, reduced.policy.rows, task.policy.rows)
    if table.terms.events is not None:
        events = protect_events(table, table.terms.events, _number_released(replaced, labels), reduced.owner)
        replaced, labels = _list_row_values(replaced, events, labels)
        notes = (*notes, *events.notes)
    plan = replace(planned, recoding=Recoding(labels, task.treat_columns(replaced)))
    return plan.prepend_notes(notes, notes[1:])


def _number_released(replaced: Mapping[str, Any], labels: Labels) -> Ints:
    """Number the classes of rows by their released values, because two classes of a method may have the same."""
    number = number_equal_classes(
        [treatment.values for treatment in replaced.values() if isinstance(treatment, Replace)]
    )
    return np.where(labels >= 0, number[labels], NO_CLASS).astype(np.int64)


def _list_row_values(
    replaced: Mapping[str, Any], events: ReleasedEvents, labels: Labels
) -> tuple[dict[str, Any], Labels]:
    """Return the values of each row instead of each class: events differ between the rows of a class."""
    own = pa.array(np.maximum(labels, 0))
    values = {
        name: replace(treatment, values=treatment.values.take(own)) if isinstance(treatment, Replace) else treatment
        for name, treatment in replaced.items()
    }
    rows = np.where(labels >= 0, np.arange(len(labels)), NO_CLASS).astype(np.int32)
    return {**values, **events.columns}, rows


def _describe_people(policy: BoundPolicy, people: int, rows: int) -> Sequence[str]:
    protected = [column for column in policy.columns if column.role in (Role.QUASI, Role.CONFIDENTIAL)]
    kinds = {"the person": False, "the event": True}
    names = {kind: [repr(c.name) for c in protected if c.event is event] for kind, event in kinds.items()}
    attributes = "; ".join(f"attributes of {kind}: {', '.join(each)}" for kind, each in names.items() if each)
    counted = f"{plural(rows, 'row')} of {plural(people, 'person', 'people')} were recoded by person"
    return (counted, f"the rows of a person are recoded together; {attributes}")
