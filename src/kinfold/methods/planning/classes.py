"""Classes: some records partitioned, mended where a promise is missed, mended at the borders of blocks, refined."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import PolicyError
from kinfold.methods.blocks.parallel_blocks import Labelled
from kinfold.methods.partition.out_of_reach import require_within_reach
from kinfold.methods.planning.closeness_advice import only_one_class
from kinfold.methods.planning.edit_rules import Nudged
from kinfold.methods.planning.in_blocks import Blocks, blocks_of, bordered, mended, partitioned
from kinfold.methods.planning.missing import refuse_mixed, strata
from kinfold.methods.planning.people_and_joint import APART, beyond_rows, merge_until
from kinfold.methods.planning.rare_patterns import keeping
from kinfold.methods.planning.refinement import Refined, not_exact, proved_gap, refined, refined_in_blocks
from kinfold.methods.task import Task
from kinfold.request.encoding import points
from kinfold.request.methods import Declaration
from kinfold.rows.points import Points

if TYPE_CHECKING:
    from kinfold.methods.partition.requirement import Requirement

Labels: TypeAlias = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Classes:
    """The class of each record, how many were repaired, and the steps of refinement."""

    labels: Labels
    repaired: int = 0
    steps: int = 0
    gap: float | None = None
    refined: float = 0.0  # seconds of refinement
    nudged: Nudged | None = None  # for edit rules
    blocks: Blocks | None = None  # that they were made in


def classes_of(task: Task, method: Declaration, *, refine: bool = True) -> Classes:
    """Return the classes of a table; where nothing but one class of all keeps what is promised, that one."""
    apart = strata(task.attributes)
    if problems := [*not_exact(task, apart)]:
        raise PolicyError(problems)
    if not apart.any() and only_one_class(task):
        return Classes(_one_class(task, apart))
    return made_of(task, method, apart, refine=refine)


def _one_class(task: Task, apart: Labels) -> Labels:
    """Return one class of all records; raise where that misses another promise."""
    require_within_reach(task.requirements())
    labels = np.zeros(len(apart), np.int32)
    if failing := beyond_rows(task):
        merge_until(kept_apart(task, apart), labels, failing)
    return labels


def made_of(task: Task, method: Declaration, apart: Labels, *, refine: bool = True) -> Classes:
    """Return the classes that a method makes of some records, whose patterns of missing values are kept apart."""
    every = points(task.attributes, np.arange(len(apart)))
    blocks = blocks_of(task, method, every, apart)
    part = partitioned(task, method, every, blocks)
    every, required = _further_apart(every, apart), task.requirements()
    part = _repaired(task, every, part, blocks, required)
    labels = bordered(task, every, part.labels, blocks, required)
    return _improved(task, every, replace(part, labels=labels), blocks, refine=refine)


def _repaired(task: Task, every: Points, part: Labelled, blocks: Blocks, required: Sequence[Requirement]) -> Labelled:
    """Repair what misses a promise; in blocks that was done but for what a block alone could not."""
    if not required:
        return part
    if blocks.many:
        from kinfold.methods.partition.repair import repair

        found = repair(every, part.labels, task.k, required, progress=task.stage("repair"))
    else:
        found = mended(task, every, part.labels, required, task.progress)
    return Labelled(_unmixed(task, every, found.labels, blocks.apart), part.mended + found.repaired)


def _improved(task: Task, every: Points, part: Labelled, blocks: Blocks, *, refine: bool) -> Classes:
    """Refine, and merge what still misses a promise that a search cannot steer by."""
    required, repaired = task.requirements(), part.mended
    started = time.perf_counter()
    found = Refined(part.labels)
    if refine and blocks.many:
        found = refined_in_blocks(task, every, part.labels, required)
    elif refine:
        found = refined(every, part.labels, task.k, required, task.method, task.progress)
    seconds = time.perf_counter() - started if found.steps else 0.0
    better, gap = found.labels, found.gap
    if gap is None and refine and not required and not blocks.apart.any():
        gap = _gap(task, every, better)
    if failing := beyond_rows(task):
        better, merged = merge_until(every, better, failing)
        repaired += merged
    refuse_mixed(task.attributes, better)
    return Classes(better, repaired, found.steps, gap, seconds, blocks=blocks)


def _unmixed(task: Task, every: Points, labels: Labels, apart: Labels) -> Labels:
    """Labelled classes that repair made across strata; what then misses a promise is merged within its stratum."""
    pieces = np.unique(labels * (int(apart.max()) + 1) + apart, return_inverse=True)[1].astype(np.int32)
    return labels if pieces.max() == labels.max() else merge_until(every, pieces, keeping(task))[0]


def kept_apart(task: Task, apart: Labels) -> Points:
    """Return the records as points, strata so far apart that nothing is ever gained by crossing."""
    return _further_apart(points(task.attributes, np.arange(len(apart))), apart)


def _further_apart(every: Points, apart: Labels) -> Points:
    if not apart.any():
        return every
    return Points(np.column_stack([every.numbers, apart * APART]), every.codes, every.scales)


def _gap(task: Task, every: Points, labels: Labels) -> float | None:
    seconds = task.method.prove
    return proved_gap(every, labels, task.k, seconds, task.progress) if seconds and beyond_rows(task) is None else None
