"""MDAV's clusters by looking at every point: the plain algorithm, made tight.

For few points or many attributes, where boxes bound nothing, and what the tree is measured against. Points lie in
leaves of 256, attribute by attribute, so that a leaf's distances are computed in vectors; one pass finds both the
nearest of r and the record farthest from it. Paper, ties and cost: see `partition.mdav`.
"""

from __future__ import annotations

import numpy as np

from kinfold.kernels.boxes import NOBODY, Tree, soil
from kinfold.kernels.compiling import Flag, Int, entry, inner
from kinfold.kernels.crowd import to_centre, to_record
from kinfold.kernels.mdav_task import ENOUGH, FRESH, POINTS, RECORDS, SECOND, Task, example, take
from kinfold.kernels.search import distances, gather, look

NEXT = FRESH  # of Task.state: the record of the second cluster, or -1 if it is not known

_NO, _YES = np.bool_(False), np.bool_(True)  # of a type: for False and True the pass would be compiled twice


def cap(_points: int) -> int:
    """How many points a leaf holds: its distances stay in the nearest cache."""
    return 256


@inner
def _pass(tree: Tree, task: Task, near: Flag, far: Flag) -> Int:
    """Look at every point: fill the room with the nearest, return the farthest record, or both.

    Where the farthest is as near as the last of the nearest it may be one of them: then -1 is returned.
    """
    room = task.room
    count, best, found = np.int64(0), -1.0, np.int64(NOBODY)
    for leaf in range(tree.size.size):
        distances(tree, leaf, task.scales, task.place, room.distance)
        if near:
            count = gather(tree, task.crowd, leaf, room, count)
        if far:
            best, found = look(tree, leaf, room, best, found)
    return -1 if near and best <= room.near[room.near.size - 1] else found


@entry(example(), soil(1, 1, 0, 8), 1)
def advance(task: Task, tree: Tree, clusters: Int) -> None:
    """Form at most so many clusters; stop before a pair when few records are left or enough points are gone."""
    scales, place, state = task.scales, task.place, task.state
    k = task.room.near.size
    for _ in range(clusters):
        second = state[SECOND] == 1
        record = state[NEXT]
        if not second:
            if state[RECORDS] < 2 * k or state[POINTS] < state[ENOUGH]:
                return
            to_centre(state[RECORDS], scales, task.middle, place)
        if not second or record < 0:
            record = _pass(tree, task, _NO, _YES)
        to_record(task.crowd, scales, place, record)
        state[NEXT] = _pass(tree, task, _YES, not second)
        take(tree, task)
        state[SECOND] = not second and state[RECORDS] >= 2 * k
