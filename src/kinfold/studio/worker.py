"""Worker processes: the pool that starts them, and the program that they run.

    stdin     {"kind": "run", "folder": "...", ...}; the worker exits when the server closes this end
    stdout    {"event": "loaded", "uncompiled": [...]} once; then for each job
              {"event": "progress", ...}, ..., and last {"event": "done", ...} or {"event": "failed", "problems": [...]}

Loading a worker takes a second or two, so the pool keeps one or two ready. A worker does several jobs: its kernels and
charts are loaded, and the next run takes a third of the time. The pool ends a worker after some jobs, after a job on a
large table, and after a failure. A worker writes nothing else to stdout or stderr, because output of libraries can
contain values of the data. Results and temporary files are in the folder of the job.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import sys
import tempfile
import threading
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Mapping
from pathlib import Path
from queue import Queue
from typing import Any, TypeAlias

from kinfold.tables.resources import build_worker_environment

EventSender: TypeAlias = Callable[[Mapping[str, Any]], None]

MAX_IDLE_PROCESSES = 2
MAX_JOBS_PER_PROCESS = 20  # then the process ends, with the memory that libraries keep
MAX_EVENT_BYTES = 8 << 20
PROGRESS_SECONDS = 0.1  # between two reports of progress
PR_SET_PDEATHSIG = 1  # prctl: the signal when the parent ends


class WorkerPool:
    """Worker processes that are loaded and idle."""

    def __init__(self, parallel: int) -> None:
        self._parallel = parallel  # processes that work at a time and share the memory
        self._ready: list[Process] = []
        self._loading: asyncio.Task[Process] | None = None  # the next process
        self._jobs: dict[int, int] = {}  # number of jobs by process
        self._closed = False
        self.uncompiled: list[str] = []  # kernels, as the last loaded process reported

    async def take(self) -> Process:
        """Return an idle process, and load another one for the next job."""
        alive = [process for process in self._ready if process.returncode is None]
        process = max(alive, key=self._count_jobs, default=None)  # the one with the most kernels and charts loaded
        self._ready = [each for each in alive if each is not process]
        if process is None:
            loading, self._loading = self.prepare(), None
            self._prepare_next()
            return await loading
        self._prepare_next()
        return process

    def prepare(self) -> asyncio.Task[Process]:
        """Start loading a process for the next job, unless one is loading."""
        if self._loading is None:
            self._loading = asyncio.get_running_loop().create_task(self._load_process())
        return self._loading

    def _prepare_next(self) -> None:
        if not self._ready and not self._closed:
            self.prepare()

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
        self._jobs[returned.pid] = self._count_jobs(returned) + 1
        used_up = self._count_jobs(returned) >= MAX_JOBS_PER_PROCESS or self._closed
        if reusable and not used_up and returned.returncode is None:
            self._ready = sorted([returned, *self._ready], key=self._count_jobs, reverse=True)
            surplus = self._ready.pop() if len(self._ready) > MAX_IDLE_PROCESSES else None
        if surplus is not None:
            self._jobs.pop(surplus.pid, None)
            await end_process(surplus)

    def _count_jobs(self, process: Process) -> int:
        return self._jobs.get(process.pid, 0)

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


def main() -> None:
    """Do the jobs that arrive on standard input."""
    send = _make_sender()
    _end_with_server()
    send({"event": "loaded", "uncompiled": load_modules()})
    lines: Queue[bytes] = Queue()
    threading.Thread(target=_read_requests, args=(lines,), daemon=True).start()
    while True:
        request = json.loads(lines.get())
        scratch = Path(request["folder"]) / "scratch"
        scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
        tempfile.tempdir = str(scratch)
        send(_run_job(request, send))
        gc.collect()  # keep nothing of this job


def _run_job(request: Mapping[str, Any], send: EventSender) -> Mapping[str, Any]:
    from kinfold.studio import run_job, table_jobs
    from kinfold.studio.refusals import describe_problems
    from kinfold.tables.resources import ReadingLimits, limit_reading

    kinds: Mapping[str, Callable[[Mapping[str, Any], EventSender], Mapping[str, Any]]] = {
        "open": table_jobs.open_table,
        "run": run_job.make_run,
        "lattice": table_jobs.list_lattice,
        "outliers": table_jobs.count_outliers,
        "verify": table_jobs.verify_release,
        "script": table_jobs.write_chart_script,
        "warmup": table_jobs.compile_kernels,
    }
    try:
        with limit_reading(ReadingLimits(**request.get("bounds", {}))):
            return {"event": "done", **kinds[request["kind"]](request, send)}
    except Exception as error:  # the page shows it; there is no log
        return {"event": "failed", "problems": [_remove_paths(each, request) for each in describe_problems(error)]}


def _remove_paths(problem: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, Any]:
    """Remove the studio's own folders from the texts of a problem."""
    folders = [str(Path(str(request[key])).parent) + "/" for key in ("source", "folder") if key in request]
    texts = dict(problem)
    for folder in sorted(folders, key=len, reverse=True):
        texts = {key: text.replace(folder, "") if isinstance(text, str) else text for key, text in texts.items()}
    return texts


def _make_sender() -> EventSender:
    """Return a function that writes events to standard output; discard all other output of the process."""
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 1)
    os.dup2(devnull, 2)
    lock, last = threading.Lock(), [0.0]

    def send(event: Mapping[str, Any]) -> None:
        now = time.monotonic()
        if event["event"] == "progress" and now - last[0] < PROGRESS_SECONDS:
            return
        last[0] = now
        with lock:
            out.write(json.dumps(event, allow_nan=False, default=str).encode() + b"\n")

    return send


def load_modules() -> list[str]:
    """Load the modules that jobs need; return the kernels that are not compiled for this machine."""
    from kinfold.pipeline import load_kernels, open_engine
    from kinfold.release.report.chart import load_renderer
    from kinfold.studio import refusals, run_job, table_jobs  # noqa: F401

    open_engine().close()
    load_renderer()
    return load_kernels()


def _end_with_server() -> None:
    """Ask Linux to kill this process when the server ends."""
    if sys.platform.startswith("linux"):
        import ctypes
        import signal

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _read_requests(lines: Queue[bytes]) -> None:
    """Queue requests; exit when the server closes its end."""
    for line in sys.stdin.buffer:
        lines.put(line)
    os._exit(1)


if __name__ == "__main__":
    main()
