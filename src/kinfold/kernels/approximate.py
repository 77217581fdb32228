"""The loop of Algorithm 2 of Sun et al. over a tree of what is left: a bounded number of rounds at a time.

See `methods.partition.approximate` for the algorithm. The sums of the numbers are exact and the codes are counted, so
that the centre of what is left is the same to the bit as one taken afresh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import float64, int32, int64, njit, types, void

from kinfold.kernels.compiling import inner
from kinfold.kernels.space import SPACE, Space
from kinfold.kernels.sums import add, rounded
from kinfold.kernels.tree import FOUND, TREE, Found, Tree, farthest, nearest, remove

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Run(NamedTuple):
    """Where the run stands."""

    labels: NDArray[np.int32]  # -1: not yet in a group
    sums: NDArray[np.float64]  # exact sum of each number over what is left
    used: NDArray[np.int64]
    counts: NDArray[np.int64]  # how many of each code are left, as the rows of `space.paths`
    state: NDArray[np.int64]  # groups formed, records left
    around: Found  # room for k - 1 neighbours


RUN = types.NamedTuple((int32[::1], float64[:, ::1], int64[::1], int64[::1], int64[::1], FOUND), Run)  # type: ignore[no-untyped-call]


@njit(void(TREE, SPACE, RUN), cache=True)
def begin(tree: Tree, space: Space, run: Run) -> None:
    """Sum the numbers and count the codes of all records."""
    for place in range(tree.values.shape[0]):
        times = tree.stop[place] - tree.next[place]
        for column in range(space.numbers):
            for _ in range(times):
                run.used[column] = add(run.sums[column], run.used[column], tree.values[place, column])
        for scale in range(space.sizes.shape[0]):
            code = int(tree.values[place, space.numbers + scale])
            run.counts[space.first[scale] + code] += times


@njit(inline="always")
def _middle(counts: NDArray[np.int64], left: int) -> int:
    """Return the lower median of the codes counted."""
    below = 0
    for code in range(counts.shape[0]):
        below += counts[code]
        if 2 * below >= left:
            return code
    return 0


@njit(inline="always")
def _commonest(counts: NDArray[np.int64]) -> int:
    """Return the most frequent code; the lowest wins a tie."""
    best = 0
    for code in range(1, counts.shape[0]):
        if counts[code] > counts[best]:
            best = code
    return best


@njit(inline="always")
def _centre(space: Space, run: Run, centre: NDArray[np.float64]) -> None:
    """Write the centre of what is left."""
    for column in range(space.numbers):
        centre[column] = rounded(run.sums[column], run.used[column]) / run.state[1]
    for scale in range(space.sizes.shape[0]):
        counts = run.counts[space.first[scale] : space.first[scale + 1]]
        code = _middle(counts, run.state[1]) if space.sizes[scale] > 0 else _commonest(counts)
        centre[space.numbers + scale] = code


@njit(inline="always")
def _join(tree: Tree, space: Space, run: Run, place: int) -> None:
    """Put the lowest row of a place into the group that is being formed."""
    run.labels[remove(tree, place)] = run.state[0]
    run.state[1] -= 1
    for column in range(space.numbers):
        run.used[column] = add(run.sums[column], run.used[column], -tree.values[place, column])
    for scale in range(space.sizes.shape[0]):
        code = int(tree.values[place, space.numbers + scale])
        run.counts[space.first[scale] + code] -= 1


@inner
def _form(tree: Tree, space: Space, run: Run, seed: int) -> None:
    """Form a group of a record and its nearest."""
    _join(tree, space, run, seed)
    found = nearest(tree, space, tree.values[seed], run.around, 0)
    for at in range(found):
        _join(tree, space, run, run.around.places[at])
    run.state[0] += 1


@njit(void(TREE, SPACE, RUN, int64, int64), cache=True)
def form_pairs(tree: Tree, space: Space, run: Run, k: int, rounds: int) -> None:
    """Form two groups in each of at most `rounds` rounds, while at least 2k records are left."""
    centre = np.empty(tree.values.shape[1])
    for _ in range(rounds):
        if run.state[1] < 2 * k:
            return
        _centre(space, run, centre)
        one = farthest(tree, space, centre)
        _form(tree, space, run, one)
        _form(tree, space, run, farthest(tree, space, tree.values[one]))
