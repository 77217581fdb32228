"""Categories: values told apart by their text, but numbers, which are told apart as numbers however they are written.

`1`, `1.0`, `+1`, `1e0` and ` 1 ` are one value, and so are `0`, `-0` and `0.00`. `01` is no number but a code, as
everywhere (see `type_inference`), and so is every text with anything else in it.
"""

from __future__ import annotations

import re
from decimal import Decimal

NUMBER = r"[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,9})?"
PLAIN = r"0|-?[1-9][0-9]*|-?(0|[1-9][0-9]*)\.[0-9]*[1-9]"  # the one way in which `category` writes a number
LONGEST = 400  # characters that a number is written out with

_number, _plain = re.compile(NUMBER), re.compile(PLAIN)


def category(text: str) -> str:
    """Return a text that is the same for equal numbers; a text that is no number is its own.

    >>> [category(text) for text in ("1.50", "-0.0", "+1", " 1e3", "007", "flu", "1e-1000", ".5")]
    ['1.5', '0', '1', '1000', '007', 'flu', '1e-1000', '0.5']
    """
    bare = text.strip(" ")
    if not _number.fullmatch(bare) or (_plain.fullmatch(text) and len(text) <= LONGEST):
        return text
    number = Decimal(bare)
    digits = "".join(map(str, number.as_tuple().digits)).strip("0")
    if not digits:
        return "0"
    if abs(number.adjusted()) + len(digits) < LONGEST:
        written = f"{number:f}"
        return written.rstrip("0").rstrip(".") if "." in written else written
    return f"{'-' if number < 0 else ''}{digits}e{number.adjusted() - len(digits) + 1}"
