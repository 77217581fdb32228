"""The files of a release that a page downloads or saves, and the command and the code that repeat it."""

from __future__ import annotations

import errno
import os
import secrets
import shlex
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

from kinfold.disk import folders
from kinfold.studio.policy_routes import edit_policy_text, get_policy, inline_hierarchies
from kinfold.studio.refusals import Refusal
from kinfold.studio.sessions import StudioRun, StudioSession, read_json
from kinfold.studio.table_jobs import HIERARCHY_FOLDER
from kinfold.studio.table_loading import clean_name


def write_repeat_policy(session: StudioSession, run: StudioRun) -> str:
    """Return the self-contained policy of a run; a timed refinement becomes a number of steps."""
    method = get_policy(session, run.policy_text)[0].method
    text = inline_hierarchies(session, run.policy_text)
    timed = isinstance(method.refine, float) and method.refine > 0 and method.refine_steps is None
    if timed and run.job.state == "done":
        steps = read_json(run.job.folder / "result.json")["steps"]
        return edit_policy_text(text, {("method", "refine_steps"): steps or 0})
    return text


def get_table_stem(session: StudioSession) -> str:
    """Return the name of the table without its suffix."""
    return Path(clean_name(session.table.name)).stem or "table"


def describe_repeat(session: StudioSession) -> dict[str, str]:
    """Return the command and the Python code that repeat a run."""
    name = session.table.address or session.table.name
    command = f"kinfold anonymize {shlex.quote(name)} --policy policy.toml --out release"
    lines = ["import kinfold", "", f'release = kinfold.anonymize({name!r}, "policy.toml")', 'release.save("release")']
    return {"command": command, "python": "\n".join(lines)}


def _iterate_files(folder: Path, session: Path) -> Iterator[tuple[str, Path | bytes]]:
    """Yield the files of a folder, or the changed content; hierarchy files of the policy have relative paths."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        if path.name == "policy.toml" and str(session).encode() in (content := path.read_bytes()):
            for file in sorted((session / HIERARCHY_FOLDER).glob("*.csv")):
                yield f"{HIERARCHY_FOLDER}/{file.name}", file
            yield path.relative_to(folder).as_posix(), content.replace(f"{session}/".encode(), b"")
        else:
            yield path.relative_to(folder).as_posix(), path


def pack_folder(folder: Path, session: Path) -> Path:
    """Return a ZIP archive of a folder, next to it; it is made once, file by file, so that memory stays small."""
    archive = folder.with_suffix(".zip")
    if not archive.exists():
        part = folder.with_suffix(f".{secrets.token_hex(4)}")
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as file:
            for name, content in _iterate_files(folder, session):
                if isinstance(content, bytes):
                    file.writestr(name, content)
                else:
                    file.write(content, name)
        part.replace(archive)
    return archive


def save_folder(folder: Path, session: Path, target: Path) -> Path:
    """Copy a folder of a release to a new folder in the workspace, and return its path."""
    existing = Refusal(409, f"{target.name!r} exists already", "use another name, or move the existing folder")
    if os.path.lexists(target):
        raise existing
    try:
        with folders.create_folder(target, f"a release is in '{target}'") as copy:
            for file, content in _iterate_files(folder, session):
                (copy / file).parent.mkdir(mode=0o700, exist_ok=True)
                if isinstance(content, bytes):
                    (copy / file).write_bytes(content)
                else:
                    shutil.copyfile(content, copy / file)
            _set_permissions(copy, internal=folder.name == "internal")
    except FileExistsError:
        raise existing from None
    except OSError as error:
        fix = "free some space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "download it instead"
        raise Refusal(422, f"the folder cannot be written: {error.strerror}", fix) from None
    return target


def _set_permissions(folder: Path, *, internal: bool) -> None:
    """Give a public folder the usual permissions; an internal one stays private."""
    mask = os.umask(0)
    os.umask(mask)
    mask |= 0o077 if internal else 0
    for path in (folder, *folder.rglob("*")):
        path.chmod((0o777 if path.is_dir() else 0o666) & ~mask)
