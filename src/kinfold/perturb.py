"""Perturbation as array functions: `kinfold.perturb.pram(values, retention=0.8, seed=1)`.

Nothing about privacy is promised. The same values and seed give the same result; missing values stay missing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import PolicyError, check_arguments
from kinfold.measures.formulas.perturbation import (
    check_transitions,
    estimate_counts,
    even_matrix,
    gouweleeuw_matrix,
    make_invariant,
    retention_matrix,
)
from kinfold.methods import perturbation
from kinfold.methods.record_swapping import swap_households

__all__ = [
    "add_correlated_noise", "add_noise", "average_neighbours", "estimate_counts", "even_matrix", "gouweleeuw_matrix",
    "make_invariant", "pram", "retention_matrix", "swap_households", "swap_ranks",
]  # fmt: skip


@check_arguments
def pram(values: Any, *, retention: float | None = None, matrix: Any = None, seed: int = 0) -> NDArray[Any]:
    """Return categories after PRAM, by retention (invariant) or by a matrix, whose rows are the sorted categories.

    >>> values = ["a"] * 6 + ["b", None]
    >>> pram(values, retention=0.5, seed=1)[-1] is None
    True
    """
    given = np.asarray(values, object)
    _require(given.ndim == 1, "values", "one value per record")
    given = np.array([None if _is_missing(value) else value for value in given], object)
    present = np.array([value is not None for value in given], np.bool_)
    if not present.any() or (retention is None) == (matrix is None):
        what = "pram needs values, and either retention or a matrix"
        raise PolicyError(what, fix="give retention=0.8, or a row of probabilities for each category")
    try:
        categories, codes = np.unique(given[present], return_inverse=True)
    except TypeError:
        raise PolicyError("the values have several types", fix="give texts, or numbers") from None
    if retention is not None:
        _require_number(retention, "retention", "a probability from 0 to below 1", lambda share: 0 <= share < 1)
        matrix = retention_matrix(np.bincount(codes), retention)
    full = np.full(len(given), perturbation.MISSING, np.intp)
    full[present] = codes.reshape(-1)
    table = check_transitions(matrix, len(categories))
    new = perturbation.randomize_codes(full, table, perturbation.make_key(seed, "", full))
    return np.append(categories, np.array([None], object))[new]


@check_arguments
def add_noise(x: Any, share: float, *, seed: int = 0) -> NDArray[np.float64]:
    """Return numbers with normal noise; its standard deviation is `share` of that of the numbers."""
    return _perturb_numbers(x, share, seed, perturbation.add_noise, 1)


@check_arguments
def add_correlated_noise(x: Any, share: float, *, seed: int = 0) -> NDArray[np.float64]:
    """Return columns of numbers with normal noise; its covariances are `share` of theirs, so correlations stay."""
    return _perturb_numbers(x, share, seed, perturbation.add_correlated_noise, 2)


@check_arguments
def swap_ranks(x: Any, percent: float, *, seed: int = 0) -> NDArray[np.float64]:
    """Return the same numbers, swapped between records whose ranks differ by less than `percent` of them."""
    _require_number(percent, "percent", "above 0 and at most 100", lambda percent: 0 < percent <= 100)

    def swap(numbers: NDArray[np.float64], percent: float, key: bytes) -> NDArray[np.float64]:
        return numbers[perturbation.swap_ranks(numbers, percent, key)]

    return _perturb_numbers(x, percent, seed, swap, 1)


@check_arguments
def average_neighbours(x: Any, size: int) -> NDArray[np.float64]:
    """Return the mean of the group of each number: groups of `size` or more neighbours with the least squared error."""
    _require_number(size, "size", "a whole number from 2 up", lambda size: size >= 2 and float(size).is_integer())
    return perturbation.average_neighbours(_to_numbers(x, 1), size)


def _perturb_numbers(x: Any, share: float, seed: int, perturb: Callable[..., Any], axes: int) -> NDArray[np.float64]:
    numbers = _to_numbers(x, axes)
    _require_number(share, "share", "a number above 0", lambda share: 0 < share < np.inf)
    return np.asarray(perturb(numbers, share, perturbation.make_key(seed, "", numbers)), np.float64)


def _to_numbers(x: Any, axes: int) -> NDArray[np.float64]:
    try:
        numbers = np.array(x, np.float64)
    except (TypeError, ValueError):
        raise PolicyError("the values are not numbers", fix="give an array of numbers, NaN for a missing one") from None
    _require(numbers.ndim == axes, "x", f"an array of {axes} dimension{'s' if axes > 1 else ''}")
    _require(not np.isinf(numbers).any(), "x", "finite numbers")
    columns = numbers.T if axes > 1 else [numbers]
    distinct = [len(np.unique(column[~np.isnan(column)])) for column in columns]
    _require(min(distinct, default=0) > 1, "x", "columns of two or more different numbers: others do not change")
    return numbers


def _is_missing(value: Any) -> bool:
    return value is None or value != value


def _require_number(value: Any, name: str, what: str, holds: Callable[[Any], bool]) -> None:
    _require(isinstance(value, int | float | np.number) and holds(value), name, what)


def _require(condition: bool, name: str, what: str) -> None:
    if not condition:
        raise PolicyError(f"{name} must be {what}", fix=f"correct {name}")
