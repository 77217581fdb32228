"""Approximate microaggregation: groups are formed on a few key attributes that represent the others.

    distance of two attributes    H(A|B) + H(B|A) = 2 H(A,B) - H(A) - H(B): the variation of information, in bits;
                                  0 if each determines the other, H(A) + H(B) if they are independent
    dependency matrix             that distance for every pair (Definitions 2 and 3)
    dependency tree               the minimum spanning tree of the matrix, by Kruskal (Algorithm 1)
    normalized distance           the distance over H(A,B), 0 to 1, so that an attribute with little entropy is not near
                                  to every other; not from the paper
    key attributes                by falling degree in the tree, until their degrees sum to at least m (Definition 5);
                                  at most max(2, ceil(m/2)) of them (Theorem 2)

    project the records on the key attributes
    while at least 2k records are left:
        r = the remaining record that is farthest from the centre of the remaining records
        form a group of r and its k-1 nearest remaining records
        s = the remaining record that is farthest from r; the same for s
    if k to 2k-1 are left: they are the last group
    if fewer than k are left: they join the group whose centre is nearest to their own centre

Symbols: codes are symbols. So are the values of a column of numbers if there are at most max(bins, √n) different ones;
otherwise the column is cut into bins of equal frequency, and equal values stay together. Bins of equal width would put
most of a skewed column into one bin; with little entropy left it would be near to every other attribute.

Paper: Sun, Wang, Li & Zhang, Expert Syst. Appl. 39 (2012), sections 3.1 and 3.2, Algorithm 2. This is not MDAV-generic:
it forms two groups down to 2k records, and remaining records may join a group that was formed before.
Readings: the paper swaps H(A1|A2) and H(A2|A1), prints 1.6681 for 1.6680 at (A2,A5), and Figure 2 is not the minimum
tree; its key attributes {A2, A3} hold. With one attribute there is no tree, and it is the key. Step 6 is "between k and
2k-1". s is searched after r's group is formed, because with ties the farthest record may be in it. Distances and
centres are those of the projection; the released values are averages of all attributes.
Ties: edges by weight (to 12 decimals), then first attribute, then second; degrees, then the lower attribute; the lowest
row index; of centres, the group formed first. Attributes are numbered from 0, numbers first, then codes.

Cost: O(m n log n) for the symbols, O(m² n) for the matrix. Records that are equal on the key attributes are folded into
one, and the groups come from the tree of MDAV (`kinfold.kernels.mdav`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import PolicyError
from kinfold.methods.partition.geometry import compute_centre, compute_centres, distances_to
from kinfold.methods.partition.mdav import mdav_compiled
from kinfold.policy.registry import Declaration
from kinfold.progress import Progress, no_progress
from kinfold.tables.points import Floats, Labels, Points, check_k

if TYPE_CHECKING:
    from kinfold.methods.task import Task


Symbols: TypeAlias = NDArray[np.int64]

DEFAULT_BINS = 10  # quantiles for a column of many values: usual, not tuned
WEIGHT_DECIMALS = 12  # weights that differ by less are ties: they come from sums of logarithms


METHOD = Declaration(
    name="approximate",
    family="partition",
    summary="groups on the key attributes of the dependency tree (paper 001)",
    page="approximate",
    kernels=("box_tree", "clustering", "mdav", "geometry"),
    cost=(0.15, 1.1),
)


@dataclass(frozen=True, eq=False)
class Dependency:
    """The dependency matrix and tree of a table's attributes, and the key attributes they give."""

    matrix: Floats  # (m, m), bits; shares of the joint entropy if normalized
    entropies: tuple[float, ...]  # of each attribute, bits
    symbols: tuple[int, ...]  # number of different symbols of each attribute
    binned: tuple[bool, ...]  # whether its values were binned
    edges: tuple[tuple[int, int], ...]  # of the tree, in the order of Kruskal
    degrees: tuple[int, ...]
    keys: tuple[int, ...]  # in the order of choice


def dependency(x: object, *, bins: int = DEFAULT_BINS, normalized: bool = False) -> Dependency:
    """Return the dependency matrix, tree and key attributes of a table, by the paper's distance or the normalized one.

    >>> result = dependency(np.array([[0, 5, 0], [0, 5, 1], [1, 7, 0], [1, 7, 1]]))
    >>> result.matrix.tolist(), result.edges, result.keys
    ([[0.0, 0.0, 2.0], [0.0, 0.0, 2.0], [2.0, 2.0, 0.0]], ((0, 1), (0, 2)), (0, 1))
    """
    points = Points.from_array(x)
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or bins < 2:
        raise PolicyError(f"bins is {bins!r}", fix="choose a whole number of bins from 2 up; 10 is usual")
    if not len(points):
        raise PolicyError("there are no records", fix="give at least one record")
    numbers = [_encode_column(column, int(bins)) for column in points.numbers.T]
    codes = [np.unique(column, return_inverse=True)[1].astype(np.int64) for column in points.codes.T]
    coded = [column for column, _ in numbers] + codes
    binned = tuple(cut for _, cut in numbers) + (False,) * len(codes)
    symbols = tuple(int(column.max()) + 1 for column in coded)
    matrix = dependency_matrix(coded, normalized=normalized)
    edges = spanning_tree(matrix)
    degrees = tuple(int(degree) for degree in np.bincount(np.array(edges, np.intp).ravel(), minlength=len(coded)))
    entropies = tuple(entropy(column) for column in coded)
    return Dependency(matrix, entropies, symbols, binned, edges, degrees, key_attributes(degrees))


