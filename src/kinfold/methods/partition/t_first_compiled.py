"""t-closeness-first through the kernels: one box tree for each stratum, grown anew from time to time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold import kernels
from kinfold.methods.partition.index import all_formed, unfolded_run

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kinfold.kernels.box_tree import Tree
    from kinfold.progress import Progress
    from kinfold.rows.points import Labels, Points


def t_first_compiled(points: Points, layers: list[NDArray[np.intp]], progress: Progress) -> Labels:
    """Return the labels of t-closeness-first over these strata."""
    kernel = kernels.load("t_first")
    run = unfolded_run(points)
    left = np.array(list(map(len, layers)), np.int64)

    def advance(trees: Tree, many: int) -> None:
        kernel.advance(run, trees, left, many)

    return all_formed(run, points, layers, advance, lambda: bool(left.min() > 0), progress)
