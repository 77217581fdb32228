"""Perturbation of single columns: arrays in, perturbed arrays out. No promise about privacy comes from it.

    PRAM                each value is drawn from its row of a transition matrix (`measures.formulas.perturbation`)
    noise               x + N(0, a² s²), a share of the standard deviation s of the column
    correlated noise    x + N(0, a S), a share of the covariance matrix S of several columns: correlations stay
    rank swapping       from the smallest value up, a value that is not swapped yet is swapped with one drawn from those
                        within p % of the ranks above it; each value is swapped at most once, and all of them are kept
    micro-averages      each value becomes the mean of a group of at least m neighbours, the partition of least squared
                        error: no value is that of fewer than m records

Missing values stay missing. Draws depend on the seed, the name of the column and all of its values, by a cryptographic
hash (SHAKE-256): they cannot be repeated with the seed alone, without the whole column.

Papers: Gouweleeuw et al., J. Off. Stat. 14 (1998); Kim, Proc. ASA Survey Research Methods (1986), for correlated noise;
Moore, US Census Bureau (1996), for rank swapping; Hansen & Mukherjee, IEEE Trans. Knowl. Data Eng. 15 (2003).
Cost: O(n log n); PRAM also O(c²) for c categories.   Ties: the lowest record first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import count
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import DataError
from kinfold.measures.formulas.perturbation import check_transitions
from kinfold.methods.aggregation import value_ranges
from kinfold.methods.partition.univariate import univariate

Floats: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.intp]
Places: TypeAlias = NDArray[np.intp]  # by record, the record whose value it gets

MISSING = -1  # code of a missing value
DRAWS_PER_CHUNK = 1 << 14  # 128 KB of one hash; other sizes give other draws
MAX_TRIES = 50  # to hit a partner that fits; then those left are listed


def make_key(seed: int, name: str, *values: NDArray[np.generic]) -> bytes:
    """Return the key of the draws for a column: a hash of the seed, its name and its values."""
    content = hashlib.sha256(f"{seed}\0{name}\0".encode())
    for array in values:
        content.update(np.ascontiguousarray(array).tobytes())
    return content.digest()


def draw_uniforms(key: bytes, size: int) -> Floats:
    """Return numbers drawn evenly between 0 and 1, both excluded: the same for the same key.

    >>> draw_uniforms(b"key", 3).round(3).tolist() == draw_uniforms(b"key", 5).round(3).tolist()[:3]
    True
    """
    chunks = [_draw_chunk(key, number) for number in range(-(-size // DRAWS_PER_CHUNK))]
    return np.concatenate(chunks)[:size] if chunks else np.empty(0)


def draw_normals(key: bytes, size: int) -> Floats:
    """Return normally distributed numbers with mean 0 and deviation 1: the same for the same key."""
    from scipy.special import ndtri  # slow to load, and most releases draw none

    return np.asarray(ndtri(draw_uniforms(key, size)))


def stream_uniforms(key: bytes) -> Iterator[float]:
    """Yield the same numbers as `draw_uniforms`, without an end."""
    for number in count():
        yield from _draw_chunk(key, number).tolist()


def _draw_chunk(key: bytes, number: int) -> Floats:
    digest = hashlib.shake_256(key + number.to_bytes(8, "little")).digest(8 * DRAWS_PER_CHUNK)
    return ((np.frombuffer(digest, "<u8") >> np.uint64(12)).astype(np.float64) + 0.5) / 2**52


def randomize_codes(codes: Codes, matrix: Floats, key: bytes) -> Codes:
    """Return codes of categories after PRAM; a category of probability 0 is never drawn."""
    matrix = check_transitions(matrix, len(matrix))
    drawn, uniforms, new = np.cumsum(matrix, axis=1), draw_uniforms(key, len(codes)), codes.copy()
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(len(matrix) + 1))
    for code, row in enumerate(drawn):
        own = order[starts[code] : starts[code + 1]]
        last = np.flatnonzero(matrix[code] > 0)[-1]  # a sum of probabilities may end below 1
        new[own] = np.minimum(np.searchsorted(row, uniforms[own], "right"), last)
    return new


def add_noise(x: Floats, share: float, key: bytes) -> Floats:
    """Return numbers with normal noise of `share` times their standard deviation; NaN stays.

    >>> add_noise(np.array([1.0, np.nan, 3.0]), 0.0, b"").tolist()
    [1.0, nan, 3.0]
    """
    present = ~np.isnan(x)
    deviation = float(x[present].std()) if present.any() else 0.0
    return np.asarray(x + share * deviation * draw_normals(key, len(x)))


def add_correlated_noise(x: Floats, share: float, key: bytes) -> Floats:
    """Return columns with normal noise of `share` times their covariances, of the records without a NaN."""
    normal = draw_normals(key, x.size).reshape(x.shape)
    factor = factorize(share * compute_covariances(x))
    noise = np.zeros_like(x)
    for row in range(len(factor)):  # one by one: products of matrices may differ with the number of threads
        for column in range(row + 1):
            noise[:, row] += factor[row, column] * normal[:, column]
    return np.asarray(x + noise)


def compute_covariances(x: Floats) -> Floats:
    """Return the covariances (1/n) of the columns over the records without a NaN."""
    complete = x[~np.isnan(x).any(axis=1)]
    if not len(complete):
        raise DataError("no record has a value in every column of correlated noise", fix="use noise for each column")
    centred = complete - complete.mean(axis=0)
    columns = range(x.shape[1])
    return np.array([[float(np.mean(centred[:, i] * centred[:, j])) for j in columns] for i in columns])


def factorize(covariances: Floats) -> Floats:
    """Return the lower triangle L with L L' = covariances, which may be singular (Cholesky).

    >>> factorize(np.array([[4.0, 2.0], [2.0, 1.0]])).tolist()
    [[2.0, 0.0], [1.0, 0.0]]
    """
    lower, size = np.zeros_like(covariances), len(covariances)
    for j in range(size):
        rest = covariances[j, j] - sum(lower[j, i] ** 2 for i in range(j))
        if rest <= 1e-12 * covariances[j, j]:
            continue  # this column follows from those before it
        lower[j, j] = np.sqrt(rest)
        for row in range(j + 1, size):
            lower[row, j] = (covariances[row, j] - sum(lower[row, i] * lower[j, i] for i in range(j))) / lower[j, j]
    return lower


def count_rank_window(present: int, percent: float) -> int:
    """Return the largest distance of ranks that is less than `percent` of the values.

    >>> count_rank_window(1080, 10), count_rank_window(834, 5), count_rank_window(10, 5)
    (107, 41, 0)
    """
    return min(int(np.ceil(present * percent / 100 - 1e-9)) - 1, present - 1)


def swap_ranks(x: Floats, percent: float, key: bytes) -> Places:
    """Return the record whose value each record gets; ranks of swapped values differ by less than `percent` of them."""
    places, order = np.arange(len(x)), np.argsort(x, kind="stable")  # NaN is last
    present = int((~np.isnan(x)).sum())
    window = count_rank_window(present, percent)
    if window > 0:
        places[order[:present]] = order[pair_ranks(present, window, stream_uniforms(key))]
    return places


def pair_ranks(ranks: int, window: int, draws: Iterator[float]) -> Places:
    """Return the rank that each rank is swapped with, at most `window` away; itself if there is none left."""
    partner, free = [*range(ranks)], bytearray(b"\1") * ranks
    for rank in range(ranks - 1):
        if not free[rank]:
            continue
        free[rank], choices = 0, min(window, ranks - 1 - rank)
        for _ in range(MAX_TRIES):
            other = rank + 1 + int(next(draws) * choices)
            if free[other]:
                break
        else:
            left = [each for each in range(rank + 1, rank + 1 + choices) if free[each]]
            if not left:
                continue
            other = left[int(next(draws) * len(left))]
        free[other], partner[rank], partner[other] = 0, other, rank
    return np.array(partner, np.intp)


def average_neighbours(x: Floats, size: int) -> Floats:
    """Return the mean of the group of each value: groups of at least `size` neighbours; NaN stays.

    >>> average_neighbours(np.array([1.0, 10.0, np.nan, 2.0, 12.0]), 2).tolist()
    [1.5, 11.0, nan, 1.5, 11.0]
    """
    new, present = x.copy(), ~np.isnan(x)
    values = x[present]
    if len(values) < size:
        raise DataError(f"there are fewer than {size} values to average", fix="lower micro, or leave it out")
    labels = univariate(values[:, None], size)
    centre = values.mean()  # deviations are summed: they are exact for groups of equal values
    sums = np.bincount(labels, values - centre) / np.bincount(labels)
    new[present] = np.clip(centre + sums, *value_ranges(values, labels))[labels]
    return new
