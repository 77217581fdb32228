"""Search of a generalization lattice: evaluated nodes, their bounds on other nodes, and the search of large lattices.

A node is one level for each attribute. The classes of a node that fail a promise are its outliers. A node holds if at
most TS records (the suppression threshold) are outliers and some record remains. Its loss is the plain loss of its
levels plus the extra loss of the suppressed records. For every node X below a node Y:

    plain(X) is known, and extra(X) >= cut(Y)

because absorbing models suppress at least the same records in X, and each of them costs more there. A node that does
not hold has an infinite cut: no node below it holds. With TS = 0 this is true for every monotone model, with TS > 0
only for absorbing models. t-closeness does not absorb, but each class of Y must lose some records in every X
(`closeness`); other models give no cut. Records that are starred only to fill the starred class count
towards TS and the loss, but not towards the cut.

A node X is excluded once plain(X) + cut(Y) exceeds the best loss for some Y above it. A high Y excludes many nodes.
New nodes are rolled up from the smallest kept view below them.

`CutSearch` searches lattices with too many nodes for an array. A small integer program proposes nodes:

    z[a, l] = 1 if attribute a is at level l or above
    extra   = a sum of steps v[1], v[2], ... up to fixed marks, the cuts of nodes proposed before
    minimize the loss of the levels + extra, with one row for each evaluated node Y:
        v[the last mark up to cut(Y)] + sum_a z[a, Y_a + 1] >= 1     the cut applies, or an attribute is above Y
        sum_a z[a, Y_a + 1] >= 1                                     if no node below Y holds

    start: climb from the bottom by the step that frees most records per loss until the promises hold; then descend
           while they still hold
    repeat: solve; the value is a bound on every node; stop once it reaches the best loss
            exclude the proposed node by nodes above it, in many orders of attributes; otherwise evaluate it

This is a set cover with one unknown per level, solved by HiGHS, and a Benders decomposition with the table as the
subproblem (Hooker & Ottosson 2003). Rounding cuts down to marks keeps the bound valid. The search stops after a number
of nodes, not seconds, so the same table and seed give the same result.

Ties: the highest Prec, then the order of the levels. `CutSearch` proves a result to within 1e-6.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from kinfold.methods.generalize.closeness import Closeness
from kinfold.methods.generalize.domain import Domain, Floats, Levels, Mask, View
from kinfold.methods.generalize.levels import (
    CellLoss,
    Loss,
    Models,
    Objective,
    is_below,
    make_loss,
    mark_failing,
    mark_outliers,
    required_k,
    suppression_limit,
)
from kinfold.models import Model, TableModel, to_class_models
from kinfold.progress import Progress

MAX_KEPT_VIEWS = 4096  # roll-ups that later nodes start from
MAX_KEPT_ROWS = 4_000_000  # over all views
LOSS_TOLERANCE = 1e-12  # losses closer than this are equal


@dataclass(frozen=True)
class Node:
    """One full-domain generalization; `loss` includes suppressed records and is infinite if the node does not hold."""

    levels: Levels
    classes: int
    outliers: int  # records to suppress
    holds: bool
    loss: float
    prec: float
    plain: float  # the loss if nothing is suppressed
    cut: float  # a lower bound on the extra loss of every node below

    @property
    def rank(self) -> tuple[float, float, Levels]:
        """The sort key: loss, then the highest Prec, then the order of the levels."""
        return (self.loss, -self.prec, self.levels)

    def to_dict(self) -> dict[str, Any]:
        """Return the node as a dictionary for JSON."""
        counts = {"levels": list(self.levels), "classes": self.classes, "outliers": self.outliers, "holds": self.holds}
        return counts | {"loss": self.loss if self.holds else None, "prec": self.prec}


class Nodes:
    """The nodes of a lattice, each evaluated once."""

    def __init__(
        self,
        domain: Domain,
        models: Models,
        suppression: float = 0,
        objective: Objective = "granularity",
        weights: Mapping[str, float] | None = None,
        *,
        starred: bool = False,
    ) -> None:
        self.domain = domain
        self.models = models = to_class_models(models, domain.records) if starred else models
        self._starred = starred
        self.max_suppressed = suppression_limit(suppression, domain.records)
        self.loss: Loss = make_loss(domain, objective, weights)
        self._prec = CellLoss.from_objective(domain, "prec", weights)
        self._k = required_k(models)
        self._absorbing: list[Model] = [model for model in models if model.absorbing]
        self.prunes = all(
            model.monotone if self.max_suppressed == 0 else model.absorbing and not starred for model in models
        )
        others = [model for model in models if not model.absorbing or isinstance(model, TableModel)]
        self._closeness = Closeness.from_models(others, domain.tally)
        self.cuts = self.prunes or bool(self._absorbing) or self._closeness is not None  # else no bound on other nodes
        self.evaluated: dict[Levels, Node] = {}
        self._views = _ViewCache(domain)

    def __getitem__(self, levels: Levels) -> Node:
        """Return the node at these levels."""
        if levels not in self.evaluated:
            self.evaluated[levels] = self._evaluate(levels)
        return self.evaluated[levels]

    def mark_suppressed(self, levels: Levels) -> Mask:
        """Mark the rows of the domain that the node suppresses."""
        suppressed = self._mark_outliers(self.domain.roll_up(levels))
        return np.asarray(suppressed[self.domain.classes(levels)], np.bool_)

    def _mark_outliers(self, view: View) -> Mask:
        return mark_outliers(self.models, view.tally, starred=self._starred, closeness=self._closeness)

    def _evaluate(self, levels: Levels) -> Node:
        view = self._views.at(levels)
        suppressed = self._mark_outliers(view)
        lost = np.where(suppressed, view.tally.sizes, 0)
        count = int(lost.sum())
        holds = self._allows(count)
        plain = self.loss.plain(view)
        extra = self.loss.suppressing(view, lost) if holds else math.inf
        prec = (1.0 - self._prec.plain(view)) * (1.0 - count / self.domain.records)
        cut = extra if self.prunes else self._cut(view)
        return Node(levels, len(view), count, holds, plain + extra, prec, plain, cut)

    def _cut(self, view: View) -> float:
        sizes, lost = view.tally.sizes, np.zeros(len(view), np.int64)
        if self._closeness is not None and self.max_suppressed < self.domain.records:
            lost = self._closeness.find_losses(view.tally, self.max_suppressed)
            lost = np.where(sizes - lost < self._k, sizes, lost)  # fewer are no class
        lost = np.where(mark_failing(self._absorbing, view.tally), sizes, lost)
        return self.loss.suppressing(view, lost) if self._allows(int(lost.sum())) else math.inf

    def _allows(self, suppressed: int) -> bool:
        return suppressed <= self.max_suppressed and suppressed < self.domain.records


class _ViewCache:
    """The views of the last nodes; new views are rolled up from them. The bottom is always kept, at place 0."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._kept: list[View] = [domain.bottom]
        self._levels = np.zeros((len(domain.names), MAX_KEPT_VIEWS), np.int16)
        self._sizes = np.full(MAX_KEPT_VIEWS, len(domain), np.int64)
        self._rows = 0  # of all kept views but the bottom
        self._next = self._oldest = 1

    def at(self, levels: Levels) -> View:
        """Return the view at these levels, rolled up from the smallest view below."""
        count = len(self._kept)
        below = (self._levels[:, :count] <= np.asarray(levels, np.int16)[:, None]).all(axis=0)
        nearest = int(np.argmin(np.where(below, self._sizes[:count], len(self._domain) + 1)))
        view = self._domain.roll_up(levels, self._kept[nearest])
        while self._rows > 0 and (self._rows + len(view) > MAX_KEPT_ROWS or self._is_full()):
            self._forget_oldest()
        self._kept[self._next : self._next + 1] = [view]
        self._levels[:, self._next], self._sizes[self._next] = view.levels, len(view)
        self._rows += len(view)
        self._next = self._following(self._next)
        return view

    def _is_full(self) -> bool:
        return self._next == self._oldest

    def _forget_oldest(self) -> None:
        self._rows -= len(self._kept[self._oldest])
        self._kept[self._oldest] = self._kept[0]
        self._levels[:, self._oldest], self._sizes[self._oldest] = 0, len(self._domain)
        self._oldest = self._following(self._oldest)

    def _following(self, place: int) -> int:
        return place + 1 if place + 1 < MAX_KEPT_VIEWS else 1


