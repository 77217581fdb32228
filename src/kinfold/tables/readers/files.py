"""Files: their formats by ending, their hashes, and plain copies of compressed ones.

Unpacking counts the bytes it writes, because a small file can expand to more than any disk holds.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import os
import zipfile
import zlib
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from kinfold.errors import DataError, KinfoldError, PolicyError
from kinfold.tables.resources import check_expanded_size

READ_SIZE = 1 << 20  # bytes or characters read at a time
GLOB_CHARACTERS = frozenset("*?[\\")  # DuckDB reads a path with these as a pattern, and has no escape for all of them


class Format(StrEnum):
    """The file formats that can be read."""

    CSV = "csv"
    PARQUET = "parquet"
    JSONL = "jsonl"
    JSON = "json"
    WORKBOOK = "workbook"
    STATISTICS = "statistics"


ENDINGS = {
    ending: form
    for form, endings in {
        Format.CSV: (".csv", ".tsv", ".txt"),
        Format.PARQUET: (".parquet", ".pq"),
        Format.JSONL: (".jsonl", ".ndjson"),
        Format.JSON: (".json",),
        Format.WORKBOOK: (".xlsx", ".xlsm"),
        Format.STATISTICS: (".dta", ".sav", ".zsav", ".por", ".sas7bdat", ".xpt"),
    }.items()
    for ending in endings
}
PACKED_ENDINGS = (".gz", ".zst", ".bz2", ".xz")
PACKABLE_FORMATS = (Format.CSV, Format.JSONL, Format.JSON)
REMEDIES = {  # for well-known formats that cannot be read
    ".xls": "it is an old Excel file: save it as .xlsx",
    ".xlsb": "save it as .xlsx",
    ".ods": "save it as .xlsx",
    ".zip": "unpack it first",
    ".rds": "write it from R: haven::write_sav, arrow::write_parquet or write.csv",
    ".rdata": "write it from R: haven::write_sav, arrow::write_parquet or write.csv",
    ".feather": "read it into a data frame, and pass that",
    ".arrow": "read it into a data frame, and pass that",
}


class FileKind(NamedTuple):
    """The format of a file, and the ending of its compression, if any."""

    format: Format
    packing: str | None = None


def detect_format(path: Path) -> FileKind:
    """Return the format of a file by its ending; refuse a path that is not a readable file."""
    refuse_other_encodings(path)
    if not path.exists():
        raise DataError(f"no such file: '{path}'", fix="check the path")
    if path.is_dir():
        fix = "name a file inside it, or set source.parts = true (--parts)"
        raise DataError(f"'{path}' is a folder, not a file", fix=fix)
    if not path.is_file():
        raise DataError(f"'{path}' is not a regular file", fix="save the table to a file first")
    if not os.access(path, os.R_OK):
        raise DataError(f"you have no permission to read '{path}'", fix="ask for read permission")
    ending = path.suffix.lower()
    if ending in ENDINGS:
        return FileKind(ENDINGS[ending])
    inner = ENDINGS.get(Path(path.stem).suffix.lower())
    if ending in PACKED_ENDINGS and inner in PACKABLE_FORMATS:
        return FileKind(inner, ending)
    known = f"use one of {', '.join(ENDINGS)}; CSV and JSON also compressed: {', '.join(PACKED_ENDINGS)}"
    remedy = f"{REMEDIES[ending]}; or {known}" if ending in REMEDIES else known
    raise DataError(f"'{path.name}' has an unknown file ending", fix=remedy)


def refuse_other_encodings(path: Path) -> None:
    """Refuse a path that is not UTF-8: DuckDB and the reports cannot name it."""
    try:
        str(path.absolute()).encode()
    except UnicodeEncodeError:
        escaped = os.fsencode(path).decode(errors="backslashreplace")
        raise DataError(f"the path '{escaped}' is not in UTF-8", fix="rename the file or folder") from None


class PartRows(NamedTuple):
    """A part file that was read: its name, its SHA-256 and its number of rows."""

    name: str
    checksum: str | None
    rows: int


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def make_plain_path(path: Path, folder: Path, number: int) -> Path:
    """Return a path to this file that is not a pattern: its own, or a link to it in `folder`.

    DuckDB would read `table1.csv` for `table[1].csv`.
    """
    absolute = path.absolute()
    if not GLOB_CHARACTERS & {*str(absolute)}:
        return absolute
    link = folder / f"source{number}{path.suffix.lower()}"
    if GLOB_CHARACTERS & {*str(link)}:
        raise PolicyError(f"the name of the temporary folder '{folder.parent}' has one of * ? [ \\", fix="set TMPDIR")
    link.symlink_to(absolute)
    return link


MAX_DEFLATE_RATIO = 1032  # of the deflate format
MAX_WORKBOOK_RATIO = 100  # sheets of real tables expand ten to twenty times
MAX_SMALL_WORKBOOK = 200_000_000  # bytes that a workbook of any ratio may expand to


def unpack(path: Path, packing: str, copy: Path) -> None:
    """Write the contents of a compressed file to `copy`; refuse a damaged file."""
    size = 0
    try:
        with _open_packed(path, packing) as packed, copy.open("wb") as target:
            while chunk := packed.read(READ_SIZE):
                target.write(chunk)
                size += len(chunk)
                check_expanded_size(size, path.name)
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise _broken_error(path) from error
    except OSError as error:
        if error.errno is None:  # raised by the library, not by the disk
            raise _broken_error(path) from error
        raise


def check_workbook_size(path: Path) -> None:
    """Refuse a workbook that expands too much or cannot be unpacked; a small file is not opened."""
    packed = path.stat().st_size
    limit, size = max(MAX_SMALL_WORKBOOK, MAX_WORKBOOK_RATIO * packed), 0
    if packed * MAX_DEFLATE_RATIO <= limit:
        return
    try:
        with zipfile.ZipFile(path) as book:
            for part in book.infolist():
                part.file_size = 1 << 62  # read to the end, not to the size in its header
                with book.open(part) as file:
                    while chunk := file.read(READ_SIZE):
                        size += len(chunk)
                        check_expanded_size(size, path.name, limit)
    except KinfoldError:
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError):
        what = f"'{path.name}' cannot be read as an Excel file"
        raise DataError(what, fix="check that the file is complete") from None


def _open_packed(path: Path, packing: str) -> Any:
    if packing == ".zst":
        import pyarrow as pa  # here: studio and release import this module early

        return pa.input_stream(str(path), compression="zstd")
    openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    return openers[packing](path, "rb")


def _broken_error(path: Path) -> DataError:
    return DataError(f"'{path.name}' cannot be unpacked: it is damaged or incomplete", fix="copy or compress it again")


def hash_rows(path: Path) -> str:
    """Return the checksum that a file, or a folder of parts, has when its rows are read."""
    if not path.is_dir():
        return hash_file(path)
    names = sorted(file.name for file in path.iterdir())
    return combine_checksums((name, hash_file(path / name)) for name in names)


def combine_checksums(sums: Iterable[tuple[str, str | None]]) -> str:
    """Return the SHA-256 of the lines that `sha256sum` prints for these names and checksums."""
    lines = "".join(f"{checksum}  {name}\n" for name, checksum in sums)
    return hashlib.sha256(lines.encode()).hexdigest()
