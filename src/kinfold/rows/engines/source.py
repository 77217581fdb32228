"""Where rows come from: a path, told apart by its ending, or a table already in memory."""

from __future__ import annotations

import hashlib
import os
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from kinfold.errors import DataError, PolicyError

CHUNK = 1 << 20  # bytes held at a time
PATTERN = frozenset("*?[\\")  # what the database takes for a pattern of names, and how it would be told not to


class Format(StrEnum):
    """The kinds of files that can be read."""

    CSV = "csv"
    PARQUET = "parquet"
    JSONL = "jsonl"
    JSON = "json"
    WORKBOOK = "workbook"
    STATISTICS = "statistics"


ENDINGS = {
    ".csv": Format.CSV,
    ".tsv": Format.CSV,
    ".txt": Format.CSV,
    ".parquet": Format.PARQUET,
    ".pq": Format.PARQUET,
    ".jsonl": Format.JSONL,
    ".ndjson": Format.JSONL,
    ".json": Format.JSON,
    ".xlsx": Format.WORKBOOK,
    ".xlsm": Format.WORKBOOK,
    ".dta": Format.STATISTICS,
    ".sav": Format.STATISTICS,
    ".zsav": Format.STATISTICS,
    ".por": Format.STATISTICS,
    ".sas7bdat": Format.STATISTICS,
    ".xpt": Format.STATISTICS,
}
PACKED = (".gz", ".zst", ".bz2", ".xz")
PACKABLE = (Format.CSV, Format.JSONL, Format.JSON)
REMEDIES = {  # of what is known, but not read
    ".xls": "it is an old Excel file: save it as .xlsx",
    ".xlsb": "save it as .xlsx",
    ".ods": "save it as .xlsx",
    ".zip": "unpack it first",
    ".rds": "write it from R: haven::write_sav, arrow::write_parquet or write.csv",
    ".rdata": "write it from R: haven::write_sav, arrow::write_parquet or write.csv",
    ".feather": "read it into a frame, and give that",
    ".arrow": "read it into a frame, and give that",
}


class FileKind(NamedTuple):
    """What a file is by its name: its format, and how it is packed, if it is."""

    format: Format
    packing: str | None = None


def format_of(path: Path) -> FileKind:
    """Tell a file's format by its ending, after making sure that it is there to be read."""
    _refuse_other_encodings(path)
    if not path.exists():
        raise DataError(f"no such file: '{path}'", fix="check the path")
    if path.is_dir():
        raise DataError(
            f"'{path}' is a folder, not a file", fix="name a file inside it, or say source.parts = true (--parts)"
        )
    if not path.is_file():
        raise DataError(f"'{path}' is no ordinary file", fix="save the table to a file first")
    if not os.access(path, os.R_OK):
        raise DataError(f"'{path}' may not be read", fix="ask for the right to read it")
    ending = path.suffix.lower()
    if ending in ENDINGS:
        return FileKind(ENDINGS[ending])
    inner = ENDINGS.get(Path(path.stem).suffix.lower())
    if ending in PACKED and inner in PACKABLE:
        return FileKind(inner, ending)
    known = f"use one of {', '.join(ENDINGS)}; CSV and JSON also packed: {', '.join(PACKED)}"
    remedy = f"{REMEDIES[ending]}; or {known}" if ending in REMEDIES else known
    raise DataError(f"'{path.name}' has an ending that is not known", fix=remedy)


def _refuse_other_encodings(path: Path) -> None:
    """Refuse a path whose bytes are not UTF-8: neither the databases nor the reports could name it."""
    try:
        str(path.absolute()).encode()
    except UnicodeEncodeError:
        shown = os.fsencode(path).decode(errors="backslashreplace")
        raise DataError(f"the path '{shown}' is not written in UTF-8", fix="rename that file or folder") from None


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            found.update(chunk)
    return found.hexdigest()


def plain_name(path: Path, folder: Path, number: int) -> Path:
    """Return a path that names this file and is no pattern: its own, or a link to it in a folder of the run.

    A database that is given `table[1].csv` looks for `table1.csv`.
    """
    whole = path.absolute()
    if not PATTERN & {*str(whole)}:
        return whole
    link = folder / f"source{number}{path.suffix.lower()}"
    if PATTERN & {*str(link)}:
        raise PolicyError(f"the temporary folder '{folder.parent}' has a name that is a pattern", fix="set TMPDIR")
    link.symlink_to(whole)
    return link
