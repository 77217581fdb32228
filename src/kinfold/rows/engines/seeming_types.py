"""Seeming: what columns of text look like: dates, numbers with other marks, numbers or dates with words for missing.

look at some rows: how many values of each column are like a number, like a date, a known word for missing
where at least half of the rest is: ask all rows, in every way that such values are written in
what nearly all values fit is what the column seems to be; in which ways, and what else it holds, is told
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from kinfold.rows import date_formats
from kinfold.rows.engines.database import Database
from kinfold.rows.engines.expressions import Frame
from kinfold.rows.engines.formula_cells import string
from kinfold.rows.schema import Seeming
from kinfold.rows.source_form import APOSTROPHES, SPACES, pattern

SOME_ROWS = 1000  # looked at before all are, from all over the table
NEARLY_ALL = 0.9  # share of values from which a column seems to be what they are
WAYS = ((".", ""), (",", ""), (",", "."), (".", ","), (",", " "), (".", " "), (",", "'"), (".", "'"))
LIKE_NUMBER = f"[+-]?[0-9.,{APOSTROPHES}{SPACES}]*[0-9][.,]?([eE][+-]?[0-9]+)?"
CODE = "[+-]?0[0-9].*"  # 02138
WORDS: tuple[str, ...] = (
    "na",
    "n/a",
    "n.a.",
    "n. a.",
    "n.d.",
    "#n/a",
    "#na",
    "#null!",
    "#value!",
    "nan",
    "null",
    "none",
    "nil",
)
WORDS += ("-", "--", "---", "\u2013", "\u2014", ".", "..", "...", "?", "??", "missing", "unknown", "(null)", "<na>")
WORDS += ("k.a.", "k. a.", "keine angabe", "unbekannt", "fehlt", "inconnu", "manquant", "desconocido", "s/d")


class Look(NamedTuple):
    """The format that a column's dates are read in, and what it seems to be where it is nothing by itself."""

    date_format: str | None = None
    seems: Seeming | None = None


class _Texts(NamedTuple):
    """A column of text: its place, how many values it has, how many are known words for missing."""

    place: int
    filled: int
    words: int
    groups: bool  # numbers with three decimals each may be thousands


def look(db: Database, frame: Frame, found: Sequence[Mapping[str, int]]) -> dict[int, Look]:
    """Look at columns of text by their places, where it is not settled what they are; `found` is known of each."""
    asked = [i for i, answer in enumerate(found) if answer["filled"] and _is_open(answer, frame.form.dates)]
    if not asked:
        return {}
    some = _some(db, frame)
    numbers, dates = _first_look(db, frame, some, asked)
    close = [i for i in asked if i in numbers | dates or frame.form.dates]
    words = db.answers([f"coalesce({frame.rows_where(_word(i))}, 0)" for i in close], frame.table)
    columns = [_Texts(i, found[i]["filled"], next(words), _may_be_grouped(found[i])) for i in close]
    moments = _moments(db, frame, some, [c for c in columns if c.place in dates or frame.form.dates])
    marked = _numbers(db, frame, [c for c in columns if c.place in numbers and c.place not in moments])
    return moments | {i: Look(seems=seems) for i, seems in marked.items()}


def _is_open(answer: Mapping[str, int], declared: Sequence[str]) -> bool:
    """Whether a column of text may be something else than it is by itself; digits may be declared to be dates."""
    if "whole" not in answer:
        return False
    digits = any(form.replace("%", "").isalpha() for form in declared)
    return answer["numbers"] < answer["filled"] or digits or _may_be_grouped(answer)


def _may_be_grouped(answer: Mapping[str, int]) -> bool:
    return answer["numbers"] == answer["filled"] and answer["decimals"] == 3


def _some(db: Database, frame: Frame) -> str:
    """SQL for rows from all over a table, or all where they are few."""
    step = db.count(frame.table) // SOME_ROWS + 1
    return f"(SELECT * FROM {frame.table} WHERE rowid % {step} = 0)" if step > 1 else frame.table


def _word(place: int) -> str:
    return f"lower(trim(c{place})) IN ({', '.join(map(string, WORDS))})"


def _matches(place: int, of: str) -> str:
    return f"regexp_full_match(trim(c{place}), {string(of)})"


