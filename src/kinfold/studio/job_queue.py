"""The queue of long jobs. Each job runs in a worker process, which can be killed at any time.

    lanes     `run`, and `short` for jobs that a page waits for; each lane has its own number of processes
    queue     limited in total and for each session; a session without a running job goes first
    memory    limited for each job: a process that exceeds the limit is killed, and the page gets a message

A process that exits without a last event was killed from outside, most likely for lack of memory.

Loading a worker takes a second or two, so the pool keeps one or two ready. A worker does several jobs: its kernels and
charts are loaded, and the next run takes a third of the time. The pool ends a worker after some jobs, after a job on a
large table, and after a failure. (`compare` uses loky's pool: it has no progress to show and no single job to kill.)
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from kinfold.studio.refusals import MB, MEMORY_FIX, Refusal, StudioLimits, format_bytes
from kinfold.tables.resources import build_worker_environment, get_allowed_memory, get_process_memory

JobState: TypeAlias = Literal["queued", "running", "done", "failed", "cancelled"]

FINAL_STATES: tuple[JobState, ...] = ("done", "failed", "cancelled")
MEMORY_CHECK_SECONDS = 0.2  # between two checks of the memory of a worker
MAX_REUSE_BYTES = 20 * MB  # after a run on a larger table the process ends, with the memory that libraries keep
MAX_IDLE_PROCESSES = 2  # ready for the next run
MAX_JOBS_PER_PROCESS = 20  # then the process ends, with the memory that libraries keep
MAX_EVENT_BYTES = 8 << 20  # one line from a worker: a result with its charts
KILLED_PROBLEM = {"what": "the system killed the run, most likely for lack of memory", "fix": MEMORY_FIX}


@dataclass(eq=False)
class Job:
    """A job of a session: its request, its progress and its result."""

    ident: str
    kind: str
    owner: object  # the session
    folder: Path
    request: Mapping[str, Any]
    on_change: Callable[[Job], None]  # called after every change
    lane: str = "short"
    state: JobState = "queued"
    stage: str = "queued"
    share: float = 0.0
    left: float | None = None
    started_at: float | None = None
    ended_at: float | None = None
    curve: list[tuple[float, float]] = field(default_factory=list)
    summary: Mapping[str, Any] | None = None
    problems: list[Mapping[str, Any]] = field(default_factory=list)
    process: Process | None = None
    exceeded_memory: bool = False

    @property
    def is_over(self) -> bool:
        """Whether the job has ended."""
        return self.state in FINAL_STATES

    @property
    def seconds(self) -> float:
        """How long the job runs or ran."""
        return 0.0 if self.started_at is None else (self.ended_at or time.monotonic()) - self.started_at

    def describe_progress(self) -> dict[str, Any]:
        """Return the progress as JSON values."""
        return {
            "id": self.ident,
            **{key: getattr(self, key) for key in ("state", "stage", "share", "left")},
            "seconds": round(self.seconds, 2),
            "loss": self.curve[-1][1] if self.curve else None,
        }

    def handle_event(self, event: Mapping[str, Any]) -> None:
        """Update the job from an event of its worker."""
        name = event.get("event")
        if name == "progress":
            self.stage, self.share, self.left = event["stage"], event["share"], event.get("left")
        elif name == "cost":
            self.curve.append((event["seconds"], event["share"]))
            del self.curve[1:-400:2]  # fewer points keep the shape of a long curve
        elif name == "summary":
            self.summary = event["summary"]
        elif name == "done":
            self.finish("done")
        elif name == "failed":
            self.problems = list(event["problems"])
            self.finish("failed")

    def finish(self, state: JobState) -> None:
        """Set the final state; a second call changes nothing."""
        if not self.is_over:
            self.state, self.stage, self.left, self.ended_at = state, state, None, time.monotonic()
            self.share = 1.0 if state == "done" else self.share


class JobQueue:
    """Waiting and running jobs."""

    def __init__(self, limits: StudioLimits) -> None:
        self._limits = limits
        self._waiting: list[Job] = []
        self._running: set[Job] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.pool = WorkerPool(limits.workers)
        self._closed = False

    def submit(self, job: Job) -> None:
        """Add a job, or refuse it if the queue is full."""
        mine = [each for each in self._waiting if each.owner is job.owner]
        if len(mine) >= self._limits.waiting:
            raise Refusal(429, f"{len(mine)} runs of this session wait already", "wait for one, or cancel one")
        if len(self._waiting) >= self._limits.queue or self._closed:
            raise Refusal(503, f"{len(self._waiting):,} runs wait already", "try again later")
        self._waiting.append(job)
        self._start_next()

    def count_ahead(self, job: Job) -> int:
        """Return the number of jobs that wait before this one in its lane."""
        lane = [each for each in self._waiting if each.lane == job.lane]
        return lane.index(job) if job in lane else 0

    def stop(self, job: Job) -> None:
        """End a job without waiting for its process."""
        if job in self._waiting:
            self._waiting.remove(job)
        if not job.is_over:
            job.finish("cancelled")
            job.on_change(job)
        if job.process is not None:
            kill_process(job.process)

    async def cancel(self, job: Job) -> None:
        """End a job, and wait until its process has ended."""
        self.stop(job)
        if (process := job.process) is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), 2.0)

    async def cancel_all(self, owner: object) -> None:
        """Cancel the jobs of a session."""
        theirs = [each for each in (*self._waiting, *self._running) if each.owner is owner]
        await asyncio.gather(*(self.cancel(each) for each in theirs))

    def is_busy(self, owner: object) -> bool:
        """Whether a session has a job that waits or runs."""
        return any(each.owner is owner for each in (*self._waiting, *self._running))

    async def close(self) -> None:
        """End every process."""
        self._closed = True
        await asyncio.gather(*(self.cancel(each) for each in (*self._waiting, *self._running)))
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5)
        await self.pool.close()

    def _start_next(self) -> None:
        for lane in ("short", "run"):
            running = [each for each in self._running if each.lane == lane]
            waiting = [each for each in self._waiting if each.lane == lane]
            while waiting and len(running) < self._limits.workers:
                owners = {each.owner for each in running}
                job = next((each for each in waiting if each.owner not in owners), waiting[0])
                waiting.remove(job)
                self._waiting.remove(job)
                running.append(job)
                self._running.add(job)
                task = asyncio.get_running_loop().create_task(self._run_job(job))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _run_job(self, job: Job) -> None:
        job.state, job.started_at = "running", time.monotonic()
        try:
            job.on_change(job)
            job.process = await self.pool.take()
            if not job.is_over:  # not cancelled while the process loaded
                await self._follow_job(job, job.process)
        except (OSError, ValueError):
            job.problems = job.problems or [KILLED_PROBLEM]
        finally:
            process, job.process = job.process, None  # cancelling this job must not kill the process of the next
            if process is not None:
                await self.pool.give_back(process, reusable=_can_reuse_process(job))
            shutil.rmtree(job.folder / "scratch", ignore_errors=True)
            if not job.is_over:
                job.problems = job.problems or [KILLED_PROBLEM]
                job.finish("failed")
            self._running.discard(job)
            job.on_change(job)
            self._start_next()

    async def _follow_job(self, job: Job, process: Process) -> None:
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018  pipes
        process.stdin.write(json.dumps({**job.request, "kind": job.kind, "folder": str(job.folder)}).encode())
        process.stdin.write(b"\n")
        await process.stdin.drain()
        memory_watch = asyncio.create_task(self._watch_memory(job, process))
        try:
            while line := await process.stdout.readline():
                job.handle_event(json.loads(line))
                if job.is_over:
                    return  # `_run_job` publishes the result after the process is given back
                job.on_change(job)
        finally:
            memory_watch.cancel()

    async def _watch_memory(self, job: Job, process: Process) -> None:
        """Kill a process that uses more memory than a job may."""
        limit = self._limits.worker_bytes or get_allowed_memory()
        while limit is not None and (used := get_process_memory(process.pid)) is not None:
            if used > limit:
                job.exceeded_memory = True
                what = f"this job needs more than the {format_bytes(limit)} of memory that one job may use"
                job.problems = [{"what": what, "fix": "free some memory, or use fewer records, columns or values"}]
                job.finish("failed")
                kill_process(process)
                return
            await asyncio.sleep(MEMORY_CHECK_SECONDS)


def _can_reuse_process(job: Job) -> bool:
    """Whether the process can do another job: after an answered short job, or a successful run on a small table."""
    if job.exceeded_memory:
        return False
    if job.lane == "short":
        return job.state in ("done", "failed")
    source = Path(str(job.request["source"]))
    return job.state == "done" and source.is_file() and source.stat().st_size <= MAX_REUSE_BYTES


class WorkerPool:
    """Worker processes that are loaded and idle."""

    def __init__(self, parallel: int) -> None:
        self._parallel = parallel  # processes that work at a time and share the memory
        self._ready: list[Process] = []
        self._loading: asyncio.Task[Process] | None = None  # the next process
        self._jobs: Counter[int] = Counter()  # number of jobs by process
        self._closed = False
        self.uncompiled: list[str] = []  # kernels, as the last loaded process reported

    async def take(self) -> Process:
        """Return an idle process, and load another one for the next job."""
        self._ready = [process for process in self._ready if process.returncode is None]
        if self._ready:
            process = self._ready.pop(0)  # the one with the most kernels and charts loaded
            if not self._ready:
                self.prepare()
            return process
        loading, self._loading = self.prepare(), None
        self.prepare()
        return await loading

    def prepare(self) -> asyncio.Task[Process]:
        """Start loading a process for the next job, unless one is loading."""
        if self._loading is None:
            self._loading = asyncio.get_running_loop().create_task(self._load_process())
        return self._loading

    async def _load_process(self) -> Process:
        """Start a process, and wait for its first event, `loaded`."""
        environment = {
            **build_worker_environment(self._parallel),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "kinfold.studio.worker"),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            limit=MAX_EVENT_BYTES,
            env={**os.environ, **environment},
        )
        assert process.stdout is not None  # noqa: S101  a pipe
        try:
            line = await process.stdout.readline()
        except asyncio.CancelledError:
            await end_process(process)
            raise
        if line:
            self.uncompiled = json.loads(line)["uncompiled"]
        return process

    async def give_back(self, returned: Process, *, reusable: bool) -> None:
        """Keep a process for another job; end it if it is not reusable, or one of too many."""
        surplus: Process | None = returned
        self._jobs[returned.pid] += 1
        used_up = self._jobs[returned.pid] >= MAX_JOBS_PER_PROCESS or self._closed
        if reusable and not used_up and returned.returncode is None:
            self._ready.append(returned)
            self._ready.sort(key=lambda process: -self._jobs[process.pid])
            surplus = self._ready.pop() if len(self._ready) > MAX_IDLE_PROCESSES else None
        if surplus is not None:
            del self._jobs[surplus.pid]
            await end_process(surplus)

    async def close(self) -> None:
        """End every process."""
        self._closed = True
        if self._loading is not None:
            self._loading.cancel()
            with contextlib.suppress(asyncio.CancelledError, OSError):
                self._ready.append(await self._loading)
        for process in self._ready:
            await end_process(process)
        self._ready = []


async def end_process(process: Process) -> None:
    """Kill a process, and wait for its end."""
    kill_process(process)
    await process.wait()
    if process.stdin is not None:
        process.stdin.close()


def kill_process(process: Process) -> None:
    """Kill a process that may have ended already."""
    with contextlib.suppress(ProcessLookupError):
        process.kill()
