"""Workers: settings tried two at a time, each in a process of its own, handed back as they are done.

A worker starts without the caller's script, which would otherwise run a second time, and ends with the caller, however
that one ends; its temporary files are in a folder of the caller's, and go with that one.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from kinfold.comparison.outcome import Outcome, Setting, attempt
from kinfold.disk import scratch
from kinfold.errors import Unreachable
from kinfold.request.policy import Policy

WORKERS = 2
PREFIX = "kinfold-"


def tried(source: Any, policy: Policy, grid: Sequence[Setting]) -> Iterator[Outcome]:
    """Yield what comes of each setting, the first to be done first."""
    workers = min(WORKERS, len(grid), os.cpu_count() or 1)
    if workers < 2:
        yield from (attempt(source, policy, setting) for setting in grid)
        return
    scratch.sweep(PREFIX)
    room = scratch.make(PREFIX)
    spawn = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, spawn, initializer=_start, initargs=(str(room),))
    try:
        with _no_script():
            waiting = [pool.submit(attempt, source, policy, setting) for setting in grid]
        for done in as_completed(waiting):
            yield done.result()
    except BrokenProcessPool:
        raise Unreachable(
            "a worker was ended from outside, most likely for want of memory",
            fix="try again: what is done is kept; or compare on fewer records",
        ) from None
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        scratch.remove(room)


@contextmanager
def _no_script() -> Iterator[None]:
    """Hide the caller's main module while workers start: a script without a guard would be run again by each."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _start(room: str) -> None:
    """Leave Ctrl-C to the caller, but let it end the worker; put temporary files where it looks for them."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGHUP})  # which `kinfold` itself holds off
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tempfile.tempdir = room
    _end_with_the_caller()


def _end_with_the_caller() -> None:
    caller = multiprocessing.parent_process()
    assert caller is not None  # noqa: S101  this runs in a worker
    threading.Thread(target=_wait, args=(caller,), daemon=True).start()


def _wait(caller: Any) -> None:
    caller.join()
    os._exit(1)  # nobody is left to hand a result to
