"""Advice on t: said where t-closeness leaves few classes, for a data holder to weigh.

A t so small that only one class of all records keeps it is known before any work (see `partition.least_closeness`):
said with the least t that more classes can keep.

Few is less than a tenth of the classes that k alone allows. What looser levels of t would keep takes a partition each,
by the same method, without refinement: they are tried only where `report.measures` is "all".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from kinfold.errors import plural
from kinfold.methods.partition.least_closeness import ROUNDING, least_closeness
from kinfold.methods.partition.requirement import Requirement
from kinfold.methods.task import Task
from kinfold.models import TCloseness

FEW = 0.1  # of the classes that k alone allows: above it, a note would come with most releases
LOOSER = (1.5, 2.0, 3.0)  # times t: from a small step to one that is another promise


def only_one_class(task: Task) -> list[str]:
    """Say of each column whose t is kept by nothing but one class of all records, and what t more would keep."""
    told = []
    for model in task.close:
        least = least_closeness(Requirement.of(model, task.confidential[model.column]), task.k, model.t)
        if least is not None and model.t + ROUNDING < least < np.inf:
            what = f"'{model.column}': t = {model.t:g} is kept by one class of all records and by nothing else"
            told.append(f"{what}; more than one class needs t of at least {_up(least):g}")
    return told


def _up(level: float) -> float:
    """Round up to three digits.

    >>> _up(0.012341), _up(0.25)
    (0.0124, 0.25)
    """
    unit = 10.0 ** (np.floor(np.log10(level)) - 2)
    return float(f"{np.ceil(round(level / unit, 6)) * unit:.3g}")


def few_classes(task: Task, classes: int, records: int) -> list[str]:
    """Return a note on few classes."""
    if not task.close or classes >= FEW * records / task.k:
        return []
    return [f"t-closeness leaves only {plural(classes, 'class', 'classes')} of {plural(records, 'record')}"]


def advice(task: Task, classes: int, records: int, count: Callable[[Task], int]) -> list[str]:
    """Return a note on few classes, and what looser levels of t would keep; `count` makes the classes of a task."""
    if not (few := few_classes(task, classes, records)):
        return []
    if classes == 1 and (only := only_one_class(task)):
        return only
    close, told = task.close, few[0]
    if task.policy.request.report.measures != "all":
        return [told + '; report.measures = "all" says what a looser t would keep']
    kept = []
    for factor in LOOSER:
        if max(model.t for model in close) * factor > 1:
            break
        models = [replace(m, t=m.t * factor) if isinstance(m, TCloseness) else m for m in task.models]
        kept.append(f"{count(replace(task, models=models)):,} at {factor:g} times t")
    return [told + (f"; a looser t would keep {', '.join(kept)}" if kept else "")]
