"""Processes that wait for an errand: loading one takes a second or two, so one or two are always at hand.

A process that made a run is ended; one that only looked at something may look at more, some times.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process

KEPT = 2  # processes at hand
MOST_ERRANDS = 20  # of one process: what libraries keep in memory goes with it
LONGEST_LINE = 8 << 20  # of what a worker tells


class WorkerPool:
    """Processes that are loaded and have nothing to do."""

    def __init__(self) -> None:
        self._ready: list[Process] = []
        self._coming = 0
        self._done: dict[int, int] = {}  # errands by process
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    async def take(self) -> Process:
        """Return a process that waits for an errand, and load another one for the next."""
        alive = [process for process in self._ready if process.returncode is None]
        process, self._ready = (alive[0], alive[1:]) if alive else (None, [])
        if not self._ready and not self._coming and not self._closed:
            task = asyncio.get_running_loop().create_task(self.prepare())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return process or await _started()

    async def give_back(self, process: Process, *, fit: bool) -> None:
        """Take a process back after an errand, or end it where it is not fit for another."""
        self._done[process.pid] = self._done.get(process.pid, 0) + 1
        used_up = self._done[process.pid] >= MOST_ERRANDS or len(self._ready) >= KEPT or self._closed
        if fit and not used_up and process.returncode is None:
            self._ready.append(process)
            return
        self._done.pop(process.pid, None)
        await ended(process)

    async def prepare(self) -> None:
        """Load a process for the next errand."""
        self._coming += 1
        try:
            process = await _started()
        finally:
            self._coming -= 1
        if self._closed:
            await ended(process)
        else:
            self._ready.append(process)

    async def close(self) -> None:
        """End every process."""
        self._closed = True
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5)
        for process in self._ready:
            await ended(process)
        self._ready = []


async def _started() -> Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "kinfold.studio.worker"),
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        limit=LONGEST_LINE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
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
