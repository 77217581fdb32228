"""A session of Spark: the caller's, one that runs already, or one that is started, without a word on the terminal.

A session that was started here stays until the process ends: starting one takes seconds, and whoever holds a released
frame still needs it. Its folder for what it spills is private and goes with the process.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import re
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

from kinfold.disk import scratch
from kinfold.disk.deferred_signals import undisturbed
from kinfold.errors import Cancelled, DataError, PolicyError, Unreachable, install_extra
from kinfold.rows.engines.connection import join_watch
from kinfold.rows.engines.spark.in_executors import MISFIT, UNREADABLE
from kinfold.rows.engines.spark.java import java_home
from kinfold.rows.engines.treating import misfit
from kinfold.rows.free_memory import free_memory
from kinfold.rows.resources import Resources

INSTALL = install_extra("spark")
HERE = "local[*]"
PREFIX = "kinfold-spark-"
LEAST, SHARE = 1 << 30, 0.5  # of Spark on this machine by default: bytes at least, and the part of the free memory
PATIENCE, OFTEN = 60.0, 0.2  # seconds that a job has to end, and between two words to it
DEAD = "Spark ended, or lost the way to this process; nothing was released"
LOST = "a task failed on the cluster again and again, or executors were lost; nothing was released"
UNREADABLE_FILE = ("READ_FILE", "not a Parquet file", "ParquetDecodingException", "FileNotFound")
TRIES = 4  # of a task, as on a cluster

_tags = count()


class RunningSpark:
    """Spark, and the jobs of one run in it: they can be stopped, and say how far they are."""

    def __init__(self, spark: Any) -> None:
        self.spark, self._tag = spark, f"kinfold-{os.getpid()}-{next(_tags)}"
        self._running, self._stopped = 0, False
        logging.getLogger().addFilter(_not_of_py4j)
        join_watch(self)

    def interrupt(self) -> None:
        """Let the job of this run end here; from a thread of its own, for the caller may be within one."""
        self._stopped = True
        threading.Thread(target=self._interrupt, daemon=True).start()

    def _interrupt(self) -> None:
        """Stop the job again and again until it is over: one that is about to start cannot be stopped yet."""
        end = time.monotonic() + PATIENCE
        with suppress(Exception):  # of a session that is gone
            while self._running and time.monotonic() < end:
                self._cancel()
                time.sleep(OFTEN)

    def _cancel(self) -> None:
        """Stop by the tag of the jobs themselves: that of a session is known to the thread alone that put it there."""
        context = _context(self.spark)
        if context is not None:
            context.cancelJobsWithTag(self._tag)
        else:
            self.spark.interruptTag(self._tag)

    def _mark(self) -> None:
        """Put our tag on the jobs that this thread starts; their tasks are to be interrupted where they are."""
        context = _context(self.spark)
        if context is not None:
            context.addJobTag(self._tag)
            context.setInterruptOnCancel(True)
        else:
            self.spark.addTag(self._tag)

    def _unmark(self) -> None:
        context = _context(self.spark)
        if context is not None:
            context.removeJobTag(self._tag)
        else:
            self.spark.removeTag(self._tag)

    def share(self) -> float:
        """Return how far the stages are that run now, 0 to 1; 0 where none does, or nobody can tell."""
        if not self._running:
            return 0.0
        with suppress(Exception):
            tracker = self.spark.sparkContext.statusTracker()
            stages = [tracker.getStageInfo(each) for each in tracker.getActiveStageIds()]
            known = [stage for stage in stages if stage is not None]
            done, every = sum(each.numCompletedTasks for each in known), sum(each.numTasks for each in known)
            return float(done / max(every, 1))
        return 0.0

    @contextmanager
    def job(self) -> Iterator[None]:
        """Run something that a signal, or whoever listens, may stop; what goes wrong is told in our words."""
        self._mark()
        self._running += 1
        try:
            if self._stopped:
                raise Cancelled("stopped between two jobs")
            with quietly(), undisturbed(self.interrupt), in_our_words():
                yield
        finally:
            self._running, self._stopped = self._running - 1, False
            with suppress(Exception):
                self._unmark()


def _not_of_py4j(record: logging.LogRecord) -> bool:
    """Whether a record of the root logger is of somebody else: py4j logs there, in any thread, that Java is gone."""
    return f"{os.sep}py4j{os.sep}" not in record.pathname


def _context(spark: Any) -> Any:
    """Return the context of a session in this process; None of one that only connects to a cluster."""
    try:
        return spark.sparkContext
    except Exception:
        return None


def opened(master: str | None, resources: Resources) -> Any:
    """Return a session: the one that runs, if it is on the cluster that is asked for, or a new one."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise PolicyError("engine.name: Spark is not installed here", fix=INSTALL) from None
    with quietly():
        running = SparkSession.getActiveSession() or _of_process(SparkSession)
        if running is not None:
            _require_same(running, master)
            return running
        asked = master or (f"local[{resources.threads}]" if resources.threads else HERE)
        return _started(SparkSession, asked, resources)


def _of_process(kind: Any) -> Any:
    """Return the session of this process where this thread has none of its own: Spark remembers it by thread."""
    from pyspark import SparkContext

    return None if SparkContext._active_spark_context is None else kind.builder.getOrCreate()


def _require_same(running: Any, master: str | None) -> None:
    held = running.conf.get("spark.master", "")
    if master is not None and held not in (master, _tried_again(master)):
        what = f"engine.master is '{master}', but a session on '{held}' runs in this process already"
        raise PolicyError(what, fix="leave engine.master out, or stop that session first: spark.stop()")


