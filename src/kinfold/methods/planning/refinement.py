"""Refinement: the classes of a method, improved by local search under every promise.

`method.refine` gives seconds, "auto" a number of steps by the size of the table (so that the result does not depend on
the clock), `method.refine_steps` the steps themselves. The method "auto" refines by "auto" unless told otherwise. The
steps taken are recorded: with them a run is repeated to the byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.methods.partition.requirement import Requirement
from kinfold.progress import Progress
from kinfold.request.policy import Method
from kinfold.rows.points import Points

Labels: TypeAlias = NDArray[np.int32]


@dataclass(frozen=True)
class Budget:
    """How long to refine: seconds, steps, or neither for as many steps as the size asks for."""

    seconds: float | None = None
    steps: int | None = None


def budget(method: Method) -> Budget | None:
    """Return how long a policy lets refinement run; None for not at all."""
    if method.refine_steps is not None:
        return Budget(steps=method.refine_steps) if method.refine_steps else None
    asked = method.refine
    if method.name == "auto" and "refine" not in method.model_fields_set:
        asked = "auto"
    if asked == "auto":
        return Budget()
    return Budget(seconds=float(asked)) if asked else None


def proved_gap(points: Points, labels: Labels, k: int, seconds: float, progress: Progress) -> float:
    """Return by what share of itself the loss of these classes may lie above the least possible."""
    from kinfold.methods.partition.bounds import lower_bound
    from kinfold.methods.partition.cost import cost

    bound = lower_bound(points, k, labels=labels, seconds=seconds, progress=progress)
    return bound.gap(cost(points, labels))


def refined(
    points: Points, labels: Labels, k: int, required: Sequence[Requirement], method: Method, progress: Progress
) -> tuple[Labels, int]:
    """Return better classes and the steps that were taken."""
    allowed = budget(method)
    if allowed is None or len(np.unique(labels)) < 2:
        return labels, 0
    limits = {"seconds": allowed.seconds, "steps": allowed.steps, "seed": method.seed, "progress": progress}
    if required:
        from kinfold.methods.partition.refine_under import refine_under

        found = refine_under(points, labels, k, required, **limits)  # type: ignore[arg-type]
    else:
        from kinfold.methods.partition.refine import improve

        found = improve(points, labels, k, **limits)  # type: ignore[arg-type]
    return found.labels, found.steps
