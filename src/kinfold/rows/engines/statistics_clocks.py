"""Dates, times and periods of statistical packages: numbers that count from a first day, in a unit that a format gives.

    Stata   from 1960-01-01   %td days, %tc milliseconds; %tw, %tm, %tq and %th weeks, months, quarters and half years
    SPSS    from 1582-10-14   seconds, of dates and of moments; TIME and MTIME are seconds of a day
    SAS     from 1960-01-01   days of dates, seconds of moments; TIME and its like are seconds of a day

Whole days become dates, other moments are read to the microsecond, and times of a day become times. A period becomes a
category (`2019m5`), in the order of time. What has no exact reading is refused: durations, parts of the smallest unit,
business calendars, which are kept in another file, and %tC, which counts leap seconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

DAY = 86400
MICRO = 10**6
FARTHEST = 2.0**43  # seconds: microseconds of 64 bits go a little further
STATA = (date(1960, 1, 1) - date(1970, 1, 1)).days
SPSS = (date(1582, 10, 14) - date(1970, 1, 1)).days
PERIODS = {"w": 52, "m": 12, "q": 4, "h": 2}  # of a year; a year of Stata has 52 weeks

STATA_FORMAT = re.compile(r"%-?(?:t([A-Za-z])|(d))(.*)")
STATA_DAY = re.compile("[CYNnDdJjWw]|[Mm]on")  # what a format of %tc shows of the day
SPSS_MOMENTS = re.compile("(A|E|S|J)?DATE|DATETIME|YMDHMS|MOYR|QYR|WKYR")
SPSS_TIMES = re.compile("M?TIME")
SAS_DATES = re.compile(
    "DATE|DAY|(DDMMYY|MMDDYY|YYMMDD)[BCDNPS]?|(MMYY|YYMM|YYQR?)[CDNPS]?|MONYY|MONNAME|MONTH|YYMON|DOWNAME|WEEKDA(Y|TE|TX)"
    "|WEEK[UVW]|WORDDAT(E|X)|YEAR|QTRR?|JULIAN|JULDAY|NLDATE[A-Z]*|(E|B|IS)8601DA"
)
SAS_MOMENTS = re.compile(
    "DATETIME|DATEAMPM|MDYAMPM|DT(DATE|MONYY|WKDATX|YEAR|YYQC)|NLDATM[A-Z]*|(E|B|IS)8601(D[NTXZ]|LX)"
)
SAS_TIMES = re.compile("TIME|TIMEAMPM|HHMM|HOUR|MMSS|NLTIM[A-Z]*|(E|B|IS)8601(TM|TX|TZ|LZ)")


class Inexact(Exception):  # noqa: N818
    """Counts that cannot be read as what their format says: what they are, and what to do."""


class _Ticks(NamedTuple):
    """Counts, and which of them are missing."""

    numbers: NDArray[np.float64]
    null: NDArray[np.bool_]

    def whole(self, unit: str) -> NDArray[np.int64]:
        if (self.numbers % 1).any() or (abs(self.numbers) > FARTHEST).any():
            raise Inexact(f"holds counts that are not whole {unit}, or too many of them", f"round it to {unit}")
        return self.numbers.astype(np.int64)

    def micros(self) -> NDArray[np.int64]:
        """Return seconds as microseconds; the parts of a second are rounded, and stay apart."""
        if (abs(self.numbers) > FARTHEST).any():
            raise Inexact("holds moments that are too far away", "correct or empty them")
        whole = np.floor(self.numbers)
        return whole.astype(np.int64) * MICRO + np.round((self.numbers - whole) * MICRO).astype(np.int64)

    def within_a_day(self, unit: int = 1) -> bool:
        return bool(((self.numbers >= 0) & (self.numbers < DAY * unit)).all())


Reader: TypeAlias = Callable[[_Ticks], pa.Array]


def reader_of(package: str, form: str) -> Reader | None:
    """Return what reads the numbers of a column by its format in Stata, SPSS or SAS; None where they are numbers."""
    if package == "Stata":
        return _of_stata(form)
    if package == "SPSS":
        return _of_spss(re.match("[A-Z]*", form.upper())[0])  # type: ignore[index]
    return _of_sas(re.sub(r"[0-9]*\.?[0-9]*$", "", form.upper()))


def read_counts(column: pa.Array, reader: Reader) -> pa.Array:
    """Read a column of numbers as what its format says, or raise `Inexact`."""
    null = column.is_null().to_numpy(zero_copy_only=False)
    return reader(_Ticks(column.cast(pa.float64()).fill_null(0).to_numpy(zero_copy_only=False), null))


def _of_stata(form: str) -> Reader | None:
    found = STATA_FORMAT.fullmatch(form)
    unit = found and (found[1] or found[2])
    if not found or unit in ("g", "y"):  # %ty is the year itself
        return None
    if unit == "d":
        return lambda counts: _moments(counts.whole("days") * DAY * MICRO, counts.null, STATA)
    if unit == "c":
        times_only = bool(found[3]) and not STATA_DAY.search(found[3])
        return lambda counts: _stata_moments(counts, times_only=times_only)
    if unit in PERIODS:
        return lambda counts: _periods(counts, unit)
    why = "counts leap seconds" if unit == "C" else "counts days of a business calendar, which the file does not hold"
    fix = "format it as %tc: generate double x = cofC(y)" if unit == "C" else "format it as %td: generate x = dofb(y)"
    return _refusing(f"is of the format %t{unit}, which {why}", fix)


def _of_spss(name: str) -> Reader | None:
    if SPSS_MOMENTS.fullmatch(name):
        return lambda counts: _moments(counts.micros(), counts.null, SPSS)
    if SPSS_TIMES.fullmatch(name):
        return _times
    return _durations if name == "DTIME" else None


def _of_sas(name: str) -> Reader | None:
    if SAS_DATES.fullmatch(name):
        return lambda counts: _moments(counts.whole("days") * DAY * MICRO, counts.null, STATA)
    if SAS_MOMENTS.fullmatch(name):
        return lambda counts: _moments(counts.micros(), counts.null, STATA)
    if name == "TOD":  # the time of a moment
        return lambda c: _times(c) if c.within_a_day() else _moments(c.micros(), c.null, STATA)
    return _times if SAS_TIMES.fullmatch(name) else None


def _stata_moments(counts: _Ticks, *, times_only: bool) -> pa.Array:
    micros = counts.whole("milliseconds") * 1000
    if times_only and counts.within_a_day(1000):
        return pa.array(micros, mask=counts.null).cast(pa.time64("us"))
    return _moments(micros, counts.null, STATA)


def _moments(micros: NDArray[np.int64], null: NDArray[np.bool_], first: int) -> pa.Array:
    """Return microseconds from a first day on as dates, or as moments where some are not whole days."""
    days, rest = np.divmod(micros, DAY * MICRO)
    if rest[~null].any():
        return pa.array(micros + first * DAY * MICRO, pa.timestamp("us"), mask=null)
    return pa.array((days + first).astype(np.int32), pa.date32(), mask=null)


def _times(counts: _Ticks) -> pa.Array:
    micros = counts.micros()
    if not counts.within_a_day() or (micros >= DAY * MICRO).any():
        return _durations(counts)
    return pa.array(micros, mask=counts.null).cast(pa.time64("us"))


def _periods(counts: _Ticks, unit: str) -> pa.Array:
    periods = counts.whole(f"periods of %t{unit}")
    held = np.unique(periods[~counts.null])
    year, place = np.divmod(held, PERIODS[unit])
    names = [f"{1960 + y}{unit}{p + 1}" for y, p in zip(year.tolist(), place.tolist(), strict=True)]
    codes = pa.array(np.searchsorted(held, periods).astype(np.int32), mask=counts.null)
    return pa.DictionaryArray.from_arrays(codes, pa.array(names, pa.string()), ordered=True)


def _refusing(what: str, fix: str) -> Reader:
    def refuse(_: _Ticks) -> pa.Array:
        raise Inexact(what, fix)

    return refuse


_durations = _refusing("holds durations", "turn it into a number of seconds, hours or days, or leave out that column")
