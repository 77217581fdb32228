"""Names of columns: which names are refused, whether a header is a record, and what a name hints at.

The first line of a CSV file can be a record instead of a header; a record must not appear in a message. A field of the
first line looks like a value of its column, not like its name, in these cases:

    digits      it is a number, a date or a telephone number (digits and no letter), and so are most values below it;
                years in even steps above other values than years are the columns of a wide table
    codes       it has two digits or more, or an @, and all values below it have the same form: P00123 above P00124;
                not in a line with names of three columns of numbers, which a record does not have
    repeated    it occurs again below, in two columns, or in one if the table has at most two columns

Without such a field the line is a header. With one it is a header only if the policy names one of its fields.

Hints from names are weaker evidence than values. A word stands alone (`age` is not part of `agency`), with a star
after it as a prefix (`educ*`: EDUC1, education), before it as a suffix (`*nummer`: Kundennummer), or with both as any
part of a name, as scripts without spaces need. Accents, case and punctuation are ignored: `PatientId`, `patient-id` and
`PATIENT ID` are equal.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Collection, Sequence
from enum import StrEnum
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path

from kinfold.errors import DataError, PolicyError, Problem
from kinfold.tables.resources import check_column_count
from kinfold.tables.schema import Schema

YEAR_RANGE = range(1800, 2200)  # numbers that may be years
MIN_NAMED_NUMBERS = 3  # columns of numbers below a word, which a record does not have
MAX_SHOWN_COLUMNS = 5  # in a message


def check_column_names(names: Sequence[str], where: str) -> None:
    """Refuse missing names, names that a file cannot hold, and equal names; case is ignored.

    Messages give positions instead of names: a first line with a repeated name may be a record.
    """
    check_column_count(len(names), where)
    problems = []
    positions: dict[str, list[int]] = {}
    for position, name in enumerate(names, 1):
        if not name.strip():
            problems.append(Problem(f"{where}: column {position} has no name", "name every column"))
        problems += [
            Problem(f"{where}: the name of column {position} {what}", "rename it")
            for what, applies in (
                ("has a NUL character", "\0" in name),
                ("has a carriage return", "\r" in name),  # readers of CSV disagree on where such a header ends
                ("begins with a byte order mark", name.startswith("\ufeff")),  # first in a file it would be the file's
            )
            if applies
        ]
        positions.setdefault(name.casefold(), []).append(position)
    for name, shared in positions.items():
        if name.strip() and len(shared) > 1:
            *first, last = map(str, shared)
            what = f"{where}: columns {', '.join(first)} and {last} have the same name"
            problems.append(Problem(what, "rename all but one of them"))
    if problems:
        raise DataError(problems)


def is_pattern(key: str) -> bool:
    """Whether the key of a column may stand for several: `*` is any text, `?` any character."""
    return "*" in key or "?" in key


def match_patterns(keys: Collection[str], names: Sequence[str]) -> dict[str, list[str]]:
    """Return the columns that each pattern matches; a column that a key names exactly is not matched.

    >>> match_patterns(["L1", "L*"], ["id", "L1", "L2", "L3"])
    {'L*': ['L2', 'L3']}
    """
    regexes = {}
    for key in keys:
        if is_pattern(key) and key not in names:
            regexes[key] = re.compile(re.escape(key).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)
    matches: dict[str, list[str]] = {}
    problems = []
    for name in names:
        matching = [key for key, regex in regexes.items() if name not in keys and regex.fullmatch(name)]
        if len(matching) > 1:
            what = f"column '{name}' matches {' and '.join(map(repr, matching))} in [columns]"
            problems.append(Problem(what, f"add [columns.{name}], or change a pattern"))
        for key in matching:
            matches.setdefault(key, []).append(name)
    if problems:
        raise PolicyError(problems)
    return matches


def require_header(schema: Schema, known: Collection[str] = ()) -> None:
    """Refuse a table whose first line is a record, without showing it; a line with a known name is a header."""
    if schema.value_positions and not set(schema.names) & set(known):
        raise build_header_error(schema.value_positions)


def build_header_error(positions: Sequence[int]) -> DataError:
    """Return the error that says where the first line looks like a record."""
    some = ", ".join(map(str, positions[:MAX_SHOWN_COLUMNS])) + (", ..." if len(positions) > MAX_SHOWN_COLUMNS else "")
    columns = f"column {some} looks" if len(positions) == 1 else f"columns {some} look"
    return DataError(
        f"the first line does not look like a header: {columns} like a value of the lines below",
        fix="set source.header = 0 (--header 0) if the file has no header, source.header = 1 if this line is one, or "
        "the number of the line that is; rename columns such as 2019 (to year_2019), or name a column in the policy",
    )


def find_values_in_header(first: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[int, ...]:
    """Return the positions, from 1, where the first line of a file looks like a record.

    >>> find_values_in_header(["34", "f", "flu"], [["51", "m", "flu"], ["47", "f", "cold"]])
    (1, 2, 3)
    >>> find_values_in_header(["age", "sex", "disease"], [["51", "m", "flu"], ["47", "f", "cold"]])
    ()
    """
    fields = [field.strip() for field in first]
    others = [row for row in rows if list(row) != list(first) or len(fields) == 1]  # joined files repeat the header
    below = [[row[i].strip() for row in others if len(row) > i] for i in range(len(fields))]
    filled = [[value for value in column if value] for column in below]
    named = sum(map(_is_name_of_numbers, fields, filled)) >= MIN_NAMED_NUMBERS
    values = {i for i, field in enumerate(fields) if _looks_like_value(field, filled[i], codes=not named)}
    if _are_year_columns([fields[i] for i in sorted(values)], [filled[i] for i in sorted(values)]):
        return ()
    repeated = {i for i, field in enumerate(fields) if field and field in filled[i]}
    if len(repeated) >= min(2, (len(fields) + 1) // 2) or values:
        values |= repeated
    return tuple(i + 1 for i in sorted(values))


def _is_name_of_numbers(field: str, below: Sequence[str]) -> bool:
    """Whether a field is a word, not one for a missing value, and all values below it are digits."""
    return len(field) > 2 and any(map(str.isalpha, field)) and len(below) > 1 and all(map(_is_digits, below))


def _looks_like_value(field: str, below: Sequence[str], *, codes: bool) -> bool:
    """Whether a field is digits among digits, or, with `codes`, a code above codes of the same form."""
    if _is_digits(field) and 2 * sum(map(_is_digits, below)) >= max(len(below), 1):
        return True
    if not codes or ("@" not in field and sum(c.isdigit() for c in field) < 2):
        return False
    return bool(below) and all(_get_shape(value) == _get_shape(field) for value in below)


def _is_digits(field: str) -> bool:
    """Whether a text is digits and signs; 1e5 and NaN count too."""
    if field.isdecimal():
        return True
    if re.fullmatch(r"(?i)[+-]?(nan|inf|infinity|[\d.]+e[+-]?\d+)", field):
        return True
    return any(c.isdigit() for c in field) and not any(c.isalpha() for c in field)


def _get_shape(text: str) -> str:
    """Return the form of a text: each run of digits or letters as one character.

    >>> _get_shape("P00123"), _get_shape("ann.lee@x.org"), _get_shape("3 Jan 2024")
    ('A9', 'a.a@a.a', '9 Aa 9')
    """
    kinds = ("9" if c.isdigit() else "A" if c.isupper() else "a" if c.isalpha() else c for c in text)
    return re.sub(r"(.)\1+", r"\1", "".join(kinds))


def _are_year_columns(names: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Whether the names are years in even steps and most values below are not years."""
    if len(names) < 2 or not all(map(_is_year, names)):
        return False
    steps = {int(after) - int(before) for before, after in pairwise(names)}
    values = [value for column in below for value in column]
    return len(steps) == 1 and min(steps) > 0 and 2 * sum(map(_is_year, values)) < len(values)


