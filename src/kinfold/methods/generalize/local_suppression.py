"""Local suppression: leave as few cells empty as possible so that every class keeps the promises.

    up to 16 records    exact, as at cell level (see `mingen_cell`)
    more                assign the cheapest pattern of empty cells to each tuple (`patterns`); merge the remaining
                        tuples with the class that costs least (`cell_classes`); open classes that save cells
                        (`patterns`); rebuild tables with up to 2,000 distinct tuples, or any table if `refine` is set
                        (`cell_classes`)

This is cell-level generalization with one level: a value is released unchanged or not at all. An empty cell is a value
like any other (k holds for the tuples as written), so records that already lack a value can share a class with records
that lose it, at no cost. A cell costs the weight of its column.

`method.limit` sets the largest share of cells that a column may lose:

    find the fewest cells; if a limit is exceeded, check that it can be kept at all, with a prohibitive price
    then raise the price of each column that exceeds its limit, and search again, until none does

A column with limit 0 has a prohibitive price from the start. These rounds skip rebuilding; the last result is rebuilt,
and the rebuilt classes are used if they keep the limits. That a limit cannot be kept is found by search, not proved.

Paper: Sweeney 2002, sections 3.3 and 3.4, with one level.
Cost: see the steps; limits take up to about 25 searches.   Ties: see the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from kinfold.errors import PolicyError, Problem, Unreachable
from kinfold.measures.formulas.arrays import group_rows
from kinfold.methods.annealing import Budget
from kinfold.methods.generalize.cell_classes import MergedClasses, Trees, merge_classes
from kinfold.methods.generalize.domain import Domain, Floats, Mask
from kinfold.methods.generalize.levels import CellLoss, Generalization, Models, required_k
from kinfold.methods.generalize.mingen_cell import (
    MAX_EXACT_RECORDS,
    divide_records,
    generalize_classes,
    improve_classes,
    limit_suppression,
    merge_for_people,
    require_reachable,
)
from kinfold.methods.generalize.patterns import assign_patterns, open_classes, split_movable
from kinfold.methods.generalize.restoring import restore_cells
from kinfold.methods.generalize.result import SearchResult
from kinfold.methods.promises import describe_repaired
from kinfold.models import KAnonymity, to_class_models
from kinfold.policy.registry import Declaration
from kinfold.progress import Progress, no_progress
from kinfold.tables.tally import Ints, Tally

if TYPE_CHECKING:
    from kinfold.methods.task import Task
    from kinfold.policy.people import Households


METHOD = Declaration(
    name="local-suppression",
    family="generalize",
    summary="as few empty cells as possible, all other values unchanged (paper 002)",
    page="local-suppression",
    needs=("suppression", "records"),
    kernels=("rollup", "statements", "cell_search", "opening"),
    keys=("limit",),
    average="suppress",
    by_record=True,
    whole_table=True,
)

REBUILD_STEPS_PER_RECORD = 5  # unless the policy sets a limit
MIN_REBUILD_STEPS = 1_000  # of a small table
MAX_REBUILT_TUPLES = 2_000  # rebuilt without a limit in the policy: it takes a second or two


@dataclass(frozen=True)
class SearchOptions:
    """The options of a search: limits on steps and seconds, the seed, and the progress callback."""

    limits: tuple[int | None, float | None] | None = None
    seed: int = 0
    progress: Progress = no_progress


@dataclass(frozen=True, eq=False)
class SuppressionResult:
    """The class of each record and the empty cells; `exact` if their number is proved minimal."""

    labels: Ints
    generalization: Generalization
    exact: bool = False
    steps: int = 0

    @property
    def cells_by_column(self) -> Ints:
        """The number of values that each column loses, without those that were missing before."""
        domain = self.generalization.domain
        missing = domain.codes == [len(hierarchy) for hierarchy in domain.hierarchies]
        return np.asarray(domain.tally.sizes @ ((self.generalization.levels > 0) & ~missing))

    @property
    def share_by_column(self) -> Floats:
        """The share of its cells that each column loses."""
        return self.cells_by_column / max(self.generalization.domain.records, 1)


def local_suppression(
    domain: Domain,
    models: Models,
    weights: Mapping[str, float] | None = None,
    limits: Mapping[str, float] | None = None,
    options: SearchOptions | None = None,
) -> SuppressionResult:
    """Return classes with few empty cells, each weighted by its column.

    >>> from kinfold.hierarchies import TOP, Hierarchy
    >>> from kinfold.models import KAnonymity
    >>> from kinfold.tables.tally import Tally
    >>> flat = Hierarchy.from_rows([("a", TOP), ("b", TOP)])
    >>> codes = np.array([[0, 0], [0, 0], [0, 1]], np.int32)
    >>> table = Domain(("x", "y"), (flat, flat), codes, Tally({}, np.ones(3, np.int64)))
    >>> local_suppression(table, [KAnonymity(3)]).cells_by_column.tolist()
    [0, 3]
    """
    loss = make_cell_loss(domain, weights)
    require_reachable(domain, models)
    if domain.records <= MAX_EXACT_RECORDS and len(domain) == domain.records:
        return search_within_limits(
            loss, limits or {}, lambda prices, _: _make_result(domain, divide_records(prices, models), exact=True)
        )
    tuples, options = DistinctTuples.from_domain(domain), options or SearchOptions()
    return search_within_limits(
        loss, limits or {}, lambda prices, rebuild: tuples.search(prices, models, options, rebuild=rebuild)
    )


def estimate_seconds(domain: Domain) -> float:
    """Estimate the run time."""
    return 6e-5 * len(domain)


def run(task: Task, domain: Domain) -> SearchResult:
    """Suppress as few cells as possible within the limits of the policy."""
    limits = dict(task.method.limit or {})
    if unknown := sorted(set(limits) - set(domain.names)):
        what = f"method.limit names columns that are not quasi-identifiers: {', '.join(unknown)}"
        raise PolicyError(what, fix="remove them, or correct their names")
    options = SearchOptions(task.method.search_limits, task.method.seed, task.progress)
    notes: tuple[str, ...] = ()
    if task.households is not None and task.households.attributes:
        domain, notes = suppress_households(task, task.households, domain, options)
        limits |= dict.fromkeys(task.households.attributes, 0.0)
    promised, task = task.models, replace(task, models=to_class_models(task.models, task.policy.rows))
    result = local_suppression(domain, task.models, task.weights, limits, options)
    labels, repaired = merge_for_people(task, _price_limits(domain, task.weights, limits), result.labels, number_rows)
    if repaired:
        result = _make_result(domain, labels)
        require_limits(result, limits)
        notes = (*notes, *describe_repaired(repaired))
    optimal = ("the number of suppressed cells is proved minimal",) if result.exact and not limits else ()
    if domain.keyed:  # promises about combinations, which need fewer empty cells
        prices = make_cell_loss(domain, task.weights).weights
        restored = restore_cells(result.generalization, promised, prices, task.progress)
        result, optimal = replace(result, generalization=restored), ()
    return limit_suppression(
        task, SearchResult(result.generalization, (*notes, describe_cells(result), *optimal), result.steps)
    )


def suppress_households(
    task: Task, households: Households, domain: Domain, options: SearchOptions
) -> tuple[Domain, tuple[str, ...]]:
    """Return the table in which at least k households share what its members show of each household, and a note.

    An empty cell of a household is empty in all its members, so that none shows it.
    """
    numbers, first = households.numbers, np.unique(households.numbers, return_index=True)[1]
    at = [domain.names.index(name) for name in households.attributes]
    kinds = tuple(domain.hierarchies[a] for a in at)
    codes = np.ascontiguousarray(domain.codes[first][:, at])
    part = Domain(households.attributes, kinds, codes, Tally({}, np.ones(len(first), np.int64)))
    limits = {name: limit for name, limit in (task.method.limit or {}).items() if name in part.names}
    weights = {name: task.weights[name] for name in part.names}
    result = local_suppression(part, [KAnonymity(task.k)], weights, limits, options)
    empty = (result.generalization.levels > 0)[np.unique(numbers, return_inverse=True)[1]]
    filled, missing = domain.codes.copy(), np.array([len(kind) for kind in kinds])
    filled[:, at] = np.where(empty, missing, domain.codes[:, at])
    lost = (filled[:, at] != domain.codes[:, at]).mean(axis=0)
    for name, share in zip(part.names, lost.tolist(), strict=True):
        if share > limits.get(name, 1.0):
            what = (
                f"method.limit: '{name}' may lose {limits[name]:.1%} of its cells, and its households lose {share:.1%}"
            )
            raise Unreachable(what, fix="raise the limit, require less, or recode the column first")
    return replace(domain, codes=filled), (f"of households, counted once: {describe_cells(result)}",)


def number_rows(generalization: Generalization) -> Ints:
    """Return the class of each row: a value that was missing before is an empty cell like any other."""
    domain = generalization.domain
    missing = domain.codes == [len(hierarchy) for hierarchy in domain.hierarchies]
    return group_rows(np.where(missing | (generalization.levels > 0), -1, domain.codes))[0]


def describe_cells(result: SuppressionResult) -> str:
    """Return a note with the number of suppressed cells by column."""
    domain = result.generalization.domain
    parts = [
        f"'{name}' {cells:,} ({cells / domain.records:.1%})"
        for name, cells in zip(domain.names, result.cells_by_column.tolist(), strict=True)
        if cells
    ]
    of = f"of {domain.records * len(domain.names):,} cells were suppressed"
    return f"{int(result.cells_by_column.sum()):,} {of}" + (f": {', '.join(parts)}" if parts else "")


def make_cell_loss(domain: Domain, weights: Mapping[str, float] | None = None) -> CellLoss:
    """Return the weighted number of empty cells as a loss; a missing value costs the same at every level."""
    loss = CellLoss.from_objective(domain, "prec", weights)
    for table in loss.tables:
        table[-1] = 1.0
    return loss


@dataclass(frozen=True, eq=False)
class DistinctTuples:
    """The distinct tuples of a table with their counts, and the tuple of each record."""

    domain: Domain
    labels: Ints

    @classmethod
    def from_domain(cls, domain: Domain) -> DistinctTuples:
        """Group equal records."""
        into, first = group_rows(domain.codes)
        codes = np.ascontiguousarray(domain.codes[first])
        return cls(Domain(domain.names, domain.hierarchies, codes, domain.tally.merge(into, {})), into)

    def search(
        self, loss: CellLoss, models: Models, options: SearchOptions, *, rebuild: bool = True
    ) -> SuppressionResult:
        """Assign patterns, merge classes, open classes, then rebuild them."""
        domain, k = loss.domain, required_k(models)
        labels, moving = self._merge_tuples(loss, models, options.progress)[self.labels], np.arange(len(domain))
        by_size = all(model.column is None for model in models)
        if by_size:
            labels = open_classes(domain, mark_empty_cells(domain, labels), k, loss.weights, options.progress)
            moving, _ = split_movable(self.labels, k)
        if not rebuild or (len(self.domain) > MAX_REBUILT_TUPLES and options.limits is None):
            return _make_result(domain, labels)
        better, steps = _rebuild(loss, models, labels, moving, options)
        if by_size:
            better = open_classes(domain, mark_empty_cells(domain, better), k, loss.weights, options.progress)
        return replace(_make_result(domain, better), steps=steps)

    def _merge_tuples(self, loss: CellLoss, models: Models, progress: Progress) -> Ints:
        """Return the class of each tuple."""
        trees = Trees.from_loss(replace(loss, domain=self.domain))
        patterns = assign_patterns(self.domain, models, loss.weights, progress)
        rows = np.where(patterns.cells, trees.parent[trees.leaves], trees.encode_rows(self.domain))
        statements = np.zeros((int(patterns.labels.max()) + 1, rows.shape[1]), np.int32)
        statements[patterns.labels] = rows
        classes = MergedClasses(statements, self.domain.tally.merge(patterns.labels, {}), patterns.labels)
        for required in ([model for model in models if model.column is None], models):
            classes = merge_classes(classes, trees, required, progress)
        return classes.labels


def mark_empty_cells(domain: Domain, labels: Ints) -> Mask:
    """Mark the cells that are empty if each class shows the values that all its records share."""
    return np.asarray(generalize_classes(domain, labels).levels > 0)


def _rebuild(loss: CellLoss, models: Models, labels: Ints, moving: Ints, options: SearchOptions) -> tuple[Ints, int]:
    """Rebuild the classes of the moving records; the others stay in classes of whole tuples."""
    domain = loss.domain
    rests = np.ones(len(domain), np.bool_)
    rests[moving] = False
    part = Domain(
        domain.names, domain.hierarchies, np.ascontiguousarray(domain.codes[moving]), domain.tally.drop(rests)
    )
    start = np.unique(labels[moving], return_inverse=True)[1].astype(np.int64)
    budget = Budget(*(options.limits or (max(REBUILD_STEPS_PER_RECORD * len(moving), MIN_REBUILD_STEPS), None)))
    improved, steps = improve_classes(replace(loss, domain=part), models, start, budget, options.seed, options.progress)
    better = group_rows(domain.codes)[0] + len(domain)  # resting records are in classes of whole tuples
    better[moving] = improved
    return np.unique(better, return_inverse=True)[1].astype(np.int64), steps


def _make_result(domain: Domain, labels: Ints, *, exact: bool = False) -> SuppressionResult:
    return SuppressionResult(labels, generalize_classes(domain, labels), exact)


SearchFunction: TypeAlias = "Callable[[CellLoss, bool], SuppressionResult]"  # the prices; whether to rebuild classes

PRICE_FACTOR = 1.3  # per round, for a column above its limit
MAX_PRICE = 100.0  # then the price becomes prohibitive
PROHIBITIVE_PRICE = 1e6  # above the loss of all other cells of a record


def search_within_limits(loss: CellLoss, limits: Mapping[str, float], find: SearchFunction) -> SuppressionResult:
    """Return few empty cells such that every column keeps its limit; raise an error if a limit cannot be kept."""
    allowed = np.array([limits.get(name, 1.0) for name in loss.domain.names])
    if (allowed == 1).all():
        return find(loss, True)
    result = find(loss, False)
    if (result.share_by_column > allowed).any():
        loss, result = _raise_prices(loss, allowed, find)
    rebuilt = find(loss, True)
    return rebuilt if (rebuilt.share_by_column <= allowed).all() else result


def _raise_prices(loss: CellLoss, allowed: Floats, find: SearchFunction) -> tuple[CellLoss, SuppressionResult]:
    """Return prices for which the limits hold, and the result for them."""
    strict = _price_columns(loss, np.where(allowed < 1, PROHIBITIVE_PRICE, 1.0))
    strict_result = find(strict, False)
    require_limits(strict_result, dict(zip(loss.domain.names, allowed, strict=True)))
    factors = np.where(allowed == 0, PROHIBITIVE_PRICE, 1.0)
    while True:
        prices = _price_columns(loss, factors)
        result = find(prices, False)
        over = result.share_by_column > allowed
        if not over.any():
            return prices, result
        if (factors[over] >= PROHIBITIVE_PRICE).all():
            return strict, strict_result
        raised = factors[over] * PRICE_FACTOR
        factors[over] = np.where(raised > MAX_PRICE, PROHIBITIVE_PRICE, raised)


def require_limits(result: SuppressionResult, limits: Mapping[str, float]) -> None:
    """Raise if a column loses more cells than it may."""
    shares = dict(zip(result.generalization.domain.names, result.share_by_column.tolist(), strict=True))
    problems = [
        Problem(
            f"method.limit: '{name}' may lose {limits[name]:.1%} of its cells, and the best result loses {share:.1%}",
            "raise the limit, require less, or recode the column first",
        )
        for name, share in shares.items()
        if share > limits.get(name, 1.0)
    ]
    if problems:
        raise Unreachable(problems)


def _price_limits(domain: Domain, weights: Mapping[str, float] | None, limits: Mapping[str, float]) -> CellLoss:
    """Return the loss with a prohibitive price for columns that may lose no cell."""
    strict = [limits.get(name, 1.0) == 0 for name in domain.names]
    return _price_columns(make_cell_loss(domain, weights), np.where(strict, PROHIBITIVE_PRICE, 1.0))


def _price_columns(loss: CellLoss, factors: Floats) -> CellLoss:
    weights = loss.weights * factors
    return replace(loss, weights=weights / weights.sum())
