"""What the columns of a table are: the schema, decided from all values by queries.

A wide table is cut into strips of columns, because the cost of a query grows with the width of its table.

Text is a number only if writing the number gives the same text, except for sign and decimals: `02138` stays text. Dates
are read in one of many formats, which must fit every value. If day and month can be exchanged in every value, the
column stays text unless the policy declares the format.

A text column that is neither may be likely to hold dates, numbers with other marks, or words for missing values. A
sample of rows finds the candidates; then all rows are counted in every format. The type that at least 90 % of the
values fit is proposed, with its formats and what else the column holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from kinfold.tables.duckdb.connection import Database, split_questions
from kinfold.tables.duckdb.expressions import FLOAT_TYPES, Frame, is_formula_sql, quote_string
from kinfold.tables.schema import NUMBER_PATTERN, Column, LikelyType, Schema, Storage
from kinfold.tables.source_form import (
    APOSTROPHES,
    DATE_FORMATS,
    DATE_LIKE_PATTERN,
    THOUSANDS_SPACES,
    build_number_pattern,
    choose_date_format,
    get_fixed_characters,
    has_time,
)

MIN_WIDE_COLUMNS, COLUMNS_PER_STRIP = 400, 100  # wider tables are cut into strips of so many columns


class Strips:
    """Copies of some columns of wide tables, each made once."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._strips: dict[str, list[Frame]] = {}

    def of(self, frame: Frame) -> list[Frame]:
        """Return the strips of a table; a narrow table is its only strip."""
        if len(frame.names) <= MIN_WIDE_COLUMNS:
            return [frame]
        if frame.table not in self._strips:
            starts = range(0, len(frame.names), COLUMNS_PER_STRIP)
            self._strips[frame.table] = [self._copy(frame, slice(start, start + COLUMNS_PER_STRIP)) for start in starts]
        return self._strips[frame.table]

    def _copy(self, frame: Frame, part: slice) -> Frame:
        select = ", ".join(f"{c} AS c{i}" for i, c in enumerate(frame.columns[part]))
        return frame.select(frame.names[part], self._db.table(f"SELECT {select} FROM {frame.table}"))

    def holding(self, frame: Frame, names: Sequence[str]) -> Frame:
        """Return the strip that has all of these columns; the table itself if there is none."""
        if len(frame.names) <= MIN_WIDE_COLUMNS or not names:
            return frame
        strips = {frame.names.index(name) // COLUMNS_PER_STRIP for name in names}
        return self.of(frame)[strips.pop()] if len(strips) == 1 else frame


ROWS_CHECKED_FIRST = 2_000  # computed numbers have many decimals from the first row on: no need to count all


def describe_table(db: Database, strips: Strips, frame: Frame) -> Schema:
    """Return the schema of a table, from queries on all of its rows."""
    rows = int(db.row(f"SELECT {frame.row_count_sql} FROM {frame.table}")[0])
    columns = [column for strip in strips.of(frame) for column in _describe_columns(db, strip, rows)]
    return Schema(tuple(columns), rows, frame.doubtful, frame.notes, frame.totals)


def _describe_columns(db: Database, frame: Frame, rows: int) -> list[Column]:
    counts = _ask_columns(db, frame)
    for answer in counts:
        if not answer.get("fractions", 1):
            answer["decimals"] = 0  # 43.0 is a whole number
    text_types = _detect_text_types(db, frame, counts)
    return [
        _infer_column(frame, name, rows, answer, text_types.get(i, TextType()))
        for i, (name, answer) in enumerate(zip(frame.names, counts, strict=True))
    ]


def _ask_columns(db: Database, frame: Frame) -> list[dict[str, int]]:
    texts = [i for i, kind in enumerate(frame.types) if kind == "VARCHAR"]
    answers = _ask_typed_columns(db, frame, [i for i in range(len(frame.types)) if i not in texts])
    patterns = {i: _number_pattern(frame, frame.names[i]) for i in texts}
    unmarked = [i for i in texts if patterns[i] is None]
    if len(unmarked) > 1 and frame.weight is None and db.is_short(frame.table):
        answers |= _ask_short_texts(db, frame, unmarked)
    remaining = [i for i in texts if i not in answers]
    answers |= {i: _ask_texts(db, frame, i, make_text_questions(f"c{i}", patterns[i])) for i in remaining}
    return [answers[i] for i in range(len(frame.types))]


def _ask_texts(db: Database, frame: Frame, i: int, questions: dict[str, str]) -> dict[str, int]:
    """Ask about the distinct texts of a column, because matching patterns takes most of the time."""
    distinct = f"(SELECT c{i}, {frame.row_count_sql} AS n FROM {frame.table} WHERE c{i} IS NOT NULL GROUP BY c{i})"
    answers = db.row(f"SELECT {', '.join(questions.values())}, count(*) FROM {distinct}")
    return {key: int(answer or 0) for key, answer in zip((*questions, "distinct"), answers, strict=True)}


def _ask_short_texts(db: Database, frame: Frame, indexes: Sequence[int]) -> dict[int, dict[str, int]]:
    """Ask about many columns of a short table in one query: planning many queries would take longer."""
    questions = make_text_questions("v")
    columns = ", ".join(f"c{i}" for i in indexes)
    long = f"(UNPIVOT (SELECT {columns} FROM {frame.table}) ON {columns} INTO NAME c VALUE v)"
    distinct = f"(SELECT c, v, count(*) AS n FROM {long} GROUP BY c, v)"
    rows = db.execute(f"SELECT c, {', '.join(questions.values())}, count(*) FROM {distinct} GROUP BY c")
    keys = (*questions, "distinct")
    answers = {c: [int(answer or 0) for answer in each] for c, *each in rows}
    zeros = [0] * len(keys)  # for a column of nulls
    return {i: dict(zip(keys, answers.get(f"c{i}", zeros), strict=True)) for i in indexes}


def _ask_typed_columns(db: Database, frame: Frame, indexes: Sequence[int]) -> dict[int, dict[str, int]]:
    questions = {i: _make_typed_questions(frame, i) for i in indexes}
    distinct = dict(zip(questions, _count_distinct(db, frame, list(questions)), strict=True))
    for i in _find_long_decimals(db, frame, [i for i in questions if distinct[i]]):
        questions[i]["decimals"] = str(MAX_DECIMALS + 1)
    # Skip columns of nulls: DuckDB fails on some aggregates of no values.
    select = [sql for i, each in questions.items() if distinct[i] for sql in each.values()]
    answers = db.answers(select, frame.table)
    return {
        i: {key: (next(answers) or 0) if distinct[i] else 0 for key in each} | {"distinct": distinct[i]}
        for i, each in questions.items()
    }


def _find_long_decimals(db: Database, frame: Frame, indexes: Sequence[int]) -> list[int]:
    """Return the floating columns whose first values have too many decimals to count them all."""
    floats = [i for i in indexes if frame.types[i] in ("FLOAT", "DOUBLE")]
    first = f"(SELECT * FROM {frame.table} LIMIT {ROWS_CHECKED_FIRST})"
    questions = [f"coalesce(max({_decimals_sql(f'c{i}', frame.types[i])}), 0) > {MAX_DECIMALS}" for i in floats]
    answers = db.answers(questions, first)
    return [i for i, long in zip(floats, answers, strict=True) if long]


def _number_pattern(frame: Frame, name: str) -> str | None:
    """Return the pattern of the source's numbers for a text column that also holds other texts."""
    if not frame.form.has_marks or name in frame.numeric:
        return None
    return build_number_pattern(frame.form.decimal, frame.form.thousands)


def _count_distinct(db: Database, frame: Frame, indexes: Sequence[int]) -> list[int]:
    # Much cheaper than as many count(DISTINCT ...) in one query.
    counts = [
        f"SELECT {i} AS i, count(*) AS n FROM (SELECT DISTINCT c{i} FROM {frame.table} WHERE c{i} IS NOT NULL)"
        for i in indexes
    ]
    rows = [db.execute(" UNION ALL ".join(batch)) for batch in split_questions(counts)]
    return [n for _, n in sorted(pair for pairs in rows for pair in pairs)]


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


def _detect_text_types(db: Database, frame: Frame, counts: Sequence[Mapping[str, int]]) -> dict[int, TextType]:
    """Return the types of text columns that the first `counts` leave undecided, by column index."""
    undecided = [i for i, count in enumerate(counts) if count["filled"] and _is_undecided(count, frame.form.dates)]
    if not undecided:
        return {}
    step = db.count(frame.table) // SAMPLED_VALUES + 1  # rows spread over a table; all rows of a small one
    sample = f"(SELECT * FROM {frame.table} WHERE rowid % {step} = 0)" if step > 1 else frame.table
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
        conditions.append(_matches_sql(i, DATE_LIKE_PATTERN))
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
    formats = (*declared, *(each for each in DATE_FORMATS if each not in declared))
    sampled = _count_fitting(db, frame, sample, _find_possible_formats(db, sample, columns, formats))
    best = {i: {f: n for f, n in counts.items() if n and n == max(counts.values())} for i, counts in sampled.items()}
    fitting = best if sample == frame.table else _count_fitting(db, frame, frame.table, best)
    types = {}
    for column in columns:
        counts = fitting[column.number]
        complete = tuple(each for each, n in counts.items() if n == column.filled)
        chosen = choose_date_format(complete, declared)
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
    fixed = {each: get_fixed_characters(each) for each in formats}
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
    return tuple(word for (word,) in db.execute(query))


WHOLE_PATTERN = r"[+-]?(0|[1-9][0-9]{0,17})"
NOT_FINITE_PATTERN = r"(?i)[+-]?(nan|inf|infinity)"
MAX_DECIMALS = 12  # with more, a number is measured to the precision of a double
MAX_DECIMALS_BY_ROUNDING = 4  # decimals that are counted by rounding, without casting to text

_SIGNED_TYPES = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
WHOLE_TYPES = (*_SIGNED_TYPES, *(f"U{kind}" for kind in _SIGNED_TYPES))


def make_text_questions(c: str, pattern: str | None = None) -> dict[str, str]:
    """Return aggregates that decide the type of a column of texts, by name, over the distinct ones with `n` rows each.

    `pattern` is that of numbers with the marks of the source, given if other texts occur too: then the column is not
    numeric.
    """
    questions = {"filled": _count_texts_sql(f"{c} IS NOT NULL"), "formulas": _count_texts_sql(is_formula_sql(c))}
    text = f"trim({c})"
    if pattern is not None:
        numbers = _count_texts_sql(f"regexp_full_match({text}, {quote_string(pattern)})")
        return questions | dict.fromkeys(("whole", "not_finite", "decimals"), "0") | {"numbers": numbers}
    is_number = f"regexp_full_match({text}, '{NUMBER_PATTERN}') AND isfinite(try_cast({text} AS DOUBLE))"
    fraction = f"nullif(rtrim(split_part({text}, '.', 2), '0'), '')"
    return questions | {
        "whole": _count_texts_sql(f"regexp_full_match({text}, '{WHOLE_PATTERN}')"),
        "numbers": _count_texts_sql(is_number),
        "not_finite": _count_texts_sql(f"regexp_full_match({text}, '{NOT_FINITE_PATTERN}')"),
        "fractions": _count_texts_sql(f"CASE WHEN {text} ILIKE '%e%' THEN 'e' ELSE {fraction} END IS NOT NULL"),
        "decimals": f"max(CASE WHEN {text} ILIKE '%e%' THEN 99 ELSE length(split_part({text}, '.', 2)) END)",
    }


def _make_typed_questions(frame: Frame, i: int) -> dict[str, str]:
    """Return aggregates that describe a column of another type than text, by name."""
    c, sql_type, count = f"c{i}", frame.types[i], frame.count_where_sql
    questions = {"filled": count(f"{c} IS NOT NULL")}
    if sql_type in FLOAT_TYPES:
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


def _infer_column(frame: Frame, name: str, rows: int, counts: Mapping[str, int], text_type: TextType) -> Column:
    """Decide what a column is from its counts; in a source with types text stays text."""
    sql_type, filled, is_typed = frame.sql_type(name), counts["filled"], frame.knows_type(name)
    not_finite = counts.get("not_finite", 0)
    order = frame.orders[frame.names.index(name)] if frame.orders else None
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
        labels=dict(dict(frame.labels).get(name, ())),
        title=dict(frame.titles).get(name, ""),
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
