"""The set cover that proposes the next node of a large lattice (see `lattice_cuts`).

Columns, all 0 or 1: for each attribute and level above the ground whether it stands there or above; for each mark
whether the extra loss reaches it; for each mark whether the plain loss does (only where losses do not add up over
attributes). Solved by HiGHS, with a limit on its branches instead of a clock.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from kinfold.methods.generalize.domain import Floats, Levels

BRANCHES = 200  # of the solver; what it has by then is a bound all the same


class Cover:
    """Rows that each ask for at least one of their columns."""

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

    def below(self, levels: Levels, cut: float) -> None:
        """Nodes up to these levels cost `cut` more, or do not hold at all."""
        above = [self._column(a, level + 1) for a, level in enumerate(levels) if level < self._heights[a]]
        if math.isinf(cut):
            self._add(above, [], 1.0)
        elif (mark := self._mark(cut)) >= 0:
            self._add([*above, self._extra + mark], [], 1.0)

    def above(self, levels: Levels, plain: float) -> None:
        """Nodes from these levels on lose at least `plain`."""
        if (mark := self._mark(plain)) >= 0:
            reached = [self._column(a, level) for a, level in enumerate(levels) if level]
            self._add([self._plain + mark], reached, 1.0 - len(reached))

    def solved(self) -> tuple[Levels | None, float]:
        """Return the levels of the cheapest node that is left, None if none is, and a bound on all of them."""
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array

        if not len(self._cost):  # every hierarchy is its top alone: one node, which no row may exclude
            return (None, math.inf) if any(least > 0 for least in self._least) else (self._heights, self._base)
        rows = csr_array(np.array(self._rows).reshape(len(self._rows), len(self._cost)))
        result = milp(
            self._cost,
            integrality=np.ones(len(self._cost), np.int64),
            bounds=Bounds(0, 1),
            constraints=[LinearConstraint(rows, lb=np.array(self._least))] if self._rows else [],
            options={"node_limit": BRANCHES, "mip_rel_gap": 0.0},
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
