"""Type inference: what a column is, decided from all of its values by queries.

Text is a number only if writing the number gives the same text, except for sign and decimals: `02138` stays text. Dates
are read in one of many formats, which must fit every value. If day and month can be exchanged in every value, the
column stays text unless the policy declares the format.

A text column that is neither may be likely to hold dates, numbers with other marks, or words for missing values. A
sample of rows finds the candidates; then all rows are counted in every format. The type that at least 90 % of the
values fit is proposed, with its formats and what else the column holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from kinfold.tables import source_form as date_formats
from kinfold.tables.duckdb.connection import Database
from kinfold.tables.duckdb.expressions import FLOAT_TYPES, Frame, is_formula_sql, quote_string
from kinfold.tables.schema import Column, LikelyType, Storage
from kinfold.tables.source_form import APOSTROPHES, THOUSANDS_SPACES, build_number_pattern, has_time

SAMPLED_VALUES = 1000  # rows, spread over the table, in which candidates are looked for
MIN_FITTING_SHARE = 0.9  # share of values that a proposed type must fit
NUMBER_MARKS = ((".", ""), (",", ""), (",", "."), (".", ","), (",", " "), (".", " "), (",", "'"), (".", "'"))
NUMBER_LIKE_PATTERN = f"[+-]?[0-9.,{APOSTROPHES}{THOUSANDS_SPACES}]*[0-9][.,]?([eE][+-]?[0-9]+)?"
LEADING_ZERO_PATTERN = "[+-]?0[0-9].*"  # 02138
_MISSING_WORDS = """
    na, n/a, n.a., n. a., n.d., #n/a, #na, #null!, #value!, nan, null, none, nil, (null), <na>, missing, unknown,
    -, --, ---, \u2013, \u2014, ., .., ..., ?, ??, k.a., k. a., keine angabe, unbekannt, fehlt, inconnu, manquant,
    desconocido, s/d, n/d, not available, not stated, not reported, not known, not disclosed, refused, refusal, don't
    know, dont know, do not know, no answer, no response, prefer not to say, keine antwort, ohne angabe, o.a.,
    wei\u00df nicht, weiss nicht, verweigert, nicht bekannt, nicht erhoben, ne sait pas, nsp, refus, sans
    r\u00e9ponse, non r\u00e9ponse, non renseign\u00e9, non pr\u00e9cis\u00e9, no sabe, no contesta, no responde,
    ns/nc, sin respuesta, sin dato, sin datos, no consta, non so, non risponde, non disponibile, sconosciuto, nessuna
    risposta, weet niet, geen antwoord, onbekend, geweigerd, desconhecido, n\u00e3o sabe, n\u00e3o respondeu, sem
    resposta, n\u00e3o informado, ignorado
"""
MISSING_WORDS = tuple(" ".join(word.split()) for word in _MISSING_WORDS.split(","))


class TextType(NamedTuple):
    """The format of a column's dates; else the type that it is likely to have."""

    date_format: str | None = None
    likely: LikelyType | None = None


class _TextColumn(NamedTuple):
    """A text column: its number, the number of its values, and how many of them are words for a missing value."""

    number: int
    filled: int
    missing: int
    may_be_grouped: bool  # numbers with three decimals may be thousands


def detect_text_types(db: Database, frame: Frame, counts: Sequence[Mapping[str, int]]) -> dict[int, TextType]:
    """Return the types of text columns that the first `counts` leave undecided, by column index."""
    undecided = [i for i, count in enumerate(counts) if count["filled"] and _is_undecided(count, frame.form.dates)]
    if not undecided:
        return {}
    sample = _sample_sql(db, frame)
    numbers, dates = _detect_candidates(db, frame, sample, undecided)
    candidates = [i for i in undecided if i in numbers | dates or frame.form.dates]
    questions = [f"coalesce({frame.count_where_sql(_is_missing_word_sql(i))}, 0)" for i in candidates]
    missing = db.answers(questions, frame.table)
    columns = [_TextColumn(i, counts[i]["filled"], next(missing), _may_be_grouped(counts[i])) for i in candidates]
    moments = _detect_moments(db, frame, sample, [c for c in columns if c.number in dates or frame.form.dates])
    likely = _detect_numbers(db, frame, [c for c in columns if c.number in numbers and c.number not in moments])
    return moments | {i: TextType(likely=each) for i, each in likely.items()}


