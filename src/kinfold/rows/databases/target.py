"""The target: a new table for a release, made in one transaction that ends well only after what it holds was verified.

    look whether the place is free, before any work
    make a table under a name of its own, put the rows into it, read them back inside the transaction (whoever verifies)
    the old table goes, the new one takes its name, and that is committed: all of it or nothing

`--force` replaces a table that carries kinfold's mark, and no other: nobody's original is dropped. A new SQLite file is
made in a temporary folder beside its place and gets its name when all is done.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from kinfold.disk import journal, scratch
from kinfold.errors import PolicyError, Problem
from kinfold.rows.databases import postgresql, sqlite
from kinfold.rows.databases.address import POSTGRESQL, SQLITE, DatabaseAddress, TableName
from kinfold.rows.databases.row_import import RowsAt, system_of
from kinfold.rows.databases.session import Session
from kinfold.rows.engines.expressions import identifier
from kinfold.rows.engines.row_export import Handed

MARK = "released by kinfold"


def check_target(address: DatabaseAddress, *, force: bool) -> None:
    """Refuse, before any work, a table that is there already or that cannot be made."""
    with opened_target(address, force=force):
        pass


@contextmanager
def opened_target(address: DatabaseAddress, *, force: bool) -> Iterator[TargetTable]:
    """Connect for as long as a release is written; what is not committed by then did not happen."""
    if address.table is None:
        raise PolicyError("the address to release into names no table", fix="add ?table=NAME to it")
    place, folder = Path(address.uri), None
    if address.system == SQLITE and not place.exists():
        folder = _beside(place)
    inside = replace(address, uri=str(folder / place.name)) if folder else address
    session: Session | None = None
    try:
        session = _connected(inside)
        target = TargetTable(address, session, folder, force)
        target.check()
        yield target
    finally:
        if session is not None:
            session.close()
        if folder is not None:
            scratch.remove(folder)


def _beside(place: Path) -> Path:
    try:
        scratch.sweep(f".{place.name}-", place.parent, place.name)
        return scratch.make(f".{place.name}-", place.parent, place.name)
    except OSError as error:
        raise PolicyError(f"cannot write '{place}': {error.strerror}", fix="choose another place") from None


def _connected(address: DatabaseAddress) -> Session:
    if address.system == POSTGRESQL:
        return postgresql.connect(address, PolicyError)
    return sqlite.connect(address, PolicyError, mode="rwc")


class TargetTable:
    """A table that is about to be: its rows can be read in its session, and by nobody else."""

    def __init__(self, address: DatabaseAddress, session: Session, folder: Path | None, force: bool) -> None:
        assert address.table is not None  # noqa: S101  checked before
        self.address, self.session, self._folder, self._force = address, session, folder, force
        self._system: Any = system_of(address)
        session.where = f"{address.described} of {address.place}"
        schema = address.table.schema or self._system.home(session)
        self.table = TableName(address.table.table, schema)
        self._made = TableName(f"kinfold_{secrets.token_hex(8)}", schema)
        self.committed = False

    def check(self) -> bool:
        """Say whether there is an old release to be replaced; refuse what is not one, or may not be replaced."""
        self._system.check_names(self.session, [self.table.table])
        held = self._system.mark_of(self.session, self.table)
        if held is None:
            self._system.check_rights(self.session, self.table)
            return False
        if not self._force:
            raise self.session.error(Problem("it exists already", "replace it with --force, or name another table"))
        if MARK not in held:
            fix = "name another table, or drop that one yourself"
            raise self.session.error(Problem("it exists already, and is no release of kinfold's", fix))
        return True

    def write(self, handed: Handed) -> RowsAt:
        """Put rows into the new table, and return them as they can be read back."""
        types = [self._system.type_of(kind) for kind in handed.types]
        self._system.check_names(self.session, handed.names)
        columns = ", ".join(f"{identifier(name)} {kind}" for name, kind in zip(handed.names, types, strict=True))
        for statement in self._system.making(self._made, columns, MARK):
            self.session.run(statement)
        schema = self._made.schema if self.address.system == POSTGRESQL else None  # a file has one
        self.session.put(self._made.table, schema, handed.rows)
        return RowsAt(replace(self.address, table=self._made, query=None), self.session)

    def fitted(self, kind: str) -> str:
        """Return the engine's type in which this database takes another one of its types."""
        found: str = self._system.fitted(kind)
        return found

    def commit(self) -> None:
        """Let the new table take its name, and the place of an old release; from here on everybody sees it."""
        self.session.where = f"{self.address.described} of {self.address.place}"
        if self.check():
            self.session.run(f"DROP TABLE {self._system.named(self.table)}")
        made = self._system.named(self._made)
        self.session.run(f"ALTER TABLE {made} RENAME TO {identifier(self.table.table)}")
        self.session.commit()
        if self._folder is not None:
            self.session.close()
            _take_name(self._folder / Path(self.address.uri).name, Path(self.address.uri))
        self.committed = True
        journal.tell("kept", f"{self.session.where} is written")


def _take_name(made: Path, place: Path) -> None:
    """Give a new file its name, unless somebody was faster."""
    try:
        place.hardlink_to(made)
    except FileExistsError:
        raise PolicyError(f"'{place}' is there meanwhile", fix="start again, or name another file") from None
    except OSError:  # a disk without links
        made.rename(place)
