"""Plain readings of cells and rows, one at a time: codes for missing values, units, and rows of totals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

SPACES = " \u00a0\u2009\u202f"
WORDS_FOR_TOTAL = {"total", "subtotal", "sub-total", "sum", "summe", "gesamt", "insgesamt", "grand total", "razem"}

Value = str | Decimal | None


def parse_number(text: str, decimal: str = ".", thousands: str = "") -> Decimal | None:
    """Return the number of a text with these marks, or None."""
    plain = text.strip(" ")
    if thousands and thousands in plain:
        whole = plain.split(decimal)[0].lstrip("+-").split(thousands)
        if not (1 <= len(whole[0]) <= 3 and len(whole[-1]) == 3 and all(2 <= len(part) <= 3 for part in whole[1:])):
            return None
        plain = plain.replace(thousands, "")
    plain = plain.replace(decimal, ".") if decimal != "." else plain
    return Decimal(plain) if re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)", plain) else None


def read_cell(
    text: str, na: Sequence[str] = (), unit: Sequence[str] = (), decimal: str = ".", thousands: str = ""
) -> Value:
    """Return what a cell means: nothing, a number, or its text."""
    bare = _remove_unit(text, unit, decimal, thousands)
    number = parse_number(bare, decimal, thousands)
    for code in na:
        as_number = parse_number(code)
        if text.strip(" ") == code.strip(" ") or (as_number is not None and as_number == number):
            return None
    return (number if number is not None else text) if text else None


def _remove_unit(text: str, units: Sequence[str], decimal: str, thousands: str) -> str:
    bare = text.strip(SPACES)
    sign = bare[0] if bare[:1] in ("+", "-") else ""
    rest = bare[len(sign) :].strip(SPACES)
    for unit in units:
        for candidate in (rest.removeprefix(unit).strip(SPACES), rest.removesuffix(unit).strip(SPACES)):
            if candidate != rest and parse_number(candidate, decimal, thousands) is not None:
                return sign + candidate
    return text


def is_total(cells: Sequence[str | None]) -> bool:
    """Whether a row has totals, or is a footer."""
    values = [(cell or "").strip(" ") or None for cell in cells]
    first = next((value for value in values if value is not None), "").lower()
    bare = first.removesuffix(":").rstrip(" ")
    if bare in WORDS_FOR_TOTAL or (len(values) > 2 and values[1:] == [None] * (len(values) - 1)):
        return True
    starts = any(first.startswith((f"{word} ", f"{word}:")) or bare.endswith(f" {word}") for word in WORDS_FOR_TOTAL)
    return starts and None in values
