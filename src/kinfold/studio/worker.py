"""A worker: a process that does jobs, one at a time. It loads what they need, waits for a line, does it, and tells.

    in     {"kind": "run", "folder": "…", …}; when that end closes, the server is gone, and so is this
    out    {"event": "loaded", "uncompiled": […]} once; then for each job
           {"event": "progress", …}, …, and last {"event": "done", …} or {"event": "failed", "problems": […]}

Nothing else is written anywhere: what libraries print goes nowhere, for it may hold values of the data. What a job
finds out is in files of its folder; temporary files are there as well, and go with it.
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
from pathlib import Path
from queue import Queue
from typing import Any, TypeAlias

Tell: TypeAlias = Callable[[Mapping[str, Any]], None]

OFTEN = 0.1  # seconds between two reports of progress
DEATH = 1  # prctl: the signal to get when the parent ends


def main() -> None:
    """Do the jobs that come in by standard input."""
    tell = _teller()
    _end_with_server()
    tell({"event": "loaded", "uncompiled": load()})
    lines: Queue[bytes] = Queue()
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()
    while True:
        request = json.loads(lines.get())
        scratch = Path(request["folder"]) / "scratch"
        scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
        tempfile.tempdir = str(scratch)
        tell(_outcome(request, tell))
        gc.collect()  # of one job nothing is kept for the next


def _outcome(request: Mapping[str, Any], tell: Tell) -> Mapping[str, Any]:
    from kinfold.rows.reading_limits import Bounds, bounded
    from kinfold.studio import longer_looks, run_results, table_opening
    from kinfold.studio.error_answers import told

    kinds: Mapping[str, Callable[[Mapping[str, Any], Tell], Mapping[str, Any]]] = {
        "open": table_opening.open_table,
        "run": run_results.make_run,
        **{
            look.__name__: look
            for look in (
                *(longer_looks.lattice, longer_looks.outliers, longer_looks.verify, longer_looks.script),
                longer_looks.warmup,
            )
        },
    }
    try:
        with bounded(Bounds(**request.get("bounds", {}))):
            return {"event": "done", **kinds[request["kind"]](request, tell)}
    except Exception as error:  # whatever it is: a page is told, and no log
        return {"event": "failed", "problems": [_without_paths(each, request) for each in told(error)]}


def _without_paths(problem: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, Any]:
    """Say nothing of folders that nobody chose."""
    folders = [str(Path(str(request[key])).parent) + "/" for key in ("source", "folder") if key in request]
    told = dict(problem)
    for folder in sorted(folders, key=len, reverse=True):
        told = {key: text.replace(folder, "") if isinstance(text, str) else text for key, text in told.items()}
    return told


def _teller() -> Tell:
    """Keep standard output for lines to the server, and give everybody else nothing to write to."""
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    lock, last = threading.Lock(), [0.0]

    def tell(event: Mapping[str, Any]) -> None:
        now = time.monotonic()
        if event["event"] == "progress" and now - last[0] < OFTEN:
            return
        last[0] = now
        with lock:
            out.write(json.dumps(event, allow_nan=False, default=str).encode() + b"\n")

    return tell


def load() -> list[str]:
    """Load what jobs need, before there is one; return the kernels that are still to be compiled for this machine."""
    from kinfold.flow import load_kernels, open_engine
    from kinfold.release.report.chart import load_renderer
    from kinfold.studio import error_answers, longer_looks, run_results, table_opening  # noqa: F401

    open_engine().close()
    load_renderer()
    return load_kernels()


def _end_with_server() -> None:
    """End when the server does, where the system helps."""
    if sys.platform.startswith("linux"):
        import ctypes
        import signal

        ctypes.CDLL(None).prctl(DEATH, signal.SIGKILL)


def _listen(lines: Queue[bytes]) -> None:
    """Hear what to do; when nobody is left to say it, end here and now."""
    for line in sys.stdin.buffer:
        lines.put(line)
    os._exit(1)


if __name__ == "__main__":
    main()
