"""MDAV's clusters from a box tree, some at a time.

The hub moves to the centre once the queries from drifting centres have visited as many nodes as moving it costs. Paper,
ties and cost: see `partition.mdav`.
"""

from __future__ import annotations

from kinfold.kernels import box_tree, clustering
from kinfold.kernels.box_tree import Tree, measure_all
from kinfold.kernels.clustering import Run, surround, take
from kinfold.kernels.compiling import Int, entry
from kinfold.kernels.exact_sums import to_centre
from kinfold.kernels.queries import find_farthest, shrink_around

_MANY_POINTS = 200_000  # with more, smaller leaves are faster (by trial, 8 attributes)


def cap(points: int) -> int:
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
                for j in range(tree.hub.size):
                    tree.hub[j] = query.place.numbers[j]
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
