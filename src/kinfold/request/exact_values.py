"""Exact values of numbers and moments that are generalized: the label of a value must contain the value itself.

Methods compare records by doubles. Where doubles do not tell every value of a column apart, its distinct values are
also taken as they are: whole numbers and decimals digit by digit, moments to the nanosecond. They are written as text,
from which hierarchies are built and ranges are made.

    moments without a zone      2019-12-31 23:59:59.7
    moments of a zone           2020-01-01 00:59:59.7+01:00    in the zone that the source names, else in UTC
    moments with their offsets  2019-12-31 23:30:00-05:00      as written
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

from kinfold.request.binding import BoundColumn
from kinfold.rows.date_formats import has_offset, has_time
from kinfold.rows.schema import UTC_ZONE, Column, Kind, Storage

Floats: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.int32]
Texts: TypeAlias = NDArray[Any]

DIGITS = 1e15  # numbers below it, in units of their last decimal, survive the way through a double
PLAIN = 10_000  # digits that a number is written out with; a larger exponent stays one
SECONDS = 86400  # of a day


@dataclass(frozen=True, eq=False)
class ExactValues:
    """The distinct values of a column as text, in ascending order, and which of them each record has."""

    texts: Texts
    stored: pa.Array  # the same values, as they go back into the type of their column
    places: Codes  # -1 for null

    def take(self, rows: NDArray[np.intp]) -> ExactValues:
        """Return the values of these records."""
        return replace(self, places=self.places[rows])


def doubles_suffice(bound: BoundColumn, numbers: Floats) -> bool:
    """Whether the numbers, written as text, are the values: otherwise the values are to be asked for.

    A mask is put over the text as it is written.
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
    return decimals is not None and bool(largest * 10.0**decimals < DIGITS)


def shows_time(column: Column) -> bool:
    """Whether moments of a column are written with the time of the day."""
    midnight = column.storage is Storage.DATE and column.zone in (None, UTC_ZONE)
    return column.storage is Storage.TIMESTAMP or has_time(column.date_format) or (bool(column.zone) and not midnight)


def is_zoned(column: Column) -> bool:
    """Whether moments of a column are written with an offset from UTC."""
    return bool(column.zone) or has_offset(column.date_format)


def exact_values(bound: BoundColumn, column: pa.ChunkedArray) -> ExactValues:
    """Return the values of a column as the engine tells them."""
    kind, values = column.type, column.combine_chunks()
    if pa.types.is_struct(kind):
        return _with_offsets(values)
    if pa.types.is_timestamp(kind):
        return _moments(values, bound.column.zone)
    encoded = values.dictionary_encode()
    texts = [str(each) for each in encoded.dictionary.to_pylist()]
    mask = bound.request.hierarchy is not None and bound.request.hierarchy.mask is not None
    return _numbers(texts, encoded.indices, as_written=mask)


def number_text(number: Decimal | float, *, whole: bool) -> str:
    """Write a number, exactly: as a double is written if that is the number, else with all its digits.

    >>> number_text(Decimal("19.50"), whole=False), number_text(Decimal("19.99999999999999999999"), whole=False)
    ('19.5', '19.99999999999999999999')
    """
    if whole:
        return str(int(number))
    short = repr(float(number) + 0.0)  # and no -0.0
    if isinstance(number, float) or Decimal(short) == number:
        return short
    if abs(number.adjusted()) > PLAIN:
        return str(number)
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def zones_told(columns: Iterable[BoundColumn]) -> tuple[str, ...]:
    """Say by which clock the moments of each generalized column are dated."""
    told = []
    for bound in columns:
        dated = bound.kind is Kind.DATE or (bound.request.hierarchy is not None and bound.request.hierarchy.dates)
        if bound.average == "generalize" and dated and is_zoned(bound.column):
            told.append(f"'{bound.name}': dates and times are {_clock(bound)}")
    return tuple(told)


def _clock(bound: BoundColumn) -> str:
    if has_offset(bound.column.date_format):
        return "as written, by each value's own offset from UTC"
    return f"those of {bound.column.zone if bound.kind is Kind.DATE else UTC_ZONE}"  # categories are texts in UTC