def _is_undecided(counts: Mapping[str, int], declared: Sequence[str]) -> bool:
    """Whether a text column may have another type; a declared date format may consist of digits."""
    if "whole" not in counts:
        return False
    digits = any(form.replace("%", "").isalpha() for form in declared)
    return counts["numbers"] < counts["filled"] or digits or _may_be_grouped(counts)


def _may_be_grouped(counts: Mapping[str, int]) -> bool:
    return counts["numbers"] == counts["filled"] and counts["decimals"] == 3


def _sample_sql(db: Database, frame: Frame) -> str:
    """Select rows spread over a table; all rows of a small one."""
    step = db.count(frame.table) // SAMPLED_VALUES + 1
    return f"(SELECT * FROM {frame.table} WHERE rowid % {step} = 0)" if step > 1 else frame.table


def _is_missing_word_sql(index: int) -> str:
    return f"lower(trim(c{index})) IN ({', '.join(map(quote_string, MISSING_WORDS))})"


def _matches_sql(index: int, pattern: str) -> str:
    return f"regexp_full_match(trim(c{index}), {quote_string(pattern)})"


def _detect_candidates(db: Database, frame: Frame, rows: str, indexes: Sequence[int]) -> tuple[set[int], set[int]]:
    """Return the columns in which at least half of the sampled values look like numbers, and like dates."""
    conditions = []
    for i in indexes:
        conditions.append(f"NOT {_is_missing_word_sql(i)}")
        conditions.append(f"{_matches_sql(i, NUMBER_LIKE_PATTERN)} AND NOT {_matches_sql(i, LEADING_ZERO_PATTERN)}")
        conditions.append(_matches_sql(i, date_formats.DATE_LIKE_PATTERN))
    answers = db.answers(list(map(frame.count_where_sql, conditions)), rows)
    counts = {i: [next(answers) or 0 for _ in range(3)] for i in indexes}
    numbers = {i for i, (present, fitting, _) in counts.items() if 2 * fitting >= present}
    return numbers, {i for i, (present, _, fitting) in counts.items() if 2 * fitting >= present}


def _detect_numbers(db: Database, frame: Frame, columns: Sequence[_TextColumn]) -> dict[int, LikelyType]:
    patterns = [build_number_pattern(*marks) for marks in NUMBER_MARKS]
    questions = [frame.count_where_sql(_matches_sql(c.number, pattern)) for c in columns for pattern in patterns]
    answers = db.answers(questions, frame.table)
    types = {}
    for column in columns:
        counts = {marks: next(answers) or 0 for marks in NUMBER_MARKS}
        likely = _find_best_fit("number", column, counts)
        if likely is None:
            continue
        as_declared = (frame.form.decimal, frame.form.thousands) in likely.notations
        decided = as_declared and not column.missing and not likely.others
        if not decided or (column.may_be_grouped and (",", ".") in likely.notations):
            types[column.number] = replace(likely, missing_words=_find_missing_words(db, frame, column))
    return types


def _detect_moments(db: Database, frame: Frame, sample: str, columns: Sequence[_TextColumn]) -> dict[int, TextType]:
    declared = frame.form.dates
    formats = (*declared, *(each for each in date_formats.DATE_FORMATS if each not in declared))
    sampled = _count_fitting(db, frame, sample, _find_possible_formats(db, sample, columns, formats))
    best = {i: {f: n for f, n in counts.items() if n and n == max(counts.values())} for i, counts in sampled.items()}
    fitting = best if sample == frame.table else _count_fitting(db, frame, frame.table, best)
    types = {}
    for column in columns:
        counts = fitting[column.number]
        complete = tuple(each for each, n in counts.items() if n == column.filled)
        chosen = date_formats.choose_date_format(complete, declared)
        likely = None if chosen else _find_best_fit("moment", column, counts)
        if likely:
            likely = replace(likely, missing_words=_find_missing_words(db, frame, column))
        if chosen or likely:
            types[column.number] = TextType(chosen, likely)
    return types


def _find_possible_formats(
    db: Database, rows: str, columns: Sequence[_TextColumn], formats: Sequence[str]
) -> dict[int, list[str]]:
    """Return the formats whose fixed characters occur in each column: a cheap test before parsing."""
    fixed = {each: date_formats.get_fixed_characters(each) for each in formats}
    marks = sorted(frozenset[str]().union(*fixed.values()))
    answers = db.answers([f"bool_or(contains(c{c.number}, {quote_string(m)}))" for c in columns for m in marks], rows)
    present = {c.number: {m for m in marks if next(answers)} for c in columns}
    return {i: [each for each in formats if fixed[each] <= own] for i, own in present.items()}


