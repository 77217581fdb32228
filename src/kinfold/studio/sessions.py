"""Sessions: the state of each browser, in a folder of its own, removed after an idle hour or with the server.

A session has one table, one policy with its history, runs and other jobs. Pages subscribe to events of a session.
Open tables answer short questions of a page (rows, risks, values of a column, whether a policy fits) in a thread, one
question per table at a time.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from kinfold.disk import folders
from kinfold.pipeline import MISSING_TEXTS, open_engine
from kinfold.studio.history import History
from kinfold.studio.job_queue import Job, JobQueue
from kinfold.studio.refusals import Refusal, StudioLimits
from kinfold.tables.engine import Engine
from kinfold.tables.source_form import SourceForm

Answer = TypeVar("Answer")

MAX_PARALLEL_QUERIES = 3  # of a page: further ones wait
PREFIX = "kinfold-studio-"
MAX_PENDING_EVENTS = 200  # of a slow page; then it has to read the whole state


@dataclass(eq=False)
class TableHandle:
    """An open table: its engine, its frame, and cached answers."""

    path: Path
    form: SourceForm
    size: int
    engine: Engine | None = None
    frame: Any = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    cache: dict[Any, Any] = field(default_factory=dict)

    def query(self, question: Callable[[Engine, Any], Answer], key: Any = None) -> Answer:
        """Answer a question about the table; answers with a key are cached."""
        with self.lock:
            if key is not None and key in self.cache:
                return self.cache[key]  # type: ignore[no-any-return]
            if self.engine is None:
                self.engine = open_engine()
                self.frame = self.engine.read(self.path, MISSING_TEXTS, self.form)
            answer = question(self.engine, self.frame)
            if key is not None:
                self.cache = {**dict(list(self.cache.items())[-20:]), key: answer}
            return answer

    def close(self) -> None:
        """Close the engine."""
        with self.lock:
            if self.engine is not None:
                self.engine.close()
            self.engine = self.frame = None


class OpenTables:
    """The open tables of all sessions; the least recently used are closed when there are too many."""

    def __init__(self, limits: StudioLimits) -> None:
        self._limits = limits
        self._open: OrderedDict[object, TableHandle] = OrderedDict()
        self._slots = asyncio.Semaphore(MAX_PARALLEL_QUERIES)
        self._opening: set[asyncio.Task[None]] = set()

    def open_early(self, owner: object, path: Path, form: SourceForm) -> None:
        """Start opening a large table before the first question."""
        task = asyncio.get_running_loop().create_task(self.query(owner, path, form, lambda _engine, _frame: None))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def query(
        self, owner: object, path: Path, form: SourceForm, question: Callable[[Engine, Any], Answer], key: Any = None
    ) -> Answer:
        """Answer a question about the table of a session, in a thread."""
        handle = self._get_handle(owner, path, form)
        async with self._slots:
            return await asyncio.to_thread(handle.query, question, key)

    async def close_table(self, owner: object) -> None:
        """Close the table of a session."""
        handle = self._open.pop(owner, None)
        if handle is not None:
            await asyncio.to_thread(handle.close)

    async def close(self) -> None:
        """Close every table."""
        for owner in tuple(self._open):
            await self.close_table(owner)

    def _get_handle(self, owner: object, path: Path, form: SourceForm) -> TableHandle:
        handle = self._open.get(owner)
        if handle is None or (handle.path, handle.form) != (path, form):
            if handle is not None:
                threading.Thread(target=handle.close, daemon=True).start()
            handle = self._open[owner] = TableHandle(path, form, path.stat().st_size)
        self._open.move_to_end(owner)
        while len(self._open) > 1 and (
            len(self._open) > self._limits.open_tables
            or sum(each.size for each in self._open.values()) > self._limits.open_table_bytes
        ):
            _, oldest = self._open.popitem(last=False)
            threading.Thread(target=oldest.close, daemon=True).start()
        return handle


@dataclass(eq=False)
class SessionTable:
    """The table of a session: its file, its state, and its profile once it is open."""

    name: str
    path: Path
    kind: str  # demo, file, given, database
    size: int
    policy: str | None = None  # of the demo or of a project
    state: str = "opening"
    facts: Mapping[str, Any] = field(default_factory=dict)
    problems: list[Mapping[str, Any]] = field(default_factory=list)
    job: Job | None = None
    address: str | None = None  # of rows in a database, without a password
    full_address: str | None = None  # with the password, until the rows are read
    tables: tuple[str, ...] = ()  # of an SQLite file, to choose from
    read_options: Mapping[str, Any] = field(default_factory=dict)  # the keys of [source]


@dataclass(eq=False)
class StudioRun:
    """A run of a session: its job, and the policy it was started with."""

    job: Job
    policy_text: str
    requested: Mapping[str, Any]
    read_options: Mapping[str, Any]
    rows: Any = None  # before and after, once a page has asked for them


class StudioSession:
    """The state of one browser."""

    def __init__(self, folder: Path, sessions: Sessions) -> None:
        self.folder, self.sessions, self.limits = folder, sessions, sessions.limits
        self.history = History(self.limits.undo)
        self.source: SessionTable | None = None
        self.runs: dict[str, StudioRun] = {}
        self.inspections: dict[str, Job] = {}
        self.step = "open"
        self.draft: Mapping[str, Any] | None = None  # an invalid policy text and its problems
        self.policy_lock = asyncio.Lock()  # decisions are made one at a time
        self.version = 1
        self.last_used = time.monotonic()
        self.cached_state: tuple[int, bytes] | None = None  # version and JSON
        self._numbers = 0
        self._readers: set[asyncio.Queue[tuple[str, Any]]] = set()

    def new_id(self, letter: str) -> str:
        """Return a new identifier."""
        self._numbers += 1
        return f"{letter}{self._numbers}"

    def make_folder(self, ident: str) -> Path:
        """Create the folder of a job."""
        folder = self.folder / ident
        folder.mkdir(mode=0o700)
        return folder

    def mark_changed(self) -> None:
        """Give the state a new version, and tell it to the pages."""
        self.version += 1
        self.publish("session", {"version": self.version})

    def publish(self, event: str, data: Mapping[str, Any]) -> None:
        """Send an event to every page; a slow page loses events and gets the new version instead."""
        for reader in self._readers:
            if reader.full():
                while not reader.empty():
                    reader.get_nowait()
                reader.put_nowait(("session", {"version": self.version}))
            reader.put_nowait((event, data))

    def subscribe(self) -> asyncio.Queue[tuple[str, Any]]:
        """Return a queue of the events from now on."""
        if len(self._readers) >= self.limits.streams:
            raise Refusal(429, "too many pages show this session", "close some of its tabs")
        reader: asyncio.Queue[tuple[str, Any]] = asyncio.Queue(MAX_PENDING_EVENTS)
        self._readers.add(reader)
        return reader

    def unsubscribe(self, reader: asyncio.Queue[tuple[str, Any]]) -> None:
        """End a subscription."""
        self._readers.discard(reader)

    @property
    def table(self) -> SessionTable:
        """The open table; refuse the request if there is none."""
        if self.source is None or self.source.state not in ("ready", "opening") or not self.source.facts:
            raise Refusal(409, "no table is open", "open one first")
        return self.source

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the table's columns."""
        facts = self.source.facts if self.source else {}
        return tuple(column["name"] for column in facts.get("columns", ()))


