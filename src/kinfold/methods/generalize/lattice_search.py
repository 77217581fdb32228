"""What both searches of a lattice share: the best node, and how to show that a node cannot be better.

A node X is excluded once a node Y above it has a cut so large that floor(X) + cut(Y) is above the best loss: the
higher Y, the more other nodes it excludes as well.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from kinfold.methods.generalize.domain import Levels
from kinfold.methods.generalize.nodes import TOLERANCE, Node, Nodes
from kinfold.progress import Progress


class LatticeSearch(ABC):
    """The state of a search: what was evaluated, the best node, and a bound on all others."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self.heights = nodes.domain.heights
        self.best: Node | None = None
        self._learned: set[Levels] = set()

    @property
    @abstractmethod
    def bound(self) -> float:
        """The least loss that a node not evaluated can have."""

    @abstractmethod
    def floor(self, levels: Levels) -> float:
        """What the node loses at least, before anything is suppressed."""

    @abstractmethod
    def learn(self, node: Node) -> None:
        """Take in what the node says about others."""

    @abstractmethod
    def run(self, steps: int | None, progress: Progress) -> None:
        """Search on until nothing can be better, or `steps` nodes were evaluated."""

    @property
    def limit(self) -> float:
        """A node that loses more than this is of no use."""
        return (self.best.loss if self.best else math.inf) + TOLERANCE

    def evaluate(self, levels: Levels) -> Node:
        """Return the node, after learning from it."""
        node = self.nodes[levels]
        if levels not in self._learned:
            self._learned.add(levels)
            if node.holds and (self.best is None or better(node, self.best)):
                self.best = node
            self.learn(node)
        return node

    def excluded(self, node: Levels) -> bool:
        """Look for a node above that excludes this one, as high as possible."""
        if not self.nodes.cuts:
            return False
        if self.nodes.allowed == 0:
            order = sorted(range(len(node)), key=lambda a: -self.nodes.domain.widths[a][node[a]])
            return self.excluded_by_few(node, order)
        return self.excluded_by_chain(node)

    def excluded_by_few(self, node: Levels, order: Sequence[int]) -> bool:
        """Start at the top, lower one attribute after the other until that is enough; then raise each again."""
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

    def excluded_by_chain(self, node: Levels) -> bool:
        """Halve the way to the top that loses least at each step."""
        chain = [node]
        while chain[-1] != self.heights:
            chain.append(min(raised(chain[-1], self.heights), key=self.floor))
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


def better(node: Node, best: Node) -> bool:
    """Whether the node loses less; or as much, with a higher Prec; or the same, and comes first."""
    if abs(node.loss - best.loss) > TOLERANCE:
        return node.loss < best.loss
    return node.levels < best.levels if abs(node.prec - best.prec) <= TOLERANCE else node.prec > best.prec


def as_levels(place: Iterable[np.integer]) -> Levels:
    """Return a place in an array as levels."""
    return tuple(int(level) for level in place)


def raised(levels: Levels, heights: Levels) -> Iterator[Levels]:
    """The nodes one step above, the first attribute first."""
    for a, level in enumerate(levels):
        if level < heights[a]:
            yield (*levels[:a], level + 1, *levels[a + 1 :])


def lowered(levels: Levels) -> Iterator[Levels]:
    """The nodes one step below, the first attribute first."""
    for a, level in enumerate(levels):
        if level:
            yield (*levels[:a], level - 1, *levels[a + 1 :])
