"""MDAV-generic: fixed-size microaggregation.

    while at least 3k records are left:
        r = the record farthest from the centre of what is left; a cluster of r and its k-1 nearest
        s = the record of the rest farthest from r; a cluster of s and its k-1 nearest
    if at least 2k are left: one more cluster around the record farthest from the centre
    the rest is the last cluster

Paper: Domingo-Ferrer & Torra, Data Min. Knowl. Discov. 11 (2005), Algorithm 5.1, with s taken from the rest.
Cost: O(n² d / k) time here, O(n d) memory.   Ties: the lowest row index wins.

`mdav_compiled` takes much less than quadratic time, from a tree of boxes. `mdav_plain` runs the steps with numpy and
returns the same labels, bit for bit, ten times slower. A process that has not loaded the kernels yet saves half a
second with it if the table is small, and the first process of all six seconds of compiling; no other method has two
ways.

With many attributes the boxes exclude few points. The share of the tree that a cluster visits shows what the boxes are
worth. Where queries for the farthest visit many nodes, a tree with more hubs is grown (see `kernels.queries`). Above
_MAX_VISITED_SHARE the kernel `advance_flat`, which scans every point, takes over. Measured on 10,000 to 30,000 records
with k = 5, the tree has 0.3 to 0.5 times the speed of the scan for Gaussian data in 16 to 64 attributes, and 0.9 to 10
times for up to 8 attributes or for clustered data in up to 64.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold import kernels
from kinfold.methods.partition import index
from kinfold.methods.partition.index import HUBS, advance_in_steps, grow_tree, is_far, start_counting, start_folded_run
from kinfold.policy.registry import Declaration
from kinfold.progress import Progress, no_progress
from kinfold.tables.points import Codes, Floats, Labels, OrdinalScale, Points, check_k

if TYPE_CHECKING:
    from kinfold.methods.task import Task

Place: TypeAlias = tuple[Floats, Codes]  # the numbers and codes to measure distances from

METHOD = Declaration(
    name="mdav",
    family="partition",
    summary="MDAV-generic (paper 000), exact",
    page="mdav",
    kernels=("box_tree", "clustering", "mdav"),
    auto_reason="the best start for refinement by local search",
    cost=(0.4, 1.6),
)

_PLAIN_SECONDS = 2e-5, 2e-6, 1e-9  # of `mdav_plain`: for a cluster, for each of its columns, for each value of these
# With numpy instead of loading the kernels, which takes 0.4 s, or of compiling them, which takes 6 s, but once
_MAX_PLAIN_SECONDS, _MAX_FIRST_SECONDS = 0.2, 2.0
_DOUBLE_BITS = 53  # bits of a double
_MAX_VISITED_SHARE = 0.5  # nodes visited for a cluster, as a share of the tree's leaves
_TRIAL_CLUSTERS = 32  # clusters before the tree is judged
_MIN_JUDGED_LEAVES = 64  # smaller trees are not judged: for them it does not matter


def mdav(x: object, k: int, *, progress: Progress = no_progress) -> Labels:
    """Return a cluster label for each record, numbered in the order of forming. Every cluster has k to 2k-1 records.

    >>> mdav(np.array([[0.0], [1.0], [5.0], [6.0], [9.0], [10.0]]), 2).tolist()
    [0, 0, 2, 2, 1, 1]
    """
    points = Points.from_array(x)
    k = check_k(points, k)
    form = mdav_compiled if _is_worth_compiling(points, k) else mdav_plain
    return form(points, k, progress)


def _is_worth_compiling(points: Points, k: int) -> bool:
    """Whether the kernels are loaded, or numpy would take longer than the wait for them."""
    if kernels.is_loaded("mdav"):
        return True
    wide = points.numbers.shape[1] + points.codes.shape[1]
    cluster, columns, values = _PLAIN_SECONDS
    seconds = len(points) / k * (cluster + wide * (columns + len(points) * values))
    return seconds > _MAX_PLAIN_SECONDS and (seconds > _MAX_FIRST_SECONDS or kernels.is_ready("mdav"))


def run(records: Points, task: Task, progress: Progress) -> Labels:
    """Return the classes of a task."""
    return mdav(records, task.k, progress=progress)


def mdav_plain(points: Points, k: int, progress: Progress) -> Labels:
    """Return the labels by the steps at the top of this file, with numpy."""
    labels = np.full(len(points), -1, np.int32)
    left, centre = RemainingRecords(points, np.arange(len(points))), ExactCentre(points)
    label = 0
    while len(left) >= 2 * k:
        place = centre.place()
        for _ in range(2 if len(left) >= 3 * k else 1):
            _, seed = left.find_farthest(place)
            place = get_place(points, seed)
            cluster = left.take(place, k)
            centre.remove(cluster)
            labels[cluster] = label
            label += 1
        progress(len(points) - len(left), len(points))
    labels[left.rows] = label
    progress(len(points), len(points))
    return labels


def mdav_compiled(points: Points, k: int, progress: Progress, *, flat: bool = False, in_pairs: bool = False) -> Labels:
    """Return the labels of MDAV, from the start by scans if `flat`.

    With `in_pairs` clusters are formed two at a time down to 2k records, every seed is in its own cluster, whatever
    ties with it, and the label of the other records is -1 (see `approximate`).
    """
    run = start_folded_run(points, k)
    state, kernel = run.state[0], kernels.load("mdav")
    if in_pairs:
        state.own, state.pairs = 1, k
    hubs = 0
    while state.records >= 2 * state.k:
        leaf = kernel.FLAT_LEAF if flat else kernel.choose_leaf(int(state.points))
        tree = grow_tree(run, points, leaf, hubs)
        first = start_counting(run)
        advance = kernel.advance_flat if flat else kernel.advance
        for _ in advance_in_steps(run, partial(advance, run, tree), progress):
            # the tree is judged after some clusters, and never between the two of a pair
            formed, leaves = int(state.label) - first, len(tree.size)
            judged = leaves >= _MIN_JUDGED_LEAVES and formed >= _TRIAL_CLUSTERS and not state.second
            if judged and run.query.request[0].visited > _MAX_VISITED_SHARE * formed * leaves:
                flat, hubs = True, 0
                break
            if hubs == 0 and not flat and not state.second and is_far(run, first, index.MDAV_FAR_VISITS):
                hubs = HUBS
                break
    labels: Labels = run.labels
    if not in_pairs:
        labels[labels < 0] = state.label
    progress(len(points), len(points))
    return labels


class ExactCentre:
    """The centre of the points that have not been removed.

    Numbers are integer multiples of their column's smallest unit, so that adding and removing lose nothing. The sum is
    rounded once, to nearest even (the result of `math.fsum`), and divided by the count: the kernels, which hold the
    same sum in limbs, get the same bits. Codes are counted. Cost: a few big-integer operations for each number removed.

    >>> centre = ExactCentre(Points.from_array([[1e16], [1.0], [-1e16]]))
    >>> centre.numbers().tolist()
    [0.3333333333333333]
    >>> centre.remove(np.array([0, 2]))
    >>> centre.numbers().tolist()
    [1.0]
    """

    def __init__(self, points: Points) -> None:
        self._count = len(points)
        # each number as an integer multiple of its column's unit
        fractions, exponents = np.frexp(points.numbers)
        lowest = exponents.min(axis=0, initial=0)
        whole = np.ldexp(fractions, _DOUBLE_BITS).astype(np.int64).astype(object)
        self._units = whole << (exponents - lowest).astype(object)
        self._scale = [Fraction(2) ** int(e - _DOUBLE_BITS) for e in lowest]
        self._sums = self._units.sum(axis=0)
        self._codes = points.codes
        self._scales = points.scales
        self._counts = [np.bincount(points.codes[:, j], minlength=s.codes) for j, s in enumerate(points.scales)]

    def remove(self, rows: NDArray[np.intp]) -> None:
        """Remove these rows."""
        self._count -= len(rows)
        self._sums = self._sums - self._units[rows].sum(axis=0)
        for j, counts in enumerate(self._counts):
            np.subtract.at(counts, self._codes[rows, j], 1)

    def place(self) -> Place:
        """Return the centre as a place: its numbers and its codes."""
        return self.numbers(), self.codes()

    def numbers(self) -> Floats:
        """Return the mean of each column of numbers: the exact sum, rounded once, over the count."""
        sums = [float(total * scale) for total, scale in zip(self._sums, self._scale, strict=True)]
        return np.array(sums, np.float64) / self._count

    def codes(self) -> Codes:
        """Return the lower median of each column of ordinal codes and the mode of each column of nominal ones."""
        middle = (self._count + 1) // 2
        codes = [
            np.searchsorted(counts.cumsum(), middle) if isinstance(scale, OrdinalScale) else counts.argmax()
            for counts, scale in zip(self._counts, self._scales, strict=True)
        ]
        return np.array(codes, np.int32)


def get_place(points: Points, row: int) -> Place:
    """Return the numbers and codes of one record."""
    return points.numbers[row], points.codes[row]


class RemainingRecords:
    """The records that are left, column by column, in the order of their rows. Ties: the lowest row.

    >>> left = RemainingRecords(Points.from_array([[0.0], [1.0], [5.0]]), np.arange(3))
    >>> left.take((np.array([2.0]), np.empty(0, np.int32)), 1).tolist()
    [1]
    >>> left.rows.tolist()
    [0, 2]
    """

    def __init__(self, points: Points, rows: NDArray[np.intp]) -> None:
        self.rows = rows
        self._scales = points.scales
        self._numbers = np.ascontiguousarray(points.numbers[rows].T)
        self._codes = np.ascontiguousarray(points.codes[rows].T)

    def __len__(self) -> int:
        return len(self.rows)

    def find_farthest(self, place: Place) -> tuple[float, int]:
        """Return the squared distance and the row of the record farthest from a place."""
        distances = self.distances(place)
        at = int(distances.argmax())
        return float(distances[at]), int(self.rows[at])

    def take(self, place: Place, k: int) -> NDArray[np.intp]:
        """Remove the k records nearest to a place, and return their rows."""
        distances = self.distances(place)
        edge = np.partition(distances, k - 1)[k - 1]
        near = distances < edge
        near[np.flatnonzero(distances == edge)[: k - np.count_nonzero(near)]] = True
        rows = self.rows[near]
        self._keep(~near)
        return np.asarray(rows, np.intp)

    def remove(self, at: NDArray[np.intp]) -> None:
        """Remove the records at these positions."""
        stay = np.ones(len(self), np.bool_)
        stay[at] = False
        self._keep(stay)

    def _keep(self, stay: NDArray[np.bool_]) -> None:
        self.rows = self.rows[stay]
        self._numbers = self._numbers.compress(stay, axis=1)  # keeps each column contiguous, unlike [:, stay]
        self._codes = self._codes.compress(stay, axis=1)

    def distances(self, place: Place) -> Floats:
        """Return the squared distances to a place, summed attribute by attribute, in the same order as the kernels."""
        steps = self._numbers - place[0][:, None]
        steps *= steps
        total = np.zeros(len(self.rows))
        for square in steps:
            total += square
        for scale, code, column in zip(self._scales, place[1], self._codes, strict=True):
            total += scale.squared_distances(int(code))[column]
        return total
