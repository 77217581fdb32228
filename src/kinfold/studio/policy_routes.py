"""Routes of the policy: set keys, replace the text, undo and redo, save it as a project.

Every change of a policy goes through `apply_policy_text`: it checks the text, adds it to the history, and reads the
table again if the reading options changed.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from kinfold.errors import KinfoldError, PolicyError, Problem
from kinfold.hierarchies import read_arx
from kinfold.hierarchies.grouping import get_label_rows
from kinfold.policy.model import Policy
from kinfold.policy.review import complete_changes
from kinfold.policy.toml_text import edit_text, parse_policy_text
from kinfold.policy.toml_values import KeyPath
from kinfold.studio.guard import Call, route
from kinfold.studio.history import describe_changes
from kinfold.studio.refusals import PolicyTextError, Refusal
from kinfold.studio.sessions import StudioSession
from kinfold.studio.table_jobs import HIERARCHY_FOLDER
from kinfold.studio.table_loading import reopen
from kinfold.tables.column_names import match_patterns

SERVER_SECTIONS = ("engine",)  # sections that only the command may set
MAX_NESTING = 40  # levels of nested values
MAX_STEP_LENGTH = 40  # characters of the name of a step
HIERARCHY_PATH = re.compile(rf"{HIERARCHY_FOLDER}/[^/\\]+\.csv")


def check_policy(session: StudioSession, text: str) -> tuple[Policy, dict[str, Any]]:
    """Return the policy of a text and its keys; refuse files outside the session's folder."""
    if len(text.encode("utf-8", "replace")) > session.limits.text_bytes:
        what = f"the policy is longer than {session.limits.text_bytes:,} bytes"
        raise Refusal(413, what, "put hierarchies into files")
    try:
        policy, values = _read_policy(text)
        problems = [
            Problem(f"the policy: [{name}] is for the command; the studio sets it", "leave it out", key=(name,))
            for name in SERVER_SECTIONS
            if name in values
        ]
        problems += [*_find_outside_files(policy, session), *_find_deep_nesting(values)]
        if problems:
            raise PolicyError(problems)
    except KinfoldError as error:
        raise PolicyTextError(error, text, session.columns) from None
    return policy, values


@lru_cache(maxsize=128)
def _read_policy(text: str) -> tuple[Policy, dict[str, Any]]:
    return parse_policy_text(text)


def _find_outside_files(policy: Policy, session: StudioSession) -> list[Problem]:
    """Return a problem for each hierarchy that is not in the session's folder, and each file outside the workspace."""
    folder = session.folder
    files = {name: column.hierarchy.file for name, column in policy.columns.items() if column.hierarchy}
    what, fix = "the file is not in {}, or there is none", "move it there, or start the studio with --workspace DIR"
    missing = [
        Problem(f"{'.'.join(key)}: {what.format(session.sessions.workspace)}", fix, key=key)
        for key, file in _list_workspace_files(policy).items()
        if session.sessions.find_file(file) is None
    ]
    return missing + [
        Problem(
            f"the policy: the hierarchy of '{name}' is in a file that is not here",
            "import it",
            key=("columns", name, "hierarchy", "file"),
        )
        for name, file in files.items()
        if file is not None and not (HIERARCHY_PATH.fullmatch(file.as_posix()) and (folder / file).is_file())
    ]


def _list_workspace_files(policy: Policy) -> dict[KeyPath, Path]:
    """Return the files that a policy names, without hierarchies: the studio reads them in the workspace."""
    population, secret = policy.privacy.population, policy.output.surrogate_secret
    files: dict[KeyPath, Path | None] = {
        ("privacy", "population", "table"): population.table if population else None,
        ("output", "surrogate_secret"): secret,
        **{("tables", name, "file"): table.file for name, table in policy.tables.items()},
    }
    return {key: file for key, file in files.items() if file is not None}


def locate_files(session: StudioSession, text: str) -> str:
    """Return the text of a policy with the full paths of its files in the workspace."""
    files = _list_workspace_files(_read_policy(text)[0])
    paths = {key: str(session.sessions.find_file(file) or file) for key, file in files.items()}
    return edit_text(text, paths) if paths else text


def _find_deep_nesting(value: Any, left: int = MAX_NESTING) -> list[Problem]:
    """Return a problem if values are nested too deeply for a page."""
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    if inner and not left:
        return [Problem("the policy is nested too deeply", "reduce the nesting")]
    return next((problems for each in inner if (problems := _find_deep_nesting(each, left - 1))), [])


