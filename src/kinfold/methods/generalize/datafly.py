"""Datafly: generalize the attribute with the most distinct values until few tuples fail a promise.

    1  freq = the distinct sequences of quasi-identifier values, with their numbers of occurrences
    2  while sequences that fail a promise account for more than k tuples:
           generalize the attribute that has the most distinct values in freq
    3  suppress the sequences that still fail
    4  while some tuples are suppressed, but too few to keep the promises as a class: suppress the smallest class too

As printed, step 4 can suppress many more than k tuples. If a limit is given, step 2 continues until steps 3 and 4 stay
within it; in any case it continues until something is released.

Paper: Sweeney 2002, Figure 8, with step 2 as printed ("more than k tuples").
Cost: one roll-up per step.   Ties: the first attribute.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from kinfold.errors import Unreachable
from kinfold.methods.generalize.domain import Domain, Levels, Mask, View
from kinfold.methods.generalize.levels import (
    Generalization,
    Models,
    complete_starred_class,
    mark_failing,
    mark_outliers,
    required_k,
    suppression_limit,
)
from kinfold.methods.generalize.result import SearchResult, describe_levels
from kinfold.policy.registry import Declaration
from kinfold.progress import Progress, no_progress
from kinfold.tables.tally import Ints, Values

if TYPE_CHECKING:
    from kinfold.methods.task import Task

METHOD = Declaration(
    name="datafly",
    family="generalize",
    summary="generalizes the column with the most distinct values, step by step (paper 002)",
    page="datafly",
    needs=("hierarchies", "rows"),
    kernels=("rollup",),
)


@dataclass(frozen=True, eq=False)
class FrequencyList:
    """The distinct sequences at some levels, as in Figure 9.

    A step is chosen by `distinct` and `outliers`; the sequences themselves are listed only when they are read.
    """

    domain: Domain
    levels: Levels
    distinct: Mapping[str, int]
    outliers: int  # tuples in sequences that fail a promise

    @property
    def columns(self) -> dict[str, Values]:
        """The labels of the sequences."""
        first = self.domain.roll_up(self.levels).rows
        return {
            name: self.domain.label_table(a)[self.domain.codes[first, a], self.levels[a]]
            for a, name in enumerate(self.domain.names)
        }

    @property
    def counts(self) -> Ints:
        """The number of tuples of each sequence."""
        return self.domain.roll_up(self.levels).tally.sizes

    @property
    def rows(self) -> tuple[Ints, ...]:
        """The rows of the domain in each sequence."""
        into = self.domain.classes(self.levels)
        return tuple(np.split(np.argsort(into, kind="stable"), np.cumsum(np.bincount(into))[:-1]))


@dataclass(frozen=True, eq=False)
class DataflyResult:
    """The release of Datafly, and the frequency list of each step."""

    generalization: Generalization
    steps: tuple[FrequencyList, ...]


def datafly(
    domain: Domain, models: Models, suppression: float | None = None, progress: Progress = no_progress
) -> DataflyResult:
    """Return the generalization of Datafly, with its frequency lists.

    `suppression` limits the number of suppressed tuples; without it step 2 stops by k, as printed.

    >>> from kinfold.papers.paper_002 import TWO, figure_7
    >>> datafly(figure_7(), TWO, suppression=0).generalization.vector
    (1, 2, 0, 1)
    """
    limit = domain.records if suppression is None else suppression_limit(suppression, domain.records)
    allowed = required_k(models) if suppression is None else limit
    levels = (0,) * len(domain.names)
    steps: list[FrequencyList] = []
    view: View | None = None  # at the last levels; the next step has fewer rows to merge
    while True:
        progress(sum(levels), sum(domain.heights))
        view = domain.roll_up(levels, view)
        steps.append(_count_frequencies(domain, view, models))
        chosen = _choose_attribute(domain, steps[-1])
        if steps[-1].outliers <= allowed or chosen is None:
            suppressed = _mark_suppressed(domain, levels, models)
            count = int(domain.tally.sizes[suppressed].sum())
            if steps[-1].outliers <= allowed and count <= limit and not suppressed.all():
                break
        if chosen is None:
            what = f"with every column at its top level, {count} of {domain.records} records fail a promise"
            raise Unreachable(what, fix="allow more method.suppression, or require less")
        levels = tuple(level + (a == chosen) for a, level in enumerate(levels))
    return DataflyResult(Generalization.full_domain(domain, levels, suppressed), tuple(steps))


def estimate_seconds(domain: Domain) -> float:
    """Estimate the run time."""
    return 1e-6 * len(domain)


def run(task: Task, domain: Domain) -> SearchResult:
    """Run Datafly; step 2 stops by k if the policy sets no limit."""
    released = datafly(domain, task.models, task.may_suppress(domain.records), task.progress).generalization
    return SearchResult(released, (describe_levels(released),))


def _count_frequencies(domain: Domain, view: View, models: Models) -> FrequencyList:
    distinct = {}
    for a, name in enumerate(domain.names):
        numbers = domain.paths[a][domain.codes[view.rows, a], view.levels[a]]
        distinct[name] = int(np.count_nonzero(np.bincount(numbers)))
    outliers = int(view.tally.sizes[mark_failing(models, view.tally)].sum())
    return FrequencyList(domain, view.levels, distinct, outliers)


def _choose_attribute(domain: Domain, freq: FrequencyList) -> int | None:
    """Return the attribute with the most distinct values that is below its top, or None."""
    free = [a for a, height in enumerate(domain.heights) if freq.levels[a] < height]
    return max(free, key=lambda a: (freq.distinct[domain.names[a]], -a), default=None)


def _mark_suppressed(domain: Domain, levels: Levels, models: Models) -> Mask:
    """Mark the rows that steps 3 and 4 suppress, again and again: that changes the table classes are compared with."""
    view = domain.roll_up(levels)  # tuples with equal labels are suppressed together
    merged = replace(domain, codes=domain.codes[view.rows], tally=view.tally)
    suppressed = np.zeros(len(view), np.bool_)
    while True:
        before, classes = int(suppressed.sum()), Generalization.full_domain(merged, levels, suppressed).classes()
        kept = np.flatnonzero(~suppressed)
        _, into = np.unique(classes[kept], return_inverse=True)
        suppressed[kept[mark_outliers(models, merged.tally.drop(suppressed).merge(into, {}))[into]]] = True
        if suppressed.any() and not suppressed.all():
            _, into = np.unique(np.where(suppressed, -1, classes), return_inverse=True)  # class 0: the suppressed
            starred = np.arange(int(into.max()) + 1) == 0
            suppressed = np.asarray(complete_starred_class(models, merged.tally.merge(into, {}), starred)[into])
        if int(suppressed.sum()) == before or suppressed.all():
            return np.asarray(suppressed[domain.classes(levels)], np.bool_)
