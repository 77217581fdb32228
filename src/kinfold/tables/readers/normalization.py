"""Normalization: a source's own notation becomes plain text, and a CSV file is written in that notation again.

quotes      in a release with `output.spreadsheet_safe` the apostrophe before a formula is removed
missing     in every text column a word for a missing value becomes null; spaces around it do not count. A column may
            have codes of its own, such as -9: a number among them is compared as a number
units       the unit of a column, before or after its numbers, is left out: "$254.82" and "1.234 EUR"
numbers     a text column in which every value is a number with the marks of `[source]` is stored with a decimal point
            and without thousands marks: "1.234,5" is stored as "1234.5"
writing     in a CSV file such columns, and all numeric ones, have the decimal mark again

A release has no thousands marks; without them normalization is exact: different texts stay different.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from kinfold.tables.duckdb.columns import WHOLE_TYPES
from kinfold.tables.duckdb.connection import Database
from kinfold.tables.duckdb.expressions import (
    FLOAT_TYPES,
    Frame,
    is_formula_sql,
    is_quoted_sql,
    quote_string,
    unquote_formula_sql,
)
from kinfold.tables.schema import NUMBER_PATTERN
from kinfold.tables.source_form import (
    THOUSANDS_SPACES,
    ColumnForm,
    SourceForm,
    build_mark_pattern,
    build_number_pattern,
)


class _TextCounts(NamedTuple):
    """Counts of a text column: quoted and other formulas, words for missing, other texts, numbers, texts with marks."""

    quoted: int
    formulas: int
    missing: int
    filled: int
    fitting: int
    decimals: int
    groups: int

    @property
    def numeric(self) -> bool:
        return 0 < self.filled == self.fitting


def normalize(db: Database, frame: Frame, missing: Sequence[str] = (), *, keep: bool = False) -> Frame:
    """Return the table with null for missing values and plain numbers; `missing` are further words for missing.

    The table as it was read is dropped unless `keep` is set.
    """
    normalized, values = plan_normalization(
        frame, missing, lambda questions: db.answers([q for each in questions.values() for q in each], frame.table)
    )
    if not values:
        return normalized
    table = db.table(f"SELECT {', '.join(f'{values.get(c, c)} AS {c}' for c in frame.columns)} FROM {frame.table}")
    if not keep:
        db.drop(frame.table)
    return replace(normalized, table=table)


def plan_normalization(
    frame: Frame, missing: Sequence[str], ask: Callable[[Mapping[str, Sequence[str]]], Iterator[Any]]
) -> tuple[Frame, dict[str, str]]:
    """Return the normalized frame, and SQL for the columns to rewrite; `ask` computes aggregates by column."""
    form, forms = frame.form, {frame.at(name): each for name, each in frame.form.get_columns(frame.names).items()}
    kinds = dict(zip(frame.columns, frame.types, strict=True))
    everywhere = form.na or missing or form.has_marks or form.quoted
    texts = [c for c, kind in kinds.items() if kind == "VARCHAR" and (everywhere or c in forms)]
    plain = {c: unquote_formula_sql(c) if form.quoted else c for c in texts}
    values = {c: _present_sql(plain[c], form, forms.get(c, ColumnForm()), missing) for c in texts}
    values |= {c: _present_typed_sql(c, kinds[c], each.na) for c, each in forms.items() if each.na and c not in values}
    if not values:
        return frame, {}
    answers = ask({c: _questions(c, value, form, text=c in texts) for c, value in values.items()})
    counts = {c: _TextCounts(*(next(answers) or 0 for _ in _TextCounts._fields)) for c in values}
    marked = {c for c, count in counts.items() if count.numeric and (count.decimals or count.groups)}
    rewritten = {
        c: _plain_number_sql(value, form) if c in marked else value
        for c, value in values.items()
        if c in marked or counts[c].missing or counts[c].quoted or (c in texts and c in forms and forms[c].unit)
    }
    thousands = form.thousands if any(counts[c].groups for c in marked) else ""
    normalized = replace(
        frame,
        form=replace(form, thousands=thousands),
        numeric=_names(frame, {c for c in texts if counts[c].numeric}),
        blanked=_names(frame, {c for c, count in counts.items() if count.missing}),
        mixed=frame.mixed | _names(frame, {c for c in texts if c in forms and forms[c].unit}),
        formulas=tuple((n, counts[c].formulas) for n, c in zip(frame.names, frame.columns, strict=True) if c in counts),
        notes=(*frame.notes, *_describe_codes(frame, counts)),
    )
    return normalized, rewritten


def _describe_codes(frame: Frame, counts: Mapping[str, _TextCounts]) -> Iterator[str]:
    for name, form in frame.form.get_columns(frame.names).items():
        if form.na:
            missing = counts[frame.at(name)].missing
            read = f"{missing:,} value{' is' if missing == 1 else 's are'} read as missing"
            yield f"'{name}': {read} ({', '.join(form.na)})"


_WORDS_FOR_TOTAL = """
    totals?, total[ei]s?, totaux, totais, totaal, (sub|sous|gesamt|end|grand|eind|sum)[- ]?tota(l|ls|al|le|li|les|ux),
    total g[e\u00e9]n[e\u00e9]ral, total geral, totale generale, sum, suma, soma, summa, somme,
    (zwischen|gesamt|end|teil)?summen?, gesamt, insgesamt, gesamtergebnis, (suma )?og\u00f3\u0142em, razem,
    \u0142\u0105cznie