def _started(kind: Any, master: str, resources: Resources) -> Any:
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    os.environ["JAVA_HOME"] = str(java_home())
    _same_python()
    conf = SparkConf(loadDefaults=False)
    folder = _private(resources.spill)
    for key, value in _settings(master, resources, folder).items():
        conf.set(key, value)
    shown = None if os.environ.get("KINFOLD_TRACEBACK") == "spark" else subprocess.DEVNULL
    with _own_signals(), _files_of_java_in(folder):
        try:
            gateway = launch_gateway(conf, {"stderr": shown})
            SparkContext(conf=conf, gateway=gateway)
            return kind.builder.getOrCreate()
        except Exception:
            with suppress(Exception):
                if SparkContext._active_spark_context is not None:
                    SparkContext._active_spark_context.stop()
            what = f"engine.master: no Spark could be started on '{master}'"
            fix = "check that the cluster is there, and that Java and memory suffice; local[*] is this machine"
            raise PolicyError(what, fix=fix) from None


def _tried_again(master: str) -> str:
    """Return the master with tasks that are tried again after a failure: on one machine Spark gives up at the first.

    >>> _tried_again("local[*]"), _tried_again("local"), _tried_again("local[2,1]"), _tried_again("yarn")
    ('local[*,4]', 'local[1,4]', 'local[2,1]', 'yarn')
    """
    cores = re.fullmatch(r"local(?:\[\s*([0-9]+|\*)\s*\])?", master)
    return f"local[{cores[1] or 1},{TRIES}]" if cores else master


def _settings(master: str, resources: Resources, folder: Path) -> dict[str, str]:
    """What Spark is told: nothing is shown, nothing listens beyond this machine where it is the whole cluster."""
    told = {
        "spark.master": _tried_again(master),
        "spark.app.name": "kinfold",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    }
    here = master.startswith("local")
    if here or master.startswith(("spark://127.0.0.1:", "spark://localhost:")):
        told |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if resources.memory or here:
        told["spark.driver.memory"] = f"{(resources.memory or _share()) >> 20}m"
    if here:  # executors elsewhere spill where their machines say
        told |= {"spark.local.dir": str(folder), "spark.sql.shuffle.partitions": _cores(master)}
    return told


@contextmanager
def _files_of_java_in(folder: Path) -> Iterator[None]:
    """Let Java keep its temporary files in a folder of ours: a process that is killed does not remove them."""
    before = os.environ.get("SPARK_SUBMIT_OPTS")
    ours = re.sub(r'(["\\])', r"\\\1", f"-Djava.io.tmpdir={folder}")
    os.environ["SPARK_SUBMIT_OPTS"] = f'{before or ""} -XX:-UsePerfData "{ours}"'.strip()
    try:
        yield
    finally:
        os.environ.pop("SPARK_SUBMIT_OPTS")
        if before is not None:
            os.environ["SPARK_SUBMIT_OPTS"] = before


def _share() -> int:
    """Return how many bytes Spark gets of this machine by default."""
    free = free_memory()
    if free is None and hasattr(os, "sysconf"):  # half of what there is may be free
        free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    return max(LEAST, int(SHARE * (free or 0)))


def _cores(master: str) -> str:
    """Return how many cores a machine gives, as its master is written."""
    said = master.partition("[")[2].rstrip("]").partition(",")[0]
    return said if said.isdigit() else str(os.cpu_count() or 2)


def _private(parent: Path | None) -> Path:
    scratch.sweep(PREFIX, parent)
    folder = scratch.make(PREFIX, parent)
    atexit.register(scratch.remove, folder)
    return folder


def _same_python() -> None:
    """Let the workers be this Python, with this kinfold."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    ours = str(Path(__file__).resolve().parents[4])
    there = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    if ours not in there:
        os.environ["PYTHONPATH"] = os.pathsep.join([ours, *there])


@contextmanager
def _own_signals() -> Iterator[None]:
    """Keep the handlers that were there: Spark puts its own in their place."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def quietly() -> Iterator[None]:
    """Keep to ourselves what PySpark thinks of the versions of other libraries, and what it logs: it quotes values."""
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
def in_our_words() -> Iterator[None]:
    """Tell what Spark says in our words: its own quote plans, paths and values."""
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        told = str(error)
    except (Py4JError, ConnectionError, EOFError):  # no word from Java: it is gone
        raise Unreachable(DEAD, fix="give the driver more memory (engine.memory), then run again") from None
    else:
        return
    raise _translated(told)


def _translated(told: str) -> Exception:
    if "cancelled" in told.lower() or "OPERATION_CANCELED" in told:
        return Cancelled("stopped in the middle of a job")
    if MISFIT in told:
        return misfit()
    if "OutOfMemoryError" in told:
        what = "Spark has not enough memory for this table"
        return Unreachable(what, fix="give it more: engine.memory, or spark.executor.memory of the cluster")
    if UNREADABLE in told or any(sign in told for sign in UNREADABLE_FILE):
        return DataError(f"{_part_in(told)} cannot be read", fix="check that it is whole and what its ending says")
    if os.environ.get("KINFOLD_TRACEBACK"):
        return RuntimeError(told)
    return Unreachable(LOST, fix="look at the executors' logs, give them more memory, then run again")


def _part_in(told: str) -> str:
    """Return the name of the file that an error is about, as our executors or Spark itself say it."""
    if ours := re.search(re.escape(UNREADABLE) + r'("(?:[^"\\]|\\.)*")', told):
        return f"'{json.loads(ours[1])}'"
    if address := re.search(r"\bfile:/\S*\.(?:parquet|pq)\b", told, re.IGNORECASE):
        return f"'{unquote(address[0]).rpartition('/')[2]}'"
    return "a part of the table"
