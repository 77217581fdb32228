"""The optimal full-domain generalization under a suppression threshold, and all minimal ones.

    lower[node] = its plain loss (known for all nodes: what its attributes lose adds up)
    repeat: take the node whose lower bound is least; stop once it is above the best loss found
            look for a node above it that shows that it cannot be the best, as high as possible, and evaluate that:
                TS = 0   start at the top, put one attribute after the other on the node's level until the promises
                         fail, then raise each as far as they still fail: a few attributes are reason enough
                TS > 0   halve the way to the top (always the step that loses least)
            every node evaluated raises the bounds of all below it by its cut (see `nodes`)
    nothing found above it: evaluate the node itself

For a loss that does not add up over attributes (discernibility) bounds also grow upwards from evaluated nodes. Above
two million nodes the grid is not written down: see `lattice_cuts`, which answers with a bound on what was missed.

All minimal generalizations (Samarati 2001; paper 003, section 4): halve chains of undecided nodes, mark all above a
node that holds and all below one that does not. A model that does not prune has every node evaluated.

Papers: Truta et al. (003), Sweeney 2002 (002), LeFevre et al. 2005; bounds in this form are our own.
Cost: one roll-up a node evaluated.   Ties: the highest Prec, then the order of the levels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import Unreachable
from kinfold.methods.generalize.domain import Domain, Floats, Levels
from kinfold.methods.generalize.found import Found, levels_told, minimality
from kinfold.methods.generalize.generalization import Generalization
from kinfold.methods.generalize.lattice_cuts import CutSearch
from kinfold.methods.generalize.lattice_search import LatticeSearch, as_levels, raised
from kinfold.methods.generalize.levels import levels_of, released_at
from kinfold.methods.generalize.loss import Objective, generalizations
from kinfold.methods.generalize.nodes import TOLERANCE, Node, Nodes
from kinfold.methods.generalize.outliers import Models
from kinfold.progress import Progress, silent
from kinfold.request.methods import Declaration

if TYPE_CHECKING:
    from kinfold.methods.task import Task

METHOD = Declaration(
    name="lattice",
    family="generalize",
    summary="the optimal level of each column under a suppression threshold (papers 002, 003)",
    page="lattice",
    needs=("hierarchies", "rows"),
    kernels=("rollup",),
    objectives=("granularity", "prec", "discernibility"),
    keys=("levels", "extra_level"),
    order=5,
)

WRITTEN_DOWN = 2_000_000  # nodes


class Lattice:
    """A generalization lattice that can be searched, stopped, searched on, and looked at node by node."""

    def __init__(
        self,
        domain: Domain,
        models: Models,
        suppression: float = 0,
        objective: Objective = "granularity",
        weights: Mapping[str, float] | None = None,
        seed: int = 0,
        *,
        starred: bool = False,
    ) -> None:
        self.nodes = Nodes(domain, models, suppression, objective, weights, starred=starred)
        self.size = generalizations(domain.heights)
        self._search: LatticeSearch = (
            GridSearch(self.nodes) if self.size <= WRITTEN_DOWN else CutSearch(self.nodes, seed)
        )

    @property
    def best(self) -> Node | None:
        """The best node found so far, None before one is found."""
        return self._search.best

    @property
    def bound(self) -> float:
        """No node loses less than this; equal to the loss of `best` once that is proved to be the optimum."""
        return min(self._search.bound, self.best.loss if self.best else math.inf)

    @property
    def proved(self) -> bool:
        """Whether `best` is known to be the optimum."""
        return self.best is not None and self.bound >= self.best.loss - TOLERANCE

    def search(self, steps: int | None = None, progress: Progress = silent) -> Node:
        """Evaluate until the optimum is proved, or at most `steps` nodes more; may be called again to go on.

        When the listener raises `Cancelled`, `best` and `bound` tell what was reached.
        """
        self._search.run(steps, progress)
        if self.best is None:
            self._search.evaluate(self.nodes.domain.heights)  # what no search can do without
        if self.best is None:
            raise _unreachable(self.nodes)
        return self.best

    def generalization(self, node: Node | None = None) -> Generalization:
        """Return what the node (the best one) releases."""
        chosen = node or self.best or self.search()
        return Generalization.full(self.nodes.domain, chosen.levels, self.nodes.suppressed(chosen.levels))

    def __iter__(self) -> Iterator[Node]:
        """Every node, from the bottom up in the order of its levels."""
        heights = self.nodes.domain.heights
        return (self.nodes[levels] for levels in product(*(range(height + 1) for height in heights)))

    def minimal(self, progress: Progress = silent) -> list[Node]:
        """Return all minimal generalizations: nodes that hold while no node below them does."""
        holds = _decided(self.nodes, progress)
        closed = _closed_up(holds)
        for axis in range(holds.ndim):
            holds = holds & ~_shifted_up(closed, axis)
        return [self.nodes[as_levels(place)] for place in np.argwhere(holds)]

    def to_dict(self) -> dict[str, Any]:
        """Return every node as plain values: its levels, outliers, loss and Prec, and whether it is minimal."""
        minimal = {node.levels for node in self.minimal()}
        best = self.best.levels if self.best else None
        nodes = [node.to_dict() | {"minimal": node.levels in minimal} for node in self]
        return {"columns": list(self.nodes.domain.names), "best": best, "proved": self.proved, "nodes": nodes}


class GridSearch(LatticeSearch):
    """Best-first search over a lattice that is written down as an array of lower bounds."""

    def __init__(self, nodes: Nodes) -> None:
        super().__init__(nodes)
        self._shape = tuple(height + 1 for height in self.heights)
        self._plain = _plain(nodes, self._shape)
        self._lower = self._plain.copy()  # infinite for nodes evaluated
        self._cut = np.zeros(self._shape)

    @property
    def bound(self) -> float:
        """The least loss that a node not evaluated can have."""
        return float(self._lower.min())

    def floor(self, levels: Levels) -> float:
        """What the node loses at least, before anything is suppressed."""
        return float(self._plain[levels])

    def run(self, steps: int | None, progress: Progress) -> None:
        """Search on until nothing can be better, or `steps` nodes were evaluated."""
        until = math.inf if steps is None else len(self.nodes.seen) + steps
        while len(self.nodes.seen) < until:
            node = as_levels(np.unravel_index(int(np.argmin(self._lower)), self._shape))
            if self._lower[node] > self.limit or self._lower[node] == math.inf:
                break
            progress(int((self._lower >= self.limit).sum()), self._lower.size)  # evaluated, or shown to be no better
            if not self.excluded(node):
                self.evaluate(node)

    def learn(self, node: Node) -> None:
        """Raise the bounds of the nodes below, and above where losses do not add up over attributes."""
        if self.nodes.loss.steps is None:
            above = tuple(slice(level, None) for level in node.levels)
            np.maximum(self._plain[above], node.plain, out=self._plain[above])
            np.maximum(self._lower[above], self._plain[above] + self._cut[above], out=self._lower[above])
        if node.cut > 0:
            below = tuple(slice(0, level + 1) for level in node.levels)
            np.maximum(self._cut[below], node.cut, out=self._cut[below])
            np.maximum(self._lower[below], self._plain[below] + node.cut, out=self._lower[below])
        self._lower[node.levels] = math.inf


def lattice(
    domain: Domain,
    models: Models,
    suppression: float = 0,
    objective: Objective = "granularity",
    weights: Mapping[str, float] | None = None,
    progress: Progress = silent,
) -> Lattice:
    """Return the lattice with its optimum found, or with the best node and a bound where it is too large for that.

    >>> from kinfold.hierarchy import by_mask
    >>> from kinfold.models import KAnonymity
    >>> from kinfold.rows.tally import Tally
    >>> zips = np.array(["02138", "02139", "02141"], object)
    >>> table = Domain.of_tally(Tally({"zip": zips}, np.array([2, 1, 2])), {"zip": by_mask(zips, 2)})
    >>> lattice(table, [KAnonymity(2)]).best.levels, lattice(table, [KAnonymity(2)], suppression=1).best.levels
    ((1,), (0,))
    """
    found = Lattice(domain, models, suppression, objective, weights)
    found.search(progress=progress)
    return found


def expected(domain: Domain) -> float:
    """Return about how many seconds it takes."""
    return 3e-6 * len(domain)


def run(task: Task, domain: Domain) -> Found:
    """Return what is released of a task: the best node, or the one that the policy names."""
    if task.method.levels is not None:
        nodes = Nodes(domain, task.models, task.may_suppress(domain.records) or 0, starred=task.starred)
        released = released_at(nodes, levels_of(task.method.levels, domain))
        return Found(released, (levels_told(released), "the levels are those of the policy"))
    found = searched(task, domain)
    best = found.best.loss if found.best else 0.0
    released = _raised_at_random(task, found.generalization())
    doubt = f"not proved optimal: it loses {best:.4f}, and none less than {found.bound:.4f}"
    told = f"the node is {'proved optimal' if found.proved else doubt} by {task.method.objective}"
    return Found(released, (levels_told(released), told), belief=minimality(task, released))


def _raised_at_random(task: Task, released: Generalization) -> Generalization:
    """Raise one column by one level with the probability that the policy states.

    Minimal levels show that those below them failed; levels that may have been raised anyway do not.
    """
    levels, heights = released.vector, released.domain.heights
    random = np.random.default_rng(task.method.seed)
    if not task.method.extra_level or levels is None or random.random() >= task.method.extra_level:
        return released
    raisable = list(raised(levels, heights))
    return Generalization.full(released.domain, raisable[random.integers(len(raisable))]) if raisable else released


def searched(task: Task, domain: Domain) -> Lattice:
    """Return the lattice of a task with its optimum found."""
    method, allowed = task.method, task.may_suppress(domain.records) or 0
    how = (method.objective, task.weights, method.seed)
    found = Lattice(domain, task.models, allowed, *how, starred=task.starred)
    found.search(progress=task.progress)
    return found


def _plain(nodes: Nodes, shape: tuple[int, ...]) -> Floats:
    plain = np.zeros(shape)
    for a, step in enumerate(nodes.loss.steps or ()):
        plain += step.reshape([-1 if axis == a else 1 for axis in range(len(shape))])
    return plain


def _decided(nodes: Nodes, progress: Progress) -> NDArray[np.bool_]:
    shape = tuple(height + 1 for height in nodes.domain.heights)
    state = np.full(shape, -1, np.int8)
    while (open_nodes := int((state < 0).sum())) > 0:
        progress(state.size - open_nodes, state.size)
        chain = _undecided_chain(as_levels(np.unravel_index(int(np.argmax(state < 0)), shape)), state)
        low, high = 0, len(chain)
        while low < high:
            middle = (low + high) // 2 if nodes.prunes else low
            holds = nodes[chain[middle]].holds
            _mark(state, chain[middle], holds, nodes.prunes)
            if not nodes.prunes:
                break
            low, high = (low, middle) if holds else (middle + 1, high)
    return np.asarray(state == 1)


def _undecided_chain(node: Levels, state: NDArray[np.int8]) -> list[Levels]:
    chain = [node]
    heights = tuple(side - 1 for side in state.shape)
    while open_above := [levels for levels in raised(chain[-1], heights) if state[levels] < 0]:
        chain.append(open_above[0])
    return chain


def _mark(state: NDArray[np.int8], node: Levels, holds: bool, prunes: bool) -> None:
    if not prunes:
        state[node] = holds
    elif holds:
        state[tuple(slice(level, None) for level in node)] = 1
    else:
        state[tuple(slice(0, level + 1) for level in node)] = 0


def _closed_up(holds: NDArray[np.bool_]) -> NDArray[np.bool_]:
    for axis in range(holds.ndim):
        holds = np.logical_or.accumulate(holds, axis=axis)
    return holds


def _shifted_up(closed: NDArray[np.bool_], axis: int) -> NDArray[np.bool_]:
    shifted = np.zeros_like(closed)
    into: list[slice] = [slice(None)] * closed.ndim
    out: list[slice] = [slice(None)] * closed.ndim
    into[axis], out[axis] = slice(1, None), slice(None, -1)
    shifted[tuple(into)] = closed[tuple(out)]
    return shifted


def _unreachable(nodes: Nodes) -> Unreachable:
    fewest = min(node.outliers for node in [nodes[nodes.domain.heights], *nodes.seen.values()])
    what = f"no generalization of {len(nodes.seen)} keeps what was asked with at most {nodes.allowed} of"
    return Unreachable(
        f"{what} {nodes.domain.records} records suppressed: the fewest that any suppresses are {fewest}",
        fix="allow more suppression, or ask less",
    )