async def decide(session: StudioSession, changes: Mapping[KeyPath, Any], what: str = "") -> None:
    """Set some keys of the policy as one decision."""
    async with session.policy_lock:
        policy, values = get_policy(session)
        changes = complete_changes(policy.review, values, changes)
        changes = {**_copy_pattern_keys(session, changes), **changes}
        text = await asyncio.to_thread(edit_policy_text, session.history.text, changes)
        await apply_policy_text(session, text, what or describe_changes(changes, values), "form")


def _copy_pattern_keys(session: StudioSession, changes: Mapping[KeyPath, Any]) -> dict[KeyPath, Any]:
    """Return the keys that columns to change have from patterns: a section of their own must repeat them."""
    values = get_policy(session)[1].get("columns", {})
    names = {key[1] for key in changes if key[0] == "columns" and len(key) > 1 and key[1] not in values}
    matches = match_patterns(values, session.columns)
    own = {name: values[pattern] for pattern, matching in matches.items() for name in matching if name in names}
    return {("columns", name, key): value for name, keys in own.items() for key, value in keys.items()}


def edit_policy_text(text: str, changes: Mapping[KeyPath, Any]) -> str:
    """Return the text of a policy with some keys set; refuse keys that cannot be set."""
    try:
        return edit_text(text, changes)
    except (TypeError, ValueError, KeyError) as error:
        if isinstance(error, KinfoldError):
            raise
        fix = "a key is a path, a value is a text, number, list or object"
        raise Refusal(400, "these keys cannot be set", fix) from None


async def replace_policy(session: StudioSession, text: str, what: str, by: str) -> None:
    """Replace the text of the policy, and drop a draft."""
    async with session.policy_lock:
        await apply_policy_text(session, text, what, by)
        if session.draft is not None:
            session.draft = None
            session.mark_changed()


def require_current_policy(session: StudioSession, page_text: Any = None) -> None:
    """Refuse to run a policy that the page does not show: there is a draft, or another tab changed the text."""
    if session.draft is not None:
        line = next((f" (line {each['line']})" for each in session.draft["problems"] if each.get("line")), "")
        what = f"the policy text is not valid{line}, and the last valid policy is not what the page shows"
        raise Refusal(409, what, "correct the text, or go back to the last valid policy")
    if page_text is not None and page_text != session.history.text:
        raise Refusal(409, "the policy was changed, possibly in another tab", "check it, then run again")


async def apply_policy_text(session: StudioSession, text: str, what: str, by: str, *, detect: bool = False) -> None:
    """Check a text and make it the policy; read the table again if its reading options changed."""
    policy, _ = await asyncio.to_thread(check_policy, session, text)
    _refuse_impossible_k(session, policy, text)
    if session.history.decide(text, what, by) or detect:
        reopen(session, get_policy(session)[1].get("source", {}), detect=detect)
        session.mark_changed()


def _refuse_impossible_k(session: StudioSession, policy: Policy, text: str) -> None:
    """Refuse a new k above the number of records, or of people, of the table."""
    facts = session.source.facts if session.source else {}
    k, unit = policy.privacy.k, policy.privacy.unit
    if not facts or k == get_policy(session)[0].privacy.k:
        return
    people = next((each["distinct"] for each in facts["columns"] if each["name"] == unit), None)
    most, counted = (facts["rows"], "records") if people is None else (people, "people")
    if k > most:
        problem = Problem(
            f"k = {k:,} is more than the {most:,} {counted} of the table",
            f"choose at most {most:,}",
            key=("privacy", "k"),
        )
        raise PolicyTextError(PolicyError([problem]), text, session.columns)


def get_policy(session: StudioSession, text: str | None = None) -> tuple[Policy, dict[str, Any]]:
    """Return the policy of a session, or of a text, and its keys; refuse if no table is open.

    The columns of the table replace the patterns of the policy, unless a column matches two of them.
    """
    if not session.history.text:
        raise Refusal(409, "no table is open", "open one first")
    policy, values = _read_policy(session.history.text if text is None else text)
    with suppress(PolicyError):  # /api/check reports it
        policy = policy.for_columns(session.columns)
    return policy, values


def get_usable_policy(session: StudioSession) -> Policy:
    """Return the policy with absolute paths of its files."""
    return get_policy(session, locate_files(session, session.history.text))[0].resolve_paths(session.folder)


async def query_table(session: StudioSession, question: Any, key: Any = None) -> Any:
    """Answer a question about the open table, read as the policy says."""
    form = get_policy(session)[0].form
    return await session.sessions.open_tables.query(session, session.table.path, form, question, key)


