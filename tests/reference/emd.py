"""The earth mover's distance as a linear program: the slow plain twin of `kinfold.models.t_closeness`."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog


def emd(p: np.ndarray, q: np.ndarray, ground: np.ndarray) -> float:
    """Least work to turn the distribution p into q; `ground[i, j]` is the distance between two values."""
    values = len(p)
    leave = np.kron(np.eye(values), np.ones(values))
    arrive = np.kron(np.ones(values), np.eye(values))
    flow = linprog(ground.ravel(), A_eq=np.vstack([leave, arrive]), b_eq=np.concatenate([p, q]))
    assert flow.status == 0
    return float(flow.fun)


def steps(values: int) -> np.ndarray:
    """Ordered ground distance."""
    place = np.arange(values)
    return np.abs(place[:, None] - place) / max(values - 1, 1)


def unequal(values: int) -> np.ndarray:
    """Equal ground distance."""
    return 1.0 - np.eye(values)


def ancestors(labels: list[tuple[str, ...]]) -> np.ndarray:
    """Hierarchical ground distance: the first level at which two rows of labels agree, over the height."""
    height = len(labels[0]) - 1
    level = [[next(i for i in range(height + 1) if a[i] == b[i]) for b in labels] for a in labels]
    return np.array(level) / height
