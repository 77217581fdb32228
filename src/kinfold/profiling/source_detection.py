"""Source detection: how a table is written, one answer for all of its columns, and what stays undecided.

units       a currency or a unit before or after every number of a column: $254.82, 1.234 EUR, 12 kg, 85 %
layout      a title above the header, units below it, rows of totals and footers: see `readers.layout`
marks       a decimal comma or thousands separators: what fits every numeric column; if commas may be either, or columns
            contradict each other, nothing is guessed
missing     codes and words for missing values, by column: see `missing_codes`
dates       formats other than ISO that fit every date of a column; one column decides for others that do not show
            whether the day or the month comes first

Declared settings are not guessed. Every guess is reported; doubtful codes become questions.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import tomlkit

from kinfold.profiling.missing_codes import MissingCodes, find_missing_codes, find_unknown_words, is_missing_word
from kinfold.profiling.profile import Profile
from kinfold.profiling.questions import REMOVES_KEY, OpenQuestion, name_question
from kinfold.tables.duckdb.columns import NUMBER_LIKE_PATTERN, NUMBER_MARKS
from kinfold.tables.schema import Column, LikelyType, Role, Schema, Storage, ValueStats
from kinfold.tables.source_form import (
    ColumnForm,
    SourceForm,
    build_mark_pattern,
    build_number_pattern,
    choose_date_format,
    describe_likely_type,
    suggest_source_keys,
)

DAY = re.compile(r"(1[89]|20)[0-9]{2}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])")  # 19501231
MIN_DAYS = 20  # different ones
FIRST_OF_LAST_CENTURY, LAST_OF_THIS_CENTURY = 69, 40  # years of two digits: 1969, as `strptime` reads them; and 2040
PLAIN_POINT = (".", "")
DEFAULT_VALUES = {"separator": ",", "encoding": ("utf-8", "utf-8-sig")}  # not written to a policy
SKIP_NOTE = "(source.skip_totals)"  # in the note of the reader that counts the rows of totals
REMOVED = (Role.IDENTIFIER, Role.REMOVE)  # roles of columns whose codes for missing values do not matter
MIN_UNIT_SHARE = 0.9  # of the values of a column that are numbers with a unit
MIN_UNIT_NUMBERS = 3  # different ones
_units = tomllib.loads(Path(__file__).with_name("units.toml").read_text("utf-8"))
CURRENCIES: frozenset[str] = frozenset(_units["currencies"].split())
_before, _after = (
    "|".join(map(re.escape, sorted(units, key=lambda unit: (-len(unit), unit))))
    for units in (CURRENCIES, CURRENCIES | {*_units["units"].split()})
)
WITH_UNIT = re.compile(
    rf"(?P<sign>[+-]?)\s*(?P<before>{_before})?\s*(?P<number>{NUMBER_LIKE_PATTERN})\s*(?P<after>{_after})?"
)
BRACKETS = re.compile(r"\((.*)\)")  # around a number below zero: ($12.50)


class Detection(NamedTuple):
    """How a table is written, and what only the steward can answer."""

    form: SourceForm
    questions: tuple[OpenQuestion, ...] = ()


class Readings(NamedTuple):
    """What was guessed about a table, for the profile."""

    notes: tuple[str, ...] = ()
    questions: tuple[OpenQuestion, ...] = ()
    repeated: tuple[str, ...] = ()  # notes of the reader that say the same

    def complete(self, result: Profile, form: SourceForm) -> Profile:
        """Return a profile with the form of its table."""
        warnings = tuple(warning for warning in result.warnings if warning not in self.repeated)
        kept = (column for column in result.columns if column.role not in REMOVED and not column.undecided)
        keys = {_format_codes_key(column.name) for column in kept}
        questions = (*(each for each in self.questions if keys.issuperset(each.keys)), *result.questions)
        return replace(result, source=form.to_dict(), readings=self.notes, questions=questions, warnings=warnings)


class _UnitReading(NamedTuple):
    """The units of a column, and its numbers without them as texts."""

    units: tuple[str, ...]
    numbers: Mapping[str, str]  # by the value as written


def detect_form(schema: Schema, stats: Mapping[str, ValueStats], declared: SourceForm) -> Detection:
    """Return the format of a table: what is declared, and the rest as detected in its columns."""
    units = {c.name: unit for c in schema if (unit := _detect_unit(c, stats[c.name]))}
    with_units = [_with_unit(c, stats[c.name], units.get(c.name)) for c in schema]
    words = {c.name: each for c in with_units if (each := find_unknown_words(c, stats[c.name])) is not None}
    schema = replace(schema, columns=tuple(_without_others(c) if c.name in words else c for c in with_units))
    detected = declared
    if not declared.has_marks:
        decimal, thousands = _detect_marks(schema)
        detected = replace(detected, decimal=decimal, thousands=thousands)
    if not declared.dates:
        formats = [
            form for c in schema if (form := _detect_date_format(c, stats[c.name])) and not form.startswith("%Y-%m-%d")
        ]
        detected = replace(detected, dates=tuple(dict.fromkeys(formats)))
    detected = replace(detected, skip_totals=declared.skip_totals or schema.totals > 0)
    plain = [_read_plain(c, stats[c.name], units.get(c.name), detected) for c in schema]
    codes = find_missing_codes([c for c, _ in plain], {c.name: own for c, own in plain}, words, words=not declared.na)
    own = {
        c.name: ColumnForm(_merge_codes(codes, c.name), units[c.name].units if c.name in units else ()) for c in schema
    }
    own |= dict(declared.columns)
    columns = tuple((name, form) for name, form in own.items() if any(form))
    return Detection(replace(detected, columns=columns), _ask_about_codes(codes))


def _merge_codes(codes: Sequence[MissingCodes], column: str) -> tuple[str, ...]:
    return tuple(code for each in codes if each.column == column for code in each.codes)


def _ask_about_codes(codes: Sequence[MissingCodes]) -> tuple[OpenQuestion, ...]:
    """Return a question for each column with doubtful codes."""
    questions: list[OpenQuestion] = []
    for doubt in (each for each in codes if each.doubtful):
        *first, last = doubt.codes
        listed = f"Do {', '.join(first)} and {last}" if first else f"Does {last}"
        certain = tuple(c for each in codes if each.column == doubt.column and not each.doubtful for c in each.codes)
        proposed = write_codes((*certain, *doubt.codes)).as_string()
        others = write_codes(certain).as_string() if certain else REMOVES_KEY
        questions.append(
            OpenQuestion(
                name_question(f"na {doubt.column}", [each.name for each in questions]),
                f"{listed} in '{doubt.column}' mean that the value is missing?",
                f"{doubt.rows:,} records have {'one of them' if first else 'it'}; {doubt.reason}",
                _format_codes_key(doubt.column),
                proposed,
                (proposed, others),
            )
        )
    return tuple(questions)


def _format_codes_key(column: str) -> str:
    return f"columns.{tomlkit.key(column).as_string()}.na"


def write_codes(codes: Sequence[str]) -> Any:
    """Return codes for missing values as an array of TOML: whole numbers as numbers, other codes as texts.

    >>> write_codes(["-9", "k.A."]).as_string()
    '[-9, "k.A."]'
    """
    return tomlkit.item([int(code) if re.fullmatch("0|-?[1-9][0-9]*", code) else code for code in codes])


def _detect_unit(column: Column, stats: ValueStats) -> _UnitReading | None:
    """Return the units of a column of text in which almost all values are numbers with a unit."""
    if column.storage is not Storage.TEXT or column.likely_type is not None:
        return None
    filled = [(value, n) for value, n in zip(stats.values, stats.counts, strict=True) if not is_missing_word(value)]
    matches = {
        value: match for value, _ in filled if (match := WITH_UNIT.fullmatch(BRACKETS.sub(r"-\1", value.strip())))
    }
    units = dict.fromkeys(unit for match in matches.values() for unit in match.group("before", "after") if unit)
    rows, total = sum(n for value, n in filled if value in matches), sum(n for _, n in filled)
    numbers = {value: match["sign"] + match["number"] for value, match in matches.items()}
    if not units or rows < MIN_UNIT_SHARE * total or len(set(numbers.values())) < MIN_UNIT_NUMBERS:
        return None
    marked = sum(n for value, n in filled if value in matches and any(matches[value].group("before", "after")))
    return _UnitReading(tuple(units), numbers) if marked >= 0.5 * total else None


def _with_unit(column: Column, stats: ValueStats, unit: _UnitReading | None) -> Column:
    """Return a column whose numbers have a unit as one that is likely to hold numbers."""
    if unit is None:
        return column
    counts = dict(zip(stats.values, stats.counts, strict=True))
    fitting = [marks for marks in NUMBER_MARKS if _fit_marks(unit, marks)]
    others = sum(n for value, n in counts.items() if value not in unit.numbers and not is_missing_word(value))
    words = tuple(value.strip() for value in stats.values if is_missing_word(value))
    matching = sum(counts[value] for value in unit.numbers)
    likely = LikelyType("number", matching, others, tuple(fitting), words) if fitting else None
    return replace(column, likely_type=likely)


def _without_others(column: Column) -> Column:
    """Return a column of numbers or dates as if the words among them were known to mean missing."""
    return replace(column, likely_type=column.likely_type and replace(column.likely_type, others=0))


def _fit_marks(unit: _UnitReading, marks: tuple[str, str]) -> bool:
    """Whether all numbers can be written with these marks; money has no three decimals."""
    pattern = re.compile(build_number_pattern(*marks))
    money = bool({*unit.units} & CURRENCIES)
    thousandth = re.compile(rf".*{build_mark_pattern(marks[0])}[0-9]{{3}}")
    texts = unit.numbers.values()
    return all(map(pattern.fullmatch, texts)) and not (money and any(map(thousandth.fullmatch, texts)))


def _read_plain(
    column: Column, stats: ValueStats, unit: _UnitReading | None, form: SourceForm
) -> tuple[Column, ValueStats]:
    """Return a column of text that will be read as numbers as a column of numbers."""
    likely = column.likely_type
    if likely is None or likely.sort != "number" or likely.others or column.storage is not Storage.TEXT:
        return column, stats
    if (form.decimal, form.thousands) not in likely.notations:
        return column, stats
    texts = [unit.numbers.get(value, value) if unit else value.strip() for value in stats.values]
    mark = build_mark_pattern(form.thousands) if form.thousands else None
    plain = [(re.sub(mark, "", text) if mark else text).replace(form.decimal, ".") for text in texts]
    return replace(column, storage=Storage.NUMBER), replace(stats, values=tuple(plain))


def _detect_marks(schema: Schema) -> tuple[str, str]:
    """Return the marks that fit every numeric column, or a decimal point if none or several do."""
    marked = [{*c.likely_type.notations} for c in schema if _has_marks(c) and c.likely_type]
    if not marked:
        return PLAIN_POINT
    grouped = [{*c.likely_type.notations} for c in schema if c.storage is Storage.NUMBER and c.likely_type]
    plain = any(c.storage is Storage.NUMBER and c.decimals and not c.likely_type for c in schema)
    others = [c.likely_type for c in schema if _holds_numbers(c) and not _has_marks(c)]  # 1.234 next to a missing word
    common = set.intersection(*marked, *grouped)
    common = common.intersection(*({*likely.notations} for likely in others if likely)) or common
    notations = [notation for notation in common if notation[0] == "." or not plain]
    if not notations or {(",", ""), (".", ",")} <= {*notations}:
        return PLAIN_POINT
    decimal, thousands = min(notations, key=lambda notation: (notation[1] != "", notation[0] != ".", notation))
    return decimal, thousands


def _has_marks(column: Column) -> bool:
    likely = column.likely_type
    return likely is not None and _holds_numbers(column) and PLAIN_POINT not in likely.notations


def _holds_numbers(column: Column) -> bool:
    likely = column.likely_type
    return column.storage is Storage.TEXT and likely is not None and likely.sort == "number" and not likely.others


def _detect_date_format(column: Column, stats: ValueStats) -> str | None:
    if column.date_format and column.storage in (Storage.DATE, Storage.TIMESTAMP):
        return column.date_format
    if column.storage is Storage.INTEGER and stats.distinct >= MIN_DAYS and all(map(DAY.fullmatch, stats.values)):
        return "%Y%m%d"
    likely = column.likely_type
    if likely is None or likely.sort != "moment" or likely.others:
        return None
    first, *others = likely.notations
    if first.endswith("%y") and not others and _have_one_century(stats):
        return str(first)
    return choose_date_format(likely.notations)


def _have_one_century(stats: ValueStats) -> bool:
    """Whether two digits say the year: 1969 to 1999, or 2000 to 2040; a birth in between may be of either century."""
    years = [int(value.strip()[-2:]) for value in stats.values if value.strip()[-2:].isdecimal()]
    return stats.complete and not any(LAST_OF_THIS_CENTURY < year < FIRST_OF_LAST_CENTURY for year in years)


def select_source_keys(source: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of `[source]` that are worth writing to a policy."""
    return {key: value for key, value in source.items() if value not in DEFAULT_VALUES.get(key, ())}