def _count_fitting(
    db: Database, frame: Frame, rows: str, formats: Mapping[int, Iterable[str]]
) -> dict[int, dict[str, int]]:
    questions = [frame.count_where_sql(_is_date_sql(i, each)) for i, own in formats.items() for each in own]
    answers = db.answers(questions, rows)
    return {i: {each: next(answers) or 0 for each in own} for i, own in formats.items()}


def _is_date_sql(index: int, date_format: str) -> str:
    # DuckDB also accepts 24 as a year of four digits.
    year = f" AND regexp_matches(c{index}, '[0-9]{{4}}')" if "%Y" in date_format else ""
    return f"try_strptime(trim(c{index}), {quote_string(date_format)}) IS NOT NULL{year}"


def _find_best_fit(
    sort: Literal["number", "moment"], column: _TextColumn, counts: Mapping[Any, int]
) -> LikelyType | None:
    best, present = max(counts.values(), default=0), column.filled - column.missing
    if not best or best < MIN_FITTING_SHARE * present:
        return None
    return LikelyType(sort, best, present - best, tuple(each for each, n in counts.items() if n == best))


def _find_missing_words(db: Database, frame: Frame, column: _TextColumn) -> tuple[str, ...]:
    if not column.missing:
        return ()
    c = f"trim(c{column.number})"
    query = f"SELECT DISTINCT {c} FROM {frame.table} WHERE {_is_missing_word_sql(column.number)} ORDER BY 1"
    return tuple(word for (word,) in db.connection.execute(query).fetchall())


WHOLE_PATTERN = r"[+-]?(0|[1-9][0-9]{0,17})"
NUMBER_PATTERN = r"[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"
NOT_FINITE_PATTERN = r"(?i)[+-]?(nan|inf|infinity)"
MAX_DECIMALS = 12
MAX_DECIMALS_BY_ROUNDING = 4  # decimals that are counted by rounding, without casting to text

_SIGNED_TYPES = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
WHOLE_TYPES = (*_SIGNED_TYPES, *(f"U{kind}" for kind in _SIGNED_TYPES))


def count_where_sql(condition: str) -> str:
    """Count the rows that meet a condition."""
    return f"count(*) FILTER (WHERE {condition})"


def make_type_questions(
    sql_type: str, c: str, pattern: str | None = None, count: Callable[[str], str] = count_where_sql
) -> dict[str, str]:
    """Return aggregates that decide the type of the column `c`, by name.

    Texts are counted over the distinct ones, with `n` rows each; of other types `count` counts rows. `pattern` is that
    of numbers with the marks of the source, given if other texts occur too: then the column is not numeric.
    """
    questions = {"filled": (_count_texts_sql if sql_type == "VARCHAR" else count)(f"{c} IS NOT NULL")}
    if pattern is not None:
        questions |= dict.fromkeys(("whole", "not_finite", "decimals"), "0")
        questions["numbers"] = _count_texts_sql(f"regexp_full_match(trim({c}), {quote_string(pattern)})")
        questions["formulas"] = _count_texts_sql(is_formula_sql(c))
    elif sql_type == "VARCHAR":
        text = f"trim({c})"
        fraction = f"nullif(rtrim(split_part({text}, '.', 2), '0'), '')"
        questions |= {
            "whole": _count_texts_sql(f"regexp_full_match({text}, '{WHOLE_PATTERN}')"),
            "numbers": _count_texts_sql(
                f"regexp_full_match({text}, '{NUMBER_PATTERN}') AND isfinite(try_cast({text} AS DOUBLE))"
            ),
            "not_finite": _count_texts_sql(f"regexp_full_match({text}, '{NOT_FINITE_PATTERN}')"),
            "fractions": _count_texts_sql(f"CASE WHEN {text} ILIKE '%e%' THEN 'e' ELSE {fraction} END IS NOT NULL"),
            "decimals": f"max(CASE WHEN {text} ILIKE '%e%' THEN 99 ELSE length(split_part({text}, '.', 2)) END)",
            "formulas": _count_texts_sql(is_formula_sql(c)),
        }
    elif sql_type in FLOAT_TYPES:
        questions |= {"not_finite": count(f"NOT isfinite({c})"), "decimals": f"max({_decimals_sql(c, sql_type)})"}
    elif sql_type.startswith("TIMESTAMP"):
        questions["whole_days"] = count(f"{c} = date_trunc('day', {c})")
    return questions


