"""Near kinds: the records of a kind that are nearest to a place, from one box tree or a few for each kind.

Cost: that of a query (see `queries`) for each place and tree of the kind.   Ties: the lowest record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kinfold.kernels import box_tree, clustering
from kinfold.kernels.box_tree import Tree
from kinfold.kernels.clustering import Run
from kinfold.kernels.compiling import entry
from kinfold.kernels.queries import nearest
from kinfold.kernels.scales import move

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[np.int32]
    Ints = NDArray[np.int64]


class Sought(NamedTuple):
    """Places, and the kind that is sought from each."""

    numbers: NDArray[np.float64]  # (places, a)
    codes: NDArray[np.int32]  # (places, b)
    kind: Rows  # (places)


def example() -> Sought:
    """Return one place, to compile for."""
    return Sought(np.zeros((1, 1)), np.zeros((1, 0), np.int32), np.zeros(1, np.int32))


@entry(clustering.example(), box_tree.example(), np.zeros(1, np.int64), example(), np.zeros((1, 1), np.int32))
def list_nearest(run: Run, tree: Tree, first: Ints, sought: Sought, listed: NDArray[np.int32]) -> None:
    """List for each place the nearest records of its kind, nearest first; -1 where there are no more.

    The trees of kind v are those from first[v] to first[v + 1].
    """
    query, asked = run.query, run.query.asked[0]
    asked.wanted = listed.shape[1]
    for t in range(sought.kind.size):
        for j in range(sought.numbers.shape[1]):
            query.place.numbers[j] = sought.numbers[t, j]
        for j in range(sought.codes.shape[1]):
            move(run.m.scales, query.place, j, np.int64(sought.codes[t, j]))
        asked.count = 0
        for s in range(first[sought.kind[t]], first[sought.kind[t] + 1]):
            nearest(tree, run.folded, query, s)
        for u in range(listed.shape[1]):
            listed[t, u] = query.found[u].record if u < asked.count else -1
