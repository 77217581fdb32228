"""Local search for cheaper partitions of some thousand records.

    1. descend from each start (relocate, swap, chains of three) and continue from the best end
    2. a step: take a few neighbouring groups apart, build one more, one fewer or as many from their records, descend
       from there; keep the result unless the cost grew by more than a random threshold
    3. after each chunk of steps cross the current partition with the best one, region by region

The threshold is drawn around a temperature that falls within each cycle; each cycle is twice as long as the one before
(see `annealing`). The descents of step 1 always run to their end. The constants were chosen by what ten seconds reach
on the field's three benchmark files with k = 3, 5 and 10 (`benchmarks/refine.py`).

Starts from a path: order the records by always going to the nearest record not visited yet, shorten the path by 2-opt
and Or-opt, first by distance, then by squared distance, and cut it optimally into groups of k to 2k-1 after each of the
two. MDAV starts at the outside and works inwards, a path goes through the dense parts. The table decides which start is
better (on EIA with k = 5 a search from a path ends at half the loss), so a search takes the best of all.

Paper: Domingo-Ferrer, Martinez-Balleste, Mateo-Sanz & Sebe, VLDB J. 15 (2006), 355-369 (orders cut optimally).
Cost: O(n²) memory; O(k² w) for a step with w candidate groups.   Ties: the first candidate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kinfold import kernels
from kinfold.methods.annealing import Annealer, Budget, Refinement
from kinfold.methods.partition.geometry import PairDistances, renumber_by_first_record
from kinfold.methods.partition.index import to_kernel_records
from kinfold.methods.partition.requirement import Requirement, pack_promises
from kinfold.progress import Progress, no_progress
from kinfold.tables.points import Floats, Labels, Points

if TYPE_CHECKING:
    from kinfold.kernels.groups import Groups
    from kinfold.kernels.promises import Promises
    from kinfold.kernels.records import Mixed

ROOM_SLACK = 6  # under promises a group may grow to twice its size plus this before it is laid out again
NO_DISTANCES, NO_NEIGHBOURS = np.zeros((0, 0)), np.zeros((0, 0), np.int32)
MIN_REGION_GAIN = 1e-12  # a region must be cheaper by this share: less is rounding
MAX_SHORTEN_ROUNDS = 60  # passes along a path; most paths are done after ten
NEAR_TRIED = 12  # near records that a shorter path may lead to
CHUNK_STEPS = 600  # divided by k: steps between two looks at the clock, and between two recounts of the costs
GROUPS_TAKEN_APART = 5  # in addition to the first
CANDIDATE_GROUPS, CHAIN_GROUPS = 6, 4  # candidate groups of a record, and of the second record of a chain
DESCENT_LOOKS = 100  # limit for each record in the first descent, which ends long before
START_TEMPERATURE = 1.5  # times the cost of a record over the root of k
STEPS_PER_GROUP = 60  # of size k, in the first cycle
MAX_K_FULL_CYCLE = 10  # above this k a step takes so long that there are fewer


@dataclass(frozen=True, eq=False)
class SearchInput:
    """What a search asks for distances (a table of all pairs, means of groups, or the records), and the promises."""

    records: Mixed
    distances: Floats  # (n, n) squared, or empty
    near: Labels
    promises: Promises
    means: bool  # whether the means of the groups are kept, which needs numbers alone

    @classmethod
    def from_distances(cls, pairs: PairDistances) -> SearchInput:
        """Use a table of all distances, without promises."""
        no_records = kernels.load("records").example_records()
        return cls(no_records, pairs.squared, pairs.nearest, pack_promises((), len(pairs)), False)

    @classmethod
    def from_points(
        cls, points: Points, requirements: Sequence[Requirement] = (), near: Labels = NO_NEIGHBOURS
    ) -> SearchInput:
        """Use the records, and the means of the groups if all attributes are numbers."""
        promises = pack_promises(requirements, len(points))
        return cls(to_kernel_records(points), NO_DISTANCES, near, promises, points.codes.shape[1] == 0)

    @property
    def has_promises(self) -> bool:
        """Whether groups have promises to keep."""
        return len(self.promises.kind) > 0

    def arrange(self, labels: Labels, k: int, free: int = 0) -> Groups:
        """Return the groups of these labels, and `free` empty ones, as the kernels take them."""
        kernel = kernels.load("groups")
        size = np.bincount(labels).astype(np.int64)
        # how many records each group has room for; all have the same room if there are empty groups to fill
        rooms = np.minimum(2 * size + ROOM_SLACK, int(size.sum()))
        if not self.has_promises:
            rooms = np.full(len(size) + free, max(2 * k - 1, int(size.max())))
        elif free:
            rooms = np.full(len(size) + free, rooms.max())
        start = np.concatenate([[0], np.cumsum(rooms)])
        size = np.concatenate([size, np.zeros(free, np.int64)])
        n, width = len(labels), self.records.numbers.shape[1] if self.means else 0
        order = np.lexsort((self.promises.codes[0], labels)) if self.has_promises else np.argsort(labels, kind="stable")
        place = np.empty(n, np.int32)  # of each record in its group
        place[order] = np.arange(n) - np.repeat(np.cumsum(size) - size, size)
        members = np.zeros(start[-1], np.int32)
        members[start[labels] + place] = np.arange(n)
        groups: Groups = kernel.Groups(
            *(self.distances, self.near, labels.astype(np.int32), place, np.zeros(n), members, start, size),
            *(np.zeros(len(size)), np.zeros(len(size)), np.zeros((len(size), width)), *kernel.make_workspace(n)),
        )
        groups.state[0].k = k
        return groups


def cross_partitions(pairs: PairDistances, one: Labels, other: Labels) -> Labels:
    """Return the partition that takes each region from the cheaper of two partitions. Ties: the first partition.

    Groups of the two partitions that share a record belong to one region. Regions share no record, so each can be taken
    from either partition: the result costs no more than either. Partitions of one search differ in many small regions.

    >>> from kinfold.methods.partition.geometry import PairDistances
    >>> from kinfold.tables.points import Points
    >>> points = Points.from_array([[0.0], [1.0], [2.0], [3.0], [20.0], [21.0], [22.0], [23.0]])
    >>> one, other = np.array([0, 0, 1, 1, 2, 3, 2, 3]), np.array([0, 1, 0, 1, 2, 2, 3, 3])
    >>> cross_partitions(PairDistances.from_points(points), one, other).tolist()
    [0, 0, 1, 1, 2, 2, 3, 3]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    groups = int(one.max()) + 1
    nodes = groups + int(other.max()) + 1
    edges = coo_array((np.ones(len(one), np.int8), (one, groups + other)), shape=(nodes, nodes))
    region = connected_components(edges, directed=False)[1][one]
    costs = [np.bincount(region, pairs.cost_shares(labels)) for labels in (one, other)]
    better = costs[1] < costs[0] * (1.0 - MIN_REGION_GAIN)
    return renumber_by_first_record(np.where(better[region], groups + other, one))


