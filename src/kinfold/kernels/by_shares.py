"""Clusters by shares from one box tree for each kind, some at a time.

Quotas, ties and cost: see `partition.by_shares`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kinfold.kernels import box_tree, clustering
from kinfold.kernels.box_tree import Tree
from kinfold.kernels.centroid import to_centre
from kinfold.kernels.clustering import Run, take
from kinfold.kernels.compiling import Int, entry, lean
from kinfold.kernels.mixed import to_record
from kinfold.kernels.queries import farthest, nearest, shrink_around

if TYPE_CHECKING:
    from numpy.typing import NDArray

TAKEN = -1.0  # instead of a distance


class Portions(NamedTuple):
    """How many records of each kind every cluster takes, and how many are over."""

    always: NDArray[np.int64]  # (kinds)
    over: NDArray[np.int64]  # (kinds) left to be taken, at most one by a cluster
    to_come: NDArray[np.int64]  # (1) clusters
    ahead: NDArray[np.float64]  # (kinds) how far the next record of a kind is


def example() -> Portions:
    """Return the smallest shares, to compile for."""
    return Portions(np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1))


@lean
def _take(tree: Tree, run: Run, v: Int, many: Int, ahead: Int) -> float:
    """Take so many records of kind v, the nearest; return how far the next one is, if it is asked for (ahead = 1)."""
    query, asked = run.query, run.query.asked[0]
    asked.count, asked.wanted = 0, many + ahead
    nearest(tree, run.folded, query, v)
    next_one = query.found[many].distance if ahead == 1 else 0.0
    take(tree, run, many)
    shrink_around(tree, query, many)
    return next_one


@lean
def _choose(shares: Portions) -> Int:
    """Return the kind that gives one of its records over: one that has to, else that of the nearest; -1 if none can."""
    found, least = -1, np.inf
    for v in range(shares.over.size):
        if shares.ahead[v] == TAKEN or shares.over[v] == 0:
            continue
        if shares.over[v] == shares.to_come[0]:
            return v
        if shares.ahead[v] < least:
            found, least = v, shares.ahead[v]
    return found


@lean
def _form(tree: Tree, run: Run, shares: Portions) -> None:
    """Form the cluster around the place."""
    slots = 0
    for v in range(shares.over.size):
        slots += shares.over[v]
    slots //= shares.to_come[0]
    for turn in range(2):  # one loop, so that the compiler meets the query once
        for t in range(slots if turn == 1 else shares.always.size):
            v = _choose(shares) if turn == 1 else t
            if turn == 1:
                shares.over[v] -= 1
            many = 1 if turn == 1 else shares.always[v]
            ahead = 1 if turn == 0 and shares.over[v] > 0 else 0
            shares.ahead[v] = _take(tree, run, v, many, ahead) if many + ahead > 0 else TAKEN
            if turn == 1:
                shares.ahead[v] = TAKEN
    shares.to_come[0] -= 1
    run.state[0].label += 1


@entry(clustering.example(), box_tree.example(), example(), 1)
def advance(run: Run, tree: Tree, shares: Portions, many: Int) -> None:
    """Form at most so many clusters, while some are to come and the trees are worth it."""
    state = run.state[0]
    for _ in range(many):
        if shares.to_come[0] == 0 or state.points < state.enough:
            return
        if state.label % 2 == 0:
            to_centre(state.records, run.m.scales, run.centroid, run.query.place)
        to_record(run.m, run.query.place, farthest(tree, run.query))
        _form(tree, run, shares)
