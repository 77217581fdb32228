"""Statements: the hierarchies of all attributes as one array of nodes, and what it costs to say two things at once.

A node covers the leaves `low` to `high` of its attribute; nodes of one attribute are nested or apart, so the lowest
common ancestor of two is found by climbing from one until it covers the other. `lost` is what a cell loses that
releases the node, weights included. A statement is a node for each attribute; the cost of a class is its size times
what its statement loses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kinfold.kernels.compiling import entry, inner

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Nodes = NDArray[np.int32]


class Forest(NamedTuple):
    """Nodes of all attributes, one after the other."""

    low: Nodes
    high: Nodes
    parent: Nodes  # the top is its own parent
    lost: NDArray[np.float64]


def example() -> Forest:
    """Return the smallest forest, to compile for."""
    nodes = np.zeros(1, np.int32)
    return Forest(nodes, nodes, nodes, np.zeros(1))


@inner
def covering(f: Forest, a: int, b: int) -> int:
    """Return the lowest node above `a` (or itself) that covers `b`."""
    while f.low[a] > f.low[b] or f.high[a] < f.high[b]:
        a = f.parent[a]
    return a


@inner
def said(f: Forest, statement: Nodes) -> float:
    """What a record loses that is released with this statement."""
    lost = 0.0
    for a in range(statement.size):
        lost += f.lost[statement[a]]
    return lost


@inner
def joined(f: Forest, one: Nodes, other: Nodes) -> float:
    """What a record loses under the statement that covers both."""
    lost = 0.0
    for a in range(one.size):
        lost += f.lost[covering(f, one[a], other[a])]
    return lost


@entry(example(), np.zeros(1, np.int32), np.zeros(1, np.int32))
def widen(f: Forest, one: Nodes, other: Nodes) -> None:
    """Make the first statement cover the other as well."""
    for a in range(one.size):
        one[a] = covering(f, one[a], other[a])
