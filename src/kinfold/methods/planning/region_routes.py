"""Regions of a far table: so many records that nobody holds them all, parted by the cuts of a sample.

    sample     records drawn by a hash of their places: the same ones whoever holds them
    standard   mean and deviation of each number, in the sample
    cuts       of the sample, each pattern of missing values for itself (see `routing`); of each layer of what is
               promised about its share
    region     a record's pattern and block, by its own values: no other record is asked

What records are is handed over as columns of doubles (see `rows.engines.regions`): quasi-identifiers, then confidential
columns as codes.

Cost: O(n log(regions)).   Ties: by a hash of the place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.methods.blocks.routing import Routes, joined, routes
from kinfold.methods.planning.missing import left_out
from kinfold.request.encoding import Attribute, Measured, measured_of, points, records_of

if TYPE_CHECKING:
    from kinfold.rows.points import Labels

Ints: TypeAlias = NDArray[np.int64]

FAR = 2_000_000  # records of a table that is held in one place; a larger one is worked on in regions
REGION = 1_000_000  # records of a region, about: what one executor holds and partitions
DRAWN, EACH = 200_000, 1_000  # records of the sample, about, and at least for each region
ROOM = 1.1  # a cut of a sample is not exact: so much more is reckoned with
LEAST = 4  # a region of less than this part of a whole one joins its neighbour
CLASSES = 20  # of k that a region has room for, at least
MOST = 1 << 20  # regions of a pattern
LAYERS, IN_EACH = 32, 100  # at most, and records of the sample in each layer of a region: fewer make ragged cuts
BEYOND = 1e100  # numbers are checked by whoever works on a region: until then they need a place only


@dataclass(frozen=True, eq=False)
class RowReader:
    """What the columns are that are handed over: attributes without records, and what a missing number becomes."""

    attributes: tuple[Attribute, ...]
    imputed: tuple[float | None, ...]

    def read(self, rows: Any, *, checked: bool = True) -> list[Attribute]:
        """Return the attributes of these records; numbers that cannot be released are refused, or bounded."""
        return [self._read(rows, at, checked) for at in range(len(self.attributes))]

    def _read(self, rows: Any, at: int, checked: bool) -> Attribute:
        values, known, mean = doubles(rows, at), self.attributes[at], self.imputed[at]
        if not isinstance(known, Measured):
            return replace(known, codes=values.astype(np.int32))
        if mean is not None:
            values = np.where(np.isnan(values), mean, values)
        if not checked:
            return replace(known, numbers=np.clip(values, -BEYOND, BEYOND))
        return replace(measured_of(known.bound, values), standard=known.standard)

    def filled(self, rows: Any) -> dict[str, int]:
        """Count the missing numbers of each column that are imputed."""
        asked = [(at, known) for at, known in enumerate(self.attributes) if self.imputed[at] is not None]
        return {known.bound.name: int(np.isnan(doubles(rows, at)).sum()) for at, known in asked}

    def codes(self, rows: Any, confidential: int) -> Ints:
        """Return the codes of a confidential column, by its number."""
        return doubles(rows, len(self.attributes) + confidential).astype(np.int64)

    def standardized(self, rows: Any) -> RowReader:
        """Return the reader that measures by the mean and deviation of these records."""
        known = [replace(a, standard=_standard(a)) if isinstance(a, Measured) else a for a in self.read(rows)]
        return replace(self, attributes=tuple(each.take(np.arange(0)) for each in known))


def doubles(rows: Any, at: int) -> NDArray[np.float64]:
    """Return one of the columns that were handed over; null is NaN."""
    found: NDArray[np.float64] = rows.column(f"v{at}").to_numpy(zero_copy_only=False)
    return found.astype(np.float64, copy=False)


def _standard(attribute: Measured) -> tuple[float, float]:
    known = attribute.numbers[~attribute.null]
    if not len(known):
        return 0.0, 0.0
    mean = float(np.mean(known))
    return mean, float(np.sqrt(np.mean((known - mean) ** 2)))


@dataclass(frozen=True, eq=False)
class RegionRoute:
    """How a record finds its region; `layers` has the layer of each code of each confidential column."""

    reader: RowReader
    layers: tuple[Labels, ...]
    ways: Mapping[int, Routes]  # by pattern of missing values
    others: Mapping[int, Routes]  # other cuts: none lies where one of the first does

    def __call__(self, rows: Any) -> Ints:
        """Return the region of each record, -1 where it is left out because a value is missing."""
        attributes = self.reader.read(rows, checked=False)
        pattern, places = patterns(attributes), rows.column("place").to_numpy()
        every, strata = points(attributes, np.arange(len(places))), self.strata(rows)
        found = pattern * MOST
        for kind, way in self.ways.items():
            at = np.flatnonzero(pattern == kind)
            if len(at):
                found[at] += way.block_of(every.take(at), places[at], strata[at])
        found[left_out(attributes)] = -1
        return found

    def strata(self, rows: Any) -> Labels:
        """Return the layer of each record, over all confidential columns."""
        found = np.zeros(rows.num_rows, np.int64)
        for number, layers in enumerate(self.layers):
            found = found * (int(layers.max()) + 1) + layers[self.reader.codes(rows, number)]
        return found.astype(np.int32)


def routed(reader: RowReader, layers: tuple[Labels, ...], sample: Any, records: int) -> RegionRoute:
    """Return the way to the regions of a table of so many records, by the cuts of a sample."""
    first = RegionRoute(reader, layers, {}, {})
    attributes = reader.read(sample, checked=False)
    rows = np.flatnonzero(~left_out(attributes))
    pattern, strata = patterns(attributes)[rows], first.strata(sample)[rows]
    every = points(attributes, rows)
    ways, others = {}, {}
    for kind in np.unique(pattern).tolist():
        at = np.flatnonzero(pattern == kind)
        many = min(regions_of(len(at) * records / sample.num_rows), MOST)
        if many > 1:
            ways[kind] = routes(every.take(at), many, strata[at])
            others[kind] = routes(every.take(at), many + 1, parts=3)
    return replace(first, ways=ways, others=others)


def regions_of(records: float) -> int:
    """Return into how many regions so many records are parted."""
    return max(1, int(np.ceil(ROOM * records / REGION))) if records > REGION else 1


def numbered(counts: Mapping[int, int], k: int) -> dict[int, int]:
    """Number regions from 0 up, those that are too small together with their neighbours of the same pattern."""
    found: dict[int, int] = {}
    for kind in sorted({region // MOST for region in counts}):
        own = sorted(region for region in counts if region // MOST == kind)
        least = max(REGION // LEAST, CLASSES * k)
        past = max(found.values(), default=-1) + 1
        found |= {
            region: past + int(at)
            for region, at in zip(own, joined([counts[region] for region in own], least), strict=True)
        }
    return found


def layers_of(rank: Sequence[Ints], total: Sequence[Ints], many: int) -> tuple[Labels, ...]:
    """Return the layer of each value of some columns, so many in all; values are given by their ranks and counts.

    >>> [layer.tolist() for layer in layers_of([np.arange(4)], [np.array([5, 1, 1, 3])], 2)]
    [[0, 1, 1, 1]]
    """
    each = max(1, round(many ** (1 / max(1, len(rank)))))
    return tuple(_layer(order, counts, each) for order, counts in zip(rank, total, strict=True))


def _layer(rank: Ints, counts: Ints, many: int) -> Labels:
    order = np.argsort(rank, kind="stable")
    upto = np.cumsum(counts[order])
    found = np.empty(len(rank), np.int32)
    found[order] = np.minimum(many - 1, (upto - counts[order] / 2) * many // max(int(upto[-1]), 1))
    return found


def layer_count(sample: int, regions: int) -> int:
    """Return how many layers there are, so that a region has some records of the sample in each."""
    return max(1, min(LAYERS, sample // (regions * IN_EACH)))


def patterns(attributes: Sequence[Attribute]) -> Ints:
    """Return the pattern of missing numbers of each record: a bit for each attribute of which records may lack some."""
    apart = [a for a in attributes if isinstance(a, Measured) and a.bound.request.missing == "separate"]
    found = np.zeros(records_of(attributes), np.int64)
    for bit, attribute in enumerate(apart):
        found |= attribute.null.astype(np.int64) << bit
    return found
