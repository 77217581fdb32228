"""Checkpoints: the work of a long run so far, in a private folder, so that a later run can resume it.

    .NAME.blocks     next to the folder of the release, locked while a run uses it
        key.json     the input, policy and version of the run: a different run does not resume it
        *.npz        arrays; each file is complete or absent

The folder stays after a run that is stopped or killed. It is removed when the release has its name, or when the next
run to the same folder starts from the beginning. If it cannot be used (no space, no permission, another user's folder),
the run continues without checkpoints.
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

from kinfold.disk import folders
from kinfold.disk.folders import lock_file

KEY_FILE, LOCK_FILE = "key.json", "lock"
CHECKPOINT_STATE = "nothing was changed; the work so far is saved: anonymize --resume continues it"
READ_ERRORS = (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile)


class CheckpointFolder:
    """The checkpoints of runs to one release folder; `final` are errors that a resumed run would raise again."""

    def __init__(self, release: Path, *, resume: bool = False, final: tuple[type[BaseException], ...] = ()) -> None:
        self.folder, self.resume, self.final = get_checkpoint_path(release), resume, final
        self._key: dict[str, str] | None = None
        self._lock: int | None = None
        self._opening = threading.Lock()  # blocks end in several threads, the first ones at the same time

    def __enter__(self) -> CheckpointFolder:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Remove the checkpoints if the run succeeded or would fail again; keep them if it was stopped."""
        if kind is None or issubclass(kind, self.final):
            self.remove()
        else:
            self._unlock()

    def __del__(self) -> None:
        self._unlock()

    def begin(self, key: Mapping[str, str]) -> list[str]:
        """Set the key of the run; return the parts in which it differs from the checkpoints that are to be resumed.

        Remove checkpoints that are not to be resumed.
        """
        saved = self._read_key()
        if (
            self.resume
            and saved is not None
            and (differences := [part for part in key if saved.get(part) != key[part]])
        ):
            return differences
        if self.folder.is_dir() and (saved is None or not self.resume):
            self.remove()
        elif saved is not None and self._acquire_lock():
            folders.record_event("kept", CHECKPOINT_STATE)
        self._key = dict(key)
        return []

    def get(self, name: str) -> Mapping[str, NDArray[Any]] | None:
        """Return the arrays of a checkpoint, or None."""
        if self._lock is None:
            return None
        try:
            with (self.folder / f"{name}.npz").open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                return {key: arrays[key] for key in arrays.files}
        except READ_ERRORS:
            return None

    def put(self, name: str, **arrays: NDArray[Any]) -> None:
        """Save arrays as a checkpoint. The file is complete or absent."""
        with self._opening:
            if self._lock is None and not self._open():
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
        """Remove the folder, unless another run uses it."""
        if self._is_own() and (self._lock is not None or self._acquire_lock()):
            shutil.rmtree(self.folder, ignore_errors=True)
        self._unlock()

    def _open(self) -> bool:
        """Make and lock the folder; tried again at every checkpoint, because another run that uses it may end."""
        if self._key is None:
            return False
        try:
            self.folder.mkdir(mode=0o700)
        except OSError:
            return False
        if not self._acquire_lock():
            return False
        with contextlib.suppress(OSError):
            (self.folder / KEY_FILE).write_text(json.dumps(self._key), encoding="utf-8")
            folders.record_event("kept", CHECKPOINT_STATE)
        return True

    def _is_own(self) -> bool:
        """Whether the folder is a real folder of this user."""
        with contextlib.suppress(OSError):
            status = self.folder.lstat()
            return stat.S_ISDIR(status.st_mode) and (sys.platform == "win32" or status.st_uid == os.geteuid())
        return False

    def _read_key(self) -> dict[str, str] | None:
        if not self._is_own():
            return None
        with contextlib.suppress(OSError, ValueError):
            key = json.loads((self.folder / KEY_FILE).read_text(encoding="utf-8"))
            return key if isinstance(key, dict) else None
        return None

    def _acquire_lock(self) -> bool:
        """Take the lock; return False if another run has it."""
        if not self._is_own():
            return False
        with contextlib.suppress(OSError):
            self._lock = lock_file(self.folder / LOCK_FILE)
        return self._lock is not None

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def get_checkpoint_path(release: Path) -> Path:
    """Return the checkpoint folder of a release: next to it, or in the first existing folder above it.

    >>> get_checkpoint_path(Path("/nowhere/yet/out")).as_posix()
    '/.nowhere-yet-out.blocks'
    """
    path = release.absolute()
    parent = next(folder for folder in path.parents if folder.is_dir())
    return parent / f".{'-'.join(path.relative_to(parent).parts)}.blocks"