def _numbers(texts: Sequence[str], codes: pa.Array, *, as_written: bool) -> ExactValues:
    """Sort numbers by what they say; equal ones, such as 1.5 and 1.50, are one value."""
    numbers = [Decimal(text) for text in texts]
    distinct = sorted({number for number in numbers if number.is_finite()})
    place = {number: at for at, number in enumerate(distinct)}
    whole = all(number == number.to_integral_value() for number in distinct)
    shown = [number_text(number, whole=whole) for number in distinct]
    written = dict(zip(numbers, texts, strict=True))
    if as_written and len(written) == len(texts):
        shown = [written[number] for number in distinct]
    at = np.array([*(place.get(number, -1) for number in numbers), -1], np.int32)
    places = at[codes.fill_null(-1).to_numpy(zero_copy_only=False)]
    return ExactValues(np.array(shown, object), pa.array(shown, pa.string()), places)


def _moments(values: pa.Array, zone: str | None) -> ExactValues:
    unit = values.type.unit
    ticks, places = _ranked(values)
    stored = pa.array(ticks, pa.timestamp(unit))
    moments = ticks.view(f"datetime64[{unit}]")
    if zone is None:
        texts = [_text(each) for each in moments]
    else:
        clock = _clock_of(zone)
        texts = [_zoned(each, _offset(each, clock)) for each in moments]
    return ExactValues(np.array(texts, object), stored, places)


def _ranked(values: pa.Array) -> tuple[NDArray[np.int64], Codes]:
    """Return the distinct numbers, ascending, and the place of each value among them."""
    null = values.is_null().to_numpy(zero_copy_only=False)
    numbers = values.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    places = np.full(len(numbers), -1, np.int32)
    distinct, places[~null] = np.unique(numbers[~null], return_inverse=True)
    return distinct, places


def _with_offsets(values: pa.Array) -> ExactValues:
    """Take moments with the offset that each is written with; equal moments of two offsets are two values."""
    ticks, places = _ranked(values.field("at"))
    offsets = values.field("beyond").dictionary_encode()
    seconds = np.array([*map(_seconds, offsets.dictionary.to_pylist()), 0], np.int64)
    codes = seconds[offsets.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
    there = places >= 0
    pairs, found = np.unique(np.column_stack([places[there], codes[there]]), axis=0, return_inverse=True)
    own = np.full(len(places), -1, np.int32)
    own[there] = found.ravel()
    unit = values.field("at").type.unit
    moments = ticks[pairs[:, 0]].view(f"datetime64[{unit}]")
    texts = [_zoned(moment, int(offset)) for moment, offset in zip(moments, pairs[:, 1], strict=True)]
    return ExactValues(np.array(texts, object), pa.array(ticks[pairs[:, 0]], pa.timestamp(unit)), own)


def _seconds(offset: str) -> int:
    """Return an offset from UTC in seconds.

    >>> _seconds("-05:30"), _seconds("+02"), _seconds("+0100")
    (-19800, 7200, 3600)
    """
    digits = offset[1:].replace(":", "").ljust(4, "0")
    return (-1 if offset[0] == "-" else 1) * (int(digits[:2]) * 3600 + int(digits[2:4]) * 60)


def _clock_of(zone: str) -> tzinfo:
    if zone[:1] in ("+", "-"):
        return timezone(timedelta(seconds=_seconds(zone)))
    return ZoneInfo(zone)


def _offset(moment: np.datetime64, clock: tzinfo) -> int:
    """Return the seconds that a clock is ahead of UTC at a moment, 0 in years that Python's calendar does not have."""
    try:
        here = datetime.fromisoformat(str(moment.astype("datetime64[s]"))).replace(tzinfo=UTC).astimezone(clock)
    except (ValueError, OverflowError):
        return 0
    return round((here.utcoffset() or timedelta()).total_seconds())


def _zoned(moment: np.datetime64, offset: int) -> str:
    hours, rest = divmod(abs(offset), 3600)
    seconds = f":{rest % 60:02}" if rest % 60 else ""
    local = moment + np.timedelta64(offset, "s")
    return f"{_text(local)}{'-' if offset < 0 else '+'}{hours:02}:{rest // 60:02}{seconds}"


def _text(moment: np.datetime64) -> str:
    text = str(moment).replace("T", " ")
    return text.rstrip("0").rstrip(".") if "." in text else text
