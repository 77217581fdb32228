"""The cells of a sheet, column by column, as text; and what they are in the file, where a text does not say it.

    numbers    as the double that a spreadsheet computes with, in its shortest form; without an exponent
    moments    2024-01-31 12:00:00, to the millisecond, by the format of the cell; times of a day 12:00:00
    formulas   the values that were saved with them

Counted are formulas without a value, errors, durations, numbers of more digits than a double holds, and what a person
does not see: hidden rows and columns, merged cells. One pass over the XML.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from kinfold.rows.engines.workbook_archive import ELAPSED, NUMBER, TIME, Attributes, Workbook, is_true, unescaped

DIGITS = 15  # that a double holds, whatever they are
MOST_DIGITS = 17  # that tell two doubles apart
EXACT = 2.0**53
LEAP = 60  # the 29th of February 1900, which there never was
FIRST_YEAR = 366  # days: a time beyond the first day that is no moment of a later year
MILLISECONDS = 86_400_000
MOST_COLUMNS = 16_384


@dataclass
class ColumnCells:
    """The texts of a column with their rows, and how many of its cells are what."""

    rows: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    last_number: int = 0  # its row
    uncomputed: int = 0  # formulas
    errors: int = 0
    long: int = 0  # numbers of more digits than a double holds
    rounded: int = 0  # whole numbers so large that a spreadsheet rounds them when they are typed
    moments: int = 0
    times: int = 0
    durations: int = 0
    impossible: int = 0  # numbers formatted as dates that are none
    hidden: bool = False


@dataclass
class SheetScan:
    """One pass over a sheet."""

    book: Workbook
    above: int = 0  # rows that are left out
    columns: dict[int, ColumnCells] = field(default_factory=dict)  # those that hold something, by their place
    hidden_rows: list[int] = field(default_factory=list)  # that hold something
    merged: list[int] = field(default_factory=list)  # last rows of merged cells
    hidden_columns: set[int] = field(default_factory=set)
    row: int = 0
    row_hidden: bool = False
    place: int = 0
    kind: str = "n"
    style: int = 0
    formula: bool = False
    reading: bool = False
    inside: list[str] = field(default_factory=list)  # pieces of the text of a cell

    def whole(self, title: str) -> SheetScan:
        """Read every cell of a sheet."""
        for _ in self.book.parse(title, self.start, EndElementHandler=self.end, CharacterDataHandler=self.read):
            pass
        for place, column in self.columns.items():
            column.hidden = place in self.hidden_columns
        return self

    def is_empty(self, title: str) -> bool:
        """Whether a sheet holds nothing; it is read up to the first value."""
        handlers = {"EndElementHandler": self.end, "CharacterDataHandler": self.read}
        return not any(self.columns for _ in self.book.parse(title, self.start, **handlers))

    def start(self, tag: str, attributes: Attributes) -> None:
        """Begin an element."""
        if tag == "c":
            self.kind, self.style = attributes.get("t", "n"), int(attributes.get("s", 0))
            self.formula, self.inside = False, []
            self.place = column_number(attributes["r"]) if "r" in attributes else self.place + 1
        elif tag in ("v", "t"):  # a value, or a text inside the cell
            self.reading = True
        elif tag == "f":
            self.formula = True
        elif tag == "rPh":  # how a text is pronounced
            self.kind = "pronounced"
        elif tag == "row":
            self.row, self.place = int(attributes.get("r", self.row + 1)), 0
            self.row_hidden = is_true(attributes, "hidden") or attributes.get("ht") == "0"
        elif tag == "col" and (is_true(attributes, "hidden") or attributes.get("width") == "0"):
            self.hidden_columns |= {*range(int(attributes["min"]), min(int(attributes["max"]), MOST_COLUMNS) + 1)}
        elif tag == "mergeCell" and (last := re.search("[0-9]+$", attributes.get("ref", ""))):
            self.merged.append(int(last[0]))

    def read(self, text: str) -> None:
        """Take in a piece of text."""
        if self.reading and self.kind != "pronounced":
            self.inside.append(text)

    def end(self, tag: str) -> None:
        """End an element."""
        tag = tag.rpartition(":")[2]
        if tag in ("v", "t"):
            self.reading = False
        elif tag == "rPh":
            self.kind = "inlineStr"
        elif tag == "c" and (self.inside or self.formula) and self.row > self.above:
            self._held("".join(self.inside))

    def _held(self, text: str) -> None:
        if self.place not in self.columns:
            self.columns[self.place] = ColumnCells()
        column = self.columns[self.place]
        if self.formula:
            column.uncomputed += not self.book.computed or (not text and self.kind != "str")
        if self.kind == "e":
            column.errors += 1
        elif value := self._value(column, text) if text else "":
            column.rows.append(self.row)
            column.texts.append(value)
            if self.row_hidden and self.row not in self.hidden_rows[-1:]:
                self.hidden_rows.append(self.row)

    def _value(self, column: ColumnCells, text: str) -> str:
        """Return the text of a cell that holds something."""
        if self.kind == "s":
            return self.book.texts[int(text)]
        if self.kind == "b":
            return "true" if text.strip() in ("1", "true") else "false"
        if self.kind == "d":
            column.moments += 1
            return text.strip().removesuffix("Z").replace("T", " ")
        if self.kind != "n":
            return unescaped(text)
        shown = self.book.styles[self.style] if self.style < len(self.book.styles) else NUMBER
        if shown != NUMBER:
            return self._moment(column, float(text), shown)
        column.last_number = max(column.last_number, self.row)
        return _number(column, text)

    def _moment(self, column: ColumnCells, x: float, shown: int) -> str:
        """Return a number of days as a moment or a time; what is neither is counted."""
        if shown == ELAPSED or (shown == TIME and (x < 0 or 1 <= x < FIRST_YEAR)):
            column.durations += 1
            return "?"
        if shown == TIME and x < 1:
            column.times += 1
            moment = datetime(1904, 1, 1) + timedelta(milliseconds=min(round(x * MILLISECONDS), MILLISECONDS - 1))
            return _written(moment)[11:]
        first = 0 if self.book.since_1904 else 1
        if x < first or (first and LEAP <= x < LEAP + 1) or x >= 2_958_466:  # the year 10000
            column.impossible += 1
            return "?"
        column.moments += 1
        day = datetime(1904, 1, 1) if self.book.since_1904 else datetime(1899, 12, 31 if x < LEAP else 30)
        return _written(day + timedelta(milliseconds=round(x * MILLISECONDS)))


def _written(moment: datetime) -> str:
    return moment.isoformat(" ", "milliseconds" if moment.microsecond else "seconds")


def _number(column: ColumnCells, text: str) -> str:
    """Return a number in its shortest form, and note how many digits it has."""
    x = float(text)
    if len(text) > DIGITS or "E" in text or "e" in text:
        digits = len(re.sub("[eE].*|[-+.]", "", text).strip("0 \n"))
        huge = abs(x) >= EXACT
        column.long += digits > (DIGITS if huge else MOST_DIGITS)
        column.rounded += huge and digits <= DIGITS
    if x % 1 == 0:
        return str(int(x))
    short = repr(x)
    return format(Decimal(short), "f") if "e" in short else short


def column_number(cell: str) -> int:
    """Return the number of the column of a cell.

    >>> column_number("A1"), column_number("AB12")
    (1, 28)
    """
    number = 0
    for letter in cell.rstrip("0123456789"):
        number = number * 26 + ord(letter.upper()) - 64
    return number