def _count_texts_sql(condition: str) -> str:
    return f"coalesce(sum(n) FILTER (WHERE {condition}), 0)"


def _decimals_sql(c: str, sql_type: str) -> str:
    """Count the decimals of a floating number as text, 99 if it has an exponent.

    Rounding decides most numbers: a double that equals itself rounded to two decimals is written with two. Large
    numbers and those below a thousandth are cast to text.
    """
    text = f"CAST({c} AS VARCHAR)"
    by_text = f"CASE WHEN {text} LIKE '%e%' THEN 99 ELSE length(nullif(split_part({text}, '.', 2), '0')) END"
    if sql_type == "FLOAT":
        return f"CASE WHEN isfinite({c}) THEN {by_text} END"
    exact = f"abs({c}) < 1e9 AND ({c} = 0 OR abs({c}) > 1e-3)"
    by_rounding = "".join(
        f" WHEN {exact} AND {c} = round({c}, {d}) THEN {d}" for d in range(MAX_DECIMALS_BY_ROUNDING + 1)
    )
    return f"CASE WHEN NOT isfinite({c}) THEN NULL{by_rounding} ELSE {by_text} END"


def has_long_decimals_sql(c: str, sql_type: str) -> str:
    """Test whether a number of a column has more decimals than are counted."""
    return f"coalesce(max({_decimals_sql(c, sql_type)}), 0) > {MAX_DECIMALS}"


def infer_column(frame: Frame, name: str, rows: int, counts: Mapping[str, int], text_type: TextType) -> Column:
    """Decide what a column is from its counts; in a source with types text stays text."""
    sql_type, filled, is_typed = frame.sql_type(name), counts["filled"], frame.knows_type(name)
    not_finite, order = counts.get("not_finite", 0), frame.category_order(frame.names.index(name))
    if sql_type == "VARCHAR":
        storage = Storage.TEXT if is_typed else _find_text_type(counts, filled, text_type.date_format)
        numbers = counts["numbers"]
    else:
        storage = Storage.DATE if filled and counts.get("whole_days") == filled else _find_stored_type(sql_type)
        numbers = filled - not_finite if storage in (Storage.INTEGER, Storage.NUMBER) else 0
    return Column(
        name,
        storage,
        rows,
        rows - filled,
        counts["distinct"],
        numbers=numbers,
        not_finite=not_finite,
        decimals=_find_decimals(storage, counts.get("decimals", 0), sql_type),
        date_format=text_type.date_format,
        formulas=counts.get("formulas", 0),
        likely_type=None if is_typed else text_type.likely,
        order=order.categories if order else None,
        ordered=order is not None and order.ordered,
        floating=sql_type in FLOAT_TYPES,
        zone=frame.time_zone(name),
    )


def _find_stored_type(sql_type: str) -> Storage:
    if sql_type in WHOLE_TYPES:
        return Storage.INTEGER
    if sql_type in FLOAT_TYPES or sql_type.startswith("DECIMAL"):
        return Storage.NUMBER
    if sql_type.startswith("TIMESTAMP"):
        return Storage.TIMESTAMP
    return {"DATE": Storage.DATE, "BOOLEAN": Storage.BOOLEAN}.get(sql_type, Storage.TEXT)


def _find_text_type(counts: Mapping[str, Any], filled: int, date_format: str | None) -> Storage:
    if not filled:
        return Storage.TEXT
    if date_format:
        return Storage.TIMESTAMP if has_time(date_format) else Storage.DATE
    if counts["whole"] == filled:
        return Storage.INTEGER
    if counts["numbers"] and counts["numbers"] + counts["not_finite"] == filled:
        return Storage.NUMBER
    return Storage.TEXT


def _find_decimals(storage: Storage, decimals: int, sql_type: str) -> int | None:
    if sql_type.startswith("DECIMAL"):
        return int(sql_type.rstrip(")").split(",")[1])
    if storage not in (Storage.INTEGER, Storage.NUMBER, Storage.TEXT):
        return None
    return decimals if decimals <= MAX_DECIMALS else None
