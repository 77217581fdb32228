"""The optimal full-domain generalization under a suppression threshold TS, and all minimal generalizations.

    lower[node] = its plain loss, which is known for all nodes because attributes add up
    repeat: take the node with the least lower bound; stop once that bound exceeds the best loss
            look for a node above it, as high as possible, that proves it cannot be the best:
                TS = 0   start at the top, lower one attribute after the other to the node's level until the promises
                         fail, then raise each attribute as long as they still fail
                TS > 0   bisect the path to the top that loses least at each step
            every evaluated node raises the bounds of all nodes below it by its cut (see `lattice_search`)
            if no such node exists, evaluate the node itself

For discernibility, whose loss does not add up over attributes, bounds also grow upwards from evaluated nodes. Above two
million nodes `lattice_search.CutSearch` is used, which also returns a bound on the optimum.

All minimal generalizations (Samarati 2001; paper 003, section 4): bisect chains of undecided nodes, mark all nodes
above a node that holds and all nodes below one that does not. If a model does not allow pruning, evaluate every node.

If the policy names the levels (`method.levels`), that node is evaluated and released, without a search.

Papers: Truta et al. (003), Sweeney 2002 (002), LeFevre et al. 2005; bounds in this form are our own.
Cost: one roll-up per evaluated node.   Ties: the highest Prec, then the order of the levels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import PolicyError, Problem, Unreachable
from kinfold.methods.generalize.domain import Domain, Floats, Levels
from kinfold.methods.generalize.lattice_search import (
    LOSS_TOLERANCE,
    CutSearch,
    LatticeSearch,
    Node,
    Nodes,
    nodes_above,
    to_levels,
)
from kinfold.methods.generalize.levels import Generalization, Models, Objective, count_generalizations
from kinfold.methods.generalize.result import SearchResult, describe_levels, measure_minimality
from kinfold.policy.registry import Declaration
from kinfold.progress import Progress, no_progress

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
    whole_table=True,
)

MAX_GRID_NODES = 2_000_000  # of `GridSearch`: its arrays take about 50 MB


class Lattice:
    """A generalization lattice. Its search can be stopped and continued, and every node can be read."""

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
        self.size = count_generalizations(domain.heights)
        self._search: LatticeSearch = (
            GridSearch(self.nodes) if self.size <= MAX_GRID_NODES else CutSearch(self.nodes, seed)
        )

    @property
    def best(self) -> Node | None:
        """The best node so far, or None."""
        return self._search.best

    @property
    def bound(self) -> float:
        """A lower bound on the loss of all nodes; equal to the loss of `best` once that is proved optimal."""
        return min(self._search.bound, self.best.loss if self.best else math.inf)

    @property
    def proved(self) -> bool:
        """Whether `best` is proved optimal."""
        return self.best is not None and self.bound >= self.best.loss - LOSS_TOLERANCE

    def search(self, steps: int | None = None, progress: Progress = no_progress) -> Node:
        """Search until the optimum is proved, or for at most `steps` more nodes; call it again to continue.

        If `progress` raises `Cancelled`, `best` and `bound` stay valid.
        """
        self._search.run(steps, progress)
        if self.best is None:
            self._search.evaluate(self.nodes.domain.heights)  # the most general node
        if self.best is None:
            nodes = self.nodes
            fewest = min(node.outliers for node in nodes.evaluated.values())
            what = f"none of {len(nodes.evaluated)} generalizations keeps the promises of the policy with at most"
            what += f" {nodes.max_suppressed} of {nodes.domain.records} records suppressed"
            fix = "allow more method.suppression, or require less"
            raise Unreachable(f"{what}; the best one suppresses {fewest}", fix=fix)
        return self.best

    def generalization(self, node: Node | None = None) -> Generalization:
        """Return the generalization of a node, by default the best one."""
        chosen = node or self.best or self.search()
        return Generalization.full_domain(self.nodes.domain, chosen.levels, self.nodes.mark_suppressed(chosen.levels))

    def __iter__(self) -> Iterator[Node]:
        """Yield every node in the order of its levels."""
        heights = self.nodes.domain.heights
        return (self.nodes[levels] for levels in product(*(range(height + 1) for height in heights)))

    def minimal(self, progress: Progress = no_progress) -> list[Node]:
        """Return all minimal generalizations: nodes that hold, with no node below that holds."""
        holds = _decide_nodes(self.nodes, progress)
        above = holds  # nodes that hold, or have a node below that does
        for axis in range(holds.ndim):
            above = np.logical_or.accumulate(above, axis=axis)
        for axis in range(holds.ndim):
            np.moveaxis(holds, axis, 0)[1:] &= ~np.moveaxis(above, axis, 0)[:-1]
        return [self.nodes[to_levels(index)] for index in np.argwhere(holds)]

    def to_dict(self) -> dict[str, Any]:
        """Return the lattice as a dictionary for JSON, with every node."""
        minimal = {node.levels for node in self.minimal()}
        best = self.best.levels if self.best else None
        nodes = [node.to_dict() | {"minimal": node.levels in minimal} for node in self]
        return {"columns": list(self.nodes.domain.names), "best": best, "proved": self.proved, "nodes": nodes}


class GridSearch(LatticeSearch):
    """Best-first search over an array with a lower bound for every node."""

    def __init__(self, nodes: Nodes) -> None:
        super().__init__(nodes)
        self._shape = tuple(height + 1 for height in self.heights)
        self._plain: Floats = np.zeros(self._shape)
        for a, step in enumerate(nodes.loss.steps or ()):
            self._plain += step.reshape([-1 if axis == a else 1 for axis in range(len(self._shape))])
        self._lower = self._plain.copy()  # infinite for evaluated nodes
        self._cut = np.zeros(self._shape)

    @property
    def bound(self) -> float:
        """A lower bound on the loss of every node that is not evaluated."""
        return float(self._lower.min())

    def floor(self, levels: Levels) -> float:
        """Return a lower bound on the plain loss of a node."""
        return float(self._plain[levels])

    def run(self, steps: int | None, progress: Progress) -> None:
        """Search until no better node can exist, or for `steps` more nodes."""
        until = math.inf if steps is None else len(self.nodes.evaluated) + steps
        while len(self.nodes.evaluated) < until:
            node = to_levels(np.unravel_index(int(np.argmin(self._lower)), self._shape))
            if self._lower[node] > self.limit or self._lower[node] == math.inf:
                break
            progress(int((self._lower >= self.limit).sum()), self._lower.size)  # evaluated or excluded
            if not self.exclude(node):
                self.evaluate(node)

    def learn(self, node: Node) -> None:
        """Raise the bounds of the nodes below, and of those above if losses do not add up over attributes."""
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
    progress: Progress = no_progress,
) -> Lattice:
    """Return the searched lattice; `best` is the optimum unless the lattice is too large (see `proved`).

    >>> from kinfold.hierarchies import build_from_mask
    >>> from kinfold.models import KAnonymity
    >>> from kinfold.tables.tally import Tally
    >>> zips = np.array(["02138", "02139", "02141"], object)
    >>> table = Domain.from_tally(Tally({"zip": zips}, np.array([2, 1, 2])), {"zip": build_from_mask(zips, 2)})
    >>> [lattice(table, [KAnonymity(2)], suppression).best.levels for suppression in (0, 1)]
    [(1,), (0,)]
    """
    result = Lattice(domain, models, suppression, objective, weights)
    result.search(progress=progress)
    return result


def estimate_seconds(domain: Domain) -> float:
    """Estimate the run time."""
    return 3e-6 * len(domain)


def run(task: Task, domain: Domain) -> SearchResult:
    """Release the best node, or the node that the policy names."""
    if task.method.levels is not None:
        nodes = Nodes(domain, task.models, task.may_suppress(domain.records) or 0, starred=task.starred)
        released = release_at_levels(nodes, check_levels(task.method.levels, domain))
        return SearchResult(released, (describe_levels(released), "the policy sets the levels"))
    searched = search_lattice(task, domain)
    loss = searched.best.loss if searched.best else 0.0
    released = _raise_random_level(task, searched.generalization())
    doubt = f"not proved optimal (loss {loss:.4f}, lower bound {searched.bound:.4f})"
    note = f"the node is {'proved optimal' if searched.proved else doubt} by {task.method.objective}"
    return SearchResult(released, (describe_levels(released), note), belief=measure_minimality(task, released))


def _raise_random_level(task: Task, released: Generalization) -> Generalization:
    """Raise one column by one level with the probability `method.extra_level`.

    Minimal levels reveal that the levels below failed; levels that may be raised at random do not.
    """
    levels, heights = released.vector, released.domain.heights
    random = np.random.default_rng(task.method.seed)
    if not task.method.extra_level or levels is None or random.random() >= task.method.extra_level:
        return released
    above = list(nodes_above(levels, heights))
    return Generalization.full_domain(released.domain, above[random.integers(len(above))]) if above else released


def search_lattice(task: Task, domain: Domain) -> Lattice:
    """Return the searched lattice of a task."""
    method, allowed = task.method, task.may_suppress(domain.records) or 0
    result = Lattice(domain, task.models, allowed, method.objective, task.weights, method.seed, starred=task.starred)
    result.search(progress=task.progress)
    return result


def _decide_nodes(nodes: Nodes, progress: Progress) -> NDArray[np.bool_]:
    """Return an array over all nodes that says which of them hold."""
    shape = tuple(height + 1 for height in nodes.domain.heights)
    state = np.full(shape, -1, np.int8)
    while (undecided := int((state < 0).sum())) > 0:
        progress(state.size - undecided, state.size)
        chain = [to_levels(np.unravel_index(int(np.argmax(state < 0)), shape))]
        while above := [node for node in nodes_above(chain[-1], nodes.domain.heights) if state[node] < 0]:
            chain.append(above[0])
        low, high = 0, len(chain)
        while low < high:
            middle = (low + high) // 2 if nodes.prunes else low
            levels, holds = chain[middle], nodes[chain[middle]].holds
            if not nodes.prunes:
                state[levels] = holds
                break
            state[tuple(slice(level, None) if holds else slice(0, level + 1) for level in levels)] = holds
            low, high = (low, middle) if holds else (middle + 1, high)
    return np.asarray(state == 1)


def check_levels(levels: Mapping[str, int], domain: Domain) -> Levels:
    """Return the levels of the policy in the order of the domain; raise an error that lists every problem."""
    unknown = [name for name in levels if name not in domain.names]
    problems = [
        Problem(f"method.levels: '{name}' is not a quasi-identifier", "remove it, or correct the name")
        for name in unknown
    ]
    for name, height in zip(domain.names, domain.heights, strict=True):
        if name not in levels:
            problems.append(Problem(f"method.levels: '{name}' has no level", f"give it a level from 0 to {height}"))
        elif levels[name] > height:
            what = f"method.levels: '{name}' has level {levels[name]}, and its hierarchy ends at level {height}"
            problems.append(Problem(what, f"give it a level from 0 to {height}"))
    if problems:
        raise PolicyError(problems)
    return tuple(levels[name] for name in domain.names)


def release_at_levels(nodes: Nodes, levels: Levels) -> Generalization:
    """Return the release of a node, with its outliers suppressed if the policy allows that many."""
    node = nodes[levels]
    if not node.holds:
        records = nodes.domain.records
        raise Unreachable(
            f"the levels of the policy require the suppression of {node.outliers} of {records} records, "
            f"and at most {nodes.max_suppressed} may be suppressed",
            fix="raise a level in method.levels, allow more method.suppression, or remove method.levels",
        )
    return Generalization.full_domain(nodes.domain, levels, nodes.mark_suppressed(levels))
