"""What a looser t would keep: said where t-closeness leaves few classes, for a data holder to weigh.

Few is less than a tenth of the classes that k alone allows. Each looser level is tried with the same method, without
refinement.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kinfold.methods.task import Task
from kinfold.models import TCloseness

FEW = 0.1
LOOSER = (1.5, 2.0, 3.0)


def advice(task: Task, classes: int, records: int, count: Callable[[Task], int]) -> list[str]:
    """Return a note on how many classes looser levels of t would keep; `count` makes the classes of a task."""
    close = [model for model in task.models if isinstance(model, TCloseness)]
    if not close or classes >= FEW * records / task.k:
        return []
    kept = []
    for factor in LOOSER:
        if max(model.t for model in close) * factor > 1:
            break
        models = [replace(m, t=m.t * factor) if isinstance(m, TCloseness) else m for m in task.models]
        kept.append(f"{count(replace(task, models=models)):,} at {factor:g} times t")
    told = f"t-closeness leaves only {classes:,} classes of {records:,} records"
    return [told + (f"; a looser t would keep {', '.join(kept)}" if kept else "")]
