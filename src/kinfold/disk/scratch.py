"""Scratch: temporary folders that are the owner's alone, are locked while they are used, and go with the run.

Each carries a mark, a file that the run keeps locked. The system lets go of a lock however its holder ends, so the next
run can tell what was left behind from what is in use. It sweeps a folder that

    has a name as made here, is a real folder of the same user, and carries a mark made for the same purpose,
    whose lock can be taken (and is a day old, where another machine made it: locks need not reach from one to another)

and nothing else; links are not followed. A folder whose mark was never finished is empty, and goes if a minute old.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import secrets
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kinfold.disk import journal

if sys.platform != "win32":
    import fcntl

MARK, HALF_MADE = ".kinfold", ".kinfold.new"
DIGITS = 8
MINUTE, DAY = 60.0, 86_400.0
TRIES = 5  # a worker that is about to end may still put something there

_locks: dict[Path, int] = {}  # the descriptors that hold the locks of this process


def make(prefix: str, parent: Path | None = None, purpose: str = "") -> Path:
    """Make a temporary folder; it stays until `remove`, or until a later run finds that this one is over."""
    place = Path(tempfile.gettempdir() if parent is None else parent).absolute()
    while True:
        folder = place / f"{prefix}{secrets.token_hex(DIGITS // 2)}"
        if os.path.lexists(folder):
            continue
        journal.tell("made", folder)  # before it is there: no moment without somebody to remove it
        folder.mkdir(mode=0o700)
        _mark(folder, purpose)
        return folder


def remove(folder: Path) -> None:
    """Remove a temporary folder: what it holds, then its mark, so that half of one can still be swept."""
    for _ in range(TRIES):
        _empty(folder)
        if (lock := _locks.pop(folder, None)) is not None:
            os.close(lock)
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            break
        time.sleep(0.02)
    journal.tell("gone", folder)


def sweep(
    prefix: str, parent: Path | None = None, purpose: str = "", rescue: Callable[[Path], None] | None = None
) -> None:
    """Remove what runs that were killed left behind; `rescue` may take something out of a folder first."""
    if sys.platform == "win32":  # no locks to tell by
        return
    place = Path(tempfile.gettempdir() if parent is None else parent).absolute()
    named = re.compile(re.escape(prefix) + f"[0-9a-f]{{{DIGITS}}}")
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        found = [place / entry.name for entry in entries if named.fullmatch(entry.name)]
        for folder in found:
            with contextlib.suppress(OSError, ValueError):  # in use, not ours, or gone meanwhile
                _sweep(folder, purpose, rescue)


def _mark(folder: Path, purpose: str) -> None:
    """Lock a file, then give it the name of a mark: nobody ever sees a mark of a live run unlocked."""
    if sys.platform == "win32":
        return
    with contextlib.suppress(OSError):  # a disk without locks, or full: no mark, and so no sweep of what it may hold
        _locks[folder] = lock = os.open(folder / HALF_MADE, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(lock, json.dumps({"purpose": purpose, "host": platform.node()}).encode())
        (folder / HALF_MADE).rename(folder / MARK)


def _sweep(folder: Path, purpose: str, rescue: Callable[[Path], None] | None) -> None:
    if sys.platform == "win32":
        return
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        return
    try:
        lock = os.open(folder / MARK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        _sweep_unmarked(folder, found)
        return
    try:
        held, told = os.fstat(lock), _told(lock)
        if not stat.S_ISREG(held.st_mode) or held.st_uid != os.geteuid() or told.get("purpose") != purpose:
            return
        if told.get("host") != platform.node() and time.time() - held.st_mtime < DAY:
            return
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if rescue is not None:
            rescue(folder)
        remove(folder)
    finally:
        os.close(lock)


def _sweep_unmarked(folder: Path, found: os.stat_result) -> None:
    """Remove a folder that a run did not live to mark: with nothing in it, it takes nothing from anybody."""
    if stat.S_IMODE(found.st_mode) == 0o700 and time.time() - found.st_mtime > MINUTE:
        if [entry.name for entry in folder.iterdir()] == [HALF_MADE]:
            (folder / HALF_MADE).unlink()
        folder.rmdir()  # which fails where something is in it


def _told(mark: int) -> dict[str, Any]:
    told = json.loads(os.read(mark, 4096))
    return told if isinstance(told, dict) else {}


def _empty(folder: Path) -> None:
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name != MARK:
                path.unlink(missing_ok=True)
