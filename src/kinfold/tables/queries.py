"""Questions about tables that follow from the verbs of an engine, written once for all engines.

A sample is drawn by a hash of the record's position, and sums are rounded: both give the same result on any engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinfold.tables.engine import ClassLabels, Engine, NumericPair, ReleasedColumns, StoredValues
from kinfold.tables.recoding import Keep, Recoding, Replace, Treatment, encode_dictionary
from kinfold.tables.schema import Column, OrderedReading, OrderStats, Schema, normalize_category

MAX_PAGE_TEXT = 200  # characters of a cell on a page of rows


def count_unique_rows(engine: Engine, frame: Any, names: Sequence[str]) -> int:
    """Count the rows whose combination of values in these columns occurs once; null equals null."""
    return dict(engine.count_classes(frame, names)).get(1, 0)


def count_value_pairs(engine: Engine, frame: Any, one: str, other: str) -> tuple[int, int]:
    """Count the distinct pairs of values of two columns, and the values of the first column in them."""
    present = (one, other)
    pairs, values = (engine.count_classes(frame, by, present=present) for by in (present, (one,)))
    return sum(classes for _, classes in pairs), sum(classes for _, classes in values)


def count_new_pairs(engine: Engine, original: Any, released: Any, pairs: Sequence[tuple[str, str]]) -> list[int]:
    """Count, for each pair of columns, the released rows whose pair of values does not occur in the original."""
    counts = []
    for pair in pairs:
        before, after = (engine.tally(frame, pair, {}) for frame in (original, released))
        known = {*zip(*(before.keys[name].tolist() for name in pair), strict=True)}
        released_pairs = zip(*(after.keys[name].tolist() for name in pair), strict=True)
        new = np.array([each not in known for each in released_pairs], np.bool_)
        counts.append(int(after.sizes[new].sum()))
    return counts


def count_equal_rows(engine: Engine, frame: Any, by: Sequence[str], some: Any) -> NDArray[np.int64]:
    """Count the rows of `frame` that equal each row of `some`, which was taken, in these columns."""
    counted = engine.tally(frame, by, {}, among=some)
    numbers = Recoding(np.arange(len(counted.sizes), dtype=np.int32), {}, counted.tuples)
    return np.asarray(counted.sizes[label_rows(engine, some, numbers).labels])


def compute_order_stats(engine: Engine, frame: Any, column: Column) -> OrderStats:
    """Count where the value of a column changes or rises from row to row."""
    order = engine.profile(frame, [column], ordered=True)[column.name].order
    assert order is not None  # noqa: S101  asked for
    return order


def sum_squared_errors(
    engine: Engine, original: Any, released: Any, columns: Sequence[NumericPair], recoding: Recoding
) -> list[float]:
    """Sum the squared errors of each column over all rows; the mean stands for a value that is not released."""
    if not columns:
        return []
    wanted = {each.before.name: each.before for each in columns}
    count, _, squares = engine.moments(original, wanted, released=ReleasedColumns(released, columns, recoding))
    return [count * float(square) for square in np.diag(squares)]


def label_rows(engine: Engine, frame: Any, recoding: Recoding) -> Recoding:
    """Return the recoding with a label for each row, instead of each tuple or labels held by the engine."""
    if recoding.tuples is None and recoding.engine_labels is None:
        return recoding
    labels = engine.collect(frame, {"label": ClassLabels(recoding)}).column(0).to_numpy()
    return replace(recoding, labels=labels.astype(np.int32), tuples=None, engine_labels=None)


def number_texts(engine: Engine, frame: Any, name: str, how: OrderedReading | None = None) -> NDArray[np.int64]:
    """Number the texts of a column; 0 for null."""
    return encode_dictionary(engine.collect(frame, {name: how}).column(0))[0].astype(np.int64) + 1


def replace_categories(engine: Engine, frame: Any, name: str, make_text: Callable[[str], str]) -> Any:
    """Return a frame with another text for each value of a column; equal numbers have one text, and null stays null."""
    tally = engine.tally(frame, [name], {})
    texts = [None if text is None else make_text(normalize_category(text)) for text in tally.keys[name]]
    by_tuple = Recoding(np.arange(len(texts), dtype=np.int32), {}, tally.tuples)
    replaced: dict[str, Treatment] = {name: Replace(pa.array(texts, pa.string()), as_stored=False)}
    recoding = replace(label_rows(engine, frame, by_tuple), columns={**dict.fromkeys(frame.names, Keep()), **replaced})
    return engine.apply(frame, recoding, engine.schema(frame))


def unify_numbers(engine: Engine, frame: Any, name: str) -> Any:
    """Return a frame in which equal numbers of a column have one text: 1 and 1.0."""
    texts = [normalize_category(text) for text in engine.tally(frame, [name], {}).keys[name] if text is not None]
    return frame if len({*texts}) == len(texts) else replace_categories(engine, frame, name, str)


def fill_from_group(engine: Engine, frame: Any, by: str, names: Sequence[str]) -> tuple[Any, dict[str, int]]:
    """Return a frame whose missing cells have the first value in the rows with the same value of `by`; count them."""
    columns: dict[str, Treatment] = dict.fromkeys(frame.names, Keep())
    counts, groups = {}, number_texts(engine, frame, by) if names else np.empty(0, np.int64)
    for name in names:
        values = engine.collect(frame, {name: StoredValues()}).column(0).combine_chunks()
        filled = np.flatnonzero(np.asarray(values.is_valid()))
        place = np.full(int(groups.max()) + 1, -1)
        place[groups[filled[::-1]]] = filled[::-1]
        if cells := int((place[groups] >= 0).sum()) - len(filled):
            columns[name] = Replace(values.take(pa.array(place, mask=place < 0)))
            counts[name] = cells
    if not counts:
        return frame, {}
    return engine.apply(frame, Recoding(groups.astype(np.int32), columns), engine.schema(frame)), counts


def number_rows(engine: Engine, frame: Any, names: Sequence[str]) -> NDArray[np.int32]:
    """Number the rows by their values in some columns: equal rows have equal numbers."""
    tally = engine.tally(frame, names, {})
    return label_rows(engine, frame, Recoding(np.arange(len(tally), dtype=np.int32), {}, tally.tuples)).labels


def collect_rows(engine: Engine, frame: Any, schema: Schema | None = None) -> Any:
    """Return every column as Arrow: as stored, or, given a schema, in the type of its values."""
    return engine.collect(frame, {name: StoredValues(schema.get(name) if schema else None) for name in frame.names})


def read_page(engine: Engine, frame: Any, start: int, count: int) -> list[list[str | None]]:
    """Return rows as text, from `start` on in their order; long texts are cut."""
    columns = engine.collect(frame, dict.fromkeys(frame.names), rows=(int(start), int(start) + int(count)))
    rows = zip(*(column.to_pylist() for column in columns.columns), strict=True)
    return [[cell and cell[:MAX_PAGE_TEXT] for cell in row] for row in rows]


Ints: TypeAlias = NDArray[np.int64]

POSITIONS_PER_CHUNK = 10_000_000  # some 100 MB at a time
SAFE_SHARE = 0.8  # of the rows that an engine may collect, for a number of rows that is not exact
SAMPLE_SALT = 1 << 40  # differs from the salts of hashes that split records


def sample_positions(records: int, size: int) -> Ints:
    """Return the positions of a sample of about `size` records, in order; all positions if there are no more records.

    >>> len(sample_positions(10, 20)), 80 < len(sample_positions(1000, 100)) < 120
    (10, True)
    """
    if records <= size:
        return np.arange(records, dtype=np.int64)
    limit, chunks = np.uint64(2**64 * (size / records)), []
    for start in range(0, records, POSITIONS_PER_CHUNK):
        positions = np.arange(start, min(start + POSITIONS_PER_CHUNK, records), dtype=np.int64)
        chunks.append(positions[hash_numbers(positions, SAMPLE_SALT) < limit])
    return np.concatenate(chunks)


def limit_sample(engine: Engine, size: int) -> int:
    """Return `size`, or less if the engine may not collect so many rows: samples and estimates are not exact."""
    limit = engine.max_collected_rows
    return size if limit is None else min(size, int(SAFE_SHARE * limit))


def compute_sample_weights(records: int, size: int) -> Ints:
    """Return how many of all records each record of a sample stands for.

    >>> compute_sample_weights(10, 4).tolist()
    [2, 3, 3, 2]
    """
    ends = np.round(np.linspace(0, records, size + 1)).astype(np.int64)
    return np.asarray(ends[1:] - ends[:-1])


def hash_numbers(numbers: NDArray[np.integer[Any]], salt: int) -> NDArray[np.uint64]:
    """Return a hash of each number (splitmix64): the same on any machine, and distributed like random numbers."""
    with np.errstate(over="ignore"):
        x = numbers.astype(np.uint64) + np.uint64((salt + 1) * 0x9E3779B97F4A7C15 % 2**64)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


STABLE_DIGITS = 10  # of a sum of doubles: these do not depend on the order of its terms


def round_stable(value: float) -> float:
    """Round a sum to the digits that do not depend on the order of its terms.

    >>> round_stable(0.1 + 0.2) == round_stable(0.3)
    True
    """
    return float(f"{value:.{STABLE_DIGITS}g}")
