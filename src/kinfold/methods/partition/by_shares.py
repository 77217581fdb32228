"""Clusters by shares: as `t_first`, but each takes so many records of each kind as its share asks for (see `shares`).

    while clusters are to come:
        r = the record farthest from the centre of what is left, then the one farthest from r, in turns
        of each kind the records nearest to r that every cluster takes
        of the kinds that have records over: one more of each that has as many over as clusters are to come, then of
        those whose nearest record is nearest, until the cluster has its part of all that are over, rounded down

Where any two values are equally far, strata cut by rank would part records that are the same to the promise, and put
together others that are not.

Cost: that of `t_first`.   Ties: the lowest record; between kinds, the lowest kind.

Up to `SMALL` records this file does it, with numpy alone; larger tables go through `kernels/by_shares`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold import kernels
from kinfold.methods.partition.centre import Centre
from kinfold.methods.partition.index import all_formed, unfolded_run
from kinfold.methods.partition.remaining import RemainingRecords, farthest_of, points_at
from kinfold.methods.partition.shares import Quotas
from kinfold.rows.points import SMALL

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kinfold.kernels.box_tree import Tree
    from kinfold.methods.partition.remaining import Place
    from kinfold.progress import Progress
    from kinfold.rows.points import Labels, Points


def by_shares(points: Points, kind: NDArray[np.int32], size: int, progress: Progress) -> Labels:
    """Return clusters of about so many records, the share of each kind rounded down or up in each."""
    quotas = Quotas.of(kind, size)
    rows = [np.flatnonzero(kind == v) for v in range(len(quotas.always))]
    return (by_shares_plain if len(points) <= SMALL else _compiled)(points, rows, quotas, progress)


def _compiled(points: Points, rows: list[NDArray[np.intp]], quotas: Quotas, progress: Progress) -> Labels:
    kernel = kernels.load("by_shares")
    run = unfolded_run(points)
    run.state[0].k = int(quotas.always.max()) + 1
    query = kernels.load("queries").query_from(run.query.place, int(run.state[0].k), len(run.query.distance))
    run = run._replace(query=query)
    shares = kernel.Portions(quotas.always, quotas.over.copy(), np.array([quotas.classes]), np.zeros(len(rows)))

    def advance(tree: Tree, many: int) -> None:
        kernel.advance(run, tree, shares, many)

    return all_formed(run, points, rows, advance, lambda: bool(shares.to_come[0] > 0), progress)


def by_shares_plain(points: Points, rows: list[NDArray[np.intp]], quotas: Quotas, progress: Progress) -> Labels:
    """Return the labels by the steps at the top of this file, with numpy alone."""
    labels = np.full(len(points), -1, np.int32)
    centre, over = Centre(points), quotas.over.copy()
    left = [RemainingRecords(points, each) for each in rows]
    seed = -1
    for label in range(quotas.classes):
        place = (centre.numbers(), centre.codes()) if label % 2 == 0 else points_at(points, seed)
        seed = farthest_of(left, place)
        taken = _cluster(left, points_at(points, seed), quotas.always, over, quotas.classes - label)
        labels[taken] = label
        centre.leave(taken)
        progress(int((labels >= 0).sum()), len(points))
    return labels


def _cluster(
    left: list[RemainingRecords], place: Place, always: NDArray[np.int64], over: NDArray[np.int64], to_come: int
) -> NDArray[np.intp]:
    """Take a cluster away; what it takes beyond `always` is taken off `over`."""
    taken = [each.take(place, int(many)) for each, many in zip(left, always, strict=True) if many]
    ahead = [(over[v] < to_come, each.distances(place).min(), v) for v, each in enumerate(left) if over[v] > 0]
    for _, _, v in sorted(ahead)[: int(over.sum()) // to_come]:
        taken.append(np.array([left[v].take_nearest(place)]))
        over[v] -= 1
    return np.concatenate(taken)
