"""Tables in many files: a folder, or a pattern of names, read one after the other in the order of their paths.

Only where `source.parts` says so: a path is a path otherwise. All parts have one format, the same columns in the same
order and, where the format knows types, the same types. What starts with a dot or an underscore is no part, and neither
is what lies in such a folder: cluster programs leave both beside their parts.

The order, on every engine: folder by folder, then by file name, each name compared code point by code point. So
`2024/b` comes before `2024-01/a`, `B` before `a`, and `10` before `9`.
"""

from __future__ import annotations

import glob
import hashlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from kinfold.errors import DataError, Problem
from kinfold.rows.engines.database import Database
from kinfold.rows.engines.expressions import Frame
from kinfold.rows.engines.reading import refuse_empty
from kinfold.rows.engines.source import PATTERN, format_of

SHOWN = 5  # columns that are named


def is_many(path: Path) -> bool:
    """Whether a path stands for many files: a folder, or a pattern that is not itself the name of a file."""
    return path.is_dir() or (not path.exists() and bool(PATTERN & {*str(path)}))


class PartFile(NamedTuple):
    """A file of many, and its name among them: with the folders that tell it from others."""

    file: Path
    name: str


def parts_of(path: Path) -> list[PartFile]:
    """Return the files that a folder or a pattern stands for, in their order."""
    fixed = len(path.parts) if path.is_dir() else _fixed(path)
    found = path.iterdir() if path.is_dir() else map(Path, glob.glob(str(path)))  # noqa: PTH207  it may start anywhere
    entries = [entry for entry in found if not any(name.startswith((".", "_")) for name in entry.parts[fixed:])]
    entries.sort(key=lambda entry: entry.parts)
    if not entries:
        what = f"there are no files in '{path}'" if path.is_dir() else f"no file has a name like '{path}'"
        raise DataError(what, fix="check the path")
    if inner := [entry for entry in entries if entry.is_dir()]:
        what = f"'{inner[0].name}' among the parts is a folder: nothing is read out of the names of folders"
        raise DataError(what, fix="name a pattern that reaches the files, such as 'folder/*/*.parquet'")
    kinds = {format_of(entry) for entry in entries}
    if len(kinds) > 1:
        raise DataError(f"the parts in '{path}' have different formats", fix="name those of one: 'folder/*.parquet'")
    return [PartFile(entry, "/".join(entry.parts[fixed:])) for entry in entries]


def _fixed(pattern: Path) -> int:
    """Return how many names of a pattern's path come before the first that is a pattern itself."""
    return next(at for at, name in enumerate(pattern.parts) if PATTERN & {*name})


def read_parts(db: Database, path: Path, read: Callable[[PartFile], Frame]) -> Frame:
    """Read every part into one table; `read` reads a file. Some may have no rows: clusters leave such parts."""
    first, *others = parts_of(path)
    whole = read(first)
    sums = [(first.name, whole.checksum)]
    for entry in others:
        part = read(entry)
        require_same(whole, part, first.name, entry.name)
        db.append(whole.table, part.table)
        db.drop(part.table)
        sums.append((entry.name, part.checksum))
        whole = replace(whole, mixed=whole.mixed | part.mixed)
    refuse_empty(db, whole.table, f"'{path.name}'")
    return replace(whole, checksum=checksum_of(sums))


def checksum_of(sums: Iterable[tuple[str, str | None]]) -> str:
    """Return the checksum of a list of names and checksums, as `sha256sum` prints it."""
    told = "".join(f"{checksum}  {name}\n" for name, checksum in sums)
    return hashlib.sha256(told.encode()).hexdigest()


def require_same(whole: Frame, part: Frame, first: str, name: str) -> None:
    """Refuse a part whose columns are not those of the first."""
    here, there = dict(zip(part.names, part.types, strict=True)), dict(zip(whole.names, whole.types, strict=True))
    fix = "write all parts with the same columns, in the same order and of the same types"
    if part.names != whole.names:
        odd = [column for column in (*here, *there) if (column in here) != (column in there)]
        told = f": {_listed(odd)} in one of them only" if odd else " in another order"
        raise DataError(f"the part '{name}' has other columns than '{first}'{told}", fix=fix)
    if odd := [column for column in here if here[column] != there[column]]:
        what = f"the part '{name}' has other types than '{first}': {_listed(odd)}"
        raise DataError([Problem(what, fix)])


def _listed(columns: list[str]) -> str:
    return ", ".join(f"'{column}'" for column in columns[:SHOWN]) + (", ..." if len(columns) > SHOWN else "")
