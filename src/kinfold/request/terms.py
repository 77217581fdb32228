"""Promises: from what a bound policy asks to the terms by which its release is judged.

A model that cannot be enforced is an error, never ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import DataError, PolicyError, Problem, Unreachable, plural, together
from kinfold.models import AlphaK, KAnonymity, LDiversity, Model, PSensitive, TCloseness
from kinfold.models.terms import Confidential, Terms
from kinfold.request.binding import BoundColumn, BoundPolicy, bind
from kinfold.request.column_hierarchies import hierarchy_of, in_order, rows_of
from kinfold.request.encoding import encode
from kinfold.request.policy import Policy
from kinfold.request.quoted_terms import as_written
from kinfold.rows.categories import category
from kinfold.rows.engines import Engine
from kinfold.rows.formulas import unquoted
from kinfold.rows.schema import AS_TEXT, Kind, Reading, Role
from kinfold.rows.tally import Scopes, coded


def terms_of(policy: BoundPolicy, engine: Engine, frame: Any, *, quoted: bool = False, released: bool = False) -> Terms:
    """Return what a policy, bound to a source, promises of its release; `quoted` where formulas in the rows are.

    What is wrong with a confidential column is told together with what is wrong with the quasi-identifiers of a source.
    """

    def names(role: Role) -> tuple[str, ...]:
        return tuple(column.name for column in policy.of(role))

    makers = [partial(_confidential, column, engine, frame, quoted) for column in policy.of(Role.CONFIDENTIAL)]
    try:
        confidential = tuple(together(makers))
    except (PolicyError, DataError):
        if released:
            raise
        together([*makers, partial(_try_quasi, policy, engine, frame)])
        raise
    models = _models(policy, confidential)
    privacy = policy.request.privacy
    joint = privacy.joint and len(confidential) > 1
    removed = names(Role.IDENTIFIER)
    return Terms(names(Role.QUASI), confidential, names(Role.OTHER), removed, models, joint, privacy.unit)


def terms_of_release(policy: Policy, engine: Engine, frame: Any) -> Terms:
    """Return the terms of a table that is already released: identifiers are gone, quasi-identifiers may be labels."""
    schema = engine.schema(frame)
    removed = tuple(name for name, column in policy.columns.items() if column.role is Role.IDENTIFIER)
    kept = {name: column for name, column in policy.columns.items() if column.role is not Role.IDENTIFIER}
    output = policy.output.model_copy(update={"others": "release"})
    rows = policy.privacy.model_copy(update={"unit": None})  # people cannot be counted any more
    columns = {name: column for name, column in kept.items() if name in schema}
    here = policy.model_copy(update={"columns": columns, "output": output, "privacy": rows})
    bound = bind(here, schema, released=True)
    terms = terms_of(bound, engine, frame, quoted=policy.output.spreadsheet_safe, released=True)
    absent = tuple(name for name in kept if name not in schema)
    unnamed = tuple(name for name in terms.other if name not in policy.columns)
    named = tuple(name for name in terms.other if name in kept)
    gone = unnamed if policy.output.others == "drop" else ()  # the policy says that they are not released
    released = unnamed if policy.output.others == "release" else ()
    other, removed = (*named, *released, *absent), (*removed, *gone)
    terms = replace(terms, other=other, removed=removed, unit=policy.privacy.unit)
    return as_written(terms) if policy.output.spreadsheet_safe else terms


def _try_quasi(policy: BoundPolicy, engine: Engine, frame: Any) -> Any:
    """Read the quasi-identifiers for what is wrong with them alone: one row for each combination will do."""
    columns = policy.of(Role.QUASI)
    encode(engine, engine.distinct(frame, [column.name for column in columns]), columns)


def _models(policy: BoundPolicy, confidential: Sequence[Confidential]) -> tuple[Model, ...]:
    problems = _unprotected(policy, confidential)
    models: list[Model] = [KAnonymity(policy.request.privacy.k)]
    for column in confidential:
        try:
            models += _column_models(policy, column)
        except PolicyError as error:
            problems += error.problems
    if problems:
        raise PolicyError(problems)
    return tuple(models)


def _unprotected(policy: BoundPolicy, confidential: Sequence[Confidential]) -> list[Problem]:
    asked = [key for key in ("t", "l", "p", "alpha") if getattr(policy.request.privacy, key) is not None]
    if not asked or confidential:
        return []
    return [Problem(f"'privacy.{key}' is asked for, but no column is confidential", "name one") for key in asked]


def _column_models(policy: BoundPolicy, column: Confidential) -> Iterator[Model]:
    privacy, own = policy.request.privacy, policy[column.name].request
    t, l = own.t or privacy.t, own.l or privacy.l
    if t is not None:
        yield TCloseness(t, column.name, column.distance, column.hierarchy)  # type: ignore[arg-type]
    if l is not None:
        yield LDiversity(l, column.name, privacy.l_kind, privacy.c or 1.0)
    if privacy.p is not None:
        yield PSensitive(privacy.p, column.name)
    if privacy.alpha is not None:
        yield AlphaK(privacy.alpha, column.name)


def confidential_values(engine: Engine, frame: Any, terms: Terms) -> dict[str, NDArray[Any]]:
    """Return the confidential columns as values whose order is theirs: places in it (NaN for null), or text."""
    values = {}
    for column in terms.confidential:
        held = engine.collect(frame, {column.name: column.reading}).column(0)
        array = held.to_numpy(zero_copy_only=False)
        if column.order is not None:
            place = column.places
            array = np.array([np.nan if text is None else place.get(category(text), np.nan) for text in array])
        values[column.name] = array
    return values


def people(engine: Engine, frame: Any, policy: BoundPolicy) -> NDArray[np.int64] | None:
    """Number whose row each row is, where the policy counts people; rows without a unit count as one person's."""
    name = policy.request.privacy.unit
    if name is None:
        return None
    found = _numbered(engine, frame, name, AS_TEXT)
    many, k = len(np.unique(found)), policy.request.privacy.k
    if many < k:
        raise Unreachable(
            f"k is {k}, but '{name}' names only {plural(many, 'person', 'people')}",
            fix="lower k, or bring more people",
        )
    return found


