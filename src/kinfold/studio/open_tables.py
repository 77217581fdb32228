"""Desks: open tables, for what a page asks at once: rows, risks, values of a column, whether a policy fits.

A table is read again when it is asked for after others took its place. What is asked is asked in a thread, one question
a table at a time, a few at once in all: the server itself never waits.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from kinfold.flow import MISSING, open_engine
from kinfold.rows.engines import Engine
from kinfold.rows.source_form import Form
from kinfold.studio.server_limits import Limits

Answer = TypeVar("Answer")

AT_ONCE = 3


@dataclass(eq=False)
class Desk:
    """One open table: its engine, its frame, and what was found out about it."""

    path: Path
    form: Form
    size: int
    engine: Engine | None = None
    frame: Any = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    remembered: dict[Any, Any] = field(default_factory=dict)

    def asked(self, question: Callable[[Engine, Any], Answer], key: Any = None) -> Answer:
        """Ask the table; an answer with a key is kept, for pages ask again."""
        with self.lock:
            if key is not None and key in self.remembered:
                return self.remembered[key]  # type: ignore[no-any-return]
            if self.engine is None:
                self.engine = open_engine()
                self.frame = self.engine.read(self.path, MISSING, self.form)
            answer = question(self.engine, self.frame)
            if key is not None:
                self.remembered = {**dict(list(self.remembered.items())[-20:]), key: answer}
            return answer

    def close(self) -> None:
        """Forget the table."""
        with self.lock:
            if self.engine is not None:
                self.engine.close()
            self.engine = self.frame = None


class Desks:
    """The tables that are open, those asked last; the others are closed."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._open: OrderedDict[object, Desk] = OrderedDict()
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._coming: set[asyncio.Task[None]] = set()

    def prepare(self, owner: object, path: Path, form: Form) -> None:
        """Begin to open a large table before anybody asks."""
        task = asyncio.get_running_loop().create_task(self.ask(owner, path, form, lambda _engine, _frame: None))
        self._coming.add(task)
        task.add_done_callback(self._coming.discard)

    async def ask(
        self, owner: object, path: Path, form: Form, question: Callable[[Engine, Any], Answer], key: Any = None
    ) -> Answer:
        """Ask the table of a session something, in a thread."""
        desk = self._desk(owner, path, form)
        async with self._slots:
            return await asyncio.to_thread(desk.asked, question, key)

    async def forget(self, owner: object) -> None:
        """Close the table of a session."""
        desk = self._open.pop(owner, None)
        if desk is not None:
            await asyncio.to_thread(desk.close)

    async def close(self) -> None:
        """Close every table."""
        for owner in tuple(self._open):
            await self.forget(owner)

    def _desk(self, owner: object, path: Path, form: Form) -> Desk:
        desk = self._open.get(owner)
        if desk is None or (desk.path, desk.form) != (path, form):
            if desk is not None:
                threading.Thread(target=desk.close, daemon=True).start()
            desk = self._open[owner] = Desk(path, form, path.stat().st_size)
        self._open.move_to_end(owner)
        while len(self._open) > 1 and self._too_many():
            _, oldest = self._open.popitem(last=False)
            threading.Thread(target=oldest.close, daemon=True).start()
        return desk

    def _too_many(self) -> bool:
        bytes_ = sum(desk.size for desk in self._open.values())
        return len(self._open) > self._limits.desks or bytes_ > self._limits.desk_bytes
