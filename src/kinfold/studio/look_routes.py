"""Routes of what takes longer to look at, of events, and of words for what a page lets people choose."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from kinfold.studio import runs
from kinfold.studio.background_jobs import Job
from kinfold.studio.choice_wording import now, words
from kinfold.studio.error_answers import Refused
from kinfold.studio.guard import session_of
from kinfold.studio.policy_decisions import policy_of, require_shown
from kinfold.studio.request_bodies import json_of
from kinfold.studio.sessions import Sessions, StudioSession, read_json
from kinfold.studio.state import shown

KINDS = ("lattice", "outliers")
HEARTBEAT = 15.0  # seconds


class LookRoutes:
    """What a page asks for and waits."""

    def __init__(self, sessions: Sessions) -> None:
        self.sessions = sessions

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("/api/session", self.session),
            Route("/api/events", self.events),
            Route("/api/words", self.words),
            Route("/api/invitation", self.invitation, methods=["POST"]),
            Route("/api/jobs", self.begin, methods=["POST"]),
            Route("/api/jobs/{job}", self.look),
            Route("/api/jobs/{job}/cancel", self.cancel, methods=["POST"]),
        ]

    async def session(self, request: Request) -> Response:
        """Return the whole state, unless the page has it already."""
        session = session_of(request)
        if request.query_params.get("since") == str(session.version):
            return Response(status_code=304)
        return Response(shown(self.sessions, session), media_type="application/json")

    async def words(self, request: Request) -> Response:
        """Return what can be chosen, with a sentence each, and what the policy promises now."""
        session = session_of(request)
        promised = now(policy_of(session)[0]) if session.history.text else {}
        return JSONResponse({**words(), "now": promised})

    async def invitation(self, request: Request) -> Response:
        """Return an address for another browser."""
        await json_of(request, session_of(request).limits)
        return JSONResponse({"address": f"http://{request.headers['host']}/?token={self.sessions.invite()}"})

    async def begin(self, request: Request) -> Response:
        """Queue a look."""
        session = session_of(request)
        kind = (await json_of(request, session.limits)).get("kind")
        if kind not in KINDS:
            raise Refused(400, "there is no such look", f"there are {', '.join(KINDS)}")
        require_shown(session)
        return JSONResponse({"id": runs.look(self.sessions, session, kind, {}).ident}, 202)

    async def look(self, request: Request) -> Response:
        """Tell how a look goes, and what was seen."""
        job = _job(request)
        told: dict[str, Any] = {**job.progress(), "kind": job.kind, "problems": job.problems, "result": None}
        if job.state == "done":
            told["result"] = read_json(job.folder / "result.json")
        return JSONResponse(told)

    async def cancel(self, request: Request) -> Response:
        """End a look."""
        await json_of(request, session_of(request).limits)
        job = _job(request)
        await self.sessions.jobs.cancel(job)
        return JSONResponse({"state": job.state})

    async def events(self, request: Request) -> Response:
        """Tell what happens, as it happens."""
        return EventStream(session_of(request))


class EventStream(StreamingResponse):
    """Events for as long as somebody reads them."""

    def __init__(self, session: StudioSession) -> None:
        self._session, self._reader = session, session.watched()
        super().__init__(_stream(session, self._reader), media_type="text/event-stream")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send what comes; whoever goes away, at once or later, is not waited for."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._session.unwatched(self._reader)


async def _stream(session: StudioSession, reader: asyncio.Queue[tuple[str, Any]]) -> AsyncIterator[str]:
    yield f"retry: 1000\n\n{_event('session', {'version': session.version})}"
    while True:
        try:
            name, data = await asyncio.wait_for(reader.get(), HEARTBEAT)
        except TimeoutError:
            yield ": still here\n\n"
        else:
            yield _event(name, data)
            if name == "gone":
                return


def _event(name: str, data: Any) -> str:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"


def _job(request: Request) -> Job:
    looks = session_of(request).looks
    if request.path_params["job"] not in looks:
        raise Refused(404, "there is no such look in this session", "begin one")
    return looks[request.path_params["job"]]
