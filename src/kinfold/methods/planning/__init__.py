"""Planning: from the encoded quasi-identifiers and the policy to a recoding of the table.

The policy holds a method's name only; it is looked up here.
"""

from __future__ import annotations

from kinfold.methods.planning.generalization import generalize
from kinfold.methods.planning.microaggregation import microaggregate
from kinfold.methods.planning.partitioners import PARTITIONERS
from kinfold.methods.planning.task import Ask, Plan, Task
from kinfold.models import TCloseness
from kinfold.request.policy import GENERALIZING

__all__ = ["PARTITIONERS", "Ask", "Plan", "Task", "plan"]


def plan(task: Task) -> Plan:
    """Return what to do to each row and each column."""
    method, reason = _chosen(task)
    return generalize(task, method, reason) if method in GENERALIZING else microaggregate(task, method, reason)


def _chosen(task: Task) -> tuple[str, str]:
    name = task.policy.request.method.name
    if name != "auto":
        return name, "named in the policy"
    if any(isinstance(model, TCloseness) for model in task.models):
        return "t-first", "t-closeness is asked for, and forming classes across the confidential values loses least"
    return "mdav", "the best start for refinement by local search"
