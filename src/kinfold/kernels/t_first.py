"""Clusters of t-closeness-first from one box tree for each stratum, or for each kind of record, some at a time.

Paper, ties and readings: see `partition.t_first`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kinfold.kernels import box_tree, clustering
from kinfold.kernels.box_tree import Tree, shrink
from kinfold.kernels.clustering import Run, take
from kinfold.kernels.compiling import Floats, Int, Ints, entry, inlined, lean
from kinfold.kernels.queries import find_farthest, find_nearest, shrink_around
from kinfold.kernels.records import to_centre, to_record


@inlined
def _form(tree: Tree, run: Run, left: Ints, to_come: Int) -> None:
    """Form the cluster around the place: the nearest record of each stratum, and an extra one."""
    query, request = run.query, run.query.request[0]
    request.wanted = 1
    s, over = 0, True
    while s < left.size:
        request.count = 0
        find_nearest(tree, run.folded, query, s)
        take(tree, run, 1)
        shrink(tree, np.int64(query.nearest[0].leaf), True, query.distance)
        left[s] -= 1
        if over and left[s] > to_come:
            over = False
        else:
            s += 1
    run.state[0].label += 1


@entry(clustering.example_run(), box_tree.example_tree(), np.zeros(1, np.int64), 1)
def advance(run: Run, tree: Tree, left: Ints, many: Int) -> None:
    """Form at most this many clusters, while every stratum has records (`left`) and the trees are worth it.

    A cluster takes one record from each stratum, and one more from the first with more records than clusters to come.
    """
    state = run.state[0]
    for _ in range(many):
        to_come = left[0] - 1
        for s in range(1, left.size):
            to_come = left[s] - 1 if left[s] - 1 < to_come else to_come
        if to_come < 0 or state.points < state.enough:
            return
        if state.label % 2 == 0:
            to_centre(state.records, run.m.scales, run.centroid, run.query.place)
        to_record(run.m, run.query.place, find_farthest(tree, run.query))
        _form(tree, run, left, to_come)


NO_DISTANCE = -1.0  # instead of a distance


class Portions(NamedTuple):
    """How many records of each kind every cluster takes, and how many remain."""

    always: Ints  # (kinds)
    over: Ints  # (kinds) remainder, at most one for a cluster
    to_come: Ints  # (1) clusters
    ahead: Floats  # (kinds) distance of the next record of a kind


@lean
def _take(tree: Tree, run: Run, v: Int, many: Int, ahead: Int) -> float:
    """Take the nearest records of kind v; return the distance of the next one, if wanted (ahead = 1)."""
    query, request = run.query, run.query.request[0]
    request.count, request.wanted = 0, many + ahead
    find_nearest(tree, run.folded, query, v)
    next_one = query.nearest[many].distance if ahead == 1 else 0.0
    take(tree, run, many)
    shrink_around(tree, query, many)
    return next_one


@lean
def _choose(shares: Portions) -> Int:
    """Return the kind that gives one of its remainder: one that has to, else that of the nearest record; -1 if none."""
    kind, least = -1, np.inf
    for v in range(shares.over.size):
        if shares.ahead[v] == NO_DISTANCE or shares.over[v] == 0:
            continue
        if shares.over[v] == shares.to_come[0]:
            return v
        if shares.ahead[v] < least:
            kind, least = v, shares.ahead[v]
    return kind


@lean
def _form_by_shares(tree: Tree, run: Run, shares: Portions) -> None:
    """Form the cluster around the place."""
    slots = 0
    for v in range(shares.over.size):
        slots += shares.over[v]
    slots //= shares.to_come[0]
    for turn in range(2):  # one loop, so that the query is compiled once
        for t in range(slots if turn == 1 else shares.always.size):
            v = _choose(shares) if turn == 1 else t
            if turn == 1:
                shares.over[v] -= 1
            many = 1 if turn == 1 else shares.always[v]
            ahead = 1 if turn == 0 and shares.over[v] > 0 else 0
            shares.ahead[v] = _take(tree, run, v, many, ahead) if many + ahead > 0 else NO_DISTANCE
            if turn == 1:
                shares.ahead[v] = NO_DISTANCE
    shares.to_come[0] -= 1
    run.state[0].label += 1


_ONE = np.zeros(1, np.int64)


@entry(clustering.example_run(), box_tree.example_tree(), Portions(_ONE, _ONE, _ONE, np.zeros(1)), 1)
def advance_by_shares(run: Run, tree: Tree, shares: Portions, many: Int) -> None:
    """Form at most this many clusters, while some are to come and the trees are worth it."""
    state = run.state[0]
    for _ in range(many):
        if shares.to_come[0] == 0 or state.points < state.enough:
            return
        if state.label % 2 == 0:
            to_centre(state.records, run.m.scales, run.centroid, run.query.place)
        to_record(run.m, run.query.place, find_farthest(tree, run.query))
        _form_by_shares(tree, run, shares)
