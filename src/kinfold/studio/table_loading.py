"""The table of a session: open it, read it again with other options, close it."""

from __future__ import annotations

import shutil
import unicodedata
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from kinfold.errors import KinfoldError
from kinfold.policy.model import Policy
from kinfold.policy.toml_text import edit_text
from kinfold.policy.toml_values import KeyPath, parse_toml
from kinfold.profiling.source_detection import select_source_keys
from kinfold.studio.job_queue import Job
from kinfold.studio.refusals import Refusal
from kinfold.studio.sessions import Sessions, SessionTable, StudioSession, read_json
from kinfold.tables.readers.files import Format, detect_format

MAX_NAME_LENGTH = 120  # characters of a file name
DEFAULT_NAME = "table.csv"
VALUE_OPTIONS = ("decimal", "thousands", "na", "dates")
OPTIONS_BY_FORMAT = {
    Format.CSV: ("separator", "encoding", "header", "skip", "skip_totals", *VALUE_OPTIONS),
    Format.WORKBOOK: ("sheet", "header", "skip", "skip_totals", *VALUE_OPTIONS),
    Format.STATISTICS: ("encoding",),
}
MIN_ROWS_OPENED_EARLY = 100_000  # opening such a table takes seconds


def clean_name(name: str) -> str:
    r"""Return a safe file name: no path, no control characters, not too long.

    >>> clean_name("../../etc/passwd"), clean_name("C:\\data\\a.csv"), clean_name(".."), clean_name("a\nb.csv")
    ('passwd', 'a.csv', 'table.csv', 'ab.csv')
    """
    last = unicodedata.normalize("NFC", name.replace("\\", "/")).split("/")[-1].strip().lstrip(".")
    printable = "".join(char for char in last if char.isprintable())
    stem, dot, suffix = printable.rpartition(".")
    short = printable[:MAX_NAME_LENGTH]
    if len(suffix) < 20:
        short = f"{stem[: MAX_NAME_LENGTH - len(suffix)]}{dot}{suffix}"
    while len(short.encode("utf-8", "replace")) > 200:
        short = short[1:]
    return short if short.strip(". ") else DEFAULT_NAME


def make_table_path(session: StudioSession, name: str) -> Path:
    """Return the path of a new table, in a folder of its own inside the session's folder."""
    return session.make_folder(session.new_id("t")) / clean_name(name)


async def load_table(session: StudioSession, table: SessionTable) -> None:
    """Close the previous table of a session, and open this one."""
    await close_table(session)
    session.source = table
    if table.kind == "demo" and session.sessions.demo:  # it was profiled before
        _take_facts(session, table, {}, True, {**session.sessions.demo, "path": str(table.path)})
    else:
        _start_loading(session, table, {}, detect=True)
    session.mark_changed()


def reopen(session: StudioSession, options: Mapping[str, Any], *, detect: bool = False) -> None:
    """Read the table again if the reading options of the policy changed."""
    table = session.source
    if table is None or (dict(options) == dict(table.read_options) and not detect and table.state == "ready"):
        return
    if table.job is not None and not table.job.is_over:
        session.sessions.jobs.stop(table.job)
    _start_loading(session, table, options, detect=detect)


def retry(session: StudioSession, changes: Mapping[str, Any]) -> None:
    """Read a file that could not be opened with other options; options set before are kept."""
    table = session.source
    if table is None or table.state != "failed" or not get_read_options(table):
        raise Refusal(409, "there is no file to read with other options", "open one first")
    options = {key: value for key, value in {**table.read_options, **changes}.items() if value is not None}
    Policy.parse({"privacy": {"k": 2}, "source": options})
    table.read_options = options
    _start_loading(session, table, options, detect=True)
    session.mark_changed()


def get_bounds(session: StudioSession) -> dict[str, int | None]:
    """Return the reading limits: an uploaded file may not be larger than an upload when it is unpacked."""
    given = session.source is not None and session.source.kind == "given"  # the command's table has no limit
    return {"columns": session.limits.columns, "expanded": None if given else session.limits.upload_bytes}


def get_read_options(table: SessionTable) -> tuple[str, ...]:
    """Return the keys of `[source]` that apply to a file of this format; none for rows of a database."""
    try:
        return OPTIONS_BY_FORMAT.get(detect_format(table.path).format, ()) if table.kind != "database" else ()
    except KinfoldError:
        return ()


def _start_loading(session: StudioSession, table: SessionTable, options: Mapping[str, Any], *, detect: bool) -> None:
    ident = session.new_id("o")
    request = {
        "source": str(table.path),
        "workspace": str(session.folder),
        "written": dict(options),
        "detect": detect,
        "fresh": not table.facts,
        "policy": table.policy,
        "address": table.full_address,
        "bounds": get_bounds(session),
    }
    table.full_address = None
    on_change = partial(_handle_progress, session, table, dict(options), detect)
    table.job = Job(ident, "open", session, session.make_folder(ident), request, on_change)
    table.state, table.problems = "opening", []
    session.sessions.jobs.submit(table.job)


def _handle_progress(
    session: StudioSession,
    table: SessionTable,
    options: Mapping[str, Any],
    detect: bool,
    job: Job,
) -> None:
    """Publish the progress of opening a table, and take its result at the end."""
    if session.source is not table or table.job is not job:
        return
    if job.state == "done":
        _take_facts(session, table, options, detect, read_json(job.folder / "result.json"))
        if table.kind == "demo" and not options:
            session.sessions.demo = table.facts
            _share_demo(session.sessions)
        if table.facts["rows"] > MIN_ROWS_OPENED_EARLY:
            form = Policy.parse({"privacy": {"k": 2}, "source": dict(table.read_options)}).source.form
            session.sessions.open_tables.open_early(session, table.path, form)
        shutil.rmtree(job.folder, ignore_errors=True)
    elif job.is_over:
        table.state, table.problems = "failed", job.problems
    session.mark_changed()


def _share_demo(sessions: Sessions) -> None:
    """Give the profile of the demo table to all sessions that wait for it."""
    for session in sessions:
        table = session.source
        if table is not None and table.kind == "demo" and not table.facts and table.job is not None:
            job, table.job = table.job, None
            sessions.jobs.stop(job)
            _take_facts(session, table, {}, True, {**sessions.demo, "path": str(table.path)})
            session.mark_changed()


def _take_facts(
    session: StudioSession, table: SessionTable, options: Mapping[str, Any], detect: bool, facts: Mapping[str, Any]
) -> None:
    first = not table.facts
    table.facts, table.path, table.state = facts, Path(facts["path"]), "ready"
    table.size = table.path.stat().st_size
    if first:
        session.history.start(facts["policy"], f"opened {table.name}")
    elif detect:
        detected = select_source_keys(facts["source"])
        keys: dict[KeyPath, Any] = {("source", key): detected.get(key) for key in {*detected, *options}}
        session.history.text = edit_text(session.history.text, keys)
    table.read_options = dict(parse_toml(session.history.text).get("source", {})) if first or detect else dict(options)


async def close_table(session: StudioSession) -> None:
    """Close the table of a session; remove its runs and its files."""
    await session.sessions.jobs.cancel_all(session)
    await session.sessions.open_tables.close_table(session)
    table, session.source = session.source, None
    folders = [job.folder for job in (*(run.job for run in session.runs.values()), *session.inspections.values())]
    if table is not None and session.folder in table.path.parents:
        folders.append(table.path.parent)
    session.runs.clear()
    session.inspections.clear()
    session.history.text, session.draft = "", None
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
