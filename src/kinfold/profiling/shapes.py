"""Shapes: what the values of a column look like, judged by how they repeat, are written and are distributed.

    nothing, constant     no value, or one
    moment                dates and times
    text                  sentences
    number of its own     one value per record, like assigned numbers: in order, without gaps, or of one length
    shared number         such numbers with several rows each: of a household or a person
    code                  few values, whether written 3 or 3.0
    many codes            many values that are still names: regions, occupations
    post code, diagnosis  codes that are recognized by how they are written
    scale                 words or bands with an order: low, medium, high; 18-29, 30-44, 45+
    age, year             small integers, years
    amount                numbers with many values

Integers are names and not quantities if neighbouring values do not have similar frequencies: the frequencies of ages
change smoothly, while those of region numbers do not. In doubt they are names, because a mode never creates a new
value and an average may. The name of a column can say that its integers are measured or money. Integers are ages if the
name says so, or if the name says nothing and they reach from 25 or less to 60 or more: blood pressures do not.

Coordinates of places are numbers with many values and no other meaning: two columns of degrees with four decimals or
more, one of them a latitude where people live, or two columns of large numbers in a narrow range, metres of a grid.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import pairwise
from pathlib import Path

import numpy as np

from kinfold.hierarchies import TOP
from kinfold.tables.column_names import IDENTIFYING_HINTS, Hint, mentions
from kinfold.tables.schema import Column, Kind, OrderStats, Storage, ValueStats

MAX_SCALE_VALUES = 30  # longer lists are not a scale

SCALES = Path(__file__).with_name("scales.txt").read_text("utf-8").splitlines()  # words in their order, in 7 languages
SCALE_POSITIONS = tuple({word: at for at, word in enumerate(scale.split("|"))} for scale in SCALES)
BAND_NUMBER = r"\d+(?:[.,]\d+)?\s*[a-z€$£%]*"
BAND_BELOW = r"<=?|≤|under|below|unter|bis|up to|moins de|menos de"
BAND_UNTIL = "-|\N{EN DASH}|to|bis|a|à|until"
BAND_OPEN = r"\+|and (?:over|more|older)|oder mehr|et plus|y más|or more"
BAND = re.compile(
    rf"(?P<below>{BAND_BELOW})?\s*(?P<low>{BAND_NUMBER})\s*(?:(?:{BAND_UNTIL})\s*(?P<high>{BAND_NUMBER})|(?:{BAND_OPEN}))?\s*",
    re.IGNORECASE,
)
BAND_ABOVE = re.compile(r"(>=?|≥|over|above|über|plus de|más de)\s*", re.IGNORECASE)


def find_scale(values: Sequence[str]) -> tuple[str, ...]:
    """Return values in their order, or () if no order is known.

    Words are looked up in `SCALES`; bands are ordered by their start, with `<` before and `>` or `+` after.

    >>> find_scale(["high", "low", "Medium"]), find_scale(["45+", "18-29", "30-44"]), find_scale(["red", "blue", "low"])
    (('low', 'Medium', 'high'), ('18-29', '30-44', '45+'), ())
    """
    if not 2 < len(values) <= MAX_SCALE_VALUES or TOP in values:
        return ()
    plain = {value: re.sub(r"[\s_-]+", " ", value).strip().casefold() for value in values}
    for places in SCALE_POSITIONS:
        if set(plain.values()) <= set(places) and len(set(plain.values())) == len(values):
            return tuple(sorted(values, key=lambda value: places[plain[value]]))
    return _order_bands(values)


def _order_bands(values: Sequence[str]) -> tuple[str, ...]:
    """Order bands by their start; plain numbers are not bands, and two equal starts have no order."""
    starts = {value: start for value in values if (start := _get_band_start(value)) is not None}
    if len(starts) < len(values) or len(set(starts.values())) < len(values):
        return ()
    wide = sum(not value.strip().replace(".", "").isdigit() for value in values)
    return tuple(sorted(values, key=lambda value: starts[value])) if wide >= len(values) - 2 else ()


def _get_band_start(value: str) -> tuple[float, int] | None:
    text = value.strip()
    above = BAND_ABOVE.match(text)
    band = BAND.fullmatch(text[above.end() :] if above else text)
    if band is None or (above and band["high"]):
        return None
    low = re.sub(r"[^\d.]", "", band["low"].replace(",", "."))
    return float(low), -1 if band["below"] else 1 if above else 0


MAX_CODE_VALUES = 20  # a column with fewer values is a code
ALMOST_ALL = 0.95  # share of different values above which values are unique
MIN_SMOOTHNESS = 0.4  # correlation of neighbouring frequencies above which numbers are quantities
MAX_GRADES = 7  # different numbers that may be grades even if the name says that they are measured
MAX_AGE = 120  # years
MAX_AGE_GROUPS = 20  # from 0-4 to 95 and older
MAX_YOUNGEST = 25  # the lowest number of a column without a telling name is at most this if the numbers are ages
MIN_OLDEST = 60  # and the highest is at least this
MIN_ROWS_FOR_RANGE = 30  # the range of fewer values says little
MIN_EVEN_SPREAD = (
    0.3  # distance of the quartiles, as a share of the range: 0.5 for equal frequencies, 0.2 for a bell curve
)
MIN_UNIFORM_SPREAD = 0.42  # the same, of numbers that were drawn at random or assigned, and not measured
MIN_LAST_NUMBER = 1000  # of consecutive numbers of people; shorter ones are codes
MAX_UNIFORM_DEVIATIONS = 3.0  # of the quantiles of equally frequent numbers
MIN_ZERO_SHARE = 0.2  # of the rows of a count that most people do not have
MAX_SKEWED_MEAN = 0.35  # mean of the numbers that are not zero, as a share of the highest; of codes it is about 0.5
MIN_RANDOM_ROWS = 100  # fewer values say little about their frequencies
YEAR_RANGE = (1850, 2100)
RECENT_YEARS = (1900, 2049)  # of events, also if there are few of them
MIN_SENTENCE_WORDS = 4  # words
MIN_TEXT_LETTERS = 40  # letters
MAX_ROWS_PER_UNIT = 30  # average rows of a household or a person
MIN_KEYS_IN_WAVES = 30  # different numbers of people who all have the same number of rows
MIN_SHARE_IN_WAVES = 0.6  # of the numbers: some people miss a wave
QUANTITY_HINTS = frozenset((Hint.MEASURE, Hint.MONEY))

ICD10 = re.compile(r"[A-TV-Z][0-9][0-9AB](\.?[0-9A-KXZ]{1,4})?[-+*]?")
DIGITS = re.compile(r"[0-9 ./-]+")
NUMBERED_CODE = re.compile(r"[^\W\d_]{0,4}[-_ ]?[0-9]{3,}[-_ ]?[^\W\d_]?")  # P00123, 4711-B
MONTH_AND_YEAR = re.compile(r"[^\W\d_]{3,9}\.?[- /]?(19|20)?[0-9]{2}")  # Jan 1950
_digits = r"(?=(?:[^0-9]*[0-9]){3})"  # three or more
TOKEN = re.compile(  # hashes, keys of devices, accounts, also masked, addresses of computers and people: long, no blank
    rf"{_digits}[0-9A-Za-z_.:/@+*#-]{{12,}}|[0-9a-f]{{8,}}|[^\s@]+@[^\s@]+|([0-9]{{1,3}}\.){{3}}[0-9]{{1,3}}"
    r"|\+?[0-9(][0-9 ()/.-]{8,}[0-9]|[A-Z]{2}[0-9]{2}( ?[0-9A-Z]{4}){3,}.*",
    re.ASCII,
)
BASE64 = re.compile(r"([0-9A-Za-z+/_-]{4})+|([0-9A-Za-z+/_-]{4})*[0-9A-Za-z+/_-]{2,3}={1,2}")
MIN_CHAPTERS = 4  # first letters of diagnoses without a point, some of them of three characters
MIN_LONG_NUMBER = 9  # digits of numbers of people and devices, which repeat; amounts are shorter or rounded
POST_CODE = re.compile(r"[0-9]{4,6}|[0-9]{3}-[0-9]{4}|[0-9]{5}-[0-9]{3,4}|[0-9]{4} ?[A-Z]{2}|[0-9]{2}-[0-9]{3}"
                       r"|[A-Z]{1,2}[0-9][0-9A-Z]? ?[0-9][A-Z]{2}|[A-Z][0-9][A-Z] ?[0-9][A-Z][0-9]")  # fmt: skip

GRID_WORDS = "x y e n east north este norte nord ost rechts hoch"  # axes of a grid, if the numbers are large
DEGREE_WORDS = "laenge lange breite long longitud"  # also lengths, which have fewer decimals
MIN_DEGREE_DECIMALS = 4  # 11 metres
MAX_DEGREE_DECIMALS = 8  # numbers that a program computes have more
MIN_GRID_NUMBER = 10_000  # of metres in a grid of a country
MAX_GRID_NUMBER = 10_000_000  # from the equator to a pole
MAX_GRID_SPREAD = 1.5  # range of metres that the name calls an axis, as a share of their mean
MAX_NARROW_SPREAD = 0.35  # and of metres whose name says nothing
_month = r"(0[1-9]|1[0-2])"
_day = r"(0[1-9]|[12][0-9]|3[01])"
_year = r"(1[89]|20)[0-9]{2}"
WRITTEN_DATE = re.compile(  # 195012, 19501231, 501231, 12311950, 31121950, 12/1950, 23:59
    rf"{_year}{_month}{_day}?|[0-9]{{1,2}}{_month}{_day}|[0-9]{{1,2}}{_day}{_year}"
    rf"|{_month}[./-]{_year}|{_year}[./-]{_month}|[0-2]?[0-9][:.h][0-5][0-9](:[0-5][0-9])?( ?[ap]\.?m\.?)?"
)
# Full post codes that have a form of their own: ZIP+4, British, Canadian, Dutch.
FULL_POST_CODE = re.compile(r"[0-9]{5}-[0-9]{4}|[A-Z]{1,2}[0-9][0-9A-Z]? ?[0-9][A-Z]{2}"
                            r"|[A-Z][0-9][A-Z] ?[0-9][A-Z][0-9]|[0-9]{4} [A-Z]{2}")  # fmt: skip


class Shape(StrEnum):
    """The kind of values of a column; the value says how it is recognized."""

    NOTHING = "it has no values"
    CONSTANT = "one value distinguishes no records"
    MOMENT = "dates"
    TEXT = "free text may contain anything about a person"
    OWN_NUMBER = "almost every record has its own value"
    SHARED_NUMBER = "looks like assigned numbers, a few rows each"
    CODE = "few values: a code"
    MANY_CODES = "many values: codes, not quantities"
    POST_CODE = "written like postal codes"
    DIAGNOSIS = "written like diagnoses of ICD-10"
    SCALE = "values with an order"
    AGE = "small whole numbers, like ages"
    YEAR = "whole numbers, like years"
    AMOUNT = "a number with many values"

    @property
    def kind(self) -> Kind:
        """The type of such a column."""
        if self in (Shape.AGE, Shape.YEAR, Shape.AMOUNT):
            return Kind.CONTINUOUS
        return {Shape.MOMENT: Kind.DATE, Shape.SCALE: Kind.ORDINAL}.get(self, Kind.NOMINAL)


def detect_shape(column: Column, stats: ValueStats, order: OrderStats | None, hints: frozenset[Hint]) -> Shape:
    """Return the shape of the values of a column; `order` is None if it was not computed."""
    if stats.distinct <= 1 and not (Hint.TEXT in hints and stats.mean_words >= MIN_SENTENCE_WORDS):
        # a flag has one value and is empty in the other rows
        return Shape.NOTHING if not stats.distinct else Shape.CODE if column.nulls else Shape.CONSTANT
    if column.storage.kind is Kind.DATE or column.date_format:  # dates as text, in a frame
        return Shape.MOMENT
    if column.storage is Storage.BOOLEAN:
        return Shape.CODE
    if column.storage is Storage.TEXT:
        return _detect_text_shape(stats, order, hints)
    if stats.whole_numbers < stats.filled:
        return Shape.AMOUNT
    return _detect_integer_shape(stats, order, hints)


def needs_order(column: Column, stats: ValueStats) -> bool:
    """Whether the order of the rows can help to recognize assigned numbers."""
    repeats_little = stats.distinct > MAX_CODE_VALUES and stats.mean_count <= MAX_ROWS_PER_UNIT
    return repeats_little and column.storage.kind is not Kind.DATE


def is_nearly_unique(stats: ValueStats) -> bool:
    """Whether almost every record has its own value."""
    return stats.filled > 1 and stats.distinct >= ALMOST_ALL * stats.filled


def is_skewed_count(stats: ValueStats) -> bool:
    """Whether zero is the most frequent number and others are rounded, or far below the highest: days, money."""
    counts = dict(zip(map(float, stats.values), stats.counts, strict=True))
    zeros = counts.get(0.0, 0)
    if stats.low != 0 or zeros < max(MIN_ZERO_SHARE * stats.filled, stats.max_count) or zeros == stats.filled:
        return False
    skewed = stats.mean * stats.filled / (stats.filled - zeros) <= MAX_SKEWED_MEAN * stats.high
    return skewed or (stats.distinct > MAX_CODE_VALUES and _is_rounded(stats))


def has_waves(shape: Shape, stats: ValueStats) -> bool:
    """Whether most of many codes without a meaning have the same number of rows, the highest: people in all waves."""
    if shape not in (Shape.MANY_CODES, Shape.AMOUNT) or stats.distinct < MIN_KEYS_IN_WAVES or stats.max_count < 2:
        return False
    return stats.counts.count(stats.max_count) >= MIN_SHARE_IN_WAVES * len(stats.counts)


def find_coordinates(columns: Sequence[tuple[Column, ValueStats]]) -> Iterator[str]:
    """Yield the columns of coordinates among columns whose names have no other meaning."""
    numeric = (Storage.INTEGER, Storage.NUMBER)
    numbers = [(c, own) for c, own in columns if c.storage in numeric and own.distinct > MAX_CODE_VALUES]
    yield from (column.name for column, own in numbers if _is_coordinate(column, own))
    for first, second in pairwise(numbers):
        pairs = ((first, second), (second, first))
        degrees = any(_are_latitudes(*lat) and _are_longitudes(*lon) for lat, lon in pairs)
        metres = all(_are_metres(own, 10 * MIN_GRID_NUMBER, MAX_NARROW_SPREAD) for _, own in (first, second))
        if degrees or (metres and all(is_nearly_unique(own) and not _is_rounded(own) for _, own in (first, second))):
            yield from (first[0].name, second[0].name)


def _is_coordinate(column: Column, stats: ValueStats) -> bool:
    """Whether a column alone is a coordinate: by a name that fits its numbers, or as a precise latitude."""
    if mentions(column.name, GRID_WORDS) and _are_metres(stats, MIN_GRID_NUMBER, MAX_GRID_SPREAD):
        return True
    if mentions(column.name, DEGREE_WORDS) and _are_degrees(column, stats, 180):
        return True
    precise = MIN_DEGREE_DECIMALS < (column.decimals or 0) <= MAX_DEGREE_DECIMALS and is_nearly_unique(stats)
    return precise and stats.low >= 25 and stats.high - stats.low <= 15 and _are_latitudes(column, stats)


def _are_degrees(column: Column, stats: ValueStats, limit: float) -> bool:
    fine = column.decimals is None or column.decimals >= MIN_DEGREE_DECIMALS
    return fine and -limit <= stats.low and stats.high <= limit and stats.whole_numbers < 0.1 * stats.filled


def _are_latitudes(column: Column, stats: ValueStats) -> bool:
    """Whether degrees are of one part of a hemisphere where people live, or of the world."""
    north, south = stats.low >= 10 and stats.high <= 72, stats.low >= -60 and stats.high <= -10
    computed = (column.decimals or MAX_DEGREE_DECIMALS + 1) > MAX_DEGREE_DECIMALS  # as are many other numbers
    part = (north or south) and stats.high - stats.low <= (0.2 * abs(stats.mean) if computed else 30)
    return _are_degrees(column, stats, 90) and (part or (stats.low < -20 and stats.high > 20))


def _are_longitudes(column: Column, stats: ValueStats) -> bool:
    world = stats.low < -60 and stats.high > 60
    return _are_degrees(column, stats, 180) and (world or stats.high - stats.low <= 60)


def _are_metres(stats: ValueStats, low: float, spread: float) -> bool:
    """Whether numbers are large and close together, like the coordinates of a grid."""
    inside = stats.low >= low and stats.high <= MAX_GRID_NUMBER
    return inside and stats.high - stats.low <= spread * stats.mean


def _detect_text_shape(stats: ValueStats, order: OrderStats | None, hints: frozenset[Hint]) -> Shape:
    many = stats.distinct > MAX_CODE_VALUES or Hint.TEXT in hints
    sentences = stats.mean_words >= MIN_SENTENCE_WORDS and not _matches(stats, DIGITS)
    long = stats.mean_length >= MIN_TEXT_LETTERS and not _matches(stats, TOKEN)  # a hash has 64 letters
    if many and stats.mean_count < 10 and (sentences or long):
        return Shape.TEXT
    if stats.distinct > 2 and _matches(stats, ICD10) and _are_diagnoses(stats, hints):
        return Shape.DIAGNOSIS
    if are_full_post_codes(stats, hints) or _are_named_post_codes(stats, hints):
        return Shape.POST_CODE
    if many and _matches(stats, WRITTEN_DATE):
        return Shape.MANY_CODES
    if is_nearly_unique(stats):
        return Shape.OWN_NUMBER
    if find_scale(stats.values):
        return Shape.SCALE
    few = not many and stats.mean_count > MAX_ROWS_PER_UNIT and hints.isdisjoint(IDENTIFYING_HINTS)
    if stats.distinct > 2 and _matches(stats, TOKEN) and not (few and _matches(stats, DIGITS)):
        return Shape.SHARED_NUMBER
    if many and any(value.endswith("=") for value in stats.values) and _matches(stats, BASE64):
        return Shape.SHARED_NUMBER
    runs = _comes_in_runs(stats, order)
    if (many or Hint.PLACE in hints) and not runs and _matches(stats, POST_CODE):
        return Shape.POST_CODE
    if not many:
        return Shape.CODE
    numbered = Hint.BIRTH not in hints and _matches(stats, NUMBERED_CODE) and not _matches(stats, MONTH_AND_YEAR)
    place = Hint.PLACE in hints and hints.isdisjoint({*IDENTIFYING_HINTS, Hint.HOUSEHOLD})
    if stats.mean_count <= MAX_ROWS_PER_UNIT and (runs or numbered) and not place:
        return Shape.SHARED_NUMBER
    return Shape.TEXT if sentences else Shape.MANY_CODES


def _detect_integer_shape(stats: ValueStats, order: OrderStats | None, hints: frozenset[Hint]) -> Shape:
    quantity = bool(hints & QUANTITY_HINTS) and hints.isdisjoint(IDENTIFYING_HINTS)
    if _are_named_post_codes(stats, hints):
        return Shape.POST_CODE
    if not quantity and stats.distinct > MAX_CODE_VALUES and _matches(stats, WRITTEN_DATE):
        return Shape.MANY_CODES  # whose average would be no date
    ages = Hint.AGE in hints and _are_possible_ages(stats)
    counting = _counts_records(stats) and not (ages and stats.low > 1)  # numbers of records do not start at 20
    if is_nearly_unique(stats) and (counting or (not quantity and _looks_assigned(stats, order))):
        return Shape.OWN_NUMBER
    if ages:
        return Shape.AGE
    if not quantity and stats.distinct > 2 and RECENT_YEARS[0] <= stats.low and stats.high <= RECENT_YEARS[1]:
        return Shape.YEAR
    if stats.distinct <= (MAX_GRADES if quantity else MAX_CODE_VALUES) and stats.mean_count >= 2:
        return Shape.CODE
    if quantity:
        return Shape.AMOUNT
    if Hint.PLACE in hints or Hint.WORK in hints:
        return Shape.POST_CODE if _matches(stats, POST_CODE) else Shape.MANY_CODES
    if YEAR_RANGE[0] <= stats.low and stats.high <= YEAR_RANGE[1]:
        return Shape.YEAR
    if is_skewed_count(stats):
        return Shape.AMOUNT
    if not quantity and _counts_groups(stats, order):
        return Shape.SHARED_NUMBER
    if stats.low >= 0 and stats.high <= MAX_AGE:
        smooth = stats.mean_count < 4 or _is_quantity(stats)
        if smooth and _span_lives(stats, hints):
            return Shape.AGE
        return Shape.AMOUNT if smooth and not _is_uniform(stats) else Shape.MANY_CODES
    if (_comes_in_runs(stats, order) and _is_even(stats)) or (
        _have_one_length(stats, MIN_LONG_NUMBER) and not quantity
    ):
        return Shape.SHARED_NUMBER
    if not _is_uniform(stats) and (stats.mean_count < 5 or _is_rounded(stats) or _is_quantity(stats)):
        return Shape.AMOUNT
    return Shape.MANY_CODES


def are_full_post_codes(stats: ValueStats, hints: frozenset[Hint]) -> bool:
    """Whether the values are full post codes; a number of its own without a blank is a registration plate instead."""
    if stats.distinct <= MAX_CODE_VALUES or not hints.isdisjoint(IDENTIFYING_HINTS):
        return False
    parted = (
        Hint.PLACE in hints or not is_nearly_unique(stats) or any(re.search("[ -]", value) for value in stats.values)
    )
    return parted and _matches(stats, FULL_POST_CODE)


def _are_named_post_codes(stats: ValueStats, hints: frozenset[Hint]) -> bool:
    """Whether the name says place and the values are many post codes, even if almost every record has its own."""
    return (
        Hint.PLACE in hints
        and Hint.MEASURE not in hints
        and stats.distinct > MAX_CODE_VALUES
        and _matches(stats, POST_CODE)
    )


def _are_possible_ages(stats: ValueStats) -> bool:
    """Whether numbers of a column whose name says age can be years; a few small numbers are groups of ages."""
    groups = stats.distinct <= MAX_AGE_GROUPS and stats.high <= MAX_AGE_GROUPS and stats.mean_count >= 5
    return stats.low >= 0 and stats.high <= MAX_AGE and stats.distinct > 2 and not groups


def _span_lives(stats: ValueStats, hints: frozenset[Hint]) -> bool:
    """Whether numbers reach from the young to the old, and the name of their column has no other meaning."""
    spans = stats.low <= MAX_YOUNGEST and stats.high >= MIN_OLDEST
    return (spans or stats.filled < MIN_ROWS_FOR_RANGE) and hints <= {Hint.AGE, Hint.BODY}


def _looks_assigned(stats: ValueStats, order: OrderStats | None) -> bool:
    """Whether integers look like assigned numbers: evenly distributed, and in order, dense or of one length."""
    if stats.filled < 3 or not _is_even(stats):
        return False
    if order is not None and order.rises >= stats.filled - 1:
        return True
    if stats.distinct >= 0.5 * (stats.high - stats.low + 1) and stats.high > MAX_AGE:
        return True
    random = stats.filled >= MIN_RANDOM_ROWS and stats.high >= MIN_LAST_NUMBER
    least = max(MIN_UNIFORM_SPREAD, 0.5 - 2 / math.sqrt(stats.distinct))  # four deviations: of random numbers it is 0.5
    return _have_one_length(stats, 5) or (random and _is_even(stats, least))


def _counts_records(stats: ValueStats) -> bool:
    """Whether each record has its own number, and none is absent between the first and the last: numbers or ranks."""
    return stats.distinct == stats.filled == stats.high - stats.low + 1 and stats.distinct > MAX_CODE_VALUES


def _counts_groups(stats: ValueStats, order: OrderStats | None) -> bool:
    """Whether equally frequent numbers count from 0 or 1 without gaps, each in rows that follow each other."""
    if order is None or order.runs > 1.05 * stats.distinct or stats.mean_count < 1.05:
        return False
    return stats.low in (0, 1) and stats.distinct == stats.high - stats.low + 1 and _is_uniform(stats)


def _is_uniform(stats: ValueStats) -> bool:
    """Whether all of many whole numbers are equally frequent, like codes and days, and unlike what is measured."""
    if not stats.complete or stats.filled < MIN_RANDOM_ROWS or stats.low < 0 or _is_rounded(stats):
        return False
    values, counts = np.array([float(value) for value in stats.values]), np.array(stats.counts, np.float64)
    order = np.argsort(values)
    below = np.searchsorted(np.cumsum(counts[order]), np.array([0.05, 0.25, 0.5, 0.75, 0.95]) * stats.filled)
    shares = (values[order][below] - stats.low) / max(stats.high - stats.low, 1.0)
    tolerance = MAX_UNIFORM_DEVIATIONS * 0.5 / math.sqrt(stats.filled) + 1 / stats.distinct
    return bool(np.abs(shares - (0.05, 0.25, 0.5, 0.75, 0.95)).max() <= tolerance)


def _have_one_length(stats: ValueStats, digits: int) -> bool:
    """Whether whole numbers have the same number of digits, so many or more, and are not rounded."""
    low, high = (len(str(int(number))) if number > 0 else 0 for number in (stats.low, stats.high))
    return low == high >= digits and not _is_rounded(stats)


def _are_diagnoses(stats: ValueStats, hints: frozenset[Hint]) -> bool:
    """Whether codes in the form of ICD-10 are diagnoses, and not the numbers of people: A1234BC, R12345."""
    if Hint.HEALTH in hints:
        return True
    if is_nearly_unique(stats) or not hints.isdisjoint(IDENTIFYING_HINTS):
        return False
    chapters = {value[:1] for value in stats.values}
    lengths = {len(value) for value in stats.values}
    return any("." in value for value in stats.values) or (len(chapters) >= MIN_CHAPTERS and len(lengths) > 1)


def _comes_in_runs(stats: ValueStats, order: OrderStats | None) -> bool:
    """Whether the rows of a value follow each other, a few at a time, like those of a household."""
    if order is None or not 1.05 <= stats.mean_count <= MAX_ROWS_PER_UNIT:
        return False
    return order.runs <= 1.05 * stats.distinct and stats.distinct > MAX_AGE


def _is_even(stats: ValueStats, spread: float = MIN_EVEN_SPREAD) -> bool:
    """Whether numbers are evenly distributed, like assigned numbers and unlike amounts of money."""
    span = stats.high - stats.low
    if abs(stats.mean - (stats.low + stats.high) / 2) > 0.1 * span:
        return False
    if not stats.complete:
        return True
    first, third = np.quantile([float(value) for value in stats.values], (0.25, 0.75))
    return bool(third - first >= spread * span)


def _is_rounded(stats: ValueStats) -> bool:
    """Whether most values are multiples of ten."""
    return sum(float(value) % 10 == 0 for value in stats.values) > 0.5 * len(stats.values)


def _matches(stats: ValueStats, pattern: re.Pattern[str]) -> bool:
    """Whether almost all inspected rows match a pattern."""
    codes = (value.strip().removesuffix(".0") for value in stats.values)  # 4711.0 is the code 4711
    count = sum(n for code, n in zip(codes, stats.counts, strict=True) if pattern.fullmatch(code))
    return count >= ALMOST_ALL * sum(stats.counts)


def _is_quantity(stats: ValueStats) -> bool:
    """Whether neighbouring values have similar frequencies."""
    if not stats.complete:  # codes usually have the same number of digits
        return stats.low <= 0 or len(str(int(stats.low))) < len(str(int(stats.high)))
    values = np.array([float(value) for value in stats.values])
    counts = np.array(stats.counts, np.float64)[np.argsort(values)]
    if stats.high - stats.low + 1 <= 1.5 * stats.distinct:  # if few values are absent, they count as 0
        dense = np.zeros(int(stats.high - stats.low) + 1)
        dense[(np.sort(values) - stats.low).astype(np.intp)] = counts
        counts = dense
    spans_ages = stats.low != 1 and stats.low <= 25 and 60 <= stats.high <= MAX_AGE  # codes usually start at 1
    return compute_smoothness(counts) > MIN_SMOOTHNESS or (spans_ages and counts.var() < 2 * counts.mean())


def compute_smoothness(counts: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """Return the correlation of each frequency with the mean of its six neighbours, -1 to 1.

    >>> round(compute_smoothness(np.array([1.0, 2, 3, 4, 5, 6, 7, 6, 5, 4, 3, 2, 1])), 2)
    0.95
    """
    root = np.sqrt(counts)
    near = [np.concatenate([root[max(i - 3, 0) : i], root[i + 1 : i + 4]]).mean() for i in range(len(root))]
    if len(root) < 3 or root.std() == 0 or np.std(near) == 0:
        return 0.0
    return float(np.corrcoef(root, near)[0, 1])
