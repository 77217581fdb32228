"""Route the records of a large table to regions, by the cuts of a sample.

    sample     records drawn by a hash of their places: the same ones on every engine
    standard   mean and deviation of each number, in the sample
    cuts       of the sample, for each pattern of missing values and each layer of the confidential columns, as in
               `cutting`: the attribute, and for each stratum the value of the cut
    region     the pattern and block of a record, by its own values and its number only

Records below the value of a cut go to the lower side, records above it to the upper side. Records at the value are
divided by a hash of their number, in the proportion of the sample. A region that is too small joins its neighbour;
one that is too large is cut exactly where it is processed. No region has fewer than k records.

A class is at a seam if its box, widened by a fifth on either side, reaches a cut between regions. Such classes of all
regions are grouped by other cuts of the sample, and improved like those at the borders of blocks (see `classes`).

Records arrive as columns of doubles (see `tables.regions`): quasi-identifiers, then confidential columns as codes.

Cost: O(n log(regions)).   Ties: by a hash of the place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.methods.blocks.cutting import estimate_spreads, get_column, mark_lowest
from kinfold.methods.missing_values import mark_left_out
from kinfold.policy.encoding import Attribute, NumericAttribute, build_points, count_records, encode_numbers
from kinfold.tables.points import Floats, Labels, Points
from kinfold.tables.queries import hash_numbers
from kinfold.tables.regions import NO_SEAM

Rows = NDArray[np.intp]

Ints: TypeAlias = NDArray[np.int64]

HASH_UNIT = 2.0**-64  # turns a hash of 64 bits into a number below 1
MAX_RECORDS_IN_MEMORY = 2_000_000  # a table with more records is partitioned in regions
REGION_RECORDS = 1_000_000  # of a region, about: what one executor holds and partitions
SAMPLE_RECORDS, SAMPLE_RECORDS_PER_REGION = 200_000, 1_000  # of the sample, about, and at least for each region
REGION_MARGIN = 1.1  # the cuts of a sample are not exact
MIN_REGION_FRACTION = 4  # a region with less than a quarter of `REGION_RECORDS` joins its neighbour
MIN_CLASSES_PER_REGION = 20  # a region has at least so many times k records
MAX_REGIONS_PER_PATTERN = 1 << 20  # regions of records that lack the same values
MAX_REGION_LAYERS, SAMPLE_RECORDS_PER_LAYER = 32, 100  # in each region: fewer sample records make ragged cuts
CLASS_MARGIN = 0.2  # of the width of a class, on either side of it: more takes longer and gains little
NUMBER_BOUND = 1e100  # a larger number is refused when its region is processed; until then it is clipped


@dataclass(frozen=True, eq=False)
class CutNode:
    """A cut along an attribute. A child is the number of a node, or -1 - the number of a block."""

    attribute: int
    edge: Floats  # for each stratum, the value of the cut
    tied: Floats  # for each stratum, the share of the records at that value that go to the lower side
    low: int
    high: int


@dataclass(frozen=True, eq=False)
class CutTree:
    """The nodes, the root first, and how many blocks there are; neighbouring blocks have consecutive numbers."""

    nodes: tuple[CutNode, ...]
    blocks: int

    def assign_blocks(self, points: Points, numbers: NDArray[np.integer], strata: Labels | None = None) -> Labels:
        """Return the block of each record; `numbers` are unique, `strata` are those of `build_cut_tree`."""
        blocks = np.zeros(len(points), np.int32)
        stack = [(0, np.arange(len(points)))] if self.nodes else []
        while stack:
            at, rows = stack.pop()
            node = self.nodes[at]
            values, own = get_column(points, rows, node.attribute), _select_strata(strata, rows)
            goes_low = hash_numbers(numbers[rows], at) * HASH_UNIT < node.tied[own]
            below = np.asarray((values < node.edge[own]) | ((values == node.edge[own]) & goes_low))
            for child, members in ((node.low, rows[below]), (node.high, rows[~below])):
                if child < 0:
                    blocks[members] = -1 - child
                elif len(members):
                    stack.append((child, members))
        return blocks


def build_cut_tree(sample: Points, blocks: int, strata: Labels | None = None, *, parts: int = 2) -> CutTree:
    """Cut a sample into so many blocks, each stratum at its own value.

    Every cut leaves one of `parts` parts of the blocks below it: another number makes other cuts.

    >>> from kinfold.tables.points import Points
    >>> tree = build_cut_tree(Points.from_array([[0.0], [1.0], [8.0], [9.0]]), 2)
    >>> tree.assign_blocks(Points.from_array([[0.5], [8.5], [70.0]]), np.arange(3)).tolist()
    [0, 1, 1]
    """
    builder = _CutTreeBuilder(sample, _select_strata(strata, np.arange(len(sample))), parts)
    builder.add_node(np.arange(len(sample)), 0, blocks)
    return CutTree(tuple(builder.nodes), blocks)


class _CutTreeBuilder:
    """A sample and the nodes of its tree so far."""

    def __init__(self, sample: Points, strata: Labels, parts: int) -> None:
        self.sample, self.strata, self.parts = sample, strata, parts
        self.nodes: list[CutNode] = []

    def add_node(self, rows: Rows, first: int, count: int) -> int:
        """Cut rows of the sample into `count` blocks, numbered from `first`; return the node, or -1 - the block."""
        if count == 1 or len(rows) < 2:
            return -1 - first
        at, low = len(self.nodes), max(1, count // self.parts)
        attribute = int(np.argmax(estimate_spreads(self.sample, rows)))
        edge, tied, below = self._cut(rows, len(rows) * low // count, attribute)
        self.nodes.append(CutNode(attribute, edge, tied, -1, -1))  # a node precedes its children
        children = self.add_node(rows[below], first, low), self.add_node(rows[~below], first + low, count - low)
        self.nodes[at] = CutNode(attribute, edge, tied, *children)
        return at

    def _cut(self, rows: Rows, count: int, attribute: int) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Return the edge and the tied share of each stratum, and mark the rows of the lower side."""
        values, strata = get_column(self.sample, rows, attribute).astype(np.float64), self.strata[rows]
        all_strata = int(self.strata.max(initial=0)) + 1
        edge, tied = (np.full(all_strata, each) for each in _find_edge(values, count))
        below = np.zeros(len(rows), np.bool_)
        for stratum in np.unique(strata):
            places = np.flatnonzero(strata == stratum)
            share = round(len(places) * count / len(rows))
            edge[stratum], tied[stratum] = _find_edge(values[places], share)
            below[places] = mark_lowest(self.sample, rows[places], share, attribute)
        return edge, tied, below


