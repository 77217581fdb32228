"""t-closeness-first through the kernels: one box tree for each stratum, grown anew from time to time."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from kinfold import kernels
from kinfold.methods.partition.index import grown_apart, moments, unfolded_run

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kinfold.progress import Progress
    from kinfold.rows.points import Labels, Points


def t_first_compiled(points: Points, layers: list[NDArray[np.intp]], progress: Progress) -> Labels:
    """Return the labels of t-closeness-first over these strata."""
    kernel = kernels.load("t_first")
    run = unfolded_run(points)
    left = np.array(list(map(len, layers)), np.int64)
    while left.min() > 0:
        strata = [rows[run.labels[rows] < 0].astype(np.int32) for rows in layers]
        tree = grown_apart(run, points, strata)
        for _ in moments(run, partial(kernel.advance, run, tree, left), progress):
            pass
    labels: Labels = run.labels
    return labels