"""
TOTAL_PATTERN = "|".join(word.strip() for word in _WORDS_FOR_TOTAL.split(","))
MEAN_PATTERN = (  # below a table
    "mittelwert|durchschnitt|moyenne|promedio|gemiddelde|\u015brednia|average|median|sd|std\\.?abw\\.?|standardabweichung"
)
FOOTER_PATTERN = (
    "(source|sources|note|notes|quelle|anmerkung|hinweis|stand|fuente|nota|fonte|bron) ?:.*|[*\u00a9\u2020].*"
)
MIN_COLUMNS_OF_FOOTER = 3  # with fewer columns a row with one value may be a record
MAX_FOOTERS = 5  # rows at the end of a table that may be footers
MAX_TOTALS_SHARE = 0.25  # of the rows that are totals; with more, the word is a category


def leave_out_totals(db: Database, frame: Frame, name: str, short: int = 0) -> Frame:
    """Return the table without rows of totals and footers, and with a note that counts them with `short` lines."""
    total = is_total_sql(frame.columns, frame.names)
    kept = f"SELECT * FROM {frame.table} WHERE NOT ({total}) ORDER BY {frame.order}"
    table = db.table(kept)
    rows = db.count(frame.table) - db.count(table) + short
    db.drop(frame.table)
    left = f"{rows:,} row{' of totals or footers is' if rows == 1 else 's of totals or footers are'} left out"
    return replace(frame, table=table, notes=(*frame.notes, f"'{name}': {left} (source.skip_totals)"))


def note_totals(db: Database, frame: Frame, name: str) -> Frame:
    """Return the table with the number of rows that look like totals or footers, and a note on them."""
    first = f"lower(trim(coalesce({', '.join(frame.columns[:3])})))"
    word = _fits_sql(first, f"({TOTAL_PATTERN})([ :].*)?|.* ({TOTAL_PATTERN}) *:?|({MEAN_PATTERN}) *:?")
    last = f"SELECT {frame.order} FROM {frame.table} ORDER BY 1 DESC LIMIT {MAX_FOOTERS}"
    footer = f"{frame.order} IN ({last}) AND regexp_matches(trim(CAST(c0 AS VARCHAR)), '[ :*]')"
    likely = f"SELECT {frame.order} FROM {frame.table} WHERE ({word}) OR ({footer}) OR ({_header_sql(frame)})"
    if not db.execute(f"{likely} LIMIT 1"):  # the test below reads all columns
        return frame
    where = f"({is_total_sql(frame.columns, frame.names)}) AND {frame.order} IN ({likely})"
    rows = next(db.answers([f"count(*) FILTER (WHERE {where})"], frame.table)) or 0
    if not rows or rows > MAX_TOTALS_SHARE * db.count(frame.table):
        return frame
    note = f"{rows:,} row{' looks like a total or a footer' if rows == 1 else 's look like totals or footers'}"
    return replace(
        frame, totals=rows, notes=(*frame.notes, f"'{name}': {note}; source.skip_totals leaves such rows out")
    )


def _header_sql(frame: Frame) -> str:
    """Return SQL for a first value that is the name of its column; one of a header that joined files repeat."""
    return f"trim(CAST({frame.columns[0]} AS VARCHAR)) = {quote_string(frame.names[0].strip())}"


def is_total_sql(columns: Sequence[str], names: Sequence[str] = (), *, by_word: bool = False) -> str:
    """Return SQL that tests for a row of totals or a footer; `by_word`: only for one that starts or ends with a word.

    The first cell with a value is a word for a total, with or without a colon; or it starts or ends with one, or is a
    word for a mean, and some cell is empty; or the row repeats the `names` of two or more columns; or it starts like a
    footer, and the last cell is empty; or no cell but the first has a value, if there are at least three columns.
    """
    cells = ", ".join(f"nullif(trim(CAST({c} AS VARCHAR)), '')" for c in columns)
    first, word = "lower(coalesce(list_any_value(row), ''))", f"({TOTAL_PATTERN})"
    gaps = f"list_count(row) < {len(columns)}"
    partly = f"{word}[ :].*|.* {word} *:?|({MEAN_PATTERN}) *:?"
    tests = [_fits_sql(first, f"{word} *:?"), f"({_fits_sql(first, partly)} AND {gaps})"]
    tests.append(f"({_fits_sql(first, FOOTER_PATTERN)} AND row[-1] IS NULL)")
    if len(names) > 1:
        tests.append(f"row = [{', '.join(quote_string(name.strip()) for name in names)}]")
    if len(columns) >= MIN_COLUMNS_OF_FOOTER and not by_word:
        tests.append("list_count(row[2:]) = 0")
    # With the cells as a list the size of the query grows with the columns, not with a multiple of them.
    return f"list_transform([[{cells}]], lambda row: {' OR '.join(tests)})[1]"


def csv_value_sql(frame: Frame, name: str) -> str:
    """Return SQL for a column as it is written in a CSV file."""
    c, mark, kind = frame.at(name), quote_string(frame.form.decimal), frame.sql_type(name)
    if kind in FLOAT_TYPES:
        c = f"CASE WHEN isnan({c}) THEN CAST('nan' AS {kind}) ELSE {c} END"  # without a sign, as in `cast_text_sql`
    if frame.form.decimal == ".":
        return c
    if kind in FLOAT_TYPES or kind.startswith("DECIMAL"):
        return f"replace(CAST({c} AS VARCHAR), '.', {mark})"
    if kind != "VARCHAR" or name not in frame.numeric:
        return c
    if name in frame.labelled:
        return f"CASE WHEN {_fits_sql(c, build_number_pattern())} THEN replace({c}, '.', {mark}) ELSE {c} END"
    return f"replace({c}, '.', {mark})"


def _names(frame: Frame, columns: set[str]) -> frozenset[str]:
    return frozenset(name for name, c in zip(frame.names, frame.columns, strict=True) if c in columns)


def present_text_sql(c: str, words: Sequence[str], missing: Sequence[str] = (), value: str = "") -> str:
    """Return SQL that is null for a word for a missing value, else the text, or another `value`."""
    tests = [f"{c} IN ({', '.join(map(quote_string, missing))})"] if missing else []
    tests += [f"trim({c}) IN ({', '.join(quote_string(word.strip(' ')) for word in words)})"] if words else []
    return f"CASE WHEN NOT ({' OR '.join(tests)}) THEN {value or c} END" if tests else value or c


def _present_sql(c: str, form: SourceForm, own: ColumnForm, missing: Sequence[str]) -> str:
    """Return SQL that is null for a missing value, else the text without the unit of its column."""
    bare = _strip_unit_sql(c, own.unit, form) if own.unit else c
    codes = [code for code in own.na if re.fullmatch(NUMBER_PATTERN, code)]
    if not codes:
        return present_text_sql(c, (*form.na, *own.na), missing, bare)
    plain = f"trim({_plain_number_sql(bare, form)})"
    is_code = f"{_fits_sql(plain, NUMBER_PATTERN)} AND try_cast({plain} AS DOUBLE) IN ({', '.join(codes)})"
    value = f"CASE WHEN NOT ({is_code}) THEN {bare} END"
    return present_text_sql(c, (*form.na, *own.na), missing, value)


def _present_typed_sql(c: str, kind: str, codes: Sequence[str]) -> str:
    """Return SQL that is null for a code of a missing value in a column of numbers, dates or truth values."""
    numeric = kind in (*FLOAT_TYPES, *WHOLE_TYPES) or kind.startswith("DECIMAL")
    if not numeric:
        return f"CASE WHEN CAST({c} AS VARCHAR) NOT IN ({', '.join(map(quote_string, codes))}) THEN {c} END"
    numbers = [code for code in codes if re.fullmatch(NUMBER_PATTERN, code)]
    return f"CASE WHEN {c} NOT IN ({', '.join(numbers)}) THEN {c} END" if numbers else c


def _strip_unit_sql(c: str, units: Sequence[str], form: SourceForm) -> str:
    """Return SQL for the number of a text with a unit before or after it; another text is unchanged.

    Brackets around all of it are a minus sign, as in accounts.
    """
    unit = f"(?:{'|'.join(re.escape(each.strip()) for each in units)})?"
    gap, number = f"[{THOUSANDS_SPACES}]*", build_number_pattern(form.decimal, form.thousands)
    pattern = f"^{gap}([+-]?){gap}{unit}{gap}({number}){gap}{unit}{gap}$"
    signed = f"regexp_replace({c}, '^ *[(]([^()+-]*)[)] *$', '-\\1')"
    return f"regexp_replace({signed}, {quote_string(pattern)}, '\\1\\2')"


def _questions(c: str, value: str, form: SourceForm, *, text: bool) -> tuple[str, ...]:
    missing = f"count({c}) - count({value})"
    tests = (is_quoted_sql(c), is_formula_sql(c)) if form.quoted and text else ()
    quotes = tuple(f"count(*) FILTER (WHERE {test})" for test in tests) or ("0", "0")
    if not form.has_marks or not text:
        return *quotes, missing, "0", "0", "0", "0"
    fitting = _fits_sql(value, build_number_pattern(form.decimal, form.thousands))
    decimals = f"contains({value}, {quote_string(form.decimal)})" if form.decimal != "." else "FALSE"
    marks = quote_string(build_mark_pattern(form.thousands))
    groups = f"regexp_matches({value}, {marks})" if form.thousands else "FALSE"
    counts = (f"count(*) FILTER (WHERE {condition})" for condition in (fitting, decimals, groups))
    return *quotes, missing, f"count({value})", *counts


def _fits_sql(value: str, numbers: str) -> str:
    return f"regexp_full_match(trim({value}), {quote_string(numbers)})"


def _plain_number_sql(value: str, form: SourceForm) -> str:
    if form.thousands:
        value = f"regexp_replace({value}, {quote_string(build_mark_pattern(form.thousands))}, '', 'g')"
    return value if form.decimal == "." else f"replace({value}, {quote_string(form.decimal)}, '.')"