def describe_readings(before: Schema, after: Schema, declared: SourceForm, detection: Detection) -> Readings:
    """Return what was guessed, by column, and which texts could be more than text."""
    form = detection.form
    guesses = {
        _describe_layout: (form.header, form.skip_totals) != (declared.header, declared.skip_totals),
        _describe_marks: (form.decimal, form.thousands) != (declared.decimal, declared.thousands),
        _describe_units: True,
        _describe_missing: form.na != declared.na,
        _describe_codes: True,
        _describe_dates: form.dates != declared.dates,
    }
    notes = [
        f"{'guessed' if guessed else 'as declared'}: {line}"
        for describe, guessed in guesses.items()
        for line in describe(before, after, form)
    ]
    repeated = tuple(note for note in after.notes if note not in before.notes or SKIP_NOTE in note)
    return Readings((*notes, *_describe_undecided(after, form)), detection.questions, repeated)


def _describe_layout(_: Schema, after: Schema, form: SourceForm) -> Iterator[str]:
    if form.header:
        below = f", and the records start below line {form.skip}" if form.has_lines_below else ""
        yield f"line {form.header} has the names of the columns{below}"
    if form.skip_totals:
        yield from (note for note in after.notes if SKIP_NOTE in note)


def _describe_marks(before: Schema, after: Schema, form: SourceForm) -> Iterator[str]:
    if form.has_marks:
        names = [f"'{c.name}'" for c in before if _has_marks(c) and after[c.name].storage is not Storage.TEXT]
        thousands = f", thousands {form.thousands!r}" if form.thousands else ""
        where = f" in {', '.join(names)}" if names else ""
        yield f"numbers are written with decimal {form.decimal!r}{thousands}{where}"


