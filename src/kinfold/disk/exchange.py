"""The exchange: a folder that was made takes its place, whole, and what stood there before steps aside.

place   onto nothing or an empty folder: one rename, which fails for whoever comes second
swap    with what stands there: in one step of the file system where it has one; else two renames, and the old
        folder is put back if the second fails
flush   files before they are named, folders after: what was said to be there survives a power cut
naming  around it: no signal and no stop comes between a name and the word that it is taken
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kinfold.disk import journal
from kinfold.disk.deferred_signals import undisturbed

RENAME_EXCHANGE = 2
AT_FDCWD = -100


@contextmanager
def naming(path: Path, word: str) -> Iterator[None]:
    """Let nobody cut what gives something its final name; if that goes well, the word is true of the disk."""
    with undisturbed():
        journal.tell("moving", path)
        try:
            yield
            journal.tell("kept", word)
        finally:
            journal.tell("moved", path)


def place(made: Path, folder: Path) -> bool:
    """Give a folder its name unless something has it already; an empty folder does not count."""
    if os.name == "nt":  # where no rename takes over an empty folder
        with contextlib.suppress(OSError):
            folder.rmdir()
    try:
        made.rename(folder)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            return False
        raise
    return True


def swap(made: Path, folder: Path, aside: Path) -> bool:
    """Exchange two folders; False where the other one is gone. The old one ends at `made` or at `aside`."""
    try:
        if not _swapped(made, folder):
            _renamed(made, folder, aside)
    except FileNotFoundError:
        if folder.exists():
            raise
        return False
    return True


def put_back(aside: Path, folder: Path) -> None:
    """Bring back a folder that stepped aside, unless there is one in its place again."""
    if aside.is_dir() and not os.path.lexists(folder):
        aside.rename(folder)


def flush(folder: Path) -> None:
    """Bring every file of a folder to the disk, then the folders that name them, the innermost first."""
    for root, _, files in os.walk(folder, topdown=False):
        for name in files:
            _synced(Path(root, name))
        flush_names([Path(root)])


def flush_names(folders: Iterable[Path]) -> None:
    """Bring to the disk what folders say is in them; not every system can, and a folder may be closed to reading."""
    for folder in folders:
        with contextlib.suppress(OSError):
            _synced(folder)


def _synced(path: Path) -> None:
    # Windows flushes only what is open for writing.
    file = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _swapped(one: Path, other: Path) -> bool:
    """Exchange two folders in one step, if this system can."""
    if not sys.platform.startswith("linux"):
        return False
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        return False
    return int(renameat2(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE)) == 0


def _renamed(made: Path, folder: Path, aside: Path) -> None:
    folder.rename(aside)
    try:
        made.rename(folder)
    except OSError:
        put_back(aside, folder)
        raise
