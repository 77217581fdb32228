"""Running a method: its file is loaded when it is run, and what the registry agrees on is called."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.methods.blocks.size import block_size, estimate, in_time
from kinfold.methods.generalize.domain import Domain
from kinfold.methods.generalize.found import Found
from kinfold.methods.task import Task
from kinfold.progress import Progress, onward
from kinfold.request.methods import Declaration, module_of
from kinfold.rows.points import Points

Labels: TypeAlias = NDArray[np.int32]

LONG = 10.0  # seconds from which on the expected time is said


def announced(task: Task, method: Declaration, seconds: float) -> Task:
    """Return the task with a stage that says how long the method is expected to take, if that is long."""
    if seconds < LONG or task.stages is None:
        return task
    progress = onward(task.stage(f"plan by {method.name}, about {in_time(seconds)}"))
    progress(0, 1)
    return replace(task, progress=progress)


def expected_partition(method: Declaration, task: Task) -> float:
    """Return about how many seconds a partition takes, in blocks where the table is cut, its refinement included."""
    size = block_size(method, task).records or task.records
    refinement = task.method.limits[1] if task.method.limits else None
    return estimate(method, task, size) * task.records / max(size, 1) + (refinement or 0.0)


def partition(method: Declaration, records: Points, task: Task, progress: Progress) -> Labels:
    """Return the classes that a method makes of some records."""
    labels: Labels = _loaded(method).run(records, task, progress)
    return labels


def set_aside(method: Declaration, task: Task) -> NDArray[np.bool_]:
    """Mark the records that a method does not want in any class."""
    if not method.sets_aside:
        return np.zeros(task.records, np.bool_)
    marked: NDArray[np.bool_] = _loaded(method).set_aside(task)
    return marked


def generalized(method: Declaration, task: Task, domain: Domain) -> Found:
    """Return what a method releases of the distinct tuples of a task."""
    module = _loaded(method)
    refinement = task.method.limits[1] if task.method.limits else None
    seconds = module.expected(domain) if refinement is None else refinement
    found: Found = module.run(announced(task, method, seconds), domain)
    return found


def _loaded(method: Declaration) -> Any:
    return importlib.import_module(module_of(method.name))
