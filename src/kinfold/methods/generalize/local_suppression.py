"""Local suppression: the fewest cells are left empty so that every class keeps the promises.

    up to 16 records    exact, as at cell level (see `mingen_cell`)
    more                the cheapest pattern of empty cells for each tuple (`patterns`), what is left merged with what
                        costs least (`merging`), classes opened that spare cells (`opening`); of tables with up to
                        2,000 distinct tuples, or where `refine` asks for it, classes are rebuilt (`rebuilding`)

It is generalization at cell level with one level: a value is released as it is or not at all. An empty cell is a value
like any other (k holds for the tuples as they are written), so records that lack a value already can share a class with
records that lose theirs, and lose nothing by it. A cell costs the weight of its column, more where the column has a
limit (see `suppression_limits`).

Paper: Sweeney 2002, sections 3.3 and 3.4, with one level. Cost: see the steps.   Ties: see the steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from kinfold.errors import PolicyError
from kinfold.measures.grouping import group_rows
from kinfold.methods.annealing import Budget
from kinfold.methods.generalize.cells import Trees
from kinfold.methods.generalize.domain import Domain, Floats, Mask
from kinfold.methods.generalize.found import Found
from kinfold.methods.generalize.generalization import Generalization
from kinfold.methods.generalize.loss import CellLoss
from kinfold.methods.generalize.merging import Merged, merge_until
from kinfold.methods.generalize.mingen_cell import (
    EXACT,
    divided,
    improved,
    released_by,
    require_reachable,
    within_suppression,
)
from kinfold.methods.generalize.opening import opened, taking_part
from kinfold.methods.generalize.outliers import Models, asked_k
from kinfold.methods.generalize.patterns import Blanks, settle
from kinfold.methods.generalize.suppression_limits import within
from kinfold.progress import Progress, silent
from kinfold.request.methods import Declaration
from kinfold.rows.tally import Ints

if TYPE_CHECKING:
    from kinfold.methods.task import Task

METHOD = Declaration(
    name="local-suppression",
    family="generalize",
    summary="the fewest cells left empty, values stay as they were (paper 002, cell level with one level)",
    page="local-suppression",
    needs=("suppression", "rows"),
    kernels=("rollup", "subsets", "statements", "statement_tree", "cell_search", "opening"),
    keys=("limit",),
    average="suppress",
    one_by_one=True,
    order=5,
)

STEPS, FEWEST = 5, 1_000  # of rebuilding, unless the policy says how far: for each record, and at least
REBUILT = 2_000  # distinct tuples up to which classes are rebuilt unasked: it takes a second or two


@dataclass(frozen=True)
class Search:
    """How far the search goes: steps and seconds as the policy limits them, the seed, and who is told."""

    limits: tuple[int | None, float | None] | None = None
    seed: int = 0
    progress: Progress = silent


@dataclass(frozen=True, eq=False)
class Suppressed:
    """A class for each record, and which of its cells are left empty; `exact` where fewer cannot be."""

    labels: Ints
    generalization: Generalization
    exact: bool = False
    steps: int = 0

    @property
    def cells(self) -> Ints:
        """How many values each column loses; what was missing before does not count."""
        domain = self.generalization.domain
        missing = domain.codes == [len(hierarchy) for hierarchy in domain.hierarchies]
        return np.asarray(domain.tally.sizes @ ((self.generalization.levels > 0) & ~missing))

    @property
    def shares(self) -> Floats:
        """Which share of its cells each column loses."""
        return self.cells / max(self.generalization.domain.records, 1)


def local_suppression(
    domain: Domain,
    models: Models,
    weights: Mapping[str, float] | None = None,
    limits: Mapping[str, float] | None = None,
    search: Search | None = None,
) -> Suppressed:
    """Return classes for which the fewest cells are left empty, each counted by its column's weight.

    >>> from kinfold.hierarchy import TOP, Hierarchy
    >>> from kinfold.models import KAnonymity
    >>> from kinfold.rows.tally import Tally
    >>> flat = Hierarchy.of([("a", TOP), ("b", TOP)])
    >>> codes = np.array([[0, 0], [0, 0], [0, 1]], np.int32)
    >>> table = Domain(("x", "y"), (flat, flat), codes, Tally({}, np.ones(3, np.int64)))
    >>> local_suppression(table, [KAnonymity(3)]).cells.tolist()
    [0, 3]
    """
    loss = counted(domain, weights)
    require_reachable(domain, models)
    if domain.records <= EXACT and len(domain) == domain.records:
        return within(loss, limits or {}, lambda priced, _: _suppressed(domain, divided(priced, models), exact=True))
    tuples, asked = Distinct.of(domain), search or Search()
    return within(loss, limits or {}, lambda priced, last: tuples.searched(priced, models, asked, rebuild=last))


def expected(domain: Domain) -> float:
    """Return about how many seconds it takes."""
    return 6e-5 * len(domain)


def run(task: Task, domain: Domain) -> Found:
    """Return what is released of a task, with the limits of its policy."""
    limits = task.method.limit or {}
    if unknown := sorted(set(limits) - set(domain.names)):
        what = f"method.limit names columns that are no quasi-identifiers: {', '.join(unknown)}"
        raise PolicyError(what, fix="leave them out, or correct their names")
    search = Search(task.method.limits, task.method.seed, task.progress)
    found = local_suppression(domain, task.models, task.weights, limits, search)
    notes = [told(found)]
    if found.exact and not limits:
        notes.append("proved optimal: no fewer cells can go")
    return within_suppression(task, Found(found.generalization, tuple(notes), found.steps))


def told(found: Suppressed) -> str:
    """Say how many cells are left empty, and in which columns."""
    domain = found.generalization.domain
    parts = [
        f"'{name}' {cells:,} ({cells / domain.records:.1%})"
        for name, cells in zip(domain.names, found.cells.tolist(), strict=True)
        if cells
    ]
    of = f"of {domain.records * len(domain.names):,} cells were suppressed"
    return f"{int(found.cells.sum()):,} {of}" + (f": {', '.join(parts)}" if parts else "")


def counted(domain: Domain, weights: Mapping[str, float] | None = None) -> CellLoss:
    """Count cells by their weights; a value that is missing already costs the same wherever it goes."""
    loss = CellLoss.of(domain, "prec", weights)
    for table in loss.tables:
        table[-1] = 1.0
    return loss


@dataclass(frozen=True, eq=False)
class Distinct:
    """The distinct tuples of a table with their counts, and the tuple of each record."""

    domain: Domain
    tuple: Ints

    @classmethod
    def of(cls, domain: Domain) -> Distinct:
        """Put equal records together."""
        into, first = group_rows(domain.codes)
        codes = np.ascontiguousarray(domain.codes[first])
        return cls(Domain(domain.names, domain.hierarchies, codes, domain.tally.merge(into, {})), into)

    def searched(self, loss: CellLoss, models: Models, search: Search, *, rebuild: bool = True) -> Suppressed:
        """Return classes of records: by pattern, merged where they must be, opened and closed, then rebuilt."""
        domain, k = loss.domain, asked_k(models)
        labels, moving = self._merged(loss, models, search.progress)[self.tuple], np.arange(len(domain))
        by_size = all(model.column is None for model in models)
        if by_size:
            labels = opened(domain, blanks(domain, labels), k, loss.weights, search.progress)
            moving, _ = taking_part(self.tuple, k)
        if not rebuild or (len(self.domain) > REBUILT and search.limits is None):
            return _suppressed(domain, labels)
        better, steps = _rebuilt(loss, models, labels, moving, search)
        better = opened(domain, blanks(domain, better), k, loss.weights, search.progress) if by_size else better
        return replace(_suppressed(domain, better), steps=steps)

    def _merged(self, loss: CellLoss, models: Models, progress: Progress) -> Ints:
        """Return a class for each tuple."""
        here = replace(loss, domain=self.domain)
        by_size = [model for model in models if model.column is None]
        trees = Trees.of(here)
        blanks = settle(self.domain, models, here.weights, progress)
        classes = merge_until(_merged(self.domain, trees, blanks), trees, by_size, progress)
        return merge_until(classes, trees, models, progress).into


def _merged(domain: Domain, trees: Trees, blanks: Blanks) -> Merged:
    """Return the classes of patterns as statements: nothing is said of an empty cell."""
    tops = trees.parent[trees.leaves]
    rows = np.where(blanks.cells, tops, trees.statements(domain))
    says = np.zeros((int(blanks.into.max()) + 1, rows.shape[1]), np.int32)
    says[blanks.into] = rows
    return Merged(says, domain.tally.merge(blanks.into, {}), blanks.into)


def blanks(domain: Domain, labels: Ints) -> Mask:
    """Mark the cells that are empty where each class shows what all of its records share."""
    return np.asarray(released_by(domain, labels).levels > 0)


def _rebuilt(loss: CellLoss, models: Models, labels: Ints, moving: Ints, search: Search) -> tuple[Ints, int]:
    """Take classes apart and put them together better, of tuples that many records share only some of them."""
    domain = loss.domain
    rests = np.ones(len(domain), np.bool_)
    rests[moving] = False
    part = Domain(
        domain.names, domain.hierarchies, np.ascontiguousarray(domain.codes[moving]), domain.tally.drop(rests)
    )
    start = np.unique(labels[moving], return_inverse=True)[1].astype(np.int64)
    budget = Budget(*(search.limits or (max(STEPS * len(moving), FEWEST), None)))
    found, steps = improved(replace(loss, domain=part), models, start, budget, search.seed, search.progress)
    better = group_rows(domain.codes)[0] + len(domain)  # those that rest are classes of whole tuples
    better[moving] = found
    return np.unique(better, return_inverse=True)[1].astype(np.int64), steps


def _suppressed(domain: Domain, labels: Ints, *, exact: bool = False) -> Suppressed:
    return Suppressed(labels, released_by(domain, labels), exact)