def _is_year(text: str) -> bool:
    return re.fullmatch(r"\d{4}", text) is not None and int(text) in YEAR_RANGE


_words = tomllib.loads(Path(__file__).with_name("hint_words.toml").read_text("utf-8"))
HINT_WORDS: dict[str, str] = _words["hints"]  # by hint; see the module's docstring for the stars
PERSON_WORDS: str = _words["people"]["keys"]  # of columns that number people
SURVEY_NAMES: dict[str, list[str]] = _words["names"]  # hints of names that say nothing by themselves


class Hint(StrEnum):
    """What the name of a column may hint at."""

    NUMBER = "number"
    PERSON = "person"
    POINT = "point"
    STAFF = "staff"
    HOUSEHOLD = "household"
    WEIGHT = "weight"
    SAMPLING = "sampling"
    BODY = "body"
    AGE = "age"
    BIRTH = "birth"
    SEX = "sex"
    COUNTRY = "country"
    PLACE = "place"
    MARITAL = "marital"
    EDUCATION = "education"
    ORIGIN = "origin"
    WORK = "work"
    FAMILY = "family"
    HEALTH = "health"
    MONEY = "money"
    BELIEF = "belief"
    ORIENTATION = "orientation"
    OFFENCE = "offence"
    UNION = "union"
    GENETIC = "genetic"
    MEASURE = "measure"
    TEXT = "text"

    @property
    def phrase(self) -> str:
        """The hint as a phrase in a sentence."""
        return HINT_PHRASES.get(self.value, self.value)


