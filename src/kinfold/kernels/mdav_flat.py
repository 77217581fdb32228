"""MDAV's clusters by looking at every point: the plain algorithm, made tight.

For few points or many attributes, where boxes bound nothing, and what the tree is measured against. Points lie in
leaves of 256, attribute by attribute, so that a leaf's distances are computed in vectors; one pass finds both the
nearest of r and the record farthest from it. Paper, ties and cost: see `partition.mdav`.
"""

from __future__ import annotations

import numpy as np

from kinfold.kernels import box_tree, clustering
from kinfold.kernels.box_tree import NOBODY, Tree
from kinfold.kernels.centroid import to_centre
from kinfold.kernels.clustering import Run, take
from kinfold.kernels.compiling import Flag, Int, entry, inner
from kinfold.kernels.mixed import to_record
from kinfold.kernels.queries import distances, find, gather, look

_NO, _YES = np.bool_(False), np.bool_(True)  # of a type: for False and True the pass would be compiled twice


def cap(_points: int) -> int:
    """How many points a leaf holds: its distances stay in the nearest cache."""
    return 256


@inner
def _pass(tree: Tree, run: Run, near: Flag, far: Flag) -> Int:
    """Look at every point: find the nearest, return the farthest record, or both.

    Where the farthest is as near as the last of the nearest it may be one of them: then -1 is returned.
    """
    query = run.query
    wanted = query.asked[0].wanted
    count, best, found = np.int64(0), -1.0, NOBODY
    for leaf in range(tree.size.size):
        distances(tree, leaf, query.place, query.distance)
        if near:
            count = gather(tree, run.folded, leaf, query, count)
        if far:
            best, found = look(tree, leaf, query, best, found)
    return -1 if near and best <= query.found[wanted - 1].distance else np.int64(found)


@entry(clustering.example(), box_tree.example(), 1)
def advance(run: Run, tree: Tree, clusters: Int) -> None:
    """Form at most so many clusters; stop before a pair when few records are left or enough points are gone."""
    query, state = run.query, run.state[0]
    asked = query.asked[0]
    asked.wanted = state.k - state.own
    for _ in range(clusters):
        second = state.second == 1
        seed = state.seed
        if not second:
            if state.records < 2 * state.k or state.points < state.enough:
                return
            to_centre(state.records, run.m.scales, run.centroid, query.place)
        if not second or seed < 0:
            seed = _pass(tree, run, _NO, _YES)
        to_record(run.m, query.place, seed)
        asked.besides = seed if state.own == 1 else -1
        state.seed = _pass(tree, run, _YES, not second)
        if state.own == 1:
            find(tree, run.folded, query, state.k - 1, seed)
        take(tree, run, state.k)
        state.label += 1
        state.second = not second and state.records >= state.pairs
