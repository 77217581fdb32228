"""What MDAV's kernels share: a run as one value, its start, and the forming of a cluster from the records found.

fill     fold equal records into points and count them all for the centre
grow     sort the points that are left into leaves
take     make a cluster of the records that a search found
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kinfold.kernels.boxes import Sort, Tree, forget, plant, soil
from kinfold.kernels.compiling import Flag, Int, entry, inlined, inner
from kinfold.kernels.crowd import Crowd, Middle, count, fold, middle
from kinfold.kernels.gaps import Place, Scales, no_scales, place
from kinfold.kernels.search import LEAF, RECORD, SLOT, Room, room

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Crowd", "Scales", "Sort", "Task", "example", "fill", "grow", "middle", "place", "room", "soil", "take"]

# places in Task.state: records left; the next label; whether the next cluster is the second of its pair, around the
# record farthest from the place; points left; points to stop at; for the rest see who uses it
RECORDS, LABEL, SECOND, POINTS, ENOUGH, SEEN, FRESH, STATES = range(8)


class Task(NamedTuple):
    """A run of MDAV: what it works on, and how far it is."""

    crowd: Crowd
    scales: Scales
    middle: Middle
    place: Place
    room: Room
    labels: NDArray[np.int32]  # (n,) -1 where a record is left
    state: NDArray[np.int64]  # (STATES,)


def example() -> Task:
    """Return the smallest run, to compile for."""
    crowd = Crowd(
        np.zeros((1, 1)), np.zeros((1, 0), np.int32), np.zeros((1, 1), np.int64),
        np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros(2, np.int32), np.zeros(1, np.int32),
    )  # fmt: skip
    state, labels = np.zeros(STATES, np.int64), np.zeros(1, np.int32)
    return Task(crowd, no_scales(), middle(1, 0), place(1, 0, np.zeros(0)), room(2, 1, 8), labels, state)


@entry(example(), np.zeros(1, np.int32))
def fill(task: Task, table: NDArray[np.int32]) -> None:
    """Fold the records (see `crowd.fold` for `table`) and count them."""
    task.state[POINTS] = fold(task.crowd, table)
    for record in range(task.labels.size):
        count(task.crowd, task.scales, task.middle, record, 1)


@entry(soil(1, 1, 0, 8), example().crowd, Sort(np.zeros(1, np.int32), np.zeros(1), np.zeros(1)))
def grow(tree: Tree, crowd: Crowd, sort: Sort) -> None:
    """Sort points into the leaves of a tree."""
    plant(tree, crowd, sort)


@inner
def _leave(tree: Tree, crowd: Crowd, state: NDArray[np.int64], leaf: Int, slot: Int, settled: Flag) -> None:
    """Let the lowest record of a point leave; once all that go have gone (settled), put the leaf right."""
    codes = tree.c.shape[1] - 3
    point = tree.c[leaf, codes, slot]
    crowd.head[point] += 1
    tree.c[leaf, codes + 2, slot] -= 1
    if not settled:
        return
    if tree.c[leaf, codes + 2, slot] > 0:
        tree.c[leaf, codes + 1, slot] = crowd.member[crowd.head[point]]
    else:
        forget(tree, leaf, slot)
        state[POINTS] -= 1


@inner
def _sort_slots(found: NDArray[np.int64]) -> None:
    """Sort by leaf and slot, falling: forgetting a slot then moves none that is still to come."""
    for i in range(1, found.shape[0]):
        record, leaf, slot = found[i, RECORD], found[i, LEAF], found[i, SLOT]
        p = i
        while p > 0 and (found[p - 1, LEAF] < leaf or (found[p - 1, LEAF] == leaf and found[p - 1, SLOT] < slot)):
            for f in range(3):
                found[p, f] = found[p - 1, f]
            p -= 1
        found[p, RECORD] = record
        found[p, LEAF] = leaf
        found[p, SLOT] = slot


@inlined
def take(tree: Tree, task: Task) -> None:
    """Make a cluster of the records in the room: label them, and let them leave. The boxes are left as they are."""
    found, state = task.room.found, task.state
    _sort_slots(found)
    for i in range(found.shape[0]):
        record, leaf, slot = found[i, RECORD], found[i, LEAF], found[i, SLOT]
        task.labels[record] = state[LABEL]
        count(task.crowd, task.scales, task.middle, record, -1)
        settled = i + 1 == found.shape[0] or found[i + 1, SLOT] != slot or found[i + 1, LEAF] != leaf
        _leave(tree, task.crowd, state, leaf, slot, settled)
    state[RECORDS] -= found.shape[0]
    state[LABEL] += 1
