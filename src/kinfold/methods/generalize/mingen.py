"""MinGen at attribute level: every k-minimal distortion, without evaluating every generalization.

    1    the table as it is, if it keeps the promises
    2.1  of all generalizations (a level for each attribute)
    2.2  those that keep the promises
    2.3  and of these all with the highest Prec
    2.4  preferred() picks one: the first in the order of the levels

Prec adds up over attributes, so generalizations are visited from the highest Prec down, and the bounds of `lattice`
exclude most of them. Suppression is the top of every hierarchy; no record is dropped.

Paper: Sweeney 2002, Figure 5; several optima can exist, and all are returned (above two million nodes: the best found).
Cost: as `lattice`.   Ties: none are broken before `preferred`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kinfold.errors import Unreachable
from kinfold.methods.generalize.domain import Domain
from kinfold.methods.generalize.lattice import Lattice
from kinfold.methods.generalize.lattice_search import LOSS_TOLERANCE, Node
from kinfold.methods.generalize.levels import Generalization, Models
from kinfold.methods.generalize.result import SearchResult, describe_levels, measure_minimality
from kinfold.policy.registry import Declaration
from kinfold.progress import Progress, no_progress

if TYPE_CHECKING:
    from kinfold.methods.task import Task

METHOD = Declaration(
    name="mingen",
    family="generalize",
    summary="the levels with the highest Prec, nothing suppressed, exact (paper 002)",
    page="mingen",
    needs=("hierarchies", "rows"),
    kernels=("rollup",),
    whole_table=True,
)


def mingen(
    domain: Domain, models: Models, weights: Mapping[str, float] | None = None, progress: Progress = no_progress
) -> list[Node]:
    """Return all k-minimal distortions, in the order of their levels.

    >>> import numpy as np
    >>> from kinfold.hierarchies import build_from_mask
    >>> from kinfold.models import KAnonymity
    >>> from kinfold.tables.tally import Tally
    >>> zips = np.array(["02138", "02139"], object)
    >>> table = Domain.from_tally(Tally({"zip": zips}, np.array([1, 1])), {"zip": build_from_mask(zips, 2)})
    >>> [node.levels for node in mingen(table, [KAnonymity(2)])]
    [(1,)]
    """
    lattice = Lattice(domain, models, 0, "prec", weights)
    best = lattice.search(progress=progress)
    candidates = [
        node for node in lattice.nodes.evaluated.values() if node.holds and node.loss <= best.loss + LOSS_TOLERANCE
    ]
    return sorted(candidates, key=lambda node: node.levels)


def estimate_seconds(domain: Domain) -> float:
    """Estimate the run time."""
    return 3e-6 * len(domain)


def run(task: Task, domain: Domain) -> SearchResult:
    """Release the first of the k-minimal distortions."""
    minimal = mingen(domain, task.models, task.weights, task.progress)
    released = Generalization.full_domain(domain, preferred(minimal).levels)
    notes = (describe_levels(released), f"{len(minimal)} k-minimal distortions exist; the first is released")
    return SearchResult(released, notes, belief=measure_minimality(task, released))


def preferred(minimal: Sequence[Node]) -> Node:
    """Return one of several k-minimal distortions: the first in the order of the levels."""
    if not minimal:
        raise Unreachable("no generalization keeps the promises", fix="require less")
    return min(minimal, key=lambda node: node.levels)
