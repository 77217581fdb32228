"""A worker has loaded what jobs need before there is one; where kernels are not compiled, that is done beside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kinfold.demo import read_demo_policy, write_demo_table
from kinfold.kernels import load
from kinfold.release.report import chart
from kinfold.studio.job_queue import WorkerPool
from kinfold.studio.refusals import StudioLimits
from kinfold.studio.table_jobs import RunReporter
from studio.visitor import Visitor, studio, wait_for

FIRST_JOBS = """
import json, os, sys
from kinfold import kernels
from kinfold.studio import worker
kernels.warmup(modules=worker.load_modules())
before = {*sys.modules}
for request in json.loads(sys.argv[1]):
    assert worker._run_job(request, lambda _: None)["event"] == "done"
known = {name.partition(".")[0] for name in before} - {"kinfold"}
print(json.dumps([n for n in sys.modules if n not in before and n.partition(".")[0] not in known]), flush=True)
os._exit(0)  # as workers end: libraries are not unloaded
"""


@pytest.mark.slow
def test_a_worker_loads_nothing_large_for_its_first_jobs(tmp_path: Path) -> None:
    write_demo_table(tmp_path / "p.csv")
    (tmp_path / "p.toml").write_text(read_demo_policy(), "utf-8")
    for name in ("opened", "made"):
        (tmp_path / name).mkdir()
    common = {"source": str(tmp_path / "p.csv"), "policy": read_demo_policy(), "detect": True, "fresh": True}
    opening = {**common, "kind": "open", "folder": str(tmp_path / "opened"), "workspace": str(tmp_path)}
    running = {**common, "kind": "run", "folder": str(tmp_path / "made"), "policy": str(tmp_path / "p.toml")}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", FIRST_JOBS, json.dumps([opening, running])]
    late = json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)
    large = ("numpy", "pyarrow", "duckdb", "_duckdb", "numba", "scipy", "vl_convert", "jinja2", "pydantic")
    ours = ("kinfold.tables.engine", "kinfold.pipeline", "kinfold.kernels", "kinfold.studio", "kinfold.release")
    assert [name for name in late if name.startswith((*large, *ours))] == []


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 1])
def test_kernels_are_compiled_in_the_background_and_the_page_is_told(
    monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    """As on a machine where nothing is compiled yet; without a worker that never ends."""
    monkeypatch.setattr(WorkerPool, "uncompiled", property(lambda _: ["geometry"], lambda *_: None), raising=False)
    with studio(StudioLimits(workers=workers)) as made:
        visitor = Visitor.let_in(made)
        wait_for(lambda: made.sessions.warmup_job, "the job that compiles")
        if workers:
            wait_for(lambda: not visitor.get("/api/session")["compiling"], "its end")
            assert made.sessions.warmup_job is not None
            assert made.sessions.warmup_job.state == "done", made.sessions.warmup_job.problems
        else:
            assert visitor.get("/api/session")["compiling"]


def test_the_script_of_the_charts_is_made_once_and_read_only_from_a_file_of_this_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    monkeypatch.setattr(chart, "get_script", lambda: made.append("made") or f"script {len(made)}")
    cached = tmp_path / "cache" / "charts-1.js"
    assert [chart.load_script(cached) for _ in range(2)] == ["script 1", "script 1"]
    assert chart.load_script(tmp_path / "cache" / "charts-2.js") == "script 2"  # of another version
    cached.write_text("changed by somebody else", "utf-8")
    cached.chmod(0o666)
    assert chart.load_script(cached) == "script 3"
    assert (cached.read_text("utf-8"), cached.stat().st_mode & 0o777) == ("script 3", 0o600)
    (tmp_path / "file").touch()
    assert chart.load_script(tmp_path / "file" / "charts-1.js") == "script 4"  # no folder can be made there
    assert sorted(path.name for path in cached.parent.iterdir()) == ["charts-1.js", "charts-2.js"]


def test_a_run_that_compiles_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    heard = RunReporter(lambda event: told.append(event["stage"]))
    heard.report_progress("plan", 1, 2)
    load("geometry")  # whose module brings others of the package
    monkeypatch.setattr("kinfold.kernels._compiling", ["mdav"])
    heard.report_progress("plan", 1, 2)
    assert told == ["plan", "compile"]
