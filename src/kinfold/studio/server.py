"""The server on the loopback interface, from the first address to the removal of its files."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import socket
import webbrowser
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import h11
import uvicorn
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route, Router
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from kinfold.errors import DataError, KinfoldError, PolicyError
from kinfold.studio import hierarchy_routes, policy_routes, run_routes, session_routes  # noqa: F401  they add routes
from kinfold.studio.guard import ROUTES, Guard
from kinfold.studio.job_queue import Job
from kinfold.studio.refusals import Refusal, StudioLimits, make_refusal
from kinfold.studio.sessions import Sessions, SessionTable, StudioSession
from kinfold.studio.source_routes import make_given_table, open_file

STATIC_FOLDER = Path(__file__).with_name("static")
LOOPBACK = "127.0.0.1"
IDLE_CHECK_SECONDS = 20.0  # between two removals of idle sessions
SHUTDOWN_SECONDS = 1  # for requests that are being answered when the server stops
CHART_SCRIPT_PATH = "/vega.js"
MAX_HEADER_BYTES = 1 << 20  # a browser sends up to 180 cookies of 4 KB that other local applications have set
REDIRECT_PAGE = (
    '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
    '<meta http-equiv="refresh" content="0; url={address}"><title>kinfold studio</title>'
    '<p><a href="{address}">Open the studio</a></p>\n'
)
TIMEOUT_RESPONSE = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class HeaderTimeoutProtocol(H11Protocol):
    """uvicorn's HTTP protocol with a time limit for the header of each request, which uvicorn does not have."""

    seconds = 20.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer for the first header."""
        super().connection_made(transport)
        self._deadline: asyncio.TimerHandle | None = self.loop.call_later(self.seconds, self._time_out)

    def handle_events(self) -> None:
        """Handle received bytes; the timer runs from the first byte of a header to its last."""
        super().handle_events()
        unfinished = self.conn.their_state is h11.IDLE and bool(self.conn.trailing_data[0])
        if not unfinished:
            self._stop_timer()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self.seconds, self._time_out)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._stop_timer()
        super().connection_lost(exc)

    def _stop_timer(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _time_out(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(TIMEOUT_RESPONSE)
            self.transport.close()


class Studio:
    """The web application: sessions, interface and pages."""

    def __init__(
        self, port: int, limits: StudioLimits | None = None, data: Path | None = None, workspace: Path | None = None
    ) -> None:
        self.limits = limits or StudioLimits()
        self.sessions = Sessions(self.limits, workspace)
        self.data, self.port = data, port
        self._charts: Job | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        if data is not None:
            self.sessions.start_callbacks.append(self._open_data)

    @property
    def app(self) -> ASGIApp:
        """The routes behind the guard."""
        static = Mount("/static", StaticFiles(directory=STATIC_FOLDER))
        pages = [Route("/", self.page), Route(CHART_SCRIPT_PATH, self.charts), static]
        router = Router(
            [*ROUTES, *pages], redirect_slashes=False, default=_raise_not_found, lifespan=self._run_lifespan
        )
        return Guard(router, self.sessions, self.port)

    def address(self) -> str:
        """Return an address that admits one browser."""
        return f"http://{LOOPBACK}:{self.port}/?token={self.sessions.invite()}"

    async def page(self, _: Request) -> Response:
        """Return the page."""
        return FileResponse(STATIC_FOLDER / "studio.html")

    async def charts(self, _: Request) -> Response:
        """Return the script that draws charts; a worker makes it at the first request."""
        if self._charts is None:
            self._charts = self._submit("script", lambda _: None)
        job = self._charts
        while not job.is_over:
            await asyncio.sleep(0.05)
        if job.state != "done":
            self._charts = None
            raise Refusal(503, "the script that draws charts cannot be made", "check that vl-convert is installed")
        script = await asyncio.to_thread((job.folder / "vega.js").read_bytes)
        return Response(script, media_type="text/javascript", headers={"cache-control": "private, max-age=3600"})

    def _submit(self, kind: str, on_change: Callable[[Job], None]) -> Job:
        """Queue a job of the server itself."""
        folder = self.sessions.folder / secrets.token_hex(4)
        folder.mkdir(mode=0o700)
        job = Job(kind, kind, self, folder, {}, on_change)
        self.sessions.jobs.submit(job)
        return job

    def _open_data(self, session: StudioSession) -> None:
        """Open the table of the command line in a new session."""
        assert self.data is not None  # noqa: S101  checked by the caller
        task = asyncio.get_running_loop().create_task(self._load_table(session, make_given_table(self.data)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _load_table(self, session: StudioSession, table: SessionTable) -> None:
        try:
            await open_file(session, table)
        except (Refusal, KinfoldError, OSError) as error:  # the page shows it
            table.state, table.problems, session.source = "failed", [*make_refusal(error).problems], table
            session.mark_changed()

    @contextlib.asynccontextmanager
    async def _run_lifespan(self, _: Any) -> AsyncIterator[None]:
        """Load a worker, compile the kernels and remove idle sessions; remove all files at the end."""
        tasks = [asyncio.create_task(work()) for work in (self._warm_up, self._remove_idle_sessions)]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await self.sessions.close()

    async def _warm_up(self) -> None:
        """Load a worker; compile the kernels if they are not compiled for this machine."""
        pool = self.sessions.jobs.pool
        await asyncio.shield(pool.prepare())
        if pool.uncompiled:
            with contextlib.suppress(Refusal):  # the server is stopping
                self.sessions.warmup_job = self._submit("warmup", self._publish_warmup)

    def _publish_warmup(self, job: Job) -> None:
        """Tell every page that compiling has started or ended."""
        if job.is_over or not job.share:
            for session in self.sessions:
                session.mark_changed()

    async def _remove_idle_sessions(self) -> None:
        while True:
            await asyncio.sleep(min(IDLE_CHECK_SECONDS, self.limits.idle_seconds / 4))
            await self.sessions.remove_idle()


async def _raise_not_found(_scope: Scope, _receive: Receive, _send: Send) -> None:
    raise Refusal(404, "there is nothing at this address", "open the studio's page")


def bind_socket(port: int | None) -> socket.socket:
    """Return a listening socket on the loopback interface, at a port or at any free one."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port or 0))
        listener.listen(512)
    except (OSError, OverflowError):
        listener.close()
        what = f"port {port} cannot be used: another program uses it, or you lack the permission"
        raise PolicyError(what, fix="choose another port with --port N, or leave it out") from None
    return listener


