"""Promises: from what a bound policy asks to the terms by which its release is judged.

A model that cannot be enforced is an error, never ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from kinfold.binding import BoundColumn, BoundPolicy, bind
from kinfold.engines import Engine
from kinfold.errors import PolicyError, Problem
from kinfold.ladders import hierarchy_of, rows_of
from kinfold.models import KAnonymity, Model
from kinfold.policy import Policy
from kinfold.release import Confidential, Terms
from kinfold.schema import Kind, Role

NOT_YET = ("t", "l", "p", "alpha", "unit", "joint")


def terms_of(policy: BoundPolicy, engine: Engine, frame: Any) -> Terms:
    """Return what a policy, bound to a source, promises of its release."""

    def names(role: Role) -> tuple[str, ...]:
        return tuple(column.name for column in policy.of(role))

    confidential = tuple(_confidential(column, engine, frame) for column in policy.of(Role.CONFIDENTIAL))
    models = tuple(_models(policy))
    return Terms(names(Role.QUASI), confidential, names(Role.OTHER), names(Role.IDENTIFIER), models)


def terms_of_release(policy: Policy, engine: Engine, frame: Any) -> Terms:
    """Return the terms of a table that is already released: identifiers are gone, quasi-identifiers may be labels."""
    schema = engine.schema(frame)
    removed = tuple(name for name, column in policy.columns.items() if column.role is Role.IDENTIFIER)
    kept = {name: column for name, column in policy.columns.items() if column.role is not Role.IDENTIFIER}
    output = policy.output.model_copy(update={"others": "release"})
    here = policy.model_copy(update={"columns": {n: c for n, c in kept.items() if n in schema}, "output": output})
    bound = bind(here, schema, released=True)
    terms = terms_of(bound, engine, frame)
    absent = tuple(name for name in kept if name not in schema)
    unnamed = () if policy.output.others == "refuse" else tuple(name for name in terms.other if name not in kept)
    named = tuple(name for name in terms.other if name in kept)
    return replace(terms, other=(*named, *unnamed, *absent), removed=removed)


def _models(policy: BoundPolicy) -> Iterator[Model]:
    asked = [f"privacy.{key}" for key in NOT_YET if getattr(policy.policy.privacy, key)]
    asked += [f"columns.{c.name}.{key}" for c in policy.columns for key in ("t", "l") if getattr(c.asked, key)]
    if asked:
        raise PolicyError(
            Problem(f"'{key}' asks for a model that is not implemented yet", "leave it out") for key in asked
        )
    yield KAnonymity(policy.policy.privacy.k)


def _confidential(column: BoundColumn, engine: Engine, frame: Any) -> Confidential:
    hierarchy = None
    if column.asked.hierarchy:
        texts = engine.collect(frame, {column.name: None}).column(0).drop_null().unique().to_numpy(zero_copy_only=False)
        hierarchy = hierarchy_of(column, texts)
        rows_of(column, hierarchy, texts)
    return Confidential(column.name, str(column.kind), _distance(column), column.asked.order, hierarchy)


def _distance(column: BoundColumn) -> str:
    if column.asked.distance:
        return column.asked.distance
    if column.kind is not Kind.NOMINAL:
        return "ordered"
    return "hierarchical" if column.asked.hierarchy else "equal"
