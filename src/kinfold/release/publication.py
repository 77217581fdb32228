"""Publication: a folder takes its final name only when everything in it is made and verified.

    sweep what a killed run left beside the folder
    make the new one in a temporary folder beside it, for the owner's eyes alone
    fill it (the caller's affair, verification included), and bring it to the disk
    exchange the two in one step of the file system, then remove the old one

A crash leaves the old release or the whole new one. Where the system cannot exchange two folders in one step, the old
one is renamed away first: after a crash in that instant the next run puts it back. Whoever comes second to a new
folder is refused, at the start or at the exchange.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

from kinfold.disk import exchange, journal, scratch
from kinfold.errors import PolicyError

PARTS = {"public", "internal"}
NEW, OLD = "new", "old"  # in the temporary folder
ATTEMPTS = 10  # others may come and go in the same place


def check_place(folder: Path, *, force: bool) -> None:
    """Refuse, before any work, a folder that cannot be written or that holds something else than a release."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise PolicyError(f"'{folder}' is not a folder", fix="name a folder for the release: --out DIR")
    if folder.is_dir() and (held := {entry.name for entry in folder.iterdir()}):
        if not held <= PARTS:
            raise PolicyError(f"'{folder}' holds other things than a release", fix="name a new folder: --out DIR")
        if not _certified(folder):
            raise PolicyError(
                f"'{folder}' holds no certificate of kinfold's: it is no release, or not a whole one",
                fix="name a new folder: --out DIR, or remove that one yourself",
            )
        if not force:
            raise PolicyError(
                f"'{folder}' holds a release already", fix="replace it with --force, or name another folder"
            )
    parent = next(path for path in folder.absolute().parents if path.exists())
    if not os.access(parent, os.W_OK | os.X_OK):
        raise PolicyError(f"'{parent}' is not writable", fix="choose a folder that you may write to")


def publish(
    folder: Path, fill: Callable[[Path], None], *, force: bool = False, elsewhere: Callable[[], None] | None = None
) -> None:
    """Let `fill` make a folder and give it its name when that went well; whatever goes wrong, nothing is lost.

    `elsewhere` gives what was made in another place its name, right before: of the two it is what may still fail.
    """
    check_place(folder, force=force)
    opened = [path for path in folder.absolute().parents if not path.exists()]  # the innermost first
    beside: Path | None = None
    try:
        _open(opened)
        scratch.sweep(_prefix(folder), folder.parent, folder.name, lambda left: exchange.put_back(left / OLD, folder))
        beside = scratch.make(_prefix(folder), folder.parent, folder.name)
        (beside / NEW).mkdir(mode=0o700)
        fill(beside / NEW)
        _open_up(beside / NEW)
        exchange.flush(beside / NEW)
        with exchange.naming(folder, f"the new release is in place at '{folder}'"):
            if elsewhere is not None:
                elsewhere()
            _take_place(beside, folder, force=force)
        exchange.flush_names([folder.parent, *(path.parent for path in opened)])
    except OSError as error:
        raise _explained(error, folder) from error
    finally:
        if beside is not None and not _holds_the_only_one(beside, folder):
            scratch.remove(beside)  # with what failed, or what was there before
        for path in opened:
            with contextlib.suppress(OSError):
                path.rmdir()  # if it stayed empty


def _certified(folder: Path) -> bool:
    """Whether a folder holds a certificate of kinfold's, of whatever version."""
    file = folder / "public" / "certificate.json"
    try:
        return file.is_file() and "kinfold" in json.loads(file.read_bytes())["made_with"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return False


def _prefix(folder: Path) -> str:
    return f".{folder.name}-"


def _open(folders: list[Path]) -> None:
    for path in reversed(folders):
        journal.tell("opened", path)
        path.mkdir(exist_ok=True)


def _open_up(made: Path) -> None:
    """Give the public part the rights of any new folder; the internal part stays the owner's."""
    mask = os.umask(0)
    os.umask(mask)
    made.chmod(0o777 & ~mask)
    (made / "public").chmod(0o777 & ~mask)
    for file in (made / "public").iterdir():
        file.chmod(0o666 & ~mask)
    (made / "internal").chmod(0o700)


def _take_place(beside: Path, folder: Path, *, force: bool) -> None:
    for _ in range(ATTEMPTS):
        if exchange.place(beside / NEW, folder):
            return
        check_place(folder, force=force)  # somebody else may have been first, or have put other things there
        if exchange.swap(beside / NEW, folder, beside / OLD):
            return
    raise PolicyError(f"'{folder}' is being changed by others", fix="name another folder: --out DIR")


def _holds_the_only_one(beside: Path, folder: Path) -> bool:
    """Whether the old release could not be put back: the next run to this folder tries again."""
    return (beside / OLD).exists() and not folder.exists()


def _explained(error: OSError, folder: Path) -> PolicyError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return PolicyError(f"no space left to write '{folder}'", fix="free some space, or choose another folder")
    return PolicyError(f"cannot write '{folder}': {error.strerror}", fix="choose a folder that you may write to")
