"""Datafly: generalize the attribute with the most distinct values until few enough tuples are left over.

    1  freq = the distinct sequences of values over the quasi-identifier, with their numbers of occurrences
    2  while sequences that miss a promise account for more than k tuples:
           generalize the attribute that has the most distinct values in freq
    3  suppress the sequences that still miss it
    4  while some but too few tuples are suppressed to keep the promises themselves: suppress the smallest class too

As printed, step 4 can suppress many more than k tuples. Where a limit is given, step 2 goes on until all that steps 3
and 4 would suppress is within it; and always until something is left to release.

Several quasi-identifiers: each set of attributes has its own freq, a tuple that is left over in one is suppressed in
all, and attributes are taken from sets with too many tuples left over. Section 4.1 asks for two weights from 0 to 1
for each attribute, how likely it is used for linking and how gladly it is distorted; the paper does not say what they
do. Here the attribute chosen is the one whose number of distinct values times both weights is largest; an attribute
of weight 0 is generalized only when no other can be.

Paper: Sweeney 2002, Figure 8, with step 2 as printed ("more than k tuples") and step 4 as read in the notes.
Cost: one roll-up a step and set.   Ties: the first attribute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from kinfold.errors import PolicyError, Unreachable
from kinfold.methods.generalize.domain import Domain, Levels, Mask
from kinfold.methods.generalize.found import Found, levels_told
from kinfold.methods.generalize.generalization import Generalization
from kinfold.methods.generalize.outliers import Models, asked_k, completed, failing, outliers, threshold
from kinfold.progress import Progress, silent
from kinfold.request.methods import Declaration
from kinfold.rows.tally import Ints, Values

if TYPE_CHECKING:
    from kinfold.methods.task import Task

METHOD = Declaration(
    name="datafly",
    family="generalize",
    summary="the column with the most values goes up a level, again and again (paper 002)",
    page="datafly",
    needs=("hierarchies", "rows"),
    kernels=("rollup",),
    order=1,
)


@dataclass(frozen=True, eq=False)
class FrequencyList:
    """The distinct sequences of one quasi-identifier at some levels, as in Figure 9."""

    names: tuple[str, ...]
    levels: Levels  # of all attributes of the domain
    columns: Mapping[str, Values]  # the label of each sequence
    occurs: Ints
    rows: tuple[Ints, ...]  # the rows of the domain that make up each sequence
    distinct: Mapping[str, int]
    outliers: int  # tuples in sequences that miss a promise


@dataclass(frozen=True, eq=False)
class Datafly:
    """What Datafly releases, and every frequency list on the way, one for each quasi-identifier and step."""

    generalization: Generalization
    steps: tuple[tuple[FrequencyList, ...], ...]


@dataclass(frozen=True)
class Weights:
    """From 0 to 1 for each attribute: how gladly it is distorted, how likely it is used for linking."""

    preference: Mapping[str, float] = field(default_factory=dict)
    linking: Mapping[str, float] = field(default_factory=dict)

    def of(self, name: str) -> float:
        """Both together; 1 where nothing is said."""
        return self.preference.get(name, 1.0) * self.linking.get(name, 1.0)


def datafly(
    domain: Domain,
    models: Models,
    suppression: float | None = None,
    weights: Weights | None = None,
    sets: Sequence[Sequence[str]] | None = None,
    progress: Progress = silent,
) -> Datafly:
    """Return the generalization that Datafly finds, with its frequency lists.

    `suppression` limits the tuples that are suppressed in all; without it step 2 stops by k, as printed.

    >>> from kinfold.hierarchy import by_mask
    >>> from kinfold.models import KAnonymity
    >>> from kinfold.rows.tally import Tally
    >>> zips = np.array(["02138", "02139", "02141"], object)
    >>> table = Domain.of_tally(Tally({"zip": zips}, np.array([2, 1, 1])), {"zip": by_mask(zips, 2)})
    >>> datafly(table, [KAnonymity(2)], suppression=0).generalization.vector
    (2,)
    """
    weights = weights or Weights()
    groups = _checked(domain, sets, weights)
    limit = domain.records if suppression is None else threshold(suppression, domain.records)
    allowed = asked_k(models) if suppression is None else limit
    levels = (0,) * len(domain.names)
    steps = []
    while True:
        progress(sum(levels), sum(domain.heights))
        freq = tuple(_frequencies(domain, levels, names, models) for names in groups)
        steps.append(freq)
        over = [part for part in freq if part.outliers > allowed]
        if not over:
            suppressed = _suppressed(domain, levels, groups, models)
            if _count(domain, suppressed) <= limit and not suppressed.all():
                break
            over = [part for part in freq if part.outliers]
        chosen = _most_distinct(domain, levels, over, weights)
        if chosen is None:
            raise _unreachable(domain, _suppressed(domain, levels, groups, models))
        levels = tuple(level + (a == chosen) for a, level in enumerate(levels))
    return Datafly(Generalization.full(domain, levels, suppressed), tuple(steps))


def expected(domain: Domain) -> float:
    """Return about how many seconds it takes."""
    return 1e-5 * len(domain)


def run(task: Task, domain: Domain) -> Found:
    """Return what is released of a task; step 2 stops by k where the policy sets no limit."""
    found = datafly(domain, task.models, task.may_suppress(domain.records), progress=task.progress).generalization
    return Found(found, (levels_told(found),))


def _frequencies(domain: Domain, levels: Levels, names: tuple[str, ...], models: Models) -> FrequencyList:
    whole = Generalization.full(domain, levels)
    into = whole.classes(names)
    tally = whole.tally(names)
    order = np.argsort(into, kind="stable")
    rows = tuple(np.split(order, np.cumsum(np.bincount(into))[:-1]))
    first = np.array([part[0] for part in rows])
    columns = {name: values[first] for name, values in whole.columns().items() if name in names}
    distinct = {name: len(set(values)) for name, values in columns.items()}
    left_over = int(tally.sizes[failing(models, tally)].sum())
    return FrequencyList(names, levels, columns, tally.sizes, rows, distinct, left_over)


def _most_distinct(domain: Domain, levels: Levels, over: list[FrequencyList], weights: Weights) -> int | None:
    distinct: dict[str, int] = {}
    for freq in over:
        for name, count in freq.distinct.items():
            distinct[name] = max(count, distinct.get(name, 0))
    free = [a for a, name in enumerate(domain.names) if name in distinct and levels[a] < domain.heights[a]]
    if not free:
        return None
    names = domain.names
    return max(free, key=lambda a: (distinct[names[a]] * weights.of(names[a]), distinct[names[a]], -a))


def _suppressed(domain: Domain, levels: Levels, groups: list[tuple[str, ...]], models: Models) -> Mask:
    gone = np.zeros(len(domain), np.bool_)
    while True:
        before = int(gone.sum())
        for names in groups:
            gone = _without(Generalization.full(domain, levels, gone), names, models)
        if int(gone.sum()) == before or gone.all():
            return gone


def _without(part: Generalization, names: tuple[str, ...], models: Models) -> Mask:
    gone = part.suppressed.copy()
    kept = np.flatnonzero(~gone)
    _, into = np.unique(part.classes(names)[kept], return_inverse=True)
    tally = part.domain.tally.drop(gone).merge(into, {})
    gone[kept[outliers(models, tally)[into]]] = True
    if not gone.any() or gone.all():
        return gone
    _, into = np.unique(np.where(gone, -1, part.classes(names)), return_inverse=True)  # class 0: the suppressed
    starred = np.arange(int(into.max()) + 1) == 0
    return np.asarray(completed(models, part.domain.tally.merge(into, {}), starred)[into], np.bool_)


def _checked(domain: Domain, sets: Sequence[Sequence[str]] | None, weights: Weights) -> list[tuple[str, ...]]:
    groups = [tuple(names) for names in sets] if sets else [domain.names]
    named = {*(name for names in groups for name in names), *weights.preference, *weights.linking}
    if unknown := sorted(named - set(domain.names)):
        raise PolicyError(f"no quasi-identifier is called {', '.join(unknown)}", fix="name columns of the domain")
    if any(not 0 <= weight <= 1 for weight in (*weights.preference.values(), *weights.linking.values())):
        raise PolicyError("a weight is not between 0 and 1", fix="give weights from 0 to 1")
    if not all(groups):
        raise PolicyError("a quasi-identifier set is empty", fix="name at least one column in each set")
    return groups


def _count(domain: Domain, suppressed: Mask) -> int:
    return int(domain.tally.sizes[suppressed].sum())


def _unreachable(domain: Domain, suppressed: Mask) -> Unreachable:
    what = f"with every attribute at the top {_count(domain, suppressed)} of {domain.records} records are left over"
    return Unreachable(what, fix="allow more suppression, or ask less")
