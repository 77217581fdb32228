"""A Spark session: the caller's, one that is already running, or a new one that writes nothing to the terminal.

A session started here lives until the process ends: starting one takes seconds, and a released frame still needs it.
Its spill folder is private and is removed with the process.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from kinfold.disk import folders
from kinfold.disk.folders import defer_signals
from kinfold.errors import Cancelled, DataError, PolicyError, Unreachable, explain_install
from kinfold.progress import add_to_watches
from kinfold.tables.duckdb.recoding import misfit_error
from kinfold.tables.resources import Resources, get_free_memory

OLDEST_JAVA = 17  # that PySpark 4 runs on
SYSTEM_JAVA_FOLDER = Path("/usr/lib/jvm")
JAVA_FIX = "install Java (Debian, Ubuntu: apt install openjdk-17-jre-headless), or set JAVA_HOME to its folder"
INSTALL_FIX = explain_install("spark")
LOCAL_MASTER = "local[*]"
SCRATCH_PREFIX = "kinfold-spark-"
WAREHOUSE = "spark.sql.warehouse.dir"
MIN_LOCAL_MEMORY, LOCAL_MEMORY_SHARE = 1 << 30, 0.5  # default of Spark on this machine: bytes, share of free memory
CANCEL_TIMEOUT, CANCEL_INTERVAL = 60.0, 0.2  # seconds that a job has to end, and between two requests to end
TASK_ATTEMPTS = 4  # as on a cluster
DRIVER_GONE = "Spark ended, or lost the connection to this process; nothing was released"
TASKS_FAILED = "a task failed repeatedly on the cluster, or executors were lost; nothing was released"
UNREADABLE_FILE_SIGNS = ("READ_FILE", "not a Parquet file", "ParquetDecodingException", "FileNotFound")
MISFIT_MARKER = "kinfold: a value does not fit its type"  # the message of an executor, without the value
UNREADABLE_MARKER = "kinfold: cannot read the part "  # followed by its name as JSON

_tag_numbers = count()


class MisfitError(Exception):
    """Raised in an executor: a value does not fit its type."""


class UnreadablePartError(Exception):
    """Raised in an executor: a file cannot be read."""


def find_java_home(system: Path = SYSTEM_JAVA_FOLDER) -> Path:
    """Return the folder of a Java runtime that Spark can use: JAVA_HOME, the PATH, or the system folder."""
    if variable := os.environ.get("JAVA_HOME"):
        home = Path(variable)
        if not os.access(home / "bin/java", os.X_OK):
            raise PolicyError("the folder in JAVA_HOME has no Java", fix=JAVA_FIX)
        if (version := read_java_version(home)) is not None and version < OLDEST_JAVA:
            raise PolicyError(f"JAVA_HOME is Java {version}; Spark needs {OLDEST_JAVA} or newer", fix=JAVA_FIX)
        return home
    on_path = shutil.which("java")
    homes = [Path(on_path).resolve().parent.parent] if on_path else []
    homes += sorted(system.glob("*")) if system.is_dir() else []
    for home in homes:
        if os.access(home / "bin/java", os.X_OK) and (read_java_version(home) or 0) >= OLDEST_JAVA:
            return home
    raise PolicyError(f"Spark needs Java {OLDEST_JAVA} or newer, and none is installed", fix=JAVA_FIX)


def read_java_version(home: Path) -> int | None:
    """Return the version in the release file of a Java runtime, or None."""
    try:
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    match = re.search(r'^JAVA_VERSION="(?:1\.)?([0-9]+)', text, re.MULTILINE)
    return int(match[1]) if match else None


class JobSession:
    """Spark, and the jobs of one run: they can be cancelled and report their progress."""

    def __init__(self, spark: Any) -> None:
        self.spark, self._tag = spark, f"kinfold-{os.getpid()}-{next(_tag_numbers)}"
        self._running, self._stopped = 0, False
        logging.getLogger().addFilter(_is_not_from_py4j)
        add_to_watches(self)

    def interrupt(self) -> None:
        """Cancel the job of this run, in another thread: the caller may be inside the job."""
        self._stopped = True
        threading.Thread(target=self._interrupt, daemon=True).start()

    def _interrupt(self) -> None:
        """Cancel repeatedly until the job is over: a job that is about to start cannot be cancelled yet."""
        end = time.monotonic() + CANCEL_TIMEOUT
        with suppress(Exception):  # the session may be gone
            while self._running and time.monotonic() < end:
                self._call_by_tag("cancelJobsWithTag", "interruptTag")  # other threads do not know the tag of a session
                time.sleep(CANCEL_INTERVAL)

    def _call_by_tag(self, of_context: str, of_session: str) -> None:
        """Call a method of the context, or of a session that only connects to a cluster, with the tag of the jobs."""
        context = _get_context(self.spark)
        getattr(context or self.spark, of_context if context else of_session)(self._tag)

    def share(self) -> float:
        """Return the progress of the running stages, 0 to 1; 0 if it is unknown."""
        if not self._running:
            return 0.0
        with suppress(Exception):
            tracker = self.spark.sparkContext.statusTracker()
            stages = [tracker.getStageInfo(each) for each in tracker.getActiveStageIds()]
            known = [stage for stage in stages if stage is not None]
            done, total = sum(each.numCompletedTasks for each in known), sum(each.numTasks for each in known)
            return float(done / max(total, 1))
        return 0.0

    def free_memory(self) -> None:
        """Let Java return the memory of rows that came to this process; it would keep it for the whole run."""
        if context := _get_context(self.spark):
            with suppress(Exception):  # the session may be gone
                context._jvm.System.gc()

    def close_after_error(self) -> None:
        """Do nothing: the session outlives a run."""

    @contextmanager
    def job(self) -> Iterator[None]:
        """Run a job that a signal or the progress callback can cancel; translate its errors."""
        self._call_by_tag("addJobTag", "addTag")
        if context := _get_context(self.spark):
            context.setInterruptOnCancel(True)  # of the tasks too
        self._running += 1
        try:
            if self._stopped:
                raise Cancelled("stopped between two jobs")
            with silence_pyspark(), defer_signals(self.interrupt), translate_errors():
                yield
        finally:
            self._running, self._stopped = self._running - 1, False
            with suppress(Exception):
                self._call_by_tag("removeJobTag", "removeTag")


def _is_not_from_py4j(record: logging.LogRecord) -> bool:
    """Filter records of the root logger: py4j logs there, in any thread, that Java is gone."""
    return f"{os.sep}py4j{os.sep}" not in record.pathname


# py4j keeps the root logger alive at exit; its filter would keep DuckDB's objects, which DuckDB reports on the terminal
atexit.register(logging.getLogger().removeFilter, _is_not_from_py4j)


def _get_context(spark: Any) -> Any:
    """Return the context of a session in this process, None for one that only connects to a cluster."""
    try:
        return spark.sparkContext
    except Exception:
        return None


def open_session(master: str | None, resources: Resources) -> Any:
    """Return the running session, if it is on the requested cluster, or a new one."""
    if master is not None and master.startswith("sc://"):
        what = "engine.master is an address of Spark Connect, which has no master"
        raise PolicyError(what, fix="read the table in a session of it, in Python, and pass the frame")
    try:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
    except ImportError:
        raise PolicyError("engine.name: Spark is not installed", fix=INSTALL_FIX) from None
    with silence_pyspark():
        # Spark remembers the session by thread, and this thread may have none.
        in_process = SparkContext._active_spark_context is not None
        running = SparkSession.getActiveSession() or (SparkSession.builder.getOrCreate() if in_process else None)
        if running is not None:
            current = running.conf.get("spark.master", "")
            if master is not None and current not in (master, _add_retries(master)):
                what = f"engine.master is '{master}', but a session on '{current}' already runs in this process"
                raise PolicyError(what, fix="leave engine.master out, or stop that session first: spark.stop()")
            return running
        local = f"local[{resources.threads}]" if resources.threads else LOCAL_MASTER
        return _start_session(SparkSession, master or local, resources)


def _start_session(kind: Any, master: str, resources: Resources) -> Any:
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    os.environ["JAVA_HOME"] = str(find_java_home())
    _use_same_python()
    conf = SparkConf(loadDefaults=False)
    folders.sweep_scratch(SCRATCH_PREFIX, resources.spill)
    folder = folders.make_scratch(SCRATCH_PREFIX, resources.spill)
    atexit.register(folders.remove_scratch, folder)
    for key, value in _build_settings(master, resources, folder).items():
        conf.set(key, value)
    stderr = None if os.environ.get("KINFOLD_TRACEBACK") == "spark" else subprocess.DEVNULL
    with _keep_signal_handlers(), _set_java_folder(folder):
        try:
            gateway = launch_gateway(conf, {"stderr": stderr})
            if gateway.jvm.System.getProperty(WAREHOUSE) is None:  # Spark would make a folder where the command runs
                conf.set(WAREHOUSE, f"{folder.absolute().as_uri()}/warehouse")
            SparkContext(conf=conf, gateway=gateway)
            return kind.builder.getOrCreate()
        except Exception:
            with suppress(Exception):
                if SparkContext._active_spark_context is not None:
                    SparkContext._active_spark_context.stop()
            what = f"engine.master: Spark could not be started on '{master}'"
            fix = "check that the cluster runs, and that Java and memory suffice; local[*] is this machine"
            raise PolicyError(what, fix=fix) from None


def _add_retries(master: str) -> str:
    """Return the master with retries of failed tasks: on one machine Spark has none by default.

    >>> _add_retries("local[*]"), _add_retries("local"), _add_retries("local[2,1]"), _add_retries("yarn")
    ('local[*,4]', 'local[1,4]', 'local[2,1]', 'yarn')
    """
    cores = re.fullmatch(r"local(?:\[\s*([0-9]+|\*)\s*\])?", master)
    return f"local[{cores[1] or 1},{TASK_ATTEMPTS}]" if cores else master


def _build_settings(master: str, resources: Resources, folder: Path) -> dict[str, str]:
    """Return the settings: no output, and on one machine no port that is open to others."""
    settings = {
        "spark.master": _add_retries(master),
        "spark.app.name": "kinfold",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    }
    is_local = master.startswith("local")
    if is_local or master.startswith(("spark://127.0.0.1:", "spark://localhost:")):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if resources.memory or is_local:
        settings["spark.driver.memory"] = f"{(resources.memory or _get_default_memory()) >> 20}m"
    if is_local:  # other executors spill to the folders of their machines
        cores = master.partition("[")[2].rstrip("]").partition(",")[0]
        partitions = cores if cores.isdigit() else str(os.cpu_count() or 2)
        settings |= {"spark.local.dir": str(folder), "spark.sql.shuffle.partitions": partitions}
    return settings


@contextmanager
def _set_java_folder(folder: Path) -> Iterator[None]:
    """Put the temporary files of Java into our folder: a killed process does not remove them."""
    before = os.environ.get("SPARK_SUBMIT_OPTS")
    named = (f"-Djava.io.tmpdir={folder}", f"-Dderby.stream.error.file={folder}/derby.log")
    options = " ".join('"' + re.sub(r'(["\\])', r"\\\1", option) + '"' for option in named)
    os.environ["SPARK_SUBMIT_OPTS"] = f"{before or ''} -XX:-UsePerfData {options}".strip()
    try:
        yield
    finally:
        os.environ.pop("SPARK_SUBMIT_OPTS")
        if before is not None:
            os.environ["SPARK_SUBMIT_OPTS"] = before


def _get_default_memory() -> int:
    free = get_free_memory()
    if free is None and hasattr(os, "sysconf"):  # assume that half of the memory is free
        free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    return max(MIN_LOCAL_MEMORY, int(LOCAL_MEMORY_SHARE * (free or 0)))


def _use_same_python() -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    source = str(Path(__file__).resolve().parents[3])
    paths = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    if source not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([source, *paths])


@contextmanager
def _keep_signal_handlers() -> Iterator[None]:
    """Restore the signal handlers that Spark replaces."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def silence_pyspark() -> Iterator[None]:
    """Silence the warnings of PySpark about other libraries, and its log, which quotes values."""
    logger = logging.getLogger("SQLQueryContextLogger")
    before = logger.disabled
    logger.disabled = True
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
            warnings.filterwarnings("ignore", category=ResourceWarning)
            yield
    finally:
        logger.disabled = before


