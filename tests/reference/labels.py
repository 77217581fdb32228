"""What a released label says of the original value: read with fractions, whole nanoseconds and Python's calendar."""

import re
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

NUMBER = r"-?[0-9.]+(?:e[+-]?[0-9]+)?"
MOMENT = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?: ([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?)?"
    r"(?:([+-])([0-9]{2}):([0-9]{2})(?::([0-9]{2}))?)?"
)
MICRO = timedelta(microseconds=1)
EPOCH = datetime(1970, 1, 1)


def has_number(label: str, value: Fraction) -> bool:
    """Whether a label is the number, or an interval that has it."""
    if label == "*":
        return True
    if found := re.fullmatch(rf"\[({NUMBER}), ({NUMBER})([])])", label):
        low, high = Fraction(found[1]), Fraction(found[2])
        return low <= value < high or (found[3] == "]" and value == high)
    if found := re.fullmatch(rf"under ({NUMBER})", label):
        return value < Fraction(found[1])
    if found := re.fullmatch(rf"({NUMBER})\+", label):
        return value >= Fraction(found[1])
    if found := re.fullmatch(r"(-?[0-9]+)-(-?[0-9]+)", label):
        return int(found[1]) <= value <= int(found[2]) and value.denominator == 1
    return Fraction(label) == value


def nanoseconds(text: str) -> int:
    """A moment in nanoseconds since the year 1, UTC."""
    found = MOMENT.fullmatch(text)
    assert found is not None, text
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    seconds = (date(year, month, day).toordinal() * 24 + hour) * 3600 + minute * 60 + second
    if found[8]:
        offset = int(found[9]) * 3600 + int(found[10]) * 60 + int(found[11] or 0)
        seconds += offset if found[8] == "-" else -offset
    return seconds * 10**9 + int((found[7] or "").ljust(9, "0"))


def has_moment(label: str, value: int, local: date) -> bool:
    """Whether a label is the moment, a range that has it, or names the month, quarter, year or decade of its day."""
    if label == "*":
        return True
    if found := re.fullmatch(r"\[(.+), (.+)\]", label):
        return nanoseconds(found[1]) <= value <= nanoseconds(found[2])
    if found := re.fullmatch(r"([0-9]{3})0s", label):
        return f"{local.year:04}"[:3] == found[1]
    if found := re.fullmatch(r"([0-9]{4})-([0-9]{4,5})", label):
        return int(found[1]) <= local.year <= int(found[2])
    if found := re.fullmatch(r"([0-9]{4})-Q([1-4])", label):
        return (local.year, (local.month - 1) // 3 + 1) == (int(found[1]), int(found[2]))
    if re.fullmatch(r"[0-9]{4}(-[0-9]{2}){0,2}", label):
        return f"{local.year:04}-{local.month:02}-{local.day:02}".startswith(label)
    return nanoseconds(label) == value


def has_text(label: str, value: str) -> bool:
    """Whether a label is a text with some of its characters hidden."""
    return label == "*" or (len(label) == len(value) and all(a in (b, "*") for a, b in zip(label, value, strict=True)))


def fraction(value: Any) -> Fraction:
    """The number that a value is; a double is what its shortest text says."""
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


def ticks(moment: datetime) -> int:
    """Nanoseconds since the year 1 of a moment in UTC."""
    return (moment - EPOCH) // MICRO * 1000 + date(1970, 1, 1).toordinal() * 86400 * 10**9
