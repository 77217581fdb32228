"""Running a method: its file is loaded when it is run, and what the registry agrees on is called."""

from __future__ import annotations

import importlib
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.methods.generalize.domain import Domain
from kinfold.methods.generalize.found import Found
from kinfold.methods.task import Task
from kinfold.progress import Progress
from kinfold.request.methods import Declaration, module_of
from kinfold.rows.points import Points

Labels: TypeAlias = NDArray[np.int32]


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
    found: Found = _loaded(method).run(task, domain)
    return found


def _loaded(method: Declaration) -> Any:
    return importlib.import_module(module_of(method.name))
