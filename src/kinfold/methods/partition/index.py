"""The index of a partitioner: points as the kernels take them, and box trees of the remaining points.

A partitioner advances in short calls: after each one it reports its progress and can be cancelled. When most points of
a tree are gone, a new tree is grown from the remaining ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinfold import kernels
from kinfold.progress import Progress
from kinfold.tables.points import Floats, Labels, NominalScale, Points, Scale

if TYPE_CHECKING:
    from kinfold.kernels.box_tree import Tree
    from kinfold.kernels.clustering import Run
    from kinfold.kernels.records import Mixed, Scales

_SECONDS_PER_CALL = 0.06  # of kernel work between two progress reports, where a run can be cancelled
_FIRST_CLUSTERS = 16  # of the first call, whose time is not known yet
_REGROW_SHARE = 0.4  # of a tree's points: with fewer left a new tree is grown (0.3 to 0.5 are as fast)
_MIN_REGROW_POINTS = 256  # fewer points are not worth another tree
HUBS = 15  # and the centre (by trial: 7 and 31 are slower)
_FAR_VISITS = 80  # nodes that a query for the farthest visits; with more, hubs save more than removals lose by them
MDAV_FAR_VISITS = 400  # for the many removals of a larger cluster (at 80 a million records of census were slower)
_MIN_JUDGED_CLUSTERS = 200  # formed before the visits of a query are judged
_HUB_SAMPLE, _OUTER_SHARE = 10_000, 0.2  # of the points, and of the sample
MAX_LEAF_POINTS = 256  # in the largest leaf of any kernel


def to_kernel_records(points: Points) -> Mixed:
    """Return points as the kernels take them: contiguous and writeable, copied only if necessary."""
    numbers, codes = (np.require(array, requirements=["C", "A", "W"]) for array in (points.numbers, points.codes))
    records: Mixed = kernels.load("records").Mixed(numbers, codes, to_kernel_scales(points.scales))
    return records


def to_kernel_scales(scales: Sequence[Scale]) -> Scales:
    """Return scales as the kernels take them, one after the other."""
    heights = [scale.height if isinstance(scale, NominalScale) else 0 for scale in scales]
    distances = [
        scale.weight * (np.arange(height + 1) / height) ** 2 if height else scale.squared_distances(0)
        for scale, height in zip(scales, heights, strict=True)
    ]
    spans = [_code_spans(scale) if isinstance(scale, NominalScale) else np.empty((0, 2), np.int32) for scale in scales]
    kernel = kernels.load("records")
    column = np.zeros(len(scales) + 1, kernel.COLUMN).view(np.recarray)
    column.start = _offsets([scale.codes for scale in scales])
    column.height = [*heights, 0]
    column.gaps = _offsets(list(map(len, distances)))
    column.spans = _offsets(list(map(len, spans)))
    span = np.zeros(column.spans[-1], kernel.SPAN).view(np.recarray)
    span.first, span.past = np.concatenate([np.empty((0, 2), np.int32), *spans]).T
    kernel_scales: Scales = kernel.Scales(column, np.concatenate([np.empty(0), *distances]), span)
    return kernel_scales


def _offsets(sizes: list[int]) -> NDArray[np.int64]:
    return np.cumsum([0, *sizes]).astype(np.int64)


def _code_spans(scale: NominalScale) -> NDArray[np.int32]:
    """Return the first code, and one past the last, under each ancestor of a code, level by level below the top."""
    spans = np.empty((scale.codes, scale.height, 2), np.int32)
    for level in range(scale.height):
        path = scale.paths[:, level]
        first = np.flatnonzero(np.append(True, path[1:] != path[:-1]))
        group = np.cumsum(np.append(False, path[1:] != path[:-1]))
        spans[:, level, 0] = first[group]
        spans[:, level, 1] = np.append(first[1:], scale.codes)[group]
    return spans.reshape(-1, 2)


def start_folded_run(points: Points, k: int) -> Run:
    """Return a run before its first cluster, with equal records folded into points."""
    clustering = kernels.load("clustering")
    n = len(points)
    folded = clustering.Folded(*(np.zeros(size, np.int32) for size in (n, n, n + 1, n)))
    run: Run = clustering.start_run(to_kernel_records(points), folded, k, MAX_LEAF_POINTS)
    table = np.full(1 << (n.bit_length() + 1), -1, np.int32)
    distinct = run.state[0].points = clustering.fill(run.m, folded, run.centroid, table)
    start, head = folded.start[: distinct + 1].copy(), folded.head[:distinct].copy()
    return run._replace(folded=folded._replace(start=start, head=head))


def start_unfolded_run(points: Points, k: int = 1) -> Run:
    """Return a run before its first cluster, with every record a point of its own."""
    run = start_query_run(points, k)
    run.state[0].points = kernels.load("clustering").fill(run.m, run.folded, run.centroid, np.empty(0, np.int32))
    return run


def start_query_run(points: Points, k: int = 1) -> Run:
    """Return a run that only answers queries and forms no cluster, with every record a point of its own."""
    clustering = kernels.load("clustering")
    unfolded = clustering.make_unfolded(np.ones(len(points), np.int64))
    run: Run = clustering.start_run(to_kernel_records(points), unfolded, k, MAX_LEAF_POINTS)
    return run


def grow_tree(run: Run, points: Points, leaf: int | None = None, hubs: int = 0) -> Tree:
    """Return a tree of the remaining points, with at most `leaf` of them in a leaf."""
    folded = run.folded
    order = folded.member[folded.head[folded.head < folded.start[1:]]]
    return grow_trees(run, points, [order], leaf, hubs)


def grow_trees(
    run: Run, points: Points, strata: list[NDArray[np.int32]], leaf: int | None = None, hubs: int = 0
) -> Tree:
    """Return a tree for each of these lists of points; a point is given by its lowest remaining record.

    With the centre and so many other hubs, for queries from records for the farthest one.
    """
    box_tree = kernels.load("box_tree")
    first = _offsets(list(map(len, strata)))
    count = int(first[-1])
    order = np.concatenate(strata)
    places = choose_hubs(points.numbers, order, run.centroid.numbers, hubs)
    tree: Tree = box_tree.layout(np.diff(first).tolist(), len(run.folded.head), run.m, leaf or box_tree.LEAF, places)
    # how much a step of each attribute counts when the widest one is chosen
    weights = [np.sqrt(scale.weight) / max(1, scale.codes - 1) for scale in points.scales]
    spread = np.array([1.0] * points.numbers.shape[1] + weights)
    box_tree.grow(tree, run.m, run.folded, box_tree.Sort(order, first, np.empty(count), spread))
    run.state[0].enough = int(count * _REGROW_SHARE) if count > _MIN_REGROW_POINTS else 0
    return tree


def start_counting(run: Run) -> int:
    """Count the nodes that queries visit from 0 again; return the label of the next cluster."""
    run.query.request[0].visited = run.query.request[0].far = 0
    return int(run.state[0].label)


def is_far(run: Run, first: int, visits: int) -> bool:
    """Whether the queries since this label visited so many nodes for the farthest record that hubs are worth it."""
    formed = int(run.state[0].label) - first
    return formed >= _MIN_JUDGED_CLUSTERS and bool(run.query.request[0].far > visits * formed)


def choose_hubs(x: Floats, order: NDArray[np.int32], centre: Floats, count: int) -> Floats:
    """Return the centre, and the middles of groups of outer records, where most queries for the farthest come from."""
    if count == 0:
        return centre[None, :].copy()
    sample = x[order[:: 1 + len(order) // _HUB_SAMPLE]]
    away = ((sample - centre) ** 2).sum(axis=1)
    outer = sample[away >= np.quantile(away, 1 - _OUTER_SHARE)]
    hubs = np.empty((count, x.shape[1]))
    away = ((outer - centre) ** 2).sum(axis=1)
    for h in range(count):  # each farthest from those before
        hubs[h] = outer[away.argmax()]
        away = np.minimum(away, ((outer - hubs[h]) ** 2).sum(axis=1))
    group = np.stack([((outer - hub) ** 2).sum(axis=1) for hub in hubs]).argmin(axis=0)
    for h in range(count):
        if (group == h).any():
            hubs[h] = outer[group == h].mean(axis=0)
    return np.vstack([centre, hubs])


def form_all(
    run: Run,
    points: Points,
    layers: Sequence[NDArray[np.intp]],
    advance: Callable[[Tree, int], Any],
    clusters_left: Callable[[], bool],
    progress: Progress,
) -> Labels:
    """Form clusters by advance(trees, count), with a tree for each layer, until none are left; return the labels."""
    hubs = 0
    while clusters_left():
        strata = [rows[run.labels[rows] < 0].astype(np.int32) for rows in layers]
        first = start_counting(run)
        for _ in advance_in_steps(run, partial(advance, grow_trees(run, points, strata, hubs=hubs)), progress):
            if hubs == 0 and is_far(run, first, _FAR_VISITS):
                hubs = HUBS
                break
    labels: Labels = run.labels
    return labels


def advance_in_steps(run: Run, advance: Callable[[int], Any], progress: Progress) -> Iterator[None]:
    """Form clusters by advance(count), for a moment each, until a call forms none; yield after each call."""
    state, clusters = run.state[0], _FIRST_CLUSTERS
    while True:
        label, began = int(state.label), time.perf_counter()
        advance(clusters)
        elapsed = max(time.perf_counter() - began, 1e-6)
        if state.label == label:
            return
        clusters = 1 + int(min(clusters * _SECONDS_PER_CALL / elapsed, clusters * 4))
        progress(len(run.labels) - int(state.records), len(run.labels))
        yield
