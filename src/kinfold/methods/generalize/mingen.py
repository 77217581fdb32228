"""MinGen at attribute level: every k-minimal distortion, found without looking at every generalization.

    1    the table as it is, if it keeps the promises
    2.1  of all generalizations (a level for each attribute)
    2.2  those that keep the promises
    2.3  and of these all with the highest Prec
    2.4  preferred() picks one: the first in the order of the levels

Prec adds up over attributes, so generalizations are visited from the highest Prec down, classes of equal Prec
together, and what `lattice` knows of nodes that fail excludes most of them unseen. Suppression is the top of every
hierarchy here; no record is dropped.

Paper: Sweeney 2002, Figure 5; several optima can exist, all are returned (of a lattice above two million nodes: the
best that was found).
Cost: as `lattice`.   Ties: none are broken before `preferred`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kinfold.errors import Unreachable
from kinfold.methods.generalize.domain import Domain
from kinfold.methods.generalize.found import Found, levels_told, minimality
from kinfold.methods.generalize.generalization import Generalization
from kinfold.methods.generalize.lattice import Lattice
from kinfold.methods.generalize.nodes import TOLERANCE, Node
from kinfold.methods.generalize.outliers import Models
from kinfold.progress import Progress, silent
from kinfold.request.methods import Declaration

if TYPE_CHECKING:
    from kinfold.methods.task import Task

METHOD = Declaration(
    name="mingen",
    family="generalize",
    summary="the levels with the highest Prec, nothing suppressed, exact (paper 002)",
    page="mingen",
    needs=("hierarchies", "rows"),
    kernels=("rollup",),
    order=3,
)


def mingen(
    domain: Domain, models: Models, weights: Mapping[str, float] | None = None, progress: Progress = silent
) -> list[Node]:
    """Return all k-minimal distortions, in the order of their levels.

    >>> import numpy as np
    >>> from kinfold.hierarchy import by_mask
    >>> from kinfold.models import KAnonymity
    >>> from kinfold.rows.tally import Tally
    >>> zips = np.array(["02138", "02139"], object)
    >>> table = Domain.of_tally(Tally({"zip": zips}, np.array([1, 1])), {"zip": by_mask(zips, 2)})
    >>> [node.levels for node in mingen(table, [KAnonymity(2)])]
    [(1,)]
    """
    found = Lattice(domain, models, 0, "prec", weights)
    best = found.search(progress=progress)
    # A distortion that is minimal is a minimal generalization (Theorem 2), unless some steps weigh nothing
    candidates = [node for node in found.nodes.seen.values() if node.holds and node.loss <= best.loss + TOLERANCE]
    return sorted(candidates, key=lambda node: node.levels)


def expected(domain: Domain) -> float:
    """Return about how many seconds it takes."""
    return 3e-6 * len(domain)


def run(task: Task, domain: Domain) -> Found:
    """Return what is released of a task, and how many others are as good."""
    minimal = mingen(domain, task.models, task.weights, task.progress)
    released = Generalization.full(domain, preferred(minimal).levels)
    notes = (levels_told(released), f"{len(minimal)} k-minimal distortions exist; the first was taken")
    return Found(released, notes, belief=minimality(task, released))


def preferred(minimal: Sequence[Node]) -> Node:
    """Return one of several k-minimal distortions: the first in the order of the levels."""
    if not minimal:
        raise Unreachable("there is no generalization to prefer", fix="ask less of the table")
    return min(minimal, key=lambda node: node.levels)
