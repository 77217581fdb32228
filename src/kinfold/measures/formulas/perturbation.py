"""Perturbation: the matrices of PRAM, what a perturbed column keeps, and the links that its parameters give away.

PRAM (the post-randomization method) replaces each category k by category j with probability R[k, j]. It is invariant
if p'R = p': the shares p of the categories are expected to stay. With the counts t of the categories, p = t / sum(t):

    by retention    R = r I + (1 - r) 1 p'         a value stays with probability r, else it is drawn from p
    two stages      R = P Q, Q[k, j] = P[j, k] p[j] / sum_i p[i] P[i, k], and a R + (1 - a) I with alpha = a
    Gouweleeuw      R[k, k] = 1 - theta min(p) / p[k], the rest of a row in equal parts

    released counts T of category j    expected sum_k t[k] R[k, j], variance sum_k t[k] R[k, j] (1 - R[k, j])
    estimate of t from T               solve R't = T

Gouweleeuw, Kooiman, Willenborg & de Wolf, J. Off. Stat. 14 (1998); Kooiman, Willenborg & Gouweleeuw, Statistics
Netherlands (1997), for two stages. Ranks of tied values are intervals: Moore, US Census Bureau (1996), for the gap.

An attacker who knows the true values of perturbed columns and how they were perturbed takes the released record under
which those values are most likely, the product over the columns; of n equally likely ones each with probability 1 / n:
Nin, Herranz & Torra, Data Knowl. Eng. 64 (2008), for rank swapping.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from kinfold.errors import PolicyError
from kinfold.measures.formulas.arrays import Floats, NotApplicable, to_numbers
from kinfold.policy.perturbation import MAX_ROW_ERROR

LogLikelihood: TypeAlias = Callable[[int], Floats]  # by target: how likely each released record is, as logarithms
MAX_LIKELIHOOD_ERROR = 1e-9  # likelihoods so close are equal


def check_transitions(matrix: ArrayLike, categories: int) -> Floats:
    """Return a matrix of transition probabilities; raise if it is not one."""
    p = to_numbers(matrix)
    if p.shape != (categories, categories):
        what = f"the matrix of PRAM does not have {categories} rows and columns"
        raise PolicyError(what, fix="give a row and a column for each category")
    if not np.isfinite(p).all() or (p < 0).any() or (np.abs(p.sum(axis=1) - 1) > MAX_ROW_ERROR).any():
        what = "the rows of the matrix of PRAM are not probabilities"
        raise PolicyError(what, fix="give numbers from 0 up, with the sum 1 in each row")
    return p


def _count_shares(counts: ArrayLike) -> Floats:
    t = to_numbers(counts)[:, 0] if np.ndim(counts) == 1 else np.empty(0)
    if not np.isfinite(t).all() or (t < 0).any() or not t.sum() > 0:
        what = "the counts of the categories are negative, or none of them is above 0"
        raise PolicyError(what, fix="give the number of records of each category that occurs")
    return np.asarray(t / t.sum(), np.float64)


def _require_share(share: float, name: str) -> None:
    if not isinstance(share, int | float | np.number) or not 0 <= share <= 1:
        raise PolicyError(f"{name} is not a number from 0 to 1", fix=f"give {name} as a share, such as 0.8")


def retention_matrix(counts: ArrayLike, retention: float) -> Floats:
    """Return the matrix of invariant PRAM in which a value stays with probability `retention`, else is drawn again.

    >>> retention_matrix([3, 1], 0.8).round(2).tolist()
    [[0.95, 0.05], [0.15, 0.85]]
    """
    p = _count_shares(counts)
    _require_share(retention, "retention")
    return retention * np.eye(len(p)) + (1 - retention) * np.tile(p, (len(p), 1))


def even_matrix(categories: int, diagonal: float) -> Floats:
    """Return a matrix with this diagonal and the rest of each row in equal parts.

    >>> even_matrix(3, 0.8).round(2).tolist()[0]
    [0.8, 0.1, 0.1]
    """
    _require_share(diagonal, "diagonal")
    even = np.full((categories, categories), (1 - diagonal) / max(categories - 1, 1))
    np.fill_diagonal(even, diagonal if categories > 1 else 1.0)
    return even


def gouweleeuw_matrix(counts: ArrayLike, theta: float) -> Floats:
    """Return the invariant matrix whose rarest category changes with probability `theta`, others less.

    >>> gouweleeuw_matrix([3, 1], 0.4).round(3).tolist()
    [[0.867, 0.133], [0.4, 0.6]]
    """
    p = _count_shares(counts)
    _require_share(theta, "theta")
    if not p.min() > 0:
        raise PolicyError("a category does not occur", fix="leave it out of the counts")
    change = theta * p.min() / p
    matrix = np.tile((change / max(len(p) - 1, 1))[:, None], (1, len(p)))
    np.fill_diagonal(matrix, 1 - change if len(p) > 1 else 1.0)
    return matrix


def make_invariant(matrix: ArrayLike, counts: ArrayLike, alpha: float = 1.0) -> Floats:
    """Return R = P Q of two stages, so that p'R = p'; `alpha` below 1 mixes it with the identity.

    >>> make_invariant([[0.8, 0.2], [0.2, 0.8]], [3, 1]).round(3).tolist()
    [[0.824, 0.176], [0.527, 0.473]]
    """
    shares = _count_shares(counts)
    _require_share(alpha, "alpha")
    p = check_transitions(matrix, len(shares))
    reached = shares @ p
    back = np.divide((p * shares[:, None]).T, reached[:, None], out=np.eye(len(shares)), where=reached[:, None] > 0)
    return alpha * (p @ back) + (1 - alpha) * np.eye(len(shares))


def measure_invariance_error(matrix: Floats, counts: ArrayLike) -> float:
    """Return the largest difference between p'R and p'; 0 for invariant PRAM."""
    p = _count_shares(counts)
    return float(np.abs(p @ matrix - p).max())


def compute_count_deviations(matrix: Floats, counts: ArrayLike) -> Floats:
    """Return the standard deviation of the count of each category after PRAM."""
    return np.sqrt(np.asarray(counts, np.float64) @ (matrix * (1 - matrix)))


def estimate_counts(matrix: ArrayLike, released: ArrayLike) -> Floats:
    """Return the unbiased estimate of the counts before PRAM from those after it, as an analyst corrects for it."""
    counts = to_numbers(released)[:, 0]
    try:
        return np.asarray(np.linalg.solve(check_transitions(matrix, len(counts)).T, counts))
    except np.linalg.LinAlgError:
        what = "the matrix of PRAM has no inverse, so that several counts before it give those after it"
        raise PolicyError(what, fix="use a matrix with a larger diagonal") from None


def measure_rank_gap(before: Floats, after: Floats, scale: Floats | None = None) -> int:
    """Return the largest distance in ranks between values and their replacements, both among the values of `scale`.

    The rank of a tied value is an interval; the distance between two intervals is that of their nearest ends.

    >>> measure_rank_gap(np.array([1.0, 2.0, 2.0, 3.0]), np.array([2.0, 1.0, 3.0, 2.0]))
    1
    """
    values = np.sort(before if scale is None else scale)
    low, high = (np.searchsorted(values, side, "left") for side in (before, after))
    ends = [np.searchsorted(values, side, "right") - 1 for side in (before, after)]
    gaps = np.maximum(np.maximum(high - ends[0], low - ends[1]), 0)
    return int(gaps.max(initial=0))


def rank_values(x: Floats) -> Floats:
    """Return the rank of each value from 0 up; the mean of their ranks for tied values.

    >>> rank_values(np.array([5.0, 1.0, 5.0])).tolist()
    [1.5, 0.0, 1.5]
    """
    _, places, counts = np.unique(x, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts + 1) / 2)[places.reshape(-1)], np.float64)


def measure_rank_correlation(before: Floats, after: Floats) -> float:
    """Return Spearman's correlation of ranks, with ties at their mean rank."""
    x, y = (each - each.mean() for each in (rank_values(before), rank_values(after)))
    scale = float(np.sqrt((x @ x) * (y @ y)))
    if not scale > 0:
        raise NotApplicable("a constant column has no ranks")
    return float((x @ y) / scale)


def measure_informed_links(columns: Sequence[LogLikelihood], targets: Sequence[int]) -> float:
    """Return the expected share of targets whose own record is taken; record i of the release belongs to target i.

    >>> def likely(i): return -np.abs(np.array([0.0, 1.0, 5.0]) - [0.0, 5.0, 4.0][i])
    >>> measure_informed_links([likely], range(3))
    0.6666666666666666
    """
    if not len(targets):
        raise NotApplicable("there is no record to link")
    linked = 0.0
    for target in targets:
        total = np.sum([column(int(target)) for column in columns], axis=0)
        best = float(np.max(total))
        if np.isfinite(best) and total[target] >= best - MAX_LIKELIHOOD_ERROR:
            linked += 1 / int((total >= best - MAX_LIKELIHOOD_ERROR).sum())
    return linked / len(targets)
