"""Linked tables: a table of events and tables of people, read as one table.

Each row of the main table gets the values of its person from every further table, which has one row for each person.
After these rows come the people without a row in the main table, with nothing in its columns. The files of a release
are joined in the same way, so what is checked is what all of them show together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kinfold.errors import DataError, Problem, plural
from kinfold.tables.readers.files import combine_checksums

if TYPE_CHECKING:
    from kinfold.tables.duckdb.connection import Database
    from kinfold.tables.duckdb.expressions import Frame


class LinkedFile(NamedTuple):
    """A file with one row for each person, and its column that numbers them."""

    path: Path
    link: str


@dataclass(frozen=True)
class LinkedFiles:
    """A file of events, its column that numbers people, and files of people."""

    path: Path
    unit: str
    others: tuple[LinkedFile, ...]

    @property
    def paths(self) -> tuple[Path, ...]:
        """All files."""
        return (self.path, *(other.path for other in self.others))


@dataclass(frozen=True)
class JoinedParts:
    """Which part of a joined table is of which file."""

    rows: int  # of the main table, which come first
    columns: tuple[tuple[str, ...], ...] = ()  # of each further table, without its numbers of people


def read_linked_files(db: Database, source: LinkedFiles, read: Callable[[Path], Frame]) -> Frame:
    """Read all files with `read` and join them; the checksum is that of the list of their checksums."""
    frame = read(source.path)
    sums, parts = [(source.path.name, frame.checksum)], JoinedParts(db.count(frame.table))
    for other in source.others:
        people = read(other.path)
        _check_names(frame, people, source.unit, other)
        columns = tuple(name for name in people.names if name != other.link)
        _check_people(db, frame, people, source.unit, other, first=not parts.columns)
        frame = _join(db, frame, people, source.unit, other.link)
        sums.append((other.path.name, people.checksum))
        parts = replace(parts, columns=(*parts.columns, columns))
    return replace(frame, checksum=combine_checksums(sums), parts=parts)


def _join(db: Database, frame: Frame, people: Frame, unit: str, link: str) -> Frame:
    """Return the rows with the values of their people, and then the people without a row."""
    added = [name for name in people.names if name != link]
    person, number = f"p.{people.at(link)}", f"m.{frame.at(unit)}"
    values = [f"p.{people.at(name)}" for name in added]
    types = (*frame.types, *map(people.sql_type, added))
    rows = [*(f"m.{c}" for c in frame.columns), *values]
    absent = [*(person if name == unit else "NULL" for name in frame.names), *values]
    joined, others = (
        ", ".join(f"CAST({value} AS {kind}) AS c{i}" for i, (value, kind) in enumerate(zip(each, types, strict=True)))
        for each in (rows, absent)
    )
    table = db.table(
        f"SELECT {joined} FROM {frame.table} m JOIN {people.table} p ON {number} = {person} ORDER BY m.rowid"
    )
    without = f"{people.table} p ANTI JOIN {frame.table} m ON {number} = {person}"
    db.append(table, f"(SELECT {others} FROM {without} ORDER BY p.rowid)")
    for each in (frame, people):
        db.drop(each.table)
    orders = dict(zip(people.names, people.orders, strict=False))
    more = (orders.get(name) for name in added)
    known = frame.orders or (None,) * len(frame.names)
    return replace(
        frame,
        table=table,
        names=(*frame.names, *added),
        types=types,
        mixed=frame.mixed | people.mixed,
        orders=(*known, *more),
        zones=(*frame.zones, *people.zones),
        labels=(*frame.labels, *people.labels),
        titles=(*frame.titles, *people.titles),
        notes=(*frame.notes, *people.notes),
    )


def _check_names(frame: Frame, people: Frame, unit: str, other: LinkedFile) -> None:
    """Refuse tables that cannot be joined: no column to link them, a column in both, or different formats."""
    name, problems = f"'{other.path.name}'", []
    if unit not in frame.names:
        problems.append(Problem(f"privacy.unit: no column '{unit}' in the main table", "name the one of people"))
    if other.link not in people.names:
        problems.append(Problem(f"{name} has no column '{other.link}'", 'name its column of people: link = "..."'))
    shared = [each for each in people.names if each in frame.names and each != other.link]
    fix = "rename it in one of them"
    problems += [Problem(f"column '{each}' is in {name} and in another table", fix) for each in shared]
    if frame.typed != people.typed or (not problems and frame.sql_type(unit) != people.sql_type(other.link)):
        what = f"{name} is not of the format of the main table, or numbers people in another type"
        problems.append(Problem(what, "give all tables in one format"))
    if problems:
        raise DataError(problems)


def _check_people(db: Database, frame: Frame, people: Frame, unit: str, other: LinkedFile, *, first: bool) -> None:
    """Refuse people with several rows or none; only the main table may lack people."""
    name, person, number = f"'{other.path.name}'", people.at(other.link), frame.at(unit)
    rows, filled, distinct = db.row(f"SELECT count(*), count({person}), count(DISTINCT {person}) FROM {people.table}")
    problems = []
    if missing := rows - filled:
        problems.append(Problem(f"{name}: {plural(missing, 'row has', 'rows have')} no number", "leave them out"))
    if filled > distinct:
        what = f"{name} has several rows of some people ({filled - distinct:,} too many)"
        problems.append(Problem(what, "give the table with several rows for each person as the table to release"))
    same = f"m.{number} = p.{person}"
    (absent,) = db.row(f"SELECT count(*) FROM {frame.table} m ANTI JOIN {people.table} p ON {same}")
    if absent:
        what = f"{plural(absent, 'row is', 'rows are')} of people who are not in {name}"
        problems.append(Problem(what, "add these people, or leave out their rows"))
    (more,) = db.row(f"SELECT count(*) FROM {people.table} p ANTI JOIN {frame.table} m ON {same}")
    if more and not first:
        what = f"{plural(more, 'person is', 'people are')} in {name}, but not in the other tables of people"
        problems.append(Problem(what, "give the same people in all of them"))
    if problems:
        raise DataError(problems)
