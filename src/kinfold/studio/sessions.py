"""Sessions: what each browser works on, in a folder of its own, forgotten after an idle hour or with the server.

A session has one table, one policy with its history, its runs and its looks. Whoever watches it is told when something
changes; nothing is lost while nobody does.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kinfold.disk import scratch
from kinfold.studio.background_jobs import Job, Jobs
from kinfold.studio.error_answers import Refused
from kinfold.studio.history import History
from kinfold.studio.open_tables import Desks
from kinfold.studio.server_limits import Limits

PREFIX = "kinfold-studio-"
MOST_EVENTS = 200  # that a slow reader may be behind


@dataclass(eq=False)
class Opened:
    """The table of a session: where it is, how it was opened, and what is known of it."""

    name: str
    path: Path
    kind: str  # demo, file, given, database
    size: int
    policy: str | None = None  # that it brings along
    state: str = "opening"
    facts: Mapping[str, Any] = field(default_factory=dict)
    problems: list[Mapping[str, Any]] = field(default_factory=list)
    job: Job | None = None
    address: str | None = None  # of rows in a database, without a password
    asked: str | None = None  # the same with it, until they are read
    tables: tuple[str, ...] = ()  # of a file of SQLite, to choose from
    read: Mapping[str, Any] = field(default_factory=dict)  # the keys of [source] that it was read with


@dataclass(eq=False)
class Tried:
    """One try: the policy it was asked for by, and how it goes."""

    job: Job
    text: str
    asked: Mapping[str, Any]
    read: Mapping[str, Any]


class StudioSession:
    """What one browser works on."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.folder, self.limits = folder, limits
        self.history = History(limits.undo)
        self.source: Opened | None = None
        self.runs: dict[str, Tried] = {}
        self.looks: dict[str, Job] = {}
        self.step = "open"
        self.draft: Mapping[str, Any] | None = None  # a text that is no policy, and its problems: the page shows it
        self.deciding = asyncio.Lock()  # one decision after the other
        self.version = 1
        self.touched = time.monotonic()
        self.shown: tuple[int, bytes] | None = None  # the state as it was sent last
        self._numbers = 0
        self._readers: set[asyncio.Queue[tuple[str, Any]]] = set()

    def number(self, letter: str) -> str:
        """Return a new identifier."""
        self._numbers += 1
        return f"{letter}{self._numbers}"

    def room(self, ident: str) -> Path:
        """Make the folder of a job."""
        folder = self.folder / ident
        folder.mkdir(mode=0o700)
        return folder

    def changed(self) -> int:
        """Say that something changed, and return the number of the new state."""
        self.version += 1
        self.tell("session", {"version": self.version})
        return self.version

    def tell(self, event: str, data: Mapping[str, Any]) -> None:
        """Tell everybody who watches; one who is too slow hears less, and asks for the whole again."""
        for reader in self._readers:
            if reader.full():
                while not reader.empty():
                    reader.get_nowait()
                reader.put_nowait(("session", {"version": self.version}))
            reader.put_nowait((event, data))

    def watched(self) -> asyncio.Queue[tuple[str, Any]]:
        """Begin to watch."""
        if len(self._readers) >= self.limits.streams:
            raise Refused(429, "too many pages watch this session", "close some of its tabs")
        reader: asyncio.Queue[tuple[str, Any]] = asyncio.Queue(MOST_EVENTS)
        self._readers.add(reader)
        return reader

    def unwatched(self, reader: asyncio.Queue[tuple[str, Any]]) -> None:
        """Watch no more."""
        self._readers.discard(reader)

    @property
    def table(self) -> Opened:
        """The open table, or a refusal."""
        if self.source is None or self.source.state not in ("ready", "opening") or not self.source.facts:
            raise Refused(409, "no table is open", "open one first")
        return self.source

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the table's columns."""
        facts = self.source.facts if self.source else {}
        return tuple(column["name"] for column in facts.get("columns", ()))


class Sessions:
    """Every session of the server, by the mark in its cookie; of the mark only a digest is kept."""

    def __init__(self, limits: Limits, workspace: Path | None = None) -> None:
        self.limits = limits
        self.workspace = (workspace or Path.cwd()).absolute()  # where releases are saved, and nothing else
        self.jobs, self.desks = Jobs(limits), Desks(limits)
        scratch.sweep(PREFIX)
        self.folder = scratch.make(PREFIX)
        self.begun: list[Callable[[StudioSession], None]] = []  # who wants to know of a new session
        self.demo: Mapping[str, Any] = {}  # what is known of the demo table once somebody has opened it
        self.warming: Job | None = None  # which compiles, once for a machine
        self._open: dict[str, StudioSession] = {}
        self._tokens: set[str] = set()

    def invite(self) -> str:
        """Return a token that lets one browser in, once."""
        token = secrets.token_urlsafe(32)
        self._tokens.add(_digest(token))
        return token

    def enter(self, token: str) -> tuple[str, StudioSession]:
        """Take a token and begin a session; return the mark for its cookie."""
        found = next((each for each in self._tokens if secrets.compare_digest(each, _digest(token))), None)
        if found is None:
            raise Refused(403, "this address was used already, or is wrong", "take the newest one from the terminal")
        if len(self._open) >= self.limits.sessions:
            raise Refused(429, f"{len(self._open)} sessions are open already", "close one, or try again in an hour")
        mark = secrets.token_urlsafe(32)
        folder = self.folder / secrets.token_hex(8)
        folder.mkdir(mode=0o700)
        self._open[_digest(mark)] = session = StudioSession(folder, self.limits)
        self._tokens.discard(found)  # last: a sign-in that failed uses nothing up
        return mark, session

    def find(self, mark: str) -> StudioSession | None:
        """Return the session of a cookie."""
        session = self._open.get(_digest(mark))
        if session is not None:
            session.touched = time.monotonic()
        return session

    def __iter__(self) -> Iterator[StudioSession]:
        return iter(tuple(self._open.values()))

    async def forget_idle(self) -> None:
        """Forget sessions that nobody has asked for an hour, unless something is still done for them."""
        for mark, session in tuple(self._open.items()):
            if self.jobs.busy(session):
                session.touched = time.monotonic()
            elif time.monotonic() - session.touched > self.limits.idle_seconds:
                del self._open[mark]
                await self.forget(session)

    async def forget(self, session: StudioSession) -> None:
        """End what is done for a session, and remove all it had."""
        session.tell("gone", {})
        await self.jobs.forget(session)
        await self.desks.forget(session)
        await asyncio.to_thread(_remove, session.folder)

    async def close(self) -> None:
        """Forget everything."""
        await self.jobs.close()
        await self.desks.close()
        self._open.clear()
        await asyncio.to_thread(scratch.remove, self.folder)


def _digest(mark: str) -> str:
    return hashlib.sha256(mark.encode()).hexdigest()


def _remove(folder: Path) -> None:
    import shutil

    for _ in range(scratch.TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.05)


def read_json(path: Path) -> Any:
    """Read what a job left."""
    return json.loads(path.read_text("utf-8"))
