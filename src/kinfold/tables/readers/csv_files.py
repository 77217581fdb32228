"""CSV files: encoding, separator and column names, detected from the file.

encoding    UTF-8, with or without a byte-order mark; UTF-16 with one; else Windows-1252 if every byte is a character
            of it. Anything else is refused. A declared encoding must fit every byte; UTF-8 declared as another
            encoding is refused.
separator   the one of , ; tab | with which the most records have as many fields as the header (more than one), or as
            each other below a title, unless it is declared
header      the first line that is not empty, unless another line or none is declared; see `layout` for other lines
quoting     double quotes, doubled inside a field; fields may contain line breaks

DuckDB's own sniffer is not used: it guesses types and headers, and skips lines without a message.
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
from typing import Any

from kinfold.errors import DataError
from kinfold.tables.column_names import build_header_error, check_column_names, find_values_in_header
from kinfold.tables.readers.files import READ_SIZE
from kinfold.tables.readers.layout import SAMPLED_LINES, Line, check_layout, name_first_column
from kinfold.tables.resources import check_column_count
from kinfold.tables.source_form import SourceForm

SEPARATORS = (",", ";", "\t", "|")
SAMPLE_BYTES = 1 << 18  # of the file, from which the separator and the header are detected
SAMPLE_ROWS = 1000  # rows of the sample that are compared with the header
MIN_FIELDS_BELOW_TITLE = 3  # of most records, if the first line has one field
MIN_SHARE_BELOW_TITLE = 0.8  # of the records that have as many
SEPARATOR_NAMES = {"\t": "tab", " ": "space"}
LINES_HINT = (
    "source.header (--header) is the number of the line with the names, from 1; "
    "source.skip (--skip) is the number of lines above the table"
)


@dataclass(frozen=True)
class Dialect:
    """The encoding, the separator and the column names of a CSV file."""

    encoding: str
    separator: str
    header: tuple[str, ...]
    blank: int = 0  # empty lines before the header, or before the first record if there is no header
    above: int = 0  # lines before these that do not belong to the table
    has_header: bool = True
    doubtful: tuple[int, ...] = ()  # columns whose header looks like a value


def find_dialect(path: Path, form: SourceForm, name: str) -> Dialect:
    """Return how to read a file, declared or detected; messages call it `name`."""
    with path.open("rb") as file:
        head = file.read(SAMPLE_BYTES)
    if not head.strip(b"\xef\xbb\xbf \t\r\n"):
        raise DataError(f"'{name}' is empty", fix="give a table with a header and at least one row")
    encoding = find_encoding(path, head, form.encoding, name)
    whole = codecs.getincrementaldecoder(encoding)().decode(head)
    text = _skip_lines(whole, form.lines_above, name)
    detected = max(SEPARATORS, key=lambda mark: _score_separator(text, mark))
    separator = form.separator or detected
    try:
        rows = _parse_rows(text, separator)
        blank, header = next((number, row) for number, row in enumerate(rows) if row)
    except csv.Error:
        what = f"'{name}': the header cannot be read: a quote is not closed, or a name is very long"
        raise DataError(what, fix="correct the first line") from None
    if form.header and blank:
        raise DataError(f"'{name}': line {form.header}, named by source.header, is empty", fix=LINES_HINT)
    if form.declared and len(header) == 1 and separator != detected and _score_separator(text, detected)[1] > 1:
        what = f"'{name}': the header has no {SEPARATOR_NAMES.get(separator, separator)}, the declared source.separator"
        raise DataError(what, fix=f"use --separator {SEPARATOR_NAMES.get(detected, repr(detected))}, or leave it out")
    if form.header == 0:
        return Dialect(encoding, separator, number_columns(len(header)), blank, form.lines_above, has_header=False)
    if form.declared and form.header is None and not form.skip:  # the header of a release is its first line
        check_layout(_number_lines(text, separator), name, "line")
    lines = rows.line_num  # of the text, with the header
    sample = _sample_rows(rows, cut=len(head) == SAMPLE_BYTES)
    names = name_first_column(header, sample)
    doubtful = check_header(names, sample, name)
    doubtful = () if form.header else doubtful
    dialect = Dialect(encoding, separator, tuple(names), blank, form.lines_above, doubtful=doubtful)
    if not form.has_lines_below and len(names) == len(header):
        return dialect
    above = form.skip if form.has_lines_below else form.lines_above + lines  # the names are known: read records only
    below = _parse_rows(_skip_lines(whole, above, name), separator)
    with suppress(csv.Error):  # the engine reports the line later
        blank = next((number for number, row in enumerate(below) if row), 0)
    return replace(dialect, above=above, blank=blank, has_header=False)


def _number_lines(text: str, separator: str) -> list[Line]:
    """Return the first lines that are not empty, with their numbers in the file."""
    reader = _parse_rows(text, separator)
    lines: list[Line] = []
    with suppress(csv.Error):  # the engine reports the line later
        before = 0
        for fields in islice(reader, SAMPLED_LINES):
            if any(field.strip() for field in fields):
                lines.append(Line(before + 1, fields))
            before = reader.line_num
    return lines


def number_columns(columns: int) -> tuple[str, ...]:
    """Return names for columns that have none.

    >>> number_columns(2)
    ('column1', 'column2')
    """
    return tuple(f"column{i}" for i in range(1, columns + 1))


def _skip_lines(text: str, lines: int, name: str) -> str:
    ends = re.finditer("\r\n|\r|\n", text)
    end = 0 if lines == 0 else next((each.end() for each in islice(ends, lines - 1, None)), len(text))
    if not text[end:].strip():
        what = f"'{name}': there is no table below line {lines} in the first {SAMPLE_BYTES >> 10} KB"
        raise DataError(what, fix=LINES_HINT)
    return text[end:]


def check_header(header: Sequence[str], rows: Sequence[Sequence[str]], name: str) -> tuple[int, ...]:
    """Refuse missing and duplicate names; return the columns whose name looks like a value."""
    check_column_count(len(header), f"'{name}'")
    doubtful = find_values_in_header(header, rows)
    try:
        check_column_names(header, f"'{name}'")
    except DataError as error:
        if doubtful:
            raise build_header_error(doubtful) from None
        other = "or name the line of the header: source.header (--header)"
        raise DataError([replace(each, fix=f"{each.fix}, {other}") for each in error.problems]) from None
    return doubtful


def find_encoding(path: Path, head: bytes, declared: str | None, name: str) -> str:
    """Return an encoding that decodes every byte of the file."""
    if declared is not None:
        return _check_declared_encoding(path, declared, name)
    marked = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    unicode = "utf-8-sig" if head.startswith(codecs.BOM_UTF8) else "utf-8"
    for encoding in ["utf-16"] if marked else [unicode, "cp1252"]:
        if _decodes(path, encoding):
            return encoding
    fix = "name its encoding (source.encoding, --encoding), save it as UTF-8, or check that it is a CSV file"
    raise DataError(f"'{name}' is not text in UTF-8, UTF-16 or Windows-1252", fix=fix)


def _check_declared_encoding(path: Path, declared: str, name: str) -> str:
    """Return a declared encoding if it fits; refuse UTF-8 declared as an encoding that accepts any byte."""
    known = codecs.lookup(declared).name
    encoding = "utf-8-sig" if known == "utf-8" else known
    if not _decodes(path, encoding):
        raise DataError(f"'{name}' is not text in {declared}, the declared source.encoding", fix="name its encoding")
    if not known.startswith("utf") and not _decodes(path, "ascii") and _decodes(path, "utf-8-sig"):
        what = f"'{name}' is text in UTF-8, not in {declared}, the declared source.encoding"
        raise DataError(what, fix="use --encoding utf-8, or leave it out")
    return encoding


def _decodes(path: Path, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        with path.open("rb") as file:
            while chunk := file.read(READ_SIZE):
                if "\0" in decoder.decode(chunk):
                    return False
            decoder.decode(b"", final=True)
    except UnicodeError:
        return False
    return True


def transcode(path: Path, dialect: Dialect, copy: Path) -> None:
    """Write a UTF-8 copy of a file without the lines above its table."""
    with (
        path.open(encoding=dialect.encoding, newline="") as source,
        copy.open("w", encoding="utf-8", newline="") as target,
    ):
        for _ in range(dialect.above):
            source.readline()
        while chunk := source.read(READ_SIZE):
            target.write(chunk)


def _parse_rows(text: str, separator: str) -> Any:
    """Return a reader of records: an iterator that also counts lines."""
    return csv.reader(io.StringIO(text, newline=""), delimiter=separator)


def _sample_rows(rows: Iterator[list[str]], *, cut: bool) -> list[list[str]]:
    """Return the first records below the header; leave out the last one if the sample may cut it."""
    sample: list[list[str]] = []
    with suppress(csv.Error):  # the engine reports the line later
        sample.extend(islice((row for row in rows if row), SAMPLE_ROWS))
    return sample[:-1] if cut and len(sample) < SAMPLE_ROWS else sample


def _score_separator(text: str, separator: str) -> tuple[float, int]:
    """Return the share of records with as many fields as the header, and that number; zeros for one field."""
    try:
        widths = [len(row) for row in _parse_rows(text, separator) if row]
    except csv.Error:
        return (0.0, 0)
    fields, widths = widths[0], widths[:-1] or widths  # the last record may be cut
    if fields > 1:
        return Counter(widths)[fields] / len(widths), fields
    fields, records = Counter(widths).most_common(1)[0]  # the first line may be a title
    share = records / len(widths)
    return (share / 2, fields) if fields >= MIN_FIELDS_BELOW_TITLE and share >= MIN_SHARE_BELOW_TITLE else (0.0, 0)
