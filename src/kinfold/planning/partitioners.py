"""The partitioners by the names that a policy uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.partition import approximate, mdav, univariate, vmdav
from kinfold.partition.points import Points
from kinfold.planning.task import Task
from kinfold.progress import Progress

Labels: TypeAlias = NDArray[np.int32]
Partitioner: TypeAlias = Callable[..., Labels]

PARTITIONERS: dict[str, Partitioner] = {
    "mdav": mdav,
    "v-mdav": vmdav,
    "univariate": univariate,
    "approximate": approximate,
}


def partition(method: str, points: Points, task: Task, progress: Progress) -> Labels:
    """Return the classes that a method makes of some records."""
    return PARTITIONERS[method](points, task.k, progress=progress)
