"""Where rows come from: a path, told apart by its ending, or a table already in memory."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from kinfold.errors import DataError, PolicyError, Problem

ENDINGS = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet"}
ENDINGS |= {".jsonl": "jsonl", ".ndjson": "jsonl"}
CHUNK = 1 << 20  # bytes held at a time
PATTERN = frozenset("*?[\\")  # what the database takes for a pattern of names, and how it would be told not to


class Format(StrEnum):
    """The kinds of files that can be read."""

    CSV = "csv"
    PARQUET = "parquet"
    JSONL = "jsonl"


def format_of(path: Path) -> Format:
    """Tell a file's format by its ending, after making sure that it is there to be read."""
    if not path.exists():
        raise DataError(f"no such file: '{path}'", fix="check the path")
    if path.is_dir():
        raise DataError(f"'{path}' is a folder, not a file", fix="name a file inside it")
    if not path.is_file():
        raise DataError(f"'{path}' is no ordinary file", fix="save the table to a file first")
    if not os.access(path, os.R_OK):
        raise DataError(f"'{path}' may not be read", fix="ask for the right to read it")
    known = ENDINGS.get(path.suffix.lower())
    if known is None:
        raise DataError(f"'{path.name}' has an ending that is not known", fix=f"use one of {', '.join(ENDINGS)}")
    return Format(known)


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


def check_names(names: Sequence[str], where: str) -> None:
    """Refuse columns without a name and columns that share one; names that differ only in case count as shared.

    They are told by their places: a first line that has a name twice may be a record.
    """
    problems = [
        Problem(f"{where}: column {place} has no name", "name every column")
        for place, name in enumerate(names, 1)
        if not name.strip()
    ]
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names, 1):
        places.setdefault(name.casefold(), []).append(place)
    for name, shared in places.items():
        if name.strip() and len(shared) > 1:
            *first, last = map(str, shared)
            what = f"{where}: columns {', '.join(first)} and {last} have the same name"
            problems.append(Problem(what, "rename all but one of them"))
    if problems:
        raise DataError(problems)
