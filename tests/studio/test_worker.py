"""A worker has loaded what jobs need before there is one; where kernels are not compiled, that is done beside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kinfold.demo import demo_policy, demo_table
from kinfold.kernels import load
from kinfold.studio.run_results import Heard
from kinfold.studio.server_limits import Limits
from kinfold.studio.worker_pool import WorkerPool
from studio.visitor import Visitor, studio, wait_for

FIRST_JOBS = """
import json, os, sys
from kinfold import kernels
from kinfold.studio import worker
kernels.warmup(modules=worker.load())
before = {*sys.modules}
for request in json.loads(sys.argv[1]):
    assert worker._outcome(request, lambda _: None)["event"] == "done"
known = {name.partition(".")[0] for name in before} - {"kinfold"}
print(json.dumps([n for n in sys.modules if n not in before and n.partition(".")[0] not in known]), flush=True)
os._exit(0)  # as workers end: libraries are not unloaded
"""


def test_a_worker_loads_nothing_large_for_its_first_jobs(tmp_path: Path) -> None:
    demo_table(tmp_path / "p.csv")
    (tmp_path / "p.toml").write_text(demo_policy(), "utf-8")
    for name in ("opened", "made"):
        (tmp_path / name).mkdir()
    common = {"source": str(tmp_path / "p.csv"), "policy": demo_policy(), "guessing": True, "fresh": True}
    opening = {**common, "kind": "open", "folder": str(tmp_path / "opened"), "workspace": str(tmp_path)}
    running = {**common, "kind": "run", "folder": str(tmp_path / "made"), "policy": str(tmp_path / "p.toml")}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", FIRST_JOBS, json.dumps([opening, running])]
    late = json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)
    large = ("numpy", "pyarrow", "duckdb", "_duckdb", "numba", "scipy", "vl_convert", "jinja2", "pydantic")
    ours = ("kinfold.rows.engines", "kinfold.flow", "kinfold.kernels", "kinfold.studio", "kinfold.release")
    assert [name for name in late if name.startswith((*large, *ours))] == []


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_kernels_are_compiled_in_the_background_and_the_page_is_told(
    monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    """As on a machine where nothing is compiled yet; without a worker that never ends."""
    monkeypatch.setattr(WorkerPool, "uncompiled", property(lambda _: ["means"], lambda *_: None), raising=False)
    with studio(Limits(workers=workers)) as made:
        visitor = Visitor.let_in(made)
        wait_for(lambda: made.sessions.warming, "the job that compiles")
        if workers:
            wait_for(lambda: not visitor.get("/api/session")["compiling"], "its end")
            assert made.sessions.warming is not None
            assert made.sessions.warming.state == "done", made.sessions.warming.problems
        else:
            assert visitor.get("/api/session")["compiling"]


def test_a_run_that_compiles_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    heard = Heard(lambda event: told.append(event["stage"]))
    heard.progress("plan", 1, 2)
    load("means")  # whose module brings others of the package
    monkeypatch.setattr("kinfold.kernels._compiling", ["mdav_tree"])
    heard.progress("plan", 1, 2)
    assert told == ["plan", "compile"]
