"""Routes of the policy: decide, write its text, go back and forth, keep it as a project."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from kinfold.hierarchy import read_arx
from kinfold.hierarchy.regrouping import rows_of_labels
from kinfold.request.policy_text import Key, edited
from kinfold.studio.error_answers import Misfit, Refused
from kinfold.studio.guard import session_of
from kinfold.studio.policy_decisions import checked, decide, policy_of, rewrite, travel
from kinfold.studio.request_bodies import json_of
from kinfold.studio.sessions import Sessions, StudioSession

LONGEST_STEP = 40


class DecisionRoutes:
    """What a page decides."""

    def __init__(self, sessions: Sessions) -> None:
        self.sessions = sessions

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("/api/step", self.step, methods=["POST"]),
            Route("/api/decision", self.decision, methods=["POST"]),
            Route("/api/policy", self.policy, methods=["PUT"]),
            Route("/api/policy/draft", self.drop_draft, methods=["DELETE"]),
            Route("/api/policy/check", self.policy_check, methods=["POST"]),
            Route("/api/undo", self.undo, methods=["POST"]),
            Route("/api/redo", self.redo, methods=["POST"]),
            Route("/api/project", self.project),
            Route("/api/project", self.open_project, methods=["POST"]),
        ]

    async def step(self, request: Request) -> Response:
        """Remember which step the page is at."""
        session = session_of(request)
        session.step = str((await json_of(request, session.limits)).get("step", ""))[:LONGEST_STEP]
        return JSONResponse({"version": session.changed()})

    async def decision(self, request: Request) -> Response:
        """Set and take out keys of the policy."""
        session = session_of(request)
        policy_of(session)
        changes = changes_in(await json_of(request, session.limits))
        return JSONResponse({"version": await decide(self.sessions, session, changes)})

    async def policy(self, request: Request) -> Response:
        """Take the text as it was typed; one that is no policy is kept as a draft, and nothing is run meanwhile."""
        session, text = await self._text(request)
        try:
            version = await rewrite(self.sessions, session, text, "the policy's text", "text")
        except Misfit as error:
            session.draft = {"text": text, "problems": error.found}
            session.changed()
            raise
        return JSONResponse({"version": version})

    async def drop_draft(self, request: Request) -> Response:
        """Go back to the last valid policy."""
        session = session_of(request)
        session.draft = None
        return JSONResponse({"version": session.changed()})

    async def policy_check(self, request: Request) -> Response:
        """Say what is wrong with a text, and change nothing."""
        session, text = await self._text(request)
        try:
            checked(session, text)
        except Misfit as error:
            return JSONResponse({"problems": error.found})
        return JSONResponse({"problems": []})

    async def _text(self, request: Request) -> tuple[StudioSession, str]:
        session = session_of(request)
        policy_of(session)
        text = (await json_of(request, session.limits)).get("text")
        if not isinstance(text, str):
            raise Refused(400, "there is no text", 'send {"text": "…"}')
        return session, text.replace("\r\n", "\n")

    async def undo(self, request: Request) -> Response:
        """Take the last decision back."""
        return await self._travel(request, "undo")

    async def redo(self, request: Request) -> Response:
        """Take it again."""
        return await self._travel(request, "redo")

    async def _travel(self, request: Request, way: str) -> Response:
        session = session_of(request)
        await json_of(request, session.limits)
        policy_of(session)
        return JSONResponse({"version": await travel(self.sessions, session, way)})

    async def project(self, request: Request) -> Response:
        """Hand out the policy with the log of decisions."""
        session = session_of(request)
        text = session.history.project(self_contained(session, session.history.text))
        return attached(text, f"{session.table.name.rpartition('.')[0] or 'table'}.toml")

    async def open_project(self, request: Request) -> Response:
        """Take over the policy and the log of a project."""
        session, text = await self._text(request)
        checked(session, text)
        policy = session.history.recall(text)
        return JSONResponse({"version": await rewrite(self.sessions, session, policy, "opened a project", "project")})


def changes_in(body: Mapping[str, Any]) -> dict[Key, Any]:
    """Return the keys to set, None for those to take out; a path is a list, or a text with dots."""
    given = body.get("set", {})
    pairs = list(given.items()) if isinstance(given, Mapping) else given
    taken_out = body.get("unset", [])
    if not _is_list(pairs) or not _is_list(taken_out) or not all(_is_list(pair, 2) for pair in pairs):
        raise Refused(400, "this is no decision", 'send {"set": {"privacy.k": 5}, "unset": ["privacy.t"]}')
    changes = {_path(key): value for key, value in pairs} | {_path(key): None for key in taken_out}
    if not changes:
        raise Refused(400, "nothing is decided", 'send {"set": {"privacy.k": 5}}')
    return changes


def _is_list(value: Any, length: int | None = None) -> bool:
    return isinstance(value, list | tuple) and (length is None or len(value) == length)


def _path(key: Any) -> Key:
    parts = key.split(".") if isinstance(key, str) else key
    if not _is_list(parts) or not 1 <= len(parts) <= 6 or not all(isinstance(part, str) for part in parts):
        raise Refused(400, "a key is no path", 'write "section.key", or ["columns", "a.b", "role"]')
    return tuple(parts)


def self_contained(session: StudioSession, text: str) -> str:
    """Return a policy's text with the hierarchies in it that stand in files of the session."""
    files = {
        name: column.hierarchy.file
        for name, column in policy_of(session, text)[0].columns.items()
        if column.hierarchy and column.hierarchy.file
    }
    levels: dict[Key, Any] = {
        ("columns", name, "hierarchy"): {
            "levels": [list(row) for row in rows_of_labels(read_arx(session.folder / file))]
        }
        for name, file in files.items()
    }
    return edited(text, levels) if levels else text


def attached(content: str | bytes, name: str, kind: str = "application/toml") -> Response:
    """Return a file to keep; its name is written so that nothing in it is taken for a part of the header."""
    from urllib.parse import quote

    plain = "".join(char if char.isascii() and (char.isalnum() or char in "._-") else "_" for char in name)
    head = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
    return Response(content, media_type=kind, headers={"content-disposition": head})
