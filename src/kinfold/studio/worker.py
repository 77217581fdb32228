"""The program of a worker process: it does the jobs that the server sends, one after the other.

    stdin     {"kind": "run", "folder": "...", ...}; the worker exits when the server closes this end
    stdout    {"event": "loaded", "uncompiled": [...]} once; then for each job
              {"event": "progress", ...}, ..., and last {"event": "done"} or {"event": "failed", "problems": [...]}

A worker writes nothing else to stdout or stderr, because output of libraries can contain values of the data. Results
and temporary files are in the folder of the job.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from queue import Empty, Queue
from typing import TYPE_CHECKING, Any

from kinfold.disk.folders import end_with_parent

if TYPE_CHECKING:  # loaded after the output of libraries is discarded
    from kinfold.studio.table_jobs import EventSender

PROGRESS_SECONDS = 0.1  # between two reports of progress
IDLE_SECONDS = 0.3  # without a request, before the renderer starts: the first run does not wait for it


def main() -> None:
    """Do the jobs that arrive on standard input."""
    send = _make_sender()
    end_with_parent()
    send({"event": "loaded", "uncompiled": load_modules()})
    lines: Queue[bytes] = Queue()
    threading.Thread(target=_read_requests, args=(lines,), daemon=True).start()
    while True:
        request = json.loads(_wait_for_request(lines))
        scratch = Path(request["folder"]) / "scratch"
        scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
        tempfile.tempdir = str(scratch)
        send(_run_job(request, send))
        gc.collect()  # keep nothing of this job


def _run_job(request: Mapping[str, Any], send: EventSender) -> Mapping[str, Any]:
    from kinfold.studio import table_jobs
    from kinfold.studio.refusals import make_refusal
    from kinfold.tables.resources import ReadingLimits, limit_reading

    kinds: Mapping[str, Callable[[Mapping[str, Any], EventSender], Any]] = {
        "open": table_jobs.open_table,
        "run": table_jobs.make_run,
        "lattice": table_jobs.list_lattice,
        "outliers": table_jobs.count_outliers,
        "verify": table_jobs.verify_release,
        "script": table_jobs.write_chart_script,
        "warmup": table_jobs.compile_kernels,
    }
    try:
        with limit_reading(ReadingLimits(**request.get("bounds", {}))):
            result = kinds[request["kind"]](request, send)
        table_jobs.write_json(Path(request["folder"]) / "result.json", result)
        return {"event": "done"}
    except Exception as error:  # the page shows it; there is no log
        return {"event": "failed", "problems": [_remove_paths(each, request) for each in make_refusal(error).problems]}


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
    from kinfold.release import dictionary  # noqa: F401
    from kinfold.release.report.chart import load_renderer
    from kinfold.studio import refusals, table_jobs  # noqa: F401

    open_engine().close()
    load_renderer()
    return load_kernels()


def _wait_for_request(lines: Queue[bytes]) -> bytes:
    """Return the next request; prepare for a report while none comes."""
    from kinfold.release.report.chart import start_renderer
    from kinfold.release.report.page import get_environment

    with suppress(Empty):
        return lines.get(timeout=IDLE_SECONDS)
    with suppress(Exception):  # the first chart raises it again
        start_renderer()
        get_environment().get_template("page.html.j2")
    return lines.get()


def _read_requests(lines: Queue[bytes]) -> None:
    """Queue requests; exit when the server closes its end."""
    for line in sys.stdin.buffer:
        lines.put(line)
    os._exit(1)


if __name__ == "__main__":
    main()
