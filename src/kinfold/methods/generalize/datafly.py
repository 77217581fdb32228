"""Datafly: generalize the attribute with the most distinct values until few tuples fail a promise.

    1  freq = the distinct sequences of quasi-identifier values, with their numbers of occurrences
    2  while sequences that fail a promise account for more than k tuples:
           generalize the attribute that has the most distinct values in freq
    3  suppress the sequences that still fail
    4  while some tuples are suppressed, but too few to keep the promises as a class: suppress the smallest class too

As printed, step 4 can suppress many more than k tuples. If a limit is given, step 2 continues until steps 3 and 4 stay
within it; in any case it continues until something is released.

Several quasi-identifiers: each set of attributes has its own freq; a tuple that fails in one set is suppressed in all,
and attributes are chosen from sets with too many failing tuples. Section 4.1 names two weights from 0 to 1 for each
attribute, the likelihood of linking and the preference for distortion, and does not define their effect. Here the
number of distinct values is multiplied by both weights; an attribute of weight 0 is generalized last.

Paper: Sweeney 2002, Figure 8, with step 2 as printed ("more than k tuples").
Cost: one roll-up per step and set, from the step before.   Ties: the first attribute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from kinfold.errors import PolicyError, Unreachable
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
    """The distinct sequences of one quasi-identifier at some levels, as in Figure 9.

    A step is chosen by `distinct` and `outliers`; the sequences themselves are listed only when they are read.
    """

    domain: Domain
    names: tuple[str, ...]
    levels: Levels  # of all attributes of the domain
    distinct: Mapping[str, int]
    outliers: int  # tuples in sequences that fail a promise

    @property
    def columns(self) -> dict[str, Values]:
        """The labels of the sequences."""
        first = self._view.rows
        return {
            name: self.domain.label_table(a)[self.domain.codes[first, a], self.levels[a]]
            for a, name in enumerate(self.domain.names)
            if name in self.names
        }

    @property
    def counts(self) -> Ints:
        """The number of tuples of each sequence."""
        return self._view.tally.sizes

    @property
    def rows(self) -> tuple[Ints, ...]:
        """The rows of the domain in each sequence."""
        into = self.domain.classes(_raise_others(self.domain, self.levels, self.names))
        return tuple(np.split(np.argsort(into, kind="stable"), np.cumsum(np.bincount(into))[:-1]))

    @property
    def _view(self) -> View:
        return self.domain.roll_up(_raise_others(self.domain, self.levels, self.names))


@dataclass(frozen=True, eq=False)
class DataflyResult:
    """The release of Datafly, and the frequency lists of all steps, one per quasi-identifier."""

    generalization: Generalization
    steps: tuple[tuple[FrequencyList, ...], ...]


@dataclass(frozen=True)
class Weights:
    """Weights from 0 to 1 by attribute: the preference for distortion, and the likelihood of linking."""

    preference: Mapping[str, float] = field(default_factory=dict)
    linking: Mapping[str, float] = field(default_factory=dict)

    def weight(self, name: str) -> float:
        """Return the product of both weights of an attribute; each is 1 by default."""
        return self.preference.get(name, 1.0) * self.linking.get(name, 1.0)


def datafly(
    domain: Domain,
    models: Models,
    suppression: float | None = None,
    weights: Weights | None = None,
    sets: Sequence[Sequence[str]] | None = None,
    progress: Progress = no_progress,
) -> DataflyResult:
    """Return the generalization of Datafly, with its frequency lists.

    `suppression` limits the number of suppressed tuples; without it step 2 stops by k, as printed.

    >>> from kinfold.papers.paper_002 import TWO, figure_7
    >>> datafly(figure_7(), TWO, suppression=0).generalization.vector
    (1, 2, 0, 1)
    """
    weights = weights or Weights()
    groups = _check_sets(domain, sets, weights)
    limit = domain.records if suppression is None else suppression_limit(suppression, domain.records)
    allowed = required_k(models) if suppression is None else limit
    levels = (0,) * len(domain.names)
    steps = []
    views: dict[tuple[str, ...], View] = {}  # of each set at the last levels; the next step has fewer rows to merge
    while True:
        progress(sum(levels), sum(domain.heights))
        views = {names: domain.roll_up(_raise_others(domain, levels, names), views.get(names)) for names in groups}
        freq = tuple(_count_frequencies(domain, levels, names, views[names], models) for names in groups)
        steps.append(freq)
        failing = [part for part in freq if part.outliers > allowed]
        if not failing:
            suppressed = _mark_suppressed(domain, levels, groups, models)
            if _count_records(domain, suppressed) <= limit and not suppressed.all():
                break
            failing = [part for part in freq if part.outliers]
        chosen = _choose_attribute(domain, levels, failing, weights)
        if chosen is None:
            count = _count_records(domain, _mark_suppressed(domain, levels, groups, models))
            what = f"with every column at its top level, {count} of {domain.records} records fail a promise"
            raise Unreachable(what, fix="allow more method.suppression, or require less")
        levels = tuple(level + (a == chosen) for a, level in enumerate(levels))
    return DataflyResult(Generalization.full_domain(domain, levels, suppressed), tuple(steps))


def estimate_seconds(domain: Domain) -> float:
    """Estimate the run time."""
    return 1e-6 * len(domain)


def run(task: Task, domain: Domain) -> SearchResult:
    """Run Datafly; step 2 stops by k if the policy sets no limit."""
    released = datafly(domain, task.models, task.may_suppress(domain.records), progress=task.progress).generalization
    return SearchResult(released, (describe_levels(released),))


def _raise_others(domain: Domain, levels: Levels, names: Sequence[str]) -> Levels:
    """Return these levels with every attribute that is not named at its top: it tells no tuples apart."""
    attributes = zip(domain.names, levels, domain.heights, strict=True)
    return tuple(level if name in names else height for name, level, height in attributes)


def _count_frequencies(
    domain: Domain, levels: Levels, names: tuple[str, ...], view: View, models: Models
) -> FrequencyList:
    numbers = {a: domain.paths[a][domain.codes[view.rows, a], levels[a]] for a in map(domain.names.index, names)}
    distinct = {domain.names[a]: int(np.count_nonzero(np.bincount(numbers[a]))) for a in sorted(numbers)}
    outliers = int(view.tally.sizes[mark_failing(models, view.tally)].sum())
    return FrequencyList(domain, names, levels, distinct, outliers)


def _choose_attribute(domain: Domain, levels: Levels, failing: list[FrequencyList], weights: Weights) -> int | None:
    distinct: dict[str, int] = {}
    for freq in failing:
        for name, count in freq.distinct.items():
            distinct[name] = max(count, distinct.get(name, 0))
    free = [a for a, name in enumerate(domain.names) if name in distinct and levels[a] < domain.heights[a]]
    if not free:
        return None
    names = domain.names
    return max(free, key=lambda a: (distinct[names[a]] * weights.weight(names[a]), distinct[names[a]], -a))


def _mark_suppressed(domain: Domain, levels: Levels, groups: list[tuple[str, ...]], models: Models) -> Mask:
    node = _raise_others(domain, levels, [name for names in groups for name in names])
    view = domain.roll_up(node)  # tuples with equal labels are suppressed together
    merged = replace(domain, codes=domain.codes[view.rows], tally=view.tally)
    suppressed = np.zeros(len(view), np.bool_)
    while True:
        before = int(suppressed.sum())
        for names in groups:
            suppressed = _suppress_in_set(Generalization.full_domain(merged, levels, suppressed), names, models)
        if int(suppressed.sum()) == before or suppressed.all():
            return np.asarray(suppressed[domain.classes(node)], np.bool_)


def _suppress_in_set(part: Generalization, names: tuple[str, ...], models: Models) -> Mask:
    suppressed = part.suppressed.copy()
    kept = np.flatnonzero(~suppressed)
    _, into = np.unique(part.classes(names)[kept], return_inverse=True)
    tally = part.domain.tally.drop(suppressed).merge(into, {})
    suppressed[kept[mark_outliers(models, tally)[into]]] = True
    if not suppressed.any() or suppressed.all():
        return suppressed
    _, into = np.unique(np.where(suppressed, -1, part.classes(names)), return_inverse=True)  # class 0: the suppressed
    starred = np.arange(int(into.max()) + 1) == 0
    return np.asarray(complete_starred_class(models, part.domain.tally.merge(into, {}), starred)[into], np.bool_)


def _check_sets(domain: Domain, sets: Sequence[Sequence[str]] | None, weights: Weights) -> list[tuple[str, ...]]:
    groups = [tuple(names) for names in sets] if sets else [domain.names]
    named = {*(name for names in groups for name in names), *weights.preference, *weights.linking}
    if unknown := sorted(named - set(domain.names)):
        raise PolicyError(
            f"no quasi-identifier is called {', '.join(unknown)}", fix="name quasi-identifiers of the policy"
        )
    if any(not 0 <= weight <= 1 for weight in (*weights.preference.values(), *weights.linking.values())):
        raise PolicyError("a weight is not between 0 and 1", fix="give weights from 0 to 1")
    if not all(groups):
        raise PolicyError("a quasi-identifier set is empty", fix="name at least one column in each set")
    return groups


def _count_records(domain: Domain, suppressed: Mask) -> int:
    return int(domain.tally.sizes[suppressed].sum())
