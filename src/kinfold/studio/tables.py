"""Tables: how a session gets one, reads it again another way, and lets it go."""

from __future__ import annotations

import shutil
import unicodedata
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from kinfold.errors import KinfoldError
from kinfold.profiling.source_guess import worth_writing
from kinfold.request.policy import Policy, parse_toml
from kinfold.request.policy_text import Key, edited
from kinfold.rows.engines.source import Format, format_of
from kinfold.studio.background_jobs import Job
from kinfold.studio.error_answers import Refused
from kinfold.studio.sessions import Opened, Sessions, StudioSession, read_json

LONGEST_NAME = 120
NAMELESS = "table.csv"
VALUES = ("decimal", "thousands", "na", "dates")
READING = {
    Format.CSV: ("separator", "encoding", "header", "skip", *VALUES),
    Format.WORKBOOK: ("sheet", "header", "skip", *VALUES),
    Format.STATISTICS: ("encoding",),
}
LARGE = 100_000  # rows: such a table is open before somebody asks for its rows, for that takes seconds


def clean_name(name: str) -> str:
    r"""Return the name of a file that is nothing but a name.

    >>> clean_name("../../etc/passwd"), clean_name("C:\\data\\a.csv"), clean_name(".."), clean_name("a\nb.csv")
    ('passwd', 'a.csv', 'table.csv', 'ab.csv')
    """
    last = unicodedata.normalize("NFC", name.replace("\\", "/")).split("/")[-1].strip().lstrip(".")
    shown = "".join(char for char in last if char.isprintable())
    stem, dot, suffix = shown.rpartition(".")
    short = f"{stem[: LONGEST_NAME - len(suffix)]}{dot}{suffix}" if len(suffix) < 20 else shown[:LONGEST_NAME]
    while len(short.encode("utf-8", "replace")) > 200:
        short = short[1:]
    return short if short.strip(". ") else NAMELESS


def place_for(session: StudioSession, name: str) -> Path:
    """Return where a new table of this name goes: a folder of its own inside the session's."""
    return session.room(session.number("t")) / clean_name(name)


async def opened(sessions: Sessions, session: StudioSession, table: Opened) -> int:
    """Let go of the table before, and open this one."""
    await let_go(sessions, session)
    session.source = table
    if table.kind == "demo" and sessions.demo:  # the same for everybody, and looked at before
        _take_facts(session, table, {}, True, {**sessions.demo, "path": str(table.path)})
    else:
        _begin(sessions, session, table, {}, guessing=True)
    return session.changed()


def reopen(sessions: Sessions, session: StudioSession, written: Mapping[str, Any], *, guessing: bool = False) -> None:
    """Read the table again where the policy says now that it is written otherwise."""
    table = session.source
    if table is None or (dict(written) == dict(table.read) and not guessing and table.state == "ready"):
        return
    if table.job is not None and not table.job.over:
        sessions.jobs.drop(table.job)
    _begin(sessions, session, table, written, guessing=guessing)


def retry(sessions: Sessions, session: StudioSession, given: Mapping[str, Any]) -> int:
    """Read a file that could not be opened in another way; what was said before is still said."""
    table = session.source
    if table is None or table.state != "failed" or not reading_options(table):
        raise Refused(409, "there is no file here that could be read otherwise", "open one first")
    written = {key: value for key, value in {**table.read, **given}.items() if value is not None}
    Policy.parse({"privacy": {"k": 2}, "source": written})
    table.read = written
    _begin(sessions, session, table, written, guessing=True)
    return session.changed()


def bounds_of(session: StudioSession) -> dict[str, int | None]:
    """Return how much of the table is read: an upload is no larger unpacked than it may be plain."""
    given = session.source is not None and session.source.kind == "given"  # by the command, and as large as it likes
    return {"columns": session.limits.columns, "expanded": None if given else session.limits.upload_bytes}


def reading_options(table: Opened) -> tuple[str, ...]:
    """Return the keys of `[source]` that say how a file of this format is read; none for rows of a database."""
    try:
        return READING.get(format_of(table.path).format, ()) if table.kind != "database" else ()
    except KinfoldError:
        return ()


def _begin(
    sessions: Sessions, session: StudioSession, table: Opened, written: Mapping[str, Any], *, guessing: bool
) -> None:
    ident = session.number("o")
    request = {
        "source": str(table.path),
        "workspace": str(session.folder),
        "written": dict(written),
        "guessing": guessing,
        "fresh": not table.facts,
        "policy": table.policy,
        "address": table.asked,
        "bounds": bounds_of(session),
    }
    table.asked = None
    told = partial(_told, sessions, session, table, dict(written), guessing)
    table.job = Job(ident, "open", session, session.room(ident), request, told)
    table.state, table.problems = "opening", []
    sessions.jobs.submit(table.job)


def _told(
    sessions: Sessions,
    session: StudioSession,
    table: Opened,
    written: Mapping[str, Any],
    guessing: bool,
    job: Job,
) -> None:
    """Take in how far the opening is, and in the end what was found."""
    if session.source is not table or table.job is not job:
        return
    if job.state == "done":
        _take_facts(session, table, written, guessing, read_json(job.folder / "opening.json"))
        if table.kind == "demo" and not written:
            sessions.demo = table.facts
            _share_demo(sessions)
        if table.facts["rows"] > LARGE:
            form = Policy.parse({"privacy": {"k": 2}, "source": dict(table.read)}).source.form
            sessions.desks.prepare(session, table.path, form)
        shutil.rmtree(job.folder, ignore_errors=True)
    elif job.over:
        table.state, table.problems = "failed", job.problems
    session.changed()


def _share_demo(sessions: Sessions) -> None:
    """Give what is known of the demo table to everybody who waits for it."""
    for session in sessions:
        table = session.source
        if table is not None and table.kind == "demo" and not table.facts and table.job is not None:
            job, table.job = table.job, None
            sessions.jobs.drop(job)
            _take_facts(session, table, {}, True, {**sessions.demo, "path": str(table.path)})
            session.changed()


def _take_facts(
    session: StudioSession, table: Opened, written: Mapping[str, Any], guessing: bool, facts: Mapping[str, Any]
) -> None:
    first = not table.facts
    table.facts, table.path, table.state = facts, Path(facts["path"]), "ready"
    table.size = table.path.stat().st_size
    if first:
        session.history.begin(facts["policy"], f"opened {table.name}")
    elif guessing:
        found = worth_writing(facts["source"])
        keys: dict[Key, Any] = {("source", key): found.get(key) for key in {*found, *written}}
        session.history.amend(edited(session.history.text, keys))
    table.read = dict(parse_toml(session.history.text).get("source", {})) if first or guessing else dict(written)


async def let_go(sessions: Sessions, session: StudioSession) -> None:
    """Forget the table of a session, its runs and its files."""
    await sessions.jobs.forget(session)
    await sessions.desks.forget(session)
    table, session.source = session.source, None
    gone = [run.job.folder for run in session.runs.values()] + [look.folder for look in session.looks.values()]
    gone += [] if table is None or session.folder not in table.path.parents else [table.path.parent]
    session.runs.clear()
    session.looks.clear()
    session.history.text, session.draft = "", None
    for folder in gone:
        shutil.rmtree(folder, ignore_errors=True)
