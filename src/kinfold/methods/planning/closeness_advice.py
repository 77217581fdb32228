"""Advice on t: said where t-closeness leaves few classes, for a data holder to weigh.

Few is less than a tenth of the classes that k alone allows. What looser levels of t would keep takes a partition each,
by the same method, without refinement: they are tried only where `report.measures` is "all".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kinfold.errors import plural
from kinfold.methods.task import Task
from kinfold.models import TCloseness

FEW = 0.1  # of the classes that k alone allows: above it, a note would come with most releases
LOOSER = (1.5, 2.0, 3.0)  # times t: from a small step to one that is another promise


def advice(task: Task, classes: int, records: int, count: Callable[[Task], int]) -> list[str]:
    """Return a note on few classes, and what looser levels of t would keep; `count` makes the classes of a task."""
    close = [model for model in task.models if isinstance(model, TCloseness)]
    if not close or classes >= FEW * records / task.k:
        return []
    told = f"t-closeness leaves only {plural(classes, 'class', 'classes')} of {plural(records, 'record')}"
    if task.policy.request.report.measures != "all":
        return [told + '; report.measures = "all" says what a looser t would keep']
    kept = []
    for factor in LOOSER:
        if max(model.t for model in close) * factor > 1:
            break
        models = [replace(m, t=m.t * factor) if isinstance(m, TCloseness) else m for m in task.models]
        kept.append(f"{count(replace(task, models=models)):,} at {factor:g} times t")
    return [told + (f"; a looser t would keep {', '.join(kept)}" if kept else "")]