@contextmanager
def translate_errors() -> Iterator[None]:
    """Translate the errors of Spark, which quote plans, paths and values."""
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        message = str(error)
    except (Py4JError, ConnectionError, EOFError):  # Java is gone
        raise Unreachable(DRIVER_GONE, fix="give the driver more memory (engine.memory), then run again") from None
    else:
        return
    raise _translate_error(message)


def _translate_error(message: str) -> Exception:
    if "cancelled" in message.lower() or "OPERATION_CANCELED" in message:
        return Cancelled("stopped during a job")
    if MISFIT_MARKER in message:
        return misfit_error()
    if "OutOfMemoryError" in message:
        what = "Spark does not have enough memory for this table"
        return Unreachable(what, fix="raise engine.memory, or spark.executor.memory of the cluster")
    if UNREADABLE_MARKER in message or any(sign in message for sign in UNREADABLE_FILE_SIGNS):
        what = f"{_find_part_name(message)} cannot be read"
        return DataError(what, fix="check that it is complete, and that its ending fits")
    if os.environ.get("KINFOLD_TRACEBACK"):
        return RuntimeError(message)
    return Unreachable(TASKS_FAILED, fix="check the executors' logs, give them more memory, then run again")


def _find_part_name(message: str) -> str:
    """Return the name of the file in an error of our executors or of Spark."""
    if part := re.search(re.escape(UNREADABLE_MARKER) + r'("(?:[^"\\]|\\.)*")', message):
        return f"'{json.loads(part[1])}'"
    if address := re.search(r"\bfile:/\S*\.(?:parquet|pq)\b", message, re.IGNORECASE):
        return f"'{unquote(address[0]).rpartition('/')[2]}'"
    return "a part of the table"
