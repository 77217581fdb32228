"""What a generalizer found: the table it releases, and what there is to say about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kinfold.methods.generalize.generalization import Generalization
from kinfold.methods.generalize.minimality import Belief, strongest_belief

if TYPE_CHECKING:
    from kinfold.methods.task import Task


@dataclass(frozen=True, eq=False)
class Found:
    """What a method releases, what there is to say about it, and the steps that its search took."""

    released: Generalization
    notes: tuple[str, ...] = ()
    steps: int | None = None
    belief: Belief | None = None  # what someone who knows the method can conclude from the levels


def minimality(task: Task, released: Generalization) -> Belief | None:
    """Measure what minimal levels tell someone who knows the method; None where records may be suppressed."""
    if task.method.suppression or released.vector is None:
        return None
    return strongest_belief(released.domain, task.models, released.vector, task.method.extra_level or 0.0)


def levels_told(released: Generalization) -> str:
    """Say on which level each column is."""
    domain = released.domain
    levels = zip(domain.names, released.vector or (), domain.heights, strict=True)
    return "levels: " + ", ".join(f"{name} {level} of {height}" for name, level, height in levels)
