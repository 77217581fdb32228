"""From what a policy asks to the models that judge it. A model that cannot be enforced is an error, never ignored."""

from __future__ import annotations

from collections.abc import Sequence

from kinfold.errors import Problem
from kinfold.models import KAnonymity, Model
from kinfold.policy import Policy

NOT_YET = ("t", "l", "p", "alpha", "unit", "joint")


def promises(policy: Policy, confidential: Sequence[str]) -> tuple[tuple[Model, ...], list[Problem]]:
    """Return the models of a policy over its confidential columns, and what cannot be promised."""
    asked = [f"privacy.{key}" for key in NOT_YET if getattr(policy.privacy, key)]
    asked += [
        f"columns.{name}.{key}"
        for name in confidential
        for key in ("t", "l")
        if name in policy.columns and getattr(policy.columns[name], key)
    ]
    problems = [Problem(f"'{key}' asks for a model that is not implemented yet", "leave it out") for key in asked]
    return (KAnonymity(policy.privacy.k),), problems
