"""Publication: a folder takes its final name only when everything in it is made and verified.

    make the new folder beside the old one, for the owner's eyes alone
    fill it (the caller's affair, verification included)
    exchange the two in one step of the file system, then remove the old one

A crash leaves the old release or the whole new one. Where the system cannot exchange two folders in one step, the old
one is renamed away first: a crash in that instant leaves it beside, under its temporary name.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from kinfold.errors import PolicyError

PARTS = {"public", "internal"}
RENAME_EXCHANGE = 2
AT_FDCWD = -100


def check_place(folder: Path, *, force: bool) -> None:
    """Refuse, before any work, a folder that cannot be written or that holds something else than a release."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise PolicyError(f"'{folder}' is not a folder", fix="name a folder for the release: --out DIR")
    if folder.is_dir() and (held := {entry.name for entry in folder.iterdir()}):
        if not held <= PARTS:
            raise PolicyError(f"'{folder}' holds other things than a release", fix="name a new folder: --out DIR")
        if not force:
            raise PolicyError(
                f"'{folder}' holds a release already", fix="replace it with --force, or name another folder"
            )
    parent = next(path for path in folder.absolute().parents if path.exists())
    if not os.access(parent, os.W_OK | os.X_OK):
        raise PolicyError(f"'{parent}' is not writable", fix="choose a folder that you may write to")


def publish(folder: Path, fill: Callable[[Path], None], *, force: bool = False) -> None:
    """Let `fill` make a folder and give it its name when that went well; whatever goes wrong, nothing is lost."""
    check_place(folder, force=force)
    beside: Path | None = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        fill(beside)
        _open_up(beside)
        _exchange(beside, folder)
    except OSError as error:
        raise _explained(error, folder) from error
    finally:
        if beside is not None:
            shutil.rmtree(beside, ignore_errors=True)  # what failed, or what was there before


def _open_up(made: Path) -> None:
    """Give the public part the rights of any new folder; the internal part stays the owner's."""
    mask = os.umask(0)
    os.umask(mask)
    made.chmod(0o777 & ~mask)
    (made / "public").chmod(0o777 & ~mask)
    for file in (made / "public").iterdir():
        file.chmod(0o666 & ~mask)
    (made / "internal").chmod(0o700)


def _exchange(made: Path, folder: Path) -> None:
    if not folder.exists():
        made.rename(folder)
        return
    if _swapped(made, folder):
        return
    old = made.with_name(made.name + ".old")
    folder.rename(old)
    made.rename(folder)
    old.rename(made)


def _swapped(one: Path, other: Path) -> bool:
    """Exchange two folders in one step, if this system can."""
    if not sys.platform.startswith("linux"):
        return False
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        return False
    return int(renameat2(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE)) == 0


def _explained(error: OSError, folder: Path) -> PolicyError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return PolicyError(f"no space left to write '{folder}'", fix="free some space, or choose another folder")
    return PolicyError(f"cannot write '{folder}': {error.strerror}", fix="choose a folder that you may write to")
