"""Saved work: what a long run has done so far, in a folder of the owner's alone, for a later run to go on from.

    .NAME.blocks     beside the folder that the release will have, and locked while a run uses it
        key.json     what the work is about: a run about something else does not go on from it
        *.npz        arrays, each file whole or not there

It outlives a run that is stopped or killed, for that is what it is for, and goes when the release has its name, or
when the next run to the same place begins anew. Where it cannot be kept (no space, no rights, somebody else's folder) a
run does without.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import sys
import threading
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfold.disk import journal

if sys.platform != "win32":
    import fcntl

KEY, LOCK = "key.json", "lock"
WORD = "nothing was changed; what was done so far is kept: anonymize --resume goes on from there"
BROKEN = (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile)


class SavedWork:
    """The work of runs to one release folder; `final` are errors that the same work would end in again."""

    def __init__(self, release: Path, *, resume: bool = False, final: tuple[type[BaseException], ...] = ()) -> None:
        self.folder, self.resume, self.final = place_of(release), resume, final
        self._key: dict[str, str] | None = None
        self._lock: int | None = None
        self._opening = threading.Lock()  # blocks end in several threads, the first of them at the same moment

    def __enter__(self) -> SavedWork:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Remove the work where it is done, or where the same would fail again: what was stopped is kept."""
        if kind is None or issubclass(kind, self.final):
            self.remove()
        else:
            self._unlock()

    def __del__(self) -> None:
        self._unlock()

    def begin(self, key: Mapping[str, str]) -> list[str]:
        """Say what the run is about; return in what that differs from work that is to be resumed.

        Work about anything else, or that nobody wants to resume, is removed.
        """
        told = self._told()
        if self.resume and told is not None and (differing := [part for part in key if told.get(part) != key[part]]):
            return differing
        if self.folder.is_dir() and (told is None or not self.resume):
            self.remove()
        elif told is not None and self._locked():
            journal.tell("kept", WORD)
        self._key = dict(key)
        return []

    def get(self, name: str) -> Mapping[str, NDArray[Any]] | None:
        """Return the arrays that were put under a name, or nothing."""
        if self._lock is None:
            return None
        try:
            with (self.folder / f"{name}.npz").open("rb") as file, np.load(file, allow_pickle=False) as held:
                return {each: held[each] for each in held.files}
        except BROKEN:
            return None

    def put(self, name: str, **arrays: NDArray[Any]) -> None:
        """Put arrays under a name: the file is there whole, or not at all."""
        with self._opening:
            if self._lock is None and not self._opened():
                return
        new = self.folder / f"{name}.new"
        try:
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                np.savez(file, **arrays)  # type: ignore[arg-type]
            new.replace(self.folder / f"{name}.npz")
        except OSError:
            with contextlib.suppress(OSError):
                new.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove everything, unless another run uses it."""
        if self._ours() and (self._lock is not None or self._locked()):
            shutil.rmtree(self.folder, ignore_errors=True)
        self._unlock()

    def _opened(self) -> bool:
        """Make the folder, if this run may have it; asked again at every file, for another run may end."""
        if self._key is None:
            return False
        try:
            self.folder.mkdir(mode=0o700)
        except OSError:
            return False
        if not self._locked():
            return False
        with contextlib.suppress(OSError):
            (self.folder / KEY).write_text(json.dumps(self._key), encoding="utf-8")
            journal.tell("kept", WORD)
        return True

    def _ours(self) -> bool:
        """Whether the folder is a real one, of this user."""
        with contextlib.suppress(OSError):
            found = self.folder.lstat()
            return stat.S_ISDIR(found.st_mode) and (sys.platform == "win32" or found.st_uid == os.geteuid())
        return False

    def _told(self) -> dict[str, str] | None:
        """Return what the work that is there is about."""
        if not self._ours():
            return None
        with contextlib.suppress(OSError, ValueError):
            told = json.loads((self.folder / KEY).read_text(encoding="utf-8"))
            return told if isinstance(told, dict) else None
        return None

    def _locked(self) -> bool:
        """Take the lock, or tell that another run has it."""
        if not self._ours():
            return False
        lock = None
        try:
            lock = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
            if sys.platform != "win32":
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if lock is not None:
                os.close(lock)
            return False
        self._lock = lock
        return True

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def place_of(release: Path) -> Path:
    """Return the folder for the work of a release: beside it, or in the first folder above it that is there.

    >>> place_of(Path("/nowhere/yet/out")).as_posix()
    '/.nowhere-yet-out.blocks'
    """
    whole = release.absolute()
    parent = next(path for path in whole.parents if path.is_dir())
    return parent / f".{'-'.join(whole.relative_to(parent).parts)}.blocks"
