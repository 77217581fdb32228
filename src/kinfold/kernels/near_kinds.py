"""Near kinds: the records of a kind that are nearest to some place, from one box tree or a few for each kind.

Records of one kind that tie are one point of a tree: some of them are listed, others from one place to the next, and
then the next points. So a list leads to other values, however many records have the same.

Cost: that of a query (see `queries`) for each place and tree of the kind.   Ties: the point of the lowest number.
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

DEEP = 2  # records listed of those that tie: one of them may be spoken for


class Sought(NamedTuple):
    """Places, and the kind that is sought from each; and who is there to be found."""

    numbers: NDArray[np.float64]  # (places, a)
    codes: NDArray[np.int32]  # (places, b)
    kind: Rows  # (places)
    first: Ints  # (kinds + 1) the first tree of each kind
    start: Ints  # (points + 1) where the records of a point start in `member`
    member: Rows


def example() -> Sought:
    """Return one place, to compile for."""
    row, whole = np.zeros(1, np.int32), np.zeros(1, np.int64)
    return Sought(np.zeros((1, 1)), np.zeros((1, 0), np.int32), row, whole, whole, row)


@entry(clustering.example(), box_tree.example(), example(), np.zeros((1, 1), np.int32))
def list_nearest(run: Run, tree: Tree, sought: Sought, listed: NDArray[np.int32]) -> None:
    """List for each place the nearest records of its kind, nearest first; -1 where there are no more."""
    query, asked = run.query, run.query.asked[0]
    asked.wanted = listed.shape[1]
    for t in range(sought.kind.size):
        for j in range(sought.numbers.shape[1]):
            query.place.numbers[j] = sought.numbers[t, j]
        for j in range(sought.codes.shape[1]):
            move(run.m.scales, query.place, j, np.int64(sought.codes[t, j]))
        asked.count = 0
        for s in range(sought.first[sought.kind[t]], sought.first[sought.kind[t] + 1]):
            nearest(tree, run.folded, query, s)
        at = 0
        for u in range(asked.count):
            point = query.found[u].record
            begin = sought.start[point]
            many = sought.start[point + 1] - begin
            for m in range(min(many, DEEP, listed.shape[1] - at)):
                listed[t, at] = sought.member[begin + (DEEP * t + m) % many]
                at += 1
        for u in range(at, listed.shape[1]):
            listed[t, u] = -1
