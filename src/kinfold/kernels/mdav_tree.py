"""MDAV's clusters from a tree of boxes, some at a time.

The hub moves to the centre once the searches from drifting centres have looked at as many nodes as moving it costs.
Paper, ties and cost: see `partition.mdav`.
"""

from __future__ import annotations

from kinfold.kernels.boxes import Tree, shrink, soil
from kinfold.kernels.compiling import Int, entry, inlined
from kinfold.kernels.crowd import to_centre, to_record
from kinfold.kernels.mdav_task import ENOUGH, FRESH, POINTS, RECORDS, SECOND, SEEN, Task, example, take
from kinfold.kernels.search import LEAF, Room, farthest, nearest

_MANY = 200_000  # points; beyond, smaller leaves are faster (by trial, 8 attributes)


def cap(points: int) -> int:
    """How many points a leaf of a tree of so many holds at most; at least half as many."""
    return 100 if points < _MANY else 56


@inlined
def _move_hub(tree: Tree, task: Task) -> None:
    """Move the hub to the place and measure every box again, if the tree is fresh or that is due."""
    state = task.state
    if state[FRESH] == 1 or state[SEEN] >= 2 * tree.size.size:
        for j in range(tree.hub.size):
            tree.hub[j] = task.place.numbers[j]
        for leaf in range(tree.size.size):
            above = tree.parent[tree.child.size + leaf]
            tree.ends[above >> 3, 2 * tree.hub.size, above & 7] = -1.0
            shrink(tree, leaf, leaf & 7 == 7, task.room.distance)
        state[FRESH] = state[SEEN] = 0


@inlined
def _shrink_all(tree: Tree, room: Room) -> None:
    """Shrink the boxes of the leaves that lost records."""
    found = room.found
    for i in range(found.shape[0]):
        up = i == 0 or found[i, LEAF] != found[i - 1, LEAF]
        if up:
            shrink(tree, found[i, LEAF], up, room.distance)


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
        _shrink_all(tree, room)
        state[SECOND] = not second and state[RECORDS] >= 2 * k
