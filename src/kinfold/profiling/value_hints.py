"""Hints from values: what the values of a column are about, whatever its name.

words      religions, parties, orientations, offences, ethnic groups, diseases and drugs: see value_words.toml
forms      blood groups, genotypes, codes of drugs (ATC); chapters of ICD-10, if the name says chapter

names      first names and surnames, capitalized, with or without a title; a part of many values is enough;
           any capitalized words behind a title; capitalized words with a comma between them, if the name of the column
           says nothing
addresses  streets with the number of a house

At least two different words must occur, in at least half of the values that have a meaning. Words that mean other
things too, such as black and white, count only together with one that does not.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from kinfold.tables.column_names import Hint, find_hints, mentions
from kinfold.tables.duckdb.columns import MISSING_WORDS
from kinfold.tables.schema import ValueStats

MAX_VALUES = 400  # different values of a category; with more, the column is free text or names
MIN_WORDS = 2  # values with a known meaning: one can be by chance
MIN_SHARE = 0.5  # of the values that mean something
MIN_NAME_SHARE = 0.2  # of many values: most names of a country are rare
MANY_NAMES = 20  # from here on `MIN_NAME_SHARE` holds
MIN_CAPITALIZED = 0.9  # of many names: von Allmen
NAME_NUMBER = re.compile(r" [0-9]{1,4}$")  # of people with the same name: Anna Weber 2
TITLES = frozenset(
    ("dr", "med", "prof", "mr", "mrs", "ms", "herr", "frau", "hr", "fr", "mme", "mlle", "sr", "sra", "dott")
)
NEUTRAL_VALUES = frozenset(
    (*MISSING_WORDS, "", "other", "others", "none", "sonstige", "keine", "autre", "otro", "altro")
)

LETTERS_OF_SEX = tuple(map(frozenset, ("mf", "mw", "hf", "mv", "mk")))  # of two languages m and f; h and m are Spanish
OTHER_SEXES = frozenset("dxuno")

ROMAN_CHAPTER = re.compile(r"X{0,2}(IX|IV|V?I{0,3})")  # I to XXII
_fine = r"[-+]?[0-9]{1,3}[.,][0-9]{3,}"
POINT = re.compile(  # degrees and minutes, two numbers with fractions, well-known text
    rf"[NSEWO]? ?-?[0-9]{{1,3}} ?\u00b0 ?[0-9NSEWO].*|{_fine}[;, ]+{_fine}|(SRID=\d+;)?POINT.*\(.*",
    re.IGNORECASE,
)
FORMS = (
    (
        Hint.OFFENCE,
        re.compile(r"(art\.?|§+|sec\.|s\.)? ?\d+.*\b(stgb|btmg|kk|uopn|cp|c\.p\.|sr|usc|pc)\b.*", re.IGNORECASE),
    ),
    (Hint.HEALTH, re.compile(r"(A|B|AB|0|O)[ ]?([+-]|pos|neg|rh[+-])\.?", re.IGNORECASE)),
    (Hint.HEALTH, re.compile(r"[A-DGHJ-NPRSV][0-9]{2}[A-Z]{2}[0-9]{2}")),  # ATC
    (Hint.GENETIC, re.compile(r"[ACGT]([/|][ACGT])|rs[0-9]{4,}")),
    (Hint.GENETIC, re.compile(r"[ACGT]{2}")),
)

_street = (  # the end of the name of a street, words behind it, and words before it
    r"str\.?|stra(ss|\N{LATIN SMALL LETTER SHARP S})e|weg|allee|gasse|platz|ring|damm|ufer|straat|laan|plein|gatan|vej"
    r"|v[a\N{LATIN SMALL LETTER A WITH RING ABOVE}]gen"
)
_way = r"street|st|avenue|ave|road|rd|lane|ln|drive|dr|boulevard|blvd|court|ct|terrace|close|crescent"
_before = (
    r"rue|avenue|av\.?|bd\.?|boulevard|chemin|impasse|via|viale|piazza|corso|calle|c/|avenida|avda\.?|plaza|rua|ul\.|ulica"
    r"|al\.|am|im|an der"
)
STREET_NUMBER = re.compile(
    rf"(?P<street>[^\W\d][^\d,;]*({_street})|({_before}) [^\d;]+),? ?\d{{1,4}} ?[a-z]?(\b.*)?"
    rf"|\d{{1,5}} ?[a-z]?,? ([^\d,;]+ ({_way})\.?|({_before}) [^\d;]+)(\b.*)?",
    re.IGNORECASE,
)
TITLED_NAME = re.compile(  # of a few people with a title, or of their offices
    r"(.*\b)?(Prof|Dr|PD|Dott|Dra|Mr|Mrs|Ms|Herrn?|Frau|Mme|Sr|Sra|RA|RAin)\b\.?"
    r"( (med|iur|phil|Dr|rer\. nat)\.?)* [^\W\d_a-z].*|[A-Z' -]{2,}/[A-Z' -]+ ?(MR|MRS|MS|MISS|MSTR|DR)"
)
_word = r"[^\W\d_a-z][^\W\d_]*[a-z][^\W\d_]*"  # capitalized
LAST_FIRST = re.compile(rf"([a-z]{{1,4}} ){{0,2}}{_word}([ '-]{_word})?, {_word}([ -]({_word}|[A-Z]\.))?")
MIN_ADDRESSES = 20  # different values that look like addresses
MIN_ADDRESS_SHARE = 0.5  # of the values: other streets have no telling word

MIN_DATED_SHARE = 0.95  # of the values, for dates of birth
LAST_FIRST_BIRTH = 1980  # a table whose first year is later is about events
MIN_BIRTH_YEARS = 15  # from the first year to the last, for dates of birth
_month = r"(?:0?[1-9]|1[0-2])"
WRITTEN_MONTH = re.compile(
    rf"(?P<year>(?:19|20)\d\d)[-/. ]?(?:0[1-9]|1[0-2])(?:[-/. ]?[0-3]\d)?(?:\.0)?"
    rf"|(?:(?:[0-3]?\d[. -]+)?[^\W\d]{{3,9}}[. -]*|{_month}[./-])(?P<last>(?:19|20)\d\d)"
)


def find_value_hints(name: str, stats: ValueStats) -> frozenset[Hint]:
    """Return what the values of a column of text hint at; `name` is that of the column.

    >>> list(find_value_hints("v7", ValueStats(9, 3, values=("Catholic", "Muslim", "none"), counts=(4, 3, 2))))
    [<Hint.BELIEF: 'belief'>]
    """
    if _are_names(stats.values) or _are_addresses(stats.values) or _have_titles(stats.values):
        return frozenset({Hint.PERSON})
    if stats.distinct > MANY_NAMES and not find_hints(name) and _have_form(stats.values, LAST_FIRST):
        return frozenset({Hint.PERSON})  # of a column that says place they are towns: Paris, France
    if stats.distinct > MANY_NAMES and _have_form(stats.values, POINT):
        return frozenset({Hint.POINT})
    if not 2 <= stats.distinct <= MAX_VALUES:
        return frozenset()
    if mentions(name, "chapter* kapitel* chapitre* capitulo* capitolo*") and all(
        value and ROMAN_CHAPTER.fullmatch(value) for value in stats.values
    ):
        return frozenset({Hint.HEALTH})
    values = [plain for value in stats.values if (plain := _simplify(value)) not in NEUTRAL_VALUES]
    hints = {Hint(topic) for topic in _load_words() if topic != Hint.PERSON and _are_about(topic, values)}
    hints |= {Hint.SEX} if {*values} - OTHER_SEXES in LETTERS_OF_SEX else set()
    return frozenset(hints | {hint for hint, form in FORMS if _have_form(stats.values, form)})


def are_births(values: Sequence[str]) -> bool:
    """Whether values are months or days, in digits or with the name of a month, over the years of people's births.

    >>> are_births(["195001", "19761224"]), are_births(["Jan 1950", "Dec 2003"]), are_births(["201901", "202212"])
    (True, True, False)
    """
    matches = [match for value in values if (match := WRITTEN_MONTH.fullmatch(value.strip()))]
    if len(matches) < max(2, MIN_DATED_SHARE * len(values)):
        return False
    years = [int(match["year"] or match["last"]) for match in matches]
    return min(years) <= LAST_FIRST_BIRTH and max(years) - min(years) >= MIN_BIRTH_YEARS


def _are_addresses(values: Sequence[str]) -> bool:
    """Whether many values are streets with the number of a house, in one of several languages."""
    addresses = sum(STREET_NUMBER.fullmatch(value.strip()) is not None for value in values)
    return addresses >= max(MIN_ADDRESSES, MIN_ADDRESS_SHARE * len(values))


def _have_titles(values: Sequence[str]) -> bool:
    """Whether most of at least two values are names with a title."""
    titled = sum(TITLED_NAME.fullmatch(value.strip()) is not None for value in values)
    return titled >= max(MIN_WORDS, MIN_SHARE * sum(_simplify(value) not in NEUTRAL_VALUES for value in values))


def _have_form(values: Sequence[str], form: re.Pattern[str]) -> bool:
    return len(values) > 2 and all(form.fullmatch(value.strip()) for value in values)


def _are_names(values: Sequence[str]) -> bool:
    """Whether enough values without digits are frequent names of people; many values are also capitalized."""
    written = [value.strip() for value in values if _simplify(value) not in NEUTRAL_VALUES]
    many = len(written) > MANY_NAMES
    capitalized = sum(value[0].isupper() for value in written)
    if any(map(str.isdigit, "".join(NAME_NUMBER.sub("", value) for value in written))) or (
        many and capitalized < MIN_CAPITALIZED * len(written)
    ):
        return False
    parts = ([word for word in re.split(r"[\s.,/]+", _simplify(value)) if word not in TITLES] for value in written)
    first = sorted({words[0] for words in parts if words})  # of Anna B. and Anna C. once
    return _are_about(Hint.PERSON, first, MIN_NAME_SHARE if many else MIN_SHARE)


def _are_about(topic: str, values: Sequence[str], share: float = MIN_SHARE) -> bool:
    words, shared = _load_words()[topic]
    own = {value for value in values if words.search(value)}
    both = own | {value for value in values if value in shared}
    return bool(own) and len(both) >= MIN_WORDS and len(both) >= share * len(values)


def _simplify(value: str) -> str:
    plain = unicodedata.normalize("NFKD", value.casefold())
    return re.sub(r"[\s_]+", " ", "".join(c for c in plain if not unicodedata.combining(c))).strip()


@cache
def _load_words() -> dict[str, tuple[re.Pattern[str], frozenset[str]]]:
    """Return, for each topic, a pattern of its words, and words that mean other things too."""
    topics = tomllib.loads(Path(__file__).with_name("value_words.toml").read_text("utf-8"))
    return {
        topic: (
            re.compile("|".join(map(_build_pattern, _split(lists["words"])))),
            frozenset(_split(lists.get("shared", ""))),
        )
        for topic, lists in topics.items()
    }


def _split(words: str) -> list[str]:
    return [word for each in words.split(",") if (word := " ".join(each.split()))]


def _build_pattern(word: str) -> str:
    if word.endswith("*"):
        return rf"\b{re.escape(word[:-1])}"
    return rf"{re.escape(word[1:])}\b" if word.startswith("*") else f"^{re.escape(word)}$"
