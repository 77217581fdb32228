"""V-MDAV's groups from a box tree, some at a time.

See `kinfold.methods.partition.vmdav` for the algorithm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kinfold.kernels import box_tree, clustering
from kinfold.kernels.box_tree import Tree
from kinfold.kernels.clustering import Run, surround, take
from kinfold.kernels.compiling import Int, Real, entry, inlined, inner
from kinfold.kernels.mixed import to_record
from kinfold.kernels.queries import find, nearest, shrink_around

if TYPE_CHECKING:
    from numpy.typing import NDArray


class GrowingGroup(NamedTuple):
    """The group that is being formed, and the order of seeds."""

    seeds: NDArray[np.int32]  # (n,) records by distance from the centre of all, farthest first
    members: NDArray[np.int32]  # (2k,)
    near: NDArray[np.float64]  # (2k,) no record left is nearer to the member than this


def group_of(seeds: NDArray[np.int32], k: int) -> GrowingGroup:
    """Return room for a group."""
    return GrowingGroup(seeds, np.zeros(2 * k, np.int32), np.zeros(2 * k))


@inner
def _nearest_other(tree: Tree, run: Run, record: Int, besides: Int) -> None:
    """Find the record left that is nearest to a record, unless what was found before is nearer."""
    asked = run.query.asked[0]
    to_record(run.m, run.query.place, record)
    asked.besides = besides
    nearest(tree, run.folded, run.query, 0)


@inlined
def _nearest_to_group(tree: Tree, run: Run, group: GrowingGroup, size: Int) -> None:
    """Find the record left that is nearest to any of the group's members.

    What was found before is a first guess. A member that cannot beat the best so far is not asked, the others look no
    farther than that.
    """
    for i in range(size):
        if run.query.asked[0].count == 0 or group.near[i] <= run.query.found[0].distance:
            _nearest_other(tree, run, group.members[i], -1)
            group.near[i] = run.query.found[0].distance


@inlined
def _extend(tree: Tree, run: Run, group: GrowingGroup, gamma: Real) -> None:
    """Let records join that are nearer to the group than gamma times their distance to the rest."""
    state, asked, found = run.state[0], run.query.asked[0], run.query.found
    size = state.k
    group.near[:] = 0.0
    asked.wanted = 1
    asked.count = 0
    while size < 2 * state.k - 1 and state.records > 0:
        _nearest_to_group(tree, run, group, size)
        record, inside = found[0].record, np.sqrt(found[0].distance)
        asked.count = 0
        _nearest_other(tree, run, record, record)
        outside = found[0].distance if asked.count == 1 else np.inf
        if not inside < gamma * np.sqrt(outside):
            return
        other = found[0].record
        find(tree, run.folded, run.query, 0, record)
        take(tree, run, 1)
        shrink_around(tree, run.query, 1)
        group.members[size] = record
        group.near[size] = outside
        size += 1
        found[0].distance = outside  # the nearest of the newcomer is the first guess at who is next
        found[0].record = other


@entry(clustering.example(), box_tree.example(), group_of(np.zeros(1, np.int32), 2), 1.0, 1)
def advance(run: Run, tree: Tree, group: GrowingGroup, gamma: Real, groups: Int) -> None:
    """Form at most so many groups, while at least k records are left and the tree is worth it."""
    state = run.state[0]
    for _ in range(groups):
        if state.records < state.k or state.points < state.enough:
            return
        while run.labels[group.seeds[state.passed]] >= 0:
            state.passed += 1
        surround(tree, run, group.seeds[state.passed])
        for i in range(state.k):
            group.members[i] = run.query.found[i].record
        take(tree, run, state.k)
        shrink_around(tree, run.query, state.k)
        if gamma > 0.0:
            _extend(tree, run, group, gamma)
        state.label += 1
