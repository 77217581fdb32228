"""Publication: a folder gets its final name only after everything in it is written and verified.

    remove what a killed run left next to the folder
    create the new folder in a temporary folder next to it, readable by its owner only
    fill it (done by the caller, including verification) and flush it to disk
    exchange both folders in one file system operation, then remove the old one

A crash leaves either the old release or the complete new one. If the system cannot exchange two folders in one
operation, the old one is renamed first; after a crash at that moment the next run restores it. If two runs write the
same new folder, the second is refused, at the start or at the exchange.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

from kinfold.disk import folders
from kinfold.errors import PolicyError
from kinfold.tables.databases.address import SCHEME

RELEASE_PARTS = {"public", "internal"}
NEW_FOLDER, OLD_FOLDER = "new", "old"  # in the temporary folder
MAX_ATTEMPTS = 10  # another process may create and remove the same folder meanwhile


def check_target_folder(folder: Path, *, force: bool) -> None:
    """Raise, before any work, if a folder cannot be written or holds anything but a release."""
    if SCHEME.match(str(folder)) and not Path(folder.parts[0]).exists():
        what = f"'{folder.parts[0]}//…' is an address, and a release is written to a folder"
        raise PolicyError(what, fix="name a folder; copy the finished folder to an object store, certificate.json last")
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise PolicyError(f"'{folder}' is not a folder", fix="name a folder for the release: --out DIR")
    if folder.is_dir() and (names := {entry.name for entry in folder.iterdir()}):
        if not names <= RELEASE_PARTS:
            what = f"'{folder}' holds files that do not belong to a release"
            raise PolicyError(what, fix="name a new folder: --out DIR")
        if not _has_certificate(folder):
            what = f"'{folder}' has no kinfold certificate: it is not a complete release"
            raise PolicyError(what, fix="name a new folder: --out DIR, or remove that folder yourself")
        if not force:
            what = f"'{folder}' already holds a release"
            raise PolicyError(what, fix="replace it with --force, or name another folder")
    parent = next(path for path in folder.absolute().parents if path.exists())
    if not os.access(parent, os.W_OK | os.X_OK):
        raise PolicyError(f"'{parent}' is not writable", fix="choose a folder that you may write to")


def publish(
    folder: Path, fill: Callable[[Path], None], *, force: bool = False, elsewhere: Callable[[], None] | None = None
) -> None:
    """Let `fill` write a new folder, then give it its name. On any error the old folder stays.

    `elsewhere` commits what `fill` wrote outside of the folder. It runs before the rename, because it is more likely to
    fail.
    """
    check_target_folder(folder, force=force)
    parents = [path for path in folder.absolute().parents if not path.exists()]  # the innermost first
    prefix = f".{folder.name}-"
    scratch: Path | None = None
    try:
        for path in reversed(parents):
            folders.record_event("opened", path)
            path.mkdir(exist_ok=True)
        folders.sweep_scratch(
            prefix, folder.parent, folder.name, lambda left: folders.restore_folder(left / OLD_FOLDER, folder)
        )
        scratch = folders.make_scratch(prefix, folder.parent, folder.name)
        (scratch / NEW_FOLDER).mkdir(mode=0o700)
        fill(scratch / NEW_FOLDER)
        _set_permissions(scratch / NEW_FOLDER)
        folders.flush_folder(scratch / NEW_FOLDER)
        with folders.protect_rename(folder, f"the new release is in place at '{folder}'"):
            if elsewhere is not None:
                elsewhere()
            _exchange_folders(scratch, folder, force=force)
        folders.flush_entries([folder.parent, *(path.parent for path in parents)])
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            what, fix = f"no space left to write '{folder}'", "free some space, or choose another folder"
        else:
            what, fix = f"cannot write '{folder}': {error.strerror}", "choose a folder that you may write to"
        raise PolicyError(what, fix=fix) from error
    finally:
        # if the old release could not be put back, its only copy stays here: the next run restores it
        if scratch is not None and not ((scratch / OLD_FOLDER).exists() and not folder.exists()):
            folders.remove_scratch(scratch)
        for path in parents:
            with contextlib.suppress(OSError):
                path.rmdir()  # succeeds only if it is empty


def _has_certificate(folder: Path) -> bool:
    """Whether a folder holds a certificate of any version of kinfold."""
    file = folder / "public" / "certificate.json"
    try:
        return file.is_file() and "kinfold" in json.loads(file.read_bytes())["made_with"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return False


def _set_permissions(new: Path) -> None:
    """Give the public part the permissions of any new folder; the internal part stays readable by its owner only."""
    mask = os.umask(0)
    os.umask(mask)
    new.chmod(0o777 & ~mask)
    (new / "public").chmod(0o777 & ~mask)
    for path in (new / "public").rglob("*"):
        path.chmod((0o777 if path.is_dir() else 0o666) & ~mask)
    (new / "internal").chmod(0o700)


def _exchange_folders(scratch: Path, folder: Path, *, force: bool) -> None:
    for _ in range(MAX_ATTEMPTS):
        if folders.place_folder(scratch / NEW_FOLDER, folder):
            return
        check_target_folder(folder, force=force)  # another process may have been faster
        if folders.swap_folders(scratch / NEW_FOLDER, folder, scratch / OLD_FOLDER):
            return
    raise PolicyError(f"other processes are changing '{folder}'", fix="name another folder: --out DIR")
