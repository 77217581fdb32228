"""Deciding: whatever changes a policy passes here. It is checked and kept, and the table read anew if need be."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from kinfold.errors import KinfoldError, PolicyError, Problem
from kinfold.request.policy import Policy
from kinfold.request.policy_text import Key, edited, read_text
from kinfold.studio.error_answers import Misfit, Refused
from kinfold.studio.history import in_words
from kinfold.studio.sessions import Sessions, StudioSession
from kinfold.studio.table_opening import HIERARCHIES
from kinfold.studio.tables import reopen

FOREIGN = ("engine",)  # sections that are the server's own affair
DEEPEST = 40  # levels of values inside one another
INSIDE = re.compile(rf"{HIERARCHIES}/[^/\\]+\.csv")


def checked(session: StudioSession, text: str) -> tuple[Policy, dict[str, Any]]:
    """Return the policy that a text is and its keys; one that leads outside the session's folder is refused."""
    if len(text.encode("utf-8", "replace")) > session.limits.text_bytes:
        raise Refused(
            413, f"the policy is longer than {session.limits.text_bytes:,} bytes", "put hierarchies into files"
        )
    try:
        found = _read(text)
        problems = [*_foreign(found[1]), *_outside(found[0], session.folder), *_too_deep(found[1])]
        if problems:
            raise PolicyError(problems)
    except KinfoldError as error:
        raise Misfit(error, text, session.columns) from None
    return found


@lru_cache(maxsize=128)
def _read(text: str) -> tuple[Policy, dict[str, Any]]:
    return read_text(text)


def _foreign(values: Mapping[str, Any]) -> list[Problem]:
    return [
        Problem(f"the policy: [{name}] is for the command; the studio sets it", "leave it out", key=(name,))
        for name in FOREIGN
        if name in values
    ]


def _outside(policy: Policy, folder: Path) -> list[Problem]:
    """Find files of hierarchies that are not the session's own."""
    files = {name: column.hierarchy.file for name, column in policy.columns.items() if column.hierarchy}
    return [
        Problem(f"the policy: the hierarchy of '{name}' is in a file that is not here", "import it", key=_file_of(name))
        for name, file in files.items()
        if file is not None and not (INSIDE.fullmatch(file.as_posix()) and (folder / file).is_file())
    ]


def _too_deep(value: Any, left: int = DEEPEST) -> list[Problem]:
    """Refuse what no page could show."""
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    if inner and not left:
        return [Problem("the policy nests too deeply", "write fewer levels into one another")]
    return next((found for each in inner if (found := _too_deep(each, left - 1))), [])


def _file_of(name: str) -> Key:
    return "columns", name, "hierarchy", "file"


async def decide(sessions: Sessions, session: StudioSession, changes: Mapping[Key, Any], what: str = "") -> int:
    """Set some keys of the policy; one decision, one step of undo."""
    async with session.deciding:
        text = await asyncio.to_thread(changed_text, session.history.text, changes)
        return await taken(sessions, session, text, what or in_words(changes), "form")


def changed_text(text: str, changes: Mapping[Key, Any]) -> str:
    """Return a policy's text with some keys set, or a refusal where they fit nowhere."""
    try:
        return edited(text, changes)
    except (TypeError, ValueError, KeyError) as error:
        if isinstance(error, KinfoldError):
            raise
        raise Refused(
            400, "these keys cannot be set", "a key is a path, a value a text, number, list or object"
        ) from None


async def rewrite(sessions: Sessions, session: StudioSession, text: str, what: str, by: str) -> int:
    """Take a whole text."""
    async with session.deciding:
        version = await taken(sessions, session, text, what, by)
        if session.draft is None:
            return version
        session.draft = None
        return session.changed()


def require_shown(session: StudioSession, shown: Any = None) -> None:
    """Refuse to work by a policy that is not what the page shows: a draft, or a text that was changed elsewhere."""
    if session.draft is not None:
        line = next((f" (line {each['line']})" for each in session.draft["problems"] if each.get("line")), "")
        what = f"the policy text is not valid{line}, and the last valid policy is not what the page shows"
        raise Refused(409, what, "correct the text, or go back to the last valid policy")
    if shown is not None and shown != session.history.text:
        raise Refused(409, "the policy was changed meanwhile, in another tab perhaps", "look at it, then run again")


async def taken(
    sessions: Sessions, session: StudioSession, text: str, what: str, by: str, *, guessing: bool = False
) -> int:
    """Take a text that was decided, unless something is wrong with it."""
    await asyncio.to_thread(checked, session, text)
    if session.history.decide(text, what, by) or guessing:
        reopen(sessions, session, policy_of(session)[1].get("source", {}), guessing=guessing)
        session.changed()
    return session.version


async def travel(sessions: Sessions, session: StudioSession, way: str) -> int:
    """Go a decision back, or forth again."""
    async with session.deciding:
        session.history.undo() if way == "undo" else session.history.redo()
        await asyncio.to_thread(checked, session, session.history.text)
        reopen(sessions, session, policy_of(session)[1].get("source", {}))
        return session.changed()


def policy_of(session: StudioSession, text: str | None = None) -> tuple[Policy, dict[str, Any]]:
    """Return the policy of a session and the keys that its text has; no table, no policy."""
    if not session.history.text:
        raise Refused(409, "no table is open", "open one first")
    return _read(session.history.text if text is None else text)


def usable(session: StudioSession) -> Policy:
    """Return the policy with its hierarchies where they are."""
    return policy_of(session)[0].based_on(session.folder)
