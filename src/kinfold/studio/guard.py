"""The guard: who may speak to the server. Every request passes here first, and every answer last.

    Host      this server's, by number or as localhost: a name that leads here from outside is refused
    Origin    this server's where it is said, and it must be said by whatever changes something
    cookie    of a session; a one-time token in the address of the page gives one. Other local applications set cookies
              for this host as well, in any form: only our own is looked for, and nothing else is parsed
    answers   a strict content security policy; nothing is kept by caches, sniffed, framed or referred to

What goes wrong inside is answered with its kind and place; no log hears of it, for it may quote a value of the data.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kinfold.studio.error_answers import Refused, status_of, told
from kinfold.studio.sessions import Sessions, StudioSession

HARMLESS = ("GET", "HEAD")
SAME = ("same-origin", "none")  # of Sec-Fetch-Site: this page, or an address that somebody typed
ENTER = '<!doctype html><meta http-equiv="refresh" content="0; url=/"><title>kinfold studio</title>'
MONTH = 30 * 86_400
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "font-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-store",
}


class Guard:
    """Stands before the interface."""

    def __init__(self, app: ASGIApp, sessions: Sessions, port: int) -> None:
        self.app, self.sessions = app, sessions
        self.hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}
        self.cookie = f"kinfold-{port}"  # cookies do not tell ports apart

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it here."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        begun = False

        async def sealed(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            answer = self._answer(scope)
            await (answer or self.app)(scope, receive, sealed)
        except Exception as error:
            if not begun:
                await refused(error)(scope, receive, sealed)

    def _answer(self, scope: Scope) -> Response | None:
        """Return the answer where the request goes no further; else note its session."""
        headers = Headers(scope=scope)
        host = headers.get("host", "").lower()
        if host not in self.hosts or len(headers.getlist("host")) != 1:
            raise Refused(403, "this address leads elsewhere", "open the address that the terminal shows")
        token = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        entering = scope["path"] == "/" and scope["method"] == "GET" and token != ""
        self._check_origin(scope["method"], headers, host, entering=entering)
        session = next(filter(None, map(self.sessions.find, self._marks(headers))), None)
        if entering:
            elsewhere = headers.get("sec-fetch-site", "none") not in SAME
            return self._answer_to_token(token, session, elsewhere=elsewhere)
        if session is None:
            if scope["path"] == "/":
                return Response("Open the address that the terminal shows: it lets one browser in, once.\n", 401)
            raise Refused(401, "no session", "open the address that the terminal shows")
        scope["kinfold.session"] = session
        return None

    def _check_origin(self, method: str, headers: Headers, host: str, *, entering: bool) -> None:
        origins = headers.getlist("origin")
        if any(origin.lower() != f"http://{host}" for origin in origins) or len(origins) > 1:
            raise Refused(403, "this request comes from another page", "use the studio's own page")
        if method not in HARMLESS and not origins:
            raise Refused(403, "this request does not say which page it comes from", "use the studio's own page")
        if headers.get("sec-fetch-site", "none") not in SAME and not entering:  # a token is proof enough
            raise Refused(403, "this request comes from another page", "type or paste the address")

    def _marks(self, headers: Headers) -> Iterator[str]:
        """Yield every value of our cookie: a browser may send several of one name."""
        for header in headers.getlist("cookie"):
            for pair in header.split(";"):
                name, _, value = pair.partition("=")
                if name.strip() == self.cookie:
                    yield value.strip().strip('"')

    def _answer_to_token(self, token: str, session: StudioSession | None, *, elsewhere: bool) -> Response:
        """Return the way to the page; where there is no session yet, begin one and set its cookie.

        The browser opens a local file that leads here. Strict cookies do not follow a redirect that another page
        began, so the way on is a page of this server.
        """
        answer = Response(ENTER, media_type="text/html") if elsewhere else RedirectResponse("/", 303)
        if session is None:
            mark, session = self.sessions.enter(token)
            answer.set_cookie(self.cookie, mark, max_age=MONTH, path="/", httponly=True, samesite="strict")
            for begin in self.sessions.begun:
                with contextlib.suppress(OSError):  # such as a terminal that was closed: the browser is in
                    begin(session)
        return answer


def refused(error: BaseException) -> JSONResponse:
    """Return the answer to a request that went wrong."""
    if isinstance(error, HTTPException):
        error = Refused(error.status_code, "there is nothing at this address", "open the studio's page")
    ends = {"connection": "close"} if _ends(error) else {}
    return JSONResponse({"error": {"problems": told(error)}}, status_of(error), ends)


def _ends(error: BaseException) -> bool:
    """Whether the rest of the request is not worth reading."""
    return isinstance(error, Refused) and error.status in (408, 413)


def session_of(request: Any) -> StudioSession:
    """Return the session of a request that passed the guard."""
    found: StudioSession = request.scope["kinfold.session"]
    return found
