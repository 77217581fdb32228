"""The search of a lattice too large to write down: a small integer program proposes nodes, evaluated nodes cut it off.

    z[a, l] = 1 if attribute a stands at level l or above
    extra   = a sum of steps v[1], v[2], ... up to fixed marks, the sizes of the cuts of nodes once proposed
    minimize what the levels lose + extra, with a row for each node Y evaluated:
        v[the last mark up to cut(Y)] + Σ_a z[a, Y_a + 1] >= 1     its cut applies, or an attribute stands above Y
        Σ_a z[a, Y_a + 1] >= 1                                     where nothing below Y holds

    start: climb from the bottom by the step that frees most records for what it loses, until the promises hold; then
    go down again while they still do
    repeat: solve; its value is a bound on every node; stop once it reaches the best loss found
            exclude the node it proposes by nodes above it, in many orders of attributes; else evaluate it

All unknowns are 0 or 1 and all rows ask for one of them: a set cover, with as many unknowns as there are levels in
all, whatever the size of the lattice. Rounding cuts down to marks keeps the bound true. This is Benders' decomposition
with the table as the subproblem (Hooker & Ottosson 2003). It stops after a number of nodes (not seconds), so that the
same table and seed give the same answer; `bound` then says how far from the optimum the best can be.

Ties: as proposed; a result is proved to within 1e-6.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from kinfold.methods.generalize.cover import Cover
from kinfold.methods.generalize.domain import Floats, Levels
from kinfold.methods.generalize.lattice_search import LatticeSearch, lowered, raised
from kinfold.methods.generalize.loss import is_below
from kinfold.methods.generalize.nodes import Node, Nodes
from kinfold.progress import Progress

CELLS = 10_000_000_000  # cells to look at before an answer is given with what was proved until then
PROVED = 1e-6  # a share of the loss: what the solver may be off by
ROUNDS = 24  # programs to solve before the same
ORDERS = 40  # ways to look for a reason to exclude a node


class CutSearch(LatticeSearch):
    """Cuts are rows of an integer program; its optimum is the next node and the bound."""

    def __init__(self, nodes: Nodes, seed: int = 0) -> None:
        super().__init__(nodes)
        self._bound = 0.0
        self._rounds = 0
        self._marks: set[float] = set()
        self._random = np.random.default_rng(seed)
        self._rows: list[tuple[Levels, float]] = []
        self._floors: list[tuple[Levels, float]] = []
        # What each step up adds; nothing is known of it where losses do not add up over attributes
        steps = nodes.loss.steps or tuple(np.zeros(height + 1) for height in self.heights)
        self._steps: tuple[Floats, ...] = tuple(steps)

    @property
    def bound(self) -> float:
        """The best bound proved so far."""
        return self._bound

    def floor(self, levels: Levels) -> float:
        """What the node loses at least, before anything is suppressed."""
        return float(sum(step[level] for step, level in zip(self._steps, levels, strict=True)))

    def learn(self, node: Node) -> None:
        """Add a row to the program if nothing below holds; finite cuts get theirs when they exclude something."""
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
        """Search on until the bound meets the best, or enough was looked at."""
        cells = max(self.nodes.domain.codes.size, 1)
        until = len(self.nodes.seen) + (max(500, CELLS // cells) if steps is None else steps)
        if self.best is None:
            self._start(until, progress)
        last = self._rounds + ROUNDS if steps is None else math.inf
        while len(self.nodes.seen) < until and self._rounds < last and self._bound < self.limit - PROVED:
            self._rounds += 1
            progress(len(self.nodes.seen), until)
            proposed = self._propose()
            if proposed is None or self._bound >= self.limit - PROVED:
                break
            if not self._cut_off(proposed):
                node = self.evaluate(proposed)
                self._add(node)
                self._marks |= {mark for mark in (node.cut, node.plain) if 0 < mark < math.inf}
                self._improve(node, until, progress)

    def _start(self, until: int, progress: Progress) -> None:
        node = self.evaluate((0,) * len(self.heights))
        while not node.holds and node.levels != self.heights and len(self.nodes.seen) < until:
            progress(len(self.nodes.seen), until)
            above = [self.evaluate(levels) for levels in raised(node.levels, self.heights)]
            node = max(above, key=partial(_worth, node))
        if not node.holds:
            node = self.evaluate(self.heights)
        self._improve(node, until, progress)

    def _improve(self, node: Node, until: int, progress: Progress) -> None:
        while node.holds and len(self.nodes.seen) < until:
            progress(len(self.nodes.seen), until)
            near = [self.evaluate(levels) for levels in lowered(node.levels)]
            if all(other.loss >= node.loss for other in near):
                near += [self.evaluate(levels) for up in raised(node.levels, self.heights) for levels in lowered(up)]
            best = min(near, key=lambda other: other.rank, default=node)
            if best.loss >= node.loss - PROVED:
                break
            node = best

    def _cut_off(self, node: Levels) -> bool:
        if not self.nodes.cuts:
            return False
        if 0 < (needed := self.limit - self.floor(node)) < math.inf:
            self._marks.add(needed)  # as much extra as it takes to exclude this node
        orders = [self._random.permutation(len(node)).tolist() for _ in range(ORDERS)]
        return sum(self.excluded_by_few(node, order) for order in orders) > 0  # all are tried: each adds its cuts

    def _excludes(self, levels: Levels, node: Levels) -> bool:
        enough = super()._excludes(levels, node)
        if enough:
            self._add(self.nodes[levels])
        return enough

    def _propose(self) -> Levels | None:
        cover = Cover(self.heights, self._steps, sorted(self._marks))
        for levels, cut in self._rows:
            cover.below(levels, cut)
        for levels, plain in self._floors:
            cover.above(levels, plain)
        proposed, bound = cover.solved()
        self._bound = max(self._bound, bound)
        return proposed


def _worth(start: Node, node: Node) -> float:
    return (start.outliers - node.outliers) / max(node.plain - start.plain, 1e-12)
