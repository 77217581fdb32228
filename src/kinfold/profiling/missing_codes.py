"""Codes for missing values: numbers and words of one column that mean that the value is not known.

labels      the value labels of SPSS and Stata say so: 99 is "refused"
words       refused, k.A., n/a, unknown: in a column of numbers or dates any of them; in a column of categories not
            those that may be a category, such as none, or NA among codes of countries. Other words among numbers or
            dates are a question.
dates       9999-12-31 and others of that year; 1900-01-01 and its like if they are frequent
numbers     -9, 99, 99.9, 999999 and their like (see `CODES`), if they stand apart from the other numbers of the column:

                far      outside the others, by at least half of their range
                frequent at least three times as frequent as the values next to it, three times or more
                shared   it stands apart in another column too

A number that stands far apart and repeats, or is shared, is a code. A number that is only frequent, or could be the end
of the range, is a question. The end of a smooth tail is a value: 99 among ages up to 98, -1 among temperatures around
zero, 99 among scores up to 100. Codes are proposed by column, never for the table.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from kinfold.profiling.shapes import MAX_AGE, MAX_CODE_VALUES, MAX_GRADES
from kinfold.tables.column_names import Hint, find_hints, mentions
from kinfold.tables.duckdb.columns import MISSING_WORDS
from kinfold.tables.schema import Column, Storage, ValueStats, normalize_category

NEEDS_NINES = frozenset(float(digit * length) for digit in "5678" for length in range(2, 7)) | {
    *(66.6, 77.7, 88.8, 666.6, 777.7, 888.8)  # 55, 888 ... are codes only below 99 or 999 ...
}
_NINES = frozenset(10.0**digits - last for digits in range(2, 10) for last in range(1, 10 if digits > 5 else 5))
_HIGH = NEEDS_NINES | _NINES | {9.99, 99.9, 99.99, 999.9, 999.99, 9999.9}
CODES = _HIGH | {-code for code in _HIGH} | {*map(float, range(-9, 0)), -9.9}
YEARS = (1850, 2100)
NO_YEARS = frozenset((0.0, 1800.0, 1899.0, 1900.0))  # before other years; a few records of 1900 are people born then
MAX_NEGATIVE = 4  # different negative numbers that may be codes, whatever they are: -13
MIN_REPDIGIT_RATIO = 2.0  # ... or if the largest other number is much smaller
_clock = r"([T ]\d\d:.*)?"
DATE = re.compile(rf"\d{{4}}-?(0[1-9]|1[0-2])-?[0-3]\d{_clock}|[0-3]?\d[./][0-3]?\d[./]\d{{4}}")
NEVER_DATE = re.compile(rf"9999-?\d\d-?\d\d{_clock}|\d\d?[./]\d\d?[./]9999")
FIRST_DATE = re.compile(  # the days from which programs count
    rf"(1900-?01-?01|1899-?12-?3[01]|1970-?01-?01|1753-?01-?01){_clock}|0?1[./]0?1[./](1900|1970|1753)"
)
CATEGORY_WORDS = frozenset(("none", "nil", "fehlt"))  # may be a category
LABEL_WORDS = frozenset(  # a number with such a label is no quantity
    ("not applicable", "inapplicable", "iap", "does not apply", "dk", "dk/na", "skip", "skipped", "trifft nicht zu",
     "no aplica", "sans objet", "non concern\u00e9", "non applicabile", "n.v.t.", "nicht zutreffend", "no opinion")
)  # fmt: skip
MAX_UNKNOWN_WORDS = 3  # different ones in a column of numbers or dates
MIN_DATE_SHARE = 0.9  # of rows with a date, in a column of text
MIN_REPEATS = 3  # rows with a code that no other column has
MIN_OTHERS = 2  # different numbers, or categories, that are not codes
TAIL = 5  # values next to a code, with which its frequency is compared
MAX_DENSE_STEP = 2.0  # average distance of the values of a tail that has no gaps
ISOLATED_STEPS = 2.5  # between a code and the next number, in the largest distances of the tail next to it
MIN_ISOLATED = 5  # the same, as a number
MIN_FREQUENCY_RATIO = 3.0  # of a code to the most frequent value of the tail next to it
MIN_INNER_RATIO = 10.0  # of a code in the midst of the other numbers
MIN_GAP = 0.5  # between a code and the other numbers, as a share of their range
MIN_AMOUNT_RATIO = 3.0  # of a code to the largest other number; below, it may be the end of the range of an amount
MAX_SHARE_OF_NO_AGES = 0.2  # of rows; with more, the ages are in months or days
SIGNED_NAMES = (
    "temp* temperatur* change* diff* delta* balance* saldo* veranderung* variacion* variation* z log ln score* scale*"
)
ANY_NUMBER = frozenset((Hint.PLACE, Hint.COUNTRY, Hint.NUMBER, Hint.PERSON))  # numbers of regions and people may be any
QUANTITIES = frozenset((Hint.AGE, Hint.BIRTH, Hint.MEASURE, Hint.MONEY, Hint.FAMILY))
NEVER_NEGATIVE = frozenset((Hint.AGE, Hint.FAMILY, Hint.BIRTH, Hint.EDUCATION, Hint.MEASURE, Hint.OFFENCE))


@dataclass(frozen=True)
class MissingCodes:
    """Codes for missing values of one column, and whether only the steward can know that they are."""

    column: str
    codes: tuple[str, ...]
    rows: int
    doubtful: bool = False
    reason: str = ""


@dataclass(frozen=True)
class _Numbers:
    """The different numbers of a column, ascending, with their counts."""

    values: np.ndarray[tuple[int], np.dtype[np.float64]]
    counts: np.ndarray[tuple[int], np.dtype[np.float64]]
    hints: frozenset[Hint]
    signed: bool = False  # whether negative numbers are usual

    def without(self, codes: Sequence[float]) -> _Numbers:
        kept = ~np.isin(self.values, list(codes))
        return replace(self, values=self.values[kept], counts=self.counts[kept])

    def count(self, code: float) -> float:
        return float(self.counts[self.values == code].sum())

    @property
    def are_years(self) -> bool:
        return len(self.values) > 0 and YEARS[0] <= self.values[0] and self.values[-1] <= YEARS[1]

    @property
    def span(self) -> float:
        return float(self.values[-1]) - float(self.values[0])  # Python numbers overflow without a warning

    def is_inside(self, code: float) -> bool:
        return bool(self.values[0] <= code <= self.values[-1])


def find_missing_codes(
    columns: Sequence[Column],
    stats: Mapping[str, ValueStats],
    unknown: Mapping[str, Sequence[str]],
    *,
    words: bool = True,
) -> list[MissingCodes]:
    """Return the codes for missing values of each column that has some; without `words`, only numbers.

    The `unknown` words of a column are doubtful.
    """
    numbers = {column.name: _collect_numbers(column, stats[column.name]) for column in columns}
    apart = {name: _list_apart(own) for name, own in numbers.items() if own is not None}
    shared = Counter(code for codes in apart.values() for code in codes)
    findings: list[MissingCodes] = []
    for column in columns:
        by_label = (
            [code for code, label in column.labels.items() if _is_missing_label(label)] if numbers[column.name] else []
        )
        missing_words = _find_words(column, stats[column.name]) if words else ()
        missing_words += _find_dates(column, stats[column.name])
        own = numbers[column.name]
        judged = _judge_numbers(own, {code for code in shared if shared[code] > 1}) if own is not None else {}
        judged |= {float(code): "" for code in by_label if _is_number(code)}
        others = unknown.get(column.name, ()) if words else ()
        findings += _describe_findings(column, stats[column.name], (missing_words, others), judged)
    return findings


def _describe_findings(
    column: Column, stats: ValueStats, words: tuple[Sequence[str], Sequence[str]], judged: Mapping[float, str]
) -> Iterator[MissingCodes]:
    """Yield the certain codes of a column, then the doubtful ones; `judged` has the doubt about each number.

    The words are the certain and the doubtful ones.
    """
    counts = {normalize_category(value): n for value, n in zip(stats.values, stats.counts, strict=True)}
    for doubtful in (False, True):
        numbers = [f"{code:.15g}" for code, doubt in sorted(judged.items()) if bool(doubt) == doubtful]
        codes = (*numbers, *words[doubtful])
        if codes:
            rows = sum(counts.get(code, 0) for code in codes)
            doubts = [*filter(None, judged.values()), "all other values are numbers or dates"]
            reason = doubts[0] if doubtful else ""
            yield MissingCodes(column.name, codes, rows, doubtful, reason)


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def is_missing_word(text: str) -> bool:
    """Whether a text is a word for a missing value, in some language."""
    return " ".join(text.replace("\u2019", "'").split()).casefold() in MISSING_WORDS


def _is_missing_label(label: str) -> bool:
    return is_missing_word(label) or " ".join(label.split()).casefold() in LABEL_WORDS


def find_unknown_words(column: Column, stats: ValueStats) -> tuple[str, ...] | None:
    """Return the words without a known meaning among numbers or dates: they may say that the value is missing.

    None if there are others than words; the name of the column is that of a repeated header.
    """
    others = column.likely_type.others if column.likely_type else 0
    if stats.distinct <= MAX_CODE_VALUES and find_hints(column.name).isdisjoint(QUANTITIES):
        return None  # a code either way: grades from 9 to 1, and U
    counts = zip(stats.values, stats.counts, strict=True)
    words = {value.strip(): n for value, n in counts if not re.search(r"\d", value) and not is_missing_word(value)}
    repeated = {*words} - {column.name}
    enough = all(words[word] >= MIN_REPEATS for word in repeated) and len(words) <= MAX_UNKNOWN_WORDS
    return tuple(sorted(repeated)) if words and enough and sum(words.values()) == others else None


def _find_words(column: Column, stats: ValueStats) -> tuple[str, ...]:
    """Return the values of a column of text that are words for missing."""
    if column.likely_type is not None and not column.likely_type.others:
        return column.likely_type.missing_words
    if column.storage is not Storage.TEXT:
        return ()
    words = [value for value in stats.values if is_missing_word(value)]
    others = [value for value in stats.values if not is_missing_word(value)]
    if len(others) < MIN_OTHERS:
        return ()
    short = sum(len(value.strip()) <= 3 for value in others) >= 0.5 * len(others)  # NA is also a code of Namibia
    certain = (word for word in words if word.strip().casefold() not in CATEGORY_WORDS)
    return tuple(sorted(word.strip() for word in certain if not (short and word.strip().isalpha() and len(word) <= 3)))


def _find_dates(column: Column, stats: ValueStats) -> tuple[str, ...]:
    """Return the dates that no event has, and the first days of calendars if they are frequent."""
    if column.storage not in (Storage.DATE, Storage.TIMESTAMP, Storage.TEXT):
        return ()
    dates = {value: n for value, n in zip(stats.values, stats.counts, strict=True) if DATE.fullmatch(value.strip())}
    others = [n for value, n in dates.items() if not (NEVER_DATE.fullmatch(value) or FIRST_DATE.fullmatch(value))]
    if len(others) < MIN_OTHERS or sum(dates.values()) < MIN_DATE_SHARE * sum(stats.counts):
        return ()
    enough = max(MIN_REPEATS, MIN_FREQUENCY_RATIO * max(others))
    first = [value for value, n in dates.items() if FIRST_DATE.fullmatch(value) and n >= enough]
    return tuple(sorted((*filter(NEVER_DATE.fullmatch, dates), *first)))


def _collect_numbers(column: Column, stats: ValueStats) -> _Numbers | None:
    hints = find_hints(column.name)
    named = bool(hints & ANY_NUMBER) and Hint.MEASURE not in hints  # the area of a flat is no place
    if column.storage not in (Storage.INTEGER, Storage.NUMBER) or named:
        return None
    counts = {float(value): n for value, n in zip(stats.values, stats.counts, strict=True) if _is_number(value)}
    counts |= {end: 1 for end in (stats.low, stats.high) if not stats.complete and end not in counts}
    values = np.array(sorted(counts))
    signed = mentions(column.name, SIGNED_NAMES)
    return _Numbers(values, np.array([counts[value] for value in values], np.float64), hints, signed)


def _split_codes(own: _Numbers) -> tuple[list[float], _Numbers]:
    """Return the numbers of a column that may be codes, and the others."""
    present = [float(value) for value in own.values if value in CODES or _is_no_age(value, own)]
    if own.without([*present, *NO_YEARS]).are_years:
        present += [code for code in own.values.tolist() if code in NO_YEARS]
    present += _list_negative(own, present)
    nines = any(value % 10 == 9 for value in present)
    highest = max((value for value in own.values if value not in present), default=0.0)
    allowed = {code for code in NEEDS_NINES if nines or code / MIN_REPDIGIT_RATIO >= highest}
    codes = [code for code in present if code in allowed or code not in NEEDS_NINES]
    rest = own.without(codes)
    if len(rest.values) >= MIN_OTHERS:  # a fraction next to the others is a value: 99.9 of percentages, 9.99 of prices
        codes = [code for code in codes if code % 1 == 0 or _is_far(code, own, rest)]
        rest = own.without(codes)
    return (codes, rest) if len(rest.values) >= MIN_OTHERS else ([], rest)


def _list_negative(own: _Numbers, present: Sequence[float]) -> list[float]:
    """Return the whole negative numbers of a column, if they are few and much more frequent than the numbers above."""
    below = own.values[own.values < 0]
    rest = own.without(below.tolist())
    if own.signed or len(below) > MAX_NEGATIVE or len(rest.values) <= MAX_GRADES:
        return []
    return [code for code in below.tolist() if code % 1 == 0 and code not in present and _is_frequent(code, own, rest)]


def _is_no_age(value: float, own: _Numbers) -> bool:
    """Whether a number is above all ages, in a column whose name says age and whose other numbers are ages: 300."""
    too_high = own.values > MAX_AGE
    rows = float(own.counts[too_high].sum())
    return Hint.AGE in own.hints and value > MAX_AGE and rows <= MAX_SHARE_OF_NO_AGES * float(own.counts.sum())


def _list_apart(own: _Numbers) -> list[float]:
    """Return the codes that stand apart from the other numbers of their column, or are negative just below zero."""
    codes, rest = _split_codes(own)
    return [code for code in codes if _stands_apart(code, own, rest) or _is_below_zero(code, own, rest)]


def _judge_numbers(own: _Numbers, shared: Set[float]) -> dict[float, str]:
    """Return the codes among numbers, each with the doubt about it, or an empty text."""
    codes, rest = _split_codes(own)
    judged = {code: doubt for code in codes if (doubt := _find_doubt(code, own, rest, shared)) is not None}
    certain = [code for code, doubt in judged.items() if not doubt]
    for code in codes:  # next to a certain code: 97 and 98 below 99
        if any(0 < abs(code - other) <= 9 for other in certain) and not rest.is_inside(code):
            judged[code] = ""
    return judged


def _find_doubt(code: float, own: _Numbers, rest: _Numbers, shared: Set[float]) -> str | None:
    """Return why a number may be a value: "" if it is a code, None if it is a value."""
    if Hint.AGE in own.hints and (code > MAX_AGE or code < -1):
        return ""
    if _is_below_zero(code, own, rest) and not _is_frequent(code, own, rest):
        never = bool(own.hints & NEVER_NEGATIVE) and not own.signed
        return "" if code in shared else "-1 is the only negative value" if never else None
    common = code in shared
    if not (_stands_apart(code, own, rest) or _is_isolated(code, rest)) or (
        own.count(code) < MIN_REPEATS and not common
    ):
        return None
    if rest.is_inside(code):
        return "it is much more frequent than the numbers next to it" if common else None
    if common:
        return ""
    if not _stands_apart(code, own, rest):
        return "no other number is near it"
    if not _is_far(code, own, rest):
        return "it is close to the other numbers, but much more frequent than those next to it"
    limit = code > max(999, rest.values[-1]) and code < MIN_AMOUNT_RATIO * rest.values[-1]
    return "it may be the largest amount that the source allows" if limit else ""


def _stands_apart(code: float, own: _Numbers, rest: _Numbers) -> bool:
    return _is_far(code, own, rest) or _is_frequent(code, own, rest)


def _is_isolated(code: float, rest: _Numbers) -> bool:
    """Whether the numbers end smoothly, and a number lies far beyond the end: 99 among ages up to 85."""
    tail = rest.values[-2 * TAIL :] if code > rest.values[-1] else rest.values[: 2 * TAIL]
    if len(rest.values) <= MAX_GRADES:
        return False
    gap = max(code - rest.values[-1], rest.values[0] - code)
    return bool(gap >= max(ISOLATED_STEPS * np.diff(tail).max(), MIN_ISOLATED))


def _is_below_zero(code: float, own: _Numbers, rest: _Numbers) -> bool:
    """Whether -1 is the only negative number, and the others, more than grades, start at zero without gaps."""
    only = code == -1 == own.values[0] and len(rest.values) > MAX_GRADES
    return only and not own.signed and _continues(code, own, rest)


def _continues(code: float, own: _Numbers, rest: _Numbers) -> bool:
    """Whether a negative number may be the tail of numbers that go on below zero: no whole number between is absent."""
    tail = rest.values[:TAIL]
    dense = rest.values[0] == 0 and tail[-1] - tail[0] <= MAX_DENSE_STEP * (len(tail) - 1)
    return bool(dense and np.isin(np.arange(code + 1, 0), own.values).all())


def _is_far(code: float, own: _Numbers, rest: _Numbers) -> bool:
    """Whether a number is outside the others: by a share of their range, or negative and not their tail."""
    if rest.is_inside(code):
        return False
    low, high = rest.values[0], rest.values[-1]
    if code < 0 <= low:
        return not _continues(code, own, rest)
    gap, between = (code - high, (high, code)) if code > high else (low - code, (code, low))
    whole = np.arange(between[0] + 1, between[1])
    if len(rest.values) >= rest.span + 1 and len(whole) and np.isin(whole, own.values).all():
        return False  # it goes on without a gap: 99 above 88, 89, 90 ... is a year
    return bool(gap >= MIN_GAP * max(rest.span, 1.0))


def _is_frequent(code: float, own: _Numbers, rest: _Numbers) -> bool:
    """Whether a number is much more frequent than the others next to it."""
    at = int(np.searchsorted(rest.values, code))
    near = rest.counts[max(at - TAIL, 0) : at + TAIL]
    ratio = MIN_INNER_RATIO if rest.is_inside(code) else MIN_FREQUENCY_RATIO
    return own.count(code) >= max(float(MIN_REPEATS), ratio * float(near.max(initial=1.0)))