@route("/api/step", "POST")
async def save_step(call: Call) -> None:
    """Save the step that the page shows."""
    call.session.step = str(call.body.get("step", ""))[:MAX_STEP_LENGTH]
    call.session.cached_state = None  # no page shows it: a reload reads it


@route("/api/decision", "POST")
async def change_policy(call: Call) -> None:
    """Set and remove keys of the policy."""
    get_policy(call.session)
    await decide(call.session, read_changes(call.body))


@route("/api/policy", "PUT")
async def replace_text(call: Call) -> None:
    """Replace the text; keep an invalid text as a draft, which blocks runs."""
    session, text = call.session, _get_text(call)
    try:
        await replace_policy(session, text, "edited the text", "text")
    except PolicyTextError as error:
        session.draft = {"text": text, "problems": error.problems}
        session.mark_changed()
        raise


@route("/api/policy/draft", "DELETE")
async def drop_draft(call: Call) -> None:
    """Drop the draft: the page shows the last valid policy again."""
    call.session.draft = None
    call.session.mark_changed()


def _get_text(call: Call) -> str:
    get_policy(call.session)
    text = call.body.get("text")
    if not isinstance(text, str):
        raise Refusal(400, "there is no text", 'send {"text": "…"}')
    return text.replace("\r\n", "\n")


@route("/api/undo", "POST")
@route("/api/redo", "POST")
async def undo_or_redo(call: Call) -> None:
    """Undo the last decision, or redo it."""
    session = call.session
    get_policy(session)
    async with session.policy_lock:
        session.history.undo_or_redo(call.request.url.path.rpartition("/")[2])
        await asyncio.to_thread(check_policy, session, session.history.text)
        reopen(session, get_policy(session)[1].get("source", {}))
        session.mark_changed()


@route("/api/project")
async def download_project(call: Call) -> Response:
    """Download the policy with the log of decisions."""
    session = call.session
    text = session.history.write_project(inline_hierarchies(session, session.history.text))
    return make_download(text, f"{session.table.name.rpartition('.')[0] or 'table'}.toml")


@route("/api/project", "POST")
async def open_project(call: Call) -> None:
    """Open a project: a policy with a log of decisions."""
    text = _get_text(call)
    check_policy(call.session, text)
    policy = call.session.history.read_project(text)
    await replace_policy(call.session, policy, "opened a project", "project")


def read_changes(body: Mapping[str, Any]) -> dict[KeyPath, Any]:
    """Return the keys to set, with None for keys to remove; a path is a list, or a text with dots."""
    values = body.get("set", {})
    pairs = list(values.items()) if isinstance(values, Mapping) else values
    removed = body.get("unset", [])
    if not _is_list(pairs) or not _is_list(removed) or not all(_is_list(pair, 2) for pair in pairs):
        raise Refusal(400, "this is not a decision", 'send {"set": {"privacy.k": 5}, "unset": ["privacy.t"]}')
    changes = {_parse_key(key): value for key, value in pairs} | {_parse_key(key): None for key in removed}
    if not changes:
        raise Refusal(400, "the decision is empty", 'send {"set": {"privacy.k": 5}}')
    return changes


def _is_list(value: Any, length: int | None = None) -> bool:
    return isinstance(value, list | tuple) and (length is None or len(value) == length)


def _parse_key(key: Any) -> KeyPath:
    parts = key.split(".") if isinstance(key, str) else key
    if not _is_list(parts) or not 1 <= len(parts) <= 6 or not all(isinstance(part, str) for part in parts):
        raise Refusal(400, "a key is not a path", 'write "section.key", or ["columns", "a.b", "role"]')
    return tuple(parts)


def inline_hierarchies(session: StudioSession, text: str) -> str:
    """Return the text of a policy with the contents of its hierarchy files."""
    files = {
        name: column.hierarchy.file
        for name, column in _read_policy(text)[0].columns.items()
        if column.hierarchy and column.hierarchy.file
    }
    levels: dict[KeyPath, Any] = {}
    for name, file in files.items():
        rows = get_label_rows(read_arx(session.folder / file))
        levels["columns", name, "hierarchy"] = {"levels": [list(row) for row in rows]}
    return edit_text(text, levels) if levels else text


def make_download(content: str | bytes, name: str, kind: str = "application/toml") -> Response:
    """Return a file download."""
    return Response(content, media_type=kind, headers={"content-disposition": describe_download(name)})


def describe_download(name: str) -> str:
    """Return the header that names a download; the name is escaped."""
    ascii_name = "".join(char if char.isascii() and (char.isalnum() or char in "._-") else "_" for char in name)
    return f"attachment; filename=\"{ascii_name}\"; filename*=UTF-8''{quote(name, safe='')}"
