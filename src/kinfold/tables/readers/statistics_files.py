"""Files of statistical packages: Stata, SPSS and SAS, with value labels, missing values, dates, times and periods.

A column becomes categories, in the order of its codes, if every value has its own label; the order counts only if the
file declares it (SPSS's ordinal). If some values have no label, the column stays numeric. User-missing values are
missing. Doubles that are all whole numbers become integers.

Dates, times and periods are numbers that count from a first day, in a unit that the format gives:

    Stata   from 1960-01-01   %td days, %tc milliseconds; %tw, %tm, %tq and %th weeks, months, quarters and half years
    SPSS    from 1582-10-14   seconds, for dates and timestamps; TIME and MTIME are seconds of a day
    SAS     from 1960-01-01   days for dates, seconds for timestamps; TIME and similar formats are seconds of a day

Whole days become dates, other counts become timestamps to the microsecond or times of day. A period becomes a category
(`2019m5`) in the order of time. Counts without an exact value are refused: durations, fractions of the smallest unit,
business calendars, which another file defines, and %tC, which counts leap seconds.

Whole numbers shown with leading zeros (%05.0f, N5, Z5) become codes, as text, if one has fewer digits than the format.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kinfold.errors import DataError, PolicyError, Problem, explain_install
from kinfold.tables.schema import MAX_EXACT_INTEGER, SECONDS_PER_DAY

MICROSECONDS_PER_SECOND = 10**6
MICROSECONDS_PER_DAY = SECONDS_PER_DAY * MICROSECONDS_PER_SECOND
MAX_SECONDS = 2.0**43  # as microseconds these fit into 64 bits
STATA_EPOCH = (date(1960, 1, 1) - date(1970, 1, 1)).days
SPSS_EPOCH = (date(1582, 10, 14) - date(1970, 1, 1)).days
PERIODS_PER_YEAR = {"w": 52, "m": 12, "q": 4, "h": 2}  # a year of Stata has 52 weeks

LEADING_ZEROS = {"Stata": r"%0([1-9]\d?)\.0[FG]", "SPSS": r"N([1-9]\d?)(?:\.0)?", "SAS": r"Z([1-9]\d?)\.?0?"}
STATA_FORMAT = re.compile(r"%-?(?:t([A-Za-z])|(d))(.*)")
STATA_DAY = re.compile("[CYNnDdJjWw]|[Mm]on")  # codes of a %tc format that show the day
SPSS_MOMENTS = "(A|E|S|J)?DATE|DATETIME|YMDHMS|MOYR|QYR|WKYR"
SAS_DATES = (
    "DATE|DAY|(DDMMYY|MMDDYY|YYMMDD)[BCDNPS]?|(MMYY|YYMM|YYQR?)[CDNPS]?|MONYY|MONNAME|MONTH|YYMON|DOWNAME|WEEKDA(Y|TE|TX)"
    "|WEEK[UVW]|WORDDAT(E|X)|YEAR|QTRR?|JULIAN|JULDAY|NLDATE[A-Z]*|(E|B|IS)8601DA"
)
SAS_MOMENTS = "DATETIME|DATEAMPM|MDYAMPM|DT(DATE|MONYY|WKDATX|YEAR|YYQC)|NLDATM[A-Z]*|(E|B|IS)8601(D[NTXZ]|LX)"
SAS_TIMES = "TIME|TIMEAMPM|HHMM|HOUR|MMSS|NLTIM[A-Z]*|(E|B|IS)8601(TM|TX|TZ|LZ)"


class InexactCount(Exception):  # noqa: N818
    """Counts that have no exact value in their format: (what is wrong, how to fix it)."""


class _Ticks(NamedTuple):
    """Counts, and a mask of the missing ones."""

    numbers: NDArray[np.float64]
    null: NDArray[np.bool_]

    def whole(self, unit: str) -> NDArray[np.int64]:
        if (self.numbers % 1).any() or (abs(self.numbers) > MAX_SECONDS).any():
            raise InexactCount(f"holds counts that are not whole {unit}, or too large", f"round it to {unit}")
        return self.numbers.astype(np.int64)

    def micros(self) -> NDArray[np.int64]:
        """Return seconds as microseconds; round the fraction separately, to keep its digits."""
        if (abs(self.numbers) > MAX_SECONDS).any():
            raise InexactCount("holds dates that are out of range", "correct or clear them")
        whole = np.floor(self.numbers)
        fraction = np.round((self.numbers - whole) * MICROSECONDS_PER_SECOND)
        return whole.astype(np.int64) * MICROSECONDS_PER_SECOND + fraction.astype(np.int64)

    def within_a_day(self, unit: int = 1) -> bool:
        return bool(((self.numbers >= 0) & (self.numbers < SECONDS_PER_DAY * unit)).all())


CountReader: TypeAlias = Callable[[_Ticks], pa.Array]


def read_counts(column: pa.Array, reader: CountReader) -> pa.Array:
    """Read a column of counts, or raise `InexactCount`."""
    null = column.is_null().to_numpy(zero_copy_only=False)
    return reader(_Ticks(column.cast(pa.float64()).fill_null(0).to_numpy(zero_copy_only=False), null))


def _find_stata_reader(form: str) -> CountReader | None:
    match = STATA_FORMAT.fullmatch(form)
    unit = match and (match[1] or match[2])
    if not match or unit in ("g", "y"):  # %ty is the year itself
        return None
    if unit == "d":
        return _make_days
    if unit == "c":
        times_only = bool(match[3]) and not STATA_DAY.search(match[3])
        return lambda counts: _make_stata_moments(counts, times_only=times_only)
    if unit in PERIODS_PER_YEAR:
        return lambda counts: _make_periods(counts, unit)
    why = "counts leap seconds" if unit == "C" else "counts days of a business calendar, which is in another file"
    fix = "format it as %tc: generate double x = cofC(y)" if unit == "C" else "format it as %td: generate x = dofb(y)"
    return _make_refusal(f"has the format %t{unit}, which {why}", fix)


def _make_days(counts: _Ticks) -> pa.Array:
    return _make_moments(counts.whole("days") * MICROSECONDS_PER_DAY, counts.null, STATA_EPOCH)


def _make_stata_moments(counts: _Ticks, *, times_only: bool) -> pa.Array:
    micros = counts.whole("milliseconds") * 1000
    if times_only and counts.within_a_day(1000):
        return pa.array(micros, mask=counts.null).cast(pa.time64("us"))
    return _make_moments(micros, counts.null, STATA_EPOCH)


def _make_moments(micros: NDArray[np.int64], null: NDArray[np.bool_], first: int) -> pa.Array:
    """Return microseconds since a first day as dates, or as timestamps if some are not whole days."""
    days, rest = np.divmod(micros, MICROSECONDS_PER_DAY)
    if rest[~null].any():
        return pa.array(micros + first * MICROSECONDS_PER_DAY, pa.timestamp("us"), mask=null)
    return pa.array((days + first).astype(np.int32), pa.date32(), mask=null)


def _make_times(counts: _Ticks) -> pa.Array:
    micros = counts.micros()
    if not counts.within_a_day() or (micros >= MICROSECONDS_PER_DAY).any():
        return _refuse_durations(counts)
    return pa.array(micros, mask=counts.null).cast(pa.time64("us"))


def _make_periods(counts: _Ticks, unit: str) -> pa.Array:
    periods = counts.whole(f"periods of %t{unit}")
    distinct = np.unique(periods[~counts.null])
    years, numbers = np.divmod(distinct, PERIODS_PER_YEAR[unit])
    names = [f"{1960 + year}{unit}{number + 1}" for year, number in zip(years.tolist(), numbers.tolist(), strict=True)]
    codes = pa.array(np.searchsorted(distinct, periods).astype(np.int32), mask=counts.null)
    return pa.DictionaryArray.from_arrays(codes, pa.array(names, pa.string()), ordered=True)


def _make_codes(counts: _Ticks, width: int) -> pa.Array:
    """Return numbers as they are shown with leading zeros, if some have any."""
    known = counts.numbers[~counts.null]
    if (known % 1).any() or (known < 0).any() or known.min(initial=np.inf) >= 10.0 ** (width - 1):
        return _make_array([None if null else x for x, null in zip(counts.numbers.tolist(), counts.null, strict=True)])
    texts = [f"{x:.0f}".zfill(width) for x in counts.numbers]
    return pa.array(texts, pa.string(), mask=counts.null)


def _make_refusal(what: str, fix: str) -> CountReader:
    def refuse(_: _Ticks) -> pa.Array:
        raise InexactCount(what, fix)

    return refuse


_refuse_durations = _make_refusal(
    "holds durations", "convert it to a number of seconds, hours or days, or leave the column out"
)


def _make_spss_moments(counts: _Ticks) -> pa.Array:
    return _make_moments(counts.micros(), counts.null, SPSS_EPOCH)


def _make_sas_moments(counts: _Ticks) -> pa.Array:
    return _make_moments(counts.micros(), counts.null, STATA_EPOCH)


def _make_times_of_day(counts: _Ticks) -> pa.Array:
    """Read SAS's TOD, which shows the time of day of a timestamp."""
    return _make_times(counts) if counts.within_a_day() else _make_sas_moments(counts)


