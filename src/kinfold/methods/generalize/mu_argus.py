"""mu-Argus: generalize until single values are frequent, then star cells of rare pairs and triples of values.

    1, 2  generalize each attribute until each of its values occurs at least k times
    3     test combinations of two and three attributes; outliers = those of a record that occur fewer than k times
    4, 5  the data holder may generalize an attribute, then the test is made again
    6     in each record star the value that is in most of its outliers, until each outlier has a starred value

The k it really has is on the result: combinations of four are never looked at, and starred records are not protected,
so it need not be k-anonymous. `complete` suppresses records until what was asked holds. Where `method.suppression` says
how many that may be and they are more (those that step 6 left nothing but stars are counted), the attribute with the
most different values (the first of equals) goes up a step, as a data holder would have it in steps 4 and 5, until they
are not; without it they are as many as it takes.

Paper: Sweeney 2002, Figure 11. All pairs and triples are tested (`"all"`), or those of Figure 12 (`"figure-12"`), as
the real program did; the third entry of that figure is Most x Most x Most, the only reading that leaves six untested.
Cost: one grouping a combination.   Ties in step 6: Most, then More, then Identifying, then the order of the columns;
this gives Figure 15's MT exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from kinfold.errors import PolicyError, Unreachable, plural
from kinfold.methods.generalize.domain import Domain, Levels
from kinfold.methods.generalize.found import Found
from kinfold.methods.generalize.generalization import Generalization
from kinfold.methods.generalize.outliers import Models
from kinfold.progress import Progress, silent
from kinfold.request.methods import Declaration
from kinfold.rows.schema import Role

if TYPE_CHECKING:
    from kinfold.methods.task import Task

METHOD = Declaration(
    name="mu-argus",
    family="generalize",
    summary="frequent values by levels, rare pairs and triples by starred cells (paper 002)",
    page="mu-argus",
    needs=("hierarchies", "rows"),
    kernels=("rollup",),
    order=2,
)

Combination: TypeAlias = tuple[str, ...]
Outliers: TypeAlias = tuple[tuple[Combination, ...], ...]  # of each row of the domain
Holder: TypeAlias = Callable[[Levels, Outliers], str | None]  # which attribute to generalize next, None to stop
Tested = Literal["all", "figure-12"]

IDENTIFYING, MORE, MOST = 1, 2, 3
_ALWAYS = {(1, 2, 3), (1, 3, 3), (3, 3, 3), (1, 2), (1, 3), (2, 3), (3, 3)}
_IF_SEVERAL_IDENTIFYING = {(2, 2, 3), (2, 3, 3), (2, 2)}


@dataclass(frozen=True)
class Ranks:
    """Which attributes are identifying, more identifying and most identifying."""

    identifying: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    most: tuple[str, ...] = ()

    def of(self, name: str) -> int:
        """3 for most, 2 for more, 1 for identifying."""
        return MOST if name in self.most else MORE if name in self.more else IDENTIFYING


@dataclass(frozen=True, eq=False)
class MuArgus:
    """What mu-Argus releases, the outliers of each row before step 6, and the k that it has."""

    generalization: Generalization
    levels: Levels  # of the columns, before cells were starred
    outliers: Outliers
    k: int

    def complete(self, models: Models, starred: bool = False) -> Generalization:
        """Suppress records until every promise holds on those that are released."""
        return self.generalization.completed(models, starred)


@dataclass(frozen=True)
class Standing:
    """Between steps 3 and 6: levels by attribute, how many records have outliers, and how many would next."""

    levels: dict[str, int]
    heights: dict[str, int]
    outliers: int  # records that have some
    combinations: dict[Combination, int]  # records, those of the most first
    next: dict[str, int]  # records that would have some if this attribute were generalized once more


def mu_argus(
    domain: Domain,
    k: int,
    ranks: Ranks | None = None,
    holder: Holder | Sequence[str] = (),
    tested: Tested = "all",
    progress: Progress = silent,
) -> MuArgus:
    """Return what mu-Argus releases; the holder's choices are a list of attributes, or are asked for.

    >>> from kinfold.hierarchy import by_mask
    >>> from kinfold.rows.tally import Tally
    >>> zips = np.array(["02138", "02139", "02141"], object)
    >>> table = Domain.of_tally(Tally({"zip": zips}, np.array([2, 1, 1])), {"zip": by_mask(zips, 2)})
    >>> mu_argus(table, 2).levels
    (2,)
    """
    ranks = ranks or Ranks(identifying=domain.names)
    _check(domain, k, ranks)
    tests = combinations_tested(domain.names, ranks, tested)
    decide = _listed(holder) if isinstance(holder, Sequence) else holder
    levels = tuple(_frequent_level(domain, a, k) for a in range(len(domain.names)))
    found = find_outliers(domain, levels, k, tests)
    while (name := decide(levels, found)) is not None:
        progress(sum(levels), sum(domain.heights))
        levels = _generalized(domain, levels, name)
        found = find_outliers(domain, levels, k, tests)
    return _starred(domain, levels, found, ranks)


def standing(domain: Domain, k: int, choices: Sequence[str]) -> Standing:
    """Return how many records have outliers after these choices, and after each that could be made next."""
    tests = combinations_tested(domain.names, Ranks(domain.names))
    levels = tuple(_frequent_level(domain, a, k) for a in range(len(domain.names)))
    for name in choices:
        levels = _generalized(domain, levels, name)
    found = find_outliers(domain, levels, k, tests)
    counts = {names: _records(domain, [names in combos for combos in found]) for names in tests}
    ranked = sorted(((n, names) for names, n in counts.items() if n), key=lambda each: -each[0])
    further = {
        name: find_outliers(domain, _generalized(domain, levels, name), k, tests)
        for name, level, height in zip(domain.names, levels, domain.heights, strict=True)
        if level < height
    }
    return Standing(
        dict(zip(domain.names, levels, strict=True)),
        dict(zip(domain.names, domain.heights, strict=True)),
        _records(domain, [bool(combos) for combos in found]),
        {names: n for n, names in ranked},
        {name: _records(domain, [bool(combos) for combos in each]) for name, each in further.items()},
    )


def _records(domain: Domain, marked: Sequence[bool]) -> int:
    return int(domain.tally.sizes[np.asarray(marked, np.bool_)].sum())


def _starred(domain: Domain, levels: Levels, found: Outliers, ranks: Ranks) -> MuArgus:
    """Do step 6: star cells until each outlier has a starred value."""
    released = Generalization.full(domain, levels)
    for row, combos in enumerate(found):
        for name in stars(combos, domain.names, ranks):
            a = domain.names.index(name)
            released.levels[row, a] = domain.heights[a]
    return MuArgus(released, levels, found, released.k)


def expected(domain: Domain) -> float:
    """Return about how many seconds it takes."""
    return 6e-5 * len(domain)


def run(task: Task, domain: Domain) -> Found:
    """Return what is released of a task, with records suppressed until every promise holds."""
    named: dict[str, list[str]] = {"identifying": [], "more": [], "most": []}
    for column in task.policy.of(Role.QUASI):
        named[column.request.identifying].append(column.name)
    ranks = Ranks(*(tuple(named[rank]) for rank in ("identifying", "more", "most")))
    found = mu_argus(domain, task.k, ranks, _asked(task, domain) or task.method.choices, progress=task.progress)
    if (allowed := task.may_suppress(domain.records)) is None:
        released, steps = found.complete(task.models, task.starred), 0
    else:
        released, found, steps = _within(allowed, task, found, ranks)
    completed = "; the release is completed by suppression" if released.records_suppressed else ""
    told = f"mu-Argus itself reaches k = {found.k}{completed}"
    more = f"{plural(steps, 'step')} of generalization more, so that no more is suppressed than the policy allows"
    return Found(released, (told, more) if steps else (told,))


def _within(allowed: int, task: Task, found: MuArgus, ranks: Ranks) -> tuple[Generalization, MuArgus, int]:
    """Generalize once more until no more records have to be suppressed than the policy allows."""
    domain, steps = found.generalization.domain, 0
    tests = combinations_tested(domain.names, ranks)
    while True:
        least = domain.records
        with suppress(Unreachable):  # where all would have to be suppressed there is nothing to release
            released = found.complete(task.models, task.starred)
            least = released.records_lost
            if least <= allowed:
                return released, found, steps
        below = [a for a, level in enumerate(found.levels) if level < domain.heights[a]]
        if not below:
            what = f"with every attribute at the top {least:,} of {plural(domain.records, 'record')} are suppressed"
            raise Unreachable(what, fix="allow more method.suppression, or ask less")
        widest = max(below, key=lambda a: (len(np.unique(domain.paths[a][domain.codes[:, a], found.levels[a]])), -a))
        levels, steps = _generalized(domain, found.levels, domain.names[widest]), steps + 1
        task.progress(sum(levels), sum(domain.heights))
        found = _starred(domain, levels, find_outliers(domain, levels, task.k, tests), ranks)


def _asked(task: Task, domain: Domain) -> Holder | None:
    """Put the question of steps 4 and 5 into words (levels by name, records with outliers), if there is whom to ask."""
    ask = task.ask
    if ask is None:
        return None

    def decide(levels: Levels, found: Outliers) -> str | None:
        records = _records(domain, [bool(combos) for combos in found])
        return ask(dict(zip(domain.names, levels, strict=True)), records)

    return decide


def combinations_tested(names: Sequence[str], ranks: Ranks, tested: Tested = "all") -> list[Combination]:
    """The pairs and triples of attributes to test, pairs first.

    >>> combinations_tested(["a", "b"], Ranks(("a",), ("b",)), "figure-12")
    [('a', 'b')]
    """
    every = [*combinations(names, 2), *combinations(names, 3)]
    if tested == "all":
        return every
    wanted = _ALWAYS | (_IF_SEVERAL_IDENTIFYING if len(ranks.identifying) > 1 else set())
    return [names for names in every if tuple(sorted(ranks.of(name) for name in names)) in wanted]


def find_outliers(domain: Domain, levels: Levels, k: int, tests: Iterable[Combination]) -> Outliers:
    """The combinations of each row whose values occur together fewer than k times."""
    found: list[list[Combination]] = [[] for _ in range(len(domain))]
    for names in tests:
        free = tuple(
            level if name in names else height
            for name, level, height in zip(domain.names, levels, domain.heights, strict=True)
        )
        into = domain.classes(free)
        occurs = np.bincount(into, domain.tally.sizes)[into]
        for row in np.flatnonzero(occurs < k):
            found[row].append(names)
    return tuple(tuple(combos) for combos in found)


def stars(combos: Sequence[Combination], names: Sequence[str], ranks: Ranks) -> list[str]:
    """The attributes to star so that each combination has one, always the one in most that are left.

    >>> stars([("birth", "zip"), ("race", "birth")], ["race", "birth", "zip"], Ranks())
    ['birth']
    """
    left, chosen = list(combos), []
    while left:
        count = {name: sum(name in combo for combo in left) for name in names}
        best = max(names, key=lambda name: (count[name], ranks.of(name), -list(names).index(name)))
        chosen.append(best)
        left = [combo for combo in left if best not in combo]
    return chosen


def _frequent_level(domain: Domain, attribute: int, k: int) -> int:
    codes, sizes = domain.codes[:, attribute], domain.tally.sizes
    for level in range(domain.heights[attribute] + 1):
        occurs = np.bincount(domain.paths[attribute][codes, level], sizes)
        if (occurs[occurs > 0] >= k).all():
            return level
    raise Unreachable(f"there are fewer than {k} records", fix="lower k, or bring more records")


def _listed(choices: Sequence[str]) -> Holder:
    left = list(choices)

    def decide(_levels: Levels, _outliers: Outliers) -> str | None:
        return left.pop(0) if left else None

    return decide


def _generalized(domain: Domain, levels: Levels, name: str) -> Levels:
    if name not in domain.names:
        raise PolicyError(f"no quasi-identifier is called '{name}'", fix="name a column of the domain")
    a = domain.names.index(name)
    if levels[a] == domain.heights[a]:
        raise PolicyError(f"column '{name}' is at the top already", fix="choose another, or stop")
    return (*levels[:a], levels[a] + 1, *levels[a + 1 :])


def _check(domain: Domain, k: int, ranks: Ranks) -> None:
    if k < 1:
        raise PolicyError(f"k is {k}", fix="k is a whole number from 1 up")
    named = [*ranks.identifying, *ranks.more, *ranks.most]
    if sorted(named) != sorted(domain.names):
        raise PolicyError(
            "identifying, more and most do not name each quasi-identifier once", fix="put each column in one of them"
        )