def dependency_matrix(coded: Sequence[Symbols], *, normalized: bool = False) -> Floats:
    """Return the distance of every pair of attributes, in bits or (normalized) as a share of their joint entropy.

    >>> dependency_matrix([np.array([0, 0, 1, 1]), np.array([0, 1, 2, 3])], normalized=True).tolist()
    [[0.0, 0.5], [0.5, 0.0]]
    """
    matrix = np.zeros((len(coded), len(coded)))
    single = [entropy(column) for column in coded]
    for one, other in combinations(range(len(coded)), 2):
        joint = joint_entropy(coded[one], coded[other])
        distance = max(0.0, 2 * joint - (single[one] + single[other]))
        matrix[one, other] = matrix[other, one] = distance / joint if normalized and joint else distance
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
    if (int(one.max()) + 1) * width > 4 * len(one):  # more cells than records: count only those that occur
        return _bits(np.unique(pairs, return_counts=True)[1])
    return _bits(np.bincount(pairs))


def spanning_tree(matrix: Floats) -> tuple[tuple[int, int], ...]:
    """Return the edges of the minimum spanning tree, in the order of Kruskal's algorithm."""
    weights = np.round(matrix, WEIGHT_DECIMALS)
    pairs = sorted(combinations(range(len(matrix)), 2), key=lambda pair: (weights[pair], pair))
    part = list(range(len(matrix)))  # of the forest, for each attribute
    edges = []
    for one, other in pairs:
        if part[one] != part[other]:
            edges.append((one, other))
            part = [part[one] if own == part[other] else own for own in part]
    return tuple(edges)


def key_attributes(degrees: Sequence[int]) -> tuple[int, ...]:
    """Return the fewest attributes of highest degree whose degrees sum to at least m.

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
    """Return the entropy of a distribution given as counts, to the same bits for any order of the counts."""
    values, times = np.unique(counts[counts > 0], return_counts=True)
    total = int((values * times).sum())
    return math.log2(total) - math.fsum(times * values * np.log2(values)) / total


def _encode_column(column: Floats, bins: int) -> tuple[Symbols, bool]:
    values, symbols, times = np.unique(column, return_inverse=True, return_counts=True)
    if len(values) ** 2 <= max(bins**2, len(column)):
        return symbols.astype(np.int64), False
    smaller = np.cumsum(times) - times  # records below each value
    bin_of = np.unique(smaller * bins // len(column), return_inverse=True)[1]
    return bin_of[symbols].astype(np.int64), True


def approximate(
    x: object, k: int, *, bins: int = DEFAULT_BINS, normalized: bool = False, progress: Progress = no_progress
) -> Labels:
    """Return a group label for each record, in the order of forming. Every group has at least k records.

    `normalized` chooses the key attributes by a share of the joint entropy instead of the paper's distance.

    >>> table = np.array([[0, 5, 0], [9, 7, 1], [0, 5, 1], [9, 7, 0], [0, 5, 0], [9, 7, 1]])
    >>> approximate(table, 3).tolist()
    [0, 1, 0, 1, 0, 1]
    """
    points = Points.from_array(x)
    k = check_k(points, k)
    projected = project(points, dependency(points, bins=bins, normalized=normalized).keys)
    labels = mdav_compiled(projected, k, progress, in_pairs=True)
    _place_remaining(projected, labels, k)
    return labels


def run(records: Points, task: Task, progress: Progress) -> Labels:
    """Return the classes of a task."""
    return approximate(records, task.k, progress=progress)


def project(points: Points, attributes: Sequence[int]) -> Points:
    """Return the points on these attributes only, in the order of the columns: numbers first, then codes."""
    width = points.numbers.shape[1]
    numbers = sorted(attribute for attribute in attributes if attribute < width)
    codes = sorted(attribute - width for attribute in attributes if attribute >= width)
    return Points(points.numbers[:, numbers], points.codes[:, codes], tuple(points.scales[code] for code in codes))


def _place_remaining(points: Points, labels: Labels, k: int) -> None:
    """Make the remaining records the last group, or add them to the nearest one."""
    remaining = np.flatnonzero(labels < 0)
    if len(remaining) >= k:
        labels[remaining] = labels.max() + 1
    elif len(remaining):
        grouped = np.flatnonzero(labels >= 0)
        centres = compute_centres(points.take(grouped), labels[grouped])
        labels[remaining] = np.argmin(distances_to(centres, compute_centre(points.take(remaining)), 0))
