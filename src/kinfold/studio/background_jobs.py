"""Jobs: what takes longer than a moment, each in a process of its own, which can be ended at any time.

    lanes     runs, and looks that somebody waits for; so many processes each, the others wait in line
    line      bounded, in all and for each session; of those that wait the first goes whose session has nothing going on

    memory    bounded for each job: a process that holds more is ended, and the page is told

A process that ends without a last word was ended from outside, most likely for want of memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from kinfold.rows.free_memory import allowed_memory, held_memory
from kinfold.studio.error_answers import Refused
from kinfold.studio.server_limits import GB, MB, Limits
from kinfold.studio.worker_pool import WorkerPool, kill

State: TypeAlias = Literal["queued", "running", "done", "failed", "cancelled"]

OVER: tuple[State, ...] = ("done", "failed", "cancelled")
OFTEN = 0.2  # seconds between two looks at the memory of a process
LARGE = 20 * MB  # of a table: what a run on one leaves in memory goes with its process
GONE = {
    "what": "the run was ended from outside, most likely for want of memory",
    "fix": "give it more memory, or fewer records at a time",
}


@dataclass(eq=False)
class Job:
    """Something to be done for a session: what, how far it is, and what came of it."""

    ident: str
    kind: str
    owner: object  # the session
    folder: Path
    request: Mapping[str, Any]
    told: Callable[[Job], None]  # called whenever something changed
    lane: str = "look"
    state: State = "queued"
    stage: str = "queued"
    share: float = 0.0
    left: float | None = None
    begun: float | None = None
    ended: float | None = None
    curve: list[tuple[float, float]] = field(default_factory=list)
    bound: float | None = None
    summary: Mapping[str, Any] | None = None
    problems: list[Mapping[str, Any]] = field(default_factory=list)
    process: asyncio.subprocess.Process | None = None
    ended_for_memory: bool = False

    @property
    def over(self) -> bool:
        """Whether nothing more will come."""
        return self.state in OVER

    @property
    def seconds(self) -> float:
        """How long it has been going on."""
        return 0.0 if self.begun is None else (self.ended or time.monotonic()) - self.begun

    def progress(self) -> dict[str, Any]:
        """Return how far it is."""
        told = {"id": self.ident, "state": self.state, "stage": self.stage, "share": self.share, "left": self.left}
        loss = self.curve[-1][1] if self.curve else None
        return {**told, "seconds": round(self.seconds, 2), "loss": loss}

    def hear(self, event: Mapping[str, Any]) -> None:
        """Take in what the worker tells."""
        name = event.get("event")
        if name == "progress":
            self.stage, self.share, self.left = event["stage"], event["share"], event.get("left")
        elif name == "cost":
            self.curve.append((event["seconds"], event["share"]))
            del self.curve[1:-400:2]  # a long curve keeps its shape with fewer points
        elif name == "summary":
            self.summary = event["summary"]
        elif name == "done":
            self.bound = event.get("bound")
            self.finish("done")
        elif name == "failed":
            self.problems = list(event["problems"])
            self.finish("failed")

    def finish(self, state: State) -> None:
        """Say how it ended; the first word counts."""
        if not self.over:
            self.state, self.stage, self.left, self.ended = state, state, None, time.monotonic()
            self.share = 1.0 if state == "done" else self.share


class Jobs:
    """The line of jobs, and the processes at work."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._line: list[Job] = []
        self._going: set[Job] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.pool = WorkerPool(limits.workers)
        self._closed = False

    def submit(self, job: Job) -> None:
        """Put a job into the line, or refuse it where that is too long."""
        mine = [each for each in self._line if each.owner is job.owner]
        if len(mine) >= self._limits.waiting:
            raise Refused(429, f"{len(mine)} runs of this session wait already", "wait for one, or cancel one")
        if len(self._line) >= self._limits.queue or self._closed:
            raise Refused(503, f"{len(self._line):,} runs wait already", "try again in a while")
        self._line.append(job)
        self._start_next()

    def before(self, job: Job) -> int:
        """Return how many of its lane are before a job in the line."""
        lane = [each for each in self._line if each.lane == job.lane]
        return lane.index(job) if job in lane else 0

    def drop(self, job: Job) -> None:
        """End a job, and wait for nothing."""
        if job in self._line:
            self._line.remove(job)
        if not job.over:
            job.finish("cancelled")
            job.told(job)
        if job.process is not None:
            kill(job.process)

    async def cancel(self, job: Job) -> None:
        """End a job: at once, wherever it is."""
        self.drop(job)
        if (process := job.process) is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), 2.0)

    async def forget(self, owner: object) -> None:
        """End everything that is done for a session."""
        theirs = [each for each in (*self._line, *self._going) if each.owner is owner]
        await asyncio.gather(*(self.cancel(each) for each in theirs))

    def busy(self, owner: object) -> bool:
        """Whether something is done for a session, or waits to be."""
        return any(each.owner is owner for each in (*self._line, *self._going))

    async def close(self) -> None:
        """End every process."""
        self._closed = True
        await asyncio.gather(*(self.cancel(each) for each in (*self._line, *self._going)))
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5)
        await self.pool.close()

    def _start_next(self) -> None:
        for lane in ("look", "run"):
            going = [each for each in self._going if each.lane == lane]
            waiting = [each for each in self._line if each.lane == lane]
            while waiting and len(going) < self._limits.workers:
                owners = {each.owner for each in going}
                job = next((each for each in waiting if each.owner not in owners), waiting[0])
                waiting.remove(job)
                self._line.remove(job)
                going.append(job)
                self._going.add(job)
                self._spawn(self._done(job))

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _done(self, job: Job) -> None:
        """Do a job from beginning to end."""
        job.state, job.begun = "running", time.monotonic()
        try:
            job.told(job)
            job.process = await self.pool.take()
            if not job.over:  # cancelled while the process came
                await self._followed(job, job.process)
        except (OSError, ValueError):
            job.problems = job.problems or [GONE]
        finally:
            process, job.process = job.process, None  # which may do another: nobody ends it for this one any more
            if process is not None:
                await self.pool.give_back(process, fit=_fit(job))
            shutil.rmtree(job.folder / "scratch", ignore_errors=True)
            if not job.over:
                job.problems = job.problems or [GONE]
                job.finish("failed")
            self._going.discard(job)
            job.told(job)
            self._start_next()

    async def _followed(self, job: Job, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018  pipes, as asked for
        process.stdin.write(json.dumps({**job.request, "kind": job.kind, "folder": str(job.folder)}).encode())
        process.stdin.write(b"\n")
        await process.stdin.drain()
        watching = asyncio.create_task(self._watch_memory(job, process))
        try:
            while line := await process.stdout.readline():
                job.hear(json.loads(line))
                if job.over:
                    return  # the last word: whoever asked is told once the process is gone
                job.told(job)
        finally:
            watching.cancel()

    async def _watch_memory(self, job: Job, process: asyncio.subprocess.Process) -> None:
        """End a process that holds more memory than a job may."""
        most = self._limits.worker_bytes or allowed_memory()
        while most is not None and (held := held_memory(process.pid)) is not None:
            if held > most:
                job.ended_for_memory = True
                job.problems = [_too_much_memory(most)]
                job.finish("failed")
                kill(process)
                return
            await asyncio.sleep(OFTEN)


def _too_much_memory(most: int) -> dict[str, str]:
    told = f"{most / GB:.1f} GB" if most >= GB else f"{most // MB:,} MB"
    what = f"this needed more than the {told} of memory that the studio gives to one job, and was ended"
    return {"what": what, "fix": "free some memory, or take fewer records, columns or values at a time"}


def _fit(job: Job) -> bool:
    """Whether the process of a job may do another: a look that the worker answered, a run that went well."""
    if job.ended_for_memory:
        return False
    if job.lane == "look":
        return job.state in ("done", "failed")
    source = Path(str(job.request["source"]))
    return job.state == "done" and source.is_file() and source.stat().st_size <= LARGE
