"""Handing out a release: a folder of it as an archive, or written into the workspace, the folder of whoever started us.

What is written takes its name whole or not at all, and never the name of something that is there. Nothing outside the
workspace is written: a place in it is one plain name.
"""

from __future__ import annotations

import errno
import io
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

from kinfold.disk import exchange, scratch
from kinfold.studio.error_answers import Refused
from kinfold.studio.tables import clean_name

INTERNAL = "internal"


def pieces(folder: Path, session: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a folder; paths of this server in the policy start from it, their files come along."""
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        if path.name == "policy.toml" and str(session).encode() in content:
            content = content.replace(f"{session}/".encode(), b"")
            for file in sorted((session / "hierarchies").glob("*.csv")):
                yield f"hierarchies/{file.name}", file.read_bytes()
        yield path.name, content


def packed(folder: Path, session: Path) -> bytes:
    """Return a folder as a ZIP archive."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in pieces(folder, session):
            file.writestr(name, content)
    return archive.getvalue()


def saved(folder: Path, session: Path, workspace: Path, name: str) -> Path:
    """Write a folder into the workspace under this name, and return where it is."""
    place = place_of(workspace, name)
    try:
        scratch.sweep(f".{name}-", workspace, name)  # what a killed server left
        beside = scratch.make(f".{name}-", workspace, name)
        try:
            made = beside / "new"
            made.mkdir(mode=0o700)
            for piece, content in pieces(folder, session):
                (made / piece).parent.mkdir(mode=0o700, exist_ok=True)
                (made / piece).write_bytes(content)
            _open_up(made, internal=folder.name == INTERNAL)
            exchange.flush(made)
            if not exchange.place(made, place):
                raise _taken(name)
            exchange.flush_names([workspace])
        finally:
            scratch.remove(beside)
    except OSError as error:
        fix = "free some space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "download it instead"
        raise Refused(422, f"the folder cannot be written: {error.strerror}", fix) from None
    return place


def place_of(workspace: Path, name: str) -> Path:
    """Return the place of a name in the workspace, or a refusal: a plain name that nothing has yet."""
    if not name or name != clean_name(name) or set(name) & set('/\\:*?"<>|'):
        raise Refused(422, "that is no name for a folder", "give one plain name, without a path")
    place = workspace / name
    if os.path.lexists(place):
        raise _taken(name)
    return place


def _taken(name: str) -> Refused:
    return Refused(409, f"there is something called {name!r} already", "give another name, or move that one away")


def _open_up(made: Path, *, internal: bool) -> None:
    """Give what may leave the rights of any new folder; what must not stays the owner's."""
    mask = os.umask(0)
    os.umask(mask)
    mask |= 0o077 if internal else 0
    for path in (made, *made.rglob("*")):
        path.chmod((0o777 if path.is_dir() else 0o666) & ~mask)
