"""Local suppression: the fewest cells are left empty so that every class keeps the promises.

    up to 16 records    exact, as at cell level (see `mingen_cell`)
    more                the cheapest pattern of empty cells for each tuple (`patterns`), what is left merged with what
                        costs least (`merging`), then classes opened that spare cells (`opening`)

It is generalization at cell level with one level: a value is released as it is or not at all. An empty cell is a value
like any other (k holds for the tuples as they are written), so records that lack a value already can share a class with
records that lose theirs, and lose nothing by it. A cell costs the weight of its column. A column with a limit counts
for more and more until no more of its cells go than the limit allows; where that is not enough, nothing is.

Paper: Sweeney 2002, sections 3.3 and 3.4, with one level. Cost: see the steps.   Ties: see the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from kinfold.errors import PolicyError, Problem, Unreachable
from kinfold.measures.grouping import group_rows
from kinfold.methods.generalize.cells import Trees
from kinfold.methods.generalize.domain import Domain, Floats
from kinfold.methods.generalize.found import Found
from kinfold.methods.generalize.generalization import Generalization
from kinfold.methods.generalize.loss import CellLoss
from kinfold.methods.generalize.merging import Merged, merge_until
from kinfold.methods.generalize.mingen_cell import EXACT, divided, released_by, require_reachable
from kinfold.methods.generalize.outliers import Models
from kinfold.methods.generalize.patterns import Blanks, settle
from kinfold.progress import Progress, silent
from kinfold.request.methods import Declaration
from kinfold.rows.tally import Ints, Tally

if TYPE_CHECKING:
    from kinfold.methods.task import Task

METHOD = Declaration(
    name="local-suppression",
    family="generalize",
    summary="the fewest cells left empty, values stay as they were (paper 002, cell level with one level)",
    page="local-suppression",
    needs=("suppression", "rows"),
    kernels=("rollup", "subsets", "statements", "statement_tree"),
    keys=("limit",),
    average="suppress",
    one_by_one=True,
    order=5,
)

STRICTER = 1.3  # times as much counts a column, round after round, of which too many cells go
STRICTEST = 1e6  # and so much where none may go


@dataclass(frozen=True, eq=False)
class Suppressed:
    """A class for each record, and which of its cells are left empty; `exact` where fewer cannot be."""

    labels: Ints
    generalization: Generalization
    exact: bool

    @property
    def cells(self) -> Ints:
        """How many values each column loses; what was missing before does not count."""
        domain = self.generalization.domain
        missing = domain.codes == [len(hierarchy) for hierarchy in domain.hierarchies]
        return np.asarray(((self.generalization.levels > 0) & ~missing).sum(axis=0))

    @property
    def shares(self) -> Floats:
        """Which share of its cells each column loses."""
        return self.cells / max(len(self.generalization.domain), 1)


def local_suppression(
    domain: Domain,
    models: Models,
    weights: Mapping[str, float] | None = None,
    limits: Mapping[str, float] | None = None,
    progress: Progress = silent,
) -> Suppressed:
    """Return classes for which the fewest cells are left empty, each counted by its column's weight.

    >>> from kinfold.hierarchy import TOP, Hierarchy
    >>> from kinfold.models import KAnonymity
    >>> flat = Hierarchy.of([("a", TOP), ("b", TOP)])
    >>> codes = np.array([[0, 0], [0, 0], [0, 1]], np.int32)
    >>> table = Domain(("x", "y"), (flat, flat), codes, Tally({}, np.ones(3, np.int64)))
    >>> local_suppression(table, [KAnonymity(3)]).cells.tolist()
    [0, 3]
    """
    loss = counted(domain, weights)
    require_reachable(domain, models)
    if len(domain) <= EXACT:
        find = lambda priced: _suppressed(domain, divided(priced, models), exact=True)  # noqa: E731
    else:
        tuples = Distinct.of(domain)
        find = lambda priced: _suppressed(domain, tuples.searched(priced, models, progress))  # noqa: E731
    return find(loss) if not limits else _within(loss, limits, find)


def run(task: Task, domain: Domain) -> Found:
    """Return what is released of a task, with the limits of its policy."""
    limits = task.method.limit or {}
    if unknown := sorted(set(limits) - set(domain.names)):
        what = f"method.limit names columns that are no quasi-identifiers: {', '.join(unknown)}"
        raise PolicyError(what, fix="leave them out, or correct their names")
    found = local_suppression(domain, task.models, task.weights, limits, task.progress)
    notes = [told(found)]
    if found.exact and not limits:
        notes.append("proved optimal: no fewer cells can go")
    return Found(found.generalization, tuple(notes))


def told(found: Suppressed) -> str:
    """Say how many cells are left empty, and in which columns."""
    domain = found.generalization.domain
    parts = [
        f"'{name}' {cells:,} ({cells / len(domain):.1%})"
        for name, cells in zip(domain.names, found.cells.tolist(), strict=True)
        if cells
    ]
    of = f"of {domain.codes.size:,} cells were suppressed"
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

    def searched(self, loss: CellLoss, models: Models, progress: Progress) -> Ints:
        """Return the class of each record."""
        here = replace(loss, domain=self.domain)
        by_size = [model for model in models if model.column is None]
        trees = Trees.of(here)
        blanks = settle(self.domain, models, here.weights, progress)
        classes = merge_until(_merged(self.domain, trees, blanks), trees, by_size, progress)
        classes = merge_until(classes, trees, models, progress)
        return classes.into[self.tuple]


def _merged(domain: Domain, trees: Trees, blanks: Blanks) -> Merged:
    """Return the classes of patterns as statements: nothing is said of an empty cell."""
    tops = trees.parent[trees.leaves]
    rows = np.where(blanks.cells, tops, trees.statements(domain))
    says = np.zeros((int(blanks.into.max()) + 1, rows.shape[1]), np.int32)
    says[blanks.into] = rows
    return Merged(says, domain.tally.merge(blanks.into, {}), blanks.into)


def _suppressed(domain: Domain, labels: Ints, *, exact: bool = False) -> Suppressed:
    return Suppressed(labels, released_by(domain, labels), exact)


def _within(loss: CellLoss, limits: Mapping[str, float], find: Callable[[CellLoss], Suppressed]) -> Suppressed:
    """Let columns of which too many cells go count for more until they keep their limits, or say that none can."""
    domain = loss.domain
    allowed = np.array([limits.get(name, 1.0) for name in domain.names])
    found = find(loss)
    if (found.shares <= allowed).all():
        return found
    _require_limits(find(_counting(loss, np.where(allowed < 1, STRICTEST, 1.0))), allowed)
    factors = np.ones(len(allowed))
    while (over := found.shares > allowed).any():
        factors[over] *= STRICTER
        found = find(_counting(loss, np.minimum(factors, STRICTEST)))
        if (factors > STRICTEST).any():
            return find(_counting(loss, np.where(allowed < 1, STRICTEST, 1.0)))
    return found


def _counting(loss: CellLoss, factors: Floats) -> CellLoss:
    weights = loss.weights * factors
    return replace(loss, weights=weights / weights.sum())


def _require_limits(best: Suppressed, allowed: Floats) -> None:
    domain, shares = best.generalization.domain, best.shares
    missed = [
        Problem(
            f"method.limit: {shares[a]:.1%} of the cells of '{name}' have to go at best, and {allowed[a]:.1%} may",
            "raise the limit, ask for less, or recode the column first",
        )
        for a, name in enumerate(domain.names)
        if shares[a] > allowed[a]
    ]
    if missed:
        raise Unreachable(missed)
