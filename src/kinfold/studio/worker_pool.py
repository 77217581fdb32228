"""Processes that wait for a job: loading one takes a second or two, so one or two are always at hand.

A process may do several jobs: one that made a run has its kernels and its charts at hand, and makes the next in a
third of the time. It is ended after some of them, after one on a large table, and wherever one went wrong.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process

from kinfold.rows.free_memory import shared_by

KEPT = 2  # processes at hand
MOST_JOBS = 20  # of one process: what libraries keep in memory goes with it
LONGEST_LINE = 8 << 20  # of what a worker tells


class WorkerPool:
    """Processes that are loaded and have nothing to do."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once  # processes that may work at a time, and so share the memory
        self._ready: list[Process] = []
        self._coming: asyncio.Task[Process] | None = None  # the next one, loading or loaded
        self._done: dict[int, int] = {}  # jobs by process
        self._closed = False
        self.uncompiled: list[str] = []  # kernels, as the process said that was loaded last

    async def take(self) -> Process:
        """Return a process that waits for a job, and load another one for the next."""
        alive = [process for process in self._ready if process.returncode is None]
        process = max(alive, key=self._jobs_done, default=None)  # the one that has the most at hand
        self._ready = [each for each in alive if each is not process]
        if process is None:
            coming, self._coming = self.prepare(), None
            self._prepare_next()
            return await coming
        self._prepare_next()
        return process

    def prepare(self) -> asyncio.Task[Process]:
        """Begin to load a process for the next job, unless one is coming already."""
        if self._coming is None:
            self._coming = asyncio.get_running_loop().create_task(self._loaded())
        return self._coming

    def _prepare_next(self) -> None:
        if not self._ready and not self._closed:
            self.prepare()

    async def _loaded(self) -> Process:
        """Return a process that has loaded what jobs need; it says so in its first line."""
        process = await _started(self._at_once)
        assert process.stdout is not None  # noqa: S101  a pipe, as asked for
        try:
            line = await process.stdout.readline()
        except asyncio.CancelledError:
            await ended(process)
            raise
        if line:
            self.uncompiled = json.loads(line)["uncompiled"]
        return process

    async def give_back(self, given: Process, *, fit: bool) -> None:
        """Take a process back after a job, or end it where it is not fit for another, or one of too many."""
        process: Process | None = given
        self._done[given.pid] = self._jobs_done(given) + 1
        used_up = self._jobs_done(given) >= MOST_JOBS or self._closed
        if fit and not used_up and given.returncode is None:
            self._ready = sorted([given, *self._ready], key=self._jobs_done, reverse=True)
            process = self._ready.pop() if len(self._ready) > KEPT else None
        if process is not None:
            self._done.pop(process.pid, None)
            await ended(process)

    def _jobs_done(self, process: Process) -> int:
        """How many jobs a process has done."""
        return self._done.get(process.pid, 0)

    async def close(self) -> None:
        """End every process."""
        self._closed = True
        if self._coming is not None:
            self._coming.cancel()
            with contextlib.suppress(asyncio.CancelledError, OSError):
                self._ready.append(await self._coming)
        for process in self._ready:
            await ended(process)
        self._ready = []


async def _started(at_once: int) -> Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "kinfold.studio.worker"),
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        limit=LONGEST_LINE,
        env={**os.environ, **shared_by(at_once), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


async def ended(process: Process) -> None:
    """End a process, at once."""
    kill(process)
    await process.wait()
    if process.stdin is not None:
        process.stdin.close()


def kill(process: Process) -> None:
    """Tell a process to end."""
    with contextlib.suppress(ProcessLookupError):
        process.kill()
