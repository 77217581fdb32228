"""A workbook as the archive that it is: its sheets and which are hidden, its texts, what its styles make of numbers.

Every part is XML and is parsed a piece at a time. Elements are told without the prefix of their namespace. A document
type is refused, for entities could make a small file large.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, TypeAlias
from xml.parsers import expat
from zipfile import ZipFile

Attributes: TypeAlias = dict[str, str]

CHUNK = 1 << 20
NUMBER, DATE, TIME, ELAPSED = range(4)  # what a number is shown as
BUILT_IN = dict.fromkeys([*range(14, 18), 22, *range(27, 32), 36, *range(50, 55), 57, 58], DATE)
BUILT_IN |= dict.fromkeys([18, 19, 20, 21, 32, 33, 34, 35, 45, 47, 55, 56], TIME) | {46: ELAPSED}
LITERAL = re.compile(r'"[^"]*"|\\.|[_*].|;.*', re.DOTALL)
ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")


@dataclass(frozen=True)
class Workbook:
    """What all sheets of a workbook share; `sheets` has the part of the archive by title."""

    path: Path
    sheets: dict[str, str] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()
    styles: tuple[int, ...] = ()
    texts: tuple[str, ...] = ()
    computed: bool = True  # whether the values that are saved with formulas are current
    since_1904: bool = False  # the first day that numbers count from, else 1900

    def parse(self, title: str, start: Callable[[str, Attributes], Any], **handlers: Any) -> Iterator[None]:
        """Parse a sheet, a piece at a time."""
        with ZipFile(self.path) as archive, archive.open(self.sheets[title]) as file:
            yield from _parsed(file, start, **handlers)


def open_workbook(path: Path) -> Workbook:
    """Read what all sheets share."""
    with ZipFile(path) as archive:
        parts = {name.lower(): name for name in archive.namelist()}
        main = next((part for _, kind, part in _related(archive, parts, "") if kind == "officeDocument"), "")
        related = _related(archive, parts, main)
        by_kind = {kind: part for _, kind, part in related}
        sheets, about = [], dict[str, Attributes]()
        for tag, found in _elements(archive, main):
            if tag == "sheet":
                sheets.append(found)
            about[tag] = found
        targets = {identity: part for identity, kind, part in related if kind == "worksheet"}
        there = [sheet for sheet in sheets if _identity(sheet) in targets]
        return Workbook(
            path,
            {sheet["name"]: targets[_identity(sheet)] for sheet in there},
            tuple(sheet["name"] for sheet in there if sheet.get("state", "visible") != "visible"),
            tuple(_styles(archive, by_kind["styles"])) if "styles" in by_kind else (),
            tuple(_texts(archive, by_kind["sharedStrings"])) if "sharedStrings" in by_kind else (),
            not is_true(about.get("calcPr", {}), "fullCalcOnLoad"),
            is_true(about.get("workbookPr", {}), "date1904"),
        )


def is_true(attributes: Attributes, name: str) -> bool:
    """Whether an attribute says yes."""
    return attributes.get(name) in ("1", "true")


def unescaped(text: str) -> str:
    """Return a text with the characters that XML cannot hold.

    >>> unescaped("a_x0041_b")
    'aAb'
    """
    return ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if "_x" in text else text


def shown_as(code: str) -> int:
    """Tell what a number is shown as by the code of its format.

    >>> [shown_as(code) for code in ("0.00", "yyyy-mm-dd", "h:mm", "mm:ss", "[h]:mm", '0 "days"', "[Red]General")]
    [0, 1, 2, 2, 3, 0, 0]
    """
    plain = LITERAL.sub("", code).lower()
    if re.search(r"\[(h+|m+|s+)\]", plain):
        return ELAPSED
    plain = re.sub(r"\[[^]]*\]|general|standard", "", plain)
    if re.search("[hs]", plain) and not re.search("[yd]|mmm", plain):
        return TIME
    return DATE if re.search("[ydmhs]", plain) else NUMBER


def _identity(sheet: Attributes) -> str:
    return next((value for name, value in sheet.items() if name.rpartition(":")[2] == "id"), "")


def _related(archive: ZipFile, parts: dict[str, str], part: str) -> list[tuple[str, str, str]]:
    """Return what a part of the archive refers to: the name of each reference, its kind, and the part it is to."""
    folder, _, own = part.rpartition("/")
    found = []
    for tag, each in _elements(archive, parts[f"{folder}/_rels/{own}.rels".lstrip("/").lower()]):
        target = each.get("Target", "")
        whole = target[1:] if target.startswith("/") else f"{folder}/{target}".lstrip("/")
        if tag == "Relationship" and whole.lower() in parts:
            found.append((each["Id"], each["Type"].rpartition("/")[2], parts[whole.lower()]))
    return found


def _styles(archive: ZipFile, part: str) -> Iterator[int]:
    formats, inside = dict(BUILT_IN), False
    for tag, found in _elements(archive, part):
        if tag == "numFmt" and "numFmtId" in found:
            formats[int(found["numFmtId"])] = shown_as(found.get("formatCode", ""))
        elif tag in ("cellXfs", "cellStyleXfs", "cellStyles", "dxfs"):
            inside = tag == "cellXfs"
        elif tag == "xf" and inside:
            yield formats.get(int(found.get("numFmtId", 0)), NUMBER)


def _texts(archive: ZipFile, part: str) -> list[str]:
    """Return the texts that cells refer to by number; how they are pronounced is no part of them."""
    found: list[list[str]] = []
    inside = {"t": False, "rPh": False}

    def start(tag: str, _: Attributes) -> None:
        if tag == "si":
            found.append([])
        elif tag in inside:
            inside[tag] = True

    def end(tag: str) -> None:
        inside[tag.rpartition(":")[2]] = False

    def read(text: str) -> None:
        if inside["t"] and not inside["rPh"]:
            found[-1].append(text)

    with archive.open(part) as file:
        for _ in _parsed(file, start, EndElementHandler=end, CharacterDataHandler=read):
            pass
    return [unescaped("".join(pieces)) for pieces in found]


def _elements(archive: ZipFile, part: str) -> Iterator[tuple[str, Attributes]]:
    found: list[tuple[str, Attributes]] = []
    with archive.open(part) as file:
        for _ in _parsed(file, lambda tag, attributes: found.append((tag, attributes))):
            yield from found
            found.clear()


def _parsed(file: IO[bytes], start: Callable[[str, Attributes], Any], **handlers: Any) -> Iterator[None]:
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = lambda tag, attributes: start(tag.rpartition(":")[2], attributes)
    parser.StartDoctypeDeclHandler = _refuse
    for name, handler in handlers.items():
        setattr(parser, name, handler)
    while chunk := file.read(CHUNK):
        parser.Parse(chunk)
        yield
    parser.Parse(b"", True)
    yield


def _refuse(*_: Any) -> None:
    raise ValueError("a workbook has no document type of its own")
