"""The loop of V-MDAV over a tree of what is left: a bounded number of groups at a time.

See `kinfold.methods.partition.vmdav` for the algorithm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import float64, int32, int64, njit, types, void

from kinfold.kernels.space import SPACE, Space
from kinfold.kernels.tree import FOUND, NOBODY, TREE, Found, Tree, nearest, remove

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Run(NamedTuple):
    """Where the run stands."""

    labels: NDArray[np.int32]  # -1: not yet in a group
    order: NDArray[np.int32]  # rows by distance from the centre of all, farthest first
    places: NDArray[np.int32]  # the tree's place of each row
    state: NDArray[np.int64]  # how far `order` is used up, groups formed, records left
    members: NDArray[np.int64]  # places of the group that is being formed
    near: NDArray[np.float64]  # no record left is nearer to the member than this
    around: Found  # room for k - 1 neighbours


RUN = types.NamedTuple((int32[::1], int32[::1], int32[::1], int64[::1], int64[::1], float64[::1], FOUND), Run)  # type: ignore[no-untyped-call]


@njit(inline="always")
def _join(tree: Tree, run: Run, size: int, place: int) -> int:
    """Put the lowest row of a place into the group and return the group's size."""
    run.labels[remove(tree, place)] = run.state[1]
    run.state[2] -= 1
    run.members[size] = place
    return size + 1


@njit(inline="always")
def _next(tree: Tree, space: Space, run: Run, size: int, best: Found) -> None:
    """Find the record left that is nearest to any of the group's members.

    `best` holds a first guess. `run.near` keeps what is known of each member: no record left is nearer to it. A member
    that cannot beat the best so far is not asked, the others search no farther than that.
    """
    for member in range(size):
        if run.near[member] <= best.distances[0]:
            nearest(tree, space, tree.values[run.members[member]], best, 1)
            run.near[member] = best.distances[0]


@njit(inline="always")
def _extend(tree: Tree, space: Space, run: Run, k: int, gamma: float) -> None:
    """Let records join that are nearer to the group than gamma times their distance to the rest."""
    best = Found(np.empty(1), np.empty(1, np.int64), np.empty(1, np.int64))
    pair = Found(np.empty(2), np.empty(2, np.int64), np.empty(2, np.int64))
    best.distances[0], best.rows[0], best.places[0] = np.inf, NOBODY, -1
    run.near[:] = 0.0
    size = k
    while size < 2 * k - 1 and run.state[2] > 0:
        _next(tree, space, run, size, best)
        # the two nearest of a record that is left are itself, at no distance, and its nearest other
        found = nearest(tree, space, tree.values[best.places[0]], pair, 0)
        outside = np.sqrt(pair.distances[0]) if found == 2 else np.inf
        if not np.sqrt(best.distances[0]) < gamma * outside:
            return
        other = 0 if found == 1 or pair.rows[0] != best.rows[0] else 1
        size = _join(tree, run, size, best.places[0])
        run.near[size - 1] = pair.distances[0] if found == 2 else np.inf
        best.distances[0], best.rows[0], best.places[0] = pair.distances[0], pair.rows[other], pair.places[other]


@njit(void(TREE, SPACE, RUN, int64, float64, int64), cache=True)
def form_groups(tree: Tree, space: Space, run: Run, k: int, gamma: float, groups: int) -> None:
    """Form at most `groups` more groups, while at least k records are left."""
    state = run.state
    for _ in range(groups):
        if state[2] < k:
            return
        while run.labels[run.order[state[0]]] >= 0:
            state[0] += 1
        seed = run.places[run.order[state[0]]]
        size = _join(tree, run, 0, seed)
        found = nearest(tree, space, tree.values[seed], run.around, 0)
        for at in range(found):
            size = _join(tree, run, size, run.around.places[at])
        if gamma > 0.0:
            _extend(tree, space, run, k, gamma)
        state[1] += 1
