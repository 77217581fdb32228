"""Text values that mislead: formulas, look-alikes, and the warnings about both, which never quote a value.

A text looks like a formula if its first character after spaces is = + - @ (or a full-width form of these) and it is
neither a number nor only signs. Quoting puts an apostrophe before such a text, and before one that already has an
apostrophe, so two different texts never become equal and reading restores the original. The patterns match
the whole text and mean the same in Python and in RE2, which databases use.

Two values look alike if they are equal after Unicode compatibility composition (NFKC), case folding, and removal of
zero-width characters and of extra spaces. `HIV`, `hiv` and `HIV ` count as three values, so a class that holds only
these seems diverse. Cost: one pass over the distinct values.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from kinfold.errors import plural

if TYPE_CHECKING:
    from kinfold.tables.engine import Engine
    from kinfold.tables.schema import Column
    from kinfold.tables.tally import Tally

FORMULA_SPACES = "\t\n\x0b\x0c\r \u00a0\u200b\u3000\ufeff"
FORMULA_SIGNS = "=+@\uff1d\uff0b\uff20\uff0d\\-"
QUOTE = "'"
FORMULA_PATTERN = f"(?s)'*[{FORMULA_SPACES}]*[{FORMULA_SIGNS}].*"
DIGITS_PATTERN = "([0-9]+([.,][0-9]*)*|[.,][0-9]+)([eE][+\\-]?[0-9]+)?%?"
NUMBER_CELL_PATTERN = f"'*[{FORMULA_SPACES}]*[+\\-]?({DIGITS_PATTERN}|(?i:nan|inf|infinity))[{FORMULA_SPACES}]*"
SIGNS_ONLY_PATTERN = f"'*[{FORMULA_SPACES}{FORMULA_SIGNS}]*"
PLAIN_PATTERN = f"(?:{NUMBER_CELL_PATTERN})|(?:{SIGNS_ONLY_PATTERN})"

_formula_regex = re.compile(FORMULA_PATTERN)
_plain_regex = re.compile(PLAIN_PATTERN)


def is_formula(text: str) -> bool:
    """Whether a spreadsheet may run a text as a formula.

    >>> [is_formula(text) for text in ("=1+1", " @SUM(A1)", "-5", "-5-3", "a=b", "'=1", "--")]
    [True, True, False, True, False, False, False]
    """
    return not text.startswith(QUOTE) and _is_quotable(text)


def _is_quotable(text: str) -> bool:
    """Whether a text is a formula if leading apostrophes are ignored."""
    return _formula_regex.fullmatch(text) is not None and not _plain_regex.fullmatch(text)


def quote_formula(text: str) -> str:
    """Return a text that a spreadsheet shows as it is; different texts stay different.

    >>> [quote_formula(text) for text in ("=1+1", "'=1+1", "-5", "don't")]
    ["'=1+1", "''=1+1", '-5', "don't"]
    """
    return QUOTE + text if _is_quotable(text) else text


def quote_columns(table: pa.Table) -> pa.Table:
    """Return an Arrow table in which an apostrophe stands before each text that looks like a formula."""
    formula, plain = (f"\\A(?:{pattern})\\z" for pattern in (FORMULA_PATTERN, PLAIN_PATTERN))
    for i, column in enumerate(table.columns):
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            is_plain = pc.match_substring_regex(column, plain)
            quotable = pc.and_not(pc.match_substring_regex(column, formula), is_plain)
            quoted = pc.binary_join_element_wise(QUOTE, column, "")
            table = table.set_column(i, table.schema.field(i), pc.if_else(quotable, quoted, column))
    return table


ZERO_WIDTH_CATEGORIES = frozenset({"Cc", "Cf"})
VARIATION_SELECTORS = frozenset(map(chr, range(0xFE00, 0xFE10)))  # they select how the previous character is drawn


@dataclass(frozen=True)
class LookAlikes:
    """The number of groups of look-alike values, of their values and of their records."""

    groups: int
    values: int
    records: int


def fold_text(text: str) -> str:
    r"""Return a text without case, zero-width characters and extra spaces.

    >>> fold_text(" HIV\u200b "), fold_text("\uff28IV"), fold_text("Straße") == fold_text("STRASSE")
    ('hiv', 'hiv', True)
    """
    if text.isascii() and text.isprintable():
        return " ".join(text.lower().split())
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    if not (text.isprintable() and VARIATION_SELECTORS.isdisjoint(text)):
        hidden = {c for c in text if unicodedata.category(c) in ZERO_WIDTH_CATEGORIES or c in VARIATION_SELECTORS}
        text = "".join(c for c in text if c.isspace() or c not in hidden)
    return " ".join(text.split())


def count_look_alikes(counts: Mapping[str, int]) -> LookAlikes:
    """Count the look-alikes among the values of a column, given the number of records of each.

    >>> count_look_alikes({"HIV": 5, "hiv": 2, "HIV ": 1, "flu": 9})
    LookAlikes(groups=1, values=3, records=8)
    """
    folded = [fold_text(text) for text in counts]
    shared = {text: members for text, members in Counter(folded).items() if members > 1}
    records = sum(count for text, count in zip(folded, counts.values(), strict=True) if text in shared)
    return LookAlikes(len(shared), sum(shared.values()), records)


def warn_of_look_alikes(engine: Engine, frame: Any, names: Sequence[str]) -> Iterator[str]:
    """Yield a warning for each of these columns, if the table has it, whose values look alike."""
    for name in names:
        if name in engine.schema(frame):
            yield from describe_look_alikes(name, get_text_counts(engine.tally(frame, [name], {}), name))


def warn_of_formulas(engine: Engine, frame: Any, safe: bool) -> Iterator[str]:
    """Yield a warning for each column with formulas; `safe` means that they are quoted in the release."""
    for column in engine.schema(frame):
        if is_formula(column.name):
            yield describe_formula_name(column.name)
        yield from describe_formulas(column, safe=safe)


def get_text_counts(tally: Tally, name: str) -> dict[str, int]:
    """Return the texts of a key column of a tally, and the number of records of each."""
    pairs = zip(tally.keys[name].tolist(), tally.sizes.tolist(), strict=True)
    return {value: count for value, count in pairs if isinstance(value, str)}


def describe_look_alikes(name: str, texts: Mapping[str, int]) -> Iterator[str]:
    """Yield a warning if values of a column look alike."""
    alike = count_look_alikes(texts)
    if alike.groups:
        yield (
            f"'{name}': {alike.values:,} values in {plural(alike.groups, 'group')} differ only in case, spaces or "
            f"zero-width characters ({plural(alike.records, 'record')}); each counts as a separate value, which makes "
            "l and t look better than they are: merge them in the source"
        )


def describe_formulas(column: Column, *, safe: bool = False) -> Iterator[str]:
    """Yield a warning if cells of a column look like formulas."""
    if column.formulas:
        cells = plural(column.formulas, "cell starts", "cells start")
        after = "an apostrophe is written before each" if safe else "output.spreadsheet_safe = true quotes them"
        yield f"'{column.name}': {cells} like a formula (=, +, -, @), which a spreadsheet may run; {after}"


def describe_formula_name(name: str) -> str:
    """Return the warning that the name of a column looks like a formula."""
    return (
        f"the name of the column '{name}' starts like a formula, which a spreadsheet may run: rename it in the source"
    )