class LatticeSearch(ABC):
    """The state of a search: the evaluated nodes, the best node, and a bound on all other nodes."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self.heights = nodes.domain.heights
        self.best: Node | None = None
        self._learned: set[Levels] = set()

    @property
    @abstractmethod
    def bound(self) -> float:
        """A lower bound on the loss of every node that is not evaluated."""

    @abstractmethod
    def floor(self, levels: Levels) -> float:
        """Return a lower bound on the plain loss of a node."""

    @abstractmethod
    def learn(self, node: Node) -> None:
        """Update the bounds on other nodes."""

    @abstractmethod
    def run(self, steps: int | None, progress: Progress) -> None:
        """Search until no better node can exist, or for `steps` more nodes."""

    @property
    def limit(self) -> float:
        """The loss above which a node cannot be the best."""
        return (self.best.loss if self.best else math.inf) + LOSS_TOLERANCE

    def evaluate(self, levels: Levels) -> Node:
        """Return the node, and update the best node and the bounds."""
        node = self.nodes[levels]
        if levels not in self._learned:
            self._learned.add(levels)
            if node.holds and (self.best is None or is_better(node, self.best)):
                self.best = node
            self.learn(node)
        return node

    def exclude(self, node: Levels) -> bool:
        """Return whether a node above excludes this one; look for one as high as possible."""
        if not self.nodes.cuts:
            return False
        if self.nodes.max_suppressed == 0:
            order = sorted(range(len(node)), key=lambda a: -self.nodes.domain.widths[a][node[a]])
            return self.exclude_by_few(node, order)
        return self.exclude_by_chain(node)

    def exclude_by_few(self, node: Levels, order: Sequence[int]) -> bool:
        """Lower attributes from the top, in this order, until the node is excluded; then raise each again."""
        levels = list(self.heights)
        for a in order:
            if levels[a] != node[a]:
                levels[a] = node[a]
                if self._excludes(tuple(levels), node):
                    break
        else:
            return False
        for a in order:
            while levels[a] < self.heights[a]:
                levels[a] += 1
                if not self._excludes(tuple(levels), node):
                    levels[a] -= 1
                    break
        return True

    def exclude_by_chain(self, node: Levels) -> bool:
        """Bisect the path to the top that loses least at each step."""
        chain = [node]
        while chain[-1] != self.heights:
            chain.append(min(nodes_above(chain[-1], self.heights), key=self.floor))
        low, high = -1, len(chain) - 1
        while low < high:
            middle = (low + high + 1) // 2
            if self._excludes(chain[middle], node):
                low = middle
            else:
                high = middle - 1
        return low >= 0

    def _excludes(self, levels: Levels, node: Levels) -> bool:
        return self.floor(node) + self.evaluate(levels).cut > self.limit


def is_better(node: Node, best: Node) -> bool:
    """Return whether the node is better: by loss, then by Prec, then by the order of the levels."""
    if abs(node.loss - best.loss) > LOSS_TOLERANCE:
        return node.loss < best.loss
    return node.levels < best.levels if abs(node.prec - best.prec) <= LOSS_TOLERANCE else node.prec > best.prec


def to_levels(index: Iterable[np.integer]) -> Levels:
    """Return an array index as levels."""
    return tuple(int(level) for level in index)


def nodes_above(levels: Levels, heights: Levels) -> Iterator[Levels]:
    """Yield the nodes one step above, by attribute."""
    for a, level in enumerate(levels):
        if level < heights[a]:
            yield (*levels[:a], level + 1, *levels[a + 1 :])


def nodes_below(levels: Levels) -> Iterator[Levels]:
    """Yield the nodes one step below, by attribute."""
    for a, level in enumerate(levels):
        if level:
            yield (*levels[:a], level - 1, *levels[a + 1 :])


MAX_BRANCHES = 200  # of the solver; its result up to then is a valid bound


class SetCover:
    """The integer program that proposes the next node of a large lattice.

    The columns are 0 or 1: for each attribute and level above 0, whether the attribute is at this level or above; for
    each mark, whether the extra loss reaches it; for each mark, whether the plain loss reaches it, which is only used
    if losses do not add up over attributes. A limit on branches, not on seconds, keeps the result reproducible.
    """

    def __init__(self, heights: Levels, steps: Sequence[Floats], marks: Sequence[float]) -> None:
        self._heights = heights
        self._marks = np.asarray(marks, np.float64)
        self._start = np.concatenate([[0], np.cumsum(heights)]).astype(int)
        self._extra = int(self._start[-1])
        self._plain = self._extra + len(marks)
        rises = np.diff(self._marks, prepend=0.0)
        self._cost = np.concatenate([*(np.diff(step) for step in steps), rises, rises])
        self._base = float(sum(step[0] for step in steps))
        self._rows: list[Floats] = []
        self._least: list[float] = []
        blocks = [*pairwise(self._start), (self._extra, self._plain), (self._plain, len(self._cost))]
        for first, end in blocks:
            for column in range(first, end - 1):
                self._add([column], [column + 1], 0.0)

    def add_cut(self, levels: Levels, cut: float) -> None:
        """Require `cut` extra loss of all nodes up to these levels, or exclude them if it is infinite."""
        above = [self._column(a, level + 1) for a, level in enumerate(levels) if level < self._heights[a]]
        if math.isinf(cut):
            self._add(above, [], 1.0)
        elif (mark := self._mark(cut)) >= 0:
            self._add([*above, self._extra + mark], [], 1.0)

    def add_floor(self, levels: Levels, plain: float) -> None:
        """Require a plain loss of at least `plain` of all nodes from these levels up."""
        if (mark := self._mark(plain)) >= 0:
            reached = [self._column(a, level) for a, level in enumerate(levels) if level]
            self._add([self._plain + mark], reached, 1.0 - len(reached))

    def solve(self) -> tuple[Levels | None, float]:
        """Return the levels of the cheapest remaining node, or None, and a lower bound on all remaining nodes."""
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array

        if not len(self._cost):  # every hierarchy has height 0: one node
            return (None, math.inf) if any(least > 0 for least in self._least) else (self._heights, self._base)
        rows = csr_array(np.array(self._rows).reshape(len(self._rows), len(self._cost)))
        result = milp(
            self._cost,
            integrality=np.ones(len(self._cost), np.int64),
            bounds=Bounds(0, 1),
            constraints=[LinearConstraint(rows, lb=np.array(self._least))] if self._rows else [],
            options={"node_limit": MAX_BRANCHES, "mip_rel_gap": 0.0},
        )
        if result.status == 2:
            return None, math.inf
        bound = self._base + float(result.mip_dual_bound or 0.0)
        if result.x is None:
            return None, bound
        chosen = np.rint(result.x).astype(int)
        return tuple(int(chosen[first:end].sum()) for first, end in pairwise(self._start)), bound

    def _mark(self, value: float) -> int:
        return int(np.searchsorted(self._marks, value + 1e-15, side="right")) - 1

    def _column(self, attribute: int, level: int) -> int:
        return int(self._start[attribute]) + level - 1

    def _add(self, plus: Sequence[int], minus: Sequence[int], least: float) -> None:
        row = np.zeros(len(self._cost))
        row[list(plus)] = 1.0
        row[list(minus)] = -1.0
        self._rows.append(row)
        self._least.append(least)


MAX_CELLS_EVALUATED = 10_000_000_000  # then the best node so far is returned with its bound
PROOF_TOLERANCE = 1e-6  # the accuracy of the solver
MAX_ROUNDS = 24  # integer programs, with the same effect
ATTRIBUTE_ORDERS = 40  # tried to exclude a proposed node


class CutSearch(LatticeSearch):
    """Search with an integer program: cuts are its rows, and its optimum is the next node and the bound."""

    def __init__(self, nodes: Nodes, seed: int = 0) -> None:
        super().__init__(nodes)
        self._bound = 0.0
        self._rounds = 0
        self._marks: set[float] = set()
        self._random = np.random.default_rng(seed)
        self._rows: list[tuple[Levels, float]] = []
        self._floors: list[tuple[Levels, float]] = []
        # zero if losses do not add up over attributes
        steps = nodes.loss.steps or tuple(np.zeros(height + 1) for height in self.heights)
        self._steps: tuple[Floats, ...] = tuple(steps)

    @property
    def bound(self) -> float:
        """The best lower bound so far."""
        return self._bound

    def floor(self, levels: Levels) -> float:
        """Return a lower bound on the plain loss of a node."""
        return float(sum(step[level] for step, level in zip(self._steps, levels, strict=True)))

    def learn(self, node: Node) -> None:
        """Add a row to the program if no node below holds; a finite cut gets a row when it excludes a node."""
        if node.cut == math.inf:
            self._add(node)
        if self.nodes.loss.steps is None:
            self._floors.append((node.levels, node.plain))

    def _add(self, node: Node) -> None:
        if any(cut >= node.cut and is_below(node.levels, levels) for levels, cut in self._rows):
            return
        self._rows = [row for row in self._rows if row[1] > node.cut or not is_below(row[0], node.levels)]
        self._rows.append((node.levels, node.cut))

    def run(self, steps: int | None, progress: Progress) -> None:
        """Search until the bound reaches the best loss, or a limit is reached."""
        cells = max(self.nodes.domain.codes.size, 1)
        until = len(self.nodes.evaluated) + (max(500, MAX_CELLS_EVALUATED // cells) if steps is None else steps)
        if self.best is None:
            self._climb(until, progress)
        last = self._rounds + MAX_ROUNDS if steps is None else math.inf
        while len(self.nodes.evaluated) < until and self._rounds < last and self._bound < self.limit - PROOF_TOLERANCE:
            self._rounds += 1
            progress(len(self.nodes.evaluated), until)
            proposed = self._propose()
            if proposed is None or self._bound >= self.limit - PROOF_TOLERANCE:
                break
            if not self._exclude_proposed(proposed):
                node = self.evaluate(proposed)
                self._add(node)
                self._marks |= {mark for mark in (node.cut, node.plain) if 0 < mark < math.inf}
                self._improve(node, until, progress)

    def _climb(self, until: int, progress: Progress) -> None:
        node = self.evaluate((0,) * len(self.heights))
        while not node.holds and node.levels != self.heights and len(self.nodes.evaluated) < until:
            progress(len(self.nodes.evaluated), until)
            above = [self.evaluate(levels) for levels in nodes_above(node.levels, self.heights)]
            # most outliers fewer for the loss
            gains = [(node.outliers - up.outliers) / max(up.plain - node.plain, 1e-12) for up in above]
            node = above[gains.index(max(gains))]
        if not node.holds:
            node = self.evaluate(self.heights)
        self._improve(node, until, progress)

    def _improve(self, node: Node, until: int, progress: Progress) -> None:
        while node.holds and len(self.nodes.evaluated) < until:
            progress(len(self.nodes.evaluated), until)
            near = [self.evaluate(levels) for levels in nodes_below(node.levels)]
            if all(other.loss >= node.loss for other in near):
                near += [
                    self.evaluate(levels) for up in nodes_above(node.levels, self.heights) for levels in nodes_below(up)
                ]
            best = min(near, key=lambda other: other.rank, default=node)
            if best.loss >= node.loss - PROOF_TOLERANCE:
                break
            node = best

    def _exclude_proposed(self, node: Levels) -> bool:
        if not self.nodes.cuts:
            return False
        if 0 < (needed := self.limit - self.floor(node)) < math.inf:
            self._marks.add(needed)  # the extra loss that excludes this node
        orders = [self._random.permutation(len(node)).tolist() for _ in range(ATTRIBUTE_ORDERS)]
        return sum(self.exclude_by_few(node, order) for order in orders) > 0  # no short circuit: each order adds cuts

    def _excludes(self, levels: Levels, node: Levels) -> bool:
        enough = super()._excludes(levels, node)
        if enough:
            self._add(self.nodes[levels])
        return enough

    def _propose(self) -> Levels | None:
        cover = SetCover(self.heights, self._steps, sorted(self._marks))
        for levels, cut in self._rows:
            cover.add_cut(levels, cut)
        for levels, plain in self._floors:
            cover.add_floor(levels, plain)
        proposed, bound = cover.solve()
        self._bound = max(self._bound, bound)
        return proposed