HINT_PHRASES = {
    "marital": "marital status",
    "family": "the household",
    "belief": "religion or politics",
    "orientation": "sex life",
    "offence": "offences",
    "union": "a trade union",
    "genetic": "genes or biometrics",
    "measure": "a measurement",
}


YEAR_WORDS = "year* jahr* annee* anio* ano anno jaar* rok aar *年* *год*"


# What other people may know about a person, the best known first.
PUBLICLY_KNOWN_HINTS = (
    Hint.AGE, Hint.BIRTH, Hint.SEX, Hint.PLACE, Hint.COUNTRY, Hint.MARITAL, Hint.EDUCATION, Hint.ORIGIN, Hint.WORK,
    Hint.FAMILY,
)  # fmt: skip
# Article 9 and 10 of the GDPR, without origin, which others can see; and money.
SPECIAL_HINTS = (Hint.HEALTH, Hint.BELIEF, Hint.ORIENTATION, Hint.OFFENCE, Hint.UNION, Hint.GENETIC)
SENSITIVE_HINTS = (*SPECIAL_HINTS, Hint.MONEY)
IDENTIFYING_HINTS = (Hint.NUMBER, Hint.PERSON, Hint.POINT, Hint.STAFF)


@lru_cache(maxsize=10_000)  # names; a profile asks several times about each
def find_hints(name: str) -> frozenset[Hint]:
    """Return what a name hints at.

    >>> sorted(find_hints("PatientId")), sorted(find_hints("Geburtsdatum")), sorted(find_hints("archive_box"))
    ([<Hint.NUMBER: 'number'>], [<Hint.BIRTH: 'birth'>, <Hint.BODY: 'body'>], [])
    """
    marked = _mark(_normalize_name(name)) + _mark(_normalize_name(name.casefold()))  # GdB is gdb too
    hints = {Hint(meaning) for meaning, words in HINT_WORDS.items() if any(part in marked for part in _mark_all(words))}
    hints |= set(map(Hint, SURVEY_NAMES.get(name.casefold(), ())))
    if (
        Hint.MEASURE in hints and Hint.BODY in hints
    ):  # the weight of a newborn is no date of birth, and no sampling weight
        hints -= {Hint.BIRTH, Hint.WEIGHT}
    if Hint.STAFF in hints:  # a therapist is no therapy, and the number of visits to doctors is no doctor
        hints -= {Hint.STAFF} if Hint.MEASURE in hints else {Hint.HEALTH, Hint.EDUCATION, Hint.WORK}
    return frozenset(hints)


def mentions(name: str, words: str) -> bool:
    """Whether a name contains one of these words.

    >>> mentions("Home-State", "state region"), mentions("estate", "state")
    (True, False)
    """
    marked = _mark(_normalize_name(name))
    return any(part in marked for part in _mark_all(words))


# Accents of scripts with capitals. The marks of kana make other letters, and stay.
ACCENTS = dict.fromkeys(range(768, 880))


SIGNS = {ord(sign): f" {word} " for sign, word in {"\u20ac": "eur", "$": "usd", "\u00a3": "gbp", "%": "pct"}.items()}


def _normalize_name(name: str) -> str:
    split = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z]{6})(?=ID$)", "_", name)  # PatientId, PATIENTID; not COVID
    split = split.translate(SIGNS)
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKD", split).translate(ACCENTS)).casefold()
    return re.sub(r"[\W\d_]+", "_", plain)


def _mark(text: str) -> str:
    """Mark where words begin and end: these texts are found faster than a pattern of thousands of words is compiled."""
    return f"|{text.replace('_', '|_|')}|"


@cache
def _mark_all(words: str) -> list[str]:
    """Return each word as a marked name contains it: without the mark where it has a star."""
    marks = [(_mark(word.strip("*")), word) for word in words.split()]
    return [text[word.startswith("*") : len(text) - word.endswith("*")] for text, word in marks]