READERS: dict[str, tuple[tuple[str, CountReader], ...]] = {  # by the name of a format, without its width
    "SPSS": ((SPSS_MOMENTS, _make_spss_moments), ("M?TIME", _make_times), ("DTIME", _refuse_durations)),
    "SAS": (
        (SAS_DATES, _make_days),
        (SAS_MOMENTS, _make_sas_moments),
        ("TOD", _make_times_of_day),
        (SAS_TIMES, _make_times),
    ),
}


def find_count_reader(package: str, form: str) -> CountReader | None:
    """Return the reader for a format of Stata, SPSS or SAS; None if it shows plain numbers."""
    if zeros := re.fullmatch(LEADING_ZEROS[package], form.upper()):
        return lambda counts: _make_codes(counts, int(zeros[1]))
    if package == "Stata":
        return _find_stata_reader(form)
    width = "[^A-Z].*$" if package == "SPSS" else r"[0-9]*\.?[0-9]*$"
    name = re.sub(width, "", form.upper())
    return next((reader for pattern, reader in READERS[package] if re.fullmatch(pattern, name)), None)


READER_NAMES = {
    ".dta": "read_dta",
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
PACKAGES = {".dta": "Stata", ".sas7bdat": "SAS", ".xpt": "SAS"}  # else SPSS
LABELS_KEY, TITLE_KEY = b"kinfold:labels", b"kinfold:title"  # of a field's metadata
INSTALL_HINT = explain_install("stats", "install the reader")


def read_statistics(path: Path, encoding: str | None) -> pa.Table:
    """Read a file; labelled columns become dictionaries."""
    try:
        import pyreadstat
    except ImportError:
        what = f"'{path.name}' is a file of a statistical package; its reader is not installed"
        raise PolicyError(what, fix=INSTALL_HINT) from None
    read = getattr(pyreadstat, READER_NAMES[path.suffix.lower()])
    options = {"encoding": encoding} if encoding else {}
    try:
        columns, metadata = read(str(path), output_format="dict", disable_datetime_conversion=True, **options)
        arrays = {name: _make_array(values) for name, values in columns.items()}
    except MemoryError:
        raise
    except Exception:  # of any kind, for a damaged file; its message may quote a value
        fix = "check that the file is complete and that its ending is right"
        raise DataError(f"'{path.name}' cannot be read", fix=fix) from None
    return _convert_columns(arrays, metadata, path)


def _convert_columns(arrays: Mapping[str, pa.Array], metadata: Any, path: Path) -> pa.Table:
    """Apply the value labels, and read dates, times and periods by their formats."""
    package, problems, converted = PACKAGES.get(path.suffix.lower(), "SPSS"), [], {}
    fields: list[pa.Field] = []
    for name, column in arrays.items():
        labels = metadata.variable_value_labels.get(name, {})
        ordered = metadata.variable_measure.get(name) == "ordinal"
        converted[name] = _apply_labels(column, labels, ordered=ordered)
        reader = find_count_reader(package, metadata.original_variable_types.get(name) or "")
        if reader is None or not (
            pa.types.is_integer(converted[name].type) or pa.types.is_floating(converted[name].type)
        ):
            continue
        try:
            converted[name] = read_counts(column, reader)
        except InexactCount as error:
            what, fix = error.args
            problems.append(Problem(f"column '{name}' of '{path.name}' {what}", fix))
    if problems:
        raise DataError(problems)
    for name, column in converted.items():
        labels = {
            f"{code:.15g}" if isinstance(code, float) else str(code): label
            for code, label in metadata.variable_value_labels.get(name, {}).items()
        }
        title = metadata.column_names_to_labels.get(name)
        texts = {LABELS_KEY: json.dumps(labels) if labels else "", TITLE_KEY: title or ""}
        fields.append(pa.field(name, column.type, metadata={key: text for key, text in texts.items() if text} or None))
    return pa.table(list(converted.values()), schema=pa.schema(fields))


def get_labels(field: pa.Field) -> dict[str, str]:
    """Return the value labels of a column, by code."""
    labels: dict[str, str] = json.loads((field.metadata or {}).get(LABELS_KEY, b"{}"))
    return labels


def get_title(field: pa.Field) -> str:
    """Return the label of the column itself."""
    return bytes((field.metadata or {}).get(TITLE_KEY, b"")).decode()


def _make_array(values: Sequence[Any]) -> pa.Array:
    try:
        array = pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # its message quotes a value
        array = pa.array([None if value is None else str(value) for value in values])
    if not pa.types.is_floating(array.type):
        return array
    array = pc.if_else(pc.is_nan(array), None, array)
    whole = pc.and_(pc.equal(array, pc.round(array)), pc.less(pc.abs(array), MAX_EXACT_INTEGER))
    return array.cast(pa.int64()) if array.null_count < len(array) and pc.all(whole).as_py() else array


def _apply_labels(column: pa.Array, labels: Mapping[Any, str], *, ordered: bool) -> pa.Array:
    values = sorted(column.unique().drop_null().to_pylist(), key=lambda value: (isinstance(value, str), value))
    names = [labels.get(value) for value in values]
    if not names or None in names or len({*names}) < len(names):
        return column
    code = {value: i for i, value in enumerate(values)}
    codes = pa.array([None if value is None else code[value] for value in column.to_pylist()], pa.int32())
    return pa.DictionaryArray.from_arrays(codes, pa.array(names, pa.string()), ordered=ordered)
