"""Serving: one server on the loopback interface, from the first address to the last file removed."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import socket
import webbrowser
from collections.abc import AsyncIterator, Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import uvicorn
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route, Router
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from kinfold import __version__
from kinfold.errors import DataError, KinfoldError, PolicyError
from kinfold.studio.background_jobs import Job
from kinfold.studio.database_routes import DatabaseRoutes
from kinfold.studio.decision_routes import DecisionRoutes
from kinfold.studio.error_answers import Refused, told
from kinfold.studio.guard import Guard
from kinfold.studio.hierarchy_routes import HierarchyRoutes
from kinfold.studio.look_routes import LookRoutes
from kinfold.studio.request_headers import HeadersInTime
from kinfold.studio.run_routes import RunRoutes
from kinfold.studio.server_limits import Limits
from kinfold.studio.sessions import Opened, Sessions, StudioSession
from kinfold.studio.source_routes import SourceRoutes, opened_by_command, taken_in

HERE = "127.0.0.1"
LOOK = 20.0  # seconds between two looks for idle sessions
GRACE = 1  # seconds for requests that are still answered when the server stops
CHARTS = "/vega.js"
LONGEST_HEADER = 1 << 20  # bytes: a browser sends up to 180 cookies of 4 KB that other local applications have set
REDIRECT = (
    '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
    '<meta http-equiv="refresh" content="0; url={address}"><title>kinfold studio</title>'
    '<p><a href="{address}">To the studio</a></p>\n'
)


class Studio:
    """One server: its sessions, its interface, its pages."""

    def __init__(
        self, port: int, limits: Limits | None = None, data: Path | None = None, workspace: Path | None = None
    ) -> None:
        self.limits = limits or Limits()
        self.sessions = Sessions(self.limits, workspace)
        self.data, self.port = data, port
        self._charts: Job | None = None
        self._pages = Environment(
            loader=PackageLoader("kinfold.studio"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
        )
        self._waiting: set[asyncio.Task[Any]] = set()
        if data is not None:
            self.sessions.begun.append(self._open_data)

    @property
    def app(self) -> ASGIApp:
        """The interface behind its guard."""
        kinds = (LookRoutes, SourceRoutes, DatabaseRoutes, DecisionRoutes, HierarchyRoutes, RunRoutes)
        routes = [route for kind in kinds for route in kind(self.sessions).routes()]
        static = Mount("/static", StaticFiles(directory=str(files("kinfold.studio").joinpath("static"))))
        pages = [Route("/", self.page), Route(CHARTS, self.charts), static]
        router = Router([*routes, *pages], redirect_slashes=False, default=_nothing, lifespan=self._life)
        return Guard(router, self.sessions, self.port)

    def address(self) -> str:
        """Return an address that lets one browser in."""
        return f"http://{HERE}:{self.port}/?token={self.sessions.invite()}"

    async def page(self, _: Request) -> Response:
        """Return the page."""
        return HTMLResponse(self._pages.get_template("studio.html.j2").render(version=__version__))

    async def charts(self, _: Request) -> Response:
        """Return the script that draws charts, as soon as it is made."""
        made = self._making_charts()
        while not made.over:
            await asyncio.sleep(0.05)
        if made.state != "done":
            self._charts = None
            raise Refused(503, "the script of the charts could not be made", "see that vl-convert is installed")
        script = await asyncio.to_thread((made.folder / "vega.js").read_bytes)
        return Response(script, media_type="text/javascript", headers={"cache-control": "private, max-age=3600"})

    def _making_charts(self) -> Job:
        """Make the script once, when somebody asks for it first: it takes some seconds of another process."""
        if self._charts is None:
            folder = self.sessions.folder / secrets.token_hex(4)
            folder.mkdir(mode=0o700)
            self._charts = Job("charts", "script", self, folder, {}, lambda _: None)
            self.sessions.jobs.submit(self._charts)
        return self._charts

    def _open_data(self, session: StudioSession) -> None:
        """Open in a new session the table that the command named."""
        assert self.data is not None  # noqa: S101  or nobody would ask
        task = asyncio.get_running_loop().create_task(self._opened(session, opened_by_command(self.data)))
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    async def _opened(self, session: StudioSession, table: Opened) -> None:
        try:
            await taken_in(self.sessions, session, table)
        except (Refused, KinfoldError, OSError) as error:  # nobody waits for an answer: the page shows it
            table.state, table.problems, session.source = "failed", [*told(error)], table
            session.changed()

    @contextlib.asynccontextmanager
    async def _life(self, _: Any) -> AsyncIterator[None]:
        """Prepare a worker; compile; look for idle sessions; forget everything in the end."""
        beside = [asyncio.create_task(work()) for work in (self._warm_up, self._look_for_idle)]
        try:
            yield
        finally:
            for task in beside:
                task.cancel()
            await self.sessions.close()

    async def _warm_up(self) -> None:
        """Load a worker; where kernels are not compiled for this machine, have that done, and say so on every page."""
        pool = self.sessions.jobs.pool
        await asyncio.shield(pool.prepare())
        if pool.uncompiled:
            folder = self.sessions.folder / secrets.token_hex(4)
            folder.mkdir(mode=0o700)
            self.sessions.warming = Job("warmup", "warmup", self, folder, {}, self._warmed)
            with contextlib.suppress(Refused):  # the server stops already
                self.sessions.jobs.submit(self.sessions.warming)

    def _warmed(self, job: Job) -> None:
        """Tell every page that compiling has begun, or is over."""
        if job.over or not job.share:
            for session in self.sessions:
                session.changed()

    async def _look_for_idle(self) -> None:
        while True:
            await asyncio.sleep(min(LOOK, self.limits.idle_seconds / 4))
            await self.sessions.forget_idle()


async def _nothing(_scope: Scope, _receive: Receive, _send: Send) -> None:
    raise Refused(404, "there is nothing at this address", "open the studio's page")


def bound(port: int | None) -> socket.socket:
    """Return a socket on the loopback interface, at a port or at any free one."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HERE, port or 0))
        listener.listen(512)
    except (OSError, OverflowError):
        listener.close()
        what = f"port {port} cannot be used: something else listens there, or it is not for you"
        raise PolicyError(what, fix="name another one: --port N, or leave it out") from None
    return listener


