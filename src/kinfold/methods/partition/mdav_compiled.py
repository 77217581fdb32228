"""MDAV through the kernels: the points laid out in arrays, clusters formed a moment at a time.

Between two moments the caller hears how far it is, and may stop the run. Most of the points gone, the tree is grown
anew from those that are left.

In many attributes boxes may bound nothing. What they are worth on this table shows in the share of the tree that a
cluster looks at: from `_WORTH` on, the kernel that looks at every point is faster, and takes over. The labels are
the same. (Measured on 10,000 to 30,000 records, k = 5: gaussian in 16 to 64 attributes, the tree has 0.3 to 0.5 times
the speed of the other kernel; in up to 8 attributes, or clustered data up to 64, 0.9 to 10 times.)
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from kinfold import kernels
from kinfold.rows.points import Nested

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from kinfold.progress import Progress
    from kinfold.rows.points import Floats, Labels, Points, Scale

_Type = TypeVar("_Type", bound=np.generic)

_MOMENT = 0.06  # seconds of kernel work between two reports
_LEFT = 0.4  # share of a tree's points that are left when another is grown
_FEW = 256  # points too few to be worth another tree
_MOST = 256  # points in the largest leaf of any kernel
_WORTH = 0.5  # share of the tree's leaves, in nodes looked at for a cluster
_TRIAL = 32  # clusters before a tree is judged
_LARGE = 64  # leaves of a tree that is judged: with fewer it does not matter
_MANY = 20_000  # points left for which it pays to compile the other kernel first; the labels are the same


def mdav_compiled(points: Points, k: int, progress: Progress, kernel: str = "mdav_tree") -> Labels:
    """Return the labels of MDAV; `kernel` is the module to begin with, `mdav_tree` or `mdav_flat`."""
    module, shared = kernels.load(kernel), kernels.load("mdav_task")
    task = _task(points, k, shared)
    while task.state[shared.RECORDS] >= 2 * k:
        worth = _run(task, _grown(task, points, shared, module.cap), module.advance, shared, progress)
        if not worth and (kernels.ready("mdav_flat") or task.state[shared.POINTS] >= _MANY):
            module = kernels.load("mdav_flat")
    labels: Labels = task.labels
    labels[labels < 0] = task.state[shared.LABEL]
    progress(len(points), len(points))
    return labels


def _run(task: Any, tree: Any, advance: Any, shared: Any, progress: Progress) -> bool:
    """Form clusters until most of the tree's points are gone, or only the last is to be formed; or return False."""
    state, clusters = task.state, 16
    task.room.looked[0], first = 0, int(state[shared.LABEL])
    least = 2 * len(task.room.near)
    while state[shared.RECORDS] >= least and (state[shared.POINTS] >= state[shared.ENOUGH] or state[shared.SECOND]):
        began = time.perf_counter()
        advance(task, tree, clusters)
        spent = max(time.perf_counter() - began, 1e-6)
        clusters = 1 + int(min(clusters * _MOMENT / spent, clusters * 4))
        progress(len(task.labels) - int(state[shared.RECORDS]), len(task.labels))
        formed, leaves = int(state[shared.LABEL]) - first, len(tree.size)
        judged = leaves >= _LARGE and formed >= _TRIAL and not state[shared.SECOND]
        if judged and task.room.looked[0] > _WORTH * formed * leaves:
            return False
    return True


def _task(points: Points, k: int, shared: Any) -> Any:
    """Everything a run works on, with equal records folded."""
    n, wide = points.numbers.shape
    numbers, codes = _own(points.numbers), _own(points.codes)
    bits = numbers.view(np.int64)
    point, member, head = (np.empty(n, np.int32) for _ in range(3))
    crowd = shared.Crowd(numbers, codes, bits, point, member, np.zeros(n + 1, np.int32), head)
    row = np.concatenate([np.empty(0), *(scale.gaps(0) for scale in points.scales)])
    task = shared.Task(
        crowd, shared.Scales(*_scales(points.scales)), shared.middle(wide, len(row)),
        shared.place(wide, len(points.scales), row), shared.room(k, wide, _MOST),
        np.full(n, -1, np.int32), np.zeros(shared.STATES, np.int64),
    )  # fmt: skip
    task.state[shared.RECORDS] = n
    shared.fill(task, np.full(1 << (n.bit_length() + 1), -1, np.int32))
    distinct = int(task.state[shared.POINTS])
    start, head = crowd.start[: distinct + 1].copy(), crowd.head[:distinct].copy()
    return task._replace(crowd=crowd._replace(start=start, head=head))


def _own(array: NDArray[_Type]) -> NDArray[_Type]:
    """Return the array as kernels take it, contiguous and writeable: a copy only where it must be."""
    return np.require(array, requirements=["C", "A", "W"])


def _grown(task: Any, points: Points, shared: Any, cap: Callable[[int], int]) -> Any:
    """Return a tree of the points that are left."""
    crowd = task.crowd
    order = crowd.member[crowd.head[crowd.head < crowd.start[1:]]]
    tree = shared.soil(len(order), points.numbers.shape[1], points.codes.shape[1], cap(len(order)))
    shared.grow(tree, crowd, shared.Sort(order, np.empty(len(order)), _spread(points)))
    task.state[shared.ENOUGH] = int(len(order) * _LEFT) if len(order) > _FEW else 0
    task.state[shared.FRESH] = 1
    return tree


def _spread(points: Points) -> Floats:
    """How much a step of each attribute counts in the choice of where to halve."""
    codes = [np.sqrt(scale.weight) / max(1, scale.codes - 1) for scale in points.scales]
    return np.array([1.0] * points.numbers.shape[1] + codes)


def _scales(scales: tuple[Scale, ...]) -> tuple[NDArray[np.int64], Floats, NDArray[np.int32]]:
    """Lay scales end to end, as `kernels.gaps` wants them."""
    where = np.zeros((len(scales) + 1, 4), np.int64)
    gaps, spans = [np.empty(0)], [np.empty((0, 2), np.int32)]
    for j, scale in enumerate(scales):
        height = scale.height if isinstance(scale, Nested) else 0
        levels = np.arange(height + 1) / max(1, height)
        gap = scale.weight * levels * levels if height else scale.gaps(0)
        span = _spans(scale) if isinstance(scale, Nested) else spans[0]
        where[j, 1] = height
        where[j + 1] = where[j, 0] + scale.codes, 0, where[j, 2] + len(gap), where[j, 3] + len(span)
        gaps.append(gap)
        spans.append(span)
    return where, np.concatenate(gaps), np.concatenate(spans)


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
