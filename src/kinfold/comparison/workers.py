"""Workers: settings tried two at a time, each in a process of its own, handed back as they are done.

A worker starts without the caller's script, which Python's own pool would run a second time: that is why the pool is
loky's. It ends with the caller, however that one ends; its temporary files are in a folder of the caller's, and go with
that one.
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from kinfold.comparison.outcome import Outcome, Setting, attempt
from kinfold.disk import scratch
from kinfold.errors import Unreachable
from kinfold.request.policy import Policy
from kinfold.rows.free_memory import shared_by

WORKERS = 2  # each may hold the table and a partition of it: more would run out of memory before time is won
LOOK = 0.2  # seconds between two looks whether the caller is still there
PREFIX = "kinfold-"


def tried(source: Any, policy: Policy, grid: Sequence[Setting]) -> Iterator[Outcome]:
    """Yield what comes of each setting, the first to be done first."""
    workers = min(WORKERS, len(grid), os.cpu_count() or 1)
    if workers < 2:
        yield from (attempt(source, policy, setting) for setting in grid)
        return
    from loky import ProcessPoolExecutor  # loaded only where something is compared

    scratch.sweep(PREFIX)
    room = scratch.make(PREFIX)
    pool = ProcessPoolExecutor(workers, initializer=_start, initargs=(str(room), os.getpid()), env=shared_by(workers))
    try:
        waiting = [pool.submit(attempt, source, policy, setting) for setting in grid]
        for done in as_completed(waiting):
            yield done.result()
    except BrokenProcessPool:
        raise Unreachable(
            "a worker was ended from outside, most likely for want of memory",
            fix="try again: what is done is kept; or compare on fewer records",
        ) from None
    finally:
        pool.shutdown(wait=False, kill_workers=True)
        scratch.remove(room)


def _start(room: str, caller: int) -> None:
    """Leave Ctrl-C to the caller, but let it end the worker; put temporary files where it looks for them."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGHUP})  # which `kinfold` itself holds off
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tempfile.tempdir = room
    threading.Thread(target=_end_with, args=(caller,), daemon=True).start()


def _end_with(caller: int) -> None:
    while os.getppid() == caller:
        time.sleep(LOOK)
    os._exit(1)  # nobody is left to hand a result to
