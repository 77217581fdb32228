"""Exact values of generalized numbers and times: the label of a value must contain the value itself.

Methods compare records by doubles. If doubles cannot distinguish all values of a column, its distinct values are also
read exactly: integers and decimals with all digits, times to the nanosecond. Hierarchies and ranges are built from
their texts:

    times without a zone      2019-12-31 23:59:59.7
    times of a zone           2020-01-01 00:59:59.7+01:00    in the zone of the source, else in UTC
    times with their offsets  2019-12-31 23:30:00-05:00      as written
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinfold.policy.binding import BoundColumn
from kinfold.tables.schema import UTC_ZONE, Column, Kind, Storage
from kinfold.tables.source_form import has_offset, has_time

Floats: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.int32]
Texts: TypeAlias = NDArray[Any]

MAX_EXACT_UNITS = 1e15  # a double keeps smaller numbers, in units of their last decimal
MAX_WRITTEN_DIGITS = 10_000  # numbers with a larger exponent are written with it


@dataclass(frozen=True, eq=False)
class DistinctValues:
    """The distinct values of a column as text, in ascending order, and the place of each record among them."""

    texts: Texts
    arrow_values: pa.Array  # the same values in the type of the column
    places: Codes  # -1 for null

    def take(self, rows: NDArray[np.intp]) -> DistinctValues:
        """Return the values of these records."""
        return replace(self, places=self.places[rows])


def doubles_suffice(bound: BoundColumn, numbers: Floats) -> bool:
    """Return whether doubles, formatted as text, are the exact values of a column.

    A mask applies to the text as the source has it, so decimals with a mask are read exactly.
    """
    column, spec = bound.column, bound.request.hierarchy
    if column.floating:
        return True
    if bound.kind is Kind.DATE:
        return not shows_time(column)
    if column.storage is not Storage.INTEGER and column.decimals != 0 and spec is not None and spec.mask is not None:
        return False
    decimals = 0 if column.storage is Storage.INTEGER else column.decimals
    largest = max(np.nanmax(numbers, initial=0.0), -np.nanmin(numbers, initial=0.0))
    return decimals is not None and bool(largest * 10.0**decimals < MAX_EXACT_UNITS)


def shows_time(column: Column) -> bool:
    """Return whether dates of a column are written with the time of day."""
    midnight = column.storage is Storage.DATE and column.zone in (None, UTC_ZONE)
    return column.storage is Storage.TIMESTAMP or has_time(column.date_format) or (bool(column.zone) and not midnight)


def is_zoned(column: Column) -> bool:
    """Return whether times of a column are written with an offset from UTC."""
    return bool(column.zone) or has_offset(column.date_format)


def read_exact_values(bound: BoundColumn, column: pa.ChunkedArray) -> DistinctValues:
    """Return the distinct values of a column that the engine read exactly."""
    kind, values = column.type, column.combine_chunks()
    if pa.types.is_struct(kind):
        return _read_moments_with_offsets(values)
    if pa.types.is_timestamp(kind):
        return _read_moments(values, bound.column.zone)
    encoded = values.dictionary_encode()
    texts = [str(each) for each in encoded.dictionary.to_pylist()]
    mask = bound.request.hierarchy is not None and bound.request.hierarchy.mask is not None
    return _read_numbers(texts, encoded.indices, as_written=mask)


def format_number(number: Decimal | float, *, whole: bool) -> str:
    """Return a number as text: the short form of a double if it is exact, else all digits.

    >>> format_number(Decimal("19.50"), whole=False), format_number(Decimal("19.99999999999999999999"), whole=False)
    ('19.5', '19.99999999999999999999')
    """
    if whole:
        return str(int(number))
    short = repr(float(number) + 0.0)  # avoids -0.0
    if isinstance(number, float) or Decimal(short) == number:
        return short
    if abs(number.adjusted()) > MAX_WRITTEN_DIGITS:
        return str(number)
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def describe_time_zones(columns: Iterable[BoundColumn]) -> tuple[str, ...]:
    """Return a note on the time zone of each generalized column of times."""
    notes = []
    for bound in columns:
        dated = bound.kind is Kind.DATE or (bound.request.hierarchy is not None and bound.request.hierarchy.dates)
        if bound.average == "generalize" and dated and is_zoned(bound.column):
            zone = bound.column.zone if bound.kind is Kind.DATE else UTC_ZONE  # texts are in UTC
            has_offsets = has_offset(bound.column.date_format)
            clock = "as written, by each value's own offset from UTC" if has_offsets else f"those of {zone}"
            notes.append(f"'{bound.name}': dates and times are {clock}")
    return tuple(notes)


def _read_numbers(texts: Sequence[str], codes: pa.Array, *, as_written: bool) -> DistinctValues:
    """Sort numbers by value; 1.5 and 1.50 are one value."""
    numbers = [Decimal(text) for text in texts]
    distinct = sorted({number for number in numbers if number.is_finite()})
    place = {number: at for at, number in enumerate(distinct)}
    whole = all(number == number.to_integral_value() for number in distinct)
    texts_in_order = [format_number(number, whole=whole) for number in distinct]
    written = dict(zip(numbers, texts, strict=True))
    if as_written and len(written) == len(texts):
        texts_in_order = [written[number] for number in distinct]
    at = np.array([*(place.get(number, -1) for number in numbers), -1], np.int32)
    places = at[codes.fill_null(-1).to_numpy(zero_copy_only=False)]
    return DistinctValues(np.array(texts_in_order, object), pa.array(texts_in_order, pa.string()), places)


def _read_moments(values: pa.Array, zone: str | None) -> DistinctValues:
    unit = values.type.unit
    ticks, places = _rank_values(values)
    stored = pa.array(ticks, pa.timestamp(unit))
    moments = ticks.view(f"datetime64[{unit}]")
    if zone is None:
        texts = [_format_moment(each) for each in moments]
    else:
        is_offset = zone[:1] in ("+", "-")
        clock = timezone(timedelta(seconds=_offset_seconds(zone))) if is_offset else ZoneInfo(zone)
        texts = [_format_zoned(each, _utc_offset(each, clock)) for each in moments]
    return DistinctValues(np.array(texts, object), stored, places)


def _rank_values(values: pa.Array) -> tuple[NDArray[np.int64], Codes]:
    """Return the distinct integers in ascending order, and the place of each value among them."""
    null = values.is_null().to_numpy(zero_copy_only=False)
    numbers = values.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    places = np.full(len(numbers), -1, np.int32)
    distinct, places[~null] = np.unique(numbers[~null], return_inverse=True)
    return distinct, places


def _read_moments_with_offsets(values: pa.Array) -> DistinctValues:
    """Read times with their offsets; equal times with different offsets are different values."""
    ticks, places = _rank_values(values.field("at"))
    offsets = values.field("beyond").dictionary_encode()
    seconds = np.array([*map(_offset_seconds, offsets.dictionary.to_pylist()), 0], np.int64)
    codes = seconds[offsets.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
    known = places >= 0
    pairs, inverse = np.unique(np.column_stack([places[known], codes[known]]), axis=0, return_inverse=True)
    pair_of_row = np.full(len(places), -1, np.int32)
    pair_of_row[known] = inverse.ravel()
    unit = values.field("at").type.unit
    moments = ticks[pairs[:, 0]].view(f"datetime64[{unit}]")
    texts = [_format_zoned(moment, int(offset)) for moment, offset in zip(moments, pairs[:, 1], strict=True)]
    return DistinctValues(np.array(texts, object), pa.array(ticks[pairs[:, 0]], pa.timestamp(unit)), pair_of_row)


def _offset_seconds(offset: str) -> int:
    """Return an offset from UTC in seconds.

    >>> _offset_seconds("-05:30"), _offset_seconds("+02"), _offset_seconds("+0100")
    (-19800, 7200, 3600)
    """
    digits = offset[1:].replace(":", "").ljust(4, "0")
    return (-1 if offset[0] == "-" else 1) * (int(digits[:2]) * 3600 + int(digits[2:4]) * 60)


def _utc_offset(moment: np.datetime64, clock: tzinfo) -> int:
    """Return the offset of a zone from UTC in seconds at a time; 0 in years that Python's calendar lacks."""
    try:
        local = datetime.fromisoformat(str(moment.astype("datetime64[s]"))).replace(tzinfo=UTC).astimezone(clock)
    except (ValueError, OverflowError):
        return 0
    return round((local.utcoffset() or timedelta()).total_seconds())


def _format_zoned(moment: np.datetime64, offset: int) -> str:
    hours, rest = divmod(abs(offset), 3600)
    seconds = f":{rest % 60:02}" if rest % 60 else ""
    local = moment + np.timedelta64(offset, "s")
    return f"{_format_moment(local)}{'-' if offset < 0 else '+'}{hours:02}:{rest // 60:02}{seconds}"


def _format_moment(moment: np.datetime64) -> str:
    text = str(moment).replace("T", " ")
    return text.rstrip("0").rstrip(".") if "." in text else text
