"""The XML inside an Excel workbook: sheets, texts, number formats, and the cells of a sheet as text, by column.

    numbers      the double that a spreadsheet computes with, in its shortest form, without an exponent
    timestamps   2024-01-31 12:00:00, to the millisecond, by the format of the cell; a time of day is 12:00:00
    formulas     the values that were saved with them

One pass over the XML also counts formulas without a value, errors, durations, numbers with more digits than a double
holds, hidden rows and columns, and merged cells. XML is parsed in chunks, and elements are compared without the prefix
of their namespace. A document type is refused, because entities could expand a small file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import IO, Any, TypeAlias
from xml.parsers import expat
from zipfile import ZipFile

from kinfold.tables.readers.files import READ_SIZE
from kinfold.tables.schema import MAX_EXACT_INTEGER, SECONDS_PER_DAY

Attributes: TypeAlias = dict[str, str]

AS_NUMBER, AS_DATE, AS_TIME, AS_DURATION = range(4)  # how a number format shows a number; -5: as 00000
BUILT_IN_FORMATS = dict.fromkeys([*range(14, 18), 22, *range(27, 32), 36, *range(50, 55), 57, 58], AS_DATE)
BUILT_IN_FORMATS |= dict.fromkeys([18, 19, 20, 21, 32, 33, 34, 35, 45, 47, 55, 56], AS_TIME) | {46: AS_DURATION}
LITERAL_TEXT = re.compile(r'"[^"]*"|\\.|[_*].|;.*', re.DOTALL)
ESCAPED_CHARACTER = re.compile("_x([0-9A-Fa-f]{4})_")


@dataclass(frozen=True)
class Workbook:
    """What all sheets of a workbook share; `sheets` maps a title to its part of the archive."""

    path: Path
    sheets: dict[str, str] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()
    styles: tuple[int, ...] = ()
    texts: tuple[str, ...] = ()
    computed: bool = True  # whether the saved values of formulas are current
    since_1904: bool = False  # dates count from 1904 instead of 1900

    def parse(self, title: str, start: Callable[[str, Attributes], Any], **handlers: Any) -> Iterator[None]:
        """Parse a sheet in chunks."""
        with ZipFile(self.path) as archive, archive.open(self.sheets[title]) as file:
            yield from _parse_xml(file, start, **handlers)


def open_workbook(path: Path) -> Workbook:
    """Read the parts that all sheets share."""
    with ZipFile(path) as archive:
        parts = {name.lower(): name for name in archive.namelist()}
        main = next((part for _, kind, part in _list_relationships(archive, parts, "") if kind == "officeDocument"), "")
        related = _list_relationships(archive, parts, main)
        by_kind = {kind: part for _, kind, part in related}
        sheets, settings = [], dict[str, Attributes]()
        for tag, attributes in _iterate_elements(archive, main):
            if tag == "sheet":
                sheets.append(attributes)
            settings[tag] = attributes
        targets = {identity: part for identity, kind, part in related if kind == "worksheet"}
        present = [sheet for sheet in sheets if _get_relationship_id(sheet) in targets]
        return Workbook(
            path,
            {sheet["name"]: targets[_get_relationship_id(sheet)] for sheet in present},
            tuple(sheet["name"] for sheet in present if sheet.get("state", "visible") != "visible"),
            tuple(_read_styles(archive, by_kind["styles"])) if "styles" in by_kind else (),
            tuple(_read_texts(archive, by_kind["sharedStrings"])) if "sharedStrings" in by_kind else (),
            not is_true(settings.get("calcPr", {}), "fullCalcOnLoad"),
            is_true(settings.get("workbookPr", {}), "date1904"),
        )


def is_true(attributes: Attributes, name: str) -> bool:
    """Whether a boolean attribute is true."""
    return attributes.get(name) in ("1", "true")


def unescape(text: str) -> str:
    """Return a text with the characters that XML cannot hold.

    >>> unescape("a_x0041_b")
    'aAb'
    """
    return ESCAPED_CHARACTER.sub(lambda match: chr(int(match[1], 16)), text) if "_x" in text else text


def detect_display(code: str) -> int:
    """Tell what a number is shown as by the code of its format.

    >>> [detect_display(code) for code in ("0.00", "yyyy-mm-dd", "h:mm", "mm:ss", "[h]:mm", '0 "days"', "[Red]General")]
    [0, 1, 2, 2, 3, 0, 0]
    >>> detect_display("00000")
    -5
    """
    if re.fullmatch("00+", code):
        return -len(code)
    plain = LITERAL_TEXT.sub("", code).lower()
    if re.search(r"\[(h+|m+|s+)\]", plain):
        return AS_DURATION
    plain = re.sub(r"\[[^]]*\]|general|standard", "", plain)
    if re.search("[hs]", plain) and not re.search("[yd]|mmm", plain):
        return AS_TIME
    return AS_DATE if re.search("[ydmhs]", plain) else AS_NUMBER


def _get_relationship_id(sheet: Attributes) -> str:
    return next((value for name, value in sheet.items() if name.rpartition(":")[2] == "id"), "")


def _list_relationships(archive: ZipFile, parts: dict[str, str], part: str) -> list[tuple[str, str, str]]:
    """Return the relationships of a part of the archive: (id, kind, target part)."""
    folder, _, file_name = part.rpartition("/")
    relationships = []
    for tag, each in _iterate_elements(archive, parts[f"{folder}/_rels/{file_name}.rels".lstrip("/").lower()]):
        target = each.get("Target", "")
        full = target[1:] if target.startswith("/") else f"{folder}/{target}".lstrip("/")
        if tag == "Relationship" and full.lower() in parts:
            relationships.append((each["Id"], each["Type"].rpartition("/")[2], parts[full.lower()]))
    return relationships


def _read_styles(archive: ZipFile, part: str) -> Iterator[int]:
    formats, inside = dict(BUILT_IN_FORMATS), False
    for tag, attributes in _iterate_elements(archive, part):
        if tag == "numFmt" and "numFmtId" in attributes:
            formats[int(attributes["numFmtId"])] = detect_display(attributes.get("formatCode", ""))
        elif tag in ("cellXfs", "cellStyleXfs", "cellStyles", "dxfs"):
            inside = tag == "cellXfs"
        elif tag == "xf" and inside:
            yield formats.get(int(attributes.get("numFmtId", 0)), AS_NUMBER)


def _read_texts(archive: ZipFile, part: str) -> list[str]:
    """Return the texts that cells refer to by number, without phonetic hints (rPh)."""
    texts: list[list[str]] = []
    inside = {"t": False, "rPh": False}

    def start(tag: str, _: Attributes) -> None:
        if tag == "si":
            texts.append([])
        elif tag in inside:
            inside[tag] = True

    def end(tag: str) -> None:
        inside[tag.rpartition(":")[2]] = False

    def read(text: str) -> None:
        if inside["t"] and not inside["rPh"]:
            texts[-1].append(text)

    with archive.open(part) as file:
        for _ in _parse_xml(file, start, EndElementHandler=end, CharacterDataHandler=read):
            pass
    return [unescape("".join(pieces)) for pieces in texts]


def _iterate_elements(archive: ZipFile, part: str) -> Iterator[tuple[str, Attributes]]:
    elements: list[tuple[str, Attributes]] = []
    with archive.open(part) as file:
        for _ in _parse_xml(file, lambda tag, attributes: elements.append((tag, attributes))):
            yield from elements
            elements.clear()


def _parse_xml(file: IO[bytes], start: Callable[[str, Attributes], Any], **handlers: Any) -> Iterator[None]:
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = lambda tag, attributes: start(tag.rpartition(":")[2], attributes)
    parser.StartDoctypeDeclHandler = _refuse_doctype
    for name, handler in handlers.items():
        setattr(parser, name, handler)
    while chunk := file.read(READ_SIZE):
        parser.Parse(chunk)
        yield
    parser.Parse(b"", True)
    yield


def _refuse_doctype(*_: Any) -> None:
    raise ValueError("a workbook has no document type")


MAX_EXACT_DIGITS = 15  # a double holds any number of so many digits
MAX_DOUBLE_DIGITS = 17  # so many digits identify a double
FALSE_LEAP_DAY = 60  # Excel counts 29 February 1900, which does not exist
DAYS_IN_FIRST_YEAR = 366  # a time of more than one day and less than this is a duration
MILLISECONDS_PER_DAY = 1000 * SECONDS_PER_DAY
MAX_SHEET_COLUMNS = 16_384  # by the file format


@dataclass
class ColumnCells:
    """The texts of a column with their rows, and counts of its cells."""

    rows: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    last_number: int = 0  # row of the last number
    uncomputed: int = 0  # formulas
    errors: int = 0
    long: int = 0  # numbers with more digits than a double holds
    rounded: int = 0  # whole numbers so large that a spreadsheet rounds them on entry
    widths: dict[int, int] = field(default_factory=dict)  # digits of numbers shown with leading zeros, by place
    codes: bool = False  # whether some have leading zeros
    moments: int = 0
    times: int = 0
    durations: int = 0
    impossible: int = 0  # numbers with a date format that are no dates
    hidden: bool = False

    def show_zeros(self) -> None:
        """Write whole numbers with the leading zeros that the sheet shows; not if one has a fraction or a sign."""
        if all(self.texts[place].isdigit() for place in self.widths):
            for place, width in self.widths.items():
                self.codes = self.codes or len(self.texts[place]) < width
                self.texts[place] = self.texts[place].zfill(width)


@dataclass
class SheetScan:
    """One pass over a sheet."""

    book: Workbook
    above: int = 0  # rows to skip
    columns: dict[int, ColumnCells] = field(default_factory=dict)  # by column number; only columns that are not empty
    hidden_rows: list[int] = field(default_factory=list)  # only rows that are not empty
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

    def scan(self, title: str) -> SheetScan:
        """Read every cell of a sheet."""
        for _ in self.book.parse(title, self.start, EndElementHandler=self.end, CharacterDataHandler=self.read):
            pass
        for place, column in self.columns.items():
            column.hidden = place in self.hidden_columns
            column.show_zeros()
        return self

    def is_empty(self, title: str) -> bool:
        """Whether a sheet is empty; reads up to the first value."""
        handlers = {"EndElementHandler": self.end, "CharacterDataHandler": self.read}
        return not any(self.columns for _ in self.book.parse(title, self.start, **handlers))

    def start(self, tag: str, attributes: Attributes) -> None:
        """Handle the start of an element."""
        if tag == "c":
            self.kind, self.style = attributes.get("t", "n"), int(attributes.get("s", 0))
            self.formula, self.inside = False, []
            self.place = get_column_number(attributes["r"]) if "r" in attributes else self.place + 1
        elif tag in ("v", "t"):  # a value, or an inline text
            self.reading = True
        elif tag == "f":
            self.formula = True
        elif tag == "rPh":  # a phonetic hint
            self.kind = "phonetic"
        elif tag == "row":
            self.row, self.place = int(attributes.get("r", self.row + 1)), 0
            self.row_hidden = is_true(attributes, "hidden") or attributes.get("ht") == "0"
        elif tag == "col" and (is_true(attributes, "hidden") or attributes.get("width") == "0"):
            self.hidden_columns |= {*range(int(attributes["min"]), min(int(attributes["max"]), MAX_SHEET_COLUMNS) + 1)}
        elif tag == "mergeCell" and (last := re.search("[0-9]+$", attributes.get("ref", ""))):
            self.merged.append(int(last[0]))

    def read(self, text: str) -> None:
        """Handle a piece of text."""
        if self.reading and self.kind != "phonetic":
            self.inside.append(text)

    def end(self, tag: str) -> None:
        """Handle the end of an element."""
        tag = tag.rpartition(":")[2]
        if tag in ("v", "t"):
            self.reading = False
        elif tag == "rPh":
            self.kind = "inlineStr"
        elif tag == "c" and (self.inside or self.formula) and self.row > self.above:
            self._add_cell("".join(self.inside))

    def _add_cell(self, text: str) -> None:
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
        if self.kind == "s":
            return self.book.texts[int(text)]
        if self.kind == "b":
            return "true" if text.strip() in ("1", "true") else "false"
        if self.kind == "d":
            column.moments += 1
            return text.strip().removesuffix("Z").replace("T", " ")
        if self.kind != "n":
            return unescape(text)
        display = self.book.styles[self.style] if self.style < len(self.book.styles) else AS_NUMBER
        if display > AS_NUMBER:
            return self._moment(column, float(text), display)
        number = _format_number(column, text)
        if display < AS_NUMBER:
            column.widths[len(column.texts)] = -display
        column.last_number = max(column.last_number, self.row)
        return number

    def _moment(self, column: ColumnCells, x: float, display: int) -> str:
        """Return a number of days as a timestamp or a time; count those that are neither."""
        if display == AS_DURATION or (display == AS_TIME and (x < 0 or 1 <= x < DAYS_IN_FIRST_YEAR)):
            column.durations += 1
            return "?"
        if display == AS_TIME and x < 1:
            column.times += 1
            milliseconds = min(round(x * MILLISECONDS_PER_DAY), MILLISECONDS_PER_DAY - 1)
            return _format_moment(datetime(1904, 1, 1) + timedelta(milliseconds=milliseconds))[11:]
        first = 0 if self.book.since_1904 else 1
        if x < first or (first and FALSE_LEAP_DAY <= x < FALSE_LEAP_DAY + 1) or x >= 2_958_466:  # the year 10000
            column.impossible += 1
            return "?"
        column.moments += 1
        day = datetime(1904, 1, 1) if self.book.since_1904 else datetime(1899, 12, 31 if x < FALSE_LEAP_DAY else 30)
        return _format_moment(day + timedelta(milliseconds=round(x * MILLISECONDS_PER_DAY)))


def _format_moment(moment: datetime) -> str:
    return moment.isoformat(" ", "milliseconds" if moment.microsecond else "seconds")


def _format_number(column: ColumnCells, text: str) -> str:
    """Return a number in its shortest form; count numbers with too many digits."""
    x = float(text)
    if len(text) > MAX_EXACT_DIGITS or "E" in text or "e" in text:
        digits = len(re.sub("[eE].*|[-+.]", "", text).strip("0 \n"))
        huge = abs(x) >= MAX_EXACT_INTEGER
        column.long += digits > (MAX_EXACT_DIGITS if huge else MAX_DOUBLE_DIGITS)
        column.rounded += huge and digits <= MAX_EXACT_DIGITS
    if x % 1 == 0:
        return str(int(x))
    short = repr(x)
    return format(Decimal(short), "f") if "e" in short else short


def get_column_number(cell: str) -> int:
    """Return the number of the column of a cell.

    >>> get_column_number("A1"), get_column_number("AB12")
    (1, 28)
    """
    number = 0
    for letter in cell.rstrip("0123456789"):
        number = number * 26 + ord(letter.upper()) - 64
    return number
