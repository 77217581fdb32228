"""MinGen at cell level: every class is released with the lowest common ancestor of its records in each attribute.

    up to 16 records    exact: the cheapest division into classes that keep the promises (see `kernels/subsets`)
    more                equal records together, then merges until the promises hold (`merging`), then many small parts
                        taken apart and put together better (`rebuilding`), by steps that the seed decides

It is microaggregation with another average: a partition, and for each class one statement that is true of all its
records. Rows are records, one each, so that equal records can end up in different classes; of a large table they are
its distinct tuples with their counts, and equal records stay together. `bound` says what no generalization at cell
level can get below: each record loses at least what the most telling statement loses that is true of it and of enough
others.

Paper: Sweeney 2002, sections 3.3 and 3.4. Figure 7's GT is not the optimum; an exact search finds better tables.
Cost: O(3^n); for large tables about 3 s of merges for 30,000 records, 40 s for a million different ones, then 0.05 to
0.3 ms a step.
Ties: the lowest subset; then the first merge.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from kinfold import kernels
from kinfold.errors import PolicyError, Unreachable, plural
from kinfold.methods.annealing import Budget
from kinfold.methods.generalize.cells import Trees
from kinfold.methods.generalize.domain import Codes, Domain, Floats, Mask
from kinfold.methods.generalize.found import Found
from kinfold.methods.generalize.generalization import Generalization
from kinfold.methods.generalize.lattice import Lattice
from kinfold.methods.generalize.loss import CellLoss, Objective, generalizations
from kinfold.methods.generalize.merging import Merged, merge_until
from kinfold.methods.generalize.outliers import Models, failing
from kinfold.methods.generalize.rebuilding import MakeUps, Statements, rebuilt
from kinfold.progress import Progress, silent
from kinfold.request.methods import Declaration
from kinfold.rows.tally import Ints, Spread, Tally

if TYPE_CHECKING:
    from kinfold.methods.task import Task

METHOD = Declaration(
    name="mingen-cell",
    family="generalize",
    summary="each class has the narrowest statement that is true of it (paper 002, at cell level)",
    page="mingen",
    needs=("hierarchies", "rows"),
    kernels=("rollup", "subsets", "statements", "statement_tree", "cell_search"),
    objectives=("granularity", "prec"),
    auto="values must stay true, and a level for each cell loses less than one for each column or classes by distance",
    auto_up_to=100_000,
    one_by_one=True,
    order=4,
)

EXACT = 16  # records: 3^16 subsets of subsets take a second
STEPS_BY_SIZE = 25  # steps for each record where only sizes matter
STEPS = 1  # and where confidential values do
MOST_STEPS = 200_000  # unless the policy says how many, of more than MANY rows: half a minute
MANY = 100_000
CYCLES = 4  # each twice as long as the last; the default number of steps is that of so many cycles
BOUND_NODES = 20_000  # statements that the bound looks at, each with every record; not tuned


@dataclass(frozen=True, eq=False)
class CellLevel:
    """A class for each record, what is released, and what it loses; `exact` where nothing can lose less."""

    labels: Ints
    generalization: Generalization
    loss: float
    exact: bool
    steps: int


def mingen_cell(
    domain: Domain,
    models: Models,
    objective: Objective = "granularity",
    weights: Mapping[str, float] | None = None,
    steps: int | None = None,
    seconds: float | None = None,
    progress: Progress = silent,
    seed: int = 0,
) -> CellLevel:
    """Return classes whose lowest common ancestors lose least, all of which keep the promises.

    >>> from kinfold.hierarchy import by_mask
    >>> from kinfold.models import KAnonymity
    >>> zips = np.array(["02138", "02139", "02141", "02142"], object)
    >>> table = Domain.of_tally(Tally({"zip": zips}, np.ones(4, np.int64)), {"zip": by_mask(zips, 2)})
    >>> mingen_cell(table, [KAnonymity(2)]).generalization.columns()["zip"].tolist()
    ['0213*', '0213*', '0214*', '0214*']
    """
    loss = _checked(domain, models, objective, weights)
    exact = domain.records <= EXACT and len(domain) == domain.records
    if exact:
        labels, taken = divided(loss, models), 0
    else:
        labels, taken = _searched(loss, models, Budget(steps, seconds), seed, progress)
    released = released_by(domain, labels)
    lost = loss.cells(released.levels, released.suppressed)
    return CellLevel(labels, released, lost, exact, taken)


def expected(domain: Domain) -> float:
    """Return about how many seconds the search takes where the policy does not limit it."""
    return 4e-5 * len(domain) + 1.5e-4 * _default_steps(domain, by_size=True)


def run(task: Task, domain: Domain) -> Found:
    """Return what is released of a task, searched for as long as the policy says."""
    method, limits = task.method, task.method.limits or (None, None)
    found = mingen_cell(domain, task.models, method.objective, task.weights, *limits, task.progress, method.seed)
    notes = ("proved optimal at cell level",) if found.exact else ()
    return within_suppression(task, Found(found.generalization, notes, found.steps))


def within_suppression(task: Task, found: Found) -> Found:
    """Return what was found, or the classes of whole columns where too many records have nothing left but stars."""
    domain, allowed = found.released.domain, task.may_suppress(found.released.domain.records)
    if allowed is None or (lost := found.released.records_lost) <= allowed:
        return found
    method = task.method
    objective = method.objective if method.objective != "discernibility" else "granularity"
    nodes = Lattice(domain, task.models, allowed, objective, task.weights, method.seed, starred=task.starred)
    node = nodes.search(progress=task.progress)
    if node.levels == domain.heights or method.limit:  # a limit on cells of single columns is not in that search
        what = f"{lost:,} of {plural(domain.records, 'record')} would have nothing left in their quasi-identifiers"
        raise Unreachable(f"{what}, and at most {allowed:,} may be suppressed", fix="allow more method.suppression")
    told = f"classes are those of levels of whole columns: by others {plural(lost, 'record')} would have nothing left"
    statements = released_by(domain, domain.classes(node.levels))
    return Found(replace(statements, suppressed=nodes.nodes.suppressed(node.levels)), (told,))


def released_by(domain: Domain, labels: Ints) -> Generalization:
    """Release each class with the lowest common ancestor of its records in every attribute."""
    levels = np.zeros(domain.codes.shape, np.int16)
    classes = int(labels.max()) + 1 if len(labels) else 0
    for a, paths in enumerate(domain.paths):
        low, high = np.full(classes, len(paths)), np.full(classes, -1)
        np.minimum.at(low, labels, domain.codes[:, a])
        np.maximum.at(high, labels, domain.codes[:, a])
        levels[:, a] = common_level(paths, low, high)[labels]
    return Generalization(domain, levels, np.zeros(len(domain), np.bool_))


def common_level(paths: Codes, low: Ints, high: Ints) -> Ints:
    """The lowest level at which the codes from `low` to `high` share a label: codes are in subtree order."""
    level = np.full(len(low), paths.shape[1] - 1, np.int64)
    for up in range(paths.shape[1] - 2, -1, -1):
        level[paths[low, up] == paths[high, up]] = up
    return level


def divided(loss: CellLoss, models: Models) -> Ints:
    """Return the labels of the cheapest division of a few records, or say that there is none."""
    divide = kernels.load("subsets").divide

    n = len(loss.domain)
    cost = subset_costs(loss)
    cost[1:][failing(models, _subset_tally(loss.domain.tally, n))] = np.inf
    best, choice = np.empty(2**n), np.zeros(2**n, np.int64)
    divide(cost, best, choice)
    if not np.isfinite(best[-1]):
        raise Unreachable(f"no division of the {n} records keeps what was asked", fix="ask less, or bring more records")
    labels, left, label = np.zeros(n, np.int64), 2**n - 1, 0
    while left:
        chosen = int(choice[left])
        labels[[i for i in range(n) if chosen >> i & 1]] = label
        left, label = left ^ chosen, label + 1
    return labels


def subset_costs(loss: CellLoss) -> Floats:
    """What each subset of the records loses as one class, by the number whose bits are its members."""
    domain = loss.domain
    n = len(domain)
    size = np.array([bin(subset).count("1") for subset in range(2**n)])
    cost = np.zeros(2**n)
    for a, (paths, table) in enumerate(zip(domain.paths, loss.tables, strict=True)):
        low, high = np.full(2**n, len(paths) - 1), np.zeros(2**n, np.int64)
        for i in range(n):
            np.minimum(low[: 2**i], domain.codes[i, a], out=low[2**i : 2 ** (i + 1)])
            np.maximum(high[: 2**i], domain.codes[i, a], out=high[2**i : 2 ** (i + 1)])
        cost += loss.weights[a] * table[low, common_level(paths, low, high)]
    return np.asarray(size * cost)


def bound(domain: Domain, models: Models, objective: Objective = "granularity") -> float:
    """Return a loss that no generalization at cell level can be below (0 for lattices above 20,000 nodes).

    Only absorbing models count: of the others nothing is known once more records join a class.
    """
    if generalizations(domain.heights) > BOUND_NODES:
        return 0.0
    loss = CellLoss.of(domain, objective)
    least = np.ones(len(domain))
    absorbing = [model for model in models if model.absorbing]
    for levels in product(*(range(height + 1) for height in domain.heights)):
        into = domain.classes(levels)
        kept = ~failing(absorbing, domain.tally.merge(into, {}))[into]
        lost = np.zeros(int(kept.sum()))
        for a, level in enumerate(levels):
            lost += loss.weights[a] * loss.tables[a][domain.codes[kept, a], level]
        least[kept] = np.minimum(least[kept], lost)
    return float(domain.tally.sizes @ least) / domain.records


def _searched(loss: CellLoss, models: Models, budget: Budget, seed: int, progress: Progress) -> tuple[Ints, int]:
    domain = loss.domain
    trees = Trees.of(loss)
    rows = trees.statements(domain)
    by_size = [model for model in models if model.column is None]
    classes = merge_until(Merged.identical(rows, domain.tally), trees, by_size, progress)
    classes = merge_until(classes, trees, models, progress)
    return improved(loss, models, classes.into, budget, seed, progress)


def improved(
    loss: CellLoss, models: Models, labels: Ints, budget: Budget, seed: int, progress: Progress
) -> tuple[Ints, int]:
    """Return better classes and the steps that it took, where the promises can be asked of every make-up of a class."""
    domain, trees = loss.domain, Trees.of(loss)
    make_ups = MakeUps.of(domain.tally, models)
    if make_ups is None:
        return labels, 0
    by_size = all(model.column is None for model in models)
    default = _default_steps(domain, by_size=by_size)
    first = -(-default // (2**CYCLES - 1))
    ground = Statements(trees, trees.statements(domain), make_ups, seed)
    budget = replace(budget, steps=default) if budget.steps is None and budget.seconds is None else budget
    found = rebuilt(ground, labels, first, budget, progress)
    return _kept(domain, found.labels, models, labels), found.steps


def _default_steps(domain: Domain, *, by_size: bool) -> int:
    default = (STEPS_BY_SIZE if by_size else STEPS) * len(domain)
    return default if len(domain) <= MANY else min(default, MOST_STEPS)


def _kept(domain: Domain, labels: Ints, models: Models, before: Ints) -> Ints:
    _, labels = np.unique(labels, return_inverse=True)
    # The make-ups say the same as the models; if ever they did not, what was merged stands
    missed = failing(models, domain.tally.merge(labels, {})).any()
    return before if missed else labels.astype(np.int64)


def _subset_tally(tally: Tally, n: int) -> Tally:
    """All subsets but the empty one as classes; each record is in half of them: the whole is spread as the table."""
    members = (np.arange(1, 2**n)[:, None] >> np.arange(n)) & 1
    spreads = {}
    for name, spread in tally.spreads.items():
        held = np.zeros((n, len(spread.values)), np.int64)
        held[spread.group, spread.code] = spread.count
        counts = members @ held
        group, code = np.nonzero(counts)
        spreads[name] = Spread(group, code, counts[group, code], spread.values)
    return Tally({}, members.sum(axis=1), spreads)


def _checked(domain: Domain, models: Models, objective: Objective, weights: Mapping[str, float] | None) -> CellLoss:
    if objective not in ("granularity", "prec"):
        raise PolicyError(f"the objective is {objective!r}", fix="choose granularity or prec at cell level")
    loss = CellLoss.of(domain, objective, weights)
    require_reachable(domain, models)
    return loss


def require_reachable(domain: Domain, models: Models) -> None:
    """Raise where not even all records as one class keep the promises, and fewer together keep no more."""
    together: Mask = (
        failing(models, domain.tally.merge(np.zeros(len(domain), np.int64), {}))
        if len(domain)
        else np.ones(1, np.bool_)
    )
    if together.any() and all(model.monotone for model in models):
        raise Unreachable(
            f"all {domain.records} records as one class do not keep what was asked",
            fix="ask less, or bring more records",
        )
