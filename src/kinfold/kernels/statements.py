"""Statements: the hierarchies of all attributes as one array of nodes, and what it costs to say two things at once.

A node covers the leaves `low` to `high` of its attribute; nodes of one attribute are nested or apart, so the lowest
common ancestor of two is found by climbing from one until it covers the other. `lost` is what a cell loses that
releases the node, weights included. A statement is a node for each attribute; the cost of a class is its size times
what its statement loses.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np


class Forest(NamedTuple):
    """Nodes of all attributes, one after the other."""

    low: np.ndarray
    high: np.ndarray
    parent: np.ndarray  # the top is its own parent
    lost: np.ndarray


FOREST = numba.types.NamedTuple(  # type: ignore[no-untyped-call]
    [numba.int32[::1], numba.int32[::1], numba.int32[::1], numba.float64[::1]], Forest
)
_int = numba.int64
_float = numba.float64
STATEMENT = numba.int32[::1]
STATEMENTS = numba.int32[:, ::1]


@numba.njit(_int(FOREST, _int, _int), cache=True)
def covering(f: Forest, a: int, b: int) -> int:
    """Return the lowest node above `a` (or itself) that covers `b`."""
    while f.low[a] > f.low[b] or f.high[a] < f.high[b]:
        a = f.parent[a]
    return a


@numba.njit(_float(FOREST, STATEMENT), cache=True)
def said(f: Forest, statement: np.ndarray) -> float:
    """What a record loses that is released with this statement."""
    lost = 0.0
    for a in range(statement.size):
        lost += f.lost[statement[a]]
    return lost


@numba.njit(_float(FOREST, STATEMENT, STATEMENT), cache=True)
def joined(f: Forest, one: np.ndarray, other: np.ndarray) -> float:
    """What a record loses under the statement that covers both."""
    lost = 0.0
    for a in range(one.size):
        lost += f.lost[covering(f, one[a], other[a])]
    return lost


@numba.njit(numba.void(FOREST, STATEMENT, STATEMENT), cache=True)
def widen(f: Forest, one: np.ndarray, other: np.ndarray) -> None:
    """Make the first statement cover the other as well."""
    for a in range(one.size):
        one[a] = covering(f, one[a], other[a])
