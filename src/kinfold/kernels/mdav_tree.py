"""MDAV's clusters from a tree of boxes, some at a time.

The hub moves to the centre once the searches from drifting centres have looked at as many nodes as moving it costs.
Paper, ties and cost: see `partition.mdav`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kinfold.kernels.boxes import Tree, measure, shrink, soil
from kinfold.kernels.compiled import Int, entry, part
from kinfold.kernels.crowd import to_centre, to_record
from kinfold.kernels.mdav_task import ENOUGH, FRESH, POINTS, RECORDS, SECOND, SEEN, Task, example, take
from kinfold.kernels.search import LEAF, farthest, nearest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CAP = 32  # points in a leaf


@part
def _move_hub(tree: Tree, task: Task) -> None:
    """Move the hub to the place and measure every box again, if the tree is fresh or that is due."""
    state = task.state
    if state[FRESH] == 1 or state[SEEN] >= tree.size.size:
        for j in range(tree.hub.size):
            tree.hub[j] = task.place.numbers[j]
        measure(tree)
        state[FRESH] = state[SEEN] = 0


@part
def _shrink_all(tree: Tree, found: NDArray[np.int64]) -> None:
    """Shrink the boxes of the leaves that lost records."""
    for i in range(found.shape[0]):
        if i == 0 or found[i, LEAF] != found[i - 1, LEAF]:
            shrink(tree, found[i, LEAF])


@entry(example(), soil(1, 1, 0, 8), 1)
def advance(task: Task, tree: Tree, clusters: Int) -> None:
    """Form at most so many clusters; stop before a pair when few records are left or enough points are gone."""
    crowd, scales, place, room, state = task.crowd, task.scales, task.place, task.room, task.state
    k = room.near.size
    for _ in range(clusters):
        second = state[SECOND] == 1
        if not second:
            if state[RECORDS] < 2 * k or state[POINTS] < state[ENOUGH]:
                return
            to_centre(state[RECORDS], scales, task.middle, place)
            _move_hub(tree, task)
        before = room.looked[0]
        record = farthest(tree, scales, place, room)
        if not second:  # only searches from a centre profit from a nearer hub
            state[SEEN] += room.looked[0] - before
        to_record(crowd, scales, place, record)
        nearest(tree, crowd, scales, place, room)
        take(tree, task)
        _shrink_all(tree, room.found)
        state[SECOND] = not second and state[RECORDS] >= 2 * k
