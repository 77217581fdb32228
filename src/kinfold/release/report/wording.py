"""Numbers and labels as text: thousands separators, sensible digits, no invisible characters.

Labels come from the data and may hold anything. Control characters are shown as their pictures, so that they neither
vanish nor break the drawing. Labels that are too long end in an ellipsis.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping
from typing import Any

from kinfold.errors import plural

NO_VALUE = "\N{EN DASH}"
INFINITY = "\u221e"
MINUS = "\N{MINUS SIGN}"
TIMES = "\N{MULTIPLICATION SIGN}"
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def format_count(number: int | None) -> str:
    """Return an integer with thousands separators, or a dash for None.

    >>> format_count(1234567)
    '1,234,567'
    """
    return NO_VALUE if number is None else f"{number:,}"


def format_number(number: float | None, digits: int = 4) -> str:
    """Return a number with the given significant digits, at least those of its integer part; a dash for None.

    Very small and very large numbers are written with a power of ten.

    >>> [format_number(x) for x in (5, 0.056921, 14.156789, 123456.789, 0.0)]
    ['5', '0.05692', '14.16', '123,457', '0']
    """
    if number is None or not math.isfinite(number):
        return NO_VALUE
    if number == 0:
        return "0"
    size = math.floor(math.log10(abs(number)))
    if size < -4 or size > 14:
        mantissa, exponent = f"{number:.{digits - 1}e}".split("e")
        text = f"{_trim_zeros(mantissa)} {TIMES} 10{str(int(exponent)).translate(SUPERSCRIPT)}"
    else:
        text = _trim_zeros(f"{number:,.{max(0, digits - 1 - size)}f}")
    return text.replace("-", MINUS, 1)


def _trim_zeros(decimals: str) -> str:
    return decimals.rstrip("0").rstrip(".") if "." in decimals else decimals


def format_share(part: float) -> str:
    """Return a share as a percentage; only 0 reads as 0 % and only 1 as 100 %.

    >>> [format_share(x) for x in (0, 0.00001, 0.0512, 0.873, 0.99999, 1)]
    ['0%', 'under 0.1%', '5.1%', '87.3%', 'over 99.9%', '100%']
    """
    if 0 < part < 0.001:
        return "under 0.1%"
    if 0.999 < part < 1:
        return "over 99.9%"
    return f"{_trim_zeros(f'{100 * part:.1f}')}%"


def format_percent(part: float) -> str:
    """Return a share as a percentage with two decimals, for columns of numbers.

    >>> [format_percent(x) for x in (0, 0.00001, 0.0512, 1)]
    ['0.00%', 'under 0.01%', '5.12%', '100.00%']
    """
    return "under 0.01%" if 0 < part < 0.00005 else f"{100 * part:.2f}%"


def format_value(value: float | str) -> str:
    """Return a number with four significant digits, or a date unchanged.

    >>> format_value(52.6141), format_value("2025-07-05")
    ('52.61', '2025-07-05')
    """
    return make_visible(value) if isinstance(value, str) else format_number(value)


def format_signed(number: float, always: bool = False) -> str:
    """Return a number with three decimals and a minus sign; with `always`, also a plus sign.

    >>> format_signed(0.5), format_signed(0.25, always=True), format_signed(-0.0001)
    ('0.500', '+0.250', '0.000')
    """
    rounded = round(number, 3) + 0.0
    sign = "+" if always and rounded > 0 else ""
    return sign + f"{rounded:.3f}".replace("-", MINUS)


def keep_equations_whole(text: str) -> str:
    """Return a text with no-break spaces in equations such as k = 5."""
    return text.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")


def format_distinct(required: float, value: float, digits: int = 4) -> tuple[str, str]:
    """Return two numbers with enough digits to see that they differ.

    >>> format_distinct(0.2, 0.2000004), format_distinct(5, 5)
    (('0.2', '0.2000004'), ('5', '5'))
    """
    if value == math.inf:  # of a promise that fails
        return format_number(required, digits), INFINITY
    first, second = format_number(required, digits), format_number(value, digits)
    if first != second or required == value or digits >= 17:
        return first, second
    return format_distinct(required, value, digits + 1)


def make_visible(label: str) -> str:
    r"""Return a label with visible characters only: control characters as pictures, invalid ones as �.

    >>> make_visible("a\tb\x00"), make_visible(""), make_visible("  ")
    ('a␉b␀', '(empty)', '␠␠')
    """
    if not label:
        return "(empty)"
    if label.isspace():
        label = label.replace(" ", "␠")
    return "".join(map(_make_character_visible, label))


def _make_character_visible(character: str) -> str:
    code = ord(character)
    if code < 32:
        return chr(0x2400 + code)
    if code == 127:
        return "␡"
    if 0x80 <= code < 0xA0 or code in (0xFFFE, 0xFFFF):  # control characters, and characters that XML forbids
        return "�"
    # surrogates cannot be encoded, direction marks would reorder the text around them, and zero-width characters hide;
    # but some scripts and emoji need joiners
    return "�" if unicodedata.category(character) in INVISIBLE_CATEGORIES and character not in JOINERS else character


INVISIBLE_CATEGORIES = frozenset({"Cs", "Cf", "Zl", "Zp"})
JOINERS = frozenset({"\N{ZERO WIDTH JOINER}", "\N{ZERO WIDTH NON-JOINER}"})


def measure_text(label: str) -> int:
    """Return the width of a label in columns of text; East Asian characters take two."""
    return sum(map(_measure_character, label))


def shorten(label: str, width: int) -> str:
    """Return a label cut to a width in columns of text.

    >>> shorten("Married-civ-spouse", 12), shorten("既婚・配偶者あり", 8)
    ('Married-civ…', '既婚・…')
    """
    if measure_text(label) <= width:
        return label
    length, used = 0, 1  # the ellipsis takes one
    while used + _measure_character(label[length]) <= width:
        used += _measure_character(label[length])
        length += 1
    return label[:length] + "…"


def _measure_character(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def summarize_loss(measures: Mapping[str, Any]) -> str:
    """Return how many columns were removed and how much the others lost; empty if every column is released.

    >>> loss = {"removed_columns": 25, "overall": 0.004, "by_column": dict.fromkeys("abcdef", 0.004)}
    >>> summarize_loss({"columns": 31, "loss": loss})
    '25 of 31 columns removed; 0.4% of the information in the other 6 lost'
    """
    loss, columns = measures["loss"], measures["columns"]
    removed, lost = loss["removed_columns"], loss["overall"]
    if not removed:
        return ""
    text = f"{format_count(removed)} of {plural(columns, 'column')} removed"
    if lost is None:
        return text
    measured, others = len(loss["by_column"]), f"the other {format_count(columns - removed)}"
    if measured == columns - removed:
        return f"{text}; {format_share(lost)} of the information in {others} lost"
    return f"{text}; the {plural(measured, 'quasi-identifier')} among {others} lost {format_share(lost)}"


MAX_MOVES_IN_LINE = 3  # of a column, the largest; the internal report has more


def describe_shift(name: str, shift: Mapping[str, Any], *, show_values: bool) -> str:
    """Return a line about what moved in a column; only with `show_values` it names categories and quantiles.

    >>> moves = [{"value": "CH", "before": 0.72, "after": 0.96}, {"value": "DE", "before": 0.05, "after": 0.0}]
    >>> shift = {"vanished": 1, "moved": 1, "most": 0.24, "moves": moves}
    >>> describe_shift("nationality", shift, show_values=False)
    'nationality: 1 category vanished, 1 moved, the largest move is 24 points'
    >>> describe_shift("nationality", shift, show_values=True)
    'nationality: CH 72 -> 96 %, DE 5 -> 0 %'
    """
    moves, vanished, moved = shift["moves"], shift["vanished"], shift["moved"]
    if show_values:
        more = vanished + moved - MAX_MOVES_IN_LINE
        parts = [*map(_describe_move, moves[:MAX_MOVES_IN_LINE]), *([f"{format_count(more)} more"] if more > 0 else [])]
        return f"{make_visible(name)}: {', '.join(parts)}"
    if "quantile" in moves[0]:
        size = f"{format_number(shift['most'], 2)} standard deviations"
        return f"{make_visible(name)}: {plural(moved, 'quantile')} moved, the largest move is {size}"
    gone = [f"{plural(vanished, 'category', 'categories')} vanished"] if vanished else []
    noun = "" if gone else " category" if moved == 1 else " categories"
    parts = [*gone, *([f"{format_count(moved)}{noun} moved"] if moved else [])]
    return f"{make_visible(name)}: {', '.join(parts)}, the largest move is {_format_points(shift['most'])} points"


def _describe_move(move: Mapping[str, Any]) -> str:
    if "quantile" in move:
        return f"{100 * move['quantile']:g} % quantile {format_value(move['before'])} -> {format_value(move['after'])}"
    value = "(missing)" if move["value"] is None else shorten(make_visible(move["value"]), 40)
    return f"{value} {_format_points(move['before'])} -> {_format_points(move['after'])} %"


def _format_points(share: float) -> str:
    """Return a share in percent without the sign, with one decimal below 10."""
    return _trim_zeros(f"{100 * share:.{0 if share >= 0.0995 else 1}f}")
