"""A real Spark for the tests: a session in this process, and a cluster of a master and a worker on loopback.

Where PySpark or Java is missing its tests are skipped, but in CI they fail: a skip shows nothing.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import kinfold
from kinfold.errors import PolicyError
from kinfold.tables.resources import Resources
from kinfold.tables.spark.session import find_java_home

PATIENCE = 120.0  # seconds for a part of a cluster to start on a loaded machine
LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # of Java: what runs for seconds is not worth compiling well
SETTINGS = {  # nor are queries; and what every Python worker would import is imported once, before it is forked
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.python.daemon.module": "spark_daemon",
    "spark.python.task.killTimeout": "100ms",  # Java spins while a worker that is cancelled has time left
}
WORKER_PATH = os.pathsep.join((str(Path(kinfold.__file__).parents[1]), str(Path(__file__).parent)))
SUBMIT = "org.apache.spark.deploy.SparkSubmit"
CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"


def require() -> Path:
    """The folder of a Java runtime; else skip, or fail where CI promised one."""
    what = None
    if find_spec("pyspark") is None:
        what = "no PySpark here: make spark"
    try:
        home = find_java_home()
    except PolicyError:
        what = "no Java on this machine (Debian: apt-get install openjdk-17-jre-headless)"
    if what is None:
        return home
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(f"{what}; the tests of Spark must run in CI", pytrace=False)
    pytest.skip(what)


def session() -> Any:
    """The session of this process, started as a run starts one."""
    require()
    from kinfold.tables.spark.session import open_session

    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setenv("JDK_JAVA_OPTIONS", LIGHT)
        patch.setenv("SPARK_CONF_DIR", str(set_up(Path(folder) / "settings")))
        patch.setenv("PYTHONPATH", WORKER_PATH)
        return open_session("local[2]", Resources(memory=1 << 30))


def set_up(folder: Path, options: dict[str, str] | None = None) -> Path:
    """Write the settings of a cluster, in a folder that SPARK_CONF_DIR names."""
    folder.mkdir()
    lines = [f"{key} {value}\n" for key, value in (SETTINGS | (options or {})).items()]
    (folder / "spark-defaults.conf").write_text("".join(lines))
    return folder


class Brought(NamedTuple):
    """Rows that came to the driver at once: how many, under which names, and what they were."""

    rows: int
    columns: tuple[str, ...]
    found: Any

    def holds(self, value: object) -> bool:
        """Whether a value is among them."""
        table = isinstance(self.found, pa.Table)
        return any(value in each for each in ((c.to_pylist() for c in self.found.columns) if table else self.found))


def watch_driver(patch: pytest.MonkeyPatch) -> list[Brought]:
    """List whatever comes to the driver from now on."""
    from pyspark.sql.classic.dataframe import DataFrame

    found: list[Brought] = []

    def counting(real: Any) -> Any:
        def counted(self: Any, *args: Any, **given: Any) -> Any:
            rows = real(self, *args, **given)
            many = rows.num_rows if isinstance(rows, pa.Table) else len(rows)
            found.append(Brought(many, tuple(self.columns), rows))
            return rows

        return counted

    for verb in ("toArrow", "collect", "toPandas"):
        patch.setattr(DataFrame, verb, counting(getattr(DataFrame, verb)))
    return found


class Cluster:
    """A master and workers, each a process of its own; so are the executors that the workers start."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home = folder, require()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.address, self.executors = "", 1

    def start(self, executors: int, workers: int = 1) -> None:
        self._run("master", MASTER, "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        self.address = self._said("master", r"Starting Spark master at (spark://127\.0\.0\.1:[0-9]+)")
        self.executors = executors
        for number in range(workers):
            self.start_worker(f"worker{number or ''}")

    def start_worker(self, name: str) -> None:
        cores, memory = ("--cores", str(self.executors)), ("--memory", f"{700 * self.executors}m")
        where = ("--host", "127.0.0.1", "--webui-port", "0", "--work-dir", str(self.folder / name / "work"))
        self._run(name, WORKER, *where, *cores, *memory, self.address)
        self._said(name, r"(Successfully registered with master)")

    def _run(self, name: str, what: str, *options: str, memory: str = "256m") -> None:
        import pyspark

        spark = Path(pyspark.__file__).parent
        environment = {
            **os.environ,
            "JAVA_HOME": str(self.home),
            "SPARK_HOME": str(spark),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(self.folder),  # what a process that is killed leaves goes with the folder
        }
        environment |= {
            "PYTHONPATH": WORKER_PATH,
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_DAEMON_MEMORY": memory,
            "JDK_JAVA_OPTIONS": LIGHT,
        }
        with (self.folder / f"{name}.log").open("wb") as log:
            command = [str(spark / "bin" / "spark-class"), what, *options]
            self.processes[name] = subprocess.Popen(command, stdout=log, stderr=log, env=environment)

    def _said(self, name: str, wanted: str) -> str:
        log, end = self.folder / f"{name}.log", time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if found := re.search(wanted, log.read_text(errors="replace")):
                return found[1]
            assert self.processes[name].poll() is None, log.read_text(errors="replace")
            time.sleep(0.2)
        raise AssertionError(f"{name} did not start: {log.read_text(errors='replace')}")

    def start_connect(self) -> str:
        """Start a server of Spark Connect that runs in one process, and return its address."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        settings = {"spark.connect.grpc.binding.address": "127.0.0.1", "spark.connect.grpc.binding.port": str(port)}
        settings |= {
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
        }
        given = [part for key, value in (settings | SETTINGS).items() for part in ("--conf", f"{key}={value}")]
        options = ("--master", "local[2]", *given, "spark-internal")
        self._run("connect", SUBMIT, "--class", CONNECT, *options, memory="700m")
        self._said("connect", r"(Spark Connect server started)")
        return f"sc://127.0.0.1:{port}"

    def stop(self) -> None:
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(30)


@contextmanager
def small_cluster(home: Path, patch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A cluster whose master and worker run in the driver: only its two executors are processes of their own."""
    import pyspark

    home.mkdir()
    for each in Path(pyspark.__file__).parent.iterdir():
        (home / each.name).symlink_to(each)
    patch.setenv("SPARK_HOME", str(home))  # the worker keeps its files there
    found = Cluster(home)
    found.address = "local-cluster[2,1,512]"
    yield found


@contextmanager
def cluster(executors: int = 2, workers: int = 1) -> Iterator[Cluster]:
    """Start a cluster on loopback, with so many executors for each worker, and end it."""
    with tempfile.TemporaryDirectory() as folder:
        found = Cluster(Path(folder))
        try:
            found.start(executors, workers)
            yield found
        finally:
            found.stop()