def _find_edge(values: Floats, count: int) -> tuple[float, float]:
    """Return the value with `count` values below it, and the share of the values equal to it that make up the count."""
    edge = float(np.partition(values, max(count, 1) - 1)[max(count, 1) - 1])
    return edge, (count - float((values < edge).sum())) / float((values == edge).sum())


def assign_seams(cuts: CutTree, seam_cuts: CutTree, points: Points, labels: Labels, places: Ints) -> Ints:
    """Return the group of each class at a seam of regions, by other cuts; `NO_SEAM` if it is at no seam."""
    order = np.argsort(labels, kind="stable")
    first = np.flatnonzero(np.diff(labels[order], prepend=-1))
    values, width = np.column_stack([points.numbers, points.codes])[order], points.numbers.shape[1]
    low, high = (extreme.reduceat(values, first, axis=0) for extreme in (np.minimum, np.maximum))
    groups = np.full(len(first), NO_SEAM, np.int64)
    at = np.flatnonzero(_mark_at_cuts(cuts, low, high, width))
    if len(at):  # a class has the mean of each number and the lowest of each code
        size = np.diff(first, append=len(order))
        means = (np.add.reduceat(values, first, axis=0) / size[:, None])[at, :width]
        centres = Points(np.ascontiguousarray(means), low[at, width:].astype(np.int32), points.scales)
        groups[at] = seam_cuts.assign_blocks(centres, places[order][first][at])
    return groups


