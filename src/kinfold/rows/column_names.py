"""Names of columns that no table may have, whatever it comes from."""

from __future__ import annotations

from collections.abc import Sequence

from kinfold.errors import DataError, Problem
from kinfold.rows.reading_limits import check_columns

NUL = "has a NUL character"
RETURN = "has a carriage return"  # readers of CSV do not agree on where such a header ends
MARK = "begins with a byte order mark"  # as the first name in a file it would be taken for the file's own


def check_names(names: Sequence[str], where: str) -> None:
    """Refuse columns without a name, or with one that no file can hold, and columns that share one.

    Names that differ only in case count as shared. They are told by their places: a first line that has a name twice
    may be a record.
    """
    check_columns(len(names), where)
    problems = [
        Problem(f"{where}: column {place} has no name", "name every column")
        for place, name in enumerate(names, 1)
        if not name.strip()
    ]
    problems += [
        Problem(f"{where}: the name of column {place} {what}", "rename it")
        for place, name in enumerate(names, 1)
        for what, found in ((NUL, "\0" in name), (RETURN, "\r" in name), (MARK, name.startswith("\ufeff")))
        if found
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
