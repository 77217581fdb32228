"""Two columns before and after: contingency tables, quantiles, the correlation, and how much of the table moved.

Columns of numbers are cut at the quintiles of the original, so that both sides have the same bins. Other columns have
their most frequent values on each side; the rest is one row. Of one column: the shift of its distribution.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kinfold.release.report.facts import Bins, Shares

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

MAX_VALUES = 8  # of a column of categories, on each side
MAX_LABEL = 60  # characters
LEVELS = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
CUTS = (0.2, 0.4, 0.6, 0.8)


class CodedSide(NamedTuple):
    """One side of a column: the label of each record, by number."""

    labels: tuple[str, ...]
    codes: Ints


def compare_pair(one: Sequence[Any], other: Sequence[Any]) -> dict[str, Any]:
    """Return two columns before and after; each column is a pair of texts: original, released."""
    numbers = [_read_numbers(column) for column in (one, other)]
    coded = [_code_column(column, sides) for column, sides in zip((one, other), numbers, strict=True)]
    tables = [_count(coded[0][side], coded[1][side]) for side in (0, 1)]
    comparable = all(column[0].labels == column[1].labels for column in coded)
    return {
        "tables": [
            {"rows": coded[0][side].labels, "columns": coded[1][side].labels, "counts": tables[side].tolist()}
            for side in (0, 1)
        ],
        "moved": _measure_distance(*tables) if comparable else None,
        "quantiles": [None if sides is None else [_list_quantiles(side) for side in sides] for sides in numbers],
        "correlation": [_correlate(numbers[0][side], numbers[1][side]) for side in (0, 1)]
        if numbers[0] is not None and numbers[1] is not None
        else None,
    }


def _read_numbers(column: Sequence[Any]) -> tuple[Floats, Floats] | None:
    """Return both sides as numbers, with nan for missing values; None if a side is not of numbers."""
    try:
        sides = [side.combine_chunks().cast(pa.float64()) for side in column]
    except pa.ArrowInvalid:
        return None
    before, after = (np.asarray(side.to_numpy(zero_copy_only=False), np.float64) for side in sides)
    return before, after


def _code_column(column: Sequence[Any], numbers: tuple[Floats, Floats] | None) -> tuple[CodedSide, CodedSide]:
    if numbers is not None and len(np.unique(numbers[0])) > MAX_VALUES:
        cuts = np.unique(np.nanquantile(numbers[0], CUTS))
        names = [f"to {cut:g}" for cut in cuts]
        missing = ("missing",) if any(np.isnan(side).any() for side in numbers) else ()
        labels = (*names, f"above {cuts[-1]:g}", *missing)
        codes = [np.where(np.isnan(side), len(cuts) + 1, np.searchsorted(cuts, side)) for side in numbers]
        return CodedSide(labels, codes[0]), CodedSide(labels, codes[1])
    before, after = (_code_texts(side) for side in column)
    return before, after


def _code_texts(side: Any) -> CodedSide:
    """Number the most frequent texts, in their order as texts; the others have the last number."""
    encoded = pc.fill_null(side, "missing").combine_chunks().dictionary_encode()
    indices = np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int64)
    texts = encoded.dictionary.to_pylist()
    most = sorted(np.argsort(-np.bincount(indices, minlength=len(texts)), kind="stable")[:MAX_VALUES].tolist())
    most.sort(key=texts.__getitem__)
    number = np.full(len(texts), len(most), np.int64)
    number[most] = np.arange(len(most))
    rest = ("others",) if len(texts) > len(most) else ()
    return CodedSide((*(texts[index][:MAX_LABEL] for index in most), *rest), number[indices])


def _count(one: CodedSide, other: CodedSide) -> Ints:
    counts = np.zeros((len(one.labels), len(other.labels)), np.int64)
    np.add.at(counts, (one.codes, other.codes), 1)
    return counts


def _measure_distance(before: Ints, after: Ints) -> float | None:
    """Return the share of the records that would have to be in another cell."""
    if not before.sum() or not after.sum():
        return None
    return float(np.abs(before / before.sum() - after / after.sum()).sum() / 2)


def _list_quantiles(side: Floats) -> list[float] | None:
    known = side[~np.isnan(side)]
    return [float(each) for each in np.quantile(known, LEVELS)] if len(known) else None


def _correlate(one: Floats, other: Floats) -> float | None:
    known = ~np.isnan(one) & ~np.isnan(other)
    if known.sum() < 2 or not one[known].std() or not other[known].std():
        return None
    return float(np.corrcoef(one[known], other[known])[0, 1])


def measure_shift(original: Bins | Shares | None, released: Bins | Shares | None) -> float | None:
    """Return the share of the records by which two distributions differ at least; None if they cannot be compared.

    >>> measure_shift(Shares(("f", "m"), (6, 4)), Shares(("f", "m"), (9, 1)))
    0.3
    """
    if original is None or released is None or type(original) is not type(released):
        return None
    parts = [_list_parts(side) for side in (original, released)]
    rest = original.rest + released.rest if isinstance(original, Shares) and isinstance(released, Shares) else 0
    names = parts[0].keys() & parts[1].keys() if rest else parts[0].keys() | parts[1].keys()  # else in the rest of one
    totals = [sum(each.values()) for each in parts]
    if not all(totals):
        return None
    shares = [[part.get(name, 0) / total for part, total in zip(parts, totals, strict=True)] for name in names]
    unlisted = abs(sum(one - other for one, other in shares))
    return round((sum(abs(one - other) for one, other in shares) + unlisted) / 2, 6)


def _list_parts(side: Bins | Shares) -> dict[str | int, int]:
    """Return the number of records by label or bin; -1 are missing values, -2 labels that are not listed."""
    if isinstance(side, Bins):
        return {**dict(enumerate(side.counts)), -1: side.missing}
    return {**dict(zip(side.labels, side.counts, strict=True)), -1: side.missing, -2: side.rest}