def make_server(app: ASGIApp) -> uvicorn.Server:
    """Return a server without a log: an address can contain a token, an error a value of the data."""
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
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        timeout_keep_alive=30,
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
        http=HeaderTimeoutProtocol,
        loop="asyncio",
        interface="asgi3",
    )
    return uvicorn.Server(config)


def open_browser(address: str, sessions: Sessions) -> None:
    """Open an address in the browser without putting its token on a command line, which every user can read.

    The browser opens a private file that redirects to the address. The file is removed after the first visit, or with
    the server.
    """
    page = sessions.folder / "open.html"
    with os.fdopen(os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(REDIRECT_PAGE.format(address=address))
    sessions.start_callbacks.append(lambda _: page.unlink(missing_ok=True))
    if not webbrowser.open(page.as_uri()):
        page.unlink(missing_ok=True)


def serve(
    data: Path | None,
    port: int | None,
    print_line: Callable[[str], None],
    *,
    browser: bool = True,
    workspace: Path | None = None,
) -> None:
    """Serve until the process is stopped; print an address, and a new one whenever one is used."""
    if data is not None and not data.is_file():
        raise DataError(f"no such file: '{data}'", fix="check the path")
    if workspace is not None and not workspace.is_dir():
        raise PolicyError(f"no such folder: '{workspace}'", fix="name an existing folder: --workspace DIR")
    with bind_socket(port) as listener:
        studio = Studio(listener.getsockname()[1], None, None if data is None else data.absolute(), workspace)
        address = studio.address()
        print_line(f"the studio is at {address}")
        print_line("the address works on this machine for one browser; Ctrl-C stops the studio and removes its data")
        studio.sessions.start_callbacks.append(lambda _: print_line(f"for another browser: {studio.address()}"))
        if browser:
            open_browser(address, studio.sessions)
        make_server(studio.app).run(sockets=[listener])
