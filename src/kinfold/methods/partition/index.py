"""The index of a partitioner: points laid out for the kernels, and the box trees of those that are left.

Between two moments of a run the caller hears how far it is, and may stop it. Most of its points gone, a tree is grown
anew from those that are left.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from kinfold import kernels
from kinfold.rows.points import Nested

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from kinfold.kernels.box_tree import Tree
    from kinfold.kernels.clustering import Run
    from kinfold.kernels.mixed import Mixed
    from kinfold.kernels.scales import Scales
    from kinfold.progress import Progress
    from kinfold.rows.points import Floats, Labels, Points, Scale

_Type = TypeVar("_Type", bound=np.generic)

_MOMENT = 0.06  # seconds of kernel work between two reports: often enough for a bar, and to stop
_FIRST = 16  # clusters of the first moment, before it is known how long they take
_LEFT = 0.4  # share of a tree's points that are left when another is grown (by trial: 0.3 to 0.5 are as fast)
_FEW = 256  # points too few to be worth another tree
LARGEST = 256  # points in the largest leaf of any kernel


def laid_out(points: Points) -> Mixed:
    """Return points as the kernels take them."""
    m: Mixed = kernels.load("mixed").Mixed(_own(points.numbers), _own(points.codes), scales_of(points.scales))
    return m


def _own(array: NDArray[_Type]) -> NDArray[_Type]:
    """Return the array as kernels take it, contiguous and writeable: a copy only where it must be."""
    return np.require(array, requirements=["C", "A", "W"])


def scales_of(scales: Sequence[Scale]) -> Scales:
    """Lay scales end to end."""
    heights = [scale.height if isinstance(scale, Nested) else 0 for scale in scales]
    gaps = [
        scale.weight * (np.arange(height + 1) / height) ** 2 if height else scale.gaps(0)
        for scale, height in zip(scales, heights, strict=True)
    ]
    spans = [_spans(scale) if isinstance(scale, Nested) else np.empty((0, 2), np.int32) for scale in scales]
    kernel = kernels.load("scales")
    column = np.zeros(len(scales) + 1, kernel.COLUMN).view(np.recarray)
    column.start = _starts([scale.codes for scale in scales])
    column.height = [*heights, 0]
    column.gaps = _starts(list(map(len, gaps)))
    column.spans = _starts(list(map(len, spans)))
    span = np.zeros(column.spans[-1], kernel.SPAN).view(np.recarray)
    span.first, span.past = np.concatenate([np.empty((0, 2), np.int32), *spans]).T
    laid: Scales = kernel.Scales(column, np.concatenate([np.empty(0), *gaps]), span)
    return laid


def _starts(sizes: list[int]) -> NDArray[np.int64]:
    return np.cumsum([0, *sizes]).astype(np.int64)


def _spans(scale: Nested) -> NDArray[np.int32]:
    """First and one past the last code under each ancestor of a code, level by level below the top."""
    spans = np.empty((scale.codes, scale.height, 2), np.int32)
    for level in range(scale.height):
        path = scale.paths[:, level]
        first = np.flatnonzero(np.append(True, path[1:] != path[:-1]))
        group = np.cumsum(np.append(False, path[1:] != path[:-1]))
        spans[:, level, 0] = first[group]
        spans[:, level, 1] = np.append(first[1:], scale.codes)[group]
    return spans.reshape(-1, 2)


def folded_run(points: Points, k: int) -> Run:
    """Return a run before its first cluster, with equal records folded."""
    clustering = kernels.load("clustering")
    n = len(points)
    folded = clustering.Folded(*(np.zeros(size, np.int32) for size in (n, n, n + 1, n)))
    run: Run = clustering.begun(laid_out(points), folded, k, LARGEST)
    table = np.full(1 << (n.bit_length() + 1), -1, np.int32)
    distinct = run.state[0].points = clustering.fill(run.m, folded, run.centroid, table)
    start, head = folded.start[: distinct + 1].copy(), folded.head[:distinct].copy()
    return run._replace(folded=folded._replace(start=start, head=head))


def unfolded_run(points: Points) -> Run:
    """Return a run before its first cluster, with every record a point of its own."""
    clustering = kernels.load("clustering")
    run: Run = clustering.begun(laid_out(points), clustering.unfolded(np.ones(len(points), np.int64)), 1, LARGEST)
    run.state[0].points = clustering.fill(run.m, run.folded, run.centroid, np.empty(0, np.int32))
    return run


def resting_run(points: Points) -> Run:
    """Return a run that forms no cluster: every record a point of its own, there to be found."""
    clustering = kernels.load("clustering")
    run: Run = clustering.begun(laid_out(points), clustering.unfolded(np.ones(len(points), np.int64)), 1, LARGEST)
    return run


def grown(run: Run, points: Points, cap: Callable[[int], int] | None = None) -> Tree:
    """Return a tree of the points that are left, with at most cap(points) of them in a leaf."""
    folded = run.folded
    order = folded.member[folded.head[folded.head < folded.start[1:]]]
    return grown_apart(run, points, [order], cap(len(order)) if cap else None)


def grown_apart(run: Run, points: Points, strata: list[NDArray[np.int32]], leaf: int | None = None) -> Tree:
    """Return one tree for each of these lists of points, a point told by its lowest record that is left."""
    box_tree = kernels.load("box_tree")
    first = _starts(list(map(len, strata)))
    many = int(first[-1])
    tree: Tree = box_tree.layout(np.diff(first).tolist(), len(run.folded.head), run.m, leaf or box_tree.LEAF)
    tree.hub[:] = run.centroid.numbers
    box_tree.grow(
        tree, run.m, run.folded, box_tree.Sort(np.concatenate(strata), first, np.empty(many), _spread(points))
    )
    run.state[0].enough = int(many * _LEFT) if many > _FEW else 0
    return tree


def all_formed(
    run: Run,
    points: Points,
    layers: Sequence[NDArray[np.intp]],
    advance: Callable[[Tree, int], Any],
    to_come: Callable[[], bool],
    progress: Progress,
) -> Labels:
    """Form clusters by advance(one tree a layer, how many) until none is to come; return the labels."""
    while to_come():
        strata = [rows[run.labels[rows] < 0].astype(np.int32) for rows in layers]
        for _ in moments(run, partial(advance, grown_apart(run, points, strata)), progress):
            pass
    labels: Labels = run.labels
    return labels


def _spread(points: Points) -> Floats:
    """How much a step of each attribute counts in the choice of where to halve."""
    codes = [np.sqrt(scale.weight) / max(1, scale.codes - 1) for scale in points.scales]
    return np.array([1.0] * points.numbers.shape[1] + codes)


def moments(run: Run, advance: Callable[[int], Any], progress: Progress) -> Iterator[None]:
    """Form clusters by advance(how many), a moment at a time, until a call forms none; yield after each moment."""
    state, clusters = run.state[0], _FIRST
    while True:
        label, began = int(state.label), time.perf_counter()
        advance(clusters)
        spent = max(time.perf_counter() - began, 1e-6)
        if state.label == label:
            return
        clusters = 1 + int(min(clusters * _MOMENT / spent, clusters * 4))
        progress(len(run.labels) - int(state.records), len(run.labels))
        yield
