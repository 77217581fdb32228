"""Refinement: the classes of a method, improved by local search under every promise, or to the exact end.

`method.refine` gives seconds, "auto" a number of steps by the size of the table (so that the result does not depend on
the clock), `method.refine_steps` the steps themselves. The method "auto" refines by "auto" unless told otherwise, or
promises beyond k are to be kept: then it takes several starts instead. The steps taken are recorded: with them a run is
repeated to the byte.

"exact" is for tables of some hundred records and no promise but k. The local search goes as far as "auto" does, then
the exact end (`partition.exact`) chooses among all classes worth it. It proves how far the result is from the best
there is: often that it is the best. Its steps are rounds of pricing; `method.refine_steps` repeats these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import Problem
from kinfold.methods.annealing import Budget
from kinfold.methods.partition.cost import cost
from kinfold.methods.partition.refine import SMALL, blocks_by_size
from kinfold.methods.partition.requirement import Requirement
from kinfold.methods.task import Task
from kinfold.progress import Progress
from kinfold.request.policy import Method
from kinfold.rows.points import Points

Labels: TypeAlias = NDArray[np.int32]

# what improving, repairing and proving have to compile
KERNELS = (
    *("draws", "plain_search", "sweeps", "random_moves", "promised_search"),
    *("class_misses", "t_merge", "near_kinds", "repair", "paths", "distances", "pricing"),
)
EXACT_UP_TO = 500  # records: half a minute of processor time at k = 3 to 5; a thousand take many


@dataclass(frozen=True, eq=False)
class Refined:
    """Better classes, the steps that repeat them, and how far they are from the best, if that was found out."""

    labels: Labels
    steps: int = 0
    gap: float | None = None


def refined(
    points: Points, labels: Labels, k: int, required: Sequence[Requirement], method: Method, progress: Progress
) -> Refined:
    """Return better classes, as far as the policy lets refinement go."""
    settled = bool(required) and method.by_itself  # from several starts; more takes minutes, and is for who asks for it
    if method.limits is None or settled or len(np.unique(labels)) < 2:
        return Refined(labels)
    steps, seconds = method.limits
    if method.refine == "exact":
        return _exact(points, labels, k, steps, method.seed, progress)
    limits = {"seconds": seconds, "steps": steps, "seed": method.seed, "progress": progress}
    if required:
        from kinfold.methods.partition.refine_under import refine_under

        found = refine_under(points, labels, k, required, **limits)  # type: ignore[arg-type]
    else:
        from kinfold.methods.partition.refine import improve

        found = improve(points, labels, k, **limits)  # type: ignore[arg-type]
    return Refined(found.labels, found.steps)


def refined_in_blocks(task: Task, points: Points, labels: Labels, required: Sequence[Requirement]) -> Refined:
    """Return better classes of a table that is worked on in blocks: a step is a block of a round.

    A small table is searched as any other. Of a large one every round is put on the task's shelf.
    """
    method = task.method
    if len(labels) <= SMALL or method.limits is None or method.refine == "exact":
        return refined(points, labels, task.k, required, method, task.progress)
    if (required and method.by_itself) or len(np.unique(labels)) < 2:
        return Refined(labels)
    from kinfold.methods.partition.large import Work, search_rounds, warm_blocks

    warm_blocks()
    steps, seconds = method.limits
    if steps is None and seconds is None:
        steps = blocks_by_size(len(labels))
    work = Work(points, labels, task.k, method.seed, required)
    found = search_rounds(work, Budget(steps, seconds), task.stage("refine"), task.shelf)
    return Refined(found.labels, found.steps) if found.cost <= cost(points, labels) else Refined(labels, found.steps)


def _exact(points: Points, labels: Labels, k: int, steps: int | None, seed: int, progress: Progress) -> Refined:
    from kinfold.methods.partition.exact import STEPS, exact
    from kinfold.methods.partition.refine import improve

    near = improve(points, labels, k, seed=seed, progress=progress)
    found = exact(points, k, near.labels, steps=STEPS if steps is None else steps, progress=progress)
    return Refined(found.labels, found.steps, found.gap)


def not_exact(task: Task, apart: Labels) -> Iterator[Problem]:
    """Say what keeps the exact end from a task; `apart` are strata that no class may cross."""
    if task.method.refine != "exact":
        return
    if task.requirements() or task.scopes is not None:
        what = 'method.refine: "exact" knows no promise but k, and more is promised'
        yield Problem(what, 'use refine = "auto", which keeps every promise')
    if apart.any():
        what = 'method.refine: "exact" needs one table, and records with missing values are grouped apart'
        yield Problem(what, 'use refine = "auto", or missing = "mean" or missing = "drop"')
    if len(apart) > EXACT_UP_TO:
        what = f'method.refine: "exact" is for up to {EXACT_UP_TO:,} records, there are {len(apart):,}'
        yield Problem(what, 'use refine = "auto"; method.prove says how far the result is from the best')


def proved_gap(points: Points, labels: Labels, k: int, seconds: float, progress: Progress) -> float:
    """Return by what share of itself the loss of these classes may lie above the least possible."""
    from kinfold.methods.partition.bounds import lower_bound

    bound = lower_bound(points, k, labels=labels, seconds=seconds, progress=progress)
    return bound.gap(cost(points, labels))