def _describe_units(_: Schema, after: Schema, form: SourceForm) -> Iterator[str]:
    for name, own in form.get_columns(after.names).items():
        if own.unit:
            text = after[name].storage is Storage.TEXT
            doubt = ", but decimal and thousands marks that do not fit the other columns" if text else ""
            yield f"numbers have the unit {' or '.join(map(repr, own.unit))} in '{name}'{doubt}"


def _describe_missing(before: Schema, after: Schema, form: SourceForm) -> Iterator[str]:
    if form.na:
        counts = {c.name: after[c.name].nulls - c.nulls for c in before}
        where = ", ".join(f"'{name}' {count:,}" for name, count in counts.items() if count)
        meaning = f"{', '.join(map(repr, form.na))} {'means' if len(form.na) == 1 else 'mean'} missing"
        yield f"{meaning}, in every column; cells by column: {where}" if where else meaning


def _describe_codes(before: Schema, after: Schema, form: SourceForm) -> Iterator[str]:
    """Yield the codes for missing values; columns with the same codes share a line."""
    columns: dict[tuple[str, ...], list[str]] = {}
    for name, own in form.get_columns(after.names).items():
        if own.na:
            columns.setdefault(own.na, []).append(f"'{name}' {after[name].nulls - before[name].nulls:,}")
    for codes, cells in columns.items():
        meaning = f"{', '.join(map(repr, codes))} {'means' if len(codes) == 1 else 'mean'} missing"
        yield f"{meaning}; cells by column: {', '.join(cells)}"


def _describe_dates(_: Schema, after: Schema, form: SourceForm) -> Iterator[str]:
    for each in form.dates:
        names = ", ".join(f"'{c.name}'" for c in after if c.date_format == each)
        yield f"dates are written as {each}" + (f" in {names}" if names else "")


def _describe_undecided(schema: Schema, form: SourceForm) -> Iterator[str]:
    for column in schema:
        if column.likely_type and column.storage is Storage.TEXT and column.distinct > column.MAX_CODE_VALUES:
            yield f"not decided: {describe_likely_type(column, form)}; {suggest_source_keys(column.likely_type, form)}"
