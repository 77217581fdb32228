"""Clusters of t-closeness-first from one box tree for each stratum, some at a time.

Paper, ties and readings: see `partition.t_first`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold.kernels import box_tree, clustering
from kinfold.kernels.box_tree import Tree, shrink
from kinfold.kernels.centroid import to_centre
from kinfold.kernels.clustering import Run, take
from kinfold.kernels.compiling import Int, entry, inlined
from kinfold.kernels.mixed import to_record
from kinfold.kernels.queries import farthest, nearest

if TYPE_CHECKING:
    from numpy.typing import NDArray


@inlined
def _form(tree: Tree, run: Run, left: NDArray[np.int64], to_come: Int) -> None:
    """Form the cluster around the place: the nearest record of each stratum, and one that is over."""
    query, asked = run.query, run.query.asked[0]
    asked.wanted = 1
    s, over = 0, True
    while s < left.size:
        asked.count = 0
        nearest(tree, run.folded, query, s)
        take(tree, run, 1)
        shrink(tree, np.int64(query.found[0].leaf), True, query.distance)
        left[s] -= 1
        if over and left[s] > to_come:
            over = False
        else:
            s += 1
    run.state[0].label += 1


@entry(clustering.example(), box_tree.example(), np.zeros(1, np.int64), 1)
def advance(run: Run, tree: Tree, left: NDArray[np.int64], many: Int) -> None:
    """Form at most so many clusters, while every stratum has records left (`left`) and the trees are worth it.

    A cluster takes one record from each stratum, and one more from the first that has more than clusters are to come.
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
        to_record(run.m, run.query.place, farthest(tree, run.query))
        _form(tree, run, left, to_come)
