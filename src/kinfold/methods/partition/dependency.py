"""Dependency: which attributes stand for the others, by entropy (Sun, Wang, Li & Zhang 2012, sections 3.1 and 3.2).

    distance of two attributes    H(A|B) + H(B|A) = 2 H(A,B) - H(A) - H(B): the variation of information, in bits;
                                  0 where each determines the other, H(A) + H(B) where they are independent
    dependency matrix             that distance for every pair (Definitions 2 and 3)
    dependency tree               the minimum spanning tree of the matrix, by Kruskal (Algorithm 1)
    key attributes                by falling degree in the tree, as many as it takes for their degrees to sum to at
                                  least m (Definition 5); at most max(2, ceil(m/2)) of them (Theorem 2)

Symbols. Codes are symbols as they are. So are the values of a column of numbers if there are at most
max(bins, √n) different ones; otherwise the column is cut into `bins` bins of equal frequency, equal values staying
together. Equal width would pile a skewed column into one bin, leave it hardly any entropy and so bring it near to
every other attribute, whether it tells anything about them or not.

Ties: edges by weight, then first attribute, then second; degrees, then the lower attribute. Attributes are numbered
from 0, numbers first, then codes. Weights are compared to 12 decimals, so that rounding decides nothing.
Readings: the paper swaps H(A1|A2) and H(A2|A1), prints 1.6681 for 1.6680 at (A2,A5), and Figure 2 is not the minimum
tree; its key attributes {A2, A3} stand. With one attribute there is no tree, and it is the key.

Cost: O(m n log n) for the symbols, O(m² n) for the matrix.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import PolicyError
from kinfold.rows.points import Floats, Points

if TYPE_CHECKING:
    from collections.abc import Sequence

Symbols: TypeAlias = NDArray[np.int64]

BINS = 10  # quantiles that stand for a column of more values: usual, not tuned
DECIMALS = 12  # weights that differ by less are ties: they come from sums of logarithms


@dataclass(frozen=True, eq=False)
class Dependency:
    """The dependency matrix and tree of a table's attributes, and the key attributes they give."""

    matrix: Floats  # (m, m), bits
    entropies: tuple[float, ...]  # of each attribute, bits
    symbols: tuple[int, ...]  # how many different symbols each attribute has
    binned: tuple[bool, ...]  # whether it was cut into bins for that
    edges: tuple[tuple[int, int], ...]  # of the tree, in the order in which they were taken
    degrees: tuple[int, ...]
    keys: tuple[int, ...]  # in the order in which they were chosen


def dependency(x: object, *, bins: int = BINS) -> Dependency:
    """Return the dependency matrix, tree and key attributes of a table.

    >>> found = dependency(np.array([[0, 5, 0], [0, 5, 1], [1, 7, 0], [1, 7, 1]]))
    >>> found.matrix.tolist(), found.edges, found.keys
    ([[0.0, 0.0, 2.0], [0.0, 0.0, 2.0], [2.0, 2.0, 0.0]], ((0, 1), (0, 2)), (0, 1))
    """
    points = Points.of(x)
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or bins < 2:
        raise PolicyError(f"bins is {bins!r}", fix="bins is a whole number from 2 up; 10 is usual")
    if not len(points):
        raise PolicyError("there are no records", fix="bring at least one record")
    coded, binned = symbols_of(points, int(bins))
    symbols = tuple(int(column.max()) + 1 for column in coded)
    matrix = dependency_matrix(coded)
    edges = spanning_tree(matrix)
    degrees = tuple(int(degree) for degree in np.bincount(np.array(edges, np.intp).ravel(), minlength=len(coded)))
    entropies = tuple(entropy(column) for column in coded)
    return Dependency(matrix, entropies, symbols, binned, edges, degrees, key_attributes(degrees))


def symbols_of(points: Points, bins: int) -> tuple[list[Symbols], tuple[bool, ...]]:
    """Return every attribute as symbols 0, 1, 2 and so on, and whether it was cut into bins for that."""
    numbers = [_coded(column, bins) for column in points.numbers.T]
    codes = [np.unique(column, return_inverse=True)[1].astype(np.int64) for column in points.codes.T]
    return [column for column, _ in numbers] + codes, tuple(cut for _, cut in numbers) + (False,) * len(codes)


def dependency_matrix(coded: Sequence[Symbols]) -> Floats:
    """Return the distance of every pair of attributes in bits."""
    matrix = np.zeros((len(coded), len(coded)))
    single = [entropy(column) for column in coded]
    for one, other in combinations(range(len(coded)), 2):
        joint = joint_entropy(coded[one], coded[other])
        matrix[one, other] = matrix[other, one] = max(0.0, 2 * joint - (single[one] + single[other]))
    return matrix


def entropy(symbols: Symbols) -> float:
    """Return H(A) in bits.

    >>> entropy(np.array([0, 0, 1, 2]))
    1.5
    """
    return _bits(np.bincount(symbols))


def joint_entropy(one: Symbols, other: Symbols) -> float:
    """Return H(A,B) in bits.

    >>> joint_entropy(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]))
    2.0
    """
    width = int(other.max()) + 1
    pairs = one * width + other
    if (int(one.max()) + 1) * width > 4 * len(one):  # more cells than records: count only those that are there
        return _bits(np.unique(pairs, return_counts=True)[1])
    return _bits(np.bincount(pairs))


def spanning_tree(matrix: Floats) -> tuple[tuple[int, int], ...]:
    """Return the edges of the minimum spanning tree in the order in which Kruskal takes them."""
    weights = np.round(matrix, DECIMALS)
    pairs = sorted(combinations(range(len(matrix)), 2), key=lambda pair: (weights[pair], pair))
    part = list(range(len(matrix)))  # the part of the forest each attribute is in
    edges = []
    for one, other in pairs:
        if part[one] != part[other]:
            edges.append((one, other))
            part = [part[one] if own == part[other] else own for own in part]
    return tuple(edges)


def key_attributes(degrees: Sequence[int]) -> tuple[int, ...]:
    """Return the attributes of highest degree, just as many as it takes to sum to at least m.

    >>> key_attributes([1, 3, 3, 1, 1, 1])
    (1, 2)
    """
    keys: list[int] = []
    for attribute in sorted(range(len(degrees)), key=lambda attribute: -degrees[attribute]):
        keys.append(attribute)
        if sum(degrees[key] for key in keys) >= len(degrees):
            break
    return tuple(keys)


def _bits(counts: NDArray[np.int64]) -> float:
    """Return the entropy of a distribution given as counts; the order of the counts does not matter to the bit."""
    values, times = np.unique(counts[counts > 0], return_counts=True)
    total = int((values * times).sum())
    return math.log2(total) - math.fsum(times * values * np.log2(values)) / total


def _coded(column: Floats, bins: int) -> tuple[Symbols, bool]:
    values, symbols, times = np.unique(column, return_inverse=True, return_counts=True)
    if len(values) ** 2 <= max(bins**2, len(column)):
        return symbols.astype(np.int64), False
    smaller = np.cumsum(times) - times  # records below each value
    bin_of = np.unique(smaller * bins // len(column), return_inverse=True)[1]
    return bin_of[symbols].astype(np.int64), True
