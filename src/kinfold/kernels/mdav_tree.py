"""MDAV's clusters from a box tree, some at a time.

The hub moves to the centre once the queries from drifting centres have looked at as many nodes as moving it costs.
Paper, ties and cost: see `partition.mdav`.
"""

from __future__ import annotations

from kinfold.kernels import box_tree, clustering
from kinfold.kernels.box_tree import Tree, measure_all
from kinfold.kernels.centroid import to_centre
from kinfold.kernels.clustering import Run, surround, take
from kinfold.kernels.compiling import Int, entry, inlined, lean
from kinfold.kernels.queries import farthest, shrink_around

_MANY = 200_000  # points; beyond, smaller leaves are faster (by trial, 8 attributes)


def cap(points: int) -> int:
    """How many points a leaf of a tree of so many holds at most; at least half as many."""
    return 100 if points < _MANY else 56


@lean
def _move_hub(tree: Tree, run: Run) -> None:
    """Move the hub to the place and measure every box again, if that is due."""
    state = run.state[0]
    if state.drift >= 2 * tree.size.size:
        for j in range(tree.hub.size):
            tree.hub[j] = run.query.place.numbers[j]
        measure_all(tree, run.query.distance)
        state.drift = 0


@inlined
def _form(tree: Tree, run: Run, seed: Int) -> None:
    """Form a cluster around this record."""
    k = run.state[0].k
    surround(tree, run, seed)
    take(tree, run, k)
    shrink_around(tree, run.query, k)
    run.state[0].label += 1


@entry(clustering.example(), box_tree.example(), 1)
def advance(run: Run, tree: Tree, clusters: Int) -> None:
    """Form at most so many clusters; stop before a pair when few records are left or enough points are gone."""
    query, state = run.query, run.state[0]
    asked = query.asked[0]
    for _ in range(clusters):
        second = state.second == 1
        if not second:
            if state.records < 2 * state.k or state.points < state.enough:
                return
            to_centre(state.records, run.m.scales, run.centroid, query.place)
            _move_hub(tree, run)
        before = asked.looked
        seed = farthest(tree, query)
        if not second:  # only queries from a centre profit from a nearer hub
            state.drift += asked.looked - before
        _form(tree, run, seed)
        state.second = not second and state.records >= state.pairs
