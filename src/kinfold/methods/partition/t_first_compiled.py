"""t-closeness-first through the kernels: one tree for each stratum, grown anew when half of its records are gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kinfold import kernels
from kinfold.methods.partition.requirement import mixed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kinfold.progress import Progress
    from kinfold.rows.points import Labels, Points

CHUNK = 2000  # clusters between two reports


def t_first_compiled(points: Points, layers: list[NDArray[np.intp]], progress: Progress) -> Labels:
    """Return the labels of t-closeness-first over these strata."""
    kernel = kernels.load("t_first")
    run = kernel.begun(mixed(points), max((scale.codes for scale in points.scales), default=1))
    clusters = min(map(len, layers))
    while run.state[kernel.LABEL] < clusters:
        forest = _grown(points, layers, run, kernel)
        label = -1
        while label != run.state[kernel.LABEL]:
            label = int(run.state[kernel.LABEL])
            kernel.advance(run, forest, clusters, CHUNK)
            progress(len(points) - int(run.state[kernel.LEFT]), len(points))
    labels: Labels = run.labels
    return labels


def _grown(points: Points, layers: list[NDArray[np.intp]], run: Any, kernel: Any) -> Any:
    """Return a forest of the records that are left."""
    left = [rows[run.labels[rows] < 0].astype(np.int32) for rows in layers]
    forest = kernel.forest.planted(left, points.numbers.shape[1])
    kernel.plant(run, forest, np.empty(len(forest.record)))
    return forest
