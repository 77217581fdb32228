"""Formats of dates that are found out by themselves, the more particular before the more general.

Zeros, a Z and offsets that every value has are letters of the format: a date with `T00:00:00.000Z` behind it stays a
date, and is written so again. Years of two digits are never taken for granted, nor whether day or month comes first.
"""

from __future__ import annotations

import re

NUMERIC = ("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y")
WORDED = ("%d-%b-%Y", "%d %b %Y", "%d%b%Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y")
SHORT = ("%d.%m.%y", "%d/%m/%y", "%m/%d/%y")  # of which century?
ENDS = ("", ".000", "Z", ".000Z", ".%f", ".%fZ", "%z", ".%f%z")

_midnights = tuple(f"%Y-%m-%d{gap}00:00:00{end}" for gap in " T" for end in ("", ".000", "Z", ".000Z"))
_iso = tuple(f"%Y-%m-%d{gap}%H:%M:%S{end}" for gap in " T" for end in ENDS)
_minutes = ("%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%MZ", "%Y-%m-%dT%H:%M%z", "%Y-%m-%dZ")
_times = tuple(f"{day} {time}" for day in NUMERIC[1:] for time in ("%H:%M:%S", "%H:%M"))

FORMATS = (*NUMERIC, *WORDED, *_midnights, *_iso, *_minutes, *_times, *SHORT)
DIRECTIVE = re.compile("%-?.")
LIKE = (
    r"[0-9]{1,4}[-./ ]?([0-9]{1,2}|[A-Za-z]{3,9})[-./ ]?,?[0-9]{2,4}([ T].*|Z)?"
    r"|[A-Za-z]{3,9} [0-9]{1,2}, [0-9]{4}"
)


def marks(form: str) -> frozenset[str]:
    """Return the letters and signs that every value of a format holds; blanks stand for any blank, and are left out.

    >>> sorted(marks("%d.%m.%Y %H:%M")), sorted(marks("%Y-%m-%dT00:00:00Z")), sorted(marks("%d%b%Y"))
    (['.', ':'], ['-', ':', 'T', 'Z'], [])
    """
    return frozenset(DIRECTIVE.sub("", form)) - frozenset(" 0123456789")


def has_time(form: str | None) -> bool:
    """Whether a format tells the time of a day.

    >>> has_time("%Y-%m-%dT%H:%M:%SZ"), has_time("%Y-%m-%dT00:00:00Z")
    (True, False)
    """
    return form is not None and ("%H" in form or "%I" in form)


def has_offset(form: str | None) -> bool:
    """Whether values of a format are written with their own offset from UTC."""
    return form is not None and form.endswith("%z")


def turned(form: str) -> str:
    """Return a format with day and month exchanged.

    >>> turned("%d/%m/%Y")
    '%m/%d/%Y'
    """
    return form.replace("%d", "%!").replace("%m", "%d").replace("%!", "%m")


def choose(fitting: tuple[str, ...], declared: tuple[str, ...] = ()) -> str | None:
    """Return the format to read by, of those that fit all values: a declared one, or the first that leaves no doubt.

    >>> choose(("%d/%m/%Y",)), choose(("%d/%m/%Y", "%m/%d/%Y")), choose(("%d/%m/%Y", "%m/%d/%Y"), ("%m/%d/%Y",))
    ('%d/%m/%Y', None, '%m/%d/%Y')
    """
    for form in declared:
        if form in fitting:
            return form
    sure = [form for form in fitting if turned(form) == form or turned(form) not in fitting]
    return next((form for form in sure if "%y" not in form), None)