def _first_look(db: Database, frame: Frame, rows: str, asked: Sequence[int]) -> tuple[set[int], set[int]]:
    """Return the columns in which at least half of some values are like numbers, and like dates."""
    questions = []
    for i in asked:
        questions.append(frame.rows_where(f"NOT {_word(i)}"))
        questions.append(frame.rows_where(f"{_matches(i, LIKE_NUMBER)} AND NOT {_matches(i, CODE)}"))
        questions.append(frame.rows_where(_matches(i, date_formats.LIKE)))
    answers = db.answers(questions, rows)
    counts = {i: [next(answers) or 0 for _ in range(3)] for i in asked}
    numbers = {i for i, (rest, like, _) in counts.items() if 2 * like >= rest}
    return numbers, {i for i, (rest, _, like) in counts.items() if 2 * like >= rest}


def _numbers(db: Database, frame: Frame, columns: Sequence[_Texts]) -> dict[int, Seeming]:
    asked = [frame.rows_where(_matches(c.place, pattern(*way))) for c in columns for way in WAYS]
    answers = db.answers(asked, frame.table)
    found = {}
    for column in columns:
        counts = {way: next(answers) or 0 for way in WAYS}
        seems = _best("number", column, counts)
        plain = seems and (frame.form.decimal, frame.form.thousands) in seems.ways
        settled = plain and not column.words and seems is not None and not seems.others
        if seems and (not settled or (column.groups and (",", ".") in seems.ways)):
            found[column.place] = replace(seems, words=_words(db, frame, column))
    return found


def _moments(db: Database, frame: Frame, some: str, columns: Sequence[_Texts]) -> dict[int, Look]:
    declared = frame.form.dates
    every = (*declared, *(form for form in date_formats.FORMATS if form not in declared))
    first = _fitting(db, frame, some, _possible(db, some, columns, every))
    left = {place: {form: n for form, n in of.items() if n and n == max(of.values())} for place, of in first.items()}
    whole = left if some == frame.table else _fitting(db, frame, frame.table, left)
    found = {}
    for column in columns:
        counts = whole[column.place]
        chosen = date_formats.choose(tuple(form for form, n in counts.items() if n == column.filled), declared)
        seems = None if chosen else _best("moment", column, counts)
        if seems:
            seems = replace(seems, words=_words(db, frame, column))
        if chosen or seems:
            found[column.place] = Look(chosen, seems)
    return found


def _possible(db: Database, rows: str, columns: Sequence[_Texts], forms: Sequence[str]) -> dict[int, list[str]]:
    """Return the formats that some value of each column may have, by its marks: to ask for marks takes little."""
    marks = sorted(frozenset[str]().union(*map(date_formats.marks, forms)))
    answers = db.answers([f"bool_or(contains(c{c.place}, {string(m)}))" for c in columns for m in marks], rows)
    held = {c.place: {m for m in marks if next(answers)} for c in columns}
    return {place: [form for form in forms if date_formats.marks(form) <= those] for place, those in held.items()}


def _fitting(db: Database, frame: Frame, rows: str, asked: Mapping[int, Iterable[str]]) -> dict[int, dict[str, int]]:
    """Return how many values of each column are dates in each of the formats asked for."""
    pairs = [(place, form) for place, forms in asked.items() for form in forms]
    answers = db.answers([frame.rows_where(_is_date(place, form)) for place, form in pairs], rows)
    found: dict[int, dict[str, int]] = {place: {} for place in asked}
    for place, form in pairs:
        found[place][form] = next(answers) or 0
    return found


def _is_date(place: int, form: str) -> str:
    # The database takes 24 for a year of four digits.
    year = f" AND regexp_matches(c{place}, '[0-9]{{4}}')" if "%Y" in form else ""
    return f"try_strptime(trim(c{place}), {string(form)}) IS NOT NULL{year}"


def _best(sort: Literal["number", "moment"], column: _Texts, counts: Mapping[Any, int]) -> Seeming | None:
    best, rest = max(counts.values(), default=0), column.filled - column.words
    if not best or best < NEARLY_ALL * rest:
        return None
    return Seeming(sort, best, rest - best, tuple(way for way, n in counts.items() if n == best))


def _words(db: Database, frame: Frame, column: _Texts) -> tuple[str, ...]:
    if not column.words:
        return ()
    c = f"trim(c{column.place})"
    query = f"SELECT DISTINCT {c} FROM {frame.table} WHERE {_word(column.place)} ORDER BY 1"
    return tuple(word for (word,) in db.connection.execute(query).fetchall())
