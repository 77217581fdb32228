"""Folders: the exchange that gives a release its name, temporary folders that are removed after the run, the journal.

The exchange:

    place   onto nothing or an empty folder: one rename, which fails if another run was first
    swap    with an existing folder: in one step if the file system can; otherwise two renames, and the old folder is
            restored if the second one fails
    flush   files before they are named, folders after: published data survives a power cut
    rename  protected: no signal comes between a rename and its entry in the journal

Temporary folders belong to one user and hold a mark, a file that the run keeps locked. The system releases a lock
however its process ends, so the next run can tell abandoned folders from folders in use. It removes a folder only if it

    has a name as made here, is a real folder of the same user, has a mark for the same purpose,
    and its lock is free (and a day old, if another machine made it: locks may not reach across machines)

Links are not followed. A folder with an unfinished mark is empty, and is removed after a minute.

The journal says what a run has on disk at this moment, so that the process that ends the run can clean up:

    made PATH     a temporary folder will be created; remove it with its contents
    gone PATH     it is removed
    opened PATH   a parent folder of the release will be created; remove it if it stays empty
    moving PATH   folders are being exchanged; do not end the run now
    moved PATH    the exchange is done
    kept TEXT     something has its final name; TEXT describes it
    ended         the run ends normally or with an error

The command registers a callback in a process of its own. A library user does not need one.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import contextlib
import ctypes
import errno
import json
import os
import platform
import re
import shutil
import signal
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

if sys.platform != "win32":
    import fcntl

RENAME_EXCHANGE = 2  # flag of renameat2
AT_FDCWD = -100  # paths are relative to the working folder
MARK_FILE, UNFINISHED_MARK_FILE = ".kinfold", ".kinfold.new"
NAME_DIGITS = 8  # hexadecimal digits in the name of a temporary folder
MINUTE, DAY = 60.0, 86_400.0
FLUSH_THREADS = 8  # they wait for the disk: a release has about as many files
REMOVE_ATTEMPTS = 5  # a worker process that is about to end may still write into the folder

_locks: dict[Path, int] = {}  # descriptors that hold the locks of this process


@contextmanager
def protect_rename(path: Path, state: str) -> Iterator[None]:
    """Defer signals while something gets its final name; if that succeeds, `state` describes the disk."""
    with defer_signals():
        record_event("moving", path)
        try:
            yield
            record_event("kept", state)
        finally:
            record_event("moved", path)


def place_folder(new: Path, folder: Path) -> bool:
    """Rename a folder to its final name; return False if something other than an empty folder has that name."""
    if os.name == "nt":  # a rename does not replace an empty folder there
        with contextlib.suppress(OSError):
            folder.rmdir()
    try:
        new.rename(folder)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            return False
        raise
    return True


@contextmanager
def create_folder(folder: Path, state: str) -> Iterator[Path]:
    """Yield a private folder to fill; it then gets its name, and `state` describes the disk.

    Raise FileExistsError if something other than an empty folder has the name.
    """
    prefix = f".{folder.name}-"
    sweep_scratch(prefix, folder.parent, folder.name)
    scratch = make_scratch(prefix, folder.parent, folder.name)
    try:
        new = scratch / "new"
        new.mkdir(mode=0o700)
        yield new
        flush_folder(new)
        with protect_rename(folder, state):
            if not place_folder(new, folder):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(folder))
        flush_entries([folder.parent])
    finally:
        remove_scratch(scratch)


def swap_folders(new: Path, folder: Path, aside: Path) -> bool:
    """Exchange two folders; return False if `folder` is gone. The old one ends up at `new` or at `aside`."""
    try:
        if not _swap_atomically(new, folder):
            folder.rename(aside)
            try:
                new.rename(folder)
            except OSError:
                restore_folder(aside, folder)
                raise
    except FileNotFoundError:
        if folder.exists():
            raise
        return False
    return True


def restore_folder(aside: Path, folder: Path) -> None:
    """Rename a folder that was moved aside back, unless something has its name again."""
    if aside.is_dir() and not os.path.lexists(folder):
        aside.rename(folder)


def flush_folder(folder: Path) -> None:
    """Write every file of a folder to the disk, then the entries of its folders.

    Several at a time: the disk commits together what waits for it together. The order is free, because the folder gets
    its name after all of them.
    """
    from concurrent.futures import ThreadPoolExecutor  # not needed when the command starts

    levels = [(Path(root), files) for root, _, files in os.walk(folder)]
    with ThreadPoolExecutor(FLUSH_THREADS) as pool:
        list(pool.map(_sync, [root / name for root, files in levels for name in files]))
        list(pool.map(_flush_entries, [root for root, _ in levels]))


def flush_entries(folders: Iterable[Path]) -> None:
    """Write the entries of folders to the disk, where the system can and the folder may be read."""
    for folder in folders:
        _flush_entries(folder)


def _flush_entries(folder: Path) -> None:
    with contextlib.suppress(OSError):
        _sync(folder)


def _sync(path: Path) -> None:
    # Windows flushes only what is open for writing.
    file = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _swap_atomically(one: Path, other: Path) -> bool:
    """Exchange two folders in one step; return False if the system cannot."""
    if not sys.platform.startswith("linux"):
        return False
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        return False
    return int(renameat2(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE)) == 0


def make_scratch(prefix: str, parent: Path | None = None, purpose: str = "") -> Path:
    """Make a temporary folder. It stays until `remove_scratch`, or until a later run finds that this one is over."""
    while True:
        folder = _find_parent(parent) / f"{prefix}{os.urandom(NAME_DIGITS // 2).hex()}"
        if os.path.lexists(folder):
            continue
        record_event("made", folder)  # before it exists, so that it is always removed
        folder.mkdir(mode=0o700)
        _write_mark(folder, purpose)
        return folder


def remove_scratch(folder: Path) -> None:
    """Remove a temporary folder: its contents, then its mark, so that a later run can still remove the rest."""
    for _ in range(REMOVE_ATTEMPTS):
        _empty_folder(folder)
        if (lock := _locks.pop(folder, None)) is not None:
            os.close(lock)
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            break
        time.sleep(0.02)
    record_event("gone", folder)


def sweep_scratch(
    prefix: str, parent: Path | None = None, purpose: str = "", rescue: Callable[[Path], None] | None = None
) -> None:
    """Remove the temporary folders of killed runs; `rescue` is called first and may save something from a folder."""
    if sys.platform == "win32":  # no locks
        return
    place = _find_parent(parent)
    pattern = re.compile(re.escape(prefix) + f"[0-9a-f]{{{NAME_DIGITS}}}")
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        for folder in [place / entry.name for entry in entries if pattern.fullmatch(entry.name)]:
            with contextlib.suppress(OSError, ValueError):  # in use, another user's, or gone meanwhile
                _sweep_folder(folder, purpose, rescue)


def _find_parent(parent: Path | None) -> Path:
    if parent is None:
        import tempfile  # not needed when the command starts

        parent = Path(tempfile.gettempdir())
    return parent.absolute()


def lock_file(path: Path, flags: int = os.O_RDWR | os.O_CREAT) -> int:
    """Open and lock a file and return its descriptor; raise OSError if another process has the lock."""
    file = os.open(path, flags, 0o600)
    try:
        if sys.platform != "win32":
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise
    return file


def _write_mark(folder: Path, purpose: str) -> None:
    """Lock a file, then rename it to the mark: the mark of a live run is always locked."""
    if sys.platform == "win32":
        return
    with contextlib.suppress(OSError):  # a full disk, or one without locks: without a mark the folder is never swept
        _locks[folder] = lock = lock_file(folder / UNFINISHED_MARK_FILE, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        os.write(lock, json.dumps({"purpose": purpose, "host": platform.node()}).encode())
        (folder / UNFINISHED_MARK_FILE).rename(folder / MARK_FILE)


def _sweep_folder(folder: Path, purpose: str, rescue: Callable[[Path], None] | None) -> None:
    if sys.platform == "win32":
        return
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        return
    try:
        lock = os.open(folder / MARK_FILE, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:  # the run ended before it wrote the mark
        if stat.S_IMODE(status.st_mode) == 0o700 and time.time() - status.st_mtime > MINUTE:
            if [entry.name for entry in folder.iterdir()] == [UNFINISHED_MARK_FILE]:
                (folder / UNFINISHED_MARK_FILE).unlink()
            folder.rmdir()  # fails if the folder is not empty
        return
    try:
        mark_status, mark = os.fstat(lock), json.loads(os.read(lock, 4096))
        if not stat.S_ISREG(mark_status.st_mode) or mark_status.st_uid != os.geteuid():
            return
        if not isinstance(mark, dict) or mark.get("purpose") != purpose:
            return
        if mark.get("host") != platform.node() and time.time() - mark_status.st_mtime < DAY:
            return
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if rescue is not None:
            rescue(folder)
        remove_scratch(folder)
    finally:
        os.close(lock)


def _empty_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name != MARK_FILE:
                path.unlink(missing_ok=True)


JournalCallback: TypeAlias = Callable[[str, str], None]

_callbacks: list[JournalCallback] = []


def record_event(event: str, what: object) -> None:
    """Pass an event to every callback."""
    for callback in tuple(_callbacks):
        callback(event, str(what))


@contextmanager
def record_to(callback: JournalCallback) -> Iterator[None]:
    """Pass events to a callback within the `with` block."""
    _callbacks.append(callback)
    try:
        yield
    finally:
        _callbacks.remove(callback)


@dataclass(eq=False)  # two journals with equal contents are different callbacks
class Journal:
    """A callback that keeps the current state."""

    folders: list[str] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)
    moving: str = ""
    kept: str = ""
    ended: bool = False

    def __call__(self, event: str, what: str) -> None:
        """Update the state by an event."""
        if event in ("made", "opened"):
            (self.folders if event == "made" else self.opened).append(what)
        elif event == "gone":
            self.folders = [path for path in self.folders if path != what]
        elif event in ("moving", "moved"):
            self.moving = what if event == "moving" else ""
        elif event == "kept":
            self.kept = what
        elif event == "ended":
            self.ended = True

    @property
    def state(self) -> str:
        """Describe the disk if the run ends now."""
        if self.moving:  # only if something other than the command ended the run
            return f"the release at '{self.moving}' is the old or the new one; kinfold verify tells which"
        return self.kept or "nothing was changed"


PR_SET_PDEATHSIG = 1  # of prctl: the signal that this process gets when its parent ends


def end_with_parent() -> None:
    """Ask Linux to kill this process when its parent ends."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


DEFERRED_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


@contextmanager
def defer_signals(on_signal: Callable[[], object] | None = None) -> Iterator[None]:
    """Call signal handlers only after the `with` block; `on_signal` is called at once, to end the block early.

    Python runs signal handlers only in the main thread, so other threads have nothing to delay.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pending: list[tuple[int, FrameType | None]] = []

    def defer(number: int, frame: FrameType | None) -> None:
        pending.append((number, frame))
        if on_signal is not None:
            on_signal()

    # The functions of `signal` convert to enums, which takes longer than a small query.
    handlers: dict[int, Any] = {number: _signal.getsignal(number) for number in DEFERRED_SIGNALS}
    handlers = {number: handler for number, handler in handlers.items() if callable(handler)}
    try:
        for number in handlers:
            _signal.signal(number, defer)
        yield
    finally:
        for number, handler in handlers.items():
            _signal.signal(number, handler)
        for number, frame in pending[:1]:
            handlers[number](number, frame)
