"""How a source is written: its words for missing, the marks in its numbers, its date formats, and the file's own form.

A table is first read as plain text. Words for missing become null. A column in which every value is a number written
with the marks is stored with a decimal point and without thousands marks. A CSV release has the decimal mark again, but
never thousands marks. No code after reading needs to know about marks.

Date formats are detected, specific ones before general ones. Zeros, a Z and offsets that every value has are part of
the format: a date followed by `T00:00:00.000Z` stays a date and is written the same way again. Two-digit years are not
assumed, and neither is the order of day and month.

A column of numbers or dates must not become text because `[source]` does not say how it is written. If the type of
such a column is not declared, or is declared as what the column seems to hold, the run stops and names the key to set.
`type = "nominal"` continues.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from kinfold.errors import PolicyError
from kinfold.tables.column_names import match_patterns
from kinfold.tables.schema import Column, LikelyType

NUMERIC_DATES = ("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y")
MONTH_NAME_DATES = ("%d-%b-%Y", "%d %b %Y", "%d%b%Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y")
TWO_DIGIT_YEAR_DATES = ("%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d-%b-%y")  # the century is unknown
TIME_ENDINGS = ("", ".000", "Z", ".000Z", ".%f", ".%fZ", "%z", ".%f%z")

_midnight_formats = tuple(f"%Y-%m-%d{gap}00:00:00{end}" for gap in " T" for end in ("", ".000", "Z", ".000Z"))
_iso_formats = tuple(f"%Y-%m-%d{gap}%H:%M:%S{end}" for gap in " T" for end in TIME_ENDINGS)
_minute_formats = ("%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%MZ", "%Y-%m-%dT%H:%M%z", "%Y-%m-%dZ")
_time_formats = tuple(f"{day} {time}" for day in NUMERIC_DATES[1:] for time in ("%H:%M:%S", "%H:%M"))

DATE_FORMATS = (
    *NUMERIC_DATES, *MONTH_NAME_DATES, *_midnight_formats, *_iso_formats, *_minute_formats, *_time_formats,
    *TWO_DIGIT_YEAR_DATES,
)  # fmt: skip
DATE_DIRECTIVE = re.compile("%-?.")
DATE_LIKE_PATTERN = (
    r"[0-9]{1,4}[-./ ]?([0-9]{1,2}|[A-Za-z]{3,9})[-./ ]?,?[0-9]{2,4}([ T].*|Z)?"
    r"|[A-Za-z]{3,9} [0-9]{1,2}, [0-9]{4}"
)


def get_fixed_characters(form: str) -> frozenset[str]:
    """Return the letters and signs in every value of a date format; a blank matches any blank and is left out.

    >>> [sorted(get_fixed_characters(form)) for form in ("%d.%m.%Y %H:%M", "%Y-%m-%dT00:00:00Z", "%d%b%Y")]
    [['.', ':'], ['-', ':', 'T', 'Z'], []]
    """
    return frozenset(DATE_DIRECTIVE.sub("", form)) - frozenset(" 0123456789")


def has_time(form: str | None) -> bool:
    """Whether a date format has the time of day.

    >>> has_time("%Y-%m-%dT%H:%M:%SZ"), has_time("%Y-%m-%dT00:00:00Z")
    (True, False)
    """
    return form is not None and ("%H" in form or "%I" in form)


def has_offset(form: str | None) -> bool:
    """Whether each value of a date format has its own offset from UTC."""
    return form is not None and form.endswith("%z")


def swap_day_and_month(form: str) -> str:
    """Return a date format with day and month exchanged.

    >>> swap_day_and_month("%d/%m/%Y")
    '%m/%d/%Y'
    """
    return form.replace("%d", "%!").replace("%m", "%d").replace("%!", "%m")


def choose_date_format(matching: tuple[str, ...], declared: tuple[str, ...] = ()) -> str | None:
    """Return one of the formats that match every value: a declared one, or the first that is not ambiguous.

    >>> choose_date_format(("%d/%m/%Y",)), choose_date_format(("%d/%m/%Y", "%m/%d/%Y"))
    ('%d/%m/%Y', None)
    >>> choose_date_format(("%d/%m/%Y", "%m/%d/%Y"), ("%m/%d/%Y",))
    '%m/%d/%Y'
    """
    for form in declared:
        if form in matching:
            return form
    return next((form for form in matching if not _is_ambiguous_date(form, matching) and "%y" not in form), None)


def _is_ambiguous_date(form: str, matching: tuple[str, ...]) -> bool:
    """Whether day and month can be exchanged."""
    return swap_day_and_month(form) != form and swap_day_and_month(form) in matching


THOUSANDS_SPACES = " \u00a0\u2009\u202f"  # a thousands mark may be a no-break or a thin space
APOSTROPHES = "'\u2019"
EXPONENT_PATTERN = "([eE][+-]?[0-9]{1,9})?"


class ColumnForm(NamedTuple):
    """How one column is written: its own codes for missing values, and units before or after its numbers."""

    na: tuple[str, ...] = ()  # texts, and numbers as `normalize_category` writes them
    unit: tuple[str, ...] = ()


@dataclass(frozen=True)
class SourceForm:
    """The keys of `[source]`, completed by detection; None is not yet detected."""

    declared: ClassVar[bool] = True  # by the user, who may be wrong

    na: tuple[str, ...] = ()
    decimal: str = "."
    thousands: str = ""
    dates: tuple[str, ...] = ()
    encoding: str | None = None
    separator: str | None = None
    sheet: str | int | None = None
    header: int | None = None  # the line, or the row of a sheet, with the names: the first one; 0: no line has them
    skip: int = 0  # lines above the table
    skip_totals: bool = False  # leave out rows of totals, and rows in which only the first cell has a value
    parts: bool = False  # a path may be a folder, or a pattern of files
    quoted: bool = False  # formulas have an apostrophe, as in a release with `output.spreadsheet_safe`
    columns: tuple[tuple[str, ColumnForm], ...] = ()  # by name or pattern

    def complete(self, detected: SourceForm) -> SourceForm:
        """Return the form with what was detected in the file."""
        keys = ("separator", "encoding", "sheet")
        return replace(self, **{key: getattr(detected, key) or getattr(self, key) for key in keys})

    @property
    def layout(self) -> SourceForm:
        """The form without the notation of values: what decides which rows and cells a file has."""
        return replace(self, na=(), decimal=".", thousands="", dates=(), quoted=False, columns=())

    @property
    def notation(self) -> tuple[object, ...]:
        """How the values of all columns are written."""
        return self.na, self.decimal, self.thousands, self.dates, self.quoted

    def for_other_file(self, file: Any = None, *, released: bool = True) -> SourceForm:
        """Return the form of another file, or folder of parts, whose values are written in the same way.

        A release has no codes and units of single columns, and an average may equal a code.
        """
        parts = isinstance(file, Path) and file.is_dir()
        form = replace(self, encoding=None, separator=None, sheet=None, header=None, skip=0, parts=parts)
        return replace(form, skip_totals=False, columns=() if released else self.columns)

    def get_columns(self, names: Sequence[str]) -> dict[str, ColumnForm]:
        """Return the forms of columns of a table, by name."""
        keys = dict(self.columns)
        matches = match_patterns(keys, names)
        return {name: form for key, form in self.columns for name in matches.get(key, (key,)) if name in names}

    @property
    def lines_above(self) -> int:
        """The number of lines above the header if its line is declared, otherwise above the table."""
        return self.header - 1 if self.header else self.skip

    @property
    def has_lines_below(self) -> bool:
        """Whether lines below the header, up to line `skip`, are not records: units or long names."""
        return bool(self.header) and self.skip > (self.header or 0)

    @property
    def has_marks(self) -> bool:
        """Whether numbers have other marks than a decimal point."""
        return self.decimal != "." or bool(self.thousands)

    @property
    def field_separator(self) -> str:
        """The separator of fields in CSV; it differs from the decimal mark."""
        return self.separator or (";" if self.decimal == "," else ",")

    def to_dict(self) -> dict[str, Any]:
        """Return the keys of `[source]` that are not the default."""
        dates = self.dates[0] if len(self.dates) == 1 else list(self.dates)
        keys = {"separator": self.separator, "encoding": self.encoding, "sheet": self.sheet, "na": list(self.na)}
        keys |= {"decimal": self.decimal if self.decimal != "." else None, "thousands": self.thousands, "dates": dates}
        keys |= {"header": self.header, "skip": self.skip or None}
        keys |= {"skip_totals": self.skip_totals or None, "parts": self.parts or None}
        return {key: value for key, value in keys.items() if value or value == 0}


def refuse_totals() -> None:
    """Raise if rows of a frame or a database should be left out: their number must not change."""
    what = "source.skip_totals is for files, but the table is a frame or in a database"
    raise PolicyError(what, fix="leave out its rows of totals before, and remove source.skip_totals")


class ReleasedForm(SourceForm):
    """The form of a file that kinfold wrote: its separator is certain, whatever its fields hold."""

    declared = False


DEFAULT_FORM = SourceForm()


def build_mark_pattern(mark: str) -> str:
    """Return a character class with all variants of a mark.

    >>> build_mark_pattern("."), build_mark_pattern(" ") == f"[{THOUSANDS_SPACES}]"
    ('[.]', True)
    """
    return f"[{next((group for group in (THOUSANDS_SPACES, APOSTROPHES) if mark and mark in group), mark)}]"


def build_number_pattern(decimal: str = ".", thousands: str = "") -> str:
    """Return the pattern of numbers with these marks, for Python and for databases with RE2.

    >>> pattern = re.compile(build_number_pattern(",", "."))
    >>> [bool(pattern.fullmatch(text)) for text in ("1.234,5", "1234,5", "1.5", "-,5", "1.234.567", "1e3", "0.123")]
    [True, True, False, True, True, True, False]
    """
    point, whole = build_mark_pattern(decimal), "[0-9]+"
    if thousands:
        mark = build_mark_pattern(thousands)
        whole = (
            f"([1-9][0-9]{{0,2}}({mark}[0-9]{{2,3}})*{mark}[0-9]{{3}}|[0-9]+)"  # 12,34,567 is how India groups digits
        )
    return f"[+-]?({whole}({point}[0-9]*)?|{point}[0-9]+){EXPONENT_PATTERN}"


TYPE_NOUNS = {"number": "numbers", "moment": "dates"}


def describe_likely_type(column: Column, form: SourceForm) -> str:
    """Say what a column of text seems to hold, with counts; `form` is the declared form of its source."""
    likely, filled = column.likely_type, column.rows - column.nulls
    if likely is None:
        return f"column '{column.name}' is text"
    noun, words = TYPE_NOUNS[likely.sort], filled - likely.matching - likely.others
    text = f"column '{column.name}' seems to hold {noun}{_describe_notation(likely, form)}"
    text += f": {likely.matching:,} of its {filled:,} values are {noun}"
    text += f", {words:,} {'is a word' if words == 1 else 'are words'} for missing" if words else ""
    return text + (f", {likely.others:,} {'is' if likely.others == 1 else 'are'} not" if likely.others else "")


def _describe_notation(likely: LikelyType, form: SourceForm) -> str:
    if _is_ambiguous(likely):
        return (
            f", ambiguous: {'day and month' if likely.sort == 'moment' else 'decimal and thousands'} can be exchanged"
        )
    if likely.sort == "moment":
        return f" written as {likely.notations[0]}"
    decimal, thousands = likely.notations[0]
    marks = ["a decimal comma"] if decimal == "," else ["a decimal point"] if form.decimal == "," else []
    marks += ["thousands marks"] if thousands else []
    return f" with {' and '.join(marks)}" if marks else ""


def suggest_source_keys(likely: LikelyType, form: SourceForm) -> str:
    """Return the keys of `[source]`, and the options, with which a column is read as what it seems to hold."""
    keys = _suggest_marks(likely, form) if likely.sort == "number" else _suggest_dates(likely, form)
    if likely.missing_words:
        texts = ", ".join(f'"{word}"' for word in (*form.na, *likely.missing_words))
        keys.append(f"source.na = [{texts}] (--na)")
    fix = f"set {' and '.join(keys)}" if keys else ""
    if likely.others:
        return f"{fix}, and correct the other values" if fix else "correct or empty the other values"
    return fix or "declare its type"


def _suggest_marks(likely: LikelyType, form: SourceForm) -> list[str]:
    if (form.decimal, form.thousands) in likely.notations:
        return []
    if _is_ambiguous(likely):
        return ['source.decimal = "," (--decimal) if the commas are decimal, source.thousands = "," if they are not']
    same_decimal = (notation for notation in likely.notations if notation[0] == form.decimal)
    decimal, thousands = next(same_decimal, likely.notations[0])
    keys = [f'source.decimal = "{decimal}" (--decimal)'] if decimal != form.decimal else []
    return keys + ([f'source.thousands = "{thousands}" (--thousands)'] if thousands != form.thousands else [])


def _suggest_dates(likely: LikelyType, form: SourceForm) -> list[str]:
    if {*form.dates} & {*likely.notations}:
        return []
    first = likely.notations[0]
    forms = (first, swap_day_and_month(first)) if _is_ambiguous(likely) else (first,)
    return ["source.dates = " + " or ".join(f'"{each}"' for each in forms) + " (--dates)"]


def _is_ambiguous(likely: LikelyType) -> bool:
    """Whether the values can be read in two ways that mean different things.

    >>> _is_ambiguous(LikelyType("moment", 9, 0, ("%d/%m/%Y", "%m/%d/%Y")))
    True
    >>> _is_ambiguous(LikelyType("number", 9, 0, ((",", ""),)))
    False
    """
    if likely.sort == "moment":
        return _is_ambiguous_date(likely.notations[0], likely.notations)
    return {(",", ""), (".", ",")} <= {*likely.notations} and (".", "") not in likely.notations
