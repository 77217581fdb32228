"""What the partitioners share: a run as one value, its start, and the forming of a cluster.

fill       fold equal records into points, and count them all for the centre
surround   find a record and its k - 1 nearest
take       add the records found to the cluster that is being formed
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kinfold.kernels import records as mixed
from kinfold.kernels.box_tree import Tree
from kinfold.kernels.compiling import Int, Rows, entry, inlined
from kinfold.kernels.queries import Query, find_nearest, locate, make_query, remove
from kinfold.kernels.records import (
    Centroid,
    Folded,
    Mixed,
    count_record,
    fold,
    make_centroid,
    make_place,
    make_unfolded,
    to_record,
)

STATE = np.dtype(
    [
        ("k", np.int64),
        ("records", np.int64),  # remaining
        ("points", np.int64),  # remaining
        ("enough", np.int64),  # remaining points: with fewer a new tree is worth growing
        ("label", np.int64),  # of the cluster that is being formed
        ("second", np.int64),  # MDAV: whether it is the second of its pair
        ("pairs", np.int64),  # MDAV: remaining records that the second needs
        ("own", np.int64),  # whether a seed is always in its own cluster, whatever ties with it
        ("seed", np.int64),  # of the next cluster, if known, else -1
        ("passed", np.int64),  # V-MDAV: seeds already passed
        ("drift", np.int64),  # nodes visited from centres since the hub moved
    ],
    align=True,
)


class Run(NamedTuple):
    """A run of a partitioner: its records and its state."""

    m: Mixed
    folded: Folded
    centroid: Centroid
    query: Query
    labels: Rows  # (n,) -1 for a remaining record
    state: Any  # (1,) of STATE


def start_run(m: Mixed, folded: Folded, k: int, cap: int) -> Run:
    """Return a run before its first cluster, with queries for k records in leaves of at most `cap` points."""
    n, wide = m.numbers.shape
    state = np.zeros(1, STATE)
    state["k"], state["records"], state["pairs"], state["seed"] = k, n, 2 * k, -1
    query = make_query(make_place(m.scales, wide), k, cap)
    return Run(m, folded, make_centroid(m), query, np.full(n, -1, np.int32), state.view(np.recarray))


def example_run() -> Run:
    """Return the smallest run, to compile for."""
    return start_run(mixed.example_records(), make_unfolded(np.ones(1, np.int64)), 2, 8)


@entry(mixed.example_records(), example_run().folded, example_run().centroid, np.zeros(1, np.int32))
def fill(m: Mixed, folded: Folded, centroid: Centroid, table: Rows) -> Int:
    """Fold the records (unless `table` is empty, see `fold`), count them, and return the number of points."""
    for record in range(m.numbers.shape[0]):
        count_record(m, centroid, record, 1)
    return fold(m, centroid.bits, folded, table) if table.size > 0 else m.numbers.shape[0]


@inlined
def surround(tree: Tree, run: Run, seed: Int) -> None:
    """Go to a record and find the k nearest, or (own) itself and its k - 1 nearest others."""
    query, state = run.query, run.state[0]
    request = query.request[0]
    to_record(run.m, query.place, seed)
    request.count = 0
    request.wanted = state.k - state.own
    request.excluded = seed if state.own == 1 else -1
    find_nearest(tree, run.folded, query, 0)
    if state.own == 1:
        locate(tree, run.folded, query, state.k - 1, seed)


@inlined
def take(tree: Tree, run: Run, many: Int) -> None:
    """Add the first `many` nearest records to the cluster and remove them; their boxes are not shrunk yet."""
    state = run.state[0]
    for i in range(many):
        record = run.query.nearest[i].record
        run.labels[record] = state.label
        count_record(run.m, run.centroid, record, -1)
    state.records -= many
    state.points -= remove(tree, run.folded, run.query, many)
