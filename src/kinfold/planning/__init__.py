"""Planning: from the encoded quasi-identifiers and the policy to a recoding of the table.

The policy holds a method's name only; it is looked up here.
"""

from __future__ import annotations

from kinfold.planning.microaggregation import microaggregate
from kinfold.planning.partitioners import PARTITIONERS
from kinfold.planning.task import Plan, Task

__all__ = ["PARTITIONERS", "Plan", "Task", "plan"]


def plan(task: Task) -> Plan:
    """Return what to do to each row and each column."""
    method, reason = _chosen(task)
    return microaggregate(task, method, reason)


def _chosen(task: Task) -> tuple[str, str]:
    name = task.policy.policy.method.name
    if name != "auto":
        return name, "named in the policy"
    return "mdav", "the policy leaves the choice to kinfold"
