"""Checks of every request, and headers of every response.

    Host      must be this server, by number or as localhost: a foreign name that resolves to this machine is refused.
              (Starlette's TrustedHostMiddleware ignores the port and repeated headers, so it is checked here.)
    Origin    must be this server where it is given; every request that changes something must give it
    cookie    identifies the session; a one-time token in the address of the page sets it. Other local applications set
              cookies for this host as well, in any form: only our own cookie is read
    body      has a limited size and must arrive in a limited time
    response  has a strict content security policy, and is not cached, sniffed, framed or referred to

Errors are answered with their type and place. They are not logged, because they can quote a value of the data.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kinfold.studio.refusals import Refusal, StudioLimits, format_bytes, make_refusal
from kinfold.studio.sessions import Sessions, StudioSession

Answer: TypeAlias = "Callable[[Call], Awaitable[Any]]"

ROUTES: list[Route] = []  # filled by the modules of routes
SAFE_METHODS = ("GET", "HEAD")
SAME_SITE_VALUES = ("same-origin", "none")  # of Sec-Fetch-Site: this page, or a typed address
ENTRY_PAGE = '<!doctype html><meta http-equiv="refresh" content="0; url=/"><title>kinfold studio</title>'
MAX_ROWS_PER_PAGE = 500  # a page shows no more at a time
COOKIE_SECONDS = 30 * 86_400  # 30 days, for a server that runs as long
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "font-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-store",
}


class Guard:
    """The outermost ASGI application: checks requests, and adds headers to responses."""

    def __init__(self, app: ASGIApp, sessions: Sessions, port: int) -> None:
        self.app, self.sessions = app, sessions
        self.hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}
        self.cookie = f"kinfold-{port}"  # browsers share cookies between ports

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            response = self._check_request(scope)
            await (response or self.app)(scope, receive, send_with_headers)
        except Exception as error:
            if not started:
                await make_error_response(error)(scope, receive, send_with_headers)

    def _check_request(self, scope: Scope) -> Response | None:
        """Return a response that ends the request here; otherwise add the session to the scope."""
        headers = Headers(scope=scope)
        host = headers.get("host", "").lower()
        if host not in self.hosts or len(headers.getlist("host")) != 1:
            raise Refusal(403, "this address is not the studio's", "open the address that the terminal shows")
        token = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        entering = scope["path"] == "/" and scope["method"] == "GET" and token != ""
        self._check_origin(scope["method"], headers, host, entering=entering)
        cookies = [pair.partition("=") for header in headers.getlist("cookie") for pair in header.split(";")]
        ours = [value.strip().strip('"') for name, _, value in cookies if name.strip() == self.cookie]  # can be several
        session = next(filter(None, map(self.sessions.find, ours)), None)
        if entering:
            cross_site = headers.get("sec-fetch-site", "none") not in SAME_SITE_VALUES
            return self._accept_token(token, session, cross_site=cross_site)
        if session is None:
            if scope["path"] == "/":
                return Response("Open the address that the terminal shows. It admits one browser, once.\n", 401)
            raise Refusal(401, "no session", "open the address that the terminal shows")
        scope["kinfold.session"] = session
        return None

    def _check_origin(self, method: str, headers: Headers, host: str, *, entering: bool) -> None:
        origins = headers.getlist("origin")
        if any(origin.lower() != f"http://{host}" for origin in origins) or len(origins) > 1:
            raise Refusal(403, "this request comes from another page", "use the studio's own page")
        if method not in SAFE_METHODS and not origins:
            raise Refusal(403, "this request does not name its origin", "use the studio's own page")
        if headers.get("sec-fetch-site", "none") not in SAME_SITE_VALUES and not entering:  # the token is proof
            raise Refusal(403, "this request comes from another page", "type or paste the address")

    def _accept_token(self, token: str, session: StudioSession | None, *, cross_site: bool) -> Response:
        """Return a redirect to the page; start a session and set its cookie if there is none.

        A local file sends the browser here. Browsers do not send strict cookies after a redirect from another site, so
        a page of this server redirects instead.
        """
        response = Response(ENTRY_PAGE, media_type="text/html") if cross_site else RedirectResponse("/", 303)
        if session is None:
            value, session = self.sessions.enter(token)
            response.set_cookie(self.cookie, value, max_age=COOKIE_SECONDS, path="/", httponly=True, samesite="strict")
            for callback in self.sessions.start_callbacks:
                with contextlib.suppress(OSError):  # the terminal may be closed
                    callback(session)
        return response


def make_error_response(error: BaseException) -> JSONResponse:
    """Return the response to a request that failed."""
    if isinstance(error, HTTPException):
        error = Refusal(error.status_code, "there is nothing at this address", "open the studio's page")
    refusal = make_refusal(error)
    headers = {"connection": "close"} if refusal.status in (408, 413) else {}  # the rest of the request is not read
    return JSONResponse({"error": {"problems": refusal.problems}}, refusal.status, headers)


@dataclass(frozen=True)
class Call:
    """A request that passed the guard, its session, and the JSON object in its body."""

    session: StudioSession
    request: Request
    body: Mapping[str, Any]

    def get_integer(self, name: str, default: int, maximum: int) -> int:
        """Return an integer parameter of the address, at most `maximum`."""
        text = self.request.query_params.get(name, str(default))
        if not text.isdecimal() or len(text) > 12:
            raise Refusal(400, f"{name} is not a whole number", "use a number from 0")
        return min(int(text), maximum)

    def get_range(self) -> tuple[int, int]:
        """Return the first row and the number of rows that a page asks for."""
        return self.get_integer("from", 0, 10**12), self.get_integer("count", 100, MAX_ROWS_PER_PAGE)


def route(path: str, method: str = "GET", *, upload: bool = False) -> Callable[[Answer], Answer]:
    """Register a function that answers requests: with a response, with JSON values, or with None.

    None is answered with the version of the session's state. Every POST and PUT has a JSON body, except an upload.
    """

    def register(answer: Answer) -> Answer:
        async def respond(request: Request) -> Response:
            body = await _read_json_body(request) if method in ("POST", "PUT") and not upload else {}
            session: StudioSession = request.scope["kinfold.session"]
            result = await answer(Call(session, request, body))
            if result is None:
                result = {"version": session.version}
            return result if isinstance(result, Response) else JSONResponse(result)

        ROUTES.append(Route(path, respond, methods=[method]))
        return answer

    return register


async def _read_body(request: Request) -> bytes:
    max_bytes = request.scope["kinfold.session"].limits.body_bytes
    return b"".join([chunk async for chunk in _iterate_body(request, max_bytes)])


async def _read_json_body(request: Request) -> dict[str, Any]:
    if request.headers.get("content-type", "").split(";")[0].strip() != "application/json":
        raise Refusal(400, "the request is not JSON", "send application/json")
    raw = await _read_body(request)
    try:
        value = json.loads(raw or b"{}")
    except (ValueError, RecursionError):
        raise Refusal(400, "the request is not JSON", "send one object") from None
    if not isinstance(value, dict):
        raise Refusal(400, "the request is not a JSON object", "send one object")
    return value


async def read_text_body(request: Request) -> str:
    """Return the text in the body of a request."""
    try:
        return (await _read_body(request)).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Refusal(422, "the file is not UTF-8 text", "save it as UTF-8") from None


async def save_upload(request: Request, path: Path) -> int:
    """Write the body of a request to a file, and return its size; remove the file if the request fails."""
    size = 0
    try:
        with path.open("xb") as file:
            async for chunk in _iterate_body(request, request.scope["kinfold.session"].limits.upload_bytes):
                size += len(chunk)
                await asyncio.to_thread(file.write, chunk)
        if not size:
            raise Refusal(422, "the file is empty", "choose another file")
    except BaseException as error:
        path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise Refusal(413, f"the file cannot be saved: {error.strerror}", "free some space on the disk") from None
        raise
    return size


async def _iterate_body(request: Request, max_bytes: int) -> AsyncIterator[bytes]:
    """Yield the body of a request in chunks; refuse one that is too large or too slow."""
    limits: StudioLimits = request.scope["kinfold.session"].limits
    too_large = Refusal(
        413, f"this is larger than {format_bytes(max_bytes)}", "open a large file by its name: kinfold studio FILE"
    )
    declared = request.headers.get("content-length", "0")
    if not declared.isdigit() or int(declared) > max_bytes:
        raise too_large
    size, started = 0, time.monotonic()
    stream = request.stream().__aiter__()
    while True:
        left = limits.upload_seconds - (time.monotonic() - started)
        try:
            chunk = await asyncio.wait_for(stream.__anext__(), max(min(limits.stall_seconds, left), 0.001))
        except StopAsyncIteration:
            return
        except TimeoutError:
            if left > limits.stall_seconds:
                raise Refusal(408, f"no data arrived for {limits.stall_seconds:g} seconds", "send it again") from None
            what = f"the upload took longer than {limits.upload_seconds:g} seconds"
            raise Refusal(408, what, "open it by its name: kinfold studio FILE") from None
        except ClientDisconnect:
            raise Refusal(400, "the upload was interrupted", "send it again") from None
        size += len(chunk)
        if size > max_bytes:
            raise too_large
        if chunk:
            yield chunk
