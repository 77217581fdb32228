"""How a table is written: the words for missing, the marks in its numbers, its dates, and how a file holds it.

A table is read into plain text first: words for missing become null, and a column all of whose values are numbers
written with the marks is held with a point and without marks for thousands. A CSV file is written with the decimal
mark again; thousands are never marked in a release. So nothing past reading knows of marks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

SPACES = " \u00a0\u2009\u202f"  # a space for thousands may be one that does not break
APOSTROPHES = "'\u2019"
EXPONENT = "([eE][+-]?[0-9]{1,9})?"


@dataclass(frozen=True)
class Form:
    """What `[source]` says, and where it says nothing what was found out; None is still to be found out."""

    declared: ClassVar[bool] = True  # by somebody, who may be wrong

    na: tuple[str, ...] = ()
    decimal: str = "."
    thousands: str = ""
    dates: tuple[str, ...] = ()
    encoding: str | None = None
    separator: str | None = None
    sheet: str | int | None = None
    header: int | None = None  # the line, or the row of a sheet, that has the names: the first one; 0: none has them
    skip: int = 0  # lines above the table
    parts: bool = False  # a path may be a folder, or a pattern of files

    def of_another(self) -> Form:
        """Return how the values of another file are written that was made from this one, or stands beside it."""
        return replace(self, encoding=None, separator=None, sheet=None, header=None, skip=0, parts=False)

    @property
    def above(self) -> int:
        """How many lines are above the header where its line is declared, else above the table."""
        return self.header - 1 if self.header else self.skip

    @property
    def marked(self) -> bool:
        """Whether numbers are written with other marks than a decimal point."""
        return self.decimal != "." or bool(self.thousands)

    @property
    def between_fields(self) -> str:
        """What stands between two fields where the table is written as CSV; not what is inside numbers."""
        return self.separator or (";" if self.decimal == "," else ",")

    def to_dict(self) -> dict[str, Any]:
        """Return what is worth saying, as the keys of `[source]`."""
        one = self.dates[0] if len(self.dates) == 1 else list(self.dates)
        told = {"separator": self.separator, "encoding": self.encoding, "sheet": self.sheet, "na": list(self.na)}
        told |= {"decimal": self.decimal if self.decimal != "." else None, "thousands": self.thousands, "dates": one}
        told |= {"header": self.header, "skip": self.skip or None, "parts": self.parts or None}
        return {key: value for key, value in told.items() if value or value == 0}


class ReleasedForm(Form):
    """How a file that we wrote is written: what stands between its fields is known, whatever its fields hold."""

    declared = False


PLAIN = Form()


def alike(mark: str) -> str:
    """Return the characters that a mark may be written as, as a class of a pattern.

    >>> alike("."), alike(" ") == f"[{SPACES}]"
    ('[.]', True)
    """
    return f"[{next((group for group in (SPACES, APOSTROPHES) if mark and mark in group), mark)}]"


def pattern(decimal: str = ".", thousands: str = "") -> str:
    """Return the pattern of numbers written with these marks, for Python and for a database that knows RE2.

    >>> import re
    >>> marked = re.compile(pattern(",", "."))
    >>> [bool(marked.fullmatch(text)) for text in ("1.234,5", "1234,5", "1.5", "-,5", "1.234.567", "1e3")]
    [True, True, False, True, True, True]
    """
    point, before = alike(decimal), "[0-9]+"
    if thousands:
        mark = alike(thousands)
        before = f"([0-9]{{1,3}}({mark}[0-9]{{2,3}})*{mark}[0-9]{{3}}|[0-9]+)"  # 12,34,567 is how India groups
    return f"[+-]?({before}({point}[0-9]*)?|{point}[0-9]+){EXPONENT}"
