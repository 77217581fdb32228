"""Cut a table into blocks: whether, how large, and where.

Size. A table is cut only if the whole would take more than `MAX_UNCUT_SECONDS` of one processor by the declared cost
of the method, or more than `MAX_UNCUT_BYTES` of memory. The estimate uses the policy and the number of records only,
never the machine, so that the same input gives the same release everywhere. Tables of up to `MAX_UNCUT_RECORDS`
records are never cut. A block is as large as it can be while a million records take at most `MAX_SECONDS_PER_MILLION`
seconds: larger blocks lose less.

Cuts. A part with too many records is cut in two, in proportion to the blocks of each side, along the attribute with
the largest variance (estimated on a sample), at the exact quantile. Ties are cut along the attribute that varies most
among them; of equal records the lowest rows go to the lower side.

Layers. Classes are compared with the distribution of the whole table. Each block gets its share of every layer of the
confidential columns: the column with the strictest promise is sorted and cut into layers of equal size, as many as a
close class has records (expression (3) of paper 004) or a multiple; each layer is cut by the next column, and so on.
Each layer is cut at its own quantile, and rounding is carried to the next layer. Values without an order are ranked
by marginality: the sum of the distances to all records, the least first (Soria-Comas et al. 2015, section 7).

Cost: O(n log(n / size)), O(n log n) a confidential column.   Ties: the first attribute or value; the lowest row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import plural
from kinfold.methods.partition.requirement import Requirement
from kinfold.methods.partition.t_first import cluster_size
from kinfold.models.model import ClassCriterion
from kinfold.policy.registry import Declaration
from kinfold.progress import Progress, no_progress
from kinfold.tables.points import Floats, Labels, NominalScale, OrdinalScale, Points
from kinfold.tables.schema import Role

if TYPE_CHECKING:
    from kinfold.methods.task import Task

Ints: TypeAlias = NDArray[np.int64]
Rows: TypeAlias = NDArray[np.intp]

MAX_UNCUT_RECORDS = 100_000  # partitioned whole by every method, whatever it costs
MAX_UNCUT_SECONDS, MAX_UNCUT_BYTES = 10.0, 4e9
MAX_SECONDS_PER_MILLION = 10.0  # of expected time, for a million records cut into blocks
BLOCK_SIZES = (100_000, 50_000, 20_000, 10_000, 5_000, 2_000, 1_000)
BYTES_PER_RECORD = 300  # measured while records are partitioned, in addition to four copies of their values
COST_REFERENCE = (100_000, 8, 10)  # records, attributes and k of the seconds that methods declare
REPAIR_COST, STARTS_COST = (0.5, 1.5), (3.2, 1.5)  # of promises beyond k, as methods declare theirs: one start, several
BORDER_SECONDS = 35e-6  # of a record in blocks, under promises: measured with 300,000 records by 8, k = 5
MAX_LAYERS = 64  # unless a class has more records
MIN_LAYER_RECORDS = 8  # of a layer in a block
SPREAD_SAMPLE_RECORDS = 10_000  # records of a part on which spreads are estimated


@dataclass(frozen=True)
class BlockSize:
    """How many records a block may have (0: the table is not cut), and why."""

    records: int
    reason: str = ""


def choose_block_size(method: Declaration, task: Task) -> BlockSize:
    """Return how large a block may be."""
    requested, n = task.method.block, task.records
    if requested is not None:
        size = max(requested, 2 * task.k)
        return BlockSize(size, "set by method.block") if requested and n > size else BlockSize(0)
    seconds = estimate_seconds(method.cost, task, n)
    memory = n * (BYTES_PER_RECORD + 4 * 8 * len(task.policy.with_role(Role.QUASI)))
    if n <= MAX_UNCUT_RECORDS or (seconds <= MAX_UNCUT_SECONDS and memory <= MAX_UNCUT_BYTES):
        return BlockSize(0)
    fast = (
        size
        for size in BLOCK_SIZES
        if estimate_seconds(method.cost, task, size) * 1e6 / size <= MAX_SECONDS_PER_MILLION
    )
    size = max(next(fast, BLOCK_SIZES[-1]), 2 * task.k)
    seconds += estimate_repair_seconds(task, n)  # which does not decide the size
    whole = f"{method.name} on the whole table would take about {describe_seconds(seconds)} and {memory / 1e9:.1f} GB"
    return BlockSize(size if n > size else 0, f"{whole}; method.block = 0 forbids blocks")


def estimate_seconds(cost: tuple[float, float], task: Task, records: int) -> float:
    """Estimate how many seconds a method of this declared cost takes for so many records of this table."""
    (seconds, power), (reference, attributes, k) = cost, COST_REFERENCE
    quasi = len(task.policy.with_role(Role.QUASI))
    return float(seconds * (records / reference) ** power * quasi / attributes * (k / task.k))


def estimate_repair_seconds(task: Task, records: int) -> float:
    """Estimate how many seconds the promises beyond k take for so many records together."""
    if not task.requirements():
        return 0.0
    return estimate_seconds(STARTS_COST if task.method.uses_several_starts else REPAIR_COST, task, records)


def describe_blocks(blocks: int, size: BlockSize) -> str:
    """Say how many blocks there are, how large, and why.

    >>> describe_blocks(12, BlockSize(1000, "set by method.block"))
    'the classes were made in 12 blocks of at most 1,000 records: set by method.block'
    """
    return f"the classes were made in {blocks:,} blocks of at most {plural(size.records, 'record')}: {size.reason}"


def describe_seconds(seconds: float) -> str:
    """Say roughly how long something takes.

    >>> describe_seconds(40), describe_seconds(900)
    ('40 s', '15 minutes')
    """
    return f"{seconds:,.0f} s" if seconds < 600 else f"{seconds / 60:,.0f} minutes"


def rank_records(requirement: Requirement) -> Ints:
    """Return the rank of each record's value: its code if values have an order, else by marginality.

    >>> from kinfold.models.model import ClassCriterion
    >>> from kinfold.methods.partition.requirement import Requirement
    >>> equal = ClassCriterion("nested", 0.2, paths=np.arange(3)[:, None])
    >>> rank_records(Requirement(equal, np.array([0, 1, 1, 2, 2, 2]))).tolist()
    [2, 1, 1, 0, 0, 0]
    """
    criterion = requirement.criterion
    if criterion.statistic != "nested" or criterion.paths is None:
        return requirement.codes
    return rank_values(criterion, np.bincount(requirement.codes, minlength=len(criterion.paths)))[requirement.codes]


def rank_values(criterion: ClassCriterion, counts: NDArray[np.integer]) -> Ints:
    """Return the rank of each value, given how many records have it."""
    paths = criterion.paths
    if criterion.statistic != "nested" or paths is None:
        return np.arange(len(counts))
    # the distance of two values is the number of levels at which their labels differ
    relatives = [np.bincount(level, counts)[level] for level in paths.T]
    marginality = sum(counts.sum() - records for records in relatives)
    rank = np.empty(len(paths), np.int64)
    rank[np.argsort(marginality, kind="stable")] = np.arange(len(paths))
    return rank


def number_layers(required: Sequence[Requirement], k: int, size: int) -> Labels | None:
    """Number the layers of the records, for blocks of this size; None without promises beyond k.

    >>> from kinfold.methods.partition.requirement import Requirement
    >>> number_layers([Requirement.close([5, 1, 4, 2, 3, 0], 0.25)], 2, 32).tolist()
    [3, 0, 2, 1, 2, 0]
    """
    if not required:
        return None
    n = len(required[0].codes)
    limit = max(1, min(MAX_LAYERS, size // MIN_LAYER_RECORDS, n))
    layers: Ints = np.zeros(n, np.int64)
    # promises of closeness come first, the strictest of them before the others
    close = ("ordered", "nested")
    for each in sorted(required, key=lambda r: r.criterion.limit if r.criterion.statistic in close else 2.0):
        count = int(layers.max()) + 1
        if count * 2 > limit:
            break
        layers = _cut_layers(layers, rank_records(each), _choose_layer_count(each, k, limit // count, n))
    return layers.astype(np.int32)


def _choose_layer_count(required: Requirement, k: int, limit: int, n: int) -> int:
    """Return how many layers a column has: as many as a close class has records, or a multiple."""
    if required.criterion.statistic != "ordered":
        return limit
    size = cluster_size(n, min(k, n), required.criterion.limit)
    return size * (limit // size) if size <= limit else min(size, n)


def _cut_layers(layers: Ints, rank: Ints, parts: int) -> Ints:
    """Cut each layer into so many of about the same size, by the rank of its records."""
    order = np.lexsort((rank, layers))
    size = np.bincount(layers)
    place = np.arange(len(layers)) - np.repeat(np.cumsum(size) - size, size)
    finer = np.empty(len(layers), np.int64)
    finer[order] = layers[order] * parts + place * parts // size[layers[order]]
    return np.unique(finer, return_inverse=True)[1].astype(np.int64)


def cut(
    points: Points, rows: Rows, size: int, strata: Labels | None = None, progress: Progress = no_progress
) -> list[Rows]:
    """Cut sorted row numbers into blocks of at most `size` rows; block sizes differ by a record or two.

    >>> from kinfold.tables.points import Points
    >>> line = Points.from_array([[0.0], [9.0], [1.0], [8.0], [2.0]])
    >>> [block.tolist() for block in cut(line, np.arange(5), 3)]
    [[0, 2], [1, 3, 4]]
    """
    parts, blocks = [(rows, -(-len(rows) // size))], []
    total, done = len(rows) * max(1, int(np.ceil(np.log2(max(2, parts[0][1]))))), 0
    while parts:
        part, count = parts.pop()
        if count <= 1:
            blocks.append(part)
            continue
        low = count // 2
        below = _mark_lower(points, part, len(part) * low // count, strata)
        parts += [(part[~below], count - low), (part[below], low)]
        done += len(part)
        progress(min(done, total), total)
    return blocks


def _mark_lower(points: Points, part: Rows, count: int, strata: Labels | None) -> NDArray[np.bool_]:
    """Mark the `count` lower rows along the attribute with the largest spread; each stratum gives its share."""
    attribute = int(np.argmax(estimate_spreads(points, part)))
    if strata is None:
        return mark_lowest(points, part, count, attribute)
    here, below = strata[part], np.zeros(len(part), np.bool_)
    order = np.argsort(here, kind="stable")
    ends = np.flatnonzero(np.append(here[order][1:] != here[order][:-1], True)) + 1
    shares = np.diff(ends * count // len(part), prepend=0)  # rounding is carried to the next stratum
    for places, share in zip(np.split(order, ends[:-1]), shares, strict=True):
        below[places] = mark_lowest(points, part[places], int(share), attribute)
    return below


def mark_lowest(points: Points, rows: Rows, count: int, attribute: int) -> NDArray[np.bool_]:
    """Mark the `count` lowest rows along an attribute; ties are cut along the attribute with the next spread."""
    if count <= 0 or count >= len(rows):
        return np.full(len(rows), count > 0)
    values = get_column(points, rows, attribute)
    edge = np.partition(values, count - 1)[count - 1]
    below = values < edge
    tied = np.flatnonzero(values == edge)
    left = count - int(below.sum())
    if left < len(tied):
        spread = estimate_spreads(points, rows[tied])
        widest = int(np.argmax(spread))
        tied = tied[mark_lowest(points, rows[tied], left, widest)] if spread[widest] > 0 else tied[:left]
    below[tied] = True
    return below


def get_column(points: Points, rows: Rows, attribute: int) -> NDArray[np.float64] | Labels:
    """Return the numbers, or the codes, of one attribute."""
    width = points.numbers.shape[1]
    return points.numbers[rows, attribute] if attribute < width else points.codes[rows, attribute - width]


def estimate_spreads(points: Points, rows: Rows) -> Floats:
    """Return the spread of each attribute among these rows: half the mean squared distance of two of them.

    A sample of the rows decides, unless no attribute varies in it.
    """
    step = max(1, len(rows) // SPREAD_SAMPLE_RECORDS)
    spreads = _compute_spreads(points, rows[::step])
    return spreads if step == 1 or spreads.max() > 0 else _compute_spreads(points, rows)


def _compute_spreads(points: Points, rows: Rows) -> Floats:
    numbers, codes = points.numbers[rows], points.codes[rows]
    constant = numbers.max(axis=0) == numbers.min(axis=0)  # its variance may still be a rounding error
    variances = np.where(constant, 0.0, numbers.var(axis=0))
    coded = [_compute_code_spread(scale, column) for scale, column in zip(points.scales, codes.T, strict=True)]
    return np.concatenate([variances, coded])


def _compute_code_spread(scale: OrdinalScale | NominalScale, codes: Labels) -> float:
    if isinstance(scale, OrdinalScale):
        return float(scale.weight * codes.var() / max(1, scale.size) ** 2)
    # two values differ at all levels below their lowest common ancestor: if j levels differ, j² = 1 + 3 + 5 ...
    total = 0.0
    for level in range(scale.height):
        share = np.unique(scale.paths[codes, level], return_counts=True)[1] / len(codes)
        total += (2 * level + 1) * (1.0 - float((share**2).sum()))
    return float(scale.weight * total / (2 * scale.height**2))