def cut_paths(pairs: PairDistances, k: int) -> Iterator[Labels]:
    """Yield the partitions of the path shortened by distance, then by squared distance."""
    kernel = kernels.load("geometry")
    path = np.empty(len(pairs), np.int32)
    kernel.chain(pairs.squared, path, int(pairs.squared.sum(axis=1).argmax()))
    for lengths in (np.sqrt(pairs.squared), pairs.squared):
        for _ in range(MAX_SHORTEN_ROUNDS):
            if kernel.shorten(lengths, pairs.nearest, path, NEAR_TRIED) == 0:
                break
        labels = np.empty(len(pairs), np.int32)
        kernel.cut_path(pairs.squared, path, k, labels)
        yield renumber_by_first_record(labels)


class PerturbedSearch:
    """The search space of partitions that are taken apart and rebuilt, over a table of distances."""

    def __init__(self, pairs: PairDistances, k: int, seed: int) -> None:
        self.pairs, self.k = pairs, k
        self.input = SearchInput.from_distances(pairs)
        self.stream = kernels.load("draws").make_stream(seed)
        self.chunk = max(5, CHUNK_STEPS // k)

    def begin(self, labels: Labels) -> None:
        """Start from this partition."""
        free = max(0, len(labels) // self.k + 1 - (int(labels.max()) + 1))
        self.groups = self.input.arrange(labels, self.k, free)
        state = self.groups.state[0]
        state.wide, state.deep, state.reach = CANDIDATE_GROUPS, CHAIN_GROUPS, GROUPS_TAKEN_APART

    def take_steps(self, temperatures: Floats) -> None:
        """Take a step at each temperature."""
        self.lowest = np.empty_like(self.groups.label)
        kernels.load("search").search(self.groups, self.stream, temperatures, self.lowest)

    def improve(self, labels: Labels, cost: float) -> tuple[Labels, float]:
        """Cross this partition with the cheapest of the last steps and with the one they ended at."""
        for candidate in (self.lowest, self.groups.label):
            labels = cross_partitions(self.pairs, labels, renumber_by_first_record(candidate))
        return labels, min(cost, self.pairs.cost(labels))

    def descend(self, starts: Iterable[Labels]) -> tuple[Labels, float]:
        """Return the cheapest partition that a descent from one of these starts ends at, and its cost."""
        ends = []
        for labels in starts:
            self.begin(labels)
            kernels.load("search").descend(self.groups, DESCENT_LOOKS)
            ends.append(renumber_by_first_record(self.groups.label))
        costs = [self.pairs.cost(labels) for labels in ends]
        best = int(np.argmin(costs))
        return ends[best], costs[best]


def search(
    pairs: PairDistances,
    starts: Iterable[Labels],
    k: int,
    budget: Budget,
    seed: int = 0,
    progress: Progress = no_progress,
) -> Refinement:
    """Return the cheapest partition into groups of at least k that the search reaches within the budget."""
    space = PerturbedSearch(pairs, k, seed)
    annealer = Annealer(space, *space.descend(starts))
    steps = budget.first_cycle or first_cycle_steps(len(pairs), k)
    return annealer.run(annealer.plan_doubling_cycles(steps, start_temperature(k)), budget, progress)


def first_cycle_steps(n: int, k: int) -> int:
    """Return the number of steps of the first cycle for a table of n records.

    >>> [first_cycle_steps(1000, k) for k in (3, 10, 50)]
    [20000, 6000, 240]
    """
    return max(1, STEPS_PER_GROUP * n * min(k, MAX_K_FULL_CYCLE) // k**2)


def start_temperature(k: int) -> float:
    """Return the temperature at the start of a cycle; larger groups need a lower one (by trial)."""
    return float(START_TEMPERATURE / np.sqrt(k))


def load_search_kernels() -> None:
    """Load what the search needs, and compile it if necessary, before a clock runs."""
    import scipy.sparse.csgraph

    assert scipy.sparse.csgraph  # noqa: S101  imported to have it loaded
    for name in ("draws", "search", "geometry"):
        kernels.prepare(name)