def scopes_of(engine: Engine, frame: Any, terms: Terms, person: NDArray[np.int64] | None) -> Scopes | None:
    """Return what promises must hold for beside the rows of each class, if they are about people or joint."""
    if person is None and not terms.joint:
        return None
    columns = {name: coded(values) for name, values in confidential_values(engine, frame, terms).items()}
    return Scopes(columns, person, {name: _numbered(engine, frame, name) for name in columns if terms.joint})


def _numbered(engine: Engine, frame: Any, name: str, how: Reading | None = None) -> NDArray[np.int64]:
    """Number the texts of a column: 0 where there is none."""
    texts = engine.collect(frame, {name: how}).column(0).combine_chunks().dictionary_encode()
    return np.asarray(texts.indices.fill_null(-1).to_numpy(zero_copy_only=False), np.int64) + 1


def held_texts(engine: Engine, frame: Any, name: str) -> NDArray[Any]:
    """Return the distinct texts of a column, in order."""
    texts = engine.tally(frame, [name], {}).keys[name]
    return np.array([text for text in texts if text is not None], object)


def _confidential(column: BoundColumn, engine: Engine, frame: Any, quoted: bool) -> Confidential:
    hierarchy, distance = None, _distance(column)
    if column.request.hierarchy or column.request.order:
        texts = held_texts(engine, frame, column.name)
        texts = np.array([unquoted(text) for text in texts], object) if quoted else texts
        in_order(column, texts)
        texts = np.array(sorted({*map(category, texts)}), object)
    if distance == "hierarchical":
        hierarchy = hierarchy_of(column, texts)
        leaves = {*map(category, hierarchy.values)}
        rows_of(column, hierarchy, np.array([text for text in texts if text not in leaves], object))
    order, date_format = column.request.order, column.column.date_format if column.kind is Kind.DATE else None
    return Confidential(column.name, str(column.kind), distance, order, hierarchy, date_format)


def reading_of(column: BoundColumn) -> Reading:
    """Return how the values of a confidential column are told apart and ordered."""
    if _distance(column) == "hierarchical":
        return AS_TEXT
    date_format = column.column.date_format if column.kind is Kind.DATE else None
    return Confidential(
        column.name, str(column.kind), _distance(column), column.request.order, None, date_format
    ).reading


def _distance(column: BoundColumn) -> str:
    if column.request.distance:
        return column.request.distance
    if column.kind is not Kind.NOMINAL:
        return "ordered"
    return "hierarchical" if column.request.hierarchy else "equal"