class Sessions:
    """All sessions of the server, by the hash of their cookie."""

    def __init__(self, limits: StudioLimits, workspace: Path | None = None) -> None:
        self.limits = limits
        # releases are saved here, and files that policies name are read from here
        self.workspace = (workspace or Path.cwd()).absolute()
        self.jobs, self.open_tables = JobQueue(limits), OpenTables(limits)
        folders.sweep_scratch(PREFIX)
        self.folder = folders.make_scratch(PREFIX)
        self.start_callbacks: list[Callable[[StudioSession], None]] = []  # called for each new session
        self.demo: Mapping[str, Any] = {}  # the profile of the demo table, once it was opened
        self.warmup_job: Job | None = None  # compiles the kernels, once for a machine
        self._open: dict[str, StudioSession] = {}
        self._tokens: set[str] = set()

    def find_file(self, file: Path) -> Path | None:
        """Return the full path of an existing file in the workspace; None for any other file."""
        path = (self.workspace / file).resolve()
        return path if path.is_relative_to(self.workspace.resolve()) and path.is_file() else None

    def invite(self) -> str:
        """Return a token that admits one browser, once."""
        token = secrets.token_urlsafe(32)
        self._tokens.add(_hash_token(token))
        return token

    def enter(self, token: str) -> tuple[str, StudioSession]:
        """Use a token to start a session; return the value of its cookie and the session."""
        known = next((each for each in self._tokens if secrets.compare_digest(each, _hash_token(token))), None)
        if known is None:
            raise Refusal(403, "this address was used already, or is wrong", "use the newest address in the terminal")
        if len(self._open) >= self.limits.sessions:
            raise Refusal(429, f"{len(self._open)} sessions are open already", "close one, or try again in an hour")
        cookie = secrets.token_urlsafe(32)
        folder = self.folder / secrets.token_hex(8)
        folder.mkdir(mode=0o700)
        self._open[_hash_token(cookie)] = session = StudioSession(folder, self)
        self._tokens.discard(known)  # last: a failed start keeps the token
        return cookie, session

    def find(self, cookie: str) -> StudioSession | None:
        """Return the session of a cookie."""
        session = self._open.get(_hash_token(cookie))
        if session is not None:
            session.last_used = time.monotonic()
        return session

    def __iter__(self) -> Iterator[StudioSession]:
        return iter(tuple(self._open.values()))

    async def remove_idle(self) -> None:
        """Remove sessions that were idle for too long and have no job."""
        for key, session in tuple(self._open.items()):
            if self.jobs.is_busy(session):
                session.last_used = time.monotonic()
            elif time.monotonic() - session.last_used > self.limits.idle_seconds:
                del self._open[key]
                await self.remove(session)

    async def remove(self, session: StudioSession) -> None:
        """Cancel the jobs of a session, and remove its files."""
        session.publish("gone", {})
        await self.jobs.cancel_all(session)
        await self.open_tables.close_table(session)
        await asyncio.to_thread(folders.remove_scratch, session.folder)

    async def close(self) -> None:
        """Remove all sessions and their files."""
        await self.jobs.close()
        await self.open_tables.close()
        self._open.clear()
        await asyncio.to_thread(folders.remove_scratch, self.folder)


def _hash_token(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def read_json(path: Path) -> Any:
    """Read a result file of a job."""
    return json.loads(path.read_text("utf-8"))
