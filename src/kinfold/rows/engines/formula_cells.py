"""SQL for cells that look like formulas: found, quoted and unquoted as `formulas` does it, without fetching them."""

from __future__ import annotations

from kinfold.rows.formulas import FORMULA, NOTHING_BUT_SIGNS, NUMBER, QUOTE


def string(text: str) -> str:
    """Return a text as SQL."""
    return "'" + text.replace("'", "''") + "'"


def is_formula(value: str) -> str:
    """SQL for whether a spreadsheet may run a text."""
    return f"NOT starts_with({value}, {string(QUOTE)}) AND {_is_quotable(value)}"


def requoted(value: str, quotes: int) -> str:
    """SQL that puts an apostrophe before a text that looks like a formula, or takes one away."""
    if quotes > 0:
        return f"CASE WHEN {_is_quotable(value)} THEN {string(QUOTE)} || {value} ELSE {value} END"
    held = f"starts_with({value}, {string(QUOTE)}) AND {_is_quotable(value)}"
    return f"CASE WHEN {held} THEN substr({value}, 2) ELSE {value} END"


def _is_quotable(value: str) -> str:
    formula, number, signs = (
        f"regexp_full_match({value}, {string(pattern)})" for pattern in (FORMULA, NUMBER, NOTHING_BUT_SIGNS)
    )
    return f"{formula} AND NOT {number} AND NOT {signs}"
