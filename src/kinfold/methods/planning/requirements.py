"""What the models of a task ask of each class beyond its size, as partitioners read it."""

from __future__ import annotations

from kinfold.methods.partition.requirement import Requirement
from kinfold.methods.planning.task import Task
from kinfold.models import KAnonymity


def requirements(task: Task) -> list[Requirement]:
    """Return one requirement for each promise about a confidential column, over the records of a task."""
    asked = [model for model in task.models if not isinstance(model, KAnonymity)]
    return [Requirement.of(model, task.confidential[model.column]) for model in asked]  # type: ignore[attr-defined, arg-type]
