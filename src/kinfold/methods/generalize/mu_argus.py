"""mu-Argus: generalize until single values are frequent, then star cells of rare pairs and triples of values.

    1, 2  generalize each attribute until each of its values occurs at least k times
    3     test combinations of two and three attributes; outliers of a record = those that occur fewer than k times
    4, 5  the data holder may generalize an attribute; then the test is repeated
    6     in each record star the value that is in most of its outliers, until each outlier has a starred value

The result states the k that it reaches. Combinations of four attributes are not tested and starred records are not
protected, so the table need not be k-anonymous. `complete` suppresses records until the promises of the policy hold.
If `method.suppression` is set and more records would be suppressed (or have only stars), the attribute with the most
distinct values (the first one of a tie) goes up one level, as in steps 4 and 5, until the limit holds.

Paper: Sweeney 2002, Figure 11. All pairs and triples are tested (`"all"`), or those of Figure 12 (`"figure-12"`), as
in the original program; the third entry of that figure is Most x Most x Most: no other reading leaves six untested.
Cost: one grouping per combination.   Ties in step 6: Most, then More, then Identifying, then the order of the columns;
this gives MT of Figure 15 exactly. A policy has no ranks: all its columns are Identifying.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from kinfold.errors import PolicyError, Unreachable, plural
from kinfold.methods.generalize.domain import Domain, Levels, Mask, number_keys
from kinfold.methods.generalize.levels import Generalization, Models
from kinfold.methods.generalize.result import SearchResult
from kinfold.policy.registry import Declaration
from kinfold.progress import Progress, no_progress
from kinfold.tables.tally import Ints

if TYPE_CHECKING:
    from kinfold.methods.task import Task

METHOD = Declaration(
    name="mu-argus",
    family="generalize",
    summary="generalizes rare values, and stars cells in rare pairs and triples (paper 002)",
    page="mu-argus",
    needs=("hierarchies", "rows"),
    kernels=("rollup",),
    splits_households="it suppresses cells of single members, which other members show",
)

Combination: TypeAlias = tuple[str, ...]
CombinationRule = Literal["all", "figure-12"]

RANK_IDENTIFYING, RANK_MORE, RANK_MOST = 1, 2, 3
_TESTED_ALWAYS = {(1, 2, 3), (1, 3, 3), (3, 3, 3), (1, 2), (1, 3), (2, 3), (3, 3)}
_TESTED_IF_SEVERAL_IDENTIFYING = {(2, 2, 3), (2, 3, 3), (2, 2)}


@dataclass(frozen=True)
class Ranks:
    """The attributes that are identifying, more identifying and most identifying."""

    identifying: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    most: tuple[str, ...] = ()

    def rank(self, name: str) -> int:
        """Return 3 for most, 2 for more, 1 for identifying."""
        return RANK_MOST if name in self.most else RANK_MORE if name in self.more else RANK_IDENTIFYING


@dataclass(frozen=True, eq=False)
class Outliers:
    """The outliers of each row: the combinations that are rare there. Rows with the same outliers share a pattern."""

    patterns: tuple[tuple[Combination, ...], ...]
    pattern: Ints  # of each row

    def __len__(self) -> int:
        return len(self.pattern)

    def __getitem__(self, row: int) -> tuple[Combination, ...]:
        return self.patterns[self.pattern[row]]

    def __iter__(self) -> Iterator[tuple[Combination, ...]]:
        return (self.patterns[i] for i in self.pattern)

    def mark_rows(self, names: Combination | None = None) -> Mask:
        """Mark the rows in which this combination, or any combination, is an outlier."""
        marked = [bool(combos) if names is None else names in combos for combos in self.patterns]
        return np.array(marked, np.bool_)[self.pattern]

    def add(self, names: Combination, rare: Mask) -> Outliers:
        """Return these outliers with one more combination in the marked rows."""
        keys = self.pattern * 2 + rare
        pattern, count = number_keys(keys, 2 * len(self.patterns))
        key = np.empty(count, np.int64)
        key[pattern] = keys
        patterns = tuple((*self.patterns[i // 2], *((names,) if i % 2 else ())) for i in key.tolist())
        return Outliers(patterns, pattern)


HolderChoice: TypeAlias = Callable[[Levels, Outliers], str | None]  # the attribute to generalize next, or None


@dataclass(frozen=True, eq=False)
class MuArgusResult:
    """The release of mu-Argus, the outliers of each row before step 6, and the k that it reaches."""

    generalization: Generalization
    levels: Levels  # of the columns, before step 6
    outliers: Outliers
    k: int

    def complete(self, models: Models, starred: bool = False) -> Generalization:
        """Suppress records until every promise holds on the released records."""
        return self.generalization.complete(models, starred)


@dataclass(frozen=True)
class MuArgusState:
    """The state between steps 3 and 6, with the effect of each possible next choice."""

    levels: dict[str, int]
    heights: dict[str, int]
    outliers: int  # records with outliers
    combinations: dict[Combination, int]  # records by combination, most records first
    next: dict[str, int]  # records with outliers after generalizing this attribute


def mu_argus(
    domain: Domain,
    k: int,
    ranks: Ranks | None = None,
    holder: HolderChoice | Sequence[str] = (),
    tested: CombinationRule = "all",
    progress: Progress = no_progress,
) -> MuArgusResult:
    """Run mu-Argus. `holder` is a list of attributes to generalize, or a function that chooses the next one.

    >>> from kinfold.hierarchies import build_from_mask
    >>> from kinfold.tables.tally import Tally
    >>> zips = np.array(["02138", "02139", "02141"], object)
    >>> table = Domain.from_tally(Tally({"zip": zips}, np.array([2, 1, 1])), {"zip": build_from_mask(zips, 2)})
    >>> mu_argus(table, 2).levels
    (2,)
    """
    ranks = ranks or Ranks(identifying=domain.names)
    _check_request(domain, k, ranks)
    tests = list_combinations(domain.names, ranks, tested)
    choices = iter(holder) if isinstance(holder, Sequence) else iter(())
    decide = holder if callable(holder) else lambda _levels, _outliers: next(choices, None)
    levels = tuple(_frequent_level(domain, a, k) for a in range(len(domain.names)))
    outliers = find_outliers(domain, levels, k, tests)
    while (name := decide(levels, outliers)) is not None:
        progress(sum(levels), sum(domain.heights))
        levels = _raise_level(domain, levels, name)
        outliers = find_outliers(domain, levels, k, tests)
    return _star_cells(domain, levels, outliers, ranks)


def count_outliers(domain: Domain, k: int, choices: Sequence[str]) -> MuArgusState:
    """Return the number of records with outliers after these choices, and after each possible next choice."""
    tests = list_combinations(domain.names, Ranks(domain.names))
    levels = tuple(_frequent_level(domain, a, k) for a in range(len(domain.names)))
    for name in choices:
        levels = _raise_level(domain, levels, name)
    outliers = find_outliers(domain, levels, k, tests)
    counts = {names: _count_records(domain, outliers.mark_rows(names)) for names in tests}
    after = {
        name: _count_records(domain, find_outliers(domain, _raise_level(domain, levels, name), k, tests).mark_rows())
        for name, level, height in zip(domain.names, levels, domain.heights, strict=True)
        if level < height
    }
    return MuArgusState(
        dict(zip(domain.names, levels, strict=True)),
        dict(zip(domain.names, domain.heights, strict=True)),
        _count_records(domain, outliers.mark_rows()),
        {names: n for names, n in sorted(counts.items(), key=lambda item: -item[1]) if n},
        after,
    )


def _count_records(domain: Domain, marked: Mask) -> int:
    """Return the number of records of the marked rows."""
    return int(domain.tally.sizes[marked].sum())


def _star_cells(domain: Domain, levels: Levels, outliers: Outliers, ranks: Ranks) -> MuArgusResult:
    """Star cells until each outlier has a starred value (step 6)."""
    released = Generalization.full_domain(domain, levels)
    stars = [choose_stars(combos, domain.names, ranks) for combos in outliers.patterns]
    for a, name in enumerate(domain.names):
        starred = np.array([name in chosen for chosen in stars], np.bool_)
        released.levels[starred[outliers.pattern], a] = domain.heights[a]
    return MuArgusResult(released, levels, outliers, released.k)


def estimate_seconds(domain: Domain) -> float:
    """Estimate the run time."""
    return 3e-8 * len(domain) * (10 + len(list_combinations(domain.names, Ranks(domain.names))))


def run(task: Task, domain: Domain) -> SearchResult:
    """Run mu-Argus and suppress records until every promise holds."""
    holder = _make_holder_choice(task, domain) or task.method.choices
    result = mu_argus(domain, task.k, holder=holder, progress=task.progress)
    if (allowed := task.may_suppress(domain.records)) is None:
        released, steps = result.complete(task.models, task.starred), 0
    else:
        released, result, steps = _generalize_within_limit(allowed, task, result)
    completed = "; more records are suppressed to keep the promises" if released.records_suppressed else ""
    note = f"mu-Argus itself reaches k = {result.k}{completed}"
    more = f"{plural(steps, 'more step')} of generalization keep suppression within the limit of the policy"
    return SearchResult(released, (note, more) if steps else (note,))


def _generalize_within_limit(
    allowed: int, task: Task, result: MuArgusResult
) -> tuple[Generalization, MuArgusResult, int]:
    """Generalize until at most the allowed number of records is suppressed."""
    domain, steps = result.generalization.domain, 0
    ranks = Ranks(identifying=domain.names)
    tests = list_combinations(domain.names, ranks)
    while True:
        lost = domain.records
        with suppress(Unreachable):  # all records would be suppressed
            released = result.complete(task.models, task.starred)
            lost = released.records_lost
            if lost <= allowed:
                return released, result, steps
        below = [a for a, level in enumerate(result.levels) if level < domain.heights[a]]
        if not below:
            what = f"with every column at its top level, {lost:,} of {plural(domain.records, 'record')} are suppressed"
            raise Unreachable(what, fix="allow more method.suppression, or require less")
        widest = max(below, key=lambda a: (len(np.unique(domain.paths[a][domain.codes[:, a], result.levels[a]])), -a))
        levels, steps = _raise_level(domain, result.levels, domain.names[widest]), steps + 1
        task.progress(sum(levels), sum(domain.heights))
        result = _star_cells(domain, levels, find_outliers(domain, levels, task.k, tests), ranks)


def _make_holder_choice(task: Task, domain: Domain) -> HolderChoice | None:
    """Return the choice function of the task (steps 4 and 5), with levels by name and the records with outliers."""
    choose = task.choose
    if choose is None:
        return None

    def decide(levels: Levels, outliers: Outliers) -> str | None:
        return choose(dict(zip(domain.names, levels, strict=True)), _count_records(domain, outliers.mark_rows()))

    return decide


def list_combinations(names: Sequence[str], ranks: Ranks, tested: CombinationRule = "all") -> list[Combination]:
    """Return the pairs and triples of attributes to test, pairs first.

    >>> list_combinations(["a", "b"], Ranks(("a",), ("b",)), "figure-12")
    [('a', 'b')]
    """
    every = [*combinations(names, 2), *combinations(names, 3)]
    if tested == "all":
        return every
    kinds = _TESTED_ALWAYS | (_TESTED_IF_SEVERAL_IDENTIFYING if len(ranks.identifying) > 1 else set())
    return [names for names in every if tuple(sorted(ranks.rank(name) for name in names)) in kinds]


def find_outliers(domain: Domain, levels: Levels, k: int, tests: Iterable[Combination]) -> Outliers:
    """Return for each row the combinations whose values occur fewer than k times."""
    outliers = Outliers(((),), np.zeros(len(domain), np.int64))
    for names in tests:
        node = tuple(
            level if name in names else height
            for name, level, height in zip(domain.names, levels, domain.heights, strict=True)
        )
        into = domain.classes(node)
        rare = (np.bincount(into, domain.tally.sizes) < k)[into]
        if rare.any():
            outliers = outliers.add(names, rare)
    return outliers


def choose_stars(combos: Sequence[Combination], names: Sequence[str], ranks: Ranks) -> list[str]:
    """Return the attributes to star so that each combination has one, greedily by number of combinations.

    >>> choose_stars([("birth", "zip"), ("race", "birth")], ["race", "birth", "zip"], Ranks())
    ['birth']
    """
    rest, chosen = list(combos), []
    while rest:
        count = {name: sum(name in combo for combo in rest) for name in names}
        best = max(names, key=lambda name: (count[name], ranks.rank(name), -list(names).index(name)))
        chosen.append(best)
        rest = [combo for combo in rest if best not in combo]
    return chosen


def _frequent_level(domain: Domain, attribute: int, k: int) -> int:
    codes, sizes = domain.codes[:, attribute], domain.tally.sizes
    for level in range(domain.heights[attribute] + 1):
        occurs = np.bincount(domain.paths[attribute][codes, level], sizes)
        if (occurs[occurs > 0] >= k).all():
            return level
    raise Unreachable(f"there are fewer than {k} records", fix="lower k, or provide more records")


def _raise_level(domain: Domain, levels: Levels, name: str) -> Levels:
    if name not in domain.names:
        raise PolicyError(f"no quasi-identifier is called '{name}'", fix="name a quasi-identifier of the policy")
    a = domain.names.index(name)
    if levels[a] == domain.heights[a]:
        raise PolicyError(f"column '{name}' is already at its top level", fix="choose another column, or stop")
    return (*levels[:a], levels[a] + 1, *levels[a + 1 :])


def _check_request(domain: Domain, k: int, ranks: Ranks) -> None:
    if k < 1:
        raise PolicyError(f"k is {k}", fix="k is a whole number from 1 up")
    named = [*ranks.identifying, *ranks.more, *ranks.most]
    if sorted(named) != sorted(domain.names):
        raise PolicyError("the ranks do not name each quasi-identifier once", fix="give each column one rank")