def server_of(app: ASGIApp) -> uvicorn.Server:
    """Return a server that writes no log: an address may hold a token, an error a value of the data."""
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    config = uvicorn.Config(
        app,
        access_log=False,
        log_config=None,
        ws="none",
        server_header=False,
        date_header=False,
        lifespan="on",
        timeout_graceful_shutdown=GRACE,
        timeout_keep_alive=30,
        h11_max_incomplete_event_size=LONGEST_HEADER,
        http=HeadersInTime,
        loop="asyncio",
        interface="asgi3",
    )
    return uvicorn.Server(config)


def open_browser(address: str, sessions: Sessions) -> None:
    """Open an address without naming it on a command line, where every user of the machine reads its token.

    The browser gets a file of the owner alone that leads to the address. It goes when a browser has come in, or with
    the server.
    """
    page = sessions.folder / "open.html"
    with os.fdopen(os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(REDIRECT.format(address=address))
    sessions.begun.append(lambda _: page.unlink(missing_ok=True))
    if not webbrowser.open(page.as_uri()):
        page.unlink(missing_ok=True)


def serve(
    data: Path | None,
    port: int | None,
    say: Callable[[str], None],
    *,
    browser: bool = True,
    workspace: Path | None = None,
) -> None:
    """Serve until somebody stops it; `say` tells the address, a new one whenever one is used."""
    if data is not None and not data.is_file():
        raise DataError(f"no such file: '{data}'", fix="check the path")
    if workspace is not None and not workspace.is_dir():
        raise PolicyError(f"no such folder: '{workspace}'", fix="name one that is there: --workspace DIR")
    with bound(port) as listener:
        studio = Studio(listener.getsockname()[1], None, None if data is None else data.absolute(), workspace)
        address = studio.address()
        say(f"the studio is at {address}")
        say("it is for this machine alone and lets one browser in; Ctrl-C ends it and forgets the data")
        studio.sessions.begun.append(lambda _: say(f"for another browser: {studio.address()}"))
        if browser:
            open_browser(address, studio.sessions)
        server_of(studio.app).run(sockets=[listener])
