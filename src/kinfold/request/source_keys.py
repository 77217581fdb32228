"""`[source]`: how the table is written, checked key by key before anything is read."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from typing import Any

from kinfold.rows.source_form import APOSTROPHES, SPACES

SEPARATORS = ",;|:^~!#&\t "
NAMED = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";", "pipe": "|", "bar": "|"}
DATES = r"(%[dmYyHMSbBfpIjz]|[A-Za-z0-9 ./:,+-])+"
TURNED = r"(%Y(%m(%d(%H(%M(%S)?)?)?)?)?)"  # digits alone are ordered as they are written only this way round


def listed(value: Any) -> Any:
    """Take one text or number for a list of one."""
    return [value] if isinstance(value, str | int | float) else value


def separator(value: Any) -> Any:
    """Check what stands between two fields."""
    mark = NAMED.get(value.lower(), value) if isinstance(value, str) else value
    if mark is None or (isinstance(mark, str) and len(mark) == 1 and mark in SEPARATORS):
        return mark
    raise ValueError("a separator is one character: comma, semicolon, tab, |, :, ^, ~, !, #, & or space")


def thousands(value: Any) -> Any:
    """Check the mark between thousands."""
    mark = NAMED.get(value.lower(), value) if isinstance(value, str) else value
    if mark in ("", None) or (isinstance(mark, str) and len(mark) == 1 and mark in f".,_{APOSTROPHES}{SPACES}"):
        return mark or ""
    raise ValueError("thousands are marked by a point, a comma, an apostrophe, an underscore or a space")


def encoding(value: Any) -> Any:
    """Check that Python knows an encoding of text."""
    try:
        if value is None or (codecs.lookup(value)._is_text_encoding and codecs.lookup(value).incrementaldecoder):
            return value
    except (LookupError, TypeError, ValueError):
        pass
    raise ValueError("no such encoding; for example utf-8, latin-1, cp1252 or utf-16")


def dates(formats: Sequence[str]) -> Sequence[str]:
    """Check formats of dates: day, month and year are in them, and nothing that only one of two readers knows."""
    for form in formats:
        parts = re.findall("%(.)", form)
        year = "Y" in parts or "y" in parts
        day = {"d", "j"} & {*parts} or re.fullmatch(TURNED, form)
        if not re.fullmatch(DATES, form) or not year or not day or len({*parts}) < len(parts) or "%z" in form[:-2]:
            raise ValueError("dates are written as in %d.%m.%Y: %d day, %m month (%b Jan), %Y year, %H:%M:%S time")
        if form.replace("%", "").isalpha() and not re.fullmatch(TURNED, form):
            raise ValueError("dates that are digits alone are read in the order %Y%m%d only")
    return formats
