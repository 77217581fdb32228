"""MDAV's clusters, some at a time: from a box tree, or by a scan of every point.

`advance` queries the tree. The first hub moves to the centre once the queries from drifting centres have visited as
many nodes as moving it costs.

`advance_flat` visits every point: for many attributes, where boxes exclude little. Points lie in leaves of 256,
attribute by attribute, so that the distances of a leaf are computed in vectors. One pass finds both the nearest of r
and the record farthest from it.

Paper, ties and cost: see `partition.mdav`.
"""

from __future__ import annotations

import numpy as np

from kinfold.kernels import box_tree, clustering
from kinfold.kernels.box_tree import NO_RECORD, Tree, measure_all
from kinfold.kernels.clustering import Run, surround, take
from kinfold.kernels.compiling import Flag, Int, entry, inner
from kinfold.kernels.queries import (
    collect_nearest,
    distances,
    find_farthest,
    locate,
    shrink_around,
    update_farthest,
)
from kinfold.kernels.records import to_centre, to_record

FLAT_LEAF = 256  # points in a leaf of a scan: its distances stay in the nearest cache
_MANY_POINTS = 200_000  # with more, smaller leaves are faster (by trial, 8 attributes)
_NO, _YES = np.bool_(False), np.bool_(True)  # typed: with False and True the pass would be compiled twice


def choose_leaf(points: int) -> int:
    """Return how many points a leaf of a tree of this many points holds at most; it holds at least half as many."""
    return 100 if points < _MANY_POINTS else 56


@entry(clustering.example_run(), box_tree.example_tree(), 1)
def advance(run: Run, tree: Tree, clusters: Int) -> None:
    """Form at most this many clusters; stop before a pair if few records are left or a new tree is worth growing."""
    query, state = run.query, run.state[0]
    request = query.request[0]
    for _ in range(clusters):
        second = state.second == 1
        if not second:
            if state.records < 2 * state.k or state.points < state.enough:
                return
            to_centre(state.records, run.m.scales, run.centroid, query.place)
            if state.drift >= 2 * tree.size.size:
                for j in range(tree.hub.shape[1]):
                    tree.hub[0, j] = query.place.numbers[j]
                measure_all(tree, query.distance)
                state.drift = 0
        before = request.visited
        seed = find_farthest(tree, query)
        if not second:  # only queries from a centre gain by a nearer hub
            state.drift += request.visited - before
        surround(tree, run, seed)
        take(tree, run, state.k)
        shrink_around(tree, query, state.k)
        state.label += 1
        state.second = not second and state.records >= state.pairs


@inner
def _scan(tree: Tree, run: Run, want_nearest: Flag, want_farthest: Flag) -> Int:
    """Visit every point: find the nearest, return the farthest record, or both.

    Returns -1 if the farthest is as near as the last of the nearest, because it may be one of them.
    """
    query = run.query
    wanted = query.request[0].wanted
    count, best, farthest = np.int64(0), -1.0, NO_RECORD
    for leaf in range(tree.size.size):
        distances(tree, leaf, query.place, query.distance)
        if want_nearest:
            count = collect_nearest(tree, run.folded, leaf, query, count)
        if want_farthest:
            best, farthest = update_farthest(tree, leaf, query, best, farthest)
    return -1 if want_nearest and best <= query.nearest[wanted - 1].distance else np.int64(farthest)


@entry(clustering.example_run(), box_tree.example_tree(), 1)
def advance_flat(run: Run, tree: Tree, clusters: Int) -> None:
    """Form the same clusters as `advance` by scans."""
    query, state = run.query, run.state[0]
    request = query.request[0]
    request.wanted = state.k - state.own
    for _ in range(clusters):
        second = state.second == 1
        seed = state.seed
        if not second:
            if state.records < 2 * state.k or state.points < state.enough:
                return
            to_centre(state.records, run.m.scales, run.centroid, query.place)
        if not second or seed < 0:
            seed = _scan(tree, run, _NO, _YES)
        to_record(run.m, query.place, seed)
        request.excluded = seed if state.own == 1 else -1
        state.seed = _scan(tree, run, _YES, not second)
        if state.own == 1:
            locate(tree, run.folded, query, state.k - 1, seed)
        take(tree, run, state.k)
        state.label += 1
        state.second = not second and state.records >= state.pairs