def _mark_at_cuts(cuts: CutTree, low: Floats, high: Floats, numbers: int) -> NDArray[np.bool_]:
    """Mark the boxes that reach a cut; only the sides of numbers are widened."""
    marked = np.zeros(len(low), np.bool_)
    margin = np.where(np.arange(low.shape[1]) < numbers, CLASS_MARGIN, 0.0) * (high - low)
    stack = [(0, np.arange(len(low)))] if cuts.nodes else []
    while stack:
        at, rows = stack.pop()
        node = cuts.nodes[at]
        lower = low[rows, node.attribute] - margin[rows, node.attribute]
        upper = high[rows, node.attribute] + margin[rows, node.attribute]
        below, above = upper < node.edge.min(), lower > node.edge.max()
        marked[rows[~below & ~above]] = True
        for child, boxes in ((node.low, rows[below]), (node.high, rows[above])):
            if child >= 0 and len(boxes):
                stack.append((child, boxes))
    return marked


def join_small_blocks(counts: Sequence[int] | NDArray[np.integer], least: int) -> Labels:
    """Renumber blocks so that each has at least `least` records: a smaller one joins its neighbours.

    >>> join_small_blocks([5, 1, 4, 9, 2], 5).tolist()
    [0, 1, 1, 2, 2]
    """
    numbers, number, records = np.zeros(len(counts), np.int32), 0, 0
    for block, count in enumerate(counts):
        numbers[block] = number
        records += int(count)
        if records >= least:
            number, records = number + 1, 0
    return np.minimum(numbers, max(number - 1, 0)) if records < least else numbers


def _select_strata(strata: Labels | None, rows: Rows) -> Labels:
    return np.zeros(len(rows), np.int32) if strata is None else strata[rows]


@dataclass(frozen=True, eq=False)
class RowReader:
    """Decodes columns of doubles: attributes without records, and the imputed mean of each, if any."""

    attributes: tuple[Attribute, ...]
    imputed: tuple[float | None, ...]

    def read(self, rows: Any, *, checked: bool = True) -> list[Attribute]:
        """Return the attributes of these records; refuse numbers that cannot be released, or clip them."""
        return [self._read(rows, at, checked) for at in range(len(self.attributes))]

    def _read(self, rows: Any, at: int, checked: bool) -> Attribute:
        values, known, mean = read_doubles(rows, at), self.attributes[at], self.imputed[at]
        if not isinstance(known, NumericAttribute):
            return replace(known, codes=values.astype(np.int32))
        if mean is not None:
            values = np.where(np.isnan(values), mean, values)
        if not checked:
            return replace(known, numbers=np.clip(values, -NUMBER_BOUND, NUMBER_BOUND))
        return replace(encode_numbers(known.bound, values), mean_and_deviation=known.mean_and_deviation)

    def count_imputed(self, rows: Any) -> dict[str, int]:
        """Count the imputed numbers of each column."""
        columns = [(at, known.bound.name) for at, known in enumerate(self.attributes) if self.imputed[at] is not None]
        return {name: int(np.isnan(read_doubles(rows, at)).sum()) for at, name in columns}

    def codes(self, rows: Any, confidential: int) -> Ints:
        """Return the codes of a confidential column, by its number."""
        return read_doubles(rows, len(self.attributes) + confidential).astype(np.int64)

    def standardize(self, rows: Any) -> RowReader:
        """Return the reader that standardizes by the mean and deviation of these records."""
        attributes = []
        for attribute in self.read(rows):
            if isinstance(attribute, NumericAttribute):
                known = attribute.numbers[~attribute.null]
                mean = float(np.mean(known)) if len(known) else 0.0
                deviation = float(np.sqrt(np.mean((known - mean) ** 2))) if len(known) else 0.0
                attribute = replace(attribute, mean_and_deviation=(mean, deviation))
            attributes.append(attribute.take(np.arange(0)))
        return replace(self, attributes=tuple(attributes))


def read_doubles(rows: Any, at: int) -> NDArray[np.float64]:
    """Return a column as doubles; null is NaN."""
    values: NDArray[np.float64] = rows.column(f"v{at}").to_numpy(zero_copy_only=False)
    return values.astype(np.float64, copy=False)


