"""Formulas: cells that a spreadsheet would run, and the apostrophe that keeps it from doing so.

A text looks like a formula where its first character is one of = + - @ (or their full-width forms), spaces aside, and
it is neither a number nor signs alone. Quoting puts an apostrophe before such texts, and before those that have one
already, so that no two texts become one: what is quoted can be told from what is not, and `unquoted` undoes it.

The patterns are fully matched, and mean the same to Python and to a database that knows RE2.
"""

from __future__ import annotations

import re

SPACES = "\t\n\x0b\x0c\r \u00a0\u200b\u3000\ufeff"
SIGNS = "=+@\uff1d\uff0b\uff20\uff0d\\-"
QUOTE = "'"
FORMULA = f"(?s)'*[{SPACES}]*[{SIGNS}].*"
DIGITS = "([0-9]+([.,][0-9]*)*|[.,][0-9]+)([eE][+\\-]?[0-9]+)?%?"
NUMBER = f"'*[{SPACES}]*[+\\-]?({DIGITS}|(?i:nan|inf|infinity))[{SPACES}]*"
NOTHING_BUT_SIGNS = f"'*[{SPACES}{SIGNS}]*"

_formula, _number, _signs = re.compile(FORMULA), re.compile(NUMBER), re.compile(NOTHING_BUT_SIGNS)


def is_formula(text: str) -> bool:
    """Whether a spreadsheet may take a text for a formula.

    >>> [is_formula(text) for text in ("=1+1", " @SUM(A1)", "-5", "-5-3", "a=b", "'=1", "--")]
    [True, True, False, True, False, False, False]
    """
    return not text.startswith(QUOTE) and is_quotable(text)


def is_quotable(text: str) -> bool:
    """Whether a text looks like a formula but for the apostrophes before it."""
    if not _formula.fullmatch(text):
        return False
    return not _number.fullmatch(text) and not _signs.fullmatch(text)


def quoted(text: str) -> str:
    """Return a text that a spreadsheet shows as it is; different texts stay different.

    >>> [quoted(text) for text in ("=1+1", "'=1+1", "-5", "don't")]
    ["'=1+1", "''=1+1", '-5', "don't"]
    """
    return QUOTE + text if is_quotable(text) else text


def unquoted(text: str) -> str:
    """Return what was quoted.

    >>> [unquoted(text) for text in ("'=1+1", "''=1+1", "'tis")]
    ['=1+1', "'=1+1", "'tis"]
    """
    return text[1:] if text.startswith(QUOTE) and is_quotable(text) else text
