"""Tables in many files: a folder, or a pattern of names, read one after the other in the order of their names.

Only where `source.parts` says so: a path is a path otherwise. All parts have one format, the same columns in the same
order and, where the format knows types, the same types. What starts with a dot or an underscore is no part: cluster
programs leave such files beside their parts.
"""

from __future__ import annotations

import glob
import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from kinfold.errors import DataError, Problem
from kinfold.rows.engines.database import Database
from kinfold.rows.engines.expressions import Frame
from kinfold.rows.engines.reading import refuse_empty
from kinfold.rows.engines.source import PATTERN, format_of

SHOWN = 5  # columns that are named


def is_many(path: Path) -> bool:
    """Whether a path stands for many files: a folder, or a pattern that is not itself the name of a file."""
    return path.is_dir() or (not path.exists() and bool(PATTERN & {*str(path)}))


def parts_of(path: Path) -> list[Path]:
    """Return the files that a folder or a pattern stands for, by name."""
    found = path.iterdir() if path.is_dir() else map(Path, glob.glob(str(path)))  # noqa: PTH207  it may start anywhere
    entries = sorted(entry for entry in found if not entry.name.startswith((".", "_")))
    if not entries:
        what = f"there are no files in '{path}'" if path.is_dir() else f"no file has a name like '{path}'"
        raise DataError(what, fix="check the path")
    if inner := [entry for entry in entries if entry.is_dir()]:
        what = f"'{inner[0].name}' among the parts is a folder: nothing is read out of the names of folders"
        raise DataError(what, fix="name a pattern that reaches the files, such as 'folder/*/*.parquet'")
    kinds = {format_of(entry) for entry in entries}
    if len(kinds) > 1:
        raise DataError(f"the parts in '{path}' have different formats", fix="name those of one: 'folder/*.parquet'")
    return entries


def read_parts(db: Database, path: Path, read: Callable[[Path], Frame]) -> Frame:
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
    told = "".join(f"{checksum}  {name}\n" for name, checksum in sums)
    return replace(whole, checksum=hashlib.sha256(told.encode()).hexdigest())


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
