"""Numbers and labels as a reader meets them: thousands separators, sensible digits, nothing invisible.

A label comes from the data and may hold anything: control characters are drawn as their pictures, so that they neither
vanish nor break the drawing, and a label too long for its place ends in an ellipsis.
"""

from __future__ import annotations

import math
import unicodedata

from kinfold.errors import plural

__all__ = ["apart", "count", "percent", "plural", "quantity", "share", "shortened", "signed", "told", "visible"]

NOTHING = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"
TIMES = "\N{MULTIPLICATION SIGN}"
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def count(number: int | None) -> str:
    """Return a whole number with thousands separators, a dash where there is none.

    >>> count(1234567)
    '1,234,567'
    """
    return NOTHING if number is None else f"{number:,}"


def quantity(number: float | None, digits: int = 4) -> str:
    """Return a number with so many significant digits, and never fewer than its whole part has; a dash for none.

    Very small and very large ones are written with a power of ten.

    >>> [quantity(x) for x in (5, 0.056921, 14.156789, 123456.789, 0.0)]
    ['5', '0.05692', '14.16', '123,457', '0']
    """
    if number is None or not math.isfinite(number):
        return NOTHING
    if number == 0:
        return "0"
    size = math.floor(math.log10(abs(number)))
    if size < -4 or size > 14:
        mantissa, exponent = f"{number:.{digits - 1}e}".split("e")
        text = f"{_trimmed(mantissa)} {TIMES} 10{str(int(exponent)).translate(SUPERSCRIPT)}"
    else:
        text = _trimmed(f"{number:,.{max(0, digits - 1 - size)}f}")
    return text.replace("-", MINUS, 1)


def _trimmed(decimals: str) -> str:
    return decimals.rstrip("0").rstrip(".") if "." in decimals else decimals


def share(part: float) -> str:
    """Return a share as a percentage; what is not nothing never reads as 0 %, nor what is not all as 100 %.

    >>> [share(x) for x in (0, 0.00001, 0.0512, 0.873, 0.99999, 1)]
    ['0%', 'under 0.1%', '5.1%', '87.3%', 'over 99.9%', '100%']
    """
    if 0 < part < 0.001:
        return "under 0.1%"
    if 0.999 < part < 1:
        return "over 99.9%"
    return f"{_trimmed(f'{100 * part:.1f}')}%"


def percent(part: float) -> str:
    """Return a share as a percentage with two decimals, for numbers that stand below each other.

    >>> [percent(x) for x in (0, 0.00001, 0.0512, 1)]
    ['0.00%', 'under 0.01%', '5.12%', '100.00%']
    """
    return "under 0.01%" if 0 < part < 0.00005 else f"{100 * part:.2f}%"


def told(value: float | str) -> str:
    """Return a number with four digits that count, a date as it is.

    >>> told(52.6141), told("2025-07-05")
    ('52.61', '2025-07-05')
    """
    return visible(value) if isinstance(value, str) else quantity(value)


def signed(number: float, always: bool = False) -> str:
    """Return a number with three decimals and a real minus, or a sign in any case.

    >>> signed(0.5), signed(0.25, always=True), signed(-0.0001)
    ('0.500', '+0.250', '0.000')
    """
    rounded = round(number, 3) + 0.0
    sign = "+" if always and rounded > 0 else ""
    return sign + f"{rounded:.3f}".replace("-", MINUS)


def unbroken(text: str) -> str:
    """Return a text whose equations stay on one line: k = 5 is not torn apart."""
    return text.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")


def apart(asked: float, found: float, digits: int = 4) -> tuple[str, str]:
    """Return two numbers with enough digits to be told apart where they differ.

    >>> apart(0.2, 0.2000004), apart(5, 5)
    (('0.2', '0.2000004'), ('5', '5'))
    """
    first, second = quantity(asked, digits), quantity(found, digits)
    if first != second or asked == found or digits >= 17:
        return first, second
    return apart(asked, found, digits + 1)


def visible(label: str) -> str:
    r"""Return a label in which every character can be seen: control characters as pictures, broken ones as �.

    >>> visible("a\tb\x00"), visible(""), visible("  ")
    ('a␉b␀', '(empty)', '␠␠')
    """
    if not label:
        return "(empty)"
    if label.isspace():
        label = label.replace(" ", "␠")
    return "".join(map(_visible, label))


def _visible(character: str) -> str:
    code = ord(character)
    if code < 32:
        return chr(0x2400 + code)
    if code == 127:
        return "␡"
    if 0x80 <= code < 0xA0 or code in (0xFFFE, 0xFFFF):  # controls, and what XML refuses
        return "�"
    # surrogates cannot be written, marks that turn the direction of text would turn their neighbours too, and what has
    # no width hides; but some scripts and pictures are written with joiners
    return "�" if unicodedata.category(character) in UNSEEN and character not in JOINERS else character


UNSEEN = frozenset({"Cs", "Cf", "Zl", "Zp"})
JOINERS = frozenset({"\N{ZERO WIDTH JOINER}", "\N{ZERO WIDTH NON-JOINER}"})


def text_width(label: str) -> int:
    """Return how many columns of text a label takes: East Asian characters take two."""
    return sum(map(_columns, label))


def shortened(label: str, width: int) -> str:
    """Return a label that fits so many columns of text.

    >>> shortened("Married-civ-spouse", 12), shortened("既婚・配偶者あり", 8)
    ('Married-civ…', '既婚・…')
    """
    if text_width(label) <= width:
        return label
    kept, used = 0, 1  # the ellipsis takes one
    while used + _columns(label[kept]) <= width:
        used += _columns(label[kept])
        kept += 1
    return label[:kept] + "…"


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
