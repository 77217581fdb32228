"""What the partitioners share: a run as one value, its start, and the forming of a cluster.

fill       fold equal records into points, and count them all for the centre
surround   find a record and its k - 1 nearest
take       make them, or whatever was found, part of the cluster that is being formed
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kinfold.kernels import mixed
from kinfold.kernels.box_tree import Tree
from kinfold.kernels.centroid import Centroid, centroid_of, count
from kinfold.kernels.compiling import Int, entry, inlined
from kinfold.kernels.folding import Folded, fold, unfolded
from kinfold.kernels.mixed import Mixed, to_record
from kinfold.kernels.queries import Query, find, nearest, query_from, remove
from kinfold.kernels.scales import place_in

if TYPE_CHECKING:
    from numpy.typing import NDArray

STATE = np.dtype(
    [
        ("k", np.int64),
        ("records", np.int64),  # left
        ("points", np.int64),  # left
        ("enough", np.int64),  # points that must be left: with fewer a new tree is worth growing
        ("label", np.int64),  # of the cluster that is being formed
        ("second", np.int64),  # MDAV: whether it is the second of its pair, around the record farthest from the place
        ("pairs", np.int64),  # MDAV: records that must be left for the second
        ("own", np.int64),  # whether a seed is in its own cluster whatever ties with it
        ("seed", np.int64),  # what the next cluster is formed around, where it is known, else -1
        ("passed", np.int64),  # V-MDAV: how many in the order of seeds are behind
        ("drift", np.int64),  # nodes looked at from centres since the hub was put there
    ],
    align=True,
)


class Run(NamedTuple):
    """A run of a partitioner: what it works on, and how far it is."""

    m: Mixed
    folded: Folded
    centroid: Centroid
    query: Query
    labels: NDArray[np.int32]  # (n,) -1 where a record is left
    state: Any  # (1,) of STATE


def begun(m: Mixed, folded: Folded, k: int, cap: int) -> Run:
    """Return a run before its first cluster, with queries for k records in leaves of at most `cap` points."""
    n, wide = m.numbers.shape
    state = np.zeros(1, STATE)
    state["k"], state["records"], state["pairs"], state["seed"] = k, n, 2 * k, -1
    query = query_from(place_in(m.scales, wide), k, cap)
    return Run(m, folded, centroid_of(m), query, np.full(n, -1, np.int32), state.view(np.recarray))


def example() -> Run:
    """Return the smallest run, to compile for."""
    return begun(mixed.example(), unfolded(np.ones(1, np.int64)), 2, 8)


@entry(mixed.example(), example().folded, example().centroid, np.zeros(1, np.int32))
def fill(m: Mixed, folded: Folded, centroid: Centroid, table: NDArray[np.int32]) -> Int:
    """Fold the records (unless there is no room for a `table`, see `fold`), count them, and return how many points."""
    for record in range(m.numbers.shape[0]):
        count(m, centroid, record, 1)
    return fold(m, centroid.bits, folded, table) if table.size > 0 else m.numbers.shape[0]


@inlined
def surround(tree: Tree, run: Run, seed: Int) -> None:
    """Go to a record and find the k nearest, or (own) itself and its k - 1 nearest others."""
    query, state = run.query, run.state[0]
    asked = query.asked[0]
    to_record(run.m, query.place, seed)
    asked.count = 0
    asked.wanted = state.k - state.own
    asked.besides = seed if state.own == 1 else -1
    nearest(tree, run.folded, query, 0)
    if state.own == 1:
        find(tree, run.folded, query, state.k - 1, seed)


@inlined
def take(tree: Tree, run: Run, many: Int) -> None:
    """Let the first `many` records found join the cluster and leave; the boxes around them are still to shrink."""
    state = run.state[0]
    for i in range(many):
        record = run.query.found[i].record
        run.labels[record] = state.label
        count(run.m, run.centroid, record, -1)
    state.records -= many
    state.points -= remove(tree, run.folded, run.query, many)
