"""Runs of a session: start, describe and remove them, pack their release or save it into the workspace.

A saved folder appears complete or not at all, and never replaces an existing file or folder. Nothing outside the
workspace is written: the name of a folder is one plain name.
"""

from __future__ import annotations

import errno
import io
import os
import shlex
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from kinfold.disk import folders
from kinfold.policy.toml_values import KeyPath
from kinfold.studio.job_queue import Job
from kinfold.studio.policy_routes import check_policy, edit_policy_text, get_policy
from kinfold.studio.refusals import Refusal
from kinfold.studio.sessions import StudioRun, StudioSession
from kinfold.studio.table_loading import clean_name, get_bounds


def start_run(session: StudioSession, changes: Mapping[KeyPath, Any]) -> StudioRun:
    """Queue a run of the policy, with some keys changed for this run only."""
    table, text = session.table, get_policy_text(session)
    text = edit_policy_text(text, changes) if changes else text
    policy, _ = check_policy(session, text)
    if policy.review.open_questions:
        raise Refusal(409, "a question of the policy is open", "answer it in step 1, Open")
    over = [ident for ident, run in session.runs.items() if run.job.is_over]
    if len(session.runs) >= session.limits.runs and over:
        remove_run(session, over[0])
    job = _make_job(session, "run", text)
    requested = {
        "method": policy.method.name,
        **{key: getattr(policy.privacy, key) for key in ("k", "t", "l", "unit")},
        **{key: getattr(policy.method, key) for key in ("refine", "suppression", "seed")},
    }
    run = StudioRun(job, text, requested, dict(table.read_options))
    session.runs[job.ident] = run
    try:
        session.sessions.jobs.submit(job)
    except Refusal:
        del session.runs[job.ident]
        shutil.rmtree(job.folder, ignore_errors=True)
        raise
    session.mark_changed()
    return run


def start_inspection(session: StudioSession, kind: str, arguments: Mapping[str, Any]) -> Job:
    """Queue another job on the table, with the current policy."""
    job = _make_job(session, kind, get_policy_text(session), arguments)
    for old in [each for each in session.inspections.values() if each.is_over][: -session.limits.waiting]:
        del session.inspections[old.ident]
        shutil.rmtree(old.folder, ignore_errors=True)
    session.sessions.jobs.submit(job)
    session.inspections[job.ident] = job
    return job


def get_policy_text(session: StudioSession) -> str:
    """Return the text of the policy; refuse if no table is open."""
    get_policy(session)
    return session.history.text


def _make_job(session: StudioSession, kind: str, text: str, arguments: Mapping[str, Any] | None = None) -> Job:
    """Return a job on the open table; its policy is in the session's folder, next to its hierarchies."""
    ident = session.new_id("r" if kind == "run" else "j")
    folder = session.make_folder(ident)
    path = session.folder / f"policy-{ident}.toml"
    path.write_text(text, encoding="utf-8")
    request = {"source": str(session.table.path), "policy": str(path), "bounds": get_bounds(session)}
    lane = "run" if kind == "run" else "short"
    return Job(ident, kind, session, folder, {**request, **(arguments or {})}, partial(_publish, session), lane)


def _publish(session: StudioSession, job: Job) -> None:
    progress = job.describe_progress()
    if job.kind != "run":
        session.publish("job", {key: value for key, value in progress.items() if key != "loss"})
        return
    session.publish("run", progress)
    if job.is_over or job.stage == "queued":
        session.mark_changed()


def remove_run(session: StudioSession, ident: str) -> None:
    """Remove a finished run and its files."""
    run = session.runs.pop(ident)
    shutil.rmtree(run.job.folder, ignore_errors=True)
    (session.folder / f"policy-{ident}.toml").unlink(missing_ok=True)


def name_run(session: StudioSession, run: StudioRun) -> str:
    """Return a short unique name of a run; a repeated label gets a number."""
    label = _label_run(run)
    same = [other for other in session.runs.values() if _label_run(other) == label]
    number = same.index(run) + 1 if run in same else 1
    return label if number == 1 else f"{label} ({number})"


def _label_run(run: StudioRun) -> str:
    method = (run.job.summary or {}).get("method", run.requested["method"])
    levels = "".join(f", {key} = {run.requested[key]:g}" for key in ("t", "l") if run.requested[key] is not None)
    refine = run.requested["refine"]
    refined = f", refined {refine:g} s" if isinstance(refine, float) and refine else ", refined" if refine else ""
    return f"{method}, k = {run.requested['k']}{levels}{refined}"


def describe_run(session: StudioSession, run: StudioRun, *, brief: bool = False) -> dict[str, Any]:
    """Return a run as JSON values; `brief` omits its policy and its curve."""
    job = run.job
    values = {
        **job.describe_progress(),
        "queued": session.sessions.jobs.count_ahead(job),
        "method": (job.summary or {}).get("method"),
        "asked": dict(run.requested),
        "name": name_run(session, run),
        "problems": job.problems,
        "summary": job.summary,
        "stale": session.source is None or dict(session.source.read_options) != dict(run.read_options),
    }
    return values if brief else {**values, "policy": run.policy_text, "curve": job.curve, "bound": job.bound}


def get_table_stem(session: StudioSession) -> str:
    """Return the name of the table without its suffix."""
    return Path(clean_name(session.table.name)).stem or "table"


def describe_repeat(session: StudioSession) -> dict[str, str]:
    """Return the command and the Python code that repeat a run."""
    name = session.table.address or session.table.name
    command = f"kinfold anonymize {shlex.quote(name)} --policy policy.toml --out release"
    lines = ["import kinfold", "", f'release = kinfold.anonymize({name!r}, "policy.toml")', 'release.save("release")']
    return {"command": command, "python": "\n".join(lines)}


def iterate_files(folder: Path, session: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a folder; hierarchy files of the policy are added, with relative paths."""
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        if path.name == "policy.toml" and str(session).encode() in content:
            content = content.replace(f"{session}/".encode(), b"")
            for file in sorted((session / "hierarchies").glob("*.csv")):
                yield f"hierarchies/{file.name}", file.read_bytes()
        yield path.name, content


def pack_folder(folder: Path, session: Path) -> bytes:
    """Return a folder as a ZIP archive."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in iterate_files(folder, session):
            file.writestr(name, content)
    return archive.getvalue()


def save_folder(folder: Path, session: Path, workspace: Path, name: str) -> Path:
    """Copy a folder into the workspace under this name, and return its path."""
    existing = Refusal(409, f"{name!r} exists already", "use another name, or move the existing folder")
    if not name or name != clean_name(name) or set(name) & set('/\\:*?"<>|'):
        raise Refusal(422, "this is not a folder name", "use a plain name without a path")
    target = workspace / name
    if os.path.lexists(target):
        raise existing
    try:
        folders.sweep_scratch(f".{name}-", workspace, name)  # of a server that was killed
        scratch = folders.make_scratch(f".{name}-", workspace, name)
        try:
            copy = scratch / "new"
            copy.mkdir(mode=0o700)
            for file, content in iterate_files(folder, session):
                (copy / file).parent.mkdir(mode=0o700, exist_ok=True)
                (copy / file).write_bytes(content)
            _set_permissions(copy, internal=folder.name == "internal")
            folders.flush_folder(copy)
            if not folders.place_folder(copy, target):
                raise existing
            folders.flush_entries([workspace])
        finally:
            folders.remove_scratch(scratch)
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
