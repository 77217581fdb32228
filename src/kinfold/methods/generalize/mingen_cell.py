"""MinGen at cell level: every class is released with the lowest common ancestor of its records in each attribute.

    up to 16 records    exact: the cheapest division into classes that keep the promises
    more                group equal records, merge classes until the promises hold, then rebuild many small parts
                        (`cell_classes`)

This is microaggregation with another average: a partition, and one statement per class that is true of all its records.
Rows are records, so that equal records can be in different classes. The rows of a large table are its distinct tuples
with their counts, and equal records stay in one class.

Paper: Sweeney 2002, sections 3.3 and 3.4. The table GT of Figure 7 is not optimal; an exact search finds better ones.
Cost: O(3^n); for large tables about 3 s of merges for 30,000 records, 40 s for a million different ones, then 0.05 to
0.3 ms per step.
Ties: the lowest subset; then the first merge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from kinfold import kernels
from kinfold.errors import PolicyError, Unreachable, plural
from kinfold.methods.annealing import Budget
from kinfold.methods.generalize.cell_classes import (
    Compositions,
    MergedClasses,
    StatementSearch,
    Trees,
    merge_classes,
    merge_nearest,
    rebuild_classes,
    summarize_classes,
)
from kinfold.methods.generalize.domain import Codes, Domain, Floats
from kinfold.methods.generalize.lattice import Lattice
from kinfold.methods.generalize.levels import (
    CellLoss,
    Generalization,
    Models,
    Objective,
    mark_failing,
)
from kinfold.methods.generalize.result import SearchResult
from kinfold.methods.promises import describe_repaired, make_scope_check
from kinfold.policy.registry import Declaration
from kinfold.progress import Progress, no_progress
from kinfold.tables.tally import Ints, Spread, Tally

if TYPE_CHECKING:
    from kinfold.methods.task import Task

METHOD = Declaration(
    name="mingen-cell",
    family="generalize",
    summary="the lowest common ancestors of each class, one level per cell (paper 002)",
    page="mingen",
    needs=("hierarchies", "records"),
    kernels=("rollup", "statements", "cell_search"),
    objectives=("granularity", "prec"),
    auto_reason="values must stay true, and one level per cell loses less than one per column or classes by distance",
    auto_max_records=100_000,
    by_record=True,
    splits_households="it generalizes a value of a household in each class of members on its own",
)

MAX_EXACT_RECORDS = 16  # 3^16 subsets of subsets take a second
STEPS_PER_RECORD_BY_SIZE = 25  # if only class sizes matter
STEPS_PER_RECORD = 1  # if confidential values matter
MAX_DEFAULT_STEPS = 200_000  # above LARGE_TABLE_ROWS: half a minute
LARGE_TABLE_ROWS = 100_000  # from here on the steps no longer grow with the records
DEFAULT_CYCLES = 4  # each cycle is twice as long as the one before


@dataclass(frozen=True, eq=False)
class CellLevelResult:
    """The class of each record, the generalization and its loss; `exact` if the loss is proved minimal."""

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
    progress: Progress = no_progress,
    seed: int = 0,
) -> CellLevelResult:
    """Return classes that keep the promises and whose lowest common ancestors lose little.

    >>> from kinfold.hierarchies import build_from_mask
    >>> from kinfold.models import KAnonymity
    >>> zips = np.array(["02138", "02139", "02141", "02142"], object)
    >>> table = Domain.from_tally(Tally({"zip": zips}, np.ones(4, np.int64)), {"zip": build_from_mask(zips, 2)})
    >>> mingen_cell(table, [KAnonymity(2)]).generalization.columns()["zip"].tolist()
    ['0213*', '0213*', '0214*', '0214*']
    """
    if objective not in ("granularity", "prec"):
        raise PolicyError(f"the objective is {objective!r}", fix="choose granularity or prec at cell level")
    loss = CellLoss.from_objective(domain, objective, weights)
    require_reachable(domain, models)
    exact = domain.records <= MAX_EXACT_RECORDS and len(domain) == domain.records
    if exact:
        labels, steps_taken = divide_records(loss, models), 0
    else:
        labels, steps_taken = _search_classes(loss, models, Budget(steps, seconds), seed, progress)
    released = generalize_classes(domain, labels)
    return CellLevelResult(labels, released, loss.mean_loss(released.levels, released.suppressed), exact, steps_taken)


def estimate_seconds(domain: Domain) -> float:
    """Estimate the run time of a search that the policy does not limit."""
    return 4e-5 * len(domain) + 1.5e-4 * _default_steps(domain, by_size=True)


def run(task: Task, domain: Domain) -> SearchResult:
    """Search within the limits of the policy and release the best classes."""
    method, limits = task.method, task.method.search_limits or (None, None)
    result = mingen_cell(domain, task.models, method.objective, task.weights, *limits, task.progress, method.seed)
    objective: Objective = "prec" if method.objective == "prec" else "granularity"
    labels, repaired = merge_for_people(task, CellLoss.from_objective(domain, objective, task.weights), result.labels)
    released = generalize_classes(domain, labels) if repaired else result.generalization
    notes = ("proved optimal at cell level",) if result.exact and not repaired else ()
    return limit_suppression(task, SearchResult(released, (*notes, *describe_repaired(repaired)), result.steps))


def limit_suppression(task: Task, result: SearchResult) -> SearchResult:
    """Return the result, or a full-domain one if too many records have only stars."""
    domain, allowed = result.generalization.domain, task.may_suppress(result.generalization.domain.records)
    if allowed is None or (lost := result.generalization.records_lost) <= allowed:
        return result
    method = task.method
    objective = method.objective if method.objective != "discernibility" else "granularity"
    nodes = Lattice(domain, task.models, allowed, objective, task.weights, method.seed, starred=task.starred)
    node = nodes.search(progress=task.progress)
    mark = make_scope_check(task)
    if mark is not None and not method.limit and not mark(np.zeros(len(domain), np.int32)).any():
        note = f"all records are one class, because otherwise {plural(lost, 'record')} would have only stars"
        return SearchResult(generalize_classes(domain, np.zeros(len(domain), np.int64)), (note,), result.steps)
    if method.limit or mark is not None:  # the lattice search has no limits on cells, and no people
        what = f"{lost:,} of {plural(domain.records, 'record')} would have only stars as quasi-identifiers"
        raise Unreachable(f"{what}, and at most {allowed:,} may be suppressed", fix="allow more method.suppression")
    note = f"classes have one level per column, because otherwise {plural(lost, 'record')} would have only stars"
    statements = generalize_classes(domain, domain.classes(node.levels))
    marked = nodes.nodes.mark_suppressed(node.levels)
    return SearchResult(replace(statements, suppressed=marked), (note,), result.steps)


def merge_for_people(
    task: Task, loss: CellLoss, labels: Ints, number: Callable[[Generalization], Ints] = Generalization.classes
) -> tuple[Ints, int]:
    """Merge classes until each keeps the promises about people and the joint ones; return how many failed at first.

    `number` returns the class of each row in the release: classes with equal statements are one.
    """
    mark, domain, first = make_scope_check(task), loss.domain, 0
    while mark is not None:
        labels = number(generalize_classes(domain, labels))
        if not (failing := mark(labels.astype(np.int32))).any():
            break
        first = first or int(failing.sum())
        if len(failing) == 1:
            what = "a promise about people or weights, or a joint one, fails even with all records in one class"
            raise Unreachable(what, fix="relax the promises, or leave out privacy.joint or weighted")
        trees = Trees.from_loss(loss)
        labels = merge_nearest(
            summarize_classes(domain, trees, labels), trees, failing.nonzero()[0].astype(np.int64)
        ).labels
    return labels, first


def generalize_classes(domain: Domain, labels: Ints) -> Generalization:
    """Return the generalization of each class to the lowest common ancestors of its records."""
    levels = np.zeros(domain.codes.shape, np.int16)
    classes = int(labels.max()) + 1 if len(labels) else 0
    for a, paths in enumerate(domain.paths):
        low, high = np.full(classes, len(paths)), np.full(classes, -1)
        np.minimum.at(low, labels, domain.codes[:, a])
        np.maximum.at(high, labels, domain.codes[:, a])
        levels[:, a] = common_level(paths, low, high)[labels]
    return Generalization(domain, levels, np.zeros(len(domain), np.bool_))


def common_level(paths: Codes, low: Ints, high: Ints) -> Ints:
    """Return the lowest level at which the codes from `low` to `high` share a label; codes are in subtree order."""
    level = np.full(len(low), paths.shape[1] - 1, np.int64)
    for up in range(paths.shape[1] - 2, -1, -1):
        level[paths[low, up] == paths[high, up]] = up
    return level


def divide_records(loss: CellLoss, models: Models) -> Ints:
    """Return the labels of the cheapest division of a few records into classes that hold."""
    n = len(loss.domain)
    cost = subset_costs(loss)
    cost[1:][mark_failing(models, _tally_subsets(loss.domain.tally, n))] = np.inf
    best, choice = np.empty(2**n), np.zeros(2**n, np.int64)
    kernels.load("rollup").divide(cost, best, choice)
    if not np.isfinite(best[-1]):
        what = f"no division of the {n} records into classes keeps the promises of the policy"
        raise Unreachable(what, fix="require less, or provide more records")
    labels, rest, label = np.zeros(n, np.int64), 2**n - 1, 0
    while rest:
        chosen = int(choice[rest])
        labels[[i for i in range(n) if chosen >> i & 1]] = label
        rest, label = rest ^ chosen, label + 1
    return labels


def subset_costs(loss: CellLoss) -> Floats:
    """Return the loss of each subset of the records as one class; the bits of the index are its members."""
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


def _search_classes(loss: CellLoss, models: Models, budget: Budget, seed: int, progress: Progress) -> tuple[Ints, int]:
    domain = loss.domain
    trees = Trees.from_loss(loss)
    rows = trees.encode_rows(domain)
    by_size = [model for model in models if model.column is None]
    classes = merge_classes(MergedClasses.from_rows(rows, domain.tally), trees, by_size, progress)
    classes = merge_classes(classes, trees, models, progress)
    return improve_classes(loss, models, classes.labels, budget, seed, progress)


def improve_classes(
    loss: CellLoss, models: Models, labels: Ints, budget: Budget, seed: int, progress: Progress
) -> tuple[Ints, int]:
    """Rebuild classes; return the labels and the number of steps (0 if too many compositions)."""
    domain, trees = loss.domain, Trees.from_loss(loss)
    if budget.steps == 0:
        return labels, 0
    compositions = Compositions.from_tally(domain.tally, models)
    if compositions is None:
        return labels, 0
    by_size = all(model.column is None for model in models)
    default = _default_steps(domain, by_size=by_size)
    first = -(-default // (2**DEFAULT_CYCLES - 1))
    space = StatementSearch(trees, trees.encode_rows(domain), compositions, seed)
    budget = replace(budget, steps=default) if budget.steps is None and budget.seconds is None else budget
    result = rebuild_classes(space, labels, first, budget, progress)
    better = np.unique(result.labels, return_inverse=True)[1].astype(np.int64)
    # the compositions agree with the models; if they ever did not, the merged classes stay
    failing = mark_failing(models, domain.tally.merge(better, {})).any()
    return labels if failing else better, result.steps


def _default_steps(domain: Domain, *, by_size: bool) -> int:
    default = (STEPS_PER_RECORD_BY_SIZE if by_size else STEPS_PER_RECORD) * len(domain)
    return default if len(domain) <= LARGE_TABLE_ROWS else min(default, MAX_DEFAULT_STEPS)


def _tally_subsets(tally: Tally, n: int) -> Tally:
    """Return the tally of all subsets except the empty one; each record is in half of them, as in the table."""
    members = (np.arange(1, 2**n)[:, None] >> np.arange(n)) & 1
    spreads = {}
    for name, spread in tally.spreads.items():
        held = np.zeros((n, len(spread.values)), np.int64)
        held[spread.group, spread.code] = spread.count
        counts = members @ held
        group, code = np.nonzero(counts)
        spreads[name] = Spread(group, code, counts[group, code], spread.values)
    return Tally({}, members.sum(axis=1), spreads)


def require_reachable(domain: Domain, models: Models) -> None:
    """Raise an error if all records as one class fail a promise, and all promises are monotone."""
    one_class = domain.tally.merge(np.zeros(len(domain), np.int64), {})
    fails = not len(domain) or bool(mark_failing(models, one_class).any())
    if fails and all(model.monotone for model in models):
        what = f"all {domain.records} records as one class do not keep the promises of the policy"
        raise Unreachable(what, fix="require less, or provide more records")
