"""The search of a lattice too large to write down: a small integer program proposes nodes, evaluated nodes cut it off.

    z[a, l] = 1 if attribute a stands at level l or above;  extra >= 0
    minimize what the levels lose + extra, under a row for each node Y evaluated:
        extra + cut(Y) · Σ_a z[a, Y_a + 1] >= cut(Y)      unless some attribute stands above Y, its cut applies
        Σ_a z[a, Y_a + 1] >= 1                            where nothing below Y holds

    start: climb from the bottom by the step that frees most records for what it loses, until the promises hold; then
    go down again while they still do
    repeat: solve; its value is a bound on every node; stop once it reaches the best loss found
            exclude the node it proposes by nodes above it, with several orders of attributes; else evaluate it

This is Benders' decomposition with the table as the subproblem (Hooker & Ottosson 2003); the program has as many
unknowns as there are levels in all, whatever the size of the lattice. It stops after a number of nodes (not seconds),
so that the same table gives the same answer; `bound` then says how far from the optimum the best can be.

Ties: as proposed; the result is within 1e-6 of the bound when proved.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from kinfold.generalize.domain import Floats, Levels
from kinfold.generalize.lattice_search import Search, lowered, raised
from kinfold.generalize.nodes import Node, Nodes
from kinfold.progress import Progress

CELLS = 5_000_000_000  # cells to look at before an answer is given with what was proved until then
PROVED = 1e-6
ORDERS = 4  # ways to look for a reason to exclude a node
BRANCHES = 20_000  # of the integer program, at most


class CutSearch(Search):
    """Cuts are rows of an integer program; its optimum is the next node and the bound."""

    def __init__(self, nodes: Nodes) -> None:
        super().__init__(nodes)
        self._bound = 0.0
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
        """Add a row to the program, unless it says nothing."""
        if node.cut > 0:
            self._rows.append((node.levels, node.cut))
        if self.nodes.loss.steps is None:
            self._floors.append((node.levels, node.plain))

    def run(self, steps: int | None, progress: Progress) -> None:
        """Search on until the bound meets the best, or enough was looked at."""
        cells = max(self.nodes.domain.codes.size, 1)
        until = len(self.nodes.seen) + (max(500, CELLS // cells) if steps is None else steps)
        if self.best is None:
            self._start(until, progress)
        while len(self.nodes.seen) < until and self._bound < self.limit - PROVED:
            progress(len(self.nodes.seen), until)
            proposed = self._propose()
            if proposed is None or self._bound >= self.limit - PROVED:
                break
            if not self._cut_off(proposed):
                self._improve(self.evaluate(proposed), until, progress)

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
            below = [self.evaluate(levels) for levels in lowered(node.levels)]
            best = min(below, key=lambda other: other.rank, default=node)
            if best.loss >= node.loss:
                break
            node = best

    def _cut_off(self, node: Levels) -> bool:
        if not self.nodes.cuts or self.nodes.allowed:
            return self.excluded(node)
        widths = [self.nodes.domain.widths[a][level] for a, level in enumerate(node)]
        order = sorted(range(len(node)), key=lambda a: -widths[a])
        turns = [order[turn * len(order) // ORDERS :] + order[: turn * len(order) // ORDERS] for turn in range(ORDERS)]
        return sum(self.excluded_by_few(node, turn) for turn in turns) > 0  # every turn is taken: each adds its cuts

    def _propose(self) -> Levels | None:
        solution, bound = _solved(self._program())
        self._bound = max(self._bound, bound)
        if solution is None:
            return None
        place, levels = 0, []
        for height in self.heights:
            levels.append(int(np.rint(solution[place : place + height]).sum()))
            place += height
        return tuple(levels)

    def _program(self) -> _Program:
        program = _Program(self.heights, self._steps)
        for levels, cut in self._rows:
            program.below(levels, cut)
        for levels, plain in self._floors:
            program.above(levels, plain)
        return program


def _worth(start: Node, node: Node) -> float:
    return (start.outliers - node.outliers) / max(node.plain - start.plain, 1e-12)


class _Program:
    """The integer program: a column for each level above the ground, then extra, then a floor for plain losses."""

    def __init__(self, heights: Levels, steps: tuple[Floats, ...]) -> None:
        self._start = np.concatenate([[0], np.cumsum(heights)]).astype(int)
        self._heights = heights
        self.columns = int(self._start[-1]) + 2
        self.cost = np.concatenate([*(np.diff(step) for step in steps), [1.0, 1.0]])
        self.base = float(sum(step[0] for step in steps))
        self.rows: list[Floats] = []
        self.least: list[float] = []
        for a, height in enumerate(heights):
            for level in range(1, height):
                row = np.zeros(self.columns)
                row[self._column(a, level)], row[self._column(a, level + 1)] = 1.0, -1.0
                self._add(row, 0.0)

    def below(self, levels: Levels, cut: float) -> None:
        """Nodes up to these levels cost `cut` more, or do not hold at all."""
        row = np.zeros(self.columns)
        scale = 1.0 if math.isinf(cut) else cut
        for a, level in enumerate(levels):
            if level < self._heights[a]:
                row[self._column(a, level + 1)] = scale
        row[-2] = 0.0 if math.isinf(cut) else 1.0
        self._add(row, scale)

    def above(self, levels: Levels, plain: float) -> None:
        """Nodes from these levels on lose at least `plain`."""
        row = np.zeros(self.columns)
        raised_to = [self._column(a, level) for a, level in enumerate(levels) if level]
        row[raised_to], row[-1] = -plain, 1.0
        self._add(row, plain * (1 - len(raised_to)))

    def _column(self, attribute: int, level: int) -> int:
        return int(self._start[attribute]) + level - 1

    def _add(self, row: Floats, least: float) -> None:
        self.rows.append(row)
        self.least.append(least)


def _solved(program: _Program) -> tuple[NDArray[np.float64] | None, float]:
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    whole = np.ones(program.columns, np.int64)
    whole[-2:] = 0
    upper = np.where(whole == 1, 1.0, np.inf)
    result = milp(
        program.cost,
        integrality=whole,
        bounds=Bounds(np.zeros(program.columns), upper),
        constraints=LinearConstraint(csr_array(np.array(program.rows)), lb=np.array(program.least)),
        options={"node_limit": BRANCHES, "mip_rel_gap": 0.0},
    )
    if result.status == 2:  # no node is left
        return None, math.inf
    bound = result.mip_dual_bound
    return result.x, program.base + float(bound if bound is not None else 0.0)
