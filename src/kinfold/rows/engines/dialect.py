"""How a CSV file is written: its encoding, its separator and its column names, found out from the file itself.

encoding    UTF-8, with or without a byte-order mark; UTF-16 with one; else Windows-1252, where every byte of the
            file is a character of it. Anything else is refused rather than guessed; an encoding that is declared
            must fit every byte, and UTF-8 is not taken for another one.
separator   the one of , ; tab | that gives the most records the same number of fields as the header (more than one),
            unless it is declared
header      the first line that holds something, unless it is declared: another line, or none
quoting     double quotes, doubled inside; fields may hold line breaks
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from kinfold.errors import DataError
from kinfold.rows.column_names import check_names
from kinfold.rows.header import no_header, values_in
from kinfold.rows.reading_limits import check_columns
from kinfold.rows.source_form import Form

SEPARATORS = (",", ";", "\t", "|")
SAMPLE = 1 << 18  # bytes that the separator and the header are judged by
SAMPLE_ROWS = 1000  # rows of it: as many as tell names from values, read in a moment
CHUNK = 1 << 20  # bytes or characters held at a time
NAMES = {"\t": "tab", " ": "space"}
LINES = "count lines from 1: source.header (--header) is that of the names, source.skip (--skip) the number left out"


@dataclass(frozen=True)
class Dialect:
    """The encoding, the separator and the column names of a CSV file."""

    encoding: str
    separator: str
    header: tuple[str, ...]
    blank: int = 0  # empty lines before the header, or before the first record where there is none
    above: int = 0  # lines before these that are no part of the table
    headed: bool = True  # whether the names stand in the file
    doubtful: tuple[int, ...] = ()  # places where the first line looks like a record


def find_dialect(path: Path, form: Form, name: str) -> Dialect:
    """Look at a file, called `name`, and say how to read it, or why it cannot be read; some of it may be declared."""
    with path.open("rb") as file:
        head = file.read(SAMPLE)
    if not head.strip(b"\xef\xbb\xbf \t\r\n"):
        raise DataError(f"'{name}' is empty", fix="give a table with a header and at least one row")
    encoding = find_encoding(path, head, form.encoding, name)
    text = _below(codecs.getincrementaldecoder(encoding)().decode(head), form.above, name)
    found = max(SEPARATORS, key=lambda mark: _agreement(text, mark))
    separator = form.separator or found
    try:
        rows = _rows(text, separator)
        blank, header = next((number, row) for number, row in enumerate(rows) if row)
    except csv.Error:
        what = f"'{name}': the header cannot be read: a quote is open, or a name is very long"
        raise DataError(what, fix="mend the first line") from None
    if form.header and blank:
        raise DataError(f"'{name}': line {form.header}, where source.header says the names are, is empty", fix=LINES)
    if form.declared and len(header) == 1 and separator != found and _agreement(text, found)[1] > 1:
        what = f"'{name}': no {NAMES.get(separator, separator)} stands in the header, as source.separator says"
        raise DataError(what, fix=f"say --separator {NAMES.get(found, repr(found))}, or leave it out")
    if form.header == 0:
        return Dialect(encoding, separator, numbered(len(header)), blank, form.above, headed=False)
    doubtful = check_header(header, _sampled(rows, cut=len(head) == SAMPLE), name)
    return Dialect(encoding, separator, tuple(header), blank, form.above, doubtful=() if form.header else doubtful)


def numbered(columns: int) -> tuple[str, ...]:
    """Return names for columns that have none.

    >>> numbered(2)
    ('column1', 'column2')
    """
    return tuple(f"column{place}" for place in range(1, columns + 1))


def _below(text: str, lines: int, name: str) -> str:
    """Return what stands below some lines, whatever they hold."""
    ends = re.finditer("\r\n|\r|\n", text)
    end = 0 if lines == 0 else next((each.end() for each in islice(ends, lines - 1, None)), len(text))
    if not text[end:].strip():
        raise DataError(f"'{name}': no table begins below line {lines} of its first {SAMPLE >> 10} KB", fix=LINES)
    return text[end:]


def check_header(header: Sequence[str], rows: Sequence[Sequence[str]], name: str) -> tuple[int, ...]:
    """Refuse names that are missing or shared; return where they look like a record, which is not quoted."""
    check_columns(len(header), f"'{name}'")
    doubtful = values_in(header, rows)
    try:
        check_names(header, f"'{name}'")
    except DataError as error:
        if doubtful:
            raise no_header(doubtful) from None
        other = "or say which line has the names: source.header (--header)"
        raise DataError([replace(each, fix=f"{each.fix}, {other}") for each in error.problems]) from None
    return doubtful


def find_encoding(path: Path, head: bytes, declared: str | None, name: str) -> str:
    """Return the encoding by which every byte of the file is text."""
    if declared is not None:
        return _declared(path, declared, name)
    marked = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    unicode = "utf-8-sig" if head.startswith(codecs.BOM_UTF8) else "utf-8"
    for encoding in ["utf-16"] if marked else [unicode, "cp1252"]:
        if _decodes(path, encoding):
            return encoding
    raise DataError(
        f"'{name}' is not text in UTF-8, UTF-16 or Windows-1252",
        fix="say how it is written (source.encoding, --encoding), save it as UTF-8, or check that it is a CSV file",
    )


def _declared(path: Path, declared: str, name: str) -> str:
    """Return a declared encoding, if it can be that; bytes of UTF-8 would pass for letters of many others."""
    known = codecs.lookup(declared).name
    encoding = "utf-8-sig" if known == "utf-8" else known
    if not _decodes(path, encoding):
        raise DataError(f"'{name}' is not text in {declared}, as source.encoding says", fix="name its encoding")
    if not known.startswith("utf") and not _decodes(path, "ascii") and _decodes(path, "utf-8-sig"):
        what = f"'{name}' is text in UTF-8, not in {declared}, as source.encoding says"
        raise DataError(what, fix="say --encoding utf-8, or leave it out")
    return encoding


def _decodes(path: Path, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK):
                if "\0" in decoder.decode(chunk):
                    return False
            decoder.decode(b"", final=True)
    except UnicodeError:
        return False
    return True


def transcode(path: Path, dialect: Dialect, copy: Path) -> None:
    """Write a UTF-8 copy of a file without the lines above its table, which may hold anything."""
    with (
        path.open(encoding=dialect.encoding, newline="") as source,
        copy.open("w", encoding="utf-8", newline="") as target,
    ):
        for _ in range(dialect.above):
            source.readline()
        while chunk := source.read(CHUNK):
            target.write(chunk)


def _rows(text: str, separator: str) -> Iterator[list[str]]:
    return csv.reader(io.StringIO(text, newline=""), delimiter=separator)


def _sampled(rows: Iterator[list[str]], *, cut: bool) -> list[list[str]]:
    """Return the first records below the header; where the sample ends within the file, its last record may be cut."""
    found: list[list[str]] = []
    with suppress(csv.Error):  # the engine says which line is broken
        found.extend(islice((row for row in rows if row), SAMPLE_ROWS))
    return found[:-1] if cut and len(found) < SAMPLE_ROWS else found


def _agreement(text: str, separator: str) -> tuple[float, int]:
    """Share of the sample's records with as many fields as the header, and that number; nothing for one field."""
    try:
        widths = [len(row) for row in _rows(text, separator) if row]
    except csv.Error:
        return (0.0, 0)
    fields, widths = widths[0], widths[:-1] or widths  # the last record may be cut
    return (Counter(widths)[fields] / len(widths), fields) if fields > 1 else (0.0, 0)
