"""Planning: from the encoded quasi-identifiers and the policy to a recoding of the table.

The policy holds a method's name only; what there is under that name is in the registry (`request.methods`).
"""

from __future__ import annotations

from kinfold.methods.blocks.parallel_blocks import at_most
from kinfold.methods.planning.choice import chosen
from kinfold.methods.planning.generalizing import generalize
from kinfold.methods.planning.in_regions import microaggregate_anywhere
from kinfold.methods.task import Ask, Plan, Task

__all__ = ["Ask", "Plan", "Task", "plan"]

FAMILIES = {"partition": microaggregate_anywhere, "generalize": generalize}


def plan(task: Task) -> Plan:
    """Return what to do to each row and each column."""
    method, reason = chosen(task)
    with at_most(task.policy.request.engine.threads):
        return FAMILIES[method.family](task, method, reason)
