"""The schema of a table: the storage, type and role of each column, and statistics of its values.

Values of a category are compared by their text. Numbers are the exception: they are compared as numbers, however they
are written. `1`, `1.0`, `+1`, `1e0` and ` 1 ` are one value, and so are `0`, `-0` and `0.00`. `01` is a code, not a
number, and so is any text with other characters in it.

Statistics are computed from the distinct values and their counts, so a million rows cost little more than one grouping.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any, ClassVar, Literal

NUMBER_PATTERN = r"[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,9})?"
CANONICAL_NUMBER_PATTERN = r"0|-?[1-9][0-9]*|-?(0|[1-9][0-9]*)\.[0-9]*[1-9]"  # as `normalize_category` writes a number
MAX_EXACT_INTEGER = 2**53  # below, a double holds every whole number
MAX_DECIMAL_DIGITS = 38  # of a decimal of 128 bits, in DuckDB and in Arrow
SECONDS_PER_DAY = 86_400
SPACES = " \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
MAX_NUMBER_LENGTH = 400  # characters of a number without an exponent: enough for every double

_number_regex, _canonical_regex = re.compile(NUMBER_PATTERN), re.compile(CANONICAL_NUMBER_PATTERN)


def normalize_category(text: str) -> str:
    r"""Return one text for all notations of a number; any other text is unchanged.

    >>> [normalize_category(text) for text in ("1.50", "-0.0", "+1", " 1e3", "007", "flu", "1e-1000", "\u00a0.5")]
    ['1.5', '0', '1', '1000', '007', 'flu', '1e-1000', '0.5']
    """
    bare = text.strip(SPACES)
    if not _number_regex.fullmatch(bare) or (_canonical_regex.fullmatch(text) and len(text) <= MAX_NUMBER_LENGTH):
        return text
    number = Decimal(bare)
    digits = "".join(map(str, number.as_tuple().digits)).strip("0")
    if not digits:
        return "0"
    if abs(number.adjusted()) + len(digits) < MAX_NUMBER_LENGTH:
        written = f"{number:f}"
        return written.rstrip("0").rstrip(".") if "." in written else written
    return f"{'-' if number < 0 else ''}{digits}e{number.adjusted() - len(digits) + 1}"


class Role(StrEnum):
    """The role of a column in a release."""

    IDENTIFIER = "identifier"
    QUASI = "quasi-identifier"
    CONFIDENTIAL = "confidential"
    OTHER = "other"
    WEIGHT = "weight"
    REMOVE = "remove"


SURROGATE = "surrogate"  # the role of an identifier in a release that has other keys in its place
# Names of the roles in other tools.
ROLE_SYNONYMS = dict.fromkeys(("id", "direct", "identifying"), Role.IDENTIFIER)
ROLE_SYNONYMS |= dict.fromkeys(("quasi", "quasi_identifier", "quasi-identifying", "key"), Role.QUASI)
ROLE_SYNONYMS |= {"sensitive": Role.CONFIDENTIAL, "insensitive": Role.OTHER}


class Kind(StrEnum):
    """The type of a column, which decides how its values are compared and averaged."""

    CONTINUOUS = "continuous"
    ORDINAL = "ordinal"
    NOMINAL = "nominal"
    DATE = "date"

    @property
    def is_numeric(self) -> bool:
        """Whether values can be subtracted: continuous and date."""
        return self in (Kind.CONTINUOUS, Kind.DATE)


class Storage(StrEnum):
    """How the values of a column are stored, detected from all of them."""

    INTEGER = "integer"
    NUMBER = "number"
    DATE = "date"
    TIMESTAMP = "timestamp"
    BOOLEAN = "boolean"
    TEXT = "text"

    @property
    def kind(self) -> Kind:
        """The default type of such a column."""
        if self in (Storage.INTEGER, Storage.NUMBER):
            return Kind.CONTINUOUS
        return Kind.DATE if self in (Storage.DATE, Storage.TIMESTAMP) else Kind.NOMINAL


@dataclass(frozen=True)
class OrderedReading:
    """How the values of a column are compared and ordered exactly: as text, as numbers, or as moments in time.

    Numbers among texts are compared as numbers: see `normalize_category`.
    """

    sort: Literal["text", "number", "moment"] = "text"
    date_format: str | None = None  # of moments stored as text; None: ISO 8601


AS_TEXT = OrderedReading()
UTC_ZONE = "UTC"


@dataclass(frozen=True)
class LikelyType:
    """What a column of text seems to hold: numbers or dates, if `[source]` declared one of the notations."""

    sort: Literal["number", "moment"]
    matching: int  # values that fit every one of the notations
    others: int  # values that do not fit and are not a word for missing
    notations: tuple[Any, ...]  # marks of numbers (decimal, thousands) or date formats; the simplest first
    missing_words: tuple[str, ...] = ()  # known words for missing in the column


@dataclass(frozen=True)
class Column:
    """One column of a table; counts are numbers of rows."""

    name: str
    storage: Storage
    rows: int
    nulls: int = 0
    distinct: int = 0
    numbers: int = 0  # values that are finite numbers
    not_finite: int = 0  # values that are infinite or not a number
    decimals: int | None = None  # the most decimals of a value; None if there are too many to count
    date_format: str | None = None  # of dates stored as text
    literal: bool = False  # compared by its text as written, whatever its type
    formulas: int = 0  # texts that a spreadsheet may run
    likely_type: LikelyType | None = None  # of a column of text
    order: tuple[str, ...] | None = None  # the order of its categories in the source
    ordered: bool = False  # whether the source declares this order as meaningful
    floating: bool = False  # whether its numbers are stored as doubles or floats
    zone: str | None = None  # of moments with a time zone: the zone of the source, or UTC
    labels: Mapping[str, str] = field(default_factory=dict, compare=False)  # value labels of SPSS and Stata, by code
    title: str = field(default="", compare=False)  # the label of the column itself, in SPSS and Stata

    MAX_CODE_VALUES: ClassVar[int] = 2  # numbers with no more distinct values are codes, not quantities

    @property
    def kind(self) -> Kind:
        """The default type of the column."""
        if self.ordered:
            return Kind.ORDINAL
        if self.storage.kind is Kind.CONTINUOUS and self.distinct <= self.MAX_CODE_VALUES:
            return Kind.NOMINAL
        return self.storage.kind

    def holds(self, kind: Kind) -> bool:
        """Whether its values are the numbers or dates of a column of a kind; years as labels of dates are not dates."""
        if self.date_format is not None:
            return kind.is_numeric
        return self.storage.kind is kind if kind is Kind.DATE else kind.is_numeric and self.storage.kind.is_numeric


@dataclass(frozen=True)
class ExactColumn:
    """Requests the exact values of a column: numbers as text, moments in UTC or with the offset that they have."""

    column: Column


@dataclass(frozen=True)
class Schema:
    """The columns of a table, in order."""

    columns: tuple[Column, ...]
    rows: int
    value_positions: tuple[int, ...] = ()  # columns, from 1, whose name looks like a value: see `column_names`
    notes: tuple[str, ...] = ()  # on how the table was read
    totals: int = 0  # rows that look like totals or footers

    @classmethod
    def from_columns(cls, columns: Iterable[Column], rows: int) -> Schema:
        """Make a schema of columns."""
        return cls(tuple(columns), rows)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __getitem__(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def get(self, name: str) -> Column | None:
        """Return the column of this name, or None."""
        return next((column for column in self.columns if column.name == name), None)


MAX_LISTED_VALUES = 2_000  # of a column: enough to recognize codes, and quick to inspect


@dataclass(frozen=True)
class ValueStats:
    """Statistics of the values of one column: frequencies, length of texts, range of numbers."""

    filled: int  # rows with a value
    distinct: int
    unique_rows: int = 0  # rows whose value, or null, occurs in no other row
    min_count: int = 0  # rows of the rarest value
    max_count: int = 0  # rows of the most frequent value
    whole_numbers: int = 0  # rows with a number without a fraction: 3, 3.0
    low: float = 0.0  # of numbers, as `high` and `mean`
    high: float = 0.0
    mean: float = 0.0
    mean_length: float = 0.0  # of texts, as `mean_words`
    mean_words: float = 0.0
    values: tuple[str, ...] = ()  # as text, the most frequent first, at most `MAX_LISTED_VALUES`
    counts: tuple[int, ...] = ()
    order: OrderStats | None = None  # if it is asked for

    @property
    def complete(self) -> bool:
        """Whether `values` lists every value."""
        return len(self.values) == self.distinct

    @property
    def mean_count(self) -> float:
        """The mean number of rows of a value."""
        return self.filled / self.distinct if self.distinct else 0.0


@dataclass(frozen=True)
class OrderStats:
    """The order of the values of a column from the first row to the last, without nulls."""

    runs: int  # of equal values
    rises: int  # rows whose value is not below the previous one
