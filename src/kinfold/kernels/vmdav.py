"""V-MDAV's groups from a box tree, some at a time.

See `kinfold.methods.partition.vmdav` for the algorithm.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kinfold.kernels import box_tree, clustering
from kinfold.kernels.box_tree import Tree
from kinfold.kernels.clustering import Run, surround, take
from kinfold.kernels.compiling import Floats, Int, Real, Rows, entry, inlined, inner
from kinfold.kernels.queries import find_nearest, locate, shrink_around
from kinfold.kernels.records import to_record


class GrowingGroup(NamedTuple):
    """The group that is being formed, and the order of seeds."""

    seeds: Rows  # (n,) records by distance from the centre of all, farthest first
    members: Rows  # (2k,)
    near: Floats  # (2k,) no remaining record is nearer to the member


def make_group(seeds: Rows, k: int) -> GrowingGroup:
    """Return room for a group."""
    return GrowingGroup(seeds, np.zeros(2 * k, np.int32), np.zeros(2 * k))


@inner
def _nearest_other(tree: Tree, run: Run, record: Int, excluded: Int) -> None:
    """Find the remaining record that is nearest to a record, unless the one found before is nearer."""
    request = run.query.request[0]
    to_record(run.m, run.query.place, record)
    request.excluded = excluded
    find_nearest(tree, run.folded, run.query, 0)


@inlined
def _extend(tree: Tree, run: Run, group: GrowingGroup, gamma: Real) -> None:
    """Add records that are nearer to the group than gamma times their distance to the rest."""
    state, request, nearest = run.state[0], run.query.request[0], run.query.nearest
    size = state.k
    group.near[:] = 0.0
    request.wanted = 1
    request.count = 0
    while size < 2 * state.k - 1 and state.records > 0:
        # The last record is a first guess; a member that cannot beat it is skipped, the others search no farther
        for i in range(size):
            if request.count == 0 or group.near[i] <= nearest[0].distance:
                _nearest_other(tree, run, group.members[i], -1)
                group.near[i] = nearest[0].distance
        record, inside = nearest[0].record, np.sqrt(nearest[0].distance)
        request.count = 0
        _nearest_other(tree, run, record, record)
        outside = nearest[0].distance if request.count == 1 else np.inf
        if not inside < gamma * np.sqrt(outside):
            return
        other = nearest[0].record
        locate(tree, run.folded, run.query, 0, record)
        take(tree, run, 1)
        shrink_around(tree, run.query, 1)
        group.members[size] = record
        group.near[size] = outside
        size += 1
        nearest[0].distance = outside  # the record nearest to the new member is the first guess for the next
        nearest[0].record = other


@entry(clustering.example_run(), box_tree.example_tree(), make_group(np.zeros(1, np.int32), 2), 1.0, 1)
def advance(run: Run, tree: Tree, group: GrowingGroup, gamma: Real, groups: Int) -> None:
    """Form at most this many groups, while at least k records are left and the tree is worth it."""
    state = run.state[0]
    for _ in range(groups):
        if state.records < state.k or state.points < state.enough:
            return
        while run.labels[group.seeds[state.passed]] >= 0:
            state.passed += 1
        surround(tree, run, group.seeds[state.passed])
        for i in range(state.k):
            group.members[i] = run.query.nearest[i].record
        take(tree, run, state.k)
        shrink_around(tree, run.query, state.k)
        if gamma > 0.0:
            _extend(tree, run, group, gamma)
        state.label += 1