@dataclass(frozen=True, eq=False)
class RegionRouter:
    """Assigns records to regions; `layers` has the layer of each code of each confidential column."""

    reader: RowReader
    layers: tuple[Labels, ...]
    trees: Mapping[int, CutTree]  # by pattern of missing values
    seam_trees: Mapping[int, CutTree]  # with other cuts, for classes at the seams of regions

    def __call__(self, rows: Any) -> Ints:
        """Return the region of each record, -1 if it is left out because a value is missing."""
        attributes = self.reader.read(rows, checked=False)
        patterns, places = find_patterns(attributes), rows.column("place").to_numpy()
        points, strata = build_points(attributes, np.arange(len(places))), self.number_strata(rows)
        regions = patterns * MAX_REGIONS_PER_PATTERN
        for pattern, tree in self.trees.items():
            at = np.flatnonzero(patterns == pattern)
            if len(at):
                regions[at] += tree.assign_blocks(points.take(at), places[at], strata[at])
        regions[mark_left_out(attributes)] = -1
        return regions

    def number_strata(self, rows: Any) -> Labels:
        """Return the layer of each record, over all confidential columns."""
        strata = np.zeros(rows.num_rows, np.int64)
        for number, layers in enumerate(self.layers):
            strata = strata * (int(layers.max()) + 1) + layers[self.reader.codes(rows, number)]
        return strata.astype(np.int32)


def build_router(reader: RowReader, layers: tuple[Labels, ...], sample: Any, records: int) -> RegionRouter:
    """Build the router of a table with so many records from a sample."""
    router = RegionRouter(reader, layers, {}, {})
    attributes = reader.read(sample, checked=False)
    rows = np.flatnonzero(~mark_left_out(attributes))
    patterns, strata = find_patterns(attributes)[rows], router.number_strata(sample)[rows]
    points = build_points(attributes, rows)
    trees, seam_trees = {}, {}
    for pattern in np.unique(patterns).tolist():
        at = np.flatnonzero(patterns == pattern)
        regions = min(count_regions(len(at) * records / sample.num_rows), MAX_REGIONS_PER_PATTERN)
        if regions > 1:
            trees[pattern] = build_cut_tree(points.take(at), regions, strata[at])
            seam_trees[pattern] = build_cut_tree(points.take(at), regions + 1, parts=3)
    return replace(router, trees=trees, seam_trees=seam_trees)


def count_regions(records: float) -> int:
    """Return how many regions so many records have."""
    return max(1, int(np.ceil(REGION_MARGIN * records / REGION_RECORDS))) if records > REGION_RECORDS else 1


def number_regions(counts: Mapping[int, int], k: int) -> dict[int, int]:
    """Renumber regions from 0; a region that is too small joins its neighbours of the same pattern."""
    numbers: dict[int, int] = {}
    least = max(REGION_RECORDS // MIN_REGION_FRACTION, MIN_CLASSES_PER_REGION * k)
    for pattern in sorted({region // MAX_REGIONS_PER_PATTERN for region in counts}):
        regions = sorted(region for region in counts if region // MAX_REGIONS_PER_PATTERN == pattern)
        first = max(numbers.values(), default=-1) + 1
        joined = join_small_blocks([counts[region] for region in regions], least)
        numbers |= {region: first + int(at) for region, at in zip(regions, joined, strict=True)}
    return numbers


def layer_values(ranks: Sequence[Ints], counts: Sequence[Ints], limit: int) -> tuple[Labels, ...]:
    """Return the layer of each value of some columns, `limit` layers in all; `counts` are records by value.

    >>> [layer.tolist() for layer in layer_values([np.arange(4)], [np.array([5, 1, 1, 3])], 2)]
    [[0, 1, 1, 1]]
    """
    layers, result = max(1, round(limit ** (1 / max(1, len(ranks))))), []
    for rank, records in zip(ranks, counts, strict=True):
        order = np.argsort(rank, kind="stable")
        upto = np.cumsum(records[order])
        layer = np.empty(len(rank), np.int32)
        layer[order] = np.minimum(layers - 1, (upto - records[order] / 2) * layers // max(int(upto[-1]), 1))
        result.append(layer)
    return tuple(result)


def find_patterns(attributes: Sequence[Attribute]) -> Ints:
    """Return the pattern of missing numbers of each record: a bit for each attribute with `missing = "separate"`."""
    separate = [a for a in attributes if isinstance(a, NumericAttribute) and a.bound.request.missing == "separate"]
    patterns = np.zeros(count_records(attributes), np.int64)
    for bit, attribute in enumerate(separate):
        patterns |= attribute.null.astype(np.int64) << bit
    return patterns
